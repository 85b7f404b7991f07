# SPDX-License-Identifier: Apache-2.0
"""The entries of index files by offset, and the store times that they tell of messages.

Upstream: RocketMQ 5.5.1: IndexFile.putKey.
Laws: RMQIDX-21, RMQDISK-32, RMQDISK-40.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.errors import SegproofError
from segproof.files import Files
from segproof.integers import INT32_MAX
from segproof.kernels.rocketmq_index import time_difference
from segproof.reading.store_times import (
    LEAST,
    MOST,
    SECOND_MS,
    Bounds,
    TimesAround,
    likely_times,
)
from segproof.rocketmq.geometry import find_geometries, index_file_names
from segproof.rocketmq.index_header import StoredHeader
from segproof.rocketmq.index_table import (
    ENTRY_DTYPE,
    Geometry,
    entry_blocks,
    read_stored_header,
)
from segproof.stretches.rocketmq.message_blocks import MessageBlock

Int64Array = NDArray[np.int64]
Bools = NDArray[np.bool_]

BLOCK_ENTRIES = 1 << 14
"""Entries of each file that are in memory."""


class Rows(NamedTuple):
    """Entries of one file, in its order."""

    number: Int64Array
    """The index of each entry."""
    key_hash: Int64Array
    phy_offset: Int64Array
    time_diff: Int64Array

    def only(self, rows: slice | Bools) -> "Rows":
        """Return some of them."""
        return Rows(*(column[rows] for column in self))


class IndexEntries:
    """The entries of one file, handed out by offset, up to one whose offset falls.

    The file is open while a block is read.
    """

    def __init__(
        self, path: str, header: StoredHeader, geometry: Geometry, stop: int, files: Files
    ) -> None:
        self.path = path
        self.header = header
        self.geometry = geometry
        self.stop = stop
        """The index behind the last entry."""
        self._files = files
        self._done = 1
        self._last = -1
        """The offset of the last entry that was read."""
        self._rows = self._next()

    def _next(self) -> Rows | None:
        """Return the next block. Raises: OSError."""
        first = self._done
        if first >= self.stop:
            return None
        with closing(self._files.open(self.path)) as file:
            blocks = entry_blocks(file, self.geometry, first, self.stop, BLOCK_ENTRIES)
            _, data = next(blocks, (first, np.zeros(0, ENTRY_DTYPE)))
        names: Any = ("key_hash", "phy_offset", "time_diff")
        columns = (data[name].astype(np.int64) for name in names)
        rows = Rows(np.arange(first, first + len(data), dtype=np.int64), *columns)
        self._done += len(data)
        falls = np.flatnonzero(np.diff(rows.phy_offset, prepend=self._last) < 0)
        if len(falls):
            rows, self._done = rows.only(slice(0, int(falls[0]))), self.stop
        if not len(rows.number):
            return None
        self._last = int(rows.phy_offset[-1])
        return rows

    @property
    def next_offset(self) -> int | None:
        """The offset of the next entry; None behind the last one."""
        return None if self._rows is None else int(self._rows.phy_offset[0])

    def below(self, offset: int | None) -> Iterator[Rows]:
        """Yield the entries before an offset that were not handed out yet; None: all."""
        while self._rows is not None:
            count = len(self._rows.number)
            if offset is not None:
                count = int(np.searchsorted(self._rows.phy_offset, offset))
            if count:
                yield self._rows.only(slice(0, count))
            if count < len(self._rows.number):
                self._rows = self._rows.only(slice(count, None))
                return
            self._rows = None  # if the next block can't be read
            self._rows = self._next()

    def told(self, rows: Rows, is_open: bool = False) -> Bounds:
        """Return between which times the message of each entry was stored, by this file.

        `is_open` says that the end timestamp may not be that of the last entry yet.
        """
        begin, end = self.header.begin_timestamp, self.header.end_timestamp
        number, seconds = rows.number, rows.time_diff
        if not 0 < begin < MOST:
            return Bounds.none(len(number))
        least = begin + SECOND_MS * seconds
        first, last = np.where(seconds == 0, LEAST, least), least + SECOND_MS - 1
        is_silent = (seconds < 0) | (seconds >= INT32_MAX)
        first[is_silent], last[is_silent] = LEAST, MOST
        is_end = (number == self.stop - 1) & (not is_open and -MOST < end < MOST)
        is_end &= seconds == time_difference(end, begin)
        first[is_end] = last[is_end] = end
        first[number == 1] = last[number == 1] = begin
        return Bounds(first, last)


class EntriesInOrder:
    """The entries of some files, handed out by offset."""

    def __init__(self, entries: Sequence[IndexEntries]) -> None:
        self._entries = entries
        self._waiting = [
            (one.next_offset, number)
            for number, one in enumerate(entries)
            if one.next_offset is not None
        ]
        heapify(self._waiting)

    def below(self, offset: int | None) -> Iterator[IndexEntries]:
        """Yield the files that have entries before an offset; who takes them all goes on."""
        while self._waiting and (offset is None or self._waiting[0][0] < offset):
            _, number = heappop(self._waiting)
            entries = self._entries[number]
            yield entries
            if entries.next_offset is not None:
                heappush(self._waiting, (entries.next_offset, number))


def told_together(count: int, parts: Sequence[tuple[Int64Array, Bounds]]) -> Bounds:
    """Return between which times each of some messages was stored, by all of its entries.

    A part has the number of the message of each entry. Entries that contradict each other tell
    nothing.
    """
    first, last = Bounds.none(count)
    for place, told in parts:
        np.maximum.at(first, place, told.first)
        np.minimum.at(last, place, told.last)
    is_silent = first > last
    first[is_silent], last[is_silent] = LEAST, MOST
    return Bounds(first, last)


class IndexTimes:
    """What the index of a store tells of its messages; what can't be read tells nothing."""

    def __init__(self, folder: str, files: Files) -> None:
        entries: list[IndexEntries] = []
        with suppress(OSError, SegproofError):
            names = index_file_names(files.list_directory(folder))
            for name, answer in find_geometries(folder, names, files=files).items():
                path = os.path.join(folder, name)
                with suppress(OSError):
                    with closing(files.open(path)) as file:
                        header = read_stored_header(file)
                    is_told = answer.geometry is not None and answer.origin != "ambiguous"
                    if header is not None and answer.geometry is not None and is_told:
                        stop = min(header.index_count, answer.geometry.index_num)
                        entries.append(IndexEntries(path, header, answer.geometry, stop, files))
        self._entries = EntriesInOrder(entries)

    def told(self, offsets: Int64Array) -> Bounds:
        """Return between which times messages were stored; ask in the order of their offsets."""
        parts = []
        for entries in self._entries.below(int(offsets[-1]) + 1):
            with suppress(OSError):
                for rows in entries.below(int(offsets[-1]) + 1):
                    place = np.searchsorted(offsets, rows.phy_offset)
                    is_there = offsets[place] == rows.phy_offset
                    parts.append((place[is_there], entries.told(rows.only(is_there))))
        return told_together(len(offsets), parts)


def with_likely_times(
    blocks: Iterable[MessageBlock], index: IndexTimes
) -> Iterator[tuple[MessageBlock, int]]:
    """Yield each block with the likely store times of its messages, and how many are not theirs.

    Memory: as many blocks as three messages behind the one that is yielded lie in.
    """
    times = TimesAround[MessageBlock]()
    for block in blocks:
        kept = block._replace(rows=block.rows.copy())
        for one, around in times.add(kept, kept.store_timestamps):
            yield _likely_block(one, around, index)
    for one, around in times.finish():
        yield _likely_block(one, around, index)


def _likely_block(
    block: MessageBlock, around: Bounds, index: IndexTimes
) -> tuple[MessageBlock, int]:
    told = index.told(block.lies_at)
    likely = likely_times(block.store_timestamps, block.born_timestamps, around, told)
    count = int(np.count_nonzero(likely != block.store_timestamps))
    block.store_timestamps[:] = likely
    return block, count
