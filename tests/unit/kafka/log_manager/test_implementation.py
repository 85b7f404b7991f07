# SPDX-License-Identifier: Apache-2.0
"""A log directory: its checkpoints, its clean mark, and the logs that it opens."""

import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import (
    CorruptCheckpointError,
    IndexClosedError,
    IndexStateError,
    InvalidArgumentError,
    NumberFormatError,
    SegproofError,
)
from segproof.kafka import LogConfig, LogManager
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.watched_files import WatchedFiles
from segproof_tests.memory_logs import CONFIG, START_MS, batch

MARK, LOCK = ".kafka_cleanshutdown", ".lock"
NO_LOGS = (
    "x-1.00000000000000000000000000000000-delete",
    "y-01",
    "z-2147483648",
    "-3",
    "w",
    "__cluster_metadata-0",
    "remote-log-index-cache",
)
RECOVERY, START = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"


def manager(files: MemoryFiles) -> LogManager:
    """Return a manager of the directory `/logs`."""
    return LogManager("/logs", CONFIG, create=True, files=files, time=lambda: START_MS)


def written(files: MemoryFiles) -> LogManager:
    """Return a manager with two logs, one of which begins inside its first segment."""
    logs = manager(files)
    for topic, partition, batches in (("a-b", 0, 5), ("c", 12, 1)):
        log = logs.get_or_create_log(topic, partition)
        for _ in range(batches):
            log.append_as_leader(batch(6), 0)
        log.update_high_watermark(log.log_end_offset)
    logs.logs["a-b", 0].maybe_increment_log_start_offset(7)
    return logs


def put(files: MemoryFiles, name: str, data: bytes) -> None:
    """Let a file of the directory hold these bytes."""
    write_file(files, f"/logs/{name}", data)


def test_what_a_shutdown_leaves() -> None:
    """Both checkpoints, byte for byte as Kafka writes them, and the mark last."""
    files = MemoryFiles()
    written(files).shutdown()
    assert files.images("/logs") == {
        MARK: b'{"version":0,"brokerEpoch":-1}',
        RECOVERY: b"0\n2\na-b 0 30\nc 12 6\n",
        START: b"0\n1\na-b 0 7\n",
        LOCK: b"",
    }


@pytest.mark.checks("LOAD-11", "LOAD-13")
def test_the_mark_is_taken_away_before_loading() -> None:
    """A log is recovered unless the last run ended cleanly; the offsets are those written down."""
    files = MemoryFiles()
    written(files).shutdown()
    logs = manager(files)
    found = logs.load_logs()
    assert MARK not in files.images("/logs")
    assert [(key, log.log_start_offset, log.recovery_point) for key, log in found.items()] == [
        (("a-b", 0), 7, 30), (("c", 12), 0, 6),
    ]  # fmt: skip
    log = logs.get_or_create_log("c", 12)
    log.append_as_leader(batch(6), 0)
    logs.checkpoint_log_recovery_offsets()
    again = manager(files).load_logs()
    assert again["c", 12].log_end_offset == 12
    assert again["c", 12].recovery_point == 6


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        (RECOVERY, b"0\n2\na-b 0 30\n", CorruptCheckpointError),
        (START, b"1\n0\n", CorruptCheckpointError),
        (RECOVERY, b"0\n1\na-b 0 x\n", NumberFormatError),
        (START, b"0\n1\na-b 0 9223372036854775808\n", NumberFormatError),
    ],
)
def test_a_broken_checkpoint_is_told_and_nothing_touched(
    name: str, data: bytes, error: type[Exception]
) -> None:
    """The mark stays as well, so that the next attempt finds what this one did."""
    files = MemoryFiles()
    written(files).shutdown()
    put(files, name, data)
    before = [files.images(path) for path in ("/logs", "/logs/a-b-0", "/logs/c-12")]
    with pytest.raises(error) as info:
        manager(files).load_logs()
    assert getattr(info.value, "path", None) == f"/logs/{name}"
    assert [files.images(path) for path in ("/logs", "/logs/a-b-0", "/logs/c-12")] == before


