# SPDX-License-Identifier: Apache-2.0
"""The producer state of a partition: sequences, epochs, open transactions, and its snapshots.

Upstream: Kafka 4.4.0, ProducerStateManager. Otherwise: producer_releases, producer_deviations.
Laws: PROD-3, PROD-4, PROD-6, PROD-10 to PROD-15.
Not covered: verification of transactions (VerificationGuard, VerificationStateEntry).
"""

from collections.abc import Collection, Mapping

from segproof_model.kafka.broker.producer_append_info import (
    AppendOrigin,
    ProducerAppendInfo,
    TxnMetadata,
)
from segproof_model.kafka.broker.producer_snapshot import (
    ProducerStateEntry,
    read_snapshot,
    write_snapshot,
)
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.segment_names import offset_of_name, segment_file_name
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, State, refuse

NO_PRODUCER_ID = -1
LATE_TRANSACTION_BUFFER_MS = 5 * 60 * 1000
SNAPSHOT_SUFFIX, DELETED_SUFFIX = ".snapshot", ".deleted"


class ProducerStateManager(State):
    """The producer state of one partition.

    >>> manager = ProducerStateManager(Files())
    >>> manager.update_map_end_offset(7)
    >>> manager.take_snapshot(), list(manager.files)
    (7, ['00000000000000000007.snapshot'])
    """

    def __init__(
        self,
        files: Files,
        dir: str = "",  # noqa: A002 - the name that Kafka gives it
        *,
        producer_id_expiration_ms: int = 86400000,
        max_transaction_timeout_ms: int = 900000,
    ) -> None:
        """List the snapshots; none is read before `truncate_and_reload`."""
        self.files = files
        self.dir = f"{dir.rstrip('/')}/" if dir else ""
        """What stands before each name: "" or a directory's name with a slash."""
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.max_transaction_timeout_ms = max_transaction_timeout_ms
        self.snapshots: Mapping[int, str] = self.list_snapshots()
        """The file name of each known snapshot, by offset."""
        self.map_end_offset = 0
        """The offset behind the last one that the state knows; exclusive."""
        self.last_snapshot_offset = 0
        """What the map end offset must exceed for another snapshot (PROD-6)."""
        self.active_producers: Mapping[int, ProducerStateEntry] = {}
        """What is known of each producer, by id."""
        self.ongoing_txns: tuple[TxnMetadata, ...] = ()
        """The open transactions, by first offset."""
        self.unreplicated_txns: tuple[TxnMetadata, ...] = ()
        """Those whose marker lies above the high watermark, by first offset."""
        self.oldest_txn_last_timestamp = -1
        """When the producer of the earliest open transaction last wrote, as it was known when that
        transaction or its producer last changed; -1 without one."""

    # --- what is asked of it -------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a producer nor a transaction waiting to be replicated."""
        return not self.active_producers and not self.unreplicated_txns

    def last_entry(self, producer_id: int) -> ProducerStateEntry | None:
        """Return what is known of one producer."""
        return self.active_producers.get(producer_id)

    def latest_snapshot_offset(self) -> int | None:
        """Return the offset of the newest snapshot."""
        return max(self.snapshots, default=None)

    def oldest_snapshot_offset(self) -> int | None:
        """Return the offset of the oldest snapshot."""
        return min(self.snapshots, default=None)

    def first_undecided_offset(self) -> int | None:
        """Return where the earliest open transaction begins."""
        return self.ongoing_txns[0].first_offset if self.ongoing_txns else None

    @property
    def waiting_txns(self) -> tuple[TxnMetadata, ...]:
        """The transactions that are open or not yet replicated."""
        return (*self.ongoing_txns, *self.unreplicated_txns)

    def first_unstable_offset(self) -> int | None:
        """Return the first offset of a transaction that is open or not yet replicated."""
        return min((txn.first_offset for txn in self.waiting_txns), default=None)

    def has_late_transaction(self, current_time_ms: int) -> bool:
        """Return whether the earliest open transaction is silent for longer than is allowed."""
        timestamp = self.oldest_txn_last_timestamp
        allowed_ms = self.max_transaction_timeout_ms + LATE_TRANSACTION_BUFFER_MS
        return timestamp > 0 and current_time_ms - timestamp > allowed_ms

    def last_stable_offset(self, completed_txn: CompletedTxn) -> int:
        """Return the last stable offset once this transaction is completed (PROD-10).

        It is where the earliest open transaction of another producer begins.
        """
        others = (
            txn.first_offset
            for txn in self.ongoing_txns
            if txn.producer_id != completed_txn.producer_id
        )
        return min(others, default=completed_txn.last_offset + 1)

    def is_expired(self, entry: ProducerStateEntry, current_time_ms: int) -> bool:
        """Return whether a producer is silent for too long, no transaction being open."""
        silent_ms = current_time_ms - entry.last_timestamp
        return entry.current_txn_first_offset is None and (
            silent_ms >= self.producer_id_expiration_ms
        )

    # --- batches and transactions --------------------------------------------------------------

    def prepare_update(self, producer_id: int, origin: AppendOrigin) -> ProducerAppendInfo:
        """Return what the batches of one producer are appended to before `update`."""
        known = self.last_entry(producer_id) or ProducerStateEntry(producer_id)
        return self.kind(ProducerAppendInfo)(producer_id, known, origin)

    def update(self, append_info: ProducerAppendInfo) -> None:
        """Let the appended batches count. Producer id -1 raises invalid-argument."""
        if append_info.producer_id == NO_PRODUCER_ID:
            refuse(ErrorKind.INVALID_ARGUMENT)
        known, later = self.last_entry(append_info.producer_id), append_info.updated_entry
        self.add_entry(later if known is None else known.updated(later))
        self.ongoing_txns = with_txns(self.ongoing_txns, *append_info.started_transactions)
        self.update_oldest_txn_timestamp()

    def update_producers(
        self, batch: RecordBatch, origin: AppendOrigin = "replication"
    ) -> CompletedTxn | None:
        """Prepare, append and update with one batch; return the transaction it completes, or None.

        A batch without a producer id, and one that is refused, change nothing.
        """
        if batch.producer_id <= NO_PRODUCER_ID:
            return None
        append_info = self.prepare_update(batch.producer_id, origin)
        completed = append_info.append(batch)
        self.update(append_info)
        return completed

    def load_producer_entry(self, entry: ProducerStateEntry) -> None:
        """Take in an entry as it is, with its open transaction."""
        self.add_entry(entry)
        if entry.current_txn_first_offset is not None:
            opened = TxnMetadata(entry.producer_id, entry.current_txn_first_offset)
            self.ongoing_txns = with_txns(self.ongoing_txns, opened)

    def add_entry(self, entry: ProducerStateEntry) -> None:
        """Let this be what is known of its producer."""
        self.active_producers = {**self.active_producers, entry.producer_id: entry}

    def update_map_end_offset(self, last_offset: int) -> None:
        """Say up to which offset, exclusive, the state is known (PROD-15)."""
        self.map_end_offset = last_offset

    def complete_txn(self, completed_txn: CompletedTxn) -> None:
        """Take the transaction out of the open ones; it waits until it is replicated (PROD-11).

        One that is not open raises invalid-argument.
        """
        first = completed_txn.first_offset
        found = [txn for txn in self.ongoing_txns if txn.first_offset == first]
        if not found:
            refuse(ErrorKind.INVALID_ARGUMENT)
        completed = found[0]._replace(last_offset=completed_txn.last_offset)
        self.ongoing_txns = tuple(txn for txn in self.ongoing_txns if txn.first_offset != first)
        self.unreplicated_txns = with_txns(self.unreplicated_txns, completed)
        self.update_oldest_txn_timestamp()

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Forget the completed transactions whose marker is replicated."""
        self.unreplicated_txns = tuple(
            txn
            for txn in self.unreplicated_txns
            if txn.last_offset is None or txn.last_offset >= high_watermark
        )

    def update_oldest_txn_timestamp(self) -> None:
        """Remember when the producer of the earliest open transaction last wrote."""
        entry = self.last_entry(self.ongoing_txns[0].producer_id) if self.ongoing_txns else None
        self.oldest_txn_last_timestamp = -1 if entry is None else entry.last_timestamp

    def remove_expired_producers(self, current_time_ms: int) -> None:
        """Forget the producers that are silent for too long (PROD-12)."""
        self.active_producers = {
            producer_id: entry
            for producer_id, entry in self.active_producers.items()
            if not self.is_expired(entry, current_time_ms)
        }

    def forget_producers(self) -> None:
        """Forget every producer and every transaction."""
        self.active_producers = {}
        self.ongoing_txns = self.unreplicated_txns = ()
        self.oldest_txn_last_timestamp = -1

    # --- snapshots -----------------------------------------------------------------------------

    def take_snapshot(self) -> int | None:
        """Write a snapshot at the map end offset, unless there is one; return its offset (PROD-6).

        Nothing is written, and None returned, unless the map end offset has passed the last one.
        """
        offset = self.map_end_offset
        if offset <= self.last_snapshot_offset:
            return None
        name = self.dir + segment_file_name(offset, SNAPSHOT_SUFFIX)
        self.write_snapshot(name)
        self.snapshots = {**self.snapshots, offset: name}
        self.last_snapshot_offset = offset
        return offset

    def write_snapshot(self, name: str) -> None:
        """Write what is known of each producer; a longer file of that name keeps its tail."""
        data = write_snapshot(entry for _, entry in sorted(self.active_producers.items()))
        self.files.write(name, data + self.files.image(name)[len(data) :])

    def read_snapshot(self, name: str) -> list[ProducerStateEntry]:
        """Return the entries in a snapshot."""
        if name not in self.files:
            refuse(ErrorKind.FILE_NOT_FOUND)
        return read_snapshot(self.files.image(name))

    def truncate_and_reload(
        self, log_start_offset: int, log_end_offset: int, current_time_ms: int
    ) -> None:
        """Remove the snapshots outside of (start, end], and load the newest one left (PROD-13).

        Where the state ends at the end of the log already, it stays.
        """
        for offset in list(self.snapshots):
            if not log_start_offset < offset <= log_end_offset:
                self.remove_and_delete_snapshot(offset)
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
        else:
            self.forget_producers()
            self.load_from_snapshot(log_start_offset, current_time_ms)

    def load_from_snapshot(self, log_start_offset: int, current_time_ms: int) -> None:
        """Load the newest snapshot, but for producers that are silent for too long.

        Corrupt snapshots are removed (PROD-3); without any left, the state is empty and ends at the
        start of the log.
        """
        while self.snapshots:
            offset = max(self.snapshots)
            try:
                entries = self.read_snapshot(self.snapshots[offset])
            except Refused as error:
                if error.kind != ErrorKind.CORRUPT_SNAPSHOT:
                    raise
                self.remove_and_delete_snapshot(offset)
                continue
            for entry in entries:
                if not self.is_expired(entry, current_time_ms):
                    self.load_producer_entry(entry)
            self.last_snapshot_offset = self.map_end_offset = offset
            self.update_oldest_txn_timestamp()
            return
        self.last_snapshot_offset = self.map_end_offset = log_start_offset

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forget everything, remove every snapshot, and begin at `offset`."""
        self.forget_producers()
        for known in list(self.snapshots):
            self.remove_and_delete_snapshot(known)
        self.last_snapshot_offset, self.map_end_offset = 0, offset

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Forget transactions that ended before the log begins; the map ends there at least."""
        self.on_high_watermark_updated(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        latest = self.latest_snapshot_offset()
        self.last_snapshot_offset = log_start_offset if latest is None else latest

    def remove_stray_snapshots(self, segment_base_offsets: Collection[int]) -> None:
        """List the snapshots anew, and remove those that no segment begins at.

        The newest of them stays if it lies above every segment: a clean shutdown wrote it.
        """
        self.snapshots = self.list_snapshots()
        stray = sorted(set(self.snapshots) - set(segment_base_offsets))
        if stray and stray[-1] > max(segment_base_offsets, default=stray[-1] - 1):
            stray.pop()
        for offset in stray:
            self.remove_and_delete_snapshot(offset)

    def delete_snapshots_before(self, offset: int) -> None:
        """Remove the snapshots from offset 0 to `offset`, exclusive.

        A negative offset raises invalid-argument.
        """
        if offset < 0:
            refuse(ErrorKind.INVALID_ARGUMENT)
        for known in list(self.snapshots):
            if 0 <= known < offset:
                self.remove_and_delete_snapshot(known)

    def remove_and_mark_snapshot_for_deletion(self, offset: int) -> int | None:
        """Add `.deleted` to the name of a snapshot; return its offset, None if there is none."""
        name = self.forget_snapshot(offset)
        is_renamed = name is not None and self.files.rename(name, name + DELETED_SUFFIX)
        return offset if is_renamed else None

    def remove_and_delete_snapshot(self, offset: int) -> None:
        """Remove a snapshot, if there is one."""
        name = self.forget_snapshot(offset)
        if name is not None:
            self.files.remove(name)

    def forget_snapshot(self, offset: int) -> str | None:
        """Take a snapshot off the list; return its name, None if there was none."""
        known = dict(self.snapshots)
        name = known.pop(offset, None)
        self.snapshots = known
        return name

    def list_snapshots(self) -> Mapping[int, str]:
        """Return the name of each snapshot in the directory, by offset."""
        found: dict[int, str] = {}
        for name in self.files:
            short = name.removeprefix(self.dir)
            if name.startswith(self.dir) and "/" not in short and self.is_snapshot_file(short):
                found[offset_of_name(short)] = name
        return found

    def is_snapshot_file(self, name: str) -> bool:
        """Return whether a file is a snapshot; its name is without the directory."""
        return name.endswith(SNAPSHOT_SUFFIX)


def with_txns(txns: tuple[TxnMetadata, ...], *added: TxnMetadata) -> tuple[TxnMetadata, ...]:
    """Return the transactions by first offset, the added ones in place of those they repeat."""
    known = {txn.first_offset: txn for txn in (*txns, *added)}
    return tuple(known[first_offset] for first_offset in sorted(known))
