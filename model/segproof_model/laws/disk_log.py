# SPDX-License-Identifier: Apache-2.0
"""The laws of a whole log as a verifier finds it: producers, epochs, and the small files beside it.

Every predicate takes bytes; `logs` are those of the segments, in order. Only batches whose
checksums are right are held to what they say.

Used by: the harness, the tests of `verify`, the generated pages.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from segproof_model.directory import Directory
from segproof_model.kafka.checkpoint_file import EpochEntry, epoch_of, read_checkpoint
from segproof_model.kafka.compression import Codecs
from segproof_model.kafka.producer_snapshot import ProducerStateEntry, read_snapshot
from segproof_model.kafka.record_batch import RecordBatch, end_transaction_marker
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import Raised
from segproof_model.laws.disk import (
    batches_of,
    control_type,
    end_of,
    first_offset,
    is_wrapper,
    number,
    valid_batches,
)
from segproof_model.laws.registry import law

PARTITION = "partition-log"
BATCH = "record-batch"
MANAGER = "Kafka ProducerStateManager 4.3.1"
LOADER = "Kafka LogLoader 4.3.1"
DIRECTORIES = "Kafka LogManager 4.3.1"
HALF = 1 << 30
"""Half of all sequence numbers: what is less behind another one lies before it."""
LOG_NAME = re.compile(r"(-?[0-9]+)\.log")
Logs = Sequence[bytes]


# --- reading


def of_producers(logs: Logs) -> Iterator[RecordBatch]:
    """Yield the batches and markers of producers; a marker that compaction emptied says nothing."""
    for log in logs:
        for batch in valid_batches(log):
            has_producer = not batch.is_legacy and number(batch.producer_id) >= 0
            if has_producer and not (batch.is_control and number(batch.record_count) <= 0):
                yield batch


def neighbours(batches: Iterator[RecordBatch]) -> Iterator[tuple[RecordBatch, RecordBatch]]:
    """Yield each batch with the one before it of the same producer."""
    last: dict[int, RecordBatch] = {}
    for batch in batches:
        producer_id = number(batch.producer_id)
        if producer_id in last:
            yield last[producer_id], batch
        last[producer_id] = batch


def numbered(logs: Logs) -> Iterator[tuple[RecordBatch, RecordBatch, int]]:
    """Yield neighbours with records, of epochs that don't fall, and the sequence that is due."""
    for before, after in neighbours(one for one in of_producers(logs) if not one.is_control):
        epochs = number(before.producer_epoch), number(after.producer_epoch)
        if epochs[1] >= epochs[0]:
            is_same = epochs[0] == epochs[1]
            yield before, after, (last_sequence(before) + 1) % (INT32_MAX + 1) if is_same else 0


def last_sequence(batch: RecordBatch) -> int:
    """Return the sequence number of the last record; 0 follows 2147483647."""
    distance = number(batch.last_offset) - number(batch.base_offset)
    return (number(batch.base_sequence) + distance) % (INT32_MAX + 1)


def goes_back(before: RecordBatch, after: RecordBatch) -> bool:
    """Return whether a batch has sequence numbers that its neighbour before it had reached.

    A producer that begins anew with 0 goes back only if it repeats that very batch.
    """
    if before.producer_epoch != after.producer_epoch:
        return False
    first = number(after.base_sequence)
    repeats = (first, last_sequence(after)) == (number(before.base_sequence), last_sequence(before))
    is_behind = (last_sequence(before) - first) % (INT32_MAX + 1) < HALF
    return is_behind and (first != 0 or repeats)


def ends(logs: Logs, codecs: Codecs) -> Iterator[tuple[RecordBatch, int | None]]:
    """Yield each transactional batch without coordinator epoch, and each marker with it."""
    for log in logs:
        for batch in valid_batches(log, codecs):
            if batch.is_legacy or not (batch.is_transactional or batch.is_control):
                continue
            if not batch.is_control:
                yield batch, None
            elif control_type(batch) in ("ABORT", "COMMIT"):
                marker = end_transaction_marker(batch.records_until_error().records[0])
                if not isinstance(marker, Raised) and batch.record_count == 1:
                    yield batch, marker.coordinator_epoch


def open_transactions(logs: Logs, codecs: Codecs) -> dict[int, int]:
    """Return the first offset of each open transaction, by producer id."""
    found: dict[int, int] = {}
    for batch, coordinator_epoch in ends(logs, codecs):
        producer_id = number(batch.producer_id)
        if coordinator_epoch is None:
            found.setdefault(producer_id, number(batch.base_offset))
        else:
            found.pop(producer_id, None)
    return found


