# SPDX-License-Identifier: Apache-2.0
"""Which offset a timestamp stands for: the first record that is not older.

Upstream: Kafka 4.3.1: UnifiedLog.fetchOffsetByTimestamp.
Laws: LOG-15, LOG-16.
Not covered: remote storage.
"""

from segproof.kafka.broker.log_view import LogView
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import TimestampAndOffset

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5


def fetch_offset_by_timestamp(view: LogView, target_timestamp: int) -> TimestampAndOffset | None:
    """Return the first record of a timestamp, or what the negative ones ask. LOG-15, LOG-16."""
    if target_timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        begun = [one.epoch for one in view.epochs[:1] if one.start_offset <= view.log_start_offset]
        return TimestampAndOffset(-1, view.log_start_offset, begun[0] if begun else None)
    if target_timestamp == LATEST_TIMESTAMP:
        epoch = view.epochs[-1].epoch if view.epochs else None
        return TimestampAndOffset(-1, view.log_end.message_offset, epoch)
    if target_timestamp == LATEST_TIERED_TIMESTAMP:
        return TimestampAndOffset(-1, -1, -1)
    if target_timestamp == MAX_TIMESTAMP:
        return _record_of_max_timestamp(view)
    for segment in view.segments:
        if segment.largest_timestamp >= target_timestamp:
            return segment.find_offset_by_timestamp(target_timestamp, view.log_start_offset)
    return None


def _record_of_max_timestamp(view: LogView) -> TimestampAndOffset | None:
    pairs = [(segment.read_max_timestamp_and_offset_so_far(), segment) for segment in view.segments]
    (timestamp, offset), latest = max(pairs, key=lambda one: one[0].timestamp)
    position = latest.offset_index.lookup(offset).position
    for batch in latest.log.batches(position):
        if batch.max_timestamp == timestamp:
            return _first_of(batch, timestamp)
    return None


def _first_of(batch: RecordBatch, timestamp: int) -> TimestampAndOffset | None:
    """Return the first record of a batch that has its largest timestamp; magic 0 has none."""
    if batch.magic == 0:
        return None
    epoch = None if batch.partition_leader_epoch < 0 else batch.partition_leader_epoch
    for found, offset in batch.times():
        if found == timestamp:
            return TimestampAndOffset(timestamp, offset, epoch)
    return None
