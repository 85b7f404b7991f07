# SPDX-License-Identifier: Apache-2.0
"""What is not kept of a partition, and the offsets that it costs.

Bytes are passed over from the first log to the last one. The next batch that is kept tells which
offsets are missing before it: these bytes have cost them.
"""

from collections.abc import Sequence

from segproof.files import Files
from segproof.reading.log_order import NamedLog
from segproof.salvaging.gaps import Gap, LogGap
from segproof.salvaging.lost_gaps import Doubt, doubts_of_damage
from segproof.salvaging.salvaged_partition import SalvagedPartition

_LOSSLESS = (LogGap.MISSING, LogGap.ZEROS)
"""Gaps of these kinds are told only where offsets are lost in them."""


class GapLedger:
    """The gaps of one partition; those that are closed are told. At most `gaps_told` are listed."""

    def __init__(self, told: SalvagedPartition, files: Files, gaps_told: int) -> None:
        self._told, self._files, self._gaps_told = told, files, gaps_told
        self._reached = -1
        self._begin = 0
        self.pending = list[Gap]()
        """Gaps after the last batch that was kept."""
        self._pending_copies = list[int]()
        """For each gap of `pending`, its batches if all are copies of kept ones; else 0."""
        self._lost = list[tuple[int, int]]()
        """The offsets [first, end) of gaps whose losses were known before."""
        self.doubtful = list[Doubt]()
        """Offsets that are counted as lost, and that compaction may have taken."""
        self.copies = 0
        """Batches that were set aside, and cost no offset, as they are copies of kept ones."""
        self.is_any_lossless = False
        """Whether a gap was told in which no offset is missing, and that holds no mere copies."""

    @property
    def next_offset(self) -> int:
        """The offset after what was kept; that of the log's name if no gap is before it."""
        return max(self._reached + 1, self._begin)

    def begin_log(self, base_offset: int) -> None:
        """Begin with a log; if no gap is open, compaction took what is missing before its name."""
        if not self.pending:
            self._begin = base_offset

    def pass_over(self, gap: Gap, copies: int = 0, batch: tuple[int, int] | None = None) -> None:
        """Take note of bytes that are not kept.

        `copies` is the number of batches in them if all are copies of kept ones. `batch` are the
        first and the last offset if they are a single batch at a wrong place.
        """
        last = self.pending[-1] if self.pending else None
        if last is not None and _goes_on(last, gap):
            size = last.size_bytes + gap.size_bytes
            self.pending[-1] = last._replace(size_bytes=size, last_lost_offset=None)
            known = self._pending_copies[-1]
            self._pending_copies[-1] = known + copies if known and copies else 0
            return
        end = None
        if batch is not None and last is None:
            first, begin = batch[0], self.next_offset
            is_bit = first > begin and (first ^ begin).bit_count() == 1
            end = begin + batch[1] - first if is_bit else None
        self._add(gap._replace(last_lost_offset=end), copies)

    def miss(self, path: str, position: int) -> None:
        """Take note that a log, or its end, is not there."""
        self._add(Gap(path, LogGap.MISSING.value, position, 0, self.next_offset, None))

    def _add(self, gap: Gap, copies: int = 0) -> None:
        self.pending.append(gap._replace(first_lost_offset=self.next_offset))
        self._pending_copies.append(copies)

    def keep(self, first_offset: int, last_offset: int, log: NamedLog, *, is_moved: bool) -> None:
        """Tell the offsets that are lost in the gaps so far: a kept batch of `log` follows them.

        A batch that was moved closes no gap without a loss: what follows it may be lost there too.
        """
        lost = first_offset - self.next_offset
        is_lost = lost > 0
        if is_lost or not is_moved:
            told = [one for one in self.pending if is_lost or one.kind not in _LOSSLESS]
            if is_lost and told:
                self._told.lost_offsets += lost - self._counted(self.next_offset, first_offset)
                bounds = self.next_offset, first_offset
                self.doubtful += doubts_of_damage(self.pending, bounds, log, self._files)
            copies = 0 if is_lost else self._copies_in(told)
            self.copies += copies
            self.is_any_lossless |= bool(told) and not is_lost and not copies
            begin, end = self.next_offset, first_offset - 1
            self.count(
                [one._replace(first_lost_offset=begin, last_lost_offset=end) for one in told]
            )
            self.clear()
        self._reached = last_offset

    def _counted(self, first: int, end: int) -> int:
        """Return how many of the offsets [first, end) a gap with known losses has counted."""
        return sum(
            max(0, min(end, known_end) - max(first, known)) for known, known_end in self._lost
        )

    def _copies_in(self, gaps: Sequence[Gap]) -> int:
        """Return the number of batches in gaps that hold nothing but copies; else 0."""
        known = dict(zip(self.pending, self._pending_copies, strict=True))
        counts = [known[one] for one in gaps]
        return sum(counts) if all(counts) else 0

    def at_end(self, path: str, position: int) -> list[Gap]:
        """Return what is not kept at the end of the partition, but zeros, with what it costs.

        Copies cost no offset if they follow the last kept batch at once, which ends at a `position`
        of a log, and if nothing else but zeros follows.
        """
        gaps = [one for one in self.pending if one.kind != LogGap.ZEROS]
        is_there = [(one.path, one.position) for one in gaps] == [(path, position)]
        if is_there and self._copies_in(gaps):
            (one,) = gaps
            return [one._replace(last_lost_offset=one.first_lost_offset - 1)]
        return gaps

    def clear(self) -> None:
        """Forget the gaps that are open."""
        self.pending, self._pending_copies = [], []

    def count(self, gaps: Sequence[Gap]) -> None:
        """Tell gaps, whose losses are counted."""
        told = self._told
        told.gap_count += len(gaps)
        told.gaps += gaps[: self._gaps_told - len(told.gaps)]

    def lose(self, gaps: Sequence[Gap]) -> None:
        """Tell gaps, and count their losses, which are known."""
        for one in gaps:
            if one.last_lost_offset is not None:
                self._lost.append((one.first_lost_offset, one.last_lost_offset + 1))
                self._told.lost_offsets += one.last_lost_offset + 1 - one.first_lost_offset
        self.count(gaps)


def _goes_on(gap: Gap, other: Gap) -> bool:
    """Return whether a gap goes on in another one of the same kind, which follows at once."""
    is_next = gap.position + gap.size_bytes == other.position
    return is_next and (gap.path, gap.kind) == (other.path, other.kind)
