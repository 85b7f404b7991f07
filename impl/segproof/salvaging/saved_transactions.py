# SPDX-License-Identifier: Apache-2.0
"""The transactions of a saved log as a broker reads them, and where offsets are lost in them.

Laws: PROD-8 to PROD-10.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.integers import INT32_MAX, INT64_MAX
from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL, BatchTable
from segproof.kafka.transaction_index import AbortedTxn
from segproof.salvaging.salvaged_partition import SalvagedPartition

UNTOLD_MAX = 1 << 16
"""So many places are taken where offsets are missing and none of the kept gaps tells it; of more
only those that an old entry names."""


@dataclass(slots=True)
class Lost:
    """Offsets that are lost between two saved batches, or after the last one.

    In a break it is the sum of all such places between two batches of a producer.
    """

    first: int
    last: int
    room: int
    """How many of them may be of markers: the sequence numbers of producers explain the others."""
    is_told: bool
    """Whether a gap tells of them; else batches touch here: what held them was lost before the old
    files were made, or compaction took it."""


class Break(NamedTuple):
    """A place in a transaction where offsets are lost."""

    before: int
    """The last offset of the transaction before it."""
    timestamp: int
    """The largest timestamp of the batch before it, in milliseconds."""
    after: int | None
    """The first offset of its producer's next batch; None where a marker follows, or nothing."""
    lost: Lost
    """From the first offset that is lost to the last one; saved batches may lie between."""
    is_new_epoch: bool
    """Whether that batch is of another epoch of the producer, so that a transaction ended."""
    is_partial: bool = False
    """Whether more may be lost in it: in places that were too many to be taken."""

    @property
    def first(self) -> int:
        """The first offset that is lost."""
        return self.lost.first

    @property
    def last(self) -> int:
        """The last one."""
        return self.lost.last

    @property
    def is_told(self) -> bool:
        """Whether a gap tells of some."""
        return self.lost.is_told


@dataclass(slots=True)
class Transaction:
    """A transaction as a broker reads it from the saved log."""

    producer_id: int
    first: int
    last: int
    """The last offset of its last batch so far."""
    timestamp: int
    """The largest one of that batch, in milliseconds."""
    epoch: int
    marker_before: int
    """The producer's marker before it; -1 without one."""
    end: int | None = None
    """The offset of its marker; None while it is open."""
    breaks: list[Break] = field(default_factory=list)
    splits: list[tuple[Break, int | None]] = field(default_factory=list)
    """The breaks in which the transaction ended, each with the offset where the next one begins."""


