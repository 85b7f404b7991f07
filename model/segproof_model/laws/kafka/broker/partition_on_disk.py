# SPDX-License-Identifier: Apache-2.0
"""The laws of a partition's files as a verifier finds them: names, segments beside each other, and
what the data directory says of them.
"""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.compression import Codecs
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.integers import INT64_MAX, parsed_int
from segproof_model.laws.kafka.format.index_of_log import is_older_copy, no_batches_are_cut_out
from segproof_model.laws.kafka.format.index_slots import offset_entries
from segproof_model.laws.kafka.format.log_bytes import (
    batches_of,
    end_of,
    ends_without_key,
    first_offset,
    is_wrapper,
    valid_batches,
)
from segproof_model.laws.kafka.format.segment_on_disk import SEGMENT_NAME, offsets_of_names
from segproof_model.laws.register import law

KNOWN_NAME = re.compile(
    r"(.*(\.log|\.index|\.timeindex|\.txnindex)"
    r"|leader-epoch-checkpoint|partition\.metadata|quorum-state|remote_log_snapshot"
    r"|[0-9]{20,}\.snapshot|[0-9]{20,}-[0-9]{10,}\.checkpoint(\.part)?)"
    r"(\.deleted|\.cleaned|\.swap|\.tmp)?"
    r"|.*(?<!\.checkpoint)\.deleted",
    re.DOTALL,
)
UNREAD_NAME = re.compile(
    r"remote_log_snapshot(\.tmp)?"
    r"|(quorum-state|[0-9]{20,}-[0-9]{10,}\.checkpoint(\.part)?|meta\.properties"
    r"|bootstrap\.checkpoint|leader-epoch-checkpoint|partition\.metadata|[0-9]{20,}\.snapshot"
    r"|(cleaner|log-start|replication)-offset-checkpoint|recovery-point-offset-checkpoint)\.tmp"
    r"|([0-9]{20,}-[0-9]{10,}\.checkpoint|.*(?<!\.checkpoint))\.deleted"
    r"|[+-]?[0-9]+\.(.*\.)?cleaned"
    r"|[+-]?[0-9]+\.(?!(.*\.)?(log|index|timeindex|txnindex)\.swap)(.*\.)?swap"
    r"|(?!.*\.(deleted|cleaned|swap)\Z)(.*\.log|.*[0-9].*\.(?i:log)([^a-zA-Z].*)?"
    r"|[0-9]{20}(?!\.(index|timeindex|txnindex|snapshot|checkpoint)).*)",
    re.DOTALL,
)
"""Files of Kafka that segproof recognises and does not read."""
DIRECTORIES = "Kafka LogManager 4.3.1"
LEVELS = 16
"""Levels of directories that are searched below a path."""


@law("DISK-3", PartitionLog, "Kafka LogFileUtils, UnifiedLog 4.3.1")
def names_are_known(files: Collection[str]) -> bool:
    """A partition directory contains only files of segments and the partition's own files."""
    return all(KNOWN_NAME.fullmatch(name) is not None for name in files)


@law("DISK-71", PartitionLog, "Kafka LogLoader.load, LocalLog 4.3.1")
def partition_has_a_log(files: Collection[str]) -> bool:
    """The folder of a partition has a file of a segment, or a `.swap` log: a broker that makes or
    truncates a log leaves it with one segment, which may be empty. A warning.
    """
    swap = ".log.swap"
    return any(SEGMENT_NAME.fullmatch(name) or name.endswith(swap) for name in files)


@law("DISK-20", PartitionLog, "segproof")
def there_is_something_to_verify(files: Collection[str], absent: Collection[str] = ()) -> bool:
    """A path that is given to be verified holds a file of a segment. Or it is the data directory
    of a broker, with `meta.properties`, in which all partitions are being deleted, and whose
    checkpoints name no `absent` one.
    """
    has_segments = any(SEGMENT_NAME.fullmatch(name) for name in files)
    return has_segments or ("meta.properties" in files and not absent)


@law("DISK-26", PartitionLog, "segproof")
def directories_are_met_once(inside: Mapping[int, Sequence[int]], root: int) -> bool:
    """Below a path that is verified no directory occurs twice, by a link or a mount, and every
    searched directory is at most 16 levels down: each is searched once. A note.

    `inside` holds, by the identity of a directory, those of the directories in it. A partition is
    not searched.
    """
    met, level = [root], [root]
    for _ in range(LEVELS):
        level = [inner for each in level for inner in inside.get(each, ())]
        met += level
        if len(set(met)) < len(met):
            return False
    return not any(inside.get(each) for each in level)


