# SPDX-License-Identifier: Apache-2.0
"""Worked examples of the segment: what appends leave, what is read, what releases differ in.

The answers of the classes themselves are in `tests/golden/test_segment_histories.py`.
"""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.kafka.format.batch_writing import write_batch
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_segment import LogSegment, RollParams
from segproof_model.kafka.format.log_segment_releases import (
    CallIsIndexedAsAWhole,
    ClosingLoadsIndexes,
    IndexesOpenAtOnce,
    Told,
    append_told,
)
from segproof_model.kafka.format.log_segment_releases_before_2 import FirstOffsetIsKey
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.offset_index import OffsetPosition
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.language.states import apply, opened, outcome_of
from segproof_model.releases import NEWEST_KAFKA, RELEASES, SEGPROOF

INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
UNMAPPED = Raised(ErrorKind.UNMAPPED)
FILE_NOT_FOUND = Raised(ErrorKind.FILE_NOT_FOUND)
OVERFLOW = Raised(ErrorKind.SEGMENT_OVERFLOW)
PER_CALL = NEWEST_KAFKA.flipped(CallIsIndexedAsAWhole)


def batch(base_offset: int, *timestamps: int, value: bytes = b"hello") -> bytes:
    """Return a batch with one record for each timestamp; of 73 bytes with one."""
    records = [Record(base_offset + n, at, None, value) for n, at in enumerate(timestamps)]
    return write_batch(records, base_offset=base_offset)


def segment_of(
    *batches: bytes,
    base_offset: int = 0,
    interval: int = 0,
    index_bytes: int = 1000,
    release: Release = NEWEST_KAFKA,
    files: Files | None = None,
    **options: Any,
) -> LogSegment:
    """Return a segment to which these batches were appended, a call for each."""
    config = LogConfig(index_interval_bytes=interval, segment_index_bytes=index_bytes)
    kind = release.kind(LogSegment)
    segment = kind(Files() if files is None else files, "", base_offset, config, **options)
    for data in batches:
        append(segment, data)
    return segment


def append(segment: LogSegment, data: bytes, largest_offset: int | None = None) -> None:
    """Append; with the offset of the last batch, unless another one is told."""
    records = segment.kind(MemoryRecords)(data)
    if largest_offset is None:
        *_, last = records.batches()
        largest_offset = last.last_offset
    segment.append(largest_offset, records)


def entries(index: Any) -> list[Any]:
    """Return the entries of an index."""
    return [index.stored(number) for number in range(index.entries)]


def suffixes(segment: LogSegment) -> list[str]:
    """Return the endings of the files that there are."""
    return [name[20:] for name in segment.files]


# --- what appends leave --------------------------------------------------------------------------

EIGHT = [batch(40 + n, 1000 + 10 * n, value=b"ab") for n in range(8)]
"""Batches of 70 bytes with one record each."""
ALL_BUT_FIRST = tuple((40 + n, 70 * n) for n in range(1, 8))
EVERY_SECOND = tuple((40 + n, 70 * n) for n in range(2, 8, 2))
SECOND_CALL = ((47, 280),)


