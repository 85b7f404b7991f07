# SPDX-License-Identifier: Apache-2.0
"""What lies around compressed records: checksums, codec numbers, and the framing of blocks.

The codecs themselves are parameters. The model adds what is Kafka's own: the stream of snappy
blocks, and the checksum of lz4 frames, which magic 0 gets wrong.

Upstream: Kafka 4.4.0, CompressionType, Lz4BlockInputStream, Lz4BlockOutputStream; xerial
    SnappyInputStream; Java's CRC32 and CRC32C.
Layout: snappy stream: 82 "SNAPPY" 00, int32 version 1, int32 oldest reader 1, then for each block
    int32 length and that many bytes. lz4 frame, little-endian: magic, flags, block size, length of
    the content (8 bytes, flag 8), checksum of the header; for each block uint32 length (high bit:
    not compressed), its bytes, their checksum (flag 16); a zero length; checksum (flag 4).
Laws: BATCH-2, BATCH-3, BATCH-20.
Not covered: snappy streams that were concatenated.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from segproof_model.language.integers import INT32_MAX, int32_at, int32_bytes
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
"""The name of each codec number."""

SNAPPY_HEADER = b"\x82SNAPPY\0" + int32_bytes(1) + int32_bytes(1)
SNAPPY_BLOCK_BYTES = 32768
LZ4_MAGIC = bytes.fromhex("04224d18")
LZ4_INDEPENDENT, LZ4_BLOCK_CHECKSUM, LZ4_CONTENT_SIZE = 32, 16, 8
LZ4_FLAGS = 64 + LZ4_INDEPENDENT
"""Version 1, blocks that do not refer to earlier ones, nothing optional."""
LZ4_BLOCK_SIZES = {64: 2**16, 80: 2**18, 96: 2**20, 112: 2**22}
LZ4_STORED = 2**31
"""Added to the length of a block that is not compressed."""


GZIP_HEAD = b"\x1f\x8b\x08"
GZIP_HEAD_BYTES = 10


class CutShortError(ValueError):
    """Damage met after some bytes were inflated; `inflated` are those."""

    def __init__(self, text: str, inflated: bytes) -> None:
        super().__init__(text)
        self.inflated = inflated


class BeyondLimitError(Exception):
    """Records have more bytes than the limit. No release has one, so no answer is given."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"more than {limit_bytes} bytes")


@dataclass(frozen=True, slots=True)
class Codecs:
    """The codecs as functions. One call is a whole gzip or zstd stream, or one raw block of snappy
    or lz4.

    A caller must raise ValueError for damage: of a gzip stream that is cut, or has a wrong
    checksum, as `CutShortError`; and BeyondLimitError beyond the limit.
    """

    inflate: Callable[[int, bytes, int], bytes]
    """(codec number, compressed bytes, most bytes to return) -> bytes. An lz4 block that grows
    beyond them is damaged: it states them."""
    deflate: Callable[[int, bytes], bytes]
    """(codec number, bytes) -> compressed bytes."""
    xxhash32: Callable[[bytes], int]
    """The 32-bit xxHash with seed 0."""
    limit_bytes: int = INT32_MAX
    """Records of one batch that have more bytes, inflated or never compressed, are not read: every
    question about them raises BeyondLimitError."""


def _no_codec(*_: object) -> NoReturn:
    raise ValueError("no codecs were given")


NO_CODECS = Codecs(_no_codec, _no_codec, _no_codec)
"""Refuses everything that is compressed."""


def crc32(data: bytes) -> int:
    """Return the CRC-32 (IEEE) of `data`, the checksum of magic 0 and 1.

    >>> hex(crc32(b"123456789"))
    '0xcbf43926'
    """
    return zlib.crc32(data)


def _crc32c_of_byte(number: int) -> int:
    for _ in range(8):
        number = number // 2 ^ (0x82F63B78 if number % 2 else 0)
    return number


CRC32C_TABLE = tuple(_crc32c_of_byte(number) for number in range(256))
CRC32C_PIECE_BYTES = 4096


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of `data`, the checksum of magic 2.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    remainder = 0xFFFFFFFF
    for start in range(0, len(data), CRC32C_PIECE_BYTES):
        remainder = _crc32c_remainder(remainder, data[start : start + CRC32C_PIECE_BYTES])
    return remainder ^ 0xFFFFFFFF


# Answers for pieces of 16 MB together are kept.
@lru_cache(maxsize=4096)
def _crc32c_remainder(remainder: int, piece: bytes) -> int:
    for byte in piece:
        remainder = CRC32C_TABLE[(remainder ^ byte) & 0xFF] ^ remainder >> 8
    return remainder


def inflate(codec: int, data: bytes, magic: int, codecs: Codecs) -> bytes:
    """Return the bytes that `data` stands for; damaged data is the Kafka error."""
    inflated, is_damaged = inflate_until_damage(codec, data, magic, codecs)
    return refuse(ErrorKind.KAFKA_ERROR) if is_damaged else inflated


def inflate_until_damage(codec: int, data: bytes, magic: int, codecs: Codecs) -> tuple[bytes, bool]:
    """Return what a reader hands out before it meets damage, and whether it meets any.

    gzip: what was inflated before a cut or a wrong checksum. lz4: the whole blocks before. snappy:
    nothing, since its reader goes on to the next block before it hands out one. zstd: nothing.
    """
    try:
        if codec == SNAPPY:
            return _inflate_snappy(data, codecs), False
        if codec == LZ4:
            return _inflate_lz4(data, magic, codecs), False
        return codecs.inflate(codec, data, codecs.limit_bytes), False
    except CutShortError as error:
        return error.inflated, True
    except ValueError:
        return b"", True


