# SPDX-License-Identifier: Apache-2.0
"""Markers that a log lacks, as its transaction index shows.

An entry names the marker of an aborted transaction. And where it begins after the first batch of
the transaction, as the log has it, another transaction of the producer had ended before. Where the
log lacks offsets there, they held the marker: the entry is right, and the log is not.

Upstream: Kafka 4.3.1: ProducerStateManager, TransactionIndex.
Laws: DISK-74.
"""

import numpy as np
from numpy.typing import NDArray

from segproof.files import ReadOnlyFile
from segproof.findings import Severity
from segproof.hints import reads
from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL, read_batch_headers
from segproof.wording.reporting import PathReporter
from segproof.wording.rules import declare

declare("log-segment", Severity.WARNING,
    reads("compare with another replica, which may have the marker. The transaction index alone"
    " says which records are aborted: a broker that recovers the log after a crash knows only the"
    " log"),
    "DISK-74")  # fmt: skip

LOOKED_AT = 1024
"""Entries of one log without their marker that are looked at; more of them are of another log."""


class LostMarkers:
    """Tells whether offsets that a log lacks held the marker of a transaction.

    The headers of the log are read when they are first asked for: where an entry does not fit.
    """

    def __init__(self, file: ReadOnlyFile, report: PathReporter) -> None:
        self._file, self._report = file, report
        self._damaged: list[int] = []
        self._rows: NDArray[np.void] | None = None
        self._first = self._last = np.empty(0, np.int64)
        """The offsets that no sound batch has, between two of them, gap by gap; both inclusive."""
        self._begin = self._end = 0
        """The first offset that the log has, and the offset after its last one."""

    def take_damaged(self, base_offset: int) -> None:
        """Take note of a batch with a wrong checksum, which counts as missing."""
        self._damaged.append(base_offset)

    def is_lost(self, producer_id: int, first: int, last: int) -> bool:
        """Return whether the log lacks the offset of a marker, and has a batch of its transaction.

        A transaction that begins before the log may have its batches there.
        """
        rows = self._read()
        begins = rows["base_offset"]
        is_own = (rows["producer_id"] == producer_id) & (begins >= first) & (begins < last)
        return self._is_missing(last) and (first < self._begin or bool(is_own.any()))

    def is_end_lost(self, producer_id: int, begin: int, following: int) -> bool:
        """Return whether a transaction may have ended between its begin and the next one's."""
        rows = self._read()
        at = int(np.searchsorted(self._first, begin, side="right"))
        if at == len(self._first) or self._first[at] > following:
            return False  # no offset is missing between
        is_begin = (rows["producer_id"] == producer_id) & (rows["base_offset"] == following)
        return bool(is_begin.any()) or self._is_missing(following)

    def report_marker(self, producer_id: int, first: int, last: int) -> None:
        """Report the lost marker that an entry names."""
        self._report.add(
            "DISK-74",
            f"the end of the transaction of producer {producer_id} that begins at offset {first} is"
            f" lost, at offset {last}: by the transaction index it was aborted. Readers of"
            " committed data do not get its records, and may pass over records that this producer"
            " committed after it",
            expected=f"an ABORT marker at offset {last}",
            actual="none",
        )

    def report_end(self, producer_id: int, begin: int, following: int) -> None:
        """Report the lost marker before a transaction that an entry shows."""
        self._report.add(
            "DISK-74",
            f"the end of the transaction of producer {producer_id} that begins at offset {begin} is"
            f" lost: by the transaction index another one begins at offset {following}, and offsets"
            " are missing between. By the log both are one: where the index is made new by it,"
            " readers of committed data lose the records of the first, if it was committed",
            expected=f"a marker between the offsets {begin} and {following}",
            actual="none",
        )

    def _read(self) -> NDArray[np.void]:
        if self._rows is None:
            table = read_batch_headers(self._file).table
            table = table[~np.isin(table["base_offset"], self._damaged)]
            ends, begins = table["last_offset"][:-1] + 1, table["base_offset"][1:] - 1
            self._first, self._last = ends[ends <= begins], begins[ends <= begins]
            if len(table):
                self._begin = int(table["base_offset"][0])
                self._end = int(table["last_offset"][-1]) + 1
            bits = table["attributes"]
            is_data = (bits & TRANSACTIONAL != 0) & (bits & CONTROL == 0) & (table["magic"] == 2)
            self._rows = table[is_data]
        return self._rows

    def _is_missing(self, offset: int) -> bool:
        if not self._begin <= offset < self._end:
            return True
        at = int(np.searchsorted(self._first, offset, side="right")) - 1
        return at >= 0 and offset <= self._last[at]
