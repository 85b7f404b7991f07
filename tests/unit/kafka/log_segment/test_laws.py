# SPDX-License-Identifier: Apache-2.0
"""The laws of segments and lazy indexes: the model obeys them, and each of them can be broken.

Random histories show the first, of every release; `ALTERED` shows the second: a real step of the
model for each law, and what is altered in it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_harness.laws.borders.log_files import marker
from segproof_harness.laws.file_damages import later
from segproof_harness.structures.structure import structure_named
from segproof_model.kafka.format.batch_writing import write_batch
from segproof_model.kafka.format.lazy_index import LazyIndex
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import FetchDataInfo, LogSegment, RollParams
from segproof_model.kafka.format.log_segment_releases import CallIsIndexedAsAWhole
from segproof_model.kafka.format.offset_index import OffsetIndex, OffsetPosition
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.time_index import TimeIndex, TimestampOffset
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import apply, frozen, opened
from segproof_model.laws.register import LAWS, Transition, broken_step_laws
from segproof_model.releases import KAFKA, NEWEST_KAFKA, RELEASES, SEGPROOF

CLOSING_WRITES = RELEASES["kafka-4.3.1"]
PER_CALL = NEWEST_KAFKA.flipped(CallIsIndexedAsAWhole)
ALL = [SEGPROOF, PER_CALL, *(RELEASES[f"kafka-{number}"] for number in KAFKA)]
SEGMENT = structure_named("log-segment")
CALLS: dict[str, Callable[..., object]] = {
    **{name: kind.call_model for name, kind in SEGMENT.by_name().items() if kind.call_model},
    "get": lambda lazy: lazy.get() and None,
}
"""Operations that are not called by their name."""
FILES = "log", "index", "timeindex", "txnindex"
Change = Callable[[Transition], Transition]


def batch(base_offset: int, *timestamps: int, epoch: int = -1, producer: int = -1) -> bytes:
    """Return a batch with one record for each timestamp; of 70 bytes with one."""
    known = producer >= 0
    return write_batch(
        [Record(base_offset + n, at, None, b"ab") for n, at in enumerate(timestamps)],
        base_offset=base_offset,
        partition_leader_epoch=epoch,
        producer_id=producer,
        producer_epoch=0 if known else -1,
        base_sequence=0 if known else -1,
        is_transactional=known,
    )


def segment_of(
    *batches: bytes, release: Release = NEWEST_KAFKA, interval: int = 0, **options: Any
) -> Any:
    """Return a segment with base offset 40, to which these were appended, a call for each."""
    config = LogConfig(index_interval_bytes=interval, segment_index_bytes=240)
    files = options.pop("files", Files())
    segment = opened(release.kind(LogSegment), files, "", 40, config, **options).after
    for number, data in enumerate(batches):
        segment = done(segment, "append", **appending(data, 40 + number)).after
    return segment


def done(before: Any, operation: str, **arguments: Any) -> Transition:
    """Return the transition of an operation."""
    step = apply(before, CALLS.get(operation, operation), **arguments)
    return Transition(type(before), before, operation, arguments, step.after, step.outcome)


def appending(records: bytes, largest_offset: int = 43) -> dict[str, Any]:
    """Return the arguments of append."""
    told = {"largest_timestamp": None, "shallow_offset_of_max_timestamp": None}
    return {"largest_offset": largest_offset, "records": records, **told}


def appended(segment: Any, records: bytes, largest_offset: int = 43) -> Transition:
    """Return the transition of an append."""
    return done(segment, "append", **appending(records, largest_offset))


def read(offset: int, size: int, max_position: int | None = 2**31 - 1) -> Transition:
    """Return the transition of a read of three batches."""
    return done(
        THREE, "read", start_offset=offset, max_size=size, max_position=max_position,
        min_one_message=False,
    )  # fmt: skip


def recovered(segment: Any, with_producers: bool = False, epochs: Any = None) -> Transition:
    """Return the transition of a recovery."""
    return done(segment, "recover", with_producers=with_producers, epochs=epochs)


def opening(segment: Any) -> Transition:
    """Return the transition of the opening of a segment without files."""
    return Transition(type(segment), frozen(Files()), "open", {}, segment, None)


# --- what is altered -----------------------------------------------------------------------------


def changed(state: Any, change: Callable[[Any], object]) -> Any:
    """Return a state that was changed by hand."""
    return apply(state, lambda draft: change(draft) and None).after


def left(change: Callable[[Any], object]) -> Change:
    """Let the state after a step be another one."""
    return lambda step: replace(step, after=changed(step.after, change))


def with_values(**values: Any) -> Change:
    """Let attributes of the state after a step be other ones."""
    return left(lambda state: vars(state).update(values))


@later
def holding(segment: Any, kind: str, data: bytes) -> None:
    """Let one of a segment's files hold these bytes."""
    segment.files.write(segment.names[FILES.index(kind)], data)
    if kind == "log":
        segment.log.size = len(data)


