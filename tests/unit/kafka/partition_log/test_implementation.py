# SPDX-License-Identifier: Apache-2.0
"""The log of a partition: appending, reading, cutting, rolling, retention, and what is refused.

Expected numbers were seen on the classes of Kafka 4.3.1.
"""

from typing import Any

import pytest

from segproof.checksums import crc32c
from segproof.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTimestampError,
    InvalidTransactionStateError,
    OffsetOrderError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    SegproofError,
)
from segproof.kafka import (
    LogConfig,
    PartitionLog,
    Record,
    RecordBatch,
    read_batch,
    write_batch,
    write_empty_batch,
    write_end_transaction_marker,
)
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_tests.memory_logs import (
    START_MS,
    Place,
    batch,
    bytes_of,
    filled,
    segments_of,
)

PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 1}


def stored(log: PartitionLog, offset: int) -> RecordBatch:
    """Return the batch at an offset."""
    info = log.read(offset, 1)
    assert info.records is not None
    return read_batch(info.records.read())


# --- appending


def test_a_leader_stamps_offsets_and_epoch() -> None:
    """A client's batch gets the next offsets and the leader's epoch, and keeps its checksum."""
    log = Place().open()
    sent = batch(6)
    first, second = log.append_as_leader(sent, 3), log.append_as_leader(sent, 3)
    assert first[:6] == (0, 5, START_MS + 5, -1, 0, 223)
    assert second[:2] == (6, 11)
    found = stored(log, 6)
    assert (found.base_offset, found.last_offset, found.partition_leader_epoch) == (6, 11, 3)
    assert found.is_valid()
    assert found.crc == read_batch(sent).crc
    assert log.leader_epoch_cache.epoch_entries() == [(3, 0)]


def test_the_broker_stamps_its_time_where_it_is_asked_to() -> None:
    """LogAppendTime replaces the largest timestamp, and the checksum is made new."""
    place = Place()
    log = place.open(message_timestamp_type="LogAppendTime")
    place.now_ms += 77
    info = log.append_as_leader(batch(3), 0)
    assert (info.max_timestamp, info.log_append_time) == (place.now_ms, place.now_ms)
    found = stored(log, 0)
    assert found.is_valid()
    assert {record.timestamp for record in found.records()} == {place.now_ms}


def test_a_timestamp_type_that_is_not_the_topics_is_rewritten() -> None:
    """Under CreateTime a batch marked LogAppendTime becomes an ordinary one."""
    log = Place().open()
    log.append_as_leader(batch(2, timestamp_type="LogAppendTime", log_append_time=START_MS), 0)
    found = stored(log, 0)
    assert (found.timestamp_type, found.max_timestamp) == ("CreateTime", START_MS)
    assert found.is_valid()


def test_a_compressed_batch_is_kept_as_it_is() -> None:
    """Only the header of a compressed batch is touched."""
    log = Place().open()
    sent = batch(3, compression="gzip")
    log.append_as_leader(sent, 0)
    assert bytes_of(log)[21:] == sent[21:]


def test_nothing_and_part_of_a_batch() -> None:
    """Without a whole batch nothing is appended, and the answer says so."""
    log = Place().open()
    for records in (b"", batch(2)[:-5]):
        assert log.append_as_leader(records, 0)[:6] == (-1, -1, -1, -1, 0, 0)
    assert log.append_as_leader(batch(1) + b"\0" * 11, 0).valid_bytes == len(batch(1))
    assert log.log_end_offset == 1


def test_old_messages_and_other_codecs_are_written_anew() -> None:
    """Messages of magic 0 and 1 become one batch; a topic's codec replaces that of the producer."""
    place = Place()
    log = place.open(compression_type="gzip")
    records = [Record(offset, START_MS + offset, b"k", b"v" * 9) for offset in range(3)]
    messages = write_batch(records, base_offset=0, magic=1)
    info = log.append_as_leader(messages, 4)
    assert info[:6] == (0, 2, START_MS + 2, -1, 0, len(messages))
    log.append_as_leader(batch(2, compression="lz4"), 4)
    for offset, count in ((0, 3), (3, 2)):
        found = stored(log, offset)
        assert (found.magic, found.compression, found.partition_leader_epoch) == (2, "gzip", 4)
        assert (found.base_offset, found.record_count) == (offset, count)
        assert found.is_valid()
    assert [record.value for record in stored(log, 0).records()] == [b"v" * 9] * 3


