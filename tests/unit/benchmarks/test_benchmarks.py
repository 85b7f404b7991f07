# SPDX-License-Identifier: Apache-2.0
"""The benchmarks measure sound files, say what was not run, and hide no missed goal."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from segproof.kafka import OffsetIndex, TimeIndex
from segproof.verification import verify


@pytest.fixture
def table() -> ModuleType:
    """Return the module of the table."""
    import benchmarks.table

    return benchmarks.table


def test_segments_are_what_kafka_writes(tmp_path: Path) -> None:
    """Every shape verifies without a finding, deeply too, and has its index entries."""
    from benchmarks import workloads

    for name, shape in workloads.SHAPES.items():
        directory = tmp_path / name.replace(" ", "") / "t-0"
        segments = workloads.write_segments(directory, shape, 300_000, 2)
        assert [] == list(verify(directory, deep=True)), name
        assert segments[0].next_offset == int(segments[1].log.stem)
        assert segments[0].size_bytes == segments[0].log.stat().st_size
        with OffsetIndex(segments[0].log.with_suffix(".index"), 0) as index:
            _, positions = index.to_numpy()
        # More than the interval lies between entries, and no batch more than that takes.
        gaps = np.diff(positions)
        batch = segments[0].size_bytes * shape.records // segments[0].records
        assert bool(((gaps > 4096) & (gaps <= 4096 + batch)).all())


def test_indexes_are_full(tmp_path: Path) -> None:
    """The indexes that lookups are measured on have every slot in use, and increase."""
    from benchmarks import workloads

    offsets, times = tmp_path / "a.index", tmp_path / "a.timeindex"
    workloads.write_offset_index(offsets, 80_000)
    workloads.write_time_index(times, 120_000)
    with OffsetIndex(offsets, 0) as index:
        assert 10_000 == len(index)
        index.sanity_check()
        workloads.write_targets(tmp_path / "targets", index, 100, True)
    with TimeIndex(times, 0) as index:
        assert 10_000 == len(index)
        index.sanity_check()
    targets = workloads.read_targets(tmp_path / "targets")
    assert 100 == len(targets)
    assert sorted(targets.tolist()) == targets.tolist()


def test_table_judges_goals(table: ModuleType) -> None:
    """Ratios are of medians and above 1 where ours is faster; a missed goal is said twice."""
    fast = table.Row.of(
        "fast",
        "ns",
        {
            "theirs": table.Figure(100, 90),
            "compiled": table.Figure(8, 7),
            "interpreted": table.Figure(50, 40),
        },
        table.Goal(10, is_ratio=True),
    )
    slow = table.Row(
        "slow",
        "GB/s",
        table.Figure(2, 2.5),
        table.Figure(1, 1.2),
        goal=table.Goal(1.5, is_ratio=True),
        higher_is_better=True,
    )
    section = table.Section("Some", "Words.", "Kafka", [fast, slow])
    lines = table.section_lines(section)
    assert "| | unit | Kafka | compiled | ratio | interpreted | ratio | goal | reached |" in lines
    first = "| fast | ns | 100 (90.0) | 8.00 (7.00) | 12.5 x | 50.0 (40.0) | 2.00 x |"
    assert f"{first} at least 10 times | yes |" in lines
    assert any(line.startswith("| slow |") and line.endswith("| **no** |") for line in lines)
    assert ["- Some, slow: 0.50 times; the goal is at least 1.5 times."] == table.shortfalls(
        [section]
    )


def test_table_says_what_was_not_run(table: ModuleType) -> None:
    """Without the other side there is no ratio and no verdict, and the reason stands below."""
    row = table.Row(
        "row", "ns", table.NotRun("java is not on PATH"), table.Figure(8, 7),
        goal=table.Goal(10, is_ratio=True),
    )  # fmt: skip
    section = table.Section("Some", "Words.", "Kafka", [row])
    assert row.cells()[2] == "**not run**"
    assert row.cells()[-1] == "**not run**"
    assert "not run" in table.shortfalls([section])[0]
    assert ["- **not run**: java is not on PATH"] == table.missing([section])


def test_without_java_nothing_is_made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's column is `not run` with the reason; ours is measured all the same."""
    from benchmarks import measuring, workloads
    from benchmarks.contestants import Java, ours
    from benchmarks.table import Figure, NotRun

    monkeypatch.setenv("PATH", str(tmp_path))
    path, targets = tmp_path / "a.index", tmp_path / "targets"
    workloads.write_offset_index(path, 8000)
    with OffsetIndex(path, 0) as index:
        workloads.write_targets(targets, index, 10, False)
    with Java() as java:
        results = measuring.race(
            {
                "theirs": lambda: java.contestant("offset-lookup", 0, path, targets),
                "interpreted": lambda: ours("interpreted", "offset-lookup", 0, path, targets),
            },
            2,
            wait=False,
        )
    cells = {name: measuring.seconds_each(one, 10, 1e-9) for name, one in results.items()}
    assert NotRun("java is not on PATH") == cells["theirs"]
    assert isinstance(cells["interpreted"], Figure)


def test_without_numba_compiled_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The column of compiled kernels says which extra is missing."""
    from benchmarks import contestants

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "numba is not installed (the extra `fast`)" == contestants.missing_kernels("compiled")
    assert contestants.missing_kernels("interpreted") is None
    with pytest.raises(contestants.NotRunError, match="numba"):
        contestants.ours("compiled", "verify", 0)
