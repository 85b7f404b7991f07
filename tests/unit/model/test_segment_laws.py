# SPDX-License-Identifier: Apache-2.0
"""The laws of segments and lazy indexes: the model obeys them, and each of them can be broken.

Random histories show the first, under every profile; `STEPS` shows the second: a real step of the
model for each law, and what is altered in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.directory import Directory
from segproof_model.kafka.lazy_index import LazyIndex
from segproof_model.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.log_segment import FetchDataInfo, LogSegment
from segproof_model.kafka.offset_index import OffsetPosition
from segproof_model.kafka.producer_append_info import CompletedTxn
from segproof_model.kafka.producer_state import ProducerStateManager
from segproof_model.kafka.record_batch import Record, write_batch, write_end_transaction_marker
from segproof_model.kafka.record_file import RecordFile
from segproof_model.kafka.segment_recovery import Recovered
from segproof_model.kafka.segment_rolling import RollParams
from segproof_model.kafka.time_index import TimestampOffset
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.laws.checking import broken_step_laws
from segproof_model.laws.registry import LAWS, Transition
from segproof_model.profiles import KAFKA_2_4_1, KAFKA_4_3_1, KAFKA_PROFILES, SEGPROOF, Profile

INVALID = Raised(ErrorKind.INVALID_ARGUMENT)
PER_CALL = replace(KAFKA_4_3_1, index_per_batch=False)
PURE = ("SEG-11", "SEG-21", "SEG-25", "SEG-26")
"""Laws that compare two states or tables; their tests are their own."""


def batch(base_offset: int, *timestamps: int, epoch: int = -1, producer: int = -1) -> bytes:
    """Return a batch with one record for each timestamp; of 70 bytes with one."""
    known = producer >= 0
    data = write_batch(
        [Record(base_offset + n, at, None, b"ab") for n, at in enumerate(timestamps)],
        base_offset=base_offset,
        partition_leader_epoch=epoch,
        producer_id=producer,
        producer_epoch=0 if known else -1,
        base_sequence=0 if known else -1,
        is_transactional=known,
    )
    assert isinstance(data, bytes)
    return data


def opened(profile: Profile = KAFKA_4_3_1, interval: int = 0, **options: Any) -> LogSegment:
    """Return a segment with base offset 40."""
    config = LogConfig(index_interval_bytes=interval, segment_index_bytes=240)
    after = LogSegment.open("", 40, config, profile=profile, **options).after
    assert isinstance(after, LogSegment)
    return after


def grown(*timestamps: int, profile: Profile = KAFKA_4_3_1, interval: int = 0) -> LogSegment:
    """Return a segment with a batch of one record for each timestamp, one call for each."""
    segment = opened(profile, interval)
    for number, at in enumerate(timestamps):
        segment = segment.append(40 + number, batch(40 + number, at)).after
    return segment


THREE = grown(1000, 1010, 1020)
FOURTH = batch(43, 1030)
CODE = {"log": 0, "index": 1, "timeindex": 2, "txnindex": 3}


def having(segment: LogSegment, kind: str, data: bytes) -> LogSegment:
    """Return the state in which one of the files holds these bytes."""
    size = len(data) if kind == "log" else segment.size
    changed = segment.sees(segment.directory.write(segment.names[CODE[kind]], data))
    return replace(changed, log=replace(changed.log, size=size))


def without_last_entry(segment: LogSegment, kind: str) -> LogSegment:
    """Return the state in which an index counts one entry less."""
    offsets, times = segment.lazy_offset_index, segment.lazy_time_index
    if kind == "index":
        assert offsets.index is not None
        fewer = replace(offsets.index, entries=offsets.index.entries - 1)
        return replace(segment, lazy_offset_index=replace(offsets, index=fewer))
    assert times.index is not None
    less = replace(times.index, entries=times.index.entries - 1)
    return replace(segment, lazy_time_index=replace(times, index=less))


def with_entry(segment: LogSegment, offset: int, position: int) -> LogSegment:
    """Return the state with one more entry in the offset index."""
    return segment.on_offset_index(lambda index: index.append(offset, position)).after


def with_time(segment: LogSegment, timestamp: int, offset: int) -> LogSegment:
    """Return the state with one more entry in the time index."""
    return segment.on_time_index(lambda index: index.maybe_append(timestamp, offset)).after


def source(data: bytes) -> RecordFile:
    """Return another file with these bytes."""
    after = RecordFile.open("source", directory=Directory().write("source", data)).after
    assert isinstance(after, RecordFile)
    return after


def recovered(change: Callable[[LogSegment], LogSegment]) -> Callable[[Recovered], Recovered]:
    """Return the change of the segment inside what a recovery leaves."""
    return lambda after: replace(after, segment=change(after.segment))


@dataclass
class Case:
    """One step of the model, and what to alter in it so that the law is broken."""

    before: Any
    operation: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    outcome: Callable[[Any], Any] = lambda outcome: outcome
    after: Callable[[Any], Any] = lambda after: after

    def transition(self) -> Transition:
        """Execute the step; an opening has the arguments that the laws need."""
        if self.operation == "open":
            step: Any = LogSegment.open("", 40, LogConfig())
            known = {"base_offset": 40, "directory": Directory(), "structure": "log-segment"}
            return Transition(None, "open", known, step.after, step.outcome)
        member = getattr(self.before, self.operation)
        answer = member(**self.arguments) if callable(member) else member
        step = answer if isinstance(answer, Step) else Step(self.before, answer)
        return Transition(self.before, self.operation, self.arguments, step.after, step.outcome)


def appending(records: bytes, largest_offset: int = 43) -> dict[str, Any]:
    """Return the arguments of append."""
    return {"largest_offset": largest_offset, "records": records}


def reading(offset: int, size: int, **more: Any) -> dict[str, Any]:
    """Return the arguments of read."""
    return {"start_offset": offset, "max_size": size, **more}


def found(info: Any, **changes: Any) -> FetchDataInfo:
    """Return what was read, altered."""
    assert isinstance(info, FetchDataInfo)
    return replace(info, **changes)


def longer(info: Any) -> FetchDataInfo:
    """Return what was read, with a byte less."""
    assert info.records is not None
    return found(info, records=replace(info.records, size=info.records.size - 1))


TRANSACTION = batch(40, 1, producer=7)
MARKER = write_end_transaction_marker(
    "ABORT", offset=41, timestamp=2, producer_id=7, producer_epoch=0, coordinator_epoch=0
)
assert isinstance(MARKER, bytes)
TRANSACTIONS = opened().append(41, TRANSACTION + MARKER).after
EPOCHS = opened().append(41, batch(40, 1, epoch=0) + batch(41, 1, epoch=3)).after
PRODUCERS = ProducerStateManager.open("").after
CACHE = LeaderEpochFileCache.in_memory()
LAZY = LazyIndex.for_offset("a.index", 40, 80)
LOADED = LAZY.get().after
ROLL = RollParams(1000, 1000, 1020, 43, 70, 0)
ENDED = CompletedTxn(7, 40, 41, False)
PREALLOCATED = opened(init_file_size=500, preallocate=True).append(40, batch(40, 1)).after

STEPS: dict[str, Case] = {
    "SEG-1": Case(THREE, "append", appending(b""), after=lambda one: replace(one, now_ms=1)),
    "SEG-2": Case(
        THREE, "append", appending(FOURTH, 2**31 + 40), after=lambda one: having(one, "log", b"x")
    ),
    "SEG-3": Case(
        THREE, "append", appending(FOURTH), after=lambda one: having(one, "log", bytes(280))
    ),
    "SEG-4": Case(
        THREE, "append", appending(FOURTH), after=lambda one: without_last_entry(one, "index")
    ),
    "SEG-5": Case(
        grown(1, 2, profile=PER_CALL),
        "append",
        appending(batch(42, 3), 42),
        after=lambda one: with_entry(one, 43, 140),
    ),
    "SEG-6": Case(
        opened(), "append", appending(batch(40, 1), 40), after=lambda one: with_entry(one, 40, 0)
    ),
    "SEG-8": Case(
        THREE,
        "append",
        appending(FOURTH),
        after=lambda one: replace(one, max_pair=TimestampOffset(1030, 40)),
    ),
    "SEG-9": Case(
        THREE,
        "append",
        appending(batch(43, 5)),
        after=lambda one: with_time(with_time(one, 1030, 43), 1040, 43),
    ),
    "SEG-10": Case(
        THREE,
        "append",
        appending(batch(42, 5), 42),
        after=lambda one: replace(one, bytes_since_last_index_entry=0),
    ),
    "SEG-12": Case(
        THREE, "translate_offset", {"offset": 41}, outcome=lambda found: found._replace(position=0)
    ),
    "SEG-13": Case(THREE, "read", reading(40, -1), outcome=lambda _: None),
    "SEG-14": Case(
        THREE, "read", reading(43, 10), outcome=lambda _: FetchDataInfo(LogOffsetMetadata(43), None)
    ),
    "SEG-15": Case(
        THREE,
        "read",
        reading(41, 100),
        outcome=lambda info: found(info, fetch_offset_metadata=LogOffsetMetadata(40, 40, 0)),
    ),
    "SEG-16": Case(THREE, "read", reading(40, 100), outcome=longer),
    "SEG-17": Case(
        THREE,
        "read",
        reading(40, 60),
        outcome=lambda info: found(info, first_entry_incomplete=False),
    ),
    "SEG-18": Case(
        THREE,
        "read",
        reading(40, 60, max_position=None),
        outcome=lambda info: found(info, records=THREE.log),
    ),
    "SEG-19": Case(
        THREE,
        "fetch_upper_bound_offset",
        {"start_offset_position": OffsetPosition(40, 0), "fetch_size": 71},
        outcome=lambda _: 41,
    ),
    "SEG-20": Case(having(THREE, "log", THREE.log.image + b"torn"), "recover", outcome=lambda _: 3),
    "SEG-22": Case(THREE, "recover", after=recovered(lambda one: without_last_entry(one, "index"))),
    "SEG-23": Case(
        THREE, "recover", after=recovered(lambda one: without_last_entry(one, "timeindex"))
    ),
    "SEG-24": Case(THREE, "recover", after=recovered(lambda one: having(one, "index", bytes(24)))),
    "SEG-27": Case(
        opened(interval=4096).append(40, batch(40, 1) + batch(2**31 + 41, 1)).after,
        "recover",
        after=recovered(lambda one: having(one, "log", b"")),
    ),
    "SEG-28": Case(
        EPOCHS,
        "recover",
        {"producer_state_manager": None, "leader_epoch_cache": CACHE},
        after=lambda after: replace(after, leader_epoch_cache=CACHE),
    ),
    "SEG-29": Case(
        THREE,
        "recover",
        after=recovered(lambda one: replace(one, bytes_since_last_index_entry=0)),
    ),
    "SEG-30": Case(
        TRANSACTIONS,
        "recover",
        {"producer_state_manager": PRODUCERS, "leader_epoch_cache": None},
        after=recovered(lambda one: having(one, "txnindex", b"")),
    ),
    "SEG-31": Case(THREE, "truncate_to", {"offset": 41}, outcome=lambda _: 70),
    "SEG-32": Case(
        THREE, "truncate_to", {"offset": 50}, after=lambda one: having(one, "index", bytes(24))
    ),
    "SEG-33": Case(
        THREE,
        "truncate_to",
        {"offset": 41},
        after=lambda one: replace(one, bytes_since_last_index_entry=70),
    ),
    "SEG-34": Case(
        THREE,
        "truncate_to",
        {"offset": 41},
        after=lambda one: replace(one, max_pair=TimestampOffset(1020, 42)),
    ),
    "SEG-35": Case(THREE, "read_next_offset", outcome=lambda _: 42),
    "SEG-36": Case(
        THREE,
        "time_waited_for_roll",
        {"now": 0, "message_timestamp": 1500},
        outcome=lambda waited: waited - 20,
    ),
    "SEG-37": Case(THREE, "should_roll", {"roll_params": ROLL}, outcome=lambda rolls: not rolls),
    "SEG-38": Case(
        PREALLOCATED,
        "on_become_inactive_segment",
        after=lambda one: replace(one, log=replace(one.log, size=69)),
    ),
    "SEG-39": Case(
        THREE,
        "find_offset_by_timestamp",
        {"timestamp_ms": 1001, "starting_offset": 40},
        outcome=lambda _: None,
    ),
    "SEG-40": Case(THREE, "largest_timestamp", outcome=lambda _: 0),
    "SEG-41": Case(THREE, "has_overflow", outcome=lambda _: True),
    "SEG-42": Case(
        THREE,
        "append_from_file",
        {"records": source(FOURTH + batch(2**31 + 40, 1)), "start": 0},
        outcome=lambda _: 0,
    ),
    "SEG-43": Case(
        THREE,
        "sanity_check",
        {"time_index_file_newly_created": False},
        outcome=lambda _: Raised(ErrorKind.CORRUPT_INDEX),
    ),
    "SEG-44": Case(
        grown(1, 2, 3, interval=100),
        "close",
        after=lambda one: without_last_entry(one, "timeindex"),
    ),
    "SEG-45": Case(THREE, "close_handlers", after=lambda one: having(one, "index", b"")),
    "SEG-46": Case(
        THREE,
        "change_file_suffixes",
        {"old_suffix": "", "new_suffix": ".swap"},
        after=lambda one: having(one, "log", b""),
    ),
    "SEG-47": Case(THREE, "delete_if_exists", after=lambda one: having(one, "index", b"")),
    "SEG-48": Case(
        opened(),
        "flush",
        after=lambda one: one.sees(one.directory.remove(one.names[2])),
    ),
    "SEG-49": Case(
        opened(directory=THREE.directory), "max_timestamp_so_far", outcome=lambda _: 1000
    ),
    "FILE-3": Case(
        THREE,
        "update_txn_index",
        {"completed_txn": ENDED, "last_stable_offset": 40},
        after=lambda one: having(one, "txnindex", b""),
    ),
    "FILE-4": Case(None, "open", after=lambda one: having(one, "index", b"")),
    "FILE-5": Case(THREE, "flush", after=lambda one: one.sees(one.directory.write("0.log", b""))),
    "LAZY-1": Case(LAZY, "close", after=lambda one: one.sees(one.directory.write(one.name, b""))),
    "LAZY-2": Case(LAZY, "rename_to", {"file": "b"}, after=lambda one: replace(one, name="a")),
    "LAZY-3": Case(LOADED, "get", outcome=lambda index: replace(index, entries=1)),
    "LAZY-4": Case(LOADED, "rename_to", {"file": "b"}, after=lambda one: LOADED),
    "LAZY-5": Case(LOADED, "close", after=lambda one: LOADED),
    "LAZY-6": Case(LAZY, "get", after=lambda one: one.sees(Directory().write(one.name, b""))),
}


@pytest.mark.checks(*STEPS)
@pytest.mark.parametrize("law_id", STEPS)
def test_law_can_be_broken(law_id: str) -> None:
    """A law holds for the model's step, and not for the same step with another end."""
    case = STEPS[law_id]
    transition = case.transition()
    assert broken_step_laws(transition) == []
    after, outcome = case.after(transition.after), case.outcome(transition.outcome)
    altered = replace(transition, after=after, outcome=outcome)
    assert LAWS[law_id].predicate(altered) is False


