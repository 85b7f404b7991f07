# SPDX-License-Identifier: Apache-2.0
"""What the files of timers say of each other: `timerlog`, `timerwheel` and `config/timercheck`.

Upstream: RocketMQ 5.3.3: TimerCheckpoint, TimerWheel, Slot, TimerMessageStore.recover.
Layout: `config/timercheck`: TIMER_CHECK of layouts/rocketmq.py; a broker reads missing bytes as
zeros. `timerwheel`: slots: TIMER_SLOT.
Laws: RMQDISK-45.
Not covered: timers that are kept in RocksDB.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.counts import plural
from segproof.files import Files, status_of
from segproof.integers import INT64_MAX
from segproof.layouts.rocketmq import TIMER_CHECK, TIMER_SLOT
from segproof.reading.config_file import CONFIG
from segproof.reading.folder_names import names_of
from segproof.reading.timer_log import (
    ENTRY_BYTES,
    TIMER_LOG,
    ends_blank,
    first_byte_after,
    other_length,
    timer_entries,
    usual_length,
)
from segproof.rocketmq.commit_log import LogFile, named_offset

__all__ = ["TimerFault", "TimerState", "damaged_files", "read_timer_state", "timer_faults"]

WHEEL_BYTES_MAX: Final = 1 << 28
"""A larger wheel is not read: the usual one has 38 707 200 bytes."""
BLOCK_SLOTS: Final = 1 << 16
TIME_UNIT: Final = 1000
"""Milliseconds of the usual unit of a slot's time."""
WHEEL_SNAPSHOT = re.compile(r"timerwheel\.[0-9]+")


class TimerFault(NamedTuple):
    """One thing that the files of timers show to be lost."""

    name: str
    """The file below the store."""
    words: str
    expected: int | None
    actual: int | None


