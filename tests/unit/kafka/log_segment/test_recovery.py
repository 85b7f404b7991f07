# SPDX-License-Identifier: Apache-2.0
"""Recovery of a segment, and what a segment makes of files that are damaged."""

import contextlib
import random
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.errors import (
    CorruptIndexError,
    CorruptRecordError,
    IndexFullError,
    InvalidOffsetError,
    InvalidRecordError,
    SegmentOffsetOverflowError,
    SegproofError,
)
from segproof.integers import INT64_MAX
from segproof.kafka import LogSegment, Record, write_batch
from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof.kafka.producer_state import ProducerStateManager
from segproof_harness.laws.borders.log_files import marker, message, patched
from segproof_tests.memory_segments import (
    BASE,
    BATCHES,
    INDEX,
    TIMES,
    batch,
    entries,
    filled,
    images,
    opened,
)

# --- recovery


@pytest.mark.checks("SEG-20", "SEG-21", "SEG-24", "SEG-29")
def test_recovery_cuts_a_torn_tail_wherever_it_is() -> None:
    """Whole batches stay; what is cut is told; a second recovery finds nothing to do."""
    whole = b"".join(BATCHES)
    for size in range(len(whole) + 1):
        segment = opened()
        segment.log.append(whole[:size])
        assert segment.recover() == size % 70
        assert segment.log.read() == whole[: size // 70 * 70]
        again = images(segment)
        lengths = 8 * len(segment.offset_index), 12 * len(segment.time_index)
        assert (len(again[INDEX]), len(again[TIMES])) == lengths
        assert segment.bytes_since_last_index_entry == 0
        assert segment.recover() == 0
        assert again == images(segment)


@given(st.integers(0, 8 * 70 - 1), st.integers(1, 255))
def test_recovery_ends_before_a_batch_with_a_changed_byte(position: int, change: int) -> None:
    """Offsets and epochs are outside of the checksum; what a change of them leaves is not asked."""
    damaged = bytearray(b"".join(BATCHES))
    damaged[position] ^= change
    segment = opened()
    segment.log.append(bytes(damaged))
    in_batch = position % 70
    if in_batch < 8 or 12 <= in_batch < 16:
        return
    segment.recover()
    assert segment.size == position // 70 * 70


def test_recovery_of_zeros_and_of_huge_sizes() -> None:
    """A zero tail and a size of 2^31 - 1 end it; nothing is allocated for what a size claims."""
    for tail in (bytes(18), bytes(5000), struct.pack(">qi", 48, 2**31 - 1) + bytes(200)):
        segment = filled()
        segment.log.append(tail)
        assert segment.recover() == len(tail)
        assert segment.log.read() == b"".join(BATCHES)


@pytest.mark.checks("SEG-27")
def test_recovery_raises_for_an_offset_that_does_not_fit() -> None:
    """The log is left as it is."""
    segment = filled()
    segment.log.append(batch(BASE + 2**31, 9) + batch(49, 9))
    with pytest.raises(SegmentOffsetOverflowError):
        segment.recover()
    assert segment.size == 10 * 70
    assert segment.max_timestamp_so_far == 1070
    assert entries(segment)[0] == [(42, 140), (44, 280), (46, 420)]


@pytest.mark.parametrize("index_bytes", [16, 36])
def test_recovery_raises_where_an_index_is_full(index_bytes: int) -> None:
    """The entries that fit are there, the log is not cut, as upstream leaves them."""
    segment = opened(interval=0, index_bytes=index_bytes)
    segment.log.append(b"".join(BATCHES) + b"tail")
    with pytest.raises(IndexFullError):
        segment.recover()
    room = min(index_bytes // 8, index_bytes // 12)
    assert len(segment.time_index) == room - 1
    assert len(segment.offset_index) == room
    assert segment.size == 8 * 70 + 4


@pytest.mark.checks("SEG-20")
@pytest.mark.parametrize("interval", [0, 1000])
@pytest.mark.parametrize(
    ("offset", "kept"), [(0, 3), (39, 3), (41, 3), (42, 3), (43, 5)], ids=lambda one: str(one)
)
def test_recovery_ends_where_offsets_fall(interval: int, offset: int, kept: int) -> None:
    """The stored offset of batch 43 is another one; the batches before it stay, with or without
    entries, and no error is raised.
    """
    segment = opened(interval=interval)
    torn = offset.to_bytes(8, "big") + BATCHES[3][8:]
    segment.log.append(b"".join(BATCHES[:3]) + torn + BATCHES[4])
    assert segment.recover() == (5 - kept) * 70
    assert segment.size == kept * 70
    assert segment.read_next_offset() == 40 + kept
    assert len(entries(segment)[0]) == (kept - 1 if interval == 0 else 0)


@pytest.mark.checks("SEG-20")
def test_recovery_knows_the_last_offset_of_the_part_before() -> None:
    """A log is read in parts of 4096 batches; the first batch of a part has one before it, too."""
    batches = [batch(40 + number, 1000) for number in range(4097)]
    batches[4096] = bytes(7) + b"\x29" + batches[4096][8:]
    segment = opened(interval=10**6)
    segment.log.append(b"".join(batches))
    assert segment.recover() == 70


@pytest.mark.checks("SEG-20")
@pytest.mark.parametrize("odd", [0, 1, 4094, 4095, 4096])
def test_recovery_keeps_what_goes_on_from_the_batch_before_an_odd_one(odd: int) -> None:
    """The stored offset of one batch is too high, at the border of two parts as elsewhere: the
    batch behind it is no torn append, and one that has lost its offset still is.
    """
    batches = [batch(40 + number, 1000) for number in range(4099)]
    batches[odd] = patched(batches[odd], base_offset=2**20)
    segment = opened(interval=10**6)
    segment.log.append(b"".join(batches))
    assert segment.recover() == 0
    segment.log.append(patched(batch(0, 1000), base_offset=0))
    assert segment.recover() == 70


@pytest.mark.checks("SEG-20")
@pytest.mark.parametrize(("stored", "kept"), [(44, 2), (45, 2), (46, 3), (52, 3)])
def test_an_odd_batch_fits_between_those_beside_it(stored: int, kept: int) -> None:
    """Its four offsets need room below the stored offset, or the batch behind it is torn."""
    segment = opened(interval=1000)
    high = patched(batch(50, 1000), last_offset_delta=3)
    segment.log.append(batch(41, 1000) + high + batch(stored, 1000))
    assert segment.recover() == (3 - kept) * 70


@pytest.mark.checks("SEG-20")
@pytest.mark.parametrize(("recovery_point", "kept"), [(0, 2), (42, 2), (43, 3), (INT64_MAX, 3)])
def test_flushed_offsets_may_fall(recovery_point: int, kept: int) -> None:
    """A torn append begins at or above the recovery point: here it would at 42."""
    segment = opened(interval=1000)
    segment.log.append(BATCHES[0] + BATCHES[1] + BATCHES[1])
    assert segment.recover(flushed_end=recovery_point) == (3 - kept) * 70


@pytest.mark.checks("SEG-20")
@pytest.mark.parametrize("magic", [0, 1])
def test_recovery_ends_where_offsets_of_messages_fall(magic: int) -> None:
    """No checksum covers the offset of an old message either."""
    messages = [message(offset, b"v", magic=magic) for offset in (40, 41, 42)]
    segment = opened(interval=0)
    segment.log.append(messages[0] + messages[1] + bytes(8) + messages[2][8:])
    assert segment.recover() == len(messages[2])
    assert segment.read_next_offset() == 42


@pytest.mark.checks("SEG-27")
def test_recovery_raises_where_last_offsets_do_not_rise() -> None:
    """The distance of the last offset is in the checksum: that it is negative was no torn write."""
    segment = opened(interval=0)
    odd = patched(batch(49, 1030), last_offset_delta=-8)
    segment.log.append(BATCHES[0] + BATCHES[1] + BATCHES[2] + odd)
    with pytest.raises(InvalidOffsetError):
        segment.recover()
    assert entries(segment)[0] == [(41, 70), (42, 140)]


@pytest.mark.checks("SEG-28")
def test_recovery_assigns_new_epochs() -> None:
    """An epoch begins at the first batch that has it; older ones and none at all change nothing."""
    epochs = (2, 2, -1, 4, 3, 5, 5, 4)
    segment = opened()
    for offset, epoch in enumerate(epochs, BASE):
        segment.append(offset, batch(offset, 1, partition_leader_epoch=epoch))
    cache = LeaderEpochFileCache.in_memory()
    cache.assign(2, 30)
    segment.recover(None, cache)
    assert [(one.epoch, one.start_offset) for one in cache.epoch_entries()] == [
        (2, 30),
        (4, 43),
        (5, 45),
    ]


@pytest.mark.checks("SEG-28")
def test_recovery_enters_epoch_0() -> None:
    """It is an epoch as any other, and begins at its first batch."""
    segment = opened()
    for offset, epoch in enumerate((-1, 0, 0, 1), BASE):
        segment.append(offset, batch(offset, 1, partition_leader_epoch=epoch))
    cache = LeaderEpochFileCache.in_memory()
    segment.recover(None, cache)
    assert [(0, 41), (1, 43)] == [(one.epoch, one.start_offset) for one in cache.epoch_entries()]


@pytest.mark.checks("SEG-30")
@pytest.mark.parametrize(
    ("sequences", "last"),
    [((0, 1), 1), ((0, 7), 7), ((5, 5), 5), ((9, 2), 2), ((2**31 - 1, 0), 0)],
    ids=["in order", "gap", "repeated", "back", "wrapped"],
)
def test_recovery_takes_any_sequence(sequences: tuple[int, int], last: int) -> None:
    """A broker has accepted these batches: whatever their sequences are, the last one counts."""
    segment = opened()
    named = {"producer_id": 9, "producer_epoch": 3}
    for offset, sequence in enumerate(sequences, BASE):
        segment.log.append(batch(offset, 5, base_sequence=sequence, **named))
    segment.log.append(batch(42, 6))
    producers = ProducerStateManager.open("/t", writable=True, files=segment._files)
    assert segment.recover(producers) == 0
    known = producers.last_entry(9)
    assert known is not None
    assert (3, last, 41) == (known.producer_epoch, known.last_seq, known.last_offset)
    assert producers.map_end_offset == 43


def test_recovery_knows_the_last_sequence_of_a_batch_that_wraps() -> None:
    """Behind 2^31 - 1 the sequences of a batch go on from 0."""
    segment = opened()
    segment.log.append(batch(40, 5, 3, producer_id=9, producer_epoch=0, base_sequence=2**31 - 2))
    producers = ProducerStateManager.open("/t", writable=True, files=segment._files)
    segment.recover(producers)
    known = producers.last_entry(9)
    assert known is not None
    assert (2**31 - 2, 0) == (known.batch_metadata[-1].first_seq, known.last_seq)


ended = partial(marker, timestamp=5, producer_id=9)
"""Returns the end of a transaction."""


def transactional(offset: int, sequence: int, producer_id: int = 9) -> bytes:
    """A batch of a transaction."""
    return batch(
        offset, 5, is_transactional=True, producer_id=producer_id, producer_epoch=0,
        base_sequence=sequence,
    )  # fmt: skip


@pytest.mark.checks("SEG-30")
def test_recovery_rebuilds_the_transaction_index() -> None:
    """Aborted transactions are in it; the producer state knows the others."""
    segment = opened(interval=0)
    log = [
        transactional(40, 0),
        transactional(41, 0, 10),
        ended(42),
        batch(43, 6),
        ended(44, "COMMIT", producer_id=10),
        transactional(45, 1),
        batch(46, 6),
    ]
    segment.log.append(b"".join(log))
    files = segment._files
    producers = ProducerStateManager.open("/t", writable=True, files=files)
    segment.recover(producers)
    aborted = [tuple(one)[1:] for one in segment.txn_index]
    assert aborted == [(9, 40, 42, 41)]
    assert producers.map_end_offset == 47
    assert [tuple(txn) for txn in producers.ongoing_txns] == [(9, 45, None)]
    segment.recover()
    assert segment.txn_index.is_empty


def test_a_control_record_that_cannot_be_read_is_kept_and_ends_recovery() -> None:
    """Its batch is valid; what is behind it goes."""
    bad = write_batch(
        [Record(41, 5, b"\0\0", b"")],
        base_offset=41,
        is_control=True,
        is_transactional=True,
        producer_id=9,
        producer_epoch=0,
    )
    segment = opened(interval=0)
    segment.log.append(BATCHES[0] + bad + BATCHES[2])
    producers = ProducerStateManager.open("/t", writable=True, files=segment._files)
    assert segment.recover(producers) == 70
    assert segment.log.read() == BATCHES[0] + bad
    assert producers.map_end_offset == 41
    assert [key for key, _ in entries(segment)[0]] == [41]


@given(st.integers(0, 2**32))
def test_recovery_leaves_the_producer_state_that_each_batch_in_turn_leaves(seed: int) -> None:
    """Producers with and without transactions, with new epochs, before and after a bad marker."""
    chance = random.Random(seed)
    log: list[bytes] = []
    for offset in range(BASE, BASE + chance.randrange(60)):
        producer_id, epoch = chance.randrange(-1, 4), chance.choice([0, 0, 0, 1])
        who: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": epoch}
        kind = chance.randrange(20) if producer_id >= 2 else 0
        if kind > 17:
            word = chance.choice(["ABORT", "COMMIT"])
            log.append(marker(offset, word, producer_id=producer_id))
        elif kind == 17 and chance.random() < 0.1:
            bad = [Record(offset, 5, b"", b"")]
            more: Any = {"is_control": True, "is_transactional": True, **who}
            log.append(write_batch(bad, base_offset=offset, **more))
        else:
            sequence = chance.randrange(100) if producer_id >= 0 else -1
            log.append(batch(offset, 5, base_sequence=sequence, is_transactional=kind > 0, **who))
    segment = opened(interval=0)
    segment.log.append(b"".join(log))
    found = ProducerStateManager.open("/t", writable=True, files=segment._files)
    expected = ProducerStateManager.open("/t", writable=True, files=segment._files)
    kept, aborted, expected_error, found_error = 0, [], None, None
    for one in segment.log.batches():
        kept += one.size_bytes
        try:
            completed = expected.update_producers(one)
        except SegproofError as error:
            expected_error = type(error)
            break
        if completed is not None:
            if completed.is_aborted:
                lowest = expected.last_stable_offset(completed)
                aborted.append((0, *completed[:3], lowest))
            expected.complete_txn(completed)
        expected.update_map_end_offset(one.last_offset + 1)
    try:
        segment.recover(found)
    except SegproofError as error:
        found_error = type(error)
    if expected_error is InvalidRecordError:
        expected_error = None
        assert segment.size == kept
    assert expected_error is found_error
    assert dict(expected.active_producers) == dict(found.active_producers)
    assert expected.ongoing_txns == found.ongoing_txns
    assert expected.map_end_offset == found.map_end_offset
    assert aborted == [tuple(one) for one in segment.txn_index]


# --- untrusted input


@pytest.mark.checks("SEG-7")
@pytest.mark.parametrize("position", [561, 2**31 - 1, -1, -(2**31)])
def test_an_index_that_points_outside_of_the_log_is_named(position: int) -> None:
    """Which file, which entry, which law: never a silent wrong answer."""
    segment = filled()
    segment.offset_index.append(48, position)
    segment.time_index.maybe_append(2000, 48)
    for ask in (
        lambda: segment.read(48, 1),
        lambda: segment.read_many([41, 48]),
        lambda: segment.find_offset_by_timestamp(2000, 0),
        lambda: segment.find_offset_by_timestamp_many([2000, 5], 0),
        lambda: segment.read_next_offset(),
    ):
        with pytest.raises(CorruptIndexError) as caught:
            ask()
        error = caught.value
        assert (error.law, error.position, error.actual) == ("SEG-7", 24, position)
        assert error.path is not None
        assert error.path.endswith(".index")


@pytest.mark.parametrize(
    ("field", "data", "law"),
    [(8, b"\0\0\0\x0d", "SCAN-2"), (8, b"\x80\0\0\0", "SCAN-2"), (16, b"\x03", "SCAN-4")],
)
def test_a_damaged_header_is_named(field: int, data: bytes, law: str) -> None:
    """Which file, which byte, which law."""
    segment = filled()
    segment.log.file.pwrite(data, 350 + field)
    for ask in (
        lambda: segment.read(46 - 1, 1),
        lambda: segment.read_many([40, 45]),
        lambda: segment.find_offset_by_timestamp(1050, 0),
        lambda: segment.find_offset_by_timestamp_many([1000, 1050], 0),
    ):
        with pytest.raises(CorruptRecordError) as caught:
            ask()
        error = caught.value
        assert (error.law, error.position) == (law, 350)
        assert error.path is not None
        assert error.path.endswith(".log")


def test_a_size_of_two_gigabytes_ends_a_search_and_costs_no_memory() -> None:
    """It says that the batch is not whole."""
    segment = filled()
    segment.log.file.pwrite(struct.pack(">i", 2**31 - 1), 350 + 8)
    assert segment.read(45, 1) is None
    assert segment.find_offset_by_timestamp(1050, 0) is None
    assert segment.read_many([44, 45])[0].tolist() == [280, -1]


def test_an_index_into_the_middle_of_a_batch_never_reads_past_the_log() -> None:
    """Whatever it finds there, it is an answer or an error of ours."""
    for position in range(1, 560):
        segment = filled(interval=10**6)
        segment.offset_index.append(41, position)
        found = None
        with contextlib.suppress(SegproofError):
            found = segment.translate_offset(44)
        assert found is None or 0 <= found.position <= found.position + found.size_bytes <= 560


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("lookup", lambda segment: segment.translate_offset(47) is None),
        ("lookup_many", lambda segment: segment.read_many([47, 41])[0].tolist() == [-1, 70]),
    ],
)
def test_a_log_that_is_cut_between_two_looks_is_no_damage(
    monkeypatch: pytest.MonkeyPatch, name: str, ask: Callable[[LogSegment], bool]
) -> None:
    """A reader with the index from before a truncation and the log from after it looks again."""
    segment = filled()
    look = getattr(segment.offset_index, name)

    def cut_after(asked: Any) -> Any:
        """Answer, and cut the log behind the reader's back."""
        answer = look(asked)
        monkeypatch.undo()
        segment.truncate_to(43)
        return answer

    monkeypatch.setattr(segment.offset_index, name, cut_after)
    assert ask(segment)
    assert segment.size == 210
