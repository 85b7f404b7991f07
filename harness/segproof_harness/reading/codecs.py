# SPDX-License-Identifier: Apache-2.0
"""The codecs that the model takes as parameters, from the libraries the implementation uses.

Only raw streams and blocks come from there; the framing of snappy and lz4 is the model's own.

Used by: reading, the comparison of record batches.
"""

import zlib
from typing import Any

import cramjam
import xxhash

from segproof_model.kafka.compression import GZIP, LZ4, SNAPPY, ZSTD, Codecs

LIMIT_BYTES = 64 << 20
"""No batch may inflate to more than this."""
_SMALLEST_TARGET_BYTES = 1 << 16


def inflate(codec: int, data: bytes, limit_bytes: int) -> bytes:
    """Return the inflated stream (gzip, zstd) or block (snappy, lz4).

    Raises: ValueError for damaged data, and beyond `limit_bytes`.
    """
    try:
        if codec == GZIP:
            return _gunzip(data, limit_bytes)
        if codec == SNAPPY:
            size = cramjam.snappy.decompress_raw_len(data)
            if size > limit_bytes:
                raise ValueError(f"a snappy block of {size} bytes, more than {limit_bytes}")
            return bytes(cramjam.snappy.decompress_raw(data))
        if codec == LZ4:
            return _into(cramjam.lz4.decompress_block_into, data, limit_bytes)
        if codec == ZSTD:
            return _into(cramjam.zstd.decompress_into, data, limit_bytes)
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from error
    raise ValueError(f"no codec {codec}")


def _gunzip(data: bytes, limit_bytes: int) -> bytes:
    """Inflate every member of a gzip stream."""
    parts: list[bytes] = []
    room = limit_bytes
    while data:
        stream = zlib.decompressobj(wbits=31)
        try:
            part = stream.decompress(data, room + 1)
        except zlib.error as error:
            raise ValueError(str(error)) from error
        if len(part) > room:
            raise ValueError(f"more than {limit_bytes} bytes")
        if not stream.eof:
            raise ValueError("the gzip stream is cut")
        parts.append(part)
        room -= len(part)
        data = stream.unused_data
    return b"".join(parts)


def _into(decompress_into: Any, data: bytes, limit_bytes: int) -> bytes:
    """Inflate into a buffer that grows up to the limit: what does not fit then is refused."""
    capacity = min(limit_bytes, max(_SMALLEST_TARGET_BYTES, 4 * len(data)))
    while True:
        target = bytearray(capacity)
        try:
            return bytes(target[: decompress_into(data, target)])
        except cramjam.DecompressionError:
            if capacity >= limit_bytes:
                raise
            capacity = min(limit_bytes, 8 * capacity)


def deflate(codec: int, data: bytes) -> bytes:
    """Return the compressed stream (gzip, zstd) or block (snappy, lz4)."""
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data))
    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(data))
    if codec == LZ4:
        return bytes(cramjam.lz4.compress_block(data, store_size=False))
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data))
    raise ValueError(f"no codec {codec}")


def xxhash32(data: bytes) -> int:
    """Return the 32-bit xxHash with seed 0."""
    return xxhash.xxh32_intdigest(data)


CODECS = Codecs(inflate, deflate, xxhash32, LIMIT_BYTES)
"""Codecs for the model."""
