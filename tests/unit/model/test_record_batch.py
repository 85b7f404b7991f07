# SPDX-License-Identifier: Apache-2.0
"""The model of record batches: golden bytes, round trips, damage, and each law that states them.

Goal: what the format says, byte for byte. Method: bytes that Kafka wrote, and drawn values.
"""

import gzip
import zlib
from typing import Any

import cramjam
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.kafka.compression import (
    COMPRESSIONS,
    GZIP,
    LZ4,
    NO_CODECS,
    SNAPPY,
    BeyondLimitError,
    Codecs,
    crc32c,
    deflate,
    inflate,
)
from segproof_model.kafka.legacy_record import encode_message
from segproof_model.kafka.record_batch import (
    EndTransactionMarker,
    Record,
    RecordBatch,
    RecordHeader,
    control_record_type,
    decode_varint,
    decode_varlong,
    decrement_sequence,
    encode_varint,
    encode_varlong,
    end_transaction_marker,
    increment_sequence,
    read_batch,
    write_batch,
)
from segproof_model.language.integers import INT32_MAX, int32_bytes
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws import record_batch as laws
from segproof_model.laws.registry import LAWS
from segproof_model.profiles import (
    KAFKA_0_10_2_2,
    KAFKA_1_1_1,
    KAFKA_2_4_1,
    KAFKA_4_3_1,
    SEGPROOF,
)

CORRUPT_RECORD = Raised(ErrorKind.CORRUPT_RECORD)
INVALID_RECORD = Raised(ErrorKind.INVALID_RECORD)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)
INDEX_ERROR = Raised(ErrorKind.INDEX_ERROR)


def _inflate(codec: int, data: bytes, limit: int) -> bytes:
    try:
        if codec == LZ4:
            target = bytearray(limit)
            return bytes(target[: cramjam.lz4.decompress_block_into(data, target)])
        inflated = {
            GZIP: cramjam.gzip.decompress,
            SNAPPY: cramjam.snappy.decompress_raw,
        }.get(codec, cramjam.zstd.decompress)(data)
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from error
    if len(inflated) > limit:
        raise BeyondLimitError(limit)
    return bytes(inflated)


def _deflate(codec: int, data: bytes) -> bytes:
    if codec == GZIP:
        return gzip.compress(data, mtime=0)
    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(data))
    if codec == LZ4:
        return bytes(cramjam.lz4.compress_block(data, store_size=False))
    return bytes(cramjam.zstd.compress(data))


CODECS = Codecs(_inflate, _deflate, xxhash.xxh32_intdigest, 2**20)

optional_bytes = st.none() | st.binary(max_size=40)
timestamps = st.integers(0, 2**62) | st.integers(0, 2000) | st.just(-1)
headers = st.lists(st.builds(RecordHeader, st.text(max_size=5), optional_bytes), max_size=3).map(
    tuple
)


@st.composite
def records(draw: st.DrawFn, with_headers: bool = True) -> list[Record]:
    """Draw records with rising offsets that leave gaps."""
    offset = draw(st.integers(0, 2**40))
    drawn: list[Record] = []
    for gap in draw(st.lists(st.integers(1, 3), min_size=1, max_size=5)):
        offset += gap
        named = draw(headers) if with_headers else ()
        timestamp, key, value = draw(timestamps), draw(optional_bytes), draw(optional_bytes)
        drawn.append(Record(offset, timestamp, key, value, named))
    return drawn


def batch_of(data: bytes | Raised, **options: Any) -> RecordBatch:
    """Return the batch that the bytes are; they must be one."""
    assert isinstance(data, bytes)
    batch = read_batch(data, codecs=CODECS, **options)
    assert isinstance(batch, RecordBatch)
    return batch


def with_checksum(data: bytes) -> bytes:
    """Return the bytes of a batch of magic 2 with the right checksum."""
    return data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]


# --- golden bytes ------------------------------------------------------------------------------


@pytest.mark.checks("BATCH-1", "BATCH-2", "BATCH-3", "BATCH-4", "BATCH-12", "BATCH-13")
@pytest.mark.parametrize("golden", laws.GOLDEN_BATCHES, ids=lambda golden: golden.data[-9:].hex())
def test_golden_bytes_are_produced_and_parsed(golden: laws.Golden) -> None:
    """What Kafka wrote is read as it meant it, and written again byte for byte."""
    assert laws.golden_holds(golden)
    assert laws.size_and_magic_are_in_place(golden.data)
    assert laws.legacy_checksum_is_right(golden.data)
    assert laws.checksum_is_right(golden.data)
    assert laws.last_offset_is_base_and_delta(golden.data)
    assert laws.legacy_header_says_little(golden.data)
    assert laws.only_size_and_checksum_count(golden.data)


