# SPDX-License-Identifier: Apache-2.0
"""The bar of progress of the verbs on Spark, beside a terminal. No Spark is started."""

import os
import pty
import signal
import subprocess
import sys

import pytest

from segproof_spark.cli.common import running

CODE = """
from types import SimpleNamespace
from segproof_spark.cli.common import progress_of

tracker = SimpleNamespace(getActiveStageIds=list)
session = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
with progress_of(session, "verify"):
    print("data")
"""


def test_data_goes_to_stdout_beside_a_terminal(tmp_path: os.PathLike[str]) -> None:
    """With stderr on a terminal, what is printed beside the bar goes to stdout.

    `segproof spark verify DIR > FILE` at a prompt once left an empty file.
    """
    ours, theirs = pty.openpty()
    try:
        with open(os.path.join(tmp_path, "found"), "w+b") as file:
            subprocess.run([sys.executable, "-c", CODE], stdout=file, stderr=theirs, check=True)
            file.seek(0)
            assert file.read() == b"data\n"
    finally:
        os.close(theirs)
        os.close(ours)


def test_ctrl_c_is_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM begins with the signal blocked, as do its workers then: one that Ctrl-C ended was an
    error with a stack, and the verb ended with 3."""
    blocked: list[bool] = []

    def start(*_: object, **__: object) -> object:
        blocked.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        return object()

    monkeypatch.setattr("segproof_spark.session.start_session", start)
    with running("local", "verify"):
        blocked.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    assert [True, False] == blocked
