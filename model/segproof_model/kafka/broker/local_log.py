# SPDX-License-Identifier: Apache-2.0
"""The segments of a partition in its directory, the end of the log, and the recovery point.

Mirrors: impl/segproof/kafka/partition_log.py.
Upstream: Kafka 4.4.0, LocalLog. Otherwise: partition_log_releases, partition_log_deviations.
Laws: LOG-4 to LOG-8, LOG-11 to LOG-14.
Not covered: when background tasks run: what is removed later waits for `delete_pending_files`.
Used by: partition_log, log_loader, segment_replacing.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from segproof_model.kafka.broker.log_segments import LogSegments
from segproof_model.kafka.format.compression import NO_CODECS, Codecs
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.segment_names import segment_file_name
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refuse

__all__ = ["LocalLog", "PendingDeletion"]

DELETED_SUFFIX = ".deleted"
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")


class PendingDeletion(NamedTuple):
    """Files that are renamed to `.deleted` and are removed later."""

    due_ms: int
    """When they may be removed, inclusive."""
    names: tuple[str, ...]


class LocalLog(State):
    """The segments, and what bounds them."""

    not_compared = frozenset({"codecs"})

    def __init__(
        self,
        files: Files,
        dir: str,  # noqa: A002 - the name that Kafka gives it
        config: LogConfig,
        *,
        codecs: Codecs = NO_CODECS,
        draw: int = 0,
    ) -> None:
        """Begin without a segment; `dir` is the name of a directory or empty."""
        self.files, self.dir, self.config, self.codecs = files, dir, config, codecs
        self.draw = draw
        """A random number >= 0; whoever drives the log changes it."""
        self.segments = self.kind(LogSegments)(files)
        self.log_end = LogOffsetMetadata(0)
        """The offset that is given next, and where its batch will lie."""
        self.recovery_point = 0
        """What lies below this offset is known to be durable."""
        self.pending_deletions: tuple[PendingDeletion, ...] = ()
        self.is_closed = False

    @property
    def prefix(self) -> str:
        """What stands before the name of each file."""
        return f"{self.dir}/" if self.dir else ""

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.log_end.message_offset

    def new_segment(
        self,
        base_offset: int,
        file_already_exists: bool = False,
        file_suffix: str = "",
        modified_ms: int | None = None,
    ) -> LogSegment:
        """Open a segment in the directory, without adding it to the log's.

        One that is new is preallocated if the options say so. `modified_ms`: when its log was
        changed last; not told: now.
        """
        raise NotImplementedError

    def create_segment(self, base_offset: int) -> LogSegment:
        """Create a segment of the log, in place of one with the same base offset."""
        segment = self.new_segment(base_offset)
        self.segments.add(segment)
        return segment

    def remove_and_delete_segments(self, segments: Sequence[LogSegment]) -> None:
        """Forget these segments, and delete their files later."""
        raise NotImplementedError

    def delete_segment_files(self, segments: Iterable[LogSegment]) -> None:
        """Rename the files of these segments to `.deleted`; they go when their time has come."""
        raise NotImplementedError

    def create_and_delete_segment(self, new_offset: int, segment: LogSegment) -> LogSegment:
        """Let a new segment stand in for this one, whose files go later."""
        raise NotImplementedError

    def delete_files_later(self, names: Iterable[str]) -> None:
        """Let these files, which end with `.deleted`, be removed after the delay."""
        raise NotImplementedError

    def update_log_end_offset(self, offset: int) -> None:
        """Let the log end at the offset, and with the active segment's bytes."""
        active = self.segments.active_segment
        self.log_end = LogOffsetMetadata(offset, active.base_offset, active.size)
        self.recovery_point = min(self.recovery_point, offset)

    def check_if_memory_mapped_buffer_closed(self) -> None:
        """Refuse what a closed log is asked."""
        if self.is_closed:
            refuse(ErrorKind.KAFKA_ERROR)
