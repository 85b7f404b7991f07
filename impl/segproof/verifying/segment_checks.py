# SPDX-License-Identifier: Apache-2.0
"""The checks of one segment: each index file by itself, then all checks of the log in one pass.

A check of the log is a class in `LOG_CHECKS`; add one there.

Laws: DISK-4, DISK-5, LOG-4, and those of the checks.
"""

import posixpath
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

import numpy as np

from segproof.files import File, Files
from segproof.findings import Severity
from segproof.hints import writes
from segproof.inventory.segments import Segment
from segproof.kafka.batch_table import BatchScan
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import NameKind, read_file_name
from segproof.reading.index_origins import is_of_other_index, is_of_other_log
from segproof.reading.indexed_ends import KeptEnd, entry_blocks, indexed_end, misleads
from segproof.reading.keyless_records import MAX_BATCH_BYTES
from segproof.reading.log_extents import logs_from
from segproof.reading.log_order import NamedLog, first_offset_of
from segproof.reading.offset_entries import entries_of
from segproof.reading.overlapping_logs import Overlap
from segproof.stretches.kafka.facts import FramedLog
from segproof.stretches.kafka.in_place import byte_ranges_of
from segproof.verifying.batch_checks import BatchCheck
from segproof.verifying.copies_beside import copies_beside, hints_with
from segproof.verifying.cut_out_checks import CutOutCheck
from segproof.verifying.epoch_checks import EpochCheck
from segproof.verifying.foreign_logs import ForeignLogCheck
from segproof.verifying.index_file_checks import (
    OffsetIndexFile,
    TimeIndexFile,
    TransactionIndexFile,
)
from segproof.verifying.index_log_checks import (
    IndexEndCheck,
    OffsetEntriesCheck,
    TimeEntriesCheck,
    report_beyond_torn,
)
from segproof.verifying.log_blocks import LogScan, blocks_of
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.lost_offsets import LostOffsetsCheck
from segproof.verifying.plain_batches import PlainBatches
from segproof.verifying.producer_state_checks import ProducerStateCheck
from segproof.verifying.record_checks import RecordsCheck
from segproof.verifying.segment_carry import LogCarry
from segproof.verifying.time_checks import TimestampCheck
from segproof.verifying.truncated_entries import TruncatedEntriesCheck
from segproof.wording.reporting import Reporter, Wanted
from segproof.wording.rules import REBUILD, SALVAGE, declare
from segproof.wording.segment_files import hint_of, open_guarded, report_of, size_guarded

MADE_NEW = (
    "the broker that starts next reads the segment and makes a missing .index new, but a missing"
    " .timeindex empty, so that reads by time scan the log"
)
UNDER_OTHER_NAME = writes(
    "copy this directory away before a broker starts here, which removes the index; no record is"
    " lost. What to do about the log, its own findings say"
)
STRANGER = SALVAGE.after(
    "find out which partition this log is of: copy its files into another folder, and look into"
    " them there with `segproof verify` and `segproof dump`. A salvage sets this log aside whole,"
    " and keeps the others: "
)
DOUBTFUL = REBUILD.after(
    "compare the segment with another replica first: the log lacks offsets or is damaged, and a new"
    f" index says no more of what it held; {MADE_NEW}. If the log is whole there too, "
)

declare("log-segment", Severity.ERROR,
    writes("look for the log under other names and in lost+found (verify of that folder tells which"
    " logs are in it), and copy this file away before a broker starts here: it removes the index"),
    "DISK-4",
    is_of_any_file=True)  # fmt: skip
declare("log-segment", Severity.WARNING,
    REBUILD.after(f"the log has every offset, so no record is lost: {MADE_NEW}; "),
    "DISK-5")  # fmt: skip

