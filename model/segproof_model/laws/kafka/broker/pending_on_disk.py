# SPDX-License-Identifier: Apache-2.0
"""The laws of files that a crash left on their way into or out of a partition: `.deleted`,
`.cleaned`, `.swap` and `.tmp`.
"""

import re
from collections.abc import Collection, Iterator, Mapping

from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.compression import NO_CODECS, Codecs
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.integers import INT64_MAX
from segproof_model.language.outcomes import Raised
from segproof_model.laws.kafka.broker.partition_on_disk import DIRECTORIES
from segproof_model.laws.kafka.format.batch_bytes import records_of
from segproof_model.laws.kafka.format.log_bytes import (
    batches_of,
    end_of,
    ends_without_key,
    first_offset,
    is_wrapper,
    valid_batches,
    valid_batches_anywhere,
)
from segproof_model.laws.kafka.format.segment_on_disk import offsets_of_names
from segproof_model.laws.register import law


@law("LOAD-1", PartitionLog, "Kafka LogLoader 4.3.1")
def no_pending_file_is_left(files: Collection[str]) -> bool:
    """Loading leaves no `.deleted`, `.cleaned` or `.swap` file."""
    return not any(name.endswith((".deleted", ".cleaned", ".swap")) for name in files)


@law("DISK-41", PartitionLog, DIRECTORIES)
def nothing_temporary_is_left(files: Collection[str]) -> bool:
    """No `.tmp` file waits for its name, and no directory is on its way: no name ends in `-future`
    or `-stray`. A note; a warning where such a directory has batches that are lost from the
    partition in use."""
    return not any(re.search(r"\.tmp$|\.[0-9a-f]{32}-(future|stray)$", name) for name in files)


@law("DISK-42", PartitionLog, "Kafka LogLoader 4.3.1 (removeTempFiles)")
def no_pending_log_is_lost(files: Mapping[str, bytes]) -> bool:
    """Loading removes no log that alone holds records: a `.cleaned` log, and a `.swap` log with a
    `.cleaned` file at or below it (LOAD-2). Each batch in it with a right checksum has its last
    offset in such a batch of a log; batches after damage count in both. Such a `.swap` log begins
    within a log, too.
    """
    logs = {
        base: files[f"{base:020d}.log"]
        for base in offsets_of_names(files, r"\.log")
        if f"{base:020d}.log" in files
    }
    held = list(_ranges(logs))

    def is_begun(offset: int) -> bool:
        below = [base for base in logs if base <= offset][-1:]
        return offset in below or any(
            one.last_offset >= offset for base in below for one in valid_batches(logs[base])
        )

    first = min(offsets_of_names(files, r"\.(.*\.)?cleaned"), default=INT64_MAX)
    swaps = [base for base in offsets_of_names(files, r"\.log\.swap") if base >= first]
    removed = [f"{base:020d}.log.swap" for base in swaps]
    removed += [f"{base:020d}.log.cleaned" for base in offsets_of_names(files, r"\.log\.cleaned")]
    return all(map(is_begun, swaps)) and not any(_lacking(files[name], held) for name in removed)