def test_a_batch_that_would_begin_below_0() -> None:
    """A coordinator's batch without records, whose header tells more offsets than the log has."""
    data = write_empty_batch(0, 5, START_MS)
    place = Place()
    log = place.open()
    image = place.image()
    with pytest.raises(InvalidArgumentError, match="EPOCH-2"):
        log.append_as_leader(data, 7, origin="coordinator")
    assert (place.image(), log.log_end_offset, len(log.leader_epoch_cache)) == (image, 0, 0)


def without_sequence(records: bytes) -> bytes:
    """Return the batch with base sequence -1, which no writer of ours would make."""
    data = bytearray(records)
    data[53:57] = b"\xff" * 4
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


REFUSED: list[tuple[type[SegproofError], bytes, dict[str, Any]]] = [
    (InvalidRecordError, batch(2) + batch(2), {}),
    (InvalidRecordError, batch(2, 5), {}),
    (InvalidRecordError, batch(2, is_transactional=True, is_control=True, **PRODUCER), {}),
    (InvalidRecordError, without_sequence(batch(2, base_sequence=0, **PRODUCER)), {}),
    (InvalidRecordError, batch(2, last_offset=5), {}),
    (InvalidRecordError, batch(2), {"cleanup_policy": "compact"}),
    (CorruptRecordError, batch(2)[:-1] + b"?", {}),
    (CorruptRecordError, b"\0" * 20, {}),
    (InvalidTimestampError, batch(2, timestamp_ms=START_MS + 4_000_000), {}),
    (InvalidTimestampError, batch(2), {"message_timestamp_before_max_ms": 0, "_later": 5}),
    (
        InvalidTimestampError,
        batch(2, timestamp_type="LogAppendTime", log_append_time=START_MS),
        {"message_timestamp_type": "LogAppendTime"},
    ),
    (RecordBatchTooLargeError, batch(40), {}),
    (RecordTooLargeError, batch(6), {"max_message_bytes": 222}),
    (
        RecordTooLargeError,
        batch(30, compression="lz4"),
        {"compression_type": "uncompressed", "max_message_bytes": 300},
    ),
    (
        InvalidRecordError,
        write_batch([Record(0, 5, None, b"")], base_offset=0, magic=1)
        + write_batch([Record(1, -1, None, b"")], base_offset=1, magic=0),
        {},
    ),
    (OutOfOrderSequenceError, batch(2, base_sequence=9, **PRODUCER), {"_known": True}),
    (
        InvalidProducerEpochError,
        batch(2, base_sequence=2, producer_id=7, producer_epoch=0),
        {"_known": True},
    ),
    (
        InvalidTransactionStateError,
        batch(2, base_sequence=2, **PRODUCER),
        {"_known": True, "_transactional": True},
    ),
]


@pytest.mark.parametrize(("error", "records", "options"), REFUSED)
@pytest.mark.checks("LOG-10")
def test_what_a_leader_refuses_changes_nothing(
    error: type[SegproofError], records: bytes, options: dict[str, Any]
) -> None:
    """Each refused append leaves every byte and every answer as it was, a due roll too."""
    options = dict(options)
    later = options.pop("_later", 0)
    is_known, is_transactional = options.pop("_known", False), options.pop("_transactional", False)
    place = Place()
    log = place.open(**options)
    if is_known:
        known = batch(2, base_sequence=0, is_transactional=is_transactional, **PRODUCER)
        log.append_as_leader(known, 0)
        place.now_ms += 10**10
        records = bytes(records)
    place.now_ms += later
    assert log.log_segments.active_segment.offset_index is not None
    before, view = place.image(), repr(log)
    with pytest.raises(error):
        log.append_as_leader(records, 1)
    assert place.image() == before
    assert repr(log) == view
    assert log.leader_epoch_cache.latest_epoch() == (0 if is_known else None)


