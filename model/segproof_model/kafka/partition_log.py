# SPDX-License-Identifier: Apache-2.0
"""The log of one partition: its segments, epochs, producers, and the offsets that bound them.

Mirrors: impl/segproof/kafka/partition_log.py.
Upstream: Kafka, UnifiedLog and LocalLog (4.3.1; Log up to 2.8).
Laws: LOG-1 to LOG-21, LOAD-1 to LOAD-17, PROD-14.
Not covered: remote storage, partition.metadata, a rename to `-delete`; of older releases what no
    flag of the profile says.
Used by: log_manager, the harness.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from segproof_model.directory import Directory
from segproof_model.kafka.compression import NO_CODECS, Codecs
from segproof_model.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.log_leftovers import is_odd
from segproof_model.kafka.log_loader import load
from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.log_segment import LogSegment
from segproof_model.kafka.log_validator import LogAppendInfo
from segproof_model.kafka.partition_appending import AppendingLog
from segproof_model.kafka.partition_parts import KAFKA_ERROR, UNMAPPED
from segproof_model.kafka.partition_reading import OUT_OF_RANGE
from segproof_model.kafka.producer_state import ProducerStateManager
from segproof_model.kafka.segment_parts import INVALID_ARGUMENT, run
from segproof_model.kafka.segment_replacing import split_segment
from segproof_model.language.integers import INT64_MAX
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

__all__ = ["LogAppendInfo", "PartitionLog"]

EPOCH_FILE = "leader-epoch-checkpoint"


@dataclass(frozen=True, slots=True)
class PartitionLog(AppendingLog):
    """The state of a log, and what it does.

    >>> from segproof_model.kafka.record_batch import Record, write_batch
    >>> log = PartitionLog.open("", LogConfig(segment_index_bytes=96)).after
    >>> batch = write_batch([Record(0, 1000, None, b"hello")], base_offset=0)
    >>> log = replace(log, now_ms=1000).append_as_leader(batch, 5).after
    >>> log.log_end_offset, log.leader_epoch_cache.latest_epoch(), log.high_watermark
    (1, 5, 0)
    """

    @classmethod
    def open(
        cls,
        dir: str,  # noqa: A002 - the name that Kafka gives it
        config: LogConfig,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        last_shutdown_clean: bool = True,
        *,
        directory: Directory = Directory(),
        profile: Profile = NEWEST_KAFKA,
        codecs: Codecs = NO_CODECS,
        now_ms: int = 0,
        draw: int = 0,
        modified_ms: Mapping[str, int] | None = None,
    ) -> "Step[PartitionLog | Directory]":
        """Load the log of a directory, or begin one (LOAD-1 to LOAD-17).

        `log_start_offset` and `recovery_point` are what the checkpoints say, `modified_ms` when the
        logs were changed, by name. After a failure only the directory is left.
        """
        prefix = f"{dir}/" if dir else ""
        short = [name.removeprefix(prefix) for name in directory if name.startswith(prefix)]
        if profile.segment_names_exact and any("/" not in name and is_odd(name) for name in short):
            return Step(directory, Raised(ErrorKind.NUMBER_FORMAT))
        known = _known_beside(prefix, dir, config, directory, profile)
        if isinstance(known, Step):
            return known
        epochs, producers = known
        empty = cls(
            profile,
            producers.directory,
            codecs,
            dir,
            config,
            draw,
            now_ms,
            epochs,
            producers,
            log_start_offset=log_start_offset if profile.log_start_is_kept else 0,
            modified=tuple((modified_ms or {}).items()),
        )
        loaded = run(
            empty,
            lambda one: load(one, recovery_point, last_shutdown_clean),
            lambda one: one._begun(),
        )
        failed = isinstance(loaded.outcome, Raised)
        begun = replace(loaded.after, modified=())
        return Step(begun.directory, loaded.outcome) if failed else Step(begun)

    def _begun(self) -> Step[Self]:
        """Let what bounds the log begin at its start; replication tells the high watermark."""
        knows = self.profile.log_knows_high_watermark
        point = max(self.recovery_point, self.log_start_offset) if knows else self.recovery_point
        return run(
            replace(self, recovery_point=point),
            lambda one: one.with_high_watermark(LogOffsetMetadata(one.log_start_offset)),
        )

    # --- cutting -------------------------------------------------------------------------------

    def truncate_to(self, target_offset: int) -> Step[Self]:
        """Let the log end at the offset; return whether anything was cut (LOG-13, LOG-14)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        if target_offset < 0:
            return Step(self, INVALID_ARGUMENT)
        end = self.log_end_offset
        is_done = self.profile.truncation_at_end_is_done and target_offset == end
        if target_offset >= end and not (is_done or self.profile.truncation_at_end_cuts_epochs):
            return Step(self, False)
        if target_offset >= end and not is_done:
            step = self.on_epochs(lambda one: one.truncate_from_end(end))
            return Step(step.after, step.outcome if isinstance(step.outcome, Raised) else False)
        if self.is_found_closed:
            return Step(self, KAFKA_ERROR)
        if self.log_segments.base_offsets()[0] > target_offset:
            step = self.truncate_fully_and_start_at(target_offset)
        else:
            step = self._truncated_within(target_offset)
        return Step(step.after, step.outcome if isinstance(step.outcome, Raised) else True)

    def _truncated_within(self, target_offset: int) -> Step[Self]:
        """Cut at an offset that does not lie before the first segment."""
        doomed = self.log_segments.higher_segments(target_offset)
        return run(
            self,
            lambda one: one.remove_segments(doomed) if doomed else Step(one),
            lambda one: one._ended_before(doomed),
            lambda one: one._active_cut(target_offset),
            lambda one: one._begun_by(min(target_offset, one.log_start_offset)),
            lambda one: one.remove_snapshots(doomed),
            lambda one: one.on_epochs(lambda epochs: epochs.truncate_from_end(target_offset)),
            lambda one: one.rebuild_producer_state(target_offset),
            lambda one: one._bounded_by_cut(target_offset),
        )

    def _bounded_by_cut(self, target_offset: int) -> Step[Self]:
        """Fit the high watermark and the first unstable offset to a log that was cut."""
        if self.profile.truncation_sets_high_watermark:
            return self.update_high_watermark(min(self.high_watermark, target_offset))
        if self.profile.bounds_follow_end_at_once:
            return self.with_first_unstable()
        if self.profile.truncation_keeps_unstable:
            return self.with_high_watermark_within()
        return run(
            self,
            lambda one: one.with_first_unstable(),
            lambda one: one.with_high_watermark_within(),
        )

    def _ended_before(self, doomed: Sequence[LogSegment]) -> Step[Self]:
        """Let the log end before segments that are removed, where the profile is that careful.

        Upstream does so when the cut is done, which damage may prevent.
        """
        if not doomed or not self.profile.checks_before_changing:
            return Step(self)
        end = min(doomed[0].base_offset, self.log_end_offset)
        return self.with_log_end(end).remove_snapshots(doomed)

    def _active_cut(self, target_offset: int) -> Step[Self]:
        """Cut the active segment, and let the log end there.

        Where reading what is left fails, upstream leaves the end where nothing is any more.
        """
        step = self.on_active(lambda active: active.truncate_to(target_offset))
        if not isinstance(step.outcome, Raised):
            return step.after._ended_by_cut(target_offset)
        is_cut = step.after.size < self.size
        if not (is_cut and self.profile.checks_before_changing):
            return step
        start = min(target_offset, self.log_start_offset)
        ended = step.after.with_log_end(target_offset)
        return Step(replace(ended, log_start_offset=start), step.outcome)

    def _ended_by_cut(self, offset: int) -> Step[Self]:
        """Let the log end at the offset, and the recovery point not lie behind it."""
        step = self.ended_at(offset)
        if isinstance(step.outcome, Raised):
            return step
        point = min(step.after.recovery_point, offset)
        return Step(replace(step.after, recovery_point=point))

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> Step[Self]:
        """Delete everything, and begin anew at the offset (LOG-14).

        The start of the log may lie before it, where other copies have what is gone here.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        if self.is_found_closed:
            return Step(self, KAFKA_ERROR)
        if not self.profile.full_truncation_rebuilds:
            return self._begun_anew(new_offset)
        *doomed, last = self.log_segments
        is_told = self.profile.full_truncation_takes_start and log_start_offset is not None
        start = log_start_offset if is_told and log_start_offset is not None else new_offset
        is_low = self.profile.truncation_sets_high_watermark and self.high_watermark < new_offset
        return run(
            self,
            lambda one: one.remove_segments(doomed) if doomed else Step(one),
            lambda one: one.replaced_segment(last, new_offset),
            lambda one: Step(one.with_log_end(new_offset)),
            lambda one: one.on_epochs(lambda epochs: epochs.clear_and_flush()),
            lambda one: one.on_producers(
                lambda known: known.truncate_fully_and_start_at(new_offset)
            ),
            lambda one: Step(replace(one, log_start_offset=start)),
            lambda one: one.rebuild_producer_state(new_offset),
            lambda one: one.update_high_watermark(one.high_watermark if is_low else new_offset),
        )

    def _begun_anew(self, new_offset: int) -> Step[Self]:
        """Delete everything, and begin at the offset, as releases do that build nothing anew."""
        *doomed, last = self.log_segments
        return run(
            self,
            lambda one: one.remove_segments(doomed) if doomed else Step(one),
            lambda one: one.replaced_segment(last, new_offset),
            lambda one: one.ended_at(new_offset),
            lambda one: one.on_epochs(lambda epochs: epochs.clear_and_flush()),
            lambda one: one.on_producers(
                lambda known: known.truncate_fully_and_start_at(new_offset)
            ),
            lambda one: one.with_first_unstable(),
            lambda one: Step(replace(one, recovery_point=min(one.recovery_point, new_offset))),
            lambda one: one._begun_by(new_offset),
        )

    def _begun_by(self, start: int) -> Step[Self]:
        """Let the log begin at an offset that lies in it; in some releases the high watermark and
        the recovery point follow."""
        begun = replace(self, log_start_offset=start)
        if not self.profile.bounds_follow_start:
            return Step(begun)
        begun = replace(begun, recovery_point=max(self.recovery_point, start))
        if begun.high_watermark >= start:
            return Step(begun)
        return begun.with_high_watermark(LogOffsetMetadata(start))

    # --- the bounds ----------------------------------------------------------------------------

    def update_high_watermark(self, high_watermark: int) -> Step[Self]:
        """Set the high watermark, not outside of the log; return what it has become.

        A log that does not know it takes what its replica tells, and answers nothing.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        if not self.profile.log_knows_high_watermark:
            return self.with_high_watermark(LogOffsetMetadata(high_watermark))
        metadata = LogOffsetMetadata(max(high_watermark, self.log_start_offset))
        if high_watermark >= self.log_start_offset and high_watermark >= self.log_end_offset:
            is_placed = self.profile.high_watermark_at_end_is_placed
            metadata = self.log_end if is_placed else LogOffsetMetadata(self.log_end_offset)
        step = self.with_high_watermark(metadata)
        failed = isinstance(step.outcome, Raised)
        return Step(step.after, step.outcome if failed else metadata.message_offset)

    def maybe_increment_log_start_offset(self, new_log_start_offset: int) -> Step[Self]:
        """Let the log begin later; return whether it does.

        Beyond the high watermark raises out-of-range; of a log that does not know it, the replica
        does so.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        knows = self.profile.log_knows_high_watermark
        bound = self.high_watermark if knows else min(self.high_watermark, self.log_end_offset)
        if new_log_start_offset > bound:
            return Step(self, OUT_OF_RANGE)
        if self.is_found_closed:
            return Step(self, KAFKA_ERROR)
        return self._begun_at(new_log_start_offset)

    def _begun_at(self, start: int) -> Step[Self]:
        """Let the log begin at an offset, if that is later; return whether it does."""
        if start <= self.log_start_offset:
            return Step(self, False)
        knows = self.profile.log_knows_high_watermark
        point = max(self.recovery_point, start) if knows else self.recovery_point
        step = run(
            replace(self, log_start_offset=start, searched_from=start, recovery_point=point),
            lambda one: one.on_epochs(lambda epochs: epochs.truncate_from_start(start)),
            lambda one: one.on_producers(
                lambda known: known.on_log_start_offset_incremented(start)
            ),
            lambda one: one.with_first_unstable(),
        )
        return Step(step.after, step.outcome if isinstance(step.outcome, Raised) else True)

    # --- retention -----------------------------------------------------------------------------

    def delete_old_segments(self) -> Step[Self]:
        """Delete segments at the beginning that nobody needs; return how many (LOG-17, LOG-18).

        Those before the log's start, then those above the size, then those too old; a log that is
        only compacted keeps the latter two, and in some releases all.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        is_deleted = "delete" in self.config.cleanup_policy
        if not is_deleted and not self.profile.compacted_log_is_trimmed:
            return Step(self, 0)
        operations = [type(self)._delete_before_start]
        if is_deleted:
            operations += [type(self)._delete_above_size, type(self)._delete_old]
        if not self.profile.retention_begins_at_start:
            operations.reverse()
        step: Step[Self] = Step(self)
        count = 0
        for operation in operations:
            step = operation(step.after)
            if not isinstance(step.outcome, int):
                return step
            count += step.outcome
        return Step(step.after, count)

    def _delete_before_start(self) -> Step[Self]:
        start = self.log_start_offset
        ends = self._ends_of_segments()
        return self._delete_while(
            lambda one: Step(one, ends.get(one.base_offset, INT64_MAX) <= start)
        )

    def _ends_of_segments(self) -> dict[int, int]:
        """Return the base offset behind each segment but the last, by base offset."""
        bases = self.log_segments.base_offsets()
        return dict(zip(bases, bases[1:], strict=False))

    def _delete_above_size(self) -> Step[Self]:
        """Delete as long as the rest is not smaller than the limit (LOG-18)."""
        limit, left, rest = self.config.retention_bytes, self.size, dict[int, int]()
        if limit < 0 or left < limit:
            return Step(self, 0)
        for segment in self.log_segments:
            left -= segment.size
            rest[segment.base_offset] = left
        return self._delete_while(lambda one: Step(one, rest[one.base_offset] >= limit))

    def _delete_old(self) -> Step[Self]:
        """Delete the segments whose largest timestamp lies too far back."""
        if self.config.retention_ms < 0:
            return Step(self, 0)
        oldest = self.now_ms - self.config.retention_ms

        def is_old(segment: LogSegment) -> Step[LogSegment]:
            step = segment.largest_timestamp
            if not isinstance(step.outcome, int):
                return step
            return Step(step.after, step.outcome < oldest)

        return self._delete_while(is_old)

    def _delete_while(self, predicate: Callable[[LogSegment], Step[LogSegment]]) -> Step[Self]:
        """Delete the segments at the beginning that the predicate holds of; return how many.

        Only below the high watermark, and not a last one that is empty (LOG-17).
        """
        after, doomed = self, list[int]()
        for segment in self.log_segments:
            base = segment.base_offset
            end = self._ends_of_segments().get(base)
            is_replicated = self.high_watermark >= (self.log_end_offset if end is None else end)
            if self.profile.retention_waits_for_replicas and not is_replicated:
                break
            step = after.on_segment(base, predicate)
            after = step.after
            if isinstance(step.outcome, Raised):
                return step
            if not step.outcome or (end is None and segment.size == 0):
                break
            doomed.append(base)
        return after._deleted(doomed) if doomed else Step(after, 0)

    def _deleted(self, bases: list[int]) -> Step[Self]:
        """Delete these segments at the beginning; a new one is begun if no other is left."""
        if self.is_found_closed:
            return Step(self, KAFKA_ERROR)
        rolled: Step[Self] = Step(self)
        if len(bases) == self.log_segments.number_of_segments:
            rolled = self.roll()
        if isinstance(rolled.outcome, Raised):
            return rolled
        segments = [one for one in rolled.after.log_segments if one.base_offset in bases]
        higher = rolled.after.log_segments.higher_segments(bases[-1])
        start = higher[0].base_offset if higher else rolled.after.log_start_offset
        operations: list[Callable[[Self], Step[Self]]] = [
            lambda one: one._begun_behind(start),
            lambda one: one.remove_segments(segments),
            lambda one: one.remove_snapshots(segments),
        ]
        if not self.profile.start_moves_before_removal:
            operations.append(operations.pop(0))
        step = run(rolled.after, *operations)
        return Step(step.after, step.outcome if isinstance(step.outcome, Raised) else len(bases))

    def _begun_behind(self, start: int) -> Step[Self]:
        """Let the log begin behind segments that are deleted."""
        if self.profile.log_knows_high_watermark:
            return self.maybe_increment_log_start_offset(start)
        if self.profile.log_start_is_kept:
            return self._begun_at(start)
        return self._begun_by(self.log_segments.base_offsets()[0])

    def remove_expired_producers(self) -> Step[Self]:
        """Forget the producers that are silent for too long (PROD-12)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        return self.on_producers(lambda one: one.remove_expired_producers(self.now_ms))

    def split_overflowed_segment(self, base_offset: int) -> Step[Self]:
        """Split a segment that overflows; return the base offsets of its parts (LOG-19, LOG-20).

        No such segment raises invalid-argument.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        segment = self.log_segments.get(base_offset)
        if segment is None:
            return Step(self, INVALID_ARGUMENT)
        is_active = segment.base_offset == self.log_segments.active_segment.base_offset
        step = split_segment(self, replace(segment, now_ms=self.now_ms))
        is_kept = not (is_active and self.profile.checks_before_changing)
        if isinstance(step.outcome, Raised) or is_kept:
            return step
        # Upstream leaves the end of the log in the segment that is split.
        return Step(step.after.with_log_end(self.log_end_offset), step.outcome)

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> Step[Self]:
        """Write a snapshot of the producers, and close every segment.

        A release that refuses what a closed log is asked takes none for closed that failed here.
        """
        if self.is_refused:
            return Step(self)
        if self.is_found_closed:
            return Step(self, KAFKA_ERROR)
        step = run(
            self,
            lambda one: one.on_producers(lambda known: known.take_snapshot()),
            lambda one: one.on_segments(one.log_segments, lambda segment: segment.close()),
        )
        failed = isinstance(step.outcome, Raised) and self.profile.closed_log_is_refused
        return Step(replace(step.after, is_closed=not failed), step.outcome)

    def prepare_active_segment_for_close(self) -> Step[Self]:
        """Write and cut in the active segment what closing does up to 4.3; then do nothing."""
        if self.profile.close_writes:
            return Step(self)
        active = self.log_segments.active_segment.base_offset
        return self.on_segment(active, lambda one: one.on_become_inactive_segment())

    def close_handlers(self) -> Step[Self]:
        """Give every file up as it is."""
        step = self.on_segments(self.log_segments, lambda segment: segment.close_handlers())
        return Step(replace(step.after, is_closed=True), step.outcome)

    def delete(self) -> Step[Self]:
        """Remove every file of the log's directory."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        directory = self.directory
        for name in directory:
            if name.startswith(self.prefix):
                directory = directory.remove(name)
        step = self.on_epochs(lambda epochs: epochs.clear())
        gone = replace(step.after, pending_deletions=(), is_closed=True)
        empty = replace(gone, log_segments=gone.log_segments.clear())
        return Step(empty.sees(directory), step.outcome)


def _known_beside(
    prefix: str,
    dir: str,  # noqa: A002 - the name that Kafka gives it
    config: LogConfig,
    directory: Directory,
    profile: Profile,
) -> tuple[LeaderEpochFileCache, ProducerStateManager] | Step[PartitionLog | Directory]:
    """Read the epochs and the snapshots of producers; in releases that have none, neither."""
    epochs = LeaderEpochFileCache.in_memory(profile=profile)
    if profile.log_knows_producers:
        opened = LeaderEpochFileCache.open(
            prefix + EPOCH_FILE, directory=directory, profile=profile
        )
        if isinstance(opened.after, Directory):
            return Step(opened.after, opened.outcome)
        epochs, directory = opened.after, opened.after.directory
    producers = ProducerStateManager.open(
        dir,
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        max_transaction_timeout_ms=config.max_transaction_timeout_ms,
        directory=directory if profile.log_knows_producers else Directory(),
        profile=profile,
    )
    if isinstance(producers.after, Directory):
        return Step(producers.after, producers.outcome)
    return replace(epochs, directory=directory), replace(producers.after, directory=directory)
