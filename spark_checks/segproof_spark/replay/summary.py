# SPDX-License-Identifier: Apache-2.0
"""What a replay compared, by structure, profile and operation, and what it found.

The rows of results are added up where they are, on the cluster or batch by batch from Parquet; the
driver sees the sums only, and at most so many findings.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from segproof_spark.result_rows import finding_of_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["FINDINGS_MAX", "Figures", "Summary", "summary"]

FINDINGS_MAX = 100
"""Findings that are brought to the driver; the others are counted."""
HISTORY, OPERATION, STATE = "history", "operation", "state"
"""What a sum is of: whole histories, one operation, one of the states to be reached."""


@dataclass(slots=True)
class Figures:
    """How much was compared."""

    histories: int = 0
    """Histories, or those that have the operation; of a state, how often it was reached."""
    operations: int = 0
    answers_compared: int = 0
    images_compared: int = 0
    bytes_compared: int = 0
    findings: int = 0
    seconds: float = 0.0
    """Time in the workers, one after the other: with n cores n seconds each second."""
    worker_peak_bytes: int = 0
    """The most memory that a worker has held."""

    def add(self, other: "Figures") -> None:
        """Add another sum."""
        self.histories += other.histories
        self.operations += other.operations
        self.answers_compared += other.answers_compared
        self.images_compared += other.images_compared
        self.bytes_compared += other.bytes_compared
        self.findings += other.findings
        self.seconds += other.seconds
        self.worker_peak_bytes = max(self.worker_peak_bytes, other.worker_peak_bytes)


FIGURES = tuple(item.name for item in fields(Figures))


@dataclass(slots=True)
class Summary:
    """What a replay compared and found."""

    total: Figures = field(default_factory=Figures)
    by_structure: dict[tuple[str, str], Figures] = field(default_factory=dict)
    """By structure and profile."""
    by_operation: dict[tuple[str, str, str], Figures] = field(default_factory=dict)
    """By structure, profile and operation; the opening is the operation `open`."""
    states: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """By structure and profile: how often each state was reached."""
    findings: list[dict[str, Any]] = field(default_factory=list)

    @property
    def findings_cut(self) -> int:
        """Findings that there were too many to bring here."""
        return self.total.findings - len(self.findings)

    @property
    def histories(self) -> int:
        """Histories that were run."""
        return self.total.histories

    @property
    def operations(self) -> int:
        """Operations in them."""
        return self.total.operations

    @property
    def answers_compared(self) -> int:
        """Answers and accessors compared."""
        return self.total.answers_compared

    @property
    def bytes_compared(self) -> int:
        """Bytes of files compared."""
        return self.total.bytes_compared

    def add(self, structure: str, profile: str, kind: str, name: str, figures: Figures) -> None:
        """Add a sum of one kind: `history`, `operation` or `state`."""
        if kind == HISTORY:
            self.total.add(figures)
            self.by_structure.setdefault((structure, profile), Figures()).add(figures)
        elif kind == OPERATION:
            self.by_operation.setdefault((structure, profile, name), Figures()).add(figures)
        else:
            reached = self.states.setdefault((structure, profile), {})
            reached[name] = reached.get(name, 0) + figures.histories

    def add_findings(self, rows: Iterable[Mapping[str, Any]], findings_max: int) -> None:
        """Add findings given as rows, until there are enough."""
        for row in rows:
            if len(self.findings) >= findings_max:
                break
            self.findings.append(finding_of_row(row))

    def rows(self) -> Iterable[dict[str, Any]]:
        """Yield the table: a row for each operation, and behind them one for the structure."""
        for key, whole in sorted(self.by_structure.items()):
            structure, profile = key
            for (*place, name), figures in sorted(self.by_operation.items()):
                if tuple(place) == key:
                    yield {
                        "structure": structure,
                        "profile": profile,
                        "operation": name,
                        "histories": figures.histories,
                        "operations": figures.operations,
                        "answers_compared": figures.answers_compared,
                        "findings": figures.findings,
                        "seconds": round(figures.seconds, 3),
                    }
            reached = {"states_reached": dict(sorted(self.states.get(key, {}).items()))}
            yield {
                "structure": structure,
                "profile": profile,
                "operation": None,
                **asdict(whole),
                "seconds": round(whole.seconds, 3),
                **reached,
            }


def summary(results: "DataFrame", findings_max: int = FINDINGS_MAX) -> Summary:
    """Add up rows of results on the cluster.

    They are read twice, once for the sums and once for the findings, if there are any.
    """
    total = Summary()
    for row in _sums(results).collect():
        figures = Figures(**{name: row[name] for name in FIGURES})
        total.add(row["structure"], row["profile"], row["kind"], row["name"], figures)
    if total.total.findings:
        red = results.filter("size(findings) > 0").limit(findings_max).select("findings")
        for row in red.collect():
            total.add_findings((one.asDict() for one in row["findings"]), findings_max)
    return total


def _sums(results: "DataFrame") -> "DataFrame":
    """Return the sums of all kinds, in one pass over the results."""
    from pyspark.sql import functions

    history = {name: name for name in FIGURES}
    history |= {"histories": "1L", "findings": "CAST(size(findings) AS BIGINT)"}
    operation = {name: f"one.{name}" for name in FIGURES}
    operation |= {"histories": "1L", "images_compared": "0L", "bytes_compared": "0L"}
    operation |= {"worker_peak_bytes": "0L"}
    state = dict.fromkeys(FIGURES, "0L") | {"histories": "one.value", "seconds": "0D"}
    parts = (
        f"array({_struct(HISTORY, repr(''), history)})",
        f"transform(by_operation, one -> {_struct(OPERATION, 'one.operation', operation)})",
        f"transform(map_entries(sometimes), one -> {_struct(STATE, 'one.key', state)})",
    )
    long = results.selectExpr("structure", "profile", f"inline(concat({', '.join(parts)}))")
    added = [
        (functions.max if name == "worker_peak_bytes" else functions.sum)(name).alias(name)
        for name in FIGURES
    ]
    return long.groupBy("structure", "profile", "kind", "name").agg(*added)


def _struct(kind: str, name: str, figures: Mapping[str, str]) -> str:
    """Return SQL for one sum that is made of a row."""
    columns = {"kind": repr(kind), "name": name, **figures}
    return f"named_struct({', '.join(f'{key!r}, {value}' for key, value in columns.items())})"
