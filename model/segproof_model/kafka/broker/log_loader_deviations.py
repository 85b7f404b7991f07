# SPDX-License-Identifier: Apache-2.0
"""What segproof does otherwise on purpose when it loads a log, or replaces segments."""

from collections.abc import Collection, Sequence
from typing import Any

from segproof_model.kafka.broker import crash_remains, log_loader, partition_log, segment_replacing
from segproof_model.kafka.broker.crash_remains import CLEANED, INDEXES, LOG, SWAP
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.log_segment_deviations import RecoveryEndsWhereOffsetsFall
from segproof_model.kafka.format.segment_names import offset_of_name, segment_file_name
from segproof_model.language.behaviours import Behaviour, override
from segproof_model.language.files import Files
from segproof_model.language.integers import INT64_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, refusal, refuse


class SegmentNamesAreExact(Behaviour):
    """Loading refuses, before it changes anything, a file of a segment, a `.cleaned` or a `.swap`
    that is not named just as Kafka names it, and a swap takes the place of no others.
    """

    laws = ("FILE-1", "FILE-2", "LOAD-2")
    of_segproof = True

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        def __init__(self, files: Files, dir: str, *more: Any, **named: Any) -> None:  # noqa: A002
            prefix = f"{dir}/" if dir else ""
            short = [name.removeprefix(prefix) for name in files if name.startswith(prefix)]
            if any("/" not in name and is_odd(name) for name in short):
                refuse(ErrorKind.NUMBER_FORMAT)
            super().__init__(files, dir, *more, **named)

    class CrashRemains(crash_remains.CrashRemains):
        """What a crash left."""

        @override
        def is_within(self, name: str, first: int, end: int) -> bool:
            kinds = (LOG, *INDEXES, ".snapshot")
            is_numbered = any(is_exact(name, kind) for kind in kinds)
            return is_numbered and super().is_within(name, first, end)


def is_odd(name: str) -> bool:
    """Return whether a name is that of a file which loading reads, removes or renames, and is not
    just as Kafka writes it (FILE-1).
    """
    plain = name.removesuffix(SWAP) if name.endswith(SWAP) else name.removesuffix(CLEANED)
    kind = next((suffix for suffix in (LOG, *INDEXES) if plain.endswith(suffix)), None)
    return plain != name if kind is None else not is_exact(plain, kind)


def is_exact(name: str, kind: str) -> bool:
    """Return whether a name is just an offset and the kind of the file."""
    try:
        return name == segment_file_name(offset_of_name(name), kind)
    except Refused:
        return False


class UnflushedIsRecoveredLater(Behaviour):
    """A segment that is not flushed, and whose index is missing or corrupt, waits for its recovery:
    what that cuts ends the log.
    """

    laws = ("LOAD-8", "LOAD-17")
    of_segproof = True

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def rebuild_indexes(self, segment: LogSegment, found: ErrorKind) -> None:
            if self.had_clean_shutdown or not self.is_unflushed(segment.base_offset):
                super().rebuild_indexes(segment, found)

        def is_unflushed(self, base_offset: int) -> bool:
            """Return whether a recovery will recover the segment (LOAD-7)."""
            logs = [name for name in self.names() if name.endswith(LOG)]
            first, end = base_offset + 1, self.recovery_point + 1
            is_below = any(self.is_within(name, first, end) for name in logs)
            return not is_below and self.recovery_point < INT64_MAX


class FlushedOffsetsMayFall(Behaviour):
    """A recovery ends where stored offsets fall only behind what was flushed: a batch that begins
    below the recovery point, or lies in a segment below it, is no torn append.
    """

    laws = ("LOAD-17",)
    of_segproof = True

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def rebuild_indexes(self, segment: LogSegment, found: ErrorKind) -> None:
            tell_flushed(segment, INT64_MAX)
            super().rebuild_indexes(segment, found)

        @override
        def recover_log(self) -> None:
            for segment in self.log.log_segments:
                tell_flushed(segment, self.recovery_point)
            super().recover_log()


def tell_flushed(segment: LogSegment, end: int) -> None:
    """Let a segment know that all below an offset was flushed."""
    if isinstance(segment, RecoveryEndsWhereOffsetsFall.LogSegment):
        segment.flushed_end = end


class SwapIsClosed(Behaviour):
    """Loading closes a `.swap` log that it has asked for its end: the index that this makes beside
    it has no more room than its entries take.
    """

    laws = ("LOAD-2",)
    of_segproof = True

    class CrashRemains(crash_remains.CrashRemains):
        """What a crash left."""

        @override
        def range_of_swap(self, base_offset: int) -> tuple[int, int]:
            segment = self.open_segment(base_offset, SWAP)
            try:
                return base_offset, segment.read_next_offset()
            finally:
                refusal(segment.close)


class SplitLeavesNoOriginal(Behaviour):
    """A segment that is split before it is one of the log's goes also where no part has its name:
    its batches are not there twice.
    """

    laws = ("LOG-19", "LOG-20")
    of_segproof = True

    class SegmentReplacing(segment_replacing.SegmentReplacing):
        """What replaces segments."""

        @override
        def doomed(self, old: Sequence[LogSegment], bases: Collection[int]) -> list[LogSegment]:
            is_known = self.log.log_segments.contains
            return [one for one in old if is_known(one.base_offset) or one.base_offset not in bases]
