# SPDX-License-Identifier: Apache-2.0
"""The tables: their columns, the meaning of a row, and the options.

Plain data without Spark or Arrow: `segproof.scan`, the data source of Spark, the readers and the
reference page read it.
A column that `segproof dump` has too has the same name and the same value there, but for bytes,
which are bytes here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from segproof.layouts.kafka import ABORTED_TXN
from segproof.layouts.rocketmq import INDEX_ENTRY
from segproof.layouts.table import Layout

HEADERS: Final = "array<struct<key: string, value: binary>>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table; every column may be null."""

    name: str
    kind: str
    """Its type as Spark's DDL writes it."""
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table."""

    name: str
    row: str
    """The meaning of a row."""
    columns: tuple[Column, ...]
    suffixes: tuple[str, ...] = ()
    """Which of a segment's files have rows; none for tables that are not Kafka's."""
    offset_columns: tuple[str, ...] = ()
    """Offsets that the names of the segments bound: a filter on them leaves out whole segments."""

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def no_column(self, name: str) -> str:
        """Return in words that a column is not among them."""
        return f"table {self.name} has no column {name!r}; it has {', '.join(self.names)}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of those that do not tell the file."""
        return tuple(column.name for column in self.columns if column not in _OF_SEGMENT)


@dataclass(frozen=True, slots=True)
class Option:
    """One option of the data source."""

    name: str
    values: str
    default: str
    meaning: str
    tables: tuple[str, ...] = ()
    """The tables that have it; empty: all."""


def ddl_of(columns: Iterable[Column]) -> str:
    """Return columns as Spark's DDL writes them."""
    return ", ".join(f"{column.name} {column.kind}" for column in columns)


def _columns_of(layout: Layout) -> tuple[Column, ...]:
    """Return the fields of a format, each as a column."""
    kinds = {"int64": "bigint"}
    return tuple(Column(one.name, kinds.get(one.kind, "int"), one.meaning) for one in layout.fields)


DAMAGE: Final = Column(
    "damage",
    "string",
    "null; in a row of its own, with the file alone: which rows are left out there, and why",
)
"""The column of Spark's tables in which a read that goes on names what it leaves out."""
_PATH = Column("path", "string", "the file")
_DIRECTORY = Column("directory", "string", "the directory of the file")
_BASE = Column("segment_base_offset", "bigint", "the base offset in the name of the file")
_OF_SEGMENT = (_PATH, _DIRECTORY, _BASE)
_ENTRY = Column("entry", "bigint", "number of the entry in its file, from 0")

