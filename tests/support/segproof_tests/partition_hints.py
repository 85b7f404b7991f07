# SPDX-License-Identifier: Apache-2.0
"""Situations of partitions and data directories of Kafka whose hints are built in functions."""

import shutil
from collections.abc import Iterable
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

from segproof.errors import SegproofError
from segproof.findings import Finding
from segproof.processes import Workers
from segproof.reading.unfinished import MARKER, SALVAGE_MARKER, mark_of
from segproof.rebuilding.segment_build import Options
from segproof.repair import rebuild_all
from segproof.verification import verify
from segproof.verifying import path_verification
from segproof_harness.laws.borders.log_files import batch, batch_of, name
from segproof_harness.laws.file_damages import later
from segproof_tests.built_hints import PACK, PARTITION, Situation, refused

META = "version=1\nnode.id=1\ncluster.id=c\n"
STATE = "0123456789abcdef0123456789abcdef"
ID = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
DAMAGE_AT = 65
"""A byte of the first record of a batch."""


def log(folder: Path, offsets: Iterable[int], suffix: str = ".log", **options: Any) -> Path:
    """Write a log with a batch of one record, by default without a key, for each offset.

    Returns its path. No two batches are alike, so that each one that is lost is missed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [*offsets]
    path = folder / name(numbers[0], suffix)
    options = {"key": None} | options
    batches = [batch(one, value=b"value %d" % one, **options) for one in numbers]
    path.write_bytes(b"".join(batches))
    return path


def damage(path: Path) -> None:
    """Change one byte of the first batch of a log."""
    data = bytearray(path.read_bytes())
    data[DAMAGE_AT] ^= 1
    path.write_bytes(bytes(data))


def three_logs(folder: Path) -> Path:
    """Write a partition of three logs, each of three batches; return its directory."""
    partition = folder / PARTITION
    for base in (0, 3, 6):
        log(partition, range(base, base + 3))
    return partition


def broker(folder: Path, path: str = "data", directory: str = "") -> Path:
    """Make the data directory of a broker; `directory` is one letter of its id."""
    data = folder / path
    data.mkdir(parents=True, exist_ok=True)
    told = f"directory.id={directory * 22}\n" if directory else ""
    (data / "meta.properties").write_text(META + told)
    return data


def unfinished(folder: Path, names: Iterable[str] = (), marker: str = SALVAGE_MARKER) -> None:
    """Write an output of one whole partition and one of the marked output, which names some."""
    log(folder / "data" / "t-0", range(3))
    log(folder / "data" / "u-0", range(3))
    (folder / "data" / marker).write_bytes(mark_of(names) if names else b"")


@later
def copy_beside(folder: Path, count: int, end: str) -> None:
    """Return what damages a log beside copies of it; `end` is that of their names."""
    first = log(folder / PARTITION, range(3))
    log(folder / PARTITION, range(3, 6))
    for number in range(count):
        copy = PACK.get(end, bytes)(first.read_bytes())
        Path(f"{first}.{number}{end}").write_bytes(copy)
    damage(first)


@later
def moved_inside(folder: Path, *bases: int) -> None:
    """Return what moves logs of a partition into a folder in it."""
    partition = three_logs(folder)
    (partition / "old").mkdir()
    for base in bases:
        one = name(base, ".log")
        (partition / one).rename(partition / "old" / one)
        index = partition / "old" / name(base, ".index")
        index.write_bytes(b"")


@later
def of_one_id(folder: Path, more: dict[str, tuple[str, ...]]) -> None:
    """Return what makes two data directories of one id, each with the partitions that it has."""
    for path, partitions in more.items():
        broker(folder, path, "a")
        for one in partitions:
            log(folder / path / one, range(3))


def settle_ids(folder: Path) -> None:
    """Keep one copy of the partition that is twice, and give a directory its own id again."""
    (folder / "data" / "b" / "u-0").rename(folder / "u-0")
    broker(folder, "data/b", "b")


def two_parts(folder: Path) -> None:
    """Write a partition in two directories of a broker: each lacks a log that the other has."""
    for directory, lost in (("a", 3), ("b", 0)):
        log_directory = broker(folder, f"data/{directory}", directory)
        for base in (0, 3, 6):
            path = log(log_directory / "t-0", range(base, base + 3))
            if base == lost:
                damage(path)


@later
def loose_logs(folder: Path, *bases: int, recovery: str = "0\n0\n") -> None:
    """Return what writes logs beside a partition, and the recovery points of the directory."""
    three_logs(folder)
    data = broker(folder)
    (data / "recovery-point-offset-checkpoint").write_text(recovery)
    for base in bases:
        log(data, range(base, base + 2))


@later
def aside(folder: Path, state: str) -> None:
    """Return what writes a folder that was set aside, and a partition that lacks its end."""
    data = broker(folder)
    log(data / f"t-0.{STATE}-{state}", range(9))
    used = log(data / "t-0", range(3))
    if state == "stray":
        used.write_bytes(b"".join(batch(one, key=None, value=b"new") for one in range(3)))


@later
def aside_with(folder: Path, /, lost: int, **options: Any) -> None:
    """Return what writes a folder that was set aside, and a partition without one segment of it."""
    data = broker(folder)
    for base in (0, 3, 6):
        log(data / f"t-0.{STATE}-stray", range(base, base + 3), **options)
        if base != lost:
            log(data / "t-0", range(base, base + 3), **options)


def aside_of_unknown(folder: Path) -> None:
    """Write the copy and the partition into directories that may be of two brokers."""
    log(folder / "data" / "one" / f"t-0.{STATE}-future", range(9))
    log(folder / "data" / "two" / "t-0", range(3))


def linked_log(folder: Path) -> None:
    """Let a log be a link to a file outside of the partition."""
    three_logs(folder)
    outside = log(folder / "elsewhere", range(3))
    one = folder / PARTITION / name(0, ".log")
    one.unlink()
    one.symlink_to(outside)


@later
def removed_logs(folder: Path, *bases: int) -> None:
    """Return what lets logs of a partition wait for their removal."""
    partition = three_logs(folder)
    for base in bases:
        path = partition / name(base, ".log")
        path.rename(f"{path}.deleted")


def foreign_swap(folder: Path) -> None:
    """Write a log of another partition that waits in the place of one here, with its index."""
    partition = three_logs(folder)
    log(partition, range(3), ".log.swap", key=b"other")
    (partition / name(0, ".index.swap")).touch()


@later
def torn_swap(folder: Path, *bases: int) -> None:
    """Return what tears the log that waits in the place of two, which are removed if named."""
    partition = three_logs(folder)
    logs = [partition / name(base, ".log") for base in (0, 3)]
    swap = partition / name(0, ".log.swap")
    swap.write_bytes(b"".join(one.read_bytes() for one in logs)[:-9])
    for base, path in zip((0, 3), logs, strict=True):
        path.rename(f"{path}.deleted")
        if base not in bases:
            Path(f"{path}.deleted").unlink()


def torn_swap_and_log(folder: Path) -> None:
    """Tear a log, and one that waits in the place of another; both have removed logs."""
    partition = three_logs(folder)
    for base, waits in ((0, ""), (3, ".swap")):
        path = partition / name(base, ".log")
        path.rename(f"{path}.deleted")
        Path(f"{path}{waits}").write_bytes(Path(f"{path}.deleted").read_bytes()[:-9])


@later
def without(folder: Path, lost: str) -> None:
    """Return what leaves one of two partitions without a small file."""
    broker(folder)
    for number in (0, 1):
        partition = folder / "data" / f"t-{number}"
        log(partition, range(3), partition_leader_epoch=0)
        (partition / "partition.metadata").write_text(ID)
        (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (folder / PARTITION / lost).unlink()


def write_id(folder: Path) -> None:
    """Write the id of the topic, as its other partition has it."""
    (folder / PARTITION / "partition.metadata").write_text(ID)


def found_file(folder: Path) -> None:
    """Put a log into lost+found, under the number of its inode."""
    path = log(folder / "data" / "lost+found", range(3))
    path.rename(path.with_name("#4711"))


@later
def found_small(folder: Path, lost: str, *, is_missed: bool, others: bool = True) -> None:
    """Return what puts a small file of a partition into lost+found.

    `is_missed`: the partition lacks it; `others`: another partition of the topic is here.
    """
    without(lost)(folder)
    content = (folder / "data" / "t-1" / lost).read_text()
    (folder / "data" / "lost+found").mkdir()
    (folder / "data" / "lost+found" / "#12").write_text(content)
    if not is_missed:
        (folder / PARTITION / lost).write_text(content)
    if not others:
        shutil.rmtree(folder / "data" / "t-1")


def name_found_id(folder: Path) -> None:
    """Copy the file of a topic id from lost+found into the partition that lacks one."""
    found = folder / "data" / "lost+found" / "#12"
    shutil.copyfile(found, folder / PARTITION / "partition.metadata")


def bad_records(folder: Path) -> None:
    """Write a batch with gzip whose records do not inflate, and whose checksum is right."""
    partition = folder / PARTITION
    partition.mkdir(parents=True)
    data = batch_of(0, b"no gzip", attributes=1)
    (partition / name(0, ".log")).write_bytes(data)


def unfinished_rebuild(folder: Path) -> None:
    """Write a partition that a rebuild has not ended."""
    (log(folder / PARTITION, range(3)).parent / MARKER).touch()


def rebuilt() -> None:
    """Rebuild the partition, and raise the error that is told of it.

    Raises: SegproofError.
    """
    for one in rebuild_all([PARTITION], "made", Options()):
        if one.error is not None:
            raise SegproofError(str(one.error))


def in_broken_processes() -> list[Finding]:
    """Verify in two processes while the system ends one of them."""
    broken = BrokenProcessPool("ended")
    with (
        mock.patch.object(path_verification, "processes_for", return_value=2),
        mock.patch.object(Workers, "result", side_effect=broken),
        suppress(SegproofError),
    ):
        list(verify(PARTITION, jobs=2))
    return []


LOG_DELETED = Situation(
    "a log of a partition waits for its removal",
    "verifying/replaced_logs.ReplacedLogs._steps",
    removed_logs(3), "DISK-60", holds=(PARTITION,),
)  # fmt: skip
REMOVED_TOGETHER = "verifying/replaced_logs.ReplacedLogs.steps_of_copies"
REMOVED = tuple(f"{PARTITION}/{name(base, '.log.deleted')}" for base in (0, 3))
SITUATIONS = (
    Situation(
        "a log of another partition waits as .swap",
        "verifying/replaced_logs.ReplacedLogs._step_out", foreign_swap, "DISK-60",
    ),
    Situation(
        "a cleaned log is torn, and what it was made of is removed", REMOVED_TOGETHER,
        torn_swap(0, 3), "DISK-59", holds=REMOVED,
    ),
    Situation(
        "a cleaned log is torn, and one of those it was made of is gone", REMOVED_TOGETHER,
        torn_swap(3), "DISK-59", holds=REMOVED[1:],
    ),
    Situation(
        "a cleaned log is torn, and one beside it, and what both were made of is removed",
        REMOVED_TOGETHER, torn_swap_and_log, "DISK-59", holds=REMOVED,
    ),
    Situation(
        "a salvage has not ended", "reading/unfinished.Unfinished.hint 1",
        unfinished, "DISK-61", ("data",),
    ),
    Situation(
        "a salvage has not ended, beside what an earlier one saved",
        "reading/unfinished.Unfinished.hint 2",
        lambda folder: unfinished(folder, ("u-0",)), "DISK-61", ("data",),
    ),
    Situation(
        "a partition is of a salvage that has not ended",
        "verifying/unfinished_outputs.report_unfinished", unfinished, "DISK-61",
    ),
    Situation(
        "a rebuild of a partition has not ended",
        "verifying/unfinished_outputs.report_unfinished", unfinished_rebuild, "DISK-61",
    ),
    Situation(
        "a file is of a salvage that has not ended",
        "verifying/unfinished_outputs.report_unfinished_file",
        unfinished, "DISK-61", (f"{PARTITION}/{name(0, '.log')}",),
    ),
    Situation(
        "a salvage has not ended, and is to be rebuilt",
        "rebuilding/safe_places.check_finished", unfinished, show=refused(rebuilt),
    ),
    Situation(
        "a copy lies beside a damaged log", "verifying/copies_beside.hints_with",
        copy_beside(1, ".bak"), "BATCH-3",
    ),
    Situation(
        "four packed copies lie beside a damaged log", "verifying/copies_beside.hints_with",
        copy_beside(4, ".gz"), "BATCH-3",
    ),
    Situation(
        "a log lies in a folder in its partition", "verifying/inner_folders._steps",
        moved_inside(3), "DISK-3", holds=(PARTITION, f"{PARTITION}/old"),
    ),
    Situation(
        "two data directories have one id, and each has its own partitions",
        "verifying/log_directories._report_copied_ids",
        of_one_id({"data/a": ("t-0", "u-0"), "data/b": ("v-0", "u-0")}),
        "DISK-66", ("data/a", "data/b"), step=settle_ids,
    ),
    Situation(
        "two data directories have one id, and one has all partitions",
        "verifying/log_directories._hint_of_both",
        of_one_id({"data/a": ("t-0", "u-0"), "data/b": ("u-0",)}),
        "DISK-66", ("data/a", "data/b"),
    ),
    Situation(
        "a partition is in two folders, each with another damaged log",
        "verifying/log_directories._hint_of_joined",
        two_parts, "DISK-48", ("data/a", "data/b"),
        holds=("data/a/t-0", "data/b/t-0"),
    ),
    Situation(
        "loose logs lie beside partitions", "wording/loose_files._steps",
        loose_logs(20, 22), "DISK-3", ("data",),
    ),
    Situation(
        "loose logs lie beside partitions, and some offsets are missing",
        "wording/loose_files._steps", loose_logs(20, 24), "DISK-3", ("data",),
    ),
    Situation(
        "loose logs lie beside partitions, and a checkpoint tells whose they are",
        "wording/loose_files._steps",
        loose_logs(20, 22, recovery="0\n1\nu 0 24\n"), "DISK-3", ("data",),
    ),
    Situation(
        "a process of the verifier is ended",
        "verifying/path_verification._in_processes", three_logs,
        show=in_broken_processes,
    ),
    Situation(
        "records do not inflate", "verifying/record_checks._report_error",
        bad_records, "DISK-18", deep=True,
    ),
    LOG_DELETED,
    Situation(
        "a log is a link out of its folder", "wording/reporting.PathReporter._leads_out",
        linked_log, "DISK-45", holds=(PARTITION, "elsewhere"),
    ),
    Situation(
        "a stray folder has what the partition lacks", "verifying/set_aside_folders._steps",
        aside("stray"), "DISK-41", ("data",), holds=(f"data/t-0.{STATE}-stray",),
    ),
    Situation(
        "a copy on its way has what its source has lost", "verifying/set_aside_folders._steps",
        aside("future"), "DISK-41", ("data",), holds=(f"data/t-0.{STATE}-future",),
    ),
    Situation(
        "a stray folder has a segment that the partition lacks",
        "verifying/set_aside_folders._joined", aside_with(3), "DISK-41", ("data",),
        holds=(f"data/t-0.{STATE}-stray", PARTITION),
    ),
    Situation(
        "a stray folder has a segment that compaction may have taken",
        "verifying/set_aside_folders._compared", aside_with(3, key=b"k"), "DISK-41", ("data",),
        holds=(f"data/t-0.{STATE}-stray", PARTITION),
    ),
    Situation(
        "a stray folder has a segment that retention may have removed",
        "verifying/set_aside_folders._before_the_start", aside_with(0), "DISK-41",
        ("data",), holds=(f"data/t-0.{STATE}-stray", PARTITION),
    ),
    Situation(
        "a gap that a stray folder fills, and compaction may have left",
        "verifying/dense_logs.DenseLog.report", aside_with(3, key=b"k"), "DISK-63", ("data",),
    ),
    Situation(
        "a copy on its way has more, perhaps of another broker",
        "verifying/set_aside_folders._report_pair",
        aside_of_unknown, "DISK-41", ("data/one", "data/two"),
        holds=(f"data/one/t-0.{STATE}-future",),
    ),
    Situation(
        "a partition lacks its topic id", "verifying/sibling_files._write_id",
        without("partition.metadata"), "DISK-49", ("data",), step=write_id,
    ),
    Situation(
        "a partition lacks its leader epochs", "verifying/sibling_files.report_missing",
        without("leader-epoch-checkpoint"), "DISK-49", ("data",), holds=(PARTITION,),
    ),
    Situation(
        "a topic id lies in lost+found, and a partition of the topic lacks it",
        "verifying/found_places.FoundPlaces._of_topic_id",
        found_small("partition.metadata", is_missed=True), "DISK-45", ("data",),
        step=name_found_id,
    ),
    Situation(
        "a topic id lies in lost+found, and a partition lacks one",
        "verifying/found_places.FoundPlaces._of_topic_id",
        found_small("partition.metadata", is_missed=True, others=False), "DISK-45", ("data",),
        step=name_found_id,
    ),
    Situation(
        "leader epochs lie in lost+found, and a partition lacks some",
        "verifying/found_places.FoundPlaces.hint",
        found_small("leader-epoch-checkpoint", is_missed=True), "DISK-45", ("data",),
    ),
    Situation(
        "leader epochs lie in lost+found, and no partition lacks any",
        "verifying/found_places.FoundPlaces.hint",
        found_small("leader-epoch-checkpoint", is_missed=False), "DISK-45", ("data",),
    ),
    Situation(
        "a log lies in lost+found", "verifying/unnamed_files.steps_for",
        found_file, "DISK-45", ("data",), holds=("data/lost+found",),
    ),
)  # fmt: skip
"""The situations of Kafka's files."""
