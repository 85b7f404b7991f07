# SPDX-License-Identifier: Apache-2.0
"""The translation of kernels into conditions means what CPython does, on drawn arguments."""

from array import array
from typing import Any

import pytest
from hypothesis import given, settings

from segproof_tests.kernel_arguments import ARGUMENTS, KERNELS, Changed, Out, run
from segproof_tests.proofs.kernel_runs import Run

pytestmark = pytest.mark.needs("z3")


def views(arguments: tuple[Any, ...]) -> list[Any]:
    """Return arguments with a memoryview for each array that is written to."""
    return [
        memoryview(array("q", bytes(8 * one.length)))
        if isinstance(one, Out)
        else memoryview(array(one.typecode, one.numbers))
        if isinstance(one, Changed)
        else one
        for one in arguments
    ]


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_translated_kernel_does_what_python_does(name: str) -> None:
    """The same result, and the same numbers written."""

    @settings(max_examples=15)
    @given(ARGUMENTS[name])
    def agree(arguments: tuple[Any, ...]) -> None:
        result, written = run(KERNELS[name].interpreted, arguments)
        changed = [isinstance(one, Out | Changed) for one in arguments]
        found, held = Run().run(name.replace(".", ":"), views(arguments), changed)
        assert (result, written) == (found, held)

    agree()
