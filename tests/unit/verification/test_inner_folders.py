# SPDX-License-Identifier: Apache-2.0
"""Logs in a folder inside of a partition: those that the partition lacks may belong there."""

import gzip
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.salvaging.salvage import salvage
from segproof.verification import verify
from segproof_harness.laws.borders.log_files import batch
from segproof_harness.reports.verdicts import split_commands
from segproof_tests.partition_files import name_of, write_segment

USUAL = Verdict.INDEX_DAMAGE_ONLY
"""The logs here have no indexes, and nothing else is wrong with them."""
pytestmark = pytest.mark.checks("DISK-3", "DISK-45")


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """A partition of three segments, each of three batches."""
    for base in (0, 3, 6):
        log = b"".join(batch(one, key=None) for one in range(base, base + 3))
        write_segment(tmp_path / "t-0", log, base)
    return tmp_path / "t-0"


def moved(folder: Path, inner: str, *bases: int) -> Path:
    """Move logs of the partition into a folder in it; return that folder."""
    (folder / inner).mkdir(parents=True)
    for base in bases:
        (folder / name_of(base, ".log")).rename(folder / inner / name_of(base, ".log"))
    return folder / inner


def told(folder: Path) -> tuple[list[Finding], Summary]:
    """Return the findings of folders in a partition, and the verdict."""
    summaries: list[Summary] = []
    found = [one for one in verify(folder, on_summary=summaries.append) if one.law == "DISK-3"]
    return found, summaries[-1]


def left_out(folder: Path) -> list[str]:
    """Return what a salvage says that it left out."""
    (one,) = salvage(folder, folder.parent / "saved")
    return one.left_out


CASES: dict[str, tuple[str, tuple[int, ...], str]] = {
    "the first segments": ("old", (0, 3), "offsets from 0 to 5"),
    "one in the middle": ("old", (3,), "offsets from 3 to 5"),
    "the last one": ("old", (6,), "offsets from 6 to 8"),
    "deeper": ("old/2026", (0,), "offsets from 0 to 2"),
}


@pytest.mark.parametrize("case", CASES)
def test_moved_segments_are_told_with_their_offsets(folder: Path, case: str) -> None:
    """These were "sound" and "everything kept", or a segment "all of whose files are gone"."""
    inner, bases, words = CASES[case]
    moved(folder, inner, *bases)
    (one,), summary = told(folder)
    assert (one.path, one.severity) == (str(folder / "old"), Severity.WARNING)
    assert words in one.message
    assert summary.verdict in (Verdict.READABLE_WITH_DEFECTS, Verdict.READABLE_WITH_GAPS)
    assert summary.not_looked_into == len(bases)
    (reason,) = left_out(folder)
    assert words in reason


@pytest.mark.parametrize("case", CASES)
def test_the_printed_commands_join_the_logs(
    folder: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a copy: the partition stays as it is, and the copy has every offset."""
    inner, bases, _ = CASES[case]
    moved(folder, inner, *bases)
    (one,), _ = told(folder)
    monkeypatch.chdir(folder.parent)
    assert one.hint is not None
    for command in split_commands(one.hint)[1]:
        subprocess.run(["bash", "-ec", command.replace("segproof", "true")], check=True)
    joined = folder.parent / "joined" / "t-0"
    (again,), summary = told(joined)
    assert again.severity is Severity.NOTE
    assert (summary.verdict, summary.end_offset) == (USUAL, 9)
    assert len(list(folder.glob("*.log"))) == 3 - len(bases)


def _copied(folder: Path) -> None:
    (folder / "old").mkdir()
    shutil.copy(folder / name_of(3, ".log"), folder / "old")


def _other_files(folder: Path) -> None:
    (folder / "old").mkdir()
    (folder / "old" / "notes.txt").write_text("x")
    (folder / "old" / name_of(0, ".index")).write_bytes(b"")


def _empty_log(folder: Path) -> None:
    write_segment(folder / "old", b"", 9)


def _other_batches(folder: Path) -> None:
    write_segment(folder / "old", batch(1, value=b"other"), 1)


def _link_to_itself(folder: Path) -> None:
    (folder / "old").symlink_to(".")


@pytest.mark.parametrize(
    "change", [_copied, _other_files, _empty_log, _other_batches, _link_to_itself]
)
def test_a_folder_without_missing_offsets_is_a_note(
    folder: Path, change: Callable[[Path], None]
) -> None:
    """A copy of a segment is no loss, nor is a folder of other files."""
    change(folder)
    (one,), summary = told(folder)
    assert one.severity is Severity.NOTE
    assert summary.verdict is USUAL
    assert not left_out(folder)


@pytest.mark.parametrize("suffix", [".log.gz", ".log.bak", ".log.deleted"])
def test_packed_and_renamed_logs_are_told_by_their_names(folder: Path, suffix: str) -> None:
    """Their batches are not read: a name tells where a log begins."""
    inner = moved(folder, "old", 0)
    log = inner / name_of(0, ".log")
    data = log.read_bytes()
    (inner / name_of(0, suffix)).write_bytes(gzip.compress(data) if "gz" in suffix else data)
    log.unlink()
    (one,), _ = told(folder)
    assert one.severity is Severity.WARNING
    assert str(inner / name_of(0, suffix)) in one.message
    (reason,) = left_out(folder)
    assert "may belong here" in reason


def test_a_damaged_log_in_a_folder_is_told(folder: Path) -> None:
    """Nothing of it is sound, and the partition has none of its offsets."""
    inner = moved(folder, "old", 0)
    log = inner / name_of(0, ".log")
    log.write_bytes(bytes(log.stat().st_size))
    (one,), _ = told(folder)
    assert one.severity is Severity.WARNING
    assert str(log) in one.message


def test_so_many_batches_are_compared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more, a note says so."""
    monkeypatch.setattr("segproof.verifying.folder_extents.BATCHES_MAX", 2)
    moved(folder, "old", 0)
    (one,), _ = told(folder)
    assert "too many batches" in one.message
