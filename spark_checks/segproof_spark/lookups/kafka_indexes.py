# SPDX-License-Identifier: Apache-2.0
"""Offset indexes and time indexes: drawn or read from a file, and what their lookups must answer.

numpy packs and reads the bytes here, beside the implementation.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from segproof.files import REAL_FILES, Files
from segproof.kafka import OffsetIndex, TimeIndex
from segproof.layouts.kafka import OFFSET_ENTRY, TIME_ENTRY
from segproof.layouts.table import Layout
from segproof_harness.files.memory_files import MemoryFiles
from segproof_model.kafka.format.offset_index import OffsetIndex as ModelOffsetIndex
from segproof_model.kafka.format.time_index import TimeIndex as ModelTimeIndex
from segproof_model.language.files import Files as ModelFiles
from segproof_model.releases import SEGPROOF
from segproof_spark.lookups.comparison import Question, Unit, one_by_one
from segproof_spark.lookups.random_numbers import Draw, Int64Array
from segproof_spark.lookups.ranges import (
    INT64_MAX,
    INT64_MIN,
    Asked,
    Ranges,
    ranges_of_keys,
    rows_of,
)
from segproof_spark.lookups.read_only_files import read_file

FILE_BYTES_MAX = 64 << 20
"""A longer file is no index of Kafka, whose limit is 10 MiB by default."""
SAMPLES = 320
"""Number of targets of an index that the model, and the single lookup, also answer."""
WHOLE_ENTRIES = 1024
"""An index with more entries is asked of the model in windows of so many: the model looks at every
entry for every target. Inside a window the greatest key not above a target is that of the whole."""
WHOLE_SAMPLES = 4
"""So many targets of a larger index are asked of a model of all of it."""
WHOLE_ENTRIES_MAX = 300_000
"""Of a larger one the model's lists would take hundreds of MiB."""
INT32_MAX = (1 << 31) - 1

FULL_BYTES = 10 << 20
"""Kafka's default limit of an index."""
SIZES = ((0, 3), (4, 300), (300, 5_000), (5_000, 50_000), (50_000, 300_000))
BASES = (0, 1, 4711, INT32_MAX, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, INT64_MAX - INT32_MAX)
FIRST_TIMES = (0, 1, INT32_MAX - 1000, 1_700_000_000_000, (1 << 53) - 5, 1 << 62)
TAILS = (0, 0, 1, 2, 683, 100_000)
"""Zero slots after the entries, as a crash leaves them."""


@dataclass(frozen=True, slots=True)
class IndexKind:
    """One of the two kinds of index."""

    law: str
    layout: Layout
    opened: type[Any]
    model: type[Any]
    is_by_time: bool


KINDS = {
    "offset-index": IndexKind("OFFIDX-11", OFFSET_ENTRY, OffsetIndex, ModelOffsetIndex, False),
    "time-index": IndexKind("TIMEIDX-10", TIME_ENTRY, TimeIndex, ModelTimeIndex, True),
}


