# SPDX-License-Identifier: Apache-2.0
"""How many messages are lost in some stretches of a store's log, as its queues and index tell.

A unit of a queue has the offset of its message and its size, an entry of the index the offset. A
queue has no unit of a message that is prepared or rolled back, and the index none of a message
without keys. So the count is exact only where the units take all bytes of a stretch; else more
messages may have been there.

Laws: RMQCQ-1, RMQIDX-3.
Not covered: queues kept in RocksDB; queues that other queues' messages are dispatched to, whose
  units lead to messages that have a unit elsewhere.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.errors import SegproofError
from segproof.files import File, Files
from segproof.integers import INT32_MAX, INT64_MAX
from segproof.layouts.rocketmq import MESSAGE_BYTES_MIN
from segproof.reading.batch_queues import batch_units
from segproof.reading.log_gaps import Gap
from segproof.rocketmq.commit_log import named_offset
from segproof.rocketmq.consume_queue import (
    CONSUME_QUEUE,
    SPOKEN_FOR_OTHERS,
    UNIT_BYTES,
    UNITS,
    folders_in,
    queue_number,
)
from segproof.rocketmq.geometry import find_geometries, index_file_names
from segproof.rocketmq.index_service import INDEX
from segproof.rocketmq.index_table import entry_blocks, read_stored_header
from segproof.rocketmq.message import has_queue_place
from segproof.stretches.rocketmq.facts import marks_of
from segproof.stretches.rocketmq.message_blocks import MessageBlock

PIECE_BYTES = UNIT_BYTES << 16
SAMPLE_ROWS = 64
WRONG_MIN = 3
"""If so many units of a file contradict the messages of the log, and none is right, the file is of
another store: fewer may be damaged one by one."""

Int64Array = NDArray[np.int64]


class LostMessages(NamedTuple):
    """How many messages are lost in a stretch of a log."""

    known: int
    """How many queues or index lead to."""
    is_exact: bool
    """Whether no bytes are left in which more may have been."""


NOTHING_LOST = LostMessages(0, True)


def lost_together(lost: Sequence[LostMessages]) -> LostMessages:
    """Return how many are lost in all of some stretches."""
    return LostMessages(sum(one.known for one in lost), all(one.is_exact for one in lost))


def messages_in(
    store: str,
    gaps: Sequence[Gap],
    files: Files,
    sound_end: int = INT64_MAX,
    sound: Callable[[], Iterable[MessageBlock]] = tuple,
    *,
    are_some_ours: bool = False,
) -> list[LostMessages] | None:
    """Return how many messages are lost in each gap of the log; None if nothing tells.

    That is so without queues, unless the index leads into one of the gaps. A unit or an entry that
    contradicts its neighbours proves no loss, nor does a unit whose number a message has that
    `sound` yields: the sound messages of the log. If units or entries of the index lead to some of
    these (`are_some_ours`), no file proves a loss whose units all lead elsewhere.

    The gaps are in order. `sound_end` is the offset behind the last sound message of the log: no
    count of a gap beyond it is exact, since nothing says how far the log went.

    Cost: all files of queues are read once, without their holes, and all entries of the index; and
    the log, if units lead into the gaps. Raises: OSError for the queues; what can't be read of the
    index tells nothing.
    """
    starts = np.array([gap.start for gap in gaps], np.int64)
    ends = np.array([gap.end for gap in gaps], np.int64)
    found, has_queues = [np.zeros((0, 2), np.int64)], False
    numbered: list[tuple[tuple[str, int], Int64Array, Int64Array]] = []
    for topic, number, numbers, stored in units_of_queues(store, files):
        has_queues = True
        units = _in_order(numbers, stored)
        inside = _inside(units, starts, ends)
        if len(inside) and number is not None:
            step = len(units) // SAMPLE_ROWS + 1
            asked = np.concatenate([units[:SAMPLE_ROWS], units[SAMPLE_ROWS::step]])
            numbered.append(((topic, number), inside, asked))
        else:
            found.append(inside[:, :2])
    found += _without_held(numbered, sound, are_some_ours=are_some_ours)
    for units in batch_units(store, files):
        has_queues = True
        found.append(_inside(units, starts, ends))
    if len(gaps):
        for entries in index_offsets(os.path.join(store, INDEX), files):
            entries = entries[~_contradict(entries)]
            known = np.stack([entries, np.zeros(len(entries), np.int64)], axis=1)
            found.append(np.unique(_inside(known, starts, ends), axis=0))
    rows = np.concatenate(found)
    if not has_queues and not len(rows):
        return None
    # Of one offset the unit comes first, which has a size.
    rows = rows[np.lexsort((-rows[:, 1], rows[:, 0]))]
    rows = rows[np.diff(rows[:, 0], prepend=-1) > 0]
    edges = np.searchsorted(rows[:, 0], [starts, ends])
    lost, reached = list[LostMessages](), 0
    for gap, first, stop in zip(gaps, *edges.tolist(), strict=True):
        lost.append(_lost_in(gap, rows[first:stop], reached))
        reached = int(rows[stop - 1].sum()) if first < stop else reached
    return [
        one._replace(is_exact=one.is_exact and gap.start < sound_end)
        for one, gap in zip(lost, gaps, strict=True)
    ]


def _in_order(numbers: Int64Array, units: NDArray[np.void]) -> Int64Array:
    """Return offset, size and number of units, but for those that contradict their neighbours."""
    found = np.empty((len(units), 3), np.int64)
    found[:, 0], found[:, 1] = units["commit_log_offset"], units["size"]
    found[:, 2] = numbers
    return found[~_contradict(found[:, 0])]


def _contradict(offsets: Int64Array) -> NDArray[np.bool_]:
    """Return which of some offsets that should never fall are alone in doing so: one that is above
    the next one, or below the one before, where these two are in order.
    """
    before = np.concatenate([[-1], offsets[:-1]])
    after = np.concatenate([offsets[1:], [INT64_MAX]])
    in_order = before <= after
    are_high = (offsets > after) & in_order
    follows_high = np.concatenate([[False], are_high[:-1]])
    found: NDArray[np.bool_] = are_high | ((offsets < before) & in_order & ~follows_high)
    return found


def _without_held(
    numbered: list[tuple[tuple[str, int], Int64Array, Int64Array]],
    sound: Callable[[], Iterable[MessageBlock]],
    *,
    are_some_ours: bool,
) -> list[Int64Array]:
    """Return offset and size of the units whose number no sound message of their queue has.

    With `are_some_ours` a file has none if WRONG_MIN of its units lead into sound messages, or have
    the number of one, and not one leads to the message with its number.

    `numbered` has for each file its queue, units of it, and those that tell whose file it is.
    """
    if not numbered:
        return []
    wanted: dict[tuple[str, int], set[int]] = {}
    for key, units, asked in numbered:
        wanted.setdefault(key, set()).update(units[:, 2].tolist(), asked[:, 2].tolist())
    pairs = {(key[1], number) for key, numbers in wanted.items() for number in numbers}
    numbers = np.array(sorted({number for _, number in pairs}), np.int64)
    places: dict[tuple[str, int], list[tuple[int, int]]] = {key: [] for key in wanted}
    ranges = list[tuple[int, int]]()
    for block in sound():
        ranges.append((int(block.lies_at[0]), int(block.ends_at[-1])))
        queue_ids, offsets = block.numbers()
        for row in np.flatnonzero(np.isin(offsets, numbers)).tolist():
            if (int(queue_ids[row]), int(offsets[row])) not in pairs:
                continue
            one = block.message(row)
            if has_queue_place(one.sys_flag) and (one.topic, one.queue_id) in places:
                place = int(block.lies_at[row]), one.queue_offset
                places[one.topic, one.queue_id].append(place)
    starts, ends = np.array(ranges, np.int64).reshape(-1, 2).T
    found = list[Int64Array]()
    for key, units, asked in numbered:
        held_at, held = np.array(places[key], np.int64).reshape(-1, 2).T
        is_right = np.isin(marks_of([asked[:, 0], asked[:, 2]]), marks_of([held_at, held]))
        is_wrong = np.isin(asked[:, 0], _inside(asked, starts, ends)[:, 0])
        is_wrong |= np.isin(asked[:, 2], held)
        if is_right.any() or not are_some_ours or np.count_nonzero(is_wrong) < WRONG_MIN:
            found.append(units[~np.isin(units[:, 2], held), :2])
    return found


def _inside(rows: Int64Array, starts: Int64Array, ends: Int64Array) -> Int64Array:
    """Return the rows whose offsets lie in one of the gaps."""
    if not len(starts):
        return rows[:0]
    place = np.searchsorted(starts, rows[:, 0], "right") - 1
    inside: Int64Array = rows[(place >= 0) & (rows[:, 0] < ends[place])]
    return inside


def _lost_in(gap: Gap, rows: Int64Array, reached: int) -> LostMessages:
    """Return what is lost in a gap; a row has offset and size of each message, 0 if untold.

    The last message of the gap before ends at `reached`, maybe in this one.
    """
    begins = np.append(rows[:, 0], gap.end)
    ends = np.concatenate([[max(gap.start, reached)], rows[:, 0] + rows[:, 1]])
    room = begins - ends
    is_told = np.concatenate([[True], rows[:, 1] > 0])
    # A message of a size that no unit tells has at least that of the smallest one.
    most = np.where(is_told, MESSAGE_BYTES_MIN, 2 * MESSAGE_BYTES_MIN)
    return LostMessages(len(rows), bool((room < most).all()))


def index_offsets(folder: str, files: Files) -> Iterator[Int64Array]:
    """Yield the offsets of the log in the entries of the index."""
    with suppress(OSError, SegproofError):
        names = index_file_names(files.list_directory(folder))
        for name, answer in find_geometries(folder, names, files=files).items():
            if answer.geometry is None or answer.origin == "ambiguous":
                continue
            with closing(files.open(os.path.join(folder, name))) as file:
                header = read_stored_header(file)
                stop = 0 if header is None else min(header.index_count, answer.geometry.index_num)
                for _, block in entry_blocks(file, answer.geometry, 1, stop):
                    offsets = block["phy_offset"].astype(np.int64)
                    yield offsets if header is None else offsets[offsets <= header.end_phy_offset]


class QueueUnits(NamedTuple):
    """Units of one queue; fillers are left out."""

    topic: str
    queue_id: int | None
    """None if the name of the folder is not a number of a queue."""
    numbers: Int64Array
    """The number of each unit in its queue."""
    units: NDArray[np.void]


def units_of_queues(store: str, files: Files) -> Iterator[QueueUnits]:
    """Yield the units of all queues that are kept in files, in pieces. Raises: OSError.

    Queues are left out to which the messages of other queues are dispatched.
    """
    for folder in folders_in(os.path.join(store, CONSUME_QUEUE), files):
        topic = os.path.basename(folder)
        if SPOKEN_FOR_OTHERS in topic:
            continue
        for queue in folders_in(folder, files):
            queue_id = queue_number(os.path.basename(queue))
            for numbers, units in units_of_queue(queue, files):
                yield QueueUnits(topic, queue_id, numbers, units)


def units_of_queue(queue: str, files: Files) -> Iterator[tuple[Int64Array, NDArray[np.void]]]:
    """Yield the units in the files of a queue's folder, each with its number, but for fillers.

    Raises: OSError.
    """
    for name in files.list_directory(queue):
        start = named_offset(name)
        if start is None:
            continue
        with closing(files.open(os.path.join(queue, name))) as file:
            for first, units in stretches_in(file):
                places = np.flatnonzero(are_units(units))
                yield places + (first + start // UNIT_BYTES), units[places]


def units_in(file: File) -> Iterator[NDArray[np.void]]:
    """Yield the units of a file of a queue, but for fillers. Raises: OSError."""
    for _, units in stretches_in(file):
        yield units[are_units(units)]


def stretches_in(file: File) -> Iterator[tuple[int, NDArray[np.void]]]:
    """Yield the places of a file of a queue in stretches, each with the number of its first one."""
    for begin, behind in file.data_ranges(0, file.size()):
        for at in range(begin - begin % UNIT_BYTES, behind, PIECE_BYTES):
            data = file.pread(min(PIECE_BYTES, behind - at + UNIT_BYTES), at)
            units = np.frombuffer(data, UNITS, min(PIECE_BYTES, len(data)) // UNIT_BYTES)
            yield at // UNIT_BYTES, units


def are_units(units: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return which places contain a unit that leads to a message."""
    are_units: NDArray[np.bool_] = (units["commit_log_offset"] >= 0) & (units["size"] > 0)
    are_units &= units["size"] != INT32_MAX
    return are_units
