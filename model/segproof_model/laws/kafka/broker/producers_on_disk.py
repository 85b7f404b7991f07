# SPDX-License-Identifier: Apache-2.0
"""The laws of producers, transactions and leader epochs along the bytes of a whole log, and of the
snapshots and epochs in the files beside it.

`logs` are those of the segments, in order. Only batches with right checksums are judged.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, pairwise, takewhile

from segproof_model.kafka.broker.checkpoint_file import EpochEntry, LeaderEpochCheckpointFile
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.broker.producer_snapshot import ProducerStateEntry, read_snapshot
from segproof_model.kafka.format.compression import Codecs
from segproof_model.kafka.format.record import end_transaction_marker
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.files import Files
from segproof_model.language.integers import INT32_MAX, INT64_MAX
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import outcome_of
from segproof_model.laws.arithmetic import is_rising, never_falls
from segproof_model.laws.kafka.format.log_bytes import (
    batches_of,
    first_offset,
    is_wrapper,
    marker_in,
    valid_batches,
)
from segproof_model.laws.kafka.format.segment_on_disk import log_ends_with_a_batch
from segproof_model.laws.register import law

MANAGER = "Kafka ProducerStateManager 4.3.1"
INFO = "Kafka ProducerAppendInfo 4.3.1"
SEQUENCES = INT32_MAX + 1
"""The number of sequence numbers; a number less than half of them after another one counts as
before it.
"""
Logs = Sequence[bytes]


# --- reading -------------------------------------------------------------------------------------


def of_producers(logs: Logs) -> Iterator[RecordBatch]:
    """Yield the batches and markers of producers; a marker that compaction emptied says nothing."""
    for log in logs:
        for batch in valid_batches(log):
            if batch.producer_id >= 0 and not (batch.is_control and batch.record_count <= 0):
                yield batch


def neighbours(batches: Iterator[RecordBatch]) -> Iterator[tuple[RecordBatch, RecordBatch]]:
    """Yield each batch with the previous batch of the same producer."""
    last: dict[int, RecordBatch] = {}
    for batch in batches:
        if batch.producer_id in last:
            yield last[batch.producer_id], batch
        last[batch.producer_id] = batch


def numbered(logs: Logs) -> Iterator[tuple[RecordBatch, RecordBatch, int]]:
    """Yield neighbours with records, of epochs that don't fall, and the sequence that is due."""
    for before, after in neighbours(one for one in of_producers(logs) if not one.is_control):
        if after.producer_epoch >= before.producer_epoch:
            is_same = before.producer_epoch == after.producer_epoch
            yield before, after, (last_sequence(before) + 1) % SEQUENCES if is_same else 0


def last_sequence(batch: RecordBatch) -> int:
    """Return the sequence number of the last record; 0 follows 2147483647."""
    return (batch.base_sequence + batch.last_offset - batch.base_offset) % SEQUENCES


def goes_back(before: RecordBatch, after: RecordBatch) -> bool:
    """Return whether a batch has sequence numbers that its previous neighbour had reached.

    A producer that begins again with 0 goes back only if it repeats that batch.
    """
    spans = [(one.base_sequence, last_sequence(one)) for one in (before, after)]
    is_behind = (spans[0][1] - spans[1][0]) % SEQUENCES < SEQUENCES // 2
    is_same = before.producer_epoch == after.producer_epoch
    return is_same and is_behind and (after.base_sequence != 0 or spans[0] == spans[1])


def ends(logs: Logs, codecs: Codecs) -> Iterator[tuple[RecordBatch, int | None]]:
    """Yield each transactional batch without coordinator epoch, and each whole marker with it."""
    for batch in (one for log in logs for one in valid_batches(log, codecs)):
        if batch.is_control and marker_in(batch) and batch.record_count == 1:
            marker = outcome_of(end_transaction_marker, next(batch.records()))
            if not isinstance(marker, Raised):
                yield batch, marker.coordinator_epoch
        elif batch.is_transactional and not batch.is_control:
            yield batch, None


def open_transactions(logs: Logs, codecs: Codecs) -> dict[int, int]:
    """Return the first offset of each open transaction, by producer id."""
    found: dict[int, int] = {}
    for batch, coordinator_epoch in ends(logs, codecs):
        if coordinator_epoch is None:
            found.setdefault(batch.producer_id, batch.base_offset)
        else:
            found.pop(batch.producer_id, None)
    return found


def epoch_runs(logs: Logs) -> list[tuple[int, int, int]]:
    """Return (epoch, first offset, last offset) of each stretch of batches of one leader epoch."""
    batches = (one for log in logs for one in valid_batches(log) if one.partition_leader_epoch >= 0)
    runs = [list(run) for _, run in groupby(batches, lambda one: one.partition_leader_epoch)]
    return [
        (run[0].partition_leader_epoch, run[0].base_offset, run[-1].last_offset) for run in runs
    ]


# --- epochs and sequences ------------------------------------------------------------------------


