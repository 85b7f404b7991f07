# SPDX-License-Identifier: Apache-2.0
"""Transactions that were open where a segment is gone, whose end may be among what is lost.

To a broker that reads the log such a transaction goes on, up to the next marker of its producer.
Where that one begins to send after the gap, its marker may have been in it.

Laws: DISK-74.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from segproof.hints import reads
from segproof.verifying.segment_carry import TransactionCarry
from segproof.wording.reporting import Reporter

HINT = reads(
    "compare with another replica, which may have the marker, or decide by what the application of"
    " the producer knows, before a broker serves this partition"
)


class LogEnd(NamedTuple):
    """The end of a log that offsets are missing behind."""

    path: str
    position: int
    first_missing: int
    last_missing: int


class _Open(NamedTuple):
    """A transaction that was open there."""

    first: int
    end: LogEnd


class OpenAtGaps:
    """Follows what was open at each gap between logs, up to where its producer goes on."""

    def __init__(self, directory: str, reporter: Reporter) -> None:
        self._directory, self._reporter = directory, reporter
        self._waiting: dict[int, _Open] = {}
        self._found: list[tuple[int, _Open, int | None]] = []
        """Producer id, what was open, and where another one begins by a transaction index."""
        self.told: set[tuple[int, int]] = set()
        """Producer id and first offset of those that another finding tells of."""

    def take_gap(self, end: LogEnd, is_open: Mapping[int, int]) -> None:
        """Take a gap behind a log, and the first offset of what is open there by producer."""
        for producer_id, first in is_open.items():
            self._waiting.setdefault(producer_id, _Open(first, end))

    def take(self, carry: TransactionCarry) -> None:
        """Take what the next log says."""
        self.told |= carry.lost
        for producer_id in self._waiting.keys() & (carry.closed | carry.opened.keys()):
            one, begin = self._waiting.pop(producer_id), carry.begins.get(producer_id)
            if begin is not None and begin <= one.first:
                continue  # it goes on
            if begin is not None or producer_id not in carry.ended:
                self._found.append((producer_id, one, begin))

    def report(self, lost: Collection[str]) -> None:
        """Report those whose marker may be lost: the logs `lost` lack offsets at their ends."""
        for producer_id, one, begin in self._found:
            end = one.end
            is_told = (producer_id, one.first) in self.told
            if is_told or (begin is None and end.path not in lost):
                continue
            where = f"{end.first_missing} to {end.last_missing}"
            verb, words = "may be", "it may have ended there, committed or aborted"
            if begin is not None:
                verb, words = "is", f"by the transaction index another one begins at offset {begin}"
            self._reporter.at(end.path, shown_by=self._directory).add(
                "DISK-74",
                f"the end of the transaction of producer {producer_id} that begins at offset"
                f" {one.first} {verb} lost, at an offset from {where}: {words}. By the log it goes"
                " on up to the next marker of this producer",
                position=end.position,
                expected=f"a marker at an offset from {where}",
                actual="none",
                hint=HINT,
            )
