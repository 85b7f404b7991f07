# SPDX-License-Identifier: Apache-2.0
"""The bulk twins of a segment answer what the single calls do, on logs of every kind."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segproof.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    InvalidRecordError,
    SegmentOffsetOverflowError,
)
from segproof.kafka import (
    LogSegment,
    Record,
    WriteFormat,
    write_batch,
    write_empty_batch,
)
from segproof.kafka.batch_table import read_batch_headers
from segproof.kafka.record_batch import read_batch
from segproof.kafka.record_file import scan_memory
from segproof.kafka.segments import bulk_search as bulk
from segproof_tests import memory_segments
from segproof_tests.memory_segments import images

BASE = 1000
FORMATS: list[dict[str, Any]] = [
    {"magic": 2},
    {"magic": 2, "timestamp_type": "LogAppendTime", "log_append_time": 10**6},
    {"magic": 1},
    {"magic": 0},
    *({"magic": 2, "compression": codec} for codec in ("gzip", "snappy", "lz4", "zstd")),
    *({"magic": 1, "compression": codec} for codec in ("gzip", "snappy", "lz4")),
    {"magic": 0, "compression": "gzip"},
]
PLAIN = FORMATS[:1]
WRITE_FORMATS = [
    WriteFormat(key, entries)
    for key in ("last_offset", "first_offset")
    for entries in ("batch", "append")
]  # fmt: skip


def random_batches(seed: int, count: int, formats: list[dict[str, Any]]) -> list[bytes]:
    """Batches of some formats with gaps between their offsets and timestamps in any order."""
    chance = random.Random(seed)
    offset, batches = BASE, []
    for _ in range(count):
        offset += chance.choice([0, 0, 0, 1, 7])
        size = chance.choice([1, 1, 2, 5])
        records = [
            Record(offset + i, chance.randrange(1000), None, bytes(chance.choice([0, 9, 300])))
            for i in range(size)
        ]
        more = chance.choice(formats)
        if more["magic"] == 2 and chance.random() < 0.1:
            last = offset + size - 1
            batches.append(write_empty_batch(base_offset=offset, last_offset=last, max_timestamp=5))
        else:
            written = write_batch(records, base_offset=offset, **more)
            # Old messages that are not compressed are a batch each.
            for one in scan_memory(written):
                batches.append(written[one.position : one.position + one.size_bytes])
        offset += size
    return batches


def opened(interval: int, write_format: WriteFormat = WRITE_FORMATS[0]) -> LogSegment:
    """An empty segment in memory."""
    return memory_segments.opened(None, interval, 8000, base=BASE, write_format=write_format)


def last_offset(batch: bytes) -> int:
    """Return the last offset of a batch."""
    return read_batch(batch).last_offset


segments = pytest.mark.parametrize("write_format", WRITE_FORMATS)
seeds = st.integers(0, 2**32)
EXAMPLES = settings().max_examples // 2
"""Half of the profile's: each makes a log of up to 60 batches."""


@pytest.mark.checks("SEG-25", "SEG-26")
@segments
@given(seed=seeds, interval=st.sampled_from([0, 70, 100, 400, 4096]))
@settings(max_examples=EXAMPLES, deadline=None)
def test_append_many_is_one_append_a_batch(
    write_format: WriteFormat, seed: int, interval: int
) -> None:
    """The same bytes in all files and the same state, whatever was there before."""
    chance = random.Random(seed)
    batches = random_batches(seed, chance.randrange(30), FORMATS)
    split = chance.randrange(len(batches) + 1)
    single, many = opened(interval, write_format), opened(interval, write_format)
    for batch in batches:
        single.append(last_offset(batch), batch)
    many.append_many(b"".join(batches[:split]))
    many.append_many(b"".join(batches[split:]))
    assert images(single) == images(many)
    for name in ("bytes_since_last_index_entry", "size"):
        assert getattr(single, name) == getattr(many, name)
    if batches:
        assert single.max_timestamp_so_far == many.max_timestamp_so_far
        assert single.offset_of_max_timestamp_so_far == many.offset_of_max_timestamp_so_far
    single.recover()
    entries = list(single.offset_index)
    assert entries == list(many.offset_index)


