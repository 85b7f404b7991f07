# SPDX-License-Identifier: Apache-2.0
"""A State is a value to whoever drives it, and plain Python inside."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import (
    State,
    apply,
    opened,
    outcome_of,
    refusal,
    refuse,
    undone_if_refused,
)


class Leaf(State):
    """A part with a file."""

    def __init__(self, files: Files, name: str) -> None:
        self.files, self.name, self.count = files, name, 0

    def put(self, data: bytes) -> int:
        """Add bytes to the file, and count the calls."""
        self.files.write(self.name, self.files.image(self.name) + data)
        self.count += 1
        return self.count


class Branch(State):
    """A part with parts: one that may be missing, and two others."""

    def __init__(self, files: Files, number: int) -> None:
        self.files, self.number = files, number
        self.first, self.second = Leaf(files, f"{number}.a"), Leaf(files, f"{number}.b")
        self.late: Leaf | None = None

    def load(self) -> None:
        """Make the part that is made late."""
        if self.late is None:
            self.late = Leaf(self.files, f"{self.number}.late")

    def drop(self) -> None:
        """Forget the part that was made late."""
        self.late = None


class Tree(State):
    """Branches and their files."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.branches: tuple[Branch, ...] = tuple(Branch(files, number) for number in range(3))

    def put(self, branch: int, data: bytes) -> int:
        """Write to a leaf of a branch."""
        return self.branches[branch % len(self.branches)].first.put(data)

    def put_and_fail(self, branch: int, data: bytes) -> None:
        """Write, and then fail: what was written stays."""
        self.put(branch, data)
        refuse(ErrorKind.IO_ERROR)

    def put_or_nothing(self, branch: int, data: bytes) -> None:
        """Write one thing, and then wholly or not at all another one."""
        self.put(branch, data)
        with undone_if_refused(self):
            self.put(branch + 1, data)
            self.branches[0].load()
            refuse(ErrorKind.ILLEGAL_STATE)

    def load(self, branch: int, data: bytes) -> None:
        """Let a branch make its late part, and write to it."""
        chosen = self.branches[branch % len(self.branches)]
        chosen.load()
        assert chosen.late is not None
        chosen.late.put(data)

    def drop(self, branch: int, data: bytes) -> None:
        """Let a branch forget its late part."""
        self.branches[branch % len(self.branches)].drop()

    def grow(self, branch: int, data: bytes) -> None:
        """Add a branch."""
        self.branches = (*self.branches, Branch(self.files, len(self.branches)))

    def shrink(self, branch: int, data: bytes) -> None:
        """Take the first branch away, if others are left."""
        self.branches = self.branches[1:] or self.branches

    def turn(self, branch: int, data: bytes) -> None:
        """Change the order of the branches."""
        self.branches = self.branches[::-1]

    def look(self, branch: int, data: bytes) -> int:
        """Change nothing."""
        return sum(len(self.files.image(one.first.name)) for one in self.branches)


def held_by(thing: Any) -> Any:
    """Return all that a State holds, files included, as tuples and dictionaries."""
    if isinstance(thing, tuple):
        return tuple(map(held_by, thing))
    if isinstance(thing, Branch):
        late = None if thing.late is None else held_by(thing.late)
        return thing.number, held_by(thing.first), held_by(thing.second), late
    if isinstance(thing, Leaf):
        return thing.name, thing.count, thing.files.image(thing.name)
    assert isinstance(thing, Tree)
    return held_by(thing.branches), dict(thing.files.images)


OPERATIONS = (
    "put put_and_fail put_or_nothing load drop grow shrink turn look".split()  # noqa: SIM905
)


