# SPDX-License-Identifier: Apache-2.0
"""Answers from a log whose offsets do not rise: the batch that a salvage would keep.

A search believes base offsets, which no checksum covers. So a single wrong one hides all batches
after it, and a block from elsewhere answers for offsets that it does not have.

Laws: SEG-12, SEG-39, LOG-6, and those of `segproof.stretches.kafka.rules`.
"""

import os
from dataclasses import replace

import numpy as np

from segproof.integers import INT32_MAX
from segproof.kafka.batch_table import BatchScan
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import LogOffsetPosition
from segproof.layouts.kafka import BATCH, BATCH_HEADER_BYTES
from segproof.reading.lookup_answers import OffsetAnswer, TimestampAnswer
from segproof.reading.segment_reader import SegmentReader
from segproof.stretches.kafka.desk import KEPT_FATES, Fate
from segproof.stretches.kafka.header_rows import first_offsets
from segproof.stretches.kafka.in_place import LogFates
from segproof.stretches.kafka.mending import end_at


def placed_answer(
    answer: OffsetAnswer, segment: SegmentReader, following: int | None
) -> OffsetAnswer:
    """Return an answer that a search gave, or another one if the batches that it read do not rise.

    They may not where no batch has the target. Then the log is placed, and the answer is the first
    batch that is kept, in the order of offsets, whose last offset is not below the target; the
    reason says what is wrong with the one that the search gave. `following` is the base offset of
    the next segment. Cost: the headers that the search read, again; a log whose offsets do not rise
    there is read whole, once. Raises: OSError.
    """
    found, position, size = answer.batch_base_offset, answer.batch_position, answer.batch_size
    if found is None or position is None or size is None or found <= answer.target:
        return answer
    if _rises(segment, answer.index_position or 0, position + size, following):
        return answer
    placed = segment.fates(following)
    lasts = placed.firsts + placed.rows["last"] - placed.rows["first"]
    able = np.flatnonzero(np.isin(placed.fates, KEPT_FATES) & (lasts >= answer.target))
    if not len(able):
        return answer
    row = int(able[np.argmin(placed.firsts[able])])
    start, end = int(placed.rows["start"][row]), int(placed.rows["end"][row])
    place = LogOffsetPosition(int(placed.firsts[row]), start, end - start)
    if placed.rows["batches"][row] > 1:
        place = segment.log.search_for_offset_with_size(answer.target, start) or place
    if place[:2] == (found, position) and placed.fates[row] == Fate.KEPT:
        return answer
    base_offset, start, size_bytes = place
    return replace(
        answer, batch_base_offset=base_offset, batch_position=start, batch_size=size_bytes,
        reason=_reason(placed, position, os.path.basename(segment.path(".log"))), is_damaged=True,
    )  # fmt: skip


def placed_record(
    answer: TimestampAnswer,
    batch: RecordBatch | None,
    segment: SegmentReader,
    following: int | None,
) -> TimestampAnswer:
    """Return an answer of a record of `batch`, with the offset that its place in the log says.

    The log is placed if the next batch has no later offset, or the batch has those of another
    segment. The reason says if it does not stay as it is. Cost and Raises: as `placed_answer`.
    """
    if batch is None or answer.offset is None or _is_before_next(batch, segment, following):
        return answer
    placed = segment.fates(following)
    row = placed.row_at(batch.position)
    if row is None or placed.fates[row] == Fate.KEPT:
        return answer
    is_restored = placed.fates[row] == Fate.RESTORED
    apart = int(placed.firsts[row] - placed.rows["first"][row]) if is_restored else 0
    reason = _reason(placed, batch.position, os.path.basename(segment.path(".log")))
    return replace(answer, offset=answer.offset + apart, reason=reason, is_damaged=True)


def _is_before_next(batch: RecordBatch, segment: SegmentReader, following: int | None) -> bool:
    """Return whether a batch has offsets of its segment, and the one after it has later ones."""
    file, end = segment.log.file, batch.position + batch.size_bytes
    first, last = batch.base_offset, batch.last_offset
    header = file.pread(BATCH_HEADER_BYTES, end)
    is_next_new = len(header) == BATCH_HEADER_BYTES and BATCH["magic"].of(header) == 2
    limit = BATCH["base_offset"].of(header) if is_next_new else last + 1
    limit = limit if following is None else min(limit, following)
    return segment.base_offset <= first <= last < limit


def _rises(segment: SegmentReader, start: int, end: int, following: int | None) -> bool:
    """Return whether the offsets of batches rise, and are the segment's, to the one after `end`."""
    file, base = segment.log.file, segment.base_offset
    after, limit = end_at(file, end), base + INT32_MAX + 1
    limit = limit if following is None else min(limit, following)
    end = after if end < after <= segment.log.size_in_bytes() else end
    reached = base - 1
    for table in BatchScan(file, start, end, deep=False).tables():
        firsts, lasts = first_offsets(table), table["last_offset"]
        if (firsts <= np.append(reached, lasts[:-1])).any() or (lasts < firsts).any():
            return False
        reached = int(lasts[-1])
    return reached < limit


def _reason(placed: LogFates, position: int, name: str) -> str:
    """Return in words why a search is wrong that finds the batch at a position first."""
    row = placed.row_at(position)
    head = f"offsets do not rise in {name}: the batch at byte {position}, which a read finds first,"
    fate = Fate.ASIDE if row is None else placed.fates[row]
    if fate == Fate.RESTORED:
        words = f"has a wrong base offset, and belongs at offset {int(placed.firsts[row])}"
    elif fate == Fate.MOVED:
        words = "lies in a wrong place"
    elif fate == Fate.KEPT:
        words = "comes before one that belongs ahead of it"
    else:
        words = "does not belong where it lies"
    return f"{head} {words}; `segproof salvage` puts the log in order"
