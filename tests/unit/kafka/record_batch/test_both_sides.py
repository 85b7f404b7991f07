# SPDX-License-Identifier: Apache-2.0
"""What record batches say on both sides: model and implementation write and read the same."""

import json
from collections.abc import Sequence
from importlib import resources
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof import kafka
from segproof.kafka import record as kafka_record
from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.outcomes import normalise
from segproof_model.kafka.format import batch_writing, record, varint
from segproof_model.kafka.format.compression import COMPRESSIONS, GZIP, crc32c, deflate
from segproof_model.kafka.format.legacy_record import encode_message
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import EndTransactionMarker, Record, RecordHeader
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.integers import INT32_MAX, int32_bytes, wrap32, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.kafka.format import record_batch as laws
from segproof_model.laws.register import broken_state_laws
from segproof_tests.drawn_records import records, timestamps
from segproof_tests.sides import answer


def read_batch(data: bytes) -> RecordBatch:
    """Return the model's first batch of these bytes; it obeys every law."""
    batch = MemoryRecords(data, codecs=CODECS).first_batch()
    assert [] == broken_state_laws(batch)
    return batch


MODEL = SimpleNamespace(
    **{name: getattr(varint, name) for name in dir(varint) if "code_var" in name},
    write_empty_batch=batch_writing.write_empty_batch,
    write_end_transaction_marker=batch_writing.write_end_transaction_marker,
    write_batch=lambda records, **options: batch_writing.write_batch(
        records, codecs=CODECS, **options
    ),
    read_batch=read_batch,
    increment_sequence=record.increment_sequence,
    decrement_sequence=record.decrement_sequence,
    control_record_type=record.ControlRecordTypes().of_key,
    end_transaction_marker=record.end_transaction_marker,
)
IMPLEMENTATION = SimpleNamespace(**vars(kafka_record) | vars(kafka))
CORRUPT, INVALID = Raised(ErrorKind.CORRUPT_RECORD), Raised(ErrorKind.INVALID_ARGUMENT)
INVALID_RECORD = Raised(ErrorKind.INVALID_RECORD)
GOLDEN = json.loads(
    (resources.files("segproof_harness") / "data" / "golden_batches.json").read_text("ascii")
)
"""What Kafka itself wrote, and how it is written."""
TRANSACTIONAL, ABORT = (bytes.fromhex(GOLDEN[number]["data"]) for number in (4, 5))
ONE = Record(5, 1, b"k", b"v")


BOTH = pytest.mark.parametrize("side", [MODEL, IMPLEMENTATION], ids=["model", "implementation"])
"""The functions of the model, and of the implementation."""


def told(batch: Any) -> list[Record]:
    """Return the records that a batch tells, as the model's."""
    return [
        Record(offset, at, key, value, tuple(RecordHeader(*header) for header in named), sequence)
        for offset, at, key, value, named, sequence in map(normalise, batch.records())
    ]


def records_of(batch: Any) -> Any:
    """Return all records, or the error."""
    return answer(lambda: list(batch.records()))


def with_records(side: Any, count: int, stored: bytes, codec: int = 0) -> Any:
    """Return a batch which says that `stored` is so many records; its checksum is right."""
    header = batch_writing.write_empty_batch(0, 0, 0)
    checked = bytes([0, codec]) + header[23:57] + int32_bytes(count) + stored
    start = header[12:17] + crc32c(checked).to_bytes(4, "big")
    return side.read_batch(header[:8] + int32_bytes(len(start + checked)) + start + checked)


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.checks("BATCH-7")
@given(value=st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**31), 2**31 - 1))
@BOTH
def test_integers_of_variable_length_are_read_again(side: Any, value: int) -> None:
    """Of either width, wherever they stand."""
    short, long = side.encode_varint(wrap32(value)), side.encode_varlong(value)
    assert laws.varints_are_zigzag(short, 32, (wrap32(value), len(short)))
    assert laws.varints_are_zigzag(long, 64, (wrap64(value), len(long)))
    assert not laws.varints_are_zigzag(long, 64, (wrap64(value + 1), len(long)))
    assert (wrap32(value), 1 + len(short)) == side.decode_varint(b"!" + short + b"?", 1)
    assert (value, len(long)) == side.decode_varlong(long, 0)


@pytest.mark.checks("BATCH-7")
@given(data=st.lists(st.sampled_from((0, 1, 127, 128, 255)), max_size=12).map(bytes))
@BOTH
def test_any_bytes_are_read_as_integers_by_the_law(side: Any, data: bytes) -> None:
    """They may be cut, or have no end."""
    assert laws.varints_are_zigzag(data, 32, answer(side.decode_varint, data, 0))
    assert laws.varints_are_zigzag(data, 64, answer(side.decode_varlong, data, 0))


