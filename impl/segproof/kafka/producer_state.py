# SPDX-License-Identifier: Apache-2.0
"""The producer state of a partition: sequences, epochs, open transactions, and its snapshots.

Upstream: Kafka, ProducerStateManager (4.3.1).
Laws: PROD-3, PROD-4, PROD-6, PROD-10 to PROD-15.
Not covered: verification of transactions (VerificationGuard, VerificationStateEntry).
"""

import os
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from itertools import islice
from types import MappingProxyType

from segproof.closing import told_state
from segproof.counts import plural
from segproof.errors import CorruptSnapshotError, InvalidArgumentError, ReadOnlyError
from segproof.files import REAL_FILES, Files
from segproof.kafka.producer_append_info import (
    AppendOrigin,
    CompletedTxn,
    ProducerAppendInfo,
    TxnMetadata,
)
from segproof.kafka.producer_snapshot import (
    ProducerStateEntry,
    read_snapshot_file,
    write_snapshot_file,
)
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.segment_names import offset_of_name, segment_file_name
from segproof.kernels.producer_rules import is_expired, stable_offset

_NO_PRODUCER_ID = -1
_LATE_TRANSACTION_BUFFER_MS = 5 * 60 * 1000
_SUFFIX, _DELETED_SUFFIX = ".snapshot", ".deleted"


class _Transactions:
    """Transactions by first offset; the earliest is known without a look at the others.

    A log may hold as many open ones as batches, so nothing that a batch does may cost a walk.
    """

    def __init__(self, transactions: Iterable[TxnMetadata] = ()) -> None:
        self._by_first = {txn.first_offset: txn for txn in transactions}
        self._firsts: list[int] | None = None
        """The first offsets, rising; None until they are asked for."""

    def __len__(self) -> int:
        return len(self._by_first)

    def __iter__(self) -> Iterator[TxnMetadata]:
        return (self._by_first[first] for first in self._rising())

    def __contains__(self, first_offset: int) -> bool:
        return first_offset in self._by_first

    def _rising(self) -> list[int]:
        if self._firsts is None:
            self._firsts = sorted(self._by_first)
        return self._firsts

    @property
    def earliest(self) -> TxnMetadata | None:
        """The one with the smallest first offset."""
        return next(iter(self), None)

    def add(self, transaction: TxnMetadata) -> None:
        """Add one, in place of another with the same first offset."""
        first = transaction.first_offset
        if self._firsts is not None and first not in self._by_first:
            insort(self._firsts, first)
        self._by_first[first] = transaction

    def pop(self, first_offset: int) -> TxnMetadata | None:
        """Take out the one that begins there, if there is one."""
        transaction = self._by_first.pop(first_offset, None)
        if transaction is not None and self._firsts is not None:
            del self._firsts[bisect_left(self._firsts, first_offset)]
        return transaction


