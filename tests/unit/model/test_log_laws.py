# SPDX-License-Identifier: Apache-2.0
"""The laws of a partition's log: the model obeys them, and each of them can be broken.

`test_log_histories.py` shows the first; `altered` shows the second: a real step of the model for
each law, and what is altered in it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.directory import Directory
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.log_manager import LogManager
from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.log_segments import LogSegments
from segproof_model.kafka.partition_log import PartitionLog
from segproof_model.kafka.record_batch import Record, write_batch, write_end_transaction_marker
from segproof_model.kafka.record_file import TimestampAndOffset
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.checking import broken_step_laws, opening
from segproof_model.laws.registry import LAWS, Transition
from segproof_model.profiles import KAFKA_4_3_1

OUT_OF_RANGE = Raised(ErrorKind.OUT_OF_RANGE)
INVALID_OFFSET = Raised(ErrorKind.INVALID_OFFSET)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
OFFSET_ORDER = Raised(ErrorKind.OFFSET_ORDER)
LARGE = Raised(ErrorKind.RECORD_BATCH_TOO_LARGE)
CONFIG = LogConfig(segment_bytes=160, segment_index_bytes=240, index_interval_bytes=0)


def batch(base_offset: int = 0, *, timestamp: int = 1000, epoch: int = 0, count: int = 1) -> bytes:
    """Return a batch; of 70 bytes with one record."""
    records = [Record(base_offset + n, timestamp, None, b"ab") for n in range(count)]
    data = write_batch(records, base_offset=base_offset, partition_leader_epoch=epoch)
    assert isinstance(data, bytes)
    return data


def opened(directory: Directory = Directory(), **options: Any) -> Transition:
    """Return the opening of a log."""
    arguments = {"dir": "", "config": CONFIG, **options}
    step = PartitionLog.open(**arguments, directory=directory, now_ms=1000)
    return opening("partition-log", arguments, directory, KAFKA_4_3_1, step)


def grown(count: int = 5) -> PartitionLog:
    """Return a log with so many batches of one record, two in a segment, all of it replicated."""
    log = opened().after
    for number in range(count):
        log = log.append_as_leader(batch(timestamp=1000 + number), 0).after
    after = log.update_high_watermark(count).after
    assert isinstance(after, PartitionLog)
    return after


def done(log: Any, operation: str, **arguments: Any) -> Transition:
    """Return the transition of an operation."""
    step = getattr(log, operation)(**arguments)
    return Transition(log, operation, arguments, step.after, step.outcome)


def aborted() -> PartitionLog:
    """Return a log with an aborted transaction, all of it replicated."""
    data = write_batch(
        [Record(0, 1000, None, b"ab")], base_offset=0, producer_id=7, producer_epoch=0,
        base_sequence=0, is_transactional=True,
    )  # fmt: skip
    assert isinstance(data, bytes)
    marker = write_end_transaction_marker(
        "ABORT", offset=0, timestamp=1000, producer_id=7, producer_epoch=0, coordinator_epoch=0
    )
    assert isinstance(marker, bytes)
    log = opened().after.append_as_leader(data, 0).after
    log = log.append_as_leader(marker, 0, "coordinator", 0).after
    after = log.update_high_watermark(2).after
    assert isinstance(after, PartitionLog)
    return after


def left(log: PartitionLog, *, is_clean: bool = True) -> Directory:
    """Return the directory that a log leaves when it stops or crashes."""
    return (log.close() if is_clean else log.close_handlers()).after.directory


def name_of(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file."""
    return f"{base_offset:020d}{suffix}"


def overflowing() -> PartitionLog:
    """Return a log whose only segment is too long for its base offset."""
    directory = Directory().write(name_of(0, ".log"), batch() + batch(2**31 + 5))
    log = opened(directory.write(name_of(0, ".index"), b"")).after
    assert isinstance(log, PartitionLog)
    return log


def with_segments(transition: Transition, count: int) -> Transition:
    """Let only the first segments be left after the step."""
    after = transition.after
    fewer = LogSegments(after.log_segments.segments[:count])
    return replace(transition, after=replace(after, log_segments=fewer))


def with_files(transition: Transition, files: dict[str, bytes | None]) -> Transition:
    """Let files be there after the step, or with None not."""
    directory = transition.after.directory
    for name, data in files.items():
        directory = directory.remove(name) if data is None else directory.write(name, data)
    return replace(transition, after=transition.after.sees(directory))


def with_state(transition: Transition, **fields: Any) -> Transition:
    """Let the state after the step be another one."""
    return replace(transition, after=replace(transition.after, **fields))


def answered(transition: Transition, outcome: object) -> Transition:
    """Let the answer be another one."""
    return replace(transition, outcome=outcome)


def with_start(transition: Transition, start: int) -> Transition:
    """Let the arguments of an opening have another start of the log."""
    arguments = {**transition.arguments, "log_start_offset": start}
    return replace(transition, arguments=arguments)


