# SPDX-License-Identifier: Apache-2.0
"""Single facts of a partition's log, seen on the classes of Kafka 4.3.1."""

from typing import Any

import pytest

from segproof_harness.files.codecs import CODECS
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.batch_writing import write_batch, write_end_transaction_marker
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.releases import NEWEST_KAFKA, RELEASES, SEGPROOF

NOW_MS = 1_000_000


def opened(release: Release = NEWEST_KAFKA, **options: Any) -> PartitionLog:
    """Return a log that begins."""
    config = LogConfig(**{"segment_index_bytes": 240, **options})
    return release.kind(PartitionLog)(Files(now_ms=NOW_MS), "", config, codecs=CODECS)


def batch(*timestamps: int, base_offset: int = 0, **options: Any) -> bytes:
    """Return a batch with one record for each timestamp."""
    records = [Record(base_offset + n, at, b"k", b"ab") for n, at in enumerate(timestamps)]
    return write_batch(records, base_offset=base_offset, **options)


def kind_of(outcome: object) -> str | None:
    """Return the kind of an error."""
    return str(outcome.kind) if isinstance(outcome, Raised) else None


# --- appends -------------------------------------------------------------------------------------


def test_a_leader_stamps_offset_epoch_and_time() -> None:
    """The batch gets the next offset, the leader's epoch, and in such a topic the broker's time."""
    log = opened(message_timestamp_type="LogAppendTime")
    log.append_as_leader(batch(5, 9), 3)
    assert (2, 2, NOW_MS, NOW_MS) == log.append_as_leader(batch(7), 4)[:4]
    records = log.read(2, 1000).records
    assert records is not None
    written = MemoryRecords(records.read()).first_batch()
    assert (2, 4) == (written.base_offset, written.partition_leader_epoch)
    assert (NOW_MS, "LogAppendTime") == (written.max_timestamp, written.timestamp_type)
    assert written.is_valid()


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
    log = opened(**options)
    assert kind == kind_of(outcome_of(log.append_as_leader, records, 0))
    assert (kind is not None) is (log.size == 0)


@pytest.mark.parametrize(
    ("name", "entries"),
    [("kafka-4.4.0", [(9, 0)]), ("kafka-0.11.0.3", [(9, 0)]), ("segproof", [])],
)
def test_a_refused_append_may_leave_an_epoch(name: str, entries: list[tuple[int, int]]) -> None:
    """Kafka enters the epoch of a set that is too large for a segment; segproof does not."""
    log = opened(RELEASES[name], segment_bytes=60)
    outcome = outcome_of(log.append_as_leader, batch(5), 9)
    assert Raised(ErrorKind.RECORD_BATCH_TOO_LARGE) == outcome
    assert entries == log.leader_epoch_cache.epoch_entries()


def test_a_repeated_batch_is_answered_and_not_written() -> None:
    """The answer has the offsets and the timestamp of the batch that was written before."""
    data = batch(5, 6, producer_id=7, producer_epoch=0, base_sequence=0)
    log = opened()
    log.append_as_leader(data, 0)
    size = log.size
    assert (0, 1, 6, 6) == log.append_as_leader(data, 0)[:4]
    assert size == log.size


def test_an_aborted_transaction_is_listed() -> None:
    """A reader of committed records stops before an open transaction, then is told of its end."""
    log = opened()
    given: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    log.append_as_leader(batch(5, base_sequence=0, is_transactional=True, **given), 0)
    log.update_high_watermark(1)
    assert (1, 0) == (log.high_watermark, log.last_stable_offset)
    marker = write_end_transaction_marker(
        "ABORT", offset=0, timestamp=5, coordinator_epoch=0, **given
    )
    log.append_as_leader(marker, 0, "coordinator", 0)
    assert 0 == log.last_stable_offset
    log.update_high_watermark(2)
    found = log.read(0, 1000, "txn_committed")
    assert [(7, 0, 1)] == [one[1:4] for one in found.aborted_transactions or ()]


def test_a_message_set_of_older_magic_becomes_one_batch() -> None:
    """Messages of magic 1 are written as a batch of magic 2."""
    log = opened()
    log.append_as_leader(batch(5, 6, magic=1), 2)
    (written,) = log.log_segments.active_segment.log.batches()
    assert (2, 1, 2) == (written.magic, written.last_offset, written.partition_leader_epoch)


# --- files that go later, and the end ------------------------------------------------------------


def test_deleted_files_go_when_their_time_has_come() -> None:
    """They stay for the delay, and for good if the log is opened before, but for LOAD-1."""
    log = opened(file_delete_delay_ms=1000, segment_bytes=80)
    log.append_as_leader(batch(5), 0)
    log.append_as_leader(batch(5), 0)
    log.truncate_to(1)
    assert [] == [name for name in log.files if name.endswith(".deleted")]
    log.truncate_fully_and_start_at(9)
    deleted = {name for name in log.files if name.endswith(".deleted")}
    assert f"{0:020d}.log.deleted" in deleted
    again = PartitionLog(Files(log.files.images), "", log.config, 9, 9, False)
    assert not deleted & set(again.files)
    log.files.now_ms = NOW_MS + 999
    log.delete_pending_files()
    assert deleted <= set(log.files)
    log.files.now_ms = NOW_MS + 1000
    log.delete_pending_files()
    assert not deleted & set(log.files)


def test_closed_is_closed_in_segproof() -> None:
    """Each use raises the unmapped error, a second close nothing."""
    log = opened(SEGPROOF)
    log.close()
    outcomes = [
        outcome_of(log.append_as_leader, batch(5), 0),
        outcome_of(log.read, 0, 10),
        outcome_of(log.roll),
        outcome_of(log.flush),
        outcome_of(log.collect_aborted_transactions, 0, 1),
    ]
    assert [Raised(ErrorKind.UNMAPPED)] * 5 == outcomes
    log.close()


@pytest.mark.parametrize(("name", "stays"), [("kafka-4.3.1", True), ("kafka-2.8.2", False)])
def test_the_snapshot_of_a_replaced_segment(name: str, stays: bool) -> None:
    """Up to 2.8 the snapshot goes with the files of a segment, though another begins there."""
    log = opened(RELEASES[name], file_delete_delay_ms=0)
    log.append_as_follower(batch(5, partition_leader_epoch=0), 0)
    assert [1, 1] == [log.roll(), log.roll()]
    log.delete_pending_files()
    assert stays is (f"{1:020d}.snapshot" in log.files)
