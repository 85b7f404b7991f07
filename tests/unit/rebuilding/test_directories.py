# SPDX-License-Identifier: Apache-2.0
"""Rebuilding whole data directories, and what keeps the old files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from segproof import rebuild, verify
from segproof.errors import InvalidArgumentError, SegproofError
from segproof.rebuilding.directory_rebuild import RebuiltPartition
from segproof.rebuilding.segment_build import Options
from segproof.repair import rebuild_all
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.reported_findings import contents

SCENARIOS = {each.name: partition_of(each) for each in scenarios()}
LOG = "00000000000000000060.log"
LOCKER = """
import fcntl, sys
with open(sys.argv[1], "r+") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return two data directories: a sound partition, one with wrong indexes, one broken log."""
    for number, name in enumerate(("compacted", "txn-a", "plain")):
        folder = tmp_path / "data" / f"disk{number % 2}" / f"{name}-0"
        shutil.copytree(SCENARIOS[name], folder, copy_function=shutil.copyfile)
    for index in (tmp_path / "data").glob("*/*/*.index"):
        if index.parent.name != "compacted-0":
            index.write_bytes(bytes(range(1, 17)))
    log = tmp_path / "data" / "disk0" / "plain-0" / LOG
    put_bytes(log, 20000, b"XX")
    return tmp_path / "data"


def told(done: list[RebuiltPartition]) -> list[tuple[str, int, int]]:
    """Return each partition with its changed files and its findings."""
    return [
        (os.path.basename(one.path), sum(file.changed for file in one.done.files),
         len(one.done.findings))
        for one in done
    ]  # fmt: skip


WANTED = [("compacted-0", 0, 0), ("plain-0", 0, 1), ("txn-a-0", 3, 0)]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.usefixtures("processes_for_little")
def test_a_broken_log_stops_no_other_partition(data: Path, jobs: int) -> None:
    """Each is done by itself, here or in processes, and the bytes to read are told of all."""
    before = contents(data)
    steps: list[tuple[int, int]] = []
    done = list(
        rebuild_all(
            [data / "disk0", data / "disk1"],
            options=Options(in_place=True),
            jobs=jobs,
            on_progress=lambda *step: steps.append(step),
        )
    )
    assert WANTED == told(done)
    after = contents(data)
    changed = {name for name in before if before[name] != after[name]}
    assert set(before) == set(after)
    assert {f"disk1/txn-a-0/{path.name}" for path in SCENARIOS["txn-a"].glob("*.index")} == changed
    assert not any(one.is_defect for one in verify(data / "disk1"))
    assert steps
    assert len({total for _, total in steps[:-1]}) <= 1  # processes may end before the first look


def test_partitions_go_to_the_same_place_below_a_new_directory(data: Path, tmp_path: Path) -> None:
    """A directory with partitions at any depth is one path; a dry run makes nothing."""
    before, out = contents(data), tmp_path / "out"
    assert WANTED == told(list(rebuild_all([data], out, Options(dry_run=True))))
    assert not out.exists()
    assert WANTED == told(list(rebuild_all([data], out)))
    assert before == contents(data)
    assert ["disk0/compacted-0", "disk1/txn-a-0"] == sorted(
        str(path.relative_to(out)) for path in out.glob("*/*")
    )


def test_a_broker_on_one_disk_keeps_all(data: Path) -> None:
    """All locks are taken before the first change."""
    lock = data / "disk1" / ".lock"
    lock.touch()
    before = contents(data)
    with subprocess.Popen(
        [sys.executable, "-c", LOCKER, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        with pytest.raises(SegproofError, match="a broker runs here"):
            list(rebuild_all([data / "disk0", data / "disk1"], options=Options(in_place=True)))
        broker.communicate()
    assert before == contents(data)


def test_a_backup_keeps_each_old_file(data: Path, tmp_path: Path) -> None:
    """Below its whole path, durable; copied back, all is as before. No file in it is replaced."""
    backup, options = tmp_path / "backup", Options(in_place=True, backup=str(tmp_path / "backup"))
    before = contents(data)
    done = list(rebuild_all([data], options=options))
    kept = {file.path: file.backup for one in done for file in one.done.files if file.changed}
    assert len(kept) == 3
    for path, old in kept.items():
        assert old == f"{backup}{os.path.realpath(path)}"
        assert before[os.path.relpath(path, data)] == Path(old).read_bytes()
    assert set(map(str, (path for path in backup.rglob("*") if path.is_file()))) == {*kept.values()}
    after = contents(data)
    assert [0, 0, 0] == [count for _, count, _ in told(list(rebuild_all([data], options=options)))]
    shutil.copytree(backup / os.path.realpath(data)[1:], data, dirs_exist_ok=True)
    assert before == contents(data)
    list(rebuild_all([data], options=options))
    assert after == contents(data)
    next(path for path in data.glob("disk1/*/*.index")).write_bytes(b"other")
    damaged = contents(data)
    *_, last = rebuild_all([data], options=options)
    assert "the backup has another file of this name" in str(last.error)
    assert damaged == contents(data)


@pytest.mark.parametrize("place", ["data/disk1/backup", "data/disk1/txn-a-0/backup"])
def test_a_backup_that_a_broker_would_find_is_refused(
    place: str, data: Path, tmp_path: Path
) -> None:
    """A broker ends at its start if a directory in its data directory is no partition."""
    (data / "disk1" / "meta.properties").touch()
    before = contents(data)
    for path in (data / "disk1", data / "disk1" / "txn-a-0"):
        with pytest.raises(InvalidArgumentError):
            rebuild(path, in_place=True, backup=tmp_path / place)
    assert before == contents(data)
