# SPDX-License-Identifier: Apache-2.0
"""The parent's side of the oracle: a child process for each release, started when it is needed.

A child that does not answer in time, or dies, is ended; the next question starts another one. One
whose parent goes away ends itself, and takes its scratch folder with it.
"""

import atexit
import contextlib
import mmap
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from segproof_harness.releases.child_messages import BEGINNINGS, LIBRARIES, SCRATCH_PREFIX, Failed
from segproof_harness.releases.jars import FOLDER_VARIABLE, jar_folder
from segproof_harness.releases.java_version import java_home
from segproof_harness.releases.pinned import Release, release_named

START_SECONDS = 60.0
MEMORY_DIRECTORY = Path("/dev/shm")
"""Where the child has its files, if there is such a place: they are many and small."""
LOG_BYTES_SHOWN = 2000
RESIDENT_BYTES_MAX = 1 << 30
"""A child with more begins no history: some real classes never give back what is not Java's, such
as 40 MB for each message store of RocketMQ 5.5.1."""


class OracleError(RuntimeError):
    """The release can't be asked; the text says why and what to do."""


class NoAnswerError(OracleError):
    """The JVM hung or died; a question that is asked again begins with a new one."""

    def __init__(self, text: str, *, died: bool) -> None:
        super().__init__(text)
        self.died = died
        """Whether it died; else it said nothing in time."""


class OracleProcess:
    """The child of one release."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._answers = select.poll()
        """Tells when the pipe has an answer, or has ended: its own `poll` makes one each time."""
        self._scratch: str | None = None
        self._libraries: str | None = None
        """Where its JVM unpacks what it executes, which the place in memory may forbid."""
        self._owner = os.getpid()
        """The process that has started the child: one that is forked off later starts its own."""

    def ask(self, name: str, *arguments: Any, seconds: float) -> Any:
        """Ask the child to do something, and return its answer.

        Raises: NoAnswerError for a child that dies or says nothing for so many seconds; OracleError
        for one that can't be started or that fails.
        """
        if self._owner != os.getpid():
            self._disown()
        if name in BEGINNINGS and self._resident_bytes() > RESIDENT_BYTES_MAX:
            self.end()
        pipe = self._pipe or self.start()
        try:
            pipe.send((name, arguments))
            if not self._answers.poll(1000 * seconds):
                raise self._lost(f"no answer in {seconds:.0f} s", died=False)
            answer = pipe.recv()
        except (EOFError, OSError) as error:
            raise self._lost(f"its JVM died ({type(error).__name__})", died=True) from None
        except (KeyboardInterrupt, SystemExit):  # SystemExit: in a worker
            self.end()  # its answer would be taken for that of the next question
            raise
        if isinstance(answer, Failed):
            raise OracleError(f"{self.release.name} can't do {name}:\n{answer.text}")
        return answer

    def start(self) -> Connection:
        """Start the child, and return the way to it.

        Raises: OracleError that says why it can't be started.
        """
        self.end()
        in_memory = MEMORY_DIRECTORY.is_dir() and os.access(MEMORY_DIRECTORY, os.W_OK)
        self._owner = os.getpid()
        self._scratch = tempfile.mkdtemp(
            prefix=SCRATCH_PREFIX, dir=MEMORY_DIRECTORY if in_memory else None
        )
        self._libraries = tempfile.mkdtemp(prefix=SCRATCH_PREFIX)
        ours, theirs = socket.socketpair()
        self._pipe = Connection(ours.detach())
        self._answers = select.poll()
        self._answers.register(self._pipe, select.POLLIN)
        command = [sys.executable, "-m", "segproof_harness.releases.child", self.release.name]
        with theirs, self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                cwd=self._scratch,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, **self._environment()},
            )
        try:
            answer = self._pipe.recv() if self._pipe.poll(START_SECONDS) else None
        except (EOFError, OSError):
            raise self._not_started("its JVM died") from None
        if answer is None:
            raise self._not_started(f"its JVM said nothing in {START_SECONDS:.0f} s")
        if isinstance(answer, Failed):
            raise self._not_started(answer.text)
        return self._pipe

    def _environment(self) -> dict[str, str]:
        """Return what the child's environment has that ours has not: it works in another folder."""
        assert self._scratch is not None
        assert self._libraries is not None
        home = java_home()
        return {
            "TMPDIR": self._scratch,
            LIBRARIES: self._libraries,
            "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path),
            FOLDER_VARIABLE: str(jar_folder()),
            **({"JAVA_HOME": home} if home else {}),
        }

    @property
    def _log(self) -> Path:
        assert self._scratch is not None
        return Path(self._scratch, "log")

    def _lost(self, what: str, *, died: bool) -> NoAnswerError:
        """End the child, and return the error with the last words of its JVM."""
        return NoAnswerError(self._last_words(what), died=died)

    def _not_started(self, what: str) -> OracleError:
        return OracleError(self._last_words(f"can't be started: {what}"))

    def _last_words(self, what: str) -> str:
        """End the child; return what happened, with the end of its log."""
        words = ""
        with contextlib.suppress(OSError), self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - LOG_BYTES_SHOWN))
            words = log.read().decode(errors="replace").strip()
        self.end()
        return f"{self.release.name}: {what}" + (f"\n{words}" if words else "")

    def end(self) -> None:
        """End the child, if there is one, and remove its files."""
        if self._owner != os.getpid():
            self._disown()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        for folder in filter(None, (self._scratch, self._libraries)):
            shutil.rmtree(folder, ignore_errors=True)
        self._scratch = self._libraries = None

    def _resident_bytes(self) -> int:
        """Return how much memory the child has; 0 where there is none, or the system tells not."""
        try:
            words = Path(f"/proc/{self._process.pid}/statm").read_text() if self._process else ""
        except OSError:
            words = ""
        return int(words.split()[1]) * mmap.PAGESIZE if words else 0

    def _disown(self) -> None:
        """Forget a child that the process has from which this one was forked."""
        if self._process is not None:
            self._process.returncode = 0  # it is not ours to wait for
        self._process = self._pipe = self._scratch = self._libraries = None


@cache
def process_for(release_name: str) -> OracleProcess:
    """Return the one child of a release that this process has."""
    process = OracleProcess(release_named(release_name))
    atexit.register(process.end)
    return process
