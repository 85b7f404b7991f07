# SPDX-License-Identifier: Apache-2.0
"""Log directories of a broker: folders that end a start, partitions twice, missing small files."""

import json
import os
import shutil
from pathlib import Path

import pytest

from segproof.findings import Finding, Severity, Verdict
from segproof.verification import partition_places, verify
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, partition_of

PLAIN = partition_of(KAFKA / "plain")
META = "#\nversion=1\nnode.id={}\ncluster.id=I2eXt9rvSnyhct8BYmW6-w\ndirectory.id={}\n"


def broker(folder: Path, *, node: int = 1, directory: str = "a", version: int = 1) -> Path:
    """Return a log directory with one partition."""
    shutil.copytree(PLAIN, folder / "plain-0")
    text = META.format(node, directory).replace("version=1", f"version={version}")
    (folder / "meta.properties").write_text(text)
    return folder


def of(path: Path, law: str) -> list[Finding]:
    """Return the findings of one law."""
    return list(verify(path, laws=[law]))


@pytest.mark.checks("DISK-47")
@pytest.mark.parametrize("name", ["lost+found", ".snapshot", "data", "analytics", "plain-0.bak"])
def test_a_folder_that_ends_a_start_is_an_error(tmp_path: Path, name: str) -> None:
    """`verify` said nothing of these folders, or that Kafka does not read them."""
    data = broker(tmp_path / "data")
    (data / name).mkdir()
    (data / name / "of-others").symlink_to("/no/such/place")
    (one,) = of(data, "DISK-47")
    assert (str(data / name), Severity.ERROR) == (one.path, one.severity)
    assert "Kafka's start ends here" in one.message
    assert not [two for two in verify(data) if two.law == "DISK-3" and two.path == one.path]


@pytest.mark.checks("DISK-47")
def test_partitions_in_a_foreign_folder_are_verified_too(tmp_path: Path) -> None:
    """The start ends at the folder; what is in it may be what somebody looks for."""
    data = broker(tmp_path / "data")
    shutil.copytree(PLAIN, data / "old" / "gone-0")
    (one,) = of(data, "DISK-47")
    assert str(data / "old") == one.path
    told: list[str] = []
    list(verify(data, on_summary=lambda summary: told.append(summary.path)))
    assert str(data / "old" / "gone-0") in told


@pytest.mark.checks("DISK-3")
def test_what_is_no_folder_ends_no_start(tmp_path: Path) -> None:
    """Kafka passes over files and over links that lead nowhere: notes."""
    data = broker(tmp_path / "data")
    (data / "link").symlink_to("/no/such/place")
    (data / "notes.txt").write_text("x")
    found = [one for one in verify(data) if one.law in ("DISK-3", "DISK-47")]
    assert {"link", "notes.txt"} == {Path(one.path).name for one in found}
    assert {Severity.NOTE} == {one.severity for one in found}