@law("DISK-28", RecordBatch, "Kafka LeaderEpochFileCache.assign 4.3.1")
def leader_epochs_never_fall(logs: Logs) -> bool:
    """Along a log the leader epochs of the batches never fall; batches without an epoch don't
    count.
    """
    return never_falls([epoch for epoch, _, _ in epoch_runs(logs)])


@law("DISK-29", RecordBatch, INFO)
def producer_epochs_never_fall(logs: Logs) -> bool:
    """Along a log the epochs of a producer's batches and markers never fall. A warning if their
    timestamps are a day apart: the broker may have forgotten the producer.
    """
    both = neighbours(of_producers(logs))
    return all(one.producer_epoch <= two.producer_epoch for one, two in both)


@law("DISK-30", RecordBatch, "Kafka ProducerStateEntry 4.3.1")
def sequence_numbers_do_not_come_again(logs: Logs) -> bool:
    """A batch of a producer repeats no sequence number of its previous batch in the same epoch,
    unless the producer begins again with 0. A warning if their timestamps are a day apart: the
    broker may have forgotten the producer.
    """
    wrong = [(one, two) for one, two, due in numbered(logs) if due != two.base_sequence]
    return not any(goes_back(*both) for both in wrong)


@law("DISK-31", RecordBatch, INFO)
def sequence_numbers_go_on(logs: Logs) -> bool:
    """A batch of a producer begins with the sequence number after its previous batch's, and with 0
    in a new epoch; 0 follows 2147483647. A note if offsets are missing between them, since
    compaction removes whole batches, and for producers beyond the first 131072. Not judged:
    `__consumer_offsets`, whose coordinator writes 0 each time.
    """
    return all(due == two.base_sequence or goes_back(one, two) for one, two, due in numbered(logs))


# --- transactions --------------------------------------------------------------------------------


@law("DISK-32", PartitionLog, MANAGER)
def every_transaction_has_ended(logs: Logs, codecs: Codecs) -> bool:
    """A marker follows the batches of every transaction. A note, since the producer may be at work;
    a warning if the markers after its beginning are 20 minutes apart or more, or if the log is
    damaged at its end or was longer once: the marker may be lost.
    """
    return not open_transactions(logs, codecs)


@law("DISK-33", PartitionLog, MANAGER)
def every_marker_ends_a_transaction(logs: Logs, codecs: Codecs) -> bool:
    """A batch of the ended transaction precedes every marker. A note: a transaction may have no
    batch in this partition, and retention and compaction remove batches.
    """
    is_open: dict[int, bool] = {}
    for batch, epoch in ends(logs, codecs):
        if epoch is not None and not is_open.get(batch.producer_id):
            return False
        is_open[batch.producer_id] = epoch is None
    return True


@law("DISK-34", RecordBatch, INFO)
def coordinator_epochs_never_fall(logs: Logs, codecs: Codecs) -> bool:
    """The coordinator epochs of a producer's markers never fall."""
    told = [(one.producer_id, epoch) for one, epoch in ends(logs, codecs) if epoch is not None]
    both = pairwise(sorted(told, key=lambda one: one[0]))
    return all(one != other or before <= after for (one, before), (other, after) in both)


@law("DISK-44", RecordBatch, INFO)
def batches_stay_in_their_transaction(logs: Logs) -> bool:
    """Between a batch of a transaction and the marker that ends it, its producer has no batch
    outside of that transaction. A warning if offsets are missing between them: the marker may be
    missing too.
    """
    return all(
        one.is_control or not one.is_transactional or two.is_transactional or two.is_control
        for one, two in neighbours(of_producers(logs))
    )


# --- snapshots of the producers ------------------------------------------------------------------


@law("DISK-35", PartitionLog, f"{MANAGER}.takeSnapshot")
def snapshot_knows_what_is_before_it(snapshot: bytes, offset: int) -> bool:
    """A snapshot contains no offset at or above the one in its name."""
    entries = outcome_of(read_snapshot, snapshot)
    return isinstance(entries, Raised) or all(
        max(entry.last_offset, entry.current_txn_first_offset or -1) < offset for entry in entries
    )


@law("DISK-36", PartitionLog, f"{MANAGER}.truncateAndReload")
def snapshots_are_of_offsets_in_the_log(offsets: Collection[int], log_end_offset: int) -> bool:
    """No snapshot has an offset in its name beyond the end of the log."""
    return all(offset <= log_end_offset for offset in offsets)


def snapshot_is_as_the_log_says(
    logs: Logs,
    base_offsets: Sequence[int],
    log_end_offset: int,
    snapshot: bytes,
    offset: int,
    codecs: Codecs,
) -> bool:
    """PROD-14 for files: the entries of a snapshot inside the log equal the producer state from the
    log before its offset.

    A log with missing batches may know less, and an expired producer may be in only one of the two.
    An unreadable batch may have ended any transaction that seems open. An entry that knows the last
    batch of the log, and nothing open, is right: the marker is lost (DISK-74).
    """
    entries, start = outcome_of(read_snapshot, snapshot), min(base_offsets, default=0)
    if isinstance(entries, Raised) or not entries or not start < offset <= log_end_offset:
        return True
    before = [
        b"".join(one.data for one in valid_batches(log) if one.last_offset < offset) for log in logs
    ]
    is_read, is_whole = _what_is_before(logs, base_offsets, offset)
    is_open = open_transactions(before, codecs) if is_read else {}
    known_from = start if is_whole else INT64_MAX
    return is_open.keys() <= {entry.producer_id for entry in entries} and all(
        _entry_is_right(entry, before, is_open.get(entry.producer_id), known_from)
        for entry in entries
    )


