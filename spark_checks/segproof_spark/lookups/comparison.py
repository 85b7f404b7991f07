# SPDX-License-Identifier: Apache-2.0
"""A unit of lookups, its questions, and the comparison of the answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from segproof.commands import command_line
from segproof.findings import Finding, Severity
from segproof_spark.lookups.ranges import rows_of
from segproof_spark.result_rows import finding_row

FINDINGS_MAX = 3
"""So many findings of one unit are kept; the others are counted."""
HINT = "one of the two is wrong: the lookup, or the definition"


@dataclass(frozen=True, slots=True)
class Unit:
    """The lookups of one index or log: these names suffice for any process to do them."""

    structure: str
    seed: int
    index: int
    """Number of the drawn one; of a real one, of the part of its lookups or of its log."""
    count: int
    """Number of lookups; each key and its neighbours are always looked up."""
    path: str = ""
    """Of a real one; empty: drawn."""
    query: str = ""
    """The query of the path's URL, after its `?`."""
    subject: str = ""
    """`package.module:Class` in place of the implementation's class; empty: the implementation's.
    """
    geometry: tuple[int, int] = (0, 0)
    """Slots and entries of an index file of RocketMQ."""
    segments: tuple[int, ...] = ()
    """Base offsets of the segments of a real log."""

    @property
    def source(self) -> str:
        """The structure and kind of lookup, in one word."""
        return self.path or f"generated:{self.structure}:{self.seed}:{self.index}"

    @property
    def command(self) -> str:
        """The command line that does this unit again, without Spark."""
        words = ["segproof", "spark", "lookups"]
        if self.path:
            words.append(self.path + (f"?{self.query}" if self.query else ""))
        words += ["--structure", self.structure, "--seed", str(self.seed)]
        words += ["--index", str(self.index), "--count", str(self.count)]
        if self.subject:
            words += ["--subject", self.subject]
        return command_line(*words, "--local")

    def opened(self, usual: Any) -> Any:
        """Return the class to open: the unit's subject, or the usual one. Raises: ValueError."""
        return named_class(self.subject) if self.subject else usual


@dataclass(frozen=True, slots=True)
class Question:
    """Targets, their right answers by the definition, and the call that looks them up."""

    law: str
    call: str
    """What is called, as a finding shows it."""
    targets: Sequence[Any] | np.ndarray[Any, Any]
    expected: Sequence[Any]
    """Arrays that `ask` must return."""
    ask: Callable[[], Sequence[Any]]
    counted: tuple[str, ...] = ("lookups",)
    """The counters of `Comparison` to which the targets are added."""
    rows: Callable[[Any], list[Any]] = rows_of
    """Makes arrays into one answer for each target."""


def one_by_one(
    law: str,
    call: str,
    targets: Sequence[Any],
    answers: list[Any],
    ask: Callable[[Any], Any],
    counted: str,
) -> Question:
    """Return the question that asks a single lookup, or the model, for each target."""
    return Question(law, call, targets, answers, lambda: list(map(ask, targets)), (counted,), list)


@dataclass(slots=True)
class Comparison:
    """The lookups of one unit, compared and counted."""

    unit: Unit
    lookups: int = 0
    """Answers of bulk lookups compared with the definition."""
    by_model: int = 0
    """Of these targets, how many the model was asked too."""
    by_single: int = 0
    """Of these targets, how many the single lookup was asked too."""
    differing: int = 0
    entries: int = 0
    """How many entries, batches or messages are asked for."""
    seconds: float = 0.0
    worker_peak_bytes: int = 0
    """The most memory that this process has had so far."""
    notes: list[str] = field(default_factory=list)
    """The lookups that were left out, with the reasons."""
    findings: list[Finding] = field(default_factory=list)
    """The first answers that differ, at most FINDINGS_MAX."""

    def compare(self, question: Question) -> None:
        """Ask, and compare every answer. Raises: OSError, where a file cannot be read."""
        law, call, count = question.law, question.call, len(question.targets)
        for counter in question.counted:
            setattr(self, counter, getattr(self, counter) + count)
        try:
            found = question.ask()
            answers = question.rows(found) if _differ(found, question.expected) else None
        except OSError:
            raise
        except Exception as error:
            self.tell(law, f"{call} raises", "answers", repr(error), count=count)
            return
        if answers is None:
            return
        if len(answers) != count:
            self.tell(law, f"{call} gives another number of answers", count, len(answers))
            return
        rights = question.rows(question.expected)
        for target, right, answer in zip(question.targets, rights, answers, strict=True):
            if right != answer:
                self.tell(law, f"{call} for {target}", right, answer)

    def tell(self, law: str, message: str, expected: Any, actual: Any, *, count: int = 1) -> None:
        """Count so many answers that differ, and add a finding if there is room."""
        self.differing += count
        if len(self.findings) >= FINDINGS_MAX:
            return
        right, found = _shown(expected), _shown(actual)
        words = f"{message}: {found}, by the definition {right}"
        path, line = self.unit.source, self.unit.command
        self.findings.append(
            Finding(
                law,
                Severity.ERROR,
                self.unit.structure,
                path,
                None,
                right,
                found,
                words,
                HINT,
                line,
            )
        )

    def row(self) -> dict[str, Any]:
        """Return the row of results of this unit."""
        names = ("lookups", "by_model", "by_single", "differing", "entries", "seconds")
        return {name: getattr(self, name) for name in (*names, "worker_peak_bytes")} | {
            "structure": self.unit.structure,
            "source": self.unit.source,
            "index": self.unit.index,
            "notes": "; ".join(self.notes),
            "findings": [finding_row(finding.to_json()) for finding in self.findings],
        }


def _differ(found: Sequence[Any], expected: Sequence[Any]) -> bool:
    return len(found) != len(expected) or not all(map(np.array_equal, found, expected))


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def named_class(name: str) -> Any:
    """Return the class of a name `package.module:Class`. Raises: ValueError."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"no class {name!r}, as package.module:Class: {error}") from error
    if not isinstance(found, type):
        raise ValueError(f"{name!r} is no class")
    return found
