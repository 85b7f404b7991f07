# SPDX-License-Identifier: Apache-2.0
"""The verbs below `segproof spark`.

Spark is imported inside the functions only.
Used by: segproof_harness.cli, through the entry-point group `segproof.commands`.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    EXIT_USAGE,
    Format,
    FormatOption,
    LimitOption,
    check_readable,
    complain,
    shows_progress,
    summarise,
)
from segproof_harness.cli.histories import (
    ALL,
    LENGTH,
    SUBJECTS,
    CountOption,
    DrawingProfileOption,
    LengthOption,
    SeedOption,
    StructureOption,
    SubjectsOption,
    compared,
    structures_of,
    subjects_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from segproof_spark.replay import SparkReplay

app = typer.Typer(
    name="spark",
    help="The same checks on Spark: on all cores by default, on a cluster with --master.",
    no_args_is_help=True,
)

Master = Annotated[
    str, typer.Option("--master", help="Spark master: local[N], local[*], spark://HOST:PORT.")
]


@contextlib.contextmanager
def running(master: str, what: str) -> Iterator["SparkSession"]:
    """Open a session, show progress on a terminal, and stop the session."""
    from segproof_spark.session import SparkNotRunError, start_session

    try:
        session = start_session(master)
    except SparkNotRunError as reason:
        complain(f"Spark: not run: {reason}")
        raise typer.Exit(EXIT_USAGE) from None
    try:
        with progress_of(session, what):
            yield session
    finally:
        session.stop()


@contextlib.contextmanager
def progress_of(session: "SparkSession", what: str) -> Iterator[None]:
    """Show the tasks done of all tasks, while the block runs and a bar may be drawn."""
    if not shows_progress():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress

    done = threading.Event()
    with Progress(
        console=Console(stderr=True, soft_wrap=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
    ) as bar:
        task = bar.add_task(what, total=None)

        def watch() -> None:
            tracker = session.sparkContext.statusTracker()
            while not done.wait(0.5):
                stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
                known = [stage for stage in stages if stage is not None]
                if known:
                    total = sum(stage.numTasks for stage in known)
                    finished = sum(stage.numCompletedTasks for stage in known)
                    bar.update(task, total=total, completed=finished)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


@app.command("verify")
def verify(
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


def _counted(result: "SparkReplay") -> str:
    """Say how many findings are shown, and how many more there are."""
    cut = result.findings_cut
    return f"{len(result.findings)} findings" + (f"; {cut} more are not shown" if cut else "")


@app.command("replay")
def replay(
    structure: StructureOption = ALL,
    profile: DrawingProfileOption = "segproof",
    seed: SeedOption = 0,
    length: LengthOption = LENGTH,
    count: CountOption = 1000,
    subjects: SubjectsOption = SUBJECTS,
    master: Master = "local[*]",
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Run random histories on Spark and compare every answer, error and byte.

    Each finding names the `segproof replay` that shows it in one process.

    \b
    Example:
      segproof spark replay --structure offset-index --count 100000
    """
    from segproof_harness.report import write_jsonl, write_text
    from segproof_spark.replay import replay_on_spark

    names = subjects_of(subjects)
    structures = structures_of(structure, profile, names)
    started = time.monotonic()
    with running(master, "replay") as session:
        result = replay_on_spark(
            session,
            structures,
            profile=profile,
            seeds=range(seed, seed + count),
            length=length,
            subjects=names,
        )
    write = write_jsonl if output_format is Format.JSONL else write_text
    for finding in result.findings:
        write(finding, sys.stdout)
    seconds = time.monotonic() - started
    summarise(f"{compared(result)} on Spark in {seconds:.1f} s: {_counted(result)}")
    if result.findings:
        raise typer.Exit(EXIT_FINDINGS)
