# SPDX-License-Identifier: Apache-2.0
"""Planted defects of segments."""

from typing import Any

from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.segments.log_segment import FetchDataInfo, LogSegment, RollParams
from segproof_harness.canaries.register import canary


@canary("K-02", "log-segment", "SEG-32")
class K02LogSegment(LogSegment):
    """A truncation does not give trimmed indexes their full size again."""

    def truncate_to(self, offset: int) -> int:
        """Cut, and leave trimmed indexes trimmed."""
        self._check_open()
        before = self.offset_index.length, self.time_index.length
        removed = super().truncate_to(offset)
        for index, length in zip((self.offset_index, self.time_index), before, strict=True):
            index.resize(max(length, index.entries * index.ENTRY_SIZE))
        return removed


@canary("K-10", "log-segment", "SEG-36")
class K10LogSegment(LogSegment):
    """The age of a segment is counted by the wall clock, whatever the timestamps say."""

    def time_waited_for_roll(self, now: int, message_timestamp: int) -> int:
        """Return how long ago the segment was made."""
        self._check_open()
        return now - self.created_ms


@canary("K-11a", "log-segment", "SEG-33")
class K11aLogSegment(LogSegment):
    """The first timestamp outlives a truncation to nothing."""

    def truncate_to(self, offset: int) -> int:
        """Cut, and keep the timestamp of a batch that is gone."""
        before = self.rolling_based_timestamp
        removed = super().truncate_to(offset)
        self.rolling_based_timestamp = before
        return removed


@canary("K-11b", "log-segment", "SEG-33")
class K11bLogSegment(LogSegment):
    """The time of creation outlives a truncation to nothing."""

    def truncate_to(self, offset: int) -> int:
        """Cut, and stay as old as before."""
        before = self.created_ms
        removed = super().truncate_to(offset)
        self.created_ms = before
        return removed


@canary("K-13", "log-segment", "SEG-22", "SEG-25")
class K13LogSegment(LogSegment):
    """Recovery enters first offsets, though appends enter last ones."""

    def recover(self, *arguments: Any, **named: Any) -> int:
        """Recover with the other key."""
        before, self._is_first_offset_key = self._is_first_offset_key, True
        try:
            return super().recover(*arguments, **named)
        finally:
            self._is_first_offset_key = before


@canary("K-16", "log-segment", "SEG-37")
class K16LogSegment(LogSegment):
    """The size of what comes does not count when a segment is rolled."""

    def should_roll(self, roll_params: RollParams) -> bool:
        """Return whether the segment is too large already, or old, or full."""
        return super().should_roll(roll_params._replace(messages_size=0))


class _NoLastEntry(LogSegment):
    """A segment that can forget to write the last time entry."""

    def _forgetting(self, operation: Any) -> Any:
        pair = self._max_pair
        if pair is not None:
            self._max_pair = self.time_index.last_entry
        try:
            return operation()
        finally:
            self._max_pair = pair


@canary("K-42a", "log-segment", "PROD-15")
class K42aLogSegment(LogSegment):
    """A recovery moves the end of the producer state by batches of producers only."""

    def recover(
        self,
        producer_state_manager: ProducerStateManager | None = None,
        leader_epoch_cache: LeaderEpochFileCache | None = None,
        **named: Any,
    ) -> int:
        """Recover, and let the producer state end behind the last batch of a producer."""
        known = producer_state_manager
        end = None if known is None else known.map_end_offset
        removed = super().recover(producer_state_manager, leader_epoch_cache, **named)
        if known is not None and end is not None:
            told = [one.last_offset + 1 for one in self.log.batches() if one.producer_id > -1]
            known.update_map_end_offset([end, *told][-1])
        return removed


@canary("K-56a", "log-segment", "SEG-38")
class K56aLogSegment(_NoLastEntry):
    """No last time entry when the segment is rolled."""

    def on_become_inactive_segment(self) -> None:
        """Cut all files behind what they hold."""
        self._check_open()
        self._forgetting(super().on_become_inactive_segment)


@canary("K-56b", "log-segment", "SEG-44")
class K56bLogSegment(_NoLastEntry):
    """No last time entry when the segment is closed."""

    def close(self) -> None:
        """Cut and close all files."""
        self._forgetting(super().close)


@canary("K-56c", "log-segment", "SEG-23")
class K56cLogSegment(LogSegment):
    """No last time entry when the segment was recovered."""

    def recover(self, *arguments: Any, **named: Any) -> int:
        """Recover, and take the last time entry back if it stands for no offset entry."""
        removed = super().recover(*arguments, **named)
        if self.time_index.entries > self.offset_index.entries:
            self.time_index.truncate_to(self.time_index.last_entry.offset)
            self.time_index.trim_to_valid_size()
        return removed


@canary("K-59", "log-segment", "SEG-15")
class K59LogSegment(LogSegment):
    """A batch that begins below the start offset is not read."""

    def read(self, start_offset: int, *arguments: Any, **named: Any) -> FetchDataInfo | None:
        """Return records from the offset on, if a batch begins there or behind it."""
        found = super().read(start_offset, *arguments, **named)
        if found is not None and found.fetch_offset_metadata.message_offset < start_offset:
            return None
        return found


class _OneLess:
    """Options whose interval is one byte less, so that > compares as >= would."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self.index_interval_bytes = config.index_interval_bytes - 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)


@canary("K-68", "log-segment", "SEG-4")
class K68LogSegment(LogSegment):
    """An append compares with the interval by >=, not by >."""

    def append(self, *arguments: Any, **named: Any) -> None:
        """Append, and index a batch once as many bytes as the interval lie before it."""
        before: Any = self.config
        self.config: Any = _OneLess(before)
        try:
            super().append(*arguments, **named)
        finally:
            self.config = before
