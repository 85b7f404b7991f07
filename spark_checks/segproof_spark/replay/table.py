# SPDX-License-Identifier: Apache-2.0
"""The summary of a replay for people, or as JSON lines."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from segproof_harness.reports.terminal import bare_table
from segproof_harness.reports.text import printable
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named
from segproof_spark.replay.summary import Summary

if TYPE_CHECKING:
    from rich.table import Table

HEAD = (
    "structure",
    "profile",
    "operation",
    "histories",
    "operations",
    "answers compared",
    "states",
    "findings",
    "seconds",
)
LEFT = 3
"""So many columns are words, on the left; the others are numbers."""
ALL_OPERATIONS = "(all)"
NAME_COLUMNS = 12
"""The least that a name gets."""
WHOLE = 10_000
"""Columns of what is no terminal: no line is broken there."""


def write_table(found: Summary, stream: TextIO) -> None:
    """Write a row for each structure, one for each operation of it, and the total.

    An answer is what an operation or an accessor returned; each lookup is one. `states` are those
    reached, of those that the structure has. Seconds are those of the workers. On a terminal
    without room for all columns the operations are indented below the name of their structure.
    """
    from rich.console import Console

    rows = [HEAD, *map(_cells, found.rows())]
    total, states = found.total, sum(map(len, found.states.values()))
    words = ("total", "", "", total.histories, total.operations, total.answers_compared)
    rows.append(tuple(map(str, (*words, states, total.findings, f"{total.seconds:.1f}"))))
    console = Console(file=stream, highlight=False, legacy_windows=False)
    if not stream.isatty():
        console.width = WHOLE
    table = _table(rows, LEFT)
    unbroken = console.options.update(max_width=WHOLE)
    if console.measure(table, options=unbroken).maximum > console.width:
        table = _narrow_table(rows, console.width)
    console.print(table)


def _table(rows: "Sequence[Sequence[str]]", left: int) -> "Table":
    """Return rows below a head; the first `left` columns are words."""
    from rich.text import Text

    table = bare_table()
    for place, name in enumerate(rows[0]):
        table.add_column(name, justify="left" if place < left else "right", overflow="fold")
    for row in rows[1:]:
        table.add_row(*(Text("\n".join(map(printable, cell.split("\n")))) for cell in row))
    return table


def _narrow_table(rows: "Sequence[Sequence[str]]", width: int) -> "Table":
    """Return rows with one column of words; a long name goes on behind one of its underscores."""
    head, *others = ([name.replace(" ", "\n") for name in row[LEFT:]] for row in rows)
    cells = [*zip(*([max(name.split("\n"), key=len) for name in head], *others), strict=True)]
    room = max(NAME_COLUMNS, width - sum(1 + max(map(len, column)) for column in cells))
    names = (broken_name(_short_name(row), room) for row in rows)
    table = _table([[name, *row] for name, row in zip(names, [head, *others], strict=True)], 1)
    table.padding = (0, 1, 0, 0)
    return table


def broken_name(name: str, columns: int) -> str:
    """Return a name on lines of so many columns, broken behind blanks and underscores.

    >>> print(broken_name("  truncate_fully_and_start_at", 20))
      truncate_fully_
        and_start_at
    """
    lines = [""]
    for part in re.split(r"(?<=[_ ])(?=[^_ ])", name):
        if len(lines[-1]) + len(part.rstrip()) > columns and lines[-1].strip():
            lines.append("    ")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _short_name(row: "Sequence[str]") -> str:
    """Return one name for the words of a row: an operation, or else its structure and profile."""
    structure, profile, operation = row[:LEFT]
    if row is HEAD:
        return operation
    if operation in ("", ALL_OPERATIONS):
        return f"{structure} {profile}".rstrip()
    return f"  {operation}"


def _cells(row: Mapping[str, Any]) -> Sequence[str]:
    numbers = (str(row[name]) for name in ("histories", "operations", "answers_compared"))
    states = _states(row["structure"], row["states_reached"]) if "states_reached" in row else ""
    end = (states, str(row["findings"]), f"{row['seconds']:.1f}")
    return (row["structure"], row["profile"], row["operation"] or ALL_OPERATIONS, *numbers, *end)


def _states(structure: str, reached: Mapping[str, int]) -> str:
    """Return how many states were reached, of those that this version knows."""
    if structure not in STRUCTURE_IDS:
        return str(len(reached))
    return f"{len(reached)}/{len(structure_named(structure).sometimes)}"


def write_rows(rows: Iterable[Mapping[str, Any]], stream: TextIO) -> None:
    """Write the rows of a summary as JSON, one a line."""
    for row in rows:
        stream.write(json.dumps(row) + "\n")
