# SPDX-License-Identifier: Apache-2.0
"""Units of lookups: what one is called, how a number of lookups is cut into them, and doing one.

A unit is one generated index or log, named by structure, seed and number, or one real one, named by
its path. It needs nothing but its name, so any process can do it, and anybody can do it again.
Used by: running, the verb `spark lookups`.
"""

import math
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from segproof.kafka import LogSegment
from segproof.rocketmq import IndexFile
from segproof_spark.lookups.comparing import Comparison, named_class
from segproof_spark.lookups.drawing import Draw
from segproof_spark.memory import peak_bytes

__all__ = [
    "SHARES",
    "STRUCTURES",
    "Unit",
    "UnitResult",
    "generated_units",
    "packed",
    "run_unit",
]

SHARES: dict[str, float] = {
    "offset-index": 0.40,
    "time-index": 0.30,
    "index-file": 0.15,
    "partition-log": 0.15,
}
"""Which part of all lookups goes to which structure. In a log three of four are by offset."""
STRUCTURES = tuple(SHARES)
LOOKUPS: dict[str, int] = {
    "offset-index": 4_000_000,
    "time-index": 4_000_000,
    "index-file": 2_000_000,
    "partition-log": 2_000_000,
}
"""Lookups of one generated index or log; real ones get as many units as they need."""
MICROSECONDS = {
    "offset-index": 0.15,
    "time-index": 0.15,
    "index-file": 0.4,
    "partition-log": 0.4,
}
"""What a lookup takes with all that belongs to it, measured on one core: for cutting work only."""
TASK_SECONDS = 8.0
LAWS = {
    "offset-index": "OFFIDX-11",
    "time-index": "TIMEIDX-10",
    "index-file": "RMQIDX-31",
    "partition-log": "LOG-6",
}


@dataclass(frozen=True, slots=True)
class Unit:
    """The lookups of one index or log."""

    structure: str
    seed: int
    index: int
    """Number of the generated one; of a real one, of the part of its lookups or of its log."""
    count: int
    """Lookups wanted; each key and its neighbours are asked in any case."""
    path: str = ""
    """Of a real one; empty: generated."""
    query: str = ""
    """What follows the ? of the URL in which the path lies."""
    subject: str = ""
    """`package.module:Class` in place of the implementation's class; empty: that itself."""
    geometry: tuple[int, int] = (0, 0)
    """Slots and entries of an index file of RocketMQ."""
    segments: tuple[int, ...] = ()
    """Base offsets of the segments of a real log."""

    @property
    def source(self) -> str:
        """What is asked, in one word."""
        return self.path or f"generated:{self.structure}:{self.seed}:{self.index}"

    @property
    def command(self) -> str:
        """One command line that does this unit again, without Spark."""
        words = ["segproof", "spark", "lookups"]
        if self.path:
            words.append(self.path + (f"?{self.query}" if self.query else ""))
        words += ["--structure", self.structure, "--seed", str(self.seed)]
        words += ["--index", str(self.index), "--count", str(self.count)]
        if self.subject:
            words += ["--subject", self.subject]
        return shlex.join([*words, "--local"])

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        return 0.2 + self.count * MICROSECONDS[self.structure] * 1e-6


@dataclass(frozen=True, slots=True)
class UnitResult:
    """What a unit has compared."""

    unit: Unit
    comparison: Comparison
    seconds: float
    worker_peak_bytes: int
    """The largest memory that this process has had so far."""


def generated_units(
    count: int,
    structures: Sequence[str] = STRUCTURES,
    *,
    seed: int = 0,
    subject: str = "",
) -> list[Unit]:
    """Return units of generated indexes and logs with at least so many lookups together."""
    total = sum(SHARES[name] for name in structures)
    units: list[Unit] = []
    for name in structures:
        left, number = max(math.ceil(count * SHARES[name] / total), 1), 0
        while left > 0:
            units.append(Unit(name, seed, number, min(left, LOOKUPS[name]), subject=subject))
            left -= LOOKUPS[name]
            number += 1
    return units


