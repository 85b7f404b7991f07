# SPDX-License-Identifier: Apache-2.0
"""Structures of several files: opened on a directory, compared and shrunk file by file."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from segproof.files import Files
from segproof_harness.histories.compare import Comparison, Divergence
from segproof_harness.histories.shrink import shrink
from segproof_harness.histories.subject_names import subject_named
from segproof_harness.histories.traces import Trace
from segproof_harness.histories.workloads import make_history
from segproof_harness.structures.kafka.log_drawing import ODD_NAMES, opening_of_log
from segproof_harness.structures.kinds import BYTES
from segproof_harness.structures.operations import Operation, Value
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import (
    OperationKind,
    Parameter,
    Structure,
    structure_named,
)
from segproof_harness.subjects.implementation import ImplementationSubject
from segproof_model.kafka.format.offset_index import OffsetIndex
from segproof_model.language.files import Files as ModelFiles
from segproof_model.language.states import State, apply, opened
from segproof_model.releases import SEGPROOF

ONE, TWO = "one", "two"


class Pair(State):
    """Two files that always hold the same bytes."""

    def __init__(self, files: ModelFiles) -> None:
        self.files = files

    def append(self, data: bytes) -> None:
        """Append to both."""
        for name in (ONE, TWO):
            self.files.write(name, self.files.image(name) + data)

    def close(self) -> None:
        """Change nothing."""


class PairOfFiles:
    """The same through files."""

    names: tuple[str, ...] = (ONE, TWO)

    def __init__(self, directory: str, files: Files) -> None:
        self.directory = directory
        self.files = files

    def append(self, data: bytes) -> None:
        """Append to both."""
        for name in self.names:
            file = self.files.open(f"{self.directory}/{name}", writable=True, create=True)
            file.pwrite(data, file.size())
            file.close()

    def close(self) -> None:
        """Do nothing."""


class HalfAPair(PairOfFiles):
    """Planted: the second file is left as it is."""

    names = (ONE,)


def _open_impl(impl_class: Any, arguments: Mapping[str, Any], files: Any) -> Any:
    return impl_class(**arguments, files=files)


PAIR = Structure(
    structure_id="pair",
    model=f"{__name__}:Pair",
    impl=f"{__name__}:PairOfFiles",
    opening=(),
    draw_setup=lambda choose: Setup({}),
    operations=(
        OperationKind(
            "append", (Parameter("data", BYTES, lambda choose, _: b"x"),), laws=("SEG-2",)
        ),
        OperationKind("close", laws=("SEG-2",), ends=True),
    ),
    observed=(),
    sometimes={},
    is_usable=lambda state: True,
    open_model=lambda arguments, files, release: opened(release.kind(Pair), files),
    open_impl=_open_impl,
    takes_directory=True,
    laws=("SEG-1",),
)
FILES = {ONE: b"1", TWO: b"2", "three": b"3"}
OPERATIONS = (Operation("append", {"data": b"x"}), Operation("crash_reopen"))


def run(implementation: type[PairOfFiles], real: bool) -> Divergence | None:
    """Run one history with three files on a class."""
    subject = ImplementationSubject(PAIR, implementation, real=real)
    comparing = Comparison(PAIR, "segproof", [subject], image_every=1)
    try:
        return comparing.run(Trace("pair", "segproof", Setup({}, FILES), OPERATIONS))
    finally:
        subject.stop()


@pytest.mark.parametrize("real", [False, True])
def test_every_file_of_the_directory_is_compared(real: bool) -> None:
    """The object gets its directory, and each file of it is compared with the model's."""
    assert run(PairOfFiles, real) is None


@pytest.mark.parametrize("real", [False, True])
def test_the_file_that_differs_is_named(real: bool) -> None:
    """A divergence in one of several files names it and the place."""
    found = run(HalfAPair, real)
    assert found is not None
    assert (TWO, 1, 1) == (found.path, found.position, found.step)
    assert (b"x", b"") == (found.expected, found.actual)


def test_what_no_law_speaks_of_is_told_under_the_first_law() -> None:
    """A difference that is seen after an operation without laws, such as `now`, is no crash."""
    append, close = PAIR.operations
    lawless = replace(PAIR, operations=(replace(append, laws=()), close))
    subject = ImplementationSubject(lawless, HalfAPair, real=False)
    comparing = Comparison(lawless, "segproof", [subject], image_every=1)
    found = comparing.run(Trace("pair", "segproof", Setup({}, FILES), OPERATIONS))
    assert found is not None
    assert ("append", "SEG-1") == (found.operation.name, found.law)


def test_shrinking_drops_the_files_that_do_not_matter() -> None:
    """Of three files at the beginning only the one that is needed stays."""
    trace = replace(make_history("offset-index", "segproof", 3, 5), setup=Setup({}, FILES))

    def diverges(candidate: Trace) -> Divergence | None:
        if TWO not in candidate.setup.files or not candidate.operations:
            return None
        return Divergence("x", 1, candidate.operations[0], "SEG-1", "answer", None, None)

    assert {TWO: b"2"} == dict(shrink(trace, diverges).setup.files)


def test_a_law_that_a_part_breaks_is_told() -> None:
    """The states inside a state are held against the laws of their own structures."""
    index: Any = opened(SEGPROOF.kind(OffsetIndex), ModelFiles(), "x", 0, 80).after
    wrong = apply(index, lambda draft: setattr(draft, "last_offset", 7)).after
    sound = replace(PAIR, parts=lambda state: (index,))
    assert Comparison(sound, "segproof", []).start(Setup({})) is None
    broken = replace(PAIR, parts=lambda state: (index, wrong))
    found = Comparison(broken, "segproof", []).start(Setup({}))
    assert found is not None
    assert ("law", "OFFIDX-3") == (found.what, found.law)


def test_the_laws_of_steps_are_judged() -> None:
    """Only openings were held against the laws of steps: no other step reached the judge."""
    structure = structure_named("offset-index")
    lazy = replace(
        structure,
        operations=tuple(
            replace(kind, call_model=lambda draft: None) if kind.name == "truncate" else kind
            for kind in structure.operations
        ),
    )
    arguments: dict[str, Value] = {
        "file": "x",
        "base_offset": 0,
        "max_index_size_bytes": 80,
        "writable": True,
    }
    append = Operation("append", {"offset": 5, "position": 7})
    trace = Trace("", "segproof", Setup(arguments), (append, Operation("truncate")))
    assert Comparison(structure, "segproof", []).run(trace) is None
    found = Comparison(lazy, "segproof", []).run(trace)
    assert found is not None
    assert ("law", "OFFIDX-19", 2) == (found.what, found.law, found.step)


@pytest.mark.checks("FILE-2", "LOAD-2", "LOAD-18")
@pytest.mark.parametrize("name", [*ODD_NAMES, "5.log.swap", "foo.snapshot"])
def test_odd_names_of_a_log(name: str) -> None:
    """With a file of this name the model and the implementation load a log, or leave all as it was.

    The implementation took `foo.cleaned` for nobody's file, and refused `0.log.deleted`.
    """
    setup = Setup(opening_of_log(), {name: b"", f"{0:020d}.log": b""})
    structure = structure_named("partition-log")
    comparing = Comparison(structure, "segproof", [subject_named("impl", structure)])
    assert comparing.run(Trace(structure.structure_id, "segproof", setup, ())) is None