@pytest.mark.checks("BATCH-7")
@BOTH
def test_borders_of_integers_of_variable_length(side: Any) -> None:
    """What a fifth byte holds beyond 32 bits is dropped; what is cut or too long is refused."""
    assert b"\x01" == side.encode_varint(-1)
    assert bytes.fromhex("feffffff0f") == side.encode_varint(INT32_MAX)
    assert b"\xff" * 9 + b"\x01" == side.encode_varlong(-(2**63))
    for last in (b"\x0f", b"\x7f"):
        assert (-(2**31), 5) == side.decode_varint(b"\xff" * 4 + last, 0)
    assert INVALID_RECORD == answer(side.decode_varint, b"\x80", 0)
    assert INVALID == answer(side.decode_varint, b"\xff" * 5, 0)
    assert INVALID == answer(side.decode_varlong, b"\xff" * 10, 0)


@pytest.mark.checks("BATCH-5")
@given(sequence=st.integers(0, INT32_MAX), count=st.integers(0, INT32_MAX))
@BOTH
def test_sequences_wrap(side: Any, sequence: int, count: int) -> None:
    """0 follows 2147483647, and decrement undoes increment."""
    later = side.increment_sequence(sequence, count)
    before = side.decrement_sequence(later, count)
    assert laws.sequences_wrap_to_zero(sequence, count, later, before)
    assert not laws.sequences_wrap_to_zero(sequence, count, later + 1, sequence)
    assert (0, INT32_MAX) == (
        side.increment_sequence(INT32_MAX, 1),
        side.decrement_sequence(0, 1),
    )


@pytest.mark.checks("BATCH-19")
@given(
    key=st.binary(max_size=8) | st.sampled_from((b"\0\0\0\0", b"\0\0\0\1")),
    value=st.binary(max_size=8),
)
@BOTH
def test_control_records_are_checked(side: Any, key: bytes, value: bytes) -> None:
    """Any bytes, and keys that end a transaction."""
    said = answer(side.control_record_type, key)
    control = record if side is MODEL else kafka_record
    marker = answer(side.end_transaction_marker, control.Record(0, 0, key, value))
    assert laws.control_records_are_checked(key, value, said, marker)
    assert not laws.control_records_are_checked(key, value, "COMMIT", None)


@pytest.mark.checks("BATCH-19")
@BOTH
def test_control_types_have_names(side: Any) -> None:
    """Unknown types have one too; without a key there is no control record."""
    names = [side.control_record_type(bytes((0, 0, 0, number))) for number in (0, 1, 2, 9)]
    assert ["ABORT", "COMMIT", "LEADER_CHANGE", "UNKNOWN"] == names
    assert INVALID_RECORD == answer(side.control_record_type, None)


# --- what is written is read again ---------------------------------------------------------------


def bytes_of(text: str | None) -> bytes | None:
    """Return bytes that are given as digits."""
    return None if text is None else bytes.fromhex(text)


@pytest.mark.checks("BATCH-13")
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["data"][-18:])
@BOTH
def test_golden_bytes_are_produced_and_parsed(side: Any, golden: dict[str, Any]) -> None:
    """What Kafka wrote is read as it meant it, and written again byte for byte."""
    some = [
        Record(offset, at, bytes_of(key), bytes_of(value), headers, sequence)
        for offset, at, key, value, names, sequence in golden["records"]
        for headers in [tuple(RecordHeader(name, bytes_of(held)) for name, held in names)]
    ]
    data, fields = bytes.fromhex(golden["data"]), golden["written_with"]
    written = side.write_batch(some, base_offset=some[0].offset, **fields)
    given = fields.get("log_append_time")
    meant = [one if given is None else one._replace(timestamp=given) for one in some]
    batch = side.read_batch(data)
    batch.ensure_valid()
    assert laws.golden_bytes_are_reproduced(data, written, meant, told(batch))
    assert not laws.golden_bytes_are_reproduced(data, data[:-1] + b"x", meant, meant)


@pytest.mark.checks("BATCH-6")
@BOTH
def test_header_of_a_transactional_batch(side: Any) -> None:
    """Every field of the golden transactional batch."""
    batch = side.read_batch(TRANSACTIONAL)
    assert (100, 103, 104) == (batch.base_offset, batch.last_offset, batch.next_offset)
    assert (0, 88, 2) == (batch.position, batch.size_bytes, batch.magic)
    assert (0xE8CE2BA7, 16) == (batch.crc, batch.attributes)
    assert ("none", "CreateTime") == (batch.compression, batch.timestamp_type)
    assert (5000, 5000) == (batch.base_timestamp, batch.max_timestamp)
    assert (4, 55, 3) == (batch.partition_leader_epoch, batch.producer_id, batch.producer_epoch)
    assert (10, 13, 2) == (batch.base_sequence, batch.last_sequence, batch.record_count)
    assert (True, False) == (batch.is_transactional, batch.is_control)
    assert not batch.has_delete_horizon


