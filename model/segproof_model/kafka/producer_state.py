# SPDX-License-Identifier: Apache-2.0
"""The producer state of a partition: sequences, epochs, open transactions, and its snapshots.

Mirrors: impl/segproof/kafka/producer_state.py.
Upstream: Kafka, ProducerStateManager (4.3.1).
Laws: PROD-3, PROD-4, PROD-6, PROD-10 to PROD-15.
Not covered: verification of transactions (VerificationGuard, VerificationStateEntry); of older
    releases, what the flags of the profile don't say.
Used by: log_segment (recovery), partition_log.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from segproof_model.directory import Directory
from segproof_model.kafka.producer_append_info import (
    AppendOrigin,
    CompletedTxn,
    ProducerAppendInfo,
    TxnMetadata,
)
from segproof_model.kafka.producer_snapshot import (
    BatchMetadata,
    ProducerStateEntry,
    read_snapshot,
    write_snapshot,
)
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.kafka.segment_names import offset_of_name, segment_file_name
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

__all__ = [
    "AppendOrigin",
    "BatchMetadata",
    "CompletedTxn",
    "ProducerAppendInfo",
    "ProducerStateEntry",
    "ProducerStateManager",
    "TxnMetadata",
]

FILE_NOT_FOUND = Raised(ErrorKind.FILE_NOT_FOUND)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
NO_PRODUCER_ID = -1
LATE_TRANSACTION_BUFFER_MS = 5 * 60 * 1000
SNAPSHOT_SUFFIX, DELETED_SUFFIX = ".snapshot", ".deleted"


@dataclass(frozen=True, slots=True)
class ProducerStateManager:
    """The producer state of one partition.

    >>> manager = ProducerStateManager.open("").after.update_map_end_offset(7).after
    >>> manager = manager.take_snapshot().after
    >>> manager.latest_snapshot_offset(), list(manager.directory)
    (7, ['00000000000000000007.snapshot'])
    """

    profile: Profile = field(repr=False)
    directory: Directory = field(repr=False)
    dir: str
    """What stands before each name: "" or a directory's name with a slash."""
    producer_id_expiration_ms: int
    max_transaction_timeout_ms: int
    snapshots: tuple[tuple[int, str], ...]
    """Offset and file name of each known snapshot, by offset."""
    producers: tuple[ProducerStateEntry, ...] = ()
    """By producer id."""
    ongoing_txns: tuple[TxnMetadata, ...] = ()
    """The open transactions, by first offset."""
    unreplicated_txns: tuple[TxnMetadata, ...] = ()
    """Those whose marker lies above the high watermark, by first offset."""
    map_end_offset: int = 0
    """The offset behind the last one that the state knows; exclusive."""
    last_snapshot_offset: int = 0
    """What the map end offset must exceed for another snapshot (PROD-6)."""
    oldest_txn_last_timestamp: int = -1
    """When the producer of the earliest open transaction last wrote, as it was known when that
    transaction or its producer last changed; -1 without one."""

    @classmethod
    def open(
        cls,
        dir: str,  # noqa: A002 - the name that Kafka gives it
        *,
        producer_id_expiration_ms: int = 86400000,
        max_transaction_timeout_ms: int = 900000,
        directory: Directory = Directory(),
        profile: Profile = NEWEST_KAFKA,
    ) -> "Step[ProducerStateManager | Directory]":
        """List the snapshots; none is read before `truncate_and_reload`."""
        prefix = f"{dir.rstrip('/')}/" if dir else ""
        found = _listed(directory, prefix, profile)
        if isinstance(found, Raised):
            return Step(directory, found)
        return Step(
            cls(
                profile,
                directory,
                prefix,
                producer_id_expiration_ms,
                max_transaction_timeout_ms,
                found,
            )
        )

    def sees(self, directory: Directory) -> "ProducerStateManager":
        """Return the same state over this directory, in some releases with its snapshots."""
        if self.profile.snapshots_are_listed:
            found = _listed(directory, self.dir, self.profile)
            if not isinstance(found, Raised):
                return replace(self, directory=directory, snapshots=found)
        return replace(self, directory=directory)

    @property
    def active_producers(self) -> dict[int, ProducerStateEntry]:
        """What is known of each producer, by id."""
        return {entry.producer_id: entry for entry in self.producers}

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a producer nor a transaction waiting to be replicated."""
        return not self.producers and not self.unreplicated_txns

    def last_entry(self, producer_id: int) -> ProducerStateEntry | None:
        """Return what is known of one producer."""
        return self.active_producers.get(producer_id)

    def latest_snapshot_offset(self) -> int | None:
        """Return the offset of the newest snapshot."""
        return self.snapshots[-1][0] if self.snapshots else None

    def oldest_snapshot_offset(self) -> int | None:
        """Return the offset of the oldest snapshot."""
        return self.snapshots[0][0] if self.snapshots else None

    def first_undecided_offset(self) -> int | None:
        """Return where the earliest open transaction begins."""
        return self.ongoing_txns[0].first_offset if self.ongoing_txns else None

    def first_unstable_offset(self) -> int | None:
        """Return where the earliest transaction begins that is open or not yet replicated."""
        waiting = (*self.ongoing_txns, *self.unreplicated_txns)
        return min((txn.first_offset for txn in waiting), default=None)

    def has_late_transaction(self, current_time_ms: int) -> bool:
        """Return whether the earliest open transaction is silent for longer than is allowed."""
        timestamp = self.oldest_txn_last_timestamp
        allowed_ms = self.max_transaction_timeout_ms + LATE_TRANSACTION_BUFFER_MS
        return timestamp > 0 and current_time_ms - timestamp > allowed_ms

    def last_stable_offset(self, completed_txn: CompletedTxn) -> int:
        """Return the last stable offset once this transaction is completed (PROD-10)."""
        completed, first_offset, last_offset, _ = completed_txn
        if self.profile.stable_offset_by_producer:
            others = [txn for txn in self.ongoing_txns if txn.producer_id != completed]
        else:
            others = [txn for txn in self.ongoing_txns if txn.first_offset != first_offset]
        return min((txn.first_offset for txn in others), default=last_offset + 1)

    def complete_txn(self, completed_txn: CompletedTxn) -> "Step[ProducerStateManager]":
        """Take the transaction out of the open ones; it waits until it is replicated (PROD-11).

        One that is not open raises invalid-argument.
        """
        first = completed_txn.first_offset
        found = [txn for txn in self.ongoing_txns if txn.first_offset == first]
        if not found:
            return Step(self, INVALID_ARGUMENT)
        completed = found[0]._replace(last_offset=completed_txn.last_offset)
        return Step(
            replace(
                self,
                ongoing_txns=tuple(txn for txn in self.ongoing_txns if txn.first_offset != first),
                unreplicated_txns=_with_txns(self.unreplicated_txns, (completed,)),
            )._timed()
        )

    def on_high_watermark_updated(self, high_watermark: int) -> "Step[ProducerStateManager]":
        """Forget the completed transactions whose marker is replicated."""
        waiting = tuple(
            txn
            for txn in self.unreplicated_txns
            if txn.last_offset is None or txn.last_offset >= high_watermark
        )
        return Step(replace(self, unreplicated_txns=waiting))

    def prepare_update(self, producer_id: int, origin: AppendOrigin) -> ProducerAppendInfo:
        """Return what the batches of one producer are appended to before `update`."""
        current = self.last_entry(producer_id) or ProducerStateEntry(producer_id)
        updated = replace(current, batch_metadata=())
        return ProducerAppendInfo(self.profile, producer_id, current, origin, updated)

    def update(self, append_info: ProducerAppendInfo) -> "Step[ProducerStateManager]":
        """Let the appended batches count. Producer id -1 raises invalid-argument."""
        later = append_info.updated_entry
        if append_info.producer_id == NO_PRODUCER_ID:
            return Step(self, INVALID_ARGUMENT)
        known = self.last_entry(append_info.producer_id)
        entry = self._remembered(later if known is None else known.updated(later))
        ongoing = _with_txns(self.ongoing_txns, append_info.started_transactions)
        return Step(replace(self._with_producer(entry), ongoing_txns=ongoing)._timed())

    def _remembered(self, entry: ProducerStateEntry) -> ProducerStateEntry:
        """Return what older releases remember of an entry."""
        batches = entry.batch_metadata
        if self.profile.producer_time_is_of_batches:
            return replace(entry, last_timestamp=batches[-1].timestamp if batches else -1)
        return (
            replace(entry, batch_metadata=batches[-1:])
            if self.profile.producer_entry_is_flat
            else entry
        )

    def update_producers(
        self, batch: RecordBatch, origin: AppendOrigin = "replication"
    ) -> "Step[ProducerStateManager]":
        """Prepare, append and update with one batch; return the transaction it completes, or None.

        A batch without a producer id, and one that is refused, change nothing.
        """
        producer_id = batch.producer_id
        if isinstance(producer_id, Raised):
            return Step(self, producer_id)
        if producer_id <= NO_PRODUCER_ID:
            return Step(self)
        appended = self.prepare_update(producer_id, origin).append(batch)
        if isinstance(appended.outcome, Raised):
            return Step(self, appended.outcome)
        return Step(self.update(appended.after).after, appended.outcome)

    def load_producer_entry(self, entry: ProducerStateEntry) -> "Step[ProducerStateManager]":
        """Take in an entry as it is, with its open transaction."""
        first_offset = entry.current_txn_first_offset
        ongoing = self.ongoing_txns
        if first_offset is not None:
            ongoing = _with_txns(ongoing, (TxnMetadata(entry.producer_id, first_offset),))
        return Step(replace(self._with_producer(entry), ongoing_txns=ongoing))

    def update_map_end_offset(self, last_offset: int) -> "Step[ProducerStateManager]":
        """Say up to which offset, exclusive, the state is known (PROD-15)."""
        return Step(replace(self, map_end_offset=last_offset))

    def take_snapshot(self) -> "Step[ProducerStateManager]":
        """Write a snapshot at the map end offset, unless there is one; return its offset (PROD-6).

        Nothing is written, and None returned, unless the map end offset has passed the last one.
        """
        offset = self.map_end_offset
        if offset <= self.last_snapshot_offset:
            return Step(self)
        name = self.dir + segment_file_name(offset, SNAPSHOT_SUFFIX)
        data = write_snapshot(self.producers)
        if self.profile.snapshot_overwrites_in_place:
            data += (self.directory.read(name) or b"")[len(data) :]
        return Step(
            replace(
                self,
                directory=self.directory.write(name, data),
                snapshots=tuple(sorted({**dict(self.snapshots), offset: name}.items())),
                last_snapshot_offset=offset,
            ),
            offset,
        )

    def truncate_and_reload(
        self, log_start_offset: int, log_end_offset: int, current_time_ms: int
    ) -> "Step[ProducerStateManager]":
        """Remove the snapshots outside of (start, end], and load the newest one left (PROD-13).

        Where the state ends at the end of the log already, it stays. Corrupt snapshots are removed
        (PROD-3); without any left, the state is empty and ends at the start of the log.
        """
        outside = [
            offset
            for offset, _ in self.snapshots
            if not log_start_offset < offset <= log_end_offset
        ]
        kept = self._without_snapshots(outside)
        if log_end_offset == self.map_end_offset:
            return kept.on_log_start_offset_incremented(log_start_offset)
        cleared = replace(kept, producers=(), ongoing_txns=(), unreplicated_txns=())._timed()
        return cleared._loaded(log_start_offset, current_time_ms)

    def truncate_fully_and_start_at(self, offset: int) -> "Step[ProducerStateManager]":
        """Forget everything, remove every snapshot, and begin at `offset`."""
        cleared = self._without_snapshots([known for known, _ in self.snapshots])
        return Step(
            replace(
                cleared,
                producers=(),
                ongoing_txns=(),
                unreplicated_txns=(),
                map_end_offset=offset,
                last_snapshot_offset=0,
            )._timed()
        )

    def on_log_start_offset_incremented(
        self, log_start_offset: int
    ) -> "Step[ProducerStateManager]":
        """Forget transactions that ended before the log begins; the map ends there at least."""
        retained = self._retained(log_start_offset)
        kept = retained.on_high_watermark_updated(log_start_offset).after
        if self.profile.snapshots_are_listed:
            kept = kept.delete_snapshots_before(log_start_offset).after
        latest = kept.latest_snapshot_offset()
        return Step(
            replace(
                kept,
                map_end_offset=max(kept.map_end_offset, log_start_offset),
                last_snapshot_offset=log_start_offset if latest is None else latest,
            )
        )

    def remove_expired_producers(self, current_time_ms: int) -> "Step[ProducerStateManager]":
        """Forget the producers that are silent for too long (PROD-12)."""
        kept = tuple(
            entry for entry in self.producers if not self.is_expired(entry, current_time_ms)
        )
        return Step(replace(self, producers=kept))

    def is_expired(self, entry: ProducerStateEntry, current_time_ms: int) -> bool:
        """Return whether a producer is silent for too long, no transaction being open."""
        silent_ms = current_time_ms - entry.last_timestamp
        return entry.current_txn_first_offset is None and (
            silent_ms >= self.producer_id_expiration_ms
        )

    def remove_stray_snapshots(
        self, segment_base_offsets: Collection[int]
    ) -> "Step[ProducerStateManager]":
        """List the snapshots anew, and remove those that no segment begins at.

        The newest of them stays if it lies above every segment: a clean shutdown wrote it. Releases
        that list the snapshots each time remove none.
        """
        if self.profile.snapshots_are_listed:
            return Step(self)
        found = _listed(self.directory, self.dir, self.profile)
        if isinstance(found, Raised):
            return Step(self, found)
        stray = [offset for offset, _ in found if offset not in segment_base_offsets]
        if stray and stray[-1] > max(segment_base_offsets, default=stray[-1] - 1):
            stray.pop()
        return Step(replace(self, snapshots=found)._without_snapshots(stray))

    def delete_snapshots_before(self, offset: int) -> "Step[ProducerStateManager]":
        """Remove the snapshots from offset 0 to `offset`, exclusive.

        A negative offset raises invalid-argument.
        """
        if offset < 0:
            return Step(self, INVALID_ARGUMENT)
        before = [known for known, _ in self.snapshots if 0 <= known < offset]
        return Step(self._without_snapshots(before))

    def remove_and_mark_snapshot_for_deletion(self, offset: int) -> "Step[ProducerStateManager]":
        """Add `.deleted` to the name of a snapshot; return its offset, None if there is none."""
        name = dict(self.snapshots).get(offset)
        if name is None:
            return Step(self)
        after = replace(self, snapshots=tuple(one for one in self.snapshots if one[0] != offset))
        if name not in self.directory:
            return Step(after)
        moved = self.directory.rename(name, name + DELETED_SUFFIX)
        return Step(replace(after, directory=moved), offset)

    def _retained(self, log_start_offset: int) -> "ProducerStateManager":
        """Return the state without the producers that the log start evicts, in some releases."""
        if not self.profile.log_start_evicts_producers:
            return self
        kept = tuple(one for one in self.producers if one.last_offset >= log_start_offset)
        known = {one.producer_id for one in kept}
        evicted = {one.producer_id for one in self.producers} - known
        ongoing = tuple(txn for txn in self.ongoing_txns if txn.producer_id not in evicted)
        return replace(self, producers=kept, ongoing_txns=ongoing)

    def _with_producer(self, entry: ProducerStateEntry) -> "ProducerStateManager":
        known = {**self.active_producers, entry.producer_id: entry}
        return replace(self, producers=tuple(known[producer_id] for producer_id in sorted(known)))

    def _timed(self) -> "ProducerStateManager":
        """Return the state with the time at which the oldest open transaction was last written."""
        entry = self.last_entry(self.ongoing_txns[0].producer_id) if self.ongoing_txns else None
        return replace(
            self, oldest_txn_last_timestamp=-1 if entry is None else entry.last_timestamp
        )

    def _without_snapshots(self, offsets: Collection[int]) -> "ProducerStateManager":
        directory = self.directory
        for offset, name in self.snapshots:
            if offset in offsets:
                directory = directory.remove(name)
        kept = tuple(one for one in self.snapshots if one[0] not in offsets)
        return replace(self, directory=directory, snapshots=kept)

    def _loaded(self, log_start_offset: int, current_time_ms: int) -> "Step[ProducerStateManager]":
        """Return the state with the newest snapshot that can be read; there is no state yet."""
        if not self.snapshots:
            start = log_start_offset
            return Step(replace(self, last_snapshot_offset=start, map_end_offset=start))
        offset, name = self.snapshots[-1]
        data = self.directory.read(name)
        if data is None and not self.profile.missing_snapshot_is_skipped:
            return Step(self, FILE_NOT_FOUND)
        entries = read_snapshot(data or b"", profile=self.profile)
        if isinstance(entries, Raised):
            older = self._without_snapshots([offset])
            return older._loaded(log_start_offset, current_time_ms)
        loaded = self
        for entry in entries:
            if not self.is_expired(entry, current_time_ms):
                loaded = loaded.load_producer_entry(entry).after
        loaded = loaded._retained(log_start_offset)
        return Step(replace(loaded, last_snapshot_offset=offset, map_end_offset=offset)._timed())


def _listed(
    directory: Directory, prefix: str, profile: Profile
) -> tuple[tuple[int, str], ...] | Raised:
    """Return offset and name of each snapshot in the directory, by offset."""
    found: dict[int, str] = {}
    for name in directory:
        short = name.removeprefix(prefix)
        if not name.startswith(prefix) or "/" in short or not short.endswith(SNAPSHOT_SUFFIX):
            continue
        offset = offset_of_name(short)
        is_exact = not isinstance(offset, Raised) and short == segment_file_name(
            offset, SNAPSHOT_SUFFIX
        )
        if profile.snapshot_names_exact and not is_exact:
            continue
        if isinstance(offset, Raised):
            return offset
        found[offset] = name
    return tuple(sorted(found.items()))


def _with_txns(
    txns: tuple[TxnMetadata, ...], added: tuple[TxnMetadata, ...]
) -> tuple[TxnMetadata, ...]:
    """Return the transactions by first offset, the added ones in place of those they repeat."""
    known = {txn.first_offset: txn for txn in (*txns, *added)}
    return tuple(known[first_offset] for first_offset in sorted(known))
