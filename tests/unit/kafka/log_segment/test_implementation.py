# SPDX-License-Identifier: Apache-2.0
"""One segment: appends and their index entries, reads, cuts, recovery, rolling, files, closing."""

from typing import Any

import pytest

from segproof.errors import (
    CorruptRecordError,
    IndexFullError,
    InvalidArgumentError,
    InvalidOffsetError,
    SegmentOffsetOverflowError,
    SegproofError,
)
from segproof.kafka import LogSegment, RollParams, WriteFormat
from segproof.kafka.offset_index import OffsetPosition
from segproof.kafka.record_file import LogOffsetPosition
from segproof_harness.files.memory_files import MemoryFiles
from segproof_tests.memory_segments import (
    BASE,
    BATCHES,
    INDEX,
    LOG,
    NOW,
    TIMES,
    batch,
    entries,
    filled,
    images,
    opened,
)


def state(segment: LogSegment) -> object:
    """Return all that an operation that fails must leave alone."""
    return (
        images(segment),
        segment.size,
        segment.bytes_since_last_index_entry,
        segment.max_timestamp_so_far,
        segment.offset_of_max_timestamp_so_far,
        segment.created_ms,
        segment.rolling_based_timestamp,
    )


# --- appending


@pytest.mark.checks("SEG-4", "SEG-6", "SEG-11", "SEG-22", "SEG-25")
def test_the_traces_of_eight_batches() -> None:
    """Live and recovered entries are those that the real classes write."""
    every = [(41 + n, 70 + 70 * n) for n in range(7)], [(1010 + 10 * n, 41 + n) for n in range(7)]
    segment = filled(interval=0)
    assert every == entries(segment)
    assert segment.recover() == 0
    assert every == entries(segment)
    segment = filled(interval=100)
    some = [(42, 140), (44, 280), (46, 420)], [(1020, 42), (1040, 44), (1060, 46)]
    assert some == entries(segment)
    assert segment.recover() == 0
    assert (some[0], [*some[1], (1070, 47)]) == entries(segment)


@pytest.mark.checks("SEG-5", "SEG-26")
@pytest.mark.parametrize(
    ("write_format", "calls", "expected"),
    [
        (WriteFormat(), 2, ([(42, 140), (44, 280), (46, 420)], [1020, 1040, 1060])),
        (WriteFormat(), 1, ([(42, 140), (44, 280), (46, 420)], [1020, 1040, 1060])),
        (WriteFormat(entries="append"), 2, ([(47, 280)], [1070])),
        (WriteFormat("first_offset", "append"), 2, ([(44, 280)], [1070])),
        (WriteFormat(entries="append"), 1, ([], [])),
        (WriteFormat("first_offset"), 8, ([(42, 140), (44, 280), (46, 420)], [1020, 1040, 1060])),
    ],
)
def test_calls_of_several_batches(
    write_format: WriteFormat, calls: int, expected: tuple[list[tuple[int, int]], list[int]]
) -> None:
    """The same log is indexed by batch or by append, as the write format says."""
    segment = opened(write_format=write_format)
    size = 8 // calls
    for start in range(0, 8, size):
        segment.append(40 + start + size - 1, b"".join(BATCHES[start : start + size]))
    offsets, times = entries(segment)
    assert expected == (offsets, [timestamp for timestamp, _ in times])
    assert segment.log.read() == b"".join(BATCHES)


def test_an_entry_for_an_append_takes_the_timestamp_that_is_given() -> None:
    """The largest timestamp and its offset are stored unverified, where the append is indexed."""
    segment = opened(interval=0, write_format=WriteFormat(entries="append"))
    segment.append(40, BATCHES[0])
    segment.append(41, BATCHES[1], 5000, 40)
    assert entries(segment) == ([(41, 70)], [(5000, 40)])
    segment = opened(interval=0)
    segment.append(40, BATCHES[0], 5000, 40)
    assert segment.max_timestamp_so_far == 1000


@pytest.mark.checks("SEG-1", "SEG-3", "SEG-8")
def test_appended_bytes_and_the_largest_timestamp() -> None:
    """The log grows by the bytes as they are; an equal timestamp changes nothing."""
    segment = opened()
    segment.append(40, b"")
    assert sorted(images(segment)) == [LOG]
    assert segment.largest_record_timestamp is None
    assert segment.largest_timestamp == NOW
    segment.append(41, batch(40, 500, 2))
    segment.append(42, batch(42, 501))
    pair = segment.max_timestamp_so_far, segment.offset_of_max_timestamp_so_far
    assert pair == (501, 41)
    assert segment.log.read() == batch(40, 500, 2) + batch(42, 501)
    assert segment.largest_timestamp == segment.largest_record_timestamp == 501


