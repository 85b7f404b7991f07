# SPDX-License-Identifier: Apache-2.0
"""The comparisons of a replay by structure, profile and operation, and its findings.

The rows of results are added up where they are, on the cluster or batch by batch from Parquet; the
driver sees the sums only, and at most so many findings.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from segproof.tables.row_batches import batches_of
from segproof_spark.result_rows import add_up, arrow_fields, ddl, finding_row

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


FINDINGS_MAX = 100
"""Findings that are brought to the driver; the others are counted."""
HISTORY, OPERATION, STATE = "history", "operation", "state"
"""The kind of a sum: whole histories, one operation, or one of the states to be reached."""


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
        add_up(self, asdict(other), FIGURES)


FIGURES = tuple(item.name for item in fields(Figures))
PEAK = "worker_peak_bytes"
Key = tuple[str, str, str, str]
KEYS = ("structure", "profile", "kind", "name")
SUM_COLUMNS = {
    **dict.fromkeys(KEYS, "string"),
    **dict.fromkeys(FIGURES, "bigint"),
    "seconds": "double",
}
"""A row for each sum of a task."""
SUMS_A_BATCH = 1000


@dataclass(slots=True)
class Summary:
    """The comparisons and findings of a replay."""

    sums: dict[Key, Figures] = field(default_factory=dict)
    """By structure, profile, kind and name; the opening is the operation `open`."""
    findings: list[dict[str, Any]] = field(default_factory=list)

    @property
    def findings_cut(self) -> int:
        """Number of findings that were not brought here."""
        return self.total.findings - len(self.findings)

    @property
    def total(self) -> Figures:
        """All histories together."""
        whole = Figures()
        for figures in self.by_structure.values():
            whole.add(figures)
        return whole

    @property
    def by_structure(self) -> dict[tuple[str, str], Figures]:
        """Whole histories by structure and profile."""
        return {key[:2]: figures for key, figures in self.sums.items() if key[2] == HISTORY}

    @property
    def by_operation(self) -> dict[tuple[str, str, str], Figures]:
        """By structure, profile and operation."""
        named = ((key, figures) for key, figures in self.sums.items() if key[2] == OPERATION)
        return {(key[0], key[1], key[3]): figures for key, figures in named}

    @property
    def states(self) -> dict[tuple[str, str], dict[str, int]]:
        """By structure and profile: how often each state was reached."""
        found: dict[tuple[str, str], dict[str, int]] = {}
        for (structure, profile, kind, name), figures in self.sums.items():
            if kind == STATE:
                found.setdefault((structure, profile), {})[name] = figures.histories
        return found

    def add(self, key: Key, figures: Figures) -> None:
        """Add a sum of one kind: `history`, `operation` or `state`."""
        self.sums.setdefault(key, Figures()).add(figures)

    def add_batch(self, batch: "pa.RecordBatch") -> None:
        """Add the histories, operations and states of rows of results."""
        import pyarrow as pa
        from pyarrow import compute

        ones = pa.array([1] * batch.num_rows, pa.int64())
        whole = {name: batch.column(name) for name in FIGURES[1:]}
        counts = compute.list_value_length(batch.column("findings"))
        whole |= {"histories": ones, "findings": counts}
        self._add_kind(HISTORY, batch, None, pa.array([""] * batch.num_rows), whole)

        listed = batch.column("by_operation")
        flat, parents = compute.list_flatten(listed), compute.list_parent_indices(listed)
        known = [name for name in FIGURES if flat.type.get_field_index(name) >= 0]
        figures = {name: flat.field(name) for name in known}
        figures["histories"] = pa.array([1] * len(flat), pa.int64())
        self._add_kind(OPERATION, batch, parents, flat.field("operation"), figures)

        entry = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.int64())])
        listed = batch.column("sometimes").cast(pa.list_(entry))
        flat, parents = compute.list_flatten(listed), compute.list_parent_indices(listed)
        reached = {"histories": flat.field("value")}
        self._add_kind(STATE, batch, parents, flat.field("key"), reached)

    def _add_kind(
        self,
        kind: str,
        batch: "pa.RecordBatch",
        parents: "pa.Array | None",
        names: "pa.Array",
        figures: "dict[str, pa.Array]",
    ) -> None:
        """Add the sums of a kind; `parents` tells to which row of the batch a figure belongs."""
        import pyarrow as pa

        places = {name: batch.column(name) for name in ("structure", "profile")}
        if parents is not None:
            places = {name: column.take(parents) for name, column in places.items()}
        keys = [*places, "name"]
        added = [(name, "max" if name == PEAK else "sum") for name in figures]
        grouped = pa.table({**places, "name": names, **figures}).group_by(keys).aggregate(added)
        for row in grouped.to_pylist():
            known = {name: row[f"{name}_{how}"] for name, how in added}
            self.add((row["structure"], row["profile"], kind, row["name"]), Figures(**known))

    def add_findings(self, rows: Iterable[Mapping[str, Any]], findings_max: int) -> None:
        """Add findings given as rows, until there are enough."""
        for row in rows:
            if len(self.findings) >= findings_max:
                break
            self.findings.append(finding_row(row))

    def rows(self) -> Iterable[dict[str, Any]]:
        """Yield the table: a row for each structure, then one for each of its operations."""
        for key, whole in sorted(self.by_structure.items()):
            structure, profile = key
            reached = {"states_reached": dict(sorted(self.states.get(key, {}).items()))}
            yield {
                "structure": structure,
                "profile": profile,
                "operation": None,
                **asdict(whole),
                "seconds": round(whole.seconds, 3),
                **reached,
            }
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


def summary(results: "DataFrame", findings_max: int = FINDINGS_MAX) -> Summary:
    """Add up rows of results on the cluster.

    They are read twice, once for the sums and once for the findings, if there are any.
    """
    from pyspark.sql import functions

    added = [
        (functions.max if name == PEAK else functions.sum)(name).alias(name) for name in FIGURES
    ]
    sums = results.mapInArrow(_sums_of, ddl(SUM_COLUMNS)).groupBy(*KEYS).agg(*added)
    total = Summary()
    for row in sums.collect():
        figures = Figures(**{name: row[name] for name in FIGURES})
        total.add((row["structure"], row["profile"], row["kind"], row["name"]), figures)
    if total.total.findings:
        red = results.filter("size(findings) > 0").limit(findings_max).select("findings")
        for row in red.collect():
            total.add_findings((one.asDict() for one in row["findings"]), findings_max)
    return total


def _sums_of(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """Yield the sums of the results of one task."""
    import pyarrow as pa

    total = Summary()
    for batch in batches:
        total.add_batch(batch)
    rows = (dict(zip(KEYS, key, strict=True)) | asdict(one) for key, one in total.sums.items())
    return batches_of(rows, pa.schema(arrow_fields(SUM_COLUMNS)), SUMS_A_BATCH)
