# SPDX-License-Identifier: Apache-2.0
"""The smallest history that still diverges: fewer operations first, then smaller arguments."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from segproof_harness.histories.compare import Divergence
from segproof_harness.histories.traces import Trace
from segproof_harness.structures.kinds import Kind, Only, Optional, Record
from segproof_harness.structures.operations import Operation, Value
from segproof_harness.structures.structure import structure_named

RUNS_MAX = 2000
SECONDS_MAX = 30.0


class _BudgetSpentError(Exception):
    """The budget is used up."""


class _Shrinker:
    def __init__(
        self, trace: Trace, run: Callable[[Trace], Divergence | None], runs: int, seconds: float
    ) -> None:
        self.best = trace
        self._run = run
        self._runs = runs
        self._until = time.monotonic() + seconds
        self._wanted: tuple[str, ...] | None = None

    def accept(self, candidate: Trace) -> bool:
        """Return whether the candidate diverges in the same way; then it is the best one."""
        if self._runs == 0 or time.monotonic() > self._until:
            raise _BudgetSpentError
        self._runs -= 1
        found = self._run(candidate)
        if found is None or self._wanted not in (None, _way(found)):
            return False
        self._wanted = _way(found)
        self.best = replace(candidate, operations=candidate.operations[: found.step])
        return True

    def fewer_operations(self) -> None:
        """Remove runs of operations, longest first (ddmin without the complement step)."""
        size = max(1, len(self.best.operations) // 2)
        while True:
            start = 0
            while start < len(self.best.operations):
                kept = self.best.operations[:start] + self.best.operations[start + size :]
                if not self.accept(replace(self.best, operations=kept)):
                    start += size
            if size == 1:
                return
            size //= 2

    def smaller_arguments(self) -> bool:
        """Replace arguments by simpler ones; return whether any was."""
        changed = False
        place = 0
        while place < len(self.best.operations):
            operation = self.best.operations[place]
            for candidate in _simpler(self.best, operation):
                operations = list(self.best.operations)
                operations[place] = candidate
                if self.accept(replace(self.best, operations=tuple(operations))):
                    changed = True
                    break
            place += 1
        return changed

    def fewer_files(self) -> None:
        """Begin with an empty directory, if that will do, or else without each file in turn."""
        if not self.best.setup.files or self._begins_with({}):
            return
        for name in tuple(self.best.setup.files):
            files = self.best.setup.files
            if len(files) > 1:
                self._begins_with({each: files[each] for each in files if each != name})

    def _begins_with(self, files: Mapping[str, bytes]) -> bool:
        return self.accept(replace(self.best, setup=replace(self.best.setup, files=files)))


def shrink(
    trace: Trace,
    run: Callable[[Trace], Divergence | None],
    *,
    runs: int = RUNS_MAX,
    seconds: float = SECONDS_MAX,
) -> Trace:
    """Return a trace that is no longer than the given one and diverges too.

    `run` replays a trace; the given one must diverge.
    """
    shrinker = _Shrinker(trace, run, runs, seconds)
    try:
        shrinker.accept(trace)
        shrinker.fewer_files()
        shrinker.fewer_operations()
        while shrinker.smaller_arguments():
            shrinker.fewer_operations()
    except _BudgetSpentError:
        pass
    return shrinker.best


def _way(found: Divergence) -> tuple[str, ...]:
    """Return what must stay the same, lest one defect shrinks into another."""
    return found.subject, found.law, found.what.partition(" ")[0]


def _simpler(trace: Trace, operation: Operation) -> Iterator[Operation]:
    kind = structure_named(trace.structure_id).operation(operation.name)
    assert kind is not None
    base = trace.setup.arguments.get("base_offset", 0)
    for parameter in kind.parameters:
        value = operation.arguments[parameter.name]
        for simpler in simpler_of_kind(parameter.kind, value, base if isinstance(base, int) else 0):
            if parameter.refusal(simpler) is None:
                yield operation.with_argument(parameter.name, simpler)


def simpler_of_kind(kind: Kind, value: Any, base: int) -> Iterator[Value]:
    """Yield values to try in place of this one: the whole, then each field of a record.

    >>> from segproof_harness.structures.kinds import FLAG, INT64
    >>> list(simpler_of_kind(Record(offset=INT64, is_last=FLAG), (2, True), 0))[3:]
    [(0, True), (1, True), (2, False)]
    """
    yield from simpler_values(value, base)
    while isinstance(kind, Only | Optional):
        kind = kind.kind
    if value is not None and isinstance(kind, Record):
        for place, field in enumerate(kind.fields.values()):
            for simpler in simpler_of_kind(field, value[place], base):
                yield (*value[:place], simpler, *value[place + 1 :])


def simpler_values(value: Value, base: int) -> Iterator[Value]:
    """Yield values to try in place of this one, the simplest first.

    >>> list(simpler_values(20, 0)), list(simpler_values(True, 0))
    ([0, 10, 19], [False])
    """
    if isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int):
        if value != 0:
            yield 0
        if value not in (0, base):
            if base != 0:
                yield base
            origin = 0 if abs(value) <= abs(value - base) else base
            step = 1 if value > origin else -1
            distance = abs(value - origin)
            if distance > 2:
                yield origin + distance // 2 * step
            if distance > 1:
                yield value - step
    elif isinstance(value, tuple | bytes) and len(value):
        yield value[:0]
        yield value[: len(value) // 2]
        yield value[1:]