@pytest.mark.checks("DISK-48")
def test_a_partition_in_two_directories_of_a_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both were sound, below one path and as two paths of one call."""
    one, two = broker(tmp_path / "one"), broker(tmp_path / "two", directory="b")
    for path in (two / "plain-0").glob("00000000000000000693.*"):
        path.unlink()
    found = of(tmp_path, "DISK-48")
    assert [str(one / "plain-0"), str(two / "plain-0")] == [each.path for each in found]
    assert ["this copy has more" in found[0].message, f"{one}/plain-0 has more" in found[1].message]
    assert {Severity.ERROR} == {each.severity for each in found}
    command = found[1].reproduce.split()[1:]
    for given in (["verify", str(one), str(two), "--law", "DISK-48"], command):
        assert 1 == cli.run([*given, "--format", "jsonl"])
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        paths = {row["path"] for row in rows if row.get("type") is None}
        assert {str(one / "plain-0"), str(two / "plain-0")} == paths
        verdicts = {row["verdict"] for row in rows if row.get("kind") == "partition"}
        assert {Verdict.READABLE_WITH_DEFECTS.value} == verdicts
    assert not list(verify(one, laws=["DISK-48"]))
    assert list(verify(one, laws=["DISK-48"], beside=partition_places([one, two])))


@pytest.mark.checks("DISK-48")
@pytest.mark.parametrize(
    ("node", "directory", "severity"),
    [(2, "b", None), (1, "a", Severity.NOTE), (1, "", Severity.WARNING), (1, "b", Severity.ERROR)],
)
def test_replicas_and_copies_are_no_error(
    tmp_path: Path, node: int, directory: str, severity: Severity | None
) -> None:
    """Another broker has replicas, and a backup has the id of its directory."""
    broker(tmp_path / "one")
    broker(tmp_path / "two", node=node, directory=directory)
    found = of(tmp_path, "DISK-48")
    assert ({severity} if severity else set()) == {one.severity for one in found}


@pytest.mark.checks("DISK-48")
def test_the_same_directory_twice_is_no_duplicate(tmp_path: Path) -> None:
    """A path that is given twice, or by a link; but a link in another directory is one."""
    data = broker(tmp_path / "data")
    (tmp_path / "link").symlink_to(data)
    beside = partition_places([data, tmp_path / "link", data / "plain-0"])
    assert [] == list(verify(data, laws=["DISK-48"], beside=beside))
    assert [] == list(verify(data / "plain-0", laws=["DISK-48"], beside=beside))
    other = tmp_path / "other"
    other.mkdir()
    (other / "meta.properties").write_text(META.format(1, "b"))
    (other / "plain-0").symlink_to(data / "plain-0")
    found = list(verify(tmp_path, laws=["DISK-48"]))
    assert {str(data / "plain-0"), str(other / "plain-0")} == {one.path for one in found}


@pytest.mark.checks("DISK-49")
@pytest.mark.parametrize("version", [0, 1])
def test_a_topic_id_that_is_missing_under_kraft(tmp_path: Path, version: int) -> None:
    """`verify` said sound; the broker's start renames the folder, and the topic is empty."""
    data = broker(tmp_path / "data", version=version)
    text = (data / "plain-0" / "partition.metadata").read_text()
    (data / "plain-0" / "partition.metadata").unlink()
    found = of(data, "DISK-49")
    assert [Severity.ERROR] * version == [one.severity for one in found]
    shutil.copytree(PLAIN, data / "plain-1")
    (one,) = of(data, "DISK-49")
    assert (Severity.ERROR if version else Severity.WARNING) is one.severity
    topic_id = text.rpartition(" ")[2].strip()
    assert f"the id {topic_id}" in one.hint
    (data / "plain-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    assert not any(one.is_defect for one in verify(data / "plain-0"))


@pytest.mark.checks("DISK-49")
def test_files_that_were_moved_away_by_their_age(tmp_path: Path) -> None:
    """The message says where the log begins now, the hint to bring the rest back."""
    data = broker(tmp_path / "data")
    for path in (data / "plain-0").iterdir():
        if not path.name.startswith(f"{693:020d}"):
            path.unlink()
    found = of(data, "DISK-49")
    names = {"partition.metadata", "leader-epoch-checkpoint"}
    assert names == {os.path.basename(one.path) for one in found}
    assert all("the log begins at offset 693" in one.message for one in found)
    assert all("moved away by " in one.hint for one in found)


@pytest.mark.checks("DISK-49")
def test_a_lone_copy_of_a_partition_misses_nothing(tmp_path: Path) -> None:
    """Old releases write no topic id: without a broker's files nothing shows that it is missing."""
    for name in ("plain-0", "other-0"):
        shutil.copytree(PLAIN, tmp_path / name)
    (tmp_path / "other-0" / "partition.metadata").unlink()
    assert [] == of(tmp_path, "DISK-49")


@pytest.mark.checks("DISK-26")
@pytest.mark.parametrize("place", ["one", "two"])
def test_a_folder_of_two_partitions_is_an_error(tmp_path: Path, place: str) -> None:
    """A link from one partition to another was a note, with the hint "nothing for a link"."""
    one, two = broker(tmp_path / "one"), broker(tmp_path / "two", directory="b")
    shutil.rmtree(two / "plain-0")
    (tmp_path / place / "u-0").symlink_to(one / "plain-0")
    (found,) = of(tmp_path, "DISK-26")
    assert (str(tmp_path / place / "u-0"), Severity.ERROR) == (found.path, found.severity)
    assert f"{one}/plain-0: a broker loads two logs" in found.message
    # A folder that no broker loads may have any name.
    (tmp_path / place / "u-0").unlink()
    (tmp_path / "u-0").symlink_to(one / "plain-0")
    (found,) = of(tmp_path, "DISK-26")
    assert Severity.NOTE == found.severity