@pytest.mark.checks("BATCH-13")
def test_golden_law_holds() -> None:
    """BATCH-13 takes no arguments."""
    assert laws.golden_bytes_are_reproduced()


def test_header_of_a_transactional_batch() -> None:
    """Every field of the golden transactional batch."""
    batch = batch_of(laws.GOLDEN_BATCHES[4].data)
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (100, 103, 104)
    assert (batch.position, batch.size_bytes, batch.magic) == (0, 88, 2)
    assert (batch.crc, batch.attributes) == (0xE8CE2BA7, 16)
    assert (batch.compression, batch.timestamp_type) == ("none", "CreateTime")
    assert (batch.base_timestamp, batch.max_timestamp) == (5000, 5000)
    assert batch.partition_leader_epoch == 4
    assert (batch.producer_id, batch.producer_epoch) == (55, 3)
    assert (batch.base_sequence, batch.last_sequence) == (10, 13)
    assert batch.record_count == 2
    assert (batch.is_transactional, batch.is_control) == (True, False)
    assert batch.has_delete_horizon is False


def test_header_of_a_message() -> None:
    """Magic 0 has no timestamp, no producer and no count."""
    batch = batch_of(laws.GOLDEN_BATCHES[0].data)
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (7, 7, 8)
    assert (batch.timestamp_type, batch.max_timestamp) == ("NoTimestampType", -1)
    assert (batch.base_timestamp, batch.record_count) == (None, None)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert (batch.last_sequence, batch.partition_leader_epoch) == (-1, -1)
    assert (batch.is_transactional, batch.is_control, batch.has_delete_horizon) == (False,) * 3


def test_abort_marker_is_read_back() -> None:
    """The golden marker says ABORT and its coordinator's epoch."""
    found = batch_of(laws.GOLDEN_BATCHES[5].data).records()
    assert not isinstance(found, Raised)
    assert end_transaction_marker(found[0]) == EndTransactionMarker("ABORT", 77)


def test_delete_horizon_leaves_deltas_as_they_are() -> None:
    """With the flag the base timestamp is the horizon; timestamps still count from it."""
    data = laws.GOLDEN_BATCHES[3].data
    flagged = batch_of(with_checksum(data[:22] + b"\x40" + data[23:]))
    assert flagged.has_delete_horizon is True
    assert flagged.is_valid() is True
    assert flagged.records() == laws.GOLDEN_BATCHES[3].records


# --- round trips -------------------------------------------------------------------------------


@pytest.mark.checks("BATCH-6")
@given(records(), st.sampled_from(COMPRESSIONS))
def test_magic_2_round_trip(drawn: list[Record], compression: str) -> None:
    """BATCH-6 for every codec."""
    assert laws.records_survive_writing(drawn, 2, compression, CODECS)


@pytest.mark.checks("BATCH-6")
@given(records(with_headers=False), st.sampled_from((0, 1)), st.sampled_from(COMPRESSIONS[:4]))
def test_legacy_round_trip(drawn: list[Record], magic: int, compression: str) -> None:
    """BATCH-6 for messages and wrappers."""
    assert laws.records_survive_writing(drawn, magic, compression, CODECS)


@pytest.mark.checks("BATCH-1", "BATCH-3", "BATCH-4")
@given(records(), st.sampled_from(COMPRESSIONS), st.integers(0, 5))
def test_written_batches_are_lawful(drawn: list[Record], compression: str, beyond: int) -> None:
    """What is written obeys every law of a file."""
    base, last = drawn[0].offset - 1, drawn[-1].offset + beyond
    data = write_batch(
        drawn, base_offset=base, last_offset=last, compression=compression, codecs=CODECS
    )
    batch = batch_of(data)
    assert isinstance(data, bytes)
    assert (batch.base_offset, batch.last_offset) == (base, last)
    assert batch.compression == compression
    assert batch.record_count == len(drawn)
    assert batch.max_timestamp == max(record.timestamp for record in drawn)
    for law in LAWS.values():
        if law.structure == "record-batch" and law.scope == "file":
            assert law.predicate(data), law.law_id


