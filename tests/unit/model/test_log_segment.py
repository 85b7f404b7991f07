# SPDX-License-Identifier: Apache-2.0
"""The model of the segment: the traces of the specification, what releases differ in, segproof.

Goal: each operation of a segment, in every profile. Method: examples, each step held against every
law; the answers of the classes themselves are in test_segment_histories, the laws' own tests in
test_segment_laws.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.directory import Directory
from segproof_model.kafka.lazy_index import LazyIndex
from segproof_model.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.log_segment import FetchDataInfo, LogSegment
from segproof_model.kafka.offset_index import OffsetPosition
from segproof_model.kafka.producer_append_info import CompletedTxn
from segproof_model.kafka.producer_state import ProducerStateManager
from segproof_model.kafka.record_batch import Record, write_batch
from segproof_model.kafka.record_file import RecordFile
from segproof_model.kafka.segment_recovery import Recovered
from segproof_model.kafka.segment_rolling import RollParams
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.laws import log_segment as laws
from segproof_model.laws.checking import broken_step_laws
from segproof_model.laws.registry import Transition
from segproof_model.laws.segment_judging import offset_entries, time_entries
from segproof_model.profiles import (
    KAFKA_1_1_1,
    KAFKA_2_4_1,
    KAFKA_4_3_1,
    KAFKA_PROFILES,
    SEGPROOF,
    Profile,
)

INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
UNMAPPED = Raised(ErrorKind.UNMAPPED)
FILE_NOT_FOUND = Raised(ErrorKind.FILE_NOT_FOUND)
PER_CALL = replace(KAFKA_4_3_1, index_per_batch=False)


def batch(base_offset: int, *timestamps: int, value: bytes = b"hello", epoch: int = -1) -> bytes:
    """Return a batch with one record for each timestamp."""
    records = [Record(base_offset + n, at, None, value) for n, at in enumerate(timestamps)]
    data = write_batch(records, base_offset=base_offset, partition_leader_epoch=epoch)
    assert isinstance(data, bytes)
    return data


def opened(
    base_offset: int = 0,
    interval: int = 0,
    index_bytes: int = 1000,
    profile: Profile = KAFKA_4_3_1,
    **options: Any,
) -> LogSegment:
    """Return a segment that could be opened."""
    config = LogConfig(index_interval_bytes=interval, segment_index_bytes=index_bytes)
    after = LogSegment.open("", base_offset, config, profile=profile, **options).after
    assert isinstance(after, LogSegment)
    return after


def checked(segment: LogSegment, operation: str, /, *values: Any, **named: Any) -> Step[LogSegment]:
    """Do the operation, and hold it against every law of segments."""
    member = getattr(segment, operation)
    answer = member(*values, **named) if callable(member) else member
    step = answer if isinstance(answer, Step) else Step(segment, answer)
    names = getattr(type(segment), operation)
    if callable(names):
        parameters = names.__code__.co_varnames[1 : names.__code__.co_argcount]
        named = {**dict(zip(parameters, values, strict=False)), **named}
    transition = Transition(segment, operation, named, step.after, step.outcome)
    assert broken_step_laws(transition) == []
    after = step.after
    return Step(after.segment if isinstance(after, Recovered) else after, step.outcome)


def done(segment: LogSegment, operation: str, /, *values: Any, **named: Any) -> LogSegment:
    """Do the operation, which must not raise."""
    step = checked(segment, operation, *values, **named)
    assert not isinstance(step.outcome, Raised)
    return step.after


# --- the traces of the specification -----------------------------------------------------------


def eight(calls: int, interval: int, profile: Profile, value: bytes = b"ab") -> LogSegment:
    """Append eight batches of 70 bytes from offset 40 on, in so many calls."""
    segment, size = opened(40, interval, profile=profile), 8 // calls
    for first in range(0, 8, size):
        numbers = range(first, first + size)
        data = b"".join(batch(40 + n, 1000 + 10 * n, value=value) for n in numbers)
        segment = done(segment, "append", 40 + numbers[-1], data)
    return segment


@pytest.mark.checks("SEG-11")
@pytest.mark.parametrize("profile", [SEGPROOF, *KAFKA_PROFILES, PER_CALL], ids=lambda one: one.name)
@pytest.mark.parametrize("interval", [0, 100])
@pytest.mark.parametrize("calls", [8, 2, 1])
def test_eight_batches(calls: int, interval: int, profile: Profile) -> None:
    """Both conventions, with a call for each batch, two calls, and one; a missing entry is seen."""
    segment = eight(calls, interval, profile)
    offsets, times = tuple(offset_entries(segment)), tuple(time_entries(segment))
    if profile.index_key == "first_offset" and offsets:
        moved = {41 + n: 41 + n for n in range(7)} if calls == 8 else {44: 47}
        offsets = tuple((moved[offset], position) for offset, position in offsets)
    arguments = 8 // calls, interval, profile.index_per_batch
    assert laws.eight_batches_leave_their_trace(*arguments, offsets, times)
    assert not laws.eight_batches_leave_their_trace(*arguments, ((40, 0), *offsets), times)


@pytest.mark.checks("SEG-11")
@given(st.lists(st.integers(1, 8), min_size=8, max_size=8), st.sampled_from((0, 100)))
def test_division_into_calls_is_not_seen(sizes: list[int], interval: int) -> None:
    """By batches, the eight leave the same trace however they are divided into calls."""
    segment, first = opened(40, interval), 0
    for size in sizes:
        numbers = range(first, min(8, first + size))
        data = b"".join(batch(40 + n, 1000 + 10 * n, value=b"ab") for n in numbers)
        segment, first = done(segment, "append", 39 + numbers.stop, data), numbers.stop
    offsets, times = tuple(offset_entries(segment)), tuple(time_entries(segment))
    assert laws.eight_batches_leave_their_trace(1, interval, True, offsets, times)


def test_truncation_after_recovery() -> None:
    """Batches of 72 bytes, recovered and cut at 45: as observed."""
    segment = done(eight(8, 100, KAFKA_4_3_1, b"abcd"), "recover")
    step = checked(segment, "truncate_to", 45)
    after = step.after
    assert (step.outcome, after.size, after.max_pair) == (216, 360, (1040, 44))
    assert offset_entries(after) == [(42, 144), (44, 288)]
    assert time_entries(after) == [(1020, 42), (1040, 44)]
    assert len(after.directory.read(after.names[1]) or b"") == 1000


@pytest.mark.parametrize(
    ("timestamp", "start", "expected"),
    [(70, 0, (100, 0)), (70, 2, (80, 2)), (101, 0, None), (-5, 3, (70, 3))],
)
def test_search_by_falling_timestamps(
    timestamp: int, start: int, expected: tuple[int, int] | None
) -> None:
    """Timestamps 100, 90, 80, 70, 60 at offsets 0 to 4: as observed."""
    segment = opened()
    for offset in range(5):
        segment = done(segment, "append", offset, batch(offset, 100 - 10 * offset))
    found = checked(segment, "find_offset_by_timestamp", timestamp, start).outcome
    assert (found[:2] if isinstance(found, tuple) else found) == expected


def test_position_inside_the_first_batch() -> None:
    """At least one message, but a largest position inside it: cut, and not called incomplete."""
    segment = done(opened(), "append", 0, batch(0, 1))
    info = checked(segment, "read", 0, 1, 10, True).outcome
    assert isinstance(info, FetchDataInfo)
    assert info.records is not None
    data = info.records.read()
    assert isinstance(data, bytes)
    assert (len(data), info.first_entry_incomplete) == (10, False)
    assert checked(segment, "read", 0, 1, -1).outcome == INVALID_ARGUMENT


def test_wrapped_room() -> None:
    """A largest position of 2^32 + 5 leaves room for five bytes, but not in segproof."""
    sizes = []
    for profile in (KAFKA_4_3_1, SEGPROOF):
        segment = done(opened(profile=profile), "append", 0, batch(0, 1))
        info = checked(segment, "read", 0, 50, 2**32 + 5).outcome
        assert isinstance(info, FetchDataInfo)
        assert info.records is not None
        sizes.append(info.records.size)
    assert sizes == [5, 50]


def test_index_beyond_the_data() -> None:
    """The next offset is the base, although earlier offsets are still found."""
    segment = eight(8, 0, KAFKA_4_3_1)
    cut = segment.with_log(segment.log.truncate_to(210)).after
    assert cut.read_next_offset().outcome == 40
    assert isinstance(cut.translate_offset(41).outcome, tuple)


@pytest.mark.parametrize(("profile", "count"), [(PER_CALL, 0), (KAFKA_4_3_1, 49)])
def test_copy_of_fifty_batches(profile: Profile, count: int) -> None:
    """Copied as one call: no index entry at all where a call counts as a whole."""
    data = b"".join(batch(offset, offset) for offset in range(50))
    directory = Directory().write("source", data)
    source = RecordFile.open("source", directory=directory).after
    assert isinstance(source, RecordFile)
    step = checked(opened(profile=profile), "append_from_file", source, 0)
    assert (step.outcome, len(offset_entries(step.after))) == (len(data), count)


def test_copy_in_chunks() -> None:
    """A chunk stays below the buffer, unless one batch is larger, which makes the buffer larger."""
    big = batch(1, 7, value=bytes(1100000))
    data = batch(0, 5) + big + batch(2, 9) + batch(3, 8)
    directory = Directory().write("source", data)
    source = RecordFile.open("source", directory=directory).after
    assert isinstance(source, RecordFile)
    step = checked(opened(profile=PER_CALL), "append_from_file", source, 0)
    assert step.outcome == len(data)
    # Three calls: the small one, the big one, the rest.
    assert offset_entries(step.after) == [(1, 73), (3, 73 + len(big))]


# --- what releases differ in -------------------------------------------------------------------


def names_of(segment: LogSegment) -> list[str]:
    """Return the endings of the files that there are."""
    return [name[20:] for name in segment.directory]


@pytest.mark.checks("FILE-4")
@pytest.mark.parametrize("profile", [SEGPROOF, *KAFKA_PROFILES], ids=lambda one: one.name)
def test_opening_by_release(profile: Profile) -> None:
    """Only the oldest creates the indexes at once, and fails where they can't be."""
    lazily = [".log"] if profile.indexes_open_lazily else [".index", ".log", ".timeindex"]
    assert names_of(opened(profile=profile)) == lazily
    config = LogConfig(segment_index_bytes=4)
    step = LogSegment.open("", 0, config, profile=profile)
    assert (step.outcome == INVALID_ARGUMENT) is not profile.indexes_open_lazily


