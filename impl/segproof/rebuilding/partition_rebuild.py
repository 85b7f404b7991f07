# SPDX-License-Identifier: Apache-2.0
"""Rebuilding a partition: into a new directory, or in place.

Every new index is built beside its place, made durable, and renamed over it when all of them are.
So each name has its old file whole or its new one whole, whatever happens, and a second run
completes what the first one left. What a broker makes of each moment:

- built beside, not renamed: it loads the old files, and removes those that end with `.deleted`;
- some renamed: each index is whole and of the same log, the old ones as good as they were;
- all renamed: it loads the new ones.

Upstream: Kafka 4.3.1: LogLoader.removeTempFilesAndCollectSwapFiles, LogSegment.recover.
Laws: SEG-20 to SEG-30, LOAD-1, PROD-13.
"""

import os
from dataclasses import dataclass
from typing import Literal

from segproof.files import REAL_FILES, Files, SharedFiles
from segproof.findings import Finding
from segproof.processes import Meter, Progress
from segproof.rebuilding.intervals import DEFAULT_INTERVAL_BYTES, inferred_interval
from segproof.rebuilding.judged_indexes import judge
from segproof.rebuilding.kept_files import check_backup
from segproof.rebuilding.partition_files import (
    PartitionFiles,
    check_unchanged,
    read_partition,
    refusing_what_vanishes,
)
from segproof.rebuilding.partition_targets import (
    InPlace,
    NewDirectory,
    Nowhere,
    Place,
    snapshots_behind,
)
from segproof.rebuilding.safe_places import check_apart, check_outside
from segproof.rebuilding.segment_build import PASSES, IntervalSource, Options, RebuiltFile, Wanted
from segproof.rebuilding.segment_chains import build
from segproof.verification import verify
from segproof.verifying.closed_partition import check_closed

__all__ = ["Options", "Rebuilt", "RebuiltFile", "rebuild"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What was done."""

    files: tuple[RebuiltFile, ...]
    """Every index file, by segment; none where there are findings."""
    findings: tuple[Finding, ...]
    """Why nothing was written, if there is something."""
    left_out: tuple[str, ...]
    """Files of the old directory that are not in the new one, each with the reason."""
    cut_bytes: int = 0
    """Bytes behind the last valid batch that the new directory does not have."""


def rebuild(
    directory: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    in_place: bool = False,
    index_interval_bytes: int | None = None,
    max_index_bytes: int = 10485760,
    index_key: Literal["last_offset", "first_offset"] = "last_offset",
    cut_tail: bool = False,
    copy: bool = False,
    all_files: bool = False,
    dry_run: bool = False,
    backup: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    on_progress: Progress | None = None,
    files: SharedFiles = REAL_FILES,
) -> Rebuilt:
    """Make the wrong index files of a partition new from its logs, into `out` or in place.

    An index file that `verify` finds sound stays byte for byte, without zeros at its end, also
    where a recovery would give other entries; into `out` it is copied. With `all_files` every one
    is made new, and so with an `index_interval_bytes`, or first offsets as keys. A `dry_run` writes
    nothing and takes no lock;
    it returns what the same call would do, in place where `out` is None.

    In place, `backup` is a directory that keeps each old file, durable before it is replaced, at
    its whole path below it: `cp -a BACKUP/. /` brings them back. Nothing in it is replaced.

    The entries are those that a recovery of each segment gives with `index_interval_bytes`; None
    takes the interval that gives exactly the entries of the segment's old index, if there is one,
    else that of another segment, else 4096. Releases up to 1.1 have first offsets as `index_key`.
    Which batches a release put into one append is not in a log: each batch may get an entry.

    `out` is a new or an empty directory. Logs and what else belongs to the partition are linked
    into it, or copied with `copy` and where no link is possible; nothing changes in `directory`.
    With `cut_tail` the last log is copied up to the first batch that is not valid, if no sound one
    follows; producer snapshots and leader epochs behind that are left out, as a recovery removes
    them.

    Findings, and then nothing is written: a log that holds something else than valid batches, a
    file that can't be read, in place a folder for an index, a log that a broker would not find, or
    under a wrong name, and a loss that new indexes would hide: old or missing ones raise a doubt.
    Memory: a buffer as large as the largest batch, up to 32 MiB, and the indexes of a segment, for
    each of the jobs.
    Raises, with nothing changed: InvalidArgumentError for arguments that don't fit; NotADirectory-
    Error, FileNotFoundError, FileExistsError for a directory that is not empty; SegproofError where
    a broker is at work; OSError.
    """
    source, target = os.fspath(directory), None if out is None else os.fspath(out)
    options = Options(
        in_place=in_place,
        index_interval_bytes=index_interval_bytes,
        max_index_bytes=max_index_bytes,
        index_key=index_key,
        cut_tail=cut_tail,
        copy=copy,
        all_files=all_files,
        dry_run=dry_run,
        backup=None if backup is None else os.fspath(backup),
    )
    options.check(target, jobs)
    if options.backup is not None:
        check_backup(source, options.backup, files)
    if target is not None:
        check_apart(source, target, "old one")
        check_outside(target, files)
    with refusing_what_vanishes(source):
        partition = read_partition(source, files)
    meter = Meter(on_progress, partition.log_bytes * PASSES)
    return rebuild_partition(partition, target, options, files, meter, jobs)


def rebuild_partition(
    partition: PartitionFiles,
    out: str | None,
    options: Options,
    files: SharedFiles,
    meter: Meter,
    jobs: int,
    *,
    is_locked: bool = False,
) -> Rebuilt:
    """Rebuild what was read of a partition, with options that go together; see `rebuild`.

    `is_locked`: the caller holds the lock of the data directory.
    """
    source = partition.directory
    findings = partition.findings or (partition.blocked if out is None else ())
    if findings:
        return Rebuilt((), findings, partition.left_out)
    with refusing_what_vanishes(source):
        interval = _interval(options.index_interval_bytes, partition, files)
    wanted = Wanted(options, source if out is None else out, *interval, verify)
    place: Place = InPlace(partition, files, is_locked=is_locked, backup=options.backup)
    if options.dry_run:
        place = Nowhere()
    elif out is not None:
        place = NewDirectory(partition, out, files, copies=options.copy)
    with refusing_what_vanishes(source), place:
        judged = judge(partition, interval[0], check_closed, files, meter, jobs)
        if judged.hidden:
            return Rebuilt((), judged.hidden, partition.left_out)
        wrong = None if options.is_all else judged
        built = build(partition, wanted, wrong, files, meter, jobs)
        check_unchanged(partition, files)
        findings = tuple(one.finding for one in built if one.finding is not None)
        findings = findings or judged.hidden_ends(is_tail_cut=options.cut_tail)
        if findings:
            return Rebuilt((), findings, partition.left_out)
        place.complete(built)
    cut = sum(one.segment.log_bytes - one.valid_bytes for one in built)
    behind = (f"{name}: it is behind the cut" for name in snapshots_behind(partition, built))
    made = tuple(index for one in built for index in one.indexes)
    return Rebuilt(made, (), (*partition.left_out, *behind), cut)


def _interval(
    given: int | None, partition: PartitionFiles, files: Files
) -> tuple[int, IntervalSource]:
    """Return the interval for segments whose old index does not tell one, and who said it."""
    if given is not None:
        return given, "given"
    found = inferred_interval(partition, files)
    return (DEFAULT_INTERVAL_BYTES, "default") if found is None else (found, "other segments")
