# SPDX-License-Identifier: Apache-2.0
"""The parent's side of the oracle: a child process for each release, started when it is needed.

A child that does not answer in time, or dies, is ended; the next question starts another one.

Used by: subjects.oracle.
"""

import atexit
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from segproof_harness.oracle.messages import Failed
from segproof_harness.oracle.releases import Release, release_named

__all__ = ["NoAnswerError", "OracleError", "OracleProcess", "process_for"]

START_SECONDS = 60.0
MEMORY_DIRECTORY = Path("/dev/shm")
"""Where the child has its files, if there is such a place: they are many and small."""
LOG_BYTES_SHOWN = 2000


class OracleError(RuntimeError):
    """The release can't be asked; the text says why and what to do."""


class NoAnswerError(OracleError):
    """The JVM hung or died; a question that is asked again begins with a new one."""


class OracleProcess:
    """The child of one release."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    def ask(self, name: str, *arguments: Any, seconds: float) -> Any:
        """Ask the child to do something, and return its answer.

        Raises: NoAnswerError for a child that dies or says nothing for so many seconds; OracleError
        for one that can't be started or that fails.
        """
        pipe = self._pipe or self._start()
        try:
            pipe.send((name, arguments))
            answer = self._receive(pipe, seconds)
        except (EOFError, OSError) as error:
            raise self._lost(f"its JVM died ({type(error).__name__})") from None
        if isinstance(answer, Failed):
            raise OracleError(f"{self.release.name} can't do {name}:\n{answer.text}")
        return answer

    def _receive(self, pipe: Connection, seconds: float) -> Any:
        if not pipe.poll(seconds):
            raise self._lost(f"no answer in {seconds:.0f} s")
        return pipe.recv()

    def _start(self) -> Connection:
        in_memory = MEMORY_DIRECTORY.is_dir() and os.access(MEMORY_DIRECTORY, os.W_OK)
        self._scratch = tempfile.TemporaryDirectory(
            prefix="segproof-oracle-", dir=MEMORY_DIRECTORY if in_memory else None
        )
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "segproof_harness.oracle.child", self.release.name]
        paths = os.pathsep.join(path for path in sys.path if path)
        with theirs, open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "TMPDIR": self._scratch.name, "PYTHONPATH": paths},
            )
        self._pipe = Connection(ours.detach())
        try:
            answer = self._receive(self._pipe, START_SECONDS)
        except (EOFError, OSError):
            raise self._lost("its JVM did not start") from None
        if isinstance(answer, Failed):
            self.end()
            raise OracleError(f"{self.release.name} can't be started: {answer.text}")
        return self._pipe

    @property
    def _log(self) -> Path:
        assert self._scratch is not None
        return Path(self._scratch.name, "log")

    def _lost(self, what: str) -> NoAnswerError:
        """End the child, and return the error with the last words of its JVM."""
        words = ""
        with contextlib.suppress(OSError):
            words = self._log.read_bytes()[-LOG_BYTES_SHOWN:].decode(errors="replace").strip()
        self.end()
        return NoAnswerError(f"{self.release.name}: {what}" + (f"\n{words}" if words else ""))

    def end(self) -> None:
        """End the child, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None


@cache
def process_for(release_name: str) -> OracleProcess:
    """Return the one child of a release that this process has."""
    process = OracleProcess(release_named(release_name))
    atexit.register(process.end)
    return process
