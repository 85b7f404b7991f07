# SPDX-License-Identifier: Apache-2.0
"""What one reading of a partition's logs finds: facts without verdicts, as plain values.

A row stands for one batch, or for a stretch: batches of one log that touch, in which nothing is
odd. So a log without damage is some twenty rows, however many batches it has.

Laws: BATCH-2, BATCH-3, EPOCH-1, PROD-3.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.integers import INT32_MAX, INT64_MAX

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.void]
"""An array of ROW, in the order of logs and positions. No two rows share a byte."""


class Reach(IntEnum):
    """What leads to a batch; a higher value is better evidence that it is a batch of the log."""

    SEARCH = 0
    """A search at each byte found the batch: it may lie inside a value of a record."""
    ENTRY = 1
    """An entry of the offset index leads to the batch, or to a batch whose sizes lead to it."""
    SIZES = 2
    """Sizes lead from the beginning of the log to the batch, or from the batch to the log's end."""


ROW = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("min_time", np.int64),
        ("max_time", np.int64),
        ("offsets", np.int64),
        ("producer", np.int64),
        ("log", np.int32),
        ("batches", np.int32),
        ("leaps", np.int32),
        ("records", np.int32),
        ("least", np.int32),
        ("led", np.int32),
        ("misled", np.int32),
        ("mark", np.uint32),
        ("epoch", np.int32),
        ("sequence", np.int32),
        ("producer_epoch", np.int16),
        ("magic", np.int8),
        ("reach", np.int8),
        ("is_loadable", np.bool_),
        ("is_movable", np.bool_),
        ("is_indexed", np.bool_),
        ("is_misindexed", np.bool_),
        ("is_mended", np.bool_),
        ("is_keyless", np.bool_),
        ("is_append_time", np.bool_),
        ("is_transactional", np.bool_),
    ]
)
"""One batch with a right checksum, or a stretch of them.

`log`: index of its log in `Facts.logs`. `start`, `end`: its bytes [start, end) in the log.
`first`, `last`: offsets of its first and last record, as stored. A compressed message of magic 0 or
    1 states its last offset only; the first one is inside. Both are the last one if that message is
    too large to look into.
`batches`: number of batches; 1 if the row is no stretch.
`offsets`: number of offsets that its batches have, from the first to the last one of each.
`leaps`: number of pairs of neighbours inside the stretch that leave offsets out between them.
`records`: number of records, as the headers state it, at most one for each offset.
`least`: the fewest bytes that an offset has in any of its batches.
`led`: entries of the offset index that lead to a batch of it, and state one of its offsets.
`misled`: entries that lead into the inside of a batch of it, and state an offset that it does not
    have. 0 behind the last entry that is right, and if more entries are wrong than right.
`mark`: checksum of the batch; with its length and number of offsets it identifies the content. Of a
    stretch it is the first batch's, as are `producer`, `producer_epoch` and `sequence`.
`epoch`: partition leader epoch, which all batches of a stretch have; -1 before magic 2.
`min_time`, `max_time`: smallest and largest timestamp in milliseconds; -1 without any. The first
    record of a batch counts as its smallest.
`producer`, `producer_epoch`, `sequence`: producer id, producer epoch and base sequence; -1 without.
`magic`: the right one, even if the batch contains another.
`is_loadable`: False if no broker loads a log with the batch, as a control batch without a marker.
`is_movable`: whether another base offset would be right for all of its offsets: not so for a
    compressed message of magic 0 or 1, whose offsets are inside.
`is_indexed`: whether an entry of the offset index contains its position and one of its offsets.
`is_misindexed`: whether an entry of the offset index states an offset for its position that comes
    after the batch before it, and before its own ones; a later entry leads to its batch, or there
    is none.
`is_mended`: whether its size or magic is wrong, or the offset of a compressed message of magic 0,
    and its checksum proves which is right.
`is_keyless`: whether a record of it, or of a batch that it follows without a gap, has no key. The
    log cleaner removes such records, so it left nothing out after it. Asked only where more
    offsets than bytes are missing behind the batch, and of some batches of a log; else False.
`is_append_time`: whether the broker wrote its timestamps (LogAppendTime), not the client.
`is_transactional`: whether a batch of it is of a transaction, or ends one.
"""
EDGE_BATCHES = 8
"""Batches on either side of a break that are rows of their own. Rules compare this many neighbours:
with several producers at work, mostly one of eight batches is of the same producer. More would cost
100 bytes each at every break, and fewer would have them read again."""
NO_ROWS: Rows = np.empty(0, ROW)


