# SPDX-License-Identifier: Apache-2.0
"""A log one of whose changes fails: it goes on as before, or is offline, and loading mends it.

Each step of each operation fails once, as on a bad disk. Then either nothing has happened and the
log goes on, or it is closed; what a load as after a crash finds has no hole, and keeps what is
appended to it. What an index refuses changes nothing at all.
"""

import errno
import os
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from segproof.errors import IndexClosedError, InvalidArgumentError, InvalidOffsetError
from segproof.kafka import (
    AbortedTxn,
    LogManager,
    LogSegment,
    OffsetIndex,
    PartitionLog,
)
from segproof_harness.files import watched_files
from segproof_harness.files.watched_files import WatchedFiles
from segproof_harness.laws.borders.log_files import marker
from segproof_tests.memory_logs import (
    CHANGES,
    CONFIG,
    START_MS,
    Place,
    batch,
    bytes_of,
    check_order,
    filled,
    prepared,
)

STEPS = watched_files.CHANGES | {"open"}


class FailingFiles(WatchedFiles):
    """Files whose N-th step fails, if it is to; a write that fails has written the first half."""

    def __init__(self) -> None:
        super().__init__(clock_ms=lambda: START_MS)
        self.steps_left: int | None = None

    def fail_at(self, step: int | None) -> None:
        """Let the step with this number fail, counted from 0 and from now; None: none."""
        self.steps_left = step

    @property
    def has_failed(self) -> bool:
        """Whether a step has failed."""
        return self.steps_left is None

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Fail, if this is the step."""
        if self.steps_left is None or call not in STEPS:
            return
        self.steps_left -= 1
        if self.steps_left < 0:
            self.steps_left = None
            if call == "pwrite":
                data, position = arguments
                handle.inner.pwrite(data[: len(data) // 2], position)
            raise OSError(errno.EIO, os.strerror(errno.EIO))


PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
MARKER = marker(0, timestamp=START_MS)


def abort(log: PartitionLog) -> None:
    """Abort the transaction of the producer, if it has one."""
    log.append_as_leader(MARKER, 1, origin="coordinator", transaction_version=1)


OPERATIONS: dict[str, Callable[[PartitionLog], object]] = {
    **CHANGES,
    "append of a producer": lambda log: log.append_as_leader(
        batch(6, base_sequence=0, **PRODUCER), 1
    ),
    "abort": abort,
}


def opened(name: str) -> tuple[Place, FailingFiles, PartitionLog]:
    """Return a log to which the operation can be done."""
    files = FailingFiles()
    if name != "abort":
        place, log = prepared(files, name)
        return place, files, log
    place = Place(files)
    log = filled(place, 4)
    log.append_as_leader(batch(6, base_sequence=0, is_transactional=True, **PRODUCER), 0)
    return place, files, log


def failed_at(log: PartitionLog, files: FailingFiles, name: str, step: int) -> OSError | None:
    """Do the operation with a step that fails; return the error, None if there is no such step."""
    files.fail_at(step)
    try:
        OPERATIONS[name](log)
    except OSError as error:
        assert files.has_failed
        return error
    assert not files.has_failed, "the error was swallowed"
    files.fail_at(None)
    return None


def reloaded(place: Place, log: PartitionLog, recovery_point: int) -> PartitionLog:
    """Load the log as after a crash, and see that its batches rise."""
    again = place.open(log.log_start_offset, recovery_point, is_clean=False)
    check_order(again)
    return again


def is_between(data: bytes, before: bytes, after: bytes, name: str) -> bool:
    """Return whether these records are those before or after, or some of the way between."""
    if name == "remove the oldest":
        return before.endswith(data) and data.endswith(after)
    longer, shorter = (after, before) if len(after) >= len(before) else (before, after)
    return longer.startswith(data) and data.startswith(shorter)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.checks("LOAD-16", "LOAD-17")
def test_a_step_that_fails(name: str, is_known: bool) -> None:
    """The log is offline, or as before; a load finds no hole, and loses nothing from then on."""
    _, _, whole = opened(name)
    before = bytes_of(whole)
    OPERATIONS[name](whole)
    after = bytes_of(whole)
    offline = 0
    for step in count():
        place, files, log = opened(name)
        error = failed_at(log, files, name, step)
        if error is None:
            break
        assert error.filename is not None
        offline += log.is_closed
        if log.is_closed:
            assert_offline(log)
            assert not files.open_handles
        else:
            assert bytes_of(log) in (before, after)
            batches = [one for part in log.log_segments for one in part.log]
            assert batches[-1].next_offset == log.log_end_offset
            log.append_as_leader(batch(4), 5)
            before_crash = bytes_of(log)
            log.close_handlers()
            assert bytes_of(reloaded(place, log, 0)) == before_crash
            continue
        again = reloaded(place, log, log.recovery_point if is_known else 0)
        data = bytes_of(again)
        assert is_between(data, before, after, name)
        first, last = again.append_as_leader(batch(4), 5)[:2]
        assert (first, last + 1) == (again.log_end_offset - 4, again.log_end_offset)
        acknowledged = bytes_of(again)
        again.close_handlers()
        once_more = reloaded(place, again, 0)
        assert (bytes_of(once_more), once_more.log_end_offset) == (acknowledged, last + 1)
    assert step > 1
    assert offline > 0


FAR: dict[str, Callable[[LogSegment], object]] = {
    "offset index": lambda segment: segment.offset_index.append(50, 0),
    "time index": lambda segment: segment.time_index.maybe_append(START_MS - 1, 50),
    "transaction index": lambda segment: segment.txn_index.append(AbortedTxn(0, 3, 40, 50, 51)),
}
REFUSABLE: dict[str, Callable[[PartitionLog], object]] = {
    "append": lambda log: log.append_as_leader(batch(6, base_sequence=6, **PRODUCER), 1),
    "append that rolls": lambda log: log.append_as_leader(batch(28), 1),
    "roll": lambda log: log.roll(),
    "abort": abort,
}


def known_of(place: Place, log: PartitionLog) -> list[object]:
    """Return all that a log knows and has."""
    return [
        place.image(), repr(log), log.log_end_offset_metadata, log.last_stable_offset,
        log.leader_epoch_cache.entries, dict(log.producer_state_manager.active_producers),
        [log.fetch_offset_by_timestamp(stamp) for stamp in (-1, -2, START_MS)],
    ]  # fmt: skip


def with_one_batch(place: Place, name: str) -> PartitionLog:
    """Return a log with a batch of the producer, for "abort" one of a transaction."""
    log = place.open(index_interval_bytes=10)
    records = batch(6, base_sequence=0, is_transactional=name == "abort", **PRODUCER)
    log.append_as_leader(records, 0)
    return log


@pytest.mark.parametrize("index", FAR)
@pytest.mark.parametrize("name", REFUSABLE)
@pytest.mark.checks("LOG-9", "LOG-12")
def test_what_an_index_refuses_changes_nothing(index: str, name: str) -> None:
    """An index that ends behind the log is asked before the log, the epochs and the producers."""
    is_rolled = name in ("roll", "append that rolls")
    asked = {
        "offset index": not is_rolled,
        "time index": True,
        "transaction index": name == "abort",
    }
    place, operation = Place(), REFUSABLE[name]
    log = with_one_batch(place, name)
    active = log.log_segments.active_segment
    FAR[index](active)
    before = known_of(place, log)
    if asked[index]:
        with pytest.raises((InvalidArgumentError, InvalidOffsetError)):
            operation(log)
        assert known_of(place, log) == before
        for one in (active.offset_index, active.time_index, active.txn_index):
            one.truncate_to(7)
    operation(log)
    twin = with_one_batch(other := Place(), name)
    operation(twin)
    assert bytes_of(log) == bytes_of(twin)
    assert known_of(place, log)[2:] == known_of(other, twin)[2:]


def assert_offline(log: PartitionLog) -> None:
    """See that nothing is answered or changed, and why."""
    calls: list[Callable[[], object]] = [
        lambda: log.append_as_leader(batch(1), 0),
        lambda: log.read(0, 10),
        lambda: log.truncate_to(0),
        lambda: log.truncate_fully_and_start_at(0),
        lambda: log.roll(),
        lambda: log.flush(),
        lambda: log.delete(),
    ]
    for call in calls:
        with pytest.raises(IndexClosedError, match=r"earlier I/O error.*last_shutdown_clean=False"):
            call()
    log.close()


def test_an_append_that_cannot_be_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the cut fails too, its bytes lie behind the end: the log is offline."""
    place = Place()
    log = filled(place, 2)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(OffsetIndex, "append", fail)
        patched.setattr(OffsetIndex, "truncate_to", fail)
        with pytest.raises(OSError, match="no space") as caught:
            log.append_as_leader(batch(3), 0)
    assert caught.value.filename == "/t-0"
    assert_offline(log)
    assert reloaded(place, log, 0).log_end_offset == 15


def test_a_manager_leaves_no_clean_mark_for_a_log_that_is_offline() -> None:
    """Else the next start would not recover it. Asked for again, it is loaded as after a crash."""
    for is_asked in (False, True):
        files = FailingFiles()
        manager = LogManager("/logs", CONFIG, create=True, files=files, time=lambda: START_MS)
        log = manager.get_or_create_log("t", 0)
        for _ in range(9):
            log.append_as_leader(batch(6), 0)
        files.fail_at(3)
        with pytest.raises(OSError, match="Input/output error"):
            log.truncate_to(20)
        if is_asked:
            again = manager.get_or_create_log("t", 0)
            assert again is not log
            assert again.append_as_leader(batch(1), 0).first_offset == again.log_end_offset - 1
        manager.shutdown()
        assert (".kafka_cleanshutdown" in files.images("/logs")) == is_asked
