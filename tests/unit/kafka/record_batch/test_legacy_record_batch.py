# SPDX-License-Identifier: Apache-2.0
"""Messages of magic 0 and 1 as batches, and the wrappers around compressed ones."""

import gzip
import zlib
from typing import Any

import pytest

from segproof_harness.files.codecs import CODECS
from segproof_model.kafka.format.compression import deflate
from segproof_model.kafka.format.legacy_record import encode_message
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.behaviours import Release
from segproof_model.language.integers import int32_bytes
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.releases import NEWEST_KAFKA, RELEASES

INVALID_RECORD = Raised(ErrorKind.INVALID_RECORD)
OLDEST = RELEASES["kafka-0.10.2.2"]


def batch_of(data: bytes, release: Release = NEWEST_KAFKA) -> RecordBatch:
    """Return the batch that the bytes are."""
    return release.kind(MemoryRecords)(data, codecs=CODECS).first_batch()


def records_of(batch: RecordBatch) -> Any:
    """Return all records, or the error."""
    return outcome_of(lambda: list(batch.records()))


def wrapper(magic: int, codec: int, offset: int, inner: bytes | None) -> bytes:
    """Return a message whose value is these bytes, compressed."""
    value = None if inner is None else deflate(codec, inner, magic, CODECS) if codec else inner
    return encode_message(magic, offset, 1, codec, None, value)


def test_header_of_a_message() -> None:
    """Magic 0 has no timestamp, no producer and no count."""
    batch = batch_of(encode_message(0, 7, -1, 0, b"k", b"hello"))
    assert (7, 7, 8) == (batch.base_offset, batch.last_offset, batch.next_offset)
    assert ("NoTimestampType", -1) == (batch.timestamp_type, batch.max_timestamp)
    assert [None, None] == [batch.base_timestamp, batch.record_count]
    assert (-1, -1, -1) == (batch.producer_id, batch.producer_epoch, batch.base_sequence)
    assert (-1, -1) == (batch.last_sequence, batch.partition_leader_epoch)
    assert [False] * 3 == [batch.is_transactional, batch.is_control, batch.has_delete_horizon]


def test_key_longer_than_its_message() -> None:
    """Offset and timestamp can be read all the same; the key can't."""
    data = bytearray(encode_message(1, 7, 1000, 0, b"k", b"hello"))
    data[26:30] = int32_bytes(1000)
    data[12:16] = zlib.crc32(bytes(data[16:])).to_bytes(4, "big")
    batch = batch_of(bytes(data))
    assert batch.is_valid()
    assert (7, 1000) == (batch.base_offset, batch.max_timestamp)
    assert Raised(ErrorKind.INVALID_ARGUMENT) == records_of(batch)


# --- wrappers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codec", "kind"), [(1, ErrorKind.NULL), (2, ErrorKind.KAFKA_ERROR), (3, ErrorKind.KAFKA_ERROR)]
)
def test_wrapper_without_a_value_trips_the_oldest_release(codec: int, kind: ErrorKind) -> None:
    """Its codec says so; later releases refuse the wrapper."""
    data = wrapper(1, codec, 5, None)
    assert Raised(kind) == records_of(batch_of(data, OLDEST))
    assert INVALID_RECORD == records_of(batch_of(data, RELEASES["kafka-0.11.0.3"]))


def test_wrapper_around_nothing_is_empty_to_the_oldest_release() -> None:
    """In magic 1 its last message is looked for, in magic 0 its first where that is asked for."""
    old, new = (
        batch_of(encode_message(magic, 5, 1, 1, None, gzip.compress(b"")), OLDEST)
        for magic in (0, 1)
    )
    index_error = Raised(ErrorKind.INDEX_ERROR)
    assert [[], index_error] == [records_of(old), records_of(new)]
    assert [index_error] * 2 == [outcome_of(getattr, one, "base_offset") for one in (old, new)]


def test_small_wrapper_offset_leaves_offsets_alone_in_the_oldest_release() -> None:
    """Where the base that follows would be negative, offsets stay relative."""
    inner = b"".join(encode_message(1, offset, 1, 0, None, b"v") for offset in (0, 9))
    data = wrapper(1, 1, 5, inner)
    assert [0, 9] == [record.offset for record in batch_of(data, OLDEST).records()]
    assert INVALID_RECORD == records_of(batch_of(data))