def epoch_runs(logs: Logs) -> list[tuple[int, int, int]]:
    """Return (epoch, first offset, last offset) of each stretch of batches of one leader epoch."""
    runs: list[tuple[int, int, int]] = []
    for log in logs:
        for batch in valid_batches(log):
            if batch.is_legacy or number(batch.partition_leader_epoch) < 0:
                continue
            epoch, last = number(batch.partition_leader_epoch), number(batch.last_offset)
            if runs and runs[-1][0] == epoch:
                runs[-1] = (epoch, runs[-1][1], last)
            else:
                runs.append((epoch, number(batch.base_offset), last))
    return runs


# --- the segments


@law("DISK-27", structure=PARTITION, scope="disk", source="Kafka LogLoader.loadSegmentFiles 4.3.1")
def base_offsets_are_unique(directory: Directory) -> bool:
    """No two logs have names that are the same base offset, such as 5.log and one of 20 digits."""
    bases = [int(match[1]) for match in map(LOG_NAME.fullmatch, directory) if match]
    return len(bases) == len(set(bases))


@law("DISK-28", structure=BATCH, scope="disk", source="Kafka LeaderEpochFileCache.assign 4.3.1")
def leader_epochs_never_fall(logs: Logs) -> bool:
    """Along a log the leader epochs of the batches never fall; a batch without one counts not."""
    return all(one[0] <= two[0] for one, two in pairwise(epoch_runs(logs)))


# --- producers


@law("DISK-29", structure=BATCH, scope="disk", source="Kafka ProducerAppendInfo 4.3.1")
def producer_epochs_never_fall(logs: Logs) -> bool:
    """Along a log the epochs of a producer's batches and markers never fall. A warning where a day
    lies between by their timestamps: the broker may have forgotten the producer."""
    return all(
        number(one.producer_epoch) <= number(two.producer_epoch)
        for one, two in neighbours(of_producers(logs))
    )


@law("DISK-30", structure=BATCH, scope="disk", source="Kafka ProducerStateEntry 4.3.1")
def sequence_numbers_do_not_come_again(logs: Logs) -> bool:
    """A batch of a producer has no sequence numbers that the batch before it of the same epoch had
    reached, unless the producer begins anew with 0. A warning where a day lies between by their
    timestamps: the broker may have forgotten the producer."""
    return not any(
        goes_back(one, two) for one, two, due in numbered(logs) if due != two.base_sequence
    )


@law("DISK-31", structure=BATCH, scope="disk", source="Kafka ProducerAppendInfo 4.3.1")
def sequence_numbers_go_on(logs: Logs) -> bool:
    """A batch of a producer begins with the sequence number behind the one before it, and with 0 in
    a new epoch; 0 follows 2147483647. A note where offsets are missing between: compaction takes
    whole batches; and for producers beyond the 131072 that are followed. Not so in
    `__consumer_offsets`, whose coordinator writes 0 each time."""
    return all(due == two.base_sequence or goes_back(one, two) for one, two, due in numbered(logs))


# --- transactions


@law("DISK-32", structure=PARTITION, scope="disk", source=MANAGER)
def every_transaction_has_ended(logs: Logs, codecs: Codecs) -> bool:
    """Behind the batches of every transaction comes its marker. A note, for the producer may be at
    work; a warning where the markers behind its beginning lie 20 minutes apart or more."""
    return not open_transactions(logs, codecs)


@law("DISK-33", structure=PARTITION, scope="disk", source=MANAGER)
def every_marker_ends_a_transaction(logs: Logs, codecs: Codecs) -> bool:
    """Before every marker lies a batch of the transaction that it ends. A note: a transaction may
    have no batch in this partition, and retention and compaction remove batches."""
    is_open: set[int] = set()
    for batch, coordinator_epoch in ends(logs, codecs):
        producer_id = number(batch.producer_id)
        if coordinator_epoch is None:
            is_open.add(producer_id)
        elif producer_id not in is_open:
            return False
        else:
            is_open.remove(producer_id)
    return True


@law("DISK-34", structure=BATCH, scope="disk", source="Kafka ProducerAppendInfo 4.3.1")
def coordinator_epochs_never_fall(logs: Logs, codecs: Codecs) -> bool:
    """The coordinator epochs of a producer's markers never fall."""
    last: dict[int, int] = {}
    for batch, epoch in ends(logs, codecs):
        if epoch is not None:
            if epoch < last.get(number(batch.producer_id), epoch):
                return False
            last[number(batch.producer_id)] = epoch
    return True


