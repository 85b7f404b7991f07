# SPDX-License-Identifier: Apache-2.0
"""Lookups beside a writer: leftovers of a truncation, and files that change between two calls."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import CorruptIndexError, SegproofError
from segproof.files import REAL_FILES
from segproof.lookup import PartitionReader
from segproof_harness.files.shipped_directories import KAFKA
from segproof_tests.altered_files import altered, disturbed
from segproof_tests.memory_logs import DIRECTORY, START_MS, Place, batch

PLAIN = KAFKA / "plain" / "plain-0"
ROOMY: dict[str, Any] = {
    "segment_bytes": 100_000,
    "segment_index_bytes": 2400,
    "index_interval_bytes": 300,
}


def copy(target: Path) -> Path:
    """Return a copy of a partition, every file of which was changed just now."""
    shutil.copytree(PLAIN, target / "plain-0", copy_function=shutil.copyfile)
    os.utime(target / "plain-0")
    return target / "plain-0"


@pytest.mark.parametrize("more", [0, 1, 2, 5, 20])
@pytest.mark.checks("ABSIDX-20")
def test_entries_left_by_a_truncation(more: int) -> None:
    """A cut log of a running broker was a damaged index, and hid records from searches by time."""
    place = Place()
    log = place.open(**ROOMY)
    for number in range(40):
        log.append_as_leader(batch(4, timestamp_ms=START_MS + 10 * number), 0)
    log.truncate_to(20)
    place.now_ms += 10_000
    for number in range(more):
        log.append_as_leader(batch(1 + number % 3, timestamp_ms=place.now_ms + 10 * number), 0)
    stored = [one for segment in log.log_segments for one in segment.log.batches()]
    records = [record for one in stored for record in one.times()]
    with PartitionReader(DIRECTORY, files=place.files) as reader:
        for target in range(log.log_end_offset + 200):
            expected = next((one.base_offset for one in stored if one.last_offset >= target), None)
            assert expected == reader.lookup_offset(target).batch_base_offset, target
        for time in {time + step for time, _ in records for step in (-1, 0, 1)} | {START_MS + 390}:
            found = next((offset for each, offset in records if each >= time), None)
            assert found == reader.lookup_timestamp(time).offset, time


def test_a_step_tells_of_leftover_entries() -> None:
    """With `explain` the entries that were passed over are told."""
    place = Place()
    log = place.open(**ROOMY)
    for number in range(40):
        log.append_as_leader(batch(4, timestamp_ms=START_MS + 10 * number), 0)
    log.truncate_to(20)
    with PartitionReader(DIRECTORY, files=place.files) as reader:
        steps = reader.lookup_offset(100, explain=True).steps
    (told,) = (step for step in steps if step.action == "leftover-entries")
    assert told.path.endswith(".index")
    assert isinstance(told.facts["passed_over"], int)
    assert told.facts["passed_over"] > 0


def test_a_closed_index_is_not_forgiven(tmp_path: Path) -> None:
    """A wrong entry of a segment that another one follows stays an error, changed just now or not.

    Nothing that a writer does explains it.
    """
    folder = copy(tmp_path)
    index = min(folder.glob("*.index"))
    data = bytearray(index.read_bytes())
    data[4:8] = (1 << 20).to_bytes(4, "big")
    index.write_bytes(data)
    target = int.from_bytes(data[:4], "big")
    with PartitionReader(folder) as reader, pytest.raises(CorruptIndexError, match="SEG-7"):
        reader.lookup_offset(target)


@pytest.mark.parametrize("by", ["offset", "timestamp"])
def test_segment_removed_before_it_is_opened(tmp_path: Path, by: str) -> None:
    """Retention removed the segment that was listed: the question is asked of those that stay."""
    folder = copy(tmp_path)
    first, second = sorted(folder.glob("*.log"))[:2]

    def remove() -> None:
        for path in folder.glob(f"{first.stem}.*"):
            path.unlink()

    with PartitionReader(folder, files=disturbed(".log", remove)) as reader:
        if by == "offset":
            answer = reader.lookup_offset(0)
            reason = f"below the first segment, which begins at offset {int(second.stem)}"
            assert reason == answer.reason
        else:
            assert int(second.stem) <= (reader.lookup_timestamp(0).offset or 0)


def test_log_cut_behind_its_index(tmp_path: Path) -> None:
    """Between reading the index and the log the last segment was cut: no damaged index."""
    folder = copy(tmp_path)
    last = max(folder.glob("*.log"))
    base = int(last.stem)
    with PartitionReader(folder) as reader:
        answer = reader.lookup_offset(1 << 62)
        assert answer.batch_base_offset is None
        sizes = [one.size_bytes for one in reader.segment(base).log.batches()]
        target = [one.last_offset for one in reader.segment(base).log.batches()][-1]

    def cut() -> None:
        os.truncate(last, sizes[0])
        os.truncate(last.with_suffix(".index"), 0)

    files = disturbed(".timeindex", cut)
    with PartitionReader(folder, files=files) as reader:
        answer = reader.lookup_offset(target)
    assert answer.batch_base_offset is None
    assert f"no batch of the partition reaches offset {target}: the last" in str(answer.reason)
    assert len(files.opened) > 1


def test_miss_is_asked_again(tmp_path: Path) -> None:
    """What is appended behind the opening is found; a reader stays right beside a writer."""
    folder = copy(tmp_path)
    last = max(folder.glob("*.log"))
    whole = last.read_bytes()
    first_size = int.from_bytes(whole[8:12], "big") + 12
    with PartitionReader(folder) as reader:
        found = reader.segment(int(last.stem)).log.batches()
        target = [one.last_offset for one in found][-1]
        os.truncate(last, first_size)
        reader._list()
        assert reader.lookup_offset(target).batch_base_offset is None
        last.write_bytes(whole)
        answer = reader.lookup_offset(target)
    assert answer.batch_base_offset is not None
    assert answer.batch_base_offset <= target


def test_directory_without_a_log_for_a_moment(tmp_path: Path) -> None:
    """A log that begins anew has no segment for a moment; a directory without one stays refused."""
    folder = copy(tmp_path)
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}

    listings: list[str] = []

    def list_directory(path: str) -> list[str]:
        """List; at first nothing."""
        listings.append(path)
        return [] if len(listings) == 1 else REAL_FILES.list_directory(path)

    with PartitionReader(folder, files=altered(list_directory=list_directory)) as reader:
        assert len(reader.base_offsets) == len([name for name in kept if name.endswith(".log")])
    for name in kept:
        (folder / name).unlink()
    with pytest.raises(SegproofError, match="no log"):
        PartitionReader(folder)
