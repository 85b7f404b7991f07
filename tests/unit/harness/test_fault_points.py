# SPDX-License-Identifier: Apache-2.0
"""Calls that fail in turn: which do, what is judged then, and that our structures pass."""

import errno
import random
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from segproof.errors import SegproofError
from segproof.kafka import PartitionLog
from segproof.rocketmq.index_service import IndexService
from segproof_harness.crashes.explore import Explored, Settings, drawn_history
from segproof_harness.crashes.fault_points import FAULT_KINDS, FailingFiles, explore_faults
from segproof_harness.crashes.kafka.log_manager import LogManagerWorld
from segproof_harness.crashes.kafka.partition_log import PartitionLogWorld, Promised
from segproof_harness.crashes.rocketmq.message_index import MessageIndexWorld
from segproof_harness.crashes.worlds import Fault, Operation, operations_of
from segproof_harness.files.memory_files import write_file

ONCE, HALF, FOR_EVER, FULL = FAULT_KINDS


def explored(world: Any, history: str, seed: int = 3, bound: int = 3) -> Explored:
    """Return what comes of calls of the last operation that fail."""
    settings = Settings(bound=bound)
    return explore_faults(world, seed, operations_of(history), settings, judges_last_only=True)


def kinds(found: Explored) -> set[str]:
    """Return the kinds of the new violations."""
    return {one.fault.kind for one in found.new}


def prepared() -> FailingFiles:
    """Return files with `/d/f` of four bytes."""
    files = FailingFiles()
    files.make_directory("/d")
    write_file(files, "/d/f", b"aaaa")
    files.settle()
    return files


def test_any_call_may_fail() -> None:
    """A read may, and to look at a file; what the harness does for itself is not counted."""
    files = prepared()
    files.calls.clear()
    with files.sound(), closing(files.open("/d/f")) as file:
        file.pread(4, 0)
    assert not files.calls
    file = files.open("/d/f", writable=True)
    for call in (lambda: file.pread(4, 0), lambda: files.status("/d/f")):
        files.fail_by(ONCE, 0)
        with files.sound():
            call()
        with pytest.raises(OSError, match="Input/output"):
            call()
        call()
    assert files.calls[ONCE] == 5
    assert files.calls[HALF] == 0


def test_half_of_a_write() -> None:
    """Only writes are counted for it; where a write fails otherwise, nothing is written."""
    files = prepared()
    with closing(files.open("/d/f", writable=True)) as file:
        for kind, left in ((ONCE, b"aaaa"), (HALF, b"bbaa")):
            files.fail_by(kind, 0)
            with pytest.raises(OSError, match="Input/output"):
                file.pwrite(b"bbbb", 0)
            assert file.pread(4, 0) == left


def test_a_full_device_frees_room() -> None:
    """What needs none succeeds there; a broken one fails whatever is asked."""
    files = prepared()
    file = files.open("/d/f", writable=True)
    files.fail_by(FULL, 0)
    for _ in range(2):
        with pytest.raises(OSError, match="No space") as caught:
            file.pwrite(b"b" * 10, 0)
        assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="No space"):
        file.truncate(9)
    file.truncate(1)
    files.remove("/d/f")
    files.fail_by(FOR_EVER, 0)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            files.status("/d/f")


@pytest.mark.parametrize(
    ("world", "seed"), [(PartitionLogWorld, 2), (LogManagerWorld, 5), (MessageIndexWorld, 1)]
)
def test_ours_keep_what_they_promised(world: Any, seed: int) -> None:
    """A few calls of each operation; `segproof crash --faults` lets more fail."""
    history = drawn_history(world.weights, seed, 6)
    found = explore_faults(world, seed, history, Settings(bound=1))
    assert [] == [one.fault for one in found.new]
    assert found.histories == 1
    assert found.points > 8
    assert found.images >= found.loads > 10


def test_the_same_seed_lets_the_same_calls_fail() -> None:
    """All of them, up to the bound."""
    history = "append:5 append:6"
    assert explored(PartitionLogWorld, history) == explored(PartitionLogWorld, history)
    assert explored(PartitionLogWorld, history, bound=1).points == len(FAULT_KINDS)


def test_a_log_that_is_opened_again_lacks_what_a_sync_lost() -> None:
    """It is known, and told apart from what is new: the pages count as written."""
    found = explored(PartitionLogWorld, "append:547162 follower:569872", bound=40)
    assert found.counts[9, "lost"] > 0
    assert not found.new


def test_a_failed_flush_of_an_index_is_not_counted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint stays, though the next flush succeeds: the first one has lost the pages."""
    history = "queue:780968 flush:866862 put:1045228 queue:178701 put:392428"
    assert not explored(MessageIndexWorld, history, seed=0, bound=8).violations
    monkeypatch.setattr(
        IndexService, "_has_lost", property(lambda _: False, lambda *_: None), raising=False
    )
    assert "lost key" in kinds(explored(MessageIndexWorld, history, seed=0, bound=8))


def test_a_restart_promises_the_records() -> None:
    """The log was cut within a batch, so it ended behind them: opened again, it ends with them."""
    history = "append:896028 truncate:439546 restart:458060 transaction:948367"
    world = LogManagerWorld(random.Random(109))
    world.begin(prepared())
    for operation in operations_of(history):
        world.apply(operation)
    state = world.state()
    assert (len(state.batches), state.durable) == (1, 0)


class _Swallowing(PartitionLogWorld):
    """A world whose operations tell of no error."""

    def apply(self, operation: Operation) -> None:
        """Do an operation as far as it goes."""
        with suppress(OSError):
            super().apply(operation)


class _Confused(PartitionLogWorld):
    """A world whose errors are of a kind that is not documented."""

    def apply(self, operation: Operation) -> None:
        """Do an operation."""
        try:
            super().apply(operation)
        except OSError as error:
            raise KeyError(str(error)) from error


class _Deaf(PartitionLogWorld):
    """A world that can't open its log again, or look at it."""

    def open_again(self) -> None:
        """Fail."""
        raise SegproofError("it stays closed")

    def live_faults(self, before: Promised, after: Promised) -> Iterator[Fault]:
        """Fail."""
        raise ValueError("no answer")


class _Forgetful(PartitionLog):
    """A log that answers a roll and a flush though it is closed."""

    def flush(self, force_flush_active_segment: bool = False) -> None:
        """Flush what is open."""
        if not self.is_closed:
            super().flush(force_flush_active_segment)


class _Answering(PartitionLogWorld):
    """A world of such a log."""

    log_class = _Forgetful


@pytest.mark.parametrize(
    ("world", "kind"),
    [
        (_Swallowing, {"half done", "swallowed"}),
        (_Confused, {"wrong error"}),
        (_Deaf, {"no answer", "not reopened"}),
        (_Answering, {"not closed"}),
    ],
)
def test_what_is_wrong_is_told(world: Any, kind: set[str]) -> None:
    """An error that is swallowed or undocumented, no answer, and a closed log that answers."""
    found = explored(world, "append:5 append:6", bound=3)
    found.add(explored(world, "append:5 roll:1", bound=8))
    assert kind <= kinds(found)
    assert all(one.failing and one.image.files for one in found.new)