@pytest.mark.checks("SEG-12", "SEG-39")
@pytest.mark.parametrize("formats", [PLAIN, FORMATS], ids=["plain", "all"])
@given(seed=seeds, interval=st.sampled_from([0, 100, 4096]), is_recovered=st.booleans())
@settings(max_examples=EXAMPLES, deadline=None)
def test_bulk_reads_are_single_reads(
    formats: list[dict[str, Any]], seed: int, interval: int, is_recovered: bool
) -> None:
    """Offsets and timestamps inside and outside of the log, in any order, with repetitions."""
    chance = random.Random(seed)
    segment = opened(interval)
    segment.append_many(b"".join(random_batches(seed, chance.randrange(60), formats)))
    if is_recovered:
        segment.recover()
    offsets = [chance.randrange(BASE - 3, BASE + 200) for _ in range(40)]
    offsets += [-(2**63), 2**63 - 1, BASE]
    positions, sizes = segment.read_many(offsets)
    found = [segment.translate_offset(offset) for offset in offsets]
    expected = [(-1, -1) if one is None else (one.position, one.size_bytes) for one in found]
    assert expected == list(zip(positions.tolist(), sizes.tolist(), strict=True))
    assert (positions.dtype.name, sizes.dtype.name) == ("int64", "int32")
    timestamps = [chance.randrange(-2, 1002) for _ in range(40)] + [-(2**63), 2**63 - 1, 10**6]
    start = chance.choice([0, BASE, BASE + 50, 2**70])
    many = segment.find_offset_by_timestamp_many(timestamps, start)
    single = [segment.find_offset_by_timestamp(timestamp, start) for timestamp in timestamps]
    answers = [(-1, -1) if one is None else one[:2] for one in single]
    assert answers == list(zip(many[0].tolist(), many[1].tolist(), strict=True))


@pytest.mark.slow
@given(seed=seeds)
@settings(max_examples=EXAMPLES, deadline=None)
def test_single_searches_are_those_of_the_record_file(seed: int) -> None:
    """The searches with few reads answer as the plain scan of the whole log."""
    chance = random.Random(seed)
    segment = opened(0)
    segment.append_many(b"".join(random_batches(seed, 40, FORMATS)))
    for _ in range(20):
        offset = chance.randrange(BASE - 3, BASE + 150)
        plain = segment.log.search_for_offset_with_size(offset)
        assert plain == segment.translate_offset(offset)
    unindexed = opened(10**9)
    unindexed.append_many(segment.log.read())
    for _ in range(20):
        timestamp, start = chance.randrange(1000), chance.randrange(BASE, BASE + 90)
        plain_record = segment.log.search_for_timestamp(timestamp, 0, start)
        assert plain_record == unindexed.find_offset_by_timestamp(timestamp, start)