class SavedLog:
    """The batches of producers in the saved logs, and the offsets that are lost between."""

    def __init__(
        self,
        told: SalvagedPartition,
        *,
        takes_untold: bool,
        known: Iterable[AbortedTxn] = (),
    ) -> None:
        """Take what was saved.

        `takes_untold`: also offsets count as lost that no gap tells. `known` are the old entries: a
        place is taken, however many there are, if it has the begin or the end of one, or precedes
        it.
        """
        self._told, self._takes_untold = told, takes_untold
        offsets = [offset for each in known for offset in (each.first_offset, each.last_offset)]
        self._named = np.unique(np.array(offsets, np.int64))
        self._gaps = sorted(
            one.first_lost_offset
            for one in told.gaps
            if one.last_lost_offset is None or one.last_lost_offset >= one.first_lost_offset
        )
        self._are_all_told = told.gap_count == len(told.gaps)
        self._rows: list[BatchTable] = []
        self._reached = told.first_offset - 1
        self._without_gap = 0
        self.lost: list[Lost] = []
        """In order; no two overlap."""
        self._rooms: list[int] = []
        """By place in `lost`: the sum of the rooms before it; one more than there are places."""
        self._told_counts: list[int] = []
        """In the same way, how many before it are told."""
        self.first_not_taken: int | None = None
        """The first lost offset that counts and is not in `lost`: there are too many."""
        self.markers: set[tuple[int, int]] = set()
        """Producer id and offset of each."""

    def add(self, table: BatchTable) -> None:
        """Take the batches of the next log."""
        if not len(table):
            return
        ends = np.concatenate([[self._reached], table["last_offset"][:-1]])
        rows = np.flatnonzero(table["base_offset"] > ends + 1)
        firsts, lasts = ends[rows] + 1, table["base_offset"][rows] - 1
        named = self._named_of(firsts, int(table["last_offset"][-1]))
        for place, (first, last) in enumerate(zip(firsts.tolist(), lasts.tolist(), strict=True)):
            self._lose(first, last, is_named=place in named)
        self._reached = int(table["last_offset"][-1])
        self._rows.append(table[(table["magic"] == 2) & (table["producer_id"] >= 0)])

    def _named_of(self, firsts: NDArray[np.int64], end: int) -> set[int]:
        """Return the places of a log that ends with an offset that an old entry names."""
        if not len(firsts):
            return set()
        low, high = np.searchsorted(self._named, (firsts[0], end)).tolist()
        named = self._named[low : high + 1]  # one behind the log names its last place
        return set((np.searchsorted(firsts, named, side="right") - 1).tolist())

    def _lose(self, first: int, last: int, *, is_named: bool) -> None:
        at = bisect_left(self._gaps, first)
        has_gap = at < len(self._gaps) and self._gaps[at] <= last
        self._without_gap += not has_gap
        is_told = has_gap or not self._are_all_told
        if not is_told and not self._takes_untold:
            return
        if has_gap or is_named or self._without_gap <= UNTOLD_MAX:
            self.lost.append(Lost(first, last, last - first + 1, is_told))
        elif self.first_not_taken is None:
            self.first_not_taken = first

    def transactions(self) -> list[Transaction]:
        """Return the transactions, in the order of their beginnings."""
        if self._told.is_end_lost or (self._gaps and self._gaps[-1] > self._reached):
            self.lost.append(Lost(self._reached + 1, INT64_MAX, INT64_MAX, is_told=True))
        if not self._rows or not (self.lost or self._takes_untold):
            return []
        rows = np.concatenate(self._rows)
        if not (rows["attributes"] & TRANSACTIONAL).any():
            return []
        self._explain(rows)
        self._rooms = list(accumulate((one.room for one in self.lost), initial=0))
        self._told_counts = list(accumulate((one.is_told for one in self.lost), initial=0))
        return self._followed(rows)

    def is_lost(self, offset: int) -> bool:
        """Return whether an offset is lost."""
        at = bisect_right(self.lost, offset, key=_first_of)
        return at > 0 and offset <= self.lost[at - 1].last

    def _places_between(self, before: int, after: int) -> tuple[int, int]:
        """Return where in `lost` that begins and ends which lies between two offsets."""
        start = bisect_right(self.lost, before, key=_first_of)
        return start, bisect_left(self.lost, after, start, key=_first_of)

    def _between(self, before: int, after: int) -> Lost | None:
        """Return the sum of what is lost between two offsets; None if nothing is."""
        start, end = self._places_between(before, after)
        if end - start < 2:
            return self.lost[start] if start < end else None
        room = self._rooms[end] - self._rooms[start]
        is_told = self._told_counts[end] > self._told_counts[start]
        return Lost(self.lost[start].first, self.lost[end - 1].last, room, is_told)

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
            start, end = self._places_between(before[2], base)
            count = (sequence - before[1]) & INT32_MAX
            if end - start == 1 and count <= self.lost[start].room:
                self.lost[start].room -= count

    def _followed(self, rows: BatchTable) -> list[Transaction]:
        found: list[Transaction] = []
        is_open: dict[int, Transaction] = {}
        markers: dict[int, int] = {}
        of_transactions = rows[rows["attributes"] & TRANSACTIONAL != 0]
        columns = (
            "producer_id", "producer_epoch", "attributes", "base_offset", "last_offset",
            "max_timestamp",
        )  # fmt: skip
        for producer, epoch, bits, base, last, time in zip(
            *(of_transactions[name].tolist() for name in columns), strict=True
        ):
            is_marker, one = bool(bits & CONTROL), is_open.get(producer)
            if one is not None:
                is_new = not is_marker and epoch != one.epoch
                self._break(one, base, None if is_marker else base, is_new_epoch=is_new)
            if is_marker:
                self.markers.add((producer, base))
                markers[producer] = base
                if one is not None:
                    one.end = base
                    del is_open[producer]
            elif one is None:
                before = markers.get(producer, -1)
                is_open[producer] = Transaction(producer, base, last, time, epoch, before)
                found.append(is_open[producer])
            else:
                one.last, one.timestamp, one.epoch = last, time, epoch
        for one in is_open.values():
            self._break(one, INT64_MAX, None, is_new_epoch=False)
        return found

    def _break(
        self, one: Transaction, following: int, after: int | None, *, is_new_epoch: bool
    ) -> None:
        """Take what is lost between a transaction so far and its producer's next offset."""
        lost = self._between(one.last, following)
        if lost is not None:
            is_partial = self.first_not_taken is not None and self.first_not_taken < following
            one.breaks.append(Break(one.last, one.timestamp, after, lost, is_new_epoch, is_partial))


def _first_of(one: Lost) -> int:
    return one.first
