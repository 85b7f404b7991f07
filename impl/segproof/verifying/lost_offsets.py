# SPDX-License-Identifier: Apache-2.0
"""Offsets that are missing between two segments, and that compaction can't have removed.

Compaction leaves gaps, also between segments and as large as a segment. So a gap alone is no
defect. But compaction goes from the start of a log, and removes each record without a key on its
way; a compacted topic accepts no such record. So behind a record without a key nothing was
compacted.

An entry of the offset index for such an offset, with a position at or behind the end of the log,
shows that the log held it: the log was cut between two batches, or emptied. Zeros do not belong to
the log here: a disk may have left them in place of its end. So it has if zeros end a closed log
and the next one begins at a later offset: a cleaned log has no zeros. Entries that lead into zeros
show it in the last log too: a preallocated tail has none. Preallocated zeros in an index of a
closed segment show that the log is an older copy: see `open_indexes`.

Upstream: Kafka 4.3.1: Cleaner.shouldRetainRecord, LogValidator; the same since 0.11.0.
Laws: DISK-25.
"""

import numpy as np

from segproof.counts import plural
from segproof.files import holds_zeros
from segproof.findings import Severity
from segproof.hints import Hint, reads, writes
from segproof.reading.keyless_records import (
    MAX_BATCH_BYTES,
    are_of_records,
    end_batch,
    has_keyless,
)
from segproof.reading.open_indexes import is_older_copy
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.segment_carry import LogCarry
from segproof.wording.rules import declare
from segproof.wording.segment_files import CUT_LOG

declare("partition-log", Severity.WARNING,
    reads("a segment between the two is missing, or this one has lost its end; consumers pass over"
    " these offsets in silence. Look for the files under other names, in the other log"
    " directories and in lost+found (verify of that folder tells which logs are in it), and compare"
    " with another replica"), "DISK-25")  # fmt: skip
ZEROED_LOG = writes(
    "compare the segment with another replica; until then keep its files. `segproof salvage DIR"
    " --out DIR2` saves what is left"
)
OLDER_COPY = writes(
    "look for the newer copy of this segment: on another replica, in backups, and where this one"
    " came from. Until then keep its .index and .timeindex: new ones would no longer show that the"
    " log is an older copy. `segproof salvage DIR --out DIR2` saves what is left"
)
ZEROED_END = writes(
    "copy this directory away before a broker starts here: it takes the log to end before the"
    " zeros, and removes the entries. Compare the end of the log with another replica; `segproof"
    " salvage DIR --out DIR2` saves what is left"
)


def entries_in_zeros(log: LogPass) -> tuple[int, int]:
    """Return how many entries of the offset index lead into zeros after the last batch.

    And the largest of their offsets. A broker writes a batch before its entry, and cuts a log
    before it lowers the number of entries: so batches were there.
    """
    count = largest = 0
    start, base = log.scan.end_position, log.segment.base_offset
    if log.offsets is not None and start < log.size:
        for _, block in log.offsets.blocks():
            positions, distances = block["position"].astype(np.int64), block["offset"]
            is_there = (positions >= start) & (positions < log.size) & (distances > log.reach)
            count += int(np.count_nonzero(is_there))
            largest = max(largest, base + int(distances[is_there].max(initial=-1)))
    is_proof = count and holds_zeros(log.file, start, log.size) and not log.has_other_index
    return (count, largest) if is_proof else (0, 0)


