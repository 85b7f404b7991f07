# SPDX-License-Identifier: Apache-2.0
"""Transactions of a saved log whose end may be among what is lost.

Without its marker a transaction goes on, to a broker that reads the log, up to the next marker of
its producer: an abort there would hide committed records, and a commit would show aborted ones. The
old files know better. An entry of an old transaction index says where an aborted transaction begins
and ends, and an old snapshot says which transactions were open. So the new indexes and snapshots
are corrected by them, and what nothing proves is told. A transaction that ended, nobody knows how,
stays open if nothing of its producer follows: nobody reads it so, and nothing of it is lost.

What was saved once says by its index and its snapshots what was decided, and its log does not. So a
second salvage takes it from them.

Upstream: Kafka 4.3.1: ProducerStateManager, TransactionIndex; CompletedFetch of the consumer.
Laws: PROD-8 to PROD-10, PROD-14, DISK-11, DISK-32.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from operator import attrgetter

from segproof.files import Files
from segproof.integers import INT64_MAX
from segproof.inventory.partitions import Partition
from segproof.kafka.batch_table import read_batch_headers
from segproof.kafka.producer_snapshot import ProducerStateEntry, write_snapshot_file
from segproof.kafka.transaction_index import AbortedTxn, TransactionIndex
from segproof.reading.file_names import SNAPSHOT_SUFFIX
from segproof.rebuilding.old_indexes import old_aborted_txns
from segproof.salvaging.kept_producers import Entries, new_snapshots, sound_snapshots
from segproof.salvaging.known_aborts import KnownAborts, entries_of
from segproof.salvaging.marker_words import Fate, words_of, words_of_more
from segproof.salvaging.salvaged_partition import SalvagedPartition
from segproof.salvaging.saved_transactions import Break, Lost, SavedLog, Transaction


def keep_transactions(partition: Partition, told: SalvagedPartition, files: Files) -> None:
    """Correct the new transaction indexes and snapshots, and tell of markers that may be lost.

    Nothing is read where no offset is lost, and the old files say of transactions what the saved
    log says. Raises: OSError for the new directory.
    """
    if told.target is None:
        return
    is_decided = _say_more(partition, told, files)
    if not (told.gap_count or told.is_end_lost or is_decided):
        return
    names = sorted(one for one in files.list_directory(told.target) if one.endswith(".log"))
    old = entries_of([one for one in partition.segments if one.overlap is None], files)
    known = (each for entries in old.values() for each in entries)
    saved = SavedLog(told, takes_untold=is_decided, known=known)
    for name in names:
        with closing(files.open(f"{told.target}/{name}")) as file:
            saved.add(read_batch_headers(file).table)
    transactions = saved.transactions()
    if transactions:
        bases = [int(name[:20]) for name in names]
        _Correction(partition, told, transactions, saved, old, bases, files).run()


def _say_more(partition: Partition, told: SalvagedPartition, files: Files) -> bool:
    """Return whether an old file says of a transaction what the new one of its name does not."""
    made = dict(new_snapshots(told, files))
    for offset, entries in sound_snapshots(partition, told.last_offset + 1, files):
        for one in made.get(offset, {}).values():
            if one.current_txn_first_offset is not None and _is_ended(entries, one):
                return True
    for segment in partition.segments:
        old = old_aborted_txns(segment, files) if segment.overlap is None else None
        base = segment.base_offset
        if not old:
            continue
        path = f"{told.target}/{base:020d}.txnindex"
        with TransactionIndex(base, path, files=files) as index:
            new = set(index.all_aborted_txns())
        if any(each not in new and each.last_offset <= told.last_offset for each in old):
            return True
    return False


def _is_ended(entries: Entries, made: ProducerStateEntry) -> bool:
    """Return whether a producer has nothing open, by an old snapshot that knows its last batch."""
    old = entries.get(made.producer_id)
    return (
        old is not None
        and old.current_txn_first_offset is None
        and old.last_offset == made.last_offset
    )


class _Correction:
    """Judges each place where a marker may be lost by the old files, and corrects the new ones."""

    def __init__(
        self,
        partition: Partition,
        told: SalvagedPartition,
        transactions: Sequence[Transaction],
        saved: SavedLog,
        old: Mapping[int, list[AbortedTxn]],
        bases: Sequence[int],
        files: Files,
    ) -> None:
        self._told, self._files, self._bases = told, files, bases
        self._transactions, self._saved = transactions, saved
        self._by_producer: dict[int, list[Transaction]] = {}
        for one in transactions:
            self._by_producer.setdefault(one.producer_id, []).append(one)
        self._snapshots = sorted(sound_snapshots(partition, INT64_MAX, files))
        self._made = {base: self._made_by_load(base) for base in bases}
        self._aborted = {
            (each.producer_id, each.last_offset) for made in self._made.values() for each in made
        }
        own = [one for one in partition.segments if one.overlap is None]
        self._known = KnownAborts(own, old, saved, told.gaps, self._aborted, self._is_lost, files)
        self._kept: list[AbortedTxn] = []
        """Old entries of transactions whose marker is lost."""

    def _made_by_load(self, base: int) -> list[AbortedTxn]:
        with TransactionIndex(base, self._path(base), files=self._files) as index:
            return index.all_aborted_txns()

    def _path(self, base: int) -> str:
        return f"{self._told.target}/{base:020d}.txnindex"

    def run(self) -> None:
        if self._saved.first_not_taken is not None:
            self._tell(words_of_more(self._saved.first_not_taken))
        for one in self._transactions:
            is_decided = self._is_decided(one)
            for place in one.breaks:
                if not (is_decided and place.last == INT64_MAX):
                    self._decide(one, place)
            if is_decided and not one.splits:
                lost = Lost(one.last + 1, INT64_MAX, INT64_MAX, is_told=False)
                place = Break(one.last, one.timestamp, None, lost, False)
                one.splits.append((place, None))
                self._tell(words_of(one, place, Fate.KEPT, None, None, is_aborted=False))
        self._correct_indexes()
        self._correct_snapshots()

    def _decide(self, one: Transaction, place: Break) -> None:
        """Decide how a transaction went on at a gap, and tell it."""
        fate, entry, begin = self._judged(one, place)
        if fate is Fate.SPANS or (fate is Fate.UNSURE and not place.is_told):
            return
        is_aborted = (one.producer_id, one.end) in self._aborted
        is_beyond = fate is Fate.ABORTED and place.last == INT64_MAX
        is_split = fate is not Fate.UNSURE or (place.after is not None and is_aborted)
        is_last = place.after is None and begin is None and one.end is None
        if is_split and not is_beyond and not (fate is Fate.UNKNOWN and is_last):
            one.splits.append((place, begin))
        if entry is not None and not is_beyond:  # no entry may lie beyond the log's end
            self._kept.append(entry)
        hidden = self._hidden_from(one, place)
        self._tell(words_of(one, place, fate, entry, hidden, is_aborted=is_aborted))

    def _tell(self, words: str) -> None:
        self._told.lost_markers.append(words)

    # --- what the old files say

    def _judged(self, one: Transaction, place: Break) -> tuple[Fate, AbortedTxn | None, int | None]:
        """Return how a transaction went on at a gap, the old entry of its end, the next begin."""
        entries = [
            each
            for each in self._known.of(one.producer_id)
            if each.first_offset > one.marker_before and each.last_offset > place.before
        ]
        following = place.after if place.after is not None else one.end
        for each in entries:
            is_within = each.first_offset <= place.before and each.last_offset <= place.last
            if is_within and self._saved.is_lost(each.last_offset):
                return Fate.ABORTED, each, following if place.after is not None else None
        for each in entries:
            if each.first_offset <= place.before and each.last_offset > place.last:
                return Fate.SPANS, None, None
        if following is not None:
            for each in entries:
                if place.before < each.first_offset <= following <= each.last_offset:
                    return self._ended(one, place, place.last), None, each.first_offset
        offset, begin = self._begin_by_snapshot(one, place)
        if begin >= 0:
            ended = self._ended(one, place, min(place.last, offset - 1))
            return (Fate.SPANS, None, None) if begin <= place.before else (ended, None, begin)
        if offset >= 0:
            return self._ended(one, place, min(place.last, offset - 1)), None, place.after
        if place.is_new_epoch:
            return self._ended(one, place, place.last), None, place.after
        return self._unproven(one, place), None, place.after

    def _ended(self, one: Transaction, place: Break, last: int) -> Fate:
        """Return how a transaction ended at a gap, up to an offset."""
        if self._has_each(place, last):
            return Fate.COMMITTED
        is_kept = not place.is_told or any(
            offset > place.last and _is_made_of(entries, one.producer_id, place)
            for offset, entries in self._snapshots
        )
        return Fate.KEPT if is_kept else Fate.UNKNOWN

    def _has_each(self, place: Break, last: int) -> bool:
        """Return whether each abort in the lost offsets of a gap, up to one, has its entry."""
        lost, until = self._saved.lost, min(place.last, last)
        start = bisect_left(lost, place.first, key=attrgetter("first"))
        end = bisect_right(lost, until, start, key=attrgetter("last"))
        if place.is_partial or self._unknown[end] > self._unknown[start]:
            return False
        is_cut = end < len(lost) and lost[end].first <= until
        return not is_cut or self._known.has_each(lost[end].first, until)

    @cached_property
    def _unknown(self) -> list[int]:
        """By place in what is lost: how many before it may have an abort without an entry."""
        are_unknown = (not self._known.has_each(one.first, one.last) for one in self._saved.lost)
        return list(accumulate(are_unknown, initial=0))

    def _is_decided(self, one: Transaction) -> bool:
        """Return whether an old snapshot ends a transaction that the saved log has open at its end.

        It knows the last batch of it. What follows that one in the log is saved.
        """
        end = self._told.last_offset + 1
        return one.end is None and any(
            one.last < offset <= end
            and (known := entries.get(one.producer_id)) is not None
            and known.current_txn_first_offset is None
            and known.last_offset == one.last
            and not any(place.first < offset for place in one.breaks if place.before == one.last)
            for offset, entries in self._snapshots
        )

    def _unproven(self, one: Transaction, place: Break) -> Fate:
        """Return the fate where no file says whether the transaction ended in the gap."""
        room = place.lost.room
        is_marker_next = place.after is None and one.end is not None
        if not place.is_partial and (room == 0 or (is_marker_next and room == 1)):
            return Fate.SPANS
        is_committed = one.end is not None and (one.producer_id, one.end) not in self._aborted
        if is_committed and self._has_each(place, place.last):
            return Fate.SPANS  # whether as one transaction or as two, all of it is committed
        return Fate.UNSURE

    def _begin_by_snapshot(self, one: Transaction, place: Break) -> tuple[int, int]:
        """Return the first snapshot after a gap, and where the producer's transaction began by it.

        The begin is -1 if none was open. No snapshot says it: both are -1.
        """
        later = bisect_right(one.breaks, place.last, key=attrgetter("last"))
        firsts = (each.first for each in one.breaks[later : later + 1])
        until = min([INT64_MAX if one.end is None else one.end, *firsts])
        for offset, entries in self._snapshots:
            if not place.first < offset <= until:
                continue
            if offset <= place.last != INT64_MAX:
                continue
            known = entries.get(one.producer_id)
            begin = None if known is None else known.current_txn_first_offset
            if begin is None and place.after is not None and place.after < offset:
                continue  # it contradicts the log
            return offset, -1 if begin is None else begin
        return -1, -1

    def _hidden_from(self, one: Transaction, place: Break) -> int | None:
        """Return the producer's next record that is not aborted and precedes its next abort."""
        if place.after is not None:
            is_aborted = (one.producer_id, one.end) in self._aborted
            return None if is_aborted else place.after
        own = self._by_producer[one.producer_id]
        at = bisect_right(own, place.before, key=attrgetter("first"))
        if at == len(own) or (one.producer_id, own[at].end) in self._aborted:
            return None
        return own[at].first

    # --- what is corrected

    def _correct_indexes(self) -> None:
        by_end = {(one.producer_id, one.end): one for one in self._transactions}
        old = {(each.producer_id, each.last_offset): each for each in self._known.all}
        for number, base in enumerate(self._bases):
            end = self._bases[number + 1] if number + 1 < len(self._bases) else INT64_MAX
            made = self._made[base]
            right = [each for each in self._kept if base <= each.last_offset < end]
            for each in made:
                ids = each.producer_id, each.last_offset
                right += self._right_entries(each, old.get(ids), by_end.get(ids))
            right = sorted(set(right), key=lambda each: each.last_offset)
            if right == made:
                continue
            with TransactionIndex(
                base, self._path(base), writable=True, create=True, files=self._files
            ) as index:
                index.reset()
                for each in right:
                    index.append(each)
                index.flush()

    def _right_entries(
        self, made: AbortedTxn, old: AbortedTxn | None, one: Transaction | None
    ) -> list[AbortedTxn]:
        """Return the entry of a marker in the saved log: the old one, where the log allows it.

        None if the marker's own transaction has no batch in the saved log.
        """
        if one is None:
            return [made]
        is_known = old is not None and (
            old.first_offset == made.first_offset
            or self._is_lost(old.first_offset)
            or any(old.first_offset == begin for _, begin in one.splits)
        )
        if old is not None and is_known and one.marker_before < old.first_offset:
            return [old]
        if not one.splits:
            return [made]
        begin = one.splits[-1][1]
        return [] if begin is None else [made._replace(first_offset=begin)]

    def _is_lost(self, offset: int) -> bool:
        return offset < self._told.first_offset or self._saved.is_lost(offset)

    def _correct_snapshots(self) -> None:
        """Close in the new snapshots the transactions that ended in a gap."""
        ended = {(one.producer_id, one.first): one for one in self._transactions if one.splits}
        if not ended:
            return
        for offset, entries in new_snapshots(self._told, self._files):
            right = dict(_closed(entries, ended, offset))
            if right != entries:
                path = f"{self._told.target}/{offset:020d}{SNAPSHOT_SUFFIX}"
                write_snapshot_file(path, (right[one] for one in sorted(right)), files=self._files)
        self._told.open_transactions -= sum(
            one.end is None and one.splits[-1][1] is None for one in ended.values()
        )


def _closed(
    entries: Entries, ended: Mapping[tuple[int, int], Transaction], offset: int
) -> Iterator[tuple[int, ProducerStateEntry]]:
    """Yield the entries of the snapshot of an offset, with the transaction that was open there."""
    for producer_id, entry in entries.items():
        begin = entry.current_txn_first_offset
        one = None if begin is None else ended.get((producer_id, begin))
        for place, following in () if one is None else one.splits:
            if place.before < offset and (place.last < offset or place.last == INT64_MAX):
                is_begun = following is not None and following < offset
                begin = following if is_begun else None
        yield producer_id, replace(entry, current_txn_first_offset=begin)


def _is_made_of(entries: Entries, producer_id: int, place: Break) -> bool:
    """Return whether a snapshot was made after the loss: a marker would have changed its time."""
    known = entries.get(producer_id)
    if known is None:
        return False
    begin = known.current_txn_first_offset
    return (
        (begin is None or begin > place.before)
        and known.last_offset == place.before
        and known.last_timestamp == place.timestamp
    )
