# SPDX-License-Identifier: Apache-2.0
"""Rows of a test with several parameters, where crossing all values costs much and adds little."""

from collections.abc import Collection
from typing import Any


def paired(*axes: Collection[Any]) -> list[tuple[Any, ...]]:
    """Return rows in which each value of each axis stands at least once, beside changing others."""
    lists = [[*axis] for axis in axes]
    return [
        tuple(
            axis[(row + row // len(axis) * place) % len(axis)] for place, axis in enumerate(lists)
        )
        for row in range(max(map(len, lists)))
    ]
