# SPDX-License-Identifier: Apache-2.0
"""Reading a partition's log: by offset and by timestamp, up to what a reader may see.

Mirrors: the reading of impl/segproof/kafka/partition_log.py.
Upstream: Kafka, UnifiedLog and LocalLog (4.3.1).
Laws: LOG-5 to LOG-8, LOG-15, LOG-16.
Not covered: remote storage; up to 2.3 a read up to an offset of the caller's.
Used by: partition_log.
"""

from dataclasses import dataclass
from typing import Literal, Self

from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.log_segment import FetchDataInfo, LogSegment
from segproof_model.kafka.offset_index import OffsetPosition
from segproof_model.kafka.partition_parts import KAFKA_ERROR, UNMAPPED, PartitionParts
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.kafka.record_file import LogOffsetPosition, TimestampAndOffset
from segproof_model.kafka.segment_parts import INVALID_ARGUMENT
from segproof_model.kafka.time_index import TimestampOffset
from segproof_model.kafka.transaction_index import AbortedTxn, TxnIndexSearchResult
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.values import replace

Isolation = Literal["log_end", "high_watermark", "txn_committed"]
OUT_OF_RANGE = Raised(ErrorKind.OUT_OF_RANGE)
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
NO_TIMESTAMP = -1


@dataclass(frozen=True, slots=True)
class ReadingLog(PartitionParts):
    """What readers ask a log."""

    def read(
        self,
        start_offset: int,
        max_length: int,
        isolation: Isolation = "log_end",
        min_one_message: bool = True,
    ) -> Step[Self]:
        """Return the batches from the one that reaches the offset on (LOG-5 to LOG-8).

        Not beyond the end of the log, the high watermark or the last stable offset. At least one
        batch, even if it is larger than `max_length` bytes, if `min_one_message`.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        with_txns = isolation == "txn_committed"
        is_old = not self.profile.read_at_bound_is_empty
        if is_old and start_offset == self.log_end_offset:
            return Step(self, FetchDataInfo(self.log_end, None, False, () if with_txns else None))
        if start_offset < self.log_start_offset:
            return Step(self, OUT_OF_RANGE)
        if not self.profile.bound_is_placed_first and self._lies_outside(start_offset):
            return Step(self, OUT_OF_RANGE)
        if not self.profile.log_knows_high_watermark:
            below = self._offset_bound(isolation)
            return self.read_up_to(
                start_offset, max_length, self.log_end, min_one_message, with_txns, below
            )
        bounded = self._bound(isolation)
        bound = bounded.outcome
        if not isinstance(bound, LogOffsetMetadata):
            return bounded
        return bounded.after.read_up_to(start_offset, max_length, bound, min_one_message, with_txns)

    def _lies_outside(self, offset: int) -> bool:
        """Whether an offset lies before all segments, or behind the end."""
        return offset > self.log_end_offset or self.log_segments.floor_segment(offset) is None

    def _offset_bound(self, isolation: Isolation) -> int | None:
        """Return the offset that a replica lets a reader come up to; None: the log's end."""
        if isolation == "log_end":
            return None
        return self.high_watermark if isolation == "high_watermark" else self.last_stable_offset

    def _bound(self, isolation: Isolation) -> Step[Self]:
        """Return the offset that a reader does not pass, with its place."""
        if isolation == "log_end":
            return Step(self, self.log_end)
        if self.is_found_closed:
            return Step(self, KAFKA_ERROR)
        unstable = self.first_unstable
        is_bound = unstable is not None and unstable.message_offset < self.high_watermark
        is_needed = isolation == "high_watermark" or not is_bound
        step: Step[Self] = Step(self)
        if is_needed or self.profile.stable_bound_places_high_watermark:
            step = self._placed_high_watermark()
        after, unstable = step.after, step.after.first_unstable
        is_bound = unstable is not None and unstable.message_offset < after.high_watermark
        if isinstance(step.outcome, Raised) or isolation == "high_watermark" or not is_bound:
            return step
        assert unstable is not None
        if unstable.segment_base_offset >= 0:
            return Step(after, unstable)
        step = after.placed(unstable.message_offset)
        if isinstance(step.outcome, LogOffsetMetadata) and self.profile.looked_up_bound_moves:
            return Step(replace(step.after, first_unstable=step.outcome), step.outcome)
        return step

    def _placed_high_watermark(self) -> Step[Self]:
        """Return the high watermark with its place, which is looked up unless it is known."""
        if self.high_watermark_metadata.segment_base_offset >= 0:
            return Step(self, self.high_watermark_metadata)
        step = self.placed(self.high_watermark)
        place = step.outcome
        if not isinstance(place, LogOffsetMetadata) or not self.profile.looked_up_bound_moves:
            return step
        moved = step.after.with_high_watermark(place)
        failed = isinstance(moved.outcome, Raised)
        return Step(moved.after, moved.outcome if failed else place)

    def placed(self, offset: int) -> Step[Self]:
        """Return an offset with its place; alone if it is out of range.

        In releases whose search answers base offsets, it becomes that of its batch.
        """
        step = self.read_up_to(offset, 1, self.log_end, False, False)
        if step.outcome == OUT_OF_RANGE and not self.profile.bound_outside_is_refused:
            return Step(step.after, LogOffsetMetadata(offset))
        found = step.outcome
        return Step(
            step.after, found.fetch_offset_metadata if isinstance(found, FetchDataInfo) else found
        )

    def with_high_watermark(self, metadata: LogOffsetMetadata) -> Step[Self]:
        """Set the high watermark; completed transactions below it are no longer unstable."""
        if metadata.message_offset < 0 and self.profile.log_knows_high_watermark:
            return Step(self, INVALID_ARGUMENT)
        step = replace(self, high_watermark_metadata=metadata).on_producers(
            lambda one: one.on_high_watermark_updated(metadata.message_offset)
        )
        return step.after.with_first_unstable()

    def with_first_unstable(self) -> Step[Self]:
        """Look anew at where the earliest transaction begins that is open or not replicated.

        The place of one that was begun since the producers were loaded is known.
        """
        if self.is_found_closed:
            return Step(self, KAFKA_ERROR)
        offset = self.producer_state_manager.first_unstable_offset()
        if offset is None:
            return Step(replace(self, first_unstable=None))
        bound = max(offset, self.log_start_offset)
        if not self.profile.looked_up_bound_moves:
            return Step(replace(self, first_unstable=LogOffsetMetadata(bound)))
        for known in self.txn_places:
            if known.message_offset == bound == offset:
                return Step(replace(self, first_unstable=known))
        knows = self.profile.log_knows_high_watermark
        step = self.placed(bound) if knows else self._placed_in_floor(bound)
        if not isinstance(step.outcome, LogOffsetMetadata):
            return step
        return Step(replace(step.after, first_unstable=step.outcome))

    def _placed_in_floor(self, offset: int) -> Step[Self]:
        """Return an offset with its place in the segment that may hold it.

        Where there is none, older releases trip over the null.
        """
        floor = self.log_segments.floor_segment(offset)
        if floor is None:
            return Step(self, UNMAPPED)
        base = floor.base_offset
        step = self.on_segment(base, lambda one: one.translate_offset(offset))
        if isinstance(step.outcome, Raised):
            return step
        if not isinstance(step.outcome, LogOffsetPosition):
            return Step(step.after, UNMAPPED)
        return Step(step.after, LogOffsetMetadata(offset, base, step.outcome.position))

    def read_up_to(
        self,
        start_offset: int,
        max_length: int,
        bound: LogOffsetMetadata,
        min_one_message: bool,
        with_txns: bool,
        below: int | None = None,
    ) -> Step[Self]:
        """Read up to the bound, from the first segment that has something (LOG-6, LOG-7).

        And no batch that reaches the offset `below`, which releases are given whose log does not
        know the high watermark.
        """
        floor = self.log_segments.floor_segment(start_offset)
        if floor is None or self._lies_outside(start_offset):
            return Step(self, OUT_OF_RANGE)
        aborted = () if with_txns else None
        is_empty = self.profile.read_at_bound_is_empty or start_offset == self.log_end_offset
        if start_offset == bound.message_offset and is_empty:
            return Step(self, FetchDataInfo(bound, None, False, aborted))
        if start_offset > bound.message_offset:
            step = self.read_up_to(start_offset, 1, self.log_end, False, False)
            if not isinstance(step.outcome, FetchDataInfo):
                return step
            place = step.outcome.fetch_offset_metadata
            return Step(step.after, FetchDataInfo(place, None, False, aborted))
        after = self
        for segment in (floor, *self.log_segments.higher_segments(floor.base_offset)):
            position = _largest_position(segment, bound)
            step = after.on_segment(
                segment.base_offset,
                lambda one, up_to=position: _read_below(  # type: ignore[misc]
                    one, start_offset, max_length, up_to, min_one_message, below
                ),
            )
            after = step.after
            if isinstance(step.outcome, FetchDataInfo) and with_txns:
                return after._with_aborted(start_offset, segment.base_offset, step.outcome)
            if step.outcome is not None:
                return step
        return Step(after, FetchDataInfo(self.log_end, None))

    def _with_aborted(
        self, start_offset: int, base_offset: int, found: FetchDataInfo
    ) -> Step[Self]:
        """Add the aborted transactions to what was read of a segment (LOG-8)."""
        place = found.fetch_offset_metadata
        start = OffsetPosition(place.message_offset, place.relative_position_in_segment)
        size = 0 if found.records is None else found.records.size
        step = self.on_segment(base_offset, lambda one: one.fetch_upper_bound_offset(start, size))
        upper = step.outcome
        if isinstance(upper, Raised):
            return step
        if not isinstance(upper, int):
            higher = self.log_segments.higher_segment(base_offset)
            upper = self.log_end_offset if higher is None else higher.base_offset
        aborted = step.after._aborted(start_offset, upper, base_offset)
        if isinstance(aborted, Raised):
            return Step(step.after, aborted)
        return Step(step.after, replace(found, aborted_transactions=tuple(aborted)))

    def _aborted(
        self, start_offset: int, upper_bound_offset: int, base_offset: int
    ) -> list[AbortedTxn] | Raised:
        """Return the aborted transactions in a segment and behind, until it says it is enough."""
        found: list[AbortedTxn] = []
        for segment in self.log_segments:
            if segment.base_offset < base_offset:
                continue
            result = segment.collect_aborted_txns(start_offset, upper_bound_offset)
            if not isinstance(result, TxnIndexSearchResult):
                return result
            found += result.aborted_transactions
            if result.is_complete:
                break
        return found

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> list[AbortedTxn] | Raised:
        """Return the aborted transactions that meet [start, upper) (LOG-8).

        The search begins with the segment of the start; in releases that say so, it answers what
        ended since the log start.
        """
        if self.is_refused:
            return UNMAPPED
        floor = self.log_segments.floor_segment(start_offset)
        if floor is None:
            return []
        since = self.log_start_offset if self.profile.aborted_since_log_start else start_offset
        return self._aborted(since, upper_bound_offset, floor.base_offset)

    # --- by timestamp --------------------------------------------------------------------------

    def fetch_offset_by_timestamp(self, target_timestamp: int) -> Step[Self]:
        """Return the first record at or after the timestamp, or None (LOG-15, LOG-16).

        -1: the log's end, -2 and -4: its start, -3: the first record with the largest timestamp.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        epochs, known = self.leader_epoch_cache, self.profile.special_timestamps
        has_epoch = self.profile.found_time_has_epoch
        if -known <= target_timestamp and target_timestamp in (EARLIEST, EARLIEST_LOCAL):
            first = epochs.earliest_entry()
            is_known = first is not None and first.start_offset <= self.log_start_offset
            epoch = first.epoch if first is not None and is_known and has_epoch else None
            return Step(self, TimestampAndOffset(NO_TIMESTAMP, self.log_start_offset, epoch))
        if target_timestamp == LATEST:
            latest = epochs.latest_epoch() if has_epoch else None
            return Step(self, TimestampAndOffset(NO_TIMESTAMP, self.log_end_offset, latest))
        if -known <= target_timestamp == MAX_TIMESTAMP:
            return self._with_largest_timestamp()
        return self._search_by_timestamp(target_timestamp)

    def _search_by_timestamp(self, target_timestamp: int) -> Step[Self]:
        """Search the first segment whose largest timestamp is not below, and no other (LOG-15)."""
        is_left = self.profile.cut_leaves_time_search
        after, start = self, self.searched_from if is_left else self.log_start_offset
        for base in self.log_segments.base_offsets():
            step = after.on_segment(base, lambda one: one.largest_timestamp)
            after = step.after
            if not isinstance(step.outcome, int):
                return step
            if step.outcome >= target_timestamp:
                return after.on_segment(
                    base, lambda one: one.find_offset_by_timestamp(target_timestamp, start)
                )
        return Step(after)

    def _with_largest_timestamp(self) -> Step[Self]:
        """Return the first record with the largest timestamp (LOG-16).

        In releases that do not search it: what the segment remembers, with the latest epoch.
        """
        step = self.on_segments(self.log_segments, lambda one: one.max_timestamp_so_far)
        if isinstance(step.outcome, Raised):
            return step
        after = step.after
        best = max(after.log_segments, key=_known_maximum)
        pair = best.max_pair
        assert pair is not None
        if not self.profile.largest_timestamp_is_searched:
            epoch = after.leader_epoch_cache.latest_epoch()
            return Step(after, TimestampAndOffset(pair.timestamp, pair.offset, epoch))
        step = after.on_segment(
            best.base_offset,
            lambda one: one.ask_offset_index(lambda index: index.lookup(pair.offset)),
        )
        if not isinstance(step.outcome, OffsetPosition):
            return step
        scan = best.log.batches(step.outcome.position)
        for batch in scan.batches:
            if batch.max_timestamp == pair.timestamp:
                return Step(step.after, _first_at(batch, pair))
        return Step(step.after, scan.error)


def _largest_position(segment: LogSegment, bound: LogOffsetMetadata) -> int | None:
    """Return up to which byte of a segment may be read, exclusive; None if that is not known."""
    if segment.base_offset < bound.segment_base_offset:
        return segment.size
    if segment.base_offset == bound.segment_base_offset:
        return bound.relative_position_in_segment
    return None if segment.profile.unplaced_bound_reads_nothing else segment.size


def _read_below(
    segment: LogSegment,
    start_offset: int,
    max_length: int,
    max_position: int | None,
    min_one_message: bool,
    below: int | None,
) -> Step[LogSegment]:
    """Read a segment up to a position and to the batch that reaches an offset, both exclusive."""
    if below is None or max_position is None:
        return segment.read(start_offset, max_length, max_position, min_one_message)
    step = segment.read(start_offset, max_length, None, min_one_message)
    found = step.outcome
    is_nothing = below < start_offset or (max_length == 0 and not min_one_message)
    if not isinstance(found, FetchDataInfo) or is_nothing:
        return step
    start = found.fetch_offset_metadata.relative_position_in_segment
    step = step.after.translate_offset(below, start)
    if isinstance(step.outcome, Raised):
        return step
    end = step.outcome.position if isinstance(step.outcome, LogOffsetPosition) else segment.size
    return step.after.read(start_offset, max_length, min(max_position, end), min_one_message)


def _known_maximum(segment: LogSegment) -> int:
    assert segment.max_pair is not None
    return segment.max_pair.timestamp


def _first_at(batch: RecordBatch, pair: TimestampOffset) -> TimestampAndOffset | None | Raised:
    """Return the first record of the batch with the timestamp."""
    found = batch.times_until_error(batch.profile.largest_timestamp_is_streamed)
    epoch = batch.partition_leader_epoch
    if isinstance(epoch, Raised):
        return epoch
    for timestamp, offset in found.times:
        if timestamp == pair.timestamp and batch.magic > 0:
            return TimestampAndOffset(timestamp, offset, None if epoch < 0 else epoch)
    return found.error