def test_opening_in_a_directory() -> None:
    """The directory's name stands before each file's; time and jitter are kept."""
    config = LogConfig()
    step = LogSegment.open("t-0", 7, config, now_ms=5, roll_jitter_ms=3, file_suffix=".swap")
    assert isinstance(step.after, LogSegment)
    assert step.after.names[0] == "t-0/00000000000000000007.log.swap"
    assert (step.after.created_ms, step.after.modified_ms, step.after.roll_jitter_ms) == (5, 5, 3)
    existing = Directory().write("00000000000000000007.log", b"")
    again = LogSegment.open("", 7, config, directory=existing, now_ms=9, modified_ms=4).after
    assert isinstance(again, LogSegment)
    assert (again.created_ms, again.last_modified) == (9, 4)
    refused = LogSegment.open("", 7, config, init_file_size=-1, preallocate=True)
    assert isinstance(refused.after, Directory)


def test_range_check_by_release() -> None:
    """Up to 1.1 an offset below the base is taken, one too far above an invalid argument."""
    old, new = opened(40, profile=KAFKA_1_1_1), opened(40)
    assert checked(old, "append", 40 + 2**31, batch(40, 1)).outcome == INVALID_ARGUMENT
    assert checked(old, "append", 39, batch(39, 1)).outcome is None
    overflow = Raised(ErrorKind.SEGMENT_OVERFLOW)
    assert checked(new, "append", 40 + 2**31, batch(40, 1)).outcome == overflow
    assert checked(new, "append", 39, batch(39, 1)).outcome == overflow