@pytest.mark.checks("SEG-2")
@pytest.mark.parametrize("offset", [BASE - 1, BASE + 2**31, 2**63, -(2**63)])
def test_an_offset_that_does_not_fit_is_refused(offset: int) -> None:
    """Nothing is written; the append has opened the indexes, as it does upstream."""
    segment = opened()
    with pytest.raises(SegmentOffsetOverflowError, match=r"\[SEG-2\]"):
        segment.append(offset, BATCHES[0])
    assert images(segment) == {LOG: b"", INDEX: bytes(1000), TIMES: bytes(996)}
    segment.append(BASE + 2**31 - 1, BATCHES[0])


def append_in_one_call(segment: LogSegment, largest_offset: int, records: bytes) -> None:
    """Append by `append`."""
    segment.append(largest_offset, records)


def append_in_bulk(segment: LogSegment, largest_offset: int, records: bytes) -> None:
    """Append by `append_many`, which needs no largest offset."""
    segment.append_many(records)


BOTH_APPENDS = pytest.mark.parametrize("append", [append_in_one_call, append_in_bulk])


@BOTH_APPENDS
def test_an_append_that_cannot_be_indexed_is_refused_whole(append: Any) -> None:
    """Upstream leaves the bytes in the log; here nothing has changed."""
    segment = filled(interval=0, index_bytes=12 * 9)
    append(segment, 48, batch(48, 2000))
    assert len(segment.offset_index) == len(segment.time_index) == 8
    before = state(segment)
    with pytest.raises(IndexFullError):
        append(segment, 49, batch(49, 3000))
    assert before == state(segment)


@BOTH_APPENDS
def test_offsets_that_do_not_rise_are_refused_where_they_would_be_indexed(append: Any) -> None:
    """The third of three batches is refused: none of them is written."""
    segment = filled(interval=0)
    before = state(segment)
    records = batch(48, 2000) + batch(49, 2010) + batch(49, 2020)
    with pytest.raises(InvalidOffsetError):
        append(segment, 49, records)
    assert before == state(segment)


@BOTH_APPENDS
@pytest.mark.parametrize(
    ("records", "error"),
    [
        (BATCHES[0][:8] + b"\0\0\0\x0d" + BATCHES[0][12:], CorruptRecordError),
        (BATCHES[0] + BATCHES[1][:16] + b"\x09" + BATCHES[1][17:], CorruptRecordError),
        (BATCHES[0][:8] + b"\0\0\0\x14" + BATCHES[0][12:32], SegproofError),
    ],
)
def test_records_that_cannot_be_walked_are_refused(
    append: Any, records: bytes, error: type[Exception]
) -> None:
    """A wrong size, a wrong magic, a batch below its header: nothing is written."""
    segment = filled()
    before = state(segment)
    with pytest.raises(error):
        append(segment, 48, records)
    assert before == state(segment)


@pytest.mark.checks("SEG-42")
def test_batches_are_copied_from_another_log() -> None:
    """Up to the first that does not fit; the copy is indexed batch by batch."""
    far = batch(BASE + 2**31, 9)
    source = filled()
    source.log.append(far)
    target = opened()
    assert target.append_from_file(source.log, 140) == 6 * 70
    assert target.log.read() == b"".join(BATCHES[2:])
    assert entries(target)[0] == [(44, 140), (46, 280)]
    assert target.append_from_file(source.log, 8 * 70) == 0


# --- reading


@pytest.mark.checks("SEG-12", "SEG-14")
def test_translate_offset() -> None:
    """The first batch that reaches the offset; gaps belong to the batch behind them."""
    segment = opened(interval=0)
    first = batch(40, 1, 3)
    for one in (first, batch(50, 2), batch(60, 3, 2, magic=1), batch(70, 4, 2)):
        segment.append_many(one)
    found = [segment.translate_offset(offset) for offset in (0, 42, 43, 50, 61, 62, 71)]
    bases = [None if one is None else one.offset for one in found]
    assert bases == [40, 40, 50, 50, 61, 70, 70]
    assert segment.translate_offset(72) is None
    assert segment.translate_offset(40, len(first)) == LogOffsetPosition(50, len(first), 70)
    assert segment.translate_offset(2**70) is None


def test_reads_that_are_refused_or_find_nothing() -> None:
    """A negative size, a position before the batch, an offset behind the end."""
    segment = filled()
    assert segment.read(48, 1) is None
    with pytest.raises(InvalidArgumentError, match=r"\[SEG-13\]"):
        segment.read(48, -1)
    with pytest.raises(InvalidArgumentError, match=r"\[SEG-16\]"):
        segment.read(43, 1, 209)


