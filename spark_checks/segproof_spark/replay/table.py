# SPDX-License-Identifier: Apache-2.0
"""The summary of a replay for people, or as JSON lines."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from segproof_harness.reports.text import printable
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named
from segproof_spark.replay.summary import Summary

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


def write_table(found: Summary, stream: TextIO) -> None:
    """Write a row for each operation, one for each structure, and the total.

    An answer is what an operation or an accessor returned; each lookup is one. `states` are those
    reached, of those that the structure has. Seconds are those of the workers.
    """
    rows = [HEAD, *map(_cells, found.rows())]
    total, states = found.total, sum(map(len, found.states.values()))
    words = ("total", "", "", total.histories, total.operations, total.answers_compared)
    rows.append(tuple(map(str, (*words, states, total.findings, f"{total.seconds:.1f}"))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if place < LEFT else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        stream.write(printable("  ".join(cells).rstrip()) + "\n")


def _cells(row: Mapping[str, Any]) -> Sequence[str]:
    numbers = (str(row[name]) for name in ("histories", "operations", "answers_compared"))
    states = _states(row["structure"], row["states_reached"]) if "states_reached" in row else ""
    end = (states, str(row["findings"]), f"{row['seconds']:.1f}")
    return (row["structure"], row["profile"], row["operation"] or "(all)", *numbers, *end)


def _states(structure: str, reached: Mapping[str, int]) -> str:
    """Return how many states were reached, of those that this version knows."""
    if structure not in STRUCTURE_IDS:
        return str(len(reached))
    return f"{len(reached)}/{len(structure_named(structure).sometimes)}"


def write_rows(rows: Iterable[Mapping[str, Any]], stream: TextIO) -> None:
    """Write the rows of a summary as JSON, one a line."""
    for row in rows:
        stream.write(json.dumps(row) + "\n")
