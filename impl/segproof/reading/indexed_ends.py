# SPDX-License-Identifier: Apache-2.0
"""How far the last log of a partition went, as the entries of its indexes say.

A broker writes a batch before its entries. So entries for offsets after the last batch show that
the log held these, unless the log went on after a truncation: then its batches have timestamps at
or above those of the entries that the truncation left.

One wrong field proves nothing: an entry of the offset index counts if it leads behind the last
batch that stays in the log too, and one of the time index if its timestamp is above those of all
batches. Wild bytes in place of an index prove nothing either: a log gets its next entry within
NEAR_BYTES, and no clock shows a time after TIME_MAX. An index whose entries in whole batches are
wrong more often than right is of another log, and states nothing.

Laws: SEG-7, DISK-9.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files, ReadOnlyFile
from segproof.kafka.batch_table import BATCH_DTYPE, BatchTable, check_batches, stacked
from segproof.layouts.kafka import BATCH, BATCH_HEADER_BYTES
from segproof.reading.index_entries import EntryFile, genuine_entries
from segproof.reading.rows import Bools
from segproof.stretches.kafka.facts import Int64s

Block = NDArray[np.void]
Ranges = Sequence[tuple[int, int]]
HEADERS_MAX = 1 << 19
"""Headers of batches with which the entries of indexes are compared: the last ones of the log. They
have 88 bytes each, so memory is 150 MB at most while they are sorted. Entries for batches before
them count neither as right nor as wrong. A log of 1 GiB has more batches only if most of these are
smaller than 2 KiB."""
NEAR_BYTES = 1 << 26
"""Bytes after the end of the log within which the first entry of lost batches points: more than
one append and the interval between entries."""
TIME_MAX = 253_402_300_800_000
"""Milliseconds: the begin of the year 10,000."""


class KeptEnd(NamedTuple):
    """What is known of the batches of a last log."""

    base_offset: int
    """The offset in the name of the log."""
    next_offset: int
    """The offset after what is kept."""
    position: int
    """The byte after the last batch that stays in the log."""
    is_broken: bool
    """Whether anything but zeros follows there."""
    is_damaged: bool
    """Whether anything is wrong in the log up to that byte, or at it."""
    max_timestamp: int
    """The largest timestamp in milliseconds; -1 without any."""
    whole: Ranges
    """Begin and exclusive end of the bytes of whole batches, rising; no two ranges touch."""


def indexed_end(
    log: ReadOnlyFile,
    end: KeptEnd,
    offsets: Callable[[], Iterable[Block]],
    times: Callable[[], Iterable[Block]],
    is_other: Callable[[], bool] = lambda: False,
) -> int | None:
    """Return the offset after the last one that an index says the log held; None without any.

    `offsets` and `times` return the genuine entries of the indexes, in blocks. `is_other` returns
    whether the offset index is of another log; it is asked last. Raises: OSError.
    """
    found = _stated_end(log, end, offsets(), times())
    if found is None:
        return None
    batches = _last_batches(log, end.whole)
    is_misled = is_other() or batches.are_missed_by(end.base_offset, offsets())
    own = () if is_misled else offsets()
    is_misdated = batches.are_misdated_by(end.base_offset, times())
    return _stated_end(log, end, own, () if is_misdated else times())


def _stated_end(
    log: ReadOnlyFile, end: KeptEnd, offsets: Iterable[Block], times: Iterable[Block]
) -> int | None:
    torn = _torn_end_of(log, end) if end.is_broken else None
    # The batch there may be torn, and its own entries prove no more than it.
    position = end.position + end.is_broken
    distance = end.next_offset - end.base_offset
    held: list[Block] = []
    for block in offsets:
        beyond = block[(block["position"] >= position) & (block["offset"] >= distance)]
        if not held and len(beyond) and int(beyond["position"].min()) > position + NEAR_BYTES:
            break
        held += [beyond["offset"]] if len(beyond) else []
    unproven, known = (distance, -1) if torn is None else (torn[0] - end.base_offset, torn[1])
    later: list[Block] = []
    largest = -1
    for block in times:
        beyond = block[block["offset"] >= distance]
        largest = max(largest, int(beyond["timestamp"].max(initial=-1)))
        is_later = beyond["timestamp"] > max(end.max_timestamp, known)
        is_later &= beyond["timestamp"] < TIME_MAX
        later.append(beyond["offset"][is_later & (beyond["offset"] >= unproven)])
    if 0 <= largest <= end.max_timestamp:
        return None  # the log went on after a truncation
    is_unknown = end.is_damaged and torn is None
    ends = [_last_of(found) for found in ((held,) if is_unknown else (held, later))]
    stated = [one for one in ends if one is not None]
    return end.base_offset + max(stated) + 1 if stated else None


def misleads(log: ReadOnlyFile, whole: Ranges, base_offset: int, entries: Iterable[Block]) -> bool:
    """Return whether most entries of an offset index that lead into whole batches are wrong.

    A right entry leads to the begin of a batch, and its offset is not below that batch's. An entry
    is right, too, if it leads as many bytes too far as the entry beside it: bytes were cut out.
    An offset that the log lacks before its end tells nothing. `whole` is as for `KeptEnd`.
    Raises: OSError.
    """
    return _last_batches(log, whole).are_missed_by(base_offset, entries)


class _Batches(NamedTuple):
    """The headers of whole batches of a log."""

    by_position: BatchTable
    by_offset: BatchTable
    """The same rows, by the last offset."""

    def are_missed_by(self, base_offset: int, entries: Iterable[Block]) -> bool:
        """Return whether most entries of an offset index are wrong; see `misleads`."""
        table, wrong = self.by_position, 0
        starts, ends = table["position"], table["position"] + table["size_bytes"]
        last = self.by_offset["last_offset"].max(initial=-1)
        for block in entries if len(table) else ():
            positions = block["position"].astype(np.int64)
            offsets = block["offset"].astype(np.int64) + base_offset
            rows = np.searchsorted(starts, positions, "right") - 1
            is_inside = (rows >= 0) & (positions < ends[rows])
            is_right = (positions == starts[rows]) & (offsets >= table["base_offset"][rows])
            held, is_held = self._holding(offsets)
            apart = positions - held["position"]
            is_cut = is_held & (apart > 0)
            is_right[1:] |= is_cut[1:] & (apart[1:] == apart[:-1])
            is_right[:-1] |= is_cut[:-1] & (apart[1:] == apart[:-1])
            is_told = is_inside & (is_right | is_held | (offsets > last))
            wrong += int(np.count_nonzero(is_told)) - 2 * int(np.count_nonzero(is_told & is_right))
        return wrong > 0

    def are_misdated_by(self, base_offset: int, times: Iterable[Block]) -> bool:
        """Return whether most entries of a time index for offsets of these batches are wrong.

        A right entry has the largest timestamp of the batch with its offset.
        """
        wrong = 0
        for block in times if len(self.by_offset) else ():
            held, is_held = self._holding(block["offset"].astype(np.int64) + base_offset)
            is_right = is_held & (held["max_timestamp"] == block["timestamp"])
            wrong += int(np.count_nonzero(is_held)) - 2 * int(np.count_nonzero(is_right))
        return wrong > 0

    def _holding(self, offsets: Int64s) -> tuple[BatchTable, Bools]:
        """Return for each offset the batch that may hold it, and whether that batch does."""
        rows = np.searchsorted(self.by_offset["last_offset"], offsets)
        held = self.by_offset[np.minimum(rows, len(self.by_offset) - 1)]
        return held, (held["base_offset"] <= offsets) & (offsets <= held["last_offset"])


def _last_batches(log: ReadOnlyFile, whole: Ranges) -> _Batches:
    """Return the headers of the last HEADERS_MAX whole batches. Raises: OSError."""
    kept, count = deque[BatchTable](), 0
    for one in whole:
        for table in check_batches(log, *one).tables():
            kept.append(table)
            count += len(table)
            while count - len(kept[0]) >= HEADERS_MAX:
                count -= len(kept.popleft())
    table = stacked(kept)[-HEADERS_MAX:] if kept else np.empty(0, BATCH_DTYPE)
    return _Batches(table, table[np.argsort(table["last_offset"], kind="stable")])


def _torn_end_of(log: ReadOnlyFile, end: KeptEnd) -> tuple[int, int] | None:
    """Return the offset after a batch that may be torn, and its largest timestamp.

    Its header says both. It is a batch of magic 2 that continues the log; None without one.
    """
    header = log.pread(BATCH_HEADER_BYTES, end.position)
    if len(header) < BATCH_HEADER_BYTES or BATCH["magic"].of(header) != 2:
        return None
    delta = BATCH["last_offset_delta"].of(header)
    is_next = BATCH["base_offset"].of(header) == end.next_offset and delta >= 0
    return (end.next_offset + delta + 1, BATCH["max_timestamp"].of(header)) if is_next else None


def _last_of(found: list[Block]) -> int | None:
    """Return the last distance; the first one where they do not rise, as in a damaged index."""
    if not any(len(one) for one in found):
        return None
    distances = np.concatenate(found).astype(np.int64)
    return int(distances.max() if (np.diff(distances) >= 0).all() else distances.min())


def entry_blocks(index: EntryFile | None) -> Iterator[Block]:
    """Yield the entries of an index in blocks. Raises: OSError."""
    if index is not None:
        for _, block in index.blocks():
            yield block


def blocks_at(path: str, suffix: str, files: Files) -> Iterator[Block]:
    """Yield the entries of the index at a path, up to where it can't be read."""
    try:
        with closing(files.open(path)) as file:
            for _, block in genuine_entries(file, suffix):
                yield block
    except OSError:
        return