def loaded_with(files: dict[str, bytes | None], **options: Any) -> Transition:
    """Return the opening of a directory with five batches and these changes."""
    directory = left(grown(), is_clean=options.get("last_shutdown_clean", True))
    for name, data in files.items():
        directory = directory.remove(name) if data is None else directory.write(name, data)
    return opened(directory, **options)


def segments_step(operation: str, **arguments: Any) -> Transition:
    """Return the transition of an operation of a set of segments."""
    segments = grown().log_segments
    answer = getattr(segments, operation)(**arguments)
    after = answer if isinstance(answer, LogSegments) else segments
    return Transition(segments, operation, arguments, after, answer)


def _read(log: PartitionLog, start: int, isolation: str = "log_end") -> Transition:
    return done(log, "read", start_offset=start, max_length=1000, isolation=isolation)


def _follower(records: bytes) -> Transition:
    return done(grown(), "append_as_follower", records=records, leader_epoch=0)


def _moved(step: Transition, by: int) -> Transition:
    """Let a read have begun so many bytes later."""
    found: Any = step.outcome
    return answered(step, replace(found, records=replace(found.records, start=by)))


RETAINED = replace(grown(), config=replace(CONFIG, retention_ms=-1, retention_bytes=100))
SWAPPED = loaded_with({name_of(2, ".log.swap"): batch(2), name_of(2, ".index.swap"): b""})
CRASHED = {"last_shutdown_clean": False, "recovery_point": 0}
LOADED = loaded_with({})
RECOVERED = loaded_with({}, **CRASHED)
LONG_INDEX = loaded_with({name_of(4, ".index"): bytes(CONFIG.segment_index_bytes + 16)})
TORN = loaded_with({name_of(2, ".log"): batch(2)[:50]}, **CRASHED)

ALTERED: dict[str, Callable[[], tuple[Transition, Transition]]] = {}


def altered(law_id: str, step: Transition, change: Callable[[Transition], Transition]) -> None:
    """Enter a step that obeys a law, and the same altered so that it does not."""
    ALTERED[law_id] = lambda: (step, change(step))


altered("LOG-1", segments_step("lower_segment", offset=2), lambda one: answered(one, None))
altered("LOG-2", segments_step("values", from_offset=1, to_offset=3), lambda one: answered(one, ()))
altered(
    "LOG-3",
    segments_step("add", segment=grown().log_segments.segments[1]),
    lambda one: replace(one, after=LogSegments()),
)
altered("LOG-5", _read(grown(), 6), lambda one: answered(one, None))
altered("LOG-6", _read(grown(), 2), lambda one: _moved(one, 70))
altered(
    "LOG-7",
    _read(grown(), 5),
    lambda one: answered(
        one,
        replace(one.outcome, fetch_offset_metadata=LogOffsetMetadata(5)),  # type: ignore[type-var]
    ),
)
altered(
    "LOG-8",
    _read(aborted(), 0, "txn_committed"),
    lambda one: answered(
        one,
        replace(one.outcome, aborted_transactions=()),  # type: ignore[type-var]
    ),
)
altered(
    "LOG-9",
    done(grown(), "append_as_leader", records=batch(), leader_epoch=0),
    lambda one: with_state(one, log_end=LogOffsetMetadata(9)),
)
altered(
    "LOG-10",
    done(grown(4), "append_as_leader", records=batch(), leader_epoch=0),
    lambda one: answered(one, LARGE),
)
altered("LOG-11", done(grown(), "roll"), lambda one: answered(one, 7))
altered("LOG-12", done(grown().roll().after, "roll"), lambda one: with_segments(one, 1))
altered("LOG-13", done(grown(), "truncate_to", target_offset=3), lambda one: answered(one, False))
altered(
    "LOG-14",
    done(opened(log_start_offset=9).after, "truncate_to", target_offset=4),
    lambda one: with_segments(one, 0),
)
altered(
    "LOG-15",
    done(grown(), "fetch_offset_by_timestamp", target_timestamp=1001),
    lambda one: answered(one, TimestampAndOffset(1002, 2, 0)),
)
altered(
    "LOG-16",
    done(grown(), "fetch_offset_by_timestamp", target_timestamp=-3),
    lambda one: answered(one, TimestampAndOffset(1003, 3, 0)),
)
altered("LOG-17", done(RETAINED, "delete_old_segments"), lambda one: answered(one, 3))
altered(
    "LOG-18",
    done(RETAINED, "delete_old_segments"),
    lambda one: with_state(one, log_segments=RETAINED.log_segments),
)
altered(
    "LOG-19",
    done(overflowing(), "split_overflowed_segment", base_offset=0),
    lambda one: with_segments(one, 1),
)
altered(
    "LOG-20",
    done(grown(), "split_overflowed_segment", base_offset=0),
    lambda one: answered(one, [0]),
)
altered(
    "LOG-21",
    _follower(batch(4)),
    lambda one: answered(one, _follower(batch(5)).outcome),
)
altered(
    "LOG-22",
    _follower(batch(5)),
    lambda one: with_files(one, {name_of(0, ".log"): batch(0) + batch(3)}),
)
altered("LOAD-2", SWAPPED, lambda one: with_files(one, {name_of(2, ".log"): batch(2, epoch=1)}))
altered("LOAD-3", SWAPPED, lambda one: with_files(one, {name_of(0, ".log"): batch(0)}))
altered(
    "LOAD-4",
    loaded_with({name_of(9, ".index"): b""}),
    lambda one: with_files(one, {name_of(9, ".index"): b""}),
)
altered(
    "LOAD-5",
    loaded_with({name_of(2, ".index"): None}),
    lambda one: with_files(one, {name_of(2, ".index"): bytes(8)}),
)
altered(
    "LOAD-6",
    RECOVERED,
    lambda one: with_state(one, log_segments=overflowing().log_segments),
)
altered("LOAD-7", RECOVERED, lambda one: with_files(one, {name_of(2, ".log"): bytes(140)}))
altered(
    "LOAD-8",
    TORN,
    lambda one: with_state(
        one,
        log_segments=one.after.log_segments.add(
            replace(RECOVERED.after.log_segments.active_segment, directory=one.after.directory)
        ),
    ),
)
altered("LOAD-9", RECOVERED, lambda one: answered(one, INVALID_OFFSET))
altered("LOAD-10", LOADED, lambda one: with_files(one, {name_of(0, ".timeindex"): b""}))
altered("LOAD-12", LOADED, lambda one: with_start(one, 6))
altered("LOAD-13", LOADED, lambda one: with_state(one, recovery_point=4))
altered("LOAD-14", LOADED, lambda one: with_files(one, {name_of(4, ".index"): b""}))
altered(
    "LOAD-15",
    LOADED,
    lambda one: with_state(one, leader_epoch_cache=one.after.leader_epoch_cache.assign(8, 5).after),
)
altered("LOAD-16", LOADED, lambda one: with_state(one, log_end=LogOffsetMetadata(6)))
altered("LOAD-19", LONG_INDEX, lambda one: replace(one, after=one.arguments["directory"]))
altered("LOAD-18", LOADED, lambda one: with_files(one, {name_of(4, ".log.swap"): b""}))


