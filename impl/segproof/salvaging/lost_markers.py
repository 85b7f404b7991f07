# SPDX-License-Identifier: Apache-2.0
"""Transactions of a saved log whose end may be among what is lost.

Without its marker a transaction goes on, to a broker that reads the log, up to the next marker of
its producer: an abort there would hide committed records, and a commit would show aborted ones. The
old files know better. An entry of an old transaction index says where an aborted transaction begins
and ends, and an old snapshot says which transactions were open. So the new indexes and snapshots
are corrected by them, and what nothing proves is told.

Upstream: Kafka 4.3.1: ProducerStateManager, TransactionIndex; CompletedFetch of the consumer.
Laws: PROD-8 to PROD-10, PROD-14, DISK-11, DISK-32.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from segproof.files import Files
from segproof.integers import INT32_MAX, INT64_MAX
from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL, BatchTable, read_batch_headers
from segproof.kafka.producer_snapshot import ProducerStateEntry, write_snapshot_file
from segproof.kafka.transaction_index import AbortedTxn, TransactionIndex
from segproof.reading.file_names import SNAPSHOT_SUFFIX
from segproof.rebuilding.old_indexes import old_aborted_txns
from segproof.salvaging.kept_producers import Entries, new_snapshots, sound_snapshots
from segproof.salvaging.salvaged_partition import SalvagedPartition
from segproof.verifying.directory_checks import Partition

DECIDE = (
    "decide by another replica, or by what the application of the producer knows, before you serve"
    " this partition"
)
RECOVERED = "A broker that recovers this log after a crash reads only the log, and"


class _Fate(Enum):
    """What the old files say of a transaction at a gap."""

    SPANS = "it goes on after the gap, or nobody could tell the difference"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "it ended in the gap, and nothing says how"
    UNSURE = "it may have ended in the gap"


@dataclass(slots=True)
class _Lost:
    """Offsets that are lost between two saved batches, or after the last one."""

    first: int
    last: int
    room: int
    """How many of them may be of markers: the sequence numbers of producers explain the others."""


class _Break(NamedTuple):
    """A place in a transaction where offsets are lost."""

    before: int
    """The last offset of the transaction before it."""
    after: int | None
    """The first offset of its producer's next batch; None where a marker follows, or nothing."""
    lost: tuple[_Lost, ...]
    is_new_epoch: bool
    """Whether that batch is of another epoch of the producer, so that a transaction ended."""

    @property
    def first(self) -> int:
        return self.lost[0].first

    @property
    def last(self) -> int:
        return self.lost[-1].last


@dataclass(slots=True)
class _Transaction:
    """A transaction as a broker reads it from the saved log."""

    producer_id: int
    first: int
    last: int
    """The last offset of its last batch so far."""
    epoch: int
    marker_before: int
    """The producer's marker before it; -1 without one."""
    end: int | None = None
    """The offset of its marker; None while it is open."""
    breaks: list[_Break] = field(default_factory=list)
    splits: list[tuple[_Break, int | None]] = field(default_factory=list)
    """The breaks in which it ended, each with the offset at which another one begins then."""


def keep_transactions(partition: Partition, told: SalvagedPartition, files: Files) -> None:
    """Correct the new transaction indexes and snapshots, and tell of markers that may be lost.

    Nothing is read where no offset is lost. Raises: OSError for the new directory.
    """
    if told.target is None or not (told.gap_count or told.is_end_lost):
        return
    names = sorted(one for one in files.list_directory(told.target) if one.endswith(".log"))
    saved = _SavedLog(told)
    for name in names:
        with closing(files.open(f"{told.target}/{name}")) as file:
            saved.add(read_batch_headers(file).table)
    transactions = saved.transactions()
    if transactions:
        bases = [int(name[:20]) for name in names]
        _Correction(partition, told, transactions, saved.lost, bases, files).run()


