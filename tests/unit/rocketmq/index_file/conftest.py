# SPDX-License-Identifier: Apache-2.0
"""The ways in which an index file does many things at once."""

from typing import Any

import pytest

from segproof.kernels import rocketmq_index as kernels
from segproof.kernels.dispatch import Kernel


@pytest.fixture(
    params=["single", "interpreted", pytest.param("compiled", marks=pytest.mark.needs("numba"))]
)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Do many by single calls, or by interpreted or compiled KERNELS of the test's module."""
    way = str(request.param)
    for name in request.module.KERNELS:
        kernel: Kernel[..., Any] = getattr(kernels, name)
        if way == "compiled":
            kernel.compile()
        else:
            monkeypatch.setattr(kernel, "call", kernel.interpreted)
            monkeypatch.setattr(kernel, "announce", lambda work: None)
            monkeypatch.setattr(kernel, "is_compiled", way == "interpreted")
    return way
