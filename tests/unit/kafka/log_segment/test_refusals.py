# SPDX-License-Identifier: Apache-2.0
"""What a segment refuses, and its state then; random histories found each of these."""

import struct

import pytest

from segproof.errors import (
    CorruptIndexError,
    CorruptRecordError,
    IndexClosedError,
    IndexFullError,
    InvalidRecordError,
    SegproofError,
)
from segproof.kafka import LogSegment, Record, WriteFormat, write_batch
from segproof.layouts.kafka import BATCH_HEADER_BYTES
from segproof_harness.files.memory_files import write_file
from segproof_tests import memory_segments
from segproof_tests.memory_segments import DIRECTORY, NOW, batch, images, new_files


def opened(
    base_offset: int = 40,
    index_bytes: int = 240,
    first_offset: bool = False,
    given: dict[str, bytes] | None = None,
) -> LogSegment:
    """Open a segment in memory that indexes each batch behind the first; `given` lies there."""
    files = new_files()
    for suffix, image in (given or {}).items():
        write_file(files, f"{DIRECTORY}/{base_offset:020d}{suffix}", image)
    chosen = WriteFormat("first_offset" if first_offset else "last_offset")
    return memory_segments.opened(
        None, 0, index_bytes, lambda: files, base=base_offset, write_format=chosen
    )


def unreadable() -> bytes:
    """A compressed message whose first offset can't be read; the checksum does not cover it."""
    records = [Record(number, 1000, None, b"vv") for number in range(3)]
    damaged = bytearray(write_batch(records, base_offset=0, magic=1, compression="gzip"))
    damaged[0:8] = struct.pack(">q", 1)  # its last inner message says 2
    return bytes(damaged)


@pytest.mark.checks("SEG-44")
def test_a_closed_segment_tells_no_timestamp() -> None:
    """A closed segment that knew its largest timestamp went on telling it."""
    segment = opened()
    segment.append(40, batch(40, 1000))
    segment.close()
    for name in ("max_timestamp_so_far", "offset_of_max_timestamp_so_far", "largest_timestamp"):
        with pytest.raises(IndexClosedError):
            getattr(segment, name)


@pytest.mark.checks("SEG-40")
def test_a_log_that_is_gone_was_changed_at_no_time() -> None:
    """The time of a deleted log raised an error of the file; Kafka answers 0."""
    segment = opened()
    assert segment.last_modified == NOW
    segment.delete_if_exists()
    assert segment.last_modified == 0


@pytest.mark.checks("SEG-26")
def test_a_bulk_append_raises_what_the_first_refused_append_would() -> None:
    """An offset too far in a later batch was told before the full index that an earlier one met."""
    segment = opened(index_bytes=12)
    records = b"".join(batch(offset, 1000) for offset in (40, 41, 42, 40 + 2**31))
    with pytest.raises(IndexFullError):
        segment.append_many(records)
    assert segment.size == 0


@pytest.mark.checks("SEG-32")
def test_a_refused_truncation_leaves_the_indexes() -> None:
    """A transaction index of an unknown version refused after the other two indexes were cut."""
    segment = opened(given={".txnindex": struct.pack(">hqqqq", 1, 1, 50, 50, 50)})
    for number in range(4):
        segment.append(40 + number, batch(40 + number, 1000 + number))
    before = images(segment), segment.offset_index.entries, segment.time_index.entries
    with pytest.raises(SegproofError):
        segment.truncate_to(41)
    assert before == (images(segment), segment.offset_index.entries, segment.time_index.entries)


@pytest.mark.checks("SEG-43")
def test_a_refused_check_leaves_the_time_index() -> None:
    """A new time index was emptied before the transaction index was found damaged."""
    segment = opened(given={".txnindex": bytes(10)})
    assert (segment.offset_index.entries, segment.time_index.entries) == (0, 0)
    before = images(segment)
    with pytest.raises(CorruptIndexError):
        segment.sanity_check(True)
    assert before == images(segment)


@pytest.mark.checks("SEG-32")
def test_room_for_entries_whose_offsets_are_beyond_64_bits() -> None:
    """A damaged entry near the end of 64 bits wrapped, and counted as one that stays."""
    index = struct.pack(">iiii", 5000, 0, 6000, 0)
    segment = opened(2**63 - 2000, index_bytes=12, given={".index": index})
    assert segment.truncate_to(0) == 0
    assert segment.offset_index.entries == 0


@pytest.mark.checks("SEG-4")
def test_a_first_offset_is_read_only_for_an_entry() -> None:
    """An append refused a message whose first offset no entry needs; the bulk append took it."""
    one, other = opened(base_offset=0, first_offset=True), opened(base_offset=0, first_offset=True)
    one.append(1, unreadable())
    other.append_many(unreadable())
    assert images(one) == images(other)
    with pytest.raises(InvalidRecordError):
        one.append(1, unreadable())
    with pytest.raises(InvalidRecordError):
        other.append_many(unreadable())
    assert images(one) == images(other)


@pytest.mark.checks("SEG-20")
def test_recovery_ends_at_a_first_offset_that_cannot_be_read() -> None:
    """Recovery raised the error, where it ends at other messages that can't be read."""
    segment = opened(base_offset=0, first_offset=True)
    segment.append(0, batch(0, 1000))
    kept = segment.size
    segment.log.append(unreadable())
    assert segment.recover() == len(unreadable())
    assert segment.size == kept


@pytest.mark.checks("SEG-3")
@pytest.mark.parametrize("size", [30, BATCH_HEADER_BYTES - 1])
def test_a_batch_without_a_whole_header_is_refused(size: int) -> None:
    """One append stored it, or raised an error of its bytes; the bulk append refused it."""
    small = bytearray(batch(40, 1000)[:size])
    small[8:12] = struct.pack(">i", size - 12)
    for records in (bytes(small), bytes(small) + batch(41, 1000)):
        segment = opened()
        with pytest.raises(CorruptRecordError):
            segment.append(41, records)
        with pytest.raises(CorruptRecordError):
            segment.append_many(records)
        assert segment.size == 0
