# SPDX-License-Identifier: Apache-2.0
"""How many offsets of a partition are in no sound batch, counted as its segments go by.

Where two findings speak of the same offsets, such as a segment without its log and the gap before
the next segment, each offset counts once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from segproof.files import REAL_FILES, Files, FileStatus
from segproof.findings import Finding
from segproof.inventory.partitions import Partition
from segproof.inventory.segments import Segment
from segproof.inventory.told_ends import IF_NAMED_RIGHT
from segproof.reading.cleaner_traces import UP_TO, CleanerTraces, Cleaning
from segproof.reading.cut_outs import CutOutGap
from segproof.reading.keyless_records import KeylessEnds, first_keyless
from segproof.reading.log_damage import LogDamage
from segproof.reading.queue_units import LostMessages
from segproof.stretches.kafka.facts import FramedLog
from segproof.stretches.kafka.whole_logs import WholeLog
from segproof.verifying.cut_out_checks import OR_MORE
from segproof.verifying.segment_carry import LogCarry

LOG_UNREADABLE, LOG_IS_GONE = "DISK-1", "DISK-4"
"""The second is the law that each index file of a segment without its log breaks."""
LOST_SEGMENT = "DISK-25"
OTHER_LOG = "DISK-69"
"""The law that a segment breaks whose log is of another one."""
LOST_OF_DENSE_LOG = "DISK-63"
"""The law that a segment breaks which lacks offsets that nothing else counts."""
CUT_OUT = "DISK-70"
"""The law that a log breaks from whose middle batches are gone."""
ENDS_LOST = frozenset({"DISK-36", "DISK-38"})
"""Laws of files that name an offset beyond the end of the log: so far the log went at least. A
leader epoch (DISK-64) may be of another log as well: of it no number is known."""
LATER_EPOCH = "DISK-64"
OF_BYTES = frozenset({
    "BATCH-2", "BATCH-3", "BATCH-14", "DISK-23", "DUMP-6", "SCAN-2", "SCAN-10",
})  # fmt: skip
"""Laws of damaged bytes: `LogCarry.damage` counts what they cost."""
OF_MESSAGES = frozenset({
    "RMQDISK-24", "RMQDISK-25", "RMQDISK-26", "RMQDISK-27", "RMQDISK-52",
    "RMQDISK-55",
})  # fmt: skip
"""Laws of damage in a commit log: the reader of its records counts what it costs."""
OF_LOST_FILES = frozenset({"RMQDISK-23", "RMQDISK-44"})
"""Laws of missing files of a commit log, and of a file of another store in one: the reader of the
records counts them too, but where it finds none of their messages nobody knows how many."""


class KnownLog(NamedTuple):
    """What the check of a segment has shown of its log."""

    sound_to: int
    """All batches up to this byte have right checksums."""
    foreign_end: int | None
    """As `LogCarry.foreign_end`."""
    cut_outs: list[CutOutGap]
    missing_offsets: int
    """In no batch, and in none of these gaps."""
    framed: FramedLog | None = None
    """As `LogCarry.framed`."""
    whole: WholeLog | None = None
    """What is known of a log that need not be read again; None if it is not known to be whole."""
    status: FileStatus | None = None
    """As `LogCarry.status`."""

    @classmethod
    def of(cls, segment: Segment, carry: LogCarry, *, is_told: bool) -> "KnownLog":
        """Return it from what a segment hands on; `is_told` if anything was found in it."""
        is_sound = carry.sound_batches == carry.batches
        sound_to = carry.end_position if is_sound else 0
        sound_to = sound_to if carry.damage is None else carry.damage.position
        others = carry.missing_offsets - sum(one.size for one in carry.cut_outs)
        whole = None if is_told else _whole(segment, carry)
        return cls(
            sound_to, carry.foreign_end, carry.cut_outs, others, carry.framed, whole, carry.status
        )  # fmt: skip


def _whole(segment: Segment, carry: LogCarry) -> WholeLog | None:
    base, following = segment.base_offset, segment.next_base_offset
    is_whole = carry.is_read and carry.least > 0 and carry.damage is None
    is_whole &= carry.sound_batches == carry.batches and not carry.missing_offsets
    is_whole &= carry.first_offset == base and carry.end_offset == (following or carry.end_offset)
    is_whole &= {".log", ".index"} <= segment.suffixes & segment.judged
    if not is_whole:
        return None
    return WholeLog(base, following, carry.end_position, carry.batches, carry.least)


class Lost(NamedTuple):
    """How many offsets of a partition are lost."""

    at_least: int
    unproven: int
    """This many more may be, or the log cleaner took them."""
    is_complete: bool
    """Whether there are no more than these."""


CountLost = Callable[[Partition, Files, Mapping[str, KnownLog]], Lost | None]
"""Places the logs of a partition together and counts what is lost. It gets what is known of each
log by its path, and returns None if the logs can't be read, or change meanwhile."""


