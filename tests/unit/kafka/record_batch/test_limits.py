# SPDX-License-Identifier: Apache-2.0
"""Each declared limit of codecs, batches and files, one below it, at it and one above it."""

import gzip
import random
import struct
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest
import xxhash

from segproof import compression
from segproof.compression import (
    INFLATED_PER_BYTE,
    SMALL_BATCH_LIMIT_BYTES,
    UNCOMPRESSED_LIMIT_BYTES,
    Inflation,
    compress,
    decompress,
)
from segproof.errors import SegproofError, TooLargeError
from segproof.kafka import Record, RecordFile, checkpoint_file, write_batch
from segproof.kafka.checkpoint_file import OffsetCheckpointFile
from segproof.rocketmq import commit_log
from segproof.rocketmq.commit_log import CommitLog
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.files.memory_stores import message_of, write_log

CODECS = ("gzip", "snappy", "lz4", "zstd")
BLOCK = {"snappy": 32 << 10, "lz4": 64 << 10}
"""Bytes that a writer puts into a block at most."""
LZ4_SIZES = {0x40: 64 << 10, 0x50: 256 << 10, 0x60: 1 << 20, 0x70: 4 << 20}


def noise(size: int) -> bytes:
    """Return bytes that no codec makes smaller."""
    return random.Random(size).randbytes(size)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("around", [1, 255, 4096, 32 << 10, 64 << 10, 128 << 10])
@pytest.mark.parametrize("make", [noise, bytes], ids=["noise", "zeros"])
def test_what_data_may_inflate_to(codec: str, around: int, make: Callable[[int], bytes]) -> None:
    """Data of the size of a limit, and one byte more or less; sizes next to those of blocks."""
    for size in (around - 1, around, around + 1):
        data = make(size)
        packed = compress(codec, data)
        assert data == bytes(decompress(codec, packed, limit=size))
        assert data == bytes(decompress(codec, packed, limit=size + 1))
        if size:
            with pytest.raises(TooLargeError, match=f"grows beyond {size - 1} bytes"):
                decompress(codec, packed, limit=size - 1)


@pytest.mark.parametrize("codec", BLOCK)
def test_a_written_block_has_its_size(codec: str) -> None:
    """A full block is one, and a byte more begins the next one."""
    size = BLOCK[codec]
    for data, expected in ((noise(size - 1), 1), (noise(size), 1), (noise(size + 1), 2)):
        packed = compress(codec, data)
        blocks, position = 0, 16 if codec == "snappy" else 7
        while position + 4 <= len(packed):
            order = ">I" if codec == "snappy" else "<I"
            (length,) = struct.unpack_from(order, packed, position)
            blocks += length > 0
            position += 4 + length % (1 << 31)
        assert expected == blocks


def frame(block_size: int, block: bytes, *, is_stored: bool) -> bytes:
    """Return an lz4 frame of one block."""
    descriptor = bytes((0x60, block_size))
    checksum = bytes(((xxhash.xxh32_intdigest(descriptor) >> 8) & 255,))
    length = struct.pack("<I", len(block) | (1 << 31 if is_stored else 0))
    return b"\x04\x22\x4d\x18" + descriptor + checksum + length + block + bytes(4)


@pytest.mark.parametrize("block_size", LZ4_SIZES)
def test_an_lz4_block_is_at_most_what_its_frame_says(block_size: int) -> None:
    """Stored, it has these bytes; compressed, it inflates to them."""
    most = LZ4_SIZES[block_size]
    for size in (most - 1, most, most + 1):
        data = bytes(size)
        packed = bytes(cramjam.lz4.compress_block(data, store_size=False))
        for block, is_stored in ((data, True), (packed, False)):
            framed = frame(block_size, block, is_stored=is_stored)
            if size <= most:
                assert data == bytes(decompress("lz4", framed))
            else:
                with pytest.raises(SegproofError, match="lz4"):
                    decompress("lz4", framed)


def test_the_smallest_member_of_a_gzip_stream() -> None:
    """Java reads what follows a member as one more from 19 bytes on; 18 are ignored."""
    whole = gzip.compress(b"data")
    for size in (17, 18):
        assert b"data" == bytes(decompress("gzip", whole + whole[:size]))
    with pytest.raises(SegproofError, match="gzip"):
        decompress("gzip", whole + whole[:19])


