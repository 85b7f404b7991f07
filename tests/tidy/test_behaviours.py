# SPDX-License-Identifier: Apache-2.0
"""The form of behaviours: what each says of itself, and the order in which they are written."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from segproof_harness.laws.every_law import LAWS, RETIRED
from segproof_model import releases
from segproof_model.kafka.format.record_deviations import HugePreallocationIsRefused
from segproof_model.language.behaviours import Behaviour
from segproof_model.laws.register import law, laws_of
from segproof_model.rocketmq.broker.index_service_deviations import OpeningReadsHeader
from segproof_model.rocketmq.format.index_file import IndexFile
from segproof_model.rocketmq.format.index_file_deviations import SizeIsChecked

MODULES = {
    name.removeprefix("segproof_model."): sys.modules[name]
    for name in sorted({one.__module__ for one in releases.BEHAVIOURS})
}
MODEL = Path(releases.__file__).parent
LINES_MAX = 400
MEDIAN_MAX = 20
SENTENCE_ENDS = re.compile(r"[.;!?](?= |$)")
WITHOUT_LAW = (HugePreallocationIsRefused,)
"""What no law speaks of."""


def behaviours_of(module: ModuleType) -> list[type[Behaviour]]:
    """Return the behaviours of a module, as they are written down."""
    return [one for one in Behaviour.known if one.__module__ == module.__name__]


def methods_of(module: ModuleType) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the methods of nested classes, by behaviour and class."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    for behaviour in (one for one in tree.body if isinstance(one, ast.ClassDef)):
        for change in (one for one in behaviour.body if isinstance(one, ast.ClassDef)):
            for method in (one for one in change.body if isinstance(one, ast.FunctionDef)):
                yield f"{behaviour.name}.{change.name}.{method.name}", method


def is_override(method: ast.FunctionDef) -> bool:
    """Return whether a method says that it is one of the class above."""
    return any(isinstance(one, ast.Name) and one.id == "override" for one in method.decorator_list)


def test_every_module_of_behaviours_is_imported() -> None:
    """A module that `releases` does not import is loaded too late, and then no release has it."""
    written = {
        ".".join(("segproof_model", *path.relative_to(MODEL).with_suffix("").parts))
        for pattern in ("*_releases*.py", "*_deviations.py")
        for path in MODEL.rglob(pattern)
    }
    assert written <= imported_by(Path(releases.__file__))
    assert written == {module.__name__ for module in MODULES.values()}


def test_behaviour_says_what_it_is() -> None:
    """A sentence, who has it, and what it changes, by the name of the class that it changes."""
    for behaviour in releases.BEHAVIOURS:
        assert behaviour.sentence().endswith("."), behaviour
        assert ["."] == SENTENCE_ENDS.findall(behaviour.sentence()), behaviour
        assert behaviour.releases is not None or behaviour.of_segproof, behaviour
        changes = list(behaviour.changes())
        assert changes, behaviour
        for change in changes:
            assert change.__name__ in {base.__name__ for base in change.__bases__}, change


def test_behaviour_names_the_laws_that_it_bends() -> None:
    """Laws that there are, and each that does not judge a release because of it."""
    for behaviour in releases.BEHAVIOURS:
        bent = {law.law_id for law in LAWS.values() if behaviour in law.unless}
        assert bent <= set(behaviour.laws) <= {*LAWS, *RETIRED}, behaviour
        assert bool(behaviour.laws) != (behaviour in WITHOUT_LAW), behaviour


def test_law_is_bent_by_behaviours_only() -> None:
    """A tuple of them inside of another one would bend nothing."""
    nested: Any = (OpeningReadsHeader, (SizeIsChecked,))
    with pytest.raises(TypeError, match="TIDY-1"):
        law("TIDY-1", IndexFile, "segproof", unless=nested)
    with pytest.raises(TypeError, match="TIDY-1"):
        law("TIDY-1", IndexFile, "segproof", only=nested)
    enter = laws_of(lambda step: step, IndexFile, "segproof", "load")
    with pytest.raises(TypeError, match="TIDY-1"):
        enter("TIDY-1", "segproof", *nested)(lambda step: True)
    assert "TIDY-1" not in LAWS


def test_method_is_one_of_the_class_above_or_says_what_it_is() -> None:
    """So a misspelt name is found by the type checker, and nothing is without a word."""
    silent = [
        method
        for module in MODULES.values()
        for method, node in methods_of(module)
        if node.name != "__init__" and not is_override(node) and not ast.get_docstring(node)
    ]
    assert [] == silent


def test_newest_is_written_first() -> None:
    """The order in which behaviours are written down is that in which they stand on each other."""
    for name, module in MODULES.items():
        ranks = [releases.BEHAVIOURS.index(one) for one in behaviours_of(module)]
        assert all(one < two for one, two in pairwise(ranks)), name


def began(behaviour: type[Behaviour]) -> tuple[str, str | None]:
    """Return with which release a behaviour began; None: with segproof."""
    span = behaviour.releases
    return behaviour.system(), None if span is None else span.newest


def test_modules_are_in_the_order_of_their_names() -> None:
    """Behaviours that began with one release stand on each other by the names of their modules."""
    for one, two in combinations(releases.BEHAVIOURS, 2):
        assert began(one) != began(two) or one.__module__ <= two.__module__, (one, two)


def methods_by_class(behaviour: type[Behaviour]) -> set[tuple[str, str]]:
    """Return the names of methods that a behaviour changes, each with that of its class."""
    return {
        (change.__name__, name)
        for change in behaviour.changes()
        for name, held in vars(change).items()
        if inspect.isfunction(held)
    }


def test_order_of_modules_decides_once() -> None:
    """Where two modules change one method at one rank, their names say what goes on top."""
    pairs = [
        (one, two)
        for one, two in combinations(releases.BEHAVIOURS, 2)
        if began(one) == began(two)
        and one.__module__ != two.__module__
        and methods_by_class(one) & methods_by_class(two)
    ]
    assert [(OpeningReadsHeader, SizeIsChecked)] == pairs


def test_file_is_read_at_one_sitting() -> None:
    """A longer one is split by line of releases."""
    for name, module in MODULES.items():
        assert len(Path(str(module.__file__)).read_text().splitlines()) <= LINES_MAX, name


def test_behaviours_are_short() -> None:
    """At the median, with their sentence and all."""
    lengths = sorted(len(inspect.getsource(one).splitlines()) for one in releases.BEHAVIOURS)
    assert lengths[len(lengths) // 2] <= MEDIAN_MAX


def imported_by(path: Path) -> set[str]:
    """Return the full names of the modules, and of what else, a file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [(node.module or "", alias.name) for node in found for alias in node.names]
    return {module for module, _ in names} | {f"{module}.{name}" for module, name in names}