LOG_CHECKS: tuple[type[LogCheck], ...] = (
    BatchCheck,
    LostOffsetsCheck,
    RecordsCheck,
    TimestampCheck,
    OffsetEntriesCheck,
    TimeEntriesCheck,
    IndexEndCheck,
    CutOutCheck,
    ForeignLogCheck,
    EpochCheck,
    TruncatedEntriesCheck,
    ProducerStateCheck,
    PlainBatches,
)
"""The checks of a log, in the order in which each sees a block and the end. `BatchCheck` is first,
since the others read what it keeps. `TruncatedEntriesCheck` judges the findings of those before."""

IndexKind = TypeVar("IndexKind", OffsetIndexFile, TimeIndexFile, TransactionIndexFile)

Scanning = Callable[[File, int, Segment, Wanted], LogScan]
"""Gives the scan of a log, by the open file and its size."""


def scan_of(file: File, start: int, end: int, segment: Segment, wanted: Wanted) -> BatchScan:
    """Return a scan of the batches in [start, end) of a log, for what is asked of the segment."""
    limit = wanted.limit
    return BatchScan(
        file,
        start,
        end,
        deep=wanted.deep and ".log" in segment.judged,
        limit=limit,
        max_batch_bytes=limit or MAX_BATCH_BYTES,
    )


def whole_scan(file: File, size: int, segment: Segment, wanted: Wanted) -> BatchScan:
    """Return a scan of all batches of a log."""
    return scan_of(file, 0, size, segment, wanted)


