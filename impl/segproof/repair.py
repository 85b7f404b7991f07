# SPDX-License-Identifier: Apache-2.0
"""The verbs that write: rebuild indexes, and salvage what is sound in damaged files.

`rebuilding` and `salvaging` import no check of `verify`: each verb here hands down the checks that
it asks.

Upstream, laws, and what is not covered: see `segproof.rebuilding` and `segproof.salvaging`.
"""

import os
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Literal

from segproof.errors import InvalidArgumentError
from segproof.files import REAL_FILES, SharedFiles
from segproof.processes import Meter, Progress
from segproof.rebuilding.directory_rebuild import RebuiltPartition, rebuild_partitions
from segproof.rebuilding.judged_indexes import Judges
from segproof.rebuilding.kept_files import check_backup
from segproof.rebuilding.partition_files import read_partition, refusing_what_vanishes
from segproof.rebuilding.partition_rebuild import Rebuilt, rebuild_partition
from segproof.rebuilding.safe_places import check_apart, check_outside
from segproof.rebuilding.segment_build import PASSES, Options
from segproof.rebuilding.store_geometry import told_geometry
from segproof.rebuilding.store_rebuild import (
    IndexWanted,
    RebuiltIndex,
    check_places,
    check_store,
    rebuild_from_log,
)
from segproof.salvaging.other_logs import SegmentJudge
from segproof.salvaging.salvage import Judges as SalvageJudges
from segproof.salvaging.salvage import save_partitions
from segproof.salvaging.salvaged_partition import SalvagedPartition
from segproof.salvaging.salvaged_store import SalvagedStore
from segproof.salvaging.store_salvage import StoreJudges, save_store
from segproof.verification import verify
from segproof.verifying.closed_partition import check_closed
from segproof.verifying.directory_checks import judged_inventory
from segproof.verifying.foreign_segments import cut_outs_of, foreign_end_of
from segproof.verifying.rocketmq.log_files import judged_log
from segproof.verifying.rocketmq.store_verification import check_place

__all__ = ["rebuild", "rebuild_all", "rebuild_index", "salvage", "salvage_store"]

JUDGES = Judges(check_closed, verify)
SEGMENT_JUDGE = SegmentJudge(foreign_end_of, cut_outs_of)


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
    return rebuild_partition(partition, target, options, JUDGES, files, meter, jobs)


def rebuild_all(
    paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None = None,
    options: Options | None = None,
    *,
    jobs: int = 1,
    on_progress: Progress | None = None,
    files: SharedFiles = REAL_FILES,
) -> Iterator[RebuiltPartition]:
    """Rebuild each partition at or below the paths as `rebuild` does; yield what was done.

    A path is a partition, or a directory with partitions at any depth, such as a data directory.
    With `out`, which goes with one path, a partition goes to the same place below `out`.
    `options` says the rest; its `in_place` and `out` exclude one another. A directory below the
    paths that can't be read is a finding of the directory that was given.

    Yields nothing where there is no log. Raises, with nothing changed, at the first step:
    InvalidArgumentError for arguments that don't fit; NotADirectoryError, FileNotFoundError;
    SegproofError where a broker has locked a data directory; OSError. What goes wrong in one
    partition is yielded.
    """
    places, target = [os.fspath(one) for one in paths], None if out is None else os.fspath(out)
    asked = options or Options()
    return rebuild_partitions(places, target, asked, JUDGES, jobs, on_progress, files)


