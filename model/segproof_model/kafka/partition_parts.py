# SPDX-License-Identifier: Apache-2.0
"""What a partition's log is made of, and how one part's operation is seen by the others.

Mirrors: the files of impl/segproof/kafka/partition_log.py.
Upstream: Kafka, UnifiedLog and LocalLog (4.3.1).
Laws: LOG-12, PROD-14.
Not covered: when background tasks run. What they have to do (removing `.deleted` files; in some
    releases, writing a cut epoch cache) waits for `delete_pending_files`.
Used by: partition_log and its parts, log_loader, log_leftovers, segment_replacing.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self

from segproof_model.directory import Directory
from segproof_model.kafka.compression import Codecs
from segproof_model.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.log_segment import FetchDataInfo, LogSegment
from segproof_model.kafka.log_segments import LogSegments
from segproof_model.kafka.producer_append_info import (
    AppendOrigin,
    CompletedTxn,
    ProducerAppendInfo,
)
from segproof_model.kafka.producer_state import DELETED_SUFFIX, ProducerStateManager
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.kafka.record_file import LogOffsetPosition
from segproof_model.kafka.segment_names import segment_file_name
from segproof_model.kafka.segment_parts import run
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import Profile
from segproof_model.values import replace

UNMAPPED = Raised(ErrorKind.UNMAPPED)
KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)
NO_SEGMENTS = LogSegments()
BEGINNING = LogOffsetMetadata(0)


class PendingDeletion(NamedTuple):
    """Files that are renamed to `.deleted` and are removed later."""

    due_ms: int
    """When they may be removed, inclusive."""
    names: tuple[str, ...]
    snapshots: tuple[int, ...] = ()
    """Offsets of snapshots that go with them, if they are known then."""


class ProducerUpdates(NamedTuple):
    """What batches mean for the producers, before it counts."""

    infos: tuple[ProducerAppendInfo, ...]
    """One for each producer."""
    completed_txns: tuple[CompletedTxn, ...]


def _to_remove(segment: LogSegment) -> list[str]:
    """Return the files that go with a segment; in old releases no transaction index that is not
    open."""
    index = segment.txn_index
    stays = segment.profile.txn_deletion_needs_channel and not index.is_open
    return [name for name in segment.names if not (stays and name == index.name)]


@dataclass(frozen=True, slots=True)
class PartitionParts:
    """The state of a log; every part sees the same directory."""

    profile: Profile = field(repr=False)
    directory: Directory = field(repr=False)
    codecs: Codecs = field(compare=False, repr=False)
    dir: str
    """Name of the partition's directory, or empty."""
    config: LogConfig = field(repr=False)
    draw: int
    """A random number >= 0; whoever drives the log changes it."""
    now_ms: int
    """What a clock would say; only whoever drives the log changes it."""
    leader_epoch_cache: LeaderEpochFileCache
    producer_state_manager: ProducerStateManager
    log_segments: LogSegments = NO_SEGMENTS
    log_start_offset: int = 0
    """The first offset that can be read, inclusive."""
    searched_from: int = field(default=0, compare=False, repr=False)
    """The log start when the log was loaded or told to begin later, which no cut lowers."""
    log_end: LogOffsetMetadata = BEGINNING
    """The offset that is given next, and where its batch will lie."""
    recovery_point: int = 0
    """What lies below this offset is known to be durable."""
    high_watermark_metadata: LogOffsetMetadata = BEGINNING
    first_unstable: LogOffsetMetadata | None = None
    """Where the earliest transaction begins that is open or not replicated, when last looked at."""
    txn_places: tuple[LogOffsetMetadata, ...] = field(default=(), compare=False, repr=False)
    """Where the transactions begin that were begun since the producers were last loaded."""
    pending_deletions: tuple[PendingDeletion, ...] = ()
    is_closed: bool = False
    modified: tuple[tuple[str, int], ...] = field(default=(), compare=False, repr=False)
    """Name of each log that is to be loaded, and when it was changed in ms; not told: now."""

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.log_end.message_offset

    @property
    def high_watermark(self) -> int:
        """The offset up to which everything is replicated, exclusive."""
        return self.high_watermark_metadata.message_offset

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is decided and replicated."""
        unstable = self.first_unstable
        if unstable is not None and unstable.message_offset < self.high_watermark:
            return unstable.message_offset
        return self.high_watermark

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return self.log_segments.size_in_bytes

    @property
    def is_refused(self) -> bool:
        """Whether the profile refuses any use, because the log is closed."""
        return self.profile.closed_is_closed and self.is_closed

    @property
    def is_found_closed(self) -> bool:
        """Whether a call raises kafka-error where it finds the log closed, as some releases do."""
        return self.profile.closed_log_is_refused and self.is_closed

    # --- one part does something, all the others see it ----------------------------------------

    def sees(self, directory: Directory) -> Self:
        """Return the same state over this directory."""
        parts = (self, self.leader_epoch_cache, self.producer_state_manager)
        segments = self.log_segments.sees(directory)
        if segments is self.log_segments and all(part.directory is directory for part in parts):
            return self
        return replace(
            self,
            directory=directory,
            log_segments=segments,
            leader_epoch_cache=replace(self.leader_epoch_cache, directory=directory),
            producer_state_manager=self.producer_state_manager.sees(directory),
        )

    def with_segment(self, segment: LogSegment) -> Self:
        """Return the state with this segment, new or changed."""
        if self.log_segments.get(segment.base_offset) is segment:
            return self.sees(segment.directory)
        segments = self.log_segments.add(segment)
        start = self.log_start_offset
        if not self.profile.log_start_is_kept:
            start = segments.base_offsets()[0]
        added = replace(self, log_segments=segments, log_start_offset=start)
        return added.sees(segment.directory)

    def on_segment(
        self, base_offset: int, operation: Callable[[LogSegment], Step[LogSegment]]
    ) -> Step[Self]:
        """Let the segment with this base offset do something, now."""
        segment = self.log_segments.get(base_offset)
        assert segment is not None
        is_now = segment.now_ms == self.now_ms
        step = operation(segment if is_now else replace(segment, now_ms=self.now_ms))
        return Step(self.with_segment(step.after), step.outcome)

    def on_active(self, operation: Callable[[LogSegment], Step[LogSegment]]) -> Step[Self]:
        """Let the active segment do something, now."""
        return self.on_segment(self.log_segments.active_segment.base_offset, operation)

    def on_segments(
        self,
        segments: Iterable[LogSegment],
        operation: Callable[[LogSegment], Step[LogSegment]],
    ) -> Step[Self]:
        """Let one segment after the other do something, up to the first error."""
        bases = [segment.base_offset for segment in segments]
        return run(
            self,
            *(
                partial(type(self).on_segment, base_offset=base, operation=operation)
                for base in bases
            ),
        )

    def on_epochs(
        self, operation: Callable[[LeaderEpochFileCache], Step[LeaderEpochFileCache]]
    ) -> Step[Self]:
        """Let the epoch cache do something, if there is one; what it schedules waits."""
        if not self.profile.log_knows_producers:
            return Step(self)
        step = operation(self.leader_epoch_cache)
        changed = replace(self, leader_epoch_cache=step.after)
        return Step(changed.sees(step.after.directory), step.outcome)

    def on_producers(
        self, operation: Callable[[ProducerStateManager], Step[ProducerStateManager]]
    ) -> Step[Self]:
        """Let the producer state do something; nothing in releases that have none."""
        if not self.profile.log_knows_producers:
            return Step(self)
        step = operation(self.producer_state_manager)
        changed = replace(self, producer_state_manager=step.after)
        return Step(changed.sees(step.after.directory), step.outcome)

    # --- files that come and go ----------------------------------------------------------------

    @property
    def prefix(self) -> str:
        """What stands before the name of each file."""
        return f"{self.dir}/" if self.dir else ""

    def new_segment(
        self, base_offset: int, file_already_exists: bool = False, file_suffix: str = ""
    ) -> LogSegment | Raised:
        """Open a segment in the directory; a new one is preallocated if the options say so."""
        config = self.config
        largest = min(config.segment_jitter_ms, config.segment_ms)
        is_new = not file_already_exists
        name = segment_file_name(base_offset, f".log{file_suffix}")
        step = LogSegment.open(
            self.dir,
            base_offset,
            config,
            file_already_exists,
            config.segment_bytes if config.preallocate and is_new else 0,
            config.preallocate and is_new,
            file_suffix,
            directory=self.directory,
            profile=self.profile,
            codecs=self.codecs,
            now_ms=self.now_ms,
            modified_ms=dict(self.modified).get(self.prefix + name),
            roll_jitter_ms=self.draw % largest if config.segment_jitter_ms else 0,
        )
        if isinstance(step.after, LogSegment):
            return step.after
        assert isinstance(step.outcome, Raised)
        return step.outcome

    def with_new_segment(self, base_offset: int) -> Step[Self]:
        """Create a segment, in place of one with the same base offset."""
        segment = self.new_segment(base_offset)
        if isinstance(segment, Raised):
            return Step(self, segment)
        return Step(self.with_segment(segment))

    def delete_later(
        self, segments: Sequence[LogSegment], begun_anew: Collection[int] = ()
    ) -> Step[Self]:
        """Rename the files of these segments to `.deleted`; they go when their time has come.

        In older releases the snapshots at their beginning go then, too, but for those at the base
        offsets `begun_anew`, where another segment begins.
        """
        after, names = self, list[str]()
        for segment in segments:
            segment = segment.sees(after.directory)
            step = Step(segment)
            if not segment.has_suffix(DELETED_SUFFIX):
                step = segment.change_file_suffixes("", DELETED_SUFFIX)
            after = after.sees(step.after.directory)
            if isinstance(step.outcome, Raised):
                return Step(after, step.outcome)
            names += _to_remove(step.after)
        snapshots = [one.base_offset for one in segments if one.base_offset not in begun_anew]
        profile = self.profile
        stay = profile.snapshot_of_removed_is_renamed or profile.snapshots_are_listed
        return Step(after._with_pending(names, () if stay else snapshots))

    def remove_segments(self, segments: Sequence[LogSegment]) -> Step[Self]:
        """Forget these segments, and delete their files later."""
        if not self.profile.removed_segments_go_together and len(segments) > 1:
            return run(
                self, *(partial(type(self).remove_segments, segments=[one]) for one in segments)
            )
        kept = self.log_segments
        for segment in segments:
            kept = kept.remove(segment.base_offset)
        return replace(self, log_segments=kept).delete_later(segments)

    def remove_snapshots(self, segments: Iterable[LogSegment]) -> Step[Self]:
        """Rename the snapshots at the beginning of these segments; they go later.

        In releases that leave them their names, they go with the segments (`delete_later`).
        """
        after, names = self, list[str]()
        if not self.profile.snapshot_of_removed_is_renamed:
            return Step(self)
        for segment in segments:
            manager = after.producer_state_manager
            name = dict(manager.snapshots).get(segment.base_offset)
            marked = manager.remove_and_mark_snapshot_for_deletion(segment.base_offset)
            step = after.on_producers(partial(_became, step=marked))
            after = step.after
            if step.outcome is not None and name is not None:
                names.append(name + DELETED_SUFFIX)
        return Step(after._with_pending(names) if names else after)

    def _with_pending(self, names: Sequence[str], snapshots: Sequence[int] = ()) -> Self:
        due_ms = self.now_ms + self.config.file_delete_delay_ms
        added = PendingDeletion(due_ms, tuple(names), tuple(snapshots))
        pending = (*self.pending_deletions, added)
        return replace(self, pending_deletions=pending)

    def delete_pending_files(self) -> Step[Self]:
        """Do what is scheduled: write the epochs, and remove `.deleted` files after their delay."""
        return self.on_epochs(lambda one: one.run_scheduled_write()).after._without_due_files()

    def _without_due_files(self) -> Step[Self]:
        due = [one for one in self.pending_deletions if one.due_ms <= self.now_ms]
        directory = self.directory
        removed = [name for pending in due for name in pending.names]
        at = {offset for pending in due for offset in pending.snapshots}
        removed += [name for offset, name in self.producer_state_manager.snapshots if offset in at]
        for name in removed:
            directory = directory.remove(name)
        kept = tuple(one for one in self.pending_deletions if one.due_ms > self.now_ms)
        known = self.producer_state_manager
        left = tuple(one for one in known.snapshots if one[1] not in removed)
        changed = replace(known, snapshots=left)
        after = replace(self, pending_deletions=kept, producer_state_manager=changed)
        return Step(after.sees(directory))

    # --- producers -----------------------------------------------------------------------------

    def producer_updates(
        self,
        batches: Iterable[RecordBatch],
        origin: AppendOrigin,
        transaction_version: int = -1,
        known: ProducerStateManager | None = None,
    ) -> ProducerUpdates | Raised:
        """Check batches against the producer state, or another one, which stays as it is."""
        manager = known or self.producer_state_manager
        infos: dict[int, ProducerAppendInfo] = {}
        completed: list[CompletedTxn] = []
        for batch in batches:
            producer_id = batch.producer_id
            if isinstance(producer_id, Raised):
                return producer_id
            if producer_id <= -1:
                continue
            info = infos.get(producer_id) or manager.prepare_update(producer_id, origin)
            step = info.append(batch, None, transaction_version)
            if isinstance(step.outcome, Raised):
                return step.outcome
            infos[producer_id] = step.after
            if isinstance(step.outcome, CompletedTxn):
                completed.append(step.outcome)
        return ProducerUpdates(tuple(infos.values()), tuple(completed))

    def with_producers(self, updates: ProducerUpdates) -> Step[Self]:
        """Let the updates count, but for the transactions that they complete."""
        return run(
            self,
            *(
                partial(type(self).on_producers, operation=partial(_updated, info=info))
                for info in updates.infos
            ),
        )

    def rebuild_producer_state(
        self, last_offset: int, is_clean: bool = False, known: ProducerStateManager | None = None
    ) -> Step[Self]:
        """Build the producer state up to the offset from the newest snapshot and the log (PROD-14).

        After a clean stop that left no snapshot, empty ones stand for the last two segments.
        `known` says what batches are appended to, if not what was built so far.
        """
        if not self.profile.log_knows_producers:
            return Step(self)
        bases = self.log_segments.base_offsets()[-2:]
        manager = self.producer_state_manager
        if is_clean and manager.latest_snapshot_offset() is None:
            return run(
                self, *(partial(type(self).snapshot_at, offset=at) for at in (*bases, last_offset))
            )
        was_empty = manager.is_empty and manager.map_end_offset >= last_offset
        start = self.log_start_offset
        stays = manager.map_end_offset == last_offset and manager.ongoing_txns
        step = replace(self, txn_places=self.txn_places if stays else ()).on_producers(
            lambda one: one.truncate_and_reload(start, last_offset, self.now_ms)
        )
        if isinstance(step.outcome, Raised):
            return step
        after, map_end = step.after, step.after.producer_state_manager.map_end_offset
        if last_offset > map_end and not was_empty:
            step = after._replayed(map_end, last_offset, known)
            if isinstance(step.outcome, Raised):
                return step
            after = step.after
        if self.profile.rebuild_snapshots != "ends":
            return after.on_producers(lambda one: one.update_map_end_offset(last_offset))
        return after.snapshot_at(last_offset)

    def _replayed(
        self, from_offset: int, last_offset: int, known: ProducerStateManager | None
    ) -> Step[Self]:
        """Enter what the log holds between two offsets, the second one exclusive."""
        segments = self.log_segments.values(from_offset, last_offset)
        assert not isinstance(segments, Raised)
        replay = partial(type(self)._replay, last_offset=last_offset, known=known)
        return run(self, *(partial(replay, base_offset=one.base_offset) for one in segments))

    def snapshot_at(self, offset: int) -> Step[Self]:
        """Say that the producer state ends here, and write it."""
        return run(
            self,
            lambda one: one.on_producers(lambda known: known.update_map_end_offset(offset)),
            lambda one: one.on_producers(lambda known: known.take_snapshot()),
        )

    def _replay(
        self, base_offset: int, last_offset: int, known: ProducerStateManager | None
    ) -> Step[Self]:
        """Learn the producers of a segment, up to the offset."""
        map_end = self.producer_state_manager.map_end_offset
        start = max(base_offset, map_end, self.log_start_offset)
        step = self.on_producers(lambda one: one.update_map_end_offset(start))
        is_late = base_offset in self.log_segments.base_offsets()[-2:]
        if is_late or self.profile.rebuild_snapshots != "ends":
            step = step.after.on_producers(lambda one: one.take_snapshot())
        if not self.profile.rebuild_ends_in_one_segment:
            return step.after._replay_between(base_offset, start, last_offset, known)
        holder = self.log_segments.floor_segment(last_offset)
        max_position: object = None
        if holder is not None and holder.base_offset == base_offset:
            step = step.after.on_segment(base_offset, lambda one: one.translate_offset(last_offset))
            if isinstance(step.outcome, Raised):
                return step
            if isinstance(step.outcome, LogOffsetPosition):
                max_position = step.outcome.position
        read = step.after.on_segment(
            base_offset,
            lambda one: one.read(
                start, INT32_MAX, max_position if isinstance(max_position, int) else one.size
            ),
        )
        return read.after.learn_of(read.outcome, known)

    def _replay_between(
        self, base_offset: int, start: int, end: int, known: ProducerStateManager | None
    ) -> Step[Self]:
        """Learn the producers of a segment from one offset on, up to another one if it has that."""
        first = self.on_segment(base_offset, lambda one: one.translate_offset(start))
        if not isinstance(first.outcome, LogOffsetPosition) or end < start:
            return first.after.learn_of(first.outcome, known)
        begin = first.outcome.position
        last = first.after.on_segment(base_offset, lambda one: one.translate_offset(end, begin))
        if isinstance(last.outcome, Raised):
            return last
        bound = last.outcome.position if isinstance(last.outcome, LogOffsetPosition) else None
        read = last.after.on_segment(
            base_offset,
            lambda one: one.read(start, INT32_MAX, one.size if bound is None else bound),
        )
        return read.after.learn_of(read.outcome, known)

    def learn_of(self, found: object, known: ProducerStateManager | None) -> Step[Self]:
        """Learn the producers of what a read of a segment has found, or its error."""
        if not isinstance(found, FetchDataInfo) or found.records is None:
            return Step(self, found if isinstance(found, Raised) else None)
        return self._learn(found.records.batches(), known)

    def _learn(self, scan: Any, known: ProducerStateManager | None) -> Step[Self]:
        """Let batches of the log count for the producers."""
        updates = self.producer_updates(scan.batches, "replication", known=known)
        if isinstance(updates, Raised) or scan.error is not None:
            return Step(self, updates if isinstance(updates, Raised) else scan.error)
        return run(
            self,
            lambda one: one.with_producers(updates),
            *(
                partial(type(self).on_producers, operation=partial(_without_txn, txn=done))
                for done in updates.completed_txns
            ),
        )


def _updated(manager: ProducerStateManager, info: ProducerAppendInfo) -> Step[ProducerStateManager]:
    return manager.update(info)


def _without_txn(manager: ProducerStateManager, txn: CompletedTxn) -> Step[ProducerStateManager]:
    return manager.complete_txn(txn)


def _became(
    _: ProducerStateManager, step: Step[ProducerStateManager]
) -> Step[ProducerStateManager]:
    return step
