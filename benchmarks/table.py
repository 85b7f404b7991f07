# SPDX-License-Identifier: Apache-2.0
"""The result: rows with medians, best passes, ratios and goals, and the missed goals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

NOT_RUN = "**not run**"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured thing, in the unit of its row."""

    median: float
    best: float

    def __str__(self) -> str:
        return f"{_short(self.median)} ({_short(self.best)})"


@dataclass(frozen=True, slots=True)
class NotRun:
    """A thing that was not measured, and why."""

    reason: str

    def __str__(self) -> str:
        return NOT_RUN


Cell = Figure | NotRun


@dataclass(frozen=True, slots=True)
class Goal:
    """The goal of a row."""

    limit: float
    is_ratio: bool
    """Whether `limit` is for the ratio to the other side; otherwise for the figure itself."""
    at_least: bool = True
    """For a figure: whether it has to be at least the limit, or at most."""

    def reached(self, measured: float) -> bool:
        """Return whether the measured ratio or figure is on the right side of the limit."""
        return measured >= self.limit if self.is_ratio or self.at_least else measured <= self.limit

    def __str__(self) -> str:
        if self.is_ratio:
            return f"at least {self.limit:g} times"
        return f"at {'least' if self.at_least else 'most'} {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line: the other side, ours compiled, ours interpreted, and the goal of `compiled`."""

    what: str
    unit: str
    theirs: Cell | None
    """None where there is nothing to stand beside."""
    compiled: Cell
    interpreted: Cell | None = None
    """None where kernels play no part."""
    goal: Goal | None = None
    higher_is_better: bool = False

    @classmethod
    def of(
        cls,
        what: str,
        unit: str,
        cells: Mapping[str, Cell],
        goal: Goal | None = None,
        higher_is_better: bool = False,
    ) -> "Row":
        """Return the row of the cells `theirs` (may be missing), `compiled` and `interpreted`."""
        sides = (cells.get("theirs"), cells["compiled"], cells["interpreted"])
        return cls(what, unit, *sides, goal, higher_is_better)

    def ratio(self, ours: Cell | None) -> float | None:
        """Return how many times better the median of ours is; None if one side is missing."""
        if not (isinstance(self.theirs, Figure) and isinstance(ours, Figure)):
            return None
        if self.higher_is_better:
            return ours.median / self.theirs.median
        return self.theirs.median / ours.median

    def measured(self) -> float | None:
        """Return the figure or ratio of the goal; None if it was not measured."""
        if self.goal is None or isinstance(self.compiled, NotRun):
            return None
        return self.ratio(self.compiled) if self.goal.is_ratio else self.compiled.median

    def cells(self) -> list[str]:
        """Return the line of the table."""
        measured = self.measured()
        if self.goal is None:
            verdict = ""
        elif measured is None:
            verdict = NOT_RUN
        else:
            verdict = "yes" if self.goal.reached(measured) else "**no**"
        return [
            self.what,
            self.unit,
            _cell(self.theirs),
            _cell(self.compiled),
            _times(self.ratio(self.compiled)),
            _cell(self.interpreted),
            _times(self.ratio(self.interpreted)),
            "" if self.goal is None else str(self.goal),
            verdict,
        ]


@dataclass(slots=True)
class Section:
    """Rows under one heading."""

    title: str
    words: str
    """What was measured, and on what."""
    theirs: str
    """The name of the other side, or nothing."""
    rows: list[Row] = field(default_factory=list)
    ours: str = "compiled"
    """The name of our side."""


def _short(number: float) -> str:
    """Return three digits of a number, without an exponent."""
    if abs(number) >= 100:
        return f"{number:.0f}"
    return f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"


def _cell(cell: Cell | None) -> str:
    return "" if cell is None else str(cell)


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{_short(ratio)} x"


def section_lines(section: Section) -> list[str]:
    """Return a section as Markdown."""
    heads = ["", "unit", section.theirs, section.ours, "ratio", "interpreted", "ratio"]
    heads += ["goal", "reached"]
    cells = [heads] + [row.cells() for row in section.rows]
    # A column without a word is left out, except the first.
    kept = [0] + [n for n in range(1, len(heads)) if any(line[n] for line in cells[1:])]
    lines = [" | ".join(line[n] for n in kept) for line in cells]
    lines.insert(1, " | ".join("---" for _ in kept))
    table = [f"| {line} |".replace("|  |", "| |") for line in lines]
    return [f"## {section.title}", "", section.words, "", *table, ""]


def shortfalls(sections: Sequence[Section]) -> list[str]:
    """Return a line for each goal that was not reached or not measured, and each missing side."""
    lines = []
    for section in sections:
        for row in section.rows:
            name = f"{section.title}, {row.what}"
            measured = row.measured()
            if row.goal is not None and measured is None:
                lines.append(f"- {name}: **not run**, so the goal ({row.goal}) is not judged.")
            elif row.goal is not None and measured is not None and not row.goal.reached(measured):
                unit = "times" if row.goal.is_ratio else row.unit
                lines.append(f"- {name}: {_short(measured)} {unit}; the goal is {row.goal}.")
    return lines


def missing(sections: Sequence[Section]) -> list[str]:
    """Return the reasons for what was not run, each once."""
    reasons: dict[str, None] = {}
    for section in sections:
        for row in section.rows:
            for cell in (row.theirs, row.compiled, row.interpreted):
                if isinstance(cell, NotRun):
                    reasons[cell.reason] = None
    return [f"- {NOT_RUN}: {reason}" for reason in reasons]
