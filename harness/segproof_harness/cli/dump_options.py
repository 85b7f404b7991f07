# SPDX-License-Identifier: Apache-2.0
"""The options of the verb `dump`."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof_harness.cli.common import NUMBER, parse_time, refuse
from segproof_harness.cli.dump_output import (
    CsvCells,
    DumpFormat,
    Output,
    output_to_stdout,
)
from segproof_harness.reading.internal_topics import Decoder, RecordDecoder, decoder_of
from segproof_harness.reports.bytes_as_text import (
    BytesAs,
    Encode,
    Encoders,
    bytes_as_they_are,
    encoder,
)

if TYPE_CHECKING:
    from segproof_harness.reading.log_file_rows import Shown, Tell
    from segproof_harness.reading.row_range import RowRange
    from segproof_model.language.behaviours import Release

PathArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PATH",
        help="A .log, .index, .timeindex, .txnindex or .snapshot file, a checkpoint, "
        "partition.metadata or a snapshot of the cluster's metadata, or a directory of them; "
        "a RocketMQ index file, commit-log or consume-queue file, checkpoint, or a store.",
    ),
]
RecordsOption = Annotated[
    bool, typer.Option("--records", help="Show the records of each batch of a log too.")
]
KeysOption = Annotated[
    BytesAs | None,
    typer.Option(
        "--keys", help="How --records shows keys: as --values. Default: as --values has it."
    ),
]
ValuesOption = Annotated[
    BytesAs | None,
    typer.Option(
        "--values",
        help="How --records shows values, header values and bodies. auto: text if it is UTF-8 "
        "and printable, else 0x and hexadecimal digits; text: UTF-8, other bytes as \\xNN; "
        "json: what is JSON as that, the rest as auto. Default: auto, with jsonl base64.",
    ),
]
DecoderOption = Annotated[
    Decoder | None,
    typer.Option(
        "--decoder",
        help="Decode keys and values of Kafka's internal topics, and show their fields; implies "
        "--records. none: never. Default: as the name of the directory says, unless --keys or "
        "--values is given.",
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit-bytes",
        metavar="BYTES",
        min=1,
        help="Largest record and batch that --records shows, in bytes, a batch also inflated. "
        "Default: 8 MiB for a record, for a batch as in verify --deep; with --profile 3 MiB "
        "for either.",
    ),
]


class OnDamage(StrEnum):
    """What a dump does where it meets damage, as `segproof.scan` does."""

    FAIL = "fail"
    SKIP = "skip"
    KEEP = "keep"


CsvCellsOption = Annotated[
    CsvCells,
    typer.Option(
        "--csv-cells",
        help="guarded: a text that a spreadsheet would run, since it begins with =, +, -, @, a tab "
        "or a line break, gets a ' before it, unless it is a number. as-is: texts as they are.",
    ),
]


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a range begins or ends: an offset, or a time in milliseconds."""

    offset: int | None = None
    time_ms: int | None = None


def parse_bound(text: str) -> Bound:
    """Return an offset, which is a number, or a time, which is ISO 8601.

    Raises: typer.BadParameter, which says what is wrong.
    """
    number = parse_time(text, what="offset and no time", forms="4711 or 2026-11-21T01:00Z")
    return Bound(offset=number) if NUMBER.fullmatch(text.strip()) else Bound(time_ms=number)


