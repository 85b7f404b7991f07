# SPDX-License-Identifier: Apache-2.0
"""The commands that one run prints: none writes where another one does, and none overwrites."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from segproof.errors import SegproofError
from segproof.findings import Finding
from segproof.repair import salvage
from segproof.verification import verify
from segproof_harness.files.shipped_directories import ROCKETMQ
from segproof_harness.laws.borders.log_files import batch
from segproof_tests.partition_files import name_of
from segproof_tests.store_files import long_store

PRINTED = re.compile(r"`((?:cp|mv|ln|install|mkdir|gunzip) [^`]+)`")
"""A command that writes files, with its arguments, in a hint."""
WORDS = re.compile(r"""(?:\$'(?:[^'\\]|\\.)*'|'[^']*'|"[^"]*"|[^\s'"])+""")
Command = tuple[str, str]
"""A hint, and one of its commands."""
META = "version=1\nnode.id=1\ncluster.id=c\ndirectory.id={}\n"


def logs(
    folder: Path, *ranges: tuple[int, int], suffix: str = ".log", key: bytes | None = None
) -> None:
    """Write a log for each range of offsets."""
    folder.mkdir(parents=True, exist_ok=True)
    for first, end in ranges:
        data = b"".join(batch(one, key=key) for one in range(first, end))
        (folder / name_of(first, suffix)).write_bytes(data)


def disk_of_kafka(disk: Path, identity: str) -> None:
    """Make a data directory with two of each situation whose hint has commands that copy."""
    data = disk / "data"
    data.mkdir(parents=True)
    (data / "meta.properties").write_text(META.format(identity * 21 + "Q"))
    for number in range(2):
        logs(data / f"t-0.{number:032x}-stray", (0, 9))
        logs(data / "t-0", (0, 3))
        partition = data / f"removed-{number}"
        logs(partition, (0, 4))
        logs(partition, (4, 8), suffix=".log.deleted")
        partition = data / f"moved-{number}"
        logs(partition, (6, 9))
        logs(partition / "old", (0, 3))
        logs(partition / "older", (3, 6))
        lost = disk / f"lost {number}" / "lost+found"
        logs(lost, (0, 3))
        for name in ("#1202", "1202", "#1202 it's"):
            shutil.copy(lost / name_of(0, ".log"), lost / name)
        (lost / name_of(0, ".log")).unlink()
        loose = disk / f"loose {number}"
        logs(loose / "u-0", (0, 3))
        logs(loose, (0, 3), (3, 6))
        (loose / "recovery-point-offset-checkpoint").write_text("0\n0\n")
        linked = disk / f"links {number}" / "l-0"
        linked.mkdir(parents=True)
        (linked / name_of(0, ".log")).symlink_to(lost / "1202")
        whole = (0, 3), (3, 4)  # each disk has the end of another log
        logs(data / f"torn-{number}", *(whole if identity == "a" else ((0, 1), (3, 6))))


def disk_of_rocketmq(disk: Path, _: str) -> None:
    """Make two stores whose logs lie over two folders, and two whose log lies beside its folder."""
    for number in range(2):
        store = disk / f"several {number}" / "store"
        long_store(store)
        other = disk / f"several {number}" / "disk2" / "commitlog"
        other.mkdir(parents=True)
        shutil.move(sorted((store / "commitlog").iterdir())[1], other)
        store = disk / f"fallen {number}" / "store"
        shutil.copytree(ROCKETMQ / "rolled-4.9.8" / "store", store)
        for path in (store / "commitlog").iterdir():
            shutil.move(path, store)


def commands_of(found: list[Finding]) -> list[Command]:
    """Return the commands that write files, each with its hint, of each hint once."""
    hints = dict.fromkeys(one.hint for one in found)
    return [(hint, command) for hint in hints for command in PRINTED.findall(hint)]


def targets_of(commands: list[Command]) -> dict[str, set[str]]:
    """Return the hints that write to each target, which is the last word of each part."""
    found: dict[str, set[str]] = {}
    for hint, command in commands:
        for part in command.split(" && "):
            found.setdefault(WORDS.findall(part)[-1].rstrip("/"), set()).add(hint)
    return found


def states(root: Path) -> Mapping[Path, tuple[int, int, int]]:
    """Return what tells whether a file is still the one that it was."""
    found = {path: path.lstat() for path in root.rglob("*") if not path.is_dir()}
    return {path: (one.st_ino, one.st_size, one.st_mtime_ns) for path, one in found.items()}


@pytest.mark.checks(
    "DISK-3", "DISK-41", "DISK-45", "DISK-48", "DISK-60", "RMQDISK-23", "RMQDISK-42"
)
@pytest.mark.parametrize(
    ("make", "laws"),
    [
        (disk_of_kafka, {"DISK-3", "DISK-41", "DISK-45", "DISK-48", "DISK-60"}),
        (disk_of_rocketmq, {"RMQDISK-23", "RMQDISK-42"}),
    ],
)
def test_no_two_commands_have_one_target(
    make: Callable[[Path, str], None],
    laws: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two folders lost+found with #1202 had one target, and of two -stray folders of one partition
    the second copy went into the first.
    """
    root = tmp_path / "it's all"
    for identity in "ab":
        make(root / identity, identity)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    found = list(verify(root))
    commands = commands_of(found)
    told = {law: {one.hint for one in found if one.law == law} for law in laws}
    assert laws == {law for law in laws if len(told[law] & {hint for hint, _ in commands}) > 1}
    shared = {one: hints for one, hints in targets_of(commands).items() if len(hints) > 1}
    assert {} == shared
    made: dict[Path, str] = {}
    before = states(tmp_path)
    for hint, command in commands:
        done = subprocess.run(["bash", "-ec", command], check=False, capture_output=True)
        assert (0, b"") == (done.returncode, done.stderr), command
        after = states(tmp_path)
        made |= dict.fromkeys(after.keys() - before.keys(), hint)
        changed = {path for path in before if path not in after or before[path] != after[path]}
        moved = {path for path in changed if path not in after and command.startswith("install")}
        assert {hint} >= {made.get(path, "") for path in changed - moved}, command
        before = after


@pytest.mark.parametrize("given", [".", "../t-0", "../link"])
@pytest.mark.parametrize("situation", ["removed", "inside", "linked"])
def test_commands_for_the_folder_one_is_in(
    situation: str, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cp -an .` put the files beside the copy, where the next commands did not find them."""
    folder = tmp_path / "data" / "t-0"
    logs(folder, (0, 3), (6, 9))
    logs(folder / "old" if situation == "inside" else folder, (3, 6))
    if situation == "removed":
        log = folder / name_of(3, ".log")
        log.rename(f"{log}.deleted")
    if situation == "linked":
        shutil.move(folder / name_of(3, ".log"), tmp_path / "far.log")
        (folder / name_of(3, ".log")).symlink_to(tmp_path / "far.log")
    (folder.parent / "link").symlink_to("t-0")
    monkeypatch.chdir(folder)
    told = ""
    if situation == "linked":
        with pytest.raises(SegproofError) as caught:
            list(salvage(given, tmp_path / "out"))
        told = str(caught.value)
    for one in verify(given) if not told else ():
        if "`install -d " in one.hint:
            told = one.hint
    commands = PRINTED.findall(told)
    for command in commands:
        subprocess.run(["bash", "-c", command], check=True)
    (copy,) = {one.split()[-1] for one in commands if one.startswith(("cp -an ", "cp -rLn "))}
    assert {name_of(base, ".log") for base in (0, 3, 6)} <= {*os.listdir(copy)}
