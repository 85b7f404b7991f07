# SPDX-License-Identifier: Apache-2.0
"""What a unit of lookups has compared, and the findings of the first answers that differ."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from segproof.findings import Finding, Severity
from segproof_spark.lookups.drawing import Int64Array

__all__ = ["FINDINGS_MAX", "Comparison", "named_class"]

FINDINGS_MAX = 3
"""So many findings of one unit are kept; the others are counted."""
HINT = "one of the two is wrong: the lookup, or the definition"


@dataclass(slots=True)
class Comparison:
    """The lookups of one unit: counted, compared, and told of where they differ."""

    structure: str
    path: str
    """The file or directory that was asked; of a generated one, where its bytes come from."""
    command: str
    """What asks the same again."""
    lookups: int = 0
    """Answers compared with the definition."""
    by_model: int = 0
    """Of these targets, how many the model was asked too."""
    by_single: int = 0
    """Of these targets, how many the single twin of the lookup was asked too."""
    differing: int = 0
    entries: int = 0
    """How many entries, batches or messages are asked for."""
    notes: list[str] = field(default_factory=list)
    """What was left out, and why."""
    findings: list[Finding] = field(default_factory=list)

    def compare(
        self,
        law: str,
        call: str,
        targets: Sequence[Any] | Int64Array,
        expected: Sequence[Int64Array],
        ask: Callable[[], Sequence[Any]],
    ) -> None:
        """Compare arrays of answers, one for each part, with what they must be."""
        self.lookups += len(targets)
        answers = self._asked(law, call, targets, ask)
        if answers is None:
            return
        parts = [np.asarray(part) for part in answers]
        if any(part.shape != right.shape for part, right in zip(parts, expected, strict=True)):
            shapes = [part.shape for part in parts]
            self.tell(law, f"{call} gives arrays of {shapes}", f"{len(targets)} each", str(shapes))
            return
        wrong = np.zeros(len(targets), bool)
        for part, right in zip(parts, expected, strict=True):
            wrong |= part != right
        for place in np.flatnonzero(wrong)[:FINDINGS_MAX].tolist():
            right_one = tuple(int(right[place]) for right in expected)
            found = tuple(int(part[place]) for part in parts)
            self.tell(law, f"{call} for {targets[place]}", right_one, found, count=0)
        self.differing += int(np.count_nonzero(wrong))

    def compare_one(self, law: str, call: str, expected: Any, ask: Callable[[], Any]) -> None:
        """Compare one answer, of the model or of a single lookup."""
        try:
            found = ask()
        except OSError:  # the file is gone, which is told as such
            raise
        except Exception as error:
            self.tell(law, call, expected, repr(error))
            return
        if found != expected:
            self.tell(law, call, expected, found)

    def _asked(
        self,
        law: str,
        call: str,
        targets: Sequence[Any] | Int64Array,
        ask: Callable[[], Sequence[Any]],
    ) -> Sequence[Any] | None:
        try:
            return ask()
        except OSError:
            raise
        except Exception as error:
            self.tell(law, f"{call} raises", "answers", repr(error), count=len(targets))
            return None

    def tell(self, law: str, message: str, expected: Any, actual: Any, *, count: int = 1) -> None:
        """Add a finding, if there is room, and count it as so many answers that differ."""
        self.differing += count
        if len(self.findings) >= FINDINGS_MAX:
            return
        words = f"{message}: {_shown(actual)}, by the definition {_shown(expected)}"
        self.findings.append(
            Finding(
                law,
                Severity.ERROR,
                self.structure,
                self.path,
                None,
                _shown(expected),
                _shown(actual),
                words,
                HINT,
                self.command,
            )
        )


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
