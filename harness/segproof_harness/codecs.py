# SPDX-License-Identifier: Apache-2.0
"""The codecs that the model is given, and encoders whose bytes never change.

Histories are the same on every platform, so what they hold is compressed by the encoders here,
which store every byte as it is, in the form of each codec; those of the libraries change from
release to release. Readers can't tell the difference.

Used by: descriptions of batches and record files, the oracle.
"""

import zlib

import cramjam
import xxhash

from segproof_model.kafka.compression import GZIP, LZ4, SNAPPY, ZSTD, Codecs

LIMIT_BYTES = 64 << 20
"""What a batch may inflate to; the same as the implementation's default."""


def inflate(codec: int, data: bytes, limit: int) -> bytes:
    """Return what the compressed bytes stand for. Raises ValueError for damage or too much."""
    try:
        inflated = _inflated(codec, data, limit)
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from error
    if len(inflated) > limit:
        raise ValueError(f"more than {limit} bytes")
    return inflated


def _inflated(codec: int, data: bytes, limit: int) -> bytes:
    if codec == GZIP:
        return bytes(cramjam.gzip.decompress(data))
    if codec == ZSTD:
        return bytes(cramjam.zstd.decompress(data))
    if codec == SNAPPY:
        if cramjam.snappy.decompress_raw_len(data) > limit:
            raise ValueError(f"more than {limit} bytes")
        return bytes(cramjam.snappy.decompress_raw(data))
    target = bytearray(limit)
    return bytes(target[: cramjam.lz4.decompress_block_into(data, target)])


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
