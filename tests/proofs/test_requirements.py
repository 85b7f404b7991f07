# SPDX-License-Identifier: Apache-2.0
"""What claims require, and what they promise, is checked where Python calls a kernel."""

import functools
import subprocess
import sys

import pytest

from segproof.kernels import slot_search
from segproof_tests.proofs.preconditions import PreconditionError, PromiseError, checked


def test_a_call_outside_of_the_claim_is_told() -> None:
    """The error names the kernel, what it requires and the arguments."""
    search = checked(slot_search.lower_slot.source)
    assert -1 == search(bytes(8), 8, 0, 4, 0, 5, 3)
    words = r"slot_search:lower_slot requires entry_size \* entries <= len\(data\): len\(data\)=8"
    with pytest.raises(PreconditionError, match=words):
        search(bytes(8), 8, 0, 4, 2, 5, 3)


@pytest.mark.parametrize(
    ("data", "target"), [(memoryview(bytes(16)).cast("q"), 5), (bytes(16), 2**63)]
)
def test_arguments_of_another_kind_are_told(data: memoryview | bytes, target: int) -> None:
    """A proof assumes bytes where it says so, and numbers of 64 bits in compiled code."""
    with pytest.raises(PreconditionError, match=r"slot_search:lower_slot: .* is of another kind"):
        checked(slot_search.lower_slot.source)(data, 8, 0, 4, 2, target, 3)


def test_a_wrong_result_is_told() -> None:
    """The error names the kernel, what it promises, the arguments and the result."""
    search = checked(functools.wraps(slot_search.lower_slot.source)(lambda *args, **names: 0))
    words = r"slot_search:lower_slot promises -1 <= result < entries: .*, result=0"
    with pytest.raises(PromiseError, match=words):
        search(bytes(8), 8, 0, 4, 0, 5, 3)


def test_a_wrong_write_is_told() -> None:
    """What a kernel wrote is compared with what was there before."""

    @functools.wraps(slot_search._merge.source)
    def merge(slots: memoryview, **names: object) -> None:
        slots[0] = 7

    words = r"slot_search:_merge promises same_but\(slots, old\(slots\), number, end\)"
    slots = memoryview(bytearray(16)).cast("q")
    with pytest.raises(PromiseError, match=words):
        checked(merge)(slots.toreadonly(), 0, slots, slots, 1, 1, -1)


def test_plain_functions_are_watched_too() -> None:
    """Also where a module has taken the function from another one."""
    code = """if True:
        from segproof.kernels import segment_rules
        from segproof_tests.proofs.preconditions import CHECKED, watch
        watch()
        assert segment_rules.fits_segment(5, 3)
        assert sorted(CHECKED) == ["index_rules:offset_distance", "segment_rules:fits_segment"]
    """
    subprocess.run([sys.executable, "-c", code], check=True)