@law("DISK-27", PartitionLog, "Kafka LogLoader.loadSegmentFiles 4.3.1")
def base_offsets_are_unique(files: Collection[str]) -> bool:
    """No two logs have names that are the same base offset, such as 5.log and one of 20 digits."""
    bases = offsets_of_names(files, r"\.log")
    return len(bases) == len(set(bases))


@law("DISK-45", PartitionLog, "segproof")
def files_are_looked_into(files: Collection[str]) -> bool:
    """Segproof reads every file that it knows in a partition or data directory. A note names each
    file that it knows and does not read, with the reason; a verdict covers only what was read. An
    index that waits as `.swap` is read where the log of its name waits too, in no log's place.
    """

    def is_unread(name: str) -> bool:
        index = re.fullmatch(r"([0-9]{20})\.(index|timeindex|txnindex)\.swap", name)
        if index is not None:
            return f"{index[1]}.log.swap" not in files or f"{index[1]}.log" in files
        is_log = re.fullmatch(r"[0-9]{20}\.log", name) is not None
        return not is_log and UNREAD_NAME.fullmatch(name) is not None

    return not any(map(is_unread, files))


@law("DISK-61", PartitionLog, "segproof")
def no_output_is_unfinished(files: Collection[str]) -> bool:
    """No partition, data directory or store has the mark of a salvage or rebuild of segproof that
    ended before its output was whole."""
    marks = {"segproof-salvage.incomplete", "segproof-rebuild.incomplete"}
    return marks.isdisjoint(name.rpartition("/")[2] for name in files)


@law("DISK-46", PartitionLog, "segproof; Redpanda segment_path")
def layout_is_of_kafka(files: Collection[str]) -> bool:
    """A directory has the layout of Kafka, not that of Redpanda, whose segments have names such as
    `0-1-v1.log`. Nothing of such a directory is judged.
    """
    suffixes = r"\.(log|base_index|compaction_index)(\..*)?"
    return not any(re.fullmatch(rf"[0-9]+-[0-9]+-v[0-9]+{suffixes}", name) for name in files)


@law("DISK-47", PartitionLog, "Kafka UnifiedLog.parseTopicPartitionName 4.4.0, LogManager")
def folders_are_partitions(folders: Collection[str]) -> bool:
    """Every folder in a log directory is named by a topic, `-` and the number of a partition, with
    a suffix such as `.ID-delete` where it is on its way; or it is `remote-log-index-cache`. A start
    of Kafka ends at any other folder.
    """
    return all(name == "remote-log-index-cache" or _is_partition(name) for name in folders)


def _is_partition(name: str) -> bool:
    if name.endswith(("-delete", "-future", "-stray")):
        if not re.fullmatch(r"\S+-\S+\.\S+-[a-z]+", name, re.ASCII):
            return False
        name = name[: name.rindex(".")]
    parts = re.fullmatch(r"(.+)-([^-]*)", name, re.DOTALL)
    return parts is not None and parsed_int(parts[2], 32) is not None


@law("DISK-48", PartitionLog, "Kafka LogManager.loadLog 4.4.0")
def partitions_have_one_folder(folders: Sequence[tuple[str, int]]) -> bool:
    """No two folders in the log directories of one broker are of the same topic and partition: a
    start of Kafka ends with "Duplicate log directories". Two directories are of one broker if their
    `meta.properties` have the same cluster and node, and different ids of the directory.
    """
    return len(set(folders)) == len(folders)


@law("DISK-50", PartitionLog, "Kafka LogManager.isStrayKraftReplica 4.4.0")
def topics_have_one_id(topic_ids: Collection[tuple[str, bytes]]) -> bool:
    """In a log directory, the `partition.metadata` of all partitions of a topic have the same id,
    and those of two topics have different ones. A warning in a broker's directory, else a note: a
    broker with KRaft takes the log whose id is not that of its topic for a stray one.
    """
    pairs = set(topic_ids)
    topics, ids = ({one[place] for one in pairs} for place in (0, 1))
    return len(topics) == len(pairs) == len(ids)


