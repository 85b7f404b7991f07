# SPDX-License-Identifier: Apache-2.0
"""What a leader of 0.10.2 makes of messages: offsets, timestamps, wrappers, refusals."""

import pytest

from segproof_harness.codecs import CODECS
from segproof_model.kafka.early_validator import early_validated
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.log_validator import Validated
from segproof_model.kafka.record_batch import Record, RecordBatch, write_batch
from segproof_model.kafka.record_file import scan_memory
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import KAFKA_0_10_2_2

NOW_MS = 1_000
PLAIN = LogConfig()
TIMES = (5, 9, 7)


def messages(magic: int, compression: str = "none", base_offset: int = 0) -> bytes:
    """Return three messages, in a wrapper if they are compressed."""
    records = [Record(base_offset + n, at, b"k", b"v") for n, at in enumerate(TIMES)]
    data = write_batch(
        records, magic=magic, base_offset=base_offset, compression=compression, codecs=CODECS
    )
    assert isinstance(data, bytes)
    return data


def given(data: bytes, config: LogConfig, first_offset: int = 40) -> Validated | Raised:
    """Ask a leader whose next offset is the first one."""
    batches = scan_memory(data, codecs=CODECS, profile=KAFKA_0_10_2_2).batches
    return early_validated(batches, first_offset, NOW_MS, config, CODECS, KAFKA_0_10_2_2)


def taken(data: bytes, config: LogConfig = PLAIN) -> Validated:
    """Return what the leader writes."""
    done = given(data, config)
    assert isinstance(done, Validated)
    return done


def batches_of(done: Validated) -> tuple[RecordBatch, ...]:
    """Return what was written, as batches."""
    return scan_memory(done.records, codecs=CODECS, profile=KAFKA_0_10_2_2).batches


def times_of(done: Validated) -> list[tuple[int, int]]:
    """Return (offset, timestamp) of all messages that were written."""
    found = [time for one in batches_of(done) for time in one.times_until_error().times]
    return [(time.offset, time.timestamp) for time in found]


@pytest.mark.checks("LOG-9")
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_messages_get_their_offsets_where_they_are(compression: str) -> None:
    """Nothing else changes; of a wrapper the last message tells the offset."""
    done = taken(messages(1, compression))
    assert times_of(done) == [(40, 5), (41, 9), (42, 7)]
    maximum = 41 if compression == "none" else 42
    assert done[1:] == (42, 9, maximum, False)
    assert all(one.is_valid() is True for one in batches_of(done))


@pytest.mark.checks("LOG-9")
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_time_of_appending_is_written(compression: str) -> None:
    """Into each message, or into the wrapper."""
    done = taken(messages(1, compression), LogConfig(message_timestamp_type="LogAppendTime"))
    assert [time for _, time in times_of(done)] == [NOW_MS] * 3
    assert done[1:] == (42, NOW_MS, 40 if compression == "none" else 42, False)
    assert all(one.timestamp_type == "LogAppendTime" for one in batches_of(done))


@pytest.mark.checks("LOG-9")
def test_messages_without_a_time_are_written_anew() -> None:
    """As messages of magic 1 whose timestamp is unknown."""
    done = taken(messages(0))
    assert [one.magic for one in batches_of(done)] == [1, 1, 1]
    assert times_of(done) == [(40, -1), (41, -1), (42, -1)]
    assert done[1:] == (42, -1, 42, True)


@pytest.mark.checks("LOG-9")
@pytest.mark.parametrize("data", [messages(1, "gzip", 7), messages(0, "gzip")])
def test_what_does_not_count_from_0_is_wrapped_anew(data: bytes) -> None:
    """In one wrapper of magic 1, whatever the messages were."""
    done = taken(data)
    assert [one.magic for one in batches_of(done)] == [1]
    assert [offset for offset, _ in times_of(done)] == [40, 41, 42]
    assert (done.last_offset, done.is_rewritten) == (42, True)


@pytest.mark.checks("LOG-9")
def test_messages_are_unwrapped() -> None:
    """Where the log wants none compressed; they keep their times, whatever the log's are."""
    config = LogConfig(compression_type="uncompressed", message_timestamp_type="LogAppendTime")
    done = taken(messages(1, "gzip"), config)
    assert times_of(done) == [(40, 5), (41, 9), (42, 7)]
    assert done[1:] == (42, NOW_MS, 42, True)


@pytest.mark.checks("LOG-10")
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_what_a_log_refuses(compression: str) -> None:
    """No key in a compacted log, a time too far away, a time that a log gave."""
    compacted = LogConfig(cleanup_policy="compact")
    keyless = write_batch(
        [Record(0, 5, None, b"v")],
        magic=1,
        base_offset=0,
        compression=compression,
        codecs=CODECS,
    )
    assert isinstance(keyless, bytes)
    assert given(keyless, compacted) == Raised(ErrorKind.CORRUPT_RECORD)
    strict = LogConfig(message_timestamp_before_max_ms=100)
    assert given(messages(1, compression), strict) == Raised(ErrorKind.INVALID_TIMESTAMP)
    stamped = taken(messages(1, compression), LogConfig(message_timestamp_type="LogAppendTime"))
    assert given(stamped.records, LogConfig()) == Raised(ErrorKind.INVALID_TIMESTAMP)


@pytest.mark.checks("LOG-10")
def test_a_missing_time_is_too_old() -> None:
    """Also that of messages which have no place for one."""
    strict = LogConfig(message_timestamp_before_max_ms=100)
    assert given(messages(0), strict) == Raised(ErrorKind.INVALID_TIMESTAMP)


@pytest.mark.checks("LOG-10")
def test_batches_are_no_messages() -> None:
    """Magic 2 comes later."""
    assert given(messages(2), LogConfig()) == Raised(ErrorKind.INVALID_ARGUMENT)
