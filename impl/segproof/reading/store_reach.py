# SPDX-License-Identifier: Apache-2.0
"""Where in the log the index and the queues of a store lead: into which stretches, how often.

Laws: RMQDISK-23, RMQDISK-42.
Not covered: queues and indexes that are kept in RocksDB; index files whose geometry is unknown.
"""

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.errors import SegproofError
from segproof.files import Files
from segproof.findings import time_text
from segproof.integers import INT32_MAX, INT64_MAX
from segproof.layouts.rocketmq import MESSAGE
from segproof.reading.batch_queues import furthest_batch
from segproof.reading.queue_units import units_in, units_of_queues
from segproof.reading.store_times import read_checkpoint
from segproof.rocketmq.commit_log import LogFile, named_offset
from segproof.rocketmq.consume_queue import (
    CONSUME_QUEUE,
    UNIT_BYTES,
    folders_in,
    max_physic_offset,
    read_units,
)
from segproof.rocketmq.geometry import find_geometries, index_file_names
from segproof.rocketmq.index_service import CHECKPOINT, INDEX
from segproof.rocketmq.index_table import entry_blocks, read_stored_header
from segproof.rocketmq.message import MESSAGE_MAGICS

__all__ = ["Reach", "SamePlaces", "Stretch", "ends_of", "has_queue_units", "reach_of"]

_OFFSET = MESSAGE["physical_offset"]
COMPARED_UNITS = 64
"""Right units after which log files belong to the same log; and those that are asked of a block."""
ASKED_UNITS_MAX = 4096
"""Units that are looked up in one log or two, until they tell."""
FAR_OFFSETS_MAX = 1000
"""Different offsets of a stretch that are counted."""
MISSING_OFFSETS_MIN = 3
"""Fewer offsets beyond the last file of a log are wrong entries, and not missing files."""
Int64Array = NDArray[np.int64]
SILENT_MS_MAX = 366 * 86_400_000
"""A checkpoint that is further ahead of log and queues is damaged, and tells of no lost message."""


class Stretch(NamedTuple):
    """Offsets [start, end) of a log."""

    start: int
    end: int


class Reach(NamedTuple):
    """What leads into some stretches of a log."""

    counts: list[int]
    """For each stretch the number of different offsets, up to FAR_OFFSETS_MAX."""
    furthest: int
    """The largest offset in any of them; -1 without one."""


def reach_of(
    store: str, stretches: Sequence[Stretch], files: Files, hash_slots: int | None = None
) -> Reach:
    """Return how many offsets in each stretch the index and the queues lead to.

    Cost: the queues are read once, and the index files whose header says that they reach one of
    the stretches. What can't be read counts nothing.
    """
    found: list[set[int]] = [set() for _ in stretches]
    furthest = -1
    for offsets in (*_of_queues(store, files), *_of_index(store, stretches, files, hash_slots)):
        for number, stretch in enumerate(stretches):
            inside = offsets[(offsets >= stretch.start) & (offsets < stretch.end)]
            if len(inside):
                furthest = max(furthest, int(inside.max()))
            if len(found[number]) < FAR_OFFSETS_MAX:
                found[number].update(np.unique(inside)[:FAR_OFFSETS_MAX].tolist())
    return Reach([min(len(each), FAR_OFFSETS_MAX) for each in found], furthest)


def ends_of(store: str, files: Files) -> tuple[int, int]:
    """Return the lowest and the furthest offset by the ends of queues and the headers of indexes.

    Without any these are a very large number and -1. Damage may make them wrong.
    """
    lows, highs = [INT64_MAX], [furthest_batch(store, files)]
    with suppress(OSError, SegproofError):
        highs.append(max_physic_offset(store, files) - 1)
    with suppress(OSError):
        lows += _first_units(store, files)
    folder = posixpath.join(store, INDEX)
    with suppress(OSError):
        for name in index_file_names(files.list_directory(folder)):
            with closing(files.open(posixpath.join(folder, name))) as file:
                header = read_stored_header(file)
            if header is not None and header.index_count > 1:
                lows.append(header.begin_phy_offset)
                highs.append(header.end_phy_offset)
    return min(lows), max(highs)


