# SPDX-License-Identifier: Apache-2.0
"""Batches whose timestamps are no milliseconds, or no time at all.

Microseconds and nanoseconds, read as milliseconds, lie beyond the year 9999, which is the last one
of four digits. Event times of any calendar lie before. Seconds, read as milliseconds, lie in the
first weeks of 1970. They are told only where nothing in the log has a time between these weeks and
2001, in which timestamps in milliseconds got their thirteenth digit: historical event times would.

A producer may set any time, so a time with a digit too many (from the year 2286 on) is a note, and
a warning only beside usual times. So 0 is a note. No producer of Kafka's writes a negative one
other than -1, which stands for no timestamp.

Upstream: Kafka 4.3.1: LogValidator (message.timestamp.after.max.ms, one hour since 4.0, without a
    bound before), UnifiedLog.deleteRetentionMsBreachedSegments, LogSegment.findOffsetByTimestamp.
Laws: DISK-57.
Not covered: single records among others in one batch, but for the largest timestamp.
"""

import numpy as np

from segproof.counts import plural
from segproof.findings import Severity, time_text
from segproof.hints import reads
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.wording.rules import declare

OTHER_UNIT = (
    "find the producer that writes another unit than milliseconds. Where"
    " message.timestamp.after.max.ms of the topic is some hours (up to 3.5:"
    " message.timestamp.difference.max.ms), a broker refuses such records"
)
declare("record-batch", Severity.WARNING, reads(OTHER_UNIT), "DISK-57")

LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""
NANOSECONDS_FROM = 10**17
"""As nanoseconds, in 1973; as microseconds, in the year 5138."""
SECONDS_FROM, SECONDS_TO = 10**9, 42 * 10**8
"""As seconds, from 2001 to 2103; as milliseconds, from 12 January to 18 February of 1970."""
HISTORY_TO = 10**12
"""As milliseconds, in September of 2001."""
FUTURE_FROM = 10**13
"""As milliseconds, in November of 2286: with fourteen digits."""


class TimestampCheck(LogCheck):
    """Judges the largest timestamp of each sound batch of one segment."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._beyond = _Found()
        self._seconds = _Found()
        self._negative, self._zero, self._future = _Found(), _Found(), _Found()
        self._has_history = self._has_usual = False

    def check(self, block: Block) -> None:
        """Take in one block."""
        times = np.where(block.crc_valid, block.table["max_timestamp"], -1)
        largest = int(times.max(initial=-1))
        if largest > LAST_MS:
            self._beyond.take(block, times, times > LAST_MS)
        if largest >= FUTURE_FROM:
            self._future.take(block, times, (times >= FUTURE_FROM) & (times <= LAST_MS))
        smallest = np.where(block.crc_valid, block.table["base_timestamp"], -1)
        smallest = np.minimum(times, smallest)
        if int(smallest.min(initial=-1)) < -1:
            self._negative.take(block, smallest, smallest < -1)
        self._zero.take(block, times, times == 0)
        self._has_usual |= bool(((times >= HISTORY_TO) & (times < FUTURE_FROM)).any())
        is_second = (times >= SECONDS_FROM) & (times < SECONDS_TO)
        if is_second.any():
            self._seconds.take(block, times, is_second)
        self._has_history |= bool(((times >= SECONDS_TO) & (times < HISTORY_TO)).any())

    def finish(self) -> None:
        """Report each unit once."""
        beyond, seconds = self._beyond, self._seconds
        if beyond.count:
            unit, scale = "microseconds", 1000
            if beyond.first >= NANOSECONDS_FROM:
                unit, scale = "nanoseconds", 10**6
            self._report.add(
                "DISK-57",
                f"{plural(beyond.count, 'batch', 'has a timestamp', 'have timestamps')}"
                f" beyond the year 9999, the first {beyond.first}: as {unit} it is"
                f" {time_text(beyond.first // scale)}. Retention by time removes neither this"
                " segment nor a later one, and a search for any later time ends here",
                position=beyond.position,
                expected=f"at most {LAST_MS}",
                actual=beyond.first,
            )
        self._report_odd()
        if seconds.count and not self._has_history:
            self._report.add(
                "DISK-57",
                f"{plural(seconds.count, 'batch', 'has a timestamp', 'have timestamps')}"
                f" of early 1970, the first {seconds.first}: as seconds it is"
                f" {time_text(seconds.first * 1000)}. Retention by time removes the segment at once"
                " if no other batch is younger, and a search by time passes these records over",
                position=seconds.position,
                expected=f"{SECONDS_TO} or more",
                actual=seconds.first,
            )

    def _report_odd(self) -> None:
        """Report times that no unit explains."""
        negative, zero, future = self._negative, self._zero, self._future
        if negative.count:
            self._report.add(
                "DISK-57",
                f"{_batches(negative.count)} below 0, the first {negative.first}, and -1 alone"
                f" stands for none: no producer of Kafka's writes it.{LOOKS_OLD}",
                position=negative.position,
                expected="-1 or more",
                actual=negative.first,
                hint=NO_TIME,
            )
        if zero.count:
            self._report.add(
                "DISK-57",
                f"{_batches(zero.count)} 0, the begin of 1970, as where a producer sets none."
                f"{LOOKS_OLD}",
                position=zero.position,
                expected="not 0",
                actual=0,
                severity=Severity.NOTE,
                hint=NO_TIME,
            )
        if future.count:
            self._report.add(
                "DISK-57",
                f"{_batches(future.count)} of the year 2286 or later, the first {future.first}"
                f" ({time_text(future.first)}); with one digit less it is"
                f" {time_text(future.first // 10)}. Retention by time does not remove this segment"
                " before, nor a later one, and a search for any later time ends here",
                position=future.position,
                expected=f"less than {FUTURE_FROM}",
                actual=future.first,
                severity=None if self._has_usual else Severity.NOTE,
            )


LOOKS_OLD = (
    " Retention by time removes the segment at once if no other batch is younger, and a search by"
    " time passes these records over"
)
NO_TIME = reads(
    "find the producer that sets this time. Where message.timestamp.before.max.ms of the topic is"
    " set, a broker from 3.6 on refuses such records; LogAppendTime as message.timestamp.type takes"
    " the broker's clock"
)


def _batches(count: int) -> str:
    return plural(count, "batch", "has a timestamp", "have timestamps")


class _Found:
    """The batches of one kind: how many, and the first one."""

    def __init__(self) -> None:
        self.count = 0
        self.first = self.position = -1

    def take(self, block: Block, times: np.ndarray, where: np.ndarray) -> None:
        """Take the batches of a block that `where` selects."""
        rows = np.flatnonzero(where)
        if not len(rows):
            return
        if not self.count:
            self.first, self.position = int(times[rows[0]]), int(block.table["position"][rows[0]])
        self.count += len(rows)
