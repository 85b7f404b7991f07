# SPDX-License-Identifier: Apache-2.0
"""Splitting a segment whose offsets are too far from its base for an index.

Mirrors: the splitting of impl/segproof/kafka/partition_log.py.
Upstream: Kafka, UnifiedLog.splitOverflowedSegment, LocalLog.replaceSegments (since 1.1.1).
Laws: LOG-19, LOG-20.
Used by: log_loader, partition_log.
"""

from collections.abc import Sequence
from typing import Any

from segproof_model.kafka.log_segment import LogSegment
from segproof_model.kafka.partition_parts import PartitionParts
from segproof_model.kafka.segment_names import segment_file_name
from segproof_model.kafka.segment_parts import INVALID_ARGUMENT, run
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.values import replace

ILLEGAL_STATE = Raised(ErrorKind.ILLEGAL_STATE)
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")


def split_segment(log: PartitionParts, segment: LogSegment) -> Step[Any]:
    """Replace a segment that overflows by ones that do not; return those (LOG-19, LOG-20)."""
    asked = segment.has_overflow()
    log, segment = log.sees(asked.after.directory), asked.after
    if log.log_segments.contains(segment.base_offset):
        log = log.with_segment(segment)
    if asked.outcome is not True:
        refused = asked.outcome if isinstance(asked.outcome, Raised) else INVALID_ARGUMENT
        return Step(log, refused)
    step, parts = _copied(log, segment)
    if not isinstance(step.outcome, Raised):
        step = _replaced(step.after, segment, parts)
    failed = isinstance(step.outcome, Raised)
    return Step(_without(step.after, parts), step.outcome) if failed else step


def _copied(
    log: PartitionParts, segment: LogSegment
) -> tuple[Step[PartitionParts], list[LogSegment]]:
    """Copy the batches into `.cleaned` segments, as many into each as it can hold."""
    parts: list[LogSegment] = []
    position = 0
    while position < segment.size:
        scan = segment.log.batches(position)
        if not scan.batches:
            return Step(log, scan.error or ILLEGAL_STATE), parts
        base_offset = scan.batches[0].base_offset
        if isinstance(base_offset, Raised):
            return Step(log, base_offset), parts
        for suffix in SUFFIXES:
            name = log.prefix + segment_file_name(base_offset, suffix + ".cleaned")
            log = log.sees(log.directory.remove(name))
        opened = log.new_segment(base_offset, file_suffix=".cleaned")
        if isinstance(opened, Raised):
            return Step(log, opened), parts
        step = opened.append_from_file(replace(segment.log, directory=log.directory), position)
        parts.append(step.after)
        log = log.sees(step.after.directory)
        if not isinstance(step.outcome, int) or step.outcome == 0:
            failed = step.outcome if isinstance(step.outcome, Raised) else ILLEGAL_STATE
            return Step(log, failed), parts
        position += step.outcome
    return _completed(log, segment, parts), parts


def _completed(
    log: PartitionParts, segment: LogSegment, parts: list[LogSegment]
) -> Step[PartitionParts]:
    """Finish the parts, in place; together they are as large as the segment was."""
    for number, part in enumerate(parts):
        step = run(
            part.sees(log.directory),
            lambda one: one.on_become_inactive_segment(),
            lambda one: one.flush(),
            lambda one: one.set_last_modified(segment.last_modified),
        )
        parts[number], log = step.after, log.sees(step.after.directory)
        if isinstance(step.outcome, Raised):
            return Step(log, step.outcome)
    is_whole = sum(part.size for part in parts) == segment.size
    return Step(log, None if is_whole else ILLEGAL_STATE)


def _without(log: PartitionParts, parts: Sequence[LogSegment]) -> PartitionParts:
    """Remove the files of the parts, which have no final names yet."""
    directory = log.directory
    for part in parts:
        for suffix in SUFFIXES:
            name = log.prefix + segment_file_name(part.base_offset, suffix)
            directory = directory.remove(f"{name}.cleaned").remove(f"{name}.swap")
    return log.sees(directory)


def _replaced(log: PartitionParts, segment: LogSegment, parts: Sequence[LogSegment]) -> Step[Any]:
    """Let the parts take the place of the segment, by way of `.swap`; return their base offsets.

    A segment that is not yet one of the log's stays where no part has its name, but for segproof.
    """
    old = log.log_segments.get(segment.base_offset)
    after, swapped = log, list[LogSegment]()
    for part in sorted(parts, key=lambda one: one.base_offset, reverse=True):
        step = part.sees(after.directory).change_file_suffixes(".cleaned", ".swap")
        after = after.sees(step.after.directory)
        if isinstance(step.outcome, Raised):
            return Step(after, step.outcome)
        swapped.append(step.after)
    if old is not None:
        after = replace(after, log_segments=after.log_segments.remove(old.base_offset))
    for part in swapped:
        after = after.with_segment(part.sees(after.directory))
    bases = [part.base_offset for part in parts]
    if old is None and segment.base_offset not in bases and log.profile.checks_before_changing:
        old = segment  # upstream leaves it, and its batches are there twice
    if old is not None:
        deleted = after.delete_later([old], bases)
        if isinstance(deleted.outcome, Raised):
            return Step(deleted.after, deleted.outcome)
        after = deleted.after
    return _finished(after, old, bases)


def _finished(log: PartitionParts, old: LogSegment | None, bases: list[int]) -> Step[Any]:
    """Give the parts their final names, and delete the snapshot of a base offset that is gone."""
    step = log.on_segments(
        [one for one in log.log_segments if one.base_offset in bases],
        lambda one: one.change_file_suffixes(".swap", ""),
    )
    if isinstance(step.outcome, Raised):
        return step
    if old is not None and old.base_offset not in bases:
        step = step.after.remove_snapshots([old])
    return Step(step.after, bases)