@pytest.mark.checks("BATCH-19")
@BOTH
def test_abort_marker_is_read_back(side: Any) -> None:
    """The golden marker says ABORT and its coordinator's epoch, and is written so."""
    batch = side.read_batch(ABORT)
    (control,) = batch.records()
    assert batch.is_control
    assert EndTransactionMarker("ABORT", 77) == answer(side.end_transaction_marker, control)
    assert ABORT == side.write_end_transaction_marker(
        "ABORT",
        offset=106,
        timestamp=9000,
        producer_id=10,
        producer_epoch=0,
        coordinator_epoch=77,
        partition_leader_epoch=15,
    )


def survives(side: Any, drawn: Sequence[Record], magic: int, compression: str) -> bool:
    """Return whether records are read as they were written."""
    options: dict[str, Any] = {"magic": magic, "compression": compression}
    data = side.write_batch(drawn, base_offset=drawn[0].offset, **options)
    found: list[Any] = []
    while data:
        batch = side.read_batch(data)
        batch.ensure_valid()
        found += told(batch)
        data = data[batch.size_bytes :]
    assert drawn[-1].offset == batch.last_offset
    return laws.records_survive_writing(drawn, magic, found)


@pytest.mark.checks("BATCH-6")
@given(drawn=records(), compression=st.sampled_from(COMPRESSIONS))
@BOTH
def test_magic_2_round_trip(side: Any, drawn: list[Record], compression: str) -> None:
    """For every codec, null and empty kept apart."""
    assert survives(side, drawn, 2, compression)
    assert not laws.records_survive_writing(drawn, 2, drawn[1:])


@pytest.mark.checks("BATCH-1", "BATCH-2", "BATCH-6", "BATCH-12")
@given(
    drawn=records(with_headers=False),
    magic=st.sampled_from((0, 1)),
    compression=st.sampled_from(COMPRESSIONS[:4]),
)
@BOTH
def test_legacy_round_trip(side: Any, drawn: list[Record], magic: int, compression: str) -> None:
    """For messages and wrappers, gaps kept."""
    assert survives(side, drawn, magic, compression)


@pytest.mark.checks("BATCH-5")
@given(drawn=records(), base_sequence=st.integers(0, INT32_MAX))
@BOTH
def test_sequences_follow_offsets(side: Any, drawn: list[Record], base_sequence: int) -> None:
    """A record's sequence is the base sequence plus its offset delta, wrapped."""
    base = drawn[0].offset
    given: dict[str, Any] = {"producer_id": 1, "producer_epoch": 0, "base_sequence": base_sequence}
    batch = side.read_batch(side.write_batch(drawn, base_offset=base, **given))
    expected = [(base_sequence + one.offset - base) % 2**31 for one in drawn]
    assert expected == [one.sequence for one in batch.records()]
    assert expected[-1] == batch.last_sequence


@pytest.mark.checks("BATCH-8")
@pytest.mark.parametrize(("magic", "compression"), [(1, "gzip"), (2, "none"), (2, "lz4")])
@BOTH
def test_log_append_time_is_that_of_all_records(side: Any, magic: int, compression: str) -> None:
    """Their own timestamps give way to it, inside a wrapper too."""
    some = [Record(5, 1, b"a", b"b"), Record(6, 2, None, b"")]
    options: dict[str, Any] = {"magic": magic, "base_offset": 5, "compression": compression}
    timed: dict[str, Any] = {"timestamp_type": "LogAppendTime", "log_append_time": 99}
    given_time = side.read_batch(side.write_batch(some, **timed, **options))
    assert [99, 99] == [one.timestamp for one in given_time.records()]
    assert ("LogAppendTime", 99) == (given_time.timestamp_type, given_time.max_timestamp)
    created = side.read_batch(side.write_batch(some, **options))
    assert some == [one._replace(sequence=-1) for one in told(created)]
    assert (2, 6, 5) == (created.max_timestamp, created.last_offset, created.base_offset)


