# SPDX-License-Identifier: Apache-2.0
"""How the verb `dump` writes rows: text, JSON lines, CSV and Parquet."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from segproof_harness.cli.common import (
    Format,
    refuse,
    summarise,
    text_of,
    value_text,
    with_times,
    write_line,
    write_row,
)
from segproof_harness.reports.bytes_as_text import bytes_as_they_are
from segproof_harness.reports.text import printable

if TYPE_CHECKING:
    from rich.table import Table

    from segproof.kafka.record import RecordColumns
    from segproof.reading.record_blocks import RecordBlock
    from segproof_harness.reports.bytes_as_text import Encode, Encoders

Row = dict[str, Any]

TABLE_FIELDS = 6
"""Rows with more fields are no table on a terminal: 80 columns do not hold it."""
TABLE_ROWS = 1000
"""So many rows are a table of their own: a file may have millions."""

OF_RECORD = ("offset", "timestamp", "key", "value", "headers", "sequence")
"""The fields of a record of Kafka's."""
OF_BATCH = (
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "is_transactional",
    "is_control",
    "crc_valid",
)
"""What a batch says of each of its records: columns of records in CSV and Parquet."""
TEXTS = frozenset({
    "path", "compression", "timestamp_type", "topic", "topic_id", "keys", "uniq_key", "tags",
    "headers", "properties",
})  # fmt: skip
BYTES = frozenset({"key", "value", "body"})
LONG = frozenset({"value", "body", "headers", "properties"})
"""Columns of Parquet without their least and largest value: nobody looks for these."""
DIFFERENT = frozenset({"value", "body", "offset", "timestamp", "sequence"})
"""Columns in which few values come again: a dictionary costs time and saves no room."""
_NO_SPACE = re.compile(r"[^\t\n\r]+")
QUOTE = '"'
_QUOTED = re.compile(r'[",;\t\r\n]')
_FORMULA = re.compile(r"[\t\r\n]| *[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""The beginning of a text that a spreadsheet runs; the last four are the same signs in full width.
"""
_PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""A number: running it has no other effect than showing it."""
GROUP_ROWS, GROUP_RECORDS = 1 << 14, 1 << 16
GROUP_BYTES = 32 << 20
"""So many rows, records of blocks, or bytes of keys and values are written at once to Parquet."""


class DumpFormat(StrEnum):
    """How a dump is written to stdout."""

    TEXT = "text"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"

    @property
    def has_columns(self) -> bool:
        """Whether each row has the same columns: those of logs alone, where files differ."""
        return self in (DumpFormat.CSV, DumpFormat.PARQUET)


class CsvCells(StrEnum):
    """What CSV has where a spreadsheet would run a text."""

    GUARDED = "guarded"
    AS_IS = "as-is"


class Output(Protocol):
    """Where rows go."""

    def begin(self, path: str) -> None:
        """Begin a file."""

    takes_blocks: bool
    """Whether records of a log may come as blocks, without the rows of their batches."""

    def row(self, row: Row, *, is_record: bool) -> None:
        """Write a row of this file; `is_record` says that it is a record of the last batch."""

    def block(self, block: "RecordBlock") -> None:
        """Write the records of a block of this file."""


@contextmanager
def output_to_stdout(
    output_format: DumpFormat,
    *,
    in_directory: bool,
    with_records: bool,
    names_late: bool,
    as_text: frozenset[str],
    csv_cells: CsvCells,
    encoders: "Encoders",
) -> Iterator[Output]:
    """Give what writes rows, and end it after the block.

    With `in_directory` each row has the path of its file. With `names_late` text names a file only
    if it has a row. `as_text` are the columns of bytes that Parquet has as text. If the block ends
    with an exception, Parquet stays without a footer: no tool reads it as a whole table.
    """
    if output_format is DumpFormat.TEXT:
        text = _Terminal(names_late) if sys.stdout.isatty() else _Text(names_late)
        try:
            yield text
        finally:
            text.end()
        if names_late and text.is_empty:
            summarise("nothing lies between --from and --to")
    elif output_format is DumpFormat.JSONL:
        yield _JsonLines(in_directory)
    elif output_format is DumpFormat.CSV:
        yield _Csv(in_directory, with_records, csv_cells)
    else:
        parquet = _Parquet(in_directory, with_records, TEXTS | as_text, encoders)
        try:
            yield parquet
        except BaseException:
            parquet.abandon()
            raise
        parquet.end()


class _Rows:
    """Takes no blocks."""

    takes_blocks = False

    def block(self, block: "RecordBlock") -> None:
        raise NotImplementedError


class _Text(_Rows):
    def __init__(self, names_late: bool) -> None:
        self._names_late = names_late
        self._heading = ""
        self.is_empty = True
        """Whether there was no row so far."""

    def begin(self, path: str) -> None:
        self._heading = f"# {path}"
        if not self._names_late:
            self._write_heading()

    def row(self, row: Row, *, is_record: bool) -> None:
        self.is_empty = False
        self._write_heading()
        if is_record:  # a value is data: it is not wrapped
            write_line(f"| {text_of(with_times(row))}")
        else:
            write_row(with_times(row), Format.TEXT)

    def end(self) -> None:
        """Write what is left."""

    def _write_heading(self) -> None:
        if self._heading:
            write_line(self._heading)
        self._heading = ""


def _is_index_header(row: Row) -> bool:
    """Return whether a row is the header of an index file of RocketMQ."""
    return "hash_slot_count" in row


class _Terminal(_Text):
    """Rows of few fields as a table, others wrapped between words, records as they are."""

    def __init__(self, names_late: bool) -> None:
        super().__init__(names_late)
        self._rows: list[Row] = []

    def begin(self, path: str) -> None:
        self.end()
        super().begin(path)

    def row(self, row: Row, *, is_record: bool) -> None:
        self.is_empty = False
        if len(row) <= TABLE_FIELDS and not is_record and not _is_index_header(row):
            if self._rows and list(row) != list(self._rows[0]):
                self.end()
            self._rows.append(with_times(row))
            if len(self._rows) == TABLE_ROWS:
                self.end()
            return
        self.end()
        if is_record:
            super().row(row, is_record=is_record)
            return
        from segproof_harness.reports.terminal import Lines

        self._write_heading()
        Lines().write(text_of(with_times(row)), indent=2)

    def end(self) -> None:
        """Write the table of the rows that wait."""
        if not self._rows:
            return
        from rich.console import Console

        self._write_heading()
        Console(highlight=False, legacy_windows=False).print(_table(self._rows))
        self._rows = []


def _table(rows: list[Row]) -> "Table":
    """Return rows with the same fields as a table; numbers stand at the right."""
    from rich.text import Text

    from segproof_harness.reports.terminal import bare_table

    table = bare_table()
    for name, value in rows[0].items():
        table.add_column(
            name, justify="right" if isinstance(value, int) else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(printable(value_text(value))) for value in row.values()))
    return table