@dataclass(slots=True)
class TimerState:
    """What the files of timers of a store say."""

    read_to: int = 0
    """The time up to which timers were delivered; 0 if nothing tells."""
    flushed: int = 0
    """The end of the timer log as timercheck knows it."""
    queue_offset: int = 0
    has_check: bool = False
    """Whether there is a timercheck file that has another byte than zero."""
    end: int = 0
    """The first position at which the timer log lacks an entry."""
    has_files: bool = False
    first: int = 0
    """Where the first file of the timer log begins."""
    pending: int = 0
    """The number of entries before the end of timercheck whose time has not come."""
    leads: bool = False
    """Whether a slot of the wheel leads to one of them."""
    lasts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Where the slots of the wheel lead whose time has not come, in order."""
    waiting: int = 0
    """The number of messages that these slots count."""
    is_wheel_read: bool = True
    has_wheel: bool = False
    has_entries: bool = False
    ends: dict[LogFile, int] = field(default_factory=dict)
    """For each file of the timer log how many bytes its entries take."""
    beyond: int = 0
    """The number of entries that lead beyond the end of the commit log, if that was given."""


def _log_files_of_timers(store: str, files: Files) -> list[LogFile]:
    """Return the files of the timer log, in the order of their positions. Raises: OSError."""
    folder, found = posixpath.join(store, TIMER_LOG), []
    for name in names_of(folder, files):
        path, start = posixpath.join(folder, name), named_offset(name)
        status = status_of(files, path)
        if start is not None and status is not None and status.is_regular:
            found.append(LogFile(start, path, status.size_bytes))
    return sorted(found, key=lambda one: one.start)


def read_timer_state(store: str, files: Files, *, log_end: int = INT64_MAX) -> TimerState | None:
    """Return what the files of timers say; None for a store without one.

    `log_end` is the offset after the last message of the commit log. Raises: OSError.
    """
    names = names_of(store, files)
    check = posixpath.join(store, CONFIG, "timercheck")
    has_check = status_of(files, check) is not None
    if not has_check and not any(name.startswith("timer") for name in names):
        return None
    state = TimerState()
    if has_check:
        with closing(files.open(check)) as file:
            data = file.pread(TIMER_CHECK.size, 0).ljust(TIMER_CHECK.size, b"\0")
        state.read_to, state.flushed, state.queue_offset = TIMER_CHECK.struct().unpack(data)
        state.has_check = any(data)
    _read_wheel(state, store, names, files)
    _read_log(state, _log_files_of_timers(store, files), log_end, files)
    return state


def _read_log(state: TimerState, log_files: Sequence[LogFile], log_end: int, files: Files) -> None:
    """Take the entries of the timer log; `state.end` is the first position that lacks one.

    Memory: that of a block. The wheel was read before.
    """
    is_whole = True
    for one in log_files:
        if not state.has_files:
            state.first = state.end = one.start
        is_whole &= one.start == state.end
        state.has_files = True
        stop = 0
        for index, table in timer_entries(one, files):
            stop = index + len(table)
            times = table["written"].astype(np.int64) + table["delay"]
            waits = np.flatnonzero(times > state.read_to)
            _take_pending(state, one.start + (index + waits) * ENTRY_BYTES)
            state.beyond += int(np.count_nonzero(table["phy_offset"] >= log_end))
        state.ends[one] = stop * ENTRY_BYTES
        state.has_entries |= bool(stop)
        if not is_whole:
            continue
        is_full = ends_blank(one, stop * ENTRY_BYTES, files)
        state.end = one.start + (one.size_bytes if is_full else stop * ENTRY_BYTES)
        is_whole = state.end == one.start + one.size_bytes


def _take_pending(state: TimerState, positions: NDArray[np.int64]) -> None:
    """Count the entries at positions, whose time has not come."""
    if state.has_check:
        positions = positions[positions < state.flushed]
    state.pending += len(positions)
    if len(positions) and len(state.lasts) and not state.leads:
        found = np.searchsorted(state.lasts, positions).clip(max=len(state.lasts) - 1)
        state.leads = bool((state.lasts[found] == positions).any())


def _read_wheel(state: TimerState, store: str, names: Sequence[str], files: Files) -> None:
    if any(WHEEL_SNAPSHOT.fullmatch(name) for name in names):
        state.is_wheel_read = False  # a broker reads the newest of these
        return
    path = posixpath.join(store, "timerwheel")
    status = status_of(files, path)
    if status is None:
        return
    state.has_wheel = True
    if not status.is_regular or status.size_bytes > WHEEL_BYTES_MAX:
        state.is_wheel_read = False
        return
    lasts, count = np.empty(status.size_bytes // TIMER_SLOT.size, np.int64), 0
    for slots in _slots(path, len(lasts), files):
        waits = slots[(slots["time"] > state.read_to // TIME_UNIT) & (slots["last"] >= 0)]
        lasts[count : count + len(waits)] = waits["last"]
        count += len(waits)
        state.waiting += int(waits["count"].clip(0).sum(dtype=np.int64))
    state.lasts = lasts[:count]
    state.lasts.sort()


def _slots(path: str, count: int, files: Files) -> Iterator[NDArray[np.void]]:
    """Yield the slots of a wheel in blocks. Raises: OSError."""
    with closing(files.open(path)) as file:
        for first in range(0, count, BLOCK_SLOTS):
            length = min(BLOCK_SLOTS, count - first) * TIMER_SLOT.size
            data = file.pread(length, first * TIMER_SLOT.size)
            yield np.frombuffer(
                data[: len(data) // TIMER_SLOT.size * TIMER_SLOT.size], TIMER_SLOT.dtype
            )
            if len(data) < length:
                return


def timer_faults(state: TimerState) -> list[TimerFault]:
    """Return what the files show to be lost, each with what it costs."""
    found = []
    known = max(state.flushed, int(state.lasts[-1]) + ENTRY_BYTES if len(state.lasts) else 0)
    if known > state.end:
        found.append(_short_log(state, known))
    count = state.pending
    if count and state.is_wheel_read and not (state.leads or found):
        what = "no slot of it leads to any of them" if state.has_wheel else "it is not here"
        found.append(
            TimerFault(
                "timerwheel",
                f"the timer log has {plural(count, 'timer')} whose time has not come, and {what}: a"
                " broker makes the slots again from the last files of the timer log, and never"
                " delivers those that earlier files alone hold",
                None, count,
            )
        )  # fmt: skip
    if state.has_entries and not state.has_check:
        found.append(
            TimerFault(
                f"{CONFIG}/timercheck",
                "it is not here, or all its bytes are zero, and the timer log has entries: a broker"
                " reads the queue of timers again from its begin, and delivers messages twice",
                None, None,
            )
        )  # fmt: skip
    return found


def damaged_files(state: TimerState, files: Files) -> list[TimerFault]:
    """Return the files of the timer log that end a start, or that it cuts. Raises: OSError."""
    usual, found = usual_length(state.ends), []
    for one, end in state.ends.items():
        name = f"{TIMER_LOG}/{posixpath.basename(one.path)}"
        if words := other_length(one, usual):
            found.append(TimerFault(name, words, usual or None, one.size_bytes))
        elif first_byte_after(one, end, files) is not None:
            words = f"no entry begins at byte {end}, and bytes that are not zero follow"
            found.append(TimerFault(name, words, None, None))
    return found


def _short_log(state: TimerState, known: int) -> TimerFault:
    """Return the fault of a timer log that ends before the other files say."""
    witness = f"{CONFIG}/timercheck" if known == state.flushed else "timerwheel"
    what = f"it has no entry from position {state.end} on"
    what = what if state.has_files else "it has no file"
    count = state.waiting
    waits = f", and timerwheel counts {plural(count, 'message')} that wait" if count else ""
    cost = "a broker sets timers again from the message of the last entry on, and may pass over"
    cost += " others"
    if state.end == state.first:
        cost = f"a broker goes on with message {state.queue_offset} of the queue of timers, and"
        cost += " never delivers those before that waited"
    return TimerFault(
        TIMER_LOG,
        f"{what}, and {witness} knows of timers up to position {known}{waits}: {cost}",
        known, state.end,
    )  # fmt: skip