@pytest.mark.checks("BATCH-1", "BATCH-2", "BATCH-12")
@given(records(with_headers=False), st.sampled_from((0, 1)), st.sampled_from(COMPRESSIONS[:4]))
def test_written_messages_are_lawful(drawn: list[Record], magic: int, compression: str) -> None:
    """Each message of the old formats obeys every law of a file."""
    data = write_batch(
        drawn, magic=magic, base_offset=drawn[0].offset, compression=compression, codecs=CODECS
    )
    assert isinstance(data, bytes)
    position = 0
    while position < len(data):
        message = data[
            position : position + 12 + int.from_bytes(data[position + 8 : position + 12])
        ]
        for law in LAWS.values():
            if law.structure == "record-batch" and law.scope == "file":
                assert law.predicate(message), law.law_id
        position += len(message)


@pytest.mark.checks("BATCH-5")
@given(records(), st.integers(0, INT32_MAX))
def test_sequences_follow_offsets(drawn: list[Record], base_sequence: int) -> None:
    """A record's sequence is the base sequence plus its offset delta, wrapped (BATCH-5)."""
    batch = batch_of(
        write_batch(
            drawn,
            base_offset=drawn[0].offset,
            producer_id=1,
            producer_epoch=0,
            base_sequence=base_sequence,
        )
    )
    found = batch.records()
    assert not isinstance(found, Raised)
    expected = [(base_sequence + one.offset - drawn[0].offset) % 2**31 for one in drawn]
    assert [one.sequence for one in found] == expected
    assert batch.last_sequence == expected[-1]


@pytest.mark.checks("BATCH-8")
def test_log_append_time_of_a_wrapper_covers_its_messages() -> None:
    """Inner timestamps of magic 1 give way to the wrapper's."""
    some = [Record(5, 1, b"a", b"b"), Record(6, 2, None, b"")]
    options: dict[str, Any] = {"base_offset": 5, "compression": "gzip", "codecs": CODECS}
    batch = batch_of(
        write_batch(some, magic=1, timestamp_type="LogAppendTime", log_append_time=99, **options)
    )
    assert batch.records() == (Record(5, 99, b"a", b"b"), Record(6, 99, None, b""))
    assert (batch.timestamp_type, batch.max_timestamp) == ("LogAppendTime", 99)
    created = batch_of(write_batch(some, magic=1, **options))
    assert created.records() == tuple(some)
    assert (created.max_timestamp, created.last_offset, created.base_offset) == (2, 6, 5)


@pytest.mark.checks("BATCH-8")
@given(records(), timestamps)
def test_timestamp_law(drawn: list[Record], appended: int) -> None:
    """BATCH-8."""
    assert laws.timestamps_follow_their_type(drawn, appended)


@pytest.mark.checks("BATCH-9", "BATCH-10")
@given(
    st.sampled_from((0, 1)),
    st.integers(0, 20),
    st.lists(st.integers(0, 12), min_size=1, max_size=4),
)
def test_wrapper_offset_laws(magic: int, wrapper_offset: int, inner: list[int]) -> None:
    """BATCH-9 and BATCH-10."""
    assert laws.inner_offsets_become_absolute(magic, wrapper_offset, sorted(inner), CODECS)
    assert laws.wrapper_offset_is_not_too_small(wrapper_offset, sorted(inner), CODECS)


@pytest.mark.checks("BATCH-15")
@given(st.integers(0, 2**63 - 1), st.integers(0, INT32_MAX), timestamps, st.integers(0, INT32_MAX))
def test_empty_batch_law(base: int, delta: int, timestamp: int, sequence: int) -> None:
    """BATCH-15."""
    base = min(base, 2**63 - 1 - delta)
    assert laws.empty_batches_keep_their_place(base, base + delta, timestamp, sequence)


# --- varints, sequences, control records -------------------------------------------------------


@pytest.mark.checks("BATCH-7")
@given(st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**31), 2**31 - 1))
def test_varint_law(value: int) -> None:
    """BATCH-7."""
    assert laws.varints_are_zigzag(value)


