# SPDX-License-Identifier: Apache-2.0
"""Java's integers: two's complement, wrapping, division toward zero."""

INT32_MAX = 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def wrap32(value: int) -> int:
    """Return `value` as a Java int keeps it.

    >>> wrap32(2**31), wrap32(-1)
    (-2147483648, -1)
    """
    return (value + 2**31) % 2**32 - 2**31


def wrap64(value: int) -> int:
    """Return `value` as a Java long keeps it.

    >>> wrap64(2**63)
    -9223372036854775808
    """
    return (value + 2**63) % 2**64 - 2**63


def truncated_multiple(value: int, factor: int) -> int:
    """Return the multiple of `factor` nearest to `value`, rounded toward zero.

    >>> truncated_multiple(67, 8), truncated_multiple(67, 12), truncated_multiple(-7, 8)
    (64, 60, 0)
    """
    return abs(value) // factor * factor * (1 if value >= 0 else -1)


def int32_at(data: bytes, position: int) -> int:
    """Return the big-endian int32 at `position`."""
    return int.from_bytes(data[position : position + 4], "big", signed=True)


def int64_at(data: bytes, position: int) -> int:
    """Return the big-endian int64 at `position`."""
    return int.from_bytes(data[position : position + 8], "big", signed=True)


def int32_bytes(value: int) -> bytes:
    """Return `value`, wrapped to 32 bits, as four big-endian bytes."""
    return wrap32(value).to_bytes(4, "big", signed=True)


def int64_bytes(value: int) -> bytes:
    """Return `value`, wrapped to 64 bits, as eight big-endian bytes."""
    return wrap64(value).to_bytes(8, "big", signed=True)


def parsed_int(text: str, bits: int) -> int | None:
    """Return the number, as Java parses one of so many bits, or None.

    A sign may stand before the digits, which may be those of any script below U+10000.

    >>> parsed_int("+07", 32), parsed_int("2147483648", 32), parsed_int(" 1", 32)
    (7, None, None)
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or max(digits) > "\uffff":
        return None
    if any(map(int, digits[:-20])):  # zeros may be as many as they like
        return None
    value = int(digits[-20:]) * (-1 if text[0] == "-" else 1)
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None
