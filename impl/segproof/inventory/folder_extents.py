# SPDX-License-Identifier: Apache-2.0
"""What two folders of one partition hold, batch by batch, to say which one has more.

Names and sizes do not say it: a log of zeros is as long as a whole one.
"""

import posixpath
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.counts import plural
from segproof.files import Files, status_of
from segproof.inventory.small_files import topic_id_of
from segproof.kafka.batch_table import BatchScan, BatchTable
from segproof.reading.file_names import METADATA, NameKind, is_like_a_log, read_file_name
from segproof.stretches.kafka.framing import LogSource
from segproof.stretches.kafka.in_place import byte_ranges_of, place_log

Batches = NDArray[np.int64]
"""Rows of first offset, last offset and checksum: shape (batches, 3), in order, each row once."""
Ranges = list[tuple[int, int]]
BATCHES_MAX = 1 << 19
"""Batches of a folder that are compared. They take 24 bytes each, and four times that while they
are sorted: 100 MiB for two folders. Folders with more are not compared."""


class LogExtent(NamedTuple):
    """The sound batches of one log."""

    batches: Batches
    is_whole: bool
    """Whether all of the log was read and is sound."""
    epochs: tuple[int, int] | None = None
    """The lowest and the highest leader epoch of its sound batches; None without one."""

    def has_all_of(self, other: "LogExtent | None") -> bool:
        """Return whether the log is whole, and each sound batch of another one is in it."""
        return self.is_whole and (other is None or _are_within(other.batches, self.batches))


class Extent(NamedTuple):
    """The sound batches of a folder's logs."""

    logs: int
    batches: Batches
    ranges: Ranges
    """Their offsets, first and last, without gaps between; in order."""
    damages: int
    """Stretches of the logs in which no batch is sound, and logs that cannot be read."""
    others: int
    """Logs under names that no broker reads, or that wait; they were not read."""
    unread: tuple[str, ...] = ()
    """The names of `others`, and of logs that can't be read, such as links."""
    are_too_many: bool = False
    """Whether there are more than BATCHES_MAX batches; the rest was not read."""
    by_log: Mapping[str, LogExtent] = MappingProxyType({})
    """What each log holds, by its name."""
    is_thinned: bool = False
    """Whether a batch has fewer records than offsets, as after a cleaning, or cannot say it."""

    @property
    def start(self) -> int:
        """Return the offset that the logs begin with, by their names and batches; else 0."""
        names = [int(name[:20]) for name in self.by_log]
        return min([*names, *(first for first, _ in self.ranges[:1])], default=0)

    @property
    def end(self) -> int:
        """Return the offset after all that the logs held, by their names and batches."""
        names = [int(name[:20]) for name in self.by_log]
        return max([*names, *(last + 1 for _, last in self.ranges[-1:])], default=0)

    @property
    def may_be_cleaned(self) -> bool:
        """Whether the log cleaner may have taken records: a batch or an offset is missing."""
        return self.is_thinned or len(self.ranges) > 1

    @property
    def words(self) -> str:
        """Return in words what there is."""
        if not self.logs and not self.others:
            return "no log"
        parts = [plural(self.logs, "log")]
        if self.are_too_many:
            parts.append(f"more than {BATCHES_MAX} sound batches")
        elif self.ranges:
            gaps = len(self.ranges) - 1
            parts.append(f"{plural(len(self.batches), 'sound batch')}")
            parts.append(f"offsets {self.ranges[0][0]} to {self.ranges[-1][1]}")
            parts += [f"{plural(gaps, 'gap')} between"] if gaps else []
        else:
            parts.append("no sound batch")
        closed = len(self.unread) - self.others
        damages = self.damages - closed
        parts += [f"damage in {plural(damages, 'place')}"] if damages else []
        parts += [f"{plural(closed, 'log')} that can't be read here"] if closed else []
        parts += [f"{plural(self.others, 'log')} under other names"] if self.others else []
        return ", ".join(parts)

    @property
    def is_whole(self) -> bool:
        """Whether all of the logs was read and is sound."""
        return not self.damages and not self.others and not self.are_too_many


