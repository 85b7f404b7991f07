# SPDX-License-Identifier: Apache-2.0
"""Checksums of many parts at once are those of each part by itself, on every way to make them."""

import numpy as np
import pytest

from segproof import checksums
from segproof.checksums import crc32c, crc32c_of_parts
from segproof.crc32c_parts import find_library


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.needs("numba"))])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the checksums by calls of the library from Python, and from a compiled loop."""
    monkeypatch.setenv("SEGPROOF_KERNELS", str(request.param))
    monkeypatch.setattr(checksums, "_is_refused", False)
    monkeypatch.setattr(checksums, "_compiled", None)
    return str(request.param)


def test_known_value() -> None:
    """The check value of CRC-32C."""
    assert 0xE3069283 == crc32c(b"123456789")


def test_parts_as_one_by_one(way: str) -> None:
    """Parts of any length at any place, empty ones too, also where they overlap."""
    random = np.random.default_rng(5)
    buffer = memoryview(bytearray(random.bytes(4000)))
    starts = random.integers(0, 3000, 300)
    ends = starts + np.concatenate((np.arange(40), random.integers(0, 1000, 260)))
    expected = [crc32c(buffer[a:b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    assert expected == crc32c_of_parts(buffer, starts, ends).tolist()
    # A column of a table is no contiguous array.
    table = np.stack((starts, ends), axis=1)
    assert expected == crc32c_of_parts(buffer, table[:, 0], table[:, 1]).tolist()
    assert (way == "compiled" and find_library() is not None) == (checksums._compiled is not None)


@pytest.mark.usefixtures("way")
def test_parts_outside_are_refused() -> None:
    """No byte outside of the buffer is touched."""
    buffer = memoryview(bytearray(10))
    for start, end in ((-1, 3), (0, 11), (5, 4)):
        with pytest.raises(IndexError, match="outside"):
            crc32c_of_parts(buffer, np.array([0, start]), np.array([10, end]))
    assert 0 == len(crc32c_of_parts(buffer, np.empty(0, np.int64), np.empty(0, np.int64)))
