# SPDX-License-Identifier: Apache-2.0
"""Logs that wait as `.swap` for their place: which of them hold what no other log holds.

Kafka's next start puts them in the place of the logs within their offsets. As long as the first old
log is there and sound, the old logs hold all of it. Afterwards only the `.swap` logs do.

Upstream: Kafka 4.3.1: LocalLog.replaceSegments, LogLoader.load.
Laws: LOAD-2, DISK-42, DISK-59.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import NamedTuple

import numpy as np

from segproof.errors import SegproofError
from segproof.files import Files, status_of
from segproof.hints import writes
from segproof.integers import INT32_MAX, INT64_MAX, INT64_MIN
from segproof.kafka.batch_table import BatchScan, BatchTable
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import FileName, NameKind, read_file_name
from segproof.reading.swap_batches import foreign_batches
from segproof.stretches.kafka.facts import UNKNOWN_NAME, Int64s
from segproof.stretches.kafka.framing import LogSource
from segproof.stretches.kafka.header_rows import first_offsets, state_first_offset
from segproof.stretches.kafka.in_place import LogFates, byte_ranges_of, headers_of, place_log

LOG_SWAP = ".log.swap"
REPLACES_OTHERS = (
    "a starting broker puts this file in the place of others; its rows are not read (to read them,"
    " name the file)"
)
"""What a reader of a folder's rows says of a `.swap` file that it leaves out."""
_SAME = ("last_offset", "base_offset", "size_bytes", "crc")
"""What two batches share that are one and the same; a checksum covers the rest."""
BATCHES_MAX = 1 << 20
"""Batches of a log that are compared with other logs at once."""


def swap_logs(kinds: Mapping[str, FileName]) -> dict[int, str]:
    """Return the logs that the next start completes, by base offset: their names.

    Those at or above the lowest `.cleaned` file belong to a change that was not finished.
    """
    pending = {name: known for name, known in kinds.items() if known.kind is NameKind.PENDING}
    cleaned = [known.base_offset for name, known in pending.items() if name.endswith(".cleaned")]
    return {
        known.base_offset: name
        for name, known in pending.items()
        if name.endswith(LOG_SWAP) and not (cleaned and known.base_offset >= min(cleaned))
    }


def as_completed(
    directory: str, kinds: Mapping[str, FileName], files: Files
) -> Mapping[str, FileName]:
    """Return the names of a partition, with `.swap` logs as segments where only they hold offsets.

    Their indexes that wait are those of the segments. The segments that begin within a whole
    `.swap` log are left out, unless all of them end before it does and it has no batch of the
    segment: then its end is in doubt. Within a damaged one only those are left out that end before
    its first damage, if it has each of their batches as it is. Where the first old log of a `.swap`
    log is there and sound, it changes nothing. A log between two `.swap` logs stays: it alone holds
    its offsets. Nor does a `.swap` log change anything that is not made of the damaged old log
    (DISK-60).
    """
    swaps = _needed(directory, kinds, files)
    if not swaps:
        return kinds
    logs = bases_of(kinds)
    stay = set(logs) - set(swaps)
    for base, swap in swaps.items():
        paths = {
            one: posixpath.join(directory, segment_file_name(one, ".log"))
            for one in logs
            if base <= one < swap.end
        }
        ends = {one: end_of(path, one, files) or swap.end for one, path in paths.items()}
        # Old logs go in order: while one is there, the last one is too, and ends no earlier.
        is_theirs = max(ends.values(), default=swap.end) >= swap.end
        for one, end in ends.items():
            if not swap.is_whole:
                is_held = end <= swap.sound_end and _has_each_of(paths[one], swap, files)
            else:
                is_held = is_theirs or _overlaps(swap.path, one, end, files)
            if is_held:
                stay.discard(one)
    kept = {
        name: known
        for name, known in kinds.items()
        if known.kind is not NameKind.SEGMENT
        or known.base_offset in stay
        or not any(base <= known.base_offset < swap.end for base, swap in swaps.items())
    }
    moved = {
        name: FileName(NameKind.SEGMENT, known.base_offset, known.suffix)
        for name, known in kinds.items()
        if known.kind is NameKind.PENDING and name.endswith(".swap") and known.base_offset in swaps
    }
    return kept | moved


