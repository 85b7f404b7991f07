# SPDX-License-Identifier: Apache-2.0
"""Which rows of a file are wanted: by offset, by time, and how many."""

import os
from dataclasses import dataclass, replace
from typing import Any

from segproof.errors import CorruptIndexError, CorruptRecordError, SegproofError
from segproof.files import Files
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.segment_reader import SegmentReader


@dataclass(frozen=True, slots=True)
class RowRange:
    """Bounds of offsets and of times in milliseconds, and the largest number of rows; None: any.

    The first is inclusive, the end exclusive.
    """

    first_offset: int | None = None
    end_offset: int | None = None
    first_ms: int | None = None
    end_ms: int | None = None
    most: int | None = None

    @property
    def has_offsets(self) -> bool:
        """Whether offsets are bounded."""
        return self.first_offset is not None or self.end_offset is not None

    @property
    def has_times(self) -> bool:
        """Whether times are."""
        return self.first_ms is not None or self.end_ms is not None

    @property
    def is_bounded(self) -> bool:
        """Whether either is."""
        return self.has_offsets or self.has_times

    def takes(self, first: int | None, last: int | None, timestamp_ms: int | None) -> bool:
        """Return whether what has these offsets, both inclusive, and this time is wanted.

        What has no offset or no time is wanted where that is not bounded.
        """
        return (
            (self.first_offset is None or (last is not None and last >= self.first_offset))
            and (self.end_offset is None or (first is not None and first < self.end_offset))
            and self.takes_time(timestamp_ms)
        )

    def takes_offset(self, offset: int) -> bool:
        """Return whether this offset is wanted."""
        return replace(self, first_ms=None, end_ms=None).takes(offset, offset, None)

    def takes_time(self, timestamp_ms: int | None) -> bool:
        """Return whether this time is wanted."""
        if not self.has_times:
            return True
        return (
            timestamp_ms is not None
            and (self.first_ms is None or timestamp_ms >= self.first_ms)
            and (self.end_ms is None or timestamp_ms < self.end_ms)
        )

    def takes_entry(self, row: dict[str, Any]) -> bool:
        """Return whether the row of an entry of an index, or of a record, is wanted."""
        first = row.get("first_offset", row.get("offset"))
        return self.takes(first, row.get("last_offset", first), row.get("timestamp"))


ALL = RowRange()


def start_position(path: str, base_offset: int, wanted: RowRange, files: Files) -> int:
    """Return the byte of a log where reading begins: a batch no later than the first wanted one.

    The indexes beside the log tell it. It is 0 where they are missing, or wrong.
    """
    directory, name = os.path.split(path)
    is_bounded = wanted.first_offset is not None or wanted.first_ms is not None
    if not is_bounded or name != segment_file_name(base_offset, ".log"):
        return 0
    try:
        with SegmentReader(directory, base_offset, files=files, is_last=True) as reader:
            return _found_start(reader, wanted)
    except (SegproofError, OSError):
        return 0  # reading the log tells of what is wrong with the log


def _found_start(reader: SegmentReader, wanted: RowRange) -> int:
    """Return where the indexes say. Raises: CorruptIndexError where they do not fit the log."""
    offset = reader.base_offset if wanted.first_offset is None else wanted.first_offset
    by_time = None
    if wanted.first_ms is not None:
        by_time = reader.lookup_time_index(wanted.first_ms)
        offset = max(offset, by_time.offset)
    start = reader.lookup_offset_index(offset)
    try:
        found = reader.first_batch_reaching(offset, start)
    except CorruptRecordError:
        return start.position
    if found is None:
        return start.position
    if by_time is not None and by_time.offset == offset and by_time.timestamp >= 0:
        batch = next(reader.log.batches(found.position))
        if batch.max_timestamp != by_time.timestamp:
            raise CorruptIndexError("an entry of the time index does not fit the log", law="SEG-8")
    return found.position
