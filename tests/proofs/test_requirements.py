# SPDX-License-Identifier: Apache-2.0
"""What claims require is checked where Python calls a kernel."""

import pytest

from segproof.kernels import slot_search
from segproof_tests.proofs.preconditions import PreconditionError, checked


def test_a_call_outside_of_the_claim_is_told() -> None:
    """The error names the kernel, what it requires and the arguments."""
    search = checked(slot_search.lower_slot.source)
    assert -1 == search(bytes(8), 8, 0, 4, 0, 5, 3)
    words = r"slot_search:lower_slot requires entry_size \* entries <= len\(data\): len\(data\)=8"
    with pytest.raises(PreconditionError, match=words):
        search(bytes(8), 8, 0, 4, 2, 5, 3)