@pytest.mark.checks("SEG-11")
@pytest.mark.parametrize(
    ("calls", "interval", "by_calls", "by_batches"),
    [
        (8, 0, ALL_BUT_FIRST, ALL_BUT_FIRST),
        (8, 100, EVERY_SECOND, EVERY_SECOND),
        (2, 0, SECOND_CALL, ALL_BUT_FIRST),
        (2, 100, SECOND_CALL, EVERY_SECOND),
        (1, 0, (), ALL_BUT_FIRST),
        (1, 100, (), EVERY_SECOND),
    ],
)
def test_eight_batches(
    calls: int, interval: int, by_calls: Any, by_batches: Any, any_kafka: Release
) -> None:
    """Both conventions, with a call for each batch, two calls, and one."""
    size = 8 // calls
    data = [b"".join(EIGHT[at : at + size]) for at in range(0, 8, size)]
    segment = segment_of(*data, base_offset=40, interval=interval, release=any_kafka)
    wanted = by_calls if any_kafka.has(CallIsIndexedAsAWhole) else by_batches
    times = [(1000 + 10 * (offset - 40), offset) for offset, _ in wanted]
    if any_kafka.has(FirstOffsetIsKey):
        wanted = tuple((40 + position // 70, position) for _, position in wanted)
    assert (list(wanted), times) == (entries(segment.offset_index), entries(segment.time_index))


@pytest.mark.checks("SEG-11")
@given(st.sets(st.integers(1, 7)), st.sampled_from((0, 100)))
def test_division_into_calls_is_not_seen(cuts: set[int], interval: int) -> None:
    """By batches, the eight leave the same trace however they are divided into calls."""
    ends = [0, *sorted(cuts), 8]
    data = [b"".join(EIGHT[one:two]) for one, two in pairwise(ends)]
    segment = segment_of(*data, base_offset=40, interval=interval)
    assert segment_of(*EIGHT, base_offset=40, interval=interval) == segment


@pytest.mark.parametrize(("release", "count"), [(PER_CALL, 0), (NEWEST_KAFKA, 49)])
def test_copy_of_fifty_batches(release: Release, count: int) -> None:
    """Copied as one call: no index entry at all where a call counts as a whole."""
    data = b"".join(batch(offset, offset) for offset in range(50))
    source = RecordFile(Files({"source": data}), "source")
    segment = segment_of(release=release)
    assert len(data) == segment.append_from_file(source, 0)
    assert count == segment.offset_index.entries


def test_copy_in_chunks() -> None:
    """A chunk stays below the buffer, unless one batch is larger, which makes the buffer larger."""
    big = batch(1, 7, value=bytes(1100000))
    data = batch(0, 5) + big + batch(2, 9) + batch(3, 8)
    segment = segment_of(release=PER_CALL)
    assert len(data) == segment.append_from_file(RecordFile(Files({"a": data}), "a"), 0)
    # Three calls: the small one, the big one, the rest.
    assert [(1, 73), (3, 73 + len(big))] == entries(segment.offset_index)


def test_given_timestamp_counts_for_calls_only() -> None:
    """By batches it is ignored; by calls it is stored unverified."""
    for release, pair in ((NEWEST_KAFKA, (5, 0)), (PER_CALL, (77, 3))):
        segment = segment_of(release=release)
        append_told(segment, 0, segment.kind(MemoryRecords)(batch(0, 5)), Told(None, 77, 3))
        assert pair == segment.max_timestamp_and_offset_so_far


# --- what is read --------------------------------------------------------------------------------


def test_position_inside_the_first_batch() -> None:
    """At least one message, but a largest position inside it: cut, and not called incomplete."""
    segment = segment_of(batch(0, 1))
    info = segment.read(0, 1, 10, True)
    assert info is not None
    assert info.records is not None
    assert (10, False) == (len(info.records.read()), info.first_entry_incomplete)
    assert INVALID_ARGUMENT == outcome_of(segment.read, 0, 1, -1)


def test_wrapped_room() -> None:
    """A largest position of 2^32 + 5 leaves room for five bytes, but not in segproof."""
    for release, size in ((NEWEST_KAFKA, 5), (SEGPROOF, 50)):
        info = segment_of(batch(0, 1), release=release).read(0, 50, 2**32 + 5)
        assert info is not None
        assert info.records is not None
        assert size == info.records.size


def test_index_beyond_the_data() -> None:
    """The next offset is the base, although earlier offsets are still found."""
    segment = segment_of(*EIGHT, base_offset=40)
    segment.log.truncate_to(210)
    assert 40 == segment.read_next_offset()
    assert segment.translate_offset(41) is not None


# --- what releases differ in ---------------------------------------------------------------------


@pytest.mark.checks("FILE-4")
def test_opening_by_release(any_kafka: Release) -> None:
    """Up to 2.2 the indexes are made at once, which fails where they can't be."""
    is_old = any_kafka.has(IndexesOpenAtOnce)
    names = [".index", ".log", ".timeindex"] if is_old else [".log"]
    assert names == suffixes(segment_of(release=any_kafka))
    config = LogConfig(segment_index_bytes=4)
    step = opened(any_kafka.kind(LogSegment), Files(), "", 0, config)
    assert (INVALID_ARGUMENT if is_old else None) == step.outcome


def test_opening_in_a_directory() -> None:
    """The directory's name stands before each file's; time and jitter are kept."""
    config = LogConfig()
    segment = LogSegment(Files(now_ms=5), "t-0", 7, config, roll_jitter_ms=3, file_suffix=".swap")
    assert "t-0/00000000000000000007.log.swap" == segment.names[0]
    assert (5, 5, 3) == (segment.created_ms, segment.last_modified, segment.roll_jitter_ms)
    existing = Files({"00000000000000000007.log": b""}, 9)
    again = LogSegment(existing, "", 7, config, modified_ms=4)
    assert (9, 4) == (again.created_ms, again.last_modified)
    refused = opened(LogSegment, Files(), "", 7, config, init_file_size=-1, preallocate=True)
    assert Raised(ErrorKind.IO_ERROR) == refused.outcome


def test_range_check_by_release() -> None:
    """Up to 1.1 an offset below the base is taken, one too far above an invalid argument."""
    old = segment_of(base_offset=40, release=RELEASES["kafka-1.1.1"])
    new = segment_of(base_offset=40, release=RELEASES["kafka-2.0.1"])
    far, below = (batch(40, 1), 40 + 2**31), (batch(39, 1), 39)
    assert [INVALID_ARGUMENT, None] == [outcome_of(append, old, *one) for one in (far, below)]
    assert [OVERFLOW, OVERFLOW] == [outcome_of(append, new, *one) for one in (far, below)]


def test_first_timestamp_by_release() -> None:
    """Up to 4.0 the age counts from the first call's largest timestamp, even if it fails."""
    call = batch(0, 5) + batch(1, 9)
    for name, waited in (("kafka-4.4.0", 95), ("kafka-4.1.2", 95), ("kafka-4.0.0", 91)):
        assert waited == segment_of(call, release=RELEASES[name]).time_waited_for_roll(0, 100)
    failed = segment_of(release=RELEASES["kafka-4.0.0"])
    assert OVERFLOW == outcome_of(append, failed, call, -1)
    assert (0, 9) == (failed.size, failed.rolling_based_timestamp)


def test_unloaded_indexes_by_release(any_kafka: Release) -> None:
    """Up to 2.5 renaming and closing loaded them; then they stay unloaded."""
    renamed, closed = segment_of(release=any_kafka), segment_of(release=any_kafka)
    renamed.change_file_suffixes("", ".deleted")
    stays = not any_kafka.has(ClosingLoadsIndexes)
    assert stays is ([".log.deleted"] == suffixes(renamed))
    closed.close()
    assert stays is ([".log"] == suffixes(closed))


def test_sanity_by_release() -> None:
    """Up to 2.2 all indexes are looked at, later that of the transactions alone."""
    corrupt = Raised(ErrorKind.CORRUPT_INDEX)
    for name, outcome in (("kafka-2.2.2", corrupt), ("kafka-2.4.1", None)):
        files = Files({"00000000000000000000.index": bytes(9)})
        segment = segment_of(files=files, release=RELEASES[name])
        assert outcome == outcome_of(segment.sanity_check, False)


# --- what segproof refuses beforehand ------------------------------------------------------------


def test_full_index_refuses_an_append() -> None:
    """segproof writes nothing where indexing would fail; upstream keeps the bytes."""
    for release, size in ((SEGPROOF, 146), (NEWEST_KAFKA, 219)):
        segment = segment_of(batch(0, 0), batch(1, 1), index_bytes=24, release=release)
        step = apply(segment, "append", 2, segment.kind(MemoryRecords)(batch(2, 2)))
        assert (INVALID_ARGUMENT, size) == (step.outcome, step.after.size)
        assert (release is SEGPROOF) is (step.after is segment)


def test_failed_recovery_cuts_nothing() -> None:
    """A batch too far from the base: the log stays, the indexes are half built."""
    for release in (SEGPROOF, NEWEST_KAFKA):
        segment = segment_of(interval=4096, release=release)
        data = batch(0, 1) + batch(2**31, 2)
        append(segment, data, 0)
        segment.flush()
        assert OVERFLOW == outcome_of(segment.recover, None, None)
        assert data == segment.log.image


def test_failed_rename_changes_nothing() -> None:
    """A log that is gone: upstream has the new name all the same."""
    for release in (SEGPROOF, NEWEST_KAFKA):
        segment = segment_of(release=release)
        segment.files.remove(segment.names[0])
        step = apply(segment, "change_file_suffixes", "", ".deleted")
        assert FILE_NOT_FOUND == step.outcome
        assert (release is SEGPROOF) is (step.after is segment)


CALLS: dict[str, tuple[Any, ...]] = {
    "append": (0, MemoryRecords(b"x")),
    "append_from_file": (RecordFile(Files({"a": b"x"}), "a"), 0),
    "truncate_to": (0,),
    "recover": (None, None),
    "translate_offset": (0,),
    "read": (0, 1),
    "fetch_upper_bound_offset": (OffsetPosition(0, 0), 1),
    "read_next_offset": (),
    "has_overflow": (),
    "find_offset_by_timestamp": (0, 0),
    "update_txn_index": (CompletedTxn(1, 0, 0, True), 0),
    "collect_aborted_txns": (0, 1),
    "resize_indexes": (0,),
    "sanity_check": (False,),
    "max_timestamp_so_far": (),
    "offset_of_max_timestamp_so_far": (),
    "largest_timestamp": (),
    "largest_record_timestamp": (),
    "time_waited_for_roll": (0, 0),
    "get_first_batch_timestamp": (),
    "should_roll": (RollParams(0, 0, 0, 0, 0, 0),),
    "on_become_inactive_segment": (),
    "flush": (),
}


@pytest.mark.checks("SEG-44")
@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize("end", ["close", "close_handlers", "delete_if_exists"])
def test_closed_segment(operation: str, end: str) -> None:
    """In segproof every use raises the unmapped error and changes nothing."""
    closed = apply(segment_of(batch(0, 1), release=SEGPROOF), end).after
    assert Step(closed, UNMAPPED) == apply(closed, operation, *CALLS[operation])
    assert Step(closed) == apply(closed, "close")


def test_times_of_modification() -> None:
    """Creation, a write, a cut and the setter; what only reads leaves it."""
    segment = segment_of(files=Files(now_ms=5))
    segment.files.now_ms = 10
    assert 5 == segment.last_modified
    append(segment, batch(0, -1))
    assert (10, 10) == (segment.last_modified, segment.largest_timestamp)
    segment.files.now_ms = 20
    segment.recover(None, None)
    assert 10 == segment.last_modified
    segment.truncate_to(0)
    assert (20, 20) == (segment.last_modified, segment.created_ms)
    segment.set_last_modified(3)
    assert 3 == segment.last_modified
    assert FILE_NOT_FOUND == outcome_of(segment_of().set_last_modified, 3)
    segment.delete_if_exists()
    assert (0, FILE_NOT_FOUND) == (segment.last_modified, outcome_of(segment.set_last_modified, 1))
