# SPDX-License-Identifier: Apache-2.0
"""One writer and several reader threads: a lookup gives the answer before or the answer after.

A smoke test on whatever schedules the interpreter makes, with the shortest switch interval. The
writer notes each state before it makes it. What a reader sees must be the answer in some state from
the last one made before its lookup began to the last one noted when it ended.
"""

import random
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from segproof.errors import IndexClosedError
from segproof.files import REAL_FILES, Files
from segproof.kafka import offset_index, time_index
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.time_index import TimeIndex
from segproof_harness.files.memory_files import MemoryFiles

READERS = 3
LIVES = 20
CHANGES = 80
BASE = 100
CLOSED = "closed"
Numbers = tuple[int, ...]
"""The entries of a state; number n stands for offset BASE + n."""


class OffsetLookups:
    """An offset index, looked up by offset."""

    nothing = (BASE, 0)

    def __init__(self, path: str, files: Files) -> None:
        self.index = OffsetIndex(f"{path}.index", BASE, 8 * 40, create=True, files=files)

    def entry(self, number: int) -> tuple[int, int]:
        """Return the entry of a number."""
        return BASE + number, number * 10

    def append(self, number: int) -> None:
        """Append the entry."""
        self.index.append(*self.entry(number))

    def look(self, number: int) -> tuple[int, ...]:
        """Look the number up."""
        return tuple(self.index.lookup(BASE + number))

    def look_many(self, number: int) -> tuple[int, int]:
        """Look the number up in bulk."""
        offsets, positions = self.index.lookup_many([BASE + number])
        return int(offsets[0]), int(positions[0])


class TimeLookups:
    """A time index, looked up by timestamp."""

    nothing = (-1, BASE)

    def __init__(self, path: str, files: Files) -> None:
        self.index = TimeIndex(f"{path}.timeindex", BASE, 12 * 41, create=True, files=files)

    def entry(self, number: int) -> tuple[int, int]:
        """Return the entry of a number."""
        return 1000 + number, BASE + number

    def append(self, number: int) -> None:
        """Append the entry."""
        self.index.maybe_append(*self.entry(number))

    def look(self, number: int) -> tuple[int, ...]:
        """Look the number up."""
        return tuple(self.index.lookup(1000 + number))

    def look_many(self, number: int) -> tuple[int, int]:
        """Look the number up in bulk."""
        timestamps, offsets = self.index.lookup_many([1000 + number])
        return int(timestamps[0]), int(offsets[0])


@dataclass
class Story:
    """What the writer did, and what readers saw that it does not explain."""

    noted: list[Numbers | None] = field(default_factory=lambda: [()])
    """Every state, noted before it is made; None: closed."""
    made: int = 0
    """The last state that was made."""
    looked: int = 0
    failures: list[str] = field(default_factory=list)

    def change(self, after: Numbers | None, make: Callable[[], Any]) -> None:
        """Note a state, then make it."""
        self.noted.append(after)
        make()
        self.made = len(self.noted) - 1


def answer(kind: Any, state: Numbers | None, number: int) -> Any:
    """Return what a lookup answers in one state."""
    if state is None:
        return CLOSED
    below = [known for known in state if known <= number]
    return kind.entry(max(below)) if below else kind.nothing


def read(kind: Any, story: Story, stop: threading.Event, seed: int) -> None:
    """Look up until told to stop; note what no state explains."""
    drawn = random.Random(seed)
    count = 0
    while not stop.is_set() and not story.failures:
        number = drawn.randrange(120)
        first = story.made
        try:
            seen: Any = kind.look_many(number) if count % 8 == 7 else kind.look(number)
        except IndexClosedError:
            seen = CLOSED
        except Exception as error:
            seen = repr(error)
        possible = story.noted[first:]
        if seen not in [answer(kind, state, number) for state in possible]:
            story.failures.append(f"looked for {number} in {possible}, saw {seen}")
        count += 1
    story.looked += count


def write(kind: Any, story: Story, seed: int) -> None:
    """Append, truncate, resize and reset at random, then close."""
    drawn = random.Random(seed)
    state: Numbers = ()
    index = kind.index
    for _ in range(CHANGES):
        action = drawn.choice(("append",) * 8 + ("truncate_to", "resize", "truncate", "reset"))
        if action == "append" and not index.is_full:
            number = (state[-1] if state else 0) + drawn.randrange(1, 4)
            state = (*state, number)
            story.change(state, lambda: kind.append(number))  # noqa: B023 - called at once
        elif action == "truncate_to" and state:
            number = drawn.choice(state)
            state = tuple(known for known in state if known < number)
            story.change(state, lambda: index.truncate_to(BASE + number))  # noqa: B023 - at once
        elif action == "resize":
            size = (len(state) + drawn.randrange(1, 30)) * index.ENTRY_SIZE
            story.change(state, lambda: index.resize(size))  # noqa: B023 - called at once
        elif action in ("truncate", "reset"):
            state = ()
            story.change(state, getattr(index, action))
    story.change(None, index.close)


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kind_class", [OffsetLookups, TimeLookups])
@pytest.mark.parametrize("where", ["memory", "real"])
def test_before_or_after(kind_class: Any, where: str, tmp_path: Path) -> None:
    """Through append, truncate, resize, reset and close, each lookup is explained by one state."""
    looked = 0
    for life in range(LIVES):
        files: Files = REAL_FILES if where == "real" else MemoryFiles()
        kind = kind_class(f"{tmp_path}/{life}" if where == "real" else "/0", files)
        story, stop = Story(), threading.Event()
        readers = [
            threading.Thread(target=read, args=(kind, story, stop, life * READERS + number))
            for number in range(READERS)
        ]
        for reader in readers:
            reader.start()
        try:
            write(kind, story, life)
        finally:
            stop.set()
            for reader in readers:
                reader.join()
        assert [] == story.failures
        looked += story.looked
    assert looked > LIVES * READERS


@pytest.mark.parametrize("kind_class", [OffsetLookups, TimeLookups])
def test_slot_written_over_during_a_search(
    kind_class: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Truncation and an append between the search and the reading of its slot begin it again.

    Else a lookup would answer an entry behind its target, and the reader of a log skip records.
    """
    files = MemoryFiles()
    kind = kind_class("/0", files)
    for number in (1, 2, 3):
        kind.append(number)
    searched = 0

    def interrupt(kernel: Any) -> Callable[..., Any]:
        right = kernel.interpreted

        def search(*arguments: Any) -> Any:
            nonlocal searched
            slot = right(*arguments)
            searched += 1
            if searched == 1:
                kind.index.truncate_to(BASE + 2)
                kind.append(50)
            return slot

        return search

    module = offset_index if kind_class is OffsetLookups else time_index
    monkeypatch.setattr(module, "lower_slot", SimpleNamespace(call=interrupt(module.lower_slot)))
    assert kind.entry(1) == kind.look(2)
    assert 2 == searched
