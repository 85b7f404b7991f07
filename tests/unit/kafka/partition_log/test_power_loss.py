# SPDX-License-Identifier: Apache-2.0
"""A log after a loss of power: what was made durable is there, and what is there has no hole.

At each step of a history three crash images are loaded: without any byte that was not synced, and
with all bytes or all names that the system might have written by itself.
"""

from collections.abc import Callable
from functools import partial

import pytest

from segproof.kafka import LogManager, PartitionLog
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.machine.simulated_files import ORDERED, POWER_LOSS, SimulatedFiles, crashes_in
from segproof_tests.memory_logs import (
    CONFIG,
    DIRECTORY,
    START_MS,
    Place,
    batch,
    bytes_of,
    segments_of,
)

STEPS: list[Callable[[PartitionLog], object]] = [
    *[lambda log: log.append_as_leader(batch(6), 0)] * 9,
    lambda log: log.flush(),
    lambda log: log.append_as_leader(batch(6), 1),
    lambda log: log.truncate_to(50),
    lambda log: log.append_as_leader(batch(6, timestamp_ms=START_MS - 9), 2),
    lambda log: log.truncate_to(20),
    lambda log: log.append_as_leader(batch(20, timestamp_ms=START_MS - 7), 3),
    lambda log: log.roll(),
    lambda log: log.flush(True),
    lambda log: log.append_as_leader(batch(3), 3),
    PartitionLog.close,
]


def durable_bytes(log: PartitionLog) -> int:
    """Return how many bytes of records lie below the recovery point."""
    batches = (batch for one in log.log_segments for batch in one.log)
    point = log.recovery_point
    return sum(batch.size_bytes for batch in batches if batch.last_offset < point)


@pytest.mark.checks("LOAD-17")
def test_power_is_lost_at_any_step() -> None:
    """All below the recovery point is there, and behind it a prefix of what was written.

    A truncation renames several segments: in any order these names may leave a hole.
    """
    files = SimulatedFiles()
    log = Place(files).open()
    checked = 0
    for step in STEPS:
        before, durable_before = bytes_of(log), durable_bytes(log)
        images = crashes_in(files, partial(step, log), ORDERED)
        after = before if log.is_closed else bytes_of(log)
        durable_after = durable_before if log.is_closed else durable_bytes(log)
        least = min(durable_before, durable_after)
        for image in images:
            data = bytes_of(Place.of(image).open(is_clean=False))
            assert before.startswith(data) or after.startswith(data)
            assert len(data) >= least
            checked += 1
    assert checked > 50


def known_of(log: PartitionLog) -> tuple[bytes, object]:
    """Return the records, and the last batch of the producer, which is what a snapshot keeps."""
    entry = log.producer_state_manager.last_entry(5)
    assert entry is not None
    return bytes_of(log), entry.batch_metadata[-1]


@pytest.mark.parametrize("lost", ["", ".index", ".snapshot"])
def test_power_is_lost_during_a_recovery(lost: str) -> None:
    """The next one finds the same records and producers, whatever of the snapshots is durable."""
    files = SimulatedFiles()
    place = Place(files)
    log = place.open()
    for number in range(6):
        producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 2 * number}
        log.append_as_leader(batch(2, **producer), 0)
        log.roll()
    log.flush(True)
    expected = known_of(log)
    log.close_handlers()
    for name in place.names(lost) if lost else []:
        files.remove(f"{DIRECTORY}/{name}")
    files.sync_directory(DIRECTORY)
    images = crashes_in(files, lambda: place.open(is_clean=False).close_handlers())
    assert len(images) > 10
    for image in images:
        assert known_of(Place.of(image).open(is_clean=False)) == expected


def test_power_is_lost_while_an_empty_segment_is_replaced() -> None:
    """The log ends where it did, though no record tells where that is."""
    files = SimulatedFiles()
    log = Place(files).open()
    log.append_as_leader(batch(6), 0)
    log.truncate_fully_and_start_at(30)
    images = crashes_in(files, log.roll, POWER_LOSS)
    assert len(images) > 3
    for image in images:
        assert Place.of(image).open(is_clean=False).log_end_offset == 30


