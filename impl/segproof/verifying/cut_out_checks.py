# SPDX-License-Identifier: Apache-2.0
"""Batches that are gone from the middle of a log, as its indexes show.

The log is read a second time where it lacks offsets and an entry of an index is wrong. Memory: 33
bytes for each of its batches.

Laws: DISK-70.
Not covered: a log of more than BATCHES_MAX batches.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing

import numpy as np

from segproof.counts import plural
from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import writes
from segproof.inventory.segments import Segment
from segproof.kafka.batch_table import BatchScan, BatchTable, check_batches
from segproof.reading.cleaner_traces import UP_TO
from segproof.reading.cut_outs import BatchRows, Bools, CutOut, CutOutGap, IndexRows, cut_outs
from segproof.reading.index_entries import genuine_entries
from segproof.reading.indexed_ends import Block as EntryBlock
from segproof.reading.indexed_ends import entry_blocks
from segproof.reading.keyless_records import MAX_BATCH_BYTES
from segproof.reading.offset_distances import distances
from segproof.reading.rows import shifted
from segproof.verifying.index_file_checks import OffsetIndexFile
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.segment_carry import LogCarry
from segproof.wording.rules import declare

declare("log-segment", Severity.ERROR,
    writes("copy the segment again if this is a copy made beside a running broker, and the topic is"
    " compacted: the log cleaner may have replaced the log between its index and itself. Else"
    " compare the segment with another replica, or with a backup. Until then keep both index files,"
    " which show that records are gone: new ones would not. `segproof salvage DIR --out DIR2` saves"
    " what is left, and counts what is not"), "DISK-70")  # fmt: skip
KEEP_INDEX = writes(
    "compare the segment with another replica. Until then keep this file: it shows that the"
    " log lacks batches (DISK-70), and a new one would not. `segproof salvage DIR --out DIR2` saves"
    " what is left"
)
BATCHES_MAX = 1 << 21
"""A log of more batches, or an index of more entries, is not kept in memory."""
OR_MORE = " or more"
"""How a number of lost offsets ends that is a lower bound."""
WRONG_TIMES = 3
"""Wrong entries of the time index for each right one, from which on it is of another log too, if
the offset index is."""
OF_INDEXES = {".index": ("SEG-7", "DISK-24"), ".timeindex": ("DISK-9", "DISK-10")}
"""Laws that an index breaks by the entries that a cut leaves in it."""


class CutOutCheck(LogCheck):
    """Judges the offsets that the log lacks between its batches."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._has_gap = False
        self._last = -1
        """Distance of the last offset of the batch before, as stored."""
        self._found: list[CutOutGap] = []

    @classmethod
    def applies(cls, log: LogPass) -> bool:
        """Return whether an index can be read."""
        return log.offsets is not None or log.times is not None

    def check(self, block: Block) -> None:
        """Take note of a gap between two batches."""
        self._has_gap |= bool((block.first > shifted(block.stored_last, self._last) + 1).any())
        self._last = int(block.stored_last[-1])

    def finish(self) -> None:
        """Judge a log whose indexes do not fit it."""
        log = self._log
        if not self._has_gap or not (log.has_odd_entries or not log.is_sound):
            return
        rows = rows_again(log)
        if rows is None:
            return

        def by(offsets: OffsetIndexFile | None) -> list[CutOut]:
            return cut_outs(
                rows,
                _entries(entry_blocks(offsets), "position"),
                _entries(entry_blocks(log.times), "timestamp"),
                _following(self._segment),
            )

        found = by(log.offsets)
        if found and log.has_other_index:
            times = log.time_entries
            is_of_same = times.wrong > WRONG_TIMES * times.right
            found = [] if is_of_same else by(None)
        if found:
            self._found = [self._gap(one) for one in found]
            self._tell()

    def _gap(self, found: CutOut) -> CutOutGap:
        base = self._segment.base_offset
        first, end = base + found.first, base + found.end
        is_lost = self._log.is_lost(first)
        lost = found.lost if is_lost else 0
        return CutOutGap(found.position, first, end, lost, found.is_exact and is_lost)

    def _tell(self) -> None:
        found, first = self._found, self._found[0]
        lost, unproven = sum(one.lost for one in found), sum(one.unproven for one in found)
        is_exact = all(one.is_exact for one in found)
        known = "" if is_exact else "at least " if lost else UP_TO
        what = plural(lost or unproven, "offset", "is", "are")
        places = "one gap" if len(found) == 1 else f"{len(found)} gaps"
        which = f", the offsets {first.first_offset} to {first.end_offset - 1}" * is_exact
        why = ""
        if unproven:
            why = ". Compaction may have taken some, as the records have keys; or all of them, if"
            why += " the log was replaced after its indexes were copied"
        self._report.add(
            "DISK-70",
            f"batches were cut out of this log: {known}{what} lost in {places}, the first before"
            f" this byte{which}. The indexes have entries for batches that were there, or positions"
            f" that are right only with them{why}",
            position=first.position,
            expected=0,
            actual=f"{lost}{'' if is_exact else OR_MORE}" if lost else f"{UP_TO}{unproven}",
        )
        for index in (self._log.offsets, self._log.times):
            if index is not None:
                for law in OF_INDEXES[index.suffix]:
                    index.report.advise(law, KEEP_INDEX)

    def hand_on(self, carry: LogCarry) -> None:
        """Hand on the gaps, so that nothing else counts their offsets."""
        carry.cut_outs = self._found


