# SPDX-License-Identifier: Apache-2.0
"""Outcomes: equal answers become equal, different ones and unknown errors never do."""

import inspect
from typing import Any

import numpy as np
import pytest

from segproof import errors
from segproof_harness.structures.outcomes import Outcome, normalise, of_error, of_model, outcome_of
from segproof_model.kafka.format.offset_index import OffsetPosition
from segproof_model.language.outcomes import ErrorKind, Raised

KINDS = {str(kind) for kind in ErrorKind}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (OffsetPosition(1, 2), (1, 2)),
        ([OffsetPosition(1, 2)], ((1, 2),)),
        ((np.array([1, 2]), np.array([3])), ((1, 2), (3,))),
        (np.int32(7), 7),
        (bytearray(b"a"), b"a"),
        (memoryview(b"a"), b"a"),
        (None, None),
    ],
)
def test_plain_form(value: Any, expected: Any) -> None:
    """Tuples, lists, arrays and views of one content have one plain form."""
    assert expected == normalise(value)


def test_types_count() -> None:
    """True is not 1, and None is not an error."""
    assert Outcome(1) != Outcome(True)
    assert Outcome(None) != Outcome(error="io-error")
    assert Outcome((1, 2)) == Outcome((1, 2))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError("x"), "file-not-found"),
        (PermissionError("x"), "io-error"),
        (OSError("x"), "io-error"),
        (IndexError("x"), "index-error"),
        (AssertionError("x"), "unexpected:AssertionError"),
        (KeyError("x"), "unexpected:KeyError"),
        (TimeoutError("x"), "unexpected:TimeoutError"),
        (errors.IndexFullError("x"), "invalid-argument"),
    ],
)
def test_kinds_of_builtin_errors(error: Exception, kind: str) -> None:
    """Builtin errors have the kinds of the specification; what has none equals no model's."""
    outcome = of_error(error)
    assert kind == outcome.error
    assert (kind in KINDS) == (not kind.startswith("unexpected:"))


def test_every_error_class_has_a_kind_of_the_model() -> None:
    """Each class of the implementation has a kind, and the model knows it."""
    classes = [item for _, item in inspect.getmembers(errors, inspect.isclass)]
    kinds = {item.kind for item in classes if issubclass(item, errors.SegproofError)}
    assert kinds <= KINDS


def test_model_and_implementation_meet() -> None:
    """A raised kind of the model equals the error of the implementation."""

    def fail() -> None:
        raise errors.InvalidOffsetError("x")

    assert of_model(Raised(ErrorKind.INVALID_OFFSET)) == outcome_of(fail)