def waiting_logs(directory: str, names: Iterable[str], files: Files) -> list[str]:
    """Return the names of the `.swap` logs of a directory that hold what no other log holds."""
    listed = list(names)
    if not any(name.endswith(LOG_SWAP) for name in listed):
        return []
    kinds = {name: read_file_name(name) for name in listed}
    return [swap_logs(kinds)[base] for base in sorted(_needed(directory, kinds, files))]


def records_wait(path: str) -> SegproofError:
    """Return the error for a directory in which only the `.swap` log at `path` has some records."""
    return SegproofError(
        "records wait in this file, and no other log here has them: Kafka's next start puts it in"
        " its place",
        law="LOAD-2",
        path=path,
        hint=writes(
            "look into this file by itself with `segproof dump`; or save the partition into another"
            " directory with `segproof salvage`, and look into that"
        ),
    )


class _Log(NamedTuple):
    """What reading a log showed."""

    path: str
    size_bytes: int
    end: int
    """The offset after its last batch, at least one after the base offset of its name."""
    sound_end: int
    """The offset after the last batch before the first damage; its base offset without any."""
    is_whole: bool
    """Whether it has no damage, and its offsets rise and are within those of a segment."""


def _needed(directory: str, kinds: Mapping[str, FileName], files: Files) -> dict[int, _Log]:
    """Return what the `.swap` logs hold that are to be read as segments, by base offset."""
    logs = bases_of(kinds)
    found: dict[int, _Log] = {}
    for base, name in swap_logs(kinds).items():
        path = posixpath.join(directory, name)
        if not is_kept(base, logs, directory, files):
            found[base] = _read(path, base, files) or _Log(path, -1, base + 1, base, is_whole=False)
            continue
        swap = _read(path, base, files)
        if swap is None or not swap.is_whole or not swap.size_bytes:
            continue
        old = max(one for one in logs if one <= base)
        old_path = posixpath.join(directory, segment_file_name(old, ".log"))
        held = _read(old_path, old, files)
        is_held = held is not None and held.is_whole and held.size_bytes
        if not is_held and not foreign_batches(path, [(old, old_path)], files):
            found[base] = swap
    return found


def _overlaps(path: str, first: int, end: int, files: Files) -> bool:
    """Return whether a log has a batch with offsets from `first` to before `end`."""
    try:
        return any(
            bool(np.any((table["base_offset"] < end) & (table["last_offset"] >= first)))
            for table in batches_in(path, files)
        )
    except (OSError, SegproofError):
        return True


def _has_each_of(path: str, swap: _Log, files: Files) -> bool:
    """Return whether a `.swap` log has each batch of a log, as it is, among its sound batches.

    One that compaction wrote again, with fewer records, is another batch.
    """
    try:
        tables = _sound_tables(swap.path, files)
        parts = [table[list(_SAME)] for table in tables if len(table)]
        held = np.sort(np.concatenate(parts), order=_SAME) if parts else None
        for table in batches_in(path, files):
            if held is None:
                return False
            places = np.searchsorted(held["last_offset"], table["last_offset"])
            olds = held[np.minimum(places, len(held) - 1)]
            if any(np.any(olds[name] != table[name]) for name in _SAME):
                return False
    except (OSError, SegproofError):
        return False
    return True


def _read(path: str, base: int, files: Files) -> _Log | None:
    """Read a log; None if it can't be opened."""
    end = sound_end = base
    reached, is_sound = base - 1, True
    try:
        with closing(files.open(path)) as file:
            size = file.size()
            scan = BatchScan(file, 0, size, deep=False)
            for checked in scan:
                first, last = checked.table["base_offset"], checked.table["last_offset"]
                before = np.concatenate(([reached], last[:-1]))
                # No checksum covers the base offset of a batch.
                is_placed = (last >= base) & (last - base <= INT32_MAX) & (last > before)
                is_placed &= (first > before) | (checked.table["magic"] < 2)
                bad = np.flatnonzero(~checked.crc_valid | ~is_placed)
                reached = int(last[-1])
                sound = last[: bad[0]] if len(bad) else last
                if is_sound and len(sound):
                    sound_end = max(sound_end, int(sound.max()) + 1)
                is_sound = is_sound and not len(bad)
                end = max(end, int(last.max()) + 1)
            is_sound = is_sound and scan.end_position == size
    except (OSError, SegproofError):
        return None
    return _Log(path, size, max(end, base + 1), sound_end, is_sound)


