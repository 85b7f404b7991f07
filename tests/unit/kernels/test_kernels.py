# SPDX-License-Identifier: Apache-2.0
"""Compiled and interpreted kernels agree on drawn inputs, for every kernel there is.

Integers have no limit interpreted and 64 bits compiled, a byte is an int here and a uint8 there:
what a contract confirms of the one holds for the other because of this test.
"""

from typing import Any

import pytest
from hypothesis import given, settings

from segproof.kernels.dispatch import Kernel
from segproof_tests.kernel_arguments import ARGUMENTS, KERNELS, run


def test_every_kernel_has_arguments() -> None:
    """A new kernel needs a way to draw its arguments, a removed one none."""
    assert sorted(ARGUMENTS) == sorted(KERNELS)


@pytest.mark.needs("numba")
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_compiled_and_interpreted_agree(name: str) -> None:
    """The same answer of the same type, and the same bytes written."""
    source = KERNELS[name].source
    interpreted = Kernel(source).interpreted
    twin = Kernel(source)
    twin.compile()
    assert twin.is_compiled
    types: set[tuple[str, str]] = set()

    @settings(max_examples=60)
    @given(ARGUMENTS[name])
    def agree(arguments: tuple[Any, ...]) -> None:
        expected, found = run(interpreted, arguments), run(twin.call, arguments)
        types.add((type(expected[0]).__name__, type(found[0]).__name__))
        assert expected == found

    agree()
    print(f"{name}: {type(interpreted).__name__} and {type(twin.call).__name__}, answers {types}")
    assert type(interpreted) is not type(twin.call)
    assert all(one == other for one, other in types)