def test_a_batch_that_is_sent_again_is_not_appended_again() -> None:
    """The former offsets are returned, with the timestamp by which they were appended."""
    log = Place().open()
    sent = batch(2, base_sequence=0, **PRODUCER)
    log.append_as_leader(batch(1), 0)
    assert log.append_as_leader(sent, 0)[:2] == (1, 2)
    assert log.append_as_leader(sent, 0)[:4] == (1, 2, START_MS + 1, START_MS + 1)
    assert log.log_end_offset == 3


@pytest.mark.parametrize(
    ("error", "records"),
    [
        (OffsetOrderError, batch(3, 5)),
        (OffsetOrderError, batch(3, 10) + batch(3, 10)),
        (CorruptRecordError, batch(3, 10)[:-1] + b"?"),
        (RecordBatchTooLargeError, batch(40, 10)),
        (InvalidArgumentError, batch(3, 10, partition_leader_epoch=-1)),
        (InvalidArgumentError, batch(1, 2**63 - 1)),
    ],
)
@pytest.mark.checks("LOG-21")
def test_what_a_follower_refuses_changes_nothing(
    error: type[SegproofError], records: bytes
) -> None:
    """Each refused append leaves every byte as it was."""
    place = Place()
    log = place.open()
    log.append_as_follower(batch(3, 5), 0)
    log.append_as_follower(batch(2, 8), 0)
    before = place.image()
    with pytest.raises(error):
        log.append_as_follower(records, 0)
    assert (place.image(), log.log_end_offset) == (before, 10)


# --- rolling


@pytest.mark.checks("LOG-12")
def test_rolling_onto_the_active_segment() -> None:
    """An empty one is replaced; below its base, or onto one with records, nothing is done."""
    place = Place()
    log = filled(place, 5)
    assert (log.roll(), log.roll(), log.roll(3)) == (30, 30, 30)
    assert log.roll(100) == 100
    assert segments_of(log) == [(0, 892), (24, 223), (30, 0), (100, 0)]
    before = place.image()
    for base in (None, 50):
        with pytest.raises(SegproofError) as info:
            log.roll(base)
        assert info.value.law == "LOG-12"
    assert place.image() == before


def test_jitter_is_drawn_for_each_segment() -> None:
    """A segment is rolled earlier by a part of the drawn number, and by none without jitter."""
    place = Place()
    for jitter_ms, expected in ((0, 0), (7, 100 % 7)):
        config = LogConfig(segment_jitter_ms=jitter_ms)
        log = PartitionLog.open("/j-0", config, create=True, files=place.files, draw=lambda: 100)
        assert log.log_segments.active_segment.roll_jitter_ms == expected
        log.close()


# --- reading


@pytest.mark.checks("LOG-5")
def test_offsets_outside_of_the_log_are_refused() -> None:
    """Below the log start and above the log end there is nothing; at the end nothing yet."""
    log = filled(Place(), 5)
    log.update_high_watermark(30)
    log.maybe_increment_log_start_offset(7)
    for offset in (6, 31, -1):
        with pytest.raises(OffsetOutOfRangeError):
            log.read(offset, 100)
    assert log.read(30, 100)[:2] == (LogOffsetMetadata(30, 24, 223), None)
    with pytest.raises(InvalidArgumentError):
        log.read(8, -1)
    with pytest.raises(InvalidArgumentError, match="isolation"):
        log.read(8, 1, "committed")


