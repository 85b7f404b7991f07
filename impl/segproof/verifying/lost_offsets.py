# SPDX-License-Identifier: Apache-2.0
"""Offsets that are missing between two segments, and that compaction can't have taken.

Compaction leaves gaps as large as segments, and between them, so a gap alone is no defect. But it
goes from the start of a log, and takes every record without a key that it passes; a topic that is
compacted accepts none. So behind such a record nothing has been compacted.

Upstream: Kafka 4.3.1: Cleaner.shouldRetainRecord, LogValidator; the same since 0.11.0.
Laws: DISK-25.
"""

import numpy as np

from segproof.errors import SegproofError
from segproof.files import File
from segproof.kafka.record_batch import RecordBatch
from segproof.verifying.deep_checks import MAX_BATCH_BYTES
from segproof.verifying.log_checks import Block
from segproof.verifying.reporting import Reporter
from segproof.verifying.segments import Segment

__all__ = ["LostOffsetsCheck"]

CONTROL = 32


class LostOffsetsCheck:
    """Goes beside the log and judges, at its end, what lies before the next segment."""

    def __init__(self, file: File, segment: Segment, reporter: Reporter) -> None:
        self._file = file
        self._segment = segment
        self._reporter = reporter
        self._limit = reporter.wanted.limit or MAX_BATCH_BYTES
        self._end: int | None = None
        """The offset behind the last batch; None if that batch is damaged, or there is none."""
        self._last: tuple[int, int, int] | None = None
        """Position, size and magic of the last sound batch of records."""

    def check(self, block: Block) -> None:
        """Take in the last batches of a block."""
        if self._segment.next_base_offset is None:
            return
        table, crc_valid = block.table, block.crc_valid
        self._end = int(table["last_offset"][-1]) + 1 if crc_valid[-1] else None
        is_new = table["magic"] == 2
        is_bare = (table["attributes"] & CONTROL != 0) | (table["record_count"] <= 0)
        rows = np.flatnonzero(crc_valid & ~(is_new & is_bare))
        if len(rows):
            row = table[rows[-1]]
            self._last = int(row["position"]), int(row["size_bytes"]), int(row["magic"])

    def finish(self, size: int) -> None:
        """Judge the end of a log that was read whole; `size` is its size. Raises: OSError."""
        end, following = self._end, self._segment.next_base_offset
        if end is None or following is None or end >= following or not self._has_keyless():
            return
        count = following - end
        self._reporter.add(
            "DISK-25",
            self._segment.path(".log"),
            f"the segment ends before offset {end} and the next one begins at {following}:"
            f" {count} offsets are in neither. Its last records are not all keyed, so it is not"
            " compaction that took them",
            position=size,
            expected=end,
            actual=following,
        )

    def _has_keyless(self) -> bool:
        """Return whether the last batch of records can be read and has one without a key."""
        if self._last is None:
            return False
        position, size, magic = self._last
        if size > self._limit:
            return False
        batch = RecordBatch(self._file, position, size, magic, in_file=True)
        try:
            return sum(record.key is None for record in batch.records(limit=self._limit)) > 0
        except SegproofError:
            return False