@pytest.mark.checks("BATCH-7")
def test_varint_examples() -> None:
    """Borders, and what is cut or too long."""
    assert encode_varint(-1) == b"\x01"
    assert encode_varint(INT32_MAX) == bytes.fromhex("feffffff0f")
    assert encode_varlong(-(2**63)) == b"\xff" * 9 + b"\x01"
    assert decode_varint(bytes.fromhex("ffffffff0f"), 0) == (-(2**31), 5)
    assert decode_varint(bytes.fromhex("ffffffff7f"), 0) == (-(2**31), 5)
    assert decode_varint(b"\x80", 0) == INVALID_RECORD
    assert decode_varint(b"\xff" * 5, 0) == INVALID_ARGUMENT
    assert decode_varlong(b"\xff" * 10, 0) == INVALID_ARGUMENT


@pytest.mark.checks("BATCH-5")
@given(st.integers(0, INT32_MAX), st.integers(0, INT32_MAX))
def test_sequence_law(sequence: int, count: int) -> None:
    """BATCH-5."""
    assert laws.sequences_wrap_to_zero(sequence, count)


@pytest.mark.checks("BATCH-5")
def test_sequence_examples() -> None:
    """The borders of the wrap."""
    assert increment_sequence(INT32_MAX, 1) == 0
    assert increment_sequence(INT32_MAX, 0) == INT32_MAX
    assert decrement_sequence(0, 1) == INT32_MAX


@pytest.mark.checks("BATCH-19")
@given(st.binary(max_size=8), st.binary(max_size=8))
def test_control_record_law(key: bytes, value: bytes) -> None:
    """BATCH-19 on any bytes."""
    assert laws.control_records_are_checked(key, value)


@pytest.mark.checks("BATCH-19")
@given(st.sampled_from((b"\0\0\0\0", b"\0\0\0\1")), st.binary(max_size=8))
def test_control_record_law_for_markers(key: bytes, value: bytes) -> None:
    """BATCH-19 on keys that end a transaction."""
    assert laws.control_records_are_checked(key, value)


def test_control_record_types() -> None:
    """Known numbers have names; a null key is no control record."""
    assert control_record_type(bytes.fromhex("00000002")) == "LEADER_CHANGE"
    assert control_record_type(bytes.fromhex("00000009")) == "UNKNOWN"
    assert control_record_type(None) == INVALID_RECORD


# --- damage ------------------------------------------------------------------------------------


@pytest.mark.checks("BATCH-14")
@given(st.data())
def test_a_changed_byte_is_noticed(data: st.DataObject) -> None:
    """BATCH-14: a changed byte behind the magic, or of the checksum, makes the batch invalid."""
    golden = data.draw(st.sampled_from(laws.GOLDEN_BATCHES))
    position = data.draw(st.integers(17, len(golden.data) - 1))
    changed = bytearray(golden.data)
    changed[position] ^= data.draw(st.integers(1, 255))
    assert batch_of(bytes(changed)).is_valid() is False
    assert batch_of(bytes(changed)).ensure_valid() == CORRUPT_RECORD
    assert laws.only_size_and_checksum_count(bytes(changed))


@pytest.mark.checks("BATCH-14")
def test_ensure_valid_speaks_as_the_release_does() -> None:
    """Up to 2.3 the error was the invalid-record error."""
    data = laws.GOLDEN_BATCHES[3].data[:-1] + b"\1"
    kinds = {
        profile.name: batch_of(data, profile=profile).ensure_valid()
        for profile in (SEGPROOF, KAFKA_4_3_1, KAFKA_2_4_1, KAFKA_1_1_1)
    }
    assert set(kinds.values()) == {CORRUPT_RECORD, INVALID_RECORD}
    assert kinds["kafka-1.1.1"] == INVALID_RECORD


def test_too_small_a_batch_is_corrupt_and_its_fields_an_index_error() -> None:
    """A batch of magic 2 in memory below 61 bytes."""
    data = laws.GOLDEN_BATCHES[3].data
    small = batch_of(data[:8] + int32_bytes(20) + data[12:32])
    assert small.ensure_valid() == CORRUPT_RECORD
    assert small.max_timestamp == INDEX_ERROR
    assert small.records() == INDEX_ERROR
    assert (small.base_offset, small.last_offset) == (7, 8)


@pytest.mark.checks("BATCH-16")
@given(st.binary(max_size=20), st.integers(1, 1000))
def test_damaged_records_law(key: bytes, excess: int) -> None:
    """BATCH-16."""
    assert laws.damaged_records_are_refused(key, excess)


@pytest.mark.checks("BATCH-17", "BATCH-18")
@given(st.binary(max_size=20), st.integers(0, 2))
def test_count_and_argument_laws(rest: bytes, codec: int) -> None:
    """BATCH-17 and BATCH-18."""
    assert laws.nothing_is_read_of_no_records(rest)
    assert laws.two_errors_are_invalid_arguments(codec, rest)


