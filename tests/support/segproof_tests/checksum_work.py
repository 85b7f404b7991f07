# SPDX-License-Identifier: Apache-2.0
"""How many bytes go into checksums while broken batches are tried."""

from types import ModuleType

import pytest

from segproof.reading.restorable_batches import checksum_difference


def summed_sizes(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> list[int]:
    """Return a list that gets the size of each batch whose checksum a module makes from now on."""
    summed: list[int] = []

    def count(whole: bytes) -> int:
        summed.append(len(whole))
        return checksum_difference(whole)

    monkeypatch.setattr(module, "checksum_difference", count)
    return summed