def has_queue_units(store: str, files: Files) -> bool:
    """Return whether a queue that is kept in files leads to a message."""
    with suppress(OSError):
        return next(_first_units(store, files), None) is not None
    return False


def _first_units(store: str, files: Files) -> Iterator[int]:
    """Yield the offset of the first unit of each queue. Raises: OSError.

    A saved queue may begin with units that lead nowhere: these are passed over.
    """
    for topic in folders_in(posixpath.join(store, CONSUME_QUEUE), files):
        for queue in folders_in(topic, files):
            names = [name for name in files.list_directory(queue) if named_offset(name) is not None]
            for name in sorted(names)[:1]:
                with closing(files.open(posixpath.join(queue, name))) as file:
                    (unit,) = read_units(file.pread(UNIT_BYTES, 0)) or (None,)
                    if unit is not None and unit.is_valid and unit.size != INT32_MAX:
                        yield unit.commit_log_offset
                        continue
                    first = next((one for one in units_in(file) if len(one)), None)
                    if first is not None:
                        yield int(first["commit_log_offset"][0])


def _of_queues(store: str, files: Files) -> Iterator[Int64Array]:
    for units in _units(store, files):
        yield units["commit_log_offset"].astype(np.int64)


def _units(store: str, files: Files) -> Iterator[NDArray[np.void]]:
    """Yield the units of all queues that are kept in files."""
    with suppress(OSError):
        for one in units_of_queues(store, files):
            yield one.units


def _of_index(
    store: str, stretches: Sequence[Stretch], files: Files, hash_slots: int | None = None
) -> Iterator[Int64Array]:
    folder = posixpath.join(store, INDEX)
    with suppress(OSError, SegproofError):
        names = index_file_names(files.list_directory(folder))
        answers = find_geometries(folder, names, hash_slot_num=hash_slots, files=files)
        for name, answer in sorted(answers.items()):
            with closing(files.open(posixpath.join(folder, name))) as file:
                header = read_stored_header(file)
                if header is None or answer.geometry is None or header.index_count <= 1:
                    continue
                first, last = header.begin_phy_offset, header.end_phy_offset
                if not any(one.start <= last and first < one.end for one in stretches):
                    continue
                stop = min(header.index_count, answer.geometry.index_num)
                for _, block in entry_blocks(file, answer.geometry, 1, stop):
                    yield block["phy_offset"].astype(np.int64)


