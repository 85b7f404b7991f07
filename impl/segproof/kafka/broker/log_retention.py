# SPDX-License-Identifier: Apache-2.0
"""Which of the oldest segments retention removes: for time, for size, or below the log start.

Upstream: Kafka 4.3.1: UnifiedLog.deleteOldSegments, deletableSegments.
Laws: LOG-17, LOG-18.
"""

from collections.abc import Callable

from segproof.integers import INT64_MAX
from segproof.kafka.broker.log_view import LogView
from segproof.kafka.log_config import LogConfig
from segproof.kafka.segments.log_segment import LogSegment
from segproof.kernels.log_rules import breached_by_size, offsets_may_go

Rule = Callable[[LogView, LogConfig, int], list[LogSegment]]
"""What a rule removes of a log, by its options and the time in ms since 1970."""


def below_log_start(view: LogView, config: LogConfig, now: int) -> list[LogSegment]:
    """Return the segments all of whose offsets lie below the log start."""
    bases = view.segments.base_offsets()
    following = [*bases[1:], INT64_MAX]
    return _oldest(view, lambda place, _: following[place] <= view.log_start_offset)


def beyond_size(view: LogView, config: LogConfig, now: int) -> list[LogSegment]:
    """Return the segments without which the log has still at least `retention_bytes`. LOG-18."""
    if not config.is_cut_by_retention:
        return []
    sizes = [segment.size for segment in view.segments]
    count = breached_by_size(sizes, config.retention_bytes)
    return _oldest(view, lambda place, _: place < count)


def beyond_time(view: LogView, config: LogConfig, now: int) -> list[LogSegment]:
    """Return the segments whose largest timestamp is older than `retention_ms`."""
    limit = config.retention_ms
    if not config.is_cut_by_retention or limit < 0:
        return []
    return _oldest(view, lambda _, segment: now - segment.largest_timestamp > limit)


def _oldest(view: LogView, is_breached: Callable[[int, LogSegment], bool]) -> list[LogSegment]:
    """Return the oldest segments up to the first that is not breached or may not go. LOG-17.

    What is above the high watermark is not asked, since that may open an index.
    """
    segments = view.segments.values()
    high_watermark = view.high_watermark.message_offset
    for place, segment in enumerate(segments):
        is_last = place == len(segments) - 1
        upper = view.log_end.message_offset if is_last else segments[place + 1].base_offset
        may_go = offsets_may_go(upper, high_watermark, is_last and segment.size == 0)
        if high_watermark < upper or not is_breached(place, segment) or not may_go:
            return list(segments[:place])
    return list(segments)


RULES: tuple[Rule, ...] = (below_log_start, beyond_size, beyond_time)
"""The rules in the order in which they are applied."""
