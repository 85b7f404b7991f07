# SPDX-License-Identifier: Apache-2.0
"""What stays where it lies in one log, for those who read, copy or cut logs.

Laws: BATCH-2, BATCH-3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from segproof.files import ReadOnlyFile
from segproof.kafka.batch_table import BatchScan, BatchTable
from segproof.stretches.kafka.desk import Fate
from segproof.stretches.kafka.facts import Bools, Facts, Int64s, LogFacts, Rows
from segproof.stretches.kafka.framing import LogSource, frame_partition, open_stretches
from segproof.stretches.kafka.placing import Placement, place_all

IN_PLACE = (Fate.KEPT, Fate.RESTORED)
"""Fates of batches that stay in their log, between the batches that they lie between."""


@dataclass(frozen=True, slots=True)
class LogFates:
    """The rows of one log, in the order of positions, and what becomes of them."""

    log: LogFacts
    rows: Rows
    fates: NDArray[np.int8]
    """Values of `Fate`, one for each row."""
    firsts: Int64s
    """The first offset that each row gets if it is kept."""

    @classmethod
    def of(cls, facts: Facts, placement: Placement, number: int) -> "LogFates":
        """Return those of the log with an index in `Facts.logs`."""
        own = rows_of_log(facts, number)
        part = slice(own.start, own.stop)
        return cls(
            facts.logs[number], facts.rows[part], placement.fates[part], placement.firsts[part]
        )

    @property
    def is_whole(self) -> Bools:
        """For each row, whether the bytes of its batches are right, wherever they belong."""
        whole: Bools = ~self.rows["is_mended"] & (self.fates != Fate.INSIDE)
        return whole

    @property
    def is_sound(self) -> Bools:
        """For each row, whether its batches stay, byte for byte."""
        sound: Bools = self.is_whole & (self.fates == Fate.KEPT)
        return sound

    def row_at(self, position: int) -> int | None:
        """Return the row with a byte of the log; None if no batch has it."""
        row = int(np.searchsorted(self.rows["start"], position, "right")) - 1
        return row if row >= 0 and position < self.rows["end"][row] else None

    def is_broken_from(self, position: int) -> bool:
        """Return whether no batch of the log ends after a byte, and all was searched.

        It is true after the last batch of a log with a torn end. A batch inside the torn one does
        not count: its fate is INSIDE, or its offset is below `log.base_offset` if the reading
        began at the torn batch.
        """
        is_inside = self.fates == Fate.INSIDE
        if self.log.torn_from is not None:
            is_after = self.rows["start"] > self.log.torn_from
            is_inside |= is_after & (self.rows["first"] < self.log.base_offset)
        was_searched = self.log.unsearched_from is None and not self.log.unreadable_bytes
        return was_searched and not (~is_inside & (self.rows["end"] > position)).any()

    def stays_to(self) -> int:
        """Return the byte after the last batch that stays in the log; 0 without one."""
        return int(self.rows["end"][np.isin(self.fates, IN_PLACE)].max(initial=0))

    def odd_from(self) -> int:
        """Return the byte at which the first batch would begin that does not stay in the log.

        All batches before it touch, from byte 0 on. It is the end of a log in which all stay.
        """
        is_odd = ~np.isin(self.fates, IN_PLACE)
        is_odd[:1] |= self.rows["start"][:1] > 0
        is_odd[1:] |= self.rows["start"][1:] != self.rows["end"][:-1]
        stays = int(np.argmax(is_odd)) if is_odd.any() else len(is_odd)
        return int(self.rows["end"][stays - 1]) if stays else 0


def rows_of_log(facts: Facts, number: int) -> range:
    """Return the rows of the log with an index in `Facts.logs`."""
    first, end = np.searchsorted(facts.rows["log"], np.array((number, number + 1), np.int32))
    return range(int(first), int(end))


def place_alone(source: LogSource) -> tuple[Facts, Placement]:
    """Read a log, and place its batches without any other log.

    If most of them lie after the next log's name, one of the two names is wrong, and the next one
    limits nothing. Memory: as `frame_partition` and `place`. Raises: OSError for any trouble but
    blocks that the disk does not return; CorruptRecordError if the log changes meanwhile.
    """
    return place_framed(frame_partition([source]), source)


def place_framed(facts: Facts, source: LogSource) -> tuple[Facts, Placement]:
    """Place what was read of one log, as `place_alone`."""
    rows, (log,) = facts.rows, facts.logs
    beyond = int(rows["batches"][rows["last"] >= log.limit].sum())
    if 2 * beyond > rows["batches"].sum():
        facts = replace(facts, logs=(replace(log, next_base_offset=None),))
    return place_all(facts, lambda facts, needs: open_stretches(facts, needs, [source]))


def place_log(source: LogSource) -> LogFates:
    """Return what becomes of the rows of a log; memory and Raises as `place_alone`."""
    return LogFates.of(*place_alone(source), 0)


def byte_ranges_of(rows: Rows) -> list[tuple[int, int]]:
    """Return the bytes [start, end) of rows of one log; those that touch are one range."""
    begins = np.flatnonzero(np.append(True, rows["start"][1:] != rows["end"][:-1])[: len(rows)])
    ends = np.append(begins[1:], len(rows))[: len(begins)] - 1
    return list(zip(rows["start"][begins].tolist(), rows["end"][ends].tolist(), strict=True))


def headers_of(file: ReadOnlyFile, rows: Rows) -> Iterator[BatchTable]:
    """Yield the headers of the batches of rows of one log, a block at a time. Raises: OSError."""
    for start, end in byte_ranges_of(rows):
        yield from BatchScan(file, start, end, deep=False).tables()