class SegmentCheck:
    """Checks one segment; iterate `run` to the end, then `carry` is what follows from it."""

    def __init__(
        self,
        segment: Segment,
        reporter: Reporter,
        files: Files,
        scan: Scanning | None = None,
        framed: FramedLog | None = None,
    ) -> None:
        """`framed` is what an earlier look found of the log, if it has not changed since."""
        self._segment = segment
        self._reporter = reporter
        self._files = files
        self._scan = scan or whole_scan
        self._framed = framed
        self._is_open = False
        """Whether its log could be opened. Else no index can be made of it."""
        self.carry = LogCarry()

    def run(self) -> Iterator[int]:
        """Do all checks; yield the bytes read since the last time."""
        if self._segment.overlap is not None:
            self._report_stranger(self._segment.overlap)
            return
        yield from self._files_of_segment()
        self._check_presence()
        is_absent = ".log" not in self._segment.suffixes and not self._segment.held_by
        if (is_absent or self.carry.damage is not None) and not self._segment.stem:
            self._name_copies()

    def _name_copies(self) -> None:
        """Name the files beside a damaged or missing log that may be copies of it."""
        segment = self._segment
        copies = copies_beside(segment, self._files)
        if not copies:
            return
        for law, hint in hints_with(segment, copies).items():
            for suffix in {".log", *segment.suffixes}:
                self._reporter.advise(law, segment.path(suffix), hint)

    def _files_of_segment(self) -> Iterator[int]:
        segment = self._segment
        with ExitStack() as stack:
            # A broker writes a batch first and its entries then: what an index says was in the log
            # when the index was read, and what the log had before is in the transaction index.
            log = self._open(".log", stack)
            self._is_open = log is not None
            before = _size_now(log)
            offsets = yield from self._index(OffsetIndexFile, stack)
            times = yield from self._index(TimeIndexFile, stack)
            transactions = yield from self._index(TransactionIndexFile, stack)
            sizes = [one.size for one in (offsets, times, transactions) if one is not None]
            self.carry.bytes_checked = sum(sizes)
            if log is None or not segment.judged:
                return
            try:
                size = size_guarded(log, report_of(segment, ".log", self._reporter))
                scan = self._scan(log, size, segment, self._reporter.wanted)
                reading = LogPass(
                    segment,
                    self._reporter,
                    log,
                    size,
                    before,
                    offsets,
                    times,
                    transactions,
                    scan,
                    self._framed,
                    lambda: _first_of_next(segment, self._files),
                    lambda offset: _begins_elsewhere(segment, offset, self._files),
                    lambda log: _has_other_index(log, self._files),
                    lambda log: _is_of_other_index(log, self._files),
                )
                yield from self._log(reading)
                self.carry.bytes_checked = sum(sizes) + size
            except OSError as error:
                report_of(segment, ".log", self._reporter).unreadable(error)

    def _log(self, log: LogPass) -> Iterator[int]:
        """Run all checks of the log in one pass; yield the bytes read."""
        checks = [kind(log) for kind in LOG_CHECKS if kind.applies(log)]
        done = batches = sound_batches = 0
        first_offset, last_offset = None, -1
        for block in blocks_of(log.scan, log.segment):
            if first_offset is None:
                first_offset = log.segment.base_offset + int(block.first[0])
            batches += len(block.table)
            sound_batches += int(np.count_nonzero(block.crc_valid))
            if block.crc_valid.any():
                last_offset = int(block.table["last_offset"][block.crc_valid][-1])
            for check in checks:
                check.check(block)
            log.reach = int(block.reach[-1])
            yield block.end_position - done
            done = block.end_position
        for check in checks:
            check.finish()
        end_offset = log.segment.base_offset + log.reach + 1
        if batches and log.reach < 0 and last_offset >= 0:  # the name is above all offsets
            end_offset = last_offset + 1
        carry = LogCarry(is_read=log.is_read, end_offset=end_offset)
        carry.batches, carry.sound_batches = batches, sound_batches
        carry.end_position, carry.first_offset = log.scan.end_position, first_offset
        carry.is_blank = not batches and log.size > 0
        for check in checks:
            check.hand_on(carry)
        carry.indexed_end = _indexed_end(log, carry)
        is_last = log.segment.next_base_offset is None and carry.foreign_end is None
        if carry.is_pointed_beyond and is_last and carry.indexed_end is None:
            whole = [(0, log.scan.end_position)]
            told = whole, log.segment.base_offset, entry_blocks(log.offsets)
            carry.is_pointed_beyond = not misleads(log.file, *told)
        if carry.indexed_end and carry.damage and not carry.is_pointed_beyond:
            report_beyond_torn(log, carry.indexed_end)
        self.carry = carry
        yield max(0, log.size - done)

    def _report_stranger(self, overlap: Overlap) -> None:
        """Report a log that is none of the partition's; what is in it is not judged."""
        segment = self._segment
        self._reporter.at(segment.path(".log"), shown_by=segment.directory).add(
            "LOG-4",
            f"{overlap.words}. The others lose no record by it, and this log was not judged. A"
            f" broker answers reads from offset {segment.base_offset} on with this log",
            hint=STRANGER,
        )

    def _check_presence(self) -> None:
        segment, reporter = self._segment, self._reporter
        present = segment.suffixes
        if segment.is_cached or segment.is_swap or segment.log_name:
            return
        if ".log" not in present:
            words = f"the segment of base offset {segment.base_offset} has no .log file"
            other = segment.held_by
            for suffix in sorted(present):
                report_of(segment, suffix, reporter).add(
                    "DISK-4",
                    f"{words}: its batches are in {other}, whose name is wrong" if other else words,
                    expected=segment.path(".log"),
                    severity=Severity.WARNING if other else None,
                    hint=UNDER_OTHER_NAME if other else None,
                )
            return
        following = segment.next_base_offset
        if self._is_open and (following is not None or segment.stem):
            carry, end = self.carry, self.carry.end_offset
            is_whole = carry.is_read and carry.damage is None and not carry.missing_offsets
            is_whole &= not carry.is_gap_told and (end is None or end >= (following or end))
            for suffix in (".index", ".timeindex"):
                if suffix not in present:
                    reporter.at(segment.path(".log")).add(
                        "DISK-5",
                        f"the segment has no {suffix} file, although {segment.why_closed}",
                        expected=segment.path(suffix),
                        hint=None if is_whole or hint_of(segment) else DOUBTFUL,
                    )

    def _open(self, suffix: str, stack: ExitStack) -> File | None:
        if suffix not in self._segment.suffixes:
            return None
        file = open_guarded(self._files, report_of(self._segment, suffix, self._reporter))
        if file is not None:
            stack.callback(file.close)
        return file

    def _index(
        self, kind: type[IndexKind], stack: ExitStack
    ) -> Generator[int, None, IndexKind | None]:
        """Check an index file by itself and return it; None if it can't be or need not be read."""
        file = self._open(kind.suffix, stack)
        if file is None or self._segment.judged.isdisjoint(kind.read_for):
            return None
        try:
            index = kind(file, self._segment, self._reporter)
            yield from index.check()
        except OSError as error:
            report_of(self._segment, kind.suffix, self._reporter).unreadable(error)
            return None
        return index