def extent_of(path: str, files: Files) -> Extent:
    """Return what the logs of a partition's folder hold. Raises: never.

    Reads them whole, up to BATCHES_MAX batches.
    """
    try:
        names = files.list_directory(path)
    except OSError:
        return Extent(0, _in_order([]), [], 1, 0)
    logs: list[str] = []
    unread: list[str] = []
    damages = 0
    for name in names:
        known = read_file_name(name)
        if known.suffix == ".log" and known.kind is NameKind.SEGMENT:
            logs.append(name)
        else:
            is_waiting = known.kind is NameKind.PENDING and ".log" in name
            unread += [name] if is_waiting or is_like_a_log(name, known) else []
    others = len(unread)
    by_log: dict[str, LogExtent] = {}
    count, is_thinned = 0, False
    for name in logs:
        found: list[Batches] = []
        epochs: list[int] = []
        before = damages
        try:
            for table in _tables(posixpath.join(path, name), files):
                if table is None:
                    damages += 1
                    continue
                count += len(table)
                if count > BATCHES_MAX:
                    return Extent(
                        len(logs), _in_order([]), [], damages, others, tuple(unread), True
                    )
                fields = ("base_offset", "last_offset", "crc")
                epochs += _epochs(table)
                is_thinned |= _is_thinned(table)
                found.append(np.stack([table[one].astype(np.int64) for one in fields], axis=1))
        except OSError:
            damages += 1
            unread.append(name)
        by_log[name] = LogExtent(
            _in_order(found), damages == before, (min(epochs), max(epochs)) if epochs else None
        )
    batches = _in_order([one.batches for one in by_log.values()])
    return Extent(
        len(logs), batches, ranges_of(batches), damages, others, tuple(unread), False, by_log,
        is_thinned,
    )  # fmt: skip


