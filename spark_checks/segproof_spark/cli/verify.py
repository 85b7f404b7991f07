# SPDX-License-Identifier: Apache-2.0
"""The verb `spark verify`: the findings of `segproof verify`, made in parallel.

Used by: cli.
"""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    FormatOption,
    LimitOption,
    check_readable,
    summarise,
)
from segproof_spark.cli.running import Master, running


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Files, partition directories, data directories."),
    ],
    deep: Annotated[bool, typer.Option("--deep", help="Read every record too.")] = False,
    master: Master = "local[*]",
    limit_bytes: LimitOption = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Verify files on Spark, partition directories in parallel.

    The findings are those of `segproof verify`, with absolute paths. Every worker must see the
    files under the same paths.

    \b
    Examples:
      segproof spark verify /var/lib/kafka/data
      segproof spark verify --master spark://host:7077 /mnt/dumps/a /mnt/dumps/b
    """
    from segproof_harness.report import write_jsonl, write_text
    from segproof_spark.verification import verify_on_spark

    for path in paths:
        check_readable(path)
    write = write_jsonl if output_format is Format.JSONL else write_text
    started, defects, notes = time.monotonic(), 0, 0
    with running(master, "verify") as session:
        for finding in verify_on_spark(session, paths, deep=deep, limit=limit_bytes):
            write(finding, sys.stdout)
            if finding["severity"] == "note":
                notes += 1
            else:
                defects += 1
    seconds = time.monotonic() - started
    summarise(f"{len(paths)} paths on Spark in {seconds:.1f} s: {defects} findings, {notes} notes")
    if defects:
        raise typer.Exit(EXIT_FINDINGS)