def _indexed_end(log: LogPass, carry: LogCarry) -> int | None:
    """Return up to which offset the indexes of a last log say that it went; None: not beyond it."""
    damage, end = carry.damage, carry.end_offset
    if log.segment.next_base_offset is not None or end is None:
        return None
    position, largest, base = log.scan.end_position, log.max_timestamp, log.segment.base_offset
    whole, is_broken = [(0, position)], False
    if damage is not None:
        if damage.unsearched_from is not None:
            return None
        end, is_broken = max(damage.last_sound_offset + 1, base), damage.broken_from is not None
        largest = max(largest, -1 if damage.sound is None else damage.sound.max_timestamp)
        position = damage.position if damage.broken_from is None else damage.broken_from
        whole = [(0, position)]
        if carry.framed is not None:
            rows = carry.framed.rows
            position = position if is_broken else carry.framed.log.zeros_from
            whole = byte_ranges_of(rows[~rows["is_mended"]])
    elif not carry.is_read:
        return None
    found = indexed_end(
        log.file,
        KeptEnd(base, end, position, is_broken, damage is not None, largest, whole),
        partial(entry_blocks, log.offsets),
        partial(entry_blocks, log.times),
        lambda: log.has_other_index,
    )
    is_odd = found is not None and carry.first_offset not in (None, base)
    # The indexes may be of another log, which has a wrong name: all logs are asked for that.
    return None if is_odd and log.begins_elsewhere(base) else found


def _has_other_index(log: LogPass, files: Files) -> bool:
    """Return whether the offset index was made of another log than the one that is read."""
    segment = log.segment
    if log.offsets is None or segment.stem or segment.log_name or segment.is_swap:
        return False
    own = NamedLog(segment.path(".log"), segment.base_offset)
    entries = entries_of(log.offsets, segment.base_offset)
    return is_of_other_log(log.file, own, entries, entry_blocks(log.times), files)


def _is_of_other_index(log: LogPass, files: Files) -> bool:
    """Return whether the index of another segment leads to the batches of the log."""
    segment = log.segment
    if segment.stem or segment.log_name or segment.is_swap:
        return False
    return is_of_other_index(log.file, NamedLog(segment.path(".log"), segment.base_offset), files)


def _size_now(log: File | None) -> int:
    """Return the size of the log; 0 where it is not known."""
    try:
        return 0 if log is None else log.size()
    except OSError:
        return 0


def _first_of_next(segment: Segment, files: Files) -> int | None:
    """Return the first offset of the next segment's log; None if it has none, or is not read."""
    if segment.next_base_offset is None or segment.stem:
        return None
    path = posixpath.join(segment.directory, segment_file_name(segment.next_base_offset, ".log"))
    return first_offset_of(path, files.open)


def _begins_elsewhere(segment: Segment, offset: int, files: Files) -> bool:
    """Return whether a log of the directory begins with an offset that its name does not say."""
    own = [segment_file_name(one, ".log") for one in (offset, segment.base_offset)]
    found = logs_from(offset, segment.directory, files)
    others = (name for name in found if read_file_name(name).kind is NameKind.SEGMENT)
    return any(
        first_offset_of(posixpath.join(segment.directory, name), files.open) == offset
        for name in others
        if name not in own
    )
