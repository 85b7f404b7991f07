# SPDX-License-Identifier: Apache-2.0
"""What the old transaction indexes of a partition say, and for what offsets they are whole.

A transaction was committed if it ended and no index has an entry of it. That is a proof only where
the index is there that would have the entry: the one of the segment in which the end lies. So its
files must show that the segment went so far, and that they are older than the loss.

Upstream: Kafka 4.3.1: TransactionIndex, ProducerStateManager.
Laws: DISK-11, TXNIDX-7.
"""

from collections.abc import Callable, Sequence

from segproof.files import Files
from segproof.integers import INT64_MAX
from segproof.kafka.transaction_index import AbortedTxn
from segproof.rebuilding.old_indexes import old_aborted_txns, old_offsets
from segproof.salvaging.gaps import Gap
from segproof.salvaging.saved_transactions import SavedLog
from segproof.verifying.segment_files import Segment


class KnownAborts:
    """The entries of all sound old transaction indexes."""

    def __init__(
        self,
        segments: Sequence[Segment],
        saved: SavedLog,
        gaps: Sequence[Gap],
        aborted: set[tuple[int, int]],
        is_lost: Callable[[int], bool],
        files: Files,
    ) -> None:
        """Take the segments in order, and the gaps that were told.

        `aborted` are producer and offset of each ABORT marker that was saved; `is_lost` says
        whether an offset is missing in what was saved.
        """
        self._segments, self._saved, self._gaps = segments, saved, gaps
        self._aborted, self._is_lost, self._files = aborted, is_lost, files
        self._entries = {
            one.base_offset: entries
            for one in segments
            if (entries := old_aborted_txns(one, files)) is not None
        }
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
        begin, known = segment.base_offset, self._entries.get(segment.base_offset)
        if not known:
            return False  # Kafka makes no empty one: it has lost what it held
        told = old_offsets(segment, self._files)
        reached = max(self._saved.ends.get(begin, -1), known[-1].last_offset)
        if max(reached, int(told.max(initial=-1))) < last:
            return False  # the end may have been in a segment that is gone
        is_older = bool(((told >= first) & (told <= last)).any()) or any(
            one.path == segment.path(".log")
            and one.size_bytes > 0
            and one.first_lost_offset <= last
            and (one.last_lost_offset is None or one.last_lost_offset >= first)
            for one in self._gaps
        )
        ids = {(each.producer_id, each.last_offset) for each in known}
        saved = {each for each in self._aborted if begin <= each[1] < end}
        is_own = all(
            each[1] < end and (each in self._saved.markers or self._is_lost(each[1]))
            for each in ids
        )
        return is_older and is_own and saved <= ids