@pytest.mark.checks("LOG-6", "LOG-7")
def test_each_isolation_ends_at_its_bound() -> None:
    """No byte at or above the high watermark, or the last stable offset, is given."""
    log = Place().open()
    log.append_as_leader(batch(2), 0)
    log.append_as_leader(batch(2, base_sequence=0, is_transactional=True, **PRODUCER), 0)
    log.append_as_leader(batch(2), 0)
    assert log.read(0, 10**6, "high_watermark").records is None
    log.update_high_watermark(6)
    assert (log.high_watermark, log.last_stable_offset) == (6, 2)
    sizes = []
    for isolation in ("log_end", "high_watermark", "txn_committed"):
        records = log.read(0, 10**6, isolation).records
        assert records is not None
        sizes.append(records.size_in_bytes())
    assert sizes == [345, 345, 115]
    assert log.read(2, 10, "txn_committed") == (LogOffsetMetadata(2, 0, 115), None, False, ())
    log.update_high_watermark(3)
    assert log.read(0, 10**6, "high_watermark").records is not None
    assert log.read(3, 10, "high_watermark").records is None
    assert log.high_watermark == 3


@pytest.mark.checks("LOG-8", "LOG-9", "PROD-11")
def test_a_committed_read_tells_aborted_transactions() -> None:
    """Those that meet the records are listed, in order, whichever segment knows of them."""
    log = Place().open()
    log.append_as_leader(batch(2, base_sequence=0, is_transactional=True, **PRODUCER), 0)
    log.roll()
    marker = write_end_transaction_marker(
        "ABORT", offset=0, timestamp=START_MS, coordinator_epoch=1, **PRODUCER
    )
    log.append_as_leader(marker, 0, origin="coordinator", transaction_version=1)
    log.append_as_leader(batch(2), 0)
    log.update_high_watermark(5)
    assert log.last_stable_offset == 5
    aborted = log.read(0, 10**6, "txn_committed").aborted_transactions
    assert [(txn.producer_id, txn.first_offset) for txn in aborted or ()] == [(7, 0)]
    assert log.read(3, 10**6, "txn_committed").aborted_transactions == ()
    assert len(log.collect_aborted_transactions(0, 5)) == 1


@pytest.mark.checks("LOG-15", "LOG-16")
def test_offsets_by_timestamp() -> None:
    """The first record at or after the time, or what the negative timestamps ask for."""
    log = filled(Place(), 5)
    answers = {stamp: log.fetch_offset_by_timestamp(stamp) for stamp in range(-5, 0)}
    assert answers == {
        -1: (-1, 30, 0), -2: (-1, 0, 0), -3: (START_MS + 5, 5, 0), -4: (-1, 0, 0), -5: (-1, -1, -1),
    }  # fmt: skip
    assert log.fetch_offset_by_timestamp(START_MS + 2) == (START_MS + 2, 2, 0)
    assert log.fetch_offset_by_timestamp(START_MS + 100) is None


def test_a_slice_does_not_show_what_came_after_a_cut() -> None:
    """Once the log was cut, what was read before refuses, rather than show other records."""
    log = Place().open()
    log.append_as_leader(batch(6), 0)
    log.append_as_leader(batch(6), 0)
    info = log.read(6, 1000)
    assert info.records is not None
    first = info.records.read()
    log.truncate_to(6)
    log.append_as_leader(batch(6, timestamp_ms=START_MS - 50), 0)
    with pytest.raises(OffsetOutOfRangeError):
        info.records.read()
    with pytest.raises(OffsetOutOfRangeError):
        list(info.records.batches())
    assert first != bytes_of(log)[223:]


# --- retention


@pytest.mark.checks("LOG-17", "LOG-18")
def test_retention_removes_the_oldest_below_the_high_watermark() -> None:
    """By size as long as what stays reaches the limit; the log begins where the rest does."""
    place = Place()
    log = place.open(retention_bytes=1784)
    for _ in range(17):
        log.append_as_leader(batch(6), 0)
    assert log.delete_old_segments() == 0
    log.update_high_watermark(30)
    assert log.delete_old_segments() == 1
    log.update_high_watermark(102)
    assert log.delete_old_segments() == 1
    assert (log.log_start_offset, log.log_segments.base_offsets()) == (48, [48, 72, 96])
    assert log.delete_old_segments() == 0


