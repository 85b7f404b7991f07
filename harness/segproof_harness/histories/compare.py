# SPDX-License-Identifier: Apache-2.0
"""Run a history on subjects beside the model; the first divergence becomes a finding.

Each subject is compared with the model under the subject's own profile. Where the first subject is
named `model:PROFILE`, all others are compared with that one.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from time import perf_counter
from typing import Any

from segproof.findings import Finding, Severity
from segproof_harness.histories.time_limit import time_limit
from segproof_harness.histories.traces import Trace
from segproof_harness.laws import every_law  # noqa: F401 - the register has all laws then
from segproof_harness.releases.release_subject import OracleSubject
from segproof_harness.structures.operations import Operation, to_json_value
from segproof_harness.structures.outcomes import Outcome
from segproof_harness.structures.reached_states import Sometimes
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import Structure
from segproof_harness.subjects.base import Subject
from segproof_harness.subjects.model import ModelSubject
from segproof_model.language.states import State, is_same_but_for_files
from segproof_model.laws.register import broken_state_laws, broken_step_laws
from segproof_model.releases import release_named

IMAGE_EVERY = 10
"""In workloads the images are compared at least every so many steps, and at the end."""
HISTORY_SECONDS = 20.0
"""A history that takes longer has a call that does not end."""


@dataclass(slots=True)
class OperationCounters:
    """How much was compared by one operation; the opening is the operation `open`."""

    histories: int = 0
    """Histories that have it."""
    operations: int = 0
    answers_compared: int = 0
    """Its answers, and the accessors that were compared beside the images after it."""
    findings: int = 0
    seconds: float = 0.0
    """What it took to execute it everywhere, and to compare and judge what it left."""

    def add(self, other: "OperationCounters") -> None:
        """Add another run's figures."""
        self.histories += other.histories
        self.operations += other.operations
        self.answers_compared += other.answers_compared
        self.findings += other.findings
        self.seconds += other.seconds


@dataclass(slots=True)
class Counters:
    """How much was compared."""

    histories: int = 0
    operations: int = 0
    answers_compared: int = 0
    images_compared: int = 0
    bytes_compared: int = 0
    sometimes: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    """Operations that were drawn and that a release is not asked, by name."""
    by_operation: dict[str, OperationCounters] = field(default_factory=dict)
    """The same by operation; the openings are `open`, which `operations` leaves out."""

    def of(self, name: str) -> OperationCounters:
        """Return the figures of one operation."""
        if name not in self.by_operation:
            self.by_operation[name] = OperationCounters()
        return self.by_operation[name]

    def add(self, other: "Counters") -> None:
        """Add another run's figures."""
        self.histories += other.histories
        self.operations += other.operations
        self.answers_compared += other.answers_compared
        self.images_compared += other.images_compared
        self.bytes_compared += other.bytes_compared
        self.sometimes.update(other.sometimes)
        self.left_out.update(other.left_out)
        for name, counted in other.by_operation.items():
            self.of(name).add(counted)

    def to_json(self) -> dict[str, Any]:
        """Return the figures by name."""
        return {
            "histories": self.histories,
            "operations": self.operations,
            "answers_compared": self.answers_compared,
            "images_compared": self.images_compared,
            "bytes_compared": self.bytes_compared,
            "sometimes": dict(sorted(self.sometimes.items())),
            "by_operation": {
                name: asdict(counted) for name, counted in sorted(self.by_operation.items())
            },
        }


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a subject and the model part, or the model breaks a law."""

    subject: str
    step: int
    """Number of the operation, from 1; 0 is the opening."""
    operation: Operation
    law: str
    what: str
    """`answer`, `accessor NAME`, `bytes`, `files`, `law`."""
    expected: Any
    actual: Any
    path: str | None = None
    position: int | None = None
    detail: str = ""

    def message(self) -> str:
        """Return the divergence in words."""
        where = f"step {self.step}, {self.operation!r}"
        if self.what == "law":
            return f"{where}: the model itself breaks {self.law}"
        told = f" ({self.detail})" if self.detail else ""
        return (
            f"{where}: {self.what} of {self.subject} is {_short(self.actual)}{told}, "
            f"expected {_short(self.expected)}"
        )

    def to_finding(self, structure_id: str, reproduce: str) -> Finding:
        """Return the finding."""
        return Finding(
            law=self.law,
            severity=Severity.ERROR,
            structure=structure_id,
            path=self.path or self.subject,
            position=self.position,
            expected=_shown(self.expected),
            actual=_shown(self.actual),
            message=self.message(),
            hint=f"read what the law says: `segproof explain {self.law}`",
            reproduce=reproduce,
        )


@dataclass(frozen=True, slots=True)
class Parting:
    """Where the model under two profiles first differs in a history."""

    profile_name: str
    other: str
    step: int
    operation_name: str
    expected: Outcome | None
    """None where the answers are the same and the files are not."""
    actual: Outcome | None

    @property
    def kind(self) -> tuple[str, ...]:
        """What partings that one behaviour explains have in common."""
        answers = (self.expected, self.actual)
        kinds = (
            "same" if one is None else one.error or type(one.value).__name__ for one in answers
        )
        return self.profile_name, self.other, self.operation_name, *kinds


def _shown(value: Any) -> str:
    """Return a value as one line of JSON: a finding holds words and numbers only."""
    plain = value.to_json() if isinstance(value, Outcome) else to_json_value(value)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _is_as_before(part: Any, before: Any) -> bool:
    """Return whether a part is what it was, its own files included."""
    if part is before:
        return True
    if type(part) is not type(before):
        return False
    if not isinstance(part, State):
        return bool(part == before)
    if not is_same_but_for_files(part, before):
        return False
    now, then = vars(part)["files"].images, vars(before)["files"].images
    return now is then or all(now.get(name) == then.get(name) for name in _file_names(part))


def _file_names(part: Any) -> Iterable[str]:
    """Return the names of a part's files: every text that it holds may be one."""
    texts = (value for value in vars(part).values() if type(value) is str)
    return part.names if hasattr(type(part), "names") else texts


