# SPDX-License-Identifier: Apache-2.0
"""The log of a partition: a directory of segments that is appended to, read, cut and rolled.

Mirrors: segproof_model/kafka/broker/partition_log.py under the profile `segproof`.
Upstream: Kafka, UnifiedLog, LocalLog (4.3.1).
Laws: LOG-1 to LOG-21, LOAD-1 to LOAD-17.
Not covered: remote storage, compaction, the verification of transactions by their coordinator.
"""

import os
import random
from collections.abc import Callable, Sequence
from operator import index as to_int
from types import TracebackType
from typing import Self

from segproof.errors import InvalidArgumentError, OffsetOutOfRangeError
from segproof.files import REAL_FILES, Files
from segproof.kafka.log_appending import AppendableLog
from segproof.kafka.log_config import LogConfig
from segproof.kafka.log_files import LogFiles, split_segment
from segproof.kafka.log_loader import load_log, rebuild_producer_state
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.log_retention import RULES
from segproof.kafka.log_segment import LogSegment
from segproof.kafka.log_validator import LogAppendInfo
from segproof.kafka.write_format import NEWEST_FORMAT, WriteFormat
from segproof.numbers import now_ms

__all__ = ["LogAppendInfo", "PartitionLog"]


def _draw() -> int:
    return random.getrandbits(31)  # a jitter, not a secret


