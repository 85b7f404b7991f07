# SPDX-License-Identifier: Apache-2.0
"""What to do about a finding or an error, with what doing it does to the files.

The class of a hint is declared with its words, by the function that makes the hint. A hint that
changes or removes files has three more parts: its precondition, what is lost if the precondition is
wrong, and the step that keeps a copy. Its words begin with that step.
"""

from enum import StrEnum
from typing import Self


class Effect(StrEnum):
    """What a reader who follows a hint does to files, from the least to the most."""

    READS = "reads"
    """No file changes."""
    WRITES_ELSEWHERE = "writes elsewhere"
    """New files are made in another place. Every old file stays as it is."""
    CHANGES_FILES = "changes files"
    """A file gets other content, another name or another directory."""
    REMOVES = "removes"
    """A file is removed."""


class Hint(str):
    """The words of a hint, with its class. `reads`, `writes`, `changes` and `removes` make one."""

    __slots__ = ("copy_step", "effect", "if_wrong", "only_if")

    effect: Effect
    only_if: str
    """The precondition, as a clause; empty for a hint that neither changes nor removes."""
    if_wrong: str
    """What is lost if the precondition does not hold, as a clause; empty likewise."""
    copy_step: str
    """The step that keeps a copy, which comes first; empty likewise."""

    def __new__(
        cls, words: str, effect: Effect, only_if: str = "", if_wrong: str = "", copy_step: str = ""
    ) -> Self:
        """Make a hint of its parts; the words are the whole text."""
        hint = super().__new__(cls, words)
        hint.effect, hint.only_if = effect, only_if
        hint.if_wrong, hint.copy_step = if_wrong, copy_step
        return hint

    def __reduce__(self) -> tuple[type[Self], tuple[str, Effect, str, str, str]]:
        parts = (str(self), self.effect, self.only_if, self.if_wrong, self.copy_step)
        return type(self), parts

    @property
    def action(self) -> str:
        """What to do once the copy is there, without the precondition and the loss."""
        begin, end = f"Only if {self.only_if}: ", f". If that is wrong, {self.if_wrong}"
        return self.partition(begin)[2].removesuffix(end) if self.only_if else str(self)

    @property
    def beside_copy(self) -> str:
        """The whole text for a reader who has a copy: without the step that keeps one."""
        return self.removeprefix(f"{self.copy_step}. ") if self.copy_step else str(self)

    def after(self, words: str) -> "Hint":
        """Return this hint with words before it; the words themselves only read."""
        parts = (self.effect, self.only_if, self.if_wrong, self.copy_step)
        return Hint(f"{words}{self}", *parts)


def reads(words: str) -> Hint:
    """Return a hint that lets every file as it is: to look, to compare, or to do nothing."""
    return Hint(words, Effect.READS)


def writes(words: str) -> Hint:
    """Return a hint that makes new files in another place."""
    return Hint(words, Effect.WRITES_ELSEWHERE)


def changes(words: str, *, only_if: str, if_wrong: str, copy_step: str) -> Hint:
    """Return a hint that gives a file other content, another name or another directory.

    `words` and `copy_step` begin with a verb; `only_if` and `if_wrong` are clauses.
    """
    text = _with_conditions(words, only_if, if_wrong, copy_step)
    return Hint(text, Effect.CHANGES_FILES, only_if, if_wrong, copy_step)


def removes(words: str, *, only_if: str, if_wrong: str, copy_step: str) -> Hint:
    """Return a hint that removes a file. The parts are those of `changes`."""
    text = _with_conditions(words, only_if, if_wrong, copy_step)
    return Hint(text, Effect.REMOVES, only_if, if_wrong, copy_step)


def _with_conditions(words: str, only_if: str, if_wrong: str, copy_step: str) -> str:
    parts = (words, only_if, if_wrong, copy_step)
    assert all(parts), f"a hint that changes or removes files has four parts: {parts}"
    return f"{copy_step}. Only if {only_if}: {words}. If that is wrong, {if_wrong}"
