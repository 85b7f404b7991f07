# SPDX-License-Identifier: Apache-2.0
"""Lookups at rare borders, beside a scan that reads every batch and record.

A target equal to a stored value, before and after it; at the ends of segments; in the gap that
compaction leaves at the end of a segment, where the batch lies in the next one but the entry in
this one.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from segproof.kafka import RecordFile
from segproof.reading.partition_reader import PartitionReader
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_harness.laws.borders.log_files import batch, offset_entries, time_entries
from segproof_tests.partition_files import name_of

COMPACTED = next(partition_of(each) for each in scenarios() if each.name == "compacted")


class Stored(NamedTuple):
    """A batch, and the records in it."""

    segment: int
    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    records: list[tuple[int, int]]
    """Timestamp and offset."""


def stored(folder: Path) -> list[Stored]:
    """Return every batch, in the order of the log."""
    return list(_stored(folder))


def _stored(folder: Path) -> Iterator[Stored]:
    for path in sorted(folder.glob("*.log")):
        with RecordFile.open(path) as log:
            for batch in log.batches():
                records = [(one.timestamp, one.offset) for one in batch.records()]
                yield Stored(
                    int(path.stem), batch.position, batch.size_bytes, batch.base_offset,
                    batch.last_offset, records,
                )  # fmt: skip


@pytest.fixture
def gaps(tmp_path: Path) -> Path:
    """Return three segments; the last offsets of the first two are gone, and every batch is
    indexed, also one that was removed since."""
    segments = {0: (0, 2, 5), 10: (10, 13), 20: (20, 24, 29)}
    for base, offsets in segments.items():
        log, index, times = b"", b"", b""
        for offset in offsets:
            time_ms = 1000 + 10 * offset
            index += offset_entries((offset + 1 - base, len(log)))
            times += time_entries((time_ms + 5, offset + 1 - base))
            log += batch(offset, time_ms, time_ms + 5)
        (tmp_path / name_of(base, ".log")).write_bytes(log)
        (tmp_path / name_of(base, ".index")).write_bytes(index)
        (tmp_path / name_of(base, ".timeindex")).write_bytes(times)
    return tmp_path


def expected_offset(batches: list[Stored], target: int) -> tuple[int, int, int, int] | None:
    """Return segment, base offset, position and size of the first batch that reaches an offset."""
    for one in batches:
        if one.last_offset >= target:
            return one.segment, one.base_offset, one.position, one.size_bytes
    return None


def expected_time(batches: list[Stored], target: int) -> tuple[int, int] | None:
    """Return the first record at or after a timestamp, in the first segment that reaches it."""
    segments = sorted({one.segment for one in batches})
    for base in segments:
        records = [each for one in batches if one.segment == base for each in one.records]
        found = [each for each in records if each[0] >= target]
        if found:
            return found[0]
    return None


@pytest.mark.parametrize("source", ["gaps", "compacted"])
def test_offsets_at_borders(source: str, gaps: Path) -> None:
    """The segment that is told is the one in which the batch lies, not the one of the entry."""
    folder = gaps if source == "gaps" else COMPACTED
    batches = stored(folder)
    edges = {one.base_offset for one in batches} | {one.last_offset for one in batches}
    edges |= {one.segment for one in batches}
    if source == "compacted":
        ends = [two.base_offset for one, two in pairwise(batches) if one.segment != two.segment]
        edges = {edge for edge in edges if any(abs(edge - end) < 40 for end in ends)}
    targets = sorted({edge + step for edge in edges for step in (-1, 0, 1) if edge + step >= 0})
    assert len(targets) > 20
    others = 0
    with PartitionReader(folder) as reader:
        for target in targets:
            told = reader.lookup_offset(target)
            expected = expected_offset(batches, target)
            found = (
                told.segment_base_offset, told.batch_base_offset, told.batch_position,
                told.batch_size,
            )  # fmt: skip
            if expected is None:
                assert told.batch_base_offset is None
                assert told.reason is not None
            else:
                assert expected == found, target
                others += (
                    max(one.segment for one in batches if one.segment <= target) != expected[0]
                )
    assert others > 0, "no target lies in the gap at the end of a segment"


@pytest.mark.parametrize("source", ["gaps", "compacted"])
def test_timestamps_at_borders(source: str, gaps: Path) -> None:
    """Before, at and after the timestamp of each record next to the end of a segment."""
    folder = gaps if source == "gaps" else COMPACTED
    batches = stored(folder)
    edges = [
        record[0]
        for one, two in zip([None, *batches], [*batches, None], strict=True)
        if one is None or two is None or one.segment != two.segment or source == "gaps"
        for batch in (one, two)
        if batch is not None
        for record in batch.records
    ]
    targets = sorted({edge + step for edge in edges for step in (-1, 0, 1)})
    assert len(targets) > 10
    with PartitionReader(folder) as reader:
        for target in targets:
            told = reader.lookup_timestamp(target)
            expected = expected_time(batches, target)
            found = None if told.offset is None else (told.timestamp, told.offset)
            assert expected == found, target
