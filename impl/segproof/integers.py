# SPDX-License-Identifier: Apache-2.0
"""Numbers that both systems use: bounds of integers, rows and texts of them, the time."""

import time
from operator import index as to_int

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


def is_integer(value: object, bits: int) -> bool:
    """Return whether a value of JSON is an integer of so many bits."""
    return type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1


def int64_array(values: ArrayLike, what: str) -> NDArray[np.int64]:
    """Return `values` as one row of native int64; raise InvalidArgumentError for anything else."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidArgumentError(f"{what} must be one row of integers, not {array.dtype}")
    if array.dtype == np.uint64 and array.size and int(array.max()) > INT64_MAX:
        raise InvalidArgumentError(f"{what} must be at most {INT64_MAX}")
    return np.ascontiguousarray(array, dtype=np.int64)


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
