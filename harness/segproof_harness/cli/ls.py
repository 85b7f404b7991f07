# SPDX-License-Identifier: Apache-2.0
"""The verb `ls`: which partitions, segments, queues and stores are at a path."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    FormatOption,
    Show,
    check_readable,
    complain,
    progress,
    refuse,
    refuse_unread,
    summarise,
    with_times,
    write_row,
)
from segproof_harness.reports.text import printable

if TYPE_CHECKING:
    from rich.table import Table

    Row = dict[str, Any]

SEGMENTS_HELP = (
    "Show the segments of each partition too. Default: if PATH is the directory of one partition."
)
UNKNOWN = "?"
WIDE = 100
"""So many columns hold both times in one line."""
NARROW = 60
"""Fewer columns hold no table."""


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Data directories, partition directories, stores of RocketMQ, or folders of them.",
        ),
    ],
    segments: Annotated[
        bool | None, typer.Option("--segments/--no-segments", help=SEGMENTS_HELP)
    ] = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Show topics, partitions and segments with their sizes, offsets and times.

    Of RocketMQ the commit log, the consume queues and the index files. Little is read: indexes, and
    the first and last batches. The first offset and time are inclusive, and end_offset is
    exclusive. The last time is the largest timestamp. A log that can't be read to its end is named
    on stderr, the exit code is 1, and its offsets and times are those before the damage; `segproof
    verify` says more. On a terminal the rows are a table.

    \b
    Examples:
      segproof ls /var/lib/kafka/data
      segproof ls my-topic-0
      segproof ls store --format jsonl
    """
    for path in paths:
        check_readable(path)
        refuse_unread(path)
        if not path.is_dir():
            refuse(f"{path}: not a directory; `segproof dump` shows what is in a file")
    is_table = output_format is Format.TEXT and sys.stdout.isatty()
    shown: list[Row] = []
    sane = True

    def tell(text: str) -> None:
        nonlocal sane
        sane = False
        complain(text)

    from segproof.commands import quoted_path
    from segproof.reading.file_names import BROKER_FILE

    told = ""
    with progress("ls", unit="partitions") as show:
        for path in paths:
            found = False
            for row in _rows(os.fspath(path), segments, tell, show):
                found = True
                if is_table:
                    shown.append(row)
                else:
                    write_row(_known(row) if output_format is Format.TEXT else row, output_format)
                if row["reason"] is not None and not told.startswith(text := _with_path(row)):
                    told = text  # of a partition: it is the reason of its first such segment too
                    tell(text)
            if not found and (path / BROKER_FILE).is_file():
                summarise(f"{path}: no partition in use in this data directory")
            elif not found:
                _refuse_unnamed(path)
                refuse(
                    f"{path}: no log, index or store in use is in or below this directory;"
                    f" `segproof verify {quoted_path(path)}` tells what else is"
                )
    if is_table:
        _write_tables(shown)
    if not sane:
        raise typer.Exit(EXIT_FINDINGS)


def _refuse_unnamed(path: Path) -> None:
    """End where the content of a file in a directory tells what its name does not."""
    from segproof.commands import quoted_path
    from segproof.files import REAL_FILES
    from segproof.inventory.loose import ASKED_MAX
    from segproof.reading.file_contents import content_of

    for name in REAL_FILES.list_directory(os.fspath(path))[:ASKED_MAX]:
        content = content_of(os.path.join(path, name), REAL_FILES)
        if content is not None:
            refuse(
                f"{path}: the names here do not say what the files are; by its content"
                f" {name} is {content.words}; `segproof verify {quoted_path(path)}` says it of each"
            )


def _known(row: "Row") -> "Row":
    """Return a row of text: without what is null."""
    return with_times({name: value for name, value in row.items() if value is not None})


def _rows(
    path: str, with_segments: bool | None, tell: Callable[[str], None], show: Show
) -> "Iterator[Row]":
    from segproof_harness.reading.listed_partitions import partition_rows
    from segproof_harness.reading.listed_stores import store_part_rows

    yield from partition_rows(path, tell, with_segments=with_segments, on_progress=show)
    yield from store_part_rows(path)


def _with_path(row: "Row") -> str:
    path, reason = str(row["path"]), str(row["reason"])
    return reason if os.path.dirname(path) in reason else f"{path}: {reason}"


def _write_tables(rows: "list[Row]") -> None:
    """Write a table for each data directory and store; without room for one, the rows."""
    from rich.console import Console

    console = Console(highlight=False, legacy_windows=False)
    if console.width < NARROW:
        for row in rows:
            write_row(_known(row), Format.TEXT)
        return
    for parent, group in groupby(rows, _parent_of):
        console.print(f"# {printable(parent)}", markup=False, soft_wrap=True)
        console.print(table_of(group, console.width))


def _parent_of(row: "Row") -> str:
    """Return the data directory of a partition, or the store of one of its parts."""
    levels = {"segment": 2, "consume-queue": 3}.get(row["kind"], 1)
    path: str = os.path.abspath(row["path"])
    for _ in range(levels):
        path = os.path.dirname(path)
    return path


def table_of(rows: "Iterable[Row]", columns: int) -> "Table":
    """Return the rows as a table; narrower than 100 columns, both times are below each other."""
    from rich.filesize import decimal
    from rich.text import Text

    from segproof_harness.reports.terminal import bare_table

    table = bare_table()
    table.add_column("name", overflow="fold")
    table.add_column("files", justify="right")
    for name in ("size", "offsets"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("times", no_wrap=True)
    for row in rows:
        times = _times(row["first_timestamp"], row["max_timestamp"])
        cells = [
            printable(_name_of(row)),
            str(row.get("segments", row.get("files")) or ""),
            UNKNOWN if row["size_bytes"] is None else decimal(row["size_bytes"]),
            _range(row["first_offset"], row["end_offset"]),
            ("\n" if columns < WIDE else " to ").join(times),
        ]
        table.add_row(*map(Text, cells), style="red" if row["reason"] is not None else None)
    return table


def _name_of(row: "Row") -> str:
    """Return a short name: of a partition TOPIC-N, of a segment its log, of a queue TOPIC/N."""
    if row["kind"] == "segment":
        return f"  {row['base_offset']:020}"
    if row["kind"] == "consume-queue":
        return f"{row['topic']}/{row['queue_id']}"
    path: str = os.path.abspath(row["path"])
    return os.path.basename(path)


def _range(first: int | None, end: int | None) -> str:
    if first is None and end is None:
        return ""
    if first is not None and end == first:
        return f"none, {end} next"
    if end is None:
        return f"from {first}"
    return f"{UNKNOWN if first is None else first} - {end - 1}"


def _times(first_ms: int | None, last_ms: int | None) -> list[str]:
    """Return both times in whole seconds; nothing if neither is known."""
    from segproof.findings import time_text

    if first_ms is None and last_ms is None:
        return []
    texts = [UNKNOWN if each is None else time_text(each) for each in (first_ms, last_ms)]
    return [f"{text[:19]}Z" if text.endswith("Z") else text for text in texts]
