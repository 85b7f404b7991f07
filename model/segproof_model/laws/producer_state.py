# SPDX-License-Identifier: Apache-2.0
"""The laws of the producer state and its snapshots.

`step` laws take a transition whose states are managers, or logs that have one; those of an append
take the `ProducerAppendInfo` before and after.

Used by: the harness, the generated pages.
"""

from collections.abc import Sequence
from dataclasses import replace

from segproof_model.directory import Directory
from segproof_model.kafka.compression import crc32c
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.log_segment import LogSegment
from segproof_model.kafka.producer_snapshot import (
    BatchMetadata,
    ProducerStateEntry,
    read_snapshot,
    write_snapshot,
)
from segproof_model.kafka.producer_state import (
    CompletedTxn,
    ProducerAppendInfo,
    ProducerStateManager,
    TxnMetadata,
)
from segproof_model.kafka.record_batch import RecordBatch, read_batch
from segproof_model.kafka.segment_names import segment_file_name
from segproof_model.language.integers import int32_at, int64_at
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.judging import first_by_sequences
from segproof_model.laws.registry import Transition, law

CORRUPT_SNAPSHOT = Raised(ErrorKind.CORRUPT_SNAPSHOT)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
INVALID_TRANSACTION_STATE = Raised(ErrorKind.INVALID_TRANSACTION_STATE)
MANAGER = "ProducerStateManager"
STRUCTURE = "partition-log"

GOLDEN_SNAPSHOT = bytes.fromhex(
    "0001b3d6508900000002000000000000000a00020000000a000000000000001400000005000000000000022b0000"
    "0007000000000000004b000000000000000b0000ffffffffffffffffffffffff00000000ffffffffffffffffffff"
    "ffffffffffffffffffff"
)
"""What release 3.9.0 wrote of the golden entries."""
GOLDEN_ENTRIES = (
    ProducerStateEntry(10, 2, 7, 555, 75, (BatchMetadata(10, 20, 5, 555),)),
    ProducerStateEntry(11, 0),
)
EMPTY_SNAPSHOT = bytes.fromhex("000148674bc700000000")


def _managers(step: Transition, operation: str) -> tuple[ProducerStateManager, ...]:
    """Return the managers before and after such an operation, or nothing for any other step."""
    states = (step.before, step.after)
    if step.operation != operation or not all(
        isinstance(state, ProducerStateManager) for state in states
    ):
        return ()
    return states


def _appends(step: Transition) -> tuple[ProducerAppendInfo, ...]:
    """Return what is appended to before and after an append, or nothing for any other step."""
    is_append = step.operation == "append" and isinstance(step.before, ProducerAppendInfo)
    return (step.before, step.after) if is_append else ()


def _manager_of(data: dict[int, bytes]) -> ProducerStateManager:
    """Return a manager in a directory with snapshots of these bytes by offset."""
    directory = Directory()
    for offset, image in data.items():
        directory = directory.write(segment_file_name(offset, ".snapshot"), image)
    opened = ProducerStateManager.open("", directory=directory).after
    assert isinstance(opened, ProducerStateManager)
    return opened


def _loaded(data: dict[int, bytes]) -> ProducerStateManager:
    """Return the state that is loaded from such a directory."""
    return _manager_of(data).truncate_and_reload(0, max(data) + 1, 0).after


@law("PROD-1", structure=STRUCTURE, scope="pure", source=f"{MANAGER}.writeSnapshot (0.11 on)")
def snapshot_layout(entries: Sequence[ProducerStateEntry]) -> bool:
    """A snapshot is int16 version 1, uint32 CRC-32C of bytes 6..end, int32 n, and n entries of 46
    bytes."""
    data = write_snapshot(entries)
    ids = [int64_at(data, start) for start in range(10, len(data), 46)]
    return (
        data[:2] == b"\0\1"
        and int.from_bytes(data[2:6], "big") == crc32c(data[6:])
        and int32_at(data, 6) == len(entries)
        and len(data) == 10 + 46 * len(entries)
        and ids == [entry.producer_id for entry in entries]
    )


