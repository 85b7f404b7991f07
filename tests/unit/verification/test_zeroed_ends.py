# SPDX-License-Identifier: Apache-2.0
"""Zeros where a log had its end: what the index shows is lost, and a broker's tail is not."""

from pathlib import Path

import pytest

from segproof import rebuild
from segproof.findings import Severity, Verdict
from segproof.repair import salvage
from segproof.verification import verify
from segproof_harness.laws.borders.log_files import offset_entries
from segproof_tests.partition_files import copied_partition, looked_at, name_of, write_segment
from segproof_tests.reported_findings import judged
from segproof_tests.small_logs import batch

BATCHES = [*map(batch, range(6))]
SIZE = len(BATCHES[0])
INDEX = offset_entries(*((n, n * SIZE) for n in (1, 3, 4)))


def zeroed(folder: Path, kept: int, index: bytes, slots: int = 8) -> Path:
    """Write a log of six batches whose last ones are zeros."""
    log = b"".join(BATCHES[:kept]) + bytes((6 - kept) * SIZE)
    return write_segment(folder, log, index=index + bytes(slots * 8 - len(index)))


@pytest.mark.checks("DISK-25", "DISK-6")
@pytest.mark.parametrize("slots", [3, 8])
@pytest.mark.parametrize(("kept", "lost"), [(0, 5), (2, 3), (4, 1)])
def test_entries_in_zeros_are_a_loss(kept: int, lost: int, slots: int, tmp_path: Path) -> None:
    """They were "index damage only", or "everything kept"; the hint was "nothing"."""
    folder = zeroed(tmp_path / "t-0", kept, INDEX, slots)
    (one,) = verify(folder, laws=["DISK-25"])
    place = (one.severity, one.position, one.expected, one.actual)
    assert place == (Severity.ERROR, kept * SIZE, str(kept), "5")
    assert all("nothing" not in (each.hint or "") for each in verify(folder, laws=["DISK-6"])
        if each.path.endswith(".log"))  # fmt: skip
    _, told = judged(folder)
    assert told.verdict is (Verdict.READABLE_WITH_GAPS if kept else Verdict.UNREADABLE)
    assert (told.lost_at_least, told.lost_offsets) == (lost, None)
    (kept_part,) = salvage(folder, tmp_path / "saved")
    assert (kept_part.is_end_lost, kept_part.is_whole) == (True, False)
    assert [(gap.kind, gap.position) for gap in kept_part.gaps] == [("missing", kept * SIZE)]


@pytest.mark.checks("DISK-6", "DISK-24")
@pytest.mark.parametrize("zeroed_entries", [False, True])
def test_one_step_mends_zeros_in_an_index(zeroed_entries: bool, tmp_path: Path) -> None:
    """The zeros were to be saved, the other findings of the file to be rebuilt; and of entries that
    a disk had made zeros the hint said that a broker never closed the file.
    """
    folder = copied_partition("plain", tmp_path)
    index = folder / name_of(60, ".index")
    size = index.stat().st_size
    index.write_bytes(bytes(size) if zeroed_entries else index.read_bytes() + bytes(80))
    summary, found = looked_at(folder)
    hints = {one.hint for one in found if one.is_defect}
    assert summary.verdict is Verdict.INDEX_DAMAGE_ONLY
    assert all("`segproof rebuild" in hint and "salvage" not in hint for hint in hints)
    told = next(one for one in found if one.law == "DISK-6" and one.is_defect)
    claims = "the broker did not stop as" in told.hint, "a disk" in told.hint
    assert claims == (not zeroed_entries, zeroed_entries)
    rebuild(folder, tmp_path / "rebuilt")
    summary, _ = looked_at(tmp_path / "rebuilt")
    assert summary.verdict is Verdict.SOUND


@pytest.mark.checks("DISK-6")
def test_logs_of_zeros_alone_are_unreadable(tmp_path: Path) -> None:
    """They were "readable with defects: 0 batches"."""
    folder = write_segment(tmp_path / "t-0", bytes(90), index=bytes(8), timeindex=bytes(24))
    assert judged(folder)[1].verdict is Verdict.SOUND  # a log that was preallocated
    write_segment(folder, bytes(90), 6, index=bytes(8), timeindex=bytes(24))
    assert judged(folder)[1].verdict is Verdict.UNREADABLE
    write_segment(folder, BATCHES[0], index=b"", timeindex=b"")
    assert judged(folder)[1].verdict is not Verdict.UNREADABLE


@pytest.mark.checks("DISK-6")
@pytest.mark.parametrize("is_only", [False, True])
def test_a_last_log_of_zeros_without_an_index_may_be_lost(is_only: bool, tmp_path: Path) -> None:
    """It was "index damage only", or "sound", and the salvage kept "everything"."""
    folder = tmp_path / "t-0"
    if not is_only:
        write_segment(folder, b"".join(BATCHES), index=b"", timeindex=b"")
    write_segment(folder, bytes(6 * SIZE), 0 if is_only else 6)
    (one,) = verify(folder, laws=["DISK-6"])
    assert (one.severity, one.position) == (Severity.WARNING, 0)
    _, summary = judged(folder)
    assert (summary.lost_at_least, summary.lost_offsets) == (0, None)
    assert summary.verdict is (Verdict.UNREADABLE if is_only else Verdict.READABLE_WITH_DEFECTS)
    (told,) = salvage(folder, tmp_path / "saved")
    assert (told.lost_offsets, told.are_more_lost, told.is_whole) == (0, True, False)
    assert [doubt.partition(":")[0] for doubt in told.doubts] == [one.path]


@pytest.mark.checks("DISK-25", "DISK-6")
@pytest.mark.parametrize("index", [b"", INDEX[:16]])
def test_a_preallocated_tail_is_no_loss(index: bytes, tmp_path: Path) -> None:
    """No entry leads into the zeros that a broker keeps after its last batch."""
    folder = zeroed(tmp_path / "t-0", 4, index)
    assert not list(verify(folder, laws=["DISK-25"]))
    assert not judged(folder)[1].lost_at_least
    (told,) = salvage(folder, tmp_path / "saved")
    assert told.is_whole


@pytest.mark.checks("DISK-5", "DISK-25")
def test_a_log_of_zeros_has_not_every_offset(tmp_path: Path) -> None:
    """Without indexes the hint said that it has, beside the finding that its end is lost."""
    folder = copied_partition("plain", tmp_path)
    log = folder / name_of(60, ".log")
    log.write_bytes(bytes(log.stat().st_size))
    for suffix in (".index", ".timeindex"):
        (folder / name_of(60, suffix)).unlink()
    found = [one for one in verify(folder) if one.path == str(log)]
    assert {"DISK-5", "DISK-25"} <= {one.law for one in found}
    assert not any("every offset" in one.hint for one in found)
    (folder / name_of(162, ".index")).unlink()
    (whole,) = [one for one in verify(folder, laws=["DISK-5"]) if one.path.endswith("162.log")]
    assert "every offset" in whole.hint
