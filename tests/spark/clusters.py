# SPDX-License-Identifier: Apache-2.0
"""Real clusters on this machine, from the pip package: a standalone master with workers, a server
of Spark Connect, and what has to be known of processes to kill one of them.

Python on the workers finds segproof in zip files only, as on a cluster that has not installed it;
numba is hidden too. A task on a worker that opens a file whose path has `held` in it can be held
there.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
WAIT_SECONDS = 120.0
FAST_START = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Options of Java for programs that live for seconds: to verify the classes of Spark takes a sixth
of a start."""
SETTINGS = {
    "spark.executor.extraJavaOptions": FAST_START,
    "spark.driver.defaultJavaOptions": FAST_START,
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.ui.enabled": "false",
}
SITE = '''
import os, sys, time
from importlib.machinery import PathFinder

hidden, folder = {hidden!r}, {folder!r}


class Finder(PathFinder):
    """Finds segproof in zip files only, and of what is hidden nothing."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in hidden:
            return None
        if path is None and name.partition("_")[0] == "segproof":
            path = [one for one in sys.path if one.endswith(".zip")]
        return super().find_spec(name, path, target)


# An editable installation has finders of its own.
sys.meta_path = [one for one in sys.meta_path if isinstance(one, type)]
sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
os_open = os.open


def held_open(path, *rest, **more):
    is_executor = "SPARK_EXECUTOR_DIRS" in os.environ
    if is_executor and "held" in str(path) and os.path.exists(os.path.join(folder, "hold")):
        with open(os.path.join(folder, "holder"), "w") as holder:
            holder.write(str(os.getpid()))
        while os.path.exists(os.path.join(folder, "hold")):
            time.sleep(0.02)
    return os_open(path, *rest, **more)


os.open = held_open
'''


def python_without(folder: Path, hidden: Sequence[str] = ()) -> Path:
    """Make a Python that finds segproof in zip files only, and nothing of `hidden`."""
    site = folder / "site"
    site.mkdir(parents=True)
    source = SITE.format(hidden=frozenset(hidden), folder=str(folder))
    (site / "sitecustomize.py").write_text(source)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{site}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


def free_port() -> int:
    """Return a port of this machine that nobody listens at."""
    with socket.create_server((HOST, 0)) as server:
        port: int = server.getsockname()[1]
        return port


def wait_until(is_so: Callable[[], object], what: str) -> None:
    """Wait until something is so. Raises: AssertionError after `WAIT_SECONDS`."""
    end = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < end, f"{what}: not within {WAIT_SECONDS} s"
        time.sleep(0.05)


def parent_of(process: int) -> int:
    """Return the number of the process that has started another one."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


@dataclass
class Place:
    """Where Spark runs: a folder, an environment for what is started, and the processes."""

    folder: Path
    environment: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    address: str = ""
    """`spark://HOST:PORT` or `sc://HOST:PORT`."""

    @property
    def hold(self) -> Path:
        """The file as long as which exists a task that opens a file named `held` waits."""
        return self.folder / "hold"

    def start(self, name: str, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a program of Spark's, with its output in a file."""
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(SPARK_HOME / "bin" / program), *arguments],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def said(self, name: str) -> str:
        """Return what a program has written."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def start_worker(self) -> None:
        """Start a worker with one core, and wait until the master knows it."""
        before = self.said("master").count("Registering worker")
        arguments = f"--host {HOST} --cores 1 --memory 1g --webui-port 0 {self.address}".split()
        worker = "org.apache.spark.deploy.worker.Worker"
        self.start(f"worker-{len(self.processes)}", "spark-class", worker, *arguments)
        wait_until(lambda: self.said("master").count("Registering worker") > before, "worker")

    def kill_worker_above(self, process: int) -> None:
        """Kill the worker below which a process runs, as the system does when memory is gone."""
        workers = {one.pid: one for one in self.processes[1:]}
        while process not in workers:
            process = parent_of(process)
        os.kill(process, signal.SIGKILL)
        workers[process].wait()

    def run(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command line of segproof here, in the environment of the place."""
        return subprocess.Popen(
            [sys.executable, "-m", "segproof_harness.cli", *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def stop(self) -> None:
        """End what was started."""
        self.hold.unlink(missing_ok=True)
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(WAIT_SECONDS)


def new_place(folder: Path, hidden: Sequence[str]) -> Place:
    """Return a place without processes, whose Python is told by `python_without`."""
    conf = folder / "conf"
    conf.mkdir(parents=True)
    lines = [f"{name} {value}" for name, value in SETTINGS.items()]
    (conf / "spark-defaults.conf").write_text("\n".join(lines) + "\n")
    environment = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    environment |= {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_DAEMON_JAVA_OPTS": FAST_START,
        "SPARK_LAUNCHER_OPTS": FAST_START,
        "PYSPARK_PYTHON": str(python_without(folder, hidden)),
        "SEGPROOF_TRACEBACK": "1",
    }
    return Place(folder, environment)


@contextmanager
def standalone(folder: Path, hidden: Sequence[str] = ("numba",)) -> Iterator[Place]:
    """Run a standalone master with two workers of one core each."""
    place = new_place(folder, hidden)
    port = free_port()
    place.address = f"spark://{HOST}:{port}"
    try:
        arguments = f"--host {HOST} --port {port} --webui-port 0".split()
        master = "org.apache.spark.deploy.master.Master"
        place.start("master", "spark-class", master, *arguments)
        wait_until(lambda: "New state: ALIVE" in place.said("master"), "master")
        place.start_worker()
        place.start_worker()
        yield place
    finally:
        place.stop()


@contextmanager
def connect_server(folder: Path, hidden: Sequence[str] = ()) -> Iterator[Place]:
    """Run a server of Spark Connect on two local cores."""
    place = new_place(folder, hidden)
    port = free_port()
    place.address = f"sc://{HOST}:{port}"
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    try:
        place.start(
            "server",
            "spark-submit",
            *("--master", "local[2]", "--class", server, *words, "spark-internal"),
        )
        wait_until(lambda: "server started at" in place.said("server"), "Connect server")
        yield place
    finally:
        place.stop()
