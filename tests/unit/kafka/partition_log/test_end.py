# SPDX-License-Identifier: Apache-2.0
"""The end of a log: closed, deleted, or killed at any step; and readers beside its writer."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from segproof.errors import IndexClosedError, OffsetOutOfRangeError
from segproof.kafka import LogConfig, OffsetIndex, PartitionLog, Record, write_batch
from segproof.kafka.record_file import scan_memory
from segproof_harness.machine.simulated_files import KILL, SimulatedFiles, crashes_in
from segproof_tests.beside import run_beside
from segproof_tests.memory_logs import (
    CHANGES,
    Place,
    batch,
    bytes_of,
    check_order,
    filled,
    prepared,
)

# --- the end

CALLS: list[Callable[[PartitionLog], object]] = [
    lambda log: log.append_as_leader(batch(1), 0),
    lambda log: log.append_as_follower(batch(1, 99), 0),
    lambda log: log.read(0, 10),
    lambda log: log.fetch_offset_by_timestamp(-1),
    lambda log: log.collect_aborted_transactions(0, 9),
    lambda log: log.truncate_to(0),
    lambda log: log.truncate_fully_and_start_at(0),
    lambda log: log.roll(),
    lambda log: log.delete_old_segments(),
    lambda log: log.maybe_increment_log_start_offset(1),
    lambda log: log.update_high_watermark(1),
    lambda log: log.flush(),
    lambda log: log.split_overflowed_segment(0),
    lambda log: log.remove_expired_producers(),
    lambda log: log.delete(),
]


@pytest.mark.parametrize("end", [PartitionLog.close, PartitionLog.close_handlers])
@pytest.mark.parametrize("call", CALLS)
def test_closed_is_closed(
    call: Callable[[PartitionLog], object], end: Callable[[PartitionLog], None]
) -> None:
    """After closing nothing is answered or changed, and closing again does nothing."""
    place = Place()
    log = filled(place, 5)
    end(log)
    before = place.image()
    with pytest.raises(IndexClosedError):
        call(log)
    log.close()
    log.close_handlers()
    assert place.image() == before


def test_closing_cuts_the_files_and_writes_a_snapshot() -> None:
    """What is left is what is used, and opening again finds the same log."""
    place = Place()
    log = filled(place, 5)
    data = bytes_of(log)
    log.close()
    assert {name: len(image) for name, image in place.image().items() if "24." in name} == {
        "00000000000000000024.index": 0, "00000000000000000024.log": 223,
        "00000000000000000024.timeindex": 12, "00000000000000000024.snapshot": 10,
    }  # fmt: skip
    assert place.names("30.snapshot")
    with place.open() as log:
        assert (bytes_of(log), log.log_end_offset) == (data, 30)


def test_deleting_leaves_what_is_not_the_logs() -> None:
    """The directory goes with the last file, unless another one lies in it."""
    place = Place()
    log = filled(place, 5)
    log.truncate_to(3)
    place.put("notes.txt", b"mine")
    assert not log.delete()
    assert place.image() == {"notes.txt": b"mine"}
    with pytest.raises(IndexClosedError):
        log.read(0, 1)
    other = Place()
    assert filled(other, 5).delete()
    assert other.files.status("/t-0") is None


def test_an_append_whose_index_fails_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next append gets the same offsets, and no offset stands twice in the log."""
    place = Place()
    log = filled(place, 2)
    before = bytes_of(log)

    def fail(*_: object) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patched:
        patched.setattr(OffsetIndex, "append", fail)
        with pytest.raises(OSError, match="no space"):
            log.append_as_leader(batch(3), 0)
    assert (bytes_of(log), log.log_end_offset) == (before, 12)
    assert log.append_as_leader(batch(4), 0)[:2] == (12, 15)
    records = log.read(12, 1000).records
    assert records is not None
    assert [one.base_offset for one in records.batches()] == [12]


# --- killed at any step


