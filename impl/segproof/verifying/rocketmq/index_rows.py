# SPDX-License-Identifier: Apache-2.0
"""Checks of the entries of one index file in the order of the file, block by block.

Laws: RMQDISK-7, RMQDISK-10, RMQDISK-13 to RMQDISK-15.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.findings import Severity
from segproof.rocketmq.index_table import ENTRY_BYTES, Geometry, StoredHeader
from segproof.verifying.reporting import Reporter
from segproof.verifying.rows import Int64Array, shifted
from segproof.verifying.rules import REMAKE_INDEX, declare

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
        self._report = reporter.at(path)
        self._geometry = geometry
        self._header = header
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
        self._values("RMQDISK-10", place, hashes[skip:], "key hash")
        self._values("RMQDISK-13", place, differences[skip:], "time difference")
        self._offsets(place, offsets[skip:])
        self._times(first + skip, differences[skip:])

    def _first(self, entry: Any) -> None:
        if entry.tobytes().strip(b"\0"):
            self._report.add(
                "RMQDISK-7",
                "entry 0 is not zero; no put writes there, since 0 means none",
                position=self._geometry.position_of(0),
                expected=0,
            )

    def _values(self, law: str, place: int, values: NDArray[np.int32], name: str) -> None:
        words, expected = f"the {name} {{value}} is below 0", "0 to 2147483647"
        place_of = (place, ENTRY_BYTES)
        self._report.add_where(law, values < 0, place_of, words, expected, values, value=values)

    def _offsets(self, place: int, offsets: Int64Array) -> None:
        """Report offsets below the one before, and below 0."""
        if not len(offsets):
            return
        least = np.maximum(shifted(offsets, self._offset), 0)
        is_wrong = offsets < least
        self._report.add_where(
            "RMQDISK-15",
            is_wrong,
            (place, ENTRY_BYTES),
            "the offset {offset} lies before {least}, that of the entry before, or the log's begin",
            "{least} or more",
            offsets,
            offset=offsets,
            least=least,
        )
        self.is_ordered &= not is_wrong.any()
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
        damaged = " by more than 20 years, or the entry or the header is damaged"
        for severity, where, more in (
            (Severity.NOTE, is_late & ~is_far, ""),
            (Severity.WARNING, is_late & is_far, damaged),
        ):
            self._report.add_where(
                "RMQDISK-14",
                where,
                (self._geometry.position_of(first), ENTRY_BYTES),
                "the entry reads as {seconds} s behind the begin timestamp, later than the last"
                f" message of the file ({room} s): the broker's clock went back{more}",
                f"at most {room}",
                differences,
                severity=severity,
                seconds=differences,
            )
