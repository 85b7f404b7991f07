# SPDX-License-Identifier: Apache-2.0
"""Start Spark, or say plainly why it was not run.

A session is local, on a standalone cluster, on the cluster of `spark-submit`, or a client of Spark
Connect. The rest of the package uses only DataFrames.
"""

import atexit
import contextlib
import functools
import importlib.util
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from segproof_harness.releases.java_version import REMEDY, java_problem, java_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "LOCAL",
    "NO_RETRIES",
    "RETRIES",
    "SETTINGS",
    "Setting",
    "SparkNotRunError",
    "check_spark",
    "cores_of",
    "is_connect",
    "start_session",
]

LOCAL = "local[*]"
LOGGING = Path(__file__).with_name("log4j2.properties")
"""In values of settings, `{LOGGING}` stands for this, and `{WAREHOUSE}` for a temporary folder."""
CONNECT_PORT = 15002
MAX_FAILURES = "spark.task.maxFailures"
REACH_SECONDS = 5.0
"""How long a master or a Connect server may take to accept a connection."""
WORKER_SECONDS = 180.0
"""How long the first task may wait for a worker."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of Spark that every session gets."""

    name: str
    value: str
    why: str

    def by_name(self) -> dict[str, str]:
        """Return it as Spark takes it."""
        return {self.name: self.value}


SETTINGS = (
    Setting(
        "spark.driver.extraJavaOptions",
        "-Dlog4j2.configurationFile=file:{LOGGING} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "The driver logs errors only, so that its usual lines do not hide findings. All the "
        "work is in Python: a JVM that compiles itself quickly and collects with one thread leaves "
        "the cores to the workers.",
    ),
    Setting(
        "spark.sql.warehouse.dir",
        "file:{WAREHOUSE}",
        "Spark makes this folder whether anything is stored there or not; it should not lie in "
        "the present directory, which may be a broker's.",
    ),
    Setting("spark.ui.enabled", "false", "No port is opened on the machine of the driver."),
    Setting(
        "spark.ui.showConsoleProgress",
        "false",
        "The verbs draw their own bar, and only where a person looks.",
    ),
    Setting(
        "spark.sql.shuffle.partitions",
        "8",
        "Few rows are exchanged: findings and counters. Jobs that exchange more say how many "
        "tasks they want.",
    ),
    Setting(
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        "1000",
        "Bounds what a Python worker holds at once: a row may be a history with its findings.",
    ),
    Setting(
        "spark.sql.python.filterPushdown.enabled",
        "true",
        "Without it Spark refuses the tables that are read with push_filters=true. It pushes no "
        "filter into the others.",
    ),
    Setting(
        "spark.sql.execution.pyspark.udf.faulthandler.enabled",
        "true",
        "A Python worker that crashes in compiled code tells where it was.",
    ),
)
"""The settings of every session. Spark Connect accepts only the settings of SQL."""

NO_RETRIES = Setting(
    MAX_FAILURES,
    "1",
    "replay, lookups: a comparison that fails now and then must not be hidden by a retry.",
)
RETRIES = Setting(
    MAX_FAILURES,
    "4",
    "verify: a worker that was killed costs time, no findings; they count once.",
)
BY_VERB = (NO_RETRIES, RETRIES)
"""Further settings of a verb. A server of Spark Connect keeps its own."""

LEFT_ALONE = (
    Setting(
        "spark.executor.pyspark.memory",
        "",
        "It bounds the address space of a Python worker, not its memory: imports alone take "
        "550 MB of it while 170 MB are resident, and mapped files count. Bound the container: "
        "spark.executor.memoryOverhead.",
    ),
    Setting(
        "spark.python.worker.memory",
        "",
        "It bounds aggregations of RDDs in Python, and segproof uses no RDDs.",
    ),
    Setting(
        "spark.python.worker.reuse",
        "",
        "On by default: a worker that compiled kernels for one task has them for the next.",
    ),
    Setting(
        "spark.speculation",
        "",
        "Off by default, and harmless: what a second copy of a task finds is dropped.",
    ),
)
"""Settings that are left out, with the reasons."""


class SparkNotRunError(Exception):
    """Spark cannot run here; the text gives the reason and the remedy."""


def check_spark(remote: str | None = None) -> None:
    """Raise SparkNotRunError if Spark cannot start here; a client of Connect needs no Java."""
    packages = ["pyspark", "pyarrow", "pandas"]
    if remote is not None:
        packages += ["grpc", "grpc_status", "google.rpc"]
    for package in packages:
        if not _is_there(package):
            raise SparkNotRunError(
                f"{package} is not installed; install it with: `pip install 'segproof[spark]'`"
            )
    problem = None if remote is not None else java_problem(java_version())
    if problem is not None:
        raise SparkNotRunError(f"{problem}; {REMEDY}")