class LostOffsetsCheck(LogCheck):
    """Judges what lies between the end of the log and the next segment, or the zeros there."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._limit = log.reporter.wanted.limit or MAX_BATCH_BYTES
        self._end: int | None = log.segment.base_offset
        """The offset behind the last batch; None if that batch is damaged."""
        self._last: np.void | None = None
        """The header of the last sound batch of records."""
        self._is_gap_told = False
        self._first_held: np.void | None = None
        """The header of the first one."""
        self._first: int | None = None
        """Distance of the first offset of the log from that of its name."""

    def check(self, block: Block) -> None:
        """Take in the last batches of a block."""
        table, crc_valid = block.table, block.crc_valid
        if self._first is None:
            self._first = int(block.first[0])
        self._end = int(table["last_offset"][-1]) + 1 if crc_valid[-1] else None
        rows = np.flatnonzero(crc_valid & are_of_records(table))
        if len(rows):
            self._last = table[rows[-1]].copy()
            if self._first_held is None:
                self._first_held = table[rows[0]].copy()

    def finish(self) -> None:
        """Judge the end of a log that was read whole, up to zeros that a disk may have left."""
        size, end, following = self._log.size, self._end, self._segment.next_base_offset
        position = self._log.scan.end_position
        if following is None:
            self._judge_zeros(end, position)
            return
        if end is None or end >= following:
            return
        following = self._log.following(end) or 0
        if end >= following:
            return
        if position < size and not holds_zeros(self._log.file, position, size):
            return
        indexed, is_zeroed = self._indexed(end, following), position < size
        is_older = not (indexed or is_zeroed) and self._is_older_copy(following)
        if not (indexed or is_zeroed or is_older or self._is_keyless(self._last)):
            return
        if not indexed and self._log.begins_elsewhere(end):
            return  # the next batches are in a log of a wrong name
        if self._first and self._log.begins_elsewhere(self._segment.base_offset):
            return  # the index is of another log, which has a wrong name
        hint: Hint | None
        if is_zeroed:
            hint = ZEROED_LOG
            why = " Zeros fill the rest of the log, which no compaction leaves: it has lost its end"
        elif indexed:
            hint = CUT_LOG
            why = (
                f" The offset index has entries for {indexed} of them, behind the end of the log:"
                " the log has lost its end"
            )
        elif is_older:
            hint = OLDER_COPY
            why = (
                " Preallocated zeros end its index, which a broker trims when it closes a segment,"
                " and so does the log cleaner: this log is an older copy, from before it was closed"
            )
        else:
            hint = None
            why = " Its last records are not all keyed, so it is not compaction that took them"
        self._is_gap_told = True
        self._report.add(
            "DISK-25",
            f"the segment ends before offset {end} and the next one begins at {following}:"
            f" {plural(following - end, 'offset', 'is', 'are')} in neither.{why}",
            position=position,
            expected=end,
            actual=following,
            severity=None if hint is None else Severity.ERROR,
            hint=hint,
        )

    def _is_keyless(self, header: np.void | None) -> bool:
        return header is not None and has_keyless(self._log.file, header, self._limit)

    def hand_on(self, carry: LogCarry) -> None:
        """Hand on its ends, and whether the offsets before the next segment are told as lost."""
        carry.is_gap_told = self._is_gap_told
        held = (self._first_held, self._last)
        carry.ends = [end_batch(one, self._limit) for one in held if one is not None]

    def _judge_zeros(self, end: int | None, position: int) -> None:
        """Judge zeros at the end of the last log."""
        count, largest = entries_in_zeros(self._log)
        if end is None or not count:
            return
        self._report.add(
            "DISK-25",
            f"the log ends before offset {end}, and zeros follow up to its last byte, where the"
            f" offset index has {plural(count, 'entry')}: the log has lost its end, the offsets up"
            f" to {largest} and perhaps more",
            position=position,
            expected=end,
            actual=largest + 1,
            severity=Severity.ERROR,
            hint=ZEROED_END,
        )

    def _is_older_copy(self, following: int) -> bool:
        """Return whether the indexes show that the log is a copy from before it was closed."""
        log, segment = self._log, self._segment
        if segment.stem or segment.is_swap or not log.is_sound:
            return False
        told = log.file, log.scan.end_position, segment.base_offset, following
        if not is_older_copy(*told, log.offsets, log.times):
            return False
        return not log.has_other_index or is_older_copy(*told, None, log.times)

    def _indexed(self, end: int, following: int) -> int:
        """Return how many entries of the offset index say that the log held offsets of the gap."""
        count, base = 0, self._segment.base_offset
        if self._log.offsets is not None:
            for _, block in self._log.offsets.blocks():
                offsets = block["offset"].astype(np.int64) + base
                is_gone = (offsets >= end) & (offsets < following)
                is_gone &= block["position"] >= self._log.scan.end_position
                count += int(np.count_nonzero(is_gone))
        return 0 if count and self._log.has_other_index else count
