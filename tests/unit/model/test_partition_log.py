# SPDX-License-Identifier: Apache-2.0
"""Single facts of a partition's log and of a log directory, seen on the classes of Kafka 4.3.1."""

from dataclasses import replace
from typing import Any

import pytest

from segproof_model.directory import Directory
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.log_manager import LogManager
from segproof_model.kafka.log_segment import FetchDataInfo
from segproof_model.kafka.partition_log import LogAppendInfo, PartitionLog
from segproof_model.kafka.record_batch import (
    Record,
    read_batch,
    write_batch,
    write_end_transaction_marker,
)
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import KAFKA_4_3_1, KAFKA_4_4_0, SEGPROOF, Profile

CONFIG = LogConfig(segment_index_bytes=240)
NOW_MS = 1_000_000


def opened(profile: Profile = KAFKA_4_3_1, **options: Any) -> PartitionLog:
    """Return a log that begins."""
    config = replace(CONFIG, **options)
    log = PartitionLog.open("", config, profile=profile, now_ms=NOW_MS).after
    assert isinstance(log, PartitionLog)
    return log


def batch(*timestamps: int, base_offset: int = 0, **options: Any) -> bytes:
    """Return a batch with one record for each timestamp."""
    records = [Record(base_offset + n, at, b"k", b"ab") for n, at in enumerate(timestamps)]
    data = write_batch(records, base_offset=base_offset, **options)
    assert isinstance(data, bytes)
    return data


def kind_of(outcome: object) -> str | None:
    """Return the kind of an error."""
    return str(outcome.kind) if isinstance(outcome, Raised) else None


def test_a_leader_stamps_offset_epoch_and_time() -> None:
    """The batch gets the next offset, the leader's epoch, and in such a topic the broker's time."""
    log = opened(message_timestamp_type="LogAppendTime").append_as_leader(batch(5, 9), 3).after
    step = log.append_as_leader(batch(7), 4)
    assert isinstance(step.outcome, LogAppendInfo)
    assert step.outcome[:4] == (2, 2, NOW_MS, NOW_MS)
    found = step.after.read(2, 1000).outcome
    assert isinstance(found, FetchDataInfo)
    assert found.records is not None
    data = found.records.read()
    assert not isinstance(data, Raised)
    written = read_batch(data)
    assert not isinstance(written, Raised)
    assert (written.base_offset, written.partition_leader_epoch) == (2, 4)
    assert (written.max_timestamp, written.timestamp_type) == (NOW_MS, "LogAppendTime")
    assert written.is_valid() is True


@pytest.mark.parametrize(
    ("records", "options", "kind"),
    [
        (batch(5, base_offset=3), {}, "invalid-record"),
        (batch(5, 6, last_offset=7), {}, "invalid-record"),
        (batch(5) + batch(5), {}, "invalid-record"),
        (batch(NOW_MS + 11), {"message_timestamp_after_max_ms": 10}, "invalid-timestamp"),
        (batch(NOW_MS - 11), {"message_timestamp_before_max_ms": 10}, "invalid-timestamp"),
        (batch(5, timestamp_type="LogAppendTime", log_append_time=5), {}, None),
        (batch(-1, timestamp_type="LogAppendTime", log_append_time=-1), {}, "invalid-timestamp"),
        (batch(5), {"max_message_bytes": 60}, "record-too-large"),
        (batch(5), {"segment_bytes": 60}, "record-batch-too-large"),
        (batch(5)[:-1] + b"x", {}, "corrupt-record"),
    ],
)
def test_what_a_leader_refuses(records: bytes, options: dict[str, Any], kind: str | None) -> None:
    """Each refusal has its kind, and writes nothing."""
    step = opened(**options).append_as_leader(records, 0)
    assert kind_of(step.outcome) == kind
    assert (step.after.size == 0) is (kind is not None)


