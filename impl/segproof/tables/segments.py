# SPDX-License-Identifier: Apache-2.0
"""The table `segments`: the files of one base offset, and the headers of the log.

Only what is asked for is read: lengths alone open no file. What headers say is read with the
checksums of their batches, since a wrong header says wrong counts.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from segproof.counts import plural
from segproof.errors import CorruptRecordError, SegproofError
from segproof.files import Files
from segproof.reading.batch_rows import field_of
from segproof.tables.columns import batch_of
from segproof.tables.files_below import Unit, problem_of
from segproof.tables.index_files import refuse_partial, whole_entries
from segproof.tables.logs import Headers, LogReader, opened
from segproof.tables.options import Request
from segproof.tables.row_batches import as_utf8

LENGTHS = {
    ".log": "log_bytes",
    ".index": "offset_index_bytes",
    ".timeindex": "time_index_bytes",
    ".txnindex": "transaction_index_bytes",
}
COUNTS = {
    ".index": "offset_index_entries",
    ".timeindex": "time_index_entries",
    ".txnindex": "aborted_transactions",
}
OF_HEADERS = (
    "batch_count", "invalid_batch_count", "record_count", "first_offset", "last_offset",
    "max_timestamp", "read_bytes",
)  # fmt: skip


def segments(unit: Unit, request: Request, files: Files) -> Iterator[Any]:
    """Yield the one row of a segment, or of a directory that cannot be listed.

    After the row come the problems that its column `damage` names.
    """
    row = dict.fromkeys((*LENGTHS.values(), *COUNTS.values(), *OF_HEADERS))
    row["next_base_offset"] = unit.next_base_offset
    errors: list[OSError | SegproofError] = []
    if not unit.problem:
        for suffix in unit.suffixes:
            try:
                _add_file(row, suffix, unit, request, files)
            except (OSError, SegproofError) as error:
                errors.append(error)
    damage = as_utf8("; ".join(map(problem_of, errors)) or unit.problem) or None

    def column(value: object) -> Any:
        return lambda: [value]

    makers = {name: column(value) for name, value in {**row, "damage": damage}.items()}
    yield batch_of(request, unit, 1, makers)
    yield from errors
    if unit.problem:
        yield SegproofError(unit.problem, path=unit.path)


def _add_file(
    row: dict[str, int | None], suffix: str, unit: Unit, request: Request, files: Files
) -> None:
    """Put what one file says into the row. Raises: OSError; SegproofError for a damaged file."""
    path = unit.path if len(unit.suffixes) == 1 else unit.sibling(suffix)
    if request.wants(LENGTHS[suffix]):
        status = files.status(path)
        row[LENGTHS[suffix]] = None if status is None else status.size_bytes
    if suffix == ".log" and request.wants(*OF_HEADERS, "damage"):
        _add_headers(row, unit, files)
    elif suffix in COUNTS and request.wants(COUNTS[suffix], "damage"):
        with closing(files.open(path)) as file:
            row[COUNTS[suffix]] = whole_entries(file, suffix)
            refuse_partial(file, suffix, path)


def _add_headers(row: dict[str, int | None], unit: Unit, files: Files) -> None:
    """Put what the headers of a log say into the row, as far as they can be read.

    Raises: SegproofError where the log cannot be read on, or where a checksum is wrong.
    """
    first_wrong = None
    with opened(unit, files) as log:
        reader = LogReader(unit, files)
        row.update(batch_count=0, record_count=0, read_bytes=0, invalid_batch_count=0)
        try:
            first = next(log.batches(), None)
            row["first_offset"] = None if first is None else field_of(first, "base_offset")
            for headers in reader.whole(log):
                _add_table(row, headers)
                wrong = headers.table["position"][~headers.crc_valid]
                if first_wrong is None and len(wrong):
                    first_wrong = int(wrong[0])
        except SegproofError as error:
            if first_wrong is not None:
                error.message += f"; {_wrong_checksums(row)}, the first at byte {first_wrong}"
                error.args = (error.message,)
            raise
        finally:
            row["read_bytes"] = reader.end_position
    if first_wrong is not None:
        raise CorruptRecordError(
            _wrong_checksums(row), law="BATCH-14", path=unit.path, position=first_wrong
        )


def _wrong_checksums(row: dict[str, int | None]) -> str:
    return f"{plural(row['invalid_batch_count'] or 0, 'batch')} with a wrong checksum"


def _add_table(row: dict[str, int | None], headers: Headers) -> None:
    table = headers.table[headers.is_known]
    row["batch_count"] = (row["batch_count"] or 0) + len(headers.table)
    counts = table["record_count"]
    is_counted = len(table) == len(headers.table) and bool((counts >= 0).all())
    if row["record_count"] is not None:
        row["record_count"] += int(counts.sum()) if is_counted else 0
        row["record_count"] = row["record_count"] if is_counted else None
    invalid = int(np.count_nonzero(~headers.crc_valid))
    row["invalid_batch_count"] = (row["invalid_batch_count"] or 0) + invalid
    for name in ("last_offset", "max_timestamp"):
        if len(table):
            known, largest = row[name], int(table[name].max())
            row[name] = largest if known is None else max(known, largest)