_SEGMENTS = Table(
    "segments",
    "A segment: the files of one base offset in one directory. What the log says is read from the"
    " headers of its batches.",
    (
        Column("path", "string", "the log; without one, the first index file"),
        Column("directory", "string", "the directory of the files"),
        _BASE,
        Column("next_base_offset", "bigint", "that of the next segment with a log; null: none"),
        Column("log_bytes", "bigint", "length of the log; null, as in the next three: no file"),
        Column("offset_index_bytes", "bigint", "length of the offset index"),
        Column("time_index_bytes", "bigint", "length of the time index"),
        Column("transaction_index_bytes", "bigint", "length of the transaction index"),
        Column("offset_index_entries", "bigint", "entries but for zeros at the end"),
        Column("time_index_entries", "bigint", "entries but for zeros at the end"),
        Column("aborted_transactions", "bigint", "whole entries of the transaction index"),
        Column("batch_count", "bigint", "batches that can be told apart"),
        Column("invalid_batch_count", "bigint", "those whose size or checksum is wrong"),
        Column("record_count", "bigint", "as the headers say; null where a header has no count"),
        Column("first_offset", "bigint", "base offset of the first batch"),
        Column("last_offset", "bigint", "largest last offset of a batch"),
        Column("max_timestamp", "bigint", "largest timestamp in milliseconds that a header says"),
        Column("read_bytes", "bigint", "bytes of the log up to the end of its last whole batch"),
        Column("damage", "string", "what is damaged or cannot be read, in words; null: nothing"),
    ),
    (".log", ".index", ".timeindex", ".txnindex"),
)
_BATCHES = Table(
    "batches",
    "A batch of a log; before magic 2, a message.",
    (
        *_OF_SEGMENT,
        Column("base_offset", "bigint", "the first offset, of compressed messages by reading them"),
        Column("last_offset", "bigint", "the last offset"),
        Column("position", "bigint", "where it begins, in bytes"),
        Column("size", "bigint", "bytes of the whole batch"),
        Column("magic", "int", "the format: 0, 1 or 2"),
        Column("compression", "string", "none, gzip, snappy, lz4, zstd; null for another code"),
        Column("timestamp_type", "string", "NoTimestampType, CreateTime or LogAppendTime"),
        Column("max_timestamp", "bigint", "the largest timestamp in milliseconds; -1 in magic 0"),
        Column("producer_id", "bigint", "-1: none"),
        Column("producer_epoch", "int", "-1: none"),
        Column("base_sequence", "int", "the first sequence number; -1: none"),
        Column("is_transactional", "boolean", "whether it belongs to a transaction"),
        Column("is_control", "boolean", "whether it holds a control record"),
        Column("crc_valid", "boolean", "whether size and checksum are right"),
        Column("record_count", "bigint", "as stored; before magic 2 counted"),
        Column("partition_leader_epoch", "int", "the epoch of the leader that wrote it; -1: none"),
    ),
    (".log",),
    ("base_offset", "last_offset"),
)
_RECORDS = Table(
    "records",
    "A record, control records too.",
    (
        *_OF_SEGMENT,
        Column("batch_position", "bigint", "where its batch begins, in bytes"),
        Column("offset", "bigint", "its offset"),
        Column("timestamp", "bigint", "milliseconds; -1 in magic 0"),
        Column("key", "binary", "its key"),
        Column("value", "binary", "its value"),
        Column("headers", HEADERS, "its headers"),
        Column("key_size", "bigint", "bytes of the key, null without one"),
        Column("value_size", "bigint", "bytes of the value, null without one"),
        Column("producer_id", "bigint", "that of its batch; -1: none"),
        Column("producer_epoch", "int", "that of its batch; -1: none"),
        Column("sequence", "bigint", "its sequence number; -1: none"),
        Column("is_control", "boolean", "whether it is a control record"),
        Column(
            "crc_valid",
            "boolean",
            "whether size and checksum of its batch are right, and of the message that a"
            " compressed one of magic 0 or 1 holds",
        ),
    ),
    (".log",),
    ("offset",),
)
_INDEX = Table(
    "index_entries",
    "An entry of an offset index; the zeros at the end of a file that was not trimmed are none.",
    (
        *_OF_SEGMENT,
        _ENTRY,
        Column("offset", "bigint", "base offset and relative offset together"),
        Column("position", "bigint", "where it points to in the log, in bytes"),
    ),
    (".index",),
)
_TIME_INDEX = Table(
    "time_index_entries",
    "An entry of a time index; the zeros at the end of a file that was not trimmed are none.",
    (
        *_OF_SEGMENT,
        _ENTRY,
        Column("timestamp", "bigint", "milliseconds"),
        Column("offset", "bigint", "base offset and relative offset together"),
    ),
    (".timeindex",),
)
_ABORTED = Table(
    "aborted_transactions",
    "An entry of a transaction index.",
    (
        *_OF_SEGMENT,
        _ENTRY,
        *_columns_of(ABORTED_TXN),
    ),
    (".txnindex",),
)
_ROCKETMQ = Table(
    "rocketmq_entries",
    "An entry of an index file of RocketMQ, from 1 to before the count in its header.",
    (
        _PATH,
        _DIRECTORY,
        Column("begin_timestamp", "bigint", "of the file's header, in milliseconds"),
        Column("slot", "int", "the slot that its key falls into; null for a negative hash"),
        Column("index", "int", "its number in the file"),
        *_columns_of(INDEX_ENTRY),
    ),
)
_FINDINGS = Table(
    "findings",
    "What `segproof verify` finds, of Kafka's files and of RocketMQ's.",
    (
        Column("law", "string", "the law that is broken"),
        Column("severity", "string", "error, warning or note"),
        Column("structure", "string", "what the law is about"),
        Column("path", "string", "the file or directory"),
        Column("position", "bigint", "the byte that it is about, from 0"),
        Column("expected", "string", "what there should be"),
        Column("actual", "string", "what there is"),
        Column("message", "string", "what is wrong, in words"),
        Column("hint", "string", "what to do"),
        Column("reproduce", "string", "the command that shows this finding alone"),
    ),
)

TABLES: Final[Mapping[str, Table]] = MappingProxyType(
    {
        table.name: table
        for table in (
            _SEGMENTS, _BATCHES, _RECORDS, _INDEX, _TIME_INDEX, _ABORTED, _ROCKETMQ, _FINDINGS,
        )
    }
)  # fmt: skip
"""All tables by name."""

_READING = tuple(name for name in TABLES if name != "findings")

OPTIONS: Final = (
    Option("path", "a path or URL", "", "what to read; `load(PATH)` sets it"),
    Option("paths", "a JSON list", "", "several of them; `load([PATH, PATH])` sets it"),
    Option("table", "a name of a table", "findings", "the table"),
    Option("columns", "names with commas", "all", "the columns to read, in this order", _READING),
    Option(
        "where",
        "conditions joined by `and`",
        "",
        "which rows to read; files and batches without one are left out, and the offset index"
        " says where to begin",
        _READING,
    ),
    Option(
        "push_filters",
        "true or false",
        "false",
        "whether the filters of a query leave out files too; see above what Spark makes of them",
        _READING,
    ),
    Option(
        "on_damage",
        "fail, skip or keep",
        "fail",
        "what a wrong checksum, or a file that cannot be read on, means: `fail` ends the read with"
        " an error, `skip` leaves out those rows and says so, `keep` has the rows of a wrong"
        " checksum too, with `crc_valid` false",
        _READING,
    ),
    Option(
        "trust_time_index",
        "true or false",
        "false",
        "whether the last entry of a closed segment's time index is believed: a filter on"
        " timestamps then leaves out whole segments",
        ("batches", "records"),
    ),
    Option(
        "hash_slots",
        "a number",
        "found out",
        "slots of the index files of RocketMQ, as `dump --hash-slots`",
        ("rocketmq_entries",),
    ),
    Option(
        "task_bytes",
        "a number",
        str(128 << 20),
        "bytes of files that a task is given, unless a single file has more",
        _READING,
    ),
    Option("deep", "true or false", "false", "read every record", ("findings",)),
    Option(
        "limit_bytes",
        "a number",
        str(64 << 20),
        "bytes that a batch may have, and inflate to, for its records to be read",
        ("records", "findings"),
    ),
)
"""All options."""