def test_power_is_lost_while_a_segment_is_split() -> None:
    """All records are there, in the old segment or in those that take its place."""
    files = SimulatedFiles()
    place = Place(files)
    data = batch(3) + batch(3, 2**31 + 7)
    place.put(f"{0:020d}.log", data)
    files.settle()
    images = crashes_in(files, lambda: place.open(is_clean=False), ORDERED)
    assert len(images) > 5
    for image in images:
        assert data == bytes_of(Place.of(image).open(is_clean=False))


def test_all_is_durable_before_the_clean_mark() -> None:
    """Else the last time entry is lost, and nothing tells a later start to make it anew."""
    files = SimulatedFiles()
    manager = LogManager("/", CONFIG, create=True, files=files, time=lambda: START_MS)
    log = manager.get_or_create_log("t", 0)
    for number in range(9):
        log.append_as_leader(batch(1, timestamp_ms=START_MS + number), 0)
    manager.shutdown()
    assert kept_by(files) == files.images(DIRECTORY)


def test_a_segment_that_was_flushed_before_it_is_rolled() -> None:
    """Its records are durable; how its indexes end must be too, for it is not recovered again."""
    files = SimulatedFiles()
    log = Place(files).open()
    for number in range(9):
        log.append_as_leader(batch(1, timestamp_ms=START_MS + number), 0)
    log.flush()
    log.roll()
    kept = kept_by(files)
    assert {name: kept.get(name) for name in _indexes(files)} == _indexes(files)


def kept_by(files: SimulatedFiles) -> dict[str, bytes]:
    """Return what a loss of power would leave at least of the log."""
    start = f"{DIRECTORY}/"
    image = files.durable().items()
    return {path.removeprefix(start): data for path, data in image if path.startswith(start)}


def _indexes(files: MemoryFiles) -> dict[str, bytes]:
    """Return the index files of the first segment."""
    first = "0" * 20
    return {
        name: data
        for name, data in files.images(DIRECTORY).items()
        if name in (f"{first}.index", f"{first}.timeindex")
    }


@pytest.mark.parametrize("damaged", [0, 1])
@pytest.mark.parametrize("lost", ["", ".index", ".timeindex"])
@pytest.mark.checks("LOAD-8", "LOAD-17")
def test_a_crash_in_a_recovery_that_cuts(damaged: int, lost: str) -> None:
    """The next recovery finds what lies before the damage, without a hole, at whichever step."""
    files = SimulatedFiles()
    place = Place(files)
    log = place.open(segment_bytes=300)
    for _ in range(5):
        log.append_as_leader(batch(2), 0)
        log.append_as_leader(batch(2), 0)
        log.roll()
    log.close_handlers()
    name = place.names(".log")[damaged]
    data = place.image()[name]
    half = len(data) // 2
    place.put(name, data[: half + 70] + b"?" + data[half + 71 :])
    for index in place.names(lost)[damaged:] if lost else []:
        files.remove(f"{DIRECTORY}/{index}")
    files.settle()
    images = crashes_in(files, lambda: place.open(is_clean=False, segment_bytes=300))
    assert len(images) > 20
    for image in images:
        again = Place.of(image).open(is_clean=False, segment_bytes=300)
        offsets = [one.base_offset for part in again.log_segments for one in part.log]
        assert offsets == list(range(0, 4 * damaged + 2, 2))
        assert again.log_end_offset == 4 * damaged + 2


FIRST, SECOND = (f"{base:020d}" for base in (0, 2))
TWO = batch(2) + batch(2, 2)
"""Four flushed records."""


def without_offset(data: bytes) -> bytes:
    """Return a batch whose first sector was not written: it held the stored offset alone."""
    return bytes(8) + data[8:]


