# SPDX-License-Identifier: Apache-2.0
"""Stretches: rows of batches joined where nothing is odd, and opened again where a rule asks.

Laws: BATCH-3, EPOCH-1.
"""

import numpy as np

from segproof.integers import INT64_MAX
from segproof.stretches.kafka.facts import EDGE_BATCHES, NO_ROWS, Bools, LogFacts, Part, Rows

_SUMS = ("batches", "records", "offsets", "led", "misled")
_OF_THE_LAST = ("end", "last", "is_keyless")


def runs_begin(rows: Rows, log: LogFacts) -> Bools:
    """Return which rows of one log can't be joined with the row before them.

    Rows are joined if they touch, offsets rise, every batch is loadable and as it was written, no
    index contradicts, no offset is missing that compaction can't have taken, epoch, magic and reach
    are equal, and the log's name agrees or disagrees with both.
    """
    begins = np.ones(len(rows), np.bool_)
    before, after = rows[:-1], rows[1:]
    is_plain = (rows["is_loadable"]) & ~rows["is_mended"] & (rows["first"] >= 0)
    is_plain &= ~rows["is_misindexed"]
    is_plain &= rows["first"] <= rows["last"]
    side = (rows["first"] >= log.base_offset).astype(np.int8) + (rows["last"] >= log.limit)
    side[rows["last"] < log.base_offset] -= 1  # apart from a batch with the base offset inside
    joins = (before["end"] == after["start"]) & (before["last"] < after["first"])
    joins &= is_plain[:-1] & is_plain[1:] & ~before["is_keyless"]
    joins &= side[:-1] == side[1:]
    for name in ("epoch", "magic", "reach", "log"):
        joins &= before[name] == after[name]
    begins[1:] = ~joins
    return begins


def joined(rows: Rows, begins: Bools) -> Rows:
    """Return one row for each group of rows; `begins` marks the first row of each group."""
    starts = np.flatnonzero(begins)
    if len(starts) == len(rows):
        return rows
    ends = np.append(starts[1:], len(rows)) - 1
    made = rows[starts]
    for name in _OF_THE_LAST:
        made[name] = rows[name][ends]
    for name in _SUMS:
        made[name] = np.add.reduceat(rows[name], starts)
    leaps = rows["leaps"].copy()
    leaps[1:] += (rows["last"][:-1] + 1 != rows["first"][1:]) & ~begins[1:]
    made["leaps"] = np.add.reduceat(leaps, starts)
    made["least"] = np.minimum.reduceat(rows["least"], starts)
    made["max_time"] = np.maximum.reduceat(rows["max_time"], starts)
    known = np.where(rows["min_time"] < 0, INT64_MAX, rows["min_time"])
    earliest = np.minimum.reduceat(known, starts)
    made["min_time"] = np.where(earliest == INT64_MAX, -1, earliest)
    for name in ("is_movable", "is_append_time"):
        made[name] = np.logical_and.reduceat(rows[name], starts)
    made["is_transactional"] = np.logical_or.reduceat(rows["is_transactional"], starts)
    made["is_indexed"] &= starts == ends
    return made


class Condenser:
    """The rows of one log, which come in order, with stretches instead of most batches.

    The first and last `edge` batches of a run stay rows of their own.
    Memory: at most 2 * `edge` + 1 rows for each run.
    """

    def __init__(self, log: LogFacts, edge: int = EDGE_BATCHES) -> None:
        self._log, self._edge = log, edge
        self._done: list[Rows] = []
        self._open = NO_ROWS
        """The run that the next rows may continue."""

    def add(self, rows: Rows) -> None:
        """Add rows after all others."""
        rows = np.concatenate([self._open, rows]) if len(self._open) else rows
        if not len(rows):
            return
        begins = runs_begin(rows, self._log)
        starts = np.flatnonzero(begins)
        run = np.cumsum(begins) - 1
        numbers = np.arange(len(rows))
        ends = np.append(starts[1:], len(rows))
        is_inner = (numbers - starts[run] >= self._edge) & (ends[run] - numbers > self._edge)
        begins[1:] |= ~(is_inner[1:] & is_inner[:-1])
        made = joined(rows, begins)
        last = int(np.searchsorted(made["start"], rows["start"][starts[-1]]))
        self._done.append(made[:last])
        self._open = made[last:]

    def rows(self) -> Rows:
        """Return all rows that were added."""
        return np.concatenate([*self._done, self._open])


class Opener:
    """One stretch whose batches come again, with those apart that a `Part` asks for."""

    def __init__(self, stretch: Rows, part: Part) -> None:
        self._count = int(stretch["batches"][0])
        self._part = part
        self._is_keyless = stretch["is_keyless"]
        self._offsets = np.array(part.offsets, np.int64)
        self._bounds = np.arange(part.pieces) * self._count // part.pieces
        self._made = NO_ROWS
        self._done: list[Rows] = []
        self.seen = 0
        """Number of batches that were added."""
        self.end = -1
        """Where the last of them ends."""
        self._was_apart = False

    def add(self, batches: Rows) -> None:
        """Add the next batches of the stretch, a row for each."""
        if not len(batches):
            return
        numbers = self.seen + np.arange(len(batches))
        before = np.searchsorted(self._offsets, batches["first"], "left")
        is_apart = before < np.searchsorted(self._offsets, batches["last"], "right")
        is_apart |= (numbers < self._part.head) | (numbers >= self._count - self._part.tail)
        open_ = self._made
        begins = np.ones(len(open_) + len(batches), np.bool_)
        own = begins[len(open_) :]
        lasts = np.append(open_["last"][-1] if len(open_) else -1, batches["last"][:-1])
        own[:] = np.searchsorted(self._offsets, lasts, "right") < before
        own |= is_apart | np.isin(numbers, self._bounds)
        own[1:] |= is_apart[:-1]
        own[0] |= not len(open_) or self._was_apart
        made = joined(np.concatenate([open_, batches]), begins)
        self._was_apart = bool(is_apart[-1])
        self._done.append(made[:-1])
        self._made = made[-1:]
        self.seen += len(batches)
        self.end = int(batches["end"][-1])

    def rows(self) -> Rows:
        """Return the rows that stand for the stretch now."""
        rows: Rows = np.concatenate([*self._done, self._made])
        rows["is_keyless"][-1:] |= self._is_keyless
        return rows
