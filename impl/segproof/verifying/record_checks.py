# SPDX-License-Identifier: Apache-2.0
"""What the records of the batches say, compared with the batch headers.

Laws: BATCH-9, BATCH-10, BATCH-11, BATCH-16, BATCH-18, DISK-16, DISK-17, DISK-18, DISK-56.
Not covered: checksums of messages inside a compressed one in a run that is not deep, since that
    inflates nothing; whether an inner message has the magic of the one around it.
"""

import numpy as np

from segproof.compression import Inflation
from segproof.errors import SegproofError, TooLargeError
from segproof.findings import Severity
from segproof.hints import reads
from segproof.kafka.batch_table import BatchTable
from segproof.kafka.legacy_record_batch import inner_problem
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck
from segproof.wording.reporting import PathReporter
from segproof.wording.rules import DECLARED, RESTORE, WRITTEN_SO, declare

declare("record-batch", Severity.ERROR,
    WRITTEN_SO, "BATCH-9", "DISK-16", "DISK-17", "DISK-18", is_deep=True)  # fmt: skip
declare("record-batch", Severity.ERROR, RESTORE, "BATCH-10", is_deep=True)
declare("record-batch", Severity.ERROR,
    reads("compare this batch with another replica. A broker keeps it, since the checksum around"
    " the messages is right; consumers with check.crcs=false read past it"), "DISK-56",
    is_deep=True)  # fmt: skip

OFFSETS = (
    "the offsets of the records do not rise to the batch's last offset {said}: they fall, or end at"
    " {found}"
)
TIMESTAMPS = (
    "the batch says that {said} is its largest timestamp, and that of its records is {found}"
)
_HIGHER = reads("to look into it, give a higher limit: --limit-bytes, or limit of verify()")


class RecordsCheck(LogCheck):
    """Judges the records of the batches whose checksums are right, in a deep run."""

    def check(self, block: Block) -> None:
        """Judge one block."""
        if block.summaries is None:
            return
        for row in sorted(block.errors):
            if block.crc_valid[row]:
                _report_error(block.errors[row], block, row, self._report)
        is_read = block.crc_valid.copy()
        is_read[list(block.errors)] = False
        rows = np.flatnonzero(is_read & (block.summaries["record_count"] > 0))
        table, summaries = block.table[rows], block.summaries[rows]
        last = summaries["last_offset"]
        is_new = table["magic"] == 2
        # A message of magic 0 or 1 is called by the offset of its last record.
        too_far = np.where(is_new, last > table["last_offset"], last != table["last_offset"])
        is_broken = too_far | ~summaries["offsets_rise"]
        late = (table["magic"] > 0) & (summaries["max_timestamp"] != table["max_timestamp"])
        for law, where, name, words in (
            ("DISK-16", is_new & is_broken, "last_offset", OFFSETS),
            ("BATCH-9", ~is_new & is_broken, "last_offset", OFFSETS),
            ("DISK-17", late, "max_timestamp", TIMESTAMPS),
        ):
            said, found = table[name], summaries[name]
            self._report.add_where(
                law, where, table["position"], words, found, said, said=said, found=found
            )
        self._check_inner(table[~is_new & (table["attributes"] & 7 != 0)])

    def _check_inner(self, wrappers: BatchTable) -> None:
        """Judge the messages inside compressed ones, whose records can be read."""
        inflation = Inflation(self._log.reporter.wanted.limit)
        for row in wrappers:
            position, size = int(row["position"]), int(row["size_bytes"])
            message = memoryview(self._log.file.pread(size, position))
            if len(message) < size:
                return  # it was cut meanwhile
            problem, count = inner_problem(message, inflation.limit_of(size))
            if problem:
                more = f", and {count - 1} more" if count > 1 else ""
                self._report.add(
                    "DISK-56",
                    f"{problem}{more}: a consumer that checks records stops at this batch, of"
                    f" offsets up to {row['last_offset']}",
                    position=position,
                    expected=0,
                    actual=count,
                )


def _report_error(error: SegproofError, block: Block, row: int, report: PathReporter) -> None:
    """Report why the records of a batch could not be read, or were not."""
    law = error.law if error.law in DECLARED else None
    is_compressed = bool(block.table["attributes"][row] & 7)
    is_too_large = isinstance(error, TooLargeError)
    law = law or ("DISK-18" if is_compressed or is_too_large else "BATCH-16")
    expected, actual = (
        part if isinstance(part, int | str | None) else str(part)
        for part in (error.expected, error.actual)
    )
    report.add(
        law,
        f"the records {'were not looked into' if is_too_large else 'cannot be read'}: "
        f"{error.message}",
        position=int(block.table["position"][row]),
        expected=expected,
        actual=actual,
        severity=Severity.WARNING if is_too_large else None,
        hint=_HIGHER
        if is_too_large
        else DECLARED[law].hint.after(f"{error.hint}; " if error.hint else ""),
    )
