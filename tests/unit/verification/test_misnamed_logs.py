# SPDX-License-Identifier: Apache-2.0
"""A log under a name that no broker reads, given by itself: its content is checked all the same."""

import shutil
from pathlib import Path

import pytest

from segproof.findings import Finding, Summary, Verdict
from segproof.verification import verify
from segproof_harness.files.shipped_directories import KAFKA, partition_of

PLAIN = partition_of(KAFKA / "plain")
LOG = "00000000000000000342.log"


def looked(path: Path) -> tuple[dict[str, Finding], Summary]:
    """Return the defects by law, and the summary."""
    told: list[Summary] = []
    found = {one.law: one for one in verify(path, on_summary=told.append) if one.is_defect}
    return found, told[-1]


@pytest.mark.checks("FILE-1", "FILE-2", "BATCH-3")
@pytest.mark.parametrize("name", ["342.log", "0342.log", "first.log", "x.log"])
@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize("is_damaged", [True, False])
def test_the_content_of_a_misnamed_log_is_read(
    name: str, tmp_path: Path, *, is_left: bool, is_damaged: bool
) -> None:
    """Its name was all that was judged: a damaged one and a sound one had the same findings."""
    folder = tmp_path / "plain-0"
    shutil.copytree(PLAIN, folder)
    data = bytearray((folder / LOG).read_bytes())
    data[len(data) // 2] ^= is_damaged
    if not is_left:
        (folder / LOG).unlink()
    (folder / name).write_bytes(data)
    found, summary = looked(folder / name)
    law = "FILE-2" if name in ("first.log", "x.log") else "FILE-1"
    assert {law} | ({"BATCH-3"} if is_damaged else set()) == found.keys()
    assert {str(folder / name)} == {one.path for one in found.values()}
    alone = tmp_path / "alone" / LOG
    alone.parent.mkdir()
    alone.write_bytes(data)
    (tmp_path / "alone" / "00000000000000000420.log").touch()
    right, beside = looked(alone)
    counts = ("batches", "first_offset", "end_offset", "bytes_checked", "lost_offsets")
    for one in counts:
        assert getattr(beside, one) == getattr(summary, one), one
    assert 0 == summary.batches_behind_damage
    if is_damaged:
        assert right["BATCH-3"].position == found["BATCH-3"].position
        assert "recovery" not in found["BATCH-3"].message
        assert "no salvage of the partition reads this file" in found["BATCH-3"].hint
    expected = Verdict.READABLE_WITH_GAPS if is_damaged else Verdict.READABLE_WITH_DEFECTS
    assert expected is summary.verdict


@pytest.mark.checks("FILE-2")
@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
def test_the_hint_for_an_index_speaks_of_no_batches(suffix: str, tmp_path: Path) -> None:
    """It was "only if `segproof dump` of it shows no batch that the logs here lack"."""
    (tmp_path / f"first{suffix}").write_bytes(bytes(24))
    found, _ = looked(tmp_path / f"first{suffix}")
    assert "batch" not in found["FILE-2"].hint
    assert "an index has no records" in found["FILE-2"].hint
