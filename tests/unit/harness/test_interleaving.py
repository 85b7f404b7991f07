# SPDX-License-Identifier: Apache-2.0
"""Schedules with one switch: a call is interrupted before each step that touches shared state."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from segproof_tests.interleaving import schedules


def items(shared: Any) -> Any:
    """Read two items."""
    return shared.two[0], shared.two[1]


def slices(shared: Any) -> Any:
    """Read two slices."""
    two = shared.two
    return *two[:1], *two[1:]


def loop(shared: Any) -> Any:
    """Take both items one after the other."""
    return tuple([each for each in shared.two])  # noqa: C416  # list() would take them at once


def membership(shared: Any) -> Any:
    """Ask for an item twice."""
    two = shared.two
    return int(1 in two), int(1 in two)


def attributes(shared: Any) -> Any:
    """Read two attributes."""
    return shared.first, shared.second


@pytest.mark.parametrize("read", [items, slices, loop, membership, attributes])
def test_a_read_in_two_steps_is_torn(read: Callable[[Any], Any]) -> None:
    """A change between two looks at what is shared is among the schedules."""
    seen = set()

    def prepare() -> Any:
        shared = SimpleNamespace(two=[0, 0], first=0, second=0)

        def change() -> None:
            shared.two[:], shared.first, shared.second = (1, 1), 1, 1

        return lambda: seen.add(read(shared)), change

    assert len(list(schedules(prepare, {__name__}))) > 1
    assert {(0, 0), (0, 1), (1, 1)} >= seen >= {(0, 1), (1, 1)}


def test_a_change_in_two_steps_is_seen_halfway() -> None:
    """Setting and deleting items are steps too."""
    seen = []

    def prepare() -> Any:
        shared = {0: 0, 1: 1}

        def change() -> None:
            shared[2] = 2
            del shared[0]
            del shared[1]

        return change, lambda: seen.append(sorted(shared))

    assert [0, 1, 2] == list(schedules(prepare, {__name__}))
    assert [[0, 1], [0, 1, 2], [1, 2]] == seen