class _SavedLog:
    """The batches of producers in the saved logs, and the offsets that are lost between."""

    def __init__(self, told: SalvagedPartition) -> None:
        self._told = told
        self._gaps = sorted(
            one.first_lost_offset
            for one in told.gaps
            if one.last_lost_offset is None or one.last_lost_offset >= one.first_lost_offset
        )
        self._are_all_told = told.gap_count == len(told.gaps)
        self._rows: list[BatchTable] = []
        self._reached = told.first_offset - 1
        self.lost: list[_Lost] = []

    def add(self, table: BatchTable) -> None:
        """Take the batches of the next log."""
        if not len(table):
            return
        ends = np.concatenate([[self._reached], table["last_offset"][:-1]])
        for row in np.flatnonzero(table["base_offset"] > ends + 1).tolist():
            self._lose(int(ends[row]) + 1, int(table["base_offset"][row]) - 1)
        self._reached = int(table["last_offset"][-1])
        self._rows.append(table[(table["magic"] == 2) & (table["producer_id"] >= 0)])

    def _lose(self, first: int, last: int) -> None:
        at = bisect_left(self._gaps, first)
        if not self._are_all_told or (at < len(self._gaps) and self._gaps[at] <= last):
            self.lost.append(_Lost(first, last, last - first + 1))

    def transactions(self) -> list[_Transaction]:
        """Return the transactions, in the order of their beginnings."""
        if self._told.is_end_lost or (self._gaps and self._gaps[-1] > self._reached):
            self.lost.append(_Lost(self._reached + 1, INT64_MAX, INT64_MAX))
        if not self.lost or not self._rows:
            return []
        rows = np.concatenate(self._rows)
        if not (rows["attributes"] & TRANSACTIONAL).any():
            return []
        self._explain(rows)
        return self._followed(rows)

    def _between(self, before: int, after: int) -> tuple[_Lost, ...]:
        """Return what is lost between two offsets."""
        start = bisect_right(self.lost, before, key=lambda one: one.first)
        end = bisect_left(self.lost, after, key=lambda one: one.first)
        return tuple(self.lost[start:end])

    def _explain(self, rows: BatchTable) -> None:
        """Take from each gap the records that a producer has sent, as its sequence numbers show."""
        known: dict[int, tuple[int, int, int]] = {}
        for producer, epoch, sequence, base, last in zip(
            *(
                rows[name].tolist()
                for name in (
                    "producer_id", "producer_epoch", "base_sequence", "base_offset", "last_offset"
                )
            ),
            strict=True,
        ):  # fmt: skip
            if sequence < 0:
                continue
            before = known.get(producer)
            known[producer] = epoch, (sequence + last - base + 1) & INT32_MAX, last
            if before is None or before[:2] == (epoch, sequence) or before[0] != epoch:
                continue
            lost = self._between(before[2], base)
            count = (sequence - before[1]) & INT32_MAX
            if len(lost) == 1 and count <= lost[0].room:
                lost[0].room -= count

    def _followed(self, rows: BatchTable) -> list[_Transaction]:
        found: list[_Transaction] = []
        is_open: dict[int, _Transaction] = {}
        markers: dict[int, int] = {}
        of_transactions = rows[rows["attributes"] & TRANSACTIONAL != 0]
        columns = ("producer_id", "producer_epoch", "attributes", "base_offset", "last_offset")
        for producer, epoch, bits, base, last in zip(
            *(of_transactions[name].tolist() for name in columns), strict=True
        ):
            is_marker, one = bool(bits & CONTROL), is_open.get(producer)
            if one is not None and (lost := self._between(one.last, base)):
                after = None if is_marker else base
                is_new = not is_marker and epoch != one.epoch
                one.breaks.append(_Break(one.last, after, lost, is_new))
            if is_marker:
                markers[producer] = base
                if one is not None:
                    one.end = base
                    del is_open[producer]
            elif one is None:
                before = markers.get(producer, -1)
                is_open[producer] = _Transaction(producer, base, last, epoch, before)
                found.append(is_open[producer])
            else:
                one.last, one.epoch = last, epoch
        for one in is_open.values():
            if lost := self._between(one.last, INT64_MAX):
                one.breaks.append(_Break(one.last, None, lost, False))
        return found