def _ranges(logs: Mapping[int, bytes]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last offset of each batch with a right checksum."""
    for base, log in logs.items():
        before = base - 1
        for one in valid_batches_anywhere(log):
            yield before + 1 if is_wrapper(one) else first_offset(one), one.last_offset
            before = one.last_offset


def _lacking(log: bytes, held: Collection[tuple[int, int]]) -> list[int]:
    """Return the last offsets of batches with right checksums that are in none of the ranges."""
    lasts = [one.last_offset for one in valid_batches_anywhere(log)]
    return [last for last in lasts if not any(first <= last <= end for first, end in held)]


@law("DISK-58", PartitionLog, "Kafka LogLoader.load 4.3.1")
def completed_swap_is_whole(swap: bytes) -> bool:
    """A `.swap` log that loading completes is batches with right checksums to its end. Where the
    old logs are gone it is checked as a segment, and breaks other laws; where they are still there,
    loading deletes them.
    """
    return end_of(swap) == len(swap) and batches_of(swap) == valid_batches(swap)


@law("DISK-59", PartitionLog, "Kafka LocalLog.replaceSegments 4.3.1")
def removed_logs_are_in_whole_ones(
    swaps: Mapping[int, bytes], logs: Mapping[int, bytes], deleted: Mapping[int, bytes]
) -> bool:
    """A `.deleted` log is not the only copy of what damage took from the log in its place: that is
    the log, or `.swap` log, with the greatest base offset up to its own. A `.swap` log is whole.
    A log of the same base offset, or before another log, is whole too; or each batch of the
    `.deleted` log with a right checksum has its last offset before the damage, or in such a batch
    of another log; batches after damage count in both. `swaps` are those that loading completes,
    by base offset. A warning, where DISK-60 says nothing of the log.
    """
    held = [*_ranges(swaps), *_ranges(logs)]

    def is_held(base: int) -> bool:
        below = max((one for one in {*swaps, *logs} if one <= base), default=None)
        if below is None or completed_swap_is_whole({**swaps, **logs}[below]):
            return True
        if below not in logs:
            return False
        if base > below == max(logs):
            return True
        return all(last < _sound_end(logs[below]) for last in _lacking(deleted[base], held))

    return all(map(is_held, deleted))


def _sound_end(log: bytes) -> int:
    """Return the offset after the last batch before the first one with a wrong checksum."""
    sound, valid = -1, valid_batches(log)
    for batch in batches_of(log):
        if batch not in valid:
            break
        sound = max(sound, batch.last_offset)
    return sound + 1


@law("DISK-60", PartitionLog, "Kafka LogLoader.load, LocalLog.replaceSegments 4.3.1")
def replaced_logs_are_in_swaps(
    swaps: Mapping[int, bytes],
    logs: Mapping[int, bytes],
    deleted: Mapping[int, bytes],
    codecs: Codecs = NO_CODECS,
) -> bool:
    """Loading deletes no log that nothing replaces. A log within the offsets of all `.swap` logs
    begins within one whose first old log is gone, and ends before its first damage; or they reach
    its last offset and hold a batch of it. A `.deleted` log lies below all logs; or a `.swap` log
    that is not empty lies before it; or the last log does, and it goes on neither where that one
    ends nor where another such log does; or a closed log does that reaches it, or has the name of
    a `.deleted` log, as after a cleaning. A cleaning takes each record without a key on its way: if
    the log before has one in its last batch of records, the last offset of the `.deleted` log lies
    in a log, or after all of them. Logs that begin within a damaged `.swap` log whose first old log
    is there are left to other laws. A warning. An error where a whole `.swap` log is not made of a
    log that it replaces: a batch of it, up to the log's first damage, is written again with other
    offsets, another producer or sequence, or records that the log's batch lacks. A warning where
    another batch of the log has these records, with all offsets as far away: one base offset is
    damaged.
    """
    ends = {base: _end(base, swap) for base, swap in swaps.items()}

    def is_held(base: int) -> bool:
        first = max(one for one in swaps if one <= base)
        is_whole = completed_swap_is_whole(swaps[first])
        last = _end(base, logs[base]) - 1
        if not batches_of(logs[base]):
            return True
        if ends[first] > base and first not in logs and not is_whole:
            return _sound_end(swaps[first]) > last
        if ends[first] > base and (first not in logs or not is_whole):
            return True
        found = [one for swap in swaps.values() for one in batches_of(swap)]
        has_some = any(one.base_offset <= last and one.last_offset >= base for one in found)
        return has_some and max(ends.values()) > last

    def is_replaced(base: int) -> bool:
        bases = {*swaps, *logs}
        below = max((one for one in bases if one <= base), default=None)
        if below is None:
            return bool(bases)
        if below not in logs:
            return swaps[below] != b""
        if below == max(bases):
            return base not in next_to_the_end(below)
        is_cleaned = below in deleted or _end(below, logs[below]) > base
        before = [log for one, log in sorted(logs.items()) if one < base and batches_of(log)]
        is_uncleaned = bool(before) and ends_without_key(batches_of(before[-1], codecs))
        return is_cleaned and not (is_uncleaned and _is_cut(deleted[base], logs, swaps))

    def next_to_the_end(last: int) -> set[int]:
        found: set[int] = set()
        end = _end(last, logs[last]) if batches_of(logs[last]) else last
        for base in sorted(deleted):
            if base == end and batches_of(deleted[base]):
                found.add(base)
                end = _end(base, deleted[base])
        return found

    replaced = [one for one in logs if swaps and min(swaps) <= one < max(ends.values())]
    removed = [one for one in deleted if deleted[one]]
    are_origins = all(_is_origin(base, logs[base], swaps.values(), codecs) for base in replaced)
    return are_origins and all(map(is_held, replaced)) and all(map(is_replaced, removed))


def _is_origin(base: int, log: bytes, swaps: Collection[bytes], codecs: Codecs) -> bool:
    """Return whether whole `.swap` logs may be made of a log, up to its first damage."""
    end, olds = _sound_end(log), batches_of(log, codecs)
    return all(
        _is_made_of(one, next(old for old in olds if old.last_offset >= one.last_offset))
        for swap in swaps
        if completed_swap_is_whole(swap)
        for one in batches_of(swap, codecs)
        if base <= one.last_offset < end
    )


def _is_made_of(new: RecordBatch, old: RecordBatch) -> bool:
    """Return whether a cleaning may have written a batch again as another one.

    Also if the records of one of the two can't be read, or a later magic is written.
    """
    if new.magic > old.magic:
        return True
    fields = "base_offset", "last_offset", "producer_id", "producer_epoch", "base_sequence"
    kept = () if new.is_legacy else fields
    if new.magic != old.magic or any(getattr(new, one) != getattr(old, one) for one in kept):
        return False
    left, before = records_of(new), records_of(old)
    if isinstance(left, Raised) or isinstance(before, Raised):
        return True
    return all(
        any(
            (one.offset, one.timestamp, one.key, one.value, one.headers)
            == (two.offset, two.timestamp, two.key, two.value, two.headers)
            for two in before
        )
        for one in left
    )


def _is_cut(removed: bytes, *others: Mapping[int, bytes]) -> bool:
    """Return whether no other log has the last offset of a removed one, and one goes on after."""
    last = max((one.last_offset for one in batches_of(removed)[-1:]), default=-1)
    batches = [one for logs in others for log in logs.values() for one in batches_of(log)]
    is_held = any(first_offset(one) <= last <= one.last_offset for one in batches)
    return last >= 0 and not is_held and any(one.last_offset > last for one in batches)


def _end(base: int, log: bytes) -> int:
    """Return the offset after the last batch, at least that after the name's."""
    return max([base, *(one.last_offset for one in batches_of(log))]) + 1