def start_session(
    master: str = LOCAL,
    *,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> "SparkSession":
    """Return a session with the settings the checks need; an existing one is taken as it is.

    With `remote`, a URL `sc://HOST:PORT`, it is a client of Spark Connect. `settings` are added to
    `SETTINGS`. Below `spark-submit` the master is the one that was given there.
    Raises: SparkNotRunError.
    """
    check_spark(remote)
    wanted = _usual_settings() | dict(settings or {})
    if remote is not None:
        return _connect(remote, wanted)
    return _start(master, wanted)


def is_connect(session: "SparkSession") -> bool:
    """Return whether the session is a client of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def cores_of(session: "SparkSession") -> int:
    """Return how many tasks the session runs at a time."""
    if not is_connect(session):
        return session.sparkContext.defaultParallelism
    # A range without a number of partitions is cut into as many as there are cores.
    tasks = session.range(1 << 16).selectExpr("spark_partition_id() AS task").distinct()
    return tasks.count()


def _usual_settings() -> dict[str, str]:
    """Return the `SETTINGS` that are possible here, by name."""
    # Not when this is imported: Python tries folders by writing to them, the current one too.
    warehouse = os.path.join(tempfile.gettempdir(), f"segproof-warehouse-{os.getuid()}")
    places = {"{LOGGING}": str(LOGGING), "{WAREHOUSE}": warehouse}
    found = {one.name: one.value for one in SETTINGS}
    for name, value in found.items():
        for mark, place in places.items():
            found[name] = value = value.replace(mark, place)
    if not LOGGING.is_file():  # Java reads nothing out of a bundle
        del found["spark.driver.extraJavaOptions"]
    return found


def _ship(session: "SparkSession") -> None:
    """Send the bundle to the workers, where segproof may be missing or be another release."""
    bundle = _bundle()
    if is_connect(session):
        session.addArtifacts(bundle, pyfile=True)
        return
    here = list(sys.path)
    session.sparkContext.addPyFile(bundle)
    sys.path[:] = here  # this process has the packages, and keeps them when the session is gone


@functools.cache
def _bundle() -> str:
    """Return the path of a bundle, which workers fetch from this process as long as it lives."""
    from segproof_spark.bundle import write_bundle

    folder = tempfile.mkdtemp(prefix="segproof-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    bundle = os.path.join(folder, "segproof.zip")
    write_bundle(bundle)
    return bundle


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # of the package above it
        return False


def _start(master: str, wanted: dict[str, str]) -> "SparkSession":
    """Start a driver in this process."""
    # Workers take `python3` from PATH otherwise, and may miss segproof there.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if _is_local(master):
        # Without a name service for this host Spark would look for an address to bind to.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if master.startswith("spark://"):
        _check_reach(master.removeprefix("spark://").split(","), f"Spark master {master}")
    from pyspark.sql import SparkSession

    from segproof_spark.java_output import started_quietly

    options = {"spark.app.name": "segproof"}
    if not (_below_spark_submit() and master == LOCAL):
        options["spark.master"] = _with_failures(master, wanted.get(MAX_FAILURES))
    options |= wanted
    start = contextlib.nullcontext() if _below_spark_submit() else started_quietly(options)
    with _errors_of_start(), start:
        session = SparkSession.builder.config(map={**options}).getOrCreate()
    if not _below_spark_submit() and not _is_local(master):
        _ship(session)
    if master.startswith("spark://"):
        _wait_for_worker(session, master)
    return session


def _connect(remote: str, wanted: dict[str, str]) -> "SparkSession":
    """Open a session at a server of Spark Connect."""
    address = urlsplit(remote)
    if address.scheme != "sc" or not address.hostname:
        raise SparkNotRunError(f"{remote!r} is no address of Spark Connect; say sc://HOST:PORT")
    place = f"{address.hostname}:{address.port or CONNECT_PORT}"
    _check_reach([place], f"Spark Connect server {remote.partition(';')[0]}")
    from pyspark.sql import SparkSession

    with _errors_of_start():
        session = SparkSession.builder.remote(remote).getOrCreate()
        for name, value in wanted.items():
            if session.conf.isModifiable(name):
                session.conf.set(name, value)
        _ship(session)
    return session


@contextlib.contextmanager
def _errors_of_start() -> Iterator[None]:
    """Turn every exception of Spark's start into SparkNotRunError."""
    from segproof_spark.failures import failure_of

    try:
        yield
    except Exception as error:
        raise SparkNotRunError(failure_of(error).text) from error


def _wait_for_worker(session: "SparkSession", master: str) -> None:
    """Wait until a first task has run: a master without a free worker keeps a job for ever."""
    errors: list[Exception] = []

    def first_task() -> None:
        try:
            session.range(1).count()
        except Exception as error:
            errors.append(error)

    task = threading.Thread(target=first_task, daemon=True)
    task.start()
    task.join(WORKER_SECONDS)
    if task.is_alive():
        session.stop()
        raise SparkNotRunError(
            f"no worker of {master} took a task within {WORKER_SECONDS:.0f} s; "
            "are there workers, and have they cores and memory left?"
        )
    if errors:
        session.stop()
        with _errors_of_start():
            raise errors[0]


def _below_spark_submit() -> bool:
    """Return whether `spark-submit` has started this process, and with it the JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _is_local(master: str) -> bool:
    return re.fullmatch(r"local(?:\[.*\])?", master) is not None


def _with_failures(master: str, failures: str | None) -> str:
    """Return the master with the failures a task may have, which local ones tell nowhere else.

    >>> _with_failures("local[2]", "4"), _with_failures("spark://a:7077", "4")
    ('local[2,4]', 'spark://a:7077')
    """
    local = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    if failures is None or local is None:
        return master
    return f"local[{local[1] or 1},{failures}]"


def _check_reach(places: list[str], what: str) -> None:
    """Raise SparkNotRunError unless one of the places HOST:PORT accepts a connection."""
    reason = ""
    for place in places:
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
            return
        except ValueError:
            reason = f"{place!r} is not HOST:PORT"
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
    raise SparkNotRunError(f"{what} cannot be reached: {reason}")