def test_every_law_is_stated() -> None:
    """Each sentence of the contract has a predicate, a sentence, and a case; SEG-7 is of files."""
    wanted = {f"SEG-{n}" for n in range(1, 50)} | {f"LAZY-{n}" for n in range(1, 7)}
    wanted |= {"FILE-3", "FILE-4", "FILE-5"}
    assert wanted <= LAWS.keys()
    assert wanted - {*STEPS, *PURE} == {"SEG-7"}
    assert all(LAWS[law_id].sentence.endswith(".") for law_id in wanted)


@pytest.mark.checks("SEG-10", "SEG-27", "SEG-32", "SEG-46")
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
    upstream = Case(replace(THREE, config=small), operation, arguments).transition()
    assert isinstance(upstream.outcome, Raised)
    assert broken_step_laws(upstream) == []
    safe, half = (replace(one, profile=SEGPROOF) for one in (upstream.before, upstream.after))
    half = half.with_log(half.log.truncate_to(0)).after if operation == "truncate_to" else half
    assert broken_step_laws(replace(upstream, before=safe, after=half)) != []


@pytest.mark.checks("SEG-44")
def test_closed_segment_that_answers_is_seen() -> None:
    """In segproof a closed segment answers nothing."""
    closed = grown(1, profile=SEGPROOF).close().after
    step = Case(closed, "read_next_offset").transition()
    assert broken_step_laws(step) == []
    assert broken_step_laws(replace(step, outcome=41)) == ["SEG-44"]


