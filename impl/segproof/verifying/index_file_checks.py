# SPDX-License-Identifier: Apache-2.0
"""Offset and time index files by themselves, and their entries handed out beside the log.

The file is read in blocks, from the end until its zero tail is known and then from the start, so
memory is constant for any size. Offsets are relative to the base offset throughout.

Laws: OFFIDX-1, OFFIDX-2, TIMEIDX-1, TIMEIDX-7, DISK-6, DISK-8, DISK-22.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from segproof.files import File, data_end
from segproof.findings import Severity
from segproof.verifying.reporting import Described, Int64Array, Reporter
from segproof.verifying.rules import REBUILD, declare
from segproof.verifying.segment_files import (
    FILE_SIZE_MAX_BYTES,
    Segment,
    size_guarded,
)

__all__ = ["EntryWindow", "IndexFile", "OffsetIndexFile", "TimeIndexFile"]

declare("offset-index", Severity.ERROR, REBUILD, "OFFIDX-1", "OFFIDX-2", "DISK-8")
declare("time-index", Severity.ERROR, REBUILD, "TIMEIDX-1", "TIMEIDX-7", "DISK-22")

BLOCK_ENTRIES = 1 << 16
WINDOW_ENTRIES_MAX = 1 << 18
"""Entries that may wait in a window; a sound file never has more than a block or two waiting."""

Entries = NDArray[np.void]


class IndexFile:
    """An offset or time index that is read in blocks of entries; `check` judges it by itself.

    Raises: OSError, here and in all methods.
    """

    suffix: ClassVar[str]
    structure: ClassVar[str]
    read_for: ClassVar[frozenset[str]]
    """It is read where one of these files is reported on."""
    dtype: ClassVar[np.dtype[np.void]]
    key: ClassVar[str]
    """The column that its entries are compared with the log by."""
    length_law: ClassVar[str]

    def __init__(self, file: File, segment: Segment, reporter: Reporter) -> None:
        self._file = file
        self.path = segment.path(self.suffix)
        self._segment = segment
        self._base = segment.base_offset
        self.report = reporter.at(self.path, self.structure)
        self.entry_bytes = self.dtype.itemsize
        self.size = size_guarded(file, self.report)
        self.slots = min(self.size, FILE_SIZE_MAX_BYTES) // self.entry_bytes
        """Whole entries that can be looked at; DISK-7 says it where the file has more."""
        self.count = self.slots
        """Genuine entries, once checked: without the zero tail."""
        self.is_damaged = False
        """Whether an entry holds a negative number, which no broker ever wrote."""

    def check(self) -> Iterator[int]:
        """Judge the file by itself; yield the bytes read."""
        yield from self._find_tail()
        self._check_length()
        previous = np.zeros(0, self.dtype)
        for start, block in self.blocks():
            self._check_entries(np.concatenate((previous, block)), start, len(previous))
            previous = block[-1:]
            yield block.nbytes

    def _check_entries(self, entries: Entries, start: int, known: int) -> None:
        """Judge entries from number `start` on; `known` entries before it are there to compare."""
        raise NotImplementedError

    def read(self, start: int, count: int) -> Entries:
        """Return entries [start, start + count), fewer if the file has become shorter."""
        size = self.entry_bytes
        data = self._file.pread(count * size, start * size)
        whole = len(data) // size
        if whole < count:
            self.report.shrunk(self.size, start * size + len(data))
        return np.frombuffer(data, self.dtype, whole)

    def _find_tail(self) -> Iterator[int]:
        """Find the last entry that is not all zero; yield the bytes read."""
        end = min(self.slots, -(-data_end(self._file) // self.entry_bytes))
        if end < self.slots:
            self.read(self.slots - 1, 1)  # a hole, or the file has become shorter
        while end > 0:
            start = max(0, end - BLOCK_ENTRIES)
            block = self.read(start, end - start)
            data = block.tobytes()
            used = 0 if data.count(0) == len(data) else len(data.rstrip(b"\0"))
            yield len(block) * self.entry_bytes
            if used or len(block) < end - start:
                end = start - (-used // self.entry_bytes)
                break
            end = start
        self.count = end

    def _check_length(self) -> None:
        """Report a partial entry and a zero tail."""
        entry_bytes = self.entry_bytes
        rest = self.size - self.slots * entry_bytes
        if 0 < rest < entry_bytes:
            self.report.add(
                self.length_law,
                f"the file ends inside an entry: {self.size} bytes are {self.slots} entries of"
                f" {entry_bytes} bytes and {rest} bytes more",
                position=self.slots * entry_bytes,
                expected=self.slots * entry_bytes,
                actual=self.size,
            )
        tail = self.slots - self.count
        if tail:
            state = self._segment
            why = f", although {state.why_closed}" if state.is_closed else ", as a broker keeps it"
            self.report.add(
                "DISK-6",
                f"{tail} preallocated entries of zeros follow"
                f" {'one genuine one' if self.count == 1 else f'{self.count} genuine ones'}{why}",
                position=self.count * entry_bytes,
                expected=self.count * entry_bytes,
                actual=self.size,
                severity=state.tail_severity,
                hint=None if state.is_closed else "nothing: closing or recovery trims the file",
            )

    def blocks(self) -> Iterator[tuple[int, Entries]]:
        """Yield (number of the first entry, entries) of all genuine entries."""
        for start in range(0, self.count, BLOCK_ENTRIES):
            wanted = min(BLOCK_ENTRIES, self.count - start)
            block = self.read(start, wanted)
            yield start, block
            if len(block) < wanted:
                return

    def _report_below_base(self, law: str, start: int, offsets: Int64Array) -> None:
        below = np.flatnonzero(offsets < 0)
        self.report.add_values(
            law,
            (below + start) * self.entry_bytes,
            offsets[below] + self._base,
            f"the entry's offset {{}} is below the base offset {self._base}",
            f"{self._base} or more",
        )

    def _report_falls(
        self,
        law: str,
        first: int,
        values: Int64Array,
        falls: NDArray[np.bool_],
        words: str,
        base: int = 0,
    ) -> None:
        """Report each entry behind which `falls` is true; `first` is the number of values[0]."""
        rows = np.flatnonzero(falls) + 1

        def describe(row: int) -> Described:
            before = base + int(values[rows[row] - 1])
            now = base + int(values[rows[row]])
            return Described(words.format(now=now, before=before), f"more than {before}", now)

        self.report.add_rows(law, (rows + first) * self.entry_bytes, describe)


class OffsetIndexFile(IndexFile):
    """An offset index; once checked, it says how far its entries go."""

    suffix = ".index"
    structure = "offset-index"
    read_for = frozenset((".index",))
    dtype = np.dtype([("offset", ">i4"), ("position", ">i4")])
    key = "position"
    length_law = "OFFIDX-1"
    last_position = 0
    """The largest position of an entry."""
    last_offset = -1
    """The largest distance of an entry from the base offset; -1 without an entry."""
    widest_gap = 0
    """The most bytes from an entry's position to the next one's; byte 0 counts as one."""

    def _check_entries(self, entries: Entries, start: int, known: int) -> None:
        offsets = entries["offset"].astype(np.int64)
        positions = entries["position"].astype(np.int64)
        first = start - known
        self.is_damaged |= bool((offsets < 0).any() or (positions < 0).any())
        self._report_below_base("OFFIDX-2", start, offsets[known:])
        self._report_falls(
            "OFFIDX-2", first, offsets, np.diff(offsets) <= 0,
            "offset {now} follows offset {before}; offsets must increase", self._base,
        )  # fmt: skip
        self._report_falls(
            "DISK-8", first, positions, np.diff(positions) <= 0,
            "position {now} follows position {before}; positions must increase",
        )  # fmt: skip
        if len(positions):
            gaps = np.diff(positions, prepend=positions[0] if start else 0)
            self.widest_gap = max(self.widest_gap, int(gaps.max()))
            self.last_position = max(self.last_position, int(positions.max()))
            self.last_offset = max(self.last_offset, int(offsets.max()))


class TimeIndexFile(IndexFile):
    """A time index."""

    suffix = ".timeindex"
    structure = "time-index"
    read_for = frozenset((".timeindex", ".index"))  # it tells where an offset index should end
    dtype = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
    key = "offset"
    length_law = "TIMEIDX-1"

    def _find_tail(self) -> Iterator[int]:
        yield from super()._find_tail()
        # A single entry of timestamp 0 for the first offset is all zero and no tail.
        if self.slots == 1 and self.count == 0:
            self.count = 1

    def _check_entries(self, entries: Entries, start: int, known: int) -> None:
        timestamps = entries["timestamp"].astype(np.int64)
        offsets = entries["offset"].astype(np.int64)
        first = start - known
        self.is_damaged |= bool((offsets < 0).any() or (timestamps < 0).any())
        self._report_below_base("DISK-22", start, offsets[known:])
        self._report_falls(
            "TIMEIDX-7", first, timestamps, timestamps[1:] <= timestamps[:-1],
            "timestamp {now} follows timestamp {before}; timestamps must increase",
        )  # fmt: skip
        self._report_falls(
            "TIMEIDX-7", first, offsets, np.diff(offsets) < 0,
            "offset {now} follows offset {before}; offsets must not fall", self._base,
        )  # fmt: skip
        negative = np.flatnonzero(timestamps[known:] < 0)
        self.report.add_values(
            "DISK-22",
            (negative + start) * self.entry_bytes,
            timestamps[known:][negative],
            "timestamp {} is below 0, which is never stored",
            "0 or more",
        )


class EntryWindow:
    """The entries of an index file in the order of their key, loaded as the log goes by.

    Blocks are sorted as they are loaded, so an entry in the wrong place is still judged. The next
    block is loaded when the log reaches the median of the last one; entries that wait are bounded
    by WINDOW_ENTRIES_MAX, and a file so disordered that this does not suffice leaves `unread`.
    """

    def __init__(self, index: IndexFile) -> None:
        self._index = index
        self._next = 0
        self._median = -(1 << 40)
        self._numbers: Int64Array = np.empty(0, np.int64)
        self._keys: Int64Array = np.empty(0, np.int64)
        self._values: Int64Array = np.empty(0, np.int64)

    @property
    def unread(self) -> int:
        """Entries that were never handed out."""
        return self._index.count - self._next + len(self._keys)

    def take(self, below: int) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return number, key and value of all entries left with a key under `below`, by key."""
        while (
            self._next < self._index.count
            and self._median < below
            and len(self._keys) < WINDOW_ENTRIES_MAX
        ):
            self._load()
        cut = int(np.searchsorted(self._keys, below))
        taken = self._numbers[:cut], self._keys[:cut], self._values[:cut]
        if cut:
            self._numbers, self._keys = self._numbers[cut:], self._keys[cut:]
            self._values = self._values[cut:]
        return taken

    def _load(self) -> None:
        index = self._index
        wanted = min(BLOCK_ENTRIES, index.count - self._next)
        block = index.read(self._next, wanted)
        keys = block[index.key].astype(np.int64)
        (value,) = (name for name in index.dtype.names or () if name != index.key)
        numbers = np.arange(self._next, self._next + len(block))
        self._next = self._next + len(block) if len(block) == wanted else index.count
        self._median = int(np.median(keys)) if len(keys) else 1 << 40
        keys = np.concatenate((self._keys, keys))
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._numbers = np.concatenate((self._numbers, numbers))[order]
        self._values = np.concatenate((self._values, block[value].astype(np.int64)))[order]
