# SPDX-License-Identifier: Apache-2.0
"""Looking for many offsets or timestamps in a log at once.

What is looked for is sorted by where its search begins in the log, which is then read in blocks;
one call of a kernel answers all that lies in a block. What the kernel hands back, because it needs
more bytes than a block or a slower way, is answered one by one.

Laws: SEG-12, SEG-39: the answers are those of `log_search`.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segproof.errors import SegproofError
from segproof.integers import int64_array
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.record_file import RecordFile
from segproof.kafka.segments.log_search import ReadAhead, astray, find_batch_in, find_record_in
from segproof.kafka.time_index import TimeIndex
from segproof.kernels.segment_search import SEARCH_ODD, find_batches, find_times

Int64Array = NDArray[np.int64]
_BLOCK_BYTES = 512 << 10
_GAP_BYTES = 32 << 10
"""Searches that begin further apart than this do not share a block."""
_UNITS_OF_AN_OFFSET = 3
_UNITS_OF_A_TIMESTAMP = 6
"""So many units of a kernel's work are in one search."""

FindInBlock = Callable[[memoryview, int, int, int, int, int], tuple[int, int]]
"""From (buffer, bytes filled, end, first search, number of searches, position of the buffer) to
(how many were decided, how the next one ended)."""


def read_many(
    log: RecordFile, offset_index: OffsetIndex, start_offsets: ArrayLike, read_ahead: ReadAhead
) -> tuple[Int64Array, NDArray[np.int32]]:
    """Return position and size of the first batch that reaches each offset; -1 without one."""
    targets = int64_array(start_offsets, "start_offsets")
    order, starts = _starts(log, offset_index, targets)
    targets = targets[order]
    positions, sizes = np.empty(len(targets), np.int64), np.empty(len(targets), np.int64)

    def find(
        buffer: memoryview, filled: int, end: int, first: int, count: int, origin: int
    ) -> tuple[int, int]:
        find_batches.announce(count * _UNITS_OF_AN_OFFSET)
        stop = first + count
        asked = starts[first:stop].data, targets[first:stop].data
        answers = positions[first:stop].data, sizes[first:stop].data
        return find_batches(buffer, filled, end, count, origin, *asked, *answers)

    def find_one(number: int) -> None:
        found = find_batch_in(log, int(starts[number]), int(targets[number]), read_ahead)
        answer = (-1, -1) if found is None else (found.position, found.size_bytes)
        positions[number], sizes[number] = answer

    one_by_one = partial(_find_or_fail_first, find_one, order)
    _search_in_blocks(log, starts, find, one_by_one, read_ahead.usual_bytes)
    return _unsorted(order, positions), _unsorted(order, sizes).astype(np.int32)


def find_offset_by_timestamp_many(
    log: RecordFile,
    offset_index: OffsetIndex,
    time_index: TimeIndex,
    timestamps: ArrayLike,
    starting_offset: int,
    read_ahead: ReadAhead,
) -> tuple[Int64Array, Int64Array]:
    """Return timestamp and offset of the first record at or after each timestamp; -1 without."""
    targets = int64_array(timestamps, "timestamps")
    offsets = np.maximum(time_index.lookup_many(targets)[1], starting_offset)
    order, starts = _starts(log, offset_index, offsets)
    targets = targets[order]
    found_timestamps, found_offsets = np.empty(len(targets), np.int64), np.empty_like(targets)

    def find(
        buffer: memoryview, filled: int, end: int, first: int, count: int, origin: int
    ) -> tuple[int, int]:
        find_times.announce(count * _UNITS_OF_A_TIMESTAMP)
        stop = first + count
        asked = starts[first:stop].data, targets[first:stop].data
        answers = found_timestamps[first:stop].data, found_offsets[first:stop].data
        return find_times(buffer, filled, end, count, origin, *asked, starting_offset, *answers)

    def find_one(number: int) -> None:
        start, target = int(starts[number]), int(targets[number])
        found = find_record_in(log, start, target, starting_offset, read_ahead)
        answer = (-1, -1) if found is None else (found.timestamp, found.offset)
        found_timestamps[number], found_offsets[number] = answer

    one_by_one = partial(_find_or_fail_first, find_one, order)
    _search_in_blocks(log, starts, find, one_by_one, read_ahead.usual_bytes)
    return _unsorted(order, found_timestamps), _unsorted(order, found_offsets)


def _search_in_blocks(
    log: RecordFile,
    starts: Int64Array,
    find: FindInBlock,
    find_one: Callable[[int], None],
    slack_bytes: int,
) -> None:
    """Decide every search; `starts` says where each begins in the log, and never falls.

    A block ends `slack_bytes` behind the start of its last search; these grow where they did not
    suffice.
    """
    end, count, done = log.end, len(starts), 0
    buffer = memoryview(bytearray(min(_BLOCK_BYTES, end)))
    gaps = np.append(np.flatnonzero(np.diff(starts) > _GAP_BYTES) + 1, count)
    while done < count:
        origin = int(starts[done])
        stop = int(gaps[np.searchsorted(gaps, done, side="right")])
        if stop == done + 1 or origin >= end:
            find_one(done)
            done += 1
            continue
        stop = done + int(np.searchsorted(starts[done:stop], origin + len(buffer)))
        want = int(starts[stop - 1]) + slack_bytes - origin
        want = min(want, len(buffer), end - origin)
        filled = log.file.pread_into(buffer[:want], origin)
        decided, status = find(buffer, filled, end - origin, done, stop - done, origin)
        while status == SEARCH_ODD and done + decided < stop:
            find_one(done + decided)
            decided += 1
            more, status = find(
                buffer, filled, end - origin, done + decided, stop - done - decided, origin
            )
            decided += more
        if decided == 0 and want < min(len(buffer), end - origin):
            slack_bytes *= 4
        elif decided == 0:
            find_one(done)
            decided = 1
        done += decided


def _find_or_fail_first(find_one: Callable[[int], None], order: Int64Array, number: int) -> None:
    """Decide one search, where all before it in the log are decided.

    Raises: if it fails, what the first of the offsets or timestamps raises that fails, in the order
    in which they were asked for.
    """
    try:
        find_one(number)
    except SegproofError:
        asked_before = number + np.flatnonzero(order[number:] < order[number])
        for other in asked_before[np.argsort(order[asked_before])].tolist():
            find_one(other)
        raise


def _starts(
    log: RecordFile, offset_index: OffsetIndex, offsets: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return an order of the offsets, and in that order where the search for each begins.

    Raises: CorruptIndexError where the index points outside of the log.
    """
    for is_last_try in (False, True):
        starts = offset_index.lookup_many(offsets)[1]
        order = np.argsort(starts, kind="stable")
        starts = starts[order]
        outside = (starts < 0) | (starts > log.end)
        if not bool(outside.any()):
            break
        # The log may have been cut meanwhile, and the index before it.
        if is_last_try:
            raise astray(offset_index, int(starts[int(np.argmax(outside))]), log.end)
    return order, starts


def _unsorted(order: Int64Array, answers: Int64Array) -> Int64Array:
    """Return the answers in the order in which they were asked for."""
    placed = np.empty_like(answers)
    placed[order] = answers
    return placed
