# SPDX-License-Identifier: Apache-2.0
"""Logs that are known to be whole: their rows are made without reading them again.

Only the first and the last batches are read, so a partition of a terabyte with one damaged log is
not read twice.
"""

from contextlib import closing
from typing import NamedTuple

import numpy as np

from segproof.files import File
from segproof.kafka.batch_table import BATCH_DTYPE, BatchScan, BatchTable, stacked
from segproof.stretches.kafka.facts import EDGE_BATCHES, Entries, FramedLog, LogFacts, Reach, Rows
from segproof.stretches.kafka.framing import NotedEntries
from segproof.stretches.kafka.header_rows import rows_of

_BATCHES_MIN = 4 * EDGE_BATCHES
"""A log with fewer batches is read: that takes as little."""
_CHUNK_BYTES = 1 << 16


class WholeLog(NamedTuple):
    """A log of magic 2, one leader epoch and no transactions, whose batches are all sound.

    They begin with its name, end with that of the next log, and leave no offset out. Its offset
    index is right.
    """

    base_offset: int
    next_base_offset: int | None
    size: int
    batches: int
    least: int
    """The fewest bytes that an offset has in any batch."""


def frame_whole(file: File, known: WholeLog, entries: Entries) -> FramedLog | None:
    """Return what a reading finds of a whole log; closes the file.

    Of the stretch in its middle two facts are not known: the number of records is one for each
    offset, and the timestamps are those of its first batch. Return None for a short log, with few
    entries, and if its ends are not as they were. Raises: OSError.
    """
    positions = np.sort(entries.positions)
    if known.batches < _BATCHES_MIN or len(positions) < EDGE_BATCHES:
        return None
    with closing(file):
        head = _table(file, 0, EDGE_BATCHES + 1, known.size)[: EDGE_BATCHES + 1]
        # An entry leads to a batch that no other one leads to.
        tail = _table(file, int(positions[-EDGE_BATCHES]), known.batches, known.size)
    tail = tail[-EDGE_BATCHES:]
    if not _are_as_known(head, tail, known):
        return None
    facts = LogFacts(known.base_offset, known.next_base_offset, known.size, known.size)
    noted, read = NotedEntries(entries), list[Rows]()
    for table in (head, tail):
        read.append(rows_of(table, Reach.SIZES))
        noted.note(table, read[-1])
    rows = np.concatenate(read)
    stretch, behind = rows[EDGE_BATCHES : EDGE_BATCHES + 1], rows[EDGE_BATCHES + 1]
    stretch["end"], stretch["last"] = behind["start"], behind["first"] - 1
    stretch["batches"] = known.batches - 2 * EDGE_BATCHES
    stretch["offsets"] = stretch["records"] = stretch["last"] - stretch["first"] + 1
    stretch["least"] = known.least
    is_inside = (positions >= stretch["start"]) & (positions < stretch["end"])
    stretch["led"], stretch["is_indexed"] = np.count_nonzero(is_inside), False
    return FramedLog(facts, rows)


def _table(file: File, start: int, count: int, end: int) -> BatchTable:
    """Return the first `count` batches from a byte on, and perhaps more; fewer if the log ends."""
    found, rows = list[BatchTable](), 0
    scan = BatchScan(file, start, end, deep=False, chunk_bytes=_CHUNK_BYTES)
    for table in scan.tables():
        found.append(table)
        rows += len(table)
        if rows >= count:
            break
    return stacked(found) if found else np.empty(0, BATCH_DTYPE)


def _are_as_known(head: BatchTable, tail: BatchTable, known: WholeLog) -> bool:
    """Return whether the batches at both ends are those of a log."""
    if len(head) <= EDGE_BATCHES or len(tail) < EDGE_BATCHES:
        return False
    end, following = int(tail["position"][-1] + tail["size_bytes"][-1]), known.next_base_offset
    is_same = head["base_offset"][0] == known.base_offset and end == known.size
    last = int(tail["last_offset"][-1])
    limit = LogFacts(known.base_offset, following, known.size, known.size).limit
    return bool(is_same and last < limit and following in (None, last + 1))
