# SPDX-License-Identifier: Apache-2.0
"""The one verifier: do these files keep what the formats of Kafka and RocketMQ promise?

The command line, continuous integration and Spark all drive `verify`. It reads by `pread` into
private memory, maps nothing, writes nothing, and holds its memory constant for files of any size.

Upstream: Kafka since 0.11.0: LogSegment.recover, DumpLogSegments, LogLoader. RocketMQ 4.7.0 to
  5.5.1: IndexFile, IndexService, CommitLog.checkMessageAndReturnSize.
Laws: those of `VERIFIED_LAWS`.
Not covered: the snapshots of a cluster's metadata, and what remote storage keeps.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from segproof.errors import InvalidArgumentError, SegproofError
from segproof.files import REAL_FILES, Files, status_of
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.inventory.named_ends import index_of
from segproof.inventory.partitions import Partition
from segproof.inventory.segments import Segment
from segproof.processes import Progress
from segproof.reading.cut_outs import CutOutGap
from segproof.reading.offset_entries import entries_in
from segproof.salvaging.other_logs import SegmentJudge
from segproof.salvaging.partition_salvage import planned_salvage
from segproof.stretches.kafka.facts import FramedLog
from segproof.stretches.kafka.whole_logs import frame_whole
from segproof.verifying.changed_files import Since
from segproof.verifying.loss_count import KnownLog, Lost
from segproof.verifying.path_verification import KnownPlace, KnownPlaces, known_places, run
from segproof.wording.reporting import Wanted
from segproof.wording.rules import DECLARED

__all__ = ["RULES", "VERIFIED_LAWS", "Finding", "Severity", "Summary", "Verdict", "verify"]

RULES = DECLARED
"""The rule of each law that `verify` can report: the modules of all checks are imported here."""

VERIFIED_LAWS = frozenset(RULES)
"""Ids of the laws that `verify` can report as broken."""


def verify(
    path: str | os.PathLike[str],
    *,
    deep: bool = False,
    laws: Collection[str] | None = None,
    position: int | None = None,
    files: Files = REAL_FILES,
    on_progress: Progress | None = None,
    jobs: int = 1,
    limit: int | None = None,
    hash_slots: int | None = None,
    segment_index_bytes: int | None = None,
    on_summary: Callable[[Summary], None] | None = None,
    since_ms: int | None = None,
    on_left_out: Callable[[str, int], None] | None = None,
    beside: Sequence[KnownPlace] = (),
) -> Iterator[Finding]:
    """Yield a finding for each law that the files at `path` break; nothing: all is well.

    `path` is a partition directory, a directory with partitions at any depth, or one `.log`,
    `.index`, `.timeindex` or `.txnindex` file, which is compared with the files beside it; or one
    `.snapshot`, `leader-epoch-checkpoint`, `partition.metadata` or checkpoint of a data directory,
    which is judged by itself. What takes the whole log (producers, epochs, transactions, and the
    small files against it) is judged for whole partitions.

    Or it is of RocketMQ: a store, a directory with stores, a directory of index files, or one index
    file (a name of 17 digits), file of the commit log or of a consume queue (20 digits), or the
    `checkpoint` of a store. Only a whole store is compared with its commit log. An index file does
    not say how many slots it has; that is found out, unless `hash_slots` tells.

    With `deep` every record is read too. `laws` restricts the findings to some law ids, `position`
    to one byte of a file. `on_progress` is called with the bytes read and the bytes to read.
    `jobs` is the number of processes; the findings and their order do not depend on it.
    `limit` is how many bytes a batch may have, and inflate to, for a deep run to read its records;
    by default 16 MiB and 64 MiB. A larger batch is a warning that says it was not looked into
    (DISK-18). Each process may take a few times as much memory.

    `segment_index_bytes` is the option of that name of the broker, or the topic, that will load the
    partitions: where it is below an index of a last segment, the load fails (LOAD-19).

    `on_summary` is called with the verdict on each partition, store or single file, behind the last
    of its findings: what was checked of it, and how many findings there were. Findings outside of
    all of them come first, and have summaries of kind `directory`. A run that is restricted by
    `laws` or `position` has verdicts on these laws or this byte alone.

    With `since_ms`, in milliseconds since 1970, a partition is checked from its first changed
    segment on: one with a file whose modification time is then or later. Without such a segment it
    is not checked. A store, or another single file, is checked as a whole if a file of it has
    changed. Damage by a disk changes no time. `on_left_out` is called with each partition and store
    that is not checked completely, and with how many segments are left out; a store has 0.

    `beside`, from `partition_places(paths)`, are where other paths of the same call have their
    partitions, data directories and stores. Two log directories of one broker must not have the
    same partition (DISK-48), nor the same id (DISK-66). Two stores must not share a file of their
    logs, and a copy of a log is noted (RMQDISK-58).

    Findings of severity `note` are no defects: see `Finding.is_defect`. Of one law in one file the
    first hundred are shown and the others counted.

    Raises: InvalidArgumentError at once for a law that is not verified or a bad number; OSError at
    the first step where `path` itself can't be read. Bad data, and trouble with files below `path`,
    are findings and never raised.
    """
    law_ids = None if laws is None else frozenset(laws)
    wanted = Wanted(law_ids, position, deep, limit, hash_slots, segment_index_bytes)
    _check(wanted, jobs)
    since = None if since_ms is None else Since(since_ms * 1_000_000, on_left_out)
    count = partial(_count_lost, is_all_told=laws is None and position is None)
    return run(os.fspath(path), wanted, files, on_progress, jobs, on_summary, since, beside, count)


def _count_lost(
    partition: Partition, files: Files, known: Mapping[str, KnownLog], *, is_all_told: bool
) -> Lost | None:
    """Return what a salvage of a partition would tell of losses; `known` is what was read.

    Without findings a log is whole only if all findings were wanted.
    """
    logs = [one.path(".log") for one in partition.segments if ".log" in one.suffixes]
    if not logs or not all(path in known for path in logs):
        return None

    def cut_outs(segment: Segment, _: Files) -> tuple[list[CutOutGap], int]:
        one = known[segment.path(".log")]
        return one.cut_outs, one.missing_offsets

    def framed(path: str) -> FramedLog | None:
        one = known[path]
        if one.status != status_of(files, path):
            return None
        if one.whole is None or not is_all_told:
            return one.framed
        entries = entries_in(index_of(path), one.whole.base_offset, files)
        return frame_whole(files.open(path), one.whole, entries)

    judge = SegmentJudge(
        lambda segment, _: known[segment.path(".log")].foreign_end,
        cut_outs,
        lambda path: known[path].sound_to,
        framed,
    )
    try:
        told = planned_salvage(partition, judge, files)
    except (OSError, SegproofError):
        return None
    return Lost(told.lost_offsets, told.unproven_offsets, not told.are_more_lost)


def partition_places(paths: Iterable[str | os.PathLike[str]]) -> list[KnownPlace]:
    """Return where paths have partitions, data directories and stores, for `beside` of `verify`."""
    found = (one for path in paths for one in known_places(os.fspath(path), REAL_FILES))
    return KnownPlaces(found)


def _check(wanted: Wanted, jobs: int) -> None:
    """Raises: InvalidArgumentError for a law that is not verified, or a bad number."""
    position, limit, hash_slots = wanted.position, wanted.limit, wanted.hash_slots
    segment_index_bytes = wanted.segment_index_bytes
    unknown = sorted((wanted.laws or frozenset()) - VERIFIED_LAWS)
    if unknown:
        raise InvalidArgumentError(
            f"verify does not check {', '.join(unknown)}",
            hint=f"it checks {', '.join(sorted(VERIFIED_LAWS))}",
        )
    if jobs < 1 or (position is not None and position < 0) or (limit is not None and limit < 1):
        raise InvalidArgumentError(
            "jobs and a limit must be 1 or more and a position 0 or more",
            actual=(jobs, limit, position),
        )
    if hash_slots is not None and hash_slots < 1:
        raise InvalidArgumentError("an index file has one slot or more", actual=hash_slots)
    if segment_index_bytes is not None and segment_index_bytes < 4:
        raise InvalidArgumentError(
            "segment.index.bytes is 4 or more, as Kafka wants it", actual=segment_index_bytes
        )
