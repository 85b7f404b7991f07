# SPDX-License-Identifier: Apache-2.0
"""Each call that an operation makes of its files fails in turn, and what comes of it is judged.

The operation raises an error that is documented, or does all that it says. What was promised before
is there, what is answered is right, and what goes on keeps what it acknowledges from then on,
though a sync that failed has lost its pages.
"""

import errno
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from segproof.errors import SegproofError
from segproof_harness.crashes.explore import (
    CAPACITY_BYTES,
    Explored,
    MakeWorld,
    Settings,
    Violation,
    explore,
    last_effects,
)
from segproof_harness.crashes.known_violations import Seen, known_number
from segproof_harness.crashes.worlds import Fault, Operation, World
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.files.watched_files import CHANGES, CHANGES_OF_FILES, READS
from segproof_harness.machine.crash_images import Image, crash_images, has_names_in_order
from segproof_harness.machine.fault_model import Mode, mode_named
from segproof_harness.machine.simulated_files import SimulatedFiles, mounted

__all__ = ["FAULT_KINDS", "FailingFiles", "FaultKind", "explore_faults", "explores"]

NEEDING_NO_ROOM = frozenset({"remove", "remove_directory", "take_access", "map"})
IMAGES_MAX = 2
"""Images of one crash in one mode."""


def _is_any(call: str, *arguments: Any, handle: Any = None) -> bool:
    return True


def _is_write(call: str, *arguments: Any, handle: Any = None) -> bool:
    return call == "pwrite" and len(arguments[0]) > 1


def _needs_room(call: str, *arguments: Any, handle: Any = None) -> bool:
    if call == "truncate":
        return bool(arguments[0] > handle.inode.size)
    return call in CHANGES - NEEDING_NO_ROOM or (call == "open" and bool(arguments[0]))


class FaultKind(NamedTuple):
    """One way in which a call may fail."""

    meaning: str
    """What is said of the call that fails."""
    counts: Callable[..., bool]
    """Which calls fail; it gets what `WatchedFiles.before` gets."""
    code: int = errno.EIO
    is_for_ever: bool = False
    writes_half: bool = False


FAULT_KINDS = (
    FaultKind("fails once", _is_any),
    FaultKind("fails once behind half of its bytes", _is_write, writes_half=True),
    FaultKind("fails, and each call after it", _is_any, is_for_ever=True),
    FaultKind(
        "fails on a device that is full, and each call after it that needs room",
        _needs_room,
        errno.ENOSPC,
        is_for_ever=True,
        writes_half=True,
    ),
)


