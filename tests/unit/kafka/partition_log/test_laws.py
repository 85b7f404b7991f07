# SPDX-License-Identifier: Apache-2.0
"""The laws of a partition's log: the model obeys them, and each of them can be broken.

Random histories show the first, of every release; `ALTERED` shows the second: a real step of the
model for each law, and what is altered in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segproof_model.kafka.broker.log_manager import LogManager
from segproof_model.kafka.broker.log_segments import LogSegments
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.batch_writing import write_batch, write_end_transaction_marker
from segproof_model.kafka.format.compression import NO_CODECS
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import FetchDataInfo, LogSegment
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.record_file import TimestampAndOffset
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import apply, frozen, opened, outcome_of
from segproof_model.laws.register import LAWS, Transition, broken_step_laws
from segproof_tests.model_steps import done

INVALID_OFFSET = Raised(ErrorKind.INVALID_OFFSET)
LARGE = Raised(ErrorKind.RECORD_BATCH_TOO_LARGE)
SIZES: Any = {"segment_bytes": 160, "segment_index_bytes": 240, "index_interval_bytes": 0}
CONFIG = LogConfig(**SIZES)
OPENING: Mapping[str, Any] = {
    "dir": "",
    "config": CONFIG,
    "log_start_offset": 0,
    "recovery_point": 0,
    "last_shutdown_clean": True,
    "codecs": NO_CODECS,
    "draw": 0,
}


def batch(base_offset: int = 0, *, timestamp: int = 1000, epoch: int = 0) -> bytes:
    """Return a batch of one record; it has 70 bytes."""
    records = [Record(base_offset, timestamp, None, b"ab")]
    return write_batch(records, base_offset=base_offset, partition_leader_epoch=epoch)


def loaded(files: Mapping[str, bytes], **options: Any) -> Transition:
    """Return the opening of a log."""
    arguments, found = {**OPENING, **options}, frozen(Files(files, 1000))
    step = opened(PartitionLog, found, **arguments)
    return Transition(PartitionLog, found, "open", arguments, step.after, step.outcome)


def grown(count: int = 5, **options: Any) -> Any:
    """Return a log with so many batches of one record, two in a segment, all of it replicated."""

    def grow(log: PartitionLog) -> None:
        for number in range(count):
            log.append_as_leader(batch(timestamp=1000 + number), 0)
        log.update_high_watermark(count)

    return apply(loaded({}, config=LogConfig(**{**SIZES, **options})).after, grow).after


def aborted() -> Any:
    """Return a log with a transaction that was aborted."""
    data = write_batch(
        [Record(0, 1000, None, b"ab")],
        base_offset=0,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    marker = write_end_transaction_marker(
        "ABORT", offset=0, timestamp=1000, producer_id=7, producer_epoch=0, coordinator_epoch=0
    )

    def write(log: PartitionLog) -> None:
        log.append_as_leader(data, 0)
        log.append_as_leader(marker, 0, "coordinator", 0)
        log.update_high_watermark(2)

    return apply(loaded({}).after, write).after


def left(log: Any, *, is_clean: bool = True) -> dict[str, bytes]:
    """Return the files that a log leaves when it stops or crashes."""
    return dict(apply(log, "close" if is_clean else "close_handlers").after.files.images)


def name_of(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file."""
    return f"{base_offset:020d}{suffix}"


def overflowing() -> Any:
    """Return a log whose only segment is too long for its base offset."""
    log = batch() + batch(2**31 + 5)
    return loaded({name_of(0, ".log"): log, name_of(0, ".index"): b""}).after


def changed(step: Transition, change: Callable[[Any], object]) -> Transition:
    """Let the state after the step be another one."""
    return replace(step, after=apply(step.after, lambda log: change(log) and None).after)


def with_segments(step: Transition, count: int) -> Transition:
    """Let only the first segments be left after the step."""

    def change(log: Any) -> None:
        log.log_segments.segments = log.log_segments.segments[:count]

    return changed(step, change)


def with_files(step: Transition, files: Mapping[str, bytes]) -> Transition:
    """Let files be other ones after the step."""

    def change(log: Any) -> None:
        for name, data in files.items():
            log.files.write(name, data)

    return changed(step, change)


def with_end(step: Transition, offset: int) -> Transition:
    """Let the log end elsewhere after the step."""
    return changed(step, lambda log: setattr(log.local_log, "log_end", LogOffsetMetadata(offset)))


def answered(step: Transition, outcome: object) -> Transition:
    """Let the answer be another one."""
    return replace(step, outcome=outcome)


def found(step: Transition, **fields: Any) -> Transition:
    """Let a read have found something else."""
    assert isinstance(step.outcome, FetchDataInfo)
    return answered(step, step.outcome._replace(**fields))


def with_start(step: Transition, start: int) -> Transition:
    """Let an opening have been told another start of the log."""
    return replace(step, arguments={**step.arguments, "log_start_offset": start})


