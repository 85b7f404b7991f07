# SPDX-License-Identifier: Apache-2.0
"""Rebuilding all partitions of data directories, here or in several processes.

Each partition is rebuilt by itself: one with a broken log stays as it is, and the others are done.
The locks of all data directories are taken before the first change and held to the end.

Upstream: Kafka 4.3.1: LogManager.lockLogDirs, loadLogs.
Laws: those of a partition's rebuild.
Not covered: checkpoints and other files of a data directory itself, which stay where they are.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from segproof.errors import InvalidArgumentError, SegproofError
from segproof.files import SharedFiles
from segproof.findings import Finding
from segproof.inventory.segment_listing import sized
from segproof.inventory.walk import NotListed, partition_in, take_inventory
from segproof.processes import Meter, Progress, Sharing, processes_for
from segproof.reading.unfinished import MARKER
from segproof.reading.unread_places import check_read
from segproof.rebuilding.judged_indexes import Judges
from segproof.rebuilding.kept_files import check_backup
from segproof.rebuilding.partition_files import read_partition, refusing_what_vanishes
from segproof.rebuilding.partition_rebuild import Rebuilt, rebuild_partition
from segproof.rebuilding.partition_targets import lock_path
from segproof.rebuilding.safe_places import (
    begin_rebuild,
    check_apart,
    check_outside,
    end_rebuild,
    lock_of,
)
from segproof.rebuilding.segment_build import PASSES, Options
from segproof.wording.reporting import Reporter, Wanted

__all__ = ["RebuiltPartition"]


@dataclass(frozen=True, slots=True)
class RebuiltPartition:
    """What was done in one partition."""

    path: str
    done: Rebuilt
    """Without files and findings where `error` is told."""
    error: str | None = None
    """Why the partition could not be rebuilt, if no finding says it; nothing has changed then."""
    kind: Literal["partition", "directory"] = "partition"
    """A directory has only findings of what can't be read below it."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One partition to rebuild. Small and plain: it travels to processes."""

    path: str
    target: str | None
    size_bytes: int


def rebuild_partitions(
    paths: Sequence[str],
    out: str | None,
    asked: Options,
    judges: Judges,
    jobs: int,
    on_progress: Progress | None,
    files: SharedFiles,
) -> Iterator[RebuiltPartition]:
    """Rebuild each partition at or below the paths; see `segproof.repair.rebuild_all`."""
    asked.check(out, jobs)
    if out is not None and len(paths) > 1:
        raise InvalidArgumentError("a new directory goes with one path")
    tasks: dict[str, _Task] = {}
    unread: dict[str, tuple[Finding, ...]] = {}
    for path in paths:
        if out is not None:
            check_apart(path, out, "old one")
            check_outside(out, files)
        if asked.backup is not None:
            check_backup(path, asked.backup, files)
        found = _find(path, out, files)
        unread[path] = found.unread
        for task in found.tasks:
            tasks.setdefault(os.path.realpath(task.path), task)
    total = sum(task.size_bytes for task in tasks.values())
    meter = Meter(on_progress, total * PASSES)
    with ExitStack() as locks:
        if asked.in_place and not asked.dry_run:
            for path in sorted({lock_path(task.path) for task in tasks.values()}):
                lock = lock_of(path, "data directory", files)
                if lock is not None:
                    locks.callback(lock.close)
        made = _run([*tasks.values()], asked, judges, files, meter, jobs)
        if out is not None and not asked.dry_run:
            made = _marked(made, out, [*tasks.values()], files)
        yield from made
    for path, findings in unread.items():
        if findings:
            yield RebuiltPartition(path, Rebuilt((), findings, ()), None, "directory")


def _marked(
    made: Iterator[RebuiltPartition], out: str, tasks: Sequence[_Task], files: SharedFiles
) -> Iterator[RebuiltPartition]:
    """Yield what was done, while a mark in a directory of several partitions names these.

    It stays where the rebuild is ended, and names those that could not be made for an error of the
    system: without it the others would be taken for all.
    """
    names = {
        one.path: os.path.basename(one.target)
        for one in tasks
        if one.target not in (None, os.path.normpath(out)) and not _is_there(one.target, files)
    }
    status = files.status(out)
    if not names or (status is not None and not status.is_directory):
        yield from made
        return
    is_new = begin_rebuild(out, names.values(), files)
    failed = []
    for one in made:
        failed += [names[one.path]] if one.error is not None and one.path in names else []
        yield one
    end_rebuild(out, failed, files, is_new=is_new)


def _is_there(target: str, files: SharedFiles) -> bool:
    """Return whether an earlier rebuild has made a partition: it is refused, and stays."""
    status = files.status(target)
    if status is None or not status.is_directory:
        return False
    names = files.list_directory(target)
    return bool(names) and MARKER not in names


@dataclass(frozen=True, slots=True)
class _Found:
    tasks: list[_Task]
    unread: tuple[Finding, ...]


def _find(path: str, out: str | None, files: SharedFiles) -> _Found:
    """Return the partitions with a log at or below a path, and what could not be read there."""
    check_read(path, files)
    status = files.status(path)
    if status is not None and not status.is_directory:
        raise NotADirectoryError(20, "not a directory", path)
    reporter = Reporter(Wanted())
    tasks = []
    for item in take_inventory(path, files):
        if isinstance(item, NotListed) and item.may_hide_partitions:
            reporter.at(item.path, "partition-log", shown_by=item.above).unreadable(item.error)
        partition = partition_in(item)
        logs = [one for one in partition.segments if ".log" in one.suffixes] if partition else []
        if partition is None or not logs:
            continue
        inner = os.path.relpath(partition.directory, path)
        target = None if out is None else os.path.normpath(os.path.join(out, inner))
        only_logs = (replace(one, suffixes=frozenset({".log"})) for one in logs)
        size = sum(sized(one, files).size_bytes for one in only_logs)
        tasks.append(_Task(partition.directory, target, size))
    return _Found(tasks, tuple(reporter.finish()))


def _run(
    tasks: Sequence[_Task],
    options: Options,
    judges: Judges,
    files: SharedFiles,
    meter: Meter,
    jobs: int,
) -> Iterator[RebuiltPartition]:
    """Rebuild each partition; yield in the order of the tasks."""
    processes = processes_for(jobs, len(tasks), sum(task.size_bytes for task in tasks))
    sharing = Sharing(
        processes, files, meter, "rebuild", lambda _: tasks[0].path,
        consequence="; other partitions may be rebuilt, each of their files is whole",
    )  # fmt: skip
    inner = jobs if processes == 1 else 1
    work = partial(_attempt, options=options, judges=judges, jobs=inner)
    with sharing.results(work, tasks, size_of=lambda task: task.size_bytes) as made:
        yield from made


def _attempt(
    task: _Task, files: SharedFiles, meter: Meter, options: Options, judges: Judges, jobs: int
) -> RebuiltPartition:
    """Rebuild one partition; an error is told, so that the others can be done."""
    try:
        with refusing_what_vanishes(task.path):
            partition = read_partition(task.path, files)
        done = rebuild_partition(
            partition, task.target, options, judges, files, meter, jobs, is_locked=True
        )
    except SegproofError as error:
        return RebuiltPartition(task.path, Rebuilt((), (), ()), str(error))
    except OSError as error:
        words = (error.strerror or str(error)).lower()
        where = error.filename or task.path
        return RebuiltPartition(task.path, Rebuilt((), (), ()), f"{where}: {words}")
    return RebuiltPartition(task.path, done)
