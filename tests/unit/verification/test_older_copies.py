# SPDX-License-Identifier: Apache-2.0
"""An older copy of a segment, put over the closed one: its indexes were never trimmed."""

import os
from pathlib import Path

import pytest

from segproof.findings import Verdict
from segproof.repair import salvage
from segproof_tests.older_copies import MAX_INDEX_BYTES, put_back
from segproof_tests.partition_files import aged, copied_partition, looked_at, name_of, write_segment

BOTH = (".index", ".timeindex")


@pytest.mark.checks("DISK-25", "DISK-6")
@pytest.mark.parametrize(
    ("untrimmed", "lacking"),
    [(BOTH, ""), (BOTH[:1], ""), (BOTH[1:], ""), (BOTH, ".index"), (BOTH, ".timeindex")],
)
def test_its_missing_end_is_lost(untrimmed: tuple[str, ...], lacking: str, tmp_path: Path) -> None:
    """It was "index damage only", and a rebuild made the partition sound.

    All records have keys: nothing but the untrimmed index excludes that compaction took the end.
    """
    folder = copied_partition("plain", tmp_path)
    end = put_back(folder, 342, 10, untrimmed)
    if lacking:
        (folder / name_of(342, lacking)).unlink()
    summary, found = looked_at(aged(folder))
    assert (Verdict.READABLE_WITH_GAPS, 420 - end) == (summary.verdict, summary.lost_offsets)
    told = next(one for one in found if one.law == "DISK-25")
    assert "an older copy, from before it was closed" in told.message
    (saved,) = salvage(folder, tmp_path / "out")
    assert (saved.lost_offsets, saved.unproven_offsets) == (420 - end, 0)
    assert not saved.are_more_lost


@pytest.mark.checks("DISK-25")
def test_compaction_may_have_taken_a_part_of_it(tmp_path: Path) -> None:
    """The log cleaner has been here: the newer copy may have been cleaned."""
    folder = copied_partition("plain", tmp_path / "data")
    end = put_back(folder, 342, 10)
    (tmp_path / "data" / "cleaner-offset-checkpoint").write_text("0\n1\nplain 0 420\n")
    summary, _ = looked_at(aged(folder))
    told = summary.lost_offsets, summary.lost_at_least, summary.unproven_offsets
    assert (Verdict.READABLE_WITH_GAPS, None, 0, 420 - end) == (summary.verdict, *told)
    (saved,) = salvage(folder, tmp_path / "out")
    assert (saved.lost_offsets, saved.unproven_offsets) == (0, 420 - end)


@pytest.mark.checks("DISK-6", "DISK-25")
@pytest.mark.parametrize("scenario", ["plain", "compacted"])
@pytest.mark.parametrize("zeroed", [False, True])
def test_zeros_alone_are_no_loss(scenario: str, zeroed: bool, tmp_path: Path) -> None:
    """A log without a gap is whole; one with gaps between its batches was cleaned.

    And zeros in place of entries are a disk's.
    """
    folder = copied_partition(scenario, tmp_path)
    for path in [*folder.glob("*.index"), *folder.glob("*.timeindex")]:
        size = 8 if path.suffix == ".index" else 12
        data = path.read_bytes()
        path.write_bytes(
            bytes(len(data)) if zeroed else data.ljust(MAX_INDEX_BYTES // size * size, b"\0")
        )
    summary, found = looked_at(aged(folder))
    assert summary.verdict in (Verdict.INDEX_DAMAGE_ONLY, Verdict.READABLE_WITH_DEFECTS)
    assert "DISK-25" not in {one.law for one in found}
    (saved,) = salvage(folder, tmp_path / "out")
    assert (saved.lost_offsets, saved.unproven_offsets) == (0, 0)


@pytest.mark.checks("DISK-25", "DISK-63")
@pytest.mark.parametrize("base", [0, 342])
@pytest.mark.parametrize(
    ("sizes", "is_proof"),
    [
        ((10485760, 10485756), True),
        ((10485760, None), True),
        ((None, 10485756), True),
        ((10485760, 0), True),
        ((0, 0), False),
        ((480, 720), False),
        ((None, None), False),
    ],
)
def test_a_copy_from_before_its_first_record(
    base: int, sizes: tuple[int | None, int | None], is_proof: bool, tmp_path: Path
) -> None:
    """An empty log with preallocated indexes was "not known", and a salvage kept everything."""
    folder = copied_partition("plain", tmp_path)
    lost = {0: 60, 342: 78}[base]
    (folder / name_of(base, ".log")).write_bytes(b"")
    for suffix, size in zip(BOTH, sizes, strict=True):
        path = folder / name_of(base, suffix)
        path.unlink()
        if size is not None:
            path.touch()
            os.truncate(path, size)
    summary, found = looked_at(aged(folder))
    told = [one.message for one in found if one.law == "DISK-25"]
    assert ["an older copy, from before it was closed" in one for one in told] == [True] * is_proof
    counted = (lost, 0) if is_proof else (0, lost)
    assert counted == (summary.lost_at_least, summary.unproven_offsets)
    (saved,) = salvage(folder, tmp_path / "out")
    assert counted == (saved.lost_offsets, saved.unproven_offsets)


@pytest.mark.checks("DISK-25")
@pytest.mark.parametrize(("bytes_", "is_proof"), [(524287 * 8, False), (10485760, True)])
def test_such_a_copy_may_lack_more_offsets_than_an_index_has_entries(
    bytes_: int, is_proof: bool, tmp_path: Path
) -> None:
    """The largest log has 524287 intervals."""
    folder = copied_partition("plain", tmp_path)
    for path in folder.glob("0000*"):
        path.unlink()
    for base in (7, 3_000_007):
        write_segment(folder, b"", base, index=b"", timeindex=b"")
    os.truncate(folder / name_of(7, ".index"), bytes_)
    _, found = looked_at(aged(folder))
    assert is_proof is ("DISK-25" in {one.law for one in found})


@pytest.mark.checks("DISK-25")
def test_a_last_log_that_was_just_rolled_is_no_copy(tmp_path: Path) -> None:
    """It is empty, and its indexes are preallocated."""
    folder = copied_partition("plain", tmp_path)
    end = 746
    write_segment(folder, b"", end, index=bytes(8192), timeindex=bytes(8184))
    _, found = looked_at(aged(folder))
    assert "DISK-25" not in {one.law for one in found}
    (saved,) = salvage(folder, tmp_path / "out")
    assert (0, 0) == (saved.lost_offsets, saved.unproven_offsets)