def test_structures_know_no_behaviour() -> None:
    """What the newest release does is in its file, which imports no behaviours.

    import-linter's contracts can't say this: they know no part of a module's name.
    """
    listed = {module.__name__ for module in MODULES.values()}
    floors = [path for system in ("kafka", "rocketmq") for path in (MODEL / system).glob("*/*.py")]
    structures = [path for path in floors if not re.search("_releases|_deviations", path.stem)]
    assert len(structures) > 50
    for path in structures:
        forbidden = listed | {"segproof_model.language.behaviours"}
        assert set() == imported_by(path) & forbidden, path


OF_OTHERS = re.compile(
    r"(?:\b(?:up to|since|until)|(?<!those )\bbefore) \d+\.\d|(?<!impl/)\bsegproof\b(?!_)", re.I
)
"""Words on older releases, or on segproof but for the folder of the twin; `those before 2.3` is a
file of behaviours."""


def test_structures_speak_of_no_other_release() -> None:
    """What older releases and segproof do otherwise is said beside their behaviours."""
    floors = [path for system in ("kafka", "rocketmq") for path in (MODEL / system).glob("*/*.py")]
    for path in floors:
        if not re.search("_releases|_deviations", path.stem):
            text = " ".join(path.read_text(encoding="utf-8").split())
            assert [] == OF_OTHERS.findall(text), path