@law("DISK-44", structure=BATCH, scope="disk", source="Kafka ProducerAppendInfo 4.3.1")
def batches_stay_in_their_transaction(logs: Logs) -> bool:
    """Between a batch of a transaction and the marker that ends it, its producer has no batch
    outside of that transaction. A warning where offsets are missing between: so may be the
    marker."""
    return all(
        one.is_control or not one.is_transactional or two.is_transactional or two.is_control
        for one, two in neighbours(of_producers(logs))
    )


# --- snapshots of the producers


@law("DISK-35", structure=PARTITION, scope="disk", source=f"{MANAGER}.takeSnapshot")
def snapshot_knows_what_is_before_it(snapshot: bytes, offset: int) -> bool:
    """A snapshot speaks of no offset at or behind the one in its name."""
    entries = read_snapshot(snapshot)
    return isinstance(entries, Raised) or all(
        max(entry.last_offset, entry.current_txn_first_offset or -1) < offset for entry in entries
    )


@law("DISK-36", structure=PARTITION, scope="disk", source=f"{MANAGER}.truncateAndReload")
def snapshots_are_of_offsets_in_the_log(offsets: Collection[int], log_end_offset: int) -> bool:
    """No snapshot is of an offset behind the end of the log."""
    return all(offset <= log_end_offset for offset in offsets)


def snapshot_is_as_the_log_says(
    logs: Logs,
    start_offset: int,
    is_whole: bool,
    is_read: bool,
    snapshot: bytes,
    offset: int,
    codecs: Codecs,
) -> bool:
    """PROD-14 for files: a snapshot's entries are what its log before that offset says of them.

    A log that is not whole may know less, and an expired producer may be in either alone. Where a
    batch can't be read (`is_read`), it may have ended any transaction that seems open.
    """
    entries = read_snapshot(snapshot)
    if isinstance(entries, Raised) or not entries:
        return True
    before = [
        b"".join(one.data for one in valid_batches(log) if number(one.last_offset) < offset)
        for log in logs
    ]
    is_open = open_transactions(before, codecs) if is_read else {}
    listed = {entry.producer_id for entry in entries}
    return is_open.keys() <= listed and all(
        _entry_is_right(entry, before, is_open.get(entry.producer_id), start_offset, is_whole)
        for entry in entries
    )


def is_whole_before(logs: Logs, bases: Sequence[int], offset: int) -> bool:
    """Return whether a log has every batch below an offset, whole and without a gap."""
    expected = bases[0] if bases else 0
    for log, base in zip(logs, bases, strict=True):
        if base < offset and base != expected:
            return False
        batches = batches_of(log)
        valid = {batch.position for batch in valid_batches(log)}
        for batch in batches:
            if number(batch.last_offset) >= offset:
                break
            is_next = is_wrapper(batch) or first_offset(batch) == expected
            if batch.position not in valid or not is_next:
                return False
            expected = number(batch.last_offset) + 1
    return True


def is_read_before(logs: Logs, bases: Sequence[int], offset: int) -> bool:
    """Return whether every batch below an offset can be read."""
    for log, base in zip(logs, bases, strict=True):
        if base >= offset:
            break
        valid = {batch.position for batch in valid_batches(log)}
        end = 0
        for batch in batches_of(log):
            if number(batch.last_offset) >= offset:
                return True
            if batch.position not in valid:
                return False
            end = batch.position + batch.size_bytes
        if any(log[end:]):
            return False
    return True


def _entry_is_right(
    entry: ProducerStateEntry, logs: Logs, first: int | None, start_offset: int, is_whole: bool
) -> bool:
    own = [one for one in of_producers(logs) if one.producer_id == entry.producer_id]
    data = [one for one in own if not one.is_control]
    reached = number(data[-1].last_offset) if data else -1
    if entry.last_offset > reached and entry.last_offset >= start_offset and is_whole:
        return False
    if 0 <= entry.last_offset < reached or (own and entry.producer_epoch < epoch_at_end(own)):
        return False
    if data and entry.last_offset == reached:
        told = (entry.producer_epoch, entry.last_seq)
        if told != (data[-1].producer_epoch, last_sequence(data[-1])):
            return False
    begun = entry.current_txn_first_offset
    if first is not None and (begun is None or begun > first):
        return False
    return begun in (None, first) or begun < start_offset or not is_whole


def epoch_at_end(batches: Sequence[RecordBatch]) -> int:
    """Return the producer epoch of the last of some batches."""
    return number(batches[-1].producer_epoch)


# --- checkpoints