class PartitionLog(AppendableLog):
    """The log of one partition, open for writing.

    Made by `open`. Write: `append_as_leader`, `append_as_follower`, `truncate_to`,
    `truncate_fully_and_start_at`, `roll`, `split_overflowed_segment`. Read: `read`,
    `fetch_offset_by_timestamp`, `collect_aborted_transactions`. Bounds: `update_high_watermark`,
    `maybe_increment_log_start_offset`, `flush`. Removal: `delete_old_segments`,
    `delete_pending_files`, `delete`. One thread may write while any number read, without a lock.
    What can be refused beforehand has changed nothing. Once closed, all but another `close` and
    `delete_pending_files` raise IndexClosedError. So do they after an OSError inside a change that
    may be half done: the log is offline, closed as by `close_handlers`, and must be opened again
    with `last_shutdown_clean=False`. Only an append that could be taken back lets it go on.
    """

    @classmethod
    def open(
        cls,
        dir: str | os.PathLike[str],  # noqa: A002 -- Kafka's name
        config: LogConfig,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        last_shutdown_clean: bool = True,
        *,
        files: Files = REAL_FILES,
        time: Callable[[], int] = now_ms,
        write_format: WriteFormat = NEWEST_FORMAT,
        draw: Callable[[], int] = _draw,
    ) -> Self:
        """Load the log of a directory, which is made if it is missing. Laws: LOAD-1 to LOAD-17.

        `log_start_offset` and `recovery_point` are what the checkpoints of the log directory say.
        Where the last shutdown was not clean, all from the recovery point on is read, checked and
        indexed anew. `time` tells the ms since 1970, `draw` a random number from 0 on.

        Raises: NumberFormatError for a file with a segment's suffix that has no offset as its name,
        and CorruptCheckpointError, with nothing changed; OSError; what recovery raises.
        """
        start, point = to_int(log_start_offset), to_int(recovery_point)
        for name, offset in (("log_start_offset", start), ("recovery_point", point)):
            if not 0 <= offset < 1 << 63:
                raise InvalidArgumentError(f"{name} is {offset}, not from 0 to 2^63 - 1")
        log_files = LogFiles(
            os.fspath(dir), config, files=files, time=time, write_format=write_format, draw=draw
        )
        files.make_directory(log_files.folder)
        return cls(log_files, load_log(log_files, start, point, last_shutdown_clean))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # --- cutting

    def truncate_to(self, target_offset: int) -> bool:
        """Cut the log before the batch that holds `target_offset`; return whether it ends above.

        Later segments are gone at once, their files after the delay. What is removed stays removed
        after a crash. Laws: LOG-13, LOG-14.

        Raises, with nothing changed: InvalidArgumentError for a negative offset. OSError; the log
        is offline then.
        """
        self._check_open()
        target = to_int(target_offset)
        if target < 0:
            raise InvalidArgumentError(
                "a log is not cut at a negative offset", law="LOG-13", path=self.dir, actual=target
            )
        with self._offline_if_it_fails():
            return self._truncate_to(target)

    def _truncate_to(self, target: int) -> bool:
        if target >= self.log_end_offset:
            self._epochs.truncate_from_end(self.log_end_offset)
            self._publish(epochs=self._epochs.entries)
            return False
        if self.log_segments.base_offsets()[0] > target:
            self.truncate_fully_and_start_at(target)
            return True
        self._remove(self.log_segments.higher_segments(target))
        self._cut_active(target)
        self._epochs.truncate_from_end(target)
        self._rebuild_producer_state()
        self._keep_high_watermark_within()
        self._publish(epochs=self._epochs.entries)
        return True

    def _remove(self, removed: Sequence[LogSegment]) -> None:
        """Remove some segments at the beginning or the end, but not all."""
        if not removed:
            return
        segments = self.log_segments.copy()
        for segment in removed:
            segments.remove(segment.base_offset)
        if segments.active_segment is not self.log_segments.active_segment:
            end = min(removed[0].base_offset, self.log_end_offset)
            start = min(end, self.log_start_offset)
            self._move_end(end, segments=segments, log_start_offset=start, is_removal=True)
            removed = removed[::-1]  # so that a crash leaves no hole
        else:
            self._publish(segments=segments, is_removal=True)
        self._files.mark_deleted(removed)
        self._files.mark_snapshots_deleted(self._producers, removed)

    def _cut_active(self, target: int) -> None:
        """Cut the active segment, which holds `target`; the end that readers see moves first."""
        before = self._view
        active = before.segments.active_segment
        found = active.translate_offset(target)
        size_before = active.size
        position = size_before if found is None else found.position
        self._publish(
            log_end=LogOffsetMetadata(target, active.base_offset, position),
            log_start_offset=min(target, before.log_start_offset),
            is_removal=True,
        )
        try:
            active.truncate_to(target)
            active.log.flush()
        except BaseException:
            if active.size == size_before:
                self._publish(
                    log_end=before.log_end,
                    log_start_offset=before.log_start_offset,
                    epochs=before.epochs,
                    is_removal=True,
                )
            else:
                self._recovery_point = min(self._recovery_point, target)
            raise
        self._recovery_point = min(self._recovery_point, target)

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """Remove everything, and begin anew with an empty segment at `new_offset`.

        The log start is that offset unless another one is given. Raises, with nothing changed:
        InvalidArgumentError for an offset outside 63 bits. OSError; the log is offline then.
        """
        self._check_open()
        offset = to_int(new_offset)
        start = offset if log_start_offset is None else to_int(log_start_offset)
        for name, value in (("new_offset", offset), ("log_start_offset", start)):
            if not 0 <= value < 1 << 63:
                raise InvalidArgumentError(f"{name} is {value}, not from 0 to 2^63 - 1")
        with self._offline_if_it_fails():
            self._begin_anew(offset, start)

    def _begin_anew(self, offset: int, start: int) -> None:
        segments = self.log_segments.copy()
        segments.clear()
        # Kafka keeps an old segment until there is the new one: a crash leaves a hole then.
        self._files.mark_deleted(self.log_segments.values()[::-1])
        self._files.remove_leftovers(offset)
        segments.add(self._files.open_segment(offset))
        end = LogOffsetMetadata(offset, offset, 0)
        self._publish(
            segments=segments,
            log_start_offset=start,
            log_end=end,
            high_watermark=end,
            epochs=(),
            is_removal=True,
        )
        self._recovery_point = min(self._recovery_point, offset)
        self._files.sync()
        self._producers.truncate_fully_and_start_at(offset)
        self._epochs.clear_and_flush()
        self._rebuild_producer_state()
        self._set_high_watermark(end)

    def _rebuild_producer_state(self) -> None:
        view = self._view
        end = view.log_end.message_offset
        start, now = view.log_start_offset, self._files.time()
        rebuild_producer_state(self._producers, view.segments, start, end, now)

    # --- removing

    def delete_old_segments(self) -> int:
        """Remove the oldest segments: below the log start, beyond size or time; return how many.

        None of them holds an offset at or above the high watermark. The log start moves to the
        first one that stays. Laws: LOG-17, LOG-18. Raises: OSError; the log is offline then.
        """
        self._check_open()
        with self._offline_if_it_fails():
            return self._delete_by_rules()

    def _delete_by_rules(self) -> int:
        count = 0
        for rule in RULES:
            removed = rule(self._view, self.config, self._files.time())
            if not removed:
                continue
            if len(removed) == len(self.log_segments):
                self.roll()
            following = self.log_segments.higher_segment(removed[-1].base_offset)
            if following is None:
                raise OffsetOutOfRangeError("no segment would stay", law="LOG-17", path=self.dir)
            self.maybe_increment_log_start_offset(following.base_offset)
            self._remove(removed)
            count += len(removed)
        return count

    def delete_pending_files(self) -> int:
        """Remove the files of removed segments whose delay is over; return how many groups.

        A segment's files are one group, a snapshot is one. Raises: OSError; the others are tried.
        """
        return self._files.remove_pending(self._files.time())

    def split_overflowed_segment(self, base_offset: int) -> list[LogSegment]:
        """Put segments in the place of one that holds offsets too far from its base; return them.

        Laws: LOG-19, LOG-20.
        Raises, with nothing changed: InvalidArgumentError for a segment that is not there, or has
        no such offset. OSError; the log is offline then.
        """
        self._check_open()
        segment = self.log_segments.get(to_int(base_offset))
        if segment is None:
            raise InvalidArgumentError(
                "there is no segment with this base offset",
                law="LOG-20",
                path=self.dir,
                expected=self.log_segments.base_offsets(),
                actual=base_offset,
            )
        with self._offline_if_it_fails():
            return self._split(segment)

    def _split(self, segment: LogSegment) -> list[LogSegment]:
        segments = self.log_segments.copy()
        is_active = segment is segments.active_segment
        new, removed = split_segment(self._files, segments, segment)
        if is_active:
            self._move_end(self.log_end_offset, segments=segments, is_removal=True)
        else:
            self._publish(segments=segments, is_removal=True)
        self._files.mark_snapshots_deleted(self._producers, removed)
        return new

    # --- the end

    def close(self) -> None:
        """Write a snapshot of the producers, cut and close all files; a second close does nothing.

        All from the recovery point on is recovered by the next `open`, unless that is told that the
        shutdown was clean. Raises: OSError, once everything is closed.
        """
        if self._view.is_closed:
            return
        try:
            self._producers.take_snapshot()
        finally:
            self._publish(is_removal=True, is_closed=True)
            self._files.close_pending()
            self.log_segments.close()

    def delete(self) -> bool:
        """Remove the log with all its files; return whether its directory is gone too.

        The newest segment goes first, so what a crash leaves is the log up to some offset. Files
        that are not the log's stay, and the directory with them. Raises: OSError.
        """
        self._check_open()
        self._publish(is_removal=True, is_closed=True)
        self._epochs.clear()
        for segment in reversed(self.log_segments.values()):
            segment.delete_if_exists()
        self._files.remove_pending()
        self._producers.truncate_fully_and_start_at(0)
        for name in ("leader-epoch-checkpoint", "partition.metadata"):
            self._files.files.remove(self._files.path(name))
        return self._files.files.remove_directory(self.dir)
