# SPDX-License-Identifier: Apache-2.0
"""What the records of the batches say, compared with the batch headers.

Laws: BATCH-9, BATCH-10, BATCH-11, BATCH-16, BATCH-18, DISK-16, DISK-17, DISK-18.
"""

import numpy as np
from numpy.typing import NDArray

from segproof.errors import SegproofError, TooLargeError
from segproof.findings import Severity
from segproof.kafka.batch_table import BatchTable
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck
from segproof.verifying.reporting import Described, PathReporter
from segproof.verifying.rules import DECLARED, RESTORE, declare

__all__ = ["MAX_BATCH_BYTES", "RecordsCheck"]

declare("record-batch", Severity.ERROR,
    RESTORE, "BATCH-9", "BATCH-10", "DISK-16", "DISK-17", "DISK-18", is_deep=True)  # fmt: skip

MAX_BATCH_BYTES = 16 << 20
"""Unless a run gives its own limit, a larger batch is summed in pieces and its records are not
read: a warning says so."""
_HIGHER = "to look into it, give a higher limit: --limit-bytes, or limit of verify()"


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
        is_new = table["magic"] == 2
        # A message of magic 0 or 1 is called by the offset of its last record.
        too_far = np.where(
            is_new,
            summaries["last_offset"] > table["last_offset"],
            summaries["last_offset"] != table["last_offset"],
        )
        for law, is_broken in (
            ("DISK-16", is_new & (too_far | ~summaries["offsets_rise"])),
            ("BATCH-9", ~is_new & (too_far | ~summaries["offsets_rise"])),
        ):
            rows = np.flatnonzero(is_broken)
            _report_unlike(
                self._report, law, table[rows], summaries[rows], "last_offset",
                "the offsets of the records do not rise to the batch's last offset {0}: they fall,"
                " or end at {1}",
            )  # fmt: skip
        late = np.flatnonzero(
            (table["magic"] > 0) & (summaries["max_timestamp"] != table["max_timestamp"])
        )
        _report_unlike(
            self._report, "DISK-17", table[late], summaries[late],
            "max_timestamp",
            "the batch says that {0} is its largest timestamp, and that of its records is {1}",
        )  # fmt: skip


def _report_unlike(
    report: PathReporter,
    law: str,
    table: BatchTable,
    summaries: NDArray[np.void],
    name: str,
    words: str,
) -> None:
    """Report each batch whose header says another number than its records."""

    def describe(row: int) -> Described:
        said, found = int(table[name][row]), int(summaries[name][row])
        return Described(words.format(said, found), found, said)

    report.add_rows(law, table["position"], describe)


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
        hint=_HIGHER if is_too_large else error.hint and f"{error.hint}; {DECLARED[law].hint}",
    )