# --- any history -------------------------------------------------------------------------------

timestamps = st.lists(st.sampled_from((-1, 0, 5, 90, 100, 110)), min_size=1, max_size=3)
calls = st.lists(st.tuples(st.sampled_from((0, 0, 0, 1, 5)), timestamps), min_size=1, max_size=4)
near = st.integers(-2, 3)
steps = st.one_of(
    st.tuples(st.just("append"), calls, st.sampled_from((0, 0, 0, 0, 0, 1, -1, 2**31, -(2**31)))),
    st.tuples(st.just("append"), calls, st.just(0)),
    st.tuples(st.just("append_from_file"), calls, st.just(0)),
    st.tuples(st.sampled_from(("truncate_to", "translate_offset")), near, st.integers(0, 9)),
    st.tuples(st.just("read"), near, st.sampled_from((-1, 0, 50, 100, 1000))),
    st.tuples(st.just("find_offset_by_timestamp"), near, st.sampled_from((-1, 0, 7, 95, 120))),
    st.tuples(st.just("resize_indexes"), st.sampled_from((0, 24, 240, 480)), st.just(0)),
    st.tuples(st.sampled_from(("close", "close_handlers", "reopen")), st.just(0), st.just(0)),
    st.tuples(
        st.sampled_from(
            (
                "recover", "read_next_offset", "has_overflow", "max_timestamp_so_far",
                "largest_timestamp", "largest_record_timestamp", "get_first_batch_timestamp",
                "on_become_inactive_segment", "flush", "change_file_suffixes", "should_roll",
                "fetch_upper_bound_offset", "sanity_check",
            )
        ),
        st.integers(0, 300),
        st.integers(0, 1),
    ),
)  # fmt: skip


