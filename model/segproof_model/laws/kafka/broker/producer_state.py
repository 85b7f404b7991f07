# SPDX-License-Identifier: Apache-2.0
"""The laws of the producer state and its snapshots.

Laws of a `snapshot` take the bytes of its file, and the entries written or read by name.
"""

import struct
from collections.abc import Sequence
from typing import Any

from segproof_model.kafka.broker import producer_releases as older
from segproof_model.kafka.broker.producer_append_info import ProducerAppendInfo
from segproof_model.kafka.broker.producer_snapshot import ProducerStateEntry
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.compression import crc32c
from segproof_model.kafka.format.segment_names import segment_file_name
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language.integers import int32_at, int64_at, wrap32, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.kafka.format.batch_bytes import asked, entries_of
from segproof_model.laws.register import Transition, has, law

WRITING = "ProducerStateManager.writeSnapshot, since 0.11"
READING = "ProducerStateManager.readSnapshot, since 0.11"
TAKING = "ProducerStateManager.takeSnapshot, since 0.11"
LOADING = "ProducerStateManager.loadFromSnapshot, since 0.11.0.1"
RELOADING = "ProducerStateManager.truncateAndReload, since 2.7.1"
STATE_ENTRY = "ProducerStateEntry, since 1.0"
STABLE = "ProducerStateManager.lastStableOffset, since 0.11"
COMPLETING = "ProducerStateManager.completeTxn, since 0.11"
EXPIRING = "ProducerStateManager.isProducerExpired"
HEAD, ENTRY = struct.Struct(">hIi"), struct.Struct(">qhiqiqiq")


def is_sound(snapshot: bytes) -> bool:
    """Return whether version and checksum are right, and every entry is there."""
    if len(snapshot) < HEAD.size:
        return False
    version, crc, count = HEAD.unpack_from(snapshot)
    is_whole = 0 <= count <= (len(snapshot) - HEAD.size) / ENTRY.size
    return version == 1 and is_whole and bool(crc == crc32c(snapshot[6:]))


def stored_in(snapshot: bytes) -> list[tuple[int, ...]]:
    """Return the numbers of each entry in the order of the file, the producer's id first."""
    count = int32_at(snapshot, 6)
    return list(ENTRY.iter_unpack(snapshot[HEAD.size : HEAD.size + ENTRY.size * count]))


def stored_of(entry: Any) -> tuple[int, ...]:
    """Return the entry of a producer in a snapshot: only the last batch is kept."""
    first = entry.current_txn_first_offset
    sequence, offset, delta, _ = ((-1, -1, 0, 0), *entry.batch_metadata)[-1]
    numbers = sequence, offset, delta, entry.last_timestamp, entry.coordinator_epoch
    return (entry.producer_id, entry.producer_epoch, *numbers, -1 if first is None else first)


# --- snapshots -----------------------------------------------------------------------------------


@law("PROD-1", ProducerStateManager, WRITING)
def snapshot_layout(entries: Sequence[ProducerStateEntry], snapshot: bytes) -> bool:
    """A snapshot is int16 version 1, uint32 CRC-32C of bytes 6..end, int32 n, and n entries of 46
    bytes.
    """
    is_as_long = len(snapshot) == HEAD.size + ENTRY.size * len(entries)
    return (
        is_as_long and is_sound(snapshot) and stored_in(snapshot) == list(map(stored_of, entries))
    )


@law("PROD-2", ProducerStateManager, READING)
def tails_take_part_in_the_checksum(snapshot: bytes, found: object) -> bool:
    """Bytes after the n entries take part in the checksum, so a longer stale tail makes the file
    corrupt.
    """
    return (found == Raised(ErrorKind.CORRUPT_SNAPSHOT)) is not is_sound(snapshot)


@law("PROD-3", ProducerStateManager, LOADING, on="truncate_and_reload")
def damaged_snapshots_are_passed_over(step: Transition) -> bool:
    """Every proper prefix of a valid snapshot, a wrong version and a wrong checksum raise the
    corrupt-snapshot error; loading then deletes the file and tries the next older one.
    """
    before, after = step.before, step.after
    start, end = step.arguments["log_start_offset"], step.arguments["log_end_offset"]
    if not step.succeeded or end == before.map_end_offset:
        return True
    files = {at: before.files.image(name) for at, name in before.snapshots.items()}
    sound = [at for at, image in files.items() if start < at <= end and is_sound(image)]
    loaded = max(sound, default=start)
    producers = {numbers[0] for numbers in stored_in(files[loaded])} if sound else set()
    is_newest = after.map_end_offset == loaded >= max(after.snapshots, default=loaded)
    return bool(is_newest and after.active_producers.keys() <= producers)


