# SPDX-License-Identifier: Apache-2.0
"""The laws of a partition's files as a verifier finds them: names, and segments beside each other.

Used by: the register, `verify --against model`.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.compression import Codecs
from segproof_model.language.outcomes import Raised
from segproof_model.laws.kafka.format.batch_bytes import records_of
from segproof_model.laws.kafka.format.log_bytes import (
    batches_of,
    end_of,
    first_offset,
    is_wrapper,
    valid_batches,
)
from segproof_model.laws.kafka.format.segment_on_disk import SEGMENT_NAME
from segproof_model.laws.register import law

KNOWN_NAME = re.compile(
    r"(.*(\.log|\.index|\.timeindex|\.txnindex)"
    r"|leader-epoch-checkpoint|partition\.metadata|quorum-state|remote_log_snapshot"
    r"|[0-9]{20,}\.snapshot|[0-9]{20,}-[0-9]{10,}\.checkpoint(\.part)?)"
    r"(\.deleted|\.cleaned|\.swap|\.tmp)?",
    re.DOTALL,
)
LEVELS = 16
"""Levels of directories that are searched below a path."""


@law("DISK-3", PartitionLog, "Kafka LogFileUtils, UnifiedLog 4.3.1")
def names_are_known(files: Collection[str]) -> bool:
    """A partition directory holds files of segments and the partition's own files, no others."""
    return all(KNOWN_NAME.fullmatch(name) is not None for name in files)


@law("LOAD-1", PartitionLog, "Kafka LogLoader 4.3.1")
def no_pending_file_is_left(files: Collection[str]) -> bool:
    """Loading leaves no `.deleted`, `.cleaned` or `.swap` file."""
    return not any(name.endswith((".deleted", ".cleaned", ".swap")) for name in files)


@law("DISK-20", PartitionLog, "segproof")
def there_is_something_to_verify(files: Collection[str]) -> bool:
    """A path that is given to be verified holds a file of a segment."""
    return any(SEGMENT_NAME.fullmatch(name) for name in files)


@law("DISK-26", PartitionLog, "segproof")
def directories_are_met_once(inside: Mapping[int, Sequence[int]], root: int) -> bool:
    """Below a path that is given to be verified no directory is met twice, by a link or a mount,
    and none that is searched lies more than 16 levels down: each is looked into once. A note.

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


@law("LOG-4", PartitionLog, "Kafka LogSegments, LocalLog.roll 4.3.1")
def segments_do_not_overlap(log: bytes, next_base_offset: int | None) -> bool:
    """Segments do not overlap: every batch of a segment has last offset < the next segment's
    base."""
    return next_base_offset is None or all(
        batch.last_offset < next_base_offset for batch in valid_batches(log)
    )


@law("DISK-19", PartitionLog, "segproof")
def offsets_have_no_gaps(log: bytes, base_offset: int, next_base_offset: int | None) -> bool:
    """Each batch begins right behind the one before it, the first at the base offset, and the next
    segment right behind the last. A note: compaction leaves gaps."""
    expected = base_offset
    for batch in valid_batches(log):
        if not is_wrapper(batch) and first_offset(batch) != expected:
            return False
        expected = batch.last_offset + 1
    return next_base_offset in (None, expected)


@law("DISK-25", PartitionLog, "Kafka Cleaner, LogValidator 4.3.1")
def no_offsets_are_lost_between_segments(
    log: bytes, next_base_offset: int | None, codecs: Codecs
) -> bool:
    """Where the last batch of records in a closed segment has a record without a key, the next
    segment begins right behind the last batch: compaction has left nothing out.

    Compaction goes from the start of a log and takes records without a key, whatever follows them;
    a compacted topic accepts none. Where all records have keys, nothing in the files tells a lost
    segment from a compacted one. A damaged log, or a batch beyond a limit, tells nothing.
    """
    valid = valid_batches(log, codecs)
    is_whole = bool(valid) and valid[-1].position == batches_of(log)[-1].position
    if next_base_offset is None or not is_whole or end_of(log) != len(log):
        return True
    holding = [
        one for one in valid if one.is_legacy or (one.record_count > 0 and not one.is_control)
    ]
    if not holding or valid[-1].last_offset + 1 >= next_base_offset:
        return True
    records = records_of(holding[-1])
    return isinstance(records, Raised) or all(record.key is not None for record in records)
