# SPDX-License-Identifier: Apache-2.0
"""The translation of kernels and claims into conditions means what CPython does."""

from typing import Any

import pytest
from hypothesis import given, settings

from segproof_harness.claims.every_claim import CLAIMS
from segproof_tests.kernel_arguments import (
    ARGUMENTS,
    KERNELS,
    PLAIN,
    arrays_of,
    is_written,
    of_plain,
    run,
)

pytest.importorskip("z3", reason="not run: z3 is not installed")
from segproof_tests.proofs.kernel_runs import NotRequiredError, Run
from segproof_tests.proofs.preconditions import PreconditionError, checked


@pytest.mark.parametrize("name", CLAIMS)
def test_translated_kernel_does_what_python_does(name: str) -> None:
    """The same result, the same numbers written, and the claim is true in both."""
    key, ran = name.replace(":", "."), []
    drawn = ARGUMENTS[key] if key in KERNELS else of_plain(PLAIN[key], CLAIMS[name].cases)
    kernel = checked(KERNELS[key].interpreted if key in KERNELS else PLAIN[key])

    @settings(max_examples=10)
    @given(drawn)
    def agree(arguments: tuple[Any, ...]) -> None:
        changed = [is_written(one) for one in arguments]
        try:
            expected = run(kernel, arguments)
        except PreconditionError:
            with pytest.raises(NotRequiredError):
                Run().run(name, arrays_of(arguments), changed)
        else:
            assert expected == Run().run(name, arrays_of(arguments), changed)
            ran.append(arguments)

    agree()
    assert ran