def is_kept(offset: int, logs: list[int], directory: str, files: Files) -> bool:
    """Return whether a log of the partition reaches the offset. `logs` are base offsets, sorted."""
    below = [base for base in logs if base <= offset]
    if not below or below[-1] == offset:
        return bool(below)
    path = posixpath.join(directory, segment_file_name(below[-1], ".log"))
    end = end_of(path, below[-1], files)
    return end is None or end > offset


class OnlyCopy(NamedTuple):
    """What a log holds that no other log does."""

    first: int
    """The first offset of its first sound batch."""
    last: int
    """The last offset of its last sound batch."""
    missing: int
    """The least last offset of a sound batch of it that is in no sound batch of the other logs."""


Ranges = dict[str, tuple[int, int]]
"""The lowest and the highest offset in the sound batches of logs that were read, by their paths."""


def only_copy(
    path: str,
    others: Iterable[tuple[int, str]],
    files: Files,
    *,
    least: int = 0,
    ranges: Ranges | None = None,
) -> OnlyCopy | None:
    """Return what a log holds that none of the others does; None if they hold all of it.

    Only batches with a last offset of `least` or more count. `others` are the other logs: base
    offsets with paths. A cleaning or a splitting gives each batch of the new log a last offset of
    the old ones. So a last offset that is in no sound batch of them is of records that only this
    log holds. Sound batches after damage count on both sides. The logs near these offsets are read
    first, the rest only for offsets that the near ones lack. Who asks of many logs of a folder
    hands one and the same `ranges` along: a log that has none of the offsets is not read again.
    Memory: as `frame_partition`, and some ten bytes for each of BATCHES_MAX batches. A log with
    more of them is compared in parts, and the other logs are read for each part.

    None if the log can't be read, or is gone afterwards: a broker removes the old logs after it has
    renamed the new one.
    """
    logs, ranges = sorted(others), {} if ranges is None else ranges
    first = last = missing = -1
    with suppress(OSError, SegproofError):
        for begin, lasts in _parts_of(path, files):
            first, last = begin if first < 0 else first, int(lasts[-1])
            wanted = np.sort(lasts[lasts >= least])
            if missing >= 0:
                wanted = wanted[wanted < missing]
            wanted = _lacking(wanted, (begin, last), logs, files, ranges)
            missing = int(wanted[0]) if len(wanted) else missing
    if missing < 0 or status_of(files, path) is None:
        return None
    return OnlyCopy(first, last, missing)


def _parts_of(path: str, files: Files) -> Iterator[tuple[int, Int64s]]:
    """Yield the last offsets of a log's sound batches in parts, each with its first offset."""
    parts: list[Int64s] = []
    begin = count = 0
    for firsts, lasts in _sound_ranges(path, 0, files):
        begin = begin if parts else int(firsts[0])
        parts.append(lasts.astype(np.int64))  # a copy: a view would keep the whole table
        count += len(lasts)
        if count >= BATCHES_MAX:
            yield begin, np.concatenate(parts)
            parts, count = [], 0
    if parts:
        yield begin, np.concatenate(parts)


def _lacking(
    wanted: Int64s,
    near: tuple[int, int],
    logs: list[tuple[int, str]],
    files: Files,
    ranges: Ranges,
) -> Int64s:
    """Return which offsets, given sorted, are in no sound batch of the logs."""
    first, last = near
    begin = max((base for base, _ in logs if base <= first), default=-1)
    for base, path in sorted(logs, key=lambda one: not begin <= one[0] <= last):
        if not len(wanted):
            break
        low, high = ranges.get(path, (INT64_MIN, INT64_MAX))
        if np.any((wanted >= low) & (wanted <= high)):
            wanted = wanted[~_are_held(wanted, path, base, files, ranges)]
    return wanted


def _are_held(wanted: np.ndarray, path: str, base: int, files: Files, ranges: Ranges) -> np.ndarray:
    """Return which offsets, given sorted, are in sound batches of a log; none if it is unreadable.

    The answer has the type bool and the shape of `wanted`. Its range is added to `ranges`.
    """
    low, high = INT64_MAX, INT64_MIN
    steps = np.zeros(len(wanted) + 1, np.int64)
    try:
        for firsts, lasts in _sound_ranges(path, base, files):
            begins = np.searchsorted(wanted, firsts)
            ends = np.maximum(begins, np.searchsorted(wanted, lasts, "right"))
            np.add.at(steps, begins, 1)
            np.add.at(steps, ends, -1)
            low, high = min(low, int(firsts.min())), max(high, int(lasts.max()))
    except (OSError, SegproofError):
        pass
    ranges[path] = low, high
    return np.cumsum(steps)[:-1] > 0


