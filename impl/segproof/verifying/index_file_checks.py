# SPDX-License-Identifier: Apache-2.0
"""Index files by themselves, and their entries handed out beside the log.

Offsets of offset and time indexes are relative to the base offset throughout.

Upstream: Kafka 4.3.1: OffsetIndex, TimeIndex, TransactionIndex.
Laws: OFFIDX-1, OFFIDX-2, TIMEIDX-1, TIMEIDX-7, TXNIDX-1, DISK-6, DISK-8, DISK-11, DISK-21, DISK-22.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from segproof.counts import plural, verb
from segproof.files import File, data_end
from segproof.findings import Severity
from segproof.inventory.segments import Segment
from segproof.reading.index_entries import (
    BLOCK_ENTRIES,
    ENTRY_TYPES,
    TRANSACTION_ENTRY,
    Entries,
    EntryFile,
)
from segproof.reading.rows import Bools, Int64Array, shifted
from segproof.wording.reporting import Reporter
from segproof.wording.rules import REBUILD, REMAKE_TRANSACTIONS, TRIMMED, declare
from segproof.wording.segment_files import (
    FILE_SIZE_MAX_BYTES,
    hint_of,
    report_of,
    size_guarded,
    tail_severity,
)

declare("offset-index", Severity.ERROR, REBUILD, "OFFIDX-1", "OFFIDX-2", "DISK-8")
declare("time-index", Severity.ERROR, REBUILD, "TIMEIDX-1", "TIMEIDX-7", "DISK-22")
declare("transaction-index", Severity.ERROR, REMAKE_TRANSACTIONS, "TXNIDX-1", "DISK-11", "DISK-21")

NOT_CLOSED = REBUILD.after(
    "this file was not closed: the broker did not stop as the marker or the later segment says. A"
    " rebuild leaves the zeros out: "
)
BLANK = REBUILD.after(
    "this file was not closed before any entry was due, or a disk or a copy has left zeros in place"
    " of its entries. A rebuild makes those that the log shows: "
)
WINDOW_ENTRIES_MAX = 1 << 18
"""Entries that may wait in a window; a sound file never has more than a block or two waiting."""
COMPARED_MAX = 1 << 18
"""Entries of a transaction index that are compared with the log; a segment has hardly ever a
thousandth of that."""


class IndexFile(EntryFile):
    """An index file that is read in blocks of entries; `check` judges it by itself.

    Raises: OSError, here and in all methods.
    """

    suffix: ClassVar[str]
    read_for: ClassVar[frozenset[str]]
    """It is read where one of these files is reported on."""
    entry_type: ClassVar[np.dtype[np.void]]
    length_law: ClassVar[str]

    def __init__(self, file: File, segment: Segment, reporter: Reporter) -> None:
        self.report = report_of(segment, self.suffix, reporter)
        self.size = size_guarded(file, self.report)
        # DISK-7 says it where the file has more entries than can be looked at.
        slots = min(self.size, FILE_SIZE_MAX_BYTES) // self.entry_type.itemsize
        super().__init__(file, self.entry_type, slots)
        self._segment = segment
        self._base = segment.base_offset

    def ends_at(self, position: int) -> None:
        """Report that the file has become shorter."""
        self.report.shrunk(self.size, position)

    def check(self) -> Iterator[int]:
        """Judge the file by itself; yield the bytes read."""
        size, whole = self.entry_bytes, self.slots * self.entry_bytes
        if 0 < self.size - whole < size:
            self.report.add(
                self.length_law,
                f"the file ends inside an entry: {plural(self.size, 'byte', 'is', 'are')}"
                f" {plural(self.slots, 'entry')} of {size} bytes and"
                f" {plural(self.size - whole, 'byte')} more",
                position=whole,
                expected=whole,
                actual=self.size,
            )
        yield from self._check_all()

    def _check_all(self) -> Iterator[int]:
        """Judge all genuine entries; yield the bytes read."""
        previous = np.zeros(0, self.dtype)
        for start, block in self.blocks():
            entries, first = np.concatenate((previous, block)), start - len(previous)
            self._check_entries(entries, first, np.arange(len(entries)) >= len(previous))
            previous = block[-1:]
            yield block.nbytes

    def _check_entries(self, entries: Entries, first: int, is_new: Bools) -> None:
        """Judge entries from number `first` on; the first one may be there to compare only."""
        raise NotImplementedError

    def _report(
        self, law: str, first: int, broken: Bools, actual: Int64Array, message: str, expected: str
    ) -> None:
        """Report entries from number `first` on.

        `message` and `expected` name the value before as `{before}`, and that of the entry `{now}`.
        """
        if broken.any():
            before, place = shifted(actual, 0), (first * self.entry_bytes, self.entry_bytes)
            self.report.add_where(
                law, broken, place, message, expected, actual, now=actual, before=before
            )


class KeyedIndexFile(IndexFile):
    """An offset or time index, which a broker keeps preallocated."""

    key: ClassVar[str]
    """The column that its entries are compared with the log by."""
    is_damaged = False
    """Whether an entry holds a negative number, which no broker ever wrote."""

    def find_end(self) -> Iterator[int]:
        """Find the last genuine entry; yield the bytes read."""
        if self.slots:
            self.read(self.slots - 1, 1)  # the file may have become shorter
        yield from super().find_end()

    def _check_all(self) -> Iterator[int]:
        yield from self.find_end()
        self._report_tail()
        yield from super()._check_all()

    def _report_tail(self) -> None:
        tail, genuine = self.slots - self.count, self.count
        if not tail:
            return
        state = self._segment
        follows = verb(tail, "follows", "follow")
        why = f", although {state.why_closed}" if state.is_closed else ", as a broker keeps it"
        self.report.add(
            "DISK-6",
            f"{plural(tail, 'preallocated entry')} of zeros {follows}"
            f" {'one genuine one' if genuine == 1 else f'{genuine} genuine ones'}{why}",
            position=genuine * self.entry_bytes,
            expected=genuine * self.entry_bytes,
            actual=self.size,
            severity=tail_severity(state),
            hint=(hint_of(state) or (NOT_CLOSED if genuine else BLANK))
            if state.is_closed
            else TRIMMED,
        )


class OffsetIndexFile(KeyedIndexFile):
    """An offset index; once checked, it says how far its entries go."""

    suffix = ".index"
    read_for = frozenset((".index", ".log"))  # it tells where a log should end
    entry_type = ENTRY_TYPES[".index"]
    key = "position"
    length_law = "OFFIDX-1"
    last_position = 0
    """The largest position of an entry."""
    last_offset = -1
    """The largest distance of an entry from the base offset; -1 without an entry."""
    widest_gap = 0
    """The most bytes from an entry's position to the next one's; byte 0 counts as one."""

    def _check_entries(self, entries: Entries, first: int, is_new: Bools) -> None:
        offsets, positions = (entries[name].astype(np.int64) for name in ("offset", "position"))
        base, follows = self._base, np.arange(len(entries)) > 0
        self.is_damaged |= bool((offsets < 0).any() or (positions < 0).any())
        self._report(
            "OFFIDX-2", first, is_new & (offsets < 0), offsets + base,
            f"the entry's offset {{now}} is below the base offset {base}", f"{base} or more",
        )  # fmt: skip
        self._report(
            "OFFIDX-2", first, follows & (offsets <= shifted(offsets, 0)), offsets + base,
            "offset {now} follows offset {before}; offsets must increase", "more than {before}",
        )  # fmt: skip
        self._report(
            "DISK-8", first, follows & (positions <= shifted(positions, 0)), positions,
            "position {now} follows position {before}; positions must increase",
            "more than {before}",
        )  # fmt: skip
        if len(positions):
            gaps = np.diff(positions, prepend=0 if is_new[0] else positions[0])
            self.widest_gap = max(self.widest_gap, int(gaps.max()))
            self.last_position = max(self.last_position, int(positions.max()))
            self.last_offset = max(self.last_offset, int(offsets.max()))


class TimeIndexFile(KeyedIndexFile):
    """A time index."""

    suffix = ".timeindex"
    read_for = frozenset((".timeindex", ".index"))  # it tells where an offset index should end
    entry_type = ENTRY_TYPES[".timeindex"]
    key = "offset"
    length_law = "TIMEIDX-1"

    def find_end(self) -> Iterator[int]:
        """Find the last genuine entry; yield the bytes read."""
        yield from super().find_end()
        # A single entry of timestamp 0 for the first offset is all zero and no tail.
        if self.slots == 1 and self.count == 0:
            self.count = 1

    def _check_entries(self, entries: Entries, first: int, is_new: Bools) -> None:
        timestamps, offsets = (entries[name].astype(np.int64) for name in ("timestamp", "offset"))
        base, follows = self._base, np.arange(len(entries)) > 0
        self.is_damaged |= bool((offsets < 0).any() or (timestamps < 0).any())
        self._report(
            "DISK-22", first, is_new & (offsets < 0), offsets + base,
            f"the entry's offset {{now}} is below the base offset {base}", f"{base} or more",
        )  # fmt: skip
        self._report(
            "TIMEIDX-7", first, follows & (timestamps <= shifted(timestamps, 0)), timestamps,
            "timestamp {now} follows timestamp {before}; timestamps must increase",
            "more than {before}",
        )  # fmt: skip
        self._report(
            "TIMEIDX-7", first, follows & (offsets < shifted(offsets, 0)), offsets + base,
            "offset {now} follows offset {before}; offsets must not fall", "{before} or more",
        )  # fmt: skip
        self._report(
            "DISK-22", first, is_new & (timestamps < 0), timestamps,
            "timestamp {now} is below 0, which is never stored", "0 or more",
        )  # fmt: skip


class TransactionIndexFile(IndexFile):
    """A transaction index, whose entries are kept for the comparison."""

    suffix = ".txnindex"
    read_for = frozenset((".txnindex", ".log"))
    entry_type = TRANSACTION_ENTRY
    length_law = "TXNIDX-1"
    is_complete = False
    """Whether `kept` holds all entries, so that one which is not in it is not in the file."""

    def __init__(self, file: File, segment: Segment, reporter: Reporter) -> None:
        super().__init__(file, segment, reporter)
        self.kept: Entries = np.empty(0, TRANSACTION_ENTRY)
        """The first COMPARED_MAX entries, in file order."""

    def _check_all(self) -> Iterator[int]:
        # Of zeros that are not even on the disk one block is judged: all say the same.
        self.count = min(self.slots, max(COMPARED_MAX, data_end(self.file) // self.entry_bytes + 1))
        yield from super()._check_all()
        self.is_complete = len(self.kept) == self.slots
        if self.slots > COMPARED_MAX:
            self.report.add(
                "DISK-11",
                f"only the first {COMPARED_MAX} of {self.slots} entries are compared with the log",
                position=COMPARED_MAX * self.entry_bytes,
                actual=self.slots,
            )

    def _check_entries(self, entries: Entries, first: int, is_new: Bools) -> None:
        if first < COMPARED_MAX - 1:
            self.kept = np.concatenate((self.kept, entries[is_new]))
        base = self._base
        begin, last, stable = (
            entries[f"{name}_offset"].astype(np.int64) for name in ("first", "last", "last_stable")
        )
        version = entries["version"].astype(np.int64)
        follows = np.arange(len(entries)) > 0
        broken: tuple[tuple[str, Bools, Int64Array, str, str], ...] = (
            ("TXNIDX-1", version >> 8 > 0, version,
             "version {now} is not known: a broker refuses to read this entry", "0"),
            ("TXNIDX-1", (version >> 8 <= 0) & (version != 0), version,
             "version {now} is not 0, the only one that is written", "0"),
            ("DISK-21", last < base, last,
             "last offset {now} is below the base offset of the segment", f"{base} or more"),
            ("DISK-21", follows & (last <= shifted(last, 0)), last,
             "last offset {now} is not above that of the entry before; entries are in order",
             "more than the entry before has"),
            ("DISK-21", (begin > last) | (begin < 0), begin,
             "first offset {now} is negative or behind the last offset of the transaction",
             "0 to the last offset"),
            ("DISK-21", (stable < 0) | (stable > last + 1), stable,
             "last stable offset {now} is negative or behind the end of the transaction",
             "0 to the last offset + 1"),
        )  # fmt: skip
        for law, is_broken, column, *words in broken:
            self._report(law, first, is_new & is_broken, column, *words)


class EntryWindow:
    """The entries of an index file in the order of their key, loaded as the log goes by.

    Blocks are sorted as they are loaded, so an entry in the wrong place is still judged. The next
    block is loaded when the log reaches the median of the last one; entries that wait are bounded
    by WINDOW_ENTRIES_MAX, and a file so disordered that this does not suffice leaves `unread`.
    """

    def __init__(self, index: KeyedIndexFile) -> None:
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
