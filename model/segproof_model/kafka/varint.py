# SPDX-License-Identifier: Apache-2.0
"""Integers of variable length, as the records of magic 2 hold them.

Upstream: Kafka, ByteUtils (since 0.11.0).
Layout: zigzag (0, -1, 1, -2 ... become 0, 1, 2, 3 ...), then 7 bits a byte, the lowest first; the
high bit of a byte says that another byte follows.
Laws: BATCH-7.
Used by: record, record_batch.
"""

from segproof_model.language.integers import wrap32, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised

VARINT_MAX_BYTES = 5
VARLONG_MAX_BYTES = 10


def encode_varint(value: int) -> bytes:
    """Return `value`, wrapped to 32 bits, as one to five bytes.

    >>> encode_varint(0).hex(), encode_varint(-1).hex(), encode_varint(150).hex()
    ('00', '01', 'ac02')
    """
    return _encode(wrap32(value))


def decode_varint(data: bytes, position: int) -> tuple[int, int] | Raised:
    """Return the int32 at `position` and the position behind it.

    A fifth byte that announces another raises invalid-argument; data that ends before the integer
    raises invalid-record. What a fifth byte holds beyond 32 bits is dropped.

    >>> decode_varint(bytes.fromhex("ac02"), 0)
    (150, 2)
    """
    return _decode(data, position, VARINT_MAX_BYTES, 2**32)


def encode_varlong(value: int) -> bytes:
    """Return `value`, wrapped to 64 bits, as one to ten bytes."""
    return _encode(wrap64(value))


def decode_varlong(data: bytes, position: int) -> tuple[int, int] | Raised:
    """Return the int64 at `position` and the position behind it; errors as in `decode_varint`."""
    return _decode(data, position, VARLONG_MAX_BYTES, 2**64)


def _encode(value: int) -> bytes:
    rest = 2 * value if value >= 0 else -2 * value - 1
    encoded = b""
    while rest >= 128:
        encoded += bytes([rest % 128 + 128])
        rest //= 128
    return encoded + bytes([rest])


def _decode(data: bytes, position: int, max_bytes: int, modulus: int) -> tuple[int, int] | Raised:
    number = 0
    for count in range(max_bytes):
        if position + count >= len(data):
            return Raised(ErrorKind.INVALID_RECORD)
        byte = data[position + count]
        number += byte % 128 * 128**count
        if byte < 128:
            zigzag = number % modulus
            value = zigzag // 2 if zigzag % 2 == 0 else -(zigzag // 2) - 1
            return value, position + count + 1
    return Raised(ErrorKind.INVALID_ARGUMENT)
