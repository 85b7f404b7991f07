# SPDX-License-Identifier: Apache-2.0
"""What lies around compressed records: framing, damage, limits."""

import gzip
import zlib

import cramjam
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.kafka.format.batch_writing import write_batch
from segproof_model.kafka.format.compression import (
    GZIP,
    LZ4,
    SNAPPY,
    BeyondLimitError,
    Codecs,
    deflate,
    inflate,
)
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.laws.kafka.format.record_batch import lz4_checksum_depends_on_magic

KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)


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


@pytest.mark.checks("BATCH-20")
@given(st.binary(max_size=400), st.sampled_from((0, 1, 2)))
def test_lz4_law(data: bytes, magic: int) -> None:
    """BATCH-20."""
    frame, other = (deflate(LZ4, data, one, CODECS) for one in (magic, 0 if magic else 2))
    assert data == inflate(LZ4, frame, magic, CODECS)
    assert lz4_checksum_depends_on_magic(frame, magic, CODECS)
    assert not lz4_checksum_depends_on_magic(other, magic, CODECS)


@pytest.mark.checks("BATCH-20")
def test_lz4_checksum_bytes() -> None:
    """The header that Kafka writes has checksum 82; magic 0 writes 1a, and reads any."""
    standard, historical = (deflate(LZ4, b"hello", magic, CODECS) for magic in (2, 0))
    assert ("04224d18604082", "04224d1860401a") == (standard[:7].hex(), historical[:7].hex())
    assert b"hello" == inflate(LZ4, standard, 0, CODECS)
    assert KAFKA_ERROR == outcome_of(inflate, LZ4, historical, 1, CODECS)


@pytest.mark.parametrize("codec", range(1, 5))
def test_large_data_becomes_several_blocks(codec: int) -> None:
    """Blocks of 64 KiB (lz4) and 32 KiB (snappy); a block that does not shrink is stored."""
    data = bytes(range(256)) * 600 + bytes(zlib.crc32(bytes([n % 256])) % 256 for n in range(99))
    assert data == inflate(codec, deflate(codec, data, 2, CODECS), 2, CODECS)


@given(st.sampled_from((1, 2, 3, 4)), st.binary(max_size=30))
def test_damaged_compression_is_the_kafka_error(codec: int, cut: bytes) -> None:
    """A stream that is cut, or is none, is never a crash."""
    stored = deflate(codec, b"some bytes" * 9, 2, CODECS)
    assert KAFKA_ERROR == outcome_of(inflate, codec, stored[:-5], 2, CODECS)
    outcome_of(inflate, codec, cut, 2, CODECS)


def test_a_frame_of_linked_blocks_is_refused() -> None:
    """Kafka does not read lz4 frames whose blocks refer to earlier ones."""
    linked = bytes(cramjam.lz4.compress(b"some bytes" * 9))
    assert 0 == linked[4] & 32
    assert KAFKA_ERROR == outcome_of(inflate, LZ4, linked, 2, CODECS)


@pytest.mark.parametrize("codec", range(1, 5))
def test_beyond_the_limit_nothing_is_answered(codec: int) -> None:
    """A small stream that grows beyond the limit."""
    with pytest.raises(BeyondLimitError):
        inflate(codec, deflate(codec, bytes(2**20 + 1), 2, CODECS), 2, CODECS)


def test_limit_holds_without_a_codec() -> None:
    """Records that are larger are not read either."""
    data = write_batch([Record(0, 1, None, bytes(2**20))], base_offset=0)
    with pytest.raises(BeyondLimitError):
        list(MemoryRecords(data, codecs=CODECS).first_batch().records())


def test_raw_snappy_is_read() -> None:
    """A block without the header of a stream, as some clients wrote it."""
    assert b"hello" == inflate(SNAPPY, _deflate(SNAPPY, b"hello"), 1, CODECS)
