# SPDX-License-Identifier: Apache-2.0
"""Index files of RocketMQ, drawn or real, and the right answer of each key in a window of time.

The right answer follows from the entries alone: the entries of the key's hash in the window, newest
first, up to the first entry of their slot that is older than the window, and at most the requested
number. No chain is walked.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files
from segproof.layouts.rocketmq import INDEX_ENTRY, INDEX_HEADER
from segproof.rocketmq import IndexFile
from segproof.rocketmq.index_table import Geometry
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.structures.structure import creating
from segproof_model.language.files import Files as ModelFiles
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.format.index_file import IndexFile as ModelIndexFile
from segproof_spark.lookups.comparison import Question, Unit, one_by_one
from segproof_spark.lookups.random_numbers import Draw, Int64Array
from segproof_spark.lookups.ranges import INT64_MAX, INT64_MIN
from segproof_spark.lookups.read_only_files import read_file, read_only

LAW = "RMQIDX-31"
FILE_BYTES_MAX = 64 << 20
"""A larger file is not asked: it is held in memory, and so is what is known of it."""
KEYS_ASKED = 1 << 16
"""So many keys are asked at once."""
WINDOWS = 32
"""So many windows are asked at least."""
LEAST_ASKED = 100
"""So many keys are asked in each window at least."""
FOUND_MAX = 1 << 18
"""So many answers are made at once, at most: keys with many entries are asked in smaller parts."""
SAMPLES = 320
"""So many keys of a file are asked of the model, and of the single lookup."""
INT32_MAX = (1 << 31) - 1
NAME = "20261121000000000"

SIZES = ((0, 3), (4, 100), (100, 3_000), (3_000, 30_000), (30_000, 120_000))
LOADS = (0.2, 1, 4, 16)
"""Entries for each slot."""
FIRST_TIMES = (0, 1, 1_700_000_000_000, 1 << 40)
FIRST_OFFSETS = (0, (1 << 31) - 700, 1 << 40)
PAIRS = 8
"""At most so many pairs of letters, each Aa or BB, end a key that shares its hash with others."""
SPECIAL = (b"polygenelubricants", b"", b"#", b"null#null")
"""The first one's hash has no absolute value in 32 bits."""

LETTERS = 7

Window = tuple[int, int, int]
"""What is asked beside the key: `max_num`, begin and end; both times are inclusive, in ms."""
Found = tuple[Int64Array, Int64Array]
"""(starts, offsets) as the bulk lookup answers."""