@law("DISK-62", PartitionLog, "segproof")
def logs_have_their_own_names(files: Mapping[str, bytes]) -> bool:
    """No logs of a partition have each other's name: in the order of their names their offsets
    rise, or they overlap in every order. A log without a batch has the offset of its name; or, if
    another log of two batches or more begins with that, the only name that no log begins with then.
    """
    bases = [base for base in offsets_of_names(files, r"\.log") if f"{base:020d}.log" in files]
    logs = {base: valid_batches(files[f"{base:020d}.log"]) for base in bases}
    firsts = {base: first_offset(each[0]) for base, each in logs.items() if each}
    ends = dict(zip(bases, [*bases[1:], math.inf], strict=True))
    odd = {base: first for base, first in firsts.items() if not base <= first < ends[base]}
    left = odd.keys() - {*odd.values()}
    taken = {*odd.values()} & {*bases} - odd.keys()
    is_one = len(left) == len(taken) == 1 and all(len(logs[base]) > 1 for base in odd)
    emptied = {base: name for base, name in zip(taken, left, strict=False) if is_one}
    by_name = [
        (firsts[base], each[-1].last_offset) if each else (emptied.get(base, base),) * 2
        for base, each in logs.items()
    ]
    by_offset = sorted(by_name)
    is_apart = all(one[1] < other[0] for one, other in pairwise(by_offset))
    return by_name == by_offset or not is_apart


@law("DISK-65", PartitionLog, "Kafka LogSegments.floorSegment, LogSegment.readNextOffset 4.3.1")
def names_are_the_first_offsets(files: Mapping[str, bytes]) -> bool:
    """The name of a log is not above its first offset if that is the offset after the log before,
    or the name of indexes without a log. Nor is it within the offsets of the log before if its
    first offset is not. Not judged: damaged logs, and logs that have each other's name.
    """
    if not logs_have_their_own_names(files):
        return True
    bases = [base for base in offsets_of_names(files, r"\.log") if f"{base:020d}.log" in files]
    held = {*offsets_of_names(files, r"\.(index|timeindex|txnindex)")} - {*bases}
    end = -1
    for base in bases:
        log = files[f"{base:020d}.log"]
        valid = valid_batches(log)
        if len(valid) != len(batches_of(log)) or any(log[end_of(log) :]):
            end = -1
        elif valid:
            first = base if is_wrapper(valid[0]) else first_offset(valid[0])
            if (base > first and first in {end, *held}) or base < end <= first:
                return False
            end = valid[-1].last_offset + 1
    return True


# --- segments beside each other ------------------------------------------------------------------


@law("LOG-4", PartitionLog, "Kafka LogSegments, LocalLog.roll 4.3.1")
def segments_do_not_overlap(log: bytes, next_base_offset: int | None) -> bool:
    """Segments do not overlap: every batch of a segment has last offset < the next segment's
    base."""
    return next_base_offset is None or all(
        batch.last_offset < next_base_offset for batch in valid_batches(log)
    )


@law("DISK-19", PartitionLog, "segproof")
def offsets_have_no_gaps(log: bytes, base_offset: int, next_base_offset: int | None) -> bool:
    """Each batch begins at the offset after the previous batch, the first at the base offset, and
    the next segment at the offset after the last batch. A note: compaction leaves gaps. A warning
    where one wrong bit in the base offset of the last batch explains the only gap of the last log.
    """
    expected = base_offset
    for batch in valid_batches(log):
        if not is_wrapper(batch) and first_offset(batch) != expected:
            return False
        expected = batch.last_offset + 1
    return next_base_offset in (None, expected)


