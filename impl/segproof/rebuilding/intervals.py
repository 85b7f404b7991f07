# SPDX-License-Identifier: Apache-2.0
"""Which index interval gives exactly the entries of an old index.

A batch gets an entry if more bytes than the interval lie between the beginning of the last indexed
batch and its own. So each old entry says that the interval is smaller than its distance from the
one before, and each batch without an entry that it is not smaller than its distance. An interval
between the two bounds gives exactly the old entries; no other one does.

Upstream: Kafka 4.3.1: LogSegment.append, recover.
Laws: SEG-22.
"""

from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files
from segproof.inventory.segments import Segment
from segproof.kafka.batch_table import BatchTable, read_batch_headers
from segproof.rebuilding.old_indexes import old_positions
from segproof.rebuilding.partition_files import PartitionFiles

DEFAULT_INTERVAL_BYTES = 4096
"""Kafka's default of `index.interval.bytes`."""
SAMPLES = 8
"""From so many old indexes the interval is learnt."""
SAMPLE_BYTES = 4 << 20
"""So much of the log of each is read for that."""
INTERVAL_END = 1 << 31
"""Kafka's option is an int32: no interval is so large."""


class IntervalBounds:
    """What an old offset index and the batches of its log say about the interval."""

    def __init__(self, positions: NDArray[np.int32]) -> None:
        self._positions = positions.astype(np.int64)
        distances = np.diff(self._positions, prepend=0)
        self._matched = 0
        self.least = 0
        """The smallest interval, in bytes, that gives no entry that is not there."""
        self.end = INTERVAL_END
        """The first interval that is too large for an entry that is there; exclusive."""
        if len(distances):
            self.end = min(max(int(distances.min()), 0), INTERVAL_END)

    def add(self, table: BatchTable) -> None:
        """Take in the next batches of the log."""
        starts = np.ascontiguousarray(table["position"])
        rows = np.searchsorted(self._positions, starts, side="right")
        before = np.concatenate(([0], self._positions))[rows]
        is_indexed = (rows > 0) & (before == starts)
        self._matched += int(np.count_nonzero(is_indexed))
        skipped = (starts - before)[~is_indexed]
        if len(skipped):
            self.least = max(self.least, int(skipped.max()))

    @property
    def is_known(self) -> bool:
        """Whether there is an interval that gives exactly the old entries among these batches."""
        seen = self._matched
        return bool(seen) and seen == len(self._positions) and self.least < self.end

    def has(self, interval: int) -> bool:
        """Return whether this interval gives exactly the old entries."""
        return self.is_known and self.least <= interval < self.end

    def narrowed(self, other: "IntervalBounds") -> "IntervalBounds":
        """Return the bounds of both, or these where no interval lies within both."""
        least, end = max(self.least, other.least), min(self.end, other.end)
        if least >= end:
            return self
        both = IntervalBounds(np.empty(0, np.int32))
        both.least, both.end = least, end
        return both

    def choose(self) -> int:
        """Return the likeliest of the intervals, which all give the same entries here.

        The default if it is one of them, else the largest power of two, else the smallest.
        """
        if self.least <= DEFAULT_INTERVAL_BYTES < self.end:
            return DEFAULT_INTERVAL_BYTES
        power = 1 << max(self.end - 1, 1).bit_length() - 1
        return power if self.least <= power < self.end else self.least


def inferred_interval(partition: PartitionFiles, files: Files) -> int | None:
    """Return an interval that the first sound old indexes tell together, or None.

    Only the beginning of a few logs is read: each segment that has a sound index is checked whole
    when it is built, and may tell another interval then.
    Raises: OSError.
    """
    common: IntervalBounds | None = None
    sampled = 0
    for segment in partition.segments:
        positions = old_positions(segment, files)
        if positions is None:
            continue
        bounds = _sample(segment, positions, files)
        if bounds.is_known:
            common = bounds if common is None else common.narrowed(bounds)
        sampled += 1
        if sampled == SAMPLES:
            break
    return None if common is None else common.choose()


def _sample(segment: Segment, positions: NDArray[np.int32], files: Files) -> IntervalBounds:
    with closing(files.open(segment.path(".log"))) as log:
        headers = read_batch_headers(log, 0, min(log.size(), SAMPLE_BYTES))
    bounds = IntervalBounds(positions[positions < headers.end_position])
    bounds.add(headers.table)
    return bounds