def test_a_refused_append_may_leave_an_epoch() -> None:
    """Kafka enters the epoch of a set that is too large for a segment; segproof does not."""
    for profile, entries in ((KAFKA_4_3_1, [(9, 0)]), (SEGPROOF, [])):
        step = opened(profile, segment_bytes=60).append_as_leader(batch(5), 9)
        assert step.outcome == Raised(ErrorKind.RECORD_BATCH_TOO_LARGE)
        assert step.after.leader_epoch_cache.epoch_entries() == entries


def test_a_repeated_batch_is_answered_and_not_written() -> None:
    """The answer has the offsets and the timestamp of the batch that was written before."""
    data = batch(5, 6, producer_id=7, producer_epoch=0, base_sequence=0)
    log = opened().append_as_leader(data, 0).after
    step = log.append_as_leader(data, 0)
    assert isinstance(step.outcome, LogAppendInfo)
    assert step.outcome[:4] == (0, 1, 6, 6)
    assert step.after.size == log.size


def test_an_aborted_transaction_is_listed() -> None:
    """A reader of committed records stops before an open transaction, then is told of its end."""
    data = batch(5, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    marker = write_end_transaction_marker(
        "ABORT", offset=0, timestamp=5, producer_id=7, producer_epoch=0, coordinator_epoch=0
    )
    assert isinstance(marker, bytes)
    log = opened().append_as_leader(data, 0).after.update_high_watermark(1).after
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    log = log.append_as_leader(marker, 0, "coordinator", 0).after
    assert log.last_stable_offset == 0
    log = log.update_high_watermark(2).after
    found = log.read(0, 1000, "txn_committed").outcome
    assert isinstance(found, FetchDataInfo)
    assert [one[1:4] for one in found.aborted_transactions or ()] == [(7, 0, 1)]


def test_deleted_files_go_when_their_time_has_come() -> None:
    """They stay for the delay, and for good if the log is opened before, but for LOAD-1."""
    log = opened(file_delete_delay_ms=1000, segment_bytes=80).append_as_leader(batch(5), 0).after
    log = log.append_as_leader(batch(5), 0).after.truncate_to(1).after
    deleted = [name for name in log.directory if name.endswith(".deleted")]
    assert deleted == []
    log = log.truncate_fully_and_start_at(9).after
    deleted = [name for name in log.directory if name.endswith(".deleted")]
    assert f"{0:020d}.log.deleted" in deleted
    early = replace(log, now_ms=NOW_MS + 999).delete_pending_files().after
    assert set(deleted) <= set(early.directory)
    late = replace(log, now_ms=NOW_MS + 1000).delete_pending_files().after
    assert not set(deleted) & set(late.directory)
    again = PartitionLog.open("", CONFIG, 9, 9, False, directory=log.directory).after
    assert isinstance(again, PartitionLog)
    assert not set(deleted) & set(again.directory)


def test_closed_is_closed_in_segproof() -> None:
    """Each use raises the unmapped error, a second close nothing."""
    log = opened(SEGPROOF).close().after
    unmapped = Raised(ErrorKind.UNMAPPED)
    assert log.append_as_leader(batch(5), 0).outcome == unmapped
    assert log.read(0, 10).outcome == log.roll().outcome == log.flush().outcome == unmapped
    assert log.collect_aborted_transactions(0, 1) == unmapped
    assert log.close().outcome is None


def test_a_messages_set_of_older_magic_becomes_one_batch() -> None:
    """Messages of magic 1 are written as a batch of magic 2."""
    log = opened().append_as_leader(batch(5, 6, magic=1), 2).after
    (written,) = log.log_segments.active_segment.log.batches().batches
    assert (written.magic, written.last_offset, written.partition_leader_epoch) == (2, 1, 2)


@pytest.mark.checks("LOAD-11", "LOAD-13")
def test_what_a_log_directory_keeps() -> None:
    """Checkpoints tell where logs begin and what is durable; the marker tells of a clean stop."""
    manager = LogManager.open("d", CONFIG, now_ms=NOW_MS).after.load_logs().after
    step = manager.get_or_create_log("t", 1)
    assert isinstance(step.outcome, PartitionLog)
    log = step.outcome.append_as_leader(batch(5, 6), 0).after.update_high_watermark(2).after
    log = log.maybe_increment_log_start_offset(1).after
    stopped = step.after.with_log("t", 1, log).shutdown().after.directory
    assert stopped.read("d/recovery-point-offset-checkpoint") == b"0\n1\nt 1 2\n"
    assert stopped.read("d/log-start-offset-checkpoint") == b"0\n1\nt 1 1\n"
    assert stopped.read("d/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":-1}'
    loaded = LogManager.open("d", CONFIG, directory=stopped).after.load_logs().after
    again = loaded.log_of("t", 1)
    assert again is not None
    assert (again.log_start_offset, again.log_end_offset, again.recovery_point) == (1, 2, 2)
    assert "d/.kafka_cleanshutdown" not in loaded.directory


@pytest.mark.checks("LOAD-11", "SEG-44")
def test_a_stop_leaves_the_same_files_whoever_cuts_them() -> None:
    """Since 4.4 not the closing log but the log manager cuts the indexes, and writes the times."""
    left = []
    for profile in (KAFKA_4_3_1, KAFKA_4_4_0):
        opened_here = LogManager.open("d", CONFIG, profile=profile, now_ms=NOW_MS).after
        step = opened_here.load_logs().after.get_or_create_log("t", 1)
        assert isinstance(step.outcome, PartitionLog)
        log = step.outcome.append_as_leader(batch(5, 6), 0).after
        left.append(step.after.with_log("t", 1, log).shutdown().after.directory)
        closed = log.close().after.directory.read("d/t-1/00000000000000000000.timeindex")
        assert (12 if profile is KAFKA_4_3_1 else 240) == len(closed or b"")
    assert left[0] == left[1]
    assert 12 == len(left[1].read("d/t-1/00000000000000000000.timeindex") or b"")


def test_the_topic_id_of_a_log() -> None:
    """It is written where there is none, and another one is refused."""
    manager = LogManager.open("d", CONFIG, now_ms=NOW_MS).after.load_logs().after
    name, topic_id = "d/t-1/partition.metadata", bytes([*range(15), 1])
    assert name not in manager.get_or_create_log("t", 1).after.directory
    step = manager.get_or_create_log("t", 1, topic_id)
    assert isinstance(step.outcome, PartitionLog)
    assert step.after.directory.read(name) == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0OAQ"
    again = step.after.get_or_create_log("t", 1, topic_id)
    assert (again.after, again.outcome) == (step.after, step.outcome)
    other = step.after.get_or_create_log("t", 1, bytes(15) + b"x")
    assert (other.after, other.outcome) == (step.after, Raised(ErrorKind.KAFKA_ERROR))


def test_a_directory_that_is_none_of_a_partition_stops_loading() -> None:
    """Nothing is loaded, and the next stop is no clean one; a marked one is left alone."""
    strange = Directory().write("strange/x", b"")
    step = LogManager.open("", CONFIG, directory=strange).after.load_logs()
    assert step.outcome == Raised(ErrorKind.KAFKA_ERROR)
    assert ".kafka_cleanshutdown" not in step.after.shutdown().after.directory
    for name in ("t-0.8f1c-delete", "remote-log-index-cache", "__cluster_metadata-0"):
        others = Directory().write(f"{name}/x", b"")
        step = LogManager.open("", CONFIG, directory=others).after.load_logs()
        assert (step.outcome, step.after.logs) == (None, ())


def test_a_clean_stop_before_makes_the_next_one_clean() -> None:
    """Kafka writes the marker again, also where a log could not be loaded in between."""
    strange = Directory().write("strange/x", b"").write(".kafka_cleanshutdown", b"")
    step = LogManager.open("", CONFIG, directory=strange).after.load_logs()
    assert step.outcome == Raised(ErrorKind.KAFKA_ERROR)
    assert ".kafka_cleanshutdown" not in step.after.directory
    assert ".kafka_cleanshutdown" in step.after.shutdown().after.directory
