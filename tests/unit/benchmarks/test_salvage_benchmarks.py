# SPDX-License-Identifier: Apache-2.0
"""What is measured of damaged partitions gives right answers."""

from collections.abc import Callable
from pathlib import Path

MIB = 1 << 20


def test_of_a_sound_partition_all_bytes_are_saved(
    tmp_path: Path, answer: Callable[..., int]
) -> None:
    """By the map, by a salvage, and by a plain copy."""
    from benchmarks import workloads

    source = tmp_path / "t-0"
    segments = workloads.write_segments(source, workloads.SHAPES["1 KB"], 200_000, 2)
    total = sum(segment.size_bytes for segment in segments)
    assert total == answer("damage-map", source)
    assert total == answer("salvage", source, tmp_path / "saved")
    assert total == answer("plain-copy", source, tmp_path / "copy")
    for segment in segments:
        for copy in (tmp_path / "saved" / "t-0", tmp_path / "copy"):
            assert segment.log.read_bytes() == (copy / segment.log.name).read_bytes()


def test_each_damage_costs_a_part_of_the_log(tmp_path: Path, answer: Callable[..., int]) -> None:
    """`verify` sees it, and the salvage keeps what the map calls sound."""
    from benchmarks import salvaging, workloads

    for number, (what, damage) in enumerate(salvaging.DAMAGES.items()):
        source = tmp_path / f"t-{number}"
        segment = workloads.write_segment(source, workloads.SHAPES["16 KB"], 3 * MIB)
        damage(segment.log)
        kept = answer("salvage", source, tmp_path / f"saved-{number}")
        assert answer("verify", source) > 0, what
        assert MIB < answer("damage-map", source) <= kept <= segment.size_bytes, what


def test_a_contestant_says_its_processor_time(tmp_path: Path) -> None:
    """Beside the time of each pass; at the end the most memory that it had."""
    from benchmarks import workloads
    from benchmarks.contestants import Passes, ours
    from benchmarks.measuring import memory, race
    from benchmarks.table import Figure

    source = tmp_path / "t-0"
    workloads.write_segment(source, workloads.SHAPES["16 KB"], MIB)
    start = {"copy": lambda: ours("auto", "plain-copy", 0, source, tmp_path / "copy")}
    passes = race(start, 2, wait=False)["copy"]
    assert isinstance(passes, Passes)
    assert len(passes.seconds) == len(passes.of_processor.seconds) == 2
    assert 0 < passes.of_processor.best
    assert isinstance(memory(passes), Figure)