def packed(units: Sequence[Unit], cores: int) -> list[list[Unit]]:
    """Return the units in tasks of some seconds each, the dearest task first."""
    total = sum(unit.seconds for unit in units)
    size = min(TASK_SECONDS, max(total / (4 * cores), 0.5))
    tasks: list[tuple[float, list[Unit]]] = []
    for unit in sorted(units, key=lambda unit: -unit.seconds):
        if not tasks or tasks[-1][0] + unit.seconds > size:
            tasks.append((0.0, []))
        seconds, task = tasks[-1]
        task.append(unit)
        tasks[-1] = (seconds + unit.seconds, task)
    return [task for _, task in sorted(tasks, key=lambda pair: -pair[0])]


def run_unit(unit: Unit) -> UnitResult:
    """Do the lookups of a unit and compare them. Never raises for what a file or class does."""
    started = time.perf_counter()
    comparison = Comparison(unit.structure, unit.path or unit.source, unit.command)
    if unit.path:
        from segproof_spark.lookups.real_files import run_real

        run_real(comparison, unit)
    else:
        try:
            _RUNS[unit.structure](comparison, unit, _draw(unit))
        except Exception as error:  # of a class that cannot be opened or written: told, not lost
            comparison.tell(LAWS[unit.structure], "the unit ends", "answers", repr(error))
    seconds = time.perf_counter() - started
    return UnitResult(unit, comparison, seconds, peak_bytes())


def _draw(unit: Unit) -> Draw:
    return Draw("lookups", unit.structure, unit.seed, unit.index)


def _subject(unit: Unit, usual: Any) -> Any:
    return named_class(unit.subject) if unit.subject else usual


def _run_index(comparison: Comparison, unit: Unit, draw: Draw) -> None:
    from segproof_spark.lookups.index_images import IndexKind, draw_image
    from segproof_spark.lookups.indexes import CLASSES, check_index, in_memory

    kind: IndexKind = "offset-index" if unit.structure == "offset-index" else "time-index"
    path = "/00000000000000000000.index"
    image = draw_image(kind, draw, unit.index)
    check_index(
        comparison,
        image,
        draw,
        unit.count,
        files=in_memory(image, path),
        path=path,
        writable=bool(unit.index % 2),
        kind=_subject(unit, CLASSES[kind]),
    )


def _run_keys(comparison: Comparison, unit: Unit, draw: Draw) -> None:
    from segproof_spark.lookups.key_images import draw_key_image, put_image, read_times
    from segproof_spark.lookups.key_indexes import Entries, check_keys

    image = draw_key_image(draw, unit.index)
    index, files, path = put_image(image, _subject(unit, IndexFile))
    times = read_times(image.store_timestamps)
    entries = Entries(image.hashes[image.put], image.phy_offsets, times, image.hash_slot_num)

    def stored() -> bytes:
        index.flush()
        return files.images("/")[path[1:]]

    with index:
        check_keys(
            comparison, index, entries, image.keys, image.hashes, draw, unit.count, image=stored
        )


def _run_log(comparison: Comparison, unit: Unit, draw: Draw) -> None:
    from segproof_spark.lookups.log_images import build_log, draw_log, truth_of
    from segproof_spark.lookups.logs import check_log, check_log_samples

    image = draw_log(draw, unit.index)
    files, segments = build_log(image, _subject(unit, LogSegment))
    truth = truth_of([base for base, _ in image.segments], image.rows)
    samples = check_log(comparison, segments, truth, draw, unit.count, image.is_slow)
    segments.close()
    check_log_samples(comparison, image, files, samples)


_RUNS = {
    "offset-index": _run_index,
    "time-index": _run_index,
    "index-file": _run_keys,
    "partition-log": _run_log,
}
