# SPDX-License-Identifier: Apache-2.0
"""Units of lookups: what one is called, and how a number of lookups is cut into them.

A unit is one generated index or log, named by structure, seed and number, or one real one, named by
its path. It needs nothing but its name, so any process can do it, and anybody can do it again.
"""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from segproof_spark.lookups.comparing import Comparison

__all__ = [
    "SHARES",
    "STRUCTURES",
    "Unit",
    "UnitResult",
    "generated_units",
    "packed",
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