class FailingFiles(SimulatedFiles):
    """Simulated files each of whose calls may fail, one that reads too."""

    calls_of_files = CHANGES_OF_FILES | READS

    def __init__(self) -> None:
        super().__init__(CAPACITY_BYTES)
        self.calls: Counter[FaultKind] = Counter()
        """How many calls each kind could have let fail."""
        self._kind = FAULT_KINDS[0]
        self._is_sound = False

    @contextmanager
    def sound(self) -> Iterator[None]:
        """Let no call fail, and count none, while the harness itself looks at the files."""
        self._is_sound = True
        try:
            yield
        finally:
            self._is_sound = False

    def fail_by(self, kind: FaultKind, number: int) -> None:
        """Let the call `number` of those that a kind counts fail, counted from 0 and from now."""
        self._kind = kind
        self.fail(number, code=kind.code, for_ever=kind.is_for_ever, writes_half=kind.writes_half)

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Count the call; let it fail if it is due."""
        if not self._is_sound:
            self.calls.update(
                kind for kind in FAULT_KINDS if kind.counts(call, *arguments, handle=handle)
            )
        super().before(call, path, *arguments, handle=handle)

    def may_fail(self, call: str, *arguments: Any, handle: Any = None) -> bool:
        """Return whether the kind that is set counts the call."""
        return not self._is_sound and self._kind.counts(call, *arguments, handle=handle)


class _Step(NamedTuple):
    """An operation of a history in which no call fails."""

    before: Any
    after: Any
    calls: Counter[FaultKind]


class _Life:
    """One history, as far as it came."""

    def __init__(self, make_world: MakeWorld, seed: int) -> None:
        self.world: World = make_world(random.Random(seed))
        self.files = FailingFiles()
        self.files.settle()
        self.world.begin(self.files)
        self.files.look()
        self.state = self.looked_at()

    def looked_at(self) -> Any:
        """Return what is promised now."""
        with self.files.sound():
            return self.world.state()

    def step(self, operation: Operation) -> _Step:
        """Do an operation in which no call fails."""
        before, self.files.calls = self.state, Counter()
        self.tried(operation)
        self.state = self.looked_at()
        return _Step(before, self.state, self.files.calls)

    def tried(self, operation: Operation) -> Exception | None:
        """Do an operation, and return its error."""
        try:
            self.world.apply(operation)
        except Exception as error:
            return error
        finally:
            self.files.look()
        return None


def explore_faults(
    make_world: MakeWorld,
    seed: int,
    history: Sequence[Operation],
    settings: Settings,
    *,
    judges_last_only: bool = False,
) -> Explored:
    """Let calls of each operation of a history fail, one in each run, and judge what comes of it.

    Of each operation and each kind of failing, `settings.bound` calls fail: all, or drawn ones.
    With `judges_last_only` only those of the last operation do.
    """
    explored = Explored(histories=1)
    whole, draw = _Life(make_world, seed), random.Random(f"{seed}:calls")
    steps = [whole.step(operation) for operation in history]
    for number, step in enumerate(steps):
        known: dict[Image, Any] = {}
        if judges_last_only and number < len(steps) - 1:
            continue
        for kind in FAULT_KINDS:
            calls: Sequence[int] = range(step.calls[kind])
            if len(calls) > settings.bound:
                calls = sorted(draw.sample(calls, settings.bound))
            for call in calls:
                life = _Life(make_world, seed)
                for operation in history[:number]:
                    life.step(operation)
                point = _Point(life, seed, history[: number + 1], settings, explored, known)
                point.judge(step, kind, call)
    return explored


def explores(settings: Settings) -> Callable[..., Explored]:
    """Return what explores a history by some settings: `explore_faults`, or `explore`."""
    return explore_faults if settings.faults else explore


class _Point:
    """One call that fails."""

    def __init__(
        self,
        life: _Life,
        seed: int,
        history: Sequence[Operation],
        settings: Settings,
        explored: Explored,
        known: dict[Image, Any],
    ) -> None:
        self._life, self._world, self._files = life, life.world, life.files
        self._seed, self._history = seed, tuple(history)
        self._settings, self._explored, self._found = settings, explored, known
        self._failing = ""
        self._is_reopened = False

    def judge(self, step: _Step, kind: FaultKind, call: int) -> None:
        """Let a call of the last operation fail; note what is wrong then."""
        self._explored.points += 1
        self._files.fail_by(kind, call)
        error = self._life.tried(self._history[-1])
        failed = self._files.failed
        if not failed:
            raise RuntimeError(f"call {call} of {self._history[-1]} did not fail: runs differ")
        self._files.fail(-1)
        self._failing = f"{failed[0]} {kind.meaning}"
        if not self._is_documented(error):
            return
        if error is None and self._world.is_closed():
            self._note(Fault("swallowed", "the operation returns, and what it changed is closed"))
        before = step.after if error is None else step.before
        self._judge_live(before, step.after)
        self._judge_images(len(self._files.journal), before, step.after)
        if self._world.is_closed():
            self._is_reopened = True
            reopening = self._opened_again()
            if reopening is not None:
                self._is_documented(reopening)
                self._note(Fault("not reopened", str(reopening)))
                return
        elif kind.is_for_ever:
            self._files.fail_by(kind, 0)
            self._go_on()
            self._files.fail(-1)
        self._go_on()

    def _opened_again(self) -> Exception | None:
        try:
            self._world.open_again()
        except Exception as error:
            return error
        return None

    def _go_on(self) -> None:
        """Do what is done next, until it is closed; judge what was acknowledged until then."""
        if self._world.is_closed():
            return
        try:
            state, cut = self._life.looked_at(), len(self._files.journal)
            for operation in self._world.next_steps:
                if not self._is_documented(self._life.tried(operation)) or self._world.is_closed():
                    break
                state, cut = self._life.looked_at(), len(self._files.journal)
        except Exception as error:
            self._note(Fault("no answer", f"{type(error).__name__}: {error}"))
            return
        if not self._world.is_closed():
            self._judge_live(state, state)
        self._judge_images(cut, state, state)

    # --- judging

    def _is_documented(self, error: Exception | None) -> bool:
        if error is None or isinstance(error, OSError | SegproofError):
            return True
        self._note(Fault("wrong error", f"{type(error).__name__}: {error}"))
        return False

    def _judge_live(self, before: Any, after: Any) -> None:
        try:
            with self._files.sound():
                faults = list(self._world.live_faults(before, after))
        except Exception as error:
            faults = [Fault("no answer", f"{type(error).__name__}: {error}")]
        for fault in faults:
            self._note(fault)

    def _judge_images(self, cut: int, before: Any, after: Any) -> None:
        """Judge what a crash behind the first effects leaves."""
        self._files.look()
        for mode in self._settings.modes:
            for image in self._images(cut, mode):
                self._explored.images += 1
                for fault in self._faults(image, before, after):
                    is_in_order = has_names_in_order(image, self._files.journal, cut)
                    is_lost = self._is_reopened and bool(self._files.journal.failed_syncs)
                    seen = Seen(fault, is_in_order, is_lost and mode.loses_power)
                    self._note(fault, seen, cut, mode, image)

    def _images(self, cut: int, mode: Mode) -> Iterator[Image]:
        return iter(
            crash_images(
                self._files.journal,
                cut,
                mode,
                bound=IMAGES_MAX,
                sector_bytes=self._settings.sector_bytes,
                seed=self._seed,
            )
        )

    def _faults(self, image: Image, before: Any, after: Any) -> Sequence[Fault]:
        if image not in self._found:
            self._explored.loads += 1
            self._found[image] = self._loaded(image)
        found = self._found[image]
        if isinstance(found, Exception):
            return [Fault("not loaded", f"{type(found).__name__}: {found}")]
        return self._world.judge(found, before, after)

    def _loaded(self, image: Image) -> Any:
        """Return what a load finds, or its error."""
        files = MemoryFiles(CAPACITY_BYTES)
        mounted(image, files)
        try:
            return self._world.look_at(self._world.load(files), files)
        except Exception as error:
            return error

    def _note(
        self,
        fault: Fault,
        seen: Seen | None = None,
        cut: int | None = None,
        mode: Mode | None = None,
        image: Image | None = None,
    ) -> None:
        self._files.look()
        cut = len(self._files.journal) if cut is None else cut
        mode = mode or mode_named("killed")
        image = image or next(self._images(cut, mode))
        known = None if seen is None else known_number(seen)
        effects = last_effects(self._files, cut)
        self._explored.note(
            Violation(
                fault, self._seed, self._history, effects, mode, image, False, known, self._failing
            )
        )
