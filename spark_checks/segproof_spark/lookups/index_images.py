# SPDX-License-Identifier: Apache-2.0
"""Generated files of the offset index and the time index, and the entries of such files.

Bytes are packed and read here by numpy's own big-endian integers, beside the implementation.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from segproof_spark.lookups.drawing import Draw, Int64Array

__all__ = ["DTYPES", "IndexImage", "IndexKind", "draw_image", "read_image"]

IndexKind = Literal["offset-index", "time-index"]
DTYPES: dict[IndexKind, np.dtype[Any]] = {
    "offset-index": np.dtype([("key", ">i4"), ("value", ">i4")]),
    "time-index": np.dtype([("key", ">i8"), ("value", ">i4")]),
}
INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1
FULL_BYTES = 10 << 20
"""Kafka's default limit of an index."""
SIZES = ((0, 3), (4, 300), (300, 5_000), (5_000, 50_000), (50_000, 300_000))
BASES = (0, 1, 4711, INT32_MAX, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, INT64_MAX - INT32_MAX)
FIRST_TIMES = (0, 1, INT32_MAX - 1000, 1_700_000_000_000, (1 << 53) - 5, 1 << 62)
TAILS = (0, 0, 1, 2, 683, 100_000)
"""Zero slots behind the entries, as a crash leaves them."""


@dataclass(frozen=True, slots=True)
class IndexImage:
    """The bytes of one index file and what is known of them."""

    kind: IndexKind
    base_offset: int
    data: bytes
    keys: Int64Array
    """As stored: distances from the base offset, or timestamps in ms."""
    values: Int64Array
    """As stored: positions, or distances from the base offset."""

    @property
    def increases(self) -> bool:
        """Whether the keys strictly increase."""
        return bool(np.all(self.keys[:-1] < self.keys[1:]))


def read_image(kind: IndexKind, base_offset: int, data: bytes) -> IndexImage:
    """Return the entries of a file: its whole slots up to the last one that is not all zero.

    The only slot of a time index is an entry, be it zero.
    """
    dtype = DTYPES[kind]
    slots = len(data) // dtype.itemsize
    records = np.frombuffer(data, dtype, slots)
    keys, values = records["key"].astype(np.int64), records["value"].astype(np.int64)
    written = np.flatnonzero((keys != 0) | (values != 0))
    entries = int(written[-1]) + 1 if len(written) else 0
    if kind == "time-index" and slots == 1:
        entries = 1
    return IndexImage(kind, base_offset, data, keys[:entries], values[:entries])


def draw_image(kind: IndexKind, draw: Draw, number: int) -> IndexImage:
    """Return the image of a number: sizes go round, and each fifteenth one is full."""
    dtype = DTYPES[kind]
    tail = draw.one_of(TAILS)
    if number % 15 == 14:
        entries, tail = FULL_BYTES // dtype.itemsize, 0
    else:
        entries = draw.number(*SIZES[number % len(SIZES)])
    keys = _offsets(draw, entries) if kind == "offset-index" else _timestamps(draw, entries)
    rising = _spread(draw, entries, INT32_MAX)
    values = np.maximum.accumulate(rising) if entries else rising
    if kind == "time-index" and not entries and tail == 1:
        tail = 0  # one slot of zeros would be an entry
    records = np.zeros(entries + tail, dtype)
    records["key"][:entries], records["value"][:entries] = keys, values
    if entries and not keys[-1] and not values[-1]:  # a slot of zeros is none
        values[-1] = records["value"][entries - 1] = 1
    return IndexImage(kind, draw.one_of(BASES), records.tobytes(), keys, values)


def _offsets(draw: Draw, entries: int) -> Int64Array:
    """Return relative offsets that increase: dense, with gaps, or up to the greatest one."""
    way = draw.number(0, 3)
    first = draw.one_of((0, 1, 40))
    if way == 0:
        return first + np.arange(entries)
    if way == 1:
        return first + np.cumsum(1 + draw.below(64, entries))
    keys = _spread(draw, entries, INT32_MAX - entries) + np.arange(entries)
    if way == 2 and entries:
        keys[-1] = INT32_MAX
    return keys


def _timestamps(draw: Draw, entries: int) -> Int64Array:
    """Return timestamps that increase: from each ms to years apart, over the borders of 32 bits."""
    first = draw.one_of(FIRST_TIMES)
    way = draw.number(0, 3)
    if way == 0:
        return first + np.arange(entries)
    if way == 1:
        return first + np.cumsum(1 + draw.below(10_000, entries))
    keys = first + _spread(draw, entries, INT64_MAX - first - entries) + np.arange(entries)
    if way == 2 and entries:
        keys[-1] = INT64_MAX
    return keys


def _spread(draw: Draw, count: int, limit: int) -> Int64Array:
    """Return numbers from 0 to below `limit` that never fall, at gaps of very different sizes."""
    bits = draw.number(4, limit.bit_length() - 1)
    drawn = draw.below(1 << bits, count) if draw.number(0, 1) else draw.below(limit, count)
    return np.sort(np.minimum(drawn, limit - 1))