class _JsonLines(_Rows):
    def __init__(self, in_directory: bool) -> None:
        self._path: Row = {}
        self._in_directory = in_directory

    def begin(self, path: str) -> None:
        if self._in_directory:
            self._path = {"path": path}

    def row(self, row: Row, *, is_record: bool) -> None:
        write_row({**self._path, **row}, Format.JSONL)


class _Columns(_Rows):
    """Rows that all have the columns of the first one."""

    def __init__(self, in_directory: bool, with_records: bool) -> None:
        self._path: Row = {}
        self._in_directory = in_directory
        self._with_records = with_records
        self._of_batch: Row = {}
        self._names: list[str] = []

    def begin(self, path: str) -> None:
        if self._in_directory:
            self._path = {"path": path}

    def row(self, row: Row, *, is_record: bool) -> None:
        if _is_index_header(row):
            return  # it has other columns than the entries
        if self._with_records and "base_offset" in row:
            self._of_batch = {name: row[name] for name in OF_BATCH}
            return
        whole = {**self._path, **row, **(self._of_batch if is_record else {})}
        if not self._names:
            self._names = list(whole)
            self._start()
        self._add([whole[name] for name in self._names])

    def _start(self) -> None: ...

    def _add(self, cells: list[Any]) -> None: ...


class _Csv(_Columns):
    def __init__(self, in_directory: bool, with_records: bool, cells: CsvCells) -> None:
        super().__init__(in_directory, with_records)
        self._is_guarded = cells is CsvCells.GUARDED

    def _start(self) -> None:
        sys.stdout.write(_csv_line(self._names))

    def _add(self, cells: list[Any]) -> None:
        row = with_times(dict(zip(self._names, cells, strict=True)))
        sys.stdout.write(_csv_line(map(self._cell, row.values())))

    def _cell(self, cell: Any) -> str:
        """Return what stands for a value: text without what a terminal would act on, or JSON."""
        if not isinstance(cell, str):
            return "" if cell is None else json.dumps(cell)
        text = _NO_SPACE.sub(lambda match: printable(match[0]), cell)
        is_run = self._is_guarded and _FORMULA.match(text) and not _PLAIN_NUMBER.fullmatch(text)
        return f"'{text}" if is_run else text


def _csv_line(cells: Iterable[str]) -> str:
    """Return a line of CSV.

    A cell with a semicolon or a tab is quoted too: a spreadsheet that takes them for separators
    would begin a cell there.
    """
    shown = [f'"{cell.replace(QUOTE, 2 * QUOTE)}"' if _QUOTED.search(cell) else cell
             for cell in cells]  # fmt: skip
    return ",".join(shown if shown != [""] else [2 * QUOTE]) + "\n"


class _Stdout:
    """Standard output as a file of bytes, which pyarrow closes at its end."""

    closed = False
    is_abandoned = False

    def write(self, data: Any) -> int:
        if self.is_abandoned:  # pyarrow writes the footer when its writer is forgotten
            return len(bytes(data))
        stream: Any = sys.stdout
        return int(stream.write_bytes(bytes(data)))

    def flush(self) -> None:
        sys.stdout.flush()

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


