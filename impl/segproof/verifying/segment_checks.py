# SPDX-License-Identifier: Apache-2.0
"""The checks of one segment: each index file by itself, then all checks of the log in one pass.

A check of the log is a class in `LOG_CHECKS`; add one there.

Laws: DISK-4, DISK-5, and those of the checks.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TypeVar

import numpy as np

from segproof.files import File, Files
from segproof.findings import Severity
from segproof.hints import writes
from segproof.kafka.batch_table import BatchScan
from segproof.verifying.batch_checks import BatchCheck
from segproof.verifying.epoch_checks import EpochCheck
from segproof.verifying.index_file_checks import (
    OffsetIndexFile,
    TimeIndexFile,
    TransactionIndexFile,
)
from segproof.verifying.index_log_checks import (
    IndexEndCheck,
    OffsetEntriesCheck,
    TimeEntriesCheck,
)
from segproof.verifying.log_blocks import LogScan, blocks_of
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.lost_offsets import LostOffsetsCheck
from segproof.verifying.producer_state_checks import ProducerStateCheck
from segproof.verifying.record_checks import MAX_BATCH_BYTES, RecordsCheck
from segproof.verifying.reporting import Reporter, Wanted
from segproof.verifying.rules import REBUILD, declare
from segproof.verifying.segment_carry import LogCarry
from segproof.verifying.segment_files import (
    Segment,
    open_guarded,
    size_guarded,
)
from segproof.verifying.time_checks import TimestampCheck
from segproof.verifying.truncated_entries import TruncatedEntriesCheck

MADE_NEW = (
    "the broker that starts next reads the segment and makes a missing .index new, but a missing"
    " .timeindex empty, so that reads by time scan the log"
)
DOUBTFUL = REBUILD.after(
    "compare the segment with another replica first: the log lacks offsets or is damaged, and a new"
    f" index says no more of what it held; {MADE_NEW}. If the log is whole there too, "
)

declare("log-segment", Severity.ERROR,
    writes("look for the log in lost+found and under other names, and copy this file away before a"
    " broker starts here: it removes the index"), "DISK-4",
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
    EpochCheck,
    TruncatedEntriesCheck,
    ProducerStateCheck,
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
        self, segment: Segment, reporter: Reporter, files: Files, scan: Scanning | None = None
    ) -> None:
        self._segment = segment
        self._reporter = reporter
        self._files = files
        self._scan = scan or whole_scan
        self.carry = LogCarry()

    def run(self) -> Iterator[int]:
        """Do all checks; yield the bytes read since the last time."""
        yield from self._files_of_segment()
        self._check_presence()

    def _files_of_segment(self) -> Iterator[int]:
        segment = self._segment
        with ExitStack() as stack:
            # A broker writes a batch first and its entries then: what an index says was in the log
            # when the index was read, and what the log had before is in the transaction index.
            log = self._open(".log", stack)
            before = _size_now(log)
            offsets = yield from self._index(OffsetIndexFile, stack)
            times = yield from self._index(TimeIndexFile, stack)
            transactions = yield from self._index(TransactionIndexFile, stack)
            sizes = [one.size for one in (offsets, times, transactions) if one is not None]
            self.carry.bytes_checked = sum(sizes)
            if log is None or not segment.judged:
                return
            try:
                size = size_guarded(log, segment.report(".log", self._reporter))
                scan = self._scan(log, size, segment, self._reporter.wanted)
                reading = LogPass(
                    segment, self._reporter, log, size, before, offsets, times, transactions, scan
                )
                yield from self._log(reading)
                self.carry.bytes_checked = sum(sizes) + size
            except OSError as error:
                segment.report(".log", self._reporter).unreadable(error)

    def _log(self, log: LogPass) -> Iterator[int]:
        """Run all checks of the log in one pass; yield the bytes read."""
        checks = [kind(log) for kind in LOG_CHECKS if kind.applies(log)]
        done = batches = sound_batches = 0
        for block in blocks_of(log.scan, log.segment):
            batches += len(block.table)
            sound_batches += int(np.count_nonzero(block.crc_valid))
            for check in checks:
                check.check(block)
            log.reach = int(block.reach[-1])
            yield block.end_position - done
            done = block.end_position
        for check in checks:
            check.finish()
        end_offset = log.segment.base_offset + log.reach + 1
        carry = LogCarry(is_read=log.is_read, end_offset=end_offset)
        carry.batches, carry.sound_batches = batches, sound_batches
        carry.end_position = log.scan.end_position
        carry.is_blank = not batches and log.size > 0
        for check in checks:
            check.hand_on(carry)
        self.carry = carry
        yield max(0, log.size - done)

    def _check_presence(self) -> None:
        segment, reporter = self._segment, self._reporter
        present = segment.suffixes
        if segment.is_cached or segment.is_swap:
            return
        if ".log" not in present:
            for suffix in sorted(present):
                segment.report(suffix, reporter).add(
                    "DISK-4",
                    f"the segment of base offset {segment.base_offset} has no .log file",
                    expected=segment.path(".log"),
                )
        elif segment.next_base_offset is not None or segment.stem:
            carry = self.carry
            is_whole = carry.is_read and carry.damage is None and not carry.missing_offsets
            for suffix in (".index", ".timeindex"):
                if suffix not in present:
                    reporter.at(segment.path(".log")).add(
                        "DISK-5",
                        f"the segment has no {suffix} file, although {segment.why_closed}",
                        expected=segment.path(suffix),
                        hint=None if is_whole or segment.hint else DOUBTFUL,
                    )

    def _open(self, suffix: str, stack: ExitStack) -> File | None:
        if suffix not in self._segment.suffixes:
            return None
        file = open_guarded(self._files, self._segment.report(suffix, self._reporter))
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
            self._segment.report(kind.suffix, self._reporter).unreadable(error)
            return None
        return index


def _size_now(log: File | None) -> int:
    """Return the size of the log; 0 where it is not known."""
    try:
        return 0 if log is None else log.size()
    except OSError:
        return 0
