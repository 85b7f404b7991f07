# SPDX-License-Identifier: Apache-2.0
"""What the files of timers of a store say of each other.

A slot of the wheel has the time, in seconds by default, the positions of its first and its last
entry in the timer log, and their number. `timercheck` has the time up to which timers were
delivered, and the end of the timer log.
"""

import re
import struct
from collections.abc import Mapping
from typing import NamedTuple

ENTRY = struct.Struct(">iqiqiqiiq")
SLOT = struct.Struct(">qqqii")
BLANK = bytes.fromhex("cbd43194")
LOG_NAME = re.compile(r"timerlog/([0-9]{20})")
SAVED_WHEEL = re.compile(r"timerwheel\.[0-9]+(?:/.*)?")


class Timer(NamedTuple):
    """An entry of the timer log."""

    position: int
    time: int
    """When its message is due, in milliseconds."""


class TimerFiles:
    """The timer log, the wheel and `timercheck` of a store."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        check = files.get("config/timercheck", b"")[:24].ljust(24, b"\0")
        self.read_to, self.flushed, _ = struct.unpack(">qqq", check)
        self.has_check = any(check)
        self.has_saved_wheel = any(SAVED_WHEEL.fullmatch(name) for name in files)
        self.timers: list[Timer] = []
        self.end = 0
        """The first position that lacks an entry."""
        starts = sorted(int(name[9:]) for name in files if LOG_NAME.fullmatch(name))
        self.end, is_whole = (starts[0] if starts else 0), True
        for start in starts:
            behind, is_full = self._take(start, files[f"timerlog/{start:020d}"])
            is_whole &= start == self.end
            self.end = behind if is_whole else self.end
            is_whole &= is_full
        wheel = files.get("timerwheel", b"")
        slots = SLOT.iter_unpack(wheel[: len(wheel) // SLOT.size * SLOT.size])
        waiting = [] if self.has_saved_wheel else slots
        self.lasts = {
            last for time, _, last, _, _ in waiting if time > self.read_to // 1000 and last >= 0
        }
        """Where the slots lead whose time has not come."""

    def _take(self, start: int, data: bytes) -> tuple[int, bool]:
        """Add the entries of a file; return where they end, and whether the file ends there."""
        position = 0
        while position + ENTRY.size <= len(data):
            size, _, magic, written, delay, *_ = ENTRY.unpack_from(data, position)
            if size != ENTRY.size or not 0 <= magic < 16:
                break
            self.timers.append(Timer(start + position, written + delay))
            position += ENTRY.size
        if data[position + 12 : position + 16] == BLANK:
            position = len(data)
        return start + position, position == len(data)

    def agree(self) -> bool:
        """Return whether nothing shows that a part of the files is lost."""
        known = max([self.flushed, *(last + ENTRY.size for last in self.lasts)])
        waiting = {
            one.position
            for one in self.timers
            if one.time > self.read_to and (one.position < self.flushed or not self.has_check)
        }
        is_led_to = self.has_saved_wheel or not waiting or not waiting.isdisjoint(self.lasts)
        return known <= self.end and is_led_to and (self.has_check or not self.timers)