@pytest.mark.checks("BATCH-15")
@given(
    base=st.integers(0, 2**63 - 1),
    delta=st.integers(0, INT32_MAX),
    timestamp=timestamps,
    sequence=st.integers(0, INT32_MAX),
)
@BOTH
def test_empty_batch(side: Any, base: int, delta: int, timestamp: int, sequence: int) -> None:
    """It keeps offsets, sequence and the largest timestamp."""
    base = min(base, 2**63 - 1 - delta)
    kept = base, base + delta, timestamp, sequence
    given = {"base_sequence": sequence, "producer_id": 5, "producer_epoch": 0}
    written = side.write_empty_batch(*kept[:3], **given)
    assert laws.empty_batches_keep_their_place(kept, written)
    assert not laws.empty_batches_keep_their_place(kept, written[:57] + int32_bytes(1))
    batch = side.read_batch(written)
    assert (61, 0, []) == (batch.size_bytes, batch.record_count, list(batch.records()))
    assert (*kept[:2], -1, timestamp) == (
        batch.base_offset,
        batch.last_offset,
        batch.base_timestamp,
        batch.max_timestamp,
    )


@pytest.mark.checks("BATCH-15")
@BOTH
def test_an_empty_batch_has_any_producer(side: Any) -> None:
    """Kafka looks at the fields of a producer only where it writes records."""
    transactional: dict[str, Any] = {"is_transactional": True}
    producer: dict[str, Any] = {"producer_id": 1}
    several = transactional, producer, {**transactional, "is_control": True}
    for fields in (*several, {**producer, "producer_epoch": 0}):
        written = side.read_batch(side.write_empty_batch(0, 5, 7, **fields))
        assert fields == {name: getattr(written, name) for name in fields}


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"magic": 3},
        {"magic": -1},
        {"compression": "brotli"},
        {"magic": 1, "compression": "zstd"},
        {"timestamp_type": "NoTimestampType"},
        {"timestamp_type": "LogAppendTime"},
        {"timestamp_type": "Later"},
        {"base_offset": 6},
        {"base_offset": 5 - 2**31},
        {"last_offset": 4},
        {"last_offset": 5 + 2**31},
        {"is_transactional": True},
        {"producer_id": 1},
        {"producer_id": 1, "producer_epoch": 0},
        {"magic": 1, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0},
        {"magic": 0, "is_control": True},
        {"magic": 1, "last_offset": 9},
        {"magic": 0, "last_offset": 9},
        {"magic": 1, "timestamp_type": "NoTimestampType"},
    ],
)
@BOTH
def test_unwritable_batches_are_refused(side: Any, options: dict[str, Any]) -> None:
    """What the format or the producer's rules exclude."""
    assert INVALID == answer(side.write_batch, [ONE], **{"base_offset": 5, **options})


@pytest.mark.parametrize(
    ("some", "magic"),
    [
        ([], 2),
        ([ONE, ONE], 2),
        ([ONE, ONE._replace(offset=4)], 2),
        ([Record(5, -2, None, None)], 2),
        ([Record(5, 1, None, None, (RecordHeader("h", None),))], 1),
    ],
)
@BOTH
def test_unwritable_records_are_refused(side: Any, some: list[Record], magic: int) -> None:
    """No records, offsets that do not rise, a timestamp below -1, headers before magic 2."""
    assert INVALID == answer(side.write_batch, some, magic=magic, base_offset=5)


@BOTH
def test_other_unwritable_batches_are_refused(side: Any) -> None:
    """An empty batch that ends before it begins; a marker that ends no transaction."""
    assert INVALID == answer(side.write_empty_batch, 5, 4, 0)
    given = dict.fromkeys(
        ("offset", "timestamp", "coordinator_epoch", "producer_id", "producer_epoch"), 0
    )
    assert INVALID == answer(side.write_end_transaction_marker, "UNKNOWN", **given)


