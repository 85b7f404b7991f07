# SPDX-License-Identifier: Apache-2.0
"""An older copy of a segment, put over the closed one: its indexes were never trimmed."""

from pathlib import Path

import pytest

from segproof.findings import Verdict
from segproof.salvaging.salvage import salvage
from segproof_tests.older_copies import MAX_INDEX_BYTES, put_back
from segproof_tests.partition_files import aged, copied_partition, looked_at, name_of

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
