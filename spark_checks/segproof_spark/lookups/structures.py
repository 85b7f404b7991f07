# SPDX-License-Identifier: Apache-2.0
"""The table of structures with lookups, the cutting of lookups into units, and doing one unit."""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from segproof.errors import SegproofError
from segproof.files import Files
from segproof_spark.arrow_files import files_of
from segproof_spark.lookups import kafka_indexes, kafka_logs, rocketmq_keys
from segproof_spark.lookups.comparison import Comparison, Question, Unit
from segproof_spark.lookups.random_numbers import Draw
from segproof_spark.result_rows import peak_bytes
from segproof_spark.tasks import dearest_first, packed

LOG = "partition-log"
TASK_SECONDS = 8.0


class Definition(Protocol):
    """An index or log, and the right answers of its lookups."""

    @property
    def entries(self) -> int:
        """How many entries, batches or messages it has."""

    def questions(self, unit: Unit, draw: Draw) -> Iterator[Question]:
        """Open the subject, and yield what to ask."""


@dataclass(frozen=True, slots=True)
class Structure:
    """One structure whose lookups are compared."""

    law: str
    draw: Callable[[Unit, Draw], Definition]
    """Draws the index or log of a unit, in memory."""
    read: Callable[[Unit, Files, Draw, list[str]], Definition | None]
    """Reads a real one, or adds a note why it is not asked. Raises: OSError, SegproofError."""
    share: float
    """Which part of all lookups in drawn files it gets."""
    lookups: int
    """Lookups of one unit at most, where they can be cut."""
    microseconds: float
    """What a lookup takes with all that belongs to it, on one core: for cutting work only."""


def _of_index(law: str, share: float) -> Structure:
    draw, read = kafka_indexes.draw_index, kafka_indexes.read_index
    return Structure(law, draw, read, share, 4_000_000, 0.15)


STRUCTURES = {
    "offset-index": _of_index("OFFIDX-11", 0.40),
    "time-index": _of_index("TIMEIDX-10", 0.30),
    "index-file": Structure(
        rocketmq_keys.LAW, rocketmq_keys.draw_keys, rocketmq_keys.read_keys, 0.15, 2_000_000, 0.4
    ),
    LOG: Structure(
        kafka_logs.OFFSET_LAW, kafka_logs.draw_log, kafka_logs.read_log, 0.15, 2_000_000, 0.4
    ),
}


def run_unit(unit: Unit) -> Comparison:
    """Do the lookups of a unit and compare them. Never raises for what a file or class does.

    A failure is a finding. It is a note only if the right answers can't be known.
    """
    started = time.perf_counter()
    result, structure = Comparison(unit), STRUCTURES[unit.structure]
    try:
        draw, definition = _definition(unit, structure, result.notes)
        if definition is not None:
            result.entries = definition.entries
            for question in definition.questions(unit, draw):
                result.compare(question)
    except Exception as error:
        if unit.path and isinstance(error, OSError):
            result.tell("DISK-1", "the file cannot be read", "its bytes", str(error))
        else:  # a file that changes meanwhile, a subject that cannot be opened or written
            result.tell(structure.law, "the unit ends", "answers", repr(error))
    result.seconds, result.worker_peak_bytes = time.perf_counter() - started, peak_bytes()
    return result


def _definition(
    unit: Unit, structure: Structure, notes: list[str]
) -> tuple[Draw, Definition | None]:
    if not unit.path:
        draw = Draw("lookups", unit.structure, unit.seed, unit.index)
        return draw, structure.draw(unit, draw)
    draw = Draw("lookups", unit.structure, unit.seed, unit.index, os.path.basename(unit.path))
    files, _ = files_of(unit.path + (f"?{unit.query}" if unit.query else ""))
    try:
        return draw, structure.read(unit, files, draw, notes)
    except SegproofError as error:
        notes.append(f"not asked: {error}")
        return draw, None


# --- cutting work


def parts_of(unit: Unit, count: int) -> Iterator[Unit]:
    """Cut `count` lookups of a file into units; a log is cut by its segments already."""
    most = count if unit.segments else STRUCTURES[unit.structure].lookups
    for number, start in enumerate(range(0, count, most)):
        yield replace(unit, count=min(most, count - start), index=unit.index + number)


def drawn_units(
    count: int, structures: Sequence[str] = tuple(STRUCTURES), *, seed: int = 0, subject: str = ""
) -> list[Unit]:
    """Return units of drawn indexes and logs with at least so many lookups together."""
    total = sum(STRUCTURES[name].share for name in structures)
    units: list[Unit] = []
    for name in structures:
        own = max(math.ceil(count * STRUCTURES[name].share / total), 1)
        units += parts_of(Unit(name, seed, 0, 0, subject=subject), own)
    return units


def tasks_of(units: Sequence[Unit], cores: int) -> list[list[Unit]]:
    """Return the units in tasks of some seconds each, the dearest task first."""
    size = min(TASK_SECONDS, max(sum(map(_seconds, units)) / (4 * cores), 0.5))
    dearest = sorted(units, key=_seconds, reverse=True)
    return dearest_first(packed(((_seconds(unit), unit) for unit in dearest), size))


def _seconds(unit: Unit) -> float:
    return 0.2 + unit.count * STRUCTURES[unit.structure].microseconds * 1e-6