@law("DISK-37", structure=PARTITION, scope="disk", source="Kafka LeaderEpochFileCache 4.3.1")
def checkpoint_tells_the_epochs(logs: Logs, checkpoint: bytes) -> bool:
    """Where batches of one leader epoch begin and end, `leader-epoch-checkpoint` has that epoch;
    before its first entry it has none, since the start of the log may have moved. A file without an
    entry beside batches with epochs is a warning."""
    entries = epoch_entries(checkpoint)
    if entries is None:
        return True
    runs = epoch_runs(logs)
    if not entries:
        return not runs

    def told(offset: int) -> int:
        return [entry.epoch for entry in entries if entry.start_offset <= offset][-1]

    start = entries[0].start_offset
    return all(
        last < start or told(max(first, start)) == told(max(last, start)) == epoch
        for epoch, first, last in runs
    )


def epoch_entries(checkpoint: bytes) -> list[EpochEntry] | None:
    """Return the entries of `leader-epoch-checkpoint`; None unless they can be read and rise."""
    entries = read_checkpoint(checkpoint, epoch_of)
    if isinstance(entries, Raised) or not epochs_rise(entries):
        return None
    return list(entries)


def epochs_rise(entries: Sequence[EpochEntry]) -> bool:
    """EPOCH-1 for a file: epochs and start offsets begin at 0 or above it, and strictly rise."""
    return all(
        one.epoch < two.epoch and one.start_offset < two.start_offset
        for one, two in pairwise([EpochEntry(-1, -1), *entries])
    )


@law("DISK-38", structure=PARTITION, scope="disk", source=DIRECTORIES)
def checkpointed_offset_is_in_the_log(offset: int, log_end_offset: int) -> bool:
    """Recovery point, high watermark and cleaner offset of a partition, as its data directory's
    checkpoints have them, are not behind the end of its log. For the cleaner's a note."""
    return offset <= log_end_offset


@law("DISK-39", structure=PARTITION, scope="disk", source=DIRECTORIES)
def checkpointed_partitions_are_there(
    checkpoint: Collection[tuple[str, int]], directories: Collection[tuple[str, int]]
) -> bool:
    """Every partition in a checkpoint of a data directory has its directory there. A note."""
    return set(checkpoint) <= set(directories)


@law("DISK-40", structure=PARTITION, scope="disk", source="Kafka CleanShutdownFileHandler (3.7 on)")
def marker_is_empty_or_tells_the_epoch(data: bytes) -> bool:
    """The marker of a clean stop is empty, or a JSON object with the integers `version` and
    `brokerEpoch`. A note: only the epoch is lost."""
    if not data:
        return True
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, Mapping) and all(
        type(content.get(name)) is int for name in ("version", "brokerEpoch")
    )


@law("DISK-43", structure=PARTITION, scope="disk", source="Kafka LogLoader.checkAndGetLogEnd 4.3.1")
def log_start_is_in_the_log(log_start_offset: int, log_end_offset: int) -> bool:
    """The log start offset of a partition, as its data directory's checkpoint has it, is not behind
    the end of its log: else loading removes every segment (LOAD-12)."""
    return log_start_offset <= log_end_offset


# --- what a crash leaves


@law("DISK-41", structure=PARTITION, scope="disk", source=DIRECTORIES)
def nothing_temporary_is_left(names: Collection[str]) -> bool:
    """No `.tmp` file waits for its name, and no directory is on its way: no name ends in `-future`
    or `-stray`. A note."""
    return not any(re.search(r"\.tmp$|\.[0-9a-f]{32}-(future|stray)$", name) for name in names)


@law("DISK-42", structure=PARTITION, scope="disk", source=f"{LOADER} (removeTempFiles)")
def no_swap_is_lost(directory: Directory) -> bool:
    """A log that waits as `.swap`, and that loading removes for a `.cleaned` file at or below it,
    begins within what another log holds (LOAD-2)."""
    cleaned = [name for name in directory if name.endswith(".cleaned")]
    swapped = [name for name in directory if name.endswith(".log.swap")]
    bases = sorted(int(match[1]) for match in map(LOG_NAME.fullmatch, directory) if match)
    logs = [base for base in bases if f"{base:020d}.log" in directory]

    def is_held(offset: int) -> bool:
        below = [base for base in logs if base <= offset]
        if not below:
            return False
        log = directory.read(f"{below[-1]:020d}.log") or b""
        batches = valid_batches(log[: end_of(log)])
        end = max((number(one.last_offset) + 1 for one in batches), default=below[-1] + 1)
        return below[-1] == offset or end > offset

    lowest = min((int(name.partition(".")[0]) for name in cleaned), default=None)
    return lowest is None or all(
        int(name.partition(".")[0]) < lowest or is_held(int(name.partition(".")[0]))
        for name in swapped
    )