@law("PROD-4", ProducerStateManager, LOADING)
def order_of_entries_is_free(loaded: Any, loaded_in_other_order: Any) -> bool:
    """Entry order carries no meaning: two snapshots are equal when their entry sets are."""
    one, other = loaded, loaded_in_other_order
    producers, txns = one.active_producers, one.ongoing_txns
    return bool(producers == other.active_producers and txns == other.ongoing_txns)


@law("PROD-5", ProducerStateManager, STATE_ENTRY, unless=older.StoredProducersHaveBatches)
def no_batches_are_stored_as_minus_one(
    entry: ProducerStateEntry, snapshot: bytes, found: Sequence[ProducerStateEntry]
) -> bool:
    """A producer without batches is stored as last sequence -1, last offset -1, offset delta 0."""
    if entry.batch_metadata:
        return True
    return stored_in(snapshot)[0][2:5] == (-1, -1, 0) and list(found) == [entry]


@law("PROD-6", ProducerStateManager, TAKING, on="take_snapshot")
def snapshots_are_written_beyond_the_last(step: Transition) -> bool:
    """A snapshot is written only when the map end offset exceeds the last snapshot offset, and its
    name is the map end offset.
    """
    before, after, offset = step.before, step.after, step.before.map_end_offset
    if offset <= before.last_snapshot_offset:
        return step.outcome is None and step.is_unchanged
    name = before.dir + segment_file_name(offset, ".snapshot")
    written = {**before.files.images, name: after.files.image(name)}
    is_told = step.outcome == offset == after.last_snapshot_offset
    return is_told and name in after.files and after.files.images == written


@law("PROD-13", ProducerStateManager, RELOADING, on="truncate_and_reload")
def reload_leaves_no_snapshot_outside(step: Transition) -> bool:
    """truncate_and_reload(start, end) leaves no snapshot with offset > end or <= start."""
    start, end = step.arguments["log_start_offset"], step.arguments["log_end_offset"]
    return all(start < offset <= end for offset in step.after.snapshots)


@law("PROD-14", ProducerStateManager, "UnifiedLog.rebuildProducerState")
def rebuilding_gives_the_same_producers(live: Any, snapshot_offset: int, rebuilt: Any) -> bool:
    """Rebuilding from the log gives the same producer map as the live one, apart from expired
    producers.

    A snapshot keeps one batch of each; without one, from offset 0 on, all is the same.
    """
    known = [sorted(one.active_producers.items()) for one in (live, rebuilt)]
    if snapshot_offset > 0:
        known = [[(at, stored_of(entry)) for at, entry in one] for one in known]
    ends = [(one.ongoing_txns, one.map_end_offset) for one in (live, rebuilt)]
    return known[0] == known[1] and ends[0] == ends[1]


@law("PROD-15", ProducerStateManager, "LogSegment.recover, since 0.11")
def recovery_advances_the_map(log: bytes, map_end_offset: int) -> bool:
    """The map end offset after recovery equals the next offset of the last recovered batch, also
    for batches without a producer id.
    """
    expected = 0
    for entry in entries_of(log)[-1:]:
        expected = wrap64(int64_at(entry, 0) + int32_at(entry, 23) * (entry[16] == 2) + 1)
    return map_end_offset == expected


# --- what is appended ----------------------------------------------------------------------------


@law("PROD-7", ProducerStateManager, STATE_ENTRY, on="update")
def few_batches_of_one_epoch_are_cached(step: Transition) -> bool:
    """At most 5 batches are cached per producer, in 0.11 one, and an epoch change clears them."""
    if not step.succeeded:
        return True
    most = 1 if has(step.before, older.LastBatchIsRemembered) else 5
    info, later = step.arguments["append_info"], dict(step.after.active_producers)
    entry, known = later.pop(info.producer_id), dict(step.before.active_producers)
    before = known.pop(info.producer_id, None)
    is_same = before is not None and before.producer_epoch == entry.producer_epoch
    kept = before.batch_metadata if before is not None and is_same else ()
    all_of_epoch = (*kept, *info.updated_entry.batch_metadata)
    return known == later and bool(entry.batch_metadata == all_of_epoch[-most:])