def loaded_with(files: Mapping[str, bytes | None], **options: Any) -> Transition:
    """Return the opening of the files of five batches, and these beside or in place of them."""
    is_clean = options.get("last_shutdown_clean", True)
    all_files = {**left(grown(), is_clean=is_clean), **files}
    return loaded({name: data for name, data in all_files.items() if data is not None}, **options)


def asked(segments: Any, operation: str, **arguments: Any) -> Transition:
    """Return the transition of a question to a set of segments, which answers segments."""
    answer = outcome_of(getattr(segments, operation), **arguments)
    return Transition(LogSegments, segments, operation, arguments, segments, answer)


def _read(log: Any, start: int, isolation: str = "log_end") -> Transition:
    return done(log, "read", start_offset=start, max_length=1000, isolation=isolation)


def _follower(records: bytes) -> Transition:
    return done(grown(), "append_as_follower", records=records, leader_epoch=0)


def _appended(log: Any) -> Transition:
    return done(log, "append_as_leader", records=batch(), leader_epoch=0)


def _moved(step: Transition, by: int) -> Transition:
    """Let a read have begun so many bytes later."""
    outcome: Any = step.outcome
    return found(step, records=replace(outcome.records, start=by))


SEGMENTS = grown().log_segments
RETAINED = grown(retention_ms=-1, retention_bytes=100)
SWAPPED = loaded_with({name_of(2, ".log.swap"): batch(2), name_of(2, ".index.swap"): b""})
CRASHED: Mapping[str, Any] = {"last_shutdown_clean": False, "recovery_point": 0}
LOADED = loaded_with({})
RECOVERED = loaded_with({}, **CRASHED)
LONG_INDEX = loaded_with({name_of(4, ".index"): bytes(CONFIG.segment_index_bytes + 16)})
TORN = loaded_with({name_of(2, ".log"): batch(2)[:50]}, **CRASHED)

ALTERED: dict[str, tuple[Transition, Callable[[Transition], Transition]]] = {
    "LOG-1": (asked(SEGMENTS, "lower_segment", offset=2), lambda one: answered(one, None)),
    "LOG-2": (asked(SEGMENTS, "values", from_offset=1, to_offset=3), lambda one: answered(one, ())),
    "LOG-3": (
        done(SEGMENTS, "add", segment=SEGMENTS.segments[1]),
        lambda one: changed(one, lambda segments: segments.clear()),
    ),
    "LOG-5": (_read(grown(), 6), lambda one: answered(one, None)),
    "LOG-6": (_read(grown(), 2), lambda one: _moved(one, 70)),
    "LOG-7": (
        _read(grown(), 5),
        lambda one: found(one, fetch_offset_metadata=LogOffsetMetadata(5)),
    ),
    "LOG-8": (
        _read(aborted(), 0, "txn_committed"),
        lambda one: found(one, aborted_transactions=()),
    ),
    "LOG-9": (_appended(grown()), lambda one: with_end(one, 9)),
    "LOG-10": (_appended(grown(4)), lambda one: answered(one, LARGE)),
    "LOG-11": (done(grown(), "roll", expected_next_offset=None), lambda one: answered(one, 7)),
    "LOG-12": (
        done(apply(grown(), "roll").after, "roll", expected_next_offset=None),
        lambda one: with_segments(one, 1),
    ),
    "LOG-13": (done(grown(), "truncate_to", target_offset=3), lambda one: answered(one, False)),
    "LOG-14": (
        done(loaded({}, log_start_offset=9).after, "truncate_to", target_offset=4),
        lambda one: replace(one, after=one.before),
    ),
    "LOG-15": (
        done(grown(), "fetch_offset_by_timestamp", target_timestamp=1001),
        lambda one: answered(one, TimestampAndOffset(1002, 2, 0)),
    ),
    "LOG-16": (
        done(grown(), "fetch_offset_by_timestamp", target_timestamp=-3),
        lambda one: answered(one, TimestampAndOffset(1003, 3, 0)),
    ),
    "LOG-17": (done(RETAINED, "delete_old_segments"), lambda one: answered(one, 3)),
    "LOG-18": (done(RETAINED, "delete_old_segments"), lambda one: replace(one, after=RETAINED)),
    "LOG-19": (
        done(overflowing(), "split_overflowed_segment", base_offset=0),
        lambda one: with_segments(one, 1),
    ),
    "LOG-20": (
        done(grown(), "split_overflowed_segment", base_offset=0),
        lambda one: answered(one, (0,)),
    ),
    "LOG-21": (_follower(batch(4)), lambda one: answered(one, _follower(batch(5)).outcome)),
    "LOG-22": (
        _follower(batch(5)),
        lambda one: with_files(one, {name_of(0, ".log"): batch(0) + batch(3)}),
    ),
    "LOAD-2": (SWAPPED, lambda one: with_files(one, {name_of(2, ".log"): batch(2, epoch=1)})),
    "LOAD-3": (SWAPPED, lambda one: with_files(one, {name_of(0, ".log"): batch(0)})),
    "LOAD-4": (
        loaded_with({name_of(9, ".index"): b""}),
        lambda one: with_files(one, {name_of(9, ".index"): b""}),
    ),
    "LOAD-5": (
        loaded_with({name_of(2, ".index"): None}),
        lambda one: with_files(one, {name_of(2, ".index"): bytes(8)}),
    ),
    "LOAD-6": (RECOVERED, lambda one: replace(one, after=overflowing())),
    "LOAD-7": (RECOVERED, lambda one: with_files(one, {name_of(2, ".log"): bytes(140)})),
    "LOAD-8": (
        TORN,
        lambda one: changed(one, lambda log: log.log_segments.add(SEGMENTS.active_segment)),
    ),
    "LOAD-9": (RECOVERED, lambda one: answered(one, INVALID_OFFSET)),
    "LOAD-10": (LOADED, lambda one: with_files(one, {name_of(0, ".timeindex"): b""})),
    "LOAD-12": (LOADED, lambda one: with_start(one, 6)),
    "LOAD-13": (
        LOADED,
        lambda one: changed(one, lambda log: setattr(log.local_log, "recovery_point", 4)),
    ),
    "LOAD-14": (LOADED, lambda one: with_files(one, {name_of(4, ".index"): b""})),
    "LOAD-15": (LOADED, lambda one: changed(one, lambda log: log.leader_epoch_cache.assign(8, 5))),
    "LOAD-16": (TORN, lambda one: with_end(one, 6)),
    "LOAD-18": (LOADED, lambda one: with_files(one, {name_of(4, ".log.swap"): b""})),
    "LOAD-19": (LONG_INDEX, lambda one: replace(one, after=one.before)),
}


