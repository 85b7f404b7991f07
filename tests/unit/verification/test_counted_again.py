# SPDX-License-Identifier: Apache-2.0
"""Every count of a summary and of findings, compared with a second way of counting."""

import re
from pathlib import Path
from random import Random

import pytest

from segproof.counts import plural
from segproof.findings import Severity, Summary
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.laws.borders.border import Files, write_files
from segproof_harness.laws.borders.log_files import (
    BASE,
    batch,
    name,
    offset_entries,
    segment,
    with_byte,
)
from segproof_tests.counted_again import counted, make_partition
from segproof_tests.partition_files import write_segment
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import verified

SEEDS = (*range(12), 98, 139, 169)
"""The last three draw a segment without its log before one that ends too early."""


@pytest.mark.parametrize("is_planned", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_summary_is_counted_again(
    seed: int, is_planned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read, what is lost, and how many findings there are of each severity.

    So it is where no salvage can be planned, and each log is counted by itself.
    """
    if not is_planned:
        monkeypatch.setattr("segproof.verification.planned_salvage", _not_planned)
    folder = tmp_path / "t-0"
    make_partition(folder, Random(seed))
    found, told = verified(folder)
    (summary,), again = told, counted(folder)
    names = [name for name in again.__dataclass_fields__ if name != "broken"]
    assert {name: getattr(again, name) for name in names} == {
        name: getattr(summary, name) for name in names
    }
    broken = sorted((Path(one.path).name, one.position) for one in found if one.law == "BATCH-3")
    assert sorted(again.broken) == broken
    assert summary.lost_at_least == summary.lost_offsets
    assert [sum(one.severity is severity for one in found) for severity in Severity] == [
        summary.errors, summary.warnings, summary.notes,
    ]  # fmt: skip


def _not_planned(*_: object) -> None:
    raise OSError("a log can't be read any more")


@pytest.mark.parametrize("places", [1, 99, 100, 101, 102, 250])
def test_places_above_a_hundred_are_counted(places: int, tmp_path: Path, capfd: Capsys) -> None:
    """The first hundred are told one by one, at their bytes; a last finding counts the others."""
    entries = offset_entries(*((5, number) for number in range(places + 1)))
    folder = write_segment(tmp_path / "t-0", b"", index=entries)
    told, summaries = verified(folder, laws=["OFFIDX-2"])
    assert [8 * number for number in range(1, min(places, 100) + 1)] == [
        one.position for one in told if one.position is not None
    ]
    more = [one.actual for one in told if one.position is None]
    assert ([] if places <= 100 else [str(places - 100)]) == more
    assert len(told) == min(places, 101)
    assert places == summaries[0].errors + summaries[0].warnings
    assert cli.run(["verify", str(folder), "--law", "OFFIDX-2"]) == 1
    said = capfd.readouterr()
    assert re.search(rf"\b{plural(places, 'error')}\b", said.err)
    assert re.search(rf"\b{plural(places, 'error')}\b", said.out)
    assert (f"{places} places" in said.out) == (places > 1)


@pytest.mark.parametrize(("beyond", "broken"), [(1, 0), (1, 1), (1, 2), (4, 1)])
def test_a_lost_end_is_counted_from_the_last_sound_batch(
    beyond: int, broken: int, tmp_path: Path
) -> None:
    """Offsets of broken batches at the end, and those up to the last entry of the index."""
    rows = [batch(BASE + number, key=None) for number in range(4)]
    size = len(rows[0])
    for number in range(4 - broken, 4):
        rows[number] = with_byte(rows[number], size - 1, rows[number][-1] ^ 1)
    last = 3 + beyond
    files = segment(rows, offset_entries((1, size), (last, last * size)), b"")
    write_files(files, tmp_path / "t-0")
    _, told = verified(tmp_path / "t-0")
    assert (beyond + broken, None) == (told[0].lost_at_least, told[0].lost_offsets)


@pytest.mark.parametrize("gap", [0, 1, 2])
def test_a_segment_without_its_log_is_counted_by_its_name(gap: int, tmp_path: Path) -> None:
    """Its 4 offsets are lost; if another log lacks some, the topic may be compacted."""
    second = BASE + 3 + gap
    gone, last = second + 2, second + 6
    files: Files = {
        **segment([batch(BASE + number) for number in range(3)], b"", b""),
        **segment([batch(second), batch(second + 1)], b"", b"", base=second),
        **{name(gone, suffix): b"" for suffix in (".index", ".timeindex")},
        **segment(batch(last), b"", b"", base=last),
    }
    write_files(files, tmp_path / "t-0")
    _, told = verified(tmp_path / "t-0")
    expected = (0, 4 + gap) if gap else (4, 0)
    assert expected == (told[0].lost_at_least, told[0].unproven_offsets)


@pytest.mark.parametrize("gap", [0, 1, 2])
def test_offsets_after_an_unread_batch_are_counted(gap: int, tmp_path: Path) -> None:
    """The second of four batches is gone. Offsets before the next segment are lost too."""
    rows = [batch(BASE + number, key=None) for number in range(4)]
    rows[1] = b"\xff" * len(rows[1])
    following = BASE + 4 + gap
    files = {**segment(rows, b"", b""), **segment(batch(following), b"", b"", base=following)}
    write_files(files, tmp_path / "t-0")
    _, told = verified(tmp_path / "t-0")
    assert (1 + gap, 1 + gap) == (told[0].lost_at_least, told[0].lost_offsets)


@pytest.mark.parametrize("gap", [0, 1, 2])
def test_offsets_after_broken_bytes_are_counted(gap: int, tmp_path: Path) -> None:
    """Bytes of no batch end a closed log: each offset up to the next segment is lost."""
    log = batch(BASE, key=None) + batch(BASE + 1, key=None) + b"\1\1"
    following = BASE + 2 + gap
    files = {**segment(log, b"", b""), **segment(batch(following), b"", b"", base=following)}
    write_files(files, tmp_path / "t-0")
    _, told = verified(tmp_path / "t-0")
    assert (gap, gap) == (told[0].lost_at_least, told[0].lost_offsets)


def test_an_empty_log_begins_a_partition(tmp_path: Path) -> None:
    """Its name is the first offset, as of a log that has batches; zeros leave the name alone."""
    files = segment(batch(BASE + 3), b"", b"", base=BASE + 3)
    told: list[Summary] = []
    for first in (b"", bytes(90)):
        folder = tmp_path / str(len(first)) / "t-0"
        write_files({**segment(first, b"", b""), **files}, folder)
        list(verify(folder, on_summary=told.append))
    assert [BASE, BASE + 3] == [one.first_offset for one in told]
