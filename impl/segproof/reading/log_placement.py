# SPDX-License-Identifier: Apache-2.0
"""What becomes of the batches of one log, decided by this log alone.

Other logs of the partition may state more: a salvage reads them all.

Laws: BATCH-2, BATCH-3.
"""

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from segproof.files import ReadOnlyFile
from segproof.stretches.kafka.desk import Fate
from segproof.stretches.kafka.facts import NO_ENTRIES, Entries, Facts, FramedLog
from segproof.stretches.kafka.framing import LogSource, frame_log
from segproof.stretches.kafka.in_place import place_framed
from segproof.stretches.kafka.log_spans import spans_of
from segproof.stretches.kafka.placing import Placement
from segproof.stretches.spans import Span
from segproof.stretches.unreadable_blocks import ReadableParts

IsLost = Callable[[int, int, int, int], bool]
"""Gets the bytes between two batches, from and to, and the offsets that are missing there, the
first and the one after the last; returns whether damage took these for certain."""


@dataclass(frozen=True, slots=True)
class LogPlacement:
    """The facts of one log, and the fates of its batches."""

    facts: Facts
    placement: Placement
    framed: FramedLog
    """The facts as they were before stretches were opened."""

    def spans(self) -> Iterator[Span]:
        """Yield the spans of the log; they touch, and leave no byte out."""
        return spans_of(self.facts, self.placement)

    @property
    def has_batches(self) -> bool:
        """Return whether there is a batch that is no part of a torn one."""
        return bool((self.placement.fates != Fate.INSIDE).any())

    @property
    def has_odd_end(self) -> bool:
        """Return whether the last batch is set aside since one bit of its offset is wrong."""
        rows = self.facts.rows
        return len(rows) > 0 and self.placement.why(len(rows) - 1).rule_id == "PLACE-9"

    @property
    def last_offset(self) -> int:
        """Return the last offset that is kept; the one before the log's name without any."""
        kept, rows = self.placement.kept, self.facts.rows
        lasts = self.placement.firsts[kept] + rows["last"][kept] - rows["first"][kept]
        return int(lasts.max(initial=self.facts.logs[0].base_offset - 1))

    def lost_from(self, position: int, is_lost: IsLost) -> tuple[int, int]:
        """Return how many offsets are missing between kept batches, where bytes are lost too.

        These are the ones that are lost for certain, and others. Only what lies before a batch from
        `position` on counts, or after such a batch.
        """
        starts, ends = self.facts.rows["start"], self.facts.rows["end"]
        lost = unproven = 0
        for gap in self.placement.gaps:
            if gap.after is None or gap.last_lost is None:
                continue
            begin, end = 0 if gap.before is None else int(ends[gap.before]), int(starts[gap.after])
            if max(begin - 1, end) < position:
                continue
            missing, following = gap.last_lost + 1 - gap.first_lost, gap.last_lost + 1
            if is_lost(begin, end, gap.first_lost, following):
                lost += missing
            else:
                unproven += missing
        return lost, unproven


def placement_of_log(
    file: ReadOnlyFile,
    base_offset: int,
    next_base_offset: int | None,
    *,
    end: int | None = None,
    entries: Entries = NO_ENTRIES,
    start: int = 0,
    sound_to: int = 0,
    framed: FramedLog | None = None,
) -> LogPlacement:
    """Read an open log, and decide what becomes of each batch.

    The offsets are those in the names of the log and of the next one. `start`, `end` and `sound_to`
    are as for `LogSource`. `framed` is what an earlier reading found; it is taken if the log had
    these names and this length. Memory: as `place_alone`. Raises: OSError, also for blocks that the
    disk does not return; CorruptRecordError if the log is changed meanwhile.
    """
    source = LogSource(
        base_offset, next_base_offset, lambda: _LeftOpen(file), lambda: entries, start, end,
        sound_to=sound_to,
    )  # fmt: skip
    size = file.size() if end is None else end
    if framed is None or not framed.is_of(base_offset, next_base_offset, size):
        framed = frame_log(_LeftOpen(file), source)
    if framed.log.unreadable_bytes:
        raise OSError(errno.EIO, "a block can't be read", file.path)
    facts, placement = place_framed(Facts((framed.log,), framed.rows), source)
    return LogPlacement(facts, placement, framed)


class _LeftOpen(ReadableParts):
    """A log whose caller closes it."""

    def close(self) -> None:
        """Leave it open."""