def _what_is_before(logs: Logs, base_offsets: Sequence[int], offset: int) -> tuple[bool, bool]:
    """Return whether every batch below an offset can be read, and is there without a gap."""
    expected, is_read, is_whole = min(base_offsets, default=0), True, True
    for log, base_offset in zip(logs, base_offsets, strict=True):
        if base_offset >= offset:
            break
        is_whole &= base_offset == expected
        batches, valid = batches_of(log), valid_batches(log)
        below = list(takewhile(lambda one: one.last_offset < offset, batches))
        for batch in below:
            is_read &= batch in valid
            is_next = is_wrapper(batch) or first_offset(batch) == expected
            is_whole &= batch in valid and is_next
            expected = batch.last_offset + 1
        is_read &= below != batches or log_ends_with_a_batch(log)
    return is_read, is_whole


def _entry_is_right(
    entry: ProducerStateEntry, logs: Logs, first: int | None, known_from: int
) -> bool:
    own = [one for one in of_producers(logs) if one.producer_id == entry.producer_id]
    data = [one for one in own if not one.is_control][-1:]
    reached, end = max([-1, *(one.last_offset for one in data)]), entry.last_offset
    told = [(one.producer_epoch, last_sequence(one)) for one in data if one.last_offset == end]
    begun = entry.current_txn_first_offset
    is_whole = known_from < INT64_MAX  # else the marker may be missing: see DISK-74
    is_wrong = (
        end > max(reached, known_from - 1)
        or 0 <= end < reached
        or any(entry.producer_epoch < one.producer_epoch for one in own[-1:])
        or any(one != (entry.producer_epoch, entry.last_seq) for one in told)
        or (is_whole and first is not None and (end < reached if begun is None else begun > first))
    )
    return not is_wrong and (begun in (None, first) or begun < known_from)


# --- leader epochs -------------------------------------------------------------------------------


@law("DISK-37", PartitionLog, "Kafka LeaderEpochFileCache 4.3.1")
def checkpoint_tells_the_epochs(logs: Logs, checkpoint: bytes) -> bool:
    """`leader-epoch-checkpoint` assigns each batch its leader epoch. Batches before its first entry
    don't count, since the start of the log may have moved. A file without an entry beside batches
    with epochs is a warning.
    """
    entries, runs = epoch_entries(checkpoint), epoch_runs(logs)
    if not entries:
        return entries is None or not runs

    def told(offset: int) -> int:
        return [entry.epoch for entry in entries if entry.start_offset <= offset][-1]

    start = entries[0].start_offset
    return all(
        last < start or told(max(first, start)) == told(last) == epoch
        for epoch, first, last in runs
    )


@law("DISK-49", PartitionLog, "Kafka LogManager.isStrayKraftReplica 4.4.0")
def small_files_are_there(
    files: Collection[str], beside: Collection[str], epochs: Collection[int] = ()
) -> bool:
    """A partition has `partition.metadata` and `leader-epoch-checkpoint` if a partition beside it
    has them, or if the directory is of a broker with KRaft, which takes a log without topic id for
    a stray one at its start. Beside copies only those of the same topic count; but a partition
    whose batches have leader epochs has `leader-epoch-checkpoint` if any partition beside it has
    one, or it has a snapshot or `partition.metadata` itself.
    """
    asked = {"partition.metadata", "leader-epoch-checkpoint"} & set(beside)
    is_kafkas = any(name == "partition.metadata" or name.endswith(".snapshot") for name in files)
    if is_kafkas and max(epochs, default=-1) >= 0:
        asked.add("leader-epoch-checkpoint")
    return asked <= set(files)


@law("DISK-64", PartitionLog, "Kafka LeaderEpochFileCache.truncateFromEndAsyncFlush 4.3.1")
def epochs_begin_in_the_log(checkpoint: bytes, log_end_offset: int) -> bool:
    """No leader epoch in `leader-epoch-checkpoint` begins beyond the end of the log; one may begin
    at the end. A warning: the log was longer once, or the file is of another log.
    """
    entries = epoch_entries(checkpoint) or []
    return all(entry.start_offset <= log_end_offset for entry in entries)


def epoch_entries(checkpoint: bytes) -> list[EpochEntry] | None:
    """Return the entries of `leader-epoch-checkpoint`; None unless they can be read and rise."""
    entries = outcome_of(LeaderEpochCheckpointFile(Files(), "").entries_in, checkpoint)
    if isinstance(entries, Raised):
        return None
    columns = zip((-1, -1), *entries, strict=True)
    return entries if all(map(is_rising, columns)) else None