def rebuild_index(
    store_path: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    hash_slot_num: int | None = None,
    index_num: int | None = None,
    *,
    in_place: bool = False,
    index_tags: bool | None = None,
    count_puts: bool | None = None,
    mapped_file_size: int | None = None,
    cut_tail: bool = False,
    keep_times: bool = False,
    all_files: bool = True,
    dry_run: bool = False,
    backup: str | os.PathLike[str] | None = None,
    zone: tzinfo | None = None,
    on_progress: Progress | None = None,
    files: SharedFiles = REAL_FILES,
) -> RebuiltIndex:
    """Make the index files of a store new from its commit log, into `out` or in place.

    `hash_slot_num` and `index_num` are the slots and entries of each new file; None: those of the
    old files, else, in place, RocketMQ's defaults. A broker with other numbers finds nothing: so
    `geometry_from` of the result says where they are from, and a guess is kept in a file of the
    store (RMQDISK-51). Into `out` they must be given, or told by an old file. `index_tags` says
    whether messages with tags have an entry, as releases from 5.4.0 on write; None: as the old
    index has it, else yes. `count_puts` says whether the slot count of a header counts puts, as
    releases up to 4.7.0 do, and not slots; None: as the old index has it, else slots.
    The files are named as the old ones if these are as many, else by the store time of their first
    message, in the zone (None: local).

    With `keep_times` no entry has a likely time in place of an impossible one.
    Without `all_files` an index stays byte for byte if `verify` finds no error and no warning in
    the store, its queues and its checkpoint aside; into `out` it is copied. It may have entries of
    messages that retention has removed, unlike one made of the log. `messages` is 0 then.

    A `dry_run` writes nothing and takes no lock; it returns what the same call would do, in place
    where `out` is None. Its new files have no names, and lie on the device of temporary files.

    In place, `backup` is a directory that keeps each old file that is replaced or removed, durable
    before that, at its whole path below it: `cp -a BACKUP/. /` brings them back.

    `out` is a new or an empty directory; only index files come into it. Nothing else changes.
    A store that a salvage has not ended is refused.
    Findings, and then nothing is written: a log with a hole, with a message at a wrong offset, that
    ends before messages that the old index knows, or holds something else than zeros behind its
    last intact message, or sound ones behind a blank end, or none beside an index with entries; in
    place a folder for an index. `cut_tail` takes what a broker reads. A log older than its oldest
    file is taken as it is. Memory: one index file, the messages of 8 MiB, or four of up to 64 MiB.
    Raises, with nothing changed: InvalidArgumentError for arguments that don't fit, and a store
    without a log; FileExistsError for a directory that is not empty; SegproofError where a broker
    is at work; TooLargeError; OSError.
    """
    store, target = os.fspath(store_path), None if out is None else os.fspath(out)
    kept = None if backup is None else os.fspath(backup)
    if (target is None) != (in_place or (dry_run and target is None)):
        raise InvalidArgumentError("give either a new directory or in_place")
    check_places(store, target, kept, files)
    check_store(store, files)
    told = told_geometry(store, hash_slot_num, index_num, files, is_moved=target is not None)
    wanted = IndexWanted(
        check=check_place, told_geometry=told, index_tags=index_tags, count_puts=count_puts,
        cut_tail=cut_tail, keep_times=keep_times, all_files=all_files, is_dry=dry_run, backup=kept,
        zone=zone, on_progress=on_progress,
    )  # fmt: skip
    return rebuild_from_log(store, target, wanted, mapped_file_size, files)


def salvage(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    jobs: int = 1,
    on_progress: Progress | None = None,
    files: SharedFiles = REAL_FILES,
) -> Iterator[SalvagedPartition]:
    """Save what is sound at or below `path` into `out`; yield what was done, by partition.

    `path` is a partition, or a data directory with partitions at any depth. `out` is a new or an
    empty directory, or one that has only what a salvage of other partitions wrote. It becomes a
    data directory: a broker loads it, or single partitions of it.
    Nothing at `path` changes, and blocks that its disk does not give cost what lies in them only.

    A batch is kept whose checksum is right and whose offsets fit behind those before it. In `out`
    stands for each partition: its logs with these batches, byte for byte, and indexes, epochs and
    producer snapshots of them; the topic's id; and, where there are any, the batches that fit
    nowhere or that no broker loads, in `salvage-set-aside.TOPIC-N.log`, which no broker reads.
    Until all is whole and durable, the file `segproof-salvage.incomplete` stands there.

    `jobs` is the number of processes; each saves one partition at a time.
    `on_progress` is called with the bytes done so far and those that there are: a third of them
    counts when it is checked, a third when it is copied, the last when the new logs are loaded.
    Memory: as a verification. Cost: a log is read twice and written, the new one is read once, and
    once more where a part of the partition was lost or a leader epoch falls.
    Raises, at the first step: InvalidArgumentError for `jobs` below 1, and where `path` holds no
    partition that a broker would load, as a store of RocketMQ, which `salvage_store` saves;
    FileExistsError, NotADirectoryError for `out`; OSError. Later: OSError for what can't be
    written.
    """
    judges = SalvageJudges(judged_inventory, SEGMENT_JUDGE)
    return save_partitions(os.fspath(path), os.fspath(out), judges, jobs, on_progress, files)


def salvage_store(
    store_path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    hash_slot_num: int | None = None,
    index_num: int | None = None,
    mapped_file_size: int | None = None,
    on_progress: Progress | None = None,
    files: SharedFiles = REAL_FILES,
) -> SalvagedStore:
    """Save every sound message of a store into `out`, a new or an empty directory.

    It becomes a store that a broker loads as after a clean stop: a commit log in which each message
    is at its old offset, queues in which each has its old number, an index, a checkpoint, and the
    files of `config`. Nothing at `store_path` changes, and blocks that its disk does not give cost
    only the messages in them.

    Slots and entries of the index files are those given, else those of the old files, else
    RocketMQ's defaults: a guess, which `geometry_from` and a file in the new store tell. The length
    of the files of the log is the one given, else what most of the old ones have: one that the old
    files contradict is refused, since each message stays at its offset. Memory: as a rebuild of
    the index, and a number of bytes for each queue.
    Raises: InvalidArgumentError for a store without a commit log, and arguments that do not fit;
    FileExistsError, NotADirectoryError for `out`; SegproofError where the log has a file too far
    away; OSError.
    """
    judges = StoreJudges(judged_log, check_place)
    new_sizes = hash_slot_num, index_num, mapped_file_size
    return save_store(os.fspath(store_path), os.fspath(out), judges, new_sizes, on_progress, files)