class SamePlaces:
    """Compares the units of a store with log files that may belong to its log."""

    def __init__(self, store: str, log_files: Sequence[LogFile], files: Files) -> None:
        self._store = store
        self._log_files = log_files
        self._files = files

    def hold_what_is_missing(self) -> bool | None:
        """Return whether queues, or else the index, lead to messages in these files.

        Of the units that lead there nine in ten have the size of the message at their offset. Those
        that lead to zeros say nothing: a file may have lost its messages there. Where others lead
        to what is no message, a third of all is enough, which are MISSING_OFFSETS_MIN or more: it
        may be damage. In another log units lead into messages, but too often to other messages
        too. None if nothing leads to more than zeros.
        """
        if not self._log_files:
            return None
        asked = right = other = 0
        for offset, size in islice(self._leads(), ASKED_UNITS_MAX):
            heads = self._heads_at(offset)
            if not any(head.strip(b"\0") for head in heads):
                continue
            asked += 1
            if _is_there(heads, offset, size):
                right += 1
            else:
                other += any(head[4:8] in MESSAGE_MAGICS for head in heads)
            if right >= COMPARED_UNITS and _are_right(asked, right, other):
                break
        return _are_right(asked, right, other) if asked else None

    def hold_what_another_lacks(
        self, other: "SamePlaces", fewest: int = MISSING_OFFSETS_MIN
    ) -> bool:
        """Return whether queues, or else the index, lead to messages in these files that are not
        in those of another log: to all of those compared, or to `fewest`, by default more than
        wrong entries explain.
        """
        asked = right = 0
        for offset, size in self._leads():
            asked += 1
            right += self._holds(offset, size) and not other._holds(offset, size)
            if right >= fewest or asked >= ASKED_UNITS_MAX:
                break
        return right >= fewest or 0 < asked == right

    def _holds(self, offset: int, size: int) -> bool:
        """Return whether a message is at an offset; of this size, if it is above 0."""
        return _is_there(self._heads_at(offset), offset, size)

    def _leads(self) -> Iterator[tuple[int, int]]:
        """Yield offset and size of the units that lead into the files; if no unit does, the offsets
        of index entries, and 0.

        Of each block those are yielded that lie far from each other: a damage is in one place.
        """
        is_led_to = False
        for units in _units(self._store, self._files):
            inside = units[self._are_inside(units["commit_log_offset"].astype(np.int64))]
            for unit in _spread(inside):
                is_led_to = True
                yield int(unit["commit_log_offset"]), int(unit["size"])
        if is_led_to:
            return
        stretches = [Stretch(one.start, one.start + one.size_bytes) for one in self._log_files]
        for offsets in _of_index(self._store, stretches, self._files):
            yield from ((int(each), 0) for each in _spread(offsets[self._are_inside(offsets)]))

    def _are_inside(self, offsets: Int64Array) -> NDArray[np.bool_]:
        """Return for each offset whether it is in one of the files."""
        inside = np.zeros(len(offsets), np.bool_)
        for one in self._log_files:
            inside |= (offsets >= one.start) & (offsets < one.start + one.size_bytes)
        return inside

    def _files_of(self, offset: int) -> list[LogFile]:
        """Return the files that hold an offset: one name may be in two folders."""
        return [one for one in self._log_files if 0 <= offset - one.start < one.size_bytes]

    def _heads_at(self, offset: int) -> list[bytes]:
        """Return what is at an offset in each file that can be read there, up to its own offset."""
        found = []
        for one in self._files_of(offset):
            with suppress(OSError), closing(self._files.open(one.path)) as file:
                found.append(file.pread(_OFFSET.end, offset - one.start))
        return found


def _spread(rows: NDArray[Any]) -> NDArray[Any]:
    """Return COMPARED_UNITS of some rows, or all, from the first to the last."""
    count = min(len(rows), COMPARED_UNITS)
    return rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)] if count else rows


def _are_right(asked: int, right: int, other: int) -> bool:
    """Return whether units that lead to more than zeros show that files are of their log.

    `right` of those asked lead to their message, and `other` to another one.
    """
    if right * 10 >= asked * 9:
        return True
    return right >= MISSING_OFFSETS_MIN and right * 3 >= asked and right >= other * 9


def _is_there(heads: Sequence[bytes], offset: int, size: int) -> bool:
    """Return whether one of the heads is of a message with this offset; of this size, if it is
    above 0.
    """
    for head in heads:
        if head[4:8] in MESSAGE_MAGICS and head[_OFFSET.place :] == offset.to_bytes(8, "big"):
            found = int.from_bytes(head[:4], "big", signed=True)
            if found == size or (not size and 0 < found < INT32_MAX):
                return True
    return False


def later_messages(store: str, newest: int, files: Files) -> tuple[list[str], bool]:
    """Return in words which messages are lost by the checkpoint of a store, if there are any; and
    whether that is proved. Where the queues end with the log, the checkpoint may be wrong.
    """
    path = posixpath.join(store, CHECKPOINT)
    stored = read_checkpoint(path, files)
    time = max(stored.physic_msg_timestamp, stored.logics_msg_timestamp)
    if not 0 <= newest < time:
        return [], False
    words = f"{path}: messages stored after {time_text(newest)}, up to {time_text(time)} as it says"
    if has_queue_units(store, files):
        if time - newest > SILENT_MS_MAX:
            return [], False
        words += ", are not in the log, and the queues end with the log: both lost their last"
        words += " messages, or this checkpoint is damaged or of another store"
        return [words], False
    return [f"{words}: they are not in the log"], True
