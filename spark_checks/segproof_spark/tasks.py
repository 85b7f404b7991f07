# SPDX-License-Identifier: Apache-2.0
"""How work becomes tasks of Spark: packed by cost, one task in each partition, rows in batches.

The tasks are a range of numbers, one in each partition, and a list that each worker has: that works
on Spark Connect too, and nothing is shuffled.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


T = TypeVar("T")


def packed(priced: Iterable[tuple[float, T]], most: float) -> Iterator[tuple[float, list[T]]]:
    """Yield tasks with their costs: items in their order, of which each comes with its cost.

    A task costs `most` at most, or has one item.
    """
    taken: list[T] = []
    total = 0.0
    for cost, item in priced:
        if taken and total + cost > most:
            yield total, taken
            taken, total = [], 0.0
        taken.append(item)
        total += cost
    if taken:
        yield total, taken


def dearest_first(tasks: Iterable[tuple[float, T]]) -> list[T]:
    """Return tasks without their costs, in such an order that the small ones fill the end."""
    return [task for _, task in sorted(tasks, key=lambda one: one[0], reverse=True)]


def tasks_frame(
    session: "SparkSession",
    tasks: Sequence[T],
    run: Callable[[T], "Iterable[pa.RecordBatch]"],
    ddl: str,
) -> "DataFrame":
    """Return the rows that running all tasks yields, with the columns of a DDL."""

    def run_all(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from run(tasks[number])

    count = len(tasks)
    return session.range(0, count, 1, max(1, count)).mapInArrow(run_all, ddl)
