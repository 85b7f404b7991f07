# SPDX-License-Identifier: Apache-2.0
"""What a partition's log of Kafka is made with: options, a clock, a scheduler, and the rest.

Upstream: LogConfig, Time, Scheduler, BrokerTopicStats, LogDirFailureChannel, of every release.
"""

import os
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from jpype import JBoolean, JInt, JLong, JProxy

from segproof_harness.releases.kafka import log_before_0_11
from segproof_harness.releases.kafka.classes import scala_object, some, storage_class
from segproof_model.kafka.broker.producer_snapshot import ENTRY_BYTES, HEADER_BYTES
from segproof_model.kafka.broker.producer_state import SNAPSHOT_SUFFIX
from segproof_model.kafka.format.compression import crc32c
from segproof_model.language.integers import int64_at

DELETIONS = ("delete-file", "delete-producer-snapshot")
"""Tasks that wait, whatever their delay, until the history asks for what is due."""
EPOCHS_WRITE = "leader-epoch-cache-flush"
"""How the name of a task begins that waits until then, and has no delay."""
EXPIRY_CHECK_MS = 600_000
MODIFIED_NS_MIN = 10**18
"""A file modified from here on was modified by the JVM: no history's clock goes so far."""
INDEX_BYTES_MIN = 4
"""What the options ask of an index's size; a segment takes any."""
NO_TOPIC_OPTIONS = ("producer_id_expiration_ms", "max_transaction_timeout_ms")