OPERATIONS = {**CHANGES, "close": PartitionLog.close}


def loaded(image: dict[str, bytes], is_clean: bool) -> bytes:
    """Return the records of a log that is loaded from an image, and see that it goes on."""
    log = Place.of(image).open(is_clean=is_clean)
    data = bytes_of(log)
    check_order(log)
    assert log.append_as_leader(batch(2), 5).first_offset == log.log_end_offset - 2
    return data


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.checks("LOAD-16", "LOAD-17")
def test_a_process_that_is_killed_at_any_step(name: str) -> None:
    """Loading finds what was there before or after, or for a removal something between the two."""
    files = SimulatedFiles()
    place, log = prepared(files, name)
    before = bytes_of(log)
    images = crashes_in(files, partial(OPERATIONS[name], log), KILL)
    after = b"" if log.is_closed else bytes_of(log)
    after = before if name == "close" else after
    assert name in ("flush",) or len(images) > 1
    for image in images:
        data = loaded(image, is_clean=False)
        if len(after) >= len(before):
            assert after.startswith(data)
            assert len(data) >= len(before)
        elif name == "remove the oldest":
            assert before.endswith(data)
            assert len(data) >= len(after)
        else:
            assert before.startswith(data)
            assert len(data) >= len(after)
    assert loaded(place.image(), is_clean=False) == after


def test_an_empty_segment_is_replaced_without_a_moment_in_which_there_is_none() -> None:
    """A process that is killed meanwhile leaves a log that ends where it did, and not at 0."""
    files = SimulatedFiles()
    log = filled(Place(files), 2)
    log.truncate_fully_and_start_at(30)

    def write() -> None:
        assert log.roll() == 30
        assert log.append_as_leader(batch(1), 0).first_offset == 30
        log.truncate_to(30)
        assert log.roll(50) == 50
        assert log.roll(50) == 50

    images = crashes_in(files, write, KILL)
    ends = [Place.of(image).open(is_clean=False).log_end_offset for image in images]
    assert ends == sorted(ends, key=lambda end: end == 50)
    assert set(ends) == {30, 31, 50}


# --- readers beside the writer


def test_readers_beside_a_writer(tmp_path: Path) -> None:
    """While a writer appends, rolls, cuts and removes, each read gives records that were written.

    The value of a record is its offset, so records of the wrong place would tell.
    """
    config = LogConfig(segment_bytes=600, segment_index_bytes=240, index_interval_bytes=60)
    log = PartitionLog.open(tmp_path / "t-0", config, create=True)
    reads = [0]

    def append(size: int) -> None:
        start = log.log_end_offset
        records = [Record(n, 10**12, None, b"%d" % (start + n)) for n in range(size)]
        log.append_as_leader(write_batch(records, base_offset=0), 0)

    def read(numbers: Iterator[int]) -> None:
        start, end = log.log_start_offset, log.log_end_offset
        try:
            info = log.read(start + next(numbers) % max(end - start, 1), 300)
            data = b"" if info.records is None else info.records.read()
        except OffsetOutOfRangeError:
            return
        batches = list(scan_memory(data))
        for one in batches:
            for record in one.records():
                assert record.value == b"%d" % record.offset
        assert len(data) <= max(300, *(one.size_bytes for one in batches[:1]), 0)
        reads[0] += len(batches)

    def write() -> None:
        for turn in range(150):
            append(1 + turn % 4)
            if turn % 23 == 22:
                log.truncate_to(max(log.log_end_offset - 9, log.log_start_offset))
            if turn % 31 == 30:
                log.update_high_watermark(log.log_end_offset)
                log.maybe_increment_log_start_offset(log.log_end_offset - 12)
                log.delete_old_segments()
                log._log.directory.delete_due_files()

    readers = [partial(read, count(7, 7)) for _ in range(2)]
    assert [] == run_beside(write, *readers, pause_seconds=0.0003)
    log.close()
    assert reads[0] > 0