class _Correction:
    """Judges each place where a marker may be lost by the old files, and corrects the new ones."""

    def __init__(
        self,
        partition: Partition,
        told: SalvagedPartition,
        transactions: Sequence[_Transaction],
        lost: Sequence[_Lost],
        bases: Sequence[int],
        files: Files,
    ) -> None:
        self._told, self._files, self._bases = told, files, bases
        self._transactions, self._lost = transactions, lost
        self._segments = [one for one in partition.segments if one.overlap is None]
        self._old = {
            one.base_offset: entries
            for one in self._segments
            if (entries := old_aborted_txns(one, files)) is not None
        }
        self._by_producer: dict[int, list[AbortedTxn]] = {}
        for entries in self._old.values():
            for each in entries:
                self._by_producer.setdefault(each.producer_id, []).append(each)
        self._snapshots = sorted(sound_snapshots(partition, INT64_MAX, files))
        self._made = {base: self._made_by_load(base) for base in bases}
        self._aborted = {
            (each.producer_id, each.last_offset) for made in self._made.values() for each in made
        }
        self._kept: list[AbortedTxn] = []
        """Old entries of transactions whose marker is lost."""

    def _made_by_load(self, base: int) -> list[AbortedTxn]:
        with TransactionIndex(base, self._path(base), files=self._files) as index:
            return index.all_aborted_txns()

    def _path(self, base: int) -> str:
        return f"{self._told.target}/{base:020d}.txnindex"

    def run(self) -> None:
        for one in self._transactions:
            for place in one.breaks:
                fate, entry, begin = self._judged(one, place)
                if fate is _Fate.SPANS:
                    continue
                is_aborted = (one.producer_id, one.end) in self._aborted
                is_beyond = fate is _Fate.ABORTED and place.last == INT64_MAX
                is_split = fate is not _Fate.UNSURE or (place.after is not None and is_aborted)
                if is_split and not is_beyond:
                    one.splits.append((place, begin))
                if entry is not None and not is_beyond:  # no entry may lie beyond the log's end
                    self._kept.append(entry)
                hidden = self._hidden_from(one, place)
                words = _words(one, place, fate, entry, hidden, is_aborted=is_aborted)
                self._told.lost_markers.append(words)
        self._correct_indexes()
        self._correct_snapshots()

    # --- what the old files say

    def _judged(
        self, one: _Transaction, place: _Break
    ) -> tuple[_Fate, AbortedTxn | None, int | None]:
        """Return how a transaction went on at a gap, the old entry of its end, the next begin."""
        entries = [
            each
            for each in self._by_producer.get(one.producer_id, ())
            if each.first_offset > one.marker_before and each.last_offset > place.before
        ]
        following = place.after if place.after is not None else one.end
        for each in entries:
            is_lost = any(lost.first <= each.last_offset <= lost.last for lost in place.lost)
            if is_lost and each.first_offset <= place.before:
                return _Fate.ABORTED, each, following if place.after is not None else None
        for each in entries:
            if each.first_offset <= place.before and each.last_offset > place.last:
                return _Fate.SPANS, None, None
        ended = _Fate.COMMITTED if self._knows_ends(place) else _Fate.UNKNOWN
        if following is not None:
            for each in entries:
                if place.before < each.first_offset <= following <= each.last_offset:
                    return ended, None, each.first_offset
        begin = self._begin_by_snapshot(one, place)
        if begin is not None and begin >= 0:
            return (_Fate.SPANS, None, None) if begin <= place.before else (ended, None, begin)
        if begin is not None or place.is_new_epoch:
            return ended, None, place.after
        return self._unproven(one, place), None, place.after

    def _unproven(self, one: _Transaction, place: _Break) -> _Fate:
        """Return the fate where no file says whether the transaction ended in the gap."""
        room = sum(lost.room for lost in place.lost)
        is_marker_next = place.after is None and one.end is not None
        if room == 0 or (is_marker_next and room == 1):
            return _Fate.SPANS
        is_committed = one.end is not None and (one.producer_id, one.end) not in self._aborted
        if is_committed and self._knows_ends(place):
            return _Fate.SPANS  # whether as one transaction or as two, all of it is committed
        return _Fate.UNSURE

    def _begin_by_snapshot(self, one: _Transaction, place: _Break) -> int | None:
        """Return where by the first snapshot after a gap the producer's transaction began.

        -1 if none was open; None if no snapshot says it.
        """
        later = [each.first for each in one.breaks if each.last > place.last]
        until = min([INT64_MAX if one.end is None else one.end, *later])
        for offset, entries in self._snapshots:
            if not place.first < offset <= until:
                continue
            if offset <= place.last != INT64_MAX:
                continue
            known = entries.get(one.producer_id)
            begin = None if known is None else known.current_txn_first_offset
            if begin is None and place.after is not None and place.after < offset:
                continue  # it contradicts the log
            return -1 if begin is None else begin
        return None

    def _knows_ends(self, place: _Break) -> bool:
        """Return whether the old transaction indexes have each abort in a gap."""
        for lost in place.lost:
            for segment in self._segments:
                following = segment.next_base_offset
                begin, end = segment.base_offset, INT64_MAX if following is None else following
                if end <= lost.first or begin > lost.last:
                    continue
                known = self._old.get(begin)
                if known is None:
                    return False
                ids = {(each.producer_id, each.last_offset) for each in known}
                saved = {each for each in self._aborted if begin <= each[1] < end}
                if not saved <= ids:
                    return False
        return True

    def _hidden_from(self, one: _Transaction, place: _Break) -> int | None:
        """Return the producer's next record that is not aborted and precedes its next abort."""
        if place.after is not None:
            is_aborted = (one.producer_id, one.end) in self._aborted
            return None if is_aborted else place.after
        for each in self._transactions:
            if each.producer_id == one.producer_id and each.first > place.before:
                is_aborted = (each.producer_id, each.end) in self._aborted
                return None if is_aborted else each.first
        return None

    # --- what is corrected

    def _correct_indexes(self) -> None:
        by_end = {(one.producer_id, one.end): one for one in self._transactions}
        old = {
            (each.producer_id, each.last_offset): each
            for entries in self._by_producer.values()
            for each in entries
        }
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
        self, made: AbortedTxn, old: AbortedTxn | None, one: _Transaction | None
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
        return offset < self._told.first_offset or any(
            each.first <= offset <= each.last for each in self._lost
        )

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
    entries: Entries, ended: Mapping[tuple[int, int], _Transaction], offset: int
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


