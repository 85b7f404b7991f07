# SPDX-License-Identifier: Apache-2.0
"""Generated index files of RocketMQ: keys, some of them of one hash, and what is put for them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof_harness.files.memory_files import MemoryFiles
from segproof_spark.lookups.drawing import Draw, Int64Array

__all__ = ["KeyImage", "draw_key_image", "hashes_of", "put_image", "read_times"]

SIZES = ((0, 3), (4, 100), (100, 3_000), (3_000, 30_000), (30_000, 120_000))
LOADS = (0.2, 1, 4, 16)
"""Entries for each slot."""
FIRST_TIMES = (0, 1, 1_700_000_000_000, 1 << 40)
FIRST_OFFSETS = (0, (1 << 31) - 700, 1 << 40)
INT32_MAX = (1 << 31) - 1
BLOCKS = 8
"""So many pairs of letters, each Aa or BB, end a key that shares its hash with others."""
SPECIAL = (b"polygenelubricants", b"", b"#", b"null#null")
"""The first one's hash has no absolute value in 32 bits."""


@dataclass(frozen=True, slots=True)
class KeyImage:
    """What is put into a file, and the keys to ask for."""

    hash_slot_num: int
    index_num: int
    keys: NDArray[np.bytes_]
    """Distinct texts in ASCII, with and without entries."""
    hashes: Int64Array
    """Of `keys`."""
    put: Int64Array
    """The number of each key that is put, in order."""
    phy_offsets: Int64Array
    store_timestamps: Int64Array


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
    signed = (sums & np.uint64((1 << 32) - 1)).astype(np.int64)
    signed[signed > INT32_MAX] -= 1 << 32
    hashes = np.abs(signed)
    hashes[hashes > INT32_MAX] = 0
    return hashes


def read_times(store_timestamps: Int64Array) -> Int64Array:
    """Return as what entries of these store times are read: to the second, from the first one on.

    Store times are not negative. Where the first one is 0 every difference is 0.
    """
    if not len(store_timestamps):
        return store_timestamps
    begin = int(store_timestamps[0])
    seconds = np.clip((store_timestamps - begin) // 1000, 0, INT32_MAX)
    return begin + 1000 * (seconds if begin > 0 else 0 * seconds)


def draw_key_image(draw: Draw, number: int) -> KeyImage:
    """Return the file of a number; sizes go round."""
    entries = draw.number(*SIZES[number % len(SIZES)])
    slots = max(int(entries / draw.one_of(LOADS)), draw.number(1, 7))
    count = max(entries // draw.one_of((1, 2, 8)), 8)
    keys = _keys(draw, count)
    known = len(keys) - count // 4  # the others have no entry
    order = draw.order(len(keys))
    choices = known if draw.number(0, 1) else max(known // 50, 1)
    put = np.where(
        draw.below(4, entries) > 0, draw.below(known, entries), draw.below(choices, entries)
    )
    steps = draw.below(draw.one_of((2, 900, 100_000)), entries)
    times = draw.one_of(FIRST_TIMES) + np.cumsum(steps) - (steps[0] if entries else 0)
    if draw.number(0, 2) == 0:  # a clock that goes back now and then
        times = np.maximum(times - (draw.below(16, entries) == 0) * draw.below(20_000, entries), 0)
    offsets = draw.one_of(FIRST_OFFSETS) + np.cumsum(draw.below(4000, entries))
    spare = draw.one_of((0, 1, 1000))
    return KeyImage(
        slots, max(entries + 1 + spare, 2), keys, hashes_of(keys), order[put], offsets, times
    )


def _keys(draw: Draw, count: int) -> NDArray[np.bytes_]:
    """Return distinct keys: numbers, and texts of which many share a hash."""
    several = draw.one_of((0, count // 4, count))
    bits = draw.number(1, BLOCKS)
    texts = [b"T#%d" % number for number in range(count - several)]
    for number in range(several):
        family, member = divmod(number, 1 << bits)
        pairs = b"".join(b"BB" if member >> bit & 1 else b"Aa" for bit in range(bits))
        texts.append(b"C%d#%s" % (family, pairs))
    return np.array([*texts, *SPECIAL])


def put_image(image: KeyImage, opened: Any) -> tuple[Any, MemoryFiles, str]:
    """Put all into a new file in memory, a part at a time, with an open `IndexFile`'s class."""
    path = "/20261121000000000"
    size = 40 + 4 * image.hash_slot_num + 20 * image.index_num
    files = MemoryFiles(max(size, 1 << 16))
    index = opened.open(path, image.hash_slot_num, image.index_num, files=files)
    half = len(image.put) // 2
    for part in (slice(0, half), slice(half, None)):
        keys = image.keys[image.put[part]]
        index.put_keys(keys, image.phy_offsets[part], image.store_timestamps[part])
    return index, files, path