def fewer(kind: str) -> Change:
    """Let an index count one entry less."""

    def change(segment: Any) -> None:
        index = segment.lazy_offset_index if kind == "index" else segment.lazy_time_index
        index.index.entries -= 1

    return left(change)


def answered(outcome: object) -> Change:
    """Let the answer be another one."""
    return lambda step: replace(step, outcome=outcome)


def found(**fields: Any) -> Change:
    """Let fields of the answer be other ones."""
    return lambda step: replace(step, outcome=step.answer._replace(**fields))


def two_more_times(segment: Any) -> None:
    """Let the time index have two more entries."""
    for timestamp in (1030, 1040):
        segment.time_index.maybe_append(timestamp, 43)


THREE = segment_of(batch(40, 1000), batch(41, 1010), batch(42, 1020))
SAFE = segment_of(batch(40, 1000), batch(41, 1010), batch(42, 1020), release=SEGPROOF)
FOURTH, FAR = batch(43, 1030), batch(2**31 + 40, 1)
MARKER = marker(41)
TRANSACTIONS = segment_of(batch(40, 1, producer=7) + MARKER)
EPOCHS = segment_of(batch(40, 1, epoch=0), batch(41, 1, epoch=3))
TOO_FAR = segment_of(batch(40, 1) + batch(2**31 + 41, 1), interval=4096)
PREALLOCATED = segment_of(batch(40, 1), init_file_size=500, preallocate=True)
WRITES_AT_CLOSE = segment_of(
    *(batch(40 + n, n) for n in range(3)), interval=100, release=CLOSING_WRITES
)
LAZY = frozen(LazyIndex(Files(), OffsetIndex, "a.index", 40, 80))
LOADED = done(LAZY, "get").after