class _Judged:
    """The state laws of one state after another; what is as it was keeps its verdict."""

    def __init__(self, structure: Structure) -> None:
        self._parts_of = structure.parts
        self._state: Any = None
        """The last state, if it kept the laws."""
        self._parts: tuple[Any, ...] = ()
        """What it held of other structures."""

    def broken_by(self, state: Any) -> list[str]:
        """Return the ids of the state laws that a state or one of its parts breaks."""
        if state is self._state:
            return []
        parts = tuple(self._parts_of(state))
        broken = broken_state_laws(state)
        for part, before in zip_longest(parts, self._parts[: len(parts)]):
            if not _is_as_before(part, before):
                broken += broken_state_laws(part)
        self._state, self._parts = (None, ()) if broken else (state, parts)
        return broken


class Comparison:
    """Subjects that go through histories side by side with the model."""

    def __init__(
        self,
        structure: Structure,
        profile_name: str,
        subjects: Sequence[Subject],
        *,
        image_every: int = IMAGE_EVERY,
    ) -> None:
        self.structure = structure
        self.guide = ModelSubject(structure, release_named(profile_name))
        """The model of the history's release: draws are made from its state."""
        self.counters = Counters()
        self._image_every = image_every
        self.parting: Parting | None = None
        """Where the references of this history first differ."""
        self.watch: Callable[[int, Operation, Mapping[str, Outcome]], None] | None = None
        """Called with each step and everybody's answer to it, by name."""
        self._step = 0
        self._seen: set[str] = set()
        """The operations of this history."""
        self._sometimes = Sometimes(structure)
        self.counters.sometimes = self._sometimes.counts
        references = {profile_name: self.guide}
        explicit = subjects[0] if subjects and subjects[0].name.startswith("model:") else None
        self._pairs: list[tuple[Subject, ModelSubject]] = []
        for subject in subjects:
            if subject is explicit or subject.name == "model":
                continue
            wanted = subject.profile_name if explicit is None else explicit.profile_name
            if wanted not in references:
                references[wanted] = ModelSubject(structure, release_named(wanted))
            self._pairs.append((subject, references[wanted]))
        self._references = tuple(references.values())
        self._oracles = tuple(one for one in subjects if isinstance(one, OracleSubject))
        self._judged = {name: _Judged(structure) for name in references}
        """By profile: what of the last state need not be judged again."""

    def take_counters(self) -> Counters:
        """Return what was counted since the last call, and begin to count anew."""
        taken, self.counters = self.counters, Counters()
        self._sometimes.counts = self.counters.sometimes
        return taken

    def start(self, setup: Setup) -> Divergence | None:
        """Open everywhere."""
        self.counters.histories += 1
        self._step = 0
        self.parting = None
        self._seen.clear()
        return self._counted(setup.to_operation(), lambda: self._start(setup))

    def _start(self, setup: Setup) -> Divergence | None:
        expected = {
            reference.profile_name: reference.start(setup) for reference in self._references
        }
        opening = setup.to_operation()
        answers = [(subject.start(setup), subject, wanted) for subject, wanted in self._pairs]
        return self._after(opening, expected, answers, with_images=True)

    def apply(self, operation: Operation) -> Divergence | None:
        """Execute one operation everywhere and compare."""
        self._step += 1
        self.counters.operations += 1
        return self._counted(operation, lambda: self._apply(operation))

    def _counted(
        self, operation: Operation, execute: Callable[[], Divergence | None]
    ) -> Divergence | None:
        """Execute an operation, and count what was compared meanwhile as its own."""
        counted, answers = self.counters.of(operation.name), self.counters.answers_compared
        started = perf_counter()
        found = execute()
        counted.seconds += perf_counter() - started
        counted.operations += 1
        counted.answers_compared += self.counters.answers_compared - answers
        counted.findings += found is not None
        if operation.name not in self._seen:
            self._seen.add(operation.name)
            counted.histories += 1
        return found

    def _apply(self, operation: Operation) -> Divergence | None:
        expected: dict[str, Outcome] = {}
        for reference in self._references:
            expected[reference.profile_name] = reference.apply(operation)
        answers = []
        for subject, wanted in self._pairs:
            answers.append((subject.apply(operation), subject, wanted))
        return self._after(operation, expected, answers, self._step % self._image_every == 0)

    def _after(
        self,
        operation: Operation,
        expected: Mapping[str, Outcome],
        answers: Iterable[tuple[Outcome, Subject, ModelSubject]],
        with_images: bool,
    ) -> Divergence | None:
        assert self.guide.event is not None
        self._sometimes.see(self.guide.event)
        for reference in self._references:
            broken = self._broken_law(operation, reference)
            if broken is not None:
                return broken
        if len(self._references) > 1 and self.parting is None:
            self._part(operation, expected, with_images)
        if self.watch is not None:
            answers = tuple(answers)
            given = {subject.name: answer for answer, subject, _ in answers}
            models = {f"model:{name}": answer for name, answer in expected.items()}
            self.watch(self._step, operation, models | given)
        for actual, subject, reference in answers:
            self.counters.answers_compared += 1
            wanted = expected[reference.profile_name]
            if actual != wanted:
                return Divergence(
                    subject.name,
                    self._step,
                    operation,
                    self._law_of(operation, wanted, actual),
                    "answer",
                    wanted,
                    actual,
                    detail=actual.detail,
                )
        return self.compare_images(operation) if with_images else None

    def _part(
        self, operation: Operation, expected: Mapping[str, Outcome], with_images: bool
    ) -> None:
        """Note where a reference first differs from the guide."""
        name = self.guide.profile_name
        for other in self._references[1:]:
            one, two = expected[name], expected[other.profile_name]
            place = name, other.profile_name, self._step, operation.name
            if one != two:
                self.parting = Parting(*place, one, two)
            elif with_images and self.guide.image() != other.image():
                self.parting = Parting(*place, None, None)

    def _law_of(self, operation: Operation, *answers: Outcome) -> str:
        """Return the law that speaks of an operation, or of the error that it should raise."""
        kind = self.structure.operation(operation.name)
        if kind is None:
            return self.structure.laws[0]
        errors = [answer.error or "" for answer in answers]
        known = [kind.errors[error] for error in errors if error in kind.errors]
        return [*known, *kind.laws, self.structure.laws[0]][0]

    def _broken_law(self, operation: Operation, reference: ModelSubject) -> Divergence | None:
        broken: list[str] = []
        if reference.state is not None:
            broken += self._judged[reference.profile_name].broken_by(reference.state)
        for transition in reference.transitions:
            broken += broken_step_laws(transition)
        if not broken:
            return None
        return Divergence(
            f"model:{reference.profile_name}",
            self._step,
            operation,
            broken[0],
            "law",
            "the law holds",
            ", ".join(broken),
        )

    def compare_images(self, operation: Operation) -> Divergence | None:
        """Compare the accessors, and every byte of every file.

        A JVM that had to be ended leaves none: that it hung or died is an answer, compared before.
        """
        for subject, reference in self._pairs:
            if isinstance(subject, OracleSubject) and subject.is_lost:
                continue
            found = self._accessors(operation, subject, reference) or self._images(
                operation, subject, reference
            )
            if found is not None:
                return found
        return None

    def _accessors(
        self, operation: Operation, subject: Subject, reference: ModelSubject
    ) -> Divergence | None:
        actual = subject.observe()
        unseen = subject.absent.unobserved if isinstance(subject, OracleSubject) else ()
        for name, wanted in reference.observe().items():
            if name in unseen:
                continue
            self.counters.answers_compared += 1
            if actual.get(name) != wanted:
                law, seen = self._law_of(operation), actual.get(name)
                return Divergence(
                    subject.name, self._step, operation, law, f"accessor {name}", wanted, seen
                )
        return None

    def _images(
        self, operation: Operation, subject: Subject, reference: ModelSubject
    ) -> Divergence | None:
        expected, actual = reference.image(), subject.image()
        self.counters.images_compared += 1
        self.counters.bytes_compared += sum(map(len, expected.values()))
        if expected == actual:
            return None
        law = self._law_of(operation)
        if set(expected) != set(actual):
            here, there = tuple(sorted(expected)), tuple(sorted(actual))
            return Divergence(subject.name, self._step, operation, law, "files", here, there)
        name = min(name for name in expected if expected[name] != actual[name])
        position = first_difference(expected[name], actual[name])
        return Divergence(
            subject.name,
            self._step,
            operation,
            law,
            f"bytes of {name} (lengths {len(expected[name])} and {len(actual[name])}) "
            f"from {position} on",
            expected[name][position : position + 16],
            actual[name][position : position + 16],
            name,
            position,
        )

    def finish(self) -> Divergence | None:
        """Compare the images at the end of a history."""
        if self._step % self._image_every == 0:
            return None
        assert self.guide.event is not None
        operation = self.guide.event.operation
        counted, answers = self.counters.of(operation.name), self.counters.answers_compared
        found = self.compare_images(operation)
        counted.answers_compared += self.counters.answers_compared - answers
        counted.findings += found is not None
        return found

    @property
    def release_names(self) -> tuple[str, ...]:
        """The real releases among the subjects: they take histories whole, drawn before."""
        return tuple(oracle.name for oracle in self._oracles)

    @property
    def left_out(self) -> frozenset[str]:
        """Operations that not all subjects have; histories for them are drawn without these."""
        return frozenset().union(*(oracle.absent.left_out for oracle in self._oracles))

    def run(self, trace: Trace, seconds: float = HISTORY_SECONDS) -> Divergence | None:
        """Go through a whole history; return the first divergence.

        Raises: ValueError for an operation that a release has not.
        """
        for oracle in self._oracles:
            oracle.prepare(trace.setup, trace.operations, self._image_every)
        with time_limit(seconds):
            found = self.start(trace.setup)
            for operation in trace.operations:
                if found is not None:
                    return found
                found = self.apply(operation)
            return found or self.finish()


def first_difference(one: bytes, other: bytes) -> int:
    """Return the first place in which two different byte strings differ.

    >>> first_difference(b"abc", b"abd"), first_difference(b"ab", b"abc")
    (2, 2)
    """
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))
