# SPDX-License-Identifier: Apache-2.0
"""What a leader of 0.10.2 makes of messages: offsets, timestamps, wrappers, refusals."""

from typing import Any

import pytest

from segproof_harness.files.codecs import CODECS
from segproof_model.kafka.broker.log_validator import LogValidator, ValidationResult
from segproof_model.kafka.format.batch_writing import write_batch
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.releases import RELEASES

RELEASE = RELEASES["kafka-0.10.2.2"]
NOW_MS = 1_000
PLAIN = LogConfig()
LOG_APPEND_TIME = LogConfig(message_timestamp_type="LogAppendTime")
TIMES = (5, 9, 7)
INVALID_TIMESTAMP = Raised(ErrorKind.INVALID_TIMESTAMP)


def messages(magic: int, compression: str = "none", base_offset: int = 0) -> bytes:
    """Return three messages, in a wrapper if they are compressed."""
    records = [Record(base_offset + n, at, b"k", b"v") for n, at in enumerate(TIMES)]
    return write_batch(
        records, magic=magic, base_offset=base_offset, compression=compression, codecs=CODECS
    )


def taken(data: bytes, config: LogConfig = PLAIN) -> ValidationResult:
    """Return what a leader writes whose next offset is 40."""
    records = RELEASE.kind(MemoryRecords)(data, codecs=CODECS)
    validator = RELEASE.kind(LogValidator)(records, NOW_MS, config, 0, "client")
    return validator.validate_messages_and_assign_offsets(40)


def batches_of(done: ValidationResult) -> list[RecordBatch]:
    """Return what was written, as batches."""
    records = RELEASE.kind(MemoryRecords)(done.validated_records, codecs=CODECS)
    return list(records.batches())


def times_of(done: ValidationResult) -> list[tuple[int, int]]:
    """Return (offset, timestamp) of all messages that were written."""
    return [(time.offset, time.timestamp) for one in batches_of(done) for time in one.times()]


@pytest.mark.checks("LOG-9")
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_messages_get_their_offsets_where_they_are(compression: str) -> None:
    """Nothing else changes; of a wrapper the last message tells the offset."""
    done = taken(messages(1, compression))
    assert [(40, 5), (41, 9), (42, 7)] == times_of(done)
    assert (42, 9, 41 if compression == "none" else 42, False) == done[1:]
    assert all(one.is_valid() for one in batches_of(done))


@pytest.mark.checks("LOG-9")
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_time_of_appending_is_written(compression: str) -> None:
    """Into each message, or into the wrapper."""
    done = taken(messages(1, compression), LOG_APPEND_TIME)
    assert [NOW_MS] * 3 == [time for _, time in times_of(done)]
    assert (42, NOW_MS, 40 if compression == "none" else 42, False) == done[1:]
    assert {"LogAppendTime"} == {one.timestamp_type for one in batches_of(done)}


@pytest.mark.checks("LOG-9")
def test_messages_without_a_time_are_written_anew() -> None:
    """As messages of magic 1 whose timestamp is unknown."""
    done = taken(messages(0))
    assert [1, 1, 1] == [one.magic for one in batches_of(done)]
    assert [(40, -1), (41, -1), (42, -1)] == times_of(done)
    assert (42, -1, 42, True) == done[1:]


@pytest.mark.checks("LOG-9")
@pytest.mark.parametrize("data", [messages(1, "gzip", 7), messages(0, "gzip")])
def test_what_does_not_count_from_0_is_wrapped_anew(data: bytes) -> None:
    """In one wrapper of magic 1, whatever the messages were."""
    done = taken(data)
    assert [1] == [one.magic for one in batches_of(done)]
    assert [40, 41, 42] == [offset for offset, _ in times_of(done)]
    assert (42, True) == (done.last_offset, done.message_size_maybe_changed)


@pytest.mark.checks("LOG-9")
def test_messages_are_unwrapped() -> None:
    """Where the log wants none compressed; they keep their times, whatever the log's are."""
    config = LogConfig(compression_type="uncompressed", message_timestamp_type="LogAppendTime")
    done = taken(messages(1, "gzip"), config)
    assert [(40, 5), (41, 9), (42, 7)] == times_of(done)
    assert (42, NOW_MS, 42, True) == done[1:]


@pytest.mark.checks("LOG-10")
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_what_a_log_refuses(compression: str) -> None:
    """No key in a compacted log, a time too far away, a time that a log gave."""
    options: dict[str, Any] = {"magic": 1, "compression": compression, "codecs": CODECS}
    keyless = write_batch([Record(0, 5, None, b"v")], base_offset=0, **options)
    compacted = LogConfig(cleanup_policy="compact")
    assert Raised(ErrorKind.CORRUPT_RECORD) == outcome_of(taken, keyless, compacted)
    strict = LogConfig(message_timestamp_before_max_ms=100)
    assert INVALID_TIMESTAMP == outcome_of(taken, messages(1, compression), strict)
    stamped = taken(messages(1, compression), LOG_APPEND_TIME).validated_records
    assert INVALID_TIMESTAMP == outcome_of(taken, stamped)


@pytest.mark.checks("LOG-10")
def test_a_missing_time_is_too_old() -> None:
    """Also that of messages which have no place for one."""
    strict = LogConfig(message_timestamp_before_max_ms=100)
    assert INVALID_TIMESTAMP == outcome_of(taken, messages(0), strict)


@pytest.mark.checks("LOG-10")
def test_batches_are_no_messages() -> None:
    """Magic 2 comes later."""
    assert Raised(ErrorKind.INVALID_ARGUMENT) == outcome_of(taken, messages(2))
