# SPDX-License-Identifier: Apache-2.0
"""What the verbs below `segproof spark` share: the session, and the bar of progress.

Spark is imported inside the functions only.
Used by: the verbs.
"""

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from segproof_harness.cli.common import EXIT_USAGE, complain, shows_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Master", "progress_of", "running"]

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