@law("DISK-25", PartitionLog, "Kafka Cleaner, LogValidator 4.3.1")
def no_offsets_are_lost_between_segments(
    log: bytes,
    indexes: tuple[bytes, bytes],
    base_offset: int,
    next_base_offset: int | None,
    codecs: Codecs,
) -> bool:
    """If the last batch of records in a closed segment has a record without a key, the next segment
    begins at the offset after the last batch: compaction has removed nothing there. No entry of the
    offset index is for an offset between the two with a position behind the last batch; in the last
    segment none is for a later offset with a position in zeros behind the last batch. Nor do zeros
    follow the last batch of a closed segment if the next one begins at a later offset. Nor does its
    offset index, or else its time index, end in zeros that a broker preallocates and trims when it
    closes the segment; then the log is an older copy.

    Compaction goes from the start of a log and removes records without a key; a compacted topic
    accepts none. If all records have keys, a lost segment and a compacted one look the same; but an
    entry shows what the log held. Not judged: a damaged log, or a batch beyond a limit. `indexes`
    are the offset index and the time index, empty if they are missing. Zeros in place of entries
    are a disk's: the log goes on after it, for more than two of the widest distances; for an empty
    log there are no more than offsets. A log without offsets before its last batch may be cleaned.
    """
    indexed = offset_entries(indexes[0], base_offset)
    valid = valid_batches(log, codecs)
    last = [one.position for one in batches_of(log)[-1:]]
    is_whole = last == [one.position for one in valid[-1:]]
    if not is_whole or any(log[end_of(log) :]):
        return True
    end = valid[-1].last_offset + 1 if valid else base_offset
    if next_base_offset is None:
        zeros = range(end_of(log), len(log))
        return not any(offset >= end and at in zeros for offset, at in indexed)
    if any(end <= offset < next_base_offset and at >= end_of(log) for offset, at in indexed):
        return False
    if end >= next_base_offset:
        return True
    is_older = is_older_copy(log, *indexes, base_offset, next_base_offset)
    return not (log[end_of(log) :] or is_older or ends_without_key(valid))


@law("DISK-63", PartitionLog, "Kafka Cleaner, LogSegment.onBecomeInactiveSegment 4.3.1")
def dense_logs_lack_no_offsets(files: Mapping[str, bytes], codecs: Codecs) -> bool:
    """No closed segment is in doubt and lacks offsets, from its base offset up to the next segment.
    In doubt is a segment without offset index or time index; an empty one; one with a producer
    snapshot whose offset lies after its last batch and before the next segment. A warning if no
    other segment lacks offsets, and a segment with batches shows that the log was not compacted:
    a closed one before, or one with both indexes; or there is no batch at all. The offsets are lost
    if a record has no key: a compacted topic accepts none. Else that is not known. A note, of
    segments without an index only, if other segments lack offsets, or a file shows that the log
    cleaner was here: compaction may have left the gap. Such a file is a checkpoint of the cleaner
    with the partition, or a removed log beside the new one; the topics of a broker's coordinators
    are always compacted.

    In doubt is also a segment that lacks offsets after its last batch only, if no file shows that
    the cleaner was here: all files of the next one may be gone. Compared are the closed segments
    with all their offsets: it lacks at least half of what the one with the fewest has, and its log
    has at least half the bytes of the longest.

    Nor does a closed segment lack offsets after its last batch if a record before them has no key,
    as the first or the last batch of a log shows: compaction has not come so far.

    Of a damaged log that ends with a sound batch, and has no gap between two sound ones, only the
    offsets after that batch are judged. Not judged: other damaged logs, and gaps that DISK-4,
    DISK-25 or DISK-70 tells of.
    """
    extents = list(_extents(files, codecs))
    lost = [one for one in extents if one.missing_at_end and one.is_after_keyless]
    if any(one.missing == one.missing_at_end or not one.is_in_doubt for one in lost):
        return False
    whole = [one for one in extents if one.batches and not one.missing and one.is_closed]
    if whole:
        fewest, longest = min(one.span for one in whole), max(one.log_bytes for one in whole)
        extents = [
            one._replace(is_in_doubt=True)
            if one.missing == one.missing_at_end > 0
            and one.missing * 2 >= fewest
            and one.log_bytes * 2 >= longest
            else one
            for one in extents
        ]
    gaps = [place for place, one in enumerate(extents) if one.missing]
    if any(extents[place].missing and extents[place].lacks_index for place in gaps):
        return False
    if not gaps or not all(extents[place].is_in_doubt for place in gaps):
        return True
    return any(one.batches for one in extents) and not any(
        one.batches
        and not one.missing
        and one.is_closed
        and (place < gaps[0] or not one.lacks_index)
        for place, one in enumerate(extents)
    )


class _Extent(NamedTuple):
    batches: int
    missing: int
    is_closed: bool
    lacks_index: bool
    is_in_doubt: bool
    missing_at_end: int = 0
    span: int = 0
    """How many offsets the next segment begins after this one."""
    log_bytes: int = 0
    is_after_keyless: bool = False


def _missing(batches: Sequence[RecordBatch], base: int) -> int:
    """Return how many offsets up to the largest no batch has, in whatever order they are."""
    ranges, before = [], base - 1
    for one in batches:
        first = before + 1 if is_wrapper(one) else first_offset(one)
        ranges.append((first, one.last_offset))
        before = one.last_offset
    missing, expected = 0, base
    for first, last in sorted(ranges):
        missing += max(0, first - expected)
        expected = max(expected, last + 1)
    return missing