@dataclass(frozen=True, slots=True)
class Index:
    """The bytes of one index file, and their entries."""

    kind: IndexKind
    base_offset: int
    data: bytes
    keys: Int64Array
    """As stored: distances from the base offset, or timestamps in ms."""
    values: Int64Array
    """As stored: positions, or distances from the base offset."""
    files: Files = REAL_FILES
    path: str = ""
    writable: bool = False

    @property
    def entries(self) -> int:
        """How many entries it has."""
        return len(self.keys)

    @property
    def increases(self) -> bool:
        """Whether the keys strictly increase."""
        return bool(np.all(self.keys[:-1] < self.keys[1:]))

    @property
    def targets(self) -> Int64Array:
        """The keys as targets: absolute offsets, or timestamps."""
        return self.keys if self.kind.is_by_time else self.keys + self.base_offset

    def questions(self, unit: Unit, draw: Draw) -> Iterator[Question]:
        """Yield every key with its neighbours, more targets, and a sample one by one.

        Where keys do not increase (a damaged file, or leftovers behind the end) only the order of
        the probes says what is found, so only a sample is asked, which the model answers too.
        """
        law, opened = self.kind.law, unit.opened(self.kind.opened)
        place = self.path, self.base_offset, -1
        with opened(*place, writable=self.writable, files=self.files) as index:
            if not self.increases:
                yield self._by_probes(index, draw)
                return
            ranges, samples = self._ranges(), []
            for asked in ranges.blocks(draw, self._borders(), unit.count):
                targets = asked.targets
                ask = partial(index.lookup_many, targets)
                yield Question(law, "lookup_many", targets, asked.expected, ask)
                samples.append(asked.sample(SAMPLES))
            sample = Asked.joined(samples).sample(SAMPLES)
            yield _single(law, "lookup", sample, index, "by_single")
            for part, some in self._for_the_model(ranges, sample):
                yield _single(law, "the model's lookup", some, part.model(), "by_model")

    def model(self) -> Any:
        """Return the model of this file."""
        files = ModelFiles({"x": bytes(self.data)})
        return SEGPROOF.kind(self.kind.model)(files, "x", self.base_offset, writable=False)

    def _ranges(self) -> Ranges:
        """Return which targets find which entry, with absolute offsets."""
        base = self.base_offset
        if self.kind.is_by_time:
            return ranges_of_keys(self.keys, (self.keys, self.values + base), (-1, base))
        # Relative targets beyond 32 bits are asked as far as 64 bits hold them.
        return ranges_of_keys(self.targets, (self.targets, self.values), (base, 0))

    def _borders(self) -> list[int]:
        """Return the borders of the index and of the integers, each with its neighbours."""
        base, size = self.base_offset, INT32_MAX + 1
        middles = [0, base, base + size, base - size, size, 2 * size, INT64_MIN, INT64_MAX]
        middles += self.targets[[0, -1]].tolist() if self.entries else []
        return [middle + step for middle in middles for step in (-1, 0, 1)]

    def _for_the_model(self, ranges: Ranges, sample: Asked) -> Iterator[tuple["Index", Asked]]:
        """Yield the index, or parts of it as indexes of their own, with what to ask of each."""
        if self.entries <= WHOLE_ENTRIES:
            yield self, sample
            return
        if self.entries <= WHOLE_ENTRIES_MAX:
            yield self, sample.sample(WHOLE_SAMPLES)
        size = self.kind.layout.size
        for first in (0, self.entries // 2, self.entries - WHOLE_ENTRIES):
            part = slice(first, first + WHOLE_ENTRIES)
            data = self.data[first * size : part.stop * size]
            window = replace(self, data=data, keys=self.keys[part], values=self.values[part])
            inside = ranges.lows <= window.targets[-1]
            if first:  # below the first key of a window another entry is found than in the whole
                inside &= ranges.lows >= window.targets[0]
            rows = np.flatnonzero(inside)
            rows = rows[:: max(len(rows) * 6 // SAMPLES, 1)]
            targets = np.concatenate([ranges.lows[rows], ranges.highs[rows]])
            both = np.concatenate([rows, rows])
            yield window, Asked(targets, tuple(column[both] for column in ranges.answers))

    def _by_probes(self, index: Any, draw: Draw) -> Question:
        """Ask an index whose keys do not increase, and the model, which probes as it does."""
        model, entries = self.model(), self.entries
        count = max(SAMPLES * WHOLE_ENTRIES // max(entries, WHOLE_ENTRIES), WHOLE_SAMPLES)
        keys = self.targets[draw.below(entries, count)]
        targets = np.concatenate([keys, keys + draw.below(3, count) - 1])
        answers = [tuple(model.lookup(target)) for target in targets.tolist()]
        return Question(
            self.kind.law,
            "lookup_many",
            targets,
            tuple(np.array(answers, np.int64).reshape(-1, 2).T),
            partial(index.lookup_many, targets),
            ("lookups", "by_model"),
        )


def _single(law: str, call: str, asked: Asked, index: Any, counted: str) -> Question:
    return one_by_one(
        law,
        call,
        asked.targets.tolist(),
        rows_of(asked.expected),
        lambda target: tuple(index.lookup(target)),
        counted,
    )


def index_of_bytes(kind: IndexKind, base_offset: int, data: bytes) -> Index:
    """Return the entries of a file: its whole slots up to the last one that is not all zero.

    The only slot of a time index is an entry, be it zero.
    """
    slots = len(data) // kind.layout.size
    records = np.frombuffer(data, kind.layout.dtype, slots)
    keys, values = (records[name].astype(np.int64) for name in records.dtype.names or ())
    written = np.flatnonzero((keys != 0) | (values != 0))
    entries = int(written[-1]) + 1 if len(written) else 0
    if kind.is_by_time and slots == 1:
        entries = 1
    return Index(kind, base_offset, data, keys[:entries], values[:entries])


def read_index(unit: Unit, files: Files, draw: Draw, notes: list[str]) -> Index | None:
    """Return a real index, or None with a note why it is not asked. Raises: OSError."""
    data = read_file(files, unit.path, FILE_BYTES_MAX)
    if data is None:
        notes.append(f"not asked: more than {FILE_BYTES_MAX} bytes")
        return None
    base = int(os.path.basename(unit.path).partition(".")[0])
    index = index_of_bytes(KINDS[unit.structure], base, data)
    if not index.increases:
        notes.append("the keys do not increase: compared with the model alone")
    return replace(index, files=files, path=unit.path)


# --- drawn indexes


def draw_index(unit: Unit, draw: Draw) -> Index:
    """Return the index of a number: sizes go round, and each fifteenth one is full."""
    kind, number = KINDS[unit.structure], unit.index
    tail = draw.one_of(TAILS)
    if number % 15 == 14:
        entries, tail = FULL_BYTES // kind.layout.size, 0
    else:
        entries = draw.number(*SIZES[number % len(SIZES)])
    keys = _timestamps(draw, entries) if kind.is_by_time else _offsets(draw, entries)
    values = _rising(draw, entries, INT32_MAX)
    if kind.is_by_time and not entries and tail == 1:
        tail = 0  # one slot of zeros would be an entry
    if entries and not keys[-1] and not values[-1]:
        values[-1] = 1  # a slot of zeros is no entry
    records = np.zeros(entries + tail, kind.layout.dtype)
    for name, column in zip(records.dtype.names or (), (keys, values), strict=True):
        records[name][:entries] = column
    data, path = records.tobytes(), "/drawn"
    files = MemoryFiles(max(len(data), 1 << 16))
    file = files.open(path, writable=True, create=True)
    file.pwrite(data, 0)
    file.close()
    return Index(kind, draw.one_of(BASES), data, keys, values, files, path, bool(number % 2))


def _offsets(draw: Draw, entries: int) -> Int64Array:
    """Return relative offsets that increase: dense, with gaps, or up to the greatest one."""
    way = draw.number(0, 3)
    first = draw.one_of((0, 1, 40))
    if way == 0:
        return first + np.arange(entries)
    if way == 1:
        return first + np.cumsum(1 + draw.below(64, entries))
    keys = _rising(draw, entries, INT32_MAX - entries) + np.arange(entries)
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
    keys = first + _rising(draw, entries, INT64_MAX - first - entries) + np.arange(entries)
    if way == 2 and entries:
        keys[-1] = INT64_MAX
    return keys


def _rising(draw: Draw, count: int, limit: int) -> Int64Array:
    """Return numbers from 0 to below `limit` that never fall, at gaps of very different sizes."""
    bits = draw.number(4, limit.bit_length() - 1)
    drawn = draw.below(1 << bits, count) if draw.number(0, 1) else draw.below(limit, count)
    return np.sort(np.minimum(drawn, limit - 1))
