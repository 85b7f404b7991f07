# SPDX-License-Identifier: Apache-2.0
"""Drawn damages to whole files and folders of a directory: their names, kinds and neighbours.

A power loss leaves small files empty or as zeros; a broker that was killed leaves files that wait
for their place or their removal; disks swap blocks; and people copy, rename and link folders.
"""

import random
import shutil
from pathlib import Path

from segproof_tests.mutant_files import Drawn, drawn_file, file_bytes, kind_of, regular_files

__all__ = ["DAMAGES_TO_FOLDERS"]

WAITING = (".swap", ".cleaned", ".deleted", ".tmp", ".bak", ".broken")
BLOCKS = (512, 4096)
FOLDERS = ("plain-00", "copy-of-0", "lost+found", "orders-0", "00", "1", "x.1-delete", "DELETED-0")
FOREIGN = (
    "dledger-n0/data/00000000000000000000",
    "dledger-n0/index/00000000000000000000",
    "consumequeue_rocksdb/CURRENT",
    "consumequeue_rocksdb/MANIFEST-000004",
    "consumequeue/CURRENT",
    "config/topics/CURRENT",
    "config/topics.json",
    "config/consumerOffset.json",
    "config/delayOffset.json.bak",
    "rocksdbstore/CURRENT",
    "compaction/compactionLog/T/0/00000000000000000000",
    "consumequeue_ext/T/0/00000000000000000000",
    "timerlog/00000000000000000000",
    "timerwheel",
    "lock",
    "abort",
    "commitlog/00000000001073741824",
    "index/notes",
    "0-1-v1.log",
    "1-1-v1.log.compacted",
    "archival_metadata.log",
    "remote_log_snapshot",
    "quorum-state",
    "meta.properties",
    "partition.metadata",
    "leader-epoch-checkpoint",
    "leader-epoch-checkpoint.tmp",
    "recovery-point-offset-checkpoint",
    ".kafka_cleanshutdown",
    "00000000000000000060-0000000001.checkpoint",
    "segproof-rebuild.incomplete",
    "segproof-salvage.incomplete",
    "other-1/00000000000000000000.log",
    "__cluster_metadata-0/00000000000000000000.log",
)
"""Names of other layouts and of what a broker or segproof may leave, below a directory."""


def _after_power_loss(draw: random.Random, folder: Path, other: Path) -> str:
    """Empty a file, let it be zeros or cut, or give it what another one of its kind has."""
    path = drawn_file(draw, folder)
    if not path.is_file():
        return "nothing, no file is left"
    data = file_bytes(path)
    alike = [one for one in regular_files(other) if kind_of(one) == kind_of(path)]
    how = draw.choice(("empty", "zeros", "zeros from the middle on", "cut", "another's"))
    half = draw.randrange(len(data) + 1)
    made = {
        "empty": b"",
        "zeros": bytes(len(data)),
        "zeros from the middle on": bytes(data[:half]).ljust(len(data), b"\0"),
        "cut": bytes(data[:half]),
        "another's": bytes(file_bytes(draw.choice(alike))) if alike else b"",
    }
    path.write_bytes(made[how])
    return f"{path.name}: {how}"


def _waiting(draw: random.Random, folder: Path, _: Path) -> str:
    """Let a file, or all of a segment, wait for its place or its removal; or a copy of it."""
    path = drawn_file(draw, folder)
    if not path.is_file():
        return "nothing, no file is left"
    suffix, is_copy = draw.choice(WAITING), draw.random() < 0.5
    of_segment = sorted(path.parent.glob(f"{path.stem}.*")) if path.suffix == ".log" else []
    for one in of_segment if of_segment and draw.random() < 0.5 else [path]:
        target = one.with_name(one.name + suffix)
        if one not in regular_files(folder) or target.exists():
            continue
        if is_copy:
            target.write_bytes(one.read_bytes())
        else:
            one.rename(target)
    if draw.random() < 0.3:
        target = path.with_name(path.name + suffix)
        data = file_bytes(target)
        target.write_bytes(data[: draw.randrange(len(data) + 1)])
    return f"{path.name}: {'copied' if is_copy else 'renamed'} to {suffix}"


