# SPDX-License-Identifier: Apache-2.0
"""How many bytes go into checksums while broken batches are tried."""

import pytest

from segproof.checksums import crc32c
from segproof.stretches.kafka import mending


def summed_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets how many bytes each checksum is made of from now on."""
    summed: list[int] = []

    def count(data: bytes | memoryview, before: int = 0) -> int:
        summed.append(len(data))
        return crc32c(data, before)

    monkeypatch.setattr(mending, "crc32c", count)
    return summed
