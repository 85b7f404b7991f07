# SPDX-License-Identifier: Apache-2.0
"""Integers of variable length, as the records of magic 2 hold them.

Upstream: Kafka 4.4.0, ByteUtils.
Layout: zigzag (0, -1, 1, -2 ... become 0, 1, 2, 3 ...), then 7 bits a byte, the lowest first; the
    high bit of a byte says that another byte follows.
Laws: BATCH-7.
"""

from segproof_model.language.integers import wrap32, wrap64
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


def encode_varint(value: int) -> bytes:
    """Return `value`, wrapped to 32 bits, as one to five bytes.

    >>> encode_varint(0).hex(), encode_varint(-1).hex(), encode_varint(150).hex()
    ('00', '01', 'ac02')
    """
    return _encode(wrap32(value))


def encode_varlong(value: int) -> bytes:
    """Return `value`, wrapped to 64 bits, as one to ten bytes."""
    return _encode(wrap64(value))


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the int32 at `position` and the position behind it.

    A fifth byte that announces another is an invalid argument; data that ends before the integer
    is an invalid record. What a fifth byte holds beyond 32 bits is dropped.

    >>> decode_varint(bytes.fromhex("ac02"), 0)
    (150, 2)
    """
    return _decode(data, position, 5, 2**32)


def decode_varlong(data: bytes, position: int) -> tuple[int, int]:
    """Return the int64 at `position` and the position behind it; errors as in `decode_varint`."""
    return _decode(data, position, 10, 2**64)


def _encode(value: int) -> bytes:
    rest = 2 * value if value >= 0 else -2 * value - 1
    encoded = b""
    while rest >= 128:
        encoded += bytes([rest % 128 + 128])
        rest //= 128
    return encoded + bytes([rest])


def _decode(data: bytes, position: int, max_bytes: int, modulus: int) -> tuple[int, int]:
    number = bits = 0
    for byte in data[position : position + max_bytes]:
        position += 1
        number += byte % 128 << bits
        if byte < 128:
            number %= modulus
            return -(number // 2) - 1 if number % 2 else number // 2, position
        bits += 7
    is_too_long = bits == 7 * max_bytes
    return refuse(ErrorKind.INVALID_ARGUMENT if is_too_long else ErrorKind.INVALID_RECORD)