def test_first_timestamp_by_release() -> None:
    """Older releases count the age from the first call's largest timestamp, even if it fails."""
    call = batch(0, 5) + batch(1, 9)
    for profile, waited in ((KAFKA_4_3_1, 95), (KAFKA_2_4_1, 91), (SEGPROOF, 95)):
        segment = done(opened(profile=profile), "append", 1, call)
        assert checked(segment, "time_waited_for_roll", 0, 100).outcome == waited
    failed = checked(opened(profile=KAFKA_2_4_1), "append", -1, call).after
    assert (failed.size, failed.rolling_based_timestamp) == (0, 9)


def test_given_timestamp_counts_for_calls_only() -> None:
    """By batches it is ignored; by calls it is stored unverified."""
    for profile, pair in ((KAFKA_4_3_1, (5, 0)), (PER_CALL, (77, 3))):
        segment = done(opened(profile=profile), "append", 0, batch(0, 5), 77, 3)
        assert segment.max_pair == pair


@pytest.mark.parametrize("profile", [SEGPROOF, *KAFKA_PROFILES], ids=lambda one: one.name)
def test_unloaded_indexes_by_release(profile: Profile) -> None:
    """Up to 2.5 renaming and closing loaded them; then they stay unloaded."""
    segment = done(opened(profile=profile), "change_file_suffixes", "", ".deleted")
    stays = profile.unloaded_index_stays_unloaded
    assert (names_of(segment) == [".log.deleted"]) is stays
    closed = done(opened(profile=profile), "close")
    assert (names_of(closed) == [".log"]) is stays


