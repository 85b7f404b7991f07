# SPDX-License-Identifier: Apache-2.0
"""The bulk operations of the indexes against the model's single ones, called one by one.

A bulk append stores what the single ones would, or raises what the first refused one would and
changes nothing. Histories do not draw bulk appends; bulk lookups they do.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segproof.errors import SegproofError
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.time_index import TimeIndex
from segproof_harness.files.memory_files import MemoryFiles
from segproof_model.kafka.format.offset_index import OffsetIndex as ModelOffsetIndex
from segproof_model.kafka.format.time_index import TimeIndex as ModelTimeIndex
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import apply, opened
from segproof_model.releases import SEGPROOF

INT64 = st.integers(-(2**63), 2**63 - 1)
BASES = st.sampled_from((0, 100, 2**31, 2**62, -(2**40)))
DISTANCES = (-1, 0, 1, 2, 3, 5, 8, 2**31 - 1, 2**31, 2**32)
POSITIONS = st.sampled_from((0, 1, 7, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, -(2**63)))
PAIRS_MAX = 8

Pair = tuple[int, int]


def numbers(first: int, *, far: st.SearchStrategy[int] = INT64) -> st.SearchStrategy[int]:
    """Return numbers near `first`, some far ones."""
    near = st.sampled_from(DISTANCES).map(lambda distance: first + distance)
    return st.one_of(near, near, near, st.integers(first, first + 20), far)


@st.composite
def cases(draw: st.DrawFn, first: Any, second: Any) -> tuple[int, int, bool, list[list[Pair]]]:
    """Draw (base offset, slots, writable, calls); each call is a list of pairs, mostly rising."""
    base, slots = draw(BASES), draw(st.integers(1, 12))
    pair = st.tuples(first(base), second(base))
    call = st.one_of(st.lists(pair, max_size=PAIRS_MAX).map(sorted), st.lists(pair, max_size=3))
    calls = draw(st.lists(call, min_size=1, max_size=4))
    return base, slots, draw(st.integers(0, 9)) > 0, calls


OFFSET_CASES = cases(numbers, lambda base: st.one_of(st.integers(0, 99), POSITIONS))
TIME_CASES = cases(lambda base: numbers(0), numbers)


def one_by_one(model: Any, name: str, pairs: list[Pair]) -> tuple[Any, str | None]:
    """Return (state, kind of error) behind single appends; a refused one undoes all of them."""
    after = model
    for first, second in pairs:
        if name == "append" and not -(2**31) <= second < 2**31:
            # The model's positions are int32; only what is wrong with the offset goes first.
            outcome = apply(after, "append", first, 0).outcome
            if isinstance(outcome, Raised) and outcome.kind != ErrorKind.READ_ONLY:
                return model, outcome.kind
            return model, ErrorKind.INVALID_ARGUMENT
        step: Any = apply(after, name, first, second)
        if isinstance(step.outcome, Raised):
            return model, step.outcome.kind
        after = step.after
    return after, None


def kind_of(call: Callable[[], object]) -> str | None:
    """Return the kind of the error that a call raises."""
    try:
        call()
    except SegproofError as error:
        return error.kind
    return None


def compare(
    model_class: Any, impl_class: Any, name: str, case: tuple[int, int, bool, list[list[Pair]]]
) -> None:
    """Make the same calls on both sides; a read-only index opens what the first call left."""
    base, slots, writable, calls = case
    files = MemoryFiles()
    size = slots * impl_class.ENTRY_SIZE
    model: Any = opened(SEGPROOF.kind(model_class), Files(), "x", base, size).after
    impl = impl_class("/x", base, size, create=True, files=files)
    for number, pairs in enumerate(calls):
        before = impl.last_offset if name == "append" else impl.last_entry
        model, expected = one_by_one(model, name, pairs)
        rows = np.array(pairs, np.int64).reshape(-1, 2)
        append_many = partial(getattr(impl, f"{name}_many"), rows[:, 0], rows[:, 1])
        assert expected == kind_of(append_many)
        last = impl.last_offset if name == "append" else impl.last_entry
        assert (model.last_offset if name == "append" else model.last_entry) == last
        assert expected is None or before == last
        assert [model.stored(slot) for slot in range(model.entries)] == list(impl)
        assert {"x": model.image} == files.images("/")
        if number == 0 and not writable:
            impl.close_handler()
            impl = impl_class("/x", base, size, files=files)
            kind = SEGPROOF.kind(model_class)
            model = opened(kind, model.files, "x", base, size, False).after
    targets = [target for pairs in calls for pair in pairs for target in pair]
    expected_answers = [model.lookup(target) for target in targets]
    answers = impl.lookup_many(np.array(targets, np.int64))
    assert expected_answers == list(zip(*(row.tolist() for row in answers), strict=True))


@pytest.mark.checks("OFFIDX-4", "OFFIDX-5", "OFFIDX-6", "OFFIDX-8", "OFFIDX-9", "OFFIDX-11")
@given(OFFSET_CASES)
@example((100, 100, True, [[(100, -(2**63))]]))
@example((100, 100, True, [[(100, -(2**31))]]))
@example((2**63 - 10, 9, True, [[(-(2**63), 1), (0, 2), (2**63 - 5, 3)]]))
def test_offset_index(case: tuple[int, int, bool, list[list[Pair]]]) -> None:
    """`append_many` is `append` of each pair, `lookup_many` is `lookup` of each target."""
    compare(ModelOffsetIndex, OffsetIndex, "append", case)


@pytest.mark.checks("TIMEIDX-3", "TIMEIDX-4", "TIMEIDX-5", "TIMEIDX-6", "TIMEIDX-7", "TIMEIDX-10")
@given(TIME_CASES)
@example((0, 9, True, [[(-5, 3), (-7, 1)]]))
@example((0, 9, True, [[(5, 10), (5, 20), (6, 15)]]))
@example((2**63 - 10, 9, True, [[(1, -(2**63)), (2, 0), (3, 2**63 - 5)]]))
def test_time_index(case: tuple[int, int, bool, list[list[Pair]]]) -> None:
    """`maybe_append_many` is `maybe_append` of each pair, `lookup_many` is `lookup` of each."""
    compare(ModelTimeIndex, TimeIndex, "maybe_append", case)
