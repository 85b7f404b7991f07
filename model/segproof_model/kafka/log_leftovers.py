# SPDX-License-Identifier: Apache-2.0
"""What a crash leaves behind in a directory: files to be removed, splits and swaps not finished.

Mirrors: impl/segproof/kafka/log_loader.py.
Upstream: Kafka, LogLoader (3.0 to 4.3.1), in older releases Log.removeTempFilesAndCollectSwapFiles.
Laws: LOAD-1 to LOAD-3.
Not covered: of releases up to 2.8 that `.checkpoint.deleted` files go as well.
Used by: log_loader.
"""

from segproof_model.integers import INT64_MAX
from segproof_model.kafka.partition_parts import PartitionParts
from segproof_model.kafka.segment_names import offset_of_name, segment_file_name
from segproof_model.outcomes import Raised, Step

LOG, DELETED, CLEANED, SWAP = ".log", ".deleted", ".cleaned", ".swap"
INDEXES = (".index", ".timeindex", ".txnindex")
INDEX_SWAPS = tuple(kind + SWAP for kind in INDEXES)
KEPT_CHECKPOINT = ".checkpoint.deleted"
"""Deleted snapshots of a metadata log, which are not this log's business."""


def names_of(log: PartitionParts) -> list[str]:
    """Return the names of the files, without the partition's directory."""
    short = [name.removeprefix(log.prefix) for name in log.directory if name.startswith(log.prefix)]
    return [name for name in short if "/" not in name]


def without(log: PartitionParts, names: list[str]) -> PartitionParts:
    """Remove files of these names."""
    directory = log.directory
    for name in names:
        directory = directory.remove(log.prefix + name)
    return log.sees(directory)


def without_temporary_files(log: PartitionParts) -> Step[PartitionParts]:
    """Remove what was to be removed, and splits and cleanings that were not finished (LOAD-1).

    A swap at or behind the first `.cleaned` file belongs to one of those (LOAD-2).
    """
    names = names_of(log)
    doomed = [n for n in names if n.endswith(DELETED) and not n.endswith(KEPT_CHECKPOINT)]
    cleaned = [n for n in names if n.endswith(CLEANED)]
    swaps = [n for n in names if n.endswith(SWAP)]
    offsets: dict[str, int] = {}
    for name in (*cleaned, *swaps):
        offset = offset_of_name(name)
        if isinstance(offset, Raised):
            return Step(without(log, doomed), offset)
        offsets[name] = offset
    first_cleaned = min((offsets[name] for name in cleaned), default=INT64_MAX)
    if not log.profile.swap_may_be_unfinished:
        first_cleaned = INT64_MAX
    unfinished = [name for name in swaps if offsets[name] >= first_cleaned]
    if log.profile.swap_spares_time_indexes:
        unfinished = _offset_indexes_of_swaps(swaps)
    elif not log.profile.swap_keeps_indexes:
        unfinished = _with_indexes_of_swaps(unfinished, offsets, log.profile.index_swaps_stay)
    return Step(without(log, [*doomed, *unfinished, *cleaned]))


def _with_indexes_of_swaps(unfinished: list[str], offsets: dict[str, int], stay: bool) -> list[str]:
    """Return what older releases remove of swaps: those of logs that are unfinished, with their
    indexes, and the indexes at the offset of each swap.

    `offsets`: by name, of all swaps and more. Unless those of indexes `stay`, these go themselves.
    """
    ends = {offsets[name] for name in unfinished if name.endswith(LOG + SWAP)}
    logs = [name for name in offsets if name.endswith(LOG + SWAP)]
    indexes = [name for name in offsets if name.endswith(INDEX_SWAPS)]
    bases = {offsets[name] for name in ([*logs, *indexes] if stay else logs)}
    return [
        *(segment_file_name(end, kind + SWAP) for end in ends for kind in (LOG, *INDEXES)),
        *(segment_file_name(base, kind) for base in bases for kind in INDEXES),
        *([] if stay else indexes),
    ]


def _offset_indexes_of_swaps(swaps: list[str]) -> list[str]:
    """Return the offset indexes of swaps, and those in whose place they will be."""
    logs = [name.removesuffix(LOG + SWAP) for name in swaps if name.endswith(LOG + SWAP)]
    return [
        *(name for name in swaps if name.endswith(INDEXES[0] + SWAP)),
        *(stem + INDEXES[0] for stem in logs),
    ]


def with_completed_swaps(log: PartitionParts) -> Step[PartitionParts]:
    """Let the `.swap` files take the place of the files in their range (LOAD-2, LOAD-3).

    So from 3.0 on; log_loader has what older releases do with a swap.
    """
    after, first, end = log, INT64_MAX, -INT64_MAX - 1
    for name in names_of(log):
        if not name.endswith(LOG + SWAP):
            continue
        base_offset = offset_of_name(name)
        assert not isinstance(base_offset, Raised)
        segment = after.new_segment(base_offset, True, SWAP)
        if isinstance(segment, Raised):
            return Step(after, segment)
        step = segment.read_next_offset()
        after = after.sees(step.after.directory)
        if not after.profile.swap_stays_open:
            after = after.sees(step.after.close().after.directory)
        if not isinstance(step.outcome, int):
            return Step(after, step.outcome)
        first, end = min(first, base_offset), max(end, step.outcome)
    replaced = [
        name for name in names_of(after) if not name.endswith(SWAP) and _is_within(name, first, end)
    ]
    directory = without(after, replaced).directory
    for name in directory:
        if name.endswith(SWAP):
            directory = directory.rename(name, name.removesuffix(SWAP))
    return Step(after.sees(directory))


def _is_within(name: str, first: int, end: int) -> bool:
    offset = offset_of_name(name)
    return not isinstance(offset, Raised) and first <= offset < end
