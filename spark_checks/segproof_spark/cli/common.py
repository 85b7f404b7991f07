# SPDX-License-Identifier: Apache-2.0
"""What the verbs below `segproof spark` share: the session, its errors, and the bar of progress.

Spark is imported inside the functions only.
"""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segproof_harness.cli.common import (
    EXIT_INTERNAL_ERROR,
    EXIT_USAGE,
    Show,
    complain,
    progress,
    refuse,
    shows_progress,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Master = Annotated[
    str,
    typer.Option(
        "--master", metavar="MASTER", help="Spark master: local[N], local[*], spark://HOST:PORT."
    ),
]
Remote = Annotated[
    str | None,
    typer.Option(
        "--remote",
        metavar="URL",
        envvar="SPARK_REMOTE",
        help="Spark Connect server, sc://HOST:PORT, instead of a master.",
    ),
]


@contextlib.contextmanager
def running(
    master: str,
    what: str,
    *,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator["SparkSession"]:
    """Open a session, show progress on a terminal, and stop the session.

    An error of Spark ends the verb with one line: exit 2 if the call or Spark's environment is
    wrong, 3 otherwise.
    """
    from segproof_spark.session import LOCAL, SparkNotRunError, start_session

    if remote is not None and master != LOCAL:
        refuse("give --master or --remote, not both")
    at_interrupt = signal.getsignal(signal.SIGINT)
    # py4j logs the exceptions that it raises too, on a logger that has no handler of its own.
    logging.getLogger().addHandler(logging.NullHandler())
    # The JVM and its workers leave Ctrl-C to us: a worker that it ends is an error with a stack.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        session = start_session(master, remote=remote, settings=settings)
    except SparkNotRunError as reason:
        complain(f"Spark: not run: {reason}")
        raise typer.Exit(EXIT_USAGE) from None
    finally:
        # Spark's own handler asks the JVM in the middle of another question, which fails.
        signal.signal(signal.SIGINT, at_interrupt)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        with _telling(), progress_of(session, what):
            yield session
    finally:
        # A cluster that is gone cannot be told to stop.
        with contextlib.suppress(Exception):
            session.stop()


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    """Turn an error of Spark, or results that are lost, into one line and an exit code."""
    from segproof_spark.result_rows import ResultsLostError

    try:
        yield
    except ResultsLostError as error:
        refuse(f"--out {error}")
    except Exception as error:
        from segproof_spark.failures import failure_of

        if not _is_of_spark(error):
            raise
        failure = failure_of(error)
        complain(f"Spark: {failure.text}")
        raise typer.Exit(EXIT_USAGE if failure.is_usage else EXIT_INTERNAL_ERROR) from None


def _is_of_spark(error: Exception) -> bool:
    """Return whether Spark, or the connection to it, has raised this."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j", "grpc")


@contextlib.contextmanager
def progress_of(session: "SparkSession", what: str) -> Iterator[None]:
    """Show the number of finished tasks while the block runs, if a bar may be drawn."""
    if not shows_progress():
        yield
        return
    from segproof_spark.session import is_connect

    watching = _told_by_connect if is_connect(session) else _asked_of_driver
    with progress(what, unit="tasks") as show, watching(session, show):
        yield


@contextlib.contextmanager
def _told_by_connect(session: "SparkSession", show: Show) -> Iterator[None]:
    """Let the server of Connect report its progress."""

    def told(stages: Iterable[Any] | None, *rest: Any, **more: Any) -> None:
        known = list(stages or ())
        if known:
            show(
                sum(stage.num_completed_tasks for stage in known),
                sum(stage.num_tasks for stage in known),
            )

    handler: Any = told  # its class is a part of Connect, which may not be installed
    session.registerProgressHandler(handler)
    try:
        yield
    finally:
        session.removeProgressHandler(handler)


@contextlib.contextmanager
def _asked_of_driver(session: "SparkSession", show: Show) -> Iterator[None]:
    """Ask the driver in this process from time to time."""
    done = threading.Event()

    def watch() -> None:
        tracker = session.sparkContext.statusTracker()
        while not done.wait(0.5):
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            if known:
                show(
                    sum(stage.numCompletedTasks for stage in known),
                    sum(stage.numTasks for stage in known),
                )

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def check_new(out: str | None) -> None:
    """Refuse a place where something is already, before any history is run."""
    if out is None or "://" in out:
        return
    if not out or os.path.lexists(out):
        refuse(f"--out {out}: " + ("there is something already" if out else "names no place"))
