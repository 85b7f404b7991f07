# SPDX-License-Identifier: Apache-2.0
"""Behaviours change classes, in their order, and a release is a list of them."""

import pytest

from segproof_model.language import behaviours
from segproof_model.language.behaviours import Behaviour, Release, each, guarded, override
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, State, refuse, undone_if_refused


class Counter(State):
    """Counts."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> int:
        """Count one more."""
        self.count += 1
        return self.count

    def fail(self) -> None:
        """Count, and fail."""
        self.add()
        refuse(ErrorKind.IO_ERROR)


class Named(Counter):
    """A counter with a name, and another one."""

    def other(self) -> Counter:
        """Return a counter of the same release."""
        return self.kind(Counter)()

    def name(self) -> str:
        """Return its name."""
        return f"named {self.add()}"


PlainCounter = Counter
PlainNamed = Named
"""By these names the classes that a behaviour changes are known inside of it."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> tuple[type[Behaviour], ...]:
    """Two behaviours on the counter and one on the named one, which no release knows."""
    monkeypatch.setattr(behaviours.Behaviour, "known", [])

    class AddsTwo(Behaviour):
        """It counts by two."""

        class Counter(PlainCounter):
            """The counter."""

            @override
            def add(self) -> int:
                super().add()
                return super().add()

    class AddsTenFold(Behaviour):
        """It counts ten times as often as before."""

        class Counter(PlainCounter):
            """The counter."""

            @override
            def add(self) -> int:
                return [super(AddsTenFold.Counter, self).add() for _ in range(10)][-1]

        class Named(PlainNamed):
            """The named one."""

            @override
            def name(self) -> str:
                return super().name().upper()

    return AddsTwo, AddsTenFold


def test_later_behaviours_stand_on_earlier_ones(made: tuple[type[Behaviour], ...]) -> None:
    """And what is said of a base class holds for the class that is derived from it."""
    release = Release("old", made, made)
    assert 20 == release.kind(Counter)().add()
    assert "NAMED 20" == release.kind(Named)().name()
    assert 20 == release.kind(Named)().other().add()
    assert 1 == Named().other().add()


def test_release_with_a_behaviour_flipped(made: tuple[type[Behaviour], ...]) -> None:
    """Taken away, or added where it belongs."""
    two, ten = made
    release = Release("old", made, made)
    assert (ten,) == release.flipped(two).behaviours
    assert made == release.flipped(two).flipped(two).behaviours
    assert [two] == behaviours.differences(release, release.flipped(two))
    assert "It counts by two." == two.sentence()
    assert list(made) == behaviours.Behaviour.known


def test_class_of_a_release_is_one_class(made: tuple[type[Behaviour], ...]) -> None:
    """So its values are of one kind, and are found equal."""
    release = Release("old", made, made)
    assert release.kind(Counter) is release.kind(Counter)
    assert release.kind(Counter)() == release.kind(Counter)()
    assert release.kind(Counter)() != Counter()


def test_guard_comes_first_and_context_is_around() -> None:
    """Of methods that the class has words for, and of those that it has not."""

    def check(counter: Counter) -> None:
        """Refuse above two."""
        if counter.count > 2:
            refuse(ErrorKind.OUT_OF_RANGE)

    @guarded("add", check)
    class Guarded(Counter):
        """Counts up to three."""

    @each("fail", undone_if_refused)
    class Undone(Guarded):
        """Fails wholly."""

        @override
        def add(self) -> int:
            return super().add() + 100

    counter = Undone()
    with pytest.raises(Refused, match="io-error"):
        counter.fail()
    assert [0, 101, 102, 103] == [counter.count, counter.add(), counter.add(), counter.add()]
    with pytest.raises(Refused, match="out-of-range"):
        counter.add()


def test_name_that_no_method_has_is_an_error_of_the_model() -> None:
    """Where the class is made."""
    with pytest.raises(AssertionError, match="has no ad"):
        guarded("ad", undone_if_refused)(Counter)
