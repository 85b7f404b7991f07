# SPDX-License-Identifier: Apache-2.0
"""All checks of one segment: each file by itself, then the log once with everything beside it."""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import numpy as np

from segproof.files import File, Files
from segproof.kafka.batch_table import BatchScan
from segproof.verifying.against_log import OffsetEntriesCheck, TimeEntriesCheck
from segproof.verifying.deep_checks import MAX_BATCH_BYTES, check_records
from segproof.verifying.epoch_checks import EpochCheck, EpochRun
from segproof.verifying.index_checks import (
    OFFSET_FORM,
    TIME_FORM,
    IndexForm,
    IndexStream,
    check_offset_entries,
    check_time_entries,
)
from segproof.verifying.index_end import IndexEndCheck
from segproof.verifying.leftovers import soften_leftovers
from segproof.verifying.log_checks import Block, LogCheck, LogScan, blocks_of
from segproof.verifying.lost_offsets import LostOffsetsCheck
from segproof.verifying.producer_checks import ProducerCheck, ProducerTable, empty_table
from segproof.verifying.reporting import Reporter, Wanted
from segproof.verifying.segments import (
    Segment,
    open_guarded,
    report_unreadable,
    size_guarded,
)
from segproof.verifying.transaction_checks import (
    TransactionCarry,
    TransactionEntries,
    TransactionMarkers,
)

__all__ = ["Cut", "LogCarry", "Scanning", "SegmentCheck", "scan_of"]

STRUCTURES = {
    ".log": "record-file",
    ".index": "offset-index",
    ".timeindex": "time-index",
    ".txnindex": "transaction-index",
}


@dataclass(slots=True)
class Cut:
    """What is known of producers at an offset inside a segment, by this segment alone."""

    offset: int
    producers: ProducerTable
    opened: dict[int, int]
    closed: set[int]
    missing: int
    unread: int


