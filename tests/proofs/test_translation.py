# SPDX-License-Identifier: Apache-2.0
"""The translation of kernels into conditions means what CPython does, on drawn arguments."""

from typing import Any

import pytest
from hypothesis import given, settings

from segproof_tests.kernel_arguments import ARGUMENTS, KERNELS, arrays_of, is_written, run

pytest.importorskip("z3", reason="not run: z3 is not installed")
from segproof_tests.proofs.kernel_runs import Run


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_translated_kernel_does_what_python_does(name: str) -> None:
    """The same result, and the same numbers written."""

    @settings(max_examples=15)
    @given(ARGUMENTS[name])
    def agree(arguments: tuple[Any, ...]) -> None:
        changed = [is_written(one) for one in arguments]
        found = Run().run(name.replace(".", ":"), arrays_of(arguments), changed)
        assert run(KERNELS[name].interpreted, arguments) == found

    agree()