def test_what_the_batches_of_a_file_may_inflate_to() -> None:
    """1 MiB, or 128 times the size, up to 64 MiB; 64 MiB together beyond 128 times the sizes."""
    small, large = (
        limit // INFLATED_PER_BYTE for limit in (SMALL_BATCH_LIMIT_BYTES, UNCOMPRESSED_LIMIT_BYTES)
    )
    fresh = Inflation()
    for stored, expected in (
        (0, SMALL_BATCH_LIMIT_BYTES),
        (small - 1, SMALL_BATCH_LIMIT_BYTES),
        (small, SMALL_BATCH_LIMIT_BYTES),
        (small + 1, SMALL_BATCH_LIMIT_BYTES + INFLATED_PER_BYTE),
        (large - 1, UNCOMPRESSED_LIMIT_BYTES - INFLATED_PER_BYTE),
        (large, UNCOMPRESSED_LIMIT_BYTES),
        (large + 1, UNCOMPRESSED_LIMIT_BYTES),
    ):
        assert expected == fresh.limit_of(stored)
    used = Inflation()
    used.count(1000, 1000 * INFLATED_PER_BYTE)  # as much as is allowed anyway
    assert SMALL_BATCH_LIMIT_BYTES == used.limit_of(1)
    used.count(1, INFLATED_PER_BYTE + UNCOMPRESSED_LIMIT_BYTES - 1000)
    assert 1000 == used.limit_of(1)
    used.count(1, INFLATED_PER_BYTE + 1000 - INFLATED_PER_BYTE)
    assert INFLATED_PER_BYTE == used.limit_of(1)
    used.count(1, INFLATED_PER_BYTE + INFLATED_PER_BYTE)
    assert INFLATED_PER_BYTE == used.limit_of(1)
    assert 2 * INFLATED_PER_BYTE == used.limit_of(2)
    assert 7 == Inflation(7).limit_of(1 << 30)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
def test_the_limit_of_a_batch(magic: int, codec: str, tmp_path: Path) -> None:
    """Its own size, and what it inflates to; the larger of the two decides."""
    records = [Record(0, -1 if magic == 0 else 5, None, noise(400))]
    kind = "NoTimestampType" if magic == 0 else "CreateTime"
    data = write_batch(records, magic=magic, base_offset=0, compression=codec, timestamp_type=kind)
    (tmp_path / "a.log").write_bytes(data)
    with RecordFile.open(tmp_path / "a.log") as log:
        (batch,) = log.batches()
        most = max(len(data), batch.inflated_bytes if list(batch.records()) else 0)
        for limit in (most, most + 1):
            assert 1 == len(list(batch.records(limit=limit)))
            assert 1 == len(batch.record_columns(limit=limit))
        for read in (batch.records, batch.record_blocks, batch.times):
            with pytest.raises(TooLargeError):
                list(read(limit=most - 1))
        with pytest.raises(TooLargeError):
            batch.record_columns(limit=most - 1)


def test_the_limit_of_a_text_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint of exactly so many bytes is read."""
    files = MemoryFiles()
    checkpoint = OffsetCheckpointFile("/replication-offset-checkpoint", create=True, files=files)
    checkpoint.write({("t", 0): 1})
    size = len(files.images("/")["replication-offset-checkpoint"])
    for limit, is_read in ((size - 1, False), (size, True), (size + 1, True)):
        monkeypatch.setattr(checkpoint_file, "READ_BYTES_MAX", limit)
        if is_read:
            assert {("t", 0): 1} == checkpoint.read()
        else:
            with pytest.raises(TooLargeError):
                checkpoint.read()


def test_the_limit_of_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of RocketMQ's of exactly so many bytes is read."""
    files = MemoryFiles()
    files.make_directory("/s/commitlog")
    write_log(files, "/s", [message_of()], 1000)
    log = CommitLog.open("/s", files=files)
    size = log.check(0).size
    for limit, is_read in ((size - 1, False), (size, True), (size + 1, True)):
        monkeypatch.setattr(commit_log, "RECORD_LIMIT_BYTES", limit)
        if is_read:
            assert log.check(0).success
        else:
            with pytest.raises(TooLargeError):
                log.check(0)


def test_the_declared_numbers() -> None:
    """The pages and the options tell these; a changed one is meant."""
    assert (64 << 20, 128, 1 << 20) == (
        UNCOMPRESSED_LIMIT_BYTES, INFLATED_PER_BYTE, SMALL_BATCH_LIMIT_BYTES,
    )  # fmt: skip
    assert LZ4_SIZES == compression._LZ4_BLOCK_SIZES
    assert 64 << 20 == commit_log.RECORD_LIMIT_BYTES