@dataclass(slots=True)
class LogCarry:
    """What one segment says that others are held against. Travels to processes."""

    transactions: TransactionCarry = field(
        default_factory=lambda: TransactionCarry(is_complete=False)
    )
    producers: ProducerTable = field(default_factory=empty_table)
    left_out: int = 0
    """How often producers were not followed, for want of room."""
    runs: list[EpochRun] = field(default_factory=list)
    missing: int = 0
    """Offsets in no batch, and batches that can't be read."""
    unread: int = 0
    """Batches that can't be read."""
    end_offset: int | None = None
    """The offset behind the last batch, or the base offset; None where the log was not read."""
    is_read: bool = False
    """Whether all of the log was read."""
    cuts: list[Cut] = field(default_factory=list)


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
        self, segment: Segment, reporter: Reporter, files: Files, scan: Scanning | None = None
    ) -> None:
        self._segment = segment
        self._reporter = reporter
        self._files = files
        self._scan = scan or whole_scan
        self.carry = LogCarry()

    def run(self) -> Iterator[int]:
        """Do all checks; yield the bytes read since the last time."""
        self._check_presence()
        with ExitStack() as stack:
            # A broker writes a batch first and its entries then: what an index says was in the log
            # when the index was read, and what the log had before is in the transaction index.
            log = self._open(".log", stack)
            before = self._size_before(log)
            offsets = yield from self._index(OFFSET_FORM, stack)
            times = yield from self._index(TIME_FORM, stack)
            entries = yield from self._transactions(stack)
            if log is not None and self._needs_log():
                are_known = ".txnindex" not in self._segment.suffixes or (
                    entries is not None and entries.is_complete
                )
                end_check = None
                if offsets is not None:
                    end_check = IndexEndCheck(offsets, times, before, self._reporter)
                missed_below = before if are_known else 0
                steps = self._log(log, offsets, times, entries, end_check, missed_below)
                yield from self._guarded(".log", steps)

    def _check_presence(self) -> None:
        segment, reporter = self._segment, self._reporter
        present = segment.suffixes
        if ".log" not in present:
            for suffix in sorted(present):
                reporter.add(
                    "DISK-4",
                    segment.path(suffix),
                    f"the segment of base offset {segment.base_offset} has no .log file",
                    expected=segment.path(".log"),
                    structure=STRUCTURES[suffix],
                )
        elif segment.next_base_offset is not None:
            for suffix in (".index", ".timeindex"):
                if suffix not in present:
                    reporter.add(
                        "DISK-5",
                        segment.path(".log"),
                        f"the segment has no {suffix} file, although {segment.why_closed}",
                        expected=segment.path(suffix),
                    )

    def _needs_log(self) -> bool:
        """Return whether the log has to be read for what is asked."""
        return self._segment.judged != frozenset() and ".log" in self._segment.suffixes

    def _open(self, suffix: str, stack: ExitStack) -> File | None:
        if suffix not in self._segment.suffixes:
            return None
        path = self._segment.path(suffix)
        file = open_guarded(self._files, path, self._reporter, STRUCTURES[suffix])
        if file is not None:
            stack.callback(file.close)
        return file

    def _guarded(self, suffix: str, steps: Iterator[int]) -> Iterator[int]:
        """Go through the steps; report what the operating system refuses on the way."""
        try:
            yield from steps
        except OSError as error:
            path = self._segment.path(suffix)
            report_unreadable(path, error, self._reporter, STRUCTURES[suffix])

    def _index(self, form: IndexForm, stack: ExitStack) -> Generator[int, None, IndexStream | None]:
        """Check an index by itself and return its stream, or None."""
        file = self._open(form.suffix, stack)
        # Where an offset index ends is judged by the time index too.
        if file is None or not self._reads(form.suffix, ".index"):
            return None
        try:
            stream = IndexStream(file, form, self._segment, self._reporter)
            yield from stream.find_tail()
            stream.check_length()
            check = check_offset_entries if form is OFFSET_FORM else check_time_entries
            yield from check(stream, self._reporter)
        except OSError as error:
            path = self._segment.path(form.suffix)
            report_unreadable(path, error, self._reporter, form.structure)
            return None
        return stream

    def _transactions(self, stack: ExitStack) -> Generator[int, None, TransactionEntries | None]:
        file = self._open(".txnindex", stack)
        if file is None or not self._reads(".txnindex", ".log"):
            return None
        try:
            entries = TransactionEntries(file, self._segment, self._reporter)
            yield from entries.check()
        except OSError as error:
            path = self._segment.path(".txnindex")
            report_unreadable(path, error, self._reporter, STRUCTURES[".txnindex"])
            return None
        return entries

    def _size_before(self, log: File | None) -> int:
        """Return the size of the log before its indexes are read; 0 where it is not known."""
        try:
            return 0 if log is None else log.size()
        except OSError:
            return 0

    def _reads(self, *suffixes: str) -> bool:
        return not self._segment.judged.isdisjoint(suffixes)

    def _log(
        self,
        file: File,
        offsets: IndexStream | None,
        times: IndexStream | None,
        entries: TransactionEntries | None,
        end_check: IndexEndCheck | None,
        missed_below: int,
    ) -> Iterator[int]:
        segment, reporter = self._segment, self._reporter
        size = size_guarded(file, segment.path(".log"), reporter, STRUCTURES[".log"])
        scan = self._scan(file, size, segment, reporter.wanted)
        log = LogCheck(file, size, segment, reporter)
        lost = LostOffsetsCheck(file, segment, reporter)
        markers = TransactionMarkers(file, entries, missed_below, segment, reporter)
        offset_check = offsets and OffsetEntriesCheck(offsets, size, segment, reporter)
        time_check = times and TimeEntriesCheck(times, segment, reporter)
        producers = ProducerCheck(segment, reporter)
        epochs = EpochCheck(segment, reporter)
        carry = LogCarry(markers.carry)
        done, reach = 0, -1
        for block in blocks_of(scan, segment):
            log.check(block)
            lost.check(block)
            check_records(block, log.path, reporter)
            if offset_check:
                offset_check.check(block)
            if time_check:
                time_check.check(block)
            if end_check:
                end_check.check(block)
            epochs.check(block)
            for part in _parts(block, segment, len(carry.cuts)):
                if part is None:
                    carry.cuts.append(_cut(segment, carry, producers, markers))
                    continue
                producers.check(part)
                markers.check(part)
            reach = int(block.reach[-1])
            yield block.end_position - done
            done = block.end_position
        log.finish(scan, reach)
        if scan.end_position >= size:
            lost.finish(size)
        is_read = scan.end_position >= size or log.tail_is_empty
        if offset_check:
            offset_check.finish(scan.end_position, is_read, is_read and log.is_sound)
        if time_check:
            time_check.finish(is_read and log.is_sound, log.max_timestamp)
        if end_check:
            end_check.finish()
        for stream in filter(None, (offsets, times)):
            zeros_end = size if log.tail_is_empty else scan.end_position
            soften_leftovers(stream, scan.end_position, zeros_end, segment, reporter)
        markers.finish(is_read, segment.base_offset + reach)
        carry.producers, carry.left_out = producers.table, producers.left_out
        carry.runs, carry.missing = epochs.runs, producers.missing
        carry.unread = producers.unread
        carry.is_read, carry.end_offset = is_read, segment.base_offset + reach + 1
        self.carry = carry
        yield max(0, size - done)


def _parts(block: Block, segment: Segment, cut: int) -> Iterator[Block | None]:
    """Yield the block in parts, and None at each offset inside it of which there is a snapshot.

    `cut` is how many of these lie before the block.
    """
    done, end = 0, segment.base_offset + int(block.reach[-1])
    for offset in segment.snapshots[cut:]:
        if offset > end:
            break
        rows = int(np.searchsorted(block.reach, offset - segment.base_offset))
        if rows > done:
            yield _rows_of(block, done, rows)
        yield None
        done = max(done, rows)
    if done < len(block.table):
        yield block if done == 0 else _rows_of(block, done, len(block.table))


def _rows_of(block: Block, start: int, end: int) -> Block:
    """Return some rows of a block, for checks that look at nothing but these columns."""
    return replace(
        block,
        table=block.table[start:end],
        crc_valid=block.crc_valid[start:end],
        first=block.first[start:end],
        before=block.before[start:end],
        is_loose=block.is_loose[start:end],
    )


def _cut(
    segment: Segment, carry: LogCarry, producers: ProducerCheck, markers: TransactionMarkers
) -> Cut:
    return Cut(
        segment.snapshots[len(carry.cuts)],
        producers.table.copy(),
        dict(markers.carry.opened),
        markers.closed,
        producers.missing,
        producers.unread,
    )
