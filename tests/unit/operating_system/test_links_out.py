# SPDX-License-Identifier: Apache-2.0
"""A link to a file outside of its own folder is not read: what it leads to stays unseen."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from segproof import scan
from segproof.errors import DamagedFileError
from segproof.files import REAL_FILES, LinkOutError
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, ROCKETMQ, partition_of
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import verified

SECRET = "root-secret-hash"
NAME = "00000000000000000000"
KAFKA_FILES = (
    f"t-0/{NAME}.log", f"t-0/{NAME}.index", f"t-0/{NAME}.timeindex", f"t-0/{NAME}.txnindex",
    f"t-0/{NAME}.snapshot", "t-0/leader-epoch-checkpoint", "t-0/partition.metadata",
    "recovery-point-offset-checkpoint", "log-start-offset-checkpoint",
    "replication-offset-checkpoint", "cleaner-offset-checkpoint", ".kafka_cleanshutdown",
)  # fmt: skip
STORE_FILES = (
    "checkpoint", f"commitlog/{NAME}", "index/20261121011453849",
    f"consumequeue/TopicTest/0/{NAME}",
)  # fmt: skip


def kafka(tmp_path: Path) -> Path:
    """Return a data directory with a partition."""
    shutil.copytree(partition_of(KAFKA / "plain"), tmp_path / "data" / "t-0")
    return tmp_path / "data"


def secret(tmp_path: Path) -> Path:
    """Return a file that is not to be shown."""
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n" * 99)
    return path


def leads_to(path: Path, target: Path) -> None:
    """Put a link in the place of a file."""
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def verdicts(path: Path) -> tuple[list[Finding], list[Summary]]:
    """Verify, and check that the secret is in no text."""
    found, told = verified(path)
    assert SECRET not in "".join(one.to_json_line() for one in found)
    return found, told


@pytest.mark.checks("DISK-45")
@pytest.mark.parametrize("name", KAFKA_FILES)
def test_a_file_of_kafka_that_is_a_link_out(tmp_path: Path, name: str) -> None:
    """The first line of the file elsewhere was in the finding of `partition.metadata`."""
    data = kafka(tmp_path)
    leads_to(data / name, secret(tmp_path))
    found, told = verdicts(data)
    (one,) = (one for one in found if one.path == str(data / name) and one.is_not_looked_into)
    assert Severity.WARNING is one.severity
    assert not any(two.law == "DISK-1" for two in found)
    assert sum(two.not_looked_into for two in told) >= 1
    assert not all(two.verdict is Verdict.SOUND for two in told)


def test_a_link_to_a_log_file_of_the_same_name_is_followed(tmp_path: Path) -> None:
    """So RocketMQ's log files on several disks are joined. Another name could be any file."""
    store, disk = tmp_path / "store", tmp_path / "disk"
    shutil.copytree(ROCKETMQ / "small-4.9.8" / "store", store)
    disk.mkdir()
    for name in (f"commitlog/{NAME}", "checkpoint"):
        moved = disk / Path(name).name
        (store / name).rename(moved)
        leads_to(store / name, moved)
    found, _ = verdicts(store)
    assert {str(store / "checkpoint")} == {one.path for one in found if one.is_not_looked_into}


@pytest.mark.checks("RMQDISK-41")
@pytest.mark.parametrize("name", STORE_FILES)
def test_a_file_of_a_store_that_is_a_link_out(tmp_path: Path, name: str) -> None:
    """The files of a RocketMQ store likewise."""
    store = tmp_path / "store"
    shutil.copytree(ROCKETMQ / "small-4.9.8" / "store", store)
    assert (store / name).exists()
    leads_to(store / name, secret(tmp_path))
    found, told = verdicts(store)
    assert any(one.path == str(store / name) and one.law == "RMQDISK-41" for one in found)
    assert Verdict.SOUND not in {one.verdict for one in told}