@pytest.mark.checks("BATCH-14")
@given(data=st.data())
@BOTH
def test_a_changed_byte_is_noticed(side: Any, data: st.DataObject) -> None:
    """A changed byte behind the magic, or of the checksum, makes the batch invalid."""
    changed = bytearray.fromhex(data.draw(st.sampled_from(GOLDEN))["data"])
    changed[data.draw(st.integers(17, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    batch = side.read_batch(bytes(changed))
    assert not batch.is_valid()
    assert CORRUPT == answer(batch.ensure_valid)


@pytest.mark.checks("BATCH-17", "BATCH-18")
@given(rest=st.binary(max_size=20), codec=st.integers(5, 7))
@BOTH
def test_no_records_unknown_codecs_and_long_lengths(side: Any, rest: bytes, codec: int) -> None:
    """With count 0 nothing is read; the others are invalid arguments."""
    assert () == records_of(with_records(side, 0, rest))
    assert INVALID == records_of(with_records(side, 1, b"\xff" * 5 + rest))
    unknown = with_records(side, 1, rest, codec)
    assert INVALID == records_of(unknown) == answer(lambda: unknown.compression)


@pytest.mark.checks("BATCH-16")
@given(key=st.binary(max_size=20), excess=st.integers(1, 1000))
@BOTH
def test_damaged_records_are_refused(side: Any, key: bytes, excess: int) -> None:
    """Counts and lengths that are negative or too large, and bytes that are left over."""
    encoded = varint.encode_varint
    start = bytes(3) + encoded(len(key)) + key + encoded(-1)

    def framed(body: bytes) -> bytes:
        return encoded(len(body)) + body

    whole = framed(start + encoded(0))
    damaged = (
        (-excess, whole),
        (1, encoded(len(whole) - 1 + excess) + whole[1:]),
        (1, framed(start + encoded(-excess))),
        (1, framed(start + encoded(excess))),
        (1, framed(start + encoded(1) + encoded(-excess) + b"\0")),
        (1, framed(start + encoded(0) + bytes(excess))),
        (1, whole + bytes(excess)),
    )
    assert 1 == len(records_of(with_records(side, 1, whole)))
    assert {INVALID_RECORD} == {records_of(with_records(side, *one)) for one in damaged}


@pytest.mark.checks("BATCH-18")
@BOTH
def test_overlong_length_inside_compressed_records_is_an_invalid_record(side: Any) -> None:
    """Seen on 4.3.1: only uncompressed records let the other error out."""
    stored = deflate(GZIP, b"\xff" * 5 + b"\1", 2, CODECS)
    assert INVALID_RECORD == records_of(with_records(side, 1, stored, GZIP))


# --- wrappers ------------------------------------------------------------------------------------


def wrapper(side: Any, magic: int, codec: int, offset: int, inner: bytes | None) -> Any:
    """Return a message whose value is these bytes, compressed."""
    value = None if inner is None else deflate(codec, inner, magic, CODECS)
    return side.read_batch(encode_message(magic, offset, 1, codec, None, value))


@BOTH
@pytest.mark.checks("BATCH-9", "BATCH-10")
@given(
    magic=st.sampled_from((0, 1)),
    offset=st.integers(0, 20),
    inner=st.lists(st.integers(0, 12), min_size=1, max_size=4).map(sorted),
)
def test_offsets_in_a_wrapper(side: Any, magic: int, offset: int, inner: list[int]) -> None:
    """In magic 0 absolute, in magic 1 relative to the last one, whose offset the wrapper has."""
    messages = b"".join(encode_message(magic, one, 0, 0, b"k", b"v") for one in inner)
    batch = wrapper(side, magic, GZIP, offset, messages)
    if magic == 1 and 0 != offset < inner[-1]:
        assert INVALID_RECORD == records_of(batch)
    else:
        base = offset - inner[-1] if magic and offset else 0
        assert [base + one for one in inner] == [one.offset for one in batch.records()]


INNER = (
    None,
    b"",
    bytes(11),
    bytes(8) + int32_bytes(13) + bytes(13),
    bytes(8) + int32_bytes(14) + bytes(13),
    encode_message(0, 3, 0, 0, b"k", b"v"),
    encode_message(1, 3, 0, 0, b"k", b"v") * 2 + bytes(11),
    encode_message(1, 3, 0, 1, b"k", b"v"),
    encode_message(1, 3, 0, 0, b"k", b"v")[:-1],
)
GOOD = {5: 1, 6: 2}
"""How many messages there are in the good ones."""


@BOTH
@pytest.mark.checks("BATCH-11")
@pytest.mark.parametrize("number", range(len(INNER)))
@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("magic", [0, 1])
def test_bad_wrappers_are_refused(side: Any, magic: int, codec: int, number: int) -> None:
    """No value, no message, a compressed message, codec zstd; a size below 14 is corrupt."""
    batch = wrapper(side, magic, codec, 2**62, INNER[number])
    found = records_of(batch)
    if codec < 4 and number in GOOD:
        assert GOOD[number] == len(found)
    else:
        is_corrupt = codec < 4 and number == 3
        assert (CORRUPT if is_corrupt else INVALID_RECORD) == found


@BOTH
@pytest.mark.parametrize(("codec", "kind"), [(5, "invalid-argument"), (1, "kafka-error")])
def test_wrapper_of_an_unknown_codec_or_of_junk(side: Any, codec: int, kind: str) -> None:
    """The first is the caller's mistake, the second the error of the codec."""
    batch = side.read_batch(encode_message(1, 0, 1, codec, None, b"junk"))
    assert Raised(ErrorKind(kind)) == records_of(batch)