ALTERED: dict[str, tuple[Transition, Change]] = {
    "SEG-1": (appended(THREE, b""), left(lambda one: setattr(one.files, "now_ms", 1))),
    "SEG-2": (appended(THREE, FOURTH, 2**31 + 40), left(holding("log", b"x"))),
    "SEG-3": (appended(THREE, FOURTH), left(holding("log", bytes(280)))),
    "SEG-4": (appended(THREE, FOURTH), fewer("index")),
    "SEG-6": (
        appended(segment_of(), batch(40, 1), 40), left(lambda one: one.offset_index.append(40, 0))
    ),
    "SEG-8": (
        appended(THREE, FOURTH),
        with_values(max_timestamp_and_offset_so_far=TimestampOffset(1030, 40)),
    ),
    "SEG-9": (appended(THREE, batch(43, 5)), left(two_more_times)),
    "SEG-10": (appended(THREE, batch(42, 5), 42), left(holding("log", THREE.log.image[:-1]))),
    "SEG-12": (
        done(THREE, "translate_offset", offset=41, starting_file_position=0), found(position=0)
    ),
    "SEG-13": (read(40, -1), answered(None)),
    "SEG-14": (read(43, 10), answered(FetchDataInfo(LogOffsetMetadata(43), None))),
    "SEG-15": (read(41, 100), found(fetch_offset_metadata=LogOffsetMetadata(40, 40, 0))),
    "SEG-16": (read(40, 100), found(records=THREE.log.slice(0, 99))),
    "SEG-17": (read(40, 60), found(first_entry_incomplete=False)),
    "SEG-18": (read(40, 60, None), found(records=THREE.log.slice(0, 60))),
    "SEG-19": (
        done(
            THREE, "fetch_upper_bound_offset",
            start_offset_position=OffsetPosition(40, 0), fetch_size=71,
        ),
        answered(41),
    ),
    "SEG-20": (
        recovered(changed(THREE, holding("log", THREE.log.image + b"torn"))),
        answered((3, None, None)),
    ),
    "SEG-22": (recovered(THREE), fewer("index")),
    "SEG-23": (recovered(THREE), fewer("timeindex")),
    "SEG-24": (recovered(THREE), left(holding("index", bytes(24)))),
    "SEG-27": (recovered(TOO_FAR), left(holding("log", b""))),
    "SEG-28": (recovered(EPOCHS, epochs=()), answered((0, None, ()))),
    "SEG-29": (recovered(THREE), with_values(bytes_since_last_index_entry=0)),
    "SEG-30": (recovered(TRANSACTIONS, True), left(holding("txnindex", b""))),
    "SEG-31": (done(THREE, "truncate_to", offset=41), answered(70)),
    "SEG-32": (done(THREE, "truncate_to", offset=50), left(holding("index", bytes(24)))),
    "SEG-33": (done(THREE, "truncate_to", offset=41), with_values(bytes_since_last_index_entry=70)),
    "SEG-34": (
        done(THREE, "truncate_to", offset=41),
        with_values(max_timestamp_and_offset_so_far=TimestampOffset(1020, 42)),
    ),
    "SEG-35": (done(THREE, "read_next_offset"), answered(42)),
    "SEG-36": (done(THREE, "time_waited_for_roll", now=0, message_timestamp=1500), answered(480)),
    "SEG-37": (
        done(THREE, "should_roll", roll_params=RollParams(1000, 1000, 1020, 43, 70, 0)),
        answered(True),
    ),
    "SEG-38": (
        done(PREALLOCATED, "on_become_inactive_segment"),
        left(lambda one: setattr(one.log, "size", 69)),
    ),
    "SEG-39": (
        done(THREE, "find_offset_by_timestamp", timestamp_ms=1001, starting_offset=40),
        answered(None),
    ),
    "SEG-40": (done(THREE, "largest_timestamp"), answered(0)),
    "SEG-41": (done(THREE, "has_overflow"), answered(True)),
    "SEG-42": (done(THREE, "append_from_file", records=FOURTH + FAR, start=0), answered(0)),
    "SEG-43": (
        done(THREE, "sanity_check", time_index_file_newly_created=False),
        answered(Raised(ErrorKind.CORRUPT_INDEX)),
    ),
    "SEG-44": (done(WRITES_AT_CLOSE, "close"), fewer("timeindex")),
    "SEG-45": (done(THREE, "close_handlers"), left(holding("index", b""))),
    "SEG-46": (
        done(THREE, "change_file_suffixes", old_suffix="", new_suffix=".swap"),
        left(holding("log", b"")),
    ),
    "SEG-47": (done(THREE, "delete_if_exists"), left(holding("index", b""))),
    "SEG-48": (done(segment_of(), "flush"), left(lambda one: one.files.remove(one.names[2]))),
    "SEG-49": (done(segment_of(files=THREE.files), "max_timestamp_so_far"), answered(1000)),
    "SEG-50": (appended(SAFE, batch(42, 5), 42), left(lambda one: one.log.append(FOURTH))),
    "SEG-51": (done(done(SAFE, "close").after, "read_next_offset"), answered(41)),
    "FILE-3": (
        done(
            THREE, "update_txn_index",
            completed_txn=CompletedTxn(7, 40, 41, False), last_stable_offset=40,
        ),
        left(holding("txnindex", b"")),
    ),
    "FILE-4": (opening(segment_of()), left(holding("index", b""))),
    "FILE-5": (done(THREE, "flush"), left(lambda one: one.files.write("0.log", b""))),
    "LAZY-1": (done(LAZY, "close"), left(lambda one: one.files.write(one.name, b""))),
    "LAZY-2": (done(LAZY, "rename_to", file="b"), with_values(unloaded_name="a")),
    "LAZY-3": (done(LOADED, "get"), left(lambda one: setattr(one.index, "entries", 1))),
    "LAZY-4": (done(LOADED, "rename_to", file="b"), lambda step: replace(step, after=LOADED)),
    "LAZY-6": (done(LAZY, "get"), left(lambda one: one.files.write(one.name, b""))),
}  # fmt: skip


@pytest.mark.checks(*ALTERED)
@pytest.mark.parametrize("law_id", ALTERED)
def test_law_can_be_broken(law_id: str) -> None:
    """No law is broken by the model's step, and this one by the same step with another end."""
    step, alter = ALTERED[law_id]
    assert broken_step_laws(step) == []
    assert law_id in broken_step_laws(alter(step))


def test_every_law_of_a_step_has_a_case() -> None:
    """Those that compare two states, or judge files, have tests of their own."""
    laws = [one for one in LAWS.values() if one.of in (LogSegment, LazyIndex)]
    assert {one.law_id for one in laws if one.scope == "step"} == ALTERED.keys()


