# SPDX-License-Identifier: Apache-2.0
"""Building the producer state of a log anew, from the newest snapshot and the batches behind it.

Upstream: Kafka 4.4.0, UnifiedLog.rebuildProducerState. Otherwise:
    partition_log_releases_before_2_3, _before_2.
Laws: PROD-14.
"""

from collections.abc import Iterable

from segproof_model.kafka.broker.log_segments import LogSegments
from segproof_model.kafka.broker.producer_append_info import ProducerAppendInfo
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.log_segment import FetchDataInfo, LogSegment
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.states import Released


class ProducerRebuild(Released):
    """What builds a producer state: the log's own, or one that a recovery begins with."""

    def __init__(
        self, producers: ProducerStateManager, segments: LogSegments, log_start_offset: int
    ) -> None:
        self.producers, self.segments = producers, segments
        self.log_start_offset = log_start_offset

    def rebuild(self, last_offset: int, is_clean: bool = False) -> None:
        """Let the state be that of the log up to the offset, exclusive (PROD-14).

        After a clean stop that left no snapshot, empty ones stand for the last two segments.
        """
        producers = self.producers
        if is_clean and producers.latest_snapshot_offset() is None:
            for offset in (*self.offsets_to_snapshot(), last_offset):
                self.snapshot_at(offset)
            return
        was_empty = producers.is_empty and producers.map_end_offset >= last_offset
        now_ms = producers.files.now_ms
        producers.truncate_and_reload(self.log_start_offset, last_offset, now_ms)
        if last_offset > producers.map_end_offset and not was_empty:
            for segment in self.segments.values(producers.map_end_offset, last_offset):
                self.replay(segment, last_offset)
        self.end_at(last_offset)

    def offsets_to_snapshot(self) -> list[int]:
        """Return where the last two segments begin."""
        return self.segments.base_offsets()[-2:]

    def snapshot_at(self, offset: int) -> None:
        """Say that the producer state ends here, and write it."""
        self.producers.update_map_end_offset(offset)
        self.producers.take_snapshot()

    def end_at(self, last_offset: int) -> None:
        """Note up to which offset the log was read, and write a snapshot of the producers."""
        self.snapshot_at(last_offset)

    def replay(self, segment: LogSegment, last_offset: int) -> None:
        """Learn the producers of a segment, up to the offset."""
        start = max(segment.base_offset, self.producers.map_end_offset, self.log_start_offset)
        self.producers.update_map_end_offset(start)
        if segment.base_offset in self.offsets_to_snapshot():
            self.producers.take_snapshot()
        self.learn(self.read(segment, start, last_offset))

    def read(self, segment: LogSegment, start: int, last_offset: int) -> FetchDataInfo | None:
        """Read a segment from one offset on, up to the other if that lies in it."""
        position = segment.size
        if segment is self.segments.floor_segment(last_offset):
            found = segment.translate_offset(last_offset)
            position = segment.size if found is None else found.position
        return segment.read(start, INT32_MAX, position)

    def learn(self, found: FetchDataInfo | None) -> None:
        """Let what was read count for the producers."""
        if found is not None and found.records is not None:
            self.learn_batches(found.records.batches())

    def learn_batches(self, batches: Iterable[RecordBatch]) -> None:
        """Let batches count for the producers: if they can all be read."""
        infos: dict[int, ProducerAppendInfo] = {}
        completed = []
        for batch in batches:
            producer_id = batch.producer_id
            if producer_id >= 0:
                if producer_id not in infos:
                    infos[producer_id] = self.prepare_update(producer_id)
                txn = infos[producer_id].append(batch)
                completed += [] if txn is None else [txn]
        for info in infos.values():
            self.producers.update(info)
        for txn in completed:
            self.producers.complete_txn(txn)

    def prepare_update(self, producer_id: int) -> ProducerAppendInfo:
        """Return what the batches of one producer are appended to."""
        return self.producers.prepare_update(producer_id, "replication")