def rows_again(log: LogPass) -> BatchRows | None:
    """Read the log a second time, up to where it can be read; return its batches.

    None if they are more than BATCHES_MAX.
    """
    end = log.scan.end_position
    scan = BatchScan(log.file, 0, end, deep=False, max_batch_bytes=MAX_BATCH_BYTES)
    return _rows_of(((one.table, one.crc_valid) for one in scan), log.segment.base_offset)


def may_be_cut(segment: Segment, files: Files) -> bool:
    """Return whether headers and indexes alone say that batches were cut out of a log.

    Raises: OSError, SegproofError.
    """
    if ".log" not in segment.suffixes or segment.suffixes.isdisjoint(OF_INDEXES):
        return False
    with closing(files.open(segment.path(".log"))) as file:
        tables = check_batches(file).tables()
        parts = ((table, np.ones(len(table), np.bool_)) for table in tables)
        rows = _rows_of(parts, segment.base_offset)
    if rows is None or not (rows.first > shifted(rows.last, -1) + 1).any():
        return False
    offsets, times = (
        _entries(_blocks_at(segment, suffix, files), name)
        for name, suffix in (("position", ".index"), ("timestamp", ".timeindex"))
    )
    return bool(cut_outs(rows, offsets, times, _following(segment)))


def _following(segment: Segment) -> int | None:
    """Return how far the next segment begins from the base offset; None without one."""
    following = segment.next_base_offset
    return None if following is None else following - segment.base_offset


def _blocks_at(segment: Segment, suffix: str, files: Files) -> Iterator[EntryBlock]:
    if suffix in segment.suffixes:
        with closing(files.open(segment.path(suffix))) as file:
            for _, block in genuine_entries(file, suffix):
                yield block


def _rows_of(parts: Iterable[tuple[BatchTable, Bools]], base_offset: int) -> BatchRows | None:
    """Return what the batches of a log say; None if they are more than BATCHES_MAX."""
    none = np.zeros(0, np.int64)
    found = [BatchRows(none, none, none, none, np.zeros(0, np.bool_))]
    count, last = 0, -1
    for table, is_sound in parts:
        count += len(table)
        if count > BATCHES_MAX:
            return None
        lasts = distances(table["last_offset"], base_offset)
        following = shifted(lasts, last) + 1
        last = int(lasts[-1]) if len(lasts) else last
        is_wrapper = (table["record_count"] < 0) & (table["magic"] < 2)
        firsts = np.where(is_wrapper, following, distances(table["base_offset"], base_offset))
        position, times = table["position"].copy(), table["max_timestamp"].copy()
        found.append(BatchRows(position, firsts, lasts, times, is_sound.copy()))
    return BatchRows(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _entries(blocks: Iterable[EntryBlock], value: str) -> IndexRows:
    """Return the entries of an index, up to the block that reaches beyond BATCHES_MAX of them.

    `value` is the name of the field beside the offset.
    """
    empty = np.zeros(0, np.int64)
    found = [IndexRows(empty, empty)]
    count = 0
    for one in blocks:
        found.append(IndexRows(one["offset"].astype(np.int64), one[value].astype(np.int64)))
        count += len(one)
        if count > BATCHES_MAX:
            break
    return IndexRows(*(np.concatenate(column) for column in zip(*found, strict=True)))