def test_retention_by_time_and_by_log_start() -> None:
    """An old log is left with one empty segment; below the log start any policy removes."""
    place = Place()
    log = place.open(retention_ms=1000)
    for _ in range(9):
        log.append_as_leader(batch(6), 0)
    log.update_high_watermark(54)
    place.now_ms += 2000
    assert log.delete_old_segments() == 3
    assert (segments_of(log), log.log_start_offset) == ([(54, 0)], 54)
    assert log.delete_old_segments() == 0
    compacted = Place()
    log = compacted.open()
    for _ in range(9):
        log.append_as_leader(batch(6), 0)
    log.update_high_watermark(54)
    log.maybe_increment_log_start_offset(47)
    assert log.delete_old_segments() == 1
    log.maybe_increment_log_start_offset(48)
    assert log.delete_old_segments() == 1
    assert log.log_segments.base_offsets() == [48]


def test_bounds_that_move() -> None:
    """The high watermark stays inside the log, the log start below it, and it never falls."""
    log = filled(Place(), 5)
    assert [log.update_high_watermark(value) for value in (-3, 99, 20)] == [0, 30, 20]
    assert log.maybe_increment_log_start_offset(10)
    assert not log.maybe_increment_log_start_offset(9)
    with pytest.raises(OffsetOutOfRangeError):
        log.maybe_increment_log_start_offset(21)
    assert log.update_high_watermark(3) == 10
    assert log.leader_epoch_cache.epoch_entries() == [(0, 10)]


def test_silent_producers_are_forgotten() -> None:
    """After the expiration time a producer without an open transaction is gone."""
    place = Place()
    log = place.open(producer_id_expiration_ms=1000)
    log.append_as_leader(batch(1, base_sequence=0, **PRODUCER), 0)
    log.remove_expired_producers()
    assert list(log.producer_state_manager.active_producers) == [7]
    place.now_ms += 1000
    log.remove_expired_producers()
    assert not log.producer_state_manager.active_producers


# --- splitting


@pytest.mark.checks("LOG-19", "LOG-20")
def test_a_segment_with_offsets_too_far_apart_is_split() -> None:
    """Every batch stays, byte for byte, in segments that it fits."""
    place = Place()
    log = place.open()
    log.append_as_follower(batch(3), 0)
    log.close()
    more = [batch(3, offset) for offset in (5, 2**31 + 7, 2**31 + 20, 2**32 + 9, 2**33)]
    data = b"".join((batch(3), *more))
    place.put("00000000000000000000.log", data)
    log = place.open()
    with pytest.raises(InvalidArgumentError, match="no segment"):
        log.split_overflowed_segment(4)
    new = log.split_overflowed_segment(0)
    expected = [0, 2**31 + 7, 2**32 + 9, 2**33]
    assert [segment.base_offset for segment in new] == expected
    assert bytes_of(log) == data
    with pytest.raises(InvalidArgumentError):
        log.split_overflowed_segment(0)
    info = log.read(2**32, 10**6)
    assert info.records is not None
    assert info.records.read() == more[3]
    assert log.append_as_leader(batch(1), 0).first_offset == 2**33 + 3
    log.close()
    assert bytes_of(place.open())[: len(data)] == data


@pytest.mark.checks("SEG-34")
def test_a_cut_of_a_loaded_segment_keeps_its_largest_timestamp() -> None:
    """After a restart a truncation into an older segment lost the largest timestamp of the rest."""
    place = Place()
    roomy: dict[str, Any] = {
        "segment_bytes": 100_000,
        "segment_index_bytes": 2400,
        "index_interval_bytes": 300,
    }
    log = place.open(**roomy)
    for number in range(6):
        log.append_as_leader(batch(2, timestamp_ms=START_MS + 10 * number), 0)
    log.roll()
    log.append_as_leader(batch(2), 0)
    log.close()
    log = place.open(**roomy)
    log.truncate_to(2)
    log.roll()
    first = log.log_segments.values()[0]
    assert [(START_MS + 1, 1)] == list(first.time_index)