@law("PROD-8", ProducerAppendInfo, "ProducerAppendInfo.appendDataBatch", on="append")
def transactions_open_with_their_first_batch(step: Transition) -> bool:
    """A transactional batch without an open transaction opens one at its first offset: its base
    offset, or up to 2.0 as its sequence numbers count; a non-transactional batch inside an open one
    raises the invalid-transaction-state error.
    """
    batch, place = step.arguments["batch"], step.arguments.get("first_offset_metadata")
    opened, is_open = (
        one.updated_entry.current_txn_first_offset for one in (step.before, step.after)
    )
    if asked(batch, "is_control") is not False:
        return True
    if not step.succeeded:
        is_strange = opened is not None and not batch.is_transactional
        return is_strange or not step.raised(ErrorKind.INVALID_TRANSACTION_STATE)
    if opened is not None or not batch.is_transactional:
        return is_open == opened and (opened is None or bool(batch.is_transactional))
    first = batch.base_offset if place is None else place.message_offset
    if has(step.before, older.BatchBeginsBySequences):
        first = wrap64(batch.last_offset - wrap32(batch.last_sequence - batch.base_sequence))
    begun = step.after.started_transactions[-1:]
    return bool(is_open == first and [txn.first_offset for txn in begun] == [first])


@law("PROD-9", ProducerAppendInfo, "ProducerAppendInfo.appendEndTxnMarker", on="append")
def markers_close_transactions(step: Transition) -> bool:
    """An end marker closes the open transaction as (producer id, first, marker offset, aborted?)
    and updates coordinator epoch and timestamp; an empty control batch changes nothing. Without an
    open transaction it closes none. Not judged: up to 2.4 it closes a transaction that it begins
    itself.
    """
    batch, before, after = step.arguments["batch"], step.before, step.after
    if asked(batch, "is_control") is False:
        return True
    record = next(batch.records(), None) if step.succeeded else None
    if record is None:
        return step.is_unchanged and (step.outcome is None or not step.succeeded)
    first = before.updated_entry.current_txn_first_offset
    is_aborted = (record.key or b"")[3:4] == b"\0"
    ended = CompletedTxn(before.producer_id, first or 0, batch.base_offset, is_aborted)
    entry, epoch = after.updated_entry, int32_at(record.value or b"", 2)
    known = (entry.current_txn_first_offset, entry.coordinator_epoch, entry.last_timestamp)
    is_told = step.outcome == (None if first is None else ended)
    is_told &= after.started_transactions == before.started_transactions
    is_judged = first is not None or not has(before, older.MarkerAloneCompletes)
    return known == (None, epoch, record.timestamp) and (is_told or not is_judged)


# --- transactions and time -----------------------------------------------------------------------


@law("PROD-10", ProducerStateManager, STABLE, on="last_stable_offset")
def stable_offset_is_the_earliest_other(step: Transition) -> bool:
    """The last stable offset at a marker is the first offset of the earliest other open
    transaction, else marker offset + 1.

    Up to 2.1 only a transaction that begins at another offset counts as other.
    """
    completed = step.arguments["completed_txn"]
    name = "first_offset" if has(step.before, older.StableOffsetIsByPlace) else "producer_id"
    mine, txns = getattr(completed, name), step.before.ongoing_txns
    others = [txn.first_offset for txn in txns if getattr(txn, name) != mine]
    return bool(step.outcome == min(others, default=completed.last_offset + 1))


@law("PROD-11", ProducerStateManager, COMPLETING, on="complete_txn")
def transactions_complete_last(step: Transition) -> bool:
    """The order at a marker is: compute the last stable offset, append to the transaction index,
    complete the transaction.

    While the transaction is open, no later offset is stable; after its completion it waits for
    replication.
    """
    before, after, completed = step.before, step.after, step.arguments["completed_txn"]
    first = completed.first_offset
    opened, left = ([txn.first_offset for txn in one.ongoing_txns] for one in (before, after))
    if first not in opened:
        return step.refused(ErrorKind.INVALID_ARGUMENT)
    waiting = [txn.last_offset for txn in after.unreplicated_txns if txn.first_offset == first]
    is_unstable = before.first_unstable_offset() == after.first_unstable_offset()
    return is_unstable and first not in left and waiting == [completed.last_offset]


@law("PROD-12", ProducerStateManager, EXPIRING, on="remove_expired_producers")
def silent_producers_expire(step: Transition) -> bool:
    """A producer expires exactly when it has no open transaction and now - last timestamp >= the
    expiration time.
    """
    before, latest = step.before, step.arguments["current_time_ms"]
    kept = {
        producer_id
        for producer_id, entry in before.active_producers.items()
        if entry.current_txn_first_offset is not None
        or entry.last_timestamp > latest - before.producer_id_expiration_ms
    }
    return bool(step.after.active_producers.keys() == kept)
