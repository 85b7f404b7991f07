# SPDX-License-Identifier: Apache-2.0
"""Checks of the entries of one index file in the order of the file, block by block.

Laws: RMQDISK-7, RMQDISK-10, RMQDISK-13 to RMQDISK-15.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.findings import Severity
from segproof.rocketmq.index_table import ENTRY_BYTES, Geometry, StoredHeader
from segproof.verifying.reporting import Described, Reporter
from segproof.verifying.rules import REMAKE_INDEX, declare

__all__ = ["RowChecks", "stored_difference"]

declare("index-file", Severity.WARNING,
    "RocketMQ does not look there; find out what wrote it", "RMQDISK-7")  # fmt: skip
declare("index-file", Severity.NOTE,
    "ask with a later end where a message is not found by its time; a store with its commit log"
    " tells whether the entry is right (RMQDISK-32)", "RMQDISK-14")  # fmt: skip
declare("index-file", Severity.ERROR, REMAKE_INDEX, "RMQDISK-15")

INT32_MAX = (1 << 31) - 1
INT64 = 1 << 64
CLOCK_SECONDS = 20 * 366 * 86_400
"""A clock can be off by years before it is put right; damage that flips a high bit is further."""


def stored_difference(begin_timestamp: int, store_timestamp: int) -> int:
    """Return the seconds that an entry has for a message, by the begin timestamp of its file.

    Laws: RMQIDX-21.
    """
    if begin_timestamp <= 0:
        return 0
    distance = (store_timestamp - begin_timestamp + INT64 // 2) % INT64 - INT64 // 2
    return max(0, min(distance // 1000, INT32_MAX))


class RowChecks:
    """Carries from block to block what the next one is compared with."""

    def __init__(
        self, path: str, geometry: Geometry, header: StoredHeader, reporter: Reporter
    ) -> None:
        self._path = path
        self._geometry = geometry
        self._header = header
        self._reporter = reporter
        self._offset = 0
        self.is_ordered = True
        """Whether no offset was below the one before."""
        self.slots: NDArray[np.int32] = np.zeros(0, np.int32)
        """The slot of each entry of the last block; -1 for an entry without a lawful hash."""

    def check(self, first: int, block: NDArray[Any]) -> None:
        """Judge one block, which begins with entry `first`; sets `slots`."""
        hashes = block["key_hash"].astype(np.int32)
        offsets = block["phy_offset"].astype(np.int64)
        differences = block["time_diff"].astype(np.int32)
        self.slots = np.where(hashes < 0, -1, hashes % np.int32(self._geometry.hash_slot_num))
        skip = 0
        if first == 0:
            self._first(block[0])
            self.slots[0] = -1
            skip = 1
        place = self._geometry.position_of(first + skip)
        self._values("RMQDISK-10", place, hashes[skip:], "the key hash {} is below 0")
        self._values("RMQDISK-13", place, differences[skip:], "the time difference {} is below 0")
        self._offsets(place, offsets[skip:])
        self._times(first + skip, differences[skip:])

    def _first(self, entry: Any) -> None:
        if entry.tobytes().strip(b"\0"):
            self._reporter.at(self._path).add(
                "RMQDISK-7",
                "entry 0 is not zero; no put writes there, since 0 means none",
                position=self._geometry.position_of(0),
                expected=0,
            )

    def _values(self, law: str, place: int, values: NDArray[np.int32], words: str) -> None:
        wrong = np.flatnonzero(values < 0)
        if len(wrong):
            self._reporter.at(self._path).add_values(
                law,
                wrong * ENTRY_BYTES + place,
                values[wrong].astype(np.int64),
                words,
                "0 to 2147483647",
            )

    def _offsets(self, place: int, offsets: NDArray[np.int64]) -> None:
        """Report offsets below the one before, and below 0."""
        if not len(offsets):
            return
        before = np.empty_like(offsets)
        before[0], before[1:] = self._offset, offsets[:-1]
        wrong = np.flatnonzero(offsets < np.maximum(before, 0))

        def describe(row: int) -> Described:
            at = wrong[row]
            return Described(
                f"the offset {int(offsets[at])} lies before {max(0, int(before[at]))}, that of the"
                " entry before, or the log's begin",
                f"{max(0, int(before[at]))} or more",
                int(offsets[at]),
            )

        self.is_ordered &= not len(wrong)
        self._reporter.at(self._path).add_rows("RMQDISK-15", wrong * ENTRY_BYTES + place, describe)
        self._offset = int(offsets[-1])

    def _times(self, first: int, differences: NDArray[np.int32]) -> None:
        """Report entries that read later than the last one; the first may, where files follow."""
        header = self._header
        if first <= 1:
            first, differences = first + 1, differences[1:]
        room = (header.end_timestamp - header.begin_timestamp) // 1000
        is_late = differences > max(-1, min(room, INT32_MAX))
        if header.begin_timestamp <= 0:
            return
        is_far = differences.astype(np.int64) > room + CLOCK_SECONDS
        self._late(first, differences, room, is_late & ~is_far, Severity.NOTE)
        self._late(first, differences, room, is_late & is_far, Severity.WARNING)

    def _late(
        self,
        first: int,
        differences: NDArray[np.int32],
        room: int,
        is_late: NDArray[np.bool_],
        severity: Severity,
    ) -> None:
        late = np.flatnonzero(is_late)
        words = "the broker's clock went back"
        if severity is Severity.WARNING:
            words += " by more than 20 years, or the entry or the header is damaged"

        def describe(row: int) -> Described:
            seconds = int(differences[late[row]])
            return Described(
                f"the entry reads as {seconds} s behind the begin timestamp, later than the last"
                f" message of the file ({room} s): {words}",
                f"at most {room}",
                seconds,
            )

        positions = late * ENTRY_BYTES + self._geometry.position_of(first)
        self._reporter.at(self._path).add_rows("RMQDISK-14", positions, describe, severity=severity)
