# SPDX-License-Identifier: Apache-2.0
"""Which offset a timestamp stands for: the first record that is not older.

Upstream: Kafka 4.4.0, UnifiedLog.fetchOffsetByTimestamp. Otherwise: partition_log_releases, those
    before 2.3, partition_log_deviations.
Laws: LOG-15, LOG-16.
Not covered: remote storage, whose negative timestamps are searched for as any other.
"""

from collections.abc import Iterator

from segproof_model.kafka.broker.log_parts import LogParts
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.record_batch import RecordBatch, Time
from segproof_model.kafka.format.record_file import TimestampAndOffset
from segproof_model.language.states import Released

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
NO_TIMESTAMP = -1


class OffsetByTime(Released):
    """A search in a log."""

    def __init__(self, log: LogParts) -> None:
        self.log = log

    def fetch(self, target_timestamp: int) -> TimestampAndOffset | None:
        """Return the record or the bound that a timestamp stands for."""
        if target_timestamp in (EARLIEST, EARLIEST_LOCAL):
            return self.earliest()
        if target_timestamp == LATEST:
            epoch = self.log.leader_epoch_cache.latest_epoch()
            return TimestampAndOffset(NO_TIMESTAMP, self.log.log_end_offset, epoch)
        if target_timestamp == MAX_TIMESTAMP:
            return self.newest()
        return self.search(target_timestamp)

    def earliest(self) -> TimestampAndOffset:
        """Return the log start, with the epoch if it began there or before."""
        start, first = self.log.log_start_offset, self.log.leader_epoch_cache.earliest_entry()
        epoch = first.epoch if first is not None and first.start_offset <= start else None
        return TimestampAndOffset(NO_TIMESTAMP, start, epoch)

    def search(self, target_timestamp: int) -> TimestampAndOffset | None:
        """Search the first segment whose largest timestamp is not below, and no other (LOG-15)."""
        for segment in self.log.log_segments:
            if segment.largest_timestamp >= target_timestamp:
                return segment.find_offset_by_timestamp(target_timestamp, self.starting_offset())
        return None

    def starting_offset(self) -> int:
        """Return the first offset that may be found."""
        return self.log.log_start_offset

    def newest(self) -> TimestampAndOffset | None:
        """Return the first record with the largest timestamp (LOG-16)."""
        return self.newest_in(max(self.log.log_segments, key=_max_timestamp))

    def newest_in(self, segment: LogSegment) -> TimestampAndOffset | None:
        """Return the first record of a segment with its largest timestamp, if it is of magic 1 on.

        The batch of it is looked for from its index entry on.
        """
        largest, offset = segment.read_max_timestamp_and_offset_so_far()
        position = segment.offset_index.lookup(offset).position
        for batch in segment.log.batches(position):
            if batch.max_timestamp == largest:
                epoch = batch.partition_leader_epoch
                for timestamp, at in self.times_of(batch):
                    if timestamp == largest and batch.magic > 0:
                        return TimestampAndOffset(timestamp, at, None if epoch < 0 else epoch)
                return None
        return None

    def times_of(self, batch: RecordBatch) -> Iterator[Time]:
        """Return the times of a batch, read only up to the one that is found."""
        return batch.streamed_times()


def _max_timestamp(segment: LogSegment) -> int:
    return segment.max_timestamp_so_far