@pytest.mark.parametrize("name", ["partition.metadata", "leader-epoch-checkpoint", f"{NAME}.log"])
def test_no_verb_shows_what_a_link_leads_to(tmp_path: Path, name: str, capsys: Capsys) -> None:
    """Nor is it in a page, a table, or what a salvage writes."""
    folder = kafka(tmp_path) / "t-0"
    leads_to(folder / name, secret(tmp_path))
    page, out = tmp_path / "page.html", tmp_path / "saved"
    for command in (
        ["verify", str(folder)], ["verify", str(folder / name)], ["dump", str(folder / name)],
        ["dump", str(folder)], ["lookup", str(folder), "--offset", "0"], ["ls", str(folder)],
        ["report", str(folder), "--out", str(page)],
        ["salvage", str(folder.parent), "--out", str(out)],
        ["rebuild", str(folder), "--dry-run"],
    ):  # fmt: skip
        assert cli.run(command) in (0, 1, 2)
        told = capsys.readouterr()
        assert SECRET not in told.out + told.err
    written = [path for path in (page, *out.rglob("*")) if path.is_file()]
    assert written
    assert not any(SECRET.encode() in path.read_bytes() for path in written)


@pytest.mark.needs("pyarrow")
def test_a_table_does_not_follow_a_link_out(tmp_path: Path) -> None:
    """The rows of the log elsewhere were rows of this partition."""
    folder = kafka(tmp_path) / "t-0"
    other = partition_of(KAFKA / "txn-a") / f"{NAME}.log"
    leads_to(folder / f"{NAME}.log", other)
    with pytest.raises((LinkOutError, DamagedFileError), match="a link out of its folder"):
        scan(folder / f"{NAME}.log").read_all()


def test_links_that_operators_use_are_followed(tmp_path: Path) -> None:
    """A data directory, or a partition, on another disk; and a link to a file beside it."""
    disk = kafka(tmp_path)
    (tmp_path / "link").symlink_to(disk)
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "t-0").symlink_to(disk / "t-0")
    (disk / "t-0" / "kept").write_bytes((disk / "t-0" / f"{NAME}.log").read_bytes())
    leads_to(disk / "t-0" / f"{NAME}.log", Path("kept"))
    for path in (disk, tmp_path / "link", tmp_path / "mixed", tmp_path / "link" / "t-0"):
        told: list[Summary] = []
        assert not any(one.is_defect for one in verify(path, on_summary=told.append))
        assert 9 in {one.segments for one in told}


@pytest.mark.checks("DISK-45", "RMQDISK-41")
@pytest.mark.parametrize("name", ["data/t-0/partition.metadata", f"store/commitlog/{NAME}"])
def test_the_copy_that_the_hint_makes_has_no_link(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed command copies the folder with what its links lead to."""
    kafka(tmp_path)
    shutil.copytree(ROCKETMQ / "small-4.9.8" / "store", tmp_path / "store")
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / name).rename(elsewhere)
    leads_to(tmp_path / name, elsewhere)
    monkeypatch.chdir(tmp_path)
    linked = [one for one in verify(Path(name).parts[0]) if one.path == name]
    (command,) = {match for one in linked for match in re.findall(r"`(install[^`]+)`", one.hint)}
    subprocess.run(["bash", "-c", command], check=True)
    (copied,) = (tmp_path / "copied").iterdir()
    assert not any(path.is_symlink() for path in copied.rglob("*"))
    assert not any(one.is_defect for one in verify(copied))


def test_the_error_names_the_path_to_give(tmp_path: Path) -> None:
    """A link that is given by itself is refused too; its target's path is the way."""
    target = secret(tmp_path)
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "link"
    link.symlink_to(target)
    with pytest.raises(LinkOutError, match=f"give the path that it leads to, {target}"):
        REAL_FILES.open(os.fspath(link))
    REAL_FILES.open(os.fspath(target)).close()
