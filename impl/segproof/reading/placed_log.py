# SPDX-License-Identifier: Apache-2.0
"""A commit log on disk, placed: the facts of its files and its queues, and the decision.

Details are read where the decision asks for them: a sound log is read once, and its queues once.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from segproof.files import Files, ReadOnlyFile
from segproof.integers import INT64_MAX
from segproof.reading.batch_queues import batch_units
from segproof.reading.queue_units import (
    SAMPLE_ROWS,
    index_offsets,
    units_of_queues,
)
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.index_service import INDEX
from segproof.stretches.rocketmq.desk import Bools, Needs, Placement
from segproof.stretches.rocketmq.facts import (
    UNIT,
    Facts,
    Int64s,
    Range,
    Units,
    place_marks,
    queue_mark,
)
from segproof.stretches.rocketmq.framing import LogReading, See
from segproof.stretches.rocketmq.placing import place


def placed(
    log: CommitLog,
    files: Files,
    *,
    open_file: Callable[[str], ReadOnlyFile] | None = None,
    advance: Callable[[int], None] = lambda count: None,
    see: See = lambda block: None,
) -> Placement:
    """Return what becomes of each message of a log. `see` gets each block as it is first read.

    Cost: the log and its queues are read once, and again what damage touches. Memory: as
    `Facts`, and a row for each message that the decision asks for. What can't be read of queues
    and index says nothing. Raises: OSError for the log.
    """
    framed = LogReading(log, files, open_file=open_file, advance=advance)
    units, known = _sample(log, files)
    facts = replace(framed.facts(units, see), known=known)
    while True:
        found = place(facts)
        if isinstance(found, Placement):
            return found
        facts = more(facts, found, framed, files)


def more(facts: Facts, needs: Needs, framed: LogReading, files: Files) -> Facts:
    """Return facts with what a decision needs. Raises: OSError."""
    if needs.units or needs.places:
        units = _wanted(framed.log, needs, files)
        framed.meet(facts, units)
        facts = with_units(facts, needs, units)
    return framed.messages(facts, list(needs.rows)) if needs.rows else facts


def with_units(facts: Facts, needs: Needs, units: Units) -> Facts:
    """Return facts with the units that a decision needs, which messages have met."""
    found = np.concatenate([facts.units[~_are_wanted(facts.units, needs)], units])
    known = list[Range]()
    for start, end in sorted({*facts.known, *needs.units}):
        if known and start <= known[-1][1]:
            known[-1] = known[-1][0], max(known[-1][1], end)
        else:
            known.append((start, end))
    ordered = found[np.argsort(found["offset"], kind="stable")]
    return replace(facts, units=ordered, known=tuple(known), asked=facts.asked | needs.places)


def _are_wanted(units: Units, needs: Needs) -> Bools:
    wanted = np.isin(place_marks(units), np.array(sorted(needs.places), np.uint64))
    if needs.units:
        starts, ends = (np.array(one, np.int64) for one in zip(*needs.units, strict=True))
        wanted |= _are_in(units["offset"], starts, ends)
    return np.asarray(wanted)


def _are_in(offsets: Int64s, starts: Int64s, ends: Int64s) -> Bools:
    at = np.searchsorted(starts, offsets, "right") - 1
    return np.asarray((at >= 0) & (offsets < ends[np.maximum(at, 0)]))


def _sample(log: CommitLog, files: Files) -> tuple[Units, tuple[Range, ...]]:
    """Return up to SAMPLE_ROWS units of each file of a log, and the ranges with no other units."""
    begins = np.array([one.start for one in log.log_files], np.int64)
    if not len(begins):
        return np.empty(0, UNIT), ()
    counts, found, is_all = np.zeros(len(begins), np.int64), [np.empty(0, UNIT)], True
    for units in _units(log, files):
        at = np.searchsorted(begins, units["offset"], "right") - 1
        is_in = (at >= 0) & (units["offset"] < begins[np.maximum(at, 0)] + log.mapped_file_size)
        is_all &= bool(is_in.all())
        for number in np.unique(at[is_in]).tolist():
            some = units[is_in & (at == number)]
            room = int(SAMPLE_ROWS - counts[number])
            is_all &= len(some) <= room
            found.append(some[:room])
            counts[number] += len(found[-1])
    units = np.concatenate(found)
    known: tuple[Range, ...] = ((0, INT64_MAX),) if is_all else ()
    return units[np.argsort(units["offset"], kind="stable")], known


def _wanted(log: CommitLog, needs: Needs, files: Files) -> Units:
    some = (units[_are_wanted(units, needs)] for units in _units(log, files))
    found = np.concatenate([np.empty(0, UNIT), *some])
    return found[np.argsort(found["offset"], kind="stable")]


def _units(log: CommitLog, files: Files) -> Iterator[Units]:
    """Yield the units of all queues and the entries of the index, but for entries that lead to the
    begin of a file: there a message begins in any store."""
    store, begins = log.store_path, [one.start for one in log.log_files]
    with suppress(OSError):
        for topic, number, numbers, stored in units_of_queues(store, files):
            units = _made(stored["commit_log_offset"], stored["size"])
            units["queue"] = 0 if number is None else queue_mark(os.fsencode(topic), number)
            units["number"] = numbers
            yield units
    with suppress(OSError):
        for rows in batch_units(store, files):
            yield _made(rows[:, 0], rows[:, 1])
    for offsets in index_offsets(os.path.join(store, INDEX), files):
        told = offsets[~np.isin(offsets, begins)]
        yield _made(told, np.zeros(len(told), np.int64))


def _made(offsets: Int64s, sizes: Int64s) -> Units:
    units = np.zeros(len(offsets), UNIT)
    units["offset"], units["size"] = offsets, sizes
    return units