@pytest.mark.checks("SEG-19", "SEG-35", "SEG-41")
def test_next_offset_upper_bound_and_overflow() -> None:
    """From the index and the batches behind its last entry."""
    segment = opened()
    assert segment.read_next_offset() == BASE
    segment = filled()
    assert segment.read_next_offset() == 48
    assert segment.fetch_upper_bound_offset(OffsetPosition(0, 140), 1) == 44
    assert segment.fetch_upper_bound_offset(OffsetPosition(0, 0), 421) is None
    assert not segment.has_overflow()
    segment.log.append(batch(BASE + 2**31, 9))
    assert segment.has_overflow()


@pytest.mark.checks("SEG-39")
@pytest.mark.parametrize("more", [{}, {"compression": "lz4"}, {"magic": 1}, {"magic": 0}])
def test_find_offset_by_timestamp(more: dict[str, Any]) -> None:
    """The first record in the order of the file, not the one with the nearest timestamp."""
    segment = opened(interval=0)
    for offset, timestamp in enumerate((100, 90, 80, 70, 60), BASE):
        segment.append(offset, batch(offset, timestamp, **more))
    asked = [(70, 0), (70, 42), (101, 0), (-5, 43), (2**70, 0), (-(2**70), 44)]
    found = [segment.find_offset_by_timestamp(*one) for one in asked]
    answers = [None if one is None else one[:2] for one in found]
    if more.get("magic") == 0:
        assert answers == [None, None, None, (-1, 43), None, (-1, 44)]
    else:
        assert answers == [(100, 40), (80, 42), None, (70, 43), None, (60, 44)]


@pytest.mark.checks("SEG-39", "SEG-40")
@pytest.mark.parametrize("interval", [0, 150, 10_000])
def test_times_are_found_as_a_scan_finds_them(interval: int) -> None:
    """With many entries, few and none: the first record from an offset on that is not earlier."""
    segment, times = opened(interval=interval), (50, 20, 20, 90, 90, 60, 90, 95, 10, 70)
    for offset, timestamp in enumerate(times, BASE):
        segment.append(offset, batch(offset, timestamp))
    for start in range(BASE - 1, BASE + 11):
        for target in (*range(5, 100, 5), 91, 96):
            known = [
                (one, at) for at, one in enumerate(times, BASE) if at >= start and one >= target
            ]
            found = segment.find_offset_by_timestamp(target, start)
            assert next(iter(known), None) == (found and found[:2]), (target, start)


def test_the_leader_epoch_comes_with_a_timestamp() -> None:
    """None where the batch has none."""
    segment = opened(interval=0)
    segment.append(40, batch(40, 5, partition_leader_epoch=3))
    segment.append(41, batch(41, 6))
    assert segment.find_offset_by_timestamp(5, 0) == (5, 40, 3)
    assert segment.find_offset_by_timestamp(6, 0) == (6, 41, None)


# --- cutting


def test_a_truncation_that_an_index_has_no_room_for_changes_nothing() -> None:
    """An index from before its full size was lowered holds more than that."""
    before = filled(interval=0)
    before.close()
    files = before._files
    assert isinstance(files, MemoryFiles)
    segment = opened(files, index_bytes=16)
    kept = files.images("/t")
    with pytest.raises(InvalidArgumentError, match=r"\[ABSIDX-9\]"):
        segment.truncate_to(47)
    assert kept == files.images("/t")
    assert segment.truncate_to(42) == 6 * 70


# --- rolling


@pytest.mark.checks("SEG-36", "SEG-37")
def test_should_roll() -> None:
    """For size, age, full indexes and offsets; an empty segment has no age."""
    calm = RollParams(10**9, 1000, 0, 50, 100, NOW)
    segment = opened(roll_jitter_ms=10)
    assert not segment.should_roll(calm._replace(now=2**62))
    assert segment.should_roll(calm._replace(max_segment_bytes=99))
    assert segment.should_roll(calm._replace(max_offset_in_messages=BASE + 2**31))
    segment.append(40, BATCHES[0])
    assert not segment.should_roll(calm._replace(max_segment_bytes=170))
    assert segment.should_roll(calm._replace(max_segment_bytes=169))
    old = calm._replace(max_segment_ms=110, max_timestamp_in_messages=1100)
    assert not segment.should_roll(old)
    assert segment.should_roll(old._replace(max_timestamp_in_messages=1101))
    assert segment.time_waited_for_roll(0, 1101) == 101
    assert segment.get_first_batch_timestamp() == segment.rolling_based_timestamp == 1000
    full = filled(interval=0, index_bytes=12 * 8)
    assert full.time_index.is_full
    assert full.should_roll(calm)
