# SPDX-License-Identifier: Apache-2.0
"""Codecs: round trips, the two framings that are Kafka's own, and bounds."""

import contextlib
import gzip
import os
import subprocess
import sys

import cramjam
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from segproof.checksums import crc32, crc32c
from segproof.compression import COMPRESSION_NAMES, compress, decompress
from segproof.errors import InvalidArgumentError, SegproofError

MIB = 1 << 20
REAL_CODECS = COMPRESSION_NAMES[1:]


@pytest.mark.parametrize("compression", COMPRESSION_NAMES)
@pytest.mark.parametrize("magic", [0, 1, 2])
@given(data=st.binary(max_size=200), times=st.sampled_from([1, 1000]))
def test_round_trip(compression: str, magic: int, data: bytes, times: int) -> None:
    """What is compressed comes back, across the blocks of snappy and lz4."""
    compressed = compress(compression, data * times, magic=magic)
    assert bytes(decompress(compression, compressed, magic=magic)) == data * times


def test_data_that_does_not_shrink() -> None:
    """Random bytes are stored, and come back."""
    data = os.urandom(200_000)
    for compression in COMPRESSION_NAMES:
        assert bytes(decompress(compression, compress(compression, data))) == data


def test_checksums_of_the_standard_example() -> None:
    """Both checksums of "123456789", whole and in pieces."""
    assert crc32(b"123456789") == crc32(b"6789", crc32(b"12345")) == 0xCBF43926
    assert crc32c(b"123456789") == crc32c(b"6789", crc32c(b"12345")) == 0xE3069283
    assert crc32c(memoryview(bytearray(b"123456789"))) == 0xE3069283


def test_lz4_header_checksum() -> None:
    """BATCH-20: magic 0 carries the historical header checksum, which is not looked at there."""
    old, new = compress("lz4", b"data", magic=0), compress("lz4", b"data", magic=1)
    assert (new[4:7].hex(), old[4:6], old[7:]) == ("604082", new[4:6], new[7:])
    assert old[6] != new[6]
    assert bytes(decompress("lz4", old, magic=0)) == bytes(decompress("lz4", new, magic=0))
    with pytest.raises(SegproofError):
        decompress("lz4", old, magic=1)


def test_lz4_blocks_are_independent() -> None:
    """Kafka refuses frames with linked blocks, which cramjam would write; so do we."""
    assert compress("lz4", b"x" * 200_000)[4] & 0x20
    with pytest.raises(SegproofError, match="independent"):
        decompress("lz4", bytes(cramjam.lz4.compress(b"linked" * 50_000)))


def test_lz4_frames_of_others() -> None:
    """Optional parts of a frame are read: content size, block checksums, larger blocks."""
    data = b"content" * 3000
    block = bytes(cramjam.lz4.compress_block(data, store_size=False))
    descriptor = b"\x7c\x50" + len(data).to_bytes(8, "little")
    frame = (
        b"\x04\x22\x4d\x18"
        + descriptor
        + bytes(((xxhash.xxh32_intdigest(descriptor) >> 8) & 255,))
        + len(block).to_bytes(4, "little")
        + block
        + xxhash.xxh32_intdigest(block).to_bytes(4, "little")
        + bytes(4)
    )
    assert bytes(decompress("lz4", frame + b"behind the end mark")) == data
    with pytest.raises(SegproofError, match="block has a wrong checksum"):
        decompress("lz4", frame[:-8] + b"!" + frame[-7:])


def test_lz4_ends_with_a_stored_block_of_nothing() -> None:
    """What counts of the length that ends a frame is the size, not how its bytes are stored."""
    frame = bytes(compress("lz4", b"data"))
    assert bytes(decompress("lz4", frame[:-4] + b"\0\0\0\x80")) == b"data"


def test_snappy_without_the_stream_header() -> None:
    """One raw block is read too, as xerial's reader does."""
    raw = bytes(cramjam.snappy.compress_raw(b"hello" * 99))
    assert bytes(decompress("snappy", raw)) == b"hello" * 99


def test_snappy_streams_that_were_appended() -> None:
    """A header in the middle begins another stream."""
    both = compress("snappy", b"one") + compress("snappy", b"two")
    assert bytes(decompress("snappy", both)) == b"onetwo"


@pytest.mark.parametrize("size", [1, 100, MIB - 1, MIB, MIB + 1, 2 * MIB, 5_000_000])
@pytest.mark.parametrize("compression", REAL_CODECS)
def test_the_limit_holds(compression: str, size: int) -> None:
    """Exactly the limit is allowed, a byte more is refused, and the message says the limit.

    Below, at and above what gzip is inflated by, and far above that.
    """
    compressed = compress(compression, bytes(size))
    assert len(decompress(compression, compressed, limit=size)) == size
    with pytest.raises(SegproofError, match=f"{size - 1} bytes"):
        decompress(compression, compressed, limit=size - 1)