def written(first_offset: int, call: list[tuple[int, list[int]]]) -> tuple[bytes, int]:
    """Return batches with gaps between them, and the offset behind the last."""
    data, offset = b"", first_offset
    for gap, times in call:
        data += batch(offset + gap, *times)
        offset += gap + len(times)
    return data, offset


def arguments_of(segment: LogSegment, name: str, one: Any, two: Any, end: int) -> dict[str, Any]:
    """Return the arguments of a drawn step; `end` is the offset behind the last batch."""
    if name in ("append", "append_from_file"):
        data, behind = written(end, one)
        copied = {"records": source(data), "start": 0}
        return appending(data, behind - 1 + two) if name == "append" else copied
    if name in ("truncate_to", "translate_offset"):
        return {"offset": end - two + one}
    known: dict[str, dict[str, Any]] = {
        "read": reading(end - 4 + one if name == "read" else 0, two, min_one_message=one > 0),
        "find_offset_by_timestamp": {"timestamp_ms": two, "starting_offset": 40 + one},
        "resize_indexes": {"size": one},
        "change_file_suffixes": {"old_suffix": "", "new_suffix": ".swap"},
        "should_roll": {"roll_params": RollParams(100, 300 + one, 95, end, one, 9)},
        "fetch_upper_bound_offset": {
            "start_offset_position": OffsetPosition(40, one),
            "fetch_size": 70 * two,
        },
        "sanity_check": {"time_index_file_newly_created": two == 1},
        "recover": {
            "producer_state_manager": PRODUCERS if two else None,
            "leader_epoch_cache": CACHE if two else None,
        },
    }
    return known.get(name, {})