def lists_of(found: Found) -> list[list[int]]:
    """Return the offsets of each key."""
    starts, offsets = (np.asarray(part).tolist() for part in found)
    return [offsets[low:high] for low, high in pairwise(starts)]


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The entries of one file in the order in which they were put, and the keys to ask for."""

    hash_slot_num: int
    index_num: int
    hashes: Int64Array
    phy_offsets: Int64Array
    times: Int64Array
    """The store time in ms that each entry is read as."""
    keys: NDArray[np.bytes_]
    """Distinct texts in ASCII, with and without entries."""
    key_hashes: Int64Array
    data: bytes
    """Of the file, for the model."""
    opened: Callable[[], Any]

    @property
    def entries(self) -> int:
        """How many entries the file has."""
        return len(self.hashes)

    def questions(self, unit: Unit, draw: Draw) -> Iterator[Question]:
        """Yield windows of every kind with keys to ask for in each; each key in the first one."""
        known, numbers = np.unique(
            np.concatenate([self.hashes, self.key_hashes]), return_inverse=True
        )
        entry_groups, groups = numbers[: self.entries], numbers[self.entries :]
        key_of_group = np.zeros(len(known), np.int64)
        key_of_group[groups] = np.arange(len(self.keys))
        model = self._model()
        each = min(max(unit.count // WINDOWS, LEAST_ASKED), KEYS_ASKED)
        done = number = 0
        with closing(self.opened()) as index:
            while done < unit.count or number < WINDOWS:
                window, borders = self._window(draw, number)
                counts, found = self._found(entry_groups, len(known), window)
                wanted = max(min(each, unit.count - done), LEAST_ASKED)
                asked = draw.below(len(self.keys), wanted) if number else np.arange(len(self.keys))
                asked = np.concatenate([key_of_group[entry_groups[borders]], asked])
                if number % 2:
                    asked = np.sort(asked)
                for part in _parts(asked, counts[groups]):
                    keys, call = self.keys[part], f"select_phy_offset_many{window}"
                    ask = partial(index.select_phy_offset_many, keys, *window)
                    yield Question(LAW, call, keys, found(groups[part]), ask, rows=lists_of)
                if number < WINDOWS:
                    some = asked[:: max(len(asked) * WINDOWS // SAMPLES, 1)]
                    keys, rights = self.keys[some], lists_of(found(groups[some]))
                    yield _single("", index, keys, rights, window, "by_single")
                    yield _single("the model's ", model, keys, rights, window, "by_model")
                done += len(asked)
                number += 1

    def _model(self) -> Any:
        kind, files = SEGPROOF.kind(ModelIndexFile), ModelFiles({NAME: self.data})
        return kind(files, NAME, self.hash_slot_num, self.index_num)

    def _window(self, draw: Draw, number: int) -> tuple[Window, list[int]]:
        """Return the window of a number, and the entries at its borders, or beside them.

        All times first, then windows that begin or end at an entry, or between two.
        """
        if number == 0 or not self.entries:
            return (64, 0, INT64_MAX), []
        max_num = draw.one_of((1, 2, 32, 64, 1000, 0 if number % 8 == 7 else 3))
        pair = sorted(draw.below(self.entries, 2).tolist(), key=self.times.item)
        begin, end = (int(self.times[one]) + draw.one_of((-1, 0, 0, 1, 500)) for one in pair)
        bounds = ((0, INT64_MAX), (begin, INT64_MAX), (INT64_MIN, end), (begin, end))
        return (max_num, *bounds[draw.number(0, 3)]), pair

    def _found(
        self, groups: Int64Array, count: int, window: Window
    ) -> tuple[Int64Array, Callable[[Int64Array], Found]]:
        """Return how much each of `count` distinct hashes finds, and what tells what some find.

        Entry n has the hash of number groups[n].
        """
        max_num, begin, end = window
        slots = self.hashes % self.hash_slot_num
        newest_first = np.arange(len(slots))[::-1]
        by_slot = newest_first[np.argsort(slots[::-1], kind="stable")]
        times = self.times[by_slot]
        # In each slot: how many newer entries than this one are older than the window.
        is_old = times < begin
        old_before: Int64Array = np.cumsum(is_old) - is_old
        is_first = np.ones(len(by_slot), bool)
        is_first[1:] = slots[by_slot[1:]] != slots[by_slot[:-1]]
        old_at_first = np.maximum.accumulate(np.where(is_first, old_before, 0))
        is_found = (old_before == old_at_first) & (times >= begin) & (times <= end)
        kept = by_slot[is_found]
        # A stable sort by hash keeps the newest first.
        kept = kept[np.argsort(groups[kept], kind="stable")]
        counts = np.bincount(groups[kept], minlength=count)
        first, phy_offsets = np.cumsum(counts) - counts, self.phy_offsets[kept]
        counts = np.minimum(counts, max(max_num, 0))

        def of(some: Int64Array) -> Found:
            each = counts[some]
            starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(each)])
            places = np.arange(starts[-1]) + np.repeat(first[some] - starts[:-1], each)
            return starts, phy_offsets[places]

        return counts, of


def _parts(asked: Int64Array, counts: Int64Array) -> Iterator[Int64Array]:
    """Yield the numbers of keys in parts that find no more than is held at once."""
    for start in range(0, len(asked), KEYS_ASKED):
        part = asked[start : start + KEYS_ASKED]
        total = int(counts[part].sum())
        yield from np.array_split(part, min(total // FOUND_MAX + 1, len(part)))


def _single(
    whose: str, index: Any, keys: Any, expected: list[list[int]], window: Window, counted: str
) -> Question:
    def ask(key: str) -> list[int]:
        return list(index.select_phy_offset([], key, *window))

    texts = [key.decode() for key in keys.tolist()]
    return one_by_one(LAW, f"{whose}select_phy_offset{window}", texts, expected, ask, counted)


# --- real files


def keys_of_hashes(hashes: Int64Array) -> NDArray[np.bytes_]:
    """Return a text for each hash, as a file keeps no keys: base 31, a digit a letter from @ on.

    Seven letters reach every number of 32 bits.
    """
    zeros = sum(64 * 31**place for place in range(LETTERS))
    left = (hashes - zeros) % (1 << 32)
    letters = np.empty((len(hashes), LETTERS), np.uint8)
    for place in range(LETTERS - 1, -1, -1):
        left, letters[:, place] = left // 31, 64 + left % 31
    return letters.view(f"S{LETTERS}").ravel()


def read_keys(unit: Unit, files: Files, draw: Draw, notes: list[str]) -> KeyIndex | None:
    """Return a real file's entries, with keys made for their hashes, and some without any.

    None with a note why it is not asked. Raises: OSError, ValueError where it ends too early.
    """
    data = read_file(files, unit.path, FILE_BYTES_MAX)
    if data is None:
        notes.append(f"not asked: more than {FILE_BYTES_MAX} bytes")
        return None
    geometry = Geometry(*unit.geometry)
    hash_slot_num, index_num = geometry
    count = max(min(INDEX_HEADER["index_count"].of(data), index_num) - 1, 0)
    rows = np.frombuffer(data, INDEX_ENTRY.dtype, count, geometry.position_of(1))
    hashes = rows["key_hash"].astype(np.int64)
    known = np.unique(hashes[hashes >= 0])
    key_hashes = np.unique(np.concatenate([known, draw.below(1 << 31, len(known) // 4 + 8)]))

    def opened() -> Any:
        kind = unit.opened(IndexFile)
        return kind.open(unit.path, *unit.geometry, files=read_only(files))

    return KeyIndex(
        hash_slot_num,
        index_num,
        hashes,
        rows["phy_offset"].astype(np.int64),
        INDEX_HEADER["begin_timestamp"].of(data) + 1000 * rows["time_diff"].astype(np.int64),
        keys_of_hashes(key_hashes),
        key_hashes,
        data,
        opened,
    )


# --- drawn files


def draw_keys(unit: Unit, draw: Draw) -> KeyIndex:
    """Return the file of a number, in memory; sizes go round. It stays open as it was written."""
    entries = draw.number(*SIZES[unit.index % len(SIZES)])
    slots = max(int(entries / draw.one_of(LOADS)), draw.number(1, 7))
    count = max(entries // draw.one_of((1, 2, 8)), 8)
    keys = _keys(draw, count)
    known = len(keys) - count // 4  # the others have no entry
    order = draw.order(len(keys))
    choices = known if draw.number(0, 1) else max(known // 50, 1)
    put = np.where(
        draw.below(4, entries) > 0, draw.below(known, entries), draw.below(choices, entries)
    )
    put = order[put]
    steps = draw.below(draw.one_of((2, 900, 100_000)), entries)
    times = draw.one_of(FIRST_TIMES) + np.cumsum(steps) - (steps[0] if entries else 0)
    if draw.number(0, 2) == 0:  # a clock that goes back now and then
        times = np.maximum(times - (draw.below(16, entries) == 0) * draw.below(20_000, entries), 0)
    offsets = draw.one_of(FIRST_OFFSETS) + np.cumsum(draw.below(4000, entries))
    index_num = max(entries + 1 + draw.one_of((0, 1, 1000)), 2)
    size = 40 + 4 * slots + 20 * index_num
    files = MemoryFiles(max(size, 1 << 16))
    opening = unit.opened(IndexFile).open
    index = opening(f"/{NAME}", slots, index_num, **creating(opening), files=files)
    half = entries // 2
    for part in (slice(0, half), slice(half, None)):
        index.put_keys(keys[put[part]], offsets[part], times[part])
    index.flush()
    data, hashes, read = files.images("/")[NAME], hashes_of(keys), _times_read(times)
    return KeyIndex(slots, index_num, hashes[put], offsets, read, keys, hashes, data, lambda: index)


def _keys(draw: Draw, count: int) -> NDArray[np.bytes_]:
    """Return distinct keys: numbers, and texts that share their hashes with others."""
    several = draw.one_of((0, count // 4, count))
    bits = draw.number(1, PAIRS)
    texts = [b"T#%d" % number for number in range(count - several)]
    for number in range(several):
        family, member = divmod(number, 1 << bits)
        pairs = b"".join(b"BB" if member >> bit & 1 else b"Aa" for bit in range(bits))
        texts.append(b"C%d#%s" % (family, pairs))
    return np.array([*texts, *SPECIAL])


def hashes_of(keys: NDArray[np.bytes_]) -> Int64Array:
    """Return what an entry keeps of each key in ASCII: the sum of its letters, each times a power.

    Java's hash by its definition, s[0]*31^(n-1) + ... + s[n-1] in 32 bits, and its absolute value.
    """
    width = keys.itemsize
    letters = np.ascontiguousarray(keys).view(np.uint8).reshape(len(keys), width)
    powers = np.array([pow(31, number, 1 << 32) for number in range(width)], np.uint64)
    lengths = np.char.str_len(keys)
    sums = np.zeros(len(keys), np.uint64)
    for place in range(width):  # a letter behind the end is 0
        sums += letters[:, place] * powers[np.maximum(lengths - 1 - place, 0)]
    hashes = np.abs(sums.astype(np.uint32).view(np.int32).astype(np.int64))
    hashes[hashes > INT32_MAX] = 0
    return hashes


def _times_read(store_timestamps: Int64Array) -> Int64Array:
    """Return as what entries of these store times are read: to the second, from the first one on.

    Store times are not negative. Where the first one is 0 every difference is 0.
    """
    if not len(store_timestamps):
        return store_timestamps
    begin = int(store_timestamps[0])
    seconds = np.clip((store_timestamps - begin) // 1000, 0, INT32_MAX)
    return begin + 1000 * (seconds if begin > 0 else 0 * seconds)