@pytest.mark.checks(*ALTERED)
@pytest.mark.parametrize("law_id", ALTERED)
def test_law_can_be_broken(law_id: str) -> None:
    """A step of the model breaks no law, the altered one this law."""
    step, alter = ALTERED[law_id]
    assert broken_step_laws(step) == []
    assert law_id in broken_step_laws(alter(step))


def test_every_law_of_a_step_has_a_case() -> None:
    """That of the manager has a test of its own."""
    kinds = LogSegments, LogManager, PartitionLog
    laws = {one.law_id for one in LAWS.values() if one.scope == "step" and one.of in kinds}
    assert laws - ALTERED.keys() == {"LOAD-11"}


@pytest.mark.checks("LOG-1", "LOG-2", "LOG-3")
@given(st.lists(st.integers(0, 9), max_size=6), st.integers(-1, 10), st.integers(-1, 10))
@example([0, 10, 20, 10], 10, 10)
@example([0, 10, 20], 5, 4)
@example([0, 10, 20], 30, 99)
def test_segments_obey_the_laws(bases: list[int], one: int, two: int) -> None:
    """Searches and ranges of a set of segments are what the laws say; the last of a base stays."""
    files = Files()
    made = [
        LogSegment(files, "", base, LogConfig(segment_bytes=number))
        for number, base in enumerate(bases, 100)
    ]
    segments = frozen(LogSegments(files))
    for segment in made:
        step = done(segments, "add", segment=frozen(segment))
        assert broken_step_laws(step) == []
        segments = step.after
    for operation in ("floor_segment", "lower_segment", "higher_segment"):
        assert broken_step_laws(asked(segments, operation, offset=one)) == []
    assert broken_step_laws(asked(segments, "values", from_offset=one, to_offset=two)) == []


@pytest.mark.checks("LOAD-11")
@given(st.booleans(), st.booleans())
def test_marker_goes_before_anything_is_loaded(is_clean: bool, is_bad: bool) -> None:
    """The marker of a clean stop is gone even where loading fails."""

    def run(manager: LogManager) -> None:
        manager.load_logs()
        manager.get_or_create_log("t", 0)
        if is_clean:
            manager.shutdown()

    manager = apply(frozen(LogManager(Files(), "", CONFIG)), run).after
    images = {**manager.files.images, **({"nothing/x": b""} if is_bad else {})}
    step = done(frozen(LogManager(Files(images), "", CONFIG)), "load_logs")
    assert step.after.is_loaded is not is_bad
    assert broken_step_laws(step) == []
    assert LAWS["LOAD-11"].predicate(replace(step, after=step.before)) is not is_clean


@pytest.mark.checks("LOAD-17")
@given(st.integers(0, 5), st.integers(0, 200), st.integers(0, 5))
def test_crashes_leave_a_prefix(count: int, cut: int, recovery_point: int) -> None:
    """What a crash cuts from the end above the recovery point is all that can be missing."""
    log = grown(count)
    *_, last = log.log_segments
    keeps = min(recovery_point, count)
    flushed = 70 * sum(offset < keeps for offset in range(last.base_offset, count))
    image = last.log.image[: max(flushed, last.size - cut)]
    files = {**left(log, is_clean=False), last.log.name: image}
    after = loaded(files, last_shutdown_clean=False, recovery_point=keeps).after
    assert LAWS["LOAD-17"].predicate(log, keeps, after)
    longer = apply(after, "append_as_leader", batch(timestamp=1), 3).after
    assert not LAWS["LOAD-17"].predicate(log, keeps, longer)
