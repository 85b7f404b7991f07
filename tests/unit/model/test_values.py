# SPDX-License-Identifier: Apache-2.0
"""What the model puts in place of functions of the standard library does the same as they."""

import dataclasses
import importlib
import pkgutil
from typing import Any

import pytest

import segproof_model
from segproof_model.laws.remembering import KEPT_MAX, remembered, remembered_by
from segproof_model.rocketmq.index_header import IndexHeader
from segproof_model.values import replace


def classes() -> list[type]:
    """Return every dataclass of the model's structures."""
    found: dict[str, type] = {}
    for package in ("kafka", "rocketmq"):
        path = [f"{segproof_model.__path__[0]}/{package}"]
        for module in pkgutil.iter_modules(path):
            name = f"segproof_model.{package}.{module.name}"
            for one in vars(importlib.import_module(name)).values():
                if isinstance(one, type) and dataclasses.is_dataclass(one):
                    found[f"{one.__module__}.{one.__qualname__}"] = one
    return list(found.values())


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__qualname__)
def test_every_state_can_be_replaced(kind: Any) -> None:
    """Each field, with the others as they were; the old state stays, and so does its class."""
    names = [item.name for item in dataclasses.fields(kind)]
    state = kind(**{name: f"old {name}" for name in names})
    for name in names:
        changed = replace(state, **{name: "new"})
        assert dataclasses.replace(state, **{name: "new"}) == changed
        assert kind is type(changed)
        assert f"old {name}" == getattr(state, name)
    assert state == replace(state)
    assert state is not replace(state)


def test_there_are_many_such_classes() -> None:
    """The list above is not empty by a slip."""
    assert len(classes()) > 30


def test_a_name_that_is_no_field_is_refused() -> None:
    """A slip in a name is no silent nothing."""
    wrong: dict[str, Any] = {"no_such": 1}
    with pytest.raises(KeyError):
        replace(IndexHeader(), **wrong)


def test_what_is_remembered_is_asked_once() -> None:
    """As long as not too much else is asked; equal values that are others are asked anew."""
    asked = []

    @remembered
    def ask(value: list[int], more: object = None) -> int:
        asked.append(value)
        return len(asked)

    values = [[number] for number in range(KEPT_MAX)]
    assert list(range(1, KEPT_MAX + 1)) == [ask(value) for value in values]
    assert list(range(1, KEPT_MAX + 1)) == [ask(value) for value in values]
    assert KEPT_MAX + 1 == ask([0])
    assert KEPT_MAX + 2 == ask(values[0])
    assert KEPT_MAX + 3 == ask(values[0], values)


def test_it_may_depend_on_less_than_it_is_given() -> None:
    """Two states that share what matters share the answer."""
    shared, asked = ["shared"], []

    @remembered_by(lambda pair: (pair[0],))
    def ask(pair: tuple[list[str], int]) -> str:
        asked.append(pair)
        return pair[0][0]

    assert "shared" == ask((shared, 1)) == ask((shared, 2))
    assert [(shared, 1)] == asked
