# SPDX-License-Identifier: Apache-2.0
"""Numbers that both systems use: bounds of integers, texts of them, the time.

Imported by all, also by what prints help: without numpy.
"""

import time
from operator import index as to_int

from segproof.errors import InvalidArgumentError, NumberFormatError

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)
INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
make_tuple = tuple.__new__
"""Makes a named tuple from its class and all its values, in half the time that the class takes."""


def now_ms() -> int:
    """Return the wall clock in ms since 1970."""
    return time.time_ns() // 10**6


def as_int64(number: int) -> int:
    """Return the int64 nearest to `number`: beyond 64 bits nothing is stored."""
    number = to_int(number)
    if INT64_MIN <= number <= INT64_MAX:
        return number
    return INT64_MAX if number > 0 else INT64_MIN


def in_range(
    value: int,
    what: str,
    low: int = INT64_MIN,
    high: int = INT64_MAX,
    *,
    law: str | None = None,
    path: str | None = None,
) -> int:
    """Return the integer, which must be from `low` to `high`, both inclusive.

    Raises: InvalidArgumentError, which says `what` the number is.
    """
    number = to_int(value)
    if not low <= number <= high:
        raise InvalidArgumentError(
            f"{what} is {number}, not from {low} to {high}", law=law, path=path
        )
    return number


def parse_int(text: str, bits: int) -> int:
    """Return the number, as Java parses one of so many bits.

    A sign may stand before the digits, which may be those of any script below U+10000.
    Raises: NumberFormatError.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or (not digits.isascii() and max(digits) > "\uffff"):
        raise NumberFormatError(f"{text[:40]!r} is no number", law="CKPT-4")
    value, limit = 0, 1 << (bits - 1)
    for start in range(0, len(digits), 18):
        # Python refuses to convert thousands of digits at once, and zeros may be as many.
        part = digits[start : start + 18]
        value = value * 10 ** len(part) + int(part)
        if value > limit:
            break
    if text[0] == "-":
        value = -value
    if not -limit <= value < limit:
        raise NumberFormatError(f"{text[:40]!r} does not fit {bits} bits", law="CKPT-4")
    return value
