# SPDX-License-Identifier: Apache-2.0
"""The codecs that the model is given, and encoders whose bytes never change.

Histories are the same on every platform, so what they hold is compressed by the encoders here,
which store every byte as it is, in the form of each codec; those of the libraries change from
release to release. Readers can't tell the difference.

Only raw streams and blocks come from libraries; the framing of snappy and lz4 is the model's own.
"""

import zlib
from typing import Any

import cramjam
import numpy
import xxhash

from segproof_model.kafka.format.compression import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    BeyondLimitError,
    Codecs,
    CutShortError,
)

LIMIT_BYTES = 64 << 20
"""What a batch may inflate to; the same as the implementation's default."""
_SMALLEST_TARGET_BYTES = 1 << 16
_SNAPPY_GROWTH = 22
"""No block of snappy grows more: three bytes stand for 64 at most."""
GZIP_FRAME_BYTES = 18
"""Header and trailer of a member of a gzip stream."""
_WINDOW_BYTES = 256
"""What a member of a gzip stream is given first; the smallest takes 20 bytes."""


def inflate(codec: int, data: bytes, limit_bytes: int) -> bytes:
    """Return the inflated stream (gzip, zstd) or block (snappy, lz4).

    Raises: ValueError for damaged data; BeyondLimitError beyond `limit_bytes`, but of an lz4
    block, where either looks the same, ValueError.
    """
    try:
        if codec == GZIP:
            return _gunzip(data, limit_bytes)
        if codec == SNAPPY:
            size = cramjam.snappy.decompress_raw_len(data)
            if size > _SNAPPY_GROWTH * len(data):
                raise ValueError(f"a snappy block of {len(data)} bytes states {size}")
            if size > limit_bytes:
                raise BeyondLimitError(limit_bytes)
            return bytes(cramjam.snappy.decompress_raw(data))
        if codec == LZ4:
            return _into(cramjam.lz4.decompress_block_into, data, limit_bytes)
        if codec == ZSTD:
            return _into(cramjam.zstd.decompress_into, data, limit_bytes)
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from error
    raise ValueError(f"no codec {codec}")


def _gunzip(data: bytes, limit_bytes: int) -> bytes:
    """Inflate every member of a gzip stream.

    What follows a member ends the stream, unless it begins as a member and is longer than the frame
    of one: Java's GZIPInputStream takes no notice of it. zlib copies what a member leaves over of
    its input, so each is given more and more of it.
    """
    if not data:
        raise ValueError("the gzip stream is empty")
    parts: list[bytes] = []
    rest, room, window = memoryview(data), limit_bytes, _WINDOW_BYTES
    is_member = True
    while is_member:
        stream = zlib.decompressobj(wbits=31)
        given = rest[:window]
        try:
            part = stream.decompress(given, room + 1)
        except zlib.error as error:
            is_in_tail = str(error).endswith(("incorrect data check", "incorrect length check"))
            last = _before_tail(given) if is_in_tail else b""
            raise CutShortError(str(error), b"".join([*parts, last])) from error
        if len(part) > room:
            raise BeyondLimitError(limit_bytes)
        if not stream.eof and len(given) < len(rest):
            window *= 2
            continue
        if not stream.eof:
            raise CutShortError("the gzip stream is cut", b"".join([*parts, part]))
        parts.append(part)
        room -= len(part)
        rest = rest[len(given) - len(stream.unused_data) :]
        window = _WINDOW_BYTES
        is_member = len(rest) > GZIP_FRAME_BYTES and bytes(rest[:3]) == b"\x1f\x8b\x08"
    return b"".join(parts)


def _before_tail(data: memoryview) -> bytes:
    """Return what the first member of a gzip stream stands for, whose checksums are wrong."""
    stream, parts = zlib.decompressobj(wbits=31), []
    for byte in data:
        try:
            parts.append(stream.decompress(bytes([byte])))
        except zlib.error:
            break
    return b"".join(parts)


def _into(decompress_into: Any, data: bytes, limit_bytes: int) -> bytes:
    """Inflate into a buffer that grows up to the limit: what does not fit then is refused.

    An error that does not speak of the buffer is damage, which no larger one mends.
    """
    capacity = min(limit_bytes, max(_SMALLEST_TARGET_BYTES, 4 * len(data)))
    while True:
        target = numpy.empty(capacity, numpy.uint8)  # untouched pages cost nothing
        try:
            return target[: decompress_into(data, target)].tobytes()
        except cramjam.DecompressionError as error:
            if capacity >= limit_bytes and "whole buffer" in str(error):
                raise BeyondLimitError(limit_bytes) from error
            if capacity >= limit_bytes or "buffer" not in str(error):
                raise
            capacity = min(limit_bytes, 8 * capacity)


def store(codec: int, data: bytes) -> bytes:
    """Return the bytes in the form of a codec, stored as they are; below 64 KiB.

    >>> all(inflate(codec, store(codec, b"abc" * 99), 999) == b"abc" * 99 for codec in (1, 2, 3, 4))
    True
    """
    size = len(data)
    if size >= 1 << 16:
        raise ValueError("only short data is stored")
    if codec == GZIP:
        return _stored_gzip(data)
    if codec == SNAPPY:
        literal = bytes([61 << 2]) + (size - 1).to_bytes(2, "little") + data if size else b""
        return _little_varint(size) + literal
    if codec == LZ4:
        rest = size - 15
        more = b"" if rest < 0 else b"\xff" * (rest // 255) + bytes([rest % 255])
        return bytes([min(size, 15) << 4]) + more + data
    # zstd: magic, descriptor (one segment, 4 bytes of size), size, one raw last block.
    header = bytes.fromhex("28b52ffda0") + size.to_bytes(4, "little")
    return header + (size << 3 | 1).to_bytes(3, "little") + data


def _stored_gzip(data: bytes) -> bytes:
    size = len(data)
    head = bytes.fromhex("1f8b08000000000000ff01")
    lengths = size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little")
    tail = zlib.crc32(data).to_bytes(4, "little") + size.to_bytes(4, "little")
    return head + lengths + data + tail


def _little_varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value % 128 + 128)
        value //= 128
    return bytes([*written, value])


CODECS = Codecs(inflate, store, xxhash.xxh32_intdigest, LIMIT_BYTES)
"""What the model reads and writes compressed records with."""