@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 4), st.binary(max_size=3))))
def test_apply_does_what_the_method_does_to_a_copy(calls: list[tuple[str, int, bytes]]) -> None:
    """And the state before is as it was, in all that it holds, each part looked at or not."""
    copied, state = Tree(Files()), Tree(Files())
    states = [(state, held_by(state))]
    for name, branch, data in calls:
        copied = deepcopy(copied)
        expected = outcome_of(getattr(copied, name), branch, data)
        step = apply(state, name, branch, data)
        assert expected == step.outcome
        assert held_by(copied) == held_by(step.after)
        state = step.after
        states.append((state, held_by(state)))
        assert held_by(states[-2][0]) == states[-2][1]
    assert [held for _, held in states] == [held_by(one) for one, _ in states]


def test_all_or_nothing_keeps_what_was_done_before() -> None:
    """The write before the block stays; the block's write and its new part are gone."""
    step = apply(Tree(Files()), "put_or_nothing", 0, b"x")
    assert Raised(ErrorKind.ILLEGAL_STATE) == step.outcome
    assert {"0.a": b"x"} == step.after.files.images
    assert [1, 0, 0] == [one.first.count for one in step.after.branches]
    assert step.after.branches[0].late is None


def test_equal_by_value() -> None:
    """Two ways to one value are equal; another count or another file is another value."""
    tree = Tree(Files())
    one = apply(apply(tree, "put", 0, b"x").after, "put", 1, b"y").after
    other = apply(apply(tree, "put", 1, b"y").after, "put", 0, b"x").after
    assert one == other
    assert one != apply(other, "put", 0, b"").after
    assert tree != one
    assert tree == Tree(Files())
    assert Tree(Files()) != Tree(Files(now_ms=1))


def test_what_changed_nothing_leaves_the_same_state() -> None:
    """By a query, by a refused change that was undone, and by a change that was taken back."""
    tree = Tree(Files())
    assert apply(tree, "look", 0, b"").after is tree

    def there_and_back(draft: Tree) -> None:
        """Turn twice."""
        draft.turn(0, b"")
        draft.turn(0, b"")

    assert apply(tree, there_and_back).after is tree


def test_value_cannot_be_changed() -> None:
    """Nor can any part of it, whether it was touched by the operation or not."""
    after = apply(Tree(Files()), "put", 0, b"x").after
    for value in (after, after.files, after.branches[0].first, after.branches[2].second):
        with pytest.raises(TypeError, match="through apply"):
            value.now_ms = 5


def test_every_part_has_the_files_of_the_whole() -> None:
    """Also the parts that the operation did not touch, at whatever depth."""
    after = apply(apply(Tree(Files()), "put", 0, b"x").after, "put", 1, b"y").after
    for one in after.branches:
        assert one.files is after.files
        assert one.second.files is after.files


def test_answer_that_is_a_state_is_an_error_of_the_model() -> None:
    """It would be a draft, which nobody may hold."""
    with pytest.raises(TypeError, match="answers a State"):
        apply(Tree(Files()), lambda draft: draft.branches[0])


def test_opening_that_fails_leaves_the_files() -> None:
    """As far as they were changed."""

    class Failing(Leaf):
        """Makes its file, and fails."""

        def __init__(self, files: Files) -> None:
            super().__init__(files, "a")
            self.put(b"x")
            refuse(ErrorKind.CORRUPT_INDEX)

    before = Files()
    step: Any = opened(Failing, before)
    assert (Raised(ErrorKind.CORRUPT_INDEX), {"a": b"x"}) == (step.outcome, step.after.images)
    assert {} == before.images


def test_refusal_is_handed_over() -> None:
    """What was changed before it stays changed."""
    leaf = Leaf(Files(), "a")

    def fail() -> None:
        """Write and fail."""
        leaf.put(b"x")
        refuse(ErrorKind.NULL)

    found = refusal(fail)
    assert found is not None
    assert (ErrorKind.NULL, 1) == (found.kind, leaf.count)
    assert refusal(lambda: None) is None


def test_missing_attribute_is_named() -> None:
    """In the words that Python has for it."""
    with pytest.raises(AttributeError, match="Leaf has no size"):
        apply(Leaf(Files(), "a"), "size")