@pytest.mark.checks("SEG-10", "SEG-32", "SEG-46", "SEG-50")
@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("append", appending(batch(42, 5), 42)),
        ("truncate_to", {"offset": 50}),
        ("change_file_suffixes", {"old_suffix": ".log", "new_suffix": ".x"}),
    ],
)
def test_half_done_is_seen_in_segproof(operation: str, arguments: dict[str, Any]) -> None:
    """What upstream leaves behind a failure would break a law of segproof."""
    small = replace(THREE.config, segment_index_bytes=8)
    step = done(changed(THREE, lambda one: setattr(one, "config", small)), operation, **arguments)
    assert not step.succeeded
    assert broken_step_laws(step) == []
    assert not LAWS["SEG-50"].predicate(step)


# --- any history -------------------------------------------------------------------------------


timestamps = st.lists(st.sampled_from((-1, 0, 5, 90, 100, 110)), min_size=1, max_size=3)
calls_of_batches = st.lists(
    st.lists(st.tuples(st.sampled_from((0, 0, 0, 1, 5)), timestamps), min_size=1, max_size=4),
    min_size=1,
    max_size=6,
)


@pytest.mark.checks("SEG-7", "SEG-21", "SEG-25", "SEG-26")
@given(
    st.sampled_from(ALL),
    st.sampled_from((0, 100)),
    calls_of_batches,
    st.booleans(),
)
def test_recovery_laws(
    release: Release, interval: int, history: list[list[tuple[int, list[int]]]], single: bool
) -> None:
    """Recovery builds what appends built, by single batches always; a second one nothing new.

    Entries are true of the log before and after it.
    """
    live, offset = segment_of(release=release, interval=interval), 40
    for call in history:
        data = b""
        for gap, times in call[:1] if single else call:
            data += batch(offset + gap, *times)
            offset += gap + len(times)
        step = appended(live, data, offset - 1)
        assert step.succeeded
        live = step.after
    first = apply(live, "recover", None, None).after
    second = apply(first, "recover", None, None)
    laws = ["SEG-25"] * single + ["SEG-26"] * LAWS["SEG-26"].speaks_of(release)
    assert all(LAWS[law].predicate(live, first) for law in laws)
    assert LAWS["SEG-21"].predicate(first, second.after, second.outcome)
    for segment in (live, first):
        index = segment.lazy_offset_index.index
        assert LAWS["SEG-7"].predicate(segment.log.image, index.image[: index.size_in_bytes], 40)


@pytest.mark.checks("SEG-21", "SEG-25", "SEG-26")
def test_recovery_laws_can_be_broken() -> None:
    """Another number of bytes, another file, an entry that is missing."""
    step = recovered(THREE)
    rebuilt, is_missing = step.after, fewer("index")(step).after
    assert not LAWS["SEG-21"].predicate(rebuilt, rebuilt, 1)
    assert not LAWS["SEG-21"].predicate(rebuilt, THREE, 0)
    assert not LAWS["SEG-25"].predicate(THREE, is_missing)
    assert not LAWS["SEG-26"].predicate(THREE, is_missing)
    one_call = segment_of(b"".join(batch(40 + n, n) for n in range(3)), release=PER_CALL)
    assert not LAWS["SEG-25"].predicate(one_call, recovered(one_call).after)
    assert not LAWS["SEG-26"].speaks_of(PER_CALL)


# --- lazy indexes ------------------------------------------------------------------------------

LAZY_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get", {}),
    ("rename_to", {"file": "b.index"}),
    ("delete_if_exists", {}),
    ("close", {}),
    ("close_handler", {}),
)


@pytest.mark.checks("LAZY-1", "LAZY-2", "LAZY-3", "LAZY-4", "LAZY-6")
@given(
    st.sampled_from(ALL),
    st.sampled_from((4, 8, 80)),
    st.sampled_from((OffsetIndex, TimeIndex)),
    st.sampled_from(({}, {"a.index": bytes(24)})),
    st.lists(st.sampled_from(LAZY_CALLS), max_size=6),
)
def test_lazy_laws_hold_in_any_history(
    release: Release,
    size: int,
    kind: Any,
    images: dict[str, bytes],
    history: list[tuple[str, dict[str, Any]]],
) -> None:
    """Every law on each step, with and without a file, with a size that holds no entry."""
    lazy = release.kind(LazyIndex)(Files(images), release.kind(kind), "a.index", 40, size)
    for operation, arguments in history:
        step = done(lazy, operation, **arguments)
        assert broken_step_laws(step) == []
        lazy = step.after
