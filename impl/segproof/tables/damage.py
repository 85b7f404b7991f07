# SPDX-License-Identifier: Apache-2.0
"""What a read of a table does where it meets damage: it fails, or goes on and says what is missing.

The readers of the tables yield each problem in the place of the rows that it costs. Here a problem
ends the read, or is kept until the file ends. Python then gets one warning for the file, and Spark
gets a row for each problem.
"""

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from segproof.counts import plural
from segproof.errors import DamagedFileError, RowsLeftOutWarning, SegproofError
from segproof.tables.files_below import Unit, problem_of
from segproof.tables.options import FAIL, SKIP, Request
from segproof.tables.row_batches import as_utf8
from segproof.tables.schemas import DAMAGE, TABLES
from segproof.verifying.log_offsets import TWICE

if TYPE_CHECKING:
    import pyarrow as pa

Problem = OSError | SegproofError
WAY_OUT = "on_damage=skip leaves out what is damaged, on_damage=keep shows what can be read"
ALL_SHOWN = "on_damage=skip and on_damage=keep give all rows, those that are here twice too"


def with_problems_told(
    items: "Iterator[pa.RecordBatch | Problem]", unit: Unit, request: Request
) -> "Iterator[pa.RecordBatch]":
    """Yield the rows of one file; tell its problems, as the request asks for.

    Raises: DamagedFileError at the first problem, if the request is to fail.
    """
    first, count, is_twice = "", 0, False
    for item in items:
        if not isinstance(item, OSError | SegproofError):
            yield item
            continue
        words = problem_of(item)
        words = words if unit.path in words else f"{unit.path}: {words}"
        if request.on_damage == FAIL:
            way_out = ALL_SHOWN if _is_twice(item) else WAY_OUT
            raise DamagedFileError(f"{words}; {way_out}") from None
        if request.tells_damage:
            yield _damage_row(unit, words, request)
        is_twice |= not count and _is_twice(item)
        first, count = first or words, count + 1
    has_column = DAMAGE.name in TABLES[request.table].names
    if count and not request.tells_damage and not has_column:
        _warn("rows may be here twice" if is_twice else "rows are left out", first, count)


def _is_twice(problem: Problem) -> bool:
    return isinstance(problem, SegproofError) and problem.law in TWICE


def _warn(what: str, first: str, count: int) -> None:
    """Warn of the problems of one file, also where the same was told before."""
    more = f"; so are those of {plural(count - 1, 'more place')} of this file" if count > 1 else ""
    # Without a registry the warning of a second scan is not taken for that of the first.
    warnings.warn_explicit(
        f"{what}: {first}{more}", RowsLeftOutWarning, "segproof.scan", 1, registry=None
    )


def _damage_row(unit: Unit, words: str, request: Request) -> Any:
    """Return the row that stands for rows that are left out."""
    from segproof.tables.columns import result_schema

    told = {
        "path": as_utf8(unit.path),
        "directory": as_utf8(unit.directory),
        "segment_base_offset": unit.base_offset,
        DAMAGE.name: as_utf8(words),
    }
    import pyarrow as pa

    schema = result_schema(request)
    arrays = [pa.array([told.get(field.name)], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def wrong_checksum(path: str, position: int, size_bytes: int, request: Request) -> SegproofError:
    """Return the problem of a batch whose size or checksum is wrong."""
    costs = ": its rows are left out" if request.on_damage == SKIP else ""
    return SegproofError(
        f"a batch of {plural(size_bytes, 'byte')} has a wrong checksum{costs}",
        law="BATCH-14",
        path=path,
        position=position,
    )
