# SPDX-License-Identifier: Apache-2.0
"""When a segment ends and the next one begins: its age, its fullness, its largest timestamp.

Mirrors: the rolling of impl/segproof/kafka/log_segment.py.
Upstream: Kafka, LogSegment and RollParams (since 1.1.1).
Laws: SEG-36 to SEG-38, SEG-40.
Used by: log_segment.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

from segproof_model.kafka.segment_parts import UNMAPPED, SegmentParts, run
from segproof_model.kafka.time_index import TimestampOffset
from segproof_model.language.integers import INT64_MAX, wrap64
from segproof_model.language.outcomes import Raised, Step
from segproof_model.values import replace


class RollParams(NamedTuple):
    """What is about to be appended, and the limits."""

    max_segment_ms: int
    max_segment_bytes: int
    max_timestamp_in_messages: int
    max_offset_in_messages: int
    messages_size: int
    now: int


@dataclass(frozen=True, slots=True)
class RollingSegment(SegmentParts):
    """What a segment answers to whoever decides about its end."""

    # --- the largest timestamp -----------------------------------------------------------------

    @property
    def max_timestamp_so_far(self) -> Step[Self]:
        """The largest timestamp of an appended batch; -1 if there is none (SEG-8, SEG-49)."""
        return self._of_maximum(lambda pair: pair.timestamp)

    @property
    def offset_of_max_timestamp_so_far(self) -> Step[Self]:
        """The offset that was appended with the largest timestamp."""
        return self._of_maximum(lambda pair: pair.offset)

    @property
    def largest_timestamp(self) -> Step[Self]:
        """The largest timestamp, or if it is negative the log's time of modification (SEG-40)."""
        return self._of_maximum(
            lambda pair: pair.timestamp if pair.timestamp >= 0 else self.last_modified
        )

    @property
    def largest_record_timestamp(self) -> Step[Self]:
        """The largest timestamp, or None if it is negative."""
        return self._of_maximum(lambda pair: pair.timestamp if pair.timestamp >= 0 else None)

    def _of_maximum(self, answer: Callable[[TimestampOffset], int | None]) -> Step[Self]:
        if self.is_refused:
            return Step(self, UNMAPPED)
        step = self.load_maximum()
        pair = step.after.max_pair
        return step if pair is None else Step(step.after, answer(pair))

    # --- its age -------------------------------------------------------------------------------

    def _with_first_timestamp(self) -> Step[Self]:
        """Take the first batch's largest timestamp for the age, unless one is known."""
        if self.rolling_based_timestamp is not None:
            return Step(self)
        scan = self.log.batches()
        first = scan.batches[0].max_timestamp if scan.batches else scan.error
        if first is None or isinstance(first, Raised):
            return Step(self, first)
        return Step(replace(self, rolling_based_timestamp=first))

    def time_waited_for_roll(self, now: int, message_timestamp: int) -> Step[Self]:
        """Return the age in ms that a message with this timestamp gives the segment (SEG-36)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        step = self._with_first_timestamp()
        if isinstance(step.outcome, Raised):
            return step
        first = step.after.rolling_based_timestamp
        is_known = first is not None and first >= 0
        waited = message_timestamp - (first or 0) if is_known else now - self.created_ms
        return Step(step.after, wrap64(waited) if self.profile.age_wraps else waited)

    def get_first_batch_timestamp(self) -> Step[Self]:
        """Return the timestamp that the age is counted from, or the largest 64-bit integer."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        step = self._with_first_timestamp()
        if isinstance(step.outcome, Raised):
            return step
        first = step.after.rolling_based_timestamp
        return Step(step.after, INT64_MAX if first is None or first < 0 else first)

    # --- the decision --------------------------------------------------------------------------

    def should_roll(self, roll_params: RollParams) -> Step[Self]:
        """Return whether what comes next belongs into a new segment (SEG-37).

        The indexes are loaded only if neither size nor age decides.
        """
        waited = self.time_waited_for_roll(roll_params.now, roll_params.max_timestamp_in_messages)
        if isinstance(waited.outcome, Raised) or not isinstance(waited.outcome, int):
            return waited
        after = waited.after
        limit_ms = roll_params.max_segment_ms - self.roll_jitter_ms
        is_old = waited.outcome > (wrap64(limit_ms) if self.profile.age_wraps else limit_ms)
        is_large = self.size > roll_params.max_segment_bytes - roll_params.messages_size
        if is_large or (self.size > 0 and is_old):
            return Step(after, True)
        step = after.ask_offset_index(lambda index: index.is_full)
        if step.outcome is False:
            step = step.after.ask_time_index(lambda index: index.is_full)
        if step.outcome is not False:
            return step
        return Step(step.after, not self.can_hold(roll_params.max_offset_in_messages))

    def on_become_inactive_segment(self) -> Step[Self]:
        """Write the last time entry, and cut what no entry and no batch uses (SEG-38)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        if not self.profile.inactive_segment_is_trimmed:
            return self.write_maximum()
        step = run(self, lambda one: one.write_maximum(), lambda one: one.trim_to_what_is_used())
        return self.unless_refused(step)

    def trim_to_what_is_used(self) -> Step[Self]:
        """Cut what no entry and no batch uses."""
        return run(
            self,
            lambda one: one.on_offset_index(lambda index: index.trim_to_valid_size()),
            lambda one: one.on_time_index(lambda index: index.trim_to_valid_size()),
            lambda one: one.with_log(one.log.trim()),
        )
