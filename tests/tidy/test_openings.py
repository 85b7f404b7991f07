# SPDX-License-Identifier: Apache-2.0
"""Each class that opens files only reads them, unless the caller asks for more by two keywords."""

import importlib
import inspect
from typing import Any

import pytest

# What can only be read, and what makes files by other calls than its opening.
READ_ONLY = {"CommitLog"}
WITHOUT_CREATE = {"ProducerStateManager"}
KEYWORDS = ("writable", "create")


def openings(package: str) -> dict[str, dict[str, inspect.Parameter]]:
    """Return the parameters by which each class of a package is opened, if it opens files."""
    module = importlib.import_module(package)
    found: dict[str, dict[str, inspect.Parameter]] = {}
    for name in module.__all__:
        public: Any = getattr(module, name)
        if isinstance(public, type) and not issubclass(public, tuple):
            parameters = inspect.signature(getattr(public, "open", public)).parameters
            if "files" in parameters and name not in READ_ONLY:
                found[name] = dict(parameters)
    return found


@pytest.mark.parametrize(("package", "count"), [("segproof.kafka", 12), ("segproof.rocketmq", 5)])
def test_opening_only_reads_unless_it_is_asked_for_more(package: str, count: int) -> None:
    """Both words are keywords and False, so no place in a call can mean writing by mistake."""
    found = openings(package)
    assert count <= len(found)
    for name, parameters in found.items():
        for keyword in KEYWORDS[: 1 if name in WITHOUT_CREATE else 2]:
            assert keyword in parameters, name
            one = parameters[keyword]
            assert (inspect.Parameter.KEYWORD_ONLY, False) == (one.kind, one.default), name
        assert not {"mutable", "read_only", "readonly"} & parameters.keys(), name


@pytest.mark.parametrize(
    "package", ["segproof.kafka", "segproof.rocketmq", "segproof.lookup", "segproof.store_lookup"]
)
def test_each_class_that_opens_files_shows_what_it_is(package: str) -> None:
    """The address of an object in memory helps no reader of a log or a notebook."""
    module = importlib.import_module(package)
    classes = (getattr(module, name) for name in module.__all__)
    for one in (one for one in classes if isinstance(one, type)):
        if "files" in inspect.signature(one).parameters or hasattr(one, "open"):
            assert any("__repr__" in vars(base) for base in one.__mro__[:-1]), one
