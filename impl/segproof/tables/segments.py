# SPDX-License-Identifier: Apache-2.0
"""The table `segments`: the files of one base offset, and the headers of the log.

Only what is asked for is read: lengths alone open no file, and without the count of wrong
checksums no batch is summed.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from segproof.errors import SegproofError
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

    Raises: OSError, SegproofError, what the column `damage` says, behind the row.
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
    if errors:
        raise errors[0]


def _add_file(
    row: dict[str, int | None], suffix: str, unit: Unit, request: Request, files: Files
) -> None:
    """Put what one file says into the row. Raises: OSError; SegproofError for a damaged file."""
    path = unit.path if len(unit.suffixes) == 1 else unit.sibling(suffix)
    if request.wants(LENGTHS[suffix]):
        status = files.status(path)
        row[LENGTHS[suffix]] = None if status is None else status.size_bytes
    if suffix == ".log" and request.wants(*OF_HEADERS, "damage"):
        _add_headers(row, unit, request, files)
    elif suffix in COUNTS and request.wants(COUNTS[suffix], "damage"):
        with closing(files.open(path)) as file:
            row[COUNTS[suffix]] = whole_entries(file, suffix)
            refuse_partial(file, suffix, path)


def _add_headers(row: dict[str, int | None], unit: Unit, request: Request, files: Files) -> None:
    """Put what the headers of a log say into the row, as far as they can be read."""
    with_checksums = request.wants("invalid_batch_count")
    with opened(unit, files) as log:
        reader = LogReader(log, with_checksums=with_checksums)
        row.update(batch_count=0, record_count=0, read_bytes=0)
        if with_checksums:
            row["invalid_batch_count"] = 0
        try:
            first = next(log.batches(), None)
            row["first_offset"] = None if first is None else field_of(first, "base_offset")
            for headers in reader:
                _add_table(row, headers)
        finally:
            row["read_bytes"] = reader.end_position


def _add_table(row: dict[str, int | None], headers: Headers) -> None:
    table = headers.table[headers.is_known]
    row["batch_count"] = (row["batch_count"] or 0) + len(headers.table)
    counts = table["record_count"]
    is_counted = len(table) == len(headers.table) and bool((counts >= 0).all())
    if row["record_count"] is not None:
        row["record_count"] += int(counts.sum()) if is_counted else 0
        row["record_count"] = row["record_count"] if is_counted else None
    if row["invalid_batch_count"] is not None and headers.crc_valid is not None:
        row["invalid_batch_count"] += int(np.count_nonzero(~headers.crc_valid))
    for name in ("last_offset", "max_timestamp"):
        if len(table):
            known, largest = row[name], int(table[name].max())
            row[name] = largest if known is None else max(known, largest)