@pytest.mark.slow
@pytest.mark.parametrize("block_bytes", [64, 200, 1000])
def test_searches_across_blocks(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    """Blocks smaller than batches, and gaps between searches, change no answer."""
    monkeypatch.setattr(bulk, "_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(bulk, "_GAP_BYTES", block_bytes // 2)
    for seed in range(6):
        segment = opened(100)
        segment.append_many(b"".join(random_batches(seed, 60, FORMATS if seed % 2 else PLAIN)))
        offsets = list(range(BASE - 1, BASE + 200))
        found = [segment.translate_offset(offset) for offset in offsets]
        expected = [-1 if one is None else one.position for one in found]
        assert expected == segment.read_many(offsets)[0].tolist()
        times = list(range(0, 1000, 7))
        single = [segment.find_offset_by_timestamp(one, BASE + 9) for one in times]
        answers = [-1 if one is None else one.offset for one in single]
        assert answers == segment.find_offset_by_timestamp_many(times, BASE + 9)[1].tolist()


@pytest.mark.checks("SEG-20", "SEG-22", "SEG-23")
@segments
@given(seed=seeds, interval=st.sampled_from([0, 100, 400]))
@settings(max_examples=EXAMPLES, deadline=None)
def test_recovery_follows_its_definition(
    write_format: WriteFormat, seed: int, interval: int
) -> None:
    """Entries by the interval rule, batch by batch, up to the first bad one; all formats mixed."""
    chance = random.Random(seed)
    batches = random_batches(seed, chance.randrange(1, 40), FORMATS)
    bad = chance.randrange(len(batches) + 1)
    data = b"".join(batches[:bad])
    if bad < len(batches):
        damaged = bytearray(b"".join(batches[bad:]))
        damaged[len(batches[bad]) - 1] ^= 1
        segment_data = data + bytes(damaged)
    else:
        segment_data = data + b"\0" * chance.randrange(100)
    segment = opened(interval, write_format)
    segment.log.append(segment_data)
    assert segment.recover() == len(segment_data) - len(data)
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    position, last, largest = 0, 0, (-1, BASE)
    for batch in map(read_batch, batches[:bad]):
        if batch.max_timestamp > largest[0]:
            largest = (batch.max_timestamp, batch.last_offset)
        if position - last > interval:
            is_first = write_format.index_key == "first_offset"
            key = batch.base_offset if is_first else batch.last_offset
            offsets.append((key, position))
            if largest[0] > (times[-1][0] if times else -1):
                times.append(largest)
            last = position
        position += batch.size_bytes
    if largest[0] > (times[-1][0] if times else -1):
        times.append(largest)
    assert offsets == [(entry.offset, entry.position) for entry in segment.offset_index]
    assert times == [(entry.timestamp, entry.offset) for entry in segment.time_index]


def test_a_bulk_append_is_all_or_nothing() -> None:
    """A batch that is cut off, or too far, or bytes behind the last one."""
    segment = opened(0)
    good = random_batches(1, 3, PLAIN)
    far = write_batch([Record(BASE + 2**31, 1, None, b"")], base_offset=BASE + 2**31)
    for records, error in (
        (b"".join(good)[:-1], CorruptRecordError),
        (b"".join(good) + b"1", CorruptRecordError),
        (good[0] + far + good[1], SegmentOffsetOverflowError),
    ):
        with pytest.raises(error):
            segment.append_many(records)
        assert segment.size == 0
    segment.append_many(b"")
    assert len(images(segment)) == 1 or segment.offset_index.entries == 0


def test_what_is_no_row_of_integers_is_refused() -> None:
    """Floats, tables, words."""
    segment = opened(0)
    wrong: Any
    for wrong in ([1.5], [[1]], ["1"]):
        with pytest.raises(InvalidArgumentError):
            segment.read_many(wrong)
        with pytest.raises(InvalidArgumentError):
            segment.find_offset_by_timestamp_many(wrong, 0)
    assert segment.read_many([])[0].tolist() == []
    assert segment.read_many([BASE])[0].tolist() == [-1]


@pytest.mark.checks("SEG-12", "SEG-39")
def test_the_first_that_fails_in_the_order_asked() -> None:
    """Searches that fail each in its own way: where they begin in the log decides nothing."""
    formats = [{"magic": 1, "compression": "gzip"}, *PLAIN * 3]
    batches = [
        write_batch([Record(BASE + i, i, None, b"v")], base_offset=BASE + i, **more)
        for i, more in enumerate(formats)
    ]
    segment = opened(0)
    segment.append_many(b"".join(batches))
    file = segment.log.file
    file.pwrite((-5).to_bytes(8, "big", signed=True), 0)  # below the last inner offset
    file.pwrite((7).to_bytes(4, "big"), segment.size - len(batches[-1]) + 8)  # too small
    for order, error in (
        ("early late", InvalidRecordError),
        ("late early", CorruptRecordError),
        ("good late early good late", CorruptRecordError),
        ("good early late", InvalidRecordError),
    ):
        asked = order.split()
        with pytest.raises(error):
            segment.read_many([{"early": 0, "good": BASE + 2, "late": BASE + 9}[a] for a in asked])
        with pytest.raises(error):
            segment.find_offset_by_timestamp_many(
                [{"early": -9, "good": 2, "late": 99}[a] for a in asked], 0
            )


def test_a_plain_log_needs_no_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of many searches in a plain log of small batches are answered in blocks."""
    segment = opened(100)
    segment.append_many(b"".join(random_batches(5, 300, PLAIN)))
    count = len(read_batch_headers(segment.log.read()).table)
    assert count == 300
    asked = []
    monkeypatch.setattr(bulk, "find_batch_in", lambda *given: asked.append(given))
    monkeypatch.setattr(bulk, "find_record_in", lambda *given: asked.append(given))
    segment.read_many(np.arange(BASE, BASE + 500))
    segment.find_offset_by_timestamp_many(np.arange(1000), 0)
    assert asked == []
