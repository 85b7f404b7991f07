# SPDX-License-Identifier: Apache-2.0
"""The tables as record batches of Arrow, for `segproof.scan` and for the tasks of Spark.

Files are read one after the other, and their batches come while they are read, so memory stays the
same for files of any number and size. What a row is, and which columns it has, stands in `schemas`.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from segproof.errors import SegproofError
from segproof.files import REAL_FILES, Files
from segproof.reading.packed_segments import with_unpacked
from segproof.tables.conditions import passing
from segproof.tables.damage import Problem, with_problems_told
from segproof.tables.files_below import Unit, existing, refuse_foreign, units_below
from segproof.tables.options import FAIL, Request, refused, request_of
from segproof.tables.row_batches import batches_of
from segproof.tables.schemas import TABLES
from segproof.verifying.path_verification import run
from segproof.wording.reporting import Wanted

if TYPE_CHECKING:
    import pyarrow as pa

FINDINGS_AT_ONCE: Final = 1000


def scan(
    path: str | os.PathLike[str],
    *,
    table: str = "records",
    columns: Iterable[str] | None = None,
    where: str | None = None,
    on_damage: str = FAIL,
    trust_time_index: bool = False,
    hash_slots: int | None = None,
    deep: bool = False,
    limit_bytes: int | None = None,
    files: Files = REAL_FILES,
) -> "pa.RecordBatchReader":
    """Return a reader of Arrow record batches: the rows of one table, read from files as they come.

    pandas, polars, DuckDB and pyarrow take the reader. It has a `schema`, and can be read once. It
    opens one file at a time, for reading only, and holds rows of some MiB, or of one batch of a log
    that is larger. Needs pyarrow: the extra `arrow`.

    `path` is a file, a partition directory or a directory with partitions at any depth, or for
    RocketMQ an index file, a folder of them, a store or a directory with stores. `table` is one of
    `segments`, `batches`, `records`, `index_entries`, `time_index_entries`, `aborted_transactions`,
    `rocketmq_entries` and `findings`. The reference page of the tables has their columns.

    `columns` are the names of the columns to read, in this order, or one text with commas; None:
    all. Keys, values and headers are decoded only if they are among them. `where` chooses rows,
    such as `offset >= 1000 and path like '%.log'`; what cannot have such a row is not read.

    `on_damage` says what happens where a checksum is wrong, a file cannot be read on, a log has
    lost batches, as a file beside it shows, or has offsets twice. `fail` raises DamagedFileError
    there: a scan that ends without an error gave all rows. `skip` leaves out the rows of a damaged
    batch. `keep` has them, as far as they can be read, and in any case the column `crc_valid`,
    which is false there. Both leave out the rest of a file that cannot be read on, and a log with
    batches of its own under a name that no broker reads; each such file has one RowsLeftOutWarning.
    In `segments` no row is left out: its column `damage` says what is wrong. `findings` has no such
    option. An unfinished batch at the end of the last segment is damage, though a broker writes it.

    `trust_time_index` lets a condition on timestamps leave out whole segments by their time
    indexes. `hash_slots` is the number of slots of RocketMQ's index files, 1 or more; None: found
    out. `deep` reads every record for `findings`. `limit_bytes`, 1 or more, is how many bytes a
    batch may have, and inflate to, for its records to be read; None: 64 MiB. An argument that does
    not belong to the table is refused.

    Raises: ImportError without pyarrow; InvalidArgumentError for what is unknown, where `path` is
    a file of another kind, or where it has only files of the other system; OSError where `path`
    itself cannot be read. While it is read: DamagedFileError. A directory without files of Kafka
    and RocketMQ has no rows, which is no error.
    """
    pa = _pyarrow()
    from segproof.tables.columns import result_schema

    options = _options(
        table=table,
        columns=columns,
        where=where,
        on_damage=None if table == "findings" and on_damage == FAIL else on_damage,
        trust_time_index=trust_time_index,
        hash_slots=hash_slots,
        deep=deep,
        limit_bytes=limit_bytes,
    )
    request, place = request_of(options), os.fsdecode(path)
    schema = result_schema(request)
    if table == "findings":
        existing(place, files)
        found = run(place, Wanted(deep=deep, limit=limit_bytes), files, None, 1)
        batches = batches_of((one.to_json() for one in found), schema, FINDINGS_AT_ONCE)
    else:
        batches = read_units(_units(place, request, files), request)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _pyarrow() -> Any:
    """Return pyarrow. Raises: ImportError that says what to install."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError("segproof.scan needs pyarrow: pip install 'segproof[arrow]'") from error
    return pa


def _options(**given: object) -> dict[str, str]:
    """Return the arguments that were given as texts, as Spark's options are."""
    if not isinstance(table := given["table"], str):
        raise refused("table", f"{table!r} is no text; known: {', '.join(TABLES)}")
    texts = {}
    for name, value in given.items():
        if isinstance(value, Iterable) and not isinstance(value, str):
            texts[name] = ",".join(map(str, value))
        elif value is not None and value is not False:
            texts[name] = "true" if value is True else str(value)
    return texts


def _units(path: str, request: Request, files: Files) -> Iterator[tuple[Files, Unit]]:
    """Return the files to read. Raises: OSError, InvalidArgumentError, before the first is read."""
    files = with_unpacked(files)
    units = units_below(path, request, files)
    first = list(islice(units, 1))
    if not first:
        refuse_foreign([(files, path)], request)
    return ((files, unit) for unit in chain(first, units))


def read_units(units: Iterable[tuple[Files, Unit]], request: Request) -> "Iterator[pa.RecordBatch]":
    """Yield the wanted rows of files, each with where to read it, as batches of bounded size.

    Damage costs rows of one file and leaves the others alone. Raises: DamagedFileError, if the
    request asks to fail.
    """
    from segproof.tables.columns import merged

    read = _reading(request.table)
    return merged(
        batch
        for files, unit in units
        for batch in with_problems_told(_items(read, unit, request, files), unit, request)
    )


def _items(
    read: Callable[[Unit, Request, Files], Iterator[Any]],
    unit: Unit,
    request: Request,
    files: Files,
) -> "Iterator[pa.RecordBatch | Problem]":
    """Yield the wanted rows of a file, and its problems where they cost rows."""
    from segproof.tables.columns import result_of

    if unit.problem and request.table != "segments":
        yield SegproofError(unit.problem, path=unit.path)
        return
    try:
        for item in read(unit, request, with_unpacked(files)):
            if isinstance(item, Exception):
                yield item
            else:
                chosen = passing(item, request.where) if request.where else item
                yield result_of(chosen, request)
    except (OSError, SegproofError) as error:
        yield error


def _reading(table: str) -> Callable[[Unit, Request, Files], Iterator[Any]]:
    """Return the function that reads a file of the table."""
    from segproof.tables.batches import batches
    from segproof.tables.index_files import aborted_transactions, index_entries
    from segproof.tables.records import records
    from segproof.tables.rocketmq import rocketmq_entries
    from segproof.tables.segments import segments

    return {
        "segments": segments,
        "batches": batches,
        "records": records,
        "index_entries": index_entries,
        "time_index_entries": index_entries,
        "aborted_transactions": aborted_transactions,
        "rocketmq_entries": rocketmq_entries,
    }[table]