@pytest.mark.checks(*ALTERED)
@pytest.mark.parametrize("law_id", ALTERED)
def test_law_can_be_broken(law_id: str) -> None:
    """A step of the model obeys the law, the altered one does not."""
    step, broken = ALTERED[law_id]()
    assert LAWS[law_id].predicate(step)
    assert not LAWS[law_id].predicate(broken)


@pytest.mark.checks("LOG-1", "LOG-2", "LOG-3")
@given(st.sets(st.integers(0, 9)), st.integers(-1, 10), st.integers(-1, 10))
def test_segments_obey_the_laws(bases: set[int], one: int, two: int) -> None:
    """Searches and ranges of a set of segments are what the laws say."""
    segments = LogSegments()
    log = opened().after
    for base in bases:
        added = log.new_segment(base)
        step = Transition(segments, "add", {"segment": added}, segments.add(added), None)
        assert broken_step_laws(step) == []
        segments = step.after
    for operation in ("floor_segment", "lower_segment", "higher_segment"):
        answer = getattr(segments, operation)(one)
        step = Transition(segments, operation, {"offset": one}, segments, answer)
        assert broken_step_laws(step) == []
    arguments = {"from_offset": one, "to_offset": two}
    step = Transition(segments, "values", arguments, segments, segments.values(one, two))
    assert broken_step_laws(step) == []


@pytest.mark.checks("LOAD-11")
def test_marker_goes_before_anything_is_loaded() -> None:
    """The marker of a clean stop is gone even where loading fails."""
    manager = LogManager.open("", CONFIG).after.load_logs().after
    manager = manager.get_or_create_log("t", 0).after.shutdown().after
    bad = manager.directory.write("nothing/x", b"")
    for directory, is_loaded in ((manager.directory, True), (bad, False)):
        before = LogManager.open("", CONFIG, directory=directory).after
        step = done(before, "load_logs")
        assert step.after.is_loaded is is_loaded
        assert broken_step_laws(step) == []
        assert not LAWS["LOAD-11"].predicate(replace(step, after=before))


@pytest.mark.checks("LOAD-17")
@given(st.integers(0, 5), st.integers(0, 200), st.integers(0, 5))
def test_crashes_leave_a_prefix(count: int, cut: int, recovery_point: int) -> None:
    """What a crash cuts from the end above the recovery point is all that can be missing."""
    log = grown(count)
    *_, last = log.log_segments
    keeps = min(recovery_point, count)
    flushed = 70 * sum(offset < keeps for offset in range(last.base_offset, count))
    image = last.log.image[: max(flushed, last.size - cut)]
    directory = left(log, is_clean=False).write(last.log.name, image)
    after = opened(directory, last_shutdown_clean=False, recovery_point=keeps).after
    assert LAWS["LOAD-17"].predicate(log, keeps, after)
    longer = after.append_as_leader(batch(timestamp=1), 3).after
    assert not LAWS["LOAD-17"].predicate(log, keeps, longer)