def _has_gap(batches: Sequence[RecordBatch], valid: Sequence[RecordBatch], base: int) -> bool:
    """Return whether offsets are missing between two valid batches, or before the first one."""
    places, expected = {one.position for one in valid}, base
    is_sound = True
    for one in batches:
        is_valid = one.position in places
        is_after_gap = not is_wrapper(one) and first_offset(one) > expected
        if is_sound and is_valid and is_after_gap:
            return True
        is_sound, expected = is_valid, one.last_offset + 1
    return False


def _extents(files: Mapping[str, bytes], codecs: Codecs) -> Iterator[_Extent]:
    """Yield what is known of each segment that DISK-63 judges."""
    bases = [base for base in offsets_of_names(files, r"\.log") if f"{base:020d}.log" in files]
    indexed, snapshots = (
        offsets_of_names(files, rf"\.({kind})") for kind in ("index|timeindex|txnindex", "snapshot")
    )
    is_keyless = False
    for base, following in zip(bases, [*bases[1:], None], strict=True):
        log, index = files[f"{base:020d}.log"], files.get(f"{base:020d}.index", b"")
        is_keyless |= any(map(ends_without_key, (valid_batches(log), valid_batches(log)[::-1])))
        valid, end = valid_batches(log), INT64_MAX if following is None else following
        framed = batches_of(log)
        is_damaged = len(valid) < len(framed)
        is_whole = not any(log[end_of(log) :])
        if is_damaged:
            is_whole &= framed[-1] in valid and not _has_gap(framed, valid, base)
        is_followed = any(base < one < end for one in indexed)
        times = files.get(f"{base:020d}.timeindex", b"")
        is_whole &= no_batches_are_cut_out(log, index, times, base, following)
        is_untold = no_offsets_are_lost_between_segments(
            log, (index, times), base, following, codecs
        )
        if not is_whole or is_followed or not is_untold:
            continue
        missing = 0 if is_damaged else _missing(valid, base)
        expected = max([base, *(one.last_offset + 1 for one in valid)])
        if following is None:
            yield _Extent(len(valid), missing, False, False, False)
            continue
        at_end = max(0, following - expected)
        missing += at_end
        lacks_index = not {f"{base:020d}.index", f"{base:020d}.timeindex"} <= set(files)
        is_shown = any(expected <= one < following for one in snapshots)
        is_in_doubt = lacks_index or not valid or is_shown
        told = len(valid), missing, True, lacks_index, is_in_doubt
        yield _Extent(*told, at_end, following - base, end_of(log), is_keyless)


# --- what a data directory says of its partitions ------------------------------------------------


@law("DISK-38", PartitionLog, DIRECTORIES)
def checkpointed_offset_is_in_the_log(checkpointed_offset: int, log_end_offset: int) -> bool:
    """Recovery point, high watermark and cleaner offset of a partition, in its data directory's
    checkpoints, are not beyond the end of its log.
    """
    return checkpointed_offset <= log_end_offset


@law("DISK-39", PartitionLog, DIRECTORIES)
def checkpointed_partitions_are_there(
    checkpoint: Collection[tuple[str, int]], directories: Collection[tuple[str, int]]
) -> bool:
    """Every partition in a checkpoint of a data directory has its directory in it. A note."""
    return set(checkpoint) <= set(directories)


@law("DISK-40", PartitionLog, "Kafka CleanShutdownFileHandler (3.7 on)")
def marker_is_empty_or_tells_the_epoch(data: bytes) -> bool:
    """The marker of a clean stop is empty, or a JSON object with the integers `version` and
    `brokerEpoch`. A note: only the epoch is lost."""
    try:
        content = json.loads(data or b'{"version": 0, "brokerEpoch": 0}')
    except (ValueError, RecursionError):
        return False
    names = "version", "brokerEpoch"
    return isinstance(content, dict) and all(type(content.get(name)) is int for name in names)


@law("DISK-43", PartitionLog, "Kafka LogLoader.checkAndGetLogEnd 4.3.1")
def log_start_is_in_the_log(log_start_offset: int, log_end_offset: int) -> bool:
    """The log start offset of a partition, in its data directory's checkpoint, is not beyond the
    end of its log: else loading removes every segment (LOAD-12).
    """
    return log_start_offset <= log_end_offset
