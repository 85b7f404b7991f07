# SPDX-License-Identifier: Apache-2.0
"""Offsets that are missing between two segments, and that compaction can't have removed.

Compaction leaves gaps, also between segments and as large as a segment. So a gap alone is no
defect. But compaction goes from the start of a log, and removes each record without a key on its
way; a compacted topic accepts no such record. So behind a record without a key nothing was
compacted.

An entry of the offset index for such an offset, with a position at or behind the end of the log,
shows that the log held it: the log was cut between two batches, or emptied. Zeros do not belong to
the log here: a disk may have left them in place of its end.

Upstream: Kafka 4.3.1: Cleaner.shouldRetainRecord, LogValidator; the same since 0.11.0.
Laws: DISK-25.
"""

import numpy as np
from numpy.typing import NDArray

from segproof.counts import plural
from segproof.errors import SegproofError
from segproof.files import ReadOnlyFile, holds_zeros
from segproof.findings import Severity
from segproof.hints import reads
from segproof.kafka.batch_table import CONTROL, BatchTable
from segproof.kafka.record_batch import RecordBatch
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.record_checks import MAX_BATCH_BYTES
from segproof.verifying.rules import declare

declare("partition-log", Severity.WARNING,
    reads("a segment between the two is missing, or this one has lost its end; consumers pass over"
    " these offsets in silence. Look for the files in lost+found, in the other log directories"
    " and under other names, and compare with another replica"), "DISK-25")  # fmt: skip
CUT_LOG = reads(
    "compare the segment with another replica; until then keep its .index file: a new one would no"
    " longer show that batches were here"
)


class LostOffsetsCheck(LogCheck):
    """Judges what lies between the end of the log and the next segment."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._limit = log.reporter.wanted.limit or MAX_BATCH_BYTES
        self._end: int | None = log.segment.base_offset
        """The offset behind the last batch; None if that batch is damaged."""
        self._last: np.void | None = None
        """The header of the last sound batch of records."""

    @classmethod
    def applies(cls, log: LogPass) -> bool:
        """Return whether a segment follows."""
        return log.segment.next_base_offset is not None

    def check(self, block: Block) -> None:
        """Take in the last batches of a block."""
        table, crc_valid = block.table, block.crc_valid
        self._end = int(table["last_offset"][-1]) + 1 if crc_valid[-1] else None
        rows = np.flatnonzero(crc_valid & are_of_records(table))
        if len(rows):
            self._last = table[rows[-1]].copy()

    def finish(self) -> None:
        """Judge the end of a log that was read whole, up to zeros that a disk may have left."""
        size, end, following = self._log.size, self._end, self._segment.next_base_offset
        position = self._log.scan.end_position
        if end is None or following is None or end >= following:
            return
        if position < size and not holds_zeros(self._log.file, position, size):
            return
        indexed = self._indexed(end, following)
        last = self._last
        if not (indexed or (last is not None and has_keyless(self._log.file, last, self._limit))):
            return
        if indexed:
            why = (
                f" The offset index has entries for {indexed} of them, behind the end of the log:"
                " the log has lost its end"
            )
        else:
            why = " Its last records are not all keyed, so it is not compaction that took them"
        self._report.add(
            "DISK-25",
            f"the segment ends before offset {end} and the next one begins at {following}:"
            f" {plural(following - end, 'offset', 'is', 'are')} in neither.{why}",
            position=position,
            expected=end,
            actual=following,
            severity=Severity.ERROR if indexed else None,
            hint=CUT_LOG if indexed else None,
        )

    def _indexed(self, end: int, following: int) -> int:
        """Return how many entries of the offset index say that the log held offsets of the gap."""
        count, base = 0, self._segment.base_offset
        if self._log.offsets is not None:
            for _, block in self._log.offsets.blocks():
                offsets = block["offset"].astype(np.int64) + base
                is_gone = (offsets >= end) & (offsets < following)
                is_gone &= block["position"] >= self._log.scan.end_position
                count += int(np.count_nonzero(is_gone))
        return count


def are_of_records(table: BatchTable) -> NDArray[np.bool_]:
    """Return which batches hold records of clients, as their headers say."""
    is_bare = (table["attributes"] & CONTROL != 0) | (table["record_count"] <= 0)
    return np.asarray((table["magic"] != 2) | ~is_bare)


def has_keyless(file: ReadOnlyFile, header: np.void, limit: int) -> bool:
    """Return whether a batch can be read and has a record without a key: no compaction took it.

    `header` is the batch's row of a table; a batch of more than `limit` bytes is not read.
    """
    position, size, magic = (int(header[name]) for name in ("position", "size_bytes", "magic"))
    if size > limit:
        return False
    batch = RecordBatch(file, position, size, magic, in_file=True)
    try:
        return sum(record.key is None for record in batch.records(limit=limit)) > 0
    except SegproofError:
        return False
