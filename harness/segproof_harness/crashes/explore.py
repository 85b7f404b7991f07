# SPDX-License-Identifier: Apache-2.0
"""Histories are drawn and cut behind every effect; each image is loaded once, and judged.

An image is judged by the operation that was cut: by what was promised before it and after it. A
second crash comes in the recovery from an image. A history that shows something new is made as
short as possible.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from segproof.errors import SegproofError
from segproof_harness.crashes.known_violations import Seen, known_number
from segproof_harness.crashes.worlds import Fault, Operation, World
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.machine.crash_images import Image, crash_images, has_names_in_order
from segproof_harness.machine.fault_model import MODES, Mode
from segproof_harness.machine.simulated_files import SimulatedFiles, mounted

__all__ = [
    "CAPACITY_BYTES",
    "Explored",
    "MakeWorld",
    "Settings",
    "Violation",
    "drawn_history",
    "explore",
    "last_effects",
    "shrunk",
]

CAPACITY_BYTES = 1 << 18
SECOND_BOUND = 8
"""Images of one crash in a recovery; one of them is drawn."""
KEPT_MAX = 3
"""Violations of one kind and number that are kept; others are counted."""


class Settings(NamedTuple):
    """How far a history is explored."""

    modes: tuple[Mode, ...] = MODES
    bound: int = 24
    """Images of each cut in each mode; see `crash_images`."""
    sector_bytes: int = 64
    """Below 512, a small file has several sectors, so small histories show more."""
    second: int = 0
    """Crashes in the recovery from each image."""
    faults: bool = False
    """Whether calls fail, as `explore_faults` lets them, and not only the machine."""


class Violation(NamedTuple):
    """A promise that a crash broke."""

    fault: Fault
    seed: int
    history: tuple[Operation, ...]
    """The last operation is the one that was cut."""
    effects: tuple[str, ...]
    """What was done last before the crash."""
    mode: Mode
    image: Image
    is_second: bool
    """Whether the crash was in the recovery from another one."""
    known: int | None
    """The number of the known violation, if it is one."""
    failing: str = ""
    """The call that failed before the crash, if one did, and how."""


def _kind_of(violation: Violation) -> tuple[int | None, str]:
    return violation.known, violation.fault.kind


@dataclass
class Explored:
    """How much was done, and what was found."""

    histories: int = 0
    cuts: int = 0
    images: int = 0
    loads: int = 0
    """Different images that were loaded."""
    second: int = 0
    """Crashes in recoveries."""
    points: int = 0
    """Calls that failed."""
    violations: list[Violation] = field(default_factory=list)
    counts: Counter[tuple[int | None, str]] = field(default_factory=Counter)
    """How often each kind was found, with the number of the known violation."""

    def add(self, other: "Explored") -> None:
        """Add the figures of another history; of each kind, no more violations are kept."""
        for name in ("histories", "cuts", "images", "loads", "second", "points"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        kept = Counter(map(_kind_of, self.violations))
        for one in other.violations:
            kept[_kind_of(one)] += 1
            if kept[_kind_of(one)] <= KEPT_MAX:
                self.violations.append(one)
        self.counts += other.counts

    def note(self, violation: Violation) -> None:
        """Count a violation; the first ones of a kind are kept."""
        self.counts[_kind_of(violation)] += 1
        if self.counts[_kind_of(violation)] <= KEPT_MAX:
            self.violations.append(violation)

    @property
    def new(self) -> list[Violation]:
        """The violations that are not known."""
        return [one for one in self.violations if one.known is None]


MakeWorld = Callable[[random.Random], World]


def drawn_history(weights: dict[str, int], seed: int, length: int) -> list[Operation]:
    """Return the operations of a seed."""
    draw = random.Random(f"{seed}:history")
    names = draw.choices([*weights], [*weights.values()], k=length)
    return [Operation(name, draw.randrange(1 << 20)) for name in names]


def explore(
    make_world: MakeWorld,
    seed: int,
    history: Sequence[Operation],
    settings: Settings,
    *,
    judges_last_only: bool = False,
) -> Explored:
    """Run a history; load and judge each image of each cut.

    With `judges_last_only` only the cuts of the last operation are looked at.
    """
    run = _Run(make_world(random.Random(seed)), seed, settings)
    for number, operation in enumerate(history):
        is_judged = not judges_last_only or number == len(history) - 1
        run.step(operation, is_judged=is_judged)
    run.explored.histories = 1
    return run.explored


class _Again(NamedTuple):
    """What a crash in a recovery left, and what a load found in it."""

    image: Image
    found: Any
    has_names_in_order: bool
    """Against the names with which the recovery began."""


class _Run:
    """One history, as far as it came."""

    def __init__(self, world: World, seed: int, settings: Settings) -> None:
        self.world, self.seed, self.settings = world, seed, settings
        self.explored = Explored()
        self.files = SimulatedFiles(CAPACITY_BYTES)
        self.files.settle()
        self._draw = random.Random(f"{seed}:second")
        self._history: list[Operation] = []
        self._found: dict[Image, Any] = {}
        """What a load found, by the image; an exception where it failed."""
        self._again: dict[Image, list[_Again]] = {}
        world.begin(self.files)
        self.files.look()
        self._state, self._at = world.state(), len(self.files.journal)

    def step(self, operation: Operation, *, is_judged: bool) -> None:
        self._history.append(operation)
        with suppress(SegproofError):  # it is refused, with nothing changed
            self.world.apply(operation)
        self.files.look()
        before, self._state = self._state, self.world.state()
        first, self._at = self._at, len(self.files.journal)
        for cut in range(first, self._at + 1) if is_judged else ():
            self.explored.cuts += 1
            for mode in self.settings.modes:
                for image in crash_images(
                    self.files.journal,
                    cut,
                    mode,
                    bound=self.settings.bound,
                    sector_bytes=self.settings.sector_bytes,
                    seed=self.seed,
                ):
                    self.explored.images += 1
                    self._judge(image, before, cut, mode)

    def _judge(self, image: Image, before: Any, cut: int, mode: Mode) -> None:
        if image not in self._found:
            self.explored.loads += 1
            self._found[image], self._again[image] = self._loaded_twice(image)
        for fault in self._faults(self._found[image], before):
            is_in_order = has_names_in_order(image, self.files.journal, cut)
            self._note(Seen(fault, is_in_order), cut, mode, image, is_second=False)
        for again in self._again[image]:
            for fault in self._faults(again.found, before):
                is_in_order = has_names_in_order(image, self.files.journal, cut)
                seen = Seen(fault, is_in_order and again.has_names_in_order)
                self._note(seen, cut, mode, again.image, is_second=True)

    def _faults(self, found: Any, before: Any) -> Sequence[Fault]:
        if isinstance(found, Exception):
            return [Fault("not loaded", f"{type(found).__name__}: {found}")]
        return self.world.judge(found, before, self._state)

    def _loaded_twice(self, image: Image) -> tuple[Any, list[_Again]]:
        """Load an image, and again what crashes in its recovery leave."""
        if not self.settings.second:
            return self._loaded(image, MemoryFiles(CAPACITY_BYTES))[0], []
        files = SimulatedFiles(CAPACITY_BYTES)
        found, end = self._loaded(image, files)
        return found, [self._crashed_again(files, end) for _ in range(self.settings.second)]

    def _crashed_again(self, files: SimulatedFiles, end: int) -> _Again:
        self.explored.second += 1
        cut = self._draw.randint(0, end)
        images = crash_images(
            files.journal,
            cut,
            self._draw.choice(self.settings.modes),
            bound=SECOND_BOUND,
            sector_bytes=self.settings.sector_bytes,
            seed=self._draw.randrange(1 << 20),
        )
        image = self._draw.choice(list(images))
        found, _ = self._loaded(image, MemoryFiles(CAPACITY_BYTES))
        return _Again(image, found, has_names_in_order(image, files.journal, cut))

    def _loaded(self, image: Image, files: MemoryFiles) -> tuple[Any, int]:
        """Return what a load finds, or its error, and how many effects the recovery had."""
        mounted(image, files)
        end = 0
        if isinstance(files, SimulatedFiles):
            files.settle()
        try:
            loaded = self.world.load(files)
            if isinstance(files, SimulatedFiles):
                files.look()
                end = len(files.journal)
            return self.world.look_at(loaded, files), end
        except Exception as error:
            return error, end

    def _note(self, seen: Seen, cut: int, mode: Mode, image: Image, *, is_second: bool) -> None:
        history, fault = tuple(self._history), seen.fault
        effects = last_effects(self.files, cut)
        self.explored.note(
            Violation(
                fault, self.seed, history, effects, mode, image, is_second, known_number(seen)
            )
        )


def last_effects(files: SimulatedFiles, cut: int) -> tuple[str, ...]:
    """Return what was done last before a cut."""
    return tuple(map(str, files.journal.effects[max(0, cut - 6) : cut]))


def shrunk(
    make_world: MakeWorld,
    violation: Violation,
    settings: Settings,
    explores: Callable[..., Explored] = explore,
) -> Violation:
    """Return the same kind of violation with a history from which no operation can be taken.

    `explores` is what found it: `explore`, or `explore_faults`.
    """
    position = len(violation.history) - 2
    settings = settings._replace(modes=(violation.mode,))
    while position >= 0:
        history = [*violation.history[:position], *violation.history[position + 1 :]]
        found = explores(make_world, violation.seed, history, settings, judges_last_only=True)
        same = (one for one in found.violations if _kind_of(one) == _kind_of(violation))
        violation = next(same, violation)
        position -= 1
    return violation