class ProducerStateManager:
    """The producer state of one partition, in the directory `dir`.

    Without `writable` its snapshots are read, and none is written or removed. Nothing is written
    before `take_snapshot`. One thread changes the state; what the queries
    return are values that don't change under a reader.
    """

    def __init__(
        self,
        dir: str | os.PathLike[str],  # noqa: A002 - the name that Kafka gives it
        *,
        producer_id_expiration_ms: int = 86400000,
        max_transaction_timeout_ms: int = 900000,
        writable: bool = False,
        files: Files = REAL_FILES,
    ) -> None:
        self.dir = os.fspath(dir)
        self.writable = writable
        """Whether it may write and remove snapshots."""
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.max_transaction_timeout_ms = max_transaction_timeout_ms
        self.map_end_offset = 0
        """The offset behind the last one that the state knows; exclusive."""
        self.last_snapshot_offset = 0
        """What the map end offset must exceed for another snapshot (PROD-6)."""
        self.oldest_txn_last_timestamp = -1
        """When the producer of the earliest open transaction last wrote, as it was known when that
        transaction or its producer last changed; -1 without one."""
        self._files = files
        self._producers: dict[int, ProducerStateEntry] = {}
        self._ongoing = _Transactions()
        self._unreplicated = _Transactions()
        self._syncs_directory = True
        self._snapshots = self._listed()
        """The offsets of the snapshots, rising."""

    @classmethod
    def open(
        cls,
        dir: str | os.PathLike[str],  # noqa: A002 - the name that Kafka gives it
        *,
        producer_id_expiration_ms: int = 86400000,
        max_transaction_timeout_ms: int = 900000,
        writable: bool = False,
        files: Files = REAL_FILES,
    ) -> "ProducerStateManager":
        """List the snapshots; none is read before `truncate_and_reload`.

        Raises: OSError if the directory can't be listed.
        """
        return cls(
            dir,
            producer_id_expiration_ms=producer_id_expiration_ms,
            max_transaction_timeout_ms=max_transaction_timeout_ms,
            writable=writable,
            files=files,
        )

    def forgetful_twin(self) -> "ProducerStateManager":
        """Return a state that knows nothing yet but the snapshots, which are not listed again.

        Both go on to share what they know of the snapshots. As a loading needs it that recovers one
        segment after another: the name of a snapshot which the new state takes is durable once the
        caller has synced the directory, its bytes at once.
        """
        twin = copy(self)
        twin._syncs_directory = False
        twin._forget()
        return twin

    def _forget(self, map_end_offset: int = 0) -> None:
        """Know nothing any more of producers, transactions, and snapshots taken."""
        self._producers, self._ongoing, self._unreplicated = {}, _Transactions(), _Transactions()
        self.map_end_offset, self.last_snapshot_offset = map_end_offset, 0
        self.oldest_txn_last_timestamp = -1

    def __repr__(self) -> str:
        producers = plural(len(self._producers), "producer")
        told = told_state(producers, is_open=True, writable=self.writable)
        return f"ProducerStateManager({self.dir!r}, {told}, map end offset {self.map_end_offset})"

    @property
    def active_producers(self) -> MappingProxyType[int, ProducerStateEntry]:
        """What is known of each producer, by id; a view of the present state."""
        return MappingProxyType(self._producers)

    @property
    def ongoing_txns(self) -> tuple[TxnMetadata, ...]:
        """The open transactions, by first offset."""
        return tuple(self._ongoing)

    @property
    def unreplicated_txns(self) -> tuple[TxnMetadata, ...]:
        """Those whose marker lies above the high watermark, by first offset."""
        return tuple(self._unreplicated)

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a producer nor a transaction waiting to be replicated."""
        return not self._producers and not self._unreplicated

    def last_entry(self, producer_id: int) -> ProducerStateEntry | None:
        """Return what is known of one producer."""
        return self._producers.get(producer_id)

    def latest_snapshot_offset(self) -> int | None:
        """Return the offset of the newest snapshot."""
        return self._snapshots[-1] if self._snapshots else None

    def oldest_snapshot_offset(self) -> int | None:
        """Return the offset of the oldest snapshot."""
        return self._snapshots[0] if self._snapshots else None

    def first_undecided_offset(self) -> int | None:
        """Return where the earliest open transaction begins."""
        earliest = self._ongoing.earliest
        return None if earliest is None else earliest.first_offset

    def first_unstable_offset(self) -> int | None:
        """Return where the earliest transaction begins that is open or not yet replicated."""
        earliest = (self._ongoing.earliest, self._unreplicated.earliest)
        return min((txn.first_offset for txn in earliest if txn is not None), default=None)

    def has_late_transaction(self, current_time_ms: int) -> bool:
        """Return whether the earliest open transaction is silent for longer than is allowed."""
        timestamp = self.oldest_txn_last_timestamp
        allowed_ms = self.max_transaction_timeout_ms + _LATE_TRANSACTION_BUFFER_MS
        return timestamp > 0 and current_time_ms - timestamp > allowed_ms

    def last_stable_offset(self, completed_txn: CompletedTxn) -> int:
        """Return the last stable offset once this transaction is completed.

        Laws: PROD-10.
        """
        open_txns = (txn[:2] for txn in self._ongoing)
        return stable_offset(open_txns, completed_txn.producer_id, completed_txn.last_offset)

    def complete_txn(self, completed_txn: CompletedTxn) -> None:
        """Take the transaction out of the open ones; it waits until it is replicated.

        Laws: PROD-11.
        Raises: InvalidArgumentError for one that is not open.
        """
        txn = self._ongoing.pop(completed_txn.first_offset)
        if txn is None:
            raise self._not_open(completed_txn)
        self._unreplicated.add(txn._replace(last_offset=completed_txn.last_offset))
        self._time_oldest_txn()

    def _not_open(self, completed_txn: CompletedTxn) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"no open transaction begins at {completed_txn.first_offset}",
            law="PROD-11",
            expected=[txn.first_offset for txn in islice(self._ongoing, 10)],
            actual=completed_txn.first_offset,
        )

    def check_completed(
        self, infos: Iterable[ProducerAppendInfo], completed_txns: Iterable[CompletedTxn]
    ) -> None:
        """Return if each transaction is open once `update` has taken the infos; else raise."""
        begun = {txn.first_offset for info in infos for txn in info.started_transactions}
        ended: set[int] = set()
        for completed in completed_txns:
            first = completed.first_offset
            if first in ended or not (first in begun or first in self._ongoing):
                raise self._not_open(completed)
            ended.add(first)

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Forget the completed transactions whose marker is replicated."""
        self._unreplicated = _Transactions(
            txn
            for txn in self._unreplicated
            if txn.last_offset is None or txn.last_offset >= high_watermark
        )

    def prepare_update(self, producer_id: int, origin: AppendOrigin) -> ProducerAppendInfo:
        """Return what the batches of one producer are appended to before `update`.

        Raises: InvalidArgumentError for an unknown origin.
        """
        current = self._producers.get(producer_id)
        return ProducerAppendInfo(producer_id, current or ProducerStateEntry(producer_id), origin)

    def update(self, append_info: ProducerAppendInfo) -> None:
        """Let the appended batches count.

        Raises: InvalidArgumentError for producer id -1.
        """
        producer_id, later = append_info.producer_id, append_info.updated_entry
        if producer_id == _NO_PRODUCER_ID:
            raise InvalidArgumentError("there is no state of records without a producer id")
        known = self._producers.get(producer_id)
        self._producers[producer_id] = later if known is None else known.updated(later)
        for txn in append_info.started_transactions:
            self._ongoing.add(txn)
        self._time_oldest_txn()

    def update_producers(
        self, batch: RecordBatch, origin: AppendOrigin = "replication"
    ) -> CompletedTxn | None:
        """Prepare, append and update with one batch; return the transaction it completes, or None.

        A batch without a producer id, and one that is refused, change nothing.
        Raises: as `ProducerAppendInfo.append`.
        """
        producer_id = batch.producer_id
        if producer_id <= _NO_PRODUCER_ID:
            return None
        append_info = self.prepare_update(producer_id, origin)
        completed = append_info.append(batch)
        self.update(append_info)
        return completed

    def load_producer_entry(self, entry: ProducerStateEntry) -> None:
        """Take in an entry as it is, with its open transaction."""
        self._producers[entry.producer_id] = entry
        first_offset = entry.current_txn_first_offset
        if first_offset is not None:
            self._ongoing.add(TxnMetadata(entry.producer_id, first_offset))

    def update_map_end_offset(self, last_offset: int) -> None:
        """Say up to which offset, exclusive, the state is known.

        Laws: PROD-15.
        """
        self.map_end_offset = last_offset

    def take_snapshot(self) -> int | None:
        """Write a snapshot at the map end offset, unless there is one; return its offset.

        Nothing is written, and None returned, unless the map end offset has passed the last one.
        Laws: PROD-1, PROD-6.
        Raises: OSError, and then the state in memory has not changed.
        """
        self._check_writable()
        offset = self.map_end_offset
        if offset <= self.last_snapshot_offset:
            return None
        entries = (self._producers[producer_id] for producer_id in sorted(self._producers))
        write_snapshot_file(
            self._path(offset), entries, files=self._files, syncs_directory=self._syncs_directory
        )
        place = bisect_left(self._snapshots, offset)
        if self._snapshots[place : place + 1] != [offset]:
            self._snapshots.insert(place, offset)
        self.last_snapshot_offset = offset
        return offset

    def truncate_and_reload(
        self, log_start_offset: int, log_end_offset: int, current_time_ms: int
    ) -> None:
        """Remove the snapshots outside of (start, end], and load the newest one left.

        Where the state ends at the end of the log already, it stays. Corrupt snapshots are removed;
        without any left, the state is empty and ends at the start of the log. A state that is
        open for reading only forgets what it would remove.
        Laws: PROD-3, PROD-13.
        Raises: OSError, and then the state in memory has not changed.
        """
        first = bisect_right(self._snapshots, log_start_offset)
        end = max(first, bisect_right(self._snapshots, log_end_offset))
        self._remove(self._snapshots[:first] + self._snapshots[end:])
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
            return
        offset, entries = self._newest_snapshot()
        self._forget()
        for entry in entries:
            if not self._is_expired(entry, current_time_ms):
                self.load_producer_entry(entry)
        end = log_start_offset if offset is None else offset
        self.map_end_offset = self.last_snapshot_offset = end
        self._time_oldest_txn()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forget everything, remove every snapshot, and begin at `offset`.

        Raises: OSError, and then the state in memory has not changed.
        """
        self._check_writable()
        self._remove(self._snapshots.copy())
        self._forget(offset)

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Forget transactions that ended before the log begins; the map ends there at least."""
        self.on_high_watermark_updated(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        latest = self.latest_snapshot_offset()
        self.last_snapshot_offset = log_start_offset if latest is None else latest

    def remove_expired_producers(self, current_time_ms: int) -> None:
        """Forget the producers that are silent for too long.

        Laws: PROD-12.
        """
        self._producers = {
            producer_id: entry
            for producer_id, entry in self._producers.items()
            if not self._is_expired(entry, current_time_ms)
        }

    def remove_stray_snapshots(self, segment_base_offsets: Collection[int]) -> None:
        """List the snapshots again, and remove those at which no segment begins.

        The newest of them stays if it lies above every segment: a clean shutdown wrote it.
        Raises: OSError.
        """
        self._check_writable()
        self._snapshots = self._listed()
        bases = set(segment_base_offsets)
        stray = [offset for offset in self._snapshots if offset not in bases]
        if stray and (not bases or stray[-1] > max(bases)):
            stray.pop()
        self._remove(stray)

    def delete_snapshots_before(self, offset: int) -> None:
        """Remove the snapshots from offset 0 to `offset`, exclusive.

        Raises: InvalidArgumentError for a negative offset; OSError.
        """
        self._check_writable()
        if offset < 0:
            raise InvalidArgumentError(
                "there is no range from 0 to a negative offset", actual=offset
            )
        first, end = bisect_left(self._snapshots, 0), bisect_left(self._snapshots, offset)
        self._remove(self._snapshots[first:end])

    def remove_and_mark_snapshot_for_deletion(self, offset: int) -> int | None:
        """Add `.deleted` to the name of a snapshot; return its offset, or None without a snapshot.

        Raises: OSError, and then nothing has changed.
        """
        self._check_writable()
        place = bisect_left(self._snapshots, offset)
        if self._snapshots[place : place + 1] != [offset]:
            return None
        path = self._path(offset)
        try:
            self._files.rename(path, path + _DELETED_SUFFIX)
        except FileNotFoundError:
            offset_found = None
        else:
            offset_found = offset
        del self._snapshots[place]
        return offset_found

    def _newest_snapshot(self) -> tuple[int | None, tuple[ProducerStateEntry, ...]]:
        """Return the newest snapshot that can be read; remove those that can't."""
        for offset in self._snapshots[::-1]:
            try:
                return offset, read_snapshot_file(self._path(offset), files=self._files)
            except (CorruptSnapshotError, FileNotFoundError):
                self._remove([offset])
        return None, ()

    def _time_oldest_txn(self) -> None:
        earliest = self._ongoing.earliest
        entry = None if earliest is None else self.last_entry(earliest.producer_id)
        self.oldest_txn_last_timestamp = -1 if entry is None else entry.last_timestamp

    def _is_expired(self, entry: ProducerStateEntry, current_time_ms: int) -> bool:
        has_open = entry.current_txn_first_offset is not None
        expiration_ms = self.producer_id_expiration_ms
        return is_expired(has_open, entry.last_timestamp, current_time_ms, expiration_ms)

    def _path(self, offset: int) -> str:
        return os.path.join(self.dir, segment_file_name(offset, _SUFFIX))

    def _listed(self) -> list[int]:
        """Return the offset of each snapshot in the directory, rising."""
        found = []
        for name in self._files.list_directory(self.dir or "."):
            offset = offset_of_name(name, _SUFFIX)
            if offset is None:
                continue
            status = self._files.status(self._path(offset))
            if status is not None and status.is_regular:
                found.append(offset)
        return sorted(found)

    def _check_writable(self) -> None:
        if not self.writable:
            raise ReadOnlyError(
                "the snapshots were opened for reading",
                path=self.dir,
                hint="open the producer state with writable=True",
            )

    def _remove(self, offsets: Iterable[int]) -> None:
        """Forget snapshots, and remove their files if they may be changed."""
        for offset in offsets:
            if self.writable:
                self._files.remove(self._path(offset))
            del self._snapshots[bisect_left(self._snapshots, offset)]