def _sound_ranges(path: str, base: int, files: Files) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the first and the last offsets of the sound batches of a log, in parts.

    A compressed message of magic 0 or 1 does not say its first offset: it is taken to begin after
    the sound batch before it. Raises: OSError, SegproofError.
    """
    reached = base - 1
    for table in _sound_tables(path, files):
        if not len(table):
            continue
        lasts = table["last_offset"]
        after = np.concatenate(([reached], lasts[:-1])) + 1
        yield np.where(state_first_offset(table), first_offsets(table), after), lasts
        reached = int(lasts[-1])


def _sound_tables(path: str, files: Files) -> Iterator[BatchTable]:
    """Yield the batches with right checksums. From the first damage on they are searched for."""
    with closing(files.open(path)) as file:
        size = file.size()
        scan = BatchScan(file, 0, size, deep=False)
        at: int | None = None
        for checked in scan:
            bad = np.flatnonzero(~checked.crc_valid)
            if len(bad):
                at = int(checked.table["position"][bad[0]])
                yield checked.table[: bad[0]]
                break
            yield checked.table
        at = scan.end_position if at is None else at
        if at < size:
            placed = _placed_from(path, files, at, size)
            yield from headers_of(file, placed.rows[placed.is_whole])


def _placed_from(path: str, files: Files, start: int, end: int | None = None) -> LogFates:
    """Return what the bytes [start, end) of a log hold, whose name may tell nothing."""
    open_log = partial(files.open, path)
    return place_log(LogSource(UNKNOWN_NAME, None, open_log, start=start, end=end))


def may_hide_records(path: str, files: Files) -> bool:
    """Return whether a log has damaged bytes other than zeros up to its end, or can't be read.

    Records in them are not compared with those of other logs.
    """
    try:
        placed = _placed_from(path, files, 0)
    except (OSError, SegproofError):
        return True
    zeros_from = placed.log.zeros_from
    expected = [(0, zeros_from)] if zeros_from else []
    return byte_ranges_of(placed.rows[placed.is_whole]) != expected


def batches_in(path: str, files: Files) -> Iterator[BatchTable]:
    """Yield the batches of a log, also those with wrong checksums, and none that is empty.

    After a broken frame the sound batches are searched for. Raises: OSError, SegproofError.
    """
    with closing(files.open(path)) as file:
        size = file.size()
        scan = BatchScan(file, 0, size, deep=False)
        yield from (table for table in scan.tables() if len(table))
        if scan.end_position < size:
            placed = _placed_from(path, files, scan.end_position, size)
            is_there = placed.is_whole & (placed.is_sound | ~placed.rows["is_loadable"])
            yield from headers_of(file, placed.rows[is_there])


def end_of(path: str, base_offset: int, files: Files) -> int | None:
    """Return the offset after the last batch of a log, at least its base; None if unreadable."""
    end = base_offset + 1
    try:
        for table in batches_in(path, files):
            end = max(end, int(table["last_offset"].max()) + 1)
    except (OSError, SegproofError):
        return None
    return end


def sound_end_of(path: str, base_offset: int, files: Files) -> int:
    """Return the offset after the last batch before a log's first damage; its base without any."""
    found = _read(path, base_offset, files)
    return base_offset if found is None else found.sound_end


def damage_in(path: str, files: Files) -> int | None:
    """Return the byte of the first damage in a log, None without any. Raises: OSError."""
    with closing(files.open(path)) as file:
        size = file.size()
        scan = BatchScan(file, 0, size, deep=False)
        for checked in scan:
            bad = np.flatnonzero(~checked.crc_valid)
            if len(bad):
                return int(checked.table["position"][bad[0]])
        return scan.end_position if scan.end_position < size else None


def bases_of(kinds: Mapping[str, FileName]) -> list[int]:
    """Return the base offsets of the logs, sorted."""
    return sorted(
        known.base_offset
        for known in kinds.values()
        if known.kind is NameKind.SEGMENT and known.suffix == ".log"
    )
