# SPDX-License-Identifier: Apache-2.0
"""Commit logs drawn as facts, with the truth, and damage done to the facts: no file is written."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from segproof.integers import INT64_MAX
from segproof.stretches.rocketmq.desk import KEEPING, Needs, Placement
from segproof.stretches.rocketmq.facts import (
    NO_TIME,
    STRETCH,
    UNIT,
    Facts,
    FileFacts,
    Reach,
    Rows,
    Units,
    joined,
    meet,
)
from segproof.stretches.rocketmq.placing import place

FILE_BYTES = 2048
BLANK_BYTES = 8
FIRST_MS = 1_700_000_000_000
OURS, OTHERS = 7, 9
"""Hosts of brokers."""


@dataclass(frozen=True)
class Drawn:
    """One message: where it lies, and what it says."""

    name: int
    """Which message it is; its content."""
    file: int
    """The index of its file."""
    start: int
    size: int
    said: int
    time: int
    queue: int = 1
    number: int = 0
    host: int = OURS
    is_filler: bool = False

    @property
    def end(self) -> int:
        """The position in the file after it."""
        return self.start + self.size


@dataclass(frozen=True)
class DrawnFile:
    """One file: its name, and what follows its messages."""

    start: int
    used: int
    """Position after the last message, as it was written."""
    is_blank: bool
    """Whether a blank end follows, at `used`."""
    torn: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class DrawnLog:
    """Files and messages as they lie, and the units of the queues."""

    files: tuple[DrawnFile, ...]
    messages: tuple[Drawn, ...]
    units: tuple[tuple[int, int, int, int], ...] = ()
    """Offset, size, queue and number."""
    truth: dict[int, int] = field(default_factory=dict)
    """The offset of each message that this store had, by `name`."""

    def facts(self) -> Facts:
        """Return the facts with a row for each message, and all units."""
        order = sorted(range(len(self.files)), key=lambda one: self.files[one].start)
        rank = {number: at for at, number in enumerate(order)}
        messages = sorted(
            (replace(one, file=rank[one.file]) for one in self.messages),
            key=lambda one: (one.file, one.start),
        )
        files = tuple(self._file_facts(number) for number in order)
        rows = rows_of(messages, files)
        units = units_of(self.units)
        meet(units, rows)
        return Facts(FILE_BYTES, files, rows, units, ((0, INT64_MAX),))

    def _file_facts(self, number: int) -> FileFacts:
        file = self.files[number]
        end = max((one.end for one in self.messages if one.file == number), default=0)
        blank = file.used if file.is_blank else None
        zeros = max(end, file.used + BLANK_BYTES * file.is_blank)
        return FileFacts(file.start, FILE_BYTES, min(zeros, FILE_BYTES), blank, file.torn)


def rows_of(messages: list[Drawn], files: tuple[FileFacts, ...]) -> Rows:
    """Return a row for each of some messages in order."""
    rows = np.zeros(len(messages), STRETCH)
    file, reached, reach = -1, 0, Reach.SIZES
    for row, one in zip(rows, messages, strict=True):
        if one.file != file:
            file, reached, reach = one.file, 0, Reach.SIZES
        if one.start != reached:
            reach = Reach.SEARCH
        reached = one.end
        row["file"], row["start"], row["end"], row["said"] = one.file, one.start, one.end, one.said
        row["messages"], row["mark"], row["host"] = 1, one.name + 1000, one.host
        row["times"] = NO_TIME
        row["times"][0] = one.time
        row["reach"], row["is_filler"] = reach, one.is_filler
        blank = files[one.file].blank_from
        row["is_after_blank"] = blank is not None and one.start >= blank
        row["queue"], row["number"] = one.queue, one.number
    return rows


def units_of(units: tuple[tuple[int, int, int, int], ...]) -> Units:
    """Return units in the order of their offsets."""
    found = np.zeros(len(units), UNIT)
    for row, unit in zip(found, sorted(units), strict=True):
        for name, value in zip(("offset", "size", "queue", "number"), unit, strict=True):
            row[name] = value
    return found


@st.composite
def whole_logs(draw: st.DrawFn, least: int = 2, has_units: bool | None = None) -> DrawnLog:
    """Draw a sound log of several files, with its queues or without."""
    count = draw(st.integers(least, 24))
    begin = FILE_BYTES * draw(st.sampled_from((0, 0, 3, 1 << 20)))
    sizes = draw(st.lists(st.integers(91, 500), min_size=count, max_size=count))
    queues = draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
    files, messages, start, time = list[DrawnFile](), list[Drawn](), 0, FIRST_MS
    numbers: Counter[int] = Counter()
    for name, (size, queue) in enumerate(zip(sizes, queues, strict=True)):
        if start + size + BLANK_BYTES > FILE_BYTES:
            files.append(DrawnFile(begin, start, is_blank=True))
            begin, start = begin + FILE_BYTES, 0
        one = Drawn(name, len(files), start, size, begin + start, time, queue, numbers[queue])
        messages.append(one)
        numbers[queue] += 1
        start, time = start + size, time + 1000
    files.append(DrawnFile(begin, start, is_blank=False))
    units = tuple((one.said, one.size, one.queue, one.number) for one in messages)
    has = draw(st.booleans()) if has_units is None else has_units
    truth = {one.name: one.said for one in messages}
    return DrawnLog(tuple(files), tuple(messages), units if has else (), truth)


def without(log: DrawnLog, names: set[int]) -> DrawnLog:
    """Return a log in which some messages are broken."""
    kept = tuple(one for one in log.messages if one.name not in names)
    return replace(log, messages=kept)


def changed(log: DrawnLog, name: int, **fields: Any) -> DrawnLog:
    """Return a log in which a message says something else."""
    found = (replace(one, **fields) if one.name == name else one for one in log.messages)
    return replace(log, messages=tuple(found))


def shifted(log: DrawnLog, number: int, at: int, count: int) -> DrawnLog:
    """Return a log with bytes put into a file before a position, or taken out; what no longer lies
    whole in the file is lost."""
    moved = list[Drawn]()
    for one in log.messages:
        if one.file != number or one.end <= at:
            moved.append(one)
        elif one.start >= at:
            there = replace(one, start=one.start + count)
            moved += [there] if there.start >= at and there.end <= FILE_BYTES else []
    file = replace(log.files[number], is_blank=False)
    file = replace(file, used=min(FILE_BYTES, file.used + count))
    files = (*log.files[:number], file, *log.files[number + 1 :])
    return replace(log, messages=tuple(moved), files=files)


def renamed(log: DrawnLog, names: list[int]) -> DrawnLog:
    """Return a log whose files have other names, in their order."""
    files = (replace(one, start=name) for one, name in zip(log.files, names, strict=True))
    return replace(log, files=tuple(files))


def written_over(log: DrawnLog, number: int, at: int, block: list[Drawn]) -> DrawnLog:
    """Return a log with messages written over a file from a position on; they keep what they say.

    The first of them begins there.
    """
    first = block[0].start
    there = [replace(one, file=number, start=at + one.start - first) for one in block]
    there = [one for one in there if one.end <= FILE_BYTES]
    end = max((one.end for one in there), default=at)
    kept = (
        one
        for one in log.messages
        if one.file != number or one.end <= at or end <= one.start
    )  # fmt: skip
    return replace(log, messages=(*kept, *there))


def damaged(draw: st.DrawFn, log: DrawnLog) -> DrawnLog:
    """Return a log after one more damage, as disks, copies and clocks make it."""
    if not log.messages:
        return log
    one = draw(st.sampled_from(log.messages))
    kind = draw(
        st.sampled_from(
            ("gone", "bit", "clock", "number", "swap", "shift", "block", "others", "no file")
        )
    )
    if kind == "gone":
        return without(log, {one.name})
    if kind == "bit":
        return changed(log, one.name, said=one.said ^ 1 << draw(st.integers(0, 62)))
    if kind == "clock":
        return changed(log, one.name, time=draw(st.sampled_from((0, 1, 1 << 60, FIRST_MS - 9**9))))
    if kind == "number":
        return changed(log, one.name, number=one.number ^ 1 << draw(st.integers(0, 40)))
    if kind == "swap":
        names = [file.start for file in log.files]
        return renamed(log, draw(st.permutations(names)))
    if kind == "shift":
        return shifted(log, one.file, one.start, draw(st.sampled_from((8, -8, 100, -100, 512))))
    if kind == "no file":
        kept = tuple(each for each in log.messages if each.file != one.file)
        return log if len(log.files) < 2 else without_file(replace(log, messages=kept), one.file)
    block = [each for each in log.messages if each.file == one.file and each.start >= one.start]
    block = block[: draw(st.integers(1, 4))]
    if kind == "others":
        far = draw(st.sampled_from((0, 91, 512, FILE_BYTES, 1 << 40)))
        block = [
            replace(each, name=each.name + 10_000, said=each.said + far, host=OTHERS, number=10**6)
            for each in block
        ]
    number, at = draw(st.integers(0, len(log.files) - 1)), 512 * draw(st.integers(0, 3))
    return written_over(log, number, at + block[0].start % 512, block)


def without_file(log: DrawnLog, number: int) -> DrawnLog:
    """Return a log without a file, which has no messages."""
    files = tuple(one for at, one in enumerate(log.files) if at != number)
    moved = (replace(one, file=one.file - (one.file > number)) for one in log.messages)
    return replace(log, files=files, messages=tuple(moved))


@st.composite
def damaged_logs(draw: st.DrawFn) -> DrawnLog:
    """Draw a log after a few damages."""
    log = draw(whole_logs())
    for _ in range(draw(st.integers(1, 4))):
        log = damaged(draw, log)
    return log


# --- placing


def placed(facts: Facts) -> Placement:
    """Return the placement of facts that lack nothing."""
    found = place(facts)
    assert isinstance(found, Placement), found
    return found


def kept_of(found: Placement) -> list[tuple[int, int]]:
    """Return the name and the offset of each message that is kept, in the order of offsets; the
    facts have a row for each."""
    rows = found.facts.rows[found.kept]
    names = (rows["mark"] - np.uint64(1000)).tolist()
    return list(zip(names, found.offsets[found.kept].tolist(), strict=True))


def condensed(facts: Facts) -> Facts:
    """Return facts with as few rows and units as a reader begins with: units of one in three."""
    return replace(facts, rows=joined(facts.rows), units=facts.units[::3].copy(), known=())


def placed_in_steps(whole: Facts) -> Placement:
    """Return the placement of condensed facts, which gets what it needs from the whole ones."""
    facts = condensed(whole)
    while isinstance(found := place(facts), Needs):
        parts, done = list[Rows](), 0
        for row in found.rows:
            one = facts.rows[row]
            is_in = (whole.rows["file"] == one["file"]) & (whole.rows["start"] >= one["start"])
            is_in &= whole.rows["end"] <= one["end"]
            is_in &= whole.rows["said"] - whole.rows["start"] == one["said"] - one["start"]
            parts += [facts.rows[done:row], whole.rows[is_in]]
            done = row + 1
        rows = np.concatenate([*parts, facts.rows[done:]])
        assert len(rows) > len(facts.rows) or found.units or found.places
        facts = replace(facts, rows=rows)
        if found.units or found.places:
            facts = replace(facts, units=whole.units, known=whole.known)
    return found


def fates_by_message(found: Placement, whole: Facts) -> list[tuple[int, int]]:
    """Return fate and offset of each message of the whole facts; the offset only if it is kept."""
    rows, told = found.facts.rows, list[tuple[int, int]]()
    for one in whole.rows:
        is_it = (rows["file"] == one["file"]) & (rows["start"] <= one["start"])
        is_it &= rows["said"] - rows["start"] == one["said"] - one["start"]
        row = int(np.flatnonzero(is_it & (one["end"] <= rows["end"]))[-1])
        fate = int(found.fates[row])
        offset = int(found.offsets[row] + one["start"] - rows["start"][row])
        told.append((fate, offset if fate in KEEPING else -1))
    return told