def _words(
    one: _Transaction,
    place: _Break,
    fate: _Fate,
    entry: AbortedTxn | None,
    hidden_from: int | None,
    *,
    is_aborted: bool,
) -> str:
    """Return what is lost, what readers of committed data get, and how to decide.

    `hidden_from` is a record that a reader may skip where an entry without a marker is kept;
    `is_aborted` says how the next marker of the producer ends its transaction.
    """
    at_end = place.last == INT64_MAX
    where = f"an offset from {place.first} " + ("on" if at_end else f"to {place.last}")
    if place.first == place.last:
        where = f"offset {place.first}"
    verb = "may be lost" if fate is _Fate.UNSURE else "is lost"
    begin = (
        f"the end of the transaction of producer {one.producer_id} that begins at offset"
        f" {one.first} {verb}, at {where}"
    )
    if entry is not None:
        return begin + _words_of_abort(one, entry, hidden_from, at_end=at_end)
    rest = f"its records from {one.first} to {place.before}"
    is_joined = place.after is not None and is_aborted
    if fate is _Fate.COMMITTED:
        joined = f". {RECOVERED} would hide them" if is_joined else ""
        told = "by the old files it was committed. Readers of committed data get"
        return f"{begin}: {told} {rest}{joined}"
    unknown = "no file says whether it was committed"
    if fate is _Fate.UNSURE:
        unknown = "no file says whether it ended there, and whether it was committed"
    get = f"get {rest}"
    if is_joined:
        get += f", and not those from {place.after} to {one.end}"
    elif is_aborted:
        get = f"do not get {rest}"
    elif one.end is None and fate is _Fate.UNSURE:
        get = (
            f"get nothing from {one.first} on until it is ended; `kafka-transactions.sh abort`"
            " hides its records"
        )
    return f"{begin}: {unknown}. Readers of committed data {get}: {DECIDE}"


def _words_of_abort(
    one: _Transaction, entry: AbortedTxn, hidden_from: int | None, *, at_end: bool
) -> str:
    """Return the words of a transaction that was aborted, by the old transaction index."""
    told = f": the old transaction index says that it was aborted at {entry.last_offset}"
    if at_end:
        return (
            f"{told}. Readers of committed data get nothing from {one.first} on until it is ended:"
            " end it with `kafka-transactions.sh abort` once the broker runs"
        )
    told += ". Its entry is kept, so readers of committed data do not get its records"
    if hidden_from is None:
        return told
    return (
        f"{told}. In the same fetch they may also skip committed records of this producer, from"
        f" {hidden_from} up to its next ABORT marker: a fetch from {entry.last_offset + 1} on gets"
        f" them. {RECOVERED} would show the aborted records: take this partition from another"
        " replica, if one is whole"
    )
