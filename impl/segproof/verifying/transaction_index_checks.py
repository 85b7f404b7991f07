# SPDX-License-Identifier: Apache-2.0
"""The transaction index file by itself.

Upstream: Kafka 4.3.1: TransactionIndex.
Laws: TXNIDX-1; DISK-11, DISK-21.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from segproof.files import File, data_end
from segproof.findings import Severity
from segproof.verifying.reporting import Reporter
from segproof.verifying.rules import REMAKE_TRANSACTIONS, declare
from segproof.verifying.segment_files import (
    FILE_SIZE_MAX_BYTES,
    Segment,
    size_guarded,
)

__all__ = ["ENTRY", "ENTRY_BYTES", "TransactionIndexFile"]

declare("transaction-index", Severity.ERROR, REMAKE_TRANSACTIONS, "TXNIDX-1", "DISK-11", "DISK-21")

ENTRY = np.dtype(
    [
        ("version", ">i2"),
        ("producer_id", ">i8"),
        ("first_offset", ">i8"),
        ("last_offset", ">i8"),
        ("last_stable_offset", ">i8"),
    ]
)
ENTRY_BYTES = ENTRY.itemsize
BLOCK_ENTRIES = 1 << 14
COMPARED_MAX = 1 << 18
"""Entries that are compared with the log; a segment has hardly ever a thousandth of that."""


class TransactionIndexFile:
    """The entries of a `.txnindex` file, judged by themselves, kept for the comparison.

    Raises: OSError, here and in `check`.
    """

    suffix = ".txnindex"
    structure = "transaction-index"
    read_for = frozenset((".txnindex", ".log"))
    """It is read where one of these files is reported on."""

    def __init__(self, file: File, segment: Segment, reporter: Reporter) -> None:
        self._file = file
        self.path = segment.path(".txnindex")
        self._segment = segment
        self.report = reporter.at(self.path, self.structure)
        self.size = size_guarded(file, self.report)
        self.kept: NDArray[np.void] = np.empty(0, ENTRY)
        """The first COMPARED_MAX entries, in file order."""
        self.is_complete = False
        """Whether `kept` holds all entries, so that one which is not in it is not in the file."""

    def check(self) -> Iterator[int]:
        """Judge all entries; yield the bytes read."""
        count = min(self.size, FILE_SIZE_MAX_BYTES) // ENTRY_BYTES
        rest = self.size - count * ENTRY_BYTES
        if 0 < rest < ENTRY_BYTES:
            self.report.add(
                "TXNIDX-1",
                f"the file ends inside an entry: {self.size} bytes are {count} entries of"
                f" {ENTRY_BYTES} bytes and {rest} bytes more",
                position=count * ENTRY_BYTES,
                expected=count * ENTRY_BYTES,
                actual=self.size,
            )
        previous = np.empty(0, ENTRY)
        kept = []
        # Of zeros that are not even on the disk one block is judged: all say the same.
        told = min(count, max(COMPARED_MAX, data_end(self._file) // ENTRY_BYTES + 1))
        for start in range(0, told, BLOCK_ENTRIES):
            wanted = min(BLOCK_ENTRIES, told - start)
            data = self._file.pread(wanted * ENTRY_BYTES, start * ENTRY_BYTES)
            block = np.frombuffer(data, ENTRY, len(data) // ENTRY_BYTES)
            self._check_block(start, block, previous)
            if start < COMPARED_MAX:
                kept.append(block)
            previous = block[-1:]
            yield len(data)
            if len(block) < wanted:
                at = start * ENTRY_BYTES + len(data)
                self.report.shrunk(self.size, at)
                break
        if kept:
            self.kept = np.concatenate(kept)
        self.is_complete = len(self.kept) == count
        if count > COMPARED_MAX:
            self.report.add(
                "DISK-11",
                f"only the first {COMPARED_MAX} of {count} entries are compared with the log",
                position=COMPARED_MAX * ENTRY_BYTES,
                actual=count,
            )

    def _check_block(self, start: int, block: NDArray[np.void], previous: NDArray[np.void]) -> None:
        base = self._segment.base_offset
        read_as = block["version"] >> 8
        first, last = block["first_offset"], block["last_offset"]
        stable = block["last_stable_offset"]
        lasts = np.concatenate((previous["last_offset"], last)).astype(np.int64)
        falls = np.zeros(len(block), np.bool_)
        falls[len(block) - len(lasts) + 1 :] = lasts[1:] <= lasts[:-1]
        broken: tuple[tuple[str, NDArray[np.bool_], str, str, str], ...] = (
            ("TXNIDX-1", read_as > 0, "version", "0",
             "version {} is not known: a broker refuses to read this entry"),
            ("TXNIDX-1", (read_as <= 0) & (block["version"] != 0), "version", "0",
             "version {} is not 0, the only one that is written"),
            ("DISK-21", last < base, "last_offset", f"{base} or more",
             "last offset {} is below the base offset of the segment"),
            ("DISK-21", falls, "last_offset", "more than the entry before has",
             "last offset {} is not above that of the entry before; entries are in order"),
            ("DISK-21", (first > last) | (first < 0), "first_offset", "0 to the last offset",
             "first offset {} is negative or behind the last offset of the transaction"),
            ("DISK-21", (stable < 0) | (stable > last + 1), "last_stable_offset",
             "0 to the last offset + 1",
             "last stable offset {} is negative or behind the end of the transaction"),
        )  # fmt: skip
        for law, is_broken, name, expected, words in broken:
            rows = np.flatnonzero(is_broken)
            values = block[name][rows]
            at = (rows + start) * ENTRY_BYTES
            self.report.add_values(law, at, values, words, expected)
