# SPDX-License-Identifier: Apache-2.0
"""numba gives the variables of kernels the types that the proofs assume: int64, bool, and items.

The difference of two unsigned items would be a uint64, and its sum with an int64 a float64, where
Python and the proofs compute with integers.
"""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from segproof.kernels.dispatch import linked
from segproof_tests.kernel_arguments import ARGUMENTS, KERNELS, run

COMPILED: dict[str, Any] = {}
"""What this process compiled, by the name of the kernel: each is compiled once."""
NUMBERS = {"int64", "uint8", "uint16"}


def compiled(name: str) -> Any:
    """Return a kernel that numba compiles where it is called; the result is not kept."""
    import numba

    def make(plain: Callable[..., Any]) -> Any:
        return COMPILED.setdefault(plain.__qualname__, numba.njit(plain))

    return linked(KERNELS[name].source, make, COMPILED)


def expected(annotation: str) -> str:
    """Return numba's word for the annotation of a result."""
    count = annotation.count("int")
    known = {"None": "none", "bool": "bool", "int": "int64"}
    return known.get(annotation, f"UniTuple(int64 x {count})")


def test_kernels_have_different_names() -> None:
    """What is compiled is found again by its name."""
    assert len(KERNELS) == len({one.name for one in KERNELS.values()})


@pytest.mark.slow
@pytest.mark.needs("numba")
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_inferred_types_are_those_of_the_proofs(name: str) -> None:
    """The result has the type of its annotation, and no variable another one than is assumed."""
    import numba

    twin = compiled(name)

    @settings(max_examples=10)
    @given(ARGUMENTS[name])
    def compile_for(arguments: tuple[Any, ...]) -> None:
        run(twin, arguments)

    compile_for()
    returns = inspect.formatannotation(inspect.signature(KERNELS[name].source).return_annotation)
    assert twin.signatures
    for signature in twin.signatures:
        found = twin.overloads[signature]
        assert expected(returns) == str(found.signature.return_type).replace("boolean", "bool")
        kinds = map(numba.types.unliteral, found.type_annotation.typemap.values())
        assert {str(one) for one in kinds if isinstance(one, numba.types.Number)} <= NUMBERS