@law("PROD-2", structure=STRUCTURE, scope="pure", source=f"{MANAGER}.readSnapshot (0.11 on)")
def tails_take_part_in_the_checksum(entries: Sequence[ProducerStateEntry], tail: bytes) -> bool:
    """Bytes behind the n entries take part in the checksum, so a longer stale tail makes the file
    corrupt."""
    data = write_snapshot(entries) + tail
    has_collision = crc32c(data[6:]) == int.from_bytes(data[2:6], "big")
    return (read_snapshot(data) == CORRUPT_SNAPSHOT) is not has_collision


@law(
    "PROD-3", structure=STRUCTURE, scope="pure", source=f"{MANAGER}.loadFromSnapshot (0.11.0.1 on)"
)
def damaged_snapshots_are_passed_over(
    older: Sequence[ProducerStateEntry], entries: Sequence[ProducerStateEntry], cut: int, bit: int
) -> bool:
    """Every proper prefix of a valid snapshot, a wrong version and a wrong checksum raise the
    corrupt-snapshot error; loading then deletes the file and tries the next older one."""
    data = write_snapshot(entries)
    flipped = bytearray(data)
    flipped[bit // 8 % len(data)] ^= 1 << bit % 8
    for damaged in (data[: cut % len(data)], bytes(flipped)):
        loaded = _loaded({5: write_snapshot(older), 9: damaged})
        if read_snapshot(damaged) != CORRUPT_SNAPSHOT or loaded.map_end_offset != 5:
            return False
        if loaded.active_producers.keys() != {entry.producer_id for entry in older}:
            return False
        if list(loaded.directory) != [segment_file_name(5, ".snapshot")]:
            return False
    return True


@law("PROD-4", structure=STRUCTURE, scope="pure", source=f"{MANAGER} (a hash map, 0.11 on)")
def order_of_entries_is_free(entries: Sequence[ProducerStateEntry]) -> bool:
    """Entry order carries no meaning: two snapshots are equal when their entry sets are."""
    one = _loaded({5: write_snapshot(entries)})
    other = _loaded({5: write_snapshot(entries[::-1])})
    return (one.producers, one.ongoing_txns) == (other.producers, other.ongoing_txns)


@law("PROD-5", structure=STRUCTURE, scope="pure", source="ProducerStateEntry (2.4 on)")
def no_batches_are_stored_as_minus_one(entry: ProducerStateEntry) -> bool:
    """A producer without batches is stored as last sequence -1, last offset -1, offset delta 0."""
    empty = replace(entry, batch_metadata=())
    data = write_snapshot([empty])
    stored = (int32_at(data, 20), int64_at(data, 24), int32_at(data, 32))
    return stored == (-1, -1, 0) and read_snapshot(data) == (empty,)


@law("PROD-6", structure=STRUCTURE, scope="step", source=f"{MANAGER}.takeSnapshot (0.11 on)")
def snapshots_are_written_beyond_the_last(step: Transition) -> bool:
    """A snapshot is written only when the map end offset exceeds the last snapshot offset, and its
    name is the map end offset."""
    if not (states := _managers(step, "take_snapshot")):
        return True
    before, after = states
    if before.map_end_offset <= before.last_snapshot_offset:
        return step.outcome is None and after == before
    name = before.dir + segment_file_name(before.map_end_offset, ".snapshot")
    others = [known for known in after.directory if known != name]
    return (
        step.outcome == before.map_end_offset == after.last_snapshot_offset
        and name in after.directory
        and others == [known for known in before.directory if known != name]
    )


@law("PROD-7", structure=STRUCTURE, scope="step", source="ProducerStateEntry (1.0 on)")
def few_batches_of_one_epoch_are_cached(step: Transition) -> bool:
    """At most 5 batches are cached per producer, where the profile says so 1, and an epoch change
    clears them."""
    if not (states := _managers(step, "update")):
        return True
    before, after = states
    info = step.arguments["append_info"]
    most = 1 if after.profile.producer_entry_is_flat else 5
    for producer_id, entry in after.active_producers.items():
        if len(entry.batch_metadata) > most:
            return False
        known = before.last_entry(producer_id)
        if known is None or known.producer_epoch == entry.producer_epoch:
            continue
        if producer_id != info.producer_id:
            return False
        if entry.batch_metadata != info.updated_entry.batch_metadata[-most:]:
            return False
    return True


@law("PROD-8", structure=STRUCTURE, scope="step", source="ProducerAppendInfo.appendDataBatch")
def transactions_open_with_their_first_batch(step: Transition) -> bool:
    """A transactional batch without an open transaction opens one at its first offset: its base
    offset, or where the profile says so as its sequence numbers count; a non-transactional batch
    inside an open one raises the invalid-transaction-state error."""
    batch = step.arguments.get("batch")
    if not (states := _appends(step)) or not isinstance(batch, RecordBatch) or batch.is_control:
        return True
    before, after = states
    was_open = before.updated_entry.current_txn_first_offset
    if isinstance(step.outcome, Raised):
        is_refused = step.outcome == INVALID_TRANSACTION_STATE
        may_be = was_open is not None and not batch.is_transactional
        return not is_refused or may_be
    metadata = step.arguments.get("first_offset_metadata")
    first = batch.base_offset if metadata is None else metadata.message_offset
    if before.profile.batch_begins_by_sequences:
        first = first_by_sequences(batch)
    is_open = after.updated_entry.current_txn_first_offset
    if was_open is not None:
        return bool(batch.is_transactional) and is_open == was_open
    started = [txn.first_offset for txn in after.started_transactions]
    if not batch.is_transactional:
        return is_open is None
    return is_open == first and started[-1:] == [first]


@law("PROD-9", structure=STRUCTURE, scope="step", source="ProducerAppendInfo.appendEndTxnMarker")
def markers_close_transactions(step: Transition) -> bool:
    """An end marker closes the open transaction as (producer id, first, marker offset, aborted?)
    and updates coordinator epoch and timestamp; an empty control batch changes nothing. Without an
    open transaction it closes none, or where the profile says so one that it begins itself."""
    batch = step.arguments.get("batch")
    if not (states := _appends(step)) or not isinstance(batch, RecordBatch):
        return True
    before, after = states
    if not batch.is_control or isinstance(step.outcome, Raised):
        return not batch.is_control or after == before
    records = batch.records_until_error().records
    if not records:
        return step.outcome is None and after == before
    key, value = records[0].key or b"", records[0].value or b""
    first, entry = before.updated_entry.current_txn_first_offset, after.updated_entry
    offset, started = int64_at(batch.data, 0), before.started_transactions
    if first is None and before.profile.marker_alone_completes:
        first = offset
        started = (*started, TxnMetadata(after.producer_id, offset))
    completed = CompletedTxn(after.producer_id, first or 0, offset, key[3] == 0)
    return (
        step.outcome == (None if first is None else completed)
        and after.started_transactions == started
        and entry.current_txn_first_offset is None
        and entry.coordinator_epoch == int32_at(value, 2)
        and entry.last_timestamp == records[0].timestamp
    )


@law("PROD-10", structure=STRUCTURE, scope="step", source=f"{MANAGER}.lastStableOffset (0.11 on)")
def stable_offset_is_the_earliest_other(step: Transition) -> bool:
    """The last stable offset at a marker is the first offset of the earliest other open
    transaction, else marker offset + 1.

    Old releases tell others by where they begin.
    """
    if not (states := _managers(step, "last_stable_offset")):
        return True
    completed = step.arguments["completed_txn"]
    for txn in states[0].ongoing_txns:
        is_other = txn.first_offset != completed.first_offset
        if states[0].profile.stable_offset_by_producer:
            is_other = txn.producer_id != completed.producer_id
        if is_other:
            return step.outcome == txn.first_offset
    return bool(step.outcome == completed.last_offset + 1)


@law("PROD-11", structure=STRUCTURE, scope="step", source=f"{MANAGER}.completeTxn (0.11 on)")
def transactions_complete_last(step: Transition) -> bool:
    """The order at a marker is: compute the last stable offset, append to the transaction index,
    complete the transaction."""
    if not (states := _managers(step, "complete_txn")):
        return True
    before, after = states
    completed = step.arguments["completed_txn"]
    first = completed.first_offset
    if first not in {txn.first_offset for txn in before.ongoing_txns}:
        return step.outcome == INVALID_ARGUMENT and after == before
    open_after = [txn.first_offset for txn in after.ongoing_txns]
    # While it still counts as open, nothing beyond it is stable: it is the first unstable offset,
    # or an earlier one is; completed, it waits to be replicated.
    waiting = [txn for txn in after.unreplicated_txns if txn.first_offset == first]
    return (
        first not in open_after
        and [txn.last_offset for txn in waiting] == [completed.last_offset]
        and before.first_unstable_offset() == after.first_unstable_offset()
    )


@law("PROD-12", structure=STRUCTURE, scope="step", source=f"{MANAGER}.isProducerExpired")
def silent_producers_expire(step: Transition) -> bool:
    """A producer expires exactly when it has no open transaction and now - last timestamp >= the
    expiration time."""
    if not (states := _managers(step, "remove_expired_producers")):
        return True
    before, after = states
    now = step.arguments["current_time_ms"]
    kept = {
        entry.producer_id
        for entry in before.producers
        if entry.current_txn_first_offset is not None
        or now - entry.last_timestamp < before.producer_id_expiration_ms
    }
    return after.active_producers.keys() == kept


@law("PROD-13", structure=STRUCTURE, scope="step", source=f"{MANAGER}.truncateAndReload (2.7.1 on)")
def reload_leaves_no_snapshot_outside(step: Transition) -> bool:
    """truncate_and_reload(start, end) leaves no snapshot with offset > end or <= start."""
    if not (states := _managers(step, "truncate_and_reload")):
        return True
    start, end = step.arguments["log_start_offset"], step.arguments["log_end_offset"]
    return all(start < offset <= end for offset, _ in states[1].snapshots)


@law("PROD-14", structure=STRUCTURE, scope="pure", source="UnifiedLog.rebuildProducerState")
def rebuilding_gives_the_same_producers(batches: Sequence[bytes], snapshot_after: int) -> bool:
    """Rebuilding from the log gives the same producer map as the live one, apart from expired
    producers."""
    half = replayed(_manager_of({}), batches[:snapshot_after])
    live = replayed(half.take_snapshot().after, batches[snapshot_after:])
    found = ProducerStateManager.open("", directory=live.directory).after
    assert isinstance(found, ProducerStateManager)
    reloaded = found.truncate_and_reload(0, live.map_end_offset, 0).after
    rest = [data for data in batches if int64_at(data, 0) >= reloaded.map_end_offset]
    rebuilt = replayed(reloaded, rest)
    is_whole = reloaded.map_end_offset == 0
    return (
        (rebuilt.producers == live.producers or not is_whole)
        and essentials(rebuilt) == essentials(live)
        and rebuilt.ongoing_txns == live.ongoing_txns
        and rebuilt.map_end_offset == live.map_end_offset
    )


@law("PROD-15", structure=STRUCTURE, scope="pure", source="LogSegment.recover (0.11 on)")
def recovery_advances_the_map(batches: Sequence[bytes]) -> bool:
    """The map end offset after recovery equals the next offset of the last recovered batch, also
    for batches without a producer id."""
    directory = Directory().write(segment_file_name(0, ".log"), b"".join(batches))
    segment = LogSegment.open("", 0, LogConfig(), True, directory=directory).after
    assert isinstance(segment, LogSegment)
    recovered = segment.recover(_manager_of({})).after
    manager = recovered.producer_state_manager
    kept = recovered.segment.log.batches().batches
    expected = kept[-1].next_offset if kept else 0
    return manager is not None and manager.map_end_offset == expected


def replayed(manager: ProducerStateManager, batches: Sequence[bytes]) -> ProducerStateManager:
    """Return the state after batches as a recovery tells it of them, up to one that is refused."""
    for data in batches:
        batch = read_batch(data)
        if isinstance(batch, Raised) or isinstance(batch.next_offset, Raised):
            return manager
        step = manager.update_producers(batch)
        if isinstance(step.outcome, Raised):
            return manager
        manager = step.after.update_map_end_offset(batch.next_offset).after
        if isinstance(step.outcome, CompletedTxn):
            manager = manager.complete_txn(step.outcome).after
    return manager


def essentials(manager: ProducerStateManager) -> list[tuple[object, ...]]:
    """Return what a snapshot can keep of each producer: of its batches the last one, without its
    own timestamp."""
    return [
        (
            entry.producer_id,
            entry.producer_epoch,
            entry.coordinator_epoch,
            entry.last_timestamp,
            entry.current_txn_first_offset,
            entry.last_seq,
            entry.last_offset,
            entry.last_offset_delta,
        )
        for entry in manager.producers
    ]