@pytest.mark.checks("BATCH-18")
def test_overlong_length_inside_compressed_records_is_an_invalid_record() -> None:
    """Seen on 4.3.1: only uncompressed records let the other error out."""
    stored = deflate(GZIP, b"\xff" * 5 + b"\1", 2, CODECS)
    assert isinstance(stored, bytes)
    batch = laws.with_records(1, stored, codec=GZIP)
    assert batch_of(batch.data).records() == INVALID_RECORD


def test_records_before_the_damage_are_handed_out_uncompressed() -> None:
    """A plain iteration gives the records that are there, then the error; compressed: only that."""
    body = laws.GOLDEN_BATCHES[3].data[61:]
    plain = laws.with_records(3, body).records_until_error()
    assert [record.value for record in plain.records] == [b"hello", b"there"]
    assert plain.error == INVALID_RECORD
    stored = deflate(GZIP, body, 2, CODECS)
    assert isinstance(stored, bytes)
    packed = batch_of(laws.with_records(3, stored, codec=GZIP).data).records_until_error()
    assert (packed.records, packed.error) == ((), INVALID_RECORD)


inner_values = st.sampled_from(
    (
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
)


@pytest.mark.checks("BATCH-11")
@given(st.sampled_from((0, 1)), st.sampled_from((1, 2, 3, 4)), inner_values)
def test_wrapper_law(magic: int, codec: int, inner: bytes | None) -> None:
    """BATCH-11."""
    assert laws.bad_wrappers_are_refused(magic, codec, inner, CODECS)


@pytest.mark.parametrize(
    ("codec", "kind"), [(1, ErrorKind.NULL), (2, ErrorKind.KAFKA_ERROR), (3, ErrorKind.KAFKA_ERROR)]
)
def test_wrapper_without_a_value_trips_the_oldest_release(codec: int, kind: ErrorKind) -> None:
    """Its codec says so; later releases refuse the wrapper."""
    wrapper = encode_message(1, 5, 1, codec, None, None)
    assert batch_of(wrapper, profile=KAFKA_0_10_2_2).records() == Raised(kind)
    assert batch_of(wrapper).records() == Raised(ErrorKind.INVALID_RECORD)


def test_wrapper_around_nothing_is_empty_to_the_oldest_release() -> None:
    """In magic 1 its last message is looked for, in magic 0 its first where that is asked for."""
    old, new = (
        batch_of(encode_message(magic, 5, 1, 1, None, gzip.compress(b"")), profile=KAFKA_0_10_2_2)
        for magic in (0, 1)
    )
    assert old.records() == ()
    assert old.base_offset == new.base_offset == Raised(ErrorKind.INDEX_ERROR)
    assert new.records() == Raised(ErrorKind.INDEX_ERROR)


def test_small_wrapper_offset_leaves_offsets_alone_in_the_oldest_release() -> None:
    """Where the base that follows would be negative, offsets stay relative."""
    inner = b"".join(encode_message(1, offset, 1, 0, None, b"v") for offset in (0, 9))
    wrapper = encode_message(1, 5, 1, 1, None, gzip.compress(inner))
    found = batch_of(wrapper, profile=KAFKA_0_10_2_2).records_until_error().records
    assert [record.offset for record in found] == [0, 9]
    assert batch_of(wrapper).records() == Raised(ErrorKind.INVALID_RECORD)


@pytest.mark.checks("BATCH-18")
def test_zstd_is_an_unknown_codec_to_old_releases() -> None:
    """Codec 4 of 2.1 and later."""
    some = [Record(0, 1, None, b"v")]
    data = write_batch(some, base_offset=0, compression="zstd", codecs=CODECS)
    assert batch_of(data).records() == tuple(some)
    assert batch_of(data, profile=KAFKA_1_1_1).records() == INVALID_ARGUMENT
    assert batch_of(data, profile=KAFKA_1_1_1).compression == INVALID_ARGUMENT


def test_key_longer_than_its_message() -> None:
    """Offset and timestamp can be read all the same; the key can't."""
    data = bytearray(laws.GOLDEN_BATCHES[1].data)
    data[26:30] = int32_bytes(1000)
    data[12:16] = zlib.crc32(bytes(data[16:])).to_bytes(4, "big")
    batch = batch_of(bytes(data))
    assert batch.is_valid() is True
    assert (batch.base_offset, batch.max_timestamp) == (7, 1000)
    assert batch.records() == INVALID_ARGUMENT


@given(st.binary(max_size=90), st.integers(-3, 90))
def test_read_batch_never_raises(data: bytes, position: int) -> None:
    """Any bytes are a batch or the corrupt-record error; a batch answers everything."""
    batch = read_batch(data, position, codecs=CODECS)
    if isinstance(batch, Raised):
        assert batch == CORRUPT_RECORD
    else:
        assert batch.data == data[position : position + batch.size_bytes]
        batch.records()


# --- compression -------------------------------------------------------------------------------


@pytest.mark.checks("BATCH-20")
@given(st.binary(max_size=400), st.sampled_from((0, 1, 2)))
def test_lz4_law(data: bytes, magic: int) -> None:
    """BATCH-20."""
    assert laws.lz4_checksum_depends_on_magic(data, magic, CODECS)


@pytest.mark.checks("BATCH-20")
def test_lz4_checksum_bytes() -> None:
    """The header that Kafka writes has checksum 82; magic 0 writes 1a, and reads any."""
    standard, historical = (deflate(LZ4, b"hello", magic, CODECS) for magic in (2, 0))
    assert isinstance(standard, bytes)
    assert isinstance(historical, bytes)
    assert standard[:7].hex() == "04224d18604082"
    assert historical[:7].hex() == "04224d1860401a"
    assert inflate(LZ4, standard, 0, CODECS) == b"hello"
    assert inflate(LZ4, historical, 1, CODECS) == KAFKA_ERROR


def test_large_data_becomes_several_blocks() -> None:
    """Blocks of 64 KiB (lz4) and 32 KiB (snappy); a block that does not shrink is stored."""
    data = bytes(range(256)) * 600 + bytes(zlib.crc32(bytes([n % 256])) % 256 for n in range(99))
    for codec in range(1, 5):
        stored = deflate(codec, data, 2, CODECS)
        assert isinstance(stored, bytes)
        assert inflate(codec, stored, 2, CODECS) == data


@given(st.sampled_from((1, 2, 3, 4)), st.binary(max_size=30))
def test_damaged_compression_is_the_kafka_error(codec: int, cut: bytes) -> None:
    """A stream that is cut, or is none, is never a crash."""
    stored = deflate(codec, b"some bytes" * 9, 2, CODECS)
    assert isinstance(stored, bytes)
    assert inflate(codec, stored[:-5], 2, CODECS) == KAFKA_ERROR
    assert isinstance(inflate(codec, cut, 2, CODECS), bytes | Raised)


def test_a_frame_of_linked_blocks_is_refused() -> None:
    """Kafka does not read lz4 frames whose blocks refer to earlier ones."""
    linked = bytes(cramjam.lz4.compress(b"some bytes" * 9))
    assert linked[4] & 32 == 0
    assert inflate(LZ4, linked, 2, CODECS) == KAFKA_ERROR


def test_beyond_the_limit_nothing_is_answered() -> None:
    """A small stream that grows beyond the limit; records that are larger without a codec."""
    for codec in range(1, 5):
        stored = deflate(codec, bytes(2**20 + 1), 2, CODECS)
        assert isinstance(stored, bytes)
        with pytest.raises(BeyondLimitError):
            inflate(codec, stored, 2, CODECS)
    batch = batch_of(write_batch([Record(0, 1, None, bytes(2**20))], base_offset=0))
    with pytest.raises(BeyondLimitError):
        batch.records()


def test_without_codecs_compressed_records_are_the_kafka_error() -> None:
    """Nothing else needs them."""
    data = write_batch([Record(0, 1, None, b"v")], base_offset=0, compression="lz4", codecs=CODECS)
    batch = read_batch(data) if isinstance(data, bytes) else data
    assert isinstance(batch, RecordBatch)
    assert batch.is_valid() is True
    assert batch.records() == KAFKA_ERROR
    refused = write_batch(
        [Record(0, 1, None, b"v")], base_offset=0, compression="lz4", codecs=NO_CODECS
    )
    assert refused == KAFKA_ERROR


def test_raw_snappy_is_read() -> None:
    """A block without the header of a stream, as some clients wrote it."""
    assert inflate(SNAPPY, _deflate(SNAPPY, b"hello"), 1, CODECS) == b"hello"
