# SPDX-License-Identifier: Apache-2.0
"""Record batches: golden bytes, round trips, damage; each batch that is read obeys every law."""

import json
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.kafka.batch_drawing import until_error
from segproof_model.kafka.format.batch_writing import write_batch, write_empty_batch
from segproof_model.kafka.format.compression import COMPRESSIONS, GZIP, NO_CODECS, crc32c, deflate
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import (
    Record,
)
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.varint import encode_varint
from segproof_model.language.behaviours import Release
from segproof_model.language.integers import int32_bytes
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.laws.kafka.format import record_batch as laws
from segproof_model.laws.register import broken_state_laws
from segproof_model.releases import NEWEST_KAFKA, RELEASES
from segproof_tests.drawn_records import records

CORRUPT_RECORD = Raised(ErrorKind.CORRUPT_RECORD)
INVALID_RECORD = Raised(ErrorKind.INVALID_RECORD)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)
GOLDEN_FILE = resources.files("segproof_harness") / "data" / "golden_batches.json"
GOLDEN_BATCHES = json.loads(GOLDEN_FILE.read_text(encoding="ascii"))
"""What Kafka itself wrote, and how it is written."""
GOLDEN = [bytes.fromhex(golden["data"]) for golden in GOLDEN_BATCHES]
PLAIN = GOLDEN[3]
"""Two records, `hello` and `there`."""


def batches_of(data: bytes) -> list[RecordBatch]:
    """Return the batches that the bytes are; each obeys every law."""
    found = list(MemoryRecords(data, codecs=CODECS).batches())
    assert [] == [law for batch in found for law in broken_state_laws(batch)]
    return found


def batch_of(data: bytes, release: Release = NEWEST_KAFKA) -> RecordBatch:
    """Return the batch that the bytes begin with; it obeys every law."""
    batch = release.kind(MemoryRecords)(data, codecs=CODECS).first_batch()
    assert [] == broken_state_laws(batch)
    return batch


def records_of(batch: RecordBatch) -> Any:
    """Return all records, or the error."""
    return outcome_of(lambda: list(batch.records()))


def with_records(count: int, stored: bytes, codec: int = 0) -> RecordBatch:
    """Return a batch which says that `stored` is so many records."""
    header = write_empty_batch(0, 0, 0)
    data = header[12:22] + bytes([codec]) + header[23:57] + int32_bytes(count) + stored
    return batch_of(header[:8] + int32_bytes(len(data)) + data)


# --- golden bytes --------------------------------------------------------------------------------


@pytest.mark.checks("BATCH-1", "BATCH-2", "BATCH-3", "BATCH-4", "BATCH-12")
@pytest.mark.parametrize("data", GOLDEN, ids=lambda data: data[-9:].hex())
def test_golden_bytes_are_lawful(data: bytes) -> None:
    """Every law holds, and its checksum is noticed to be another."""
    assert 1 == len(batches_of(data))
    assert laws.legacy_checksum_is_right(data)
    assert laws.checksum_is_right(data)
    wrong = data[:-1] + bytes([data[-1] ^ 1])
    assert not (laws.legacy_checksum_is_right(wrong) and laws.checksum_is_right(wrong))


def test_delete_horizon_leaves_deltas_as_they_are() -> None:
    """With the flag the base timestamp is the horizon; timestamps still count from it."""
    flagged = PLAIN[:22] + b"\x40" + PLAIN[23:]
    data = flagged[:17] + crc32c(flagged[21:]).to_bytes(4, "big") + flagged[21:]
    batch = batch_of(data)
    assert batch.has_delete_horizon
    assert batch.is_valid()
    assert records_of(batch_of(PLAIN)) == records_of(batch)
    assert not batch_of(data, RELEASES["kafka-2.8.2"]).has_delete_horizon


# --- round trips ---------------------------------------------------------------------------------


@pytest.mark.checks("BATCH-1", "BATCH-3", "BATCH-4")
@given(records(), st.sampled_from(COMPRESSIONS), st.integers(0, 5))
def test_written_batches_are_lawful(drawn: list[Record], compression: str, beyond: int) -> None:
    """What is written obeys every law, and says what it was given."""
    base, last = drawn[0].offset - 1, drawn[-1].offset + beyond
    data = write_batch(
        drawn, base_offset=base, last_offset=last, compression=compression, codecs=CODECS
    )
    batch = batch_of(data)
    assert laws.checksum_is_right(data)
    assert (base, last) == (batch.base_offset, batch.last_offset)
    assert (compression, len(drawn)) == (batch.compression, batch.record_count)
    assert max(record.timestamp for record in drawn) == batch.max_timestamp


# --- damage --------------------------------------------------------------------------------------


@pytest.mark.checks("BATCH-14")
def test_ensure_valid_speaks_as_the_release_does() -> None:
    """Up to 2.3 the error was the invalid-record error."""
    data = PLAIN[:-1] + b"\1"
    for name, error in (
        ("segproof", CORRUPT_RECORD),
        ("kafka-2.4.1", CORRUPT_RECORD),
        ("kafka-2.2.2", INVALID_RECORD),
    ):
        assert error == outcome_of(batch_of(data, RELEASES[name]).ensure_valid)