FromOption = Annotated[
    Bound | None,
    typer.Option(
        "--from",
        metavar="OFFSET|TIME",
        parser=parse_bound,
        help="Begin at this offset or time, inclusive, such as 4711 or 2026-11-21T01:00Z. The "
        "indexes beside a log tell where to begin.",
    ),
]
ToOption = Annotated[
    Bound | None,
    typer.Option(
        "--to",
        metavar="OFFSET|TIME",
        parser=parse_bound,
        help="End before this offset or time, exclusive.",
    ),
]
DumpFormatOption = Annotated[
    DumpFormat,
    typer.Option(
        "--format",
        help="text for people, jsonl for programs, csv for tables, parquet for data tools (needs "
        "the extra arrow). csv and parquet have the same columns in each row: with --records the "
        "records, of a directory the logs, of an index file of RocketMQ the entries.",
    ),
]
OnDamageOption = Annotated[
    OnDamage,
    typer.Option(
        "--on-damage",
        help="What a wrong checksum, or a file that cannot be read on, means. fail: the dump ends "
        "there. skip: these rows are left out. keep: the rows of a wrong checksum are shown, with "
        "crc_valid false. Each is told on stderr, and the exit code is 1.",
    ),
]
MaxOption = Annotated[
    int | None,
    typer.Option(
        "--max",
        metavar="N",
        min=1,
        help="Show at most N entries, batches or messages of each file; with --records N records.",
    ),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is shown, and how."""

    release: "Release | None"
    records: bool
    limit: int | None
    hash_slots: int | None
    output_format: DumpFormat
    encoders: Encoders
    wanted: "RowRange"
    as_text: frozenset[str]
    """The columns of bytes that Parquet has as text."""
    on_damage: OnDamage
    csv_cells: CsvCells

    def shown(self, tell: "Tell") -> "Shown":
        """Return what is shown of a file; `tell` takes what costs rows."""
        from segproof_harness.reading.log_file_rows import Shown

        return Shown(
            release=self.release,
            with_records=self.records,
            limit=self.limit,
            on_damage=self.on_damage,
            tell=tell,
            encoders=self.encoders,
            wanted=self.wanted,
        )

    def output(self, *, in_directory: bool) -> AbstractContextManager[Output]:
        """Give what writes the rows of one file, or of all in a directory."""
        return output_to_stdout(
            self.output_format,
            in_directory=in_directory,
            with_records=self.records,
            names_late=self.wanted.is_bounded,
            as_text=self.as_text,
            csv_cells=self.csv_cells,
            encoders=self.encoders,
        )


def chosen_decoder(path: Path, decoder: Decoder | None, *, bytes_asked: bool) -> Decoder:
    """Return the decoder that is asked for, else that of the path unless bytes are asked for."""
    if decoder is not None:
        return decoder
    return Decoder.NONE if bytes_asked else decoder_of(str(path))


def encoders_of(
    keys: BytesAs | None, values: BytesAs | None, output_format: DumpFormat, decoder: Decoder
) -> Encoders:
    """Return how bytes are shown; Parquet has keys and values as they are, unless asked for."""
    is_text = output_format is DumpFormat.TEXT
    usual = BytesAs.BASE64 if output_format is DumpFormat.JSONL else BytesAs.AUTO

    def chosen(how: BytesAs | None) -> Encode:
        if how is None and output_format is DumpFormat.PARQUET:
            return bytes_as_they_are
        return encoder(how or usual, quoted=is_text)

    within = encoder(values or usual)
    decode = None if decoder is Decoder.NONE else RecordDecoder(decoder, within)
    return Encoders(chosen(keys), chosen(values), within, decode)


def text_columns(keys: BytesAs | None, values: BytesAs | None, decoder: Decoder) -> frozenset[str]:
    """Return the columns of bytes that are text: a way to show them was asked for, or decoded."""
    if decoder is not Decoder.NONE:
        return frozenset(("key", "value", "body"))
    of_keys = () if keys is None else ("key",)
    return frozenset(of_keys if values is None else (*of_keys, "value", "body"))


def range_of(begin: Bound | None, end: Bound | None, most: int | None) -> "RowRange":
    """Return which rows are wanted."""
    from segproof_harness.reading.row_range import RowRange

    begin, end = begin or Bound(), end or Bound()
    for first, behind in ((begin.offset, end.offset), (begin.time_ms, end.time_ms)):
        if first is not None and behind is not None and behind <= first:
            refuse("--to must be larger than --from: it is exclusive")
    return RowRange(begin.offset, end.offset, begin.time_ms, end.time_ms, most)
