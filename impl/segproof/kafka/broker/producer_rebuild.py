# SPDX-License-Identifier: Apache-2.0
"""Building the producer state of a log from the newest snapshot and the batches behind it.

Upstream: Kafka 4.3.1: UnifiedLog.rebuildProducerState.
Laws: PROD-14.
"""

from segproof.integers import INT32_MAX
from segproof.kafka.broker.log_segments import LogSegments
from segproof.kafka.producer_append_info import CompletedTxn, ProducerAppendInfo
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.record_file import RecordFile


def rebuild_producer_state(
    producers: ProducerStateManager,
    segments: LogSegments,
    log_start_offset: int,
    last_offset: int,
    now: int,
    *,
    is_reloaded_clean: bool = False,
) -> None:
    """Let the producer state be that of the log up to `last_offset`, exclusive. Law: PROD-14.

    From the newest snapshot on the log is read. Without any snapshot after a clean stop, there was
    never a producer. Snapshots are written at the bases of the last two segments, and at the end,
    unless the state is open for reading.

    Raises: what reading the log and appending to the producer state raise; OSError.
    """
    bases = segments.base_offsets()[-2:]
    if producers.latest_snapshot_offset() is None and is_reloaded_clean:
        for offset in (*bases, last_offset):
            producers.update_map_end_offset(offset)
            _take_snapshot(producers)
        return
    was_empty = producers.is_empty and producers.map_end_offset >= last_offset
    producers.truncate_and_reload(log_start_offset, last_offset, now)
    if last_offset > producers.map_end_offset and not was_empty:
        _replay(producers, segments, bases, log_start_offset, last_offset)
    producers.update_map_end_offset(last_offset)
    _take_snapshot(producers)


def _take_snapshot(producers: ProducerStateManager) -> None:
    if producers.writable:
        producers.take_snapshot()


def _replay(
    producers: ProducerStateManager,
    segments: LogSegments,
    snapshot_bases: list[int],
    log_start_offset: int,
    last_offset: int,
) -> None:
    """Tell the producer state what the log holds from its end on, up to `last_offset`."""
    last = segments.floor_segment(last_offset)
    for segment in segments.values(producers.map_end_offset, last_offset):
        start = max(segment.base_offset, producers.map_end_offset, log_start_offset)
        producers.update_map_end_offset(start)
        if segment.base_offset in snapshot_bases:
            _take_snapshot(producers)
        limit = segment.size
        if segment is last:
            found = segment.translate_offset(last_offset)
            limit = limit if found is None else found.position
        info = segment.read(start, INT32_MAX, limit)
        if info is not None and info.records is not None:
            _load_records(producers, info.records)


def _load_records(producers: ProducerStateManager, records: RecordFile) -> None:
    infos: dict[int, ProducerAppendInfo] = {}
    completed: list[CompletedTxn] = []
    for batch in records.batches():
        if batch.producer_id > -1:
            producer_id = batch.producer_id
            if producer_id not in infos:
                infos[producer_id] = producers.prepare_update(producer_id, "replication")
            txn = infos[producer_id].append(batch)
            if txn is not None:
                completed.append(txn)
    for info in infos.values():
        producers.update(info)
    for txn in completed:
        producers.complete_txn(txn)