def test_too_small_a_batch_is_corrupt_and_its_fields_an_index_error() -> None:
    """A batch of magic 2 in memory below 61 bytes."""
    small = batch_of(PLAIN[:8] + int32_bytes(20) + PLAIN[12:32])
    assert CORRUPT_RECORD == outcome_of(small.ensure_valid)
    assert Raised(ErrorKind.INDEX_ERROR) == outcome_of(lambda: small.max_timestamp)
    assert Raised(ErrorKind.INDEX_ERROR) == records_of(small)
    assert (7, 8) == (small.base_offset, small.last_offset)


@pytest.mark.checks("BATCH-18")
def test_overlong_length_inside_compressed_records_is_an_invalid_record() -> None:
    """Seen on 4.3.1: only uncompressed records let the other error out, as up to 3.5 they do."""
    batch = with_records(1, deflate(GZIP, b"\xff" * 5 + b"\1", 2, CODECS), GZIP)
    assert INVALID_RECORD == records_of(batch)
    assert INVALID_ARGUMENT == records_of(batch_of(batch.data, RELEASES["kafka-3.5.2"]))


def test_records_before_the_damage_are_handed_out_uncompressed() -> None:
    """A plain iteration gives the records that are there, then the error; compressed: only that."""
    body = PLAIN[61:]
    plain = with_records(3, body)
    found = until_error(plain.records(), lambda record: record.value)
    assert ((b"hello", b"there"), "invalid-record") == found
    packed = with_records(3, deflate(GZIP, body, 2, CODECS), GZIP)
    assert ((), "invalid-record") == until_error(packed.records(), tuple)


def test_record_beyond_the_batch_is_null_up_to_2_8() -> None:
    """But for the last one, of which there is anything."""
    old = RELEASES["kafka-2.8.2"]
    long = encode_varint(100) + b"x"
    assert Raised(ErrorKind.NULL) == records_of(batch_of(with_records(2, long).data, old))
    assert INVALID_RECORD == records_of(batch_of(with_records(1, long).data, old))
    assert INVALID_RECORD == records_of(with_records(2, long))


@pytest.mark.checks("BATCH-18")
def test_zstd_is_an_unknown_codec_to_old_releases() -> None:
    """Codec 4 of 2.1 and later."""
    some = [Record(0, 1, None, b"v")]
    data = write_batch(some, base_offset=0, compression="zstd", codecs=CODECS)
    assert some == records_of(batch_of(data, RELEASES["kafka-2.1.1"]))
    old = batch_of(data, RELEASES["kafka-2.0.1"])
    assert INVALID_ARGUMENT == records_of(old) == outcome_of(lambda: old.compression)


def test_without_codecs_compressed_records_are_the_kafka_error() -> None:
    """Nothing else needs them."""
    data = write_batch([Record(0, 1, None, b"v")], base_offset=0, compression="lz4", codecs=CODECS)
    batch = replace(batch_of(data), codecs=NO_CODECS)
    assert batch.is_valid()
    assert KAFKA_ERROR == records_of(batch)


# --- records read one by one ---------------------------------------------------------------------


@pytest.mark.checks("SCAN-18")
@pytest.mark.parametrize(
    ("head", "kind"), [(b"\x1f\x8b\x08", None), (b"\x1f\x8b\x07", "kafka-error")]
)
def test_a_batch_without_records_is_opened(head: bytes, kind: str | None) -> None:
    """Streamed, a reader of its block is made, which asks for the head; as a whole, it is empty."""
    some = [Record(0, 5, None, b"v")]
    data = write_batch(some, base_offset=0, compression="gzip", codecs=CODECS)
    batch = batch_of(data[:57] + bytes(4) + head + bytes(len(data) - 64))
    assert ((), kind) == until_error(batch.streamed_times(), tuple)
    assert ((), None) == until_error(batch.times(), tuple)


@pytest.mark.checks("LOG-16")
@pytest.mark.parametrize("damage", ["none", "checksum", "cut", "deflate"])
def test_streamed_times_end_where_inflating_does(damage: str) -> None:
    """Read record by record, a batch tells of those before damage, but not of the last one; where
    its data is damaged, and not its end, of none, as read as a whole."""
    wanted = ((10, 0), (30, 1), (20, 2))
    some = [Record(offset, timestamp, None, b"v") for timestamp, offset in wanted]
    data = write_batch(some, base_offset=0, compression="gzip", codecs=CODECS)
    damaged = {
        "none": data,
        "checksum": data[:-8] + bytes(8),
        "cut": data[:8] + (len(data) - 12 - 9).to_bytes(4, "big") + data[12:-9],
        "deflate": data[:71] + b"\x07" + data[72:],
    }[damage]
    batch = batch_of(damaged)
    told = {"none": wanted, "deflate": ()}.get(damage, wanted[:-1])
    assert told == until_error(batch.streamed_times(), tuple)[0]
    assert (wanted if damage == "none" else ()) == until_error(batch.times(), tuple)[0]
