# SPDX-License-Identifier: Apache-2.0
"""Whether two files have the same bytes, and where not: both are read in blocks, side by side.

Memory: a block of each.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final, NamedTuple

from segproof.files import Files

COMPARED_BYTES: Final = 1 << 20
"""The length of a block."""
Read = Callable[[int, int], bytes]
"""Returns at most so many bytes from a position on, as `ReadOnlyFile.pread` does."""


class Differing(NamedTuple):
    """A block whose bytes differ. Where one side ends before the block does, it has fewer bytes."""

    begin: int
    end: int
    one: bytes
    other: bytes


def blocks_that_differ(one: Read, other: Read, size_bytes: int) -> Iterator[Differing]:
    """Yield the blocks of the first `size_bytes` bytes in which both differ, rising.

    Raises: OSError.
    """
    for begin in range(0, size_bytes, COMPARED_BYTES):
        end = min(begin + COMPARED_BYTES, size_bytes)
        mine, its = one(end - begin, begin), other(end - begin, begin)
        if mine != its:
            yield Differing(begin, end, mine, its)


def is_as_long(one: str, other: str, files: Files) -> bool:
    """Return whether two files are there and have the same length. Raises: OSError."""
    mine, its = files.status(one), files.status(other)
    return mine is not None and its is not None and mine.size_bytes == its.size_bytes


def is_same(one: str, other: str, files: Files) -> bool:
    """Return whether two files are there and have the same bytes. Raises: OSError."""
    return is_as_long(one, other, files) and starts_with(one, other, files)


def starts_with(long: str, short: str, files: Files) -> bool:
    """Return whether a file begins with all bytes of another one. Raises: OSError."""
    with closing(files.open(short)) as one, closing(files.open(long)) as other:
        return not any(blocks_that_differ(one.pread, other.pread, one.size()))