def opens(codec: int, data: bytes, magic: int, codecs: Codecs) -> bool:
    """Return whether a reader of `data` can be made, before anything is inflated.

    It asks for the head alone, but of snappy without blocks for all of it. Of lz4 the frame's head
    is checked first, and CutShortError means that it was good.
    """
    if codec == GZIP:
        return data.startswith(GZIP_HEAD) and len(data) >= GZIP_HEAD_BYTES
    if codec == ZSTD or (codec == SNAPPY and data.startswith(SNAPPY_HEADER[:8])):
        return True
    try:
        _inflate_lz4(data, magic, codecs) if codec == LZ4 else _inflate_snappy(data, codecs)
    except CutShortError:
        return True
    except ValueError:
        return False
    return True


def deflate(codec: int, data: bytes, magic: int, codecs: Codecs) -> bytes:
    """Return `data` compressed, in the framing of this magic; without codecs: the Kafka error."""
    try:
        if codec == SNAPPY:
            return _deflate_snappy(data, codecs)
        if codec == LZ4:
            return _deflate_lz4(data, magic, codecs)
        return codecs.deflate(codec, data)
    except ValueError:
        refuse(ErrorKind.KAFKA_ERROR)


def _inflate_snappy(data: bytes, codecs: Codecs) -> bytes:
    if not data.startswith(SNAPPY_HEADER[:8]):
        return codecs.inflate(SNAPPY, data, codecs.limit_bytes)
    inflated = bytearray()
    position = len(SNAPPY_HEADER)
    while position + 4 <= len(data):
        length = int32_at(data, position)
        block = data[position + 4 : position + 4 + max(length, 0)]
        if length < 0 or len(block) < length:
            raise ValueError("a snappy block is cut")
        inflated += codecs.inflate(SNAPPY, block, codecs.limit_bytes)
        if len(inflated) > codecs.limit_bytes:
            raise BeyondLimitError(codecs.limit_bytes)
        position += 4 + length
    return bytes(inflated)


def _deflate_snappy(data: bytes, codecs: Codecs) -> bytes:
    starts = range(0, len(data), SNAPPY_BLOCK_BYTES)
    blocks = [codecs.deflate(SNAPPY, data[at : at + SNAPPY_BLOCK_BYTES]) for at in starts]
    return SNAPPY_HEADER + b"".join(int32_bytes(len(block)) + block for block in blocks)


def lz4_header_checksum(header: bytes, magic: int, codecs: Codecs) -> int:
    """Return the checksum byte of a frame's header, which begins with the frame's magic number.

    The standard leaves that number out; magic 0 takes it in (BATCH-20).
    """
    return codecs.xxhash32(header if magic == 0 else header[len(LZ4_MAGIC) :]) // 256 % 256


def _inflate_lz4(frame: bytes, magic: int, codecs: Codecs) -> bytes:
    """Inflate a frame as Kafka does: the content's checksum, and all behind it, is not looked at.

    A header's checksum counts from magic 1 on: readers of magic 0 take any.
    """
    flags, block_size = frame[4:5], LZ4_BLOCK_SIZES.get(int.from_bytes(frame[5:6], "big"))
    known = flags and flags[0] & 0b11100011 == LZ4_FLAGS
    if not frame.startswith(LZ4_MAGIC) or not known or block_size is None:
        raise ValueError("not an lz4 frame of independent blocks")
    header = frame[: 14 if flags[0] & LZ4_CONTENT_SIZE else 6]
    position = len(header) + 1
    checksum = frame[len(header) : position]
    if magic > 0 and checksum != bytes([lz4_header_checksum(header, magic, codecs)]):
        raise ValueError("an lz4 frame's header has a wrong checksum")
    inflated = bytearray()
    try:
        for block in _lz4_blocks(frame, position, flags[0], block_size, codecs):
            inflated += block
    except ValueError as error:
        raise CutShortError(str(error), bytes(inflated)) from error
    return bytes(inflated)


def _lz4_blocks(
    frame: bytes, position: int, flags: int, block_size: int, codecs: Codecs
) -> Iterator[bytes]:
    """Yield what the blocks of a frame stand for."""
    total = 0
    while size := (length := _uint32_le(frame, position)) % LZ4_STORED:
        block = frame[position + 4 : position + 4 + size]
        position += 4 + size
        if size > block_size or len(block) < size:
            raise ValueError("an lz4 block is cut or too long")
        if flags & LZ4_BLOCK_CHECKSUM:
            if codecs.xxhash32(block) != _uint32_le(frame, position):
                raise ValueError("an lz4 block has a wrong checksum")
            position += 4
        inflated = block if length >= LZ4_STORED else codecs.inflate(LZ4, block, block_size)
        total += len(inflated)
        if total > codecs.limit_bytes:
            raise BeyondLimitError(codecs.limit_bytes)
        yield inflated


def _deflate_lz4(data: bytes, magic: int, codecs: Codecs) -> bytes:
    header = LZ4_MAGIC + bytes([LZ4_FLAGS, 64])
    frame = header + bytes([lz4_header_checksum(header, magic, codecs)])
    for at in range(0, len(data), LZ4_BLOCK_SIZES[64]):
        block = data[at : at + LZ4_BLOCK_SIZES[64]]
        deflated = codecs.deflate(LZ4, block)
        stored = len(deflated) >= len(block)
        length = len(block) + LZ4_STORED if stored else len(deflated)
        frame += length.to_bytes(4, "little") + (block if stored else deflated)
    return frame + bytes(4)


def _uint32_le(data: bytes, position: int) -> int:
    if position + 4 > len(data):
        raise ValueError("an lz4 frame is cut")
    return int.from_bytes(data[position : position + 4], "little")
