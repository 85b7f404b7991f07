# SPDX-License-Identifier: Apache-2.0
"""The segments of a partition in its directory, the end of the log, and the recovery point.

Upstream: Kafka 4.4.0, LocalLog. Otherwise: partition_log_releases, those before 2.8, 2.3 and 2,
    partition_log_deviations.
Laws: LOG-4 to LOG-8, LOG-11 to LOG-14.
Not covered: when background tasks run: what is removed later waits for `delete_due_files`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from segproof_model.kafka.broker.log_segments import LogSegments
from segproof_model.kafka.format.compression import NO_CODECS, Codecs
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import FetchDataInfo, LogSegment
from segproof_model.kafka.format.offset_index import OffsetPosition
from segproof_model.kafka.format.segment_names import segment_file_name
from segproof_model.kafka.format.transaction_index import AbortedTxn
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refuse

DELETED_SUFFIX = ".deleted"
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")


class PendingDeletion(NamedTuple):
    """Files that are renamed to `.deleted` and are removed later."""

    due_ms: int
    """When they may be removed, inclusive."""
    names: tuple[str, ...]


class LocalLog(State):
    """The segments, and what bounds them.

    >>> log = LocalLog(Files(), "", LogConfig(segment_index_bytes=96))
    >>> log.create_segment(0)
    >>> log.roll(7), log.segments.base_offsets(), log.log_end_offset
    (7, [0, 7], 0)
    """

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

    def update_log_end_offset(self, offset: int) -> None:
        """Let the log end at the offset, and with the active segment's bytes."""
        active = self.segments.active_segment
        self.log_end = LogOffsetMetadata(offset, active.base_offset, active.size)
        self.recovery_point = min(self.recovery_point, offset)

    def check_if_memory_mapped_buffer_closed(self) -> None:
        """Refuse what a closed log is asked."""
        if self.is_closed:
            refuse(ErrorKind.KAFKA_ERROR)

    # --- writing -------------------------------------------------------------------------------

    def flush(self, offset: int) -> None:
        """Make the segments durable that begin before the offset, from the recovery point on."""
        for segment in self.segments.values(self.recovery_point, offset):
            segment.flush()

    def mark_flushed(self, offset: int) -> None:
        """Say that everything below the offset is durable."""
        self.check_if_memory_mapped_buffer_closed()
        self.recovery_point = max(self.recovery_point, offset)

    def roll(self, expected_next_offset: int = 0) -> int:
        """Begin a new segment at the log end or later; return its base offset (LOG-11, LOG-12)."""
        self.check_if_memory_mapped_buffer_closed()
        base_offset = max(expected_next_offset, self.log_end_offset)
        self.check_roll(base_offset)
        active = self.segments.active_segment
        if base_offset == active.base_offset:
            self.replace_empty_segment(active)
        else:
            self.begin_segment(base_offset)
        self.update_log_end_offset(self.log_end_offset)
        return base_offset

    def check_roll(self, base_offset: int) -> None:
        """Refuse to begin a segment where there is one, if not an empty one, or before the active
        one (LOG-12).
        """
        active = self.segments.active_segment
        is_empty = base_offset == active.base_offset and active.size == 0
        if base_offset <= active.base_offset and not is_empty:
            refuse(ErrorKind.KAFKA_ERROR)

    def begin_segment(self, base_offset: int) -> None:
        """Begin a segment behind the active one; files that stand in its way are removed."""
        self.remove_files_of_segment(base_offset)
        self.segments.active_segment.on_become_inactive_segment()
        self.create_segment(base_offset)

    def remove_files_of_segment(self, base_offset: int) -> None:
        """Remove the files that a segment would have."""
        for suffix in SUFFIXES:
            self.files.remove(self.prefix + segment_file_name(base_offset, suffix))

    def replace_empty_segment(self, active: LogSegment) -> None:
        """Let a new segment stand in for the active one, which is empty and one index full.

        That is logged, with the room in both indexes, which are loaded for it.
        """
        active.lazy_time_index.get()
        active.lazy_offset_index.get()
        self.create_and_delete_segment(active.base_offset, active)

    # --- cutting -------------------------------------------------------------------------------

    def truncate_to(self, target_offset: int) -> Sequence[LogSegment]:
        """Let the log end at an offset not below its first segment; return what is deleted."""
        deleted = self.segments.higher_segments(target_offset)
        if deleted:
            self.remove_and_delete_segments(deleted)
        self.segments.active_segment.truncate_to(target_offset)
        self.update_log_end_offset(target_offset)
        return deleted

    def truncate_fully_and_start_at(self, new_offset: int) -> None:
        """Delete every segment, and begin one at the offset (LOG-14)."""
        self.check_if_memory_mapped_buffer_closed()
        *others, last = self.segments
        if others:
            self.remove_and_delete_segments(others)
        self.create_and_delete_segment(new_offset, last)
        self.update_log_end_offset(new_offset)

    # --- segments that come and go -------------------------------------------------------------

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
        config = self.config
        preallocate = config.preallocate and not file_already_exists
        largest = min(config.segment_jitter_ms, config.segment_ms)
        return self.kind(LogSegment)(
            self.files,
            self.dir,
            base_offset,
            config,
            file_already_exists,
            config.segment_bytes if preallocate else 0,
            preallocate,
            file_suffix,
            codecs=self.codecs,
            modified_ms=modified_ms,
            roll_jitter_ms=self.draw % largest if config.segment_jitter_ms else 0,
        )

    def create_segment(self, base_offset: int) -> None:
        """Create a segment of the log, in place of one with the same base offset."""
        self.segments.add(self.new_segment(base_offset))

    def create_and_delete_segment(self, new_offset: int, segment: LogSegment) -> None:
        """Let a new segment stand in for this one, whose files go later."""
        self.segments.remove(segment.base_offset)
        self.delete_segment_files([segment])
        self.create_segment(new_offset)

    def remove_and_delete_segments(self, segments: Sequence[LogSegment]) -> None:
        """Forget these segments, and delete their files later."""
        for segment in segments:
            self.segments.remove(segment.base_offset)
        self.delete_segment_files(segments)

    def delete_segment_files(self, segments: Iterable[LogSegment]) -> None:
        """Rename the files of these segments to `.deleted`; they go when their time has come."""
        names: list[str] = []
        for segment in segments:
            if not segment.has_suffix(DELETED_SUFFIX):
                segment.change_file_suffixes("", DELETED_SUFFIX)
            names += segment.names
        self.delete_files_later(names)

    def delete_files_later(self, names: Iterable[str]) -> None:
        """Let files, which are renamed to `.deleted`, be removed after the delay."""
        due_ms = self.files.now_ms + self.config.file_delete_delay_ms
        self.pending_deletions = (*self.pending_deletions, PendingDeletion(due_ms, tuple(names)))

    def delete_due_files(self) -> None:
        """Remove the files whose delay is over."""
        now_ms, waiting = self.files.now_ms, self.pending_deletions
        for pending in waiting:
            for name in pending.names if pending.due_ms <= now_ms else ():
                self.files.remove(name)
        self.pending_deletions = tuple([one for one in waiting if one.due_ms > now_ms])

    # --- reading -------------------------------------------------------------------------------

    def read(
        self,
        start_offset: int,
        max_length: int,
        min_one_message: bool,
        bound: LogOffsetMetadata,
        with_aborted: bool,
    ) -> FetchDataInfo:
        """Read up to the bound, from the first segment that has something (LOG-5 to LOG-8)."""
        segment = self.segments.floor_segment(start_offset)
        if segment is None or start_offset > self.log_end_offset:
            refuse(ErrorKind.OUT_OF_RANGE)
        if self.is_beyond(start_offset, bound):
            is_at_bound = start_offset == bound.message_offset
            place = bound if is_at_bound else self.convert_to_offset_metadata(start_offset)
            return FetchDataInfo(place, None, False, () if with_aborted else None)
        while segment is not None:
            found = self.read_segment(segment, start_offset, max_length, min_one_message, bound)
            if found is not None:
                return (
                    self.add_aborted_transactions(start_offset, segment, found)
                    if with_aborted
                    else found
                )
            segment = self.segments.higher_segment(segment.base_offset)
        return FetchDataInfo(self.log_end, None)

    def is_beyond(self, start_offset: int, bound: LogOffsetMetadata) -> bool:
        """Return whether a read begins at its bound or behind it, so that it gives no records."""
        return start_offset >= bound.message_offset

    def read_segment(
        self,
        segment: LogSegment,
        start_offset: int,
        max_length: int,
        min_one_message: bool,
        bound: LogOffsetMetadata,
    ) -> FetchDataInfo | None:
        """Read a segment up to the bound; None if it has nothing from the offset on."""
        position = self.max_position(segment, bound)
        return segment.read(start_offset, max_length, position, min_one_message)

    def max_position(self, segment: LogSegment, bound: LogOffsetMetadata) -> int | None:
        """Return up to which byte of a segment may be read, exclusive; None if that is not known.

        Not known is the place of a bound in an earlier segment, or of one that has no place.
        """
        if segment.base_offset < bound.segment_base_offset:
            return segment.size
        is_its = segment.base_offset == bound.segment_base_offset
        return bound.relative_position_in_segment if is_its else None

    def convert_to_offset_metadata(self, offset: int) -> LogOffsetMetadata:
        """Return an offset with its place, as a read finds it: that of its batch (LOG-7)."""
        return self.read(offset, 1, False, self.log_end, False).fetch_offset_metadata

    def add_aborted_transactions(
        self, start_offset: int, segment: LogSegment, found: FetchDataInfo
    ) -> FetchDataInfo:
        """Add the aborted transactions to what was read of a segment (LOG-8)."""
        place = found.fetch_offset_metadata
        start = OffsetPosition(place.message_offset, place.relative_position_in_segment)
        size = 0 if found.records is None else found.records.size
        upper = segment.fetch_upper_bound_offset(start, size)
        if upper is None:
            higher = self.segments.higher_segment(segment.base_offset)
            upper = self.log_end_offset if higher is None else higher.base_offset
        aborted = self.collect_aborted_transactions(start_offset, upper, segment)
        return found._replace(aborted_transactions=tuple(aborted))

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int, starting_segment: LogSegment
    ) -> list[AbortedTxn]:
        """Return the aborted transactions of this and later segments, until one says enough."""
        collected: list[AbortedTxn] = []
        segment: LogSegment | None = starting_segment
        while segment is not None:
            result = segment.collect_aborted_txns(start_offset, upper_bound_offset)
            collected += result.aborted_transactions
            if result.is_complete:
                break
            segment = self.segments.higher_segment(segment.base_offset)
        return collected

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Close every segment, up to the first that fails."""
        self.check_if_memory_mapped_buffer_closed()
        for segment in self.segments:
            segment.close()
        self.is_closed = True

    def close_handlers(self) -> None:
        """Give every file up as it is."""
        for segment in self.segments:
            segment.close_handlers()
        self.is_closed = True

    def delete_all_files(self) -> None:
        """Remove every file of the log's directory, and forget the segments."""
        for name in list(self.files):
            if name.startswith(self.prefix):
                self.files.remove(name)
        self.pending_deletions, self.is_closed = (), True
        self.segments.clear()
