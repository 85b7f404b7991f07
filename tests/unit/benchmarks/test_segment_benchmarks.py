# SPDX-License-Identifier: Apache-2.0
"""What is measured of segments and logs gives right answers, and says what was not run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segproof.kafka import OffsetIndex

SIZE = 100_000
LOG = f"{0:020d}.log"


def make_segment(directory: Path, name: str = "1 KB") -> tuple[Any, int]:
    """Write a segment; return it with the bytes of a batch."""
    from benchmarks import workloads

    shape = workloads.SHAPES[name]
    segment = workloads.write_segment(directory, shape, SIZE)
    return segment, segment.size_bytes * shape.records // segment.records


def write_targets(path: Path, numbers: list[int]) -> Path:
    """Write targets as a pass reads them."""
    path.write_bytes(np.array(numbers, ">i8").tobytes())
    return path


@pytest.mark.parametrize("name", ["1 KB", "160 x 100 B"])
def test_reads_find_the_batches(answer: Callable[..., int], tmp_path: Path, name: str) -> None:
    """The sum of positions is that of the batches that hold the offsets, however it is asked."""
    from benchmarks import workloads

    segment, batch_bytes = make_segment(tmp_path / "t-0", name)
    records = workloads.SHAPES[name].records
    asked = [segment.records - 1, 0, segment.records // 2, segment.records, 1]
    targets = write_targets(tmp_path / "targets", asked)
    expected = sum(n // records * batch_bytes if n < segment.records else -1 for n in asked)
    for mode in ("segment-read-many", "segment-read", "segment-translate"):
        assert expected == answer(mode, segment.log.parent, targets), mode


@pytest.mark.parametrize("name", ["1 KB", "160 x 100 B"])
def test_searches_find_the_records(answer: Callable[..., int], tmp_path: Path, name: str) -> None:
    """The record at offset n has the first timestamp plus n; behind the last one there is none."""
    from benchmarks import workloads

    segment, _ = make_segment(tmp_path / "t-0", name)
    asked = [segment.records - 1, 0, segment.records // 2, segment.records]
    times = [workloads.FIRST_TIMESTAMP + number for number in asked]
    targets = write_targets(tmp_path / "targets", times)
    for mode in ("segment-time-many", "segment-time"):
        assert sum(asked[:3]) - 1 == answer(mode, segment.log.parent, targets), mode


@pytest.mark.parametrize("mode", ["recover", "rebuild"])
def test_recoveries_leave_the_indexes_of_the_workload(
    answer: Callable[..., int], tmp_path: Path, mode: str
) -> None:
    """Byte by byte; and an index that differs is not passed over."""
    from benchmarks import segments, workloads

    segment, _ = make_segment(tmp_path / "made")
    recovered = tmp_path / "t-0"
    workloads.link_segment(segment.log, recovered)
    assert 0 == answer(mode, recovered)
    segments.expect_same_indexes(segment.log, recovered)
    index = (recovered / LOG).with_suffix(".timeindex")
    index.write_bytes(index.read_bytes()[:-1])
    with pytest.raises(RuntimeError, match=r"timeindex is not what it should be"):
        segments.expect_same_indexes(segment.log, recovered)


def test_appends_make_the_same_segment(answer: Callable[..., int], tmp_path: Path) -> None:
    """One by one or many at once: as many bytes and entries as the workload has."""
    segment, _ = make_segment(tmp_path / "made")
    filled = tmp_path / "t-0"
    filled.mkdir()
    with OffsetIndex(segment.log.with_suffix(".index"), 0) as index:
        expected = segment.size_bytes + 2 * len(index)
    assert expected == answer("segment-append", filled, segment.log)
    for piece_bytes in (1, 5000, 1 << 20):
        assert expected == answer("segment-append-many", filled, segment.log, piece_bytes)
    assert [] == list(filled.iterdir())


@pytest.mark.parametrize("piece_bytes", [1, 1023, 1024, 5000, 1 << 20])
def test_pieces_are_whole_batches(tmp_path: Path, piece_bytes: int) -> None:
    """A piece is one batch, or as many as fit; together they are the log."""
    from benchmarks.segment_passes import batches_in_pieces

    segment, batch_bytes = make_segment(tmp_path)
    data = segment.log.read_bytes()
    pieces = batches_in_pieces(data, piece_bytes)
    assert data == b"".join(pieces)
    whole = max(piece_bytes // batch_bytes, 1) * batch_bytes
    assert {min(whole, len(data))} == {len(piece) for piece in pieces[:-1] or pieces}


def test_a_log_opens_whole(answer: Callable[..., int], tmp_path: Path) -> None:
    """The answer is the number of segments and the end of the log."""
    from benchmarks import workloads

    made = workloads.write_segments(tmp_path / "t-0", workloads.SHAPES["1 KB"], 20_000, 3)
    assert 3 + made[-1].next_offset == answer("open-log", tmp_path / "t-0")


def test_what_is_prepared_is_no_part_of_a_pass() -> None:
    """Preparing happens once for each pass, before it."""
    from benchmarks.modes import Prepared, next_pass

    told: list[str] = []

    def one_pass() -> Callable[[], int]:
        told.append("worked")
        return lambda: 7

    def prepare() -> Callable[[], Callable[[], int]]:
        told.append("prepared")
        return one_pass

    ready = next_pass(Prepared(prepare))
    assert ["prepared"] == told
    assert 7 == ready()()
    assert ["prepared", "worked"] == told


def test_without_java_the_rows_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's cells are `not run`; ours are measured, and a goal about a ratio is not judged."""
    from benchmarks import measuring, segments
    from benchmarks.contestants import Java
    from benchmarks.table import Figure, NotRun

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(measuring, "wait_until_quiet", lambda: None)
    monkeypatch.setattr(segments, "SEGMENTS_QUICK", 2)
    monkeypatch.setattr(segments, "SMALL_SEGMENT_BYTES", 5000)
    with Java() as java:
        bench = measuring.Bench(tmp_path, java, quick=True)
        (opened,) = segments.logs(bench)
        monkeypatch.setattr(segments, "QUICK_BYTES", SIZE)
        row = segments._recover(bench, "16 KB", "recover")
    for one in (opened.rows[0], row):
        assert NotRun("java is not on PATH") == one.theirs
        assert one.ratio(one.compiled) is None
    assert isinstance(opened.rows[0].compiled, Figure)
    assert isinstance(row.interpreted, Figure)
    assert "**not run**" == row.cells()[-1]
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file()]


def test_every_group_has_a_name() -> None:
    """`--only NAME` takes each of them."""
    from benchmarks.__main__ import GROUPS

    assert {"recover", "rebuild", "logs", "reads", "appends"} <= set(GROUPS)
