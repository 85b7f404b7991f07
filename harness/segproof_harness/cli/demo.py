# SPDX-License-Identifier: Apache-2.0
"""The verb `demo`: the main job on the real files that ship with the package."""

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    FormatOption,
    complain,
    elapsed,
    refuse,
    summarise,
    write_line,
    write_prose,
    write_row,
)
from segproof_harness.reports.text import reason_of

if TYPE_CHECKING:
    from contextvars import ContextVar

    from segproof_harness.conformance.demo import Row, Say


def command(
    copy_to: Annotated[
        Path | None,
        typer.Option("--copy-to", metavar="DIR", help="Only copy the real files into a new DIR."),
    ] = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Check real files of Kafka and RocketMQ that ship with segproof.

    They are verified, read and looked up in, and compared with recorded answers of the releases
    that wrote them; random histories are replayed on model and implementation, and on the real
    classes of the newest releases, if their jars have been fetched; files and histories are checked
    again on local Spark, if there is one. It takes one to five minutes, half of them for Spark,
    needs no extra and no network, and leaves the package as it is. A missing part is named with
    the remedy.

    \b
    Examples:
      segproof demo
      segproof demo --format jsonl
      segproof demo --copy-to dumps
    """
    if copy_to is not None:
        _copy(copy_to)
        return
    from segproof_harness.conformance.demo import BEGINS, FAILED, NOT_RUN, run

    started = time.monotonic()
    summarise("segproof demo: real files, checked in this process and on Spark")
    rows: list[Row] = []
    work = run(complain)
    while row := _next_row(work, BEGINS):
        rows.append(row)
        if output_format is Format.JSONL:
            write_row(row.to_json(), output_format)
        else:
            line = f"{row.what:30} {row.verdict:8} {row.seconds:6.1f} s  {row.figures}"
            write_prose(line, indent=len(line) - len(row.figures))
        sys.stdout.flush()
    missing = [row for row in rows if row.verdict == NOT_RUN]
    failed = sum(row.verdict == FAILED for row in rows)
    summarise(
        f"{len(rows) - len(missing) - failed} passed, {failed} failed, {len(missing)} not run, "
        f"{time.monotonic() - started:.0f} s"
    )
    for row in missing:
        summarise(f"not run: {row.what}: {row.figures}")
    if failed:
        raise typer.Exit(EXIT_FINDINGS)


def _next_row(work: "Iterator[Row]", begins: "ContextVar[Say]") -> "Row | None":
    """Do the work of a row; a terminal shows its name and since when it runs."""
    with elapsed() as show:
        before = begins.set(show)
        try:
            return next(work, None)
        finally:
            begins.reset(before)


def _copy(target: Path) -> None:
    """Copy the partition directories and the stores that ship with the package."""
    from segproof_harness.files.shipped_directories import partition_of, scenarios, stores

    try:
        if target.exists():
            refuse(f"{target}: already exists; give a directory that does not exist yet")
        for partition in map(partition_of, scenarios()):
            _copy_folder(partition, target / partition.name)
        for store in stores():
            _copy_folder(store, target / "rocketmq" / store.parent.name)
    except OSError as error:
        refuse(reason_of(error))


def _copy_folder(source: Path, target: Path) -> None:
    """Copy one folder, and write where it is now. The first error ends it."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
    write_line(str(target))