def test_lazy_index_by_release() -> None:
    """Up to 2.5 a rename of an index that is not loaded creates it; later it moves nothing."""
    lazy = LazyIndex.for_offset("a.index", 40, 80)
    new = lazy.rename_to("b.index").after
    assert (new.name, list(new.directory)) == ("b.index", [])
    old = replace(lazy, profile=KAFKA_2_4_1).rename_to("b.index").after
    assert (old.name, list(old.directory)) == ("b.index", ["b.index"])
    assert lazy.delete_if_exists().outcome is False
    loaded = lazy.delete_if_exists().after.get().after
    assert loaded.directory.read("a.index") == bytes(80)


def test_epoch_zero_by_release() -> None:
    """From 2.1.1 to 2.6 recovery passes epoch 0 over."""
    for profile, entries in ((KAFKA_4_3_1, [(0, 0), (2, 1)]), (KAFKA_2_4_1, [(2, 1)])):
        data = batch(0, 1, epoch=0) + batch(1, 1, epoch=2) + batch(2, 1, epoch=1)
        segment = done(opened(profile=profile), "append", 2, data)
        cache = LeaderEpochFileCache.in_memory(profile=profile)
        step = segment.recover(None, cache)
        done(segment, "recover", None, cache)
        assert step.after.leader_epoch_cache is not None
        assert [tuple(entry) for entry in step.after.leader_epoch_cache.entries] == entries


def test_epochs_and_segment_share_the_directory() -> None:
    """An epoch that recovery assigns is in the file that the segment sees."""
    segment = done(opened(), "append", 0, batch(0, 1, epoch=3))
    opening = LeaderEpochFileCache.open("leader-epoch-checkpoint", directory=segment.directory)
    assert isinstance(opening.after, LeaderEpochFileCache)
    manager = ProducerStateManager.open("", directory=segment.directory).after
    assert isinstance(manager, ProducerStateManager)
    after = segment.recover(manager, opening.after).after
    assert after.segment.directory.read("leader-epoch-checkpoint") == b"0\n1\n3 0\n"
    assert after.leader_epoch_cache is not None
    assert after.leader_epoch_cache.directory == after.segment.directory
    assert after.producer_state_manager is not None
    assert after.producer_state_manager.directory == after.segment.directory


def test_sanity_by_release() -> None:
    """Up to 2.2 all indexes are looked at, later that of the transactions alone."""
    for profile, kind in ((KAFKA_1_1_1, ErrorKind.CORRUPT_INDEX), (KAFKA_4_3_1, None)):
        directory = Directory().write("00000000000000000000.index", bytes(9))
        segment = opened(profile=profile, directory=directory)
        outcome = checked(segment, "sanity_check", False).outcome
        assert outcome == (None if kind is None else Raised(kind))


# --- what segproof refuses beforehand ----------------------------------------------------------


