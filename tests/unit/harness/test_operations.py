# SPDX-License-Identifier: Apache-2.0
"""Descriptions of operations say of each argument what the signatures of the methods say."""

import inspect
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest

from segproof_harness.structures.kinds import (
    BYTES,
    FLAG,
    INT64,
    NAME,
    PATH,
    Integer,
    Kind,
    OneOf,
    Only,
    Optional,
    Record,
    Row,
    Text,
    Together,
    hints_of,
)
from segproof_harness.structures.structure import STRUCTURE_IDS, OperationKind, structure_named


def operations_of(structure_id: str) -> Iterator[tuple[OperationKind, Any]]:
    """Yield each operation with the method that it calls: of the model, of the implementation."""
    structure = structure_named(structure_id)
    for kind in structure.operations:
        if not kind.sets_clock:
            for method in methods_of(structure, kind):
                yield kind, method


def methods_of(structure: Any, kind: OperationKind) -> Iterator[Any]:
    """Yield what is called of the model and of the implementation; accessors take nothing."""
    owners = (kind.call_model, structure.model_class()), (kind.call_impl, structure.impl_class())
    for call, owner in owners:
        method = call or inspect.getattr_static(owner, kind.name, None)
        if inspect.isfunction(method):
            yield method


def plain_type(kind: Kind) -> Any:
    """Return the type that a signature names for an argument of this kind; None for any."""
    if isinstance(kind, Only):
        return plain_type(kind.kind)
    if isinstance(kind, OneOf):
        return type(kind.values[0])
    known = {"Integer": int, "Flag": bool, "Bytes": bytes, "Text": str, "FileName": str}
    return known.get(type(kind).__name__)


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_arguments_are_those_of_the_signature(structure_id: str) -> None:
    """Each argument is a parameter of that name, and none is missing that has no default."""
    for kind, method in operations_of(structure_id):
        _, *parameters = inspect.signature(method).parameters.values()
        given = kind.argument_names()
        if any(one.kind is one.VAR_KEYWORD for one in parameters):
            continue
        needed = {one.name for one in parameters if one.default is one.empty}
        assert needed <= set(given) <= {one.name for one in parameters}, kind.name


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_kinds_are_those_of_the_signature(structure_id: str) -> None:
    """A signature names a type that fits the kind: a class for a record, its fields by name."""
    for kind, method in operations_of(structure_id):
        for item in kind.parameters:
            if not isinstance(item.kind, Together):
                check_type(item.kind, hints_of(method).get(item.name))


def check_type(kind: Kind, hint: Any) -> None:
    """Check that a kind and a type of a signature go together; a method may refuse a null."""
    if isinstance(kind, Optional):
        inner = [one for one in get_args(hint) if one is not type(None)] or [hint]
        check_type(kind.kind, inner[0])
    elif isinstance(kind, Row):
        check_type(kind.kind, get_args(hint)[0] if get_origin(hint) is tuple else None)
    elif isinstance(kind, Record):
        if isinstance(hint, type):
            values = (None,) * len(kind.fields)
            assert set(kind.by_name(values, {})) <= set(hints_of(hint))
    elif isinstance(hint, type):
        assert hint is plain_type(kind)


REFUSED: list[tuple[Kind, Any, str]] = [
    (INT64, True, "it must be an integer"),
    (INT64, 1 << 63, "it must be from -9223372036854775808 to 9223372036854775807"),
    (FLAG, 1, "it must be true or false"),
    (BYTES, "a", "it must be base64 bytes"),
    (Text(3), b"a", "it must be a text"),
    (Text(3), "abcd", "it must have at most 3 characters"),
    (NAME, "a/b", "it must be the name of a file, without a path"),
    (PATH, "a//b", "it must be the path of a file"),
    (OneOf(("a", "b")), "c", "it must be one of 'a', 'b'"),
    (OneOf((1, 2)), True, "it must be one of 1, 2"),
    (Optional(FLAG), 0, "it must be true or false"),
    (Row(FLAG, 2), 0, "it must be a list"),
    (Row(FLAG, 2), (True,) * 3, "it must have at most 2 items"),
    (Row(FLAG, 2), (True, None), "it[1] must be true or false"),
    (Record(a=FLAG, b=FLAG), (True,), "it must be a list of a, b"),
    (Record(a=FLAG, b=Row(Integer(0, 9), 9)), (True, (1, 10)), "it.b[1] must be from 0 to 9"),
    (Only(INT64, lambda value: value % 2 == 0, "even"), 3, "it must be even"),
    (Only(INT64, lambda value: value % 2 == 0, "even"), None, "it must be an integer"),
]


@pytest.mark.parametrize(("kind", "value", "words"), REFUSED)
def test_a_refusal_names_what_is_wrong(kind: Kind, value: Any, words: str) -> None:
    """A value of another kind is refused with the path to what is wrong, and what it must be."""
    assert kind.refusal("it", value) == words