@pytest.mark.checks(*STEPS, "SEG-7")
@given(
    st.sampled_from([SEGPROOF, *KAFKA_PROFILES, PER_CALL]),
    st.sampled_from((0, 100)),
    st.booleans(),
    st.lists(steps, max_size=10),
)
def test_laws_hold_in_any_history(
    profile: Profile, interval: int, preallocate: bool, history: list[tuple[str, Any, Any]]
) -> None:
    """Every law on each step; where callers told the truth, the entries are true of the log."""
    segment = opened(profile, interval, init_file_size=300, preallocate=preallocate)
    end, is_true = 40, True
    for name, one, two in history:
        if name == "reopen":
            closed = segment.close().after
            suffix = segment.names[0].partition(".log")[2]
            segment = opened(
                profile, interval, directory=closed.directory, file_suffix=suffix,
                file_already_exists=True,
            )  # fmt: skip
            continue
        arguments = arguments_of(segment, name, one, two, end)
        transition = Case(segment, name, arguments).transition()
        assert broken_step_laws(transition) == []
        after = transition.after
        segment = after.segment if isinstance(after, Recovered) else after
        is_lie = name == "append" and two != 0
        # Closed without a trim, and opened again, a preallocated log goes on behind its zeros.
        is_lie |= name == "close_handlers" and preallocate
        is_true &= not is_lie and not isinstance(transition.outcome, Raised)
        if name in ("append", "append_from_file") and not isinstance(transition.outcome, Raised):
            end = written(end, one)[1]
        index = segment.offset_index
        if is_true and index is not None and profile.index_key == "last_offset":
            image = index.image[: index.size_in_bytes]
            assert LAWS["SEG-7"].predicate(segment.log.read(), image, 40)


