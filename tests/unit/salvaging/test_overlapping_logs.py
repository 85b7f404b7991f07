# SPDX-License-Identifier: Apache-2.0
"""Whole logs of another topic, or older copies, that were moved into the folder of a partition."""

import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.findings import Finding, Verdict
from segproof.reading.overlapping_logs import overlapping_logs
from segproof.repair import rebuild, salvage
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.borders.log_files import batch, offset_entries, time_entries
from segproof_tests.partition_files import (
    copied_partition,
    in_memory,
    looked_at,
    name_of,
    rename_segment,
    write_segment,
)

SUFFIXES = (".log", ".index", ".timeindex", ".snapshot", ".txnindex")
Batch = tuple[int, int, bytes]


def put_in(folder: Path, scenario: str, base: int) -> None:
    """Copy the files of one segment of another partition into a folder."""
    for suffix in SUFFIXES:
        for path in (KAFKA / scenario).rglob(name_of(base, suffix)):
            shutil.copyfile(path, folder / path.name)


def of_overlaps(found: list[Finding]) -> dict[str, Finding]:
    """Return the findings of whole logs, by the name of the log."""
    return {Path(one.path).name: one for one in found if one.law == "LOG-4"}


PUT_IN = {
    "inside the first log": ("txn-a", "plain", 517),
    "over two logs": ("txn-a", "v1-gzip", 1000),
    "at the end": ("unclean-before", "v1-gzip", 2192),
    "into a compacted partition": ("compacted", "plain", 517),
    "over two compacted logs": ("compacted", "v1-gzip", 2192),
}
"""Where one segment of another partition goes: scenario, its scenario, and its base offset."""


@pytest.mark.slow
@pytest.mark.checks("LOG-4")
@pytest.mark.parametrize("name", PUT_IN)
def test_a_segment_of_another_partition(name: str, tmp_path: Path) -> None:
    """`verify` names it alone, `rebuild` refuses, and `salvage` keeps every other log."""
    scenario, other, base = PUT_IN[name]
    folder = copied_partition(scenario, tmp_path)
    own = {path.name: path.read_bytes() for path in folder.glob("*.log")}
    summary, known = looked_at(folder)
    assert name_of(base, ".log") not in own
    put_in(folder, other, base)
    assert (folder / name_of(base, ".log")).exists()
    after, found = looked_at(folder)
    (told,) = of_overlaps(found).values()
    assert told.path == str(folder / name_of(base, ".log"))
    assert "it is of another topic, or an older copy" in told.message
    assert {one.law for one in found if one.is_defect} == {"LOG-4"} | {
        one.law for one in known if one.is_defect
    }
    assert after.verdict is Verdict.READABLE_WITH_DEFECTS
    assert (summary.batches, summary.end_offset) == (after.batches, after.end_offset)
    for all_files in (False, True):
        done = rebuild(folder, in_place=True, all_files=all_files)
        assert told.path in {one.path for one in done.findings}
    (saved,) = salvage(folder, tmp_path / "saved")
    assert (0, 0, False) == (saved.lost_offsets, saved.gap_count, saved.are_more_lost)
    assert any(one.startswith(f"{told.path}: it overlaps ") for one in saved.left_out)
    kept = {
        path.name: path.read_bytes() for path in (tmp_path / "saved" / folder.name).glob("*.log")
    }
    assert own == kept
    aside = tmp_path / f"saved/salvage-set-aside.{folder.name}.log"
    assert (folder / name_of(base, ".log")).read_bytes() == aside.read_bytes()


@pytest.mark.checks("LOG-4")
@pytest.mark.parametrize("is_bit", [False, True])
def test_a_log_of_its_indexes_is_kept_against_a_longer_one(is_bit: bool, tmp_path: Path) -> None:
    """The longer one has no entry of its indexes; one wrong bit of an index is not enough."""
    folder = tmp_path / "t-0"
    own = batches([10, 15, 20, 25], b"own")
    other = batches([*range(0, 65, 5)], b"other")
    data = b"".join(one for *_, one in own)
    entry, time = offset_entries((9, len(own[0][2]))), time_entries((1019, 9))
    write_segment(folder, data, 10, index=entry, timeindex=time)
    time = time_entries((1009 if is_bit else 777, 9))
    entry = offset_entries((9, 3))
    write_segment(folder, b"".join(one for *_, one in other), index=entry, timeindex=time)
    (told,) = salvage(folder, tmp_path / "saved")
    is_kept = any(data in one.read_bytes() for one in (tmp_path / "saved/t-0").glob("*.log"))
    assert is_kept is not is_bit
    assert any(" it overlaps " in one for one in told.left_out) is is_bit


def batches(bounds: list[int], word: bytes) -> list[Batch]:
    """Return a batch for each two neighbours of some offsets."""
    return [
        (first, end, batch(first, *range(1000 + first, 1000 + end), value=word))
        for first, end in pairwise(bounds)
    ]


