# SPDX-License-Identifier: Apache-2.0
"""The one shape of a check of a log, and what such a check may read.

To add one: write a subclass of `LogCheck`, `declare` the rules of its laws beside it, and put it
into `LOG_CHECKS` in verifying/segment_checks.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from segproof.files import File
from segproof.inventory.segments import Segment
from segproof.reading.cleaner_traces import is_lost_in
from segproof.reading.keyless_records import keyless_in
from segproof.stretches.kafka.facts import FramedLog
from segproof.verifying.index_file_checks import (
    OffsetIndexFile,
    TimeIndexFile,
    TransactionIndexFile,
)
from segproof.verifying.log_blocks import Block, LogScan
from segproof.verifying.segment_carry import LogCarry
from segproof.wording.reporting import PathReporter, Reporter
from segproof.wording.segment_files import report_of


def _unknown() -> None:
    return None


def _is_not(_offset: int) -> bool:
    return False


def _is_own(_log: "LogPass") -> bool:
    return False


@dataclass(slots=True)
class Counted:
    """How many entries of an index fit the log."""

    right: int = 0
    wrong: int = 0
    """Only those that lead into the log, or whose offset or time it holds otherwise."""


@dataclass(slots=True)
class LogPass:
    """One reading of a segment's log: what its checks may read, and how far it has come."""

    segment: Segment
    reporter: Reporter
    file: File
    """The log."""
    size: int
    """Bytes of the log when its reading began."""
    known_bytes: int
    """Bytes of the log before its indexes were read: they say nothing of what a broker appended
    since."""
    offsets: OffsetIndexFile | None
    times: TimeIndexFile | None
    transactions: TransactionIndexFile | None
    """The index files, each checked by itself; None: it is not there, or can't be read."""
    scan: LogScan
    framed: FramedLog | None
    """What an earlier look found of the log, if it has not changed since."""
    first_of_next: Callable[[], int | None] = _unknown
    """Reads the first offset of the next segment's log; None if it has none, or can't be read."""
    begins_elsewhere: Callable[[int], bool] = _is_not
    """Looks for a log of the directory that begins with an offset, and has another name."""
    find_origin: Callable[["LogPass"], bool] = _is_own
    """Reads whether the offset index was made of another log."""
    is_of_other_index: Callable[["LogPass"], bool] = _is_own
    """Reads whether the index of another segment leads to the batches of this log."""
    offset_entries: Counted = field(default_factory=Counted)
    """How many entries of the offset index lead to a batch."""
    time_entries: Counted = field(default_factory=Counted)
    """How many entries of the time index have the time of their batch."""
    has_odd_entries: bool = False
    """Whether an entry of an index does not fit the log."""
    reach: int = -1
    """Distance of the last offset so far from the base offset; -1 before the first batch."""
    max_timestamp: int = -1
    """The largest timestamp of the sound batches so far."""
    is_sound: bool = True
    """Whether every checksum was right and, at the end, the scan reached the last batch."""
    tail_is_empty: bool = False
    """Whether, at the end, no batch follows the last one: zeros, or too few bytes for one."""

    _keyless: list[int | None] = field(default_factory=list)
    _origin: list[bool] = field(default_factory=list)

    def is_lost(self, first_offset: int) -> bool:
        """Return whether this log excludes that compaction left a gap from this offset on."""
        if not self._keyless:
            self._keyless.append(keyless_in(self.file))
        return is_lost_in(self.segment.base_offset, first_offset, self._keyless[0])

    @property
    def has_other_index(self) -> bool:
        """Whether the offset index was made of another log, so that it proves no loss of this one.

        Cost: some entries are looked up, and logs beside this one are read: ask last.
        """
        if not self._origin:
            self._origin.append(self.offsets is not None and self.find_origin(self))
        return self._origin[0]

    @property
    def report(self) -> PathReporter:
        """What takes the findings of the log."""
        return report_of(self.segment, ".log", self.reporter)

    def following(self, end: int) -> int | None:
        """Return the offset with which the next segment begins; None for the last one.

        `end` is the offset after the last batch here. Where the name leaves a gap, and the batches
        of the next log begin in it, the name is wrong and they say it.
        """
        following = self.segment.next_base_offset
        if following is None or following <= end:
            return following
        first = self.first_of_next()
        return first if first is not None and end <= first < following else following

    @property
    def is_read(self) -> bool:
        """Whether, at the end, all batches were read."""
        return self.scan.end_position >= self.size or self.tail_is_empty


class LogCheck:
    """One check of a log. It reads a `LogPass` and each block, and speaks to `_report`.

    A method may raise OSError, which ends the reading of the log and is reported.
    """

    def __init__(self, log: LogPass) -> None:
        self._log = log
        self._segment = log.segment
        self._report = log.report

    @classmethod
    def applies(cls, log: LogPass) -> bool:
        """Return whether there is anything to check."""
        return True

    def check(self, block: Block) -> None:
        """Judge the next block."""

    def finish(self) -> None:
        """Judge what only the end of the log shows."""

    def hand_on(self, carry: LogCarry) -> None:
        """Put into `carry` what the check of the whole partition needs."""
