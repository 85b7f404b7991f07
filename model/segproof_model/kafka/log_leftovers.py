# SPDX-License-Identifier: Apache-2.0
"""What a crash leaves behind in a directory: files to be removed, splits and swaps not finished.

Mirrors: impl/segproof/kafka/log_loader.py.
Upstream: Kafka, LogLoader (since 3.0), in older releases Log.removeTempFilesAndCollectSwapFiles.
Laws: LOAD-1 to LOAD-3.
Not covered: in which order a directory is listed; it decides which other leftovers are gone where a
    name without an offset ends loading.
Used by: log_loader, partition_log.
"""

from segproof_model.kafka.partition_parts import PartitionParts
from segproof_model.kafka.segment_names import offset_of_name, segment_file_name
from segproof_model.language.integers import INT64_MAX
from segproof_model.language.outcomes import Raised, Step
from segproof_model.profiles import Profile
from segproof_model.values import replace

LOG, DELETED, CLEANED, SWAP = ".log", ".deleted", ".cleaned", ".swap"
INDEXES = (".index", ".timeindex", ".txnindex")
NUMBERED = (LOG, *INDEXES, ".snapshot")
INDEX_SWAPS = tuple(kind + SWAP for kind in INDEXES)
KEPT_CHECKPOINT = ".checkpoint.deleted"
"""Deleted snapshots of a metadata log, which are not this log's business."""


def names_of(log: PartitionParts) -> list[str]:
    """Return the names of the files, without the partition's directory."""
    short = [name.removeprefix(log.prefix) for name in log.directory if name.startswith(log.prefix)]
    return [name for name in short if "/" not in name]


def without(log: PartitionParts, names: list[str]) -> PartitionParts:
    """Remove files of these names."""
    directory, times = log.directory, dict(log.modified)
    for name in names:
        directory = directory.remove(log.prefix + name)
        times.pop(log.prefix + name, None)
    return replace(log.sees(directory), modified=tuple(times.items()))


def is_odd(name: str) -> bool:
    """Return whether a name is that of a file which loading reads, removes or renames, and is not
    just as Kafka writes it (FILE-1)."""
    plain = name.removesuffix(SWAP) if name.endswith(SWAP) else name.removesuffix(CLEANED)
    kind = next((suffix for suffix in (LOG, *INDEXES) if plain.endswith(suffix)), None)
    return plain != name if kind is None else not _is_exact(plain, kind)


def _is_exact(name: str, kind: str) -> bool:
    offset = offset_of_name(name)
    return not isinstance(offset, Raised) and name == segment_file_name(offset, kind)


def without_temporary_files(log: PartitionParts) -> Step[PartitionParts]:
    """Remove what was to be removed, and splits and cleanings that were not finished (LOAD-1).

    A swap at or behind the first `.cleaned` file belongs to one of those (LOAD-2).
    """
    names, profile = names_of(log), log.profile
    kept = KEPT_CHECKPOINT if profile.deleted_checkpoints_stay else ()
    doomed = [n for n in names if n.endswith(DELETED) and not n.endswith(kept)]
    cleaned = [n for n in names if n.endswith(CLEANED)]
    kinds = (SWAP,) if profile.swap_keeps_indexes else (LOG + SWAP, *INDEX_SWAPS)
    swaps = [n for n in names if n.endswith(kinds)]
    numbered = swaps if profile.index_swaps_stay else [n for n in swaps if n.endswith(LOG + SWAP)]
    judged = [*(cleaned if profile.swap_may_be_unfinished else ()), *numbered]
    offsets: dict[str, int] = {}
    for name in judged if profile.log_names_end_at_first_dot else ():
        offset = offset_of_name(name)
        if isinstance(offset, Raised):
            return Step(without(log, doomed), offset)
        offsets[name] = offset
    ends = [offset for name, offset in offsets.items() if name.endswith(CLEANED)]
    first_cleaned = min(ends, default=INT64_MAX)
    unfinished = [name for name in swaps if offsets.get(name, -1) >= first_cleaned]
    if profile.swap_spares_time_indexes:
        unfinished = _offset_indexes_of_swaps(swaps)
    elif not profile.swap_keeps_indexes:
        unfinished = _with_indexes_of_swaps(unfinished, swaps, profile.index_swaps_stay)
    return Step(without(log, [*doomed, *unfinished, *cleaned]))


def _with_indexes_of_swaps(unfinished: list[str], swaps: list[str], stay: bool) -> list[str]:
    """Return what older releases remove of swaps: those of logs that are unfinished, with their
    indexes, and the indexes at the offset of each swap.

    Unless the swaps of indexes `stay`, these go themselves, whatever their names.
    """
    logs = [name for name in swaps if name.endswith(LOG + SWAP)]
    indexes = [name for name in swaps if name.endswith(INDEX_SWAPS)]
    gone = [name for name in unfinished if name in logs]
    beside = [*logs, *indexes] if stay else logs
    return [
        *gone,
        *(name for one in gone for name in _indexes_at(one, SWAP)),
        *(name for one in beside for name in _indexes_at(one)),
        *([] if stay else indexes),
    ]


def _indexes_at(name: str, suffix: str = "") -> list[str]:
    """Return the names of the indexes at the offset in a name."""
    offset = offset_of_name(name)
    return [segment_file_name(offset, kind + suffix) for kind in INDEXES if isinstance(offset, int)]


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
        name
        for name in names_of(after)
        if not name.endswith(SWAP) and _is_within(name, first, end, log.profile)
    ]
    after = without(after, replaced)
    directory, times = after.directory, dict(after.modified)
    for name in directory:
        if name.endswith(SWAP):
            directory = directory.rename(name, name.removesuffix(SWAP))
            times[name.removesuffix(SWAP)] = times.get(name, log.now_ms)
    return Step(replace(after.sees(directory), modified=tuple(times.items())))


def _is_within(name: str, first: int, end: int, profile: Profile) -> bool:
    offset = offset_of_name(name)
    if profile.segment_names_exact and not any(_is_exact(name, kind) for kind in NUMBERED):
        return False
    return not isinstance(offset, Raised) and first <= offset < end