class LossCount:
    """Give it each finding of a loss, and each segment behind its findings."""

    def __init__(
        self, logs: Sequence[str] = (), files: Files = REAL_FILES, *, was_cleaned: bool = False
    ) -> None:
        """`logs` are searched for `CleanerTraces.keyless_from`, if a loss needs it."""
        self._logs = logs
        self._files = files
        self._ends = KeylessEnds(files)
        self._was_cleaned = was_cleaned
        self._keyless_from: int | None = None
        """The first offset up to which a record is known to have no key."""
        self._has_gaps = False
        """Whether a segment lacks offsets that nothing tells of, as after compaction."""
        self._has_gap_behind = False
        """Whether the segment before does, if the present one has its log."""
        self._damaged = self._named = 0
        """Offsets after which no such record is known, or before it: those that damage took, or
        compaction before it; and those that names of files show."""
        self.at_least = 0
        """So many are known to be lost."""
        self.unproven = 0
        """This many further offsets may be lost, or compaction took them."""
        self._if_named_right = 0
        """How many offsets are lost at the end, unless two folders have exchanged names."""
        self._is_complete = True
        """Whether there are no more than these."""
        self._counted_to = 0
        """The offset up to which every loss is counted."""
        self._gone_from: int | None = None
        """The base offset of the segments without a log that come last so far."""
        self._is_of_messages = False
        """Whether there is damage in a commit log."""
        self._are_files_lost = False
        """Whether files of a commit log are missing, or others lie in their place."""
        self._is_damaged = self._is_gone = False
        """Whether the log of the present segment has damaged bytes, or can't be read at all."""
        self._lost_behind: tuple[int, int] | None = None
        """Offsets, the second exclusive, between the present segment and the next one."""
        self._lost_here: tuple[int, int] | None = None
        """Those of the present segment, where the log of another one lies."""

        self._cut_out = 0, True
        """Offsets of the present segment that are lost between its batches, and whether no more of
        them are."""
        self._are_others_lost = False
        """Whether records are lost that no offset between logs and batches shows."""
        self.is_any_damaged = False
        """Whether the bytes of a log are damaged, other than by a torn end, which is no loss."""

    def find(self, finding: Finding) -> None:
        """Take a finding that says that records can't be read, or are not there."""
        expected, actual = finding.expected, finding.actual
        if finding.law in OF_BYTES:
            self._is_damaged = True
        elif finding.law in (LOG_UNREADABLE, LOG_IS_GONE):
            self._is_gone = True
        elif finding.law == LOST_SEGMENT and expected is not None and actual is not None:
            self._lost_behind = int(expected), int(actual)
        elif finding.law == OTHER_LOG and expected is not None and actual is not None:
            self._lost_here = int(expected), int(actual)
        elif finding.law in ENDS_LOST and actual is not None and actual.endswith(IF_NAMED_RIGHT):
            begin = int((expected or actual).partition(" ")[0])
            self._if_named_right = max(
                self._if_named_right, int(actual.removesuffix(IF_NAMED_RIGHT)) - begin
            )
        elif finding.law in ENDS_LOST and expected is not None and actual is not None:
            self._add(int(expected.partition(" ")[0]), int(actual), is_proven=True)
            self._is_complete = False
        elif finding.law == LOST_OF_DENSE_LOG and actual is not None:
            if actual.startswith(UP_TO):
                self.unproven += int(actual.removeprefix(UP_TO))
            else:
                self.at_least += int(actual)
        elif finding.law == CUT_OUT and actual is not None and not actual.startswith(UP_TO):
            self._cut_out = int(actual.removesuffix(OR_MORE)), not actual.endswith(OR_MORE)
        elif finding.law in OF_MESSAGES | OF_LOST_FILES:
            self._is_of_messages = True
            self._are_files_lost |= finding.law in OF_LOST_FILES
        elif finding.law != CUT_OUT:
            self._is_complete = False
            self._are_others_lost |= finding.law != LATER_EPOCH

    def add(self, segment: Segment, carry: LogCarry) -> None:
        """Take the next segment, and what was read of it."""
        self._ends.add(segment.path(".log"), carry.ends)
        is_own = self._lost_here is None
        self._has_gaps |= self._has_gap_behind and not self._is_gone
        self._has_gap_behind = False
        if carry.end_offset is not None and self._gone_from is not None:
            self._add(self._gone_from, segment.base_offset)
            self._gone_from = None
        if self._is_gone and carry.end_offset is None and self._gone_from is None:
            self._gone_from = segment.base_offset
        if carry.damage is not None and ".log" in segment.judged:
            self._take_damage(carry.damage, segment.next_base_offset, is_read=carry.is_read)
        others = carry.missing_offsets - sum(one.size for one in carry.cut_outs)
        if self._cut_out[0] and others > 0:
            self._is_complete = False  # nothing judges the other gaps of this log
        elif carry.cut_outs and self._lost_here is None:
            self.unproven += sum(one.unproven for one in carry.cut_outs) + max(0, others)
        if self._lost_here is None:
            self.at_least += self._cut_out[0]
            self._is_complete &= self._cut_out[1]
        self._cut_out = 0, True
        if self._lost_here is not None:
            first, end = self._lost_here
            is_held = carry.first_offset == end  # the log is of this partition
            self._has_gaps |= is_held and carry.missing_offsets > end - first
            self._add(first, end)
            self._lost_here = None
            self._is_complete &= is_held or segment.next_base_offset is not None
        if carry.indexed_end is not None and carry.end_offset is not None:
            damage = carry.damage
            sound = carry.end_offset if damage is None else damage.last_sound_offset + 1
            self._add(max(sound, segment.base_offset), carry.indexed_end, is_proven=True)
            self._is_complete = False  # an index has no entry for each batch
        if self._lost_behind is not None:
            # After what is lost before this segment: `_add` takes losses in the order of offsets.
            self._add(*self._lost_behind)
            self._lost_behind = None
            if segment.next_base_offset is None:
                self._is_complete = False  # an index has no entry for each batch
        self._is_damaged = self._is_gone = False
        if carry.has_sound_gap and (carry.damage is not None or carry.is_gap_told):
            # No index shows whether its other gaps held batches, and DISK-63 does not judge them.
            self._is_complete &= {".index", ".timeindex"} <= segment.suffixes
        if is_own and not carry.cut_outs:
            self._has_gaps |= carry.has_sound_gap
            is_told = carry.damage is not None or carry.is_gap_told or not carry.batches
            self._has_gap_behind = carry.missing_offsets > 0 and not is_told

    def count_as(self, lost: Lost) -> None:
        """Forget what was counted log by log: all logs together show what is lost."""
        self.at_least, self.unproven, self._is_complete = lost
        self._is_complete &= not self._are_others_lost
        self._damaged = self._named = self._if_named_right = 0
        self._gone_from = None

    def finish(self) -> int | None:
        """Return how many offsets are lost; None if that is unknown."""
        has_unproven = self._damaged + self._named > 0
        traces = CleanerTraces(self._was_cleaned, self._keyless() if has_unproven else None)
        known = traces.of_gap(0)
        is_named = known is Cleaning.UNKNOWN and not self._has_gaps
        is_lost = known is Cleaning.EXCLUDED
        self.at_least += self._damaged * is_lost + self._named * (is_lost or is_named)
        self.unproven += (self._damaged + self._named) * (not is_lost) - self._named * is_named
        self.unproven += self._if_named_right
        self._damaged = self._named = self._if_named_right = 0
        return self.at_least if self.is_bounded and not self.unproven else None

    @property
    def is_bounded(self) -> bool:
        """Whether no offsets are lost but the known and the unproven ones."""
        return self._is_complete and self._gone_from is None

    def add_messages(self, lost: LostMessages | None) -> None:
        """Take how many messages damage in a commit log cost; None if that is unknown."""
        if not self._is_of_messages:
            return
        known = 0 if lost is None else lost.known
        self.at_least += known
        is_exact = lost is not None and lost.is_exact
        self._is_complete &= is_exact and (known > 0 or not self._are_files_lost)

    def _take_damage(
        self, damage: LogDamage, next_base_offset: int | None, *, is_read: bool
    ) -> None:
        """Count what a damage costs.

        Behind the last sound batch of the last segment nothing says how many offsets there were. A
        torn tail there, which a killed broker leaves, is no loss.
        """
        is_torn = damage.is_tail and next_base_offset is None and not self._is_damaged
        self.is_any_damaged |= not is_torn
        self.at_least += damage.lost_offsets
        self._damaged += damage.unproven_offsets
        if damage.unsearched_from is not None:
            self._is_complete = False
        elif damage.ends_broken and next_base_offset is not None:
            start = damage.last_sound_offset + 1
            self._add(start, next_base_offset, is_proven=damage.is_end_claimed)
        elif damage.ends_broken and (self._is_damaged or not damage.is_tail):
            self._is_complete = False
        if not damage.ends_broken and not is_read and next_base_offset is not None:
            # Nothing judges whether a segment is missing after a log that was not read to its end.
            self._is_complete &= damage.last_sound_offset + 1 >= next_base_offset

    def _add(self, start: int, end: int, *, is_proven: bool = False) -> None:
        """Count the offsets [start, end) that are not counted yet.

        Unless it `is_proven` that each of them was there, as at the end of a partition, which is
        never compacted, only names of files or a few entries show them: in a log that was compacted
        a part may have been compacted away.
        """
        start = max(start, self._counted_to)
        self._counted_to = max(self._counted_to, end)
        if end <= start:
            return
        keyless = None if is_proven else self._keyless()
        traces = CleanerTraces(was_here=True, keyless_from=keyless)
        if is_proven or traces.of_gap(start) is Cleaning.EXCLUDED:
            self.at_least += end - start
        else:
            self._named += end - start

    def _keyless(self) -> int | None:
        """Return the last offset of a batch that has a record without a key; None without any.

        The first and the last batch of each log so far are asked first. The logs are searched for
        more at most once.
        """
        if self._keyless_from is None:
            self._keyless_from = self._ends.first_keyless()
        if self._keyless_from is None and self._logs:
            self._keyless_from, self._logs = first_keyless(self._logs, self._files), ()
        return self._keyless_from