@pytest.mark.parametrize("recovery_point", [0, 4])
@pytest.mark.parametrize("interval", [0, 4096])
@pytest.mark.checks("SEG-20", "LOAD-17")
def test_a_torn_append_that_lost_its_offset(recovery_point: int, interval: int) -> None:
    """The offsets of flushed records are not given again, nor are these records cut.

    Kafka keeps the torn batch, and the log ends at 2; with an entry for it the segment is emptied.
    """
    place = Place.of({f"{FIRST}.log": TWO + without_offset(batch(2, 4))})
    log = place.open(0, recovery_point, is_clean=False, index_interval_bytes=interval)
    assert (log.log_end_offset, log.recovery_point, bytes_of(log)) == (4, recovery_point, TWO)
    log.append_as_leader(batch(2), 0)
    assert log.log_end_offset == 6
    assert bytes_of(log)[: -len(batch(2))] == TWO


@pytest.mark.parametrize("recovery_point", [0, 2, 4])
@pytest.mark.checks("SEG-27", "LOAD-6")
def test_a_torn_append_to_a_later_segment(recovery_point: int) -> None:
    """The lost offset is below the base of the segment: Kafka can neither split nor load it."""
    torn = batch(2, 2) + without_offset(batch(2, 4))
    place = Place.of({f"{FIRST}.log": batch(2), f"{SECOND}.log": torn})
    log = place.open(0, recovery_point, is_clean=False, index_interval_bytes=0)
    assert (log.log_start_offset, log.log_end_offset, bytes_of(log)) == (0, 4, TWO)


