# SPDX-License-Identifier: Apache-2.0
"""The real class of one release as a subject.

A history that is known whole is sent whole, and what the real class answered is played back step by
step. Where operations come one by one, as in a machine, they are asked one by one.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from segproof_harness.releases.child_messages import (
    Absent,
    Look,
    PlainSeen,
    from_plain_seen,
    plain_calls,
    plain_setup,
    reason_without,
)
from segproof_harness.releases.pinned import Release
from segproof_harness.releases.process import NoAnswerError, OracleProcess, process_for
from segproof_harness.releases.readiness import readiness
from segproof_harness.structures.operations import Operation
from segproof_harness.structures.outcomes import Outcome
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import Structure

STEP_SECONDS = 5.0
"""How long one operation may take in the JVM."""
OPENING_SECONDS = 10.0
"""How long an opening may take, the first of which loads the classes."""
HISTORY_SECONDS = 60.0
"""How long a whole history may take there."""
NO_ANSWER = "endless"
"""The kind of error of an operation that never answers: a walk that does not end."""
DIED = "died"
"""The kind of error of an operation in which the JVM dies."""


class OracleSubject:
    """The real class.

    Raises: ValueError for a release of another system, without an adapter, or without what it needs
    to run here.
    """

    def __init__(self, structure: Structure, release: Release) -> None:
        structure.check_profile(release.name)
        reason = reason_without(structure.structure_id, release)
        if reason is not None:
            raise ValueError(f"{release.name}: {reason}")
        ready = readiness(release)
        if not ready.is_ready:
            raise ValueError(f"{release.name}: oracle: not run: {ready.why}")
        self.structure = structure
        self.name = release.name
        self.profile_name = release.name
        self._process: OracleProcess = process_for(release.name)
        self._played: Iterator[PlainSeen] | None = None
        self._look: Look | None = None
        self.is_lost = False
        """Whether the JVM hung or died in this history."""
        self._is_stepping = False
        """Whether the JVM has a history open that goes step by step."""

    @cached_property
    def absent(self) -> Absent:
        """What the real class has not."""
        # The first question: what it needs of the JVM is loaded now.
        found: Absent = self._ask("absent", self.structure.structure_id, seconds=HISTORY_SECONDS)
        return found

    def _ask(self, name: str, *arguments: Any, seconds: float | None = None) -> Any:
        """Ask the child, for `STEP_SECONDS` unless told otherwise."""
        limit = STEP_SECONDS if seconds is None else seconds
        return self._process.ask(name, *arguments, seconds=limit)

    def prepare(self, setup: Setup, operations: Sequence[Operation], image_every: int) -> None:
        """Let the real class run a whole history; the following calls play it back.

        Where it does not end, the calls that follow are asked one by one instead: so the operation
        that hangs is found. Raises ValueError for an operation that the real class has not.
        """
        absent = {operation.name for operation in operations} & self.absent.left_out
        if absent:
            raise ValueError(f"{self.name} has no operation {', '.join(sorted(absent))}")
        self.stop()
        try:
            seen = self._ask(
                "history",
                self.structure.structure_id,
                plain_setup(setup),
                plain_calls(operations),
                image_every,
                seconds=HISTORY_SECONDS,
            )
        except NoAnswerError:
            return
        self._played = iter(seen)

    def start(self, setup: Setup) -> Outcome:
        """Begin with the setup's files, and open."""
        self.is_lost = False
        if self._played is not None:
            return self._next()
        self._is_stepping = True
        return self._asked("start", self.structure.structure_id, setup, seconds=OPENING_SECONDS)

    def apply(self, operation: Operation) -> Outcome:
        """Execute one operation."""
        if self._played is not None:
            return self._next()
        if self.is_lost:
            return Outcome.NOT_OPEN
        return self._asked("apply", operation)

    def _next(self) -> Outcome:
        assert self._played is not None
        outcome, self._look = from_plain_seen(next(self._played))
        return outcome

    def _asked(self, name: str, *arguments: Any, seconds: float | None = None) -> Outcome:
        self._look = None
        try:
            outcome: Outcome = self._ask(name, *arguments, seconds=seconds)
        except NoAnswerError as error:
            self.is_lost = True
            return Outcome(error=DIED if error.died else NO_ANSWER, detail=str(error))
        return outcome

    def _seen(self) -> Look:
        if self._look is None:
            self._look = Look({}, {}) if self.is_lost else self._ask("look")
        return self._look

    def observe(self) -> Mapping[str, Outcome]:
        """Return the accessors of the open object."""
        return self._seen().observed

    def image(self) -> Mapping[str, bytes]:
        """Return the files of the real class's directory."""
        return self._seen().image

    def describe(self) -> str:
        """Return the release."""
        return f"the real classes of {self.name}"

    def stop(self) -> None:
        """Forget the history."""
        if self._is_stepping and not self.is_lost:
            with contextlib.suppress(NoAnswerError):
                self._ask("stop")
        self._played = self._look = None
        self.is_lost = self._is_stepping = False
