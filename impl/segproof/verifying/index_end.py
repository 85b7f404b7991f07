# SPDX-License-Identifier: Apache-2.0
"""Whether an offset index goes on as far as its log, or was emptied or cut short.

Entries that are whole and right say nothing of those that are gone. What tells is the log behind
the last one: how much of it a broker leaves without an entry, and the entries that the time index
got meanwhile.

Upstream: Kafka since 0.11.0: LogSegment.append writes both indexes, LogSegment.recover too.
Laws: DISK-24.
"""

import numpy as np

from segproof.verifying.index_checks import IndexStream
from segproof.verifying.log_checks import Block
from segproof.verifying.reporting import Reporter

__all__ = ["IndexEndCheck"]

STRETCH_BYTES = 16 << 20
"""What a log may hold behind the last entry; one append has about 1 MiB."""
TIMED_STRETCH_BYTES = 64 << 10
"""The same, where the time index has more than TIMED_ENTRIES entries for it."""
TIMED_ENTRIES = 8
GAPS = 8
"""Distances between entries that a log may go on without one more."""


class IndexEndCheck:
    """Goes beside the log and judges, at its end, where the offset index ends.

    `known_bytes` is how far the log went before its indexes were read: of what a broker appended
    since, they say nothing yet. `offsets` was checked; `times` is None where it can't be read.
    """

    def __init__(
        self, offsets: IndexStream, times: IndexStream | None, known_bytes: int, reporter: Reporter
    ) -> None:
        self._offsets = offsets
        self._times = times
        self._known_bytes = known_bytes
        self._reporter = reporter
        self._position = 0
        self._reach = -1

    def check(self, block: Block) -> None:
        """Take in where the last batch of the block begins."""
        rows = int(np.searchsorted(block.table["position"], self._known_bytes))
        if rows:
            self._position = int(block.table["position"][rows - 1])
            self._reach = int(block.reach[rows - 1])

    def finish(self) -> None:
        """Judge the index, once the log is read. Raises: OSError."""
        offsets = self._offsets
        stretch = self._position - offsets.last_position
        if stretch <= TIMED_STRETCH_BYTES:
            return
        allowed = max(STRETCH_BYTES, GAPS * offsets.widest_gap)
        timed = self._timed()
        also = ""
        if timed > TIMED_ENTRIES:
            allowed = TIMED_STRETCH_BYTES
            also = f", while {timed} entries of the time index are for offsets there"
        if stretch <= allowed:
            return
        count = offsets.count
        last = f"its last of {count} entries points at byte {offsets.last_position}"
        self._reporter.add(
            "DISK-24",
            offsets.path,
            f"{last if count else 'it has no entry'}, and the log goes on for {stretch} bytes to a"
            f" batch at byte {self._position}{also}: the index was emptied or cut short",
            position=count * offsets.form.entry_size,
            expected=allowed,
            actual=stretch,
        )

    def _timed(self) -> int:
        """Return how many entries of the time index are for offsets behind the last entry."""
        if self._times is None:
            return 0
        count = 0
        for _, block in self._times.blocks():
            distances = block["offset"].astype(np.int64)
            is_there = (distances > self._offsets.last_offset) & (distances <= self._reach)
            count += int(np.count_nonzero(is_there))
        return count
