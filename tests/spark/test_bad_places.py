# SPDX-License-Identifier: Apache-2.0
"""Places where Spark cannot run, or not all of it: one clear line, in bounded time, and exit 2."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from tests.spark.clusters import HOST, WAIT_SECONDS, free_port, new_place
from typer.testing import CliRunner

from segproof_spark import java_output, session
from segproof_spark.cli import app
from segproof_spark.failures import failure_of
from segproof_spark.session import SparkNotRunError, check_spark, start_session

SOON_SECONDS = 45.0
WORKER_ERROR = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 2044, in main
    process()
ModuleNotFoundError: No module named 'numpy'

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handle(PythonRunner.scala:581)
"""
OTHER_PYTHON = """An error occurred while calling o66.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 1 times
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker \
has different version: 3.12 than that in driver: 3.11
"""
NO_PYTHON = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times
java.io.IOException: Cannot run program "/opt/none/python": error=2, No such file or directory
"""


@pytest.fixture(autouse=True)
def _java(not_run: Callable[[str], NoReturn]) -> None:
    try:
        check_spark()
    except SparkNotRunError as reason:
        not_run(str(reason))


def verified(*options: str) -> tuple[str, float]:
    """Run `spark verify` of a folder, which must exit 2; return what it says, and the seconds."""
    started = time.monotonic()
    done = CliRunner().invoke(app, ["verify", str(Path(__file__).parent), *options])
    assert 2 == done.exit_code, done.output
    return done.stderr, time.monotonic() - started


@pytest.mark.parametrize(
    ("option", "scheme", "what"),
    [
        ("--master", "spark", "Spark master"),
        ("--remote", "sc", "Spark Connect server"),
    ],
)
def test_nobody_listens(option: str, scheme: str, what: str) -> None:
    """Spark itself would try for a minute, and Connect for ten."""
    place = f"{scheme}://{HOST}:{free_port()}"
    said, seconds = verified(option, place)
    assert f"segproof: Spark: not run: {what} {place} cannot be reached: " in said
    assert seconds < SOON_SECONDS
    assert 1 == len(said.splitlines())


def test_a_second_master_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several masters one is alive; a port that is no number is said."""
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        session._check_reach([f"{HOST}:{free_port()}", f"{HOST}:{port}"], "it")
    with pytest.raises(SparkNotRunError, match="'here' is not HOST:PORT"):
        session._check_reach(["here"], "it")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--remote", "sc://a", "--master", "local[2]"), "--master or --remote, not both"),
        (("--remote", "http://a:1"), "no address of Spark Connect; say sc://HOST:PORT"),
        (("--remote", "sc://"), "no address of Spark Connect"),
    ],
)
def test_wrong_addresses(options: tuple[str, ...], words: str) -> None:
    """Said before anything is started."""
    said, seconds = verified(*options)
    assert words in said
    assert seconds < SOON_SECONDS


def test_a_client_of_connect_needs_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package that is missing, and how to get it; Java is not asked for."""
    monkeypatch.setattr(session, "java_version", lambda: pytest.fail("no Java is needed"))
    monkeypatch.setattr(session, "_is_there", lambda package: package != "grpc")
    with pytest.raises(SparkNotRunError, match="grpc is not installed; install it with: `pip"):
        start_session(remote="sc://here")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WORKER_ERROR, "ModuleNotFoundError: No module named 'numpy'; a Python worker lacks it"),
        (OTHER_PYTHON, "3.12 than that in driver: 3.11; set PYSPARK_PYTHON"),
        (NO_PYTHON, "set PYSPARK_PYTHON to a Python that the workers have"),
    ],
)
def test_what_a_place_lacks_is_said_in_one_line(text: str, words: str) -> None:
    """The stack of three programs is in the error; the reason and the remedy are shown."""
    failure = failure_of(RuntimeError(text))
    assert failure.is_usage
    assert words in failure.text
    assert "\n" not in failure.text


def test_other_failures_are_not_the_users() -> None:
    """What is not known counts as an internal error, told by its first sensible line."""
    text = "An error occurred while calling o1.x.\n: java.lang.OutOfMemoryError: Java heap space\n"
    assert ("java.lang.OutOfMemoryError: Java heap space", False) == failure_of(Exception(text))
    assert ("Spark told no reason", False) == failure_of(Exception(""))


def test_workers_without_a_package_that_segproof_needs(tmp_path: Path) -> None:
    """A real local Spark, whose Python workers have segproof, and not what computes a CRC-32C."""
    place = new_place(tmp_path, ("awscrt", "cramjam"))
    bundle = tmp_path / "segproof.zip"
    CliRunner().invoke(app, ["bundle", "-o", str(bundle)])
    python = Path(place.environment["PYSPARK_PYTHON"])
    python.write_text(python.read_text().replace('PYTHONPATH="', f'PYTHONPATH="{bundle}:'))
    command = [sys.executable, "-m", "segproof_harness.cli", "spark", "replay"]
    done = subprocess.run(
        [*command, "--master", "local[1]", "--structure", "record-batch", "--count", "2"],
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert 2 == done.returncode, done.stderr
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("segproof: Spark: ")]
    assert "No module named '" in line
    assert "; a Python worker lacks it: install segproof's dependencies there" in line
    # A stack of Spark's own processes, whose worker was ended, may stand beside it; none of ours.
    assert "segproof_harness/cli" not in done.stderr
    assert "incubator" not in done.stderr
    assert "" == done.stdout


def test_a_jvm_that_does_not_start_says_why() -> None:
    """The lines of a good start are left out; those of a failed one are the only explanation."""
    command = [sys.executable, "-m", "segproof_harness.cli", "spark", "verify", "."]
    settings = "--conf spark.driver.memory=1x pyspark-shell"
    done = subprocess.run(
        command,
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": settings},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert 2 == done.returncode, done.stderr
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("Invalid maximum heap size: -Xmx1x")
    assert last.startswith("segproof: Spark: not run: ")
    assert "" == done.stdout


def test_a_good_start_is_silent_and_errors_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Java's greetings are dropped, a logged error is not, and later lines come as they are."""
    output = java_output._Output()
    with output.write_end() as stream:
        os.write(stream, b"WARNING: Using incubator modules\n12:00:01 ERROR Master: gone\n\tat x\n")
        later = os.dup(stream)
    while len(output._kept or ()) < 3:
        time.sleep(0.01)
    output.pass_on(is_started=True)
    os.write(later, b"12:00:02 ERROR Executor: lost\n\tat y\n")
    os.close(later)
    output.wait_for_end()
    expected = "12:00:01 ERROR Master: gone\n12:00:02 ERROR Executor: lost\n    at y\n"
    assert expected == capsys.readouterr().err
