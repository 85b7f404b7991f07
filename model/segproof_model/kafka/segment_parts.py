# SPDX-License-Identifier: Apache-2.0
"""What a segment is made of: four files in one directory, and how an operation on one is seen.

Mirrors: the files of impl/segproof/kafka/log_segment.py.
Upstream: Kafka, LogSegment (since 1.1.1).
Laws: SEG-44 to SEG-48.
Used by: log_segment, segment_recovery.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from segproof_model.directory import Directory
from segproof_model.kafka.lazy_index import LazyIndex
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.offset_index import OffsetIndex, OffsetPosition
from segproof_model.kafka.producer_append_info import CompletedTxn
from segproof_model.kafka.record_file import RecordFile
from segproof_model.kafka.time_index import TimeIndex, TimestampOffset
from segproof_model.kafka.transaction_index import AbortedTxn, TransactionIndex
from segproof_model.language.integers import INT32_MAX, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import Profile
from segproof_model.values import replace

CORRUPT_INDEX = Raised(ErrorKind.CORRUPT_INDEX)
FILE_NOT_FOUND = Raised(ErrorKind.FILE_NOT_FOUND)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
SEGMENT_OVERFLOW = Raised(ErrorKind.SEGMENT_OVERFLOW)
UNMAPPED = Raised(ErrorKind.UNMAPPED)


@dataclass(frozen=True, slots=True)
class SegmentParts:
    """The state of a segment; every part sees the same directory."""

    profile: Profile = field(repr=False)
    directory: Directory = field(repr=False)
    base_offset: int
    config: LogConfig = field(repr=False)
    log: RecordFile
    lazy_offset_index: LazyIndex
    lazy_time_index: LazyIndex
    txn_index: TransactionIndex
    created_ms: int
    """When the segment was opened, or last cut to nothing."""
    now_ms: int
    """What a clock would say; only whoever drives the segment changes it."""
    modified_ms: int
    """When the bytes of the log last changed."""
    roll_jitter_ms: int = 0
    bytes_since_last_index_entry: int = 0
    rolling_based_timestamp: int | None = None
    """The timestamp that the age of the segment is counted from, once it was asked for."""
    max_pair: TimestampOffset | None = None
    """The largest timestamp with its offset; None before its first use."""
    is_closed: bool = False
    """Whether the segment was closed or deleted; only segproof cares."""

    @property
    def size(self) -> int:
        """Logical size of the log in bytes."""
        return self.log.size

    @property
    def offset_index(self) -> OffsetIndex | None:
        """The offset index, if it is loaded."""
        index = self.lazy_offset_index.index
        return index if isinstance(index, OffsetIndex) else None

    @property
    def time_index(self) -> TimeIndex | None:
        """The time index, if it is loaded."""
        index = self.lazy_time_index.index
        return index if isinstance(index, TimeIndex) else None

    @property
    def is_refused(self) -> bool:
        """Whether the profile refuses any use, because the segment is closed."""
        return self.profile.closed_is_closed and self.is_closed

    # --- one part does something, all the others see it ----------------------------------------

    def sees(self, directory: Directory) -> Self:
        """Return the same state over this directory."""
        offset_index = self.lazy_offset_index.sees(directory)
        time_index = self.lazy_time_index.sees(directory)
        if (
            self.directory is self.log.directory is self.txn_index.directory is directory
            and offset_index is self.lazy_offset_index
            and time_index is self.lazy_time_index
        ):
            return self
        return replace(
            self,
            directory=directory,
            log=replace(self.log, directory=directory),
            lazy_offset_index=offset_index,
            lazy_time_index=time_index,
            txn_index=replace(self.txn_index, directory=directory),
        )

    def with_log(self, step: Step[RecordFile]) -> Step[Self]:
        """Take over what the log did; changed bytes set the time of modification."""
        has_changed = step.after.image != self.log.image
        modified = self.now_ms if has_changed else self.modified_ms
        after = replace(self, log=step.after, modified_ms=modified)
        return Step(after.sees(step.after.directory), step.outcome)

    def with_lazy_offset_index(self, step: Step[LazyIndex]) -> Step[Self]:
        """Take over what the wrapper of the offset index did."""
        is_same = step.after is self.lazy_offset_index
        after = self if is_same else replace(self, lazy_offset_index=step.after)
        return Step(after.sees(step.after.directory), step.outcome)

    def with_lazy_time_index(self, step: Step[LazyIndex]) -> Step[Self]:
        """Take over what the wrapper of the time index did."""
        is_same = step.after is self.lazy_time_index
        after = self if is_same else replace(self, lazy_time_index=step.after)
        return Step(after.sees(step.after.directory), step.outcome)

    def with_txn_index(self, step: Step[TransactionIndex]) -> Step[Self]:
        """Take over what the transaction index did."""
        after = replace(self, txn_index=step.after)
        return Step(after.sees(step.after.directory), step.outcome)

    def on_offset_index(self, operation: Callable[[OffsetIndex], Step[OffsetIndex]]) -> Step[Self]:
        """Load the offset index, and let it do this."""
        loaded = self.with_lazy_offset_index(self.lazy_offset_index.get())
        index = loaded.after.offset_index
        if index is None:
            return loaded
        step = operation(index)
        lazy = loaded.after.lazy_offset_index.holds(step.after)
        return loaded.after.with_lazy_offset_index(Step(lazy, step.outcome))

    def on_time_index(self, operation: Callable[[TimeIndex], Step[TimeIndex]]) -> Step[Self]:
        """Load the time index, and let it do this."""
        loaded = self.with_lazy_time_index(self.lazy_time_index.get())
        index = loaded.after.time_index
        if index is None:
            return loaded
        step = operation(index)
        lazy = loaded.after.lazy_time_index.holds(step.after)
        return loaded.after.with_lazy_time_index(Step(lazy, step.outcome))

    def ask_offset_index(self, question: Callable[[OffsetIndex], object]) -> Step[Self]:
        """Load the offset index, and return its answer."""
        return self.on_offset_index(lambda index: Step(index, question(index)))

    def ask_time_index(self, question: Callable[[TimeIndex], object]) -> Step[Self]:
        """Load the time index, and return its answer."""
        return self.on_time_index(lambda index: Step(index, question(index)))

    def indexed_place(self, offset: int) -> Step[Self]:
        """Return the entry from which a search for the offset begins.

        In segproof one that points outside of the log raises the corrupt-index error.
        """
        step = self.ask_offset_index(lambda index: index.lookup(offset))
        found, is_refused = step.outcome, self.profile.entry_outside_is_corrupt
        is_outside = isinstance(found, OffsetPosition) and not 0 <= found.position <= self.size
        return Step(step.after, CORRUPT_INDEX) if is_refused and is_outside else step

    def load_maximum(self) -> Step[Self]:
        """Return the largest timestamp with its offset; unknown, the last time entry (SEG-49)."""
        if self.max_pair is not None:
            return Step(self, self.max_pair)
        step = self.ask_time_index(lambda index: index.last_entry)
        if not isinstance(step.outcome, TimestampOffset):
            return step
        return Step(replace(step.after, max_pair=step.outcome), step.outcome)

    def with_indexes(self) -> Step[Self]:
        """Load both indexes at once, in segproof; elsewhere each is loaded where it is needed."""
        if not self.profile.checks_before_changing:
            return Step(self)
        return run(
            self,
            lambda one: one.ask_offset_index(lambda index: None),
            lambda one: one.ask_time_index(lambda index: None),
        )

    def with_indexes_for_append(self) -> Step[Self]:
        """Load what indexing will need, in segproof; elsewhere it is loaded where it is needed."""
        if not self.profile.checks_before_changing:
            return Step(self)
        return run(self, lambda one: one.with_indexes(), lambda one: one.load_maximum())

    def with_maximum(self, timestamp: int, offset: int) -> Self:
        """Return the state that knows of this timestamp, if it is larger (SEG-8)."""
        if self.max_pair is not None and timestamp <= self.max_pair.timestamp:
            return self
        pair = TimestampOffset(timestamp, offset)
        is_unknown = self.profile.unknown_maximum_is_a_value and pair == (-1, -1)
        return replace(self, max_pair=None if is_unknown else pair)

    def enter(self, offset: int, position: int) -> Step[Self]:
        """Add an entry to the offset index, and the largest timestamp's if it grew (SEG-9)."""
        return run(
            self,
            lambda one: one.on_offset_index(lambda index: index.append(offset, position)),
            lambda one: one.write_maximum(skip_full_check=False),
        )

    def can_hold(self, offset: int) -> bool:
        """Return whether an index can hold the distance of the offset from the base."""
        distance = wrap64(offset - self.base_offset)
        return distance <= INT32_MAX and (distance >= 0 or not self.profile.check_relative_offset)

    def ensure_offset_in_range(self, offset: int) -> Step[Self]:
        """Raise the segment-overflow error for an offset too far from the base (SEG-2, SEG-27)."""
        step = self.ask_offset_index(lambda index: self.can_hold(offset))
        if step.outcome is not False:
            return step
        if not self.profile.check_relative_offset:
            return Step(step.after, INVALID_ARGUMENT)
        named = step.after.load_maximum() if self.profile.overflow_names_maximum else step
        failed = isinstance(named.outcome, Raised)
        return named if failed else Step(named.after, SEGMENT_OVERFLOW)

    def write_maximum(self, skip_full_check: bool = True) -> Step[Self]:
        """Add the time entry of the largest timestamp, if it grew since the last (SEG-9)."""
        loaded = self.load_maximum()
        pair = loaded.after.max_pair
        if pair is None:
            return loaded
        return loaded.after.on_time_index(lambda index: index.maybe_append(*pair, skip_full_check))

    def enter_transaction(self, completed_txn: CompletedTxn, last_stable_offset: int) -> Step[Self]:
        """Add an entry to the transaction index, if the transaction was aborted."""
        if not completed_txn.is_aborted:
            return Step(self)
        producer_id, first_offset, last_offset, _ = completed_txn
        entry = AbortedTxn(0, producer_id, first_offset, last_offset, last_stable_offset)
        return self.with_txn_index(self.txn_index.append(entry))

    def unless_refused(self, step: Step[Self]) -> Step[Self]:
        """Return the step; in segproof one that raised has loaded indexes, and nothing else."""
        if not (self.profile.checks_before_changing and isinstance(step.outcome, Raised)):
            return step
        after = self
        if step.after.lazy_offset_index.is_loaded:
            after = after.with_lazy_offset_index(after.lazy_offset_index.get()).after
        if step.after.lazy_time_index.is_loaded:
            after = after.with_lazy_time_index(after.lazy_time_index.get()).after
        return Step(after, step.outcome)

    # --- the files as files --------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, str, str, str]:
        """The names of the log, the offset, time and transaction index."""
        lazy = self.lazy_offset_index, self.lazy_time_index
        return self.log.name, lazy[0].name, lazy[1].name, self.txn_index.name

    def has_suffix(self, suffix: str) -> bool:
        """Return whether the names of all four files end with `suffix`."""
        return all(name.endswith(suffix) for name in self.names)

    @property
    def last_modified(self) -> int:
        """When the bytes of the log last changed, in ms since 1970; 0 if the log is gone."""
        return self.modified_ms if self.log.name in self.directory else 0

    def set_last_modified(self, ms: int) -> Step[Self]:
        """Set the time of modification of the log and both indexes, which must all be there."""
        log, *indexes = self.names[:3]
        if log not in self.directory:
            return Step(self, FILE_NOT_FOUND if self.profile.dating_needs_files else None)
        missing = any(name not in self.directory for name in indexes)
        if missing and self.profile.checks_before_changing:
            return Step(self, FILE_NOT_FOUND)
        is_refused = missing and self.profile.dating_needs_files
        return Step(replace(self, modified_ms=ms), FILE_NOT_FOUND if is_refused else None)

    def flush(self) -> Step[Self]:
        """Make all four files durable; indexes that are not loaded are loaded (SEG-48)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        return run(
            self,
            lambda one: one.with_log(one.log.flush()),
            lambda one: one.on_offset_index(lambda index: index.flush()),
            lambda one: one.on_time_index(lambda index: index.flush()),
            lambda one: one.with_txn_index(one.txn_index.flush()),
        )

    def close(self) -> Step[Self]:
        """Write the last time entry, trim and close every part; since 4.4 only close them (SEG-44).

        From 4.0.1 to 4.3 it stops at the first part that fails, and raises its error; older ones
        close the others and raise nothing.
        """
        if self.is_refused:
            return Step(self)
        is_known = self.max_pair is not None or self.profile.close_writes_unknown_maximum
        is_written = self.profile.close_writes and is_known
        after = self.write_maximum().after if is_written else self
        raises = self.profile.segment_close_raises
        step = (run if raises else try_all)(
            after,
            lambda one: one.with_lazy_offset_index(one.lazy_offset_index.close()),
            lambda one: one.with_lazy_time_index(one.lazy_time_index.close()),
            lambda one: one.with_log(one.log.close()),
            lambda one: one.with_txn_index(one.txn_index.close()),
        )
        return Step(replace(step.after, is_closed=True), step.outcome if raises else None)

    def close_handlers(self) -> Step[Self]:
        """Give every file up as it is (SEG-45)."""
        step = try_all(
            self,
            lambda one: one.with_lazy_offset_index(one.lazy_offset_index.close_handler()),
            lambda one: one.with_lazy_time_index(one.lazy_time_index.close_handler()),
            lambda one: one.with_log(Step(replace(one.log, is_open=False))),
            lambda one: one.with_txn_index(one.txn_index.close()),
        )
        return Step(replace(step.after, is_closed=True))

    def change_file_suffixes(self, old_suffix: str, new_suffix: str) -> Step[Self]:
        """Rename log, offset, time and transaction index, in this order (SEG-46).

        A name that does not end with the old suffix raises invalid-argument and ends it.
        """
        renames = (
            type(self)._log_renamed,
            type(self)._offset_index_renamed,
            type(self)._time_index_renamed,
            type(self)._txn_index_renamed,
        )
        step = Step(self)
        for name, rename in zip(self.names, renames, strict=True):
            if isinstance(step.outcome, Raised):
                break
            if not name.endswith(old_suffix):
                step = Step(step.after, INVALID_ARGUMENT)
            else:
                step = rename(step.after, name.removesuffix(old_suffix) + new_suffix)
        return self.unless_refused(step)

    def _log_renamed(self, name: str) -> Step[Self]:
        is_there = self.log.name in self.directory
        directory = self.directory.rename(self.log.name, name)
        renamed = replace(self, log=replace(self.log, name=name)).sees(directory)
        return Step(renamed, None if is_there else FILE_NOT_FOUND)

    def _offset_index_renamed(self, name: str) -> Step[Self]:
        return self.with_lazy_offset_index(self.lazy_offset_index.rename_to(name))

    def _time_index_renamed(self, name: str) -> Step[Self]:
        return self.with_lazy_time_index(self.lazy_time_index.rename_to(name))

    def _txn_index_renamed(self, name: str) -> Step[Self]:
        return self.with_txn_index(self.txn_index.rename_to(name))

    def delete_if_exists(self) -> Step[Self]:
        """Remove all four files; a missing one is no error (SEG-47)."""
        step = try_all(
            self,
            lambda one: Step(
                replace(one, log=replace(one.log, is_open=False)).sees(
                    one.directory.remove(one.log.name)
                )
            ),
            lambda one: one.with_lazy_offset_index(one.lazy_offset_index.delete_if_exists()),
            lambda one: one.with_lazy_time_index(one.lazy_time_index.delete_if_exists()),
            lambda one: one.with_txn_index(one.txn_index.delete_if_exists()),
        )
        return Step(replace(step.after, is_closed=True), step.outcome)


def run(first: Any, *operations: Callable[[Any], Step[Any]]) -> Step[Any]:
    """Do one operation after the other, each on what the one before left, up to the first error."""
    after, outcome = first, None
    for operation in operations:
        step = operation(after)
        after = step.after
        if isinstance(step.outcome, Raised):
            outcome = step.outcome
            break
    return Step(after, outcome)


def try_all(first: Any, *operations: Callable[[Any], Step[Any]]) -> Step[Any]:
    """Do every operation, and return the first error."""
    after, outcome = first, None
    for operation in operations:
        step = operation(after)
        after = step.after
        if outcome is None and isinstance(step.outcome, Raised):
            outcome = step.outcome
    return Step(after, outcome)
