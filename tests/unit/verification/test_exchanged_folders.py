# SPDX-License-Identifier: Apache-2.0
"""Two partition folders that have each other's name."""

import os
import shutil
from pathlib import Path

import pytest

from segproof.findings import Finding, Summary
from segproof.kafka.producer_snapshot import write_snapshot
from segproof.repair import salvage
from segproof.verification import verify
from segproof_harness.files.shipped_directories import KAFKA, partition_of
from segproof_tests.partition_files import aged
from segproof_tests.reported_findings import verified


@pytest.mark.checks("DISK-38")
@pytest.mark.parametrize("wrong", ["", "other end", "one checkpoint", "cut"])
def test_folders_that_exchanged_names_lost_nothing(tmp_path: Path, wrong: str) -> None:
    """The longer one's records were told lost, and no word named the other folder."""
    data = tmp_path / "data"
    data.mkdir()
    for name, source in (("a-0", "plain"), ("b-0", "v1-gzip"), ("c-0", "plain")):
        shutil.copytree(partition_of(KAFKA / source), data / name)
        aged(data / name)
    ends: dict[str, int] = {}

    def take(summary: Summary) -> None:
        ends[os.path.basename(summary.path)] = summary.end_offset or 0

    list(verify(data, on_summary=take))
    longer, shorter = sorted(("a-0", "b-0"), key=ends.__getitem__, reverse=True)
    (data / "a-0").rename(data / "x")
    (data / "b-0").rename(data / "a-0")
    (data / "x").rename(data / "b-0")
    told = {"a 0": ends["a-0"], "b 0": ends["b-0"], "c 0": ends["c-0"]}
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        lines = dict(told)
        if wrong == "other end" or (wrong == "one checkpoint" and name.startswith("rep")):
            lines[shorter.replace("-", " ")] += 1
        text = "\n".join(["0", "3", *(f"{key} {end}" for key, end in lines.items()), ""])
        (data / name).write_text(text)
    if wrong == "cut":  # the log of the longer name has lost its end, and so ends elsewhere
        log = max((data / longer).glob("*.log"))
        log.write_bytes(log.read_bytes()[:-1])
    found, summaries = verified(data)
    about = [one for one in found if one.law == "DISK-38"]
    assert about
    is_named = [f"{data / shorter} may have exchanged names" in one.message for one in about]
    assert [not wrong] * len(about) == is_named
    (summary,) = [one for one in summaries if one.path == str(data / longer)]
    lost = ends[longer] - ends[shorter]
    assert wrong or (0, None, lost) == (
        summary.lost_at_least, summary.lost_offsets, summary.unproven_offsets,
    )  # fmt: skip
    done = {os.path.basename(one.directory): one for one in salvage(data, tmp_path / "saved")}
    assert (not wrong) is (not done[longer].lost_offsets)
    assert (not wrong) is any(f"{lost} offsets are lost" in one for one in done[longer].doubts)


END, SHORTER = 746, 693


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a log directory where `a-0` has lost its last segment, and `b-0` ends after it.

    Both checkpoints say of each folder where the log of the other one ends.
    """
    data = tmp_path / "data"
    for name in ("a-0", "b-0"):
        shutil.copytree(partition_of(KAFKA / "plain"), data / name)
    for path in (data / "a-0").glob(f"{SHORTER:020d}.*"):
        path.unlink()
    tell_ends(data, "b 0", SHORTER)
    return data


def tell_ends(data: Path, other: str, end: int) -> None:
    """Write both checkpoints: `a-0` ends with the whole log, and the other one at an offset."""
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (data / name).write_text(f"0\n2\na 0 {END}\n{other} {end}\n")


def looked(data: Path) -> tuple[Summary, list[Finding]]:
    """Return the summary of `a-0`, and what is said of its checkpoints; salvage counts alike."""
    found, summaries = verified(aged(data / "a-0"))
    (told,) = salvage(data / "a-0", data.parent / "saved")
    assert summaries[-1].lost_at_least == told.lost_offsets
    return summaries[-1], [one for one in found if one.law == "DISK-38"]


@pytest.mark.checks("DISK-36", "DISK-38", "DISK-64")
@pytest.mark.parametrize("claim", ["", "snapshot", "epochs", "cleaner"])
def test_a_file_of_the_folder_speaks_against_an_exchange(claim: str, data: Path) -> None:
    """A snapshot or an epoch moves with its folder: `salvage` told no loss, whatever they said."""
    if claim == "snapshot":
        (data / f"a-0/{END:020d}.snapshot").write_bytes(write_snapshot(()))
    if claim == "epochs":
        (data / "a-0/leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n4 {END}\n")
    if claim == "cleaner":
        (data / "cleaner-offset-checkpoint").write_text(f"0\n1\na 0 {END + 1}\n")
    summary, about = looked(data)
    assert about
    assert {not claim} == {"exchanged names" in one.message for one in about}
    lost = 0 if not claim else END - SHORTER + (claim == "cleaner")
    assert lost == summary.lost_at_least


@pytest.mark.checks("DISK-38")
def test_a_cleaner_that_ends_with_the_log_allows_an_exchange(data: Path) -> None:
    """It knows no offset that the log of the other folder has not."""
    (data / "cleaner-offset-checkpoint").write_text(f"0\n1\na 0 {END}\n")
    summary, about = looked(data)
    assert about
    assert all("exchanged names" in one.message for one in about)
    assert 0 == summary.lost_at_least


@pytest.mark.checks("DISK-38")
def test_an_empty_log_proves_no_exchange(data: Path) -> None:
    """A new partition ends at 0, as an emptied log does: no loss was counted."""
    for path in (data / "a-0").glob("0*"):
        path.unlink()
    (data / f"a-0/{0:020d}.log").touch()
    tell_ends(data, "b 0", 0)
    summary, about = looked(data)
    assert END == summary.lost_at_least
    assert not [one for one in about if "exchanged names" in one.message]


@pytest.mark.checks("DISK-38")
@pytest.mark.parametrize("other", ["b-0", "a-1"])
def test_folders_of_one_topic_have_one_id(other: str, data: Path) -> None:
    """The hint told to compare their topic ids, and that a broker sets both aside."""
    (data / "b-0").rename(data / other)
    tell_ends(data, other.replace("-", " "), SHORTER)
    summary, about = looked(data)
    assert END - SHORTER == summary.unproven_offsets
    hints = {one.hint or "" for one in about}
    assert 1 == len(hints)
    assert (other == "b-0") is all("compare the topic ids" in one for one in hints)
    assert (other == "b-0") is all("-stray" in one for one in hints)