class _Parquet(_Columns):
    def __init__(
        self,
        in_directory: bool,
        with_records: bool,
        texts: frozenset[str],
        encoders: "Encoders",
    ) -> None:
        super().__init__(in_directory, with_records)
        self._texts = texts
        self._encoders = encoders
        self.takes_blocks = with_records and encoders.decode is None
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            refuse("--format parquet needs pyarrow: `pip install 'segproof[arrow]'`")
        if sys.stdout.isatty():
            refuse("Parquet is no text: send it to a file, as in `... --format parquet > FILE`")
        self._pa, self._pq = pa, pq
        self._rows: list[list[Any]] = []
        self._batches: list[Any] = []
        self._records = self._bytes = 0
        self._writer: Any = None
        self._stdout = _Stdout()
        self._schema: Any = pa.schema([])

    def _start(self) -> None:
        self._schema = self._pa.schema([(name, self._type_of(name)) for name in self._names])

    def _type_of(self, name: str) -> Any:
        if name in self._texts:
            return self._pa.string()
        if name in BYTES:
            return self._pa.binary()
        is_flag = name.startswith("is_") or name == "crc_valid"
        return self._pa.bool_() if is_flag else self._pa.int64()

    def _add(self, cells: list[Any]) -> None:
        cells = [
            _text(cell) if name in self._texts else cell
            for name, cell in zip(self._names, cells, strict=True)
        ]
        self._rows.append(cells)
        self._bytes += sum(len(cell) for cell in cells if isinstance(cell, bytes | str))
        if len(self._rows) >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._write_group()

    def block(self, block: "RecordBlock") -> None:
        from segproof.tables.records import record_columns

        if not self._names:
            self._names = [*self._path, *OF_RECORD, *OF_BATCH]
            self._start()
        columns, encoders = block.columns, self._encoders
        makers: dict[str, Callable[[], Any]] = {
            **record_columns(block),
            "path": lambda: self._pa.repeat(self._path["path"], len(columns)),
            "headers": partial(self._headers, columns),
        }
        for name, encode, of_rows in (
            ("key", encoders.key, columns.keys),
            ("value", encoders.value, columns.values),
        ):
            if encode is not bytes_as_they_are:
                makers[name] = partial(_encoded, encode, of_rows, name in self._texts)
        arrays = []
        for field in self._schema:
            made = makers[field.name]()
            is_array = isinstance(made, self._pa.Array)
            arrays.append(made.cast(field.type) if is_array else self._pa.array(made, field.type))
        self._batches.append(self._pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._bytes += self._batches[-1].nbytes
        self._records += len(columns)
        if self._records >= GROUP_RECORDS or self._bytes >= GROUP_BYTES:
            self._write_group()

    def _headers(self, columns: "RecordColumns") -> Any:
        """Return the headers of each record as JSON."""
        if not columns.header_counts.any():
            return self._pa.repeat("[]", len(columns))
        return _headers_as_json(columns, self._encoders.header)

    def _write_group(self) -> None:
        if self._writer is None:
            self._writer = self._pq.ParquetWriter(
                self._pa.PythonFile(self._stdout, "w"),
                self._schema,
                use_dictionary=[name for name in self._names if name not in DIFFERENT],
                write_statistics=[name for name in self._names if name not in LONG],
            )
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [
                self._pa.array(column, field.type)
                for column, field in zip(columns, self._schema, strict=True)
            ]
            self._batches.append(self._pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        if self._batches:
            self._writer.write_table(self._pa.Table.from_batches(self._batches))
        self._rows, self._batches, self._records, self._bytes = [], [], 0, 0

    def abandon(self) -> None:
        """Write nothing more."""
        self._stdout.is_abandoned = True

    def end(self) -> None:
        """Write what is left, and the footer; without rows a table without columns."""
        self._write_group()
        self._writer.close()


def _text(cell: Any) -> str | None:
    """Return a value of a column of text: what is no text as JSON, and no half of a surrogate."""
    if cell is None:
        return None
    text = cell if isinstance(cell, str) else json.dumps(cell)
    return text.encode("utf-8", "backslashreplace").decode()


def _encoded(
    encode: "Encode", values: Callable[[], Iterable[bytes | None]], is_text: bool
) -> list[Any]:
    """Return what stands for bytes in a column."""
    shown = map(encode, values())
    return [_text(one) for one in shown] if is_text else list(shown)


def _headers_as_json(columns: "RecordColumns", encode: "Encode") -> list[str]:
    """Return the headers of each record as JSON."""
    from segproof.reading.record_blocks import header_places

    texts = ["[]"] * len(columns)
    has_some = columns.header_counts.nonzero()[0].tolist()
    if not has_some:
        return texts
    data = columns.data
    pairs = iter([
        {
            "key": str(data[key : key + key_length], errors="replace"),
            "value": encode(None if length < 0 else bytes(data[value : value + length])),
        }
        for key, key_length, value, length in zip(
            *(each.tolist() for each in header_places(columns)), strict=True
        )
    ])  # fmt: skip
    for row, count in zip(has_some, columns.header_counts[has_some].tolist(), strict=True):
        texts[row] = json.dumps([*islice(pairs, count)])
    return texts