class Entries(NamedTuple):
    """The entries of an offset index."""

    offsets: Int64s
    """Last offset of the batch to which an entry leads. It is absolute; the file stores it
    relative to the log's base offset."""
    positions: Int64s
    """Positions in the log, in bytes."""


NO_ENTRIES = Entries(np.empty(0, np.int64), np.empty(0, np.int64))


UNKNOWN_NAME = -1
"""The base offset of a log whose name tells nothing."""


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What was found of one log beside its batches. Positions are bytes of the log."""

    base_offset: int
    """The offset in the log's name; `UNKNOWN_NAME` if that is not known, or in doubt."""
    next_base_offset: int | None
    """The offset in the name of the next log; None for the last log."""
    size: int
    """Where the reading ended: the length of the log, or where a live writer had come to."""
    zeros_from: int
    """Where the zeros at the end begin; `size` if it ends with other bytes."""
    torn_from: int | None = None
    """Where a batch begins that the end of the log cuts off: its size and its lengths agree."""
    torn_offset: int = -1
    """The base offset of that batch."""
    unsearched_from: int | None = None
    """Where a search stopped, since too much looked like batches; None if all was searched."""
    unreadable_bytes: int = 0
    """Bytes of the blocks that the disk did not return; they were read as zeros."""
    indexed_to: int = -1
    """The greatest offset that an entry of the offset index states for a position at or after the
    end of the batches; -1 without such an entry. The log had it once."""
    is_missing: bool = False
    """Whether the log is not there, or can't be read; other files say that it was."""

    @property
    def limit(self) -> int:
        """The first offset after those that the log can hold, by its name and its index."""
        is_named = self.base_offset != UNKNOWN_NAME
        limit = self.base_offset + INT32_MAX + 1 if is_named else INT64_MAX
        return limit if self.next_base_offset is None else min(limit, self.next_base_offset)


class FramedLog(NamedTuple):
    """What one reading found of one log."""

    log: LogFacts
    rows: Rows
    """Their `log` is 0."""

    def is_of(self, base_offset: int, next_base_offset: int | None, size: int) -> bool:
        """Return whether the log was read with these names, and had this length."""
        log = self.log
        return (log.base_offset, log.next_base_offset, log.size) == (
            base_offset, next_base_offset, size,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Facts:
    """All that was found of a partition."""

    logs: tuple[LogFacts, ...]
    """In the order of their base offsets."""
    rows: Rows = field(default_factory=lambda: NO_ROWS)
    epochs: tuple[tuple[int, int], ...] = ()
    """Leader epochs, each with its first offset, as the partition's checkpoint states them; both
    rise. Empty if it states none."""


@dataclass(frozen=True, slots=True)
class Part:
    """What has to be known of the inside of one stretch."""

    row: int
    """Index in `Facts.rows`."""
    offsets: tuple[int, ...] = ()
    """Rising offsets: the batch that contains one becomes a row of its own. Where none contains the
    offset, the stretch ends before it and another begins after it."""
    head: int = 0
    """The first batches that become rows of their own."""
    tail: int = 0
    """The last batches that do."""
    pieces: int = 1
    """The stretch is also cut into as many stretches, with equal numbers of batches."""


@dataclass(frozen=True, slots=True)
class NeedsBatches:
    """Placing can't decide before these stretches are opened."""

    parts: tuple[Part, ...]
    """In the order of their rows; at most one for each row."""
