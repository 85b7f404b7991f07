# SPDX-License-Identifier: Apache-2.0
"""What one reading of a commit log has found: facts without any verdict, as frozen values.

A row stands for messages that touch and say places that touch. A whole file has one row for each
CELL_BYTES. So a log of 1 TiB has 262 144 rows of 104 bytes, 26 MiB. A row of one message has the
details of that message too; where a decision needs details of other rows, these are read again.

Of a message only the body has a checksum. Its place, the numbers of its queue, its times, flags,
topic and properties have none: each is a claim, and the units of the queues are a second witness.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.void]
"""An array of STRETCH, in the order of files and positions."""
Units = NDArray[np.void]
"""An array of UNIT, in the order of offsets."""
Int64s = NDArray[np.int64]
Range = tuple[int, int]
"""Two offsets of the log, the second exclusive."""

CELL_BYTES = 4 << 20
"""A row ends where the offsets that its messages say reach a multiple of this. So a copy has the
rows of its original and is compared row by row; and what a decision needs in detail is at most
46 000 messages. Smaller cells make more rows of a sound log, larger ones more details."""
TIMES = 3
"""Store times that a row keeps: of three one may be wrong, and the middle one is not."""
NO_TIME = -(1 << 63)
"""In `times` where a row has fewer messages."""


class Reach(IntEnum):
    """How a message was reached."""

    SEARCH = 0
    """A search at each byte led to it, or to a message before it that it touches."""
    SIZES = 1
    """The sizes of the messages before it lead to it from the begin of its file."""


class Met(IntEnum):
    """What the messages of the log say at the place of a unit."""

    AGAINST = -1
    """A message covers this offset, and it is another one than the unit says."""
    NOTHING = 0
    """No message says that it covers this offset."""
    AGREES = 1
    """A message says this offset and, as far as the unit says them, this size, queue and number."""


STRETCH = np.dtype(
    [
        ("file", np.int32),
        ("start", np.int64),
        ("end", np.int64),
        ("said", np.int64),
        ("messages", np.int32),
        ("mark", np.uint64),
        ("host", np.uint64),
        ("times", np.int64, (TIMES,)),
        ("reach", np.int8),
        ("is_after_blank", np.bool_),
        ("is_filler", np.bool_),
        ("queue", np.uint32),
        ("number", np.int64),
        ("born", np.int64),
        ("flags", np.int32),
    ]
)
"""Messages with right lengths and a right body CRC; each begins where the one before ends.

`file`: its index in `Facts.files`. `start`, `end`: positions in the file, the second exclusive.
`said`: the offset in the log that the first message says; each later one says where the one before
    ends.
`mark`: the sum of `marks_of` of the messages, which tells the content from every other one.
`host`: of the broker that stored all of them, as a number.
`times`: the store times of the last TIMES messages, the last one first.
`is_after_blank`: whether it lies after a blank end that takes the rest of the file.
`is_filler`: whether it stands in the place of lost messages, made by an earlier salvage.

The rest is known of a row of one message, and 0 in other rows: `queue`, as `queue_mark` gives;
`number`, its place in the queue; `born`, when the producer made it; `flags`.
"""
DETAILS = ("queue", "number", "born", "flags")

UNIT = np.dtype(
    [
        ("offset", np.int64),
        ("size", np.int32),
        ("queue", np.uint32),
        ("number", np.int64),
        ("met", np.int8),
    ]
)
"""One unit of a queue, or an entry of the index, which says an offset alone: its `size` is 0.

`offset`, `size`: of the message to which it leads. `queue`, `number`: where the unit lies; of a
queue of batches `queue` is 0, and so are the numbers not compared.
`met`: a `Met`.
"""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What was found of one file of the log beside its messages."""

    start: int
    """The offset that its name says."""
    size: int
    """Bytes of the file that belong to the log."""
    zeros_from: int
    """From this position on it has zeros; `size` if it does not end with zeros."""
    blank_from: int | None = None
    """Where a blank end begins that takes the rest of the file; sizes lead there."""
    torn: tuple[Range, ...] = ()
    """Positions of messages whose lengths agree with each other, and whose body is broken, or
    ends after the file."""
    unsearched_from: int | None = None
    """From this position on too much looks like messages: it was not searched."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A commit log, and what its queues and its index say of it."""

    file_bytes: int
    """How many bytes of the log each file takes."""
    files: tuple[FileFacts, ...]
    """In the order of their names."""
    rows: Rows = field(default_factory=lambda: np.empty(0, STRETCH))
    units: Units = field(default_factory=lambda: np.empty(0, UNIT))
    """Some of each file, and all of `known`."""
    known: tuple[Range, ...] = ()
    """Ranges whose units are all in `units`; in order, apart from each other."""
    asked: frozenset[int] = frozenset()
    """Places in queues, as `place_mark` gives them, whose units are all in `units`."""


