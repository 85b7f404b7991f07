# SPDX-License-Identifier: Apache-2.0
"""Batches whose timestamps are no milliseconds: a producer wrote another unit.

Microseconds and nanoseconds, read as milliseconds, lie beyond the year 9999, which is the last one
of four digits. Event times of any calendar lie before. Seconds, read as milliseconds, lie in the
first weeks of 1970. They are told only where nothing in the log has a time between these weeks and
2001, in which timestamps in milliseconds got their thirteenth digit: historical event times would.

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
from segproof.verifying.rules import declare

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


class TimestampCheck(LogCheck):
    """Judges the largest timestamp of each sound batch of one segment."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._beyond = _Found()
        self._seconds = _Found()
        self._has_history = False

    def check(self, block: Block) -> None:
        """Take in one block."""
        times = np.where(block.crc_valid, block.table["max_timestamp"], -1)
        largest = int(times.max(initial=-1))
        if largest > LAST_MS:
            self._beyond.take(block, times, times > LAST_MS)
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


class _Found:
    """The batches of one kind: how many, and the first one."""

    def __init__(self) -> None:
        self.count = 0
        self.first = self.position = -1

    def take(self, block: Block, times: np.ndarray, where: np.ndarray) -> None:
        """Take the batches of a block that `where` selects."""
        rows = np.flatnonzero(where)
        if not self.count:
            self.first, self.position = int(times[rows[0]]), int(block.table["position"][rows[0]])
        self.count += len(rows)