def _blocks(draw: random.Random, folder: Path, other: Path) -> str:
    """Write blocks where others belong, as disks do: swapped, doubled, or from elsewhere."""
    path, second = drawn_file(draw, folder), drawn_file(draw, draw.choice((folder, other)))
    size = draw.choice(BLOCKS)
    data, foreign = file_bytes(path), file_bytes(second)
    at, place = (draw.randrange(len(each) // size + 1) * size for each in (data, foreign))
    how = draw.choice(("swapped", "doubled", "foreign"))
    block = bytes(foreign[place : place + size])
    if how != "foreign":
        place = draw.randrange(len(data) // size + 1) * size
        block = bytes(data[place : place + size])
    if how == "swapped" and len(block) == len(data[at : at + size]):
        data[place : place + size] = data[at : at + size]
    if path.is_file() and len(block) == len(data[at : at + size]):
        data[at : at + size] = block
        path.write_bytes(data)
    return f"{path.name}: block of {size} at {at} {how}, with that at {place}"


def _links(draw: random.Random, folder: Path, _: Path) -> str:
    """Let a link stand for a file or a folder, which lies elsewhere; or for another one."""
    folders = [one for one in sorted(folder.rglob("*")) if one.is_dir() and not one.is_symlink()]
    path = draw.choice(folders) if folders and draw.random() < 0.3 else drawn_file(draw, folder)
    if not path.exists():
        return "nothing, no file is left"
    elsewhere = folder.parent / "elsewhere" / path.relative_to(folder)
    how = draw.choice(("moved away", "another one", "doubled"))
    if how == "moved away" and not elsewhere.exists():
        elsewhere.parent.mkdir(parents=True, exist_ok=True)
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
    elif how == "another one" and path.is_file():
        target = drawn_file(draw, folder)
        path.unlink()
        path.symlink_to(target)
    else:
        beside = path.with_name(draw.choice((*FOLDERS, *(path.name + one for one in WAITING))))
        if not beside.exists() and not beside.is_symlink():
            beside.symlink_to(path.name)
    return f"{path.name}: a link, {how}"


def _folder_names(draw: random.Random, folder: Path, _: Path) -> str:
    """Rename, copy or swap folders."""
    folders = [one for one in sorted(folder.rglob("*")) if one.is_dir() and not one.is_symlink()]
    if not folders:
        return "nothing, it has no folders"
    path, second = draw.choice(folders), draw.choice(folders)
    target = path.with_name(draw.choice(FOLDERS))
    how = draw.choice(("renamed", "copied", "swapped"))
    is_apart = path not in (second, *second.parents) and second not in path.parents
    if how == "renamed" and not target.exists():
        path.rename(target)
    elif how == "copied" and not target.exists():
        target.mkdir()
        for one in regular_files(path):
            if one.is_file():
                kept = target / one.relative_to(path)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(one, kept)
    elif how == "swapped" and is_apart:
        aside = folder / "aside"
        path.rename(aside)
        second.rename(path)
        aside.rename(second)
    return f"{path.relative_to(folder)} {how}, {target.name}, {second.name}"


def _foreign(draw: random.Random, folder: Path, other: Path) -> str:
    """Add what another layout, a broker or an operator may have left."""
    inside = [one for one in sorted(folder.glob("*-[0-9]*")) if one.is_dir()]
    path = draw.choice([folder, *inside]) / draw.choice(FOREIGN)
    content = draw.choice(
        (b"", bytes(draw.randrange(1, 5000)), draw.randbytes(draw.randrange(1, 99)), b"{}", None)
    )
    if content is None:
        content = bytes(file_bytes(drawn_file(draw, draw.choice((folder, other)))))
    if path.exists() or path.is_symlink() or not _made(path.parent):
        return f"{path.name}: nothing, it is there"
    path.write_bytes(content)
    return f"{path.relative_to(folder)} added, {len(content)} bytes"


def _made(folder: Path) -> bool:
    """Make a folder; return whether it is one now."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        return False
    return True


DAMAGES_TO_FOLDERS: tuple[Drawn, ...] = (
    *(_after_power_loss, _waiting, _blocks) * 2,
    _links,
    _folder_names,
    _foreign,
)