class Scheduler:
    """Runs tasks as the model does: at once; files are deleted, and epochs that were cut are
    written, when that is asked for.

    Periodic tasks are kept by name, and run when they are asked for.
    """

    def __init__(self, jvm: Any, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._later: list[tuple[int, Any]] = []
        self.periodic: dict[str, Any] = {}
        future = {name: (lambda *_: True) for name in ("cancel", "isCancelled", "isDone")}
        self._future = JProxy("java.util.concurrent.ScheduledFuture", dict=future)
        calls = {
            "startup": lambda: None,
            "shutdown": lambda: None,
            "isStarted": lambda: True,
            "resizeThreadPool": lambda _: None,
            "taskRunning": lambda _: False,
            "schedule": self._schedule,
            "scheduleOnce": self._schedule,
        }
        kind = jvm.first("org.apache.kafka.server.util.Scheduler", "kafka.utils.Scheduler")
        self.java = JProxy(kind, dict=calls)

    def _schedule(
        self, name: str, task: Any, delay_ms: int = 0, period_ms: int = -1, *_: Any
    ) -> Any:
        if period_ms > 0:
            self.periodic[str(name)] = task
        elif str(name) in DELETIONS:
            self._later.append((self._clock() + int(delay_ms), task))
        elif str(name).startswith(EPOCHS_WRITE):
            self._later.append((0, task))
        else:
            run(task)
        return self._future

    def run_due(self) -> None:
        """Run what waits, as far as its time has come."""
        now = self._clock()
        due = [task for due_ms, task in self._later if due_ms <= now]
        self._later = [(due_ms, task) for due_ms, task in self._later if due_ms > now]
        for task in due:
            run(task)


def run(task: Any) -> None:
    """Run a Runnable, or a function of Scala."""
    (task.run if hasattr(task, "run") else task.apply)()


def java_time(clock: Callable[[], int]) -> Any:
    """Return the clock as Kafka's Time."""
    calls = {
        "milliseconds": lambda: JLong(clock()),
        "hiResClockMs": lambda: JLong(clock()),
        "nanoseconds": lambda: JLong(clock() * 10**6),
        "sleep": lambda _: None,
        "waitObject": lambda *_: None,
    }
    return JProxy("org.apache.kafka.common.utils.Time", dict=calls)


@lru_cache(maxsize=64)
def java_config(jvm: Any, config: Any) -> Any:
    """Return the options as Kafka's LogConfig, which never changes; making it takes long."""
    kind = storage_class(jvm, "LogConfig")
    names = {str(name) for name in kind.configNames().toArray()} if _is_java(kind) else set()
    given = jvm.java("java.util.HashMap")()
    for item in fields(config):
        if item.name in NO_TOPIC_OPTIONS:
            continue
        value = getattr(config, item.name)
        name = item.name.replace("_", ".")
        if f"internal.{name}" in names:
            name = f"internal.{name}"
        given.put(name, str(value).lower() if isinstance(value, bool) else str(value))
    index_bytes = config.segment_index_bytes
    given.put("segment.index.bytes", str(max(index_bytes, INDEX_BYTES_MIN)))
    if jvm.release.number < (3, 6):  # one limit for both directions
        limit = str(config.message_timestamp_before_max_ms)
        given.put("message.timestamp.difference.max.ms", limit)
    more: tuple[Any, ...] = ()
    if not _is_java(kind) and jvm.release.number >= (1,):  # the names of what is overridden
        more = (scala_object(jvm, "scala.collection.immutable.Set").empty(),)
    made = kind(given, *more)
    if index_bytes < INDEX_BYTES_MIN:
        jvm.set_field(made, "maxIndexSize", jvm.java("java.lang.Integer")(JInt(index_bytes)))
    return made


def _is_java(kind: Any) -> bool:
    """Return whether a class comes from the Java part."""
    return str(kind.class_.getName()).startswith("org.apache")


def broker_topic_stats(jvm: Any) -> Any:
    """Return statistics that nobody reads."""
    kind = jvm.first(
        "org.apache.kafka.storage.log.metrics.BrokerTopicStats", "kafka.server.BrokerTopicStats"
    )
    parameters = min(
        (one.getParameterTypes() for one in kind.class_.getConstructors()),
        key=len,
    )
    if len(parameters) == 0:
        return kind()
    is_flag = str(parameters[0].getName()) == "boolean"
    return kind(JBoolean(False) if is_flag else jvm.java("java.util.Optional").empty())


def failure_channel(jvm: Any) -> Any:
    """Return where failures of directories are told; nobody listens. 0.11 tells nobody."""
    if jvm.release.number < (1,):
        return None
    kind = jvm.first(
        "org.apache.kafka.storage.internals.log.LogDirFailureChannel",
        "kafka.server.LogDirFailureChannel",
    )
    return kind(JInt(8))


def producer_config(jvm: Any, expiration_ms: int) -> Any:
    """Return the options of the producer state; since 3.6 they say that nothing is verified."""
    more = () if jvm.release.number < (3, 6) else (JBoolean(False),)
    return storage_class(jvm, "ProducerStateManagerConfig")(JInt(expiration_ms), *more)


def stamp(directory: str, now_ms: int) -> None:
    """Let the files that the JVM has changed be modified at the time of the history's clock.

    The producers of a snapshot that it has written are put in order.
    """
    for entry in os.scandir(directory):
        if entry.stat().st_mtime_ns >= MODIFIED_NS_MIN:
            if entry.name.endswith(SNAPSHOT_SUFFIX):
                order_snapshot(entry.path)
            os.utime(entry.path, ns=(now_ms * 10**6, now_ms * 10**6))


def order_snapshot(path: str) -> None:
    """Put the entries of a snapshot in the order of their producer ids, and mend its checksum.

    The real class writes them in the order of a HashMap, which depends on how many producers it
    ever held: nobody is promised one, and the model writes them by producer id.
    """
    with open(path, "rb", buffering=0) as file:
        data = file.readall()
    end = HEADER_BYTES + ENTRY_BYTES * int.from_bytes(data[6:HEADER_BYTES], "big")
    if data[2:6] != crc32c(data[6:end]).to_bytes(4, "big"):
        return
    starts = range(HEADER_BYTES, end, ENTRY_BYTES)
    entries = [data[start : start + ENTRY_BYTES] for start in starts]
    entries.sort(key=lambda entry: int64_at(entry, 0))
    checked = data[6:HEADER_BYTES] + b"".join(entries)
    ordered = data[:2] + crc32c(checked).to_bytes(4, "big") + checked + data[end:]
    if ordered != data:
        Path(path).write_bytes(ordered)


def tell_of_clean_shutdown(directory: str, is_clean: bool) -> None:
    """Write or remove the mark that old releases look for beside the partition's directory."""
    mark = Path(directory).parent / ".kafka_cleanshutdown"
    if is_clean:
        mark.write_bytes(b"")
    else:
        mark.unlink(missing_ok=True)


def new_log(
    jvm: Any,
    directory: str,
    config: Any,
    offsets: tuple[int, int],
    is_clean: bool,
    clock: Callable[[], int],
    scheduler: Scheduler,
    channel: Any,
) -> Any:
    """Return a partition's log, loaded from its directory.

    `offsets`: the log start and the recovery point of the checkpoints.
    """
    number = jvm.release.number
    if number < log_before_0_11.EARLY:
        tell_of_clean_shutdown(directory, is_clean)
        options = java_config(jvm, config)
        time = java_time(clock)
        return log_before_0_11.new_log(jvm, directory, options, offsets[1], time, scheduler.java)
    first = (
        jvm.file(directory),
        java_config(jvm, config),
        *map(JLong, offsets),
        scheduler.java,
        broker_topic_stats(jvm),
        java_time(clock),
    )
    check, no, clean = JInt(EXPIRY_CHECK_MS), JBoolean(False), JBoolean(is_clean)
    if number < (3,):
        tell_of_clean_shutdown(directory, is_clean)
        told = () if number < (2, 8) else (clean, no)
        expiration = JInt(config.producer_id_expiration_ms)
        kind = scala_object(jvm, "kafka.log.Log")
        where = () if channel is None else (channel,)
        return kind.apply(*first, expiration, check, *where, *told)
    timeout = JInt(config.max_transaction_timeout_ms)
    second = (
        timeout,
        producer_config(jvm, config.producer_id_expiration_ms),
        check,
        channel,
        clean,
    )
    remaining = jvm.java("java.util.concurrent.ConcurrentHashMap")()
    if number >= (4, 1):
        kind, none = storage_class(jvm, "UnifiedLog"), jvm.java("java.util.Optional").empty()
        return kind.create(*first, *second, none, remaining, no, _listener(jvm))
    kind, none = scala_object(jvm, "kafka.log.UnifiedLog"), some(jvm, None)
    last: tuple[Any, ...] = ()
    if number >= (3, 5):
        remote = (none,) if number < (3, 6) else ()
        last = (no, *remote, _listener(jvm))
    return kind.apply(*first, *second, none, JBoolean(True), remaining, *last)


def _listener(jvm: Any) -> Any:
    return storage_class(jvm, "LogOffsetsListener").NO_OP_OFFSETS_LISTENER