@st.composite
def dense_partitions(draw: st.DrawFn) -> tuple[dict[str, bytes], list[int], int]:
    """Draw a partition without gaps and one log more: its files, base offsets, and that log's."""
    start = draw(st.integers(0, 30))
    sizes = draw(st.lists(st.integers(1, 4), min_size=6, max_size=24))
    bounds = [start]
    for size in sizes:
        bounds.append(bounds[-1] + size)
    own = batches(bounds, b"own")
    marks = sorted(draw(st.sets(st.integers(1, len(own) - 1), min_size=1, max_size=5)))
    logs = {}
    for first, end in zip([0, *marks], [*marks, len(own)], strict=True):
        logs[own[first][0]] = b"".join(one for *_, one in own[first:end])
    inside = [one for one in range(start + 1, bounds[-1]) if one not in logs]
    base = draw(st.sampled_from(inside))
    is_copy = draw(st.booleans())
    if is_copy:  # by another replica, whose segments begin elsewhere
        copied = [one for one in own if one[0] >= base][: draw(st.integers(1, 12))]
        base = copied[0][0] if copied else base
    else:
        count = draw(st.integers(1, 5))
        copied = batches([base + 2 * n for n in range(count + 1)], b"other")
    if not copied or base in logs:
        copied = batches([inside[0], inside[0] + 1], b"other")
        base = inside[0]
    logs[base] = b"".join(one for *_, one in copied)
    files = {name_of(one, ".log"): log for one, log in logs.items()}
    files["leader-epoch-checkpoint"] = f"0\n1\n0 {start}\n".encode()
    return files, sorted(logs), base


@pytest.mark.checks("LOG-4")
@given(dense_partitions())
def test_one_log_more_is_the_one_that_is_told(
    drawn: tuple[dict[str, bytes], list[int], int],
) -> None:
    """Of a log that no other one leads to, and logs that lead to each other, it is the first."""
    files, bases, base = drawn
    assert {base} == set(overlapping_logs("/d", bases, bases, in_memory(files, "/d")))


@pytest.mark.checks("LOG-4", "DISK-13")
def test_one_wrong_base_offset_is_no_log_of_another_partition() -> None:
    """The last batch of a log claims offsets of all later logs: none of these is set aside."""
    own = batches(list(range(0, 60, 2)), b"own")
    logs = {
        first: b"".join(one[2] for one in own[first // 2 : first // 2 + 10]) for first in (0, 20)
    }
    odd = bytearray(own[9][2])
    odd[6] ^= 1
    logs[0] = b"".join(one[2] for one in own[:9]) + bytes(odd)
    files = {name_of(base, ".log"): log for base, log in logs.items()}
    assert not overlapping_logs("/d", sorted(logs), (), in_memory(files, "/d"))


@pytest.mark.checks("LOG-4")
@pytest.mark.parametrize(("entries", "odd"), [(3, {5}), (4, set())])
def test_so_many_wrong_entries_disprove_a_log(entries: int, odd: set[int]) -> None:
    """A log that its index does not know has no right to call another one odd."""
    own = batches(list(range(0, 80, 2)), b"own")
    logs = {
        first: b"".join(one[2] for one in own[first // 2 : first // 2 + 10])
        for first in range(0, 80, 20)
    }
    logs[5] = b"".join(one[2] for one in batches([5, 6, 7, 8], b"other"))
    files = {name_of(base, ".log"): log for base, log in logs.items()}
    wrong = ((number, number) for number in range(1, entries + 1))
    files[name_of(0, ".index")] = offset_entries(*wrong)
    assert odd == set(overlapping_logs("/d", sorted(logs), (), in_memory(files, "/d")))


@pytest.mark.checks("DISK-69")
def test_a_log_that_its_index_disproves_makes_no_other_one_odd() -> None:
    """A longer log of another topic over the first one overlaps all others, which stay."""
    folder = KAFKA / "plain/plain-0"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    (other,) = (KAFKA / "txn-a").rglob(name_of(0, ".log"))
    files[name_of(0, ".log")] = other.read_bytes()
    bases = sorted(int(name[:20]) for name in files if name.endswith(".log"))
    assert not overlapping_logs("/d", bases, bases, in_memory(files, "/d"))


@pytest.mark.checks("DISK-63")
def test_the_name_of_an_empty_last_log_is_told(tmp_path: Path) -> None:
    """Offsets before it would be given again, and the salvage kept "everything"."""
    folder = tmp_path / "t-0"
    data = b"".join(one for *_, one in batches([*range(0, 25, 5)], b"own"))
    write_segment(folder, data, index=b"", timeindex=b"")
    data = b"".join(one for *_, one in batches([*range(20, 45, 5)], b"own"))
    write_segment(folder, data, 20, index=b"", timeindex=b"")
    write_segment(folder, b"", 900, index=b"", timeindex=b"")
    (told,) = salvage(folder, tmp_path / "saved")
    summary, _ = looked_at(folder)
    assert told.unproven_offsets == summary.unproven_offsets == 860
    assert [name_of(900, ".log") in one for one in told.doubts] == [True]
    rename_segment(folder, 900, 40, ".log", ".index", ".timeindex")
    (told,) = salvage(folder, tmp_path / "again")
    assert told.is_whole


@pytest.mark.checks("SEG-7")
@pytest.mark.parametrize("is_one_right", [False, True])
def test_a_whole_log_that_fits_no_entry_is_doubted(is_one_right: bool, tmp_path: Path) -> None:
    """It begins after its name, and the salvage kept "everything"."""
    folder = tmp_path / "t-0"
    data = b"".join(one for *_, one in batches([*range(0, 25, 5)], b"own"))
    write_segment(folder, data, index=b"", timeindex=b"")
    data = b"".join(one for *_, one in batches([*range(700, 725, 5)], b"other"))
    entry, time = offset_entries((9, 3), (14, 99)), time_entries((1029, 9), (1034, 14))
    if is_one_right:
        time = time_entries((1029, 9), (1704, 684))
    write_segment(folder, data, 20, index=entry, timeindex=time)
    (told,) = salvage(folder, tmp_path / "saved")
    assert not told.is_whole
    assert [name_of(20, ".log") in one for one in told.doubts] == [True] * (not is_one_right)