def test_what_is_no_log_is_left_alone() -> None:
    """Files, and directories with other names, are neither opened nor changed."""
    files = MemoryFiles()
    written(files).shutdown()
    for name in NO_LOGS:
        files.make_directory(f"/logs/{name}")
    put(files, "v-1", b"a file")
    assert list(manager(files).load_logs()) == [("a-b", 0), ("c", 12)]
    assert files.images("/logs/y-01") == {}


@pytest.mark.parametrize(
    ("topic", "partition"),
    [
        ("", 0),
        (".", 0),
        ("..", 0),
        ("a/b", 0),
        ("a b", 0),
        ("x" * 250, 0),
        ("a", -1),
        ("a", 2**31),
        ("__cluster_metadata", 0),
    ],
)
def test_names_that_kafka_does_not_allow(topic: str, partition: int) -> None:
    """No directory is made for them."""
    files = MemoryFiles()
    with pytest.raises(InvalidArgumentError):
        manager(files).get_or_create_log(topic, partition)
    assert files.list_directory("/logs") == []


def test_a_manager_that_loaded_nothing_forgets_nothing() -> None:
    """It neither writes checkpoints nor a mark, since it knows no offset."""
    files = MemoryFiles()
    written(files).shutdown()
    before = files.images("/logs")
    logs = manager(files)
    with pytest.raises(IndexStateError):
        logs.checkpoint_log_recovery_offsets()
    logs.shutdown()
    assert files.images("/logs") == before
    with pytest.raises(IndexClosedError):
        logs.load_logs()


def test_a_failed_load_closes_what_it_opened() -> None:
    """The mark is gone, so the next load recovers; the checkpoints stay."""
    files = MemoryFiles()
    written(files).shutdown()
    put(files, "c-12/x.log", b"")
    logs = manager(files)
    with pytest.raises(NumberFormatError):
        logs.load_logs()
    assert len(logs.logs) == 0
    assert MARK not in files.images("/logs")
    files.remove("/logs/c-12/x.log")
    assert len(manager(files).load_logs()) == 2