def test_full_index_refuses_an_append() -> None:
    """segproof writes nothing where indexing would fail; upstream keeps the bytes."""
    for profile, size in ((SEGPROOF, 146), (KAFKA_4_3_1, 219)):
        segment = opened(0, 0, 24, profile)
        for offset in range(2):
            segment = done(segment, "append", offset, batch(offset, offset))
        step = checked(segment, "append", 2, batch(2, 2))
        assert (step.outcome, step.after.size) == (INVALID_ARGUMENT, size)
        assert (step.after == segment) is (profile is SEGPROOF)


def test_failed_recovery_cuts_nothing() -> None:
    """A batch too far from the base: the log stays, the indexes are half built."""
    for profile in (SEGPROOF, KAFKA_4_3_1):
        data = batch(0, 1) + batch(2**31, 2)
        segment = done(opened(interval=4096, profile=profile), "append", 0, data)
        segment = done(segment, "flush")
        step = checked(segment, "recover")
        assert step.outcome == Raised(ErrorKind.SEGMENT_OVERFLOW)
        assert step.after.log.image == segment.log.image


def test_failed_rename_changes_nothing() -> None:
    """A log that is gone: upstream has the new name all the same."""
    for profile in (SEGPROOF, KAFKA_4_3_1):
        segment = opened(profile=profile).sees(Directory())
        step = checked(segment, "change_file_suffixes", "", ".deleted")
        assert step.outcome == FILE_NOT_FOUND
        assert (step.after == segment) is (profile is SEGPROOF)


CALLS: Sequence[tuple[str, tuple[Any, ...]]] = (
    ("append", (0, b"x")),
    ("append_from_file", (None, 0)),
    ("truncate_to", (0,)),
    ("recover", ()),
    ("translate_offset", (0,)),
    ("read", (0, 1)),
    ("fetch_upper_bound_offset", (OffsetPosition(0, 0), 1)),
    ("read_next_offset", ()),
    ("has_overflow", ()),
    ("find_offset_by_timestamp", (0, 0)),
    ("update_txn_index", (CompletedTxn(1, 0, 0, True), 0)),
    ("collect_aborted_txns", (0, 1)),
    ("resize_indexes", (0,)),
    ("sanity_check", (False,)),
    ("max_timestamp_so_far", ()),
    ("offset_of_max_timestamp_so_far", ()),
    ("largest_timestamp", ()),
    ("largest_record_timestamp", ()),
    ("time_waited_for_roll", (0, 0)),
    ("get_first_batch_timestamp", ()),
    ("should_roll", (RollParams(0, 0, 0, 0, 0, 0),)),
    ("on_become_inactive_segment", ()),
    ("flush", ()),
)


@pytest.mark.checks("SEG-44")
@pytest.mark.parametrize(("operation", "values"), CALLS, ids=[name for name, _ in CALLS])
@pytest.mark.parametrize("end", ["close", "close_handlers", "delete_if_exists"])
def test_closed_segment(operation: str, values: tuple[Any, ...], end: str) -> None:
    """In segproof every use raises the unmapped error and changes nothing."""
    closed = done(done(opened(profile=SEGPROOF), "append", 0, batch(0, 1)), end)
    assert checked(closed, operation, *values) == Step(closed, UNMAPPED)
    assert checked(closed, "close") == Step(closed)


def test_times_of_modification() -> None:
    """Creation, a write, a cut and the setter; what only reads leaves it."""
    segment = replace(opened(now_ms=5), now_ms=10)
    assert segment.last_modified == 5
    segment = done(segment, "append", 0, batch(0, -1))
    assert (segment.last_modified, segment.largest_timestamp.outcome) == (10, 10)
    segment = done(replace(segment, now_ms=20), "recover")
    assert segment.last_modified == 10
    segment = done(segment, "truncate_to", 0)
    assert (segment.last_modified, segment.created_ms) == (20, 20)
    assert done(segment, "set_last_modified", 3).last_modified == 3
    assert checked(opened(), "set_last_modified", 3).outcome == FILE_NOT_FOUND
    gone = done(segment, "delete_if_exists")
    assert (gone.last_modified, gone.set_last_modified(1).outcome) == (0, FILE_NOT_FOUND)
