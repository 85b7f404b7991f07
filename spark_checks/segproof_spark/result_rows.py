# SPDX-License-Identifier: Apache-2.0
"""The rows of results: findings, and a worker's memory; and where a job writes them."""

import resource
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segproof.tables.schemas import TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FINDING_COLUMNS = {column.name: column.kind for column in TABLES["findings"].columns}
"""The columns of the table `findings`, with Spark's names of their types."""
FINDING_FIELDS = tuple(FINDING_COLUMNS)


def ddl(columns: Mapping[str, str], separator: str = " ") -> str:
    """Return columns as Spark's DDL writes them; inside a struct the separator is `: `."""
    return ", ".join(f"{name}{separator}{kind}" for name, kind in columns.items())


FINDING_STRUCT = f"struct<{ddl(FINDING_COLUMNS, ': ')}>"


def arrow_fields(columns: Mapping[str, str]) -> "list[pa.Field]":
    """Return columns of strings and numbers as Arrow fields."""
    import pyarrow as pa

    kinds = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}
    return [pa.field(name, kinds[kind]) for name, kind in columns.items()]


def finding_row(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a finding given by field name, or the fields of one that is a row."""
    return {name: finding[name] for name in FINDING_FIELDS}


def peak_bytes() -> int:
    """Return the most memory that this process has held, in bytes."""
    # The system tells kilobytes, but bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


class ResultsLostError(Exception):
    """Some written results can't be read back."""


def add_up(sums: Any, told: Mapping[str, Any], names: Iterable[str]) -> None:
    """Add what was told under some names to the attributes of these names; of peaks the largest."""
    for name in names:
        was, more = getattr(sums, name), told[name]
        setattr(sums, name, max(was, more) if name == "worker_peak_bytes" else was + more)


@contextmanager
def kept_on_disk(rows: "DataFrame") -> "Iterator[DataFrame]":
    """Keep rows on the disks of the workers while they are read several times."""
    from pyspark import StorageLevel

    kept = rows.persist(StorageLevel.DISK_ONLY)
    try:
        yield kept
    finally:
        # A cluster that is gone has nothing to let go of.
        with suppress(Exception):
            kept.unpersist()


def written(
    session: "SparkSession", rows: "DataFrame", out: str, what: str, count: int
) -> "DataFrame":
    """Write rows of results as Parquet, a row for each of `what`; return what can be read there.

    Raises: ResultsLostError unless so many rows can be read.
    """
    # Hadoop takes the path behind file:// as it is, spaces included.
    place = out if "://" in out else f"file://{Path(out).absolute()}"
    rows.write.parquet(place)
    # Where no file can be read, no schema can be found either: so it is given.
    read = session.read.schema(rows.schema).parquet(place)
    found = read.count()
    if found != count:
        raise ResultsLostError(
            f"{out}: not all {what} can be read again ({what} {found} of {count}): "
            "the driver and every worker must see the same place under this name"
        )
    return read
