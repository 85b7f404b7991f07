# SPDX-License-Identifier: Apache-2.0
"""Compiled and interpreted kernels agree on drawn inputs, for every kernel there is.

Integers have no limit interpreted and 64 bits compiled, a byte is an int here and a uint8 there:
what a contract confirms of the one holds for the other because of this test. And numba gives the
variables the types that the proofs assume: int64, bool, and items. The difference of two unsigned
items would be a uint64, and its sum with an int64 a float64, where Python and the proofs compute
with integers.
"""

import inspect
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings

from segproof.kernels.dispatch import Kernel
from segproof_tests.kernel_arguments import ARGUMENTS, KERNELS, run

NUMBERS = {"int64", "uint8", "uint16"}


def calls_of(name: str) -> list[str]:
    """Return the names of the kernels that a kernel calls."""
    source = KERNELS[name].source
    called = [source.__globals__.get(each) for each in source.__code__.co_names]
    return [each for each, one in KERNELS.items() if any(one is other for other in called)]


def depth_of(name: str) -> int:
    """Return how many kernels are called within each other, this one included."""
    return 1 + max(map(depth_of, calls_of(name)), default=0)


CALLED_FIRST = sorted(KERNELS, key=lambda name: (depth_of(name), name))
"""In this order each kernel is compiled by its own test, and its callers find it compiled."""


@cache
def twin_of(name: str) -> Kernel[..., Any]:
    """Return a kernel that is compiled where it is called, once for all tests."""
    twin = Kernel(KERNELS[name].source)
    twin.compile()
    return twin


def test_every_kernel_has_arguments() -> None:
    """A new kernel needs a way to draw its arguments, a removed one none."""
    assert sorted(ARGUMENTS) == sorted(KERNELS)


@pytest.mark.needs("numba")
@pytest.mark.parametrize("name", CALLED_FIRST)
def test_compiled_and_interpreted_agree(name: str) -> None:
    """The same answer of the same type, and the same bytes written."""
    interpreted = Kernel(KERNELS[name].source).interpreted
    twin = twin_of(name)
    assert twin.is_compiled
    types: set[tuple[str, str]] = set()

    @given(ARGUMENTS[name])
    def agree(arguments: tuple[Any, ...]) -> None:
        expected, found = run(interpreted, arguments), run(twin.call, arguments)
        types.add((type(expected[0]).__name__, type(found[0]).__name__))
        assert expected == found

    agree()
    print(f"{name}: {type(interpreted).__name__} and {type(twin.call).__name__}, answers {types}")
    assert type(interpreted) is not type(twin.call)
    assert all(one == other for one, other in types)


def annotated(annotation: str) -> str:
    """Return numba's word for the annotation of a result."""
    count = annotation.count("int")
    known = {"None": "none", "bool": "bool", "int": "int64"}
    return known.get(annotation, f"UniTuple(int64 x {count})")


def inferred(dispatcher: Any, signature: Any) -> Any:
    """Return what numba has found out about a signature; compiles it if it was found compiled."""
    import numba

    found = dispatcher.overloads[signature]
    if isinstance(found.type_annotation, str):  # what is kept are its words alone
        dispatcher = numba.njit(dispatcher.py_func)
        dispatcher.compile(signature)
        found = dispatcher.overloads[signature]
    return found


@pytest.mark.slow
@pytest.mark.needs("numba")
@pytest.mark.parametrize("name", CALLED_FIRST)
def test_inferred_types_are_those_of_the_proofs(name: str) -> None:
    """The result has the type of its annotation, and no variable another one than is assumed."""
    import numba

    dispatcher: Any = twin_of(name).call

    @settings(max_examples=10)
    @given(ARGUMENTS[name])
    def compile_for(arguments: tuple[Any, ...]) -> None:
        run(dispatcher, arguments)

    compile_for()
    returns = inspect.formatannotation(inspect.signature(KERNELS[name].source).return_annotation)
    assert dispatcher.signatures
    for signature in dispatcher.signatures:
        found = inferred(dispatcher, signature)
        result = str(found.signature.return_type).replace("boolean", "bool")
        assert annotated(returns) == result
        kinds = map(numba.types.unliteral, found.type_annotation.typemap.values())
        assert {str(one) for one in kinds if isinstance(one, numba.types.Number)} <= NUMBERS