@pytest.mark.parametrize("compression", REAL_CODECS)
@given(cut=st.integers(1, 60), junk=st.binary(max_size=40))
def test_damaged_data_is_an_error_of_ours(compression: str, cut: int, junk: bytes) -> None:
    """Cut or foreign data raises SegproofError or gives bytes; nothing else gets out."""
    compressed = compress(compression, bytes(range(256)) * 4)
    with pytest.raises(SegproofError) as caught:
        decompress(compression, compressed[:-cut])
    assert caught.value.kind == "kafka-error"
    for data in (junk, compressed[:20] + junk):
        with contextlib.suppress(SegproofError):
            decompress(compression, data)


_CRAFTED = """
import gzip, sys, types, zlib
from segproof import compression
from segproof.compression import compress, decompress
handed = 0
class Counting:  # the bytes that zlib is given; what a member leaves over it copies
    def __init__(self, stream):
        self.stream = stream
    def __getattr__(self, name):
        return getattr(self.stream, name)
    def decompress(self, data, *limits):
        global handed
        handed += len(data)
        return self.stream.decompress(data, *limits)
compression.zlib = types.SimpleNamespace(**vars(zlib))
compression.zlib.decompressobj = lambda *args, **named: Counting(zlib.decompressobj(*args, **named))
def peak():  # ru_maxrss would begin with the peak of the process that started this one
    return int(next(line for line in open("/proc/self/status") if "VmHWM" in line).split()[1])
stored = (0x80000001).to_bytes(4, "little") + b"a"
data = {
    "gzip": lambda: gzip.compress(b"") * 150_000,
    "lz4": lambda: compress("lz4", b"")[:7] + stored * 1_000_000 + bytes(4),
    "snappy": lambda: compress("snappy", b"") + bytes((0, 0, 0, 1, 0)) * 1_000_000,
}[sys.argv[1]]()
before = peak()
size = len(decompress(sys.argv[1], data))
print(size, (peak() - before) >> 10, handed // len(data))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("compression", "size"), [("gzip", 0), ("lz4", 1_000_000), ("snappy", 0)])
def test_a_million_tiny_blocks(compression: str, size: int) -> None:
    """Tiny blocks and members cost neither memory by the block nor the square of their number."""
    done = subprocess.run(
        [sys.executable, "-c", _CRAFTED, compression], capture_output=True, text=True, check=True
    )
    found, mebibytes, times_read = done.stdout.split()
    assert size == int(found)
    assert int(mebibytes) < 40
    assert int(times_read) < 100


_LIMITED = """
import gzip, sys
from segproof.compression import decompress
from segproof.errors import SegproofError
def peak():
    return int(next(line for line in open("/proc/self/status") if "VmHWM" in line).split()[1])
codec, size = sys.argv[1], int(sys.argv[2])
data = b"junk" * 9 if not size else gzip.compress(bytes(1 << 20)) * size
before = peak()
try:
    found = len(decompress(codec, data))
except SegproofError:
    found = 0
print(found >> 20, (peak() - before) >> 10)
"""


@pytest.mark.parametrize(("compression", "size", "most"), [("gzip", 60, 80), ("zstd", 0, 16)])
def test_what_inflates_is_there_once(compression: str, size: int, most: int) -> None:
    """Members are joined in place; junk does not touch the buffers that wait for its bytes."""
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, compression, str(size)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found, mebibytes = map(int, done.stdout.split())
    assert size == found
    assert mebibytes < most


def test_many_gzip_members() -> None:
    """Members of all sizes follow one another; cut, the last one is missed."""
    members = [os.urandom(size) for size in (0, 1, 70_000, 0, 300, 200_000, 2)]
    data = b"".join(gzip.compress(member) for member in members)
    assert b"".join(members) == bytes(decompress("gzip", data))
    with pytest.raises(SegproofError, match="cut"):
        decompress("gzip", data[:-1])


def test_what_follows_a_gzip_member() -> None:
    """What begins as no member, or is no longer than a frame, is no damage."""
    member = gzip.compress(b"records")
    for rest in (bytes(5), bytes(60), member[:18], b"\x1f\x8b\x07" + bytes(40), b"junk" * 9):
        assert bytes(decompress("gzip", member + rest)) == b"records"
    for rest in (member[:19], b"\x1f\x8b\x08\0" + b"\xff" * 40):
        with pytest.raises(SegproofError, match="cannot be decompressed"):
            decompress("gzip", member + rest)


def test_lz4_grows_to_the_limit() -> None:
    """A frame that says little about its size inflates to exactly the limit, no further."""
    data = bytes(range(256)) * 40_000
    compressed = compress("lz4", data)
    assert data == bytes(decompress("lz4", compressed, limit=len(data)))
    with pytest.raises(SegproofError, match="grows beyond"):
        decompress("lz4", compressed, limit=len(data) - 1)


def test_unknown_codec() -> None:
    """A name that is no codec is the caller's mistake."""
    for function in (compress, decompress):
        with pytest.raises(InvalidArgumentError, match="brotli"):
            function("brotli", b"")