@pytest.mark.checks("SEG-21", "SEG-25", "SEG-26")
@given(
    st.sampled_from([SEGPROOF, *KAFKA_PROFILES, PER_CALL]),
    st.sampled_from((0, 100)),
    st.lists(calls, min_size=1, max_size=6),
    st.booleans(),
)
def test_recovery_laws(
    profile: Profile, interval: int, history: list[list[tuple[int, list[int]]]], single: bool
) -> None:
    """Recovery builds what appends built, by single batches always; a second one nothing new."""
    live, end = opened(profile, interval), 40
    for call in history:
        data, end = written(end, call[:1] if single else call)
        step = live.append(end - 1, data)
        assert step.outcome is None
        live = step.after
    first = live.recover()
    second = first.after.segment.recover()
    assert isinstance(second.outcome, int)
    arguments = live, first.after.segment
    assert not single or LAWS["SEG-25"].predicate(*arguments)
    assert LAWS["SEG-26"].predicate(*arguments)
    repeated = first.after.segment, second.after.segment
    assert LAWS["SEG-21"].predicate(*repeated, second.outcome)


@pytest.mark.checks("SEG-21", "SEG-25", "SEG-26")
def test_recovery_laws_can_be_broken() -> None:
    """Another number of bytes, another file, an entry that is missing."""
    recovered_three = THREE.recover().after.segment
    fewer = without_last_entry(recovered_three, "index")
    assert not LAWS["SEG-21"].predicate(recovered_three, recovered_three, 1)
    assert not LAWS["SEG-21"].predicate(recovered_three, THREE, 0)
    assert not LAWS["SEG-25"].predicate(THREE, fewer)
    assert not LAWS["SEG-26"].predicate(THREE, fewer)
    one_call = opened(KAFKA_2_4_1).append(42, b"".join(batch(40 + n, n) for n in range(3))).after
    rebuilt = one_call.recover().after.segment
    assert not LAWS["SEG-25"].predicate(one_call, rebuilt)
    assert LAWS["SEG-26"].predicate(one_call, rebuilt)


# --- lazy indexes ------------------------------------------------------------------------------

lazy_steps = st.sampled_from(
    (
        ("get", {}),
        ("rename_to", {"file": "b.index"}),
        ("delete_if_exists", {}),
        ("close", {}),
        ("close_handler", {}),
    )
)


@pytest.mark.checks(*(f"LAZY-{number}" for number in range(1, 7)))
@given(
    st.sampled_from([SEGPROOF, *KAFKA_PROFILES]),
    st.sampled_from((4, 8, 80)),
    st.booleans(),
    st.booleans(),
    st.lists(lazy_steps, max_size=6),
)
def test_lazy_laws_hold_in_any_history(
    profile: Profile,
    size: int,
    is_time: bool,
    exists: bool,
    history: list[tuple[str, dict[str, Any]]],
) -> None:
    """Every law on each step, with and without a file, with a size that holds no entry."""
    directory = Directory().write("a.index", bytes(24)) if exists else Directory()
    make = LazyIndex.for_time if is_time else LazyIndex.for_offset
    lazy = make("a.index", 40, size, directory=directory, profile=profile)
    for operation, arguments in history:
        transition = Case(lazy, operation, arguments).transition()
        assert broken_step_laws(transition) == []
        lazy = transition.after
