# SPDX-License-Identifier: Apache-2.0
"""A partition whose folder is there, and none of its logs: no verb passes over it."""

import shutil
from pathlib import Path

import pytest

import segproof_tests
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.repair import salvage
from segproof.verification import verify
from segproof_tests.partition_files import aged, copied_partition, write_segment
from segproof_tests.reported_findings import verified

RECOVERY = "recovery-point-offset-checkpoint"
OF_LOGS = (".log", ".index", ".timeindex", ".txnindex")


def looked(data: Path, name: str) -> tuple[dict[str, Finding], Summary]:
    """Verify a data directory; return the first findings and the summary of one partition."""
    found, told = verified(data)
    (own,) = [one for one in told if one.path == str(data / name)]
    return {one.law: one for one in reversed(found) if one.path.startswith(own.path)}, own


def emptied(folder: Path, *kept: str) -> Path:
    """Remove the files of all segments, and the others but those that end so."""
    for path in folder.iterdir():
        if path.suffix in OF_LOGS or not path.name.endswith(kept):
            path.unlink()
    return folder


@pytest.mark.checks("DISK-71", "DISK-36", "DISK-38", "DISK-64")
@pytest.mark.parametrize(
    ("kept", "checkpoint", "lost"),
    [
        ((), 0, 0),
        ((), 162, 162),
        (("partition.metadata",), 0, 0),
        (("partition.metadata", "leader-epoch-checkpoint"), 700, 700),
        ((".snapshot",), 0, 693),
        ((".snapshot", "leader-epoch-checkpoint"), 746, 746),
    ],
)
def test_a_partition_without_a_log_is_told(
    kept: tuple[str, ...], checkpoint: int, lost: int, tmp_path: Path
) -> None:
    """It was "sound", or had no word, and `salvage` ended with "everything kept"."""
    data = copied_partition("plain", tmp_path / "data").parent
    write_segment(data / "other-0", b"")
    (data / RECOVERY).write_text(f"0\n2\nplain 0 {checkpoint}\nother 0 0\n")
    emptied(data / "plain-0", *kept)
    found, summary = looked(aged(data / "plain-0").parent, "plain-0")
    assert Severity.WARNING is found["DISK-71"].severity
    assert (Verdict.UNREADABLE, lost) == (summary.verdict, summary.lost_at_least)
    told = {Path(one.directory).name: one for one in salvage(data, tmp_path / "out")}
    assert not told["plain-0"].has_all_files
    assert "no log is in this folder" in str(told["plain-0"].left_out)


@pytest.mark.checks("DISK-71")
@pytest.mark.parametrize("name", ["plain-0.0a1b2c3d4e5f60718293a4b5c6d7e8f9-delete", "other", "-"])
def test_other_folders_need_no_log(name: str, tmp_path: Path) -> None:
    """One that a broker removes, and one that is no partition; a log may be empty."""
    write_segment(tmp_path / "data" / "plain-1", b"")
    (tmp_path / "data" / name).mkdir()
    assert "DISK-71" not in {one.law for one in verify(tmp_path / "data")}


@pytest.mark.checks("DISK-71")
def test_a_node_without_the_log_of_the_metadata(tmp_path: Path) -> None:
    """Its only log was renamed, and the snapshot and the vote beside it were silent."""
    data = copied_partition("plain", tmp_path / "data").parent
    own = data / "__cluster_metadata-0"
    shutil.copytree(Path(segproof_tests.__file__).parent / "internal_topics" / own.name, own)
    (log,) = own.glob("*.log")
    log.rename(log.with_suffix(".broken"))
    found, summary = looked(data, own.name)
    assert found.keys() >= {"DISK-71", "DISK-45"}
    assert Verdict.UNREADABLE is summary.verdict


@pytest.mark.checks("DISK-71")
def test_an_empty_folder_of_no_broker_is_no_partition(tmp_path: Path) -> None:
    """Beside nothing of Kafka's, photos-2024 is no partition; beside a partition a broker reads it.

    It was "unreadable", under words about a broker's next start.
    """
    (tmp_path / "photos-2024").mkdir()
    assert {"DISK-20"} == {one.law for one in verify(tmp_path)}
    write_segment(tmp_path / "plain-1", b"")
    paths = {one.path for one in verify(tmp_path) if one.law == "DISK-71"}
    assert {str(tmp_path / "photos-2024")} == paths
