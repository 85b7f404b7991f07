# SPDX-License-Identifier: Apache-2.0
"""Replacing segments of a log by new ones: a split, or a swap that a crash interrupted.

Upstream: Kafka 4.4.0, LocalLog.splitOverflowedSegment and replaceSegments. Otherwise:
    log_loader_deviations.
Layout: a part is written as `.cleaned`, waits as `.swap`, and then has its final name; after a
    crash log_loader goes on from there.
Laws: LOG-19, LOG-20.
Not covered: cleaning.
"""

from collections.abc import Collection, Sequence

from segproof_model.kafka.broker.crash_remains import CLEANED, INDEXES, LOG, SWAP
from segproof_model.kafka.broker.log_steps import LogSteps
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.segment_names import segment_file_name
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, Released, refuse


class SegmentReplacing(Released):
    """What replaces segments of a log."""

    def __init__(self, log: LogSteps) -> None:
        self.log, self.files, self.prefix = log, log.files, log.local_log.prefix

    def split(self, segment: LogSegment) -> tuple[int, ...]:
        """Replace a segment that overflows by ones that do not (LOG-19, LOG-20).

        Return their base offsets. After an error their files go.
        """
        if not segment.has_overflow():
            refuse(ErrorKind.INVALID_ARGUMENT)
        parts: list[LogSegment] = []
        try:
            self.copy(segment, parts)
            self.complete(segment, parts)
            for part in reversed(parts):
                part.change_file_suffixes(CLEANED, SWAP)
            self.replace([segment], parts)
        except Refused:
            self.remove_files_of(parts)
            raise
        return tuple([part.base_offset for part in parts])

    def copy(self, segment: LogSegment, parts: list[LogSegment]) -> None:
        """Copy the batches into new parts, as many into each as it can hold."""
        position = 0
        while position < segment.size:
            first = next(iter(segment.log.batches(position)), None)
            if first is None:
                refuse(ErrorKind.ILLEGAL_STATE)
            part = self.new_part(first.base_offset)
            parts.append(part)
            size_bytes = part.append_from_file(segment.log, position)
            if size_bytes == 0:
                refuse(ErrorKind.ILLEGAL_STATE)
            position += size_bytes

    def new_part(self, base_offset: int) -> LogSegment:
        """Begin a part, in place of what is left of one."""
        for kind in (LOG, *INDEXES):
            self.files.remove(self.prefix + segment_file_name(base_offset, kind + CLEANED))
        return self.log.local_log.new_segment(base_offset, file_suffix=CLEANED)

    def complete(self, segment: LogSegment, parts: Sequence[LogSegment]) -> None:
        """Finish the parts; together they are as large as the segment."""
        for part in parts:
            part.on_become_inactive_segment()
            part.flush()
            part.set_last_modified(segment.last_modified)
        if sum(part.size for part in parts) != segment.size:
            refuse(ErrorKind.ILLEGAL_STATE)

    def remove_files_of(self, parts: Sequence[LogSegment]) -> None:
        """Remove the files of parts that have no final names yet."""
        for part in parts:
            for kind in (LOG, *INDEXES):
                name = self.prefix + segment_file_name(part.base_offset, kind)
                self.files.remove(name + CLEANED)
                self.files.remove(name + SWAP)

    def replace(self, old: Sequence[LogSegment], swaps: Sequence[LogSegment]) -> None:
        """Let swaps take the place of segments, whose files go later."""
        segments, bases = self.log.log_segments, [swap.base_offset for swap in swaps]
        doomed = self.doomed(old, bases)
        for one in doomed:
            segments.remove(one.base_offset)
        for swap in swaps:
            segments.add(swap)
        self.log.local_log.delete_segment_files(doomed)
        for swap in swaps:
            swap.change_file_suffixes(SWAP, "")
        gone = [one for one in doomed if one.base_offset not in bases]
        self.log.delete_producer_snapshots(gone)

    def doomed(self, old: Sequence[LogSegment], bases: Collection[int]) -> list[LogSegment]:
        """Return those segments whose files go: one that is not yet the log's keeps its files.

        `bases`: the base offsets of what takes their place.
        """
        return [one for one in old if self.log.log_segments.contains(one.base_offset)]
