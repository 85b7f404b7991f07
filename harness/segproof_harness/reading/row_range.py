# SPDX-License-Identifier: Apache-2.0
"""Which rows of a file are wanted: by offset, by time, and how many."""

from dataclasses import dataclass, replace
from typing import Any


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