def test_a_shutdown_that_fails_leaves_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every log is closed all the same, and the error is told."""
    files = MemoryFiles()
    logs = written(files)
    log = logs.logs["a-b", 0]

    def fail(force: bool = False) -> None:
        raise OSError("no space")

    monkeypatch.setattr(log, "flush", fail)
    with pytest.raises(OSError, match="no space"):
        logs.shutdown()
    assert all(one.is_closed for one in logs.logs.values())
    assert MARK not in files.images("/logs")


def test_a_log_that_was_closed_or_deleted_is_opened_again() -> None:
    """A closed one with its records, a deleted one empty."""
    files = MemoryFiles()
    with written(files) as logs:
        logs.get_or_create_log("a-b", 0).close()
        again = logs.get_or_create_log("a-b", 0)
        assert (again.log_start_offset, again.log_end_offset) == (7, 30)
        assert again.delete()
        # What the checkpoints say must not outlive it: a crash would let the new log begin at 7.
        logs.checkpoint_log_recovery_offsets()
        logs.checkpoint_log_start_offsets()
        assert files.images("/logs")[RECOVERY] == b"0\n1\nc 12 0\n"
        assert files.images("/logs")[START] == b"0\n0\n"
        fresh = logs.get_or_create_log("a-b", 0)
        assert (fresh.log_start_offset, fresh.log_end_offset) == (0, 0)
    assert files.images("/logs")[RECOVERY] == b"0\n2\na-b 0 0\nc 12 6\n"


def test_a_log_of_a_former_name_begins_at_0_after_a_crash() -> None:
    """Its directory was removed from outside; the checkpoints knew it still, and its start."""
    files = MemoryFiles()
    written(files).shutdown()
    for name in files.images("/logs/a-b-0"):
        files.remove(f"/logs/a-b-0/{name}")
    files.remove_directory("/logs/a-b-0")
    manager(files).get_or_create_log("a-b", 0).append_as_leader(batch(3), 0)
    log = manager(files).load_logs()["a-b", 0]
    assert (log.log_start_offset, log.log_end_offset) == (0, 3)


def test_a_log_closed_by_somebody_else_leaves_no_mark() -> None:
    """It may not be durable, and its files not cut, so the next start must look at it."""
    files = MemoryFiles()
    logs = written(files)
    logs.logs["a-b", 0].close_handlers()
    logs.shutdown()
    assert MARK not in files.images("/logs")
    assert manager(files).load_logs()["a-b", 0].log_end_offset == 30


def test_a_directory_that_appeared_meanwhile_is_recovered() -> None:
    """Nobody knows how it was left."""
    files = MemoryFiles()
    written(files).shutdown()
    logs = manager(files)
    logs.load_logs()
    files.make_directory("/logs/new-0")
    for name, data in files.images("/logs/a-b-0").items():
        put(files, f"new-0/{name}", data)
    last = max(name for name in files.images("/logs/new-0") if name.endswith(".log"))
    damaged = files.images("/logs/new-0")[last]
    put(files, f"new-0/{last}", damaged[:-1] + bytes([damaged[-1] ^ 1]))
    log = logs.get_or_create_log("new", 0)
    assert log.log_end_offset == 24


def test_a_locked_directory_is_left_alone(tmp_path: Path) -> None:
    """As by a broker, or another process of ours, until that has ended; here nothing changes."""
    code = (
        "import sys; from segproof.kafka import LogManager, LogConfig\n"
        "LogManager(sys.argv[1], LogConfig(), create=True).load_logs()\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(SegproofError, match="another process has locked"):
            LogManager(tmp_path, LogConfig(), create=True).get_or_create_log("t", 0)
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]
        holder.communicate("")
    with LogManager(tmp_path, LogConfig(), create=True) as logs:
        logs.get_or_create_log("t", 0)


TOPIC_ID = uuid.UUID(int=(7 << 64) + 1)
METADATA = b"version: 0\ntopic_id: AAAAAAAAAAcAAAAAAAAAAQ"


def test_a_topic_id_is_written_where_it_is_given() -> None:
    """Once, for a new log as for an old one; without it no broker with KRaft takes the log."""
    files = MemoryFiles()
    with manager(files) as logs:
        log = logs.get_or_create_log("t", 0, TOPIC_ID)
        assert files.images("/logs/t-0")["partition.metadata"] == METADATA
        assert logs.get_or_create_log("t", 0, TOPIC_ID) is log
        assert logs.get_or_create_log("t", 0) is log
        without = logs.get_or_create_log("u", 1)
        assert "partition.metadata" not in files.images("/logs/u-1")
        assert logs.get_or_create_log("u", 1, TOPIC_ID) is without
        assert files.images("/logs/u-1")["partition.metadata"] == METADATA
    with manager(files) as logs:
        assert logs.get_or_create_log("t", 0, TOPIC_ID).log_end_offset == 0


@pytest.mark.parametrize(
    ("topic_id", "kind"), [(uuid.UUID(int=0), InvalidArgumentError), (uuid.uuid4(), SegproofError)]
)
def test_a_topic_id_that_is_refused(topic_id: uuid.UUID, kind: type[SegproofError]) -> None:
    """None is zero, and no log has two; nothing is changed."""
    files = MemoryFiles()
    with manager(files) as logs:
        logs.get_or_create_log("t", 0, TOPIC_ID)
        with pytest.raises(kind, match=r"partition\.metadata"):
            logs.get_or_create_log("t", 0, topic_id)
        assert files.images("/logs/t-0")["partition.metadata"] == METADATA
        if topic_id.int == 0:
            with pytest.raises(kind):
                logs.get_or_create_log("v", 0, topic_id)
            assert files.status("/logs/v-0") is None


def test_a_crash_leaves_no_segment_without_the_topic_id() -> None:
    """Else the broker would set aside a log that has records."""
    seen: list[set[str]] = []

    class Watched(WatchedFiles):
        def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
            if call == "create_new" or (call == "open" and path.endswith((".log", "index"))):
                seen.append(set(self.images("/logs/t-0")))

    with manager(Watched()) as logs:
        logs.load_logs()
        seen.clear()
        logs.get_or_create_log("t", 0, TOPIC_ID).append_as_leader(batch(1), 0)
        assert seen
        assert all("partition.metadata" in names for names in seen)
