# SPDX-License-Identifier: Apache-2.0
"""What the old transaction indexes of a partition say, and for what offsets they are whole.

A transaction was committed if it ended and no index has an entry of it. That is a proof only where
the index would have the entry: the one of the segment in which the end lies. An index that lost its
last entries with its end, as a failure of power leaves it, is sound by itself. So it must have an
entry at the last of the lost offsets or behind it, and its segment's files must be older than the
loss.

Upstream: Kafka 4.3.1: TransactionIndex, ProducerStateManager.
Laws: DISK-11, TXNIDX-7.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files
from segproof.integers import INT64_MAX
from segproof.inventory.segments import Segment
from segproof.kafka.transaction_index import AbortedTxn
from segproof.rebuilding.old_indexes import old_aborted_txns, old_offsets
from segproof.salvaging.gaps import Gap
from segproof.salvaging.saved_transactions import SavedLog


def entries_of(segments: Sequence[Segment], files: Files) -> dict[int, list[AbortedTxn]]:
    """Return by base offset the entries of the sound old transaction indexes of segments."""
    return {
        one.base_offset: entries
        for one in segments
        if (entries := old_aborted_txns(one, files)) is not None
    }


class KnownAborts:
    """The entries of all sound old transaction indexes."""

    def __init__(
        self,
        segments: Sequence[Segment],
        entries: Mapping[int, list[AbortedTxn]],
        saved: SavedLog,
        gaps: Sequence[Gap],
        aborted: set[tuple[int, int]],
        is_lost: Callable[[int], bool],
        files: Files,
    ) -> None:
        """Take the segments in order, what `entries_of` says of them, and the gaps that were told.

        `aborted` are producer and offset of each ABORT marker that was saved; `is_lost` says
        whether an offset is missing in what was saved.
        """
        self._segments, self._saved = segments, saved
        self._gaps_of: dict[str, tuple[list[int], list[int]]] = {}
        """By log, of the gaps that have bytes, in order: the first lost offset of each, and the
        last one so far."""
        for gap in sorted(gaps, key=lambda one: one.first_lost_offset):
            if gap.size_bytes > 0:
                firsts, reached = self._gaps_of.setdefault(gap.path, ([], []))
                last = INT64_MAX if gap.last_lost_offset is None else gap.last_lost_offset
                firsts.append(gap.first_lost_offset)
                reached.append(max([last, *reached[-1:]]))
        self._told: dict[int, NDArray[np.int64] | None] = {}
        """By base offset: what was asked of a segment before."""
        self._aborted, self._is_lost, self._files = aborted, is_lost, files
        self._entries = entries
        self._by_producer: dict[int, list[AbortedTxn]] = {}
        for each in self.all:
            self._by_producer.setdefault(each.producer_id, []).append(each)

    @property
    def all(self) -> list[AbortedTxn]:
        """Every entry."""
        return [each for entries in self._entries.values() for each in entries]

    def of(self, producer_id: int) -> Sequence[AbortedTxn]:
        """Return the entries of a producer."""
        return self._by_producer.get(producer_id, ())

    def has_each(self, first: int, last: int) -> bool:
        """Return whether each abort in a range of lost offsets has its entry; both inclusive."""
        reached = first
        for segment in self._segments:
            following = segment.next_base_offset
            begin, end = segment.base_offset, INT64_MAX if following is None else following
            if end <= reached or begin > reached or reached > last:
                continue
            if not self._has_each(segment, end, reached, min(last, end - 1)):
                return False
            reached = end
        return reached > last

    def _has_each(self, segment: Segment, end: int, first: int, last: int) -> bool:
        """Return it of the lost offsets between the name of a segment and that of the next one."""
        base = segment.base_offset
        if base not in self._told:
            self._told[base] = self._told_by(segment, end)
        told = self._told[base]
        if told is None or self._entries[base][-1].last_offset < last:
            return False  # the index may have lost what followed its last entry
        at = int(np.searchsorted(told, first))
        if at < len(told) and told[at] <= last:
            return True
        firsts, reached = self._gaps_of.get(segment.path(".log"), ((), ()))
        before = bisect_right(firsts, last)
        return before > 0 and reached[before - 1] >= first

    def _told_by(self, segment: Segment, end: int) -> NDArray[np.int64] | None:
        """Return the offsets in the old indexes of a segment, in order, if it knows its aborts.

        None where the transaction index is not there, lacks one that was saved, or is of another
        log.
        """
        known = self._entries.get(segment.base_offset)
        if not known:
            return None  # Kafka makes no empty one: it has lost what it held
        ids = {(each.producer_id, each.last_offset) for each in known}
        saved = {each for each in self._aborted if segment.base_offset <= each[1] < end}
        is_own = all(
            each[1] < end and (each in self._saved.markers or self._is_lost(each[1]))
            for each in ids
        )
        if not is_own or not saved <= ids:
            return None
        return np.sort(np.append(old_offsets(segment, self._files), known[-1].last_offset))
