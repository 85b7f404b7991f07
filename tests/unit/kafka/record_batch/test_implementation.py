# SPDX-License-Identifier: Apache-2.0
"""Record batches: golden bytes, round trips, and every way in which bad ones are refused."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.golden import BATCHES

from segproof.compression import compress
from segproof.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    InvalidRecordError,
    OutOfBoundsError,
    SegproofError,
)
from segproof.kafka import (
    Record,
    RecordHeader,
    write_batch,
)
from segproof.kafka.batch_table import check_batches
from segproof.kafka.record_batch import RecordBatch, read_batch
from segproof_harness.laws.borders import log_files
from segproof_harness.laws.borders.log_files import message

some_bytes = st.none() | st.binary(max_size=20)
some_headers = st.lists(st.builds(RecordHeader, st.text(max_size=5), some_bytes), max_size=3).map(
    tuple
)


@st.composite
def record_lists(draw: st.DrawFn, *, has_headers: bool = True) -> list[Record]:
    """Records in order, with gaps, and timestamps in any order."""
    offsets = sorted(draw(st.sets(st.integers(0, 3000), min_size=1, max_size=8)))
    return [
        Record(
            offset,
            draw(st.integers(-1, 2**62)),
            draw(some_bytes),
            draw(some_bytes),
            draw(some_headers) if has_headers else (),
        )
        for offset in offsets
    ]


def batch_of(block: bytes, count: int, *, attributes: int = 0) -> RecordBatch:
    """Return a batch of magic 2 around any block of records."""
    fields = {"base_timestamp": 0, "record_count": count, "attributes": attributes}
    return read_batch(log_files.batch_of(0, block, **fields))


@pytest.mark.checks("BATCH-6")
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@given(records=record_lists(), is_appended=st.booleans())
def test_magic_2_round_trip(compression: str, records: list[Record], is_appended: bool) -> None:
    """BATCH-6, BATCH-8: the same records come back, null and empty kept apart."""
    time = 77 if is_appended else None
    written = write_batch(
        records,
        base_offset=0,
        compression=compression,
        timestamp_type="LogAppendTime" if is_appended else "CreateTime",
        log_append_time=time,
    )
    batch = read_batch(b"xx" + written, 2)
    batch.ensure_valid()
    expected = [
        Record(r.offset, r.timestamp if time is None else time, r.key, r.value, r.headers)
        for r in records
    ]
    assert expected == list(batch.records()) == list(batch.record_columns())
    assert batch.check_records()[:3] == (len(records), records[-1].offset, True)
    assert batch.max_timestamp == max(r.timestamp for r in expected)


@pytest.mark.checks("BATCH-16", "BATCH-18")
@pytest.mark.parametrize(
    ("block", "count", "error"),
    [
        ("0c000000010100", -1, InvalidRecordError),  # a negative count
        ("0c000000010100", 2, InvalidRecordError),  # fewer records than counted
        ("0c000000010100", 2**31 - 1, InvalidRecordError),  # a count that would not fit in memory
        ("0c0000000101000c000000010100", 1, InvalidRecordError),  # bytes behind the last record
        ("0e000000010100", 1, InvalidRecordError),  # a length beyond the rest
        ("0d000000010100", 1, InvalidRecordError),  # a negative length
        ("0c000000010102", 1, InvalidRecordError),  # a header count beyond the rest
        ("0c000000010101", 1, InvalidRecordError),  # a negative header count
        ("10000000010102" + "0101", 1, InvalidRecordError),  # a header without a key
        ("0e00000001010000", 1, InvalidRecordError),  # a record longer than its fields
        ("0c000000080100", 1, InvalidRecordError),  # a key longer than its record
        ("ffffffffff000000010100", 1, InvalidArgumentError),  # a length that does not end
    ],
)
def test_bad_records_are_refused(block: str, count: int, error: type[SegproofError]) -> None:
    """BATCH-16, BATCH-18, behind a right checksum; valid all the same, since BATCH-14."""
    batch = batch_of(bytes.fromhex(block), count)
    batch.ensure_valid()
    for read in (batch.records, batch.record_columns, batch.check_records):
        with pytest.raises(error):
            list(read())


def test_records_before_a_bad_one_are_handed_out() -> None:
    """An uncompressed batch gives what comes before the fault, a compressed one nothing."""
    good = bytes.fromhex("0c000000010100")
    found = _until_error(batch_of(good + b"\x7f", 2))
    assert found == [Record(0, 0, None, None)]
    assert _until_error(batch_of(compress("gzip", good + b"\x7f"), 2, attributes=1)) == []


def _until_error(batch: RecordBatch) -> list[Record]:
    found = []
    records = batch.records()
    while True:
        try:
            found.append(next(records))
        except SegproofError:
            return found


def test_more_records_than_one_block() -> None:
    """Records are read in blocks; a batch of 10000 comes out whole, and in order."""
    records = [Record(i, i, None, b"%d" % i) for i in range(10_000)]
    for compression in ("none", "lz4"):
        batch = read_batch(write_batch(records, base_offset=0, compression=compression))
        assert list(batch.records()) == records


@pytest.mark.checks("BATCH-2", "BATCH-3")
def test_checksum_covers_what_it_should() -> None:
    """BATCH-2, BATCH-3: a change in front of the covered bytes is not seen, behind it is."""
    for name, first in (("magic 0", 16), ("magic 1", 16), ("magic 2", 21)):
        image = BATCHES[name]
        for position in range(len(image)):
            if position in range(8, 12) or position == 16:
                continue  # a size or magic makes it another batch
            changed = bytearray(image)
            changed[position] ^= 1
            in_checksum = position in (range(12, 16) if first == 16 else range(17, 21))
            assert read_batch(bytes(changed)).is_valid() == (
                position < first and not in_checksum
            ), (name, position)


@pytest.mark.checks("BATCH-14")
def test_ensure_valid_says_what_is_wrong() -> None:
    """BATCH-14: a size below 61 or a wrong checksum is corrupt-record."""
    small = struct.pack(">qiibI", 0, 30, -1, 2, 0) + bytes(21)
    with pytest.raises(CorruptRecordError, match="42 bytes"):
        read_batch(small).ensure_valid()
    with pytest.raises(OutOfBoundsError):
        _ = read_batch(small).record_count
    changed = BATCHES["magic 2"][:-1] + b"!"
    with pytest.raises(CorruptRecordError, match="checksum"):
        read_batch(changed).ensure_valid()


@pytest.mark.parametrize(
    "data",
    [b"", bytes(16), bytes(40), BATCHES["magic 2"][:-1], b"\0" * 11 + b"\x20" + b"\x03" * 40],
)
def test_read_batch_refuses(data: bytes) -> None:
    """Nothing, a size below 14, a cut batch and an unknown magic are corrupt-record."""
    with pytest.raises(CorruptRecordError):
        read_batch(data)


def wrapper_of_many(*, nested_at: int | None = None, swapped_at: int | None = None) -> bytes:
    """A gzip message with more inner messages than are read at a time: 5000, from offset 100 on."""
    inner = [message(number, b"v") for number in range(5000)]
    if nested_at is not None:
        inner[nested_at] = message(nested_at, b"v", attributes=1)
    if swapped_at is not None:
        inner[swapped_at - 1 : swapped_at + 1] = inner[swapped_at], inner[swapped_at - 1]
    return log_files.wrapper(5099, *inner)


@pytest.mark.checks("BATCH-10")
def test_many_inner_messages_are_one_sequence() -> None:
    """Inner messages are read in parts, and no border between two parts shows."""
    batch = read_batch(wrapper_of_many())
    offsets = list(range(100, 5100))
    assert batch.base_offset == 100
    assert [record.offset for record in batch.records()] == offsets
    assert [offset for _, offset in batch.times()] == offsets
    assert batch.record_columns().offsets.tolist() == offsets


@pytest.mark.parametrize("nested_at", [0, 1, 4095, 4096, 4097])
def test_records_before_a_nested_wrapper(nested_at: int) -> None:
    """BATCH-11: what lies before it is handed out, in whichever part it is."""
    batch = read_batch(wrapper_of_many(nested_at=nested_at))
    for read in (batch.records, batch.times):
        found: list[object] = []
        with pytest.raises(InvalidRecordError):
            found.extend(read())
        assert len(found) == nested_at
    with pytest.raises(InvalidRecordError):
        batch.record_columns()
    if nested_at:
        assert batch.base_offset == 100
    else:
        with pytest.raises(InvalidRecordError):
            _ = batch.base_offset


@pytest.mark.parametrize("swapped_at", [1, 4095, 4096, 4097])
def test_deep_check_across_parts(swapped_at: int) -> None:
    """Two offsets in the wrong order are seen where a part ends, too."""
    found = []
    for data in (wrapper_of_many(), wrapper_of_many(swapped_at=swapped_at)):
        (checked,) = check_batches(data, deep=True)
        assert checked.summaries is not None
        found += checked.summaries[["record_count", "last_offset", "offsets_rise"]].tolist()
    assert found == [(5000, 5099, True), (5000, 5099, False)]


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_errors_of_a_deep_check_hold_no_frames(codec: int) -> None:
    """The error of each bad batch is kept; with its frames it kept the batch's bytes too."""
    (checked,) = check_batches(3 * message(0, b"junk", attributes=codec), deep=True)
    assert sorted(checked.errors) == [0, 1, 2]
    for error in checked.errors.values():
        assert (error.__traceback__, error.__cause__, error.__context__) == (None, None, None)


