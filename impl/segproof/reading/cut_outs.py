# SPDX-License-Identifier: Apache-2.0
"""Batches that were cut out of a log, as the entries of its indexes show.

A log lacks offsets lawfully where it was compacted, and then its indexes were made of what is left.
So an entry for an offset that no batch has, or entries whose positions are all too large by one
distance, show that the log held more. One wrong field proves nothing: see law DISK-70.

Laws: DISK-70.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

COMPARED_MAX = 1 << 24
"""Batches that the entries of an index are compared with, in all."""
Int64Array = NDArray[np.int64]
Bools = NDArray[np.bool_]


class BatchRows(NamedTuple):
    """The batches of a log in file order. Offsets are distances from its base offset."""

    position: Int64Array
    first: Int64Array
    last: Int64Array
    max_timestamp: Int64Array
    is_sound: Bools
    """Whether the checksum is right."""


class IndexRows(NamedTuple):
    """The entries of one index: `value` is a position in the log, or a timestamp."""

    offset: Int64Array
    value: Int64Array


class CutOut(NamedTuple):
    """A gap of a log, and how many of its offsets are known to be lost."""

    position: int
    """The byte of the batch after the gap."""
    first: int
    """Distance of the first offset that is missing."""
    end: int
    """Distance of the offset of the batch after the gap."""
    lost: int
    """How many of these offsets are lost at least; the others may have been compacted away."""
    is_exact: bool
    """Whether all offsets of the gap are lost, and no other gap of the log is in doubt."""


class _Gaps(NamedTuple):
    """Gaps in the order of the batches after them, whose numbers are the rows."""

    row: Int64Array
    start: Int64Array
    end: Int64Array


def cut_outs(
    rows: BatchRows, offsets: IndexRows, times: IndexRows, following: int | None
) -> list[CutOut]:
    """Return the gaps that the indexes show to have held batches, in the order of the log.

    `following` is the distance of the next segment's base offset. If it is None, no segment
    follows, and a truncation may have left entries.
    """
    gaps = _gaps_of(rows, following)
    if not len(gaps.row):
        return []
    timed = _timed(rows, times, gaps, is_last=following is None)
    groups = list(_displaced(rows, offsets, gaps))
    proven = {*timed, *(group[0] for group in groups if len(group) == 1)}
    # Where every gap is proven, nothing speaks for a compaction.
    is_exact = len(proven) == len(gaps.row)
    known = {number: max(1, len(timed.get(number, ()))) for number in proven}
    known |= {group[0]: 1 for group in groups if proven.isdisjoint(group)}
    found = []
    for number in sorted(known):
        row, start, end = (int(column[number]) for column in gaps)
        lost = end - start if is_exact else known[number]
        found.append(CutOut(int(rows.position[row]), start, end, lost, is_exact))
    return found


def _gaps_of(rows: BatchRows, following: int | None) -> _Gaps:
    """Return the gaps between sound batches whose offsets no batch of the log has."""
    if not len(rows.first):
        return _Gaps(*(np.zeros(0, np.int64) for _ in range(3)))
    start = np.concatenate(([0], rows.last[:-1] + 1))
    is_gap = (start < rows.first) & rows.is_sound
    is_gap[1:] &= rows.is_sound[:-1]
    if following is not None:
        is_gap &= rows.first < following
    row = np.flatnonzero(is_gap)
    order = np.argsort(rows.first, kind="stable")
    firsts, reach = rows.first[order], np.maximum.accumulate(rows.last[order])
    begin_below = np.searchsorted(firsts, rows.first[row])
    is_held = (begin_below > 0) & (reach[begin_below - 1] >= start[row])
    row = row[~is_held]
    _, once = np.unique(start[row], return_index=True)
    row = row[np.sort(once)]
    return _Gaps(row, start[row], rows.first[row])


def _timed(
    rows: BatchRows, entries: IndexRows, gaps: _Gaps, *, is_last: bool
) -> dict[int, set[int]]:
    """Return the offsets of each gap, by its number, for which the time index has an entry."""
    offset, time = entries
    order = np.argsort(gaps.start)
    place = np.searchsorted(gaps.start[order], offset, "right") - 1
    number = order[np.maximum(place, 0)]
    is_gone = (place >= 0) & (offset < gaps.end[number])
    times = rows.max_timestamp[rows.is_sound]
    is_known = np.isin(time, times)
    is_gone &= ~is_known
    is_gone[1:] &= (time[1:] > time[:-1]) & (offset[1:] >= offset[:-1])
    is_gone[:-1] &= (time[:-1] < time[1:]) & (offset[:-1] <= offset[1:])
    if is_last:
        is_gone &= np.arange(len(time)) < np.flatnonzero(is_known).max(initial=-1)
    by_last = np.argsort(rows.last, kind="stable")
    latest = np.maximum.accumulate(np.where(rows.is_sound, rows.max_timestamp, -1)[by_last])
    earlier = np.searchsorted(rows.last[by_last], gaps.start)
    reached = np.where(earlier > 0, latest[earlier - 1], -1)
    found: dict[int, set[int]] = {}
    for at in np.flatnonzero(is_gone & (time > reached[number])).tolist():
        found.setdefault(int(number[at]), set()).add(int(offset[at]))
    return found


def _displaced(rows: BatchRows, entries: IndexRows, gaps: _Gaps) -> Iterator[list[int]]:
    """Yield the numbers of gaps: two entries of the offset index prove a loss in one of them."""
    reach = np.maximum.accumulate(rows.last)
    row = np.searchsorted(reach, entries.offset)
    is_held = row < len(reach)
    inside = row[is_held]
    is_held[is_held] = (rows.first[inside] <= entries.offset[is_held]) & rows.is_sound[inside]
    row, position = row[is_held], entries.value[is_held]
    if not len(row):
        return
    lowest = np.minimum(np.concatenate(([-1], row[:-1])) + 1, row)
    place = np.minimum(np.searchsorted(rows.position, position), len(reach) - 1)
    is_right = (rows.position[place] == position) & (lowest <= place) & (place <= row)
    if is_right[-1]:
        return
    begin = np.concatenate(([-1], np.where(is_right, place, row)[:-1]))
    low, high = (np.searchsorted(gaps.row, one, "right") for one in (begin, row))
    is_asked = (low < high) & ~is_right
    is_asked[:-1] &= ~is_right[1:]
    is_asked[-1] = False  # one wrong entry proves nothing

    def distances(at: int) -> Int64Array:
        return np.asarray(position[at] - rows.position[lowest[at] : row[at] + 1], np.int64)

    asked = np.flatnonzero(is_asked)
    # Wild entries lead anywhere: all of them together are compared with so many batches.
    asked = asked[np.cumsum((row - lowest)[asked] + 1) <= COMPARED_MAX]
    for at in asked.tolist():
        shared = np.intersect1d(distances(at), distances(at + 1))
        if (shared < 0).any():
            continue  # as well, bytes may have been put into the log
        shared = shared[shared > 0]
        if at:
            shared = np.setdiff1d(shared, distances(at - 1))
        if len(shared):
            yield list(range(int(low[at]), int(high[at])))


class CutOutGap(NamedTuple):
    """A gap of a log: it held batches once, as the indexes show."""

    position: int
    """The byte of the batch after it."""
    first_offset: int
    """The first offset that is missing."""
    end_offset: int
    """The first offset of the batch after it."""
    lost: int
    """How many of these offsets are lost at least; 0 if compaction may have taken all of them."""
    is_exact: bool
    """Whether all of them are, and no other gap of the log is in doubt."""

    @property
    def size(self) -> int:
        """How many offsets are missing."""
        return self.end_offset - self.first_offset

    @property
    def unproven(self) -> int:
        """How many may be lost, where no number is known to be."""
        return 0 if self.lost else self.size