class ExtentsOfPairs:
    """Reads what two folders hold, pair after pair, and keeps it until the next pair alone."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._kept: dict[str, Extent] = {}

    def read(self, one: str, two: str, *, again: bool = False) -> tuple[Extent, Extent]:
        """Return what two folders hold; the first one is read first.

        What is kept of the pair before is not read twice, except with `again`.
        """
        self._kept = {
            path: extent for path, extent in self._kept.items() if path in (one, two) and not again
        }
        for path in (one, two):
            if path not in self._kept:
                self._kept[path] = extent_of(path, self._files)
        return self._kept[one], self._kept[two]


def logs_to_take(mine: Extent, theirs: Extent) -> list[str]:
    """Return the names of logs which, taken from the other folder, make this one whole.

    Each of them is whole there and has all sound batches of the log of its name here. All logs
    then follow each other, have every offset of both folders, and leader epochs that never fall.
    Without such logs the list is empty.
    """
    taken = []
    logs: list[LogExtent] = []
    for name in sorted({*mine.by_log, *theirs.by_log}):
        here, there = mine.by_log.get(name), theirs.by_log.get(name)
        if here is not None and here.has_all_of(there):
            logs.append(here)
        elif there is not None and there.has_all_of(here):
            logs.append(there)
            taken.append(name)
        else:
            return []
    epochs = [one.epochs for one in logs if one.epochs is not None]
    if any(one[1] > two[0] for one, two in pairwise(epochs)):
        return []
    chosen = [one.batches for one in logs]
    full = [one for one in chosen if len(one)]
    if any(one[:, 1].max() >= two[0, 0] for one, two in pairwise(full)):
        return []
    ranges = ranges_of(_in_order(chosen))
    has_both = _has_all(ranges, mine.ranges) and _has_all(ranges, theirs.ranges)
    return taken if has_both else []


def _epochs(table: BatchTable) -> list[int]:
    """Return the lowest and the highest leader epoch of batches; nothing without one."""
    epochs = table["partition_leader_epoch"][table["magic"] == 2]
    known = epochs[epochs >= 0]
    return [int(known.min()), int(known.max())] if len(known) else []


def _is_thinned(table: BatchTable) -> bool:
    """Return whether a batch lacks a record, or is of an older format, which does not say it."""
    offsets = table["last_offset"].astype(np.int64) - table["base_offset"].astype(np.int64) + 1
    return bool(((table["magic"] != 2) | (table["record_count"] < offsets)).any())


def generations(here: str, there: str, files: Files) -> tuple[str, bool]:
    """Return in words why two folders are of two generations of a topic, and whether that is sure.

    A topic that was deleted and made again has another id, and so has one of another cluster. Where
    both folders lack the file, as before Kafka 2.8 and in `__cluster_metadata`, nothing is said.
    """
    paths = [posixpath.join(one, METADATA) for one in (here, there)]
    found = [status_of(files, one) for one in paths]
    mine, theirs = (
        topic_id_of(one, files) if status is not None and status.is_regular else None
        for one, status in zip(paths, found, strict=True)
    )
    if mine == theirs and (mine is not None or found == [None, None]):
        return "", False
    if mine is not None and theirs is not None:
        return (
            f"the topic id is {mine} here and {theirs} there, so they are of two generations of the"
            " topic, as of one that was deleted and made again"
        ), True
    words = [f"is {one} {place}" if one else f"cannot be read {place}"
             for one, place in ((mine, "here"), (theirs, "there"))]  # fmt: skip
    return (
        f"the topic id {words[0]} and {words[1]}, so they may be of two generations of the topic"
    ), False


def _in_order(found: list[Batches]) -> Batches:
    return np.unique(np.concatenate([np.empty((0, 3), np.int64), *found]), axis=0)


def lacking(some: Batches, others: Batches) -> Batches:
    """Return the batches that are not among others."""
    rows, counts = np.unique(np.concatenate([others, others, some]), axis=0, return_counts=True)
    return np.asarray(rows[counts == 1])


def outside(batches: Batches, ranges: Ranges) -> Batches:
    """Return the batches with an offset that is in none of the ranges."""
    rows = [not _has_all(ranges, [(first, last)]) for first, last, _ in batches.tolist()]
    return np.asarray(batches[np.array(rows, bool)])


def _are_within(some: Batches, others: Batches) -> bool:
    """Return whether each of some batches is one of others."""
    return len(_in_order([some, others])) == len(others)


def _tables(path: str, files: Files) -> Iterator[BatchTable | None]:
    """Yield the headers of sound batches, a block at a time; None for what lies between."""
    base_offset = read_file_name(posixpath.basename(path)).base_offset
    placed, at = place_log(LogSource(base_offset, None, partial(files.open, path))), 0
    with closing(files.open(path)) as file:
        for start, end in byte_ranges_of(placed.rows[placed.is_sound]):
            if at < start:
                yield None
            yield from BatchScan(file, start, end, deep=False).tables()
            at = end
    if at < placed.log.size:
        yield None


def ranges_of(batches: Batches) -> Ranges:
    """Return the offsets of batches, first and last, without gaps between."""
    if not len(batches):
        return []
    reach = np.maximum.accumulate(batches[:, 1])
    starts = np.append(True, batches[1:, 0] > reach[:-1] + 1)
    ends = np.append(np.flatnonzero(starts)[1:] - 1, len(batches) - 1)
    return list(zip(batches[starts, 0].tolist(), reach[ends].tolist(), strict=True))


def _has_all(mine: Ranges, theirs: Ranges) -> bool:
    """Return whether each of their offsets is one of mine."""
    starts = [first for first, _ in mine]
    for first, last in theirs:
        place = bisect_right(starts, first) - 1
        if place < 0 or mine[place][1] < last:
            return False
    return True


def compared(mine: Extent, theirs: Extent, there: str) -> tuple[str, bool]:
    """Return in words which folder has more, and whether one has all of the other, and is whole.

    `there` is the path of the other folder.
    """
    if mine.are_too_many or theirs.are_too_many:
        return "they have too many batches to be compared", False
    has_theirs = _are_within(theirs.batches, mine.batches)
    has_mine = _are_within(mine.batches, theirs.batches)
    if has_mine and has_theirs:
        if not len(mine.batches):
            return "none has a sound batch", False
        return "both have the same batches", mine.is_whole and theirs.is_whole
    if has_theirs and theirs.is_whole:
        tail = "" if mine.is_whole else ", and it is damaged"
        return f"this copy has more{tail}", mine.is_whole
    if has_mine and mine.is_whole:
        tail = "" if theirs.is_whole else ", and it is damaged"
        return f"{there} has more{tail}", theirs.is_whole
    i_have, they_have = (
        _has_all(mine.ranges, theirs.ranges),
        _has_all(theirs.ranges, mine.ranges),
    )
    if i_have and they_have:
        return "both have the same offsets, in different batches", False
    if not i_have and not they_have:
        return "each has offsets that the other lacks", False
    fuller = "this copy" if i_have else there
    return f"the sound batches of {fuller} have all offsets of the other's, and more", False
