# SPDX-License-Identifier: Apache-2.0
"""Building the producer state of a log anew, from the newest snapshot and the batches behind it.

Mirrors: impl/segproof/kafka/partition_log.py.
Upstream: Kafka 4.4.0, UnifiedLog.rebuildProducerState. Otherwise: partition_log_releases.
Laws: PROD-14.
Used by: partition_log, log_loader.
"""

from segproof_model.kafka.broker.log_segments import LogSegments
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.language.states import Released

__all__ = ["ProducerRebuild"]


class ProducerRebuild(Released):
    """What builds a producer state: of the log's own, or one that a recovery begins with."""

    def __init__(
        self, producers: ProducerStateManager, segments: LogSegments, log_start_offset: int
    ) -> None:
        self.producers, self.segments = producers, segments
        self.log_start_offset = log_start_offset

    def rebuild(self, last_offset: int, is_clean: bool = False) -> None:
        """Let the state be that of the log up to the offset, exclusive (PROD-14).

        After a clean stop that left no snapshot, empty ones stand for the last two segments.
        """
        raise NotImplementedError

    def replay(self, segment: LogSegment, last_offset: int) -> None:
        """Learn the producers of a segment, up to the offset."""
        raise NotImplementedError