@pytest.mark.checks("LOAD-17", "LOG-11")
def test_a_roll_leaves_no_hole() -> None:
    """Where the new segment has its name, all batches before it are there.

    Kafka flushes the old segment later: the log goes on at the new base, and what was lost between
    is skipped.
    """
    files = SimulatedFiles()
    log = Place(files).open()
    for _ in range(4):
        log.append_as_leader(batch(2), 0)
    before = bytes_of(log)
    images = crashes_in(files, log.roll, POWER_LOSS, bound=32, sector_bytes=64)
    ends = set()
    for image in images:
        again = Place.of(image).open(is_clean=False)
        data = bytes_of(again)
        assert before.startswith(data)
        assert again.log_end_offset == 2 * (len(data) // len(batch(2)))
        ends.add(again.log_end_offset)
    assert {0, 8} <= ends


@pytest.mark.checks("LOAD-2")
def test_an_empty_preallocated_segment_is_rolled() -> None:
    """Loading reads a swap file: preallocated zeros are no batch, and ended it."""
    files = SimulatedFiles()
    log = Place(files).open(preallocate=True)
    log.append_as_leader(batch(2), 0)
    log.roll()
    images = crashes_in(files, log.roll)
    assert len(images) > 5
    for image in images:
        again = Place.of(image).open(is_clean=False, preallocate=True)
        assert (again.log_end_offset, bytes_of(again)) == (2, batch(2))
    assert len(Place.of(images[-1]).image()[f"{SECOND}.log"]) == CONFIG.segment_bytes


@pytest.mark.checks("LOAD-17")
def test_what_a_recovery_changed_is_durable_behind_an_empty_roll() -> None:
    """The recovery point moves over the recovered segment, whose new indexes must be durable."""
    files = SimulatedFiles()
    place = Place(files)
    place.put(f"{FIRST}.log", batch(2))
    place.put(f"{SECOND}.log", b"")
    files.settle()
    log = place.open(is_clean=False)
    assert (log.roll(), log.recovery_point) == (2, 2)
    again = Place.of(files.durable()).open(0, 2, is_clean=False)
    assert segments_of(again) == [(0, len(batch(2))), (2, 0)]
    check_answers(again)


def check_answers(log: PartitionLog) -> None:
    """Each offset and each time is found through the indexes, as reading all batches finds it."""
    batches = [one for segment in log.log_segments for one in segment.log]
    records = [(one.timestamp, one.offset) for each in batches for one in each.records()]
    for offset in range(log.log_end_offset):
        found = log.read(offset, 1, min_one_message=True).records
        assert found is not None
        first = next(iter(found.batches()))
        assert first.base_offset <= offset <= first.last_offset
    for timestamp in range(START_MS, START_MS + 40):
        found_at = log.fetch_offset_by_timestamp(timestamp)
        offsets = [one for time, one in records if time >= timestamp]
        assert (None if found_at is None else found_at.offset) == min(offsets, default=None)
    newest = log.fetch_offset_by_timestamp(-3)
    assert newest is not None
    assert newest.offset == log.log_end_offset - 1


@pytest.mark.checks("LOAD-17", "SEG-38")
@pytest.mark.parametrize("recovery_point", [0, 8, 10])
@pytest.mark.parametrize("target", [2, 4, 8])
@pytest.mark.parametrize("interval", [0, 150])
def test_what_is_rolled_needs_no_recovery(recovery_point: int, target: int, interval: int) -> None:
    """A checkpoint beyond the old segment keeps a recovery from it, so its indexes are true.

    Its last time entry is written by the roll, and a truncation leaves entries behind the last
    one: both must be durable before the new segment has its name.
    """
    files = SimulatedFiles()
    log = Place(files).open(index_interval_bytes=interval)
    for number in range(4):
        log.append_as_leader(batch(2, timestamp_ms=START_MS + 10 * number), 0)
    log.flush()

    def roll() -> None:
        log.truncate_to(target)
        log.roll()

    images = crashes_in(files, roll, POWER_LOSS, bound=32, sector_bytes=64)
    assert len(images) > 5
    for image in images:
        again = Place.of(image).open(0, recovery_point, is_clean=False)
        assert target <= again.log_end_offset <= 8
        check_answers(again)


@pytest.mark.checks("ABSIDX-12")
def test_the_length_of_an_empty_index_is_durable() -> None:
    """Nothing of an empty file is mapped: the file itself must be synced."""
    files = SimulatedFiles()
    log = Place(files).open(index_interval_bytes=10**6)
    log.append_as_leader(batch(2), 0)
    log.roll()
    assert ("sync", f"{DIRECTORY}/{FIRST}.index") in [one[:2] for one in files.journal.effects]


@pytest.mark.parametrize("recovery_point", [0, 60])
@pytest.mark.checks("LOAD-17")
def test_a_stored_offset_that_is_too_high(recovery_point: int) -> None:
    """A bit flipped upwards in one batch: the batches and segments behind it are sound."""
    size = len(batch(2))
    images = {
        f"{base:020d}.log": b"".join(batch(2, base + 2 * number) for number in range(10))
        for base in (0, 20, 40)
    }
    odd = bytearray(images[f"{FIRST}.log"])
    odd[4 * size + 5] ^= 0x10
    images[f"{FIRST}.log"] = bytes(odd)
    log = Place.of(images).open(0, recovery_point, is_clean=False, index_interval_bytes=4096)
    assert [bytes_of(log), log.log_end_offset] == [b"".join(images.values()), 60]


@pytest.mark.parametrize("recovery_point", [0, 15, 20])
@pytest.mark.checks("LOAD-17")
def test_a_stored_offset_that_is_too_high_in_the_last_segment(recovery_point: int) -> None:
    """Whatever is flushed of it."""
    odd = bytearray(b"".join(batch(2, 2 * number) for number in range(10)))
    odd[4 * len(batch(2)) + 5] ^= 0x10
    place = Place.of({f"{FIRST}.log": bytes(odd)})
    log = place.open(0, recovery_point, is_clean=False, index_interval_bytes=4096)
    assert (bytes_of(log), log.log_end_offset) == (bytes(odd), 20)


@pytest.mark.checks("LOAD-17")
def test_flushed_batches_that_overlap() -> None:
    """A follower takes them in one append: they are flushed, so none of them is torn."""
    place = Place()
    log = place.open(0, 0, is_clean=True)
    log.append_as_follower(batch(6), 0)
    log.append_as_follower(batch(4, 6) + batch(4, 8) + batch(2, 12), 0)
    log.flush(True)
    again = Place.of(place.image()).open(0, log.recovery_point, is_clean=False)
    assert (log.recovery_point, again.log_end_offset) == (14, 14)
    assert bytes_of(again) == bytes_of(log)
