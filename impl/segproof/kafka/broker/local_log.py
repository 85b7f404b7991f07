# SPDX-License-Identifier: Apache-2.0
"""An open log: segments that are rolled, cut and removed, its end, and its recovery point.

Upstream: Kafka, LocalLog; UnifiedLog.roll, rebuildProducerState (4.3.1).
Laws: LOG-4, LOG-11 to LOG-14.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Unpack

from segproof.errors import SegproofError
from segproof.integers import in_range
from segproof.kafka.broker.log_directory import LogDirectory
from segproof.kafka.broker.log_loader import LoadedLog
from segproof.kafka.broker.log_segments import LogSegments
from segproof.kafka.broker.log_view import LogView
from segproof.kafka.broker.producer_rebuild import rebuild_producer_state
from segproof.kafka.broker.read_bounds import ReadBounds, ViewChanges
from segproof.kafka.broker.segment_replacing import replace_empty_segment, split_segment
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.segments.log_segment import LogSegment


class LocalLog:
    """What the writer of a log knows and does; its readers see `bounds.view`."""

    def __init__(self, directory: LogDirectory, loaded: LoadedLog) -> None:
        self.directory = directory
        self.producers = loaded.producers
        self.epochs = loaded.epochs
        start = loaded.log_start_offset
        self.recovery_point = max(loaded.recovery_point, start)
        """Up to which offset, exclusive, the log is durable."""
        active = loaded.segments.active_segment
        end = LogOffsetMetadata(loaded.log_end_offset, active.base_offset, active.size)
        view = LogView(loaded.segments, start, end, LogOffsetMetadata(start), loaded.epochs.entries)
        self.bounds = ReadBounds(directory.dir, loaded.producers, view)

    @property
    def segments(self) -> LogSegments:
        """The segments at this moment; a later change makes a new set."""
        return self.bounds.view.segments

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read, inclusive."""
        return self.bounds.view.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.bounds.view.log_end.message_offset

    def update_log_end_offset(
        self, offset: int, *, is_removal: bool = False, **changes: Unpack[ViewChanges]
    ) -> None:
        """Let the log end at `offset`, behind all bytes of the active segment."""
        active = changes.get("segments", self.segments).active_segment
        changes["log_end"] = LogOffsetMetadata(offset, active.base_offset, active.size)
        self.bounds.publish(is_removal=is_removal, **changes)
        self.recovery_point = min(self.recovery_point, offset)

    @contextlib.contextmanager
    def offline_if_it_fails(self, error_type: type[BaseException] = OSError) -> Iterator[None]:
        """Take the log offline where a change ends half done, as Kafka does with a directory.

        What the files say then, and what is remembered of them, may differ: whatever is written
        from then on might be lost. Only loading, as after a crash, brings both together again.
        """
        try:
            yield
        except error_type as error:
            self.name_path(error)
            if not self.bounds.view.is_closed:
                self.bounds.offline_cause = error
                with contextlib.suppress(Exception):  # the first error tells more
                    self.close_handlers()
            raise

    def name_path(self, error: BaseException) -> None:
        """Let an error of the system that names no file name the directory."""
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = self.directory.dir

    # --- durable

    def flush_up_to(self, offset: int, including_offset: bool = False) -> None:
        """Make durable what lies below `offset`, or also at it, and let it be recovered no more."""
        flush_offset = offset + 1 if including_offset else offset
        if flush_offset > self.recovery_point:
            self.flush(flush_offset)
            self.recovery_point = max(self.recovery_point, offset)

    def flush(self, offset: int) -> None:
        """Make the segments durable that begin before the offset, from the recovery point on."""
        flushed = self.segments.values(self.recovery_point, offset)
        for segment in flushed:
            segment.flush()
        if any(segment.base_offset >= self.recovery_point for segment in flushed):
            self.directory.sync()

    # --- rolling

    def roll(self, expected_next_offset: int) -> int:
        """Begin a new segment at the expected offset or the log end; return its base offset.

        Laws: LOG-11, LOG-12. Raises: as `check_roll` and `check_last_entry`; OSError.
        """
        base = max(expected_next_offset, self.log_end_offset)
        self.check_roll(base)
        self.check_last_entry(base)
        with self.offline_if_it_fails():
            self._begin_segment(base)
        return base

    def _begin_segment(self, base: int) -> None:
        segments, active = self.segments.copy(), self.segments.active_segment
        is_replaced = active.base_offset == base
        if not is_replaced:
            active.on_become_inactive_segment()
        self._make_durable_below(base, active)
        if is_replaced:
            replace_empty_segment(self.directory, segments, active)
        else:
            self.directory.remove_files_of_segment(base)
            segments.add(self.directory.new_segment(base))
        self.update_log_end_offset(self.log_end_offset, segments=segments)
        self.producers.update_map_end_offset(base)
        self.producers.take_snapshot()
        self.bounds.update_high_watermark_with_log_end_offset()
        self.directory.sync()  # the names of the new segment and of the snapshot
        self.recovery_point = max(self.recovery_point, base)

    def _make_durable_below(self, base: int, active: LogSegment) -> None:
        """Make durable what was not flushed, and how the active segment was ended.

        A crash may leave the name of the next segment, and a checkpoint at its base or later: then
        no recovery reads a segment below it, and what is missing there stays missing. Kafka flushes
        later, and never what was flushed before the segment was ended.
        """
        first = min(self.recovery_point, active.base_offset)
        if first < base:
            for segment in self.segments.values(first, base):
                segment.flush()
            self.directory.sync()

    def check_roll(self, base_offset: int) -> None:
        """Return if a segment with this base may follow. Law: LOG-12. Raises: SegproofError."""
        segments = self.segments
        active = segments.active_segment
        is_replaced = active.base_offset == base_offset and active.size == 0
        if (segments.contains(base_offset) or base_offset < active.base_offset) and not is_replaced:
            raise SegproofError(
                "a new segment cannot begin there",
                law="LOG-12",
                path=active.log.name,
                expected=f"more than {active.base_offset}",
                actual=base_offset,
            )
        in_range(base_offset, "the base offset", path=self.directory.dir)

    def check_last_entry(self, base: int) -> None:
        """Return if the active segment takes the entry with which it ends, should it end."""
        active = self.segments.active_segment
        if active.base_offset != base:
            active.check_last_entry()

    # --- cutting

    def truncate_to(self, target_offset: int) -> None:
        """Cut the log at an offset that is not below its first segment."""
        self.remove_and_delete_segments(self.segments.higher_segments(target_offset))
        self._cut_active(target_offset)

    def remove_and_delete_segments(self, segments: Sequence[LogSegment]) -> None:
        """Remove some segments at the beginning or the end, but not all."""
        if not segments:
            return
        kept = self.segments.copy()
        for segment in segments:
            kept.remove(segment.base_offset)
        if kept.active_segment is not self.segments.active_segment:
            end = min(segments[0].base_offset, self.log_end_offset)
            start = min(end, self.log_start_offset)
            self.update_log_end_offset(end, segments=kept, log_start_offset=start, is_removal=True)
            segments = segments[::-1]  # so that a crash leaves no hole
        else:
            self.bounds.publish(segments=kept, is_removal=True)
        self.directory.delete_segment_files(segments)
        self.directory.delete_producer_snapshots(self.producers, segments)

    def _cut_active(self, target: int) -> None:
        """Cut the active segment, which holds `target`; the end that readers see moves first."""
        before = self.bounds.view
        active = before.segments.active_segment
        found = active.translate_offset(target)
        size_before = active.size
        position = size_before if found is None else found.position
        self.bounds.publish(
            log_end=LogOffsetMetadata(target, active.base_offset, position),
            log_start_offset=min(target, before.log_start_offset),
            is_removal=True,
        )
        try:
            active.truncate_to(target)
            active.log.flush()
        except BaseException:
            if active.size == size_before:
                self.bounds.publish(
                    log_end=before.log_end,
                    log_start_offset=before.log_start_offset,
                    epochs=before.epochs,
                    is_removal=True,
                )
            else:
                self.recovery_point = min(self.recovery_point, target)
            raise
        self.recovery_point = min(self.recovery_point, target)

    def truncate_fully_and_start_at(self, new_offset: int, log_start_offset: int) -> None:
        """Remove everything, and begin with an empty segment at `new_offset`. Law: LOG-14."""
        segments = self.segments.copy()
        segments.clear()
        # Kafka keeps an old segment until there is the new one: a crash leaves a hole then.
        self.directory.delete_segment_files(self.segments.values()[::-1])
        self.directory.remove_files_of_segment(new_offset)
        segments.add(self.directory.new_segment(new_offset))
        end = LogOffsetMetadata(new_offset, new_offset, 0)
        self.bounds.publish(
            segments=segments,
            log_start_offset=log_start_offset,
            log_end=end,
            high_watermark=end,
            epochs=(),
            is_removal=True,
        )
        self.recovery_point = min(self.recovery_point, new_offset)
        self.directory.sync()
        self.producers.truncate_fully_and_start_at(new_offset)
        self.epochs.clear_and_flush()
        self.rebuild_producer_state()
        self.bounds.update_high_watermark_metadata(end)

    def rebuild_producer_state(self) -> None:
        """Let the producer state be that of the log up to its end. Law: PROD-14."""
        view = self.bounds.view
        end, now = view.log_end.message_offset, self.directory.time()
        rebuild_producer_state(self.producers, view.segments, view.log_start_offset, end, now)

    def split(self, segment: LogSegment) -> list[LogSegment]:
        """Put segments without overflow in the place of one that has it. Laws: LOG-19, LOG-20."""
        segments = self.segments.copy()
        is_active = segment is segments.active_segment
        new, removed = split_segment(self.directory, segments, segment)
        if is_active:
            self.update_log_end_offset(self.log_end_offset, segments=segments, is_removal=True)
        else:
            self.bounds.publish(segments=segments, is_removal=True)
        self.directory.delete_producer_snapshots(self.producers, removed)
        return new

    # --- the end

    def close(self) -> None:
        """Write a snapshot of the producers, cut and close all files."""
        try:
            self.producers.take_snapshot()
        finally:
            self._publish_closed()
            self.directory.close_pending()
            self.segments.close()

    def close_handlers(self) -> None:
        """Close all files as they are; nothing is written or cut. Raises: OSError."""
        self._publish_closed()
        try:
            self.directory.close_pending()
        finally:
            self.segments.close_handlers()

    def _publish_closed(self) -> None:
        self.bounds.publish(is_removal=True, is_closed=True)

    def delete_all_files(self) -> bool:
        """Remove all files of the log; return whether its directory is gone too.

        The newest segment goes first, so what a crash leaves is the log up to some offset.
        """
        self._publish_closed()
        self.epochs.clear()
        for segment in reversed(self.segments.values()):
            segment.delete_if_exists()
        self.directory.delete_due_files()
        self.producers.truncate_fully_and_start_at(0)
        directory = self.directory
        for name in ("leader-epoch-checkpoint", "partition.metadata"):
            directory.files.remove(directory.path(name))
        return directory.files.remove_directory(directory.dir)