def joined(rows: Rows) -> Rows:
    """Return the same messages in as few rows as can be: joining again changes nothing."""
    if len(rows) < 2:
        return rows
    one, two = rows[:-1], rows[1:]
    is_cut = (one["end"] != two["start"]) | ~touch_in_claims(one, two)
    is_cut |= one["said"] // CELL_BYTES != two["said"] // CELL_BYTES
    firsts = np.append(0, np.flatnonzero(is_cut) + 1)
    if len(firsts) == len(rows):
        return rows
    lasts = np.append(firsts[1:], len(rows)) - 1
    found: Rows = rows[firsts].copy()
    found["end"] = rows["end"][lasts]
    for name in ("messages", "mark"):
        found[name] = np.add.reduceat(rows[name], firsts)
    found["times"] = last_times(rows, firsts, lasts)
    for name in DETAILS:
        found[name][lasts > firsts] = 0
    return found


def touch_in_claims(one: Rows, two: Rows) -> NDArray[np.bool_]:
    """Return where two rows of one file say the same begin of it, and are alike otherwise."""
    is_alike = one["said"] - one["start"] == two["said"] - two["start"]
    for name in ("file", "host", "is_after_blank", "is_filler", "reach"):
        is_alike &= one[name] == two[name]
    return np.asarray(is_alike)


def last_times(rows: Rows, firsts: Int64s, lasts: Int64s) -> Int64s:
    """Return the last TIMES store times of some groups of rows, the last one first."""
    some = []
    for back in range(TIMES):
        numbers = lasts - back
        times = rows["times"][np.maximum(numbers, 0)].copy()
        times[numbers < firsts] = NO_TIME
        some.append(times)
    row = np.concatenate(some, axis=1)
    order = np.argsort(row == NO_TIME, axis=1, kind="stable")[:, :TIMES]
    return np.asarray(np.take_along_axis(row, order, axis=1))


def marks_of(columns: Sequence[NDArray[np.integer]]) -> NDArray[np.uint64]:
    """Return a number for each row of some columns; equal rows have equal numbers."""
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        found = (found ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(29)
    return found


def queue_mark(topic: bytes, queue_id: int) -> int:
    """Return the number of a queue in rows and units; never 0."""
    return crc32(b"%d/%b" % (queue_id, topic)) or 1


def place_marks(units: Units) -> NDArray[np.uint64]:
    """Return a number for the queue and the place in it of each unit."""
    return marks_of([units["queue"], units["number"]])


def place_mark(queue: int, number: int) -> int:
    """Return the number of a place in a queue, as `place_marks` does."""
    found = marks_of([np.array([queue], np.uint32), np.array([number], np.int64)])
    return int(found[0])


def meet(units: Units, rows: Rows) -> None:
    """Write to each unit what rows of one message say of it.

    Where several messages say one offset, one that agrees counts.
    """
    if not len(rows):
        return
    said, sizes = rows["said"], rows["end"] - rows["start"]
    order = np.lexsort((sizes, said))
    largest = order[np.append(said[order][1:] != said[order][:-1], True)]
    at = np.searchsorted(said[largest], units["offset"], "right") - 1
    nearest = largest[np.maximum(at, 0)]
    is_covered = (at >= 0) & (units["offset"] < said[nearest] + sizes[nearest])
    is_blank = (units["size"] == 0) & (units["offset"] == said[nearest])
    of_units = [units["offset"], units["size"], units["queue"], units["number"]]
    of_rows = [said, sizes, rows["queue"], rows["number"]]
    do_agree = is_blank | np.isin(marks_of(of_units), marks_of(of_rows))
    is_unnumbered = (units["queue"] == 0) & np.isin(marks_of(of_units[:2]), marks_of(of_rows[:2]))
    do_agree = (at >= 0) & (do_agree | is_unnumbered)
    units["met"][is_covered & ~do_agree & (units["met"] == Met.NOTHING)] = Met.AGAINST
    units["met"][do_agree] = Met.AGREES


def agree(units: Units, rows: Rows, offsets: Int64s) -> NDArray[np.bool_]:
    """Return where a unit leads to the message of a row, as if that said one of `offsets`."""
    is_alike = units["size"] == rows["end"] - rows["start"]
    is_numbered = (units["queue"] == rows["queue"]) & (units["number"] == rows["number"])
    is_alike &= is_numbered | (units["queue"] == 0)
    return np.asarray((units["offset"] == offsets) & (is_alike | (units["size"] == 0)))