@pytest.mark.filterwarnings("error")
def test_inner_offsets_wrap_without_a_word() -> None:
    """BATCH-10: the distance to the last inner offset is taken modulo 2^64, as in Java."""
    inner = message(-(2**63), b"v")
    batch = read_batch(log_files.wrapper(2**62, inner))
    assert batch.base_offset == 2**62
    assert [record.offset for record in batch.records()] == [2**62]


@pytest.mark.parametrize(("magic", "expected"), [(0, -1), (1, 0), (2, 5)])
def test_log_append_time_is_for_inner_messages_of_magic_1(magic: int, expected: int) -> None:
    """An inner magic other than 0 and 1 was given the wrapper's time too; it keeps its own."""
    inner = bytearray(message(0, b"v", min(magic, 1)))
    inner[16] = magic
    if magic > 0:
        inner[18:26] = (5).to_bytes(8, "big")
    wrapper = message(0, compress("gzip", bytes(inner)), attributes=9)
    wrapper = log_files.patched(wrapper, timestamp=0)
    assert read_batch(wrapper).max_timestamp == 0
    assert [record.timestamp for record in read_batch(wrapper).records()] == [expected]
    assert [timestamp for timestamp, _ in read_batch(wrapper).times()] == [expected]


def test_columns_are_as_wide_as_the_records() -> None:
    """The arrays slice keys and values out of one buffer, without copies."""
    records = [Record(i, i, b"k" * i, None if i == 1 else b"v") for i in range(3)]
    columns = read_batch(write_batch(records, base_offset=0, compression="zstd")).record_columns()
    assert list(columns.keys()) == [b"", b"k", b"kk"]
    assert list(columns.values()) == [b"v", None, b"v"]
    assert columns.value_lengths.tolist() == [1, -1, 1]
    assert all(one < other for one, other in pairwise(columns.key_positions.tolist()))
