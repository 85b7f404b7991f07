# SPDX-License-Identifier: Apache-2.0
"""A real broker of one node (KRaft) on the loopback address, and the tools that come with it.

Readiness and the end are told by the broker's own log and by its process, never by waiting.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from segproof_harness.releases.child_messages import SCRATCH_PREFIX
from segproof_harness.releases.jars import class_path
from segproof_harness.releases.pinned import BROKER, FOR_SHORT_LIVES, Release

START_SECONDS = 90.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.05
TOOL_SECONDS = 120.0
CLUSTER_ID = "c2VncHJvb2YtYnJva2VyLQ"
"""Any 16 bytes in url-safe base64; each broker has a folder of its own."""
LOG_BYTES_SHOWN = 6000
HEAP = ("-Xmx512m", *FOR_SHORT_LIVES, "-Duser.timezone=UTC")
LOGGED = ("kafka.log", "kafka.server", "org.apache.kafka.storage")
"""The loggers whose lines are kept; of the others warnings only."""
STARTED = re.compile(r"Kafka Server started")
FAILED = re.compile(r"Exiting Kafka due to fatal exception|Fatal error during broker startup")
MENDED = re.compile(
    r"Recover(ing|ed)|rebuil(t|ding (ind|seg))|[Cc]orrupt|[Ii]nvalid|unclean|not clean|Truncat"
    r"|Could not find|Delet(ing|ed)|WARN|ERROR"
)
"""What a line about a log has when the log was not as a broker leaves it."""
OPTIONS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # Nothing that a timer writes lies between a test and what it asks.
    "log.retention.check.interval.ms": "3600000",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.initial.task.delay.ms": "0",
}


class BrokerError(RuntimeError):
    """The broker did not start or stop; the text ends with the last lines of its log."""


class Broker:
    """One broker with a folder of its own: `start`, then `stop` or `kill`, and `start` again.

    `data` is its log directory; nothing may touch it while the broker runs. A context manager,
    which ends a broker that still runs.
    """

    def __init__(self, folder: Path, release: Release = BROKER) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.log_file = folder / "broker.log"
        self._libraries = folder / "libraries"
        self._release = release
        self._process: subprocess.Popen[bytes] | None = None
        self._said_from = 0
        self.port, controller = _free_ports(2)
        listeners = (
            f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            f"1@127.0.0.1:{controller}",
        )
        options = {
            **OPTIONS,
            "listeners": listeners[0],
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.quorum.voters": listeners[1],
            "log.dirs": str(self.data),
        }
        self._properties = folder / "server.properties"
        text = "".join(f"{name}={value}\n" for name, value in options.items())
        self._properties.write_text(text, encoding="ascii")
        told = run_java(
            release,
            "kafka.tools.StorageTool",
            *("format", "-t", CLUSTER_ID, "-c", str(self._properties)),
        )
        if told.returncode:
            raise BrokerError(f"the folder of the broker was not formatted:\n{told.stderr}")

    @property
    def servers(self) -> str:
        """Where clients find it."""
        return f"127.0.0.1:{self.port}"

    @property
    def said(self) -> str:
        """What it has logged since its last start."""
        with contextlib.suppress(FileNotFoundError):
            return self.log_file.read_bytes()[self._said_from :].decode(errors="replace")
        return ""

    def said_about(self, topic: str) -> list[str]:
        """Return the lines since its last start that name the topic's one partition."""
        name = re.compile(rf"\b(?<![.-]){re.escape(topic)}-0\b")
        return [line for line in self.said.splitlines() if name.search(line)]

    def mended(self, topic: str) -> list[str]:
        """Return the lines that say that it found the topic's log in need of mending."""
        return [line for line in self.said_about(topic) if MENDED.search(line)]

    def loaded(self, topic: str) -> tuple[int, int]:
        """Return how many segments it has loaded of a topic, and where the log ends.

        Raises: BrokerError unless it said so once.
        """
        lines = [
            match
            for line in self.said_about(topic)
            if "Completed load of" in line and f" topic={topic}," in line
            for match in [re.search(r"logEndOffset=(\d+)\) with (\d+) segments", line)]
            if match
        ]
        if len(lines) != 1:
            raise self._error(f"the broker loaded {topic} {len(lines)} times")
        return int(lines[0][2]), int(lines[0][1])

    def partition(self, topic: str, number: int = 0) -> Path:
        """Return the directory of a partition."""
        return self.data / f"{topic}-{number}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        if error is not None and self._process is not None:
            error.add_note(f"the broker's log ends with:\n{self.said[-LOG_BYTES_SHOWN:]}")
        self.kill()

    def start(self) -> None:
        """Start it, and wait until it serves. Raises: BrokerError."""
        if self._process is not None:
            raise BrokerError("the broker runs already")
        self._libraries.mkdir(exist_ok=True)
        with open(self.log_file, "ab") as log:
            self._said_from = log.seek(0, os.SEEK_END)
            self._process = subprocess.Popen(
                _command(self._release, self._libraries, "kafka.Kafka", str(self._properties)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        end = time.monotonic() + START_SECONDS
        while not STARTED.search(self.said):
            is_over = self._process.poll() is not None or FAILED.search(self.said)
            if is_over or time.monotonic() > end:
                self.kill()
                raise self._error("the broker did not start")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Let it end in order, as an operator does (SIGTERM). Raises: BrokerError."""
        process = self._running()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._error("the broker did not stop") from None
        self._ended()
        if not (self.data / ".kafka_cleanshutdown").exists():
            raise self._error("the broker did not end in order")

    def kill(self) -> None:
        """End it at once (SIGKILL), if it runs; the page cache keeps what it wrote."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._ended()

    def _ended(self) -> None:
        """Forget the process, and remove what its JVM had unpacked."""
        self._process = None
        shutil.rmtree(self._libraries, ignore_errors=True)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise BrokerError("the broker does not run")
        return self._process

    def _error(self, what: str) -> BrokerError:
        return BrokerError(f"{what}; its log ends with:\n{self.said[-LOG_BYTES_SHOWN:]}")


def _free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _command(release: Release, libraries: str | Path, main: str, *arguments: str) -> Sequence[str]:
    """Return the command that runs a main class; it unpacks libraries in a folder of its own."""
    loggers = [f"-Dorg.slf4j.simpleLogger.log.{name}=info" for name in LOGGED]
    jars = os.pathsep.join(map(str, class_path(release)))
    unpacks = f"-Djava.io.tmpdir={libraries}"
    options = (*HEAP, unpacks, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", *loggers)
    return ("java", *options, "-cp", jars, main, *arguments)


def run_java(
    release: Release, main: str, *arguments: str, seconds: float = TOOL_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run a main class of a release to its end, and return what it said.

    Raises: subprocess.TimeoutExpired, with the process ended, after so many seconds;
    FileNotFoundError without Java or the jars.
    """
    with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX) as libraries:
        return subprocess.run(
            _command(release, libraries, main, *arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
