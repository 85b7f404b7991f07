# SPDX-License-Identifier: Apache-2.0
"""Store times of a new commit log that stay as they are when the log is judged again.

Where one time was impossible, the likely one may make that of a neighbour impossible too. So the
new log is judged again until no time changes. Messages that fill gaps have the time of the message
behind them. They are judged by `verify`, and left out by the next salvage: the times hold for both.

Laws: RMQDISK-40.
"""

from contextlib import closing
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files
from segproof.layouts.rocketmq import MESSAGE
from segproof.reading.index_times import IndexTimes
from segproof.reading.store_times import Bounds, TimesAround, likely_times
from segproof.rocketmq.commit_log import STORE_TIME_V4, STORE_TIME_V6, CommitLog
from segproof.rocketmq.message import BORN_HOST_V6, ROLLED_BACK
from segproof.stretches.rocketmq.candidates import is_filler
from segproof.stretches.rocketmq.message_blocks import LogReader, MessageBlock

ROUNDS_MAX = 16
"""So many times a log is judged at most; few rounds change anything."""


class _Judged(NamedTuple):
    """Some messages of the log whose times are judged."""

    block: MessageBlock
    are_fillers: NDArray[np.bool_]


def settle_times(log: CommitLog, old_index: str, files: Files) -> set[int]:
    """Put likely store times into a new log until none changes; return where messages got one.

    `old_index` is the folder of the old index, whose entries tell times too. Cost: the log is read
    three times in each round. Raises: OSError.
    """
    places: set[int] = set()
    for _ in range(ROUNDS_MAX):
        changed: set[int] = set()
        for with_fillers in (False, True):
            changed |= _round(log, IndexTimes(old_index, files), files, with_fillers=with_fillers)
            _follow(log, files)
        if not changed:
            break
        places |= changed
    return places


def _round(log: CommitLog, told: IndexTimes, files: Files, *, with_fillers: bool) -> set[int]:
    """Judge all times once; return the places of the messages that got another one."""
    writes: dict[int, int] = {}
    changed: set[int] = set()

    def judge(one: _Judged, around: Bounds) -> None:
        block = one.block
        bounds = told.told(block.lies_at)
        likely = likely_times(block.store_timestamps, block.born_timestamps, around, bounds)
        for row in np.flatnonzero((likely != block.store_timestamps) & ~one.are_fillers).tolist():
            is_v6 = bool(block.flags[row] & BORN_HOST_V6)
            place = int(block.lies_at[row])
            writes[place + (STORE_TIME_V6 if is_v6 else STORE_TIME_V4)] = int(likely[row])
            changed.add(place)

    times = TimesAround[_Judged]()
    for block in LogReader(log, files).blocks():
        fillers = _fillers_of(block)
        kept = np.ones(len(fillers), np.bool_) if with_fillers else ~fillers
        if kept.any():
            one = _Judged(block._replace(rows=block.rows[kept].copy()), fillers[kept])
            for waiting, around in times.add(one, one.block.store_timestamps):
                judge(waiting, around)
    for waiting, around in times.finish():
        judge(waiting, around)
    _write(log, writes, files)
    return changed


def _fillers_of(block: MessageBlock) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = block.flags & ROLLED_BACK == ROLLED_BACK
    for row in np.flatnonzero(found).tolist():
        found[row] = is_filler(block.message(row))
    return found


def _follow(log: CommitLog, files: Files) -> None:
    """Give each filler the time of the message behind it."""
    writes: dict[int, int] = {}
    waiting: list[int] = []
    for block in LogReader(log, files).blocks():
        fillers, times = _fillers_of(block), block.store_timestamps
        for row, place in enumerate(block.lies_at.tolist()):
            if fillers[row]:
                waiting.append(place)
                continue
            born_at = MESSAGE["born_timestamp"].place
            for filler in waiting:
                writes[filler + born_at] = writes[filler + STORE_TIME_V4] = int(times[row])
            waiting.clear()
    _write(log, writes, files)


def _write(log: CommitLog, writes: dict[int, int], files: Files) -> None:
    """Write times at offsets of the log, durably."""
    for one in log.log_files:
        end = one.start + one.size_bytes
        own = {at: time for at, time in writes.items() if one.start <= at < end}
        if own:
            with closing(files.open(one.path, writable=True)) as file:
                for at, time in own.items():
                    file.pwrite(time.to_bytes(8, "big", signed=True), at - one.start)
                file.sync()
