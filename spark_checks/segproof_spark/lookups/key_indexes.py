# SPDX-License-Identifier: Apache-2.0
"""Compare the lookups of one index file of RocketMQ with its entries, grouped by hash.

What a key finds is written down from the entries alone: those of its hash, newest first, in the
window of time, up to the first entry of their slot that is older than the window, and no more than
were asked for. No chain is walked for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof_model.language.files import Files
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.format.index_file import IndexFile as ModelIndexFile
from segproof_spark.lookups.comparing import Comparison
from segproof_spark.lookups.drawing import Draw, Int64Array
from segproof_spark.lookups.sweeps import INT64_MAX

__all__ = ["LAW", "Entries", "Window", "check_keys"]

LAW = "RMQIDX-31"
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


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of one file in the order in which they were put."""

    hashes: Int64Array
    phy_offsets: Int64Array
    times_read: Int64Array
    """The store time in ms that each entry is read as."""
    hash_slot_num: int


@dataclass(frozen=True, slots=True)
class Window:
    """What is asked beside the key; both times are inclusive, in ms."""

    max_num: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class _Found:
    """What each of some hashes finds: of hash n the `counts[n]` offsets from `starts[n]` on."""

    phy_offsets: Int64Array
    starts: Int64Array
    counts: Int64Array

    def of(self, groups: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return (starts, offsets) for groups of hashes, as the bulk lookup answers."""
        counts = self.counts[groups]
        starts = np.zeros(len(groups) + 1, np.int64)
        np.cumsum(counts, out=starts[1:])
        places = np.arange(starts[-1]) + np.repeat(self.starts[groups] - starts[:-1], counts)
        return starts, self.phy_offsets[places]


def _found_in(entries: Entries, groups: Int64Array, count: int, window: Window) -> _Found:
    """Return what each of `count` distinct hashes finds; entry n has the hash groups[n]."""
    slots = entries.hashes % entries.hash_slot_num
    newest_first = np.arange(len(slots))[::-1]
    by_slot = newest_first[np.argsort(slots[::-1], kind="stable")]
    read = entries.times_read[by_slot]
    # In each slot: how many entries before this one, which are newer, are older than the window.
    is_old = read < window.begin
    old_before: Int64Array = np.cumsum(is_old) - is_old
    is_first = np.ones(len(by_slot), bool)
    is_first[1:] = slots[by_slot[1:]] != slots[by_slot[:-1]]
    old_at_first = np.maximum.accumulate(np.where(is_first, old_before, 0))
    is_found = (old_before == old_at_first) & (read >= window.begin) & (read <= window.end)
    kept = by_slot[is_found]
    # A stable sort by hash keeps the newest first.
    kept = kept[np.argsort(groups[kept], kind="stable")]
    counts = np.bincount(groups[kept], minlength=count)
    starts = np.cumsum(counts) - counts
    return _Found(entries.phy_offsets[kept], starts, np.minimum(counts, max(window.max_num, 0)))


def check_keys(
    comparison: Comparison,
    index: Any,
    entries: Entries,
    keys: NDArray[np.bytes_],
    hashes: Int64Array,
    draw: Draw,
    count: int,
    *,
    image: Callable[[], bytes],
) -> None:
    """Ask for at least `count` keys, in windows of every kind, and compare every answer.

    `keys` are texts in ASCII, with and without entries, `hashes` theirs. Each is asked for once in
    the first window, whatever `count` says.
    """
    comparison.entries = len(entries.hashes)
    known, numbers = np.unique(np.concatenate([entries.hashes, hashes]), return_inverse=True)
    entry_groups, groups = numbers[: len(entries.hashes)], numbers[len(entries.hashes) :]
    key_of_group = np.zeros(len(known), np.int64)
    key_of_group[groups] = np.arange(len(keys))
    model = _model(index, image())
    each = min(max(count // WINDOWS, LEAST_ASKED), KEYS_ASKED)
    number = 0
    while comparison.lookups < count or number < WINDOWS:
        window, borders = _window(draw, entries, number)
        found = _found_in(entries, entry_groups, len(known), window)
        wanted = max(min(each, count - comparison.lookups), LEAST_ASKED)
        asked = np.arange(len(keys)) if number == 0 else draw.below(len(keys), wanted)
        asked = np.concatenate([key_of_group[entry_groups[borders]], asked])
        if number % 2:
            asked = np.sort(asked)
        for part in _parts(asked, found.counts[groups]):
            _compare(comparison, index, keys[part], found.of(groups[part]), window)
        if number < WINDOWS:
            sample = asked[:: max(len(asked) * WINDOWS // SAMPLES, 1)]
            _check_sample(comparison, index, model, keys[sample], found.of(groups[sample]), window)
        number += 1


def _parts(asked: Int64Array, counts: Int64Array) -> list[Int64Array]:
    """Return the numbers of keys in parts that find no more than is held at once."""
    parts = []
    for start in range(0, len(asked), KEYS_ASKED):
        part = asked[start : start + KEYS_ASKED]
        total = int(counts[part].sum())
        parts += np.array_split(part, min(total // FOUND_MAX + 1, len(part)))
    return parts


def _window(draw: Draw, entries: Entries, number: int) -> tuple[Window, list[int]]:
    """Return the window of a number, and the entries whose times are its borders, or beside them.

    All times first, then windows that begin or end at an entry, or between two.
    """
    if number == 0 or not len(entries.hashes):
        return Window(64, 0, INT64_MAX), []
    max_num = draw.one_of((1, 2, 32, 64, 1000, 0 if number % 8 == 7 else 3))
    pair = sorted(draw.below(len(entries.hashes), 2).tolist(), key=entries.times_read.item)
    begin, end = (int(entries.times_read[one]) + draw.one_of((-1, 0, 0, 1, 500)) for one in pair)
    way = draw.number(0, 3)
    if way == 0:
        return Window(max_num, 0, INT64_MAX), pair
    if way == 1:
        return Window(max_num, begin, INT64_MAX), pair
    if way == 2:
        return Window(max_num, -INT64_MAX - 1, end), pair
    return Window(max_num, begin, end), pair


def _compare(
    comparison: Comparison,
    index: Any,
    keys: NDArray[np.bytes_],
    expected: tuple[Int64Array, Int64Array],
    window: Window,
) -> None:
    call = f"select_phy_offset_many(max_num={window.max_num}, {window.begin}, {window.end})"
    try:
        starts, offsets = index.select_phy_offset_many(
            keys, window.max_num, window.begin, window.end
        )
    except OSError:  # the file is gone, which is told as such
        raise
    except Exception as error:
        comparison.lookups += len(keys)
        comparison.tell(LAW, f"{call} raises", "answers", repr(error), count=len(keys))
        return
    if np.array_equal(starts, expected[0]) and np.array_equal(offsets, expected[1]):
        comparison.lookups += len(keys)
        return
    # Something differs: key by key, to say where.
    rights, founds = _lists(*expected), _lists(np.asarray(starts), np.asarray(offsets))
    comparison.lookups += len(keys)
    if len(founds) != len(keys):
        comparison.tell(LAW, f"{call} answers another number of keys", len(keys), len(founds))
        return
    for key, right, found in zip(keys.tolist(), rights, founds, strict=True):
        if right != found:
            comparison.tell(LAW, f"{call} of {key.decode()!r}", right, found)


def _lists(starts: Int64Array, offsets: Int64Array) -> list[list[int]]:
    values = offsets.tolist()
    bounds = starts.tolist()
    return [values[low:high] for low, high in pairwise(bounds)]


# --- the sample


def _model(index: Any, image: bytes) -> Any:
    name = "20261121000000000"
    kind = SEGPROOF.kind(ModelIndexFile)
    return kind(Files({name: image}), name, index.hash_slot_num, index.index_num)


def _check_sample(
    comparison: Comparison,
    index: Any,
    model: Any,
    keys: NDArray[np.bytes_],
    expected: tuple[Int64Array, Int64Array],
    window: Window,
) -> None:
    """Ask the model and the single lookup too."""
    asked = (window.max_num, window.begin, window.end)
    for raw, right in zip(keys.tolist(), _lists(*expected), strict=True):
        key = raw.decode()
        call = f"select_phy_offset({key!r}, {asked})"
        comparison.compare_one(LAW, call, right, partial(index.select_phy_offset, [], key, *asked))
        comparison.compare_one(
            LAW,
            f"the model's {call}",
            right,
            partial(_of_model, model, key, asked),
        )
    comparison.by_single += len(keys)
    comparison.by_model += len(keys)


def _of_model(model: Any, key: str, asked: tuple[int, int, int]) -> list[int]:
    return list(model.select_phy_offset([], key, *asked))
