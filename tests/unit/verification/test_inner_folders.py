# SPDX-License-Identifier: Apache-2.0
"""Logs in a folder inside of a partition: those that the partition lacks may belong there."""

import gzip
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.repair import salvage
from segproof.verification import verify
from segproof.verifying import inner_folders
from segproof_harness.laws.borders.log_files import batch
from segproof_harness.reports.verdicts import split_commands
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.extents_kept import count_extents
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
    (joined,) = (folder.parent / "joined").glob("*/t-0")
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
    monkeypatch.setattr("segproof.inventory.folder_extents.BATCHES_MAX", 2)
    moved(folder, "old", 0)
    (one,), _ = told(folder)
    assert "too many batches" in one.message


NOTHING = "nothing: the partition has "
"""How the hint of a folder begins that is a copy."""


def _nested(folder: Path, *inner: str) -> list[Path]:
    """Copy a log of the partition into each of these folders in it; return the copies."""
    found = []
    for one in inner:
        (folder / one).mkdir(parents=True)
        found.append(Path(shutil.copy(folder / name_of(3, ".log"), folder / one)))
    return found


def test_two_copies_are_nothing_to_do(folder: Path) -> None:
    """All folders are whole, and the partition has each batch: only then it is said."""
    _nested(folder, "old/a", "old/b")
    (one,), _ = told(folder)
    assert "; 1 more folder in it has logs. The partition has each" in one.message
    assert (one.hint or "").startswith(NOTHING)


def _zeros(log: Path) -> None:
    log.write_bytes(bytes(log.stat().st_size))


def _packed(log: Path) -> None:
    log.with_suffix(".log.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()


@pytest.mark.parametrize("place", ["old", "old/a", "old/b", "old/c/d"])
@pytest.mark.parametrize(
    "damage", [_zeros, pytest.param(lambda log: flip_bits(log, -1), id="_flipped"), _packed]
)
def test_one_folder_that_is_not_whole_is_no_copy(
    folder: Path, place: str, damage: Callable[[Path], None]
) -> None:
    """Only one folder was judged: "the partition has all of it" hid the damaged one."""
    copies = _nested(folder, "old/a", "old/b", "old/c/d")
    if place == "old":
        copies.append(Path(shutil.copy(folder / name_of(3, ".log"), folder / "old")))
    damage(next(one for one in copies if one.parent == folder / place))
    (one,), _ = told(folder)
    assert f"in {folder / place} was not compared" in one.message
    assert "has each" not in one.message
    assert not (one.hint or "").startswith("nothing")


@pytest.mark.parametrize("has_copy", [True, False])
@pytest.mark.parametrize("where", ["beside", "below"])
def test_folders_that_are_not_searched_are_told(
    folder: Path, where: str, monkeypatch: pytest.MonkeyPatch, *, has_copy: bool
) -> None:
    """The only copy of a batch lay in a folder that was never opened: it was "a copy"."""
    monkeypatch.setattr("segproof.verifying.inner_folders.FOLDERS_MAX", 5)
    (folder / "old").mkdir()
    if has_copy:
        shutil.copy(folder / name_of(3, ".log"), folder / "old")
    if where == "beside":
        for number in range(5):
            (folder / "old" / f"a{number}").mkdir()
    moved(folder, "old/z" if where == "beside" else "old/1/2/3/4", 6)
    (one,), _ = told(folder)
    assert "Not all folders in it were searched" in one.message
    assert "has each" not in one.message
    assert not (one.hint or "").startswith("nothing")


@pytest.mark.parametrize("levels", [1, 3])
def test_folders_at_the_limits_are_searched(
    folder: Path, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last folder and the last level count too."""
    inner = ["old/x", "old/1/2/3"][levels // 2]
    monkeypatch.setattr("segproof.verifying.inner_folders.FOLDERS_MAX", levels + 1)
    _nested(folder, inner)
    (one,), _ = told(folder)
    assert (one.hint or "").startswith(NOTHING)


def test_a_folder_with_too_many_batches_is_not_compared(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a copy, it was not in the words."""
    monkeypatch.setattr("segproof.inventory.folder_extents.BATCHES_MAX", 9)
    _nested(folder, "old/a")
    log = b"".join(batch(one, key=None) for one in range(10))
    write_segment(folder / "old" / "b", log, 0)
    (one,), _ = told(folder)
    assert "too many batches to be compared" in one.message
    assert not (one.hint or "").startswith("nothing")


def test_the_partition_is_read_once_for_all_folders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read again for each folder in it; no extent of a folder is kept."""
    _nested(folder, *(f"old{one}/{two}" for one in range(3) for two in range(3)))
    read = count_extents(monkeypatch, inner_folders)
    told(folder)
    assert read.paths.count(str(folder)) == 1
    assert len(read.paths) == 1 + 3 * 4
    assert read.most_kept == 2
