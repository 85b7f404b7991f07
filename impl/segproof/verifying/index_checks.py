# SPDX-License-Identifier: Apache-2.0
"""Offset and time index files by themselves, and their entries handed out beside the log.

The file is read in blocks, from the end until its zero tail is known and then from the start, so
memory is constant for any size. Offsets are relative to the base offset throughout.

Laws: OFFIDX-1, OFFIDX-2, TIMEIDX-1, TIMEIDX-7, DISK-6, DISK-8, DISK-22.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from segproof.files import File, data_end
from segproof.verifying.reporting import Described, Int64Array, Reporter
from segproof.verifying.segments import (
    FILE_SIZE_MAX_BYTES,
    Segment,
    report_shrunk,
    size_guarded,
)

__all__ = [
    "OFFSET_FORM",
    "TIME_FORM",
    "EntryWindow",
    "IndexForm",
    "IndexStream",
    "check_offset_entries",
    "check_time_entries",
]

BLOCK_ENTRIES = 1 << 16
WINDOW_ENTRIES_MAX = 1 << 18
"""Entries that may wait in a window; a sound file never has more than a block or two waiting."""


@dataclass(frozen=True, slots=True)
class IndexForm:
    """What the two kinds of index files differ in."""

    structure: str
    suffix: str
    dtype: np.dtype[np.void]
    key: str
    """The column that its entries are compared with the log by."""
    length_law: str

    @property
    def entry_size(self) -> int:
        """Bytes of an entry."""
        return self.dtype.itemsize


OFFSET_FORM = IndexForm(
    "offset-index", ".index", np.dtype([("offset", ">i4"), ("position", ">i4")]), "position",
    "OFFIDX-1",
)  # fmt: skip
TIME_FORM = IndexForm(
    "time-index", ".timeindex", np.dtype([("timestamp", ">i8"), ("offset", ">i4")]), "offset",
    "TIMEIDX-1",
)  # fmt: skip

Entries = NDArray[np.void]


class IndexStream:
    """An index file that is read in blocks of entries."""

    def __init__(self, file: File, form: IndexForm, segment: Segment, reporter: Reporter) -> None:
        self._file = file
        self.form = form
        self.path = segment.path(form.suffix)
        self._segment = segment
        self._reporter = reporter
        self.size = size_guarded(file, self.path, reporter, form.structure)
        self.slots = min(self.size, FILE_SIZE_MAX_BYTES) // form.entry_size
        """Whole entries that can be looked at; DISK-7 says it where the file has more."""
        self.count = self.slots
        """Genuine entries: without the zero tail, once `find_tail` ran."""
        self.is_damaged = False
        """Whether an entry holds a negative number, which no broker ever wrote."""
        self.last_position = 0
        """Of an offset index, once it is checked: the largest position of an entry."""
        self.last_offset = -1
        """The largest distance of an entry from the base offset; -1 if there is none."""
        self.widest_gap = 0
        """The most bytes from an entry's position to the next one's; byte 0 counts as one."""

    def read(self, start: int, count: int) -> Entries:
        """Return entries [start, start + count), fewer if the file has become shorter."""
        size = self.form.entry_size
        data = self._file.pread(count * size, start * size)
        whole = len(data) // size
        if whole < count:
            report_shrunk(
                self.path, self.size, start * size + len(data), self._reporter, self.form.structure
            )
        return np.frombuffer(data, self.form.dtype, whole)

    def find_tail(self) -> Iterator[int]:
        """Find the last entry that is not all zero; yield the bytes read."""
        end = min(self.slots, -(-data_end(self._file) // self.form.entry_size))
        if end < self.slots:
            self.read(self.slots - 1, 1)  # a hole, or the file has become shorter
        while end > 0:
            start = max(0, end - BLOCK_ENTRIES)
            block = self.read(start, end - start)
            data = block.tobytes()
            used = 0 if data.count(0) == len(data) else len(data.rstrip(b"\0"))
            yield len(block) * self.form.entry_size
            if used or len(block) < end - start:
                end = start - (-used // self.form.entry_size)
                break
            end = start
        # A time index may hold a single entry of timestamp 0 for its first offset: no tail.
        is_lone_zero = self.form is TIME_FORM and self.slots == 1 and end == 0
        self.count = 1 if is_lone_zero else end

    def check_length(self) -> None:
        """Report a partial entry and a zero tail. `find_tail` must have run."""
        entry_size, reporter = self.form.entry_size, self._reporter
        rest = self.size - self.slots * entry_size
        if 0 < rest < entry_size:
            reporter.add(
                self.form.length_law,
                self.path,
                f"the file ends inside an entry: {self.size} bytes are {self.slots} entries of"
                f" {entry_size} bytes and {rest} bytes more",
                position=self.slots * entry_size,
                expected=self.slots * entry_size,
                actual=self.size,
            )
        tail = self.slots - self.count
        if tail:
            state = self._segment
            why = f", although {state.why_closed}" if state.is_closed else ", as a broker keeps it"
            reporter.add(
                "DISK-6",
                self.path,
                f"{tail} preallocated entries of zeros follow"
                f" {'one genuine one' if self.count == 1 else f'{self.count} genuine ones'}{why}",
                position=self.count * entry_size,
                expected=self.count * entry_size,
                actual=self.size,
                severity=state.tail_severity,
                hint=None if state.is_closed else "nothing: closing or recovery trims the file",
                structure=self.form.structure,
            )

    def blocks(self) -> Iterator[tuple[int, Entries]]:
        """Yield (number of the first entry, entries) of all genuine entries."""
        for start in range(0, self.count, BLOCK_ENTRIES):
            wanted = min(BLOCK_ENTRIES, self.count - start)
            block = self.read(start, wanted)
            yield start, block
            if len(block) < wanted:
                return


def check_offset_entries(stream: IndexStream, reporter: Reporter) -> Iterator[int]:
    """Judge the genuine entries of an offset index by themselves; yield the bytes read."""
    previous = np.zeros(0, OFFSET_FORM.dtype)
    for start, block in stream.blocks():
        both = np.concatenate((previous, block))
        offsets, positions = both["offset"].astype(np.int64), both["position"].astype(np.int64)
        own = slice(len(previous), None)
        first = start - len(previous)
        stream.is_damaged |= bool((offsets < 0).any() or (positions < 0).any())
        _report_below_base(stream, reporter, "OFFIDX-2", start, offsets[own])
        _report_falls(
            stream, reporter, "OFFIDX-2", first, offsets, np.diff(offsets) <= 0,
            "offset {now} follows offset {before}; offsets must increase", stream_base(stream),
        )  # fmt: skip
        _report_falls(
            stream, reporter, "DISK-8", first, positions, np.diff(positions) <= 0,
            "position {now} follows position {before}; positions must increase", 0,
        )  # fmt: skip
        _measure(stream, positions, offsets, is_first=start == 0)
        previous = block[-1:]
        yield block.nbytes


def _measure(
    stream: IndexStream, positions: Int64Array, offsets: Int64Array, *, is_first: bool
) -> None:
    """Take in how far some entries go; unless `is_first`, they begin with the one before them."""
    if not len(positions):
        return
    gaps = np.diff(positions, prepend=0 if is_first else positions[0])
    stream.widest_gap = max(stream.widest_gap, int(gaps.max()))
    stream.last_position = max(stream.last_position, int(positions.max()))
    stream.last_offset = max(stream.last_offset, int(offsets.max()))


def check_time_entries(stream: IndexStream, reporter: Reporter) -> Iterator[int]:
    """Judge the genuine entries of a time index by themselves; yield the bytes read."""
    previous = np.zeros(0, TIME_FORM.dtype)
    for start, block in stream.blocks():
        both = np.concatenate((previous, block))
        timestamps = both["timestamp"].astype(np.int64)
        offsets = both["offset"].astype(np.int64)
        own = slice(len(previous), None)
        first = start - len(previous)
        stream.is_damaged |= bool((offsets < 0).any() or (timestamps < 0).any())
        _report_below_base(stream, reporter, "DISK-22", start, offsets[own])
        _report_falls(
            stream, reporter, "TIMEIDX-7", first, timestamps, timestamps[1:] <= timestamps[:-1],
            "timestamp {now} follows timestamp {before}; timestamps must increase", 0,
        )  # fmt: skip
        _report_falls(
            stream, reporter, "TIMEIDX-7", first, offsets, np.diff(offsets) < 0,
            "offset {now} follows offset {before}; offsets must not fall", stream_base(stream),
        )  # fmt: skip
        negative = np.flatnonzero(timestamps[own] < 0)
        reporter.add_values(
            "DISK-22",
            stream.path,
            (negative + start) * TIME_FORM.entry_size,
            timestamps[own][negative],
            "timestamp {} is below 0, which is never stored",
            "0 or more",
        )
        previous = block[-1:]
        yield block.nbytes


def stream_base(stream: IndexStream) -> int:
    """Return the base offset of the stream's segment."""
    return stream._segment.base_offset


def _report_below_base(
    stream: IndexStream, reporter: Reporter, law: str, start: int, offsets: Int64Array
) -> None:
    base = stream_base(stream)
    below = np.flatnonzero(offsets < 0)
    reporter.add_values(
        law,
        stream.path,
        (below + start) * stream.form.entry_size,
        offsets[below] + base,
        f"the entry's offset {{}} is below the base offset {base}",
        f"{base} or more",
    )


def _report_falls(
    stream: IndexStream,
    reporter: Reporter,
    law: str,
    first: int,
    values: Int64Array,
    falls: NDArray[np.bool_],
    words: str,
    base: int,
) -> None:
    """Report each entry behind which `falls` is true, by its byte; `first` numbers values[0]."""
    rows = np.flatnonzero(falls) + 1

    def describe(row: int) -> Described:
        before = base + int(values[rows[row] - 1])
        now = base + int(values[rows[row]])
        return Described(words.format(now=now, before=before), f"more than {before}", now)

    reporter.add_rows(law, stream.path, (rows + first) * stream.form.entry_size, describe)


class EntryWindow:
    """The entries of an index file in the order of their key, loaded as the log goes by.

    Blocks are sorted as they are loaded, so an entry in the wrong place is still judged. The next
    block is loaded when the log reaches the median of the last one; entries that wait are bounded
    by WINDOW_ENTRIES_MAX, and a file so disordered that this does not suffice leaves `unread`.
    """

    def __init__(self, stream: IndexStream) -> None:
        self._stream = stream
        self._next = 0
        self._median = -(1 << 40)
        self._numbers: Int64Array = np.empty(0, np.int64)
        self._keys: Int64Array = np.empty(0, np.int64)
        self._values: Int64Array = np.empty(0, np.int64)

    @property
    def unread(self) -> int:
        """Entries that were never handed out."""
        return self._stream.count - self._next + len(self._keys)

    def take(self, below: int) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return number, key and value of all entries left with a key under `below`, by key."""
        while (
            self._next < self._stream.count
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
        stream, form = self._stream, self._stream.form
        wanted = min(BLOCK_ENTRIES, stream.count - self._next)
        block = stream.read(self._next, wanted)
        keys = block[form.key].astype(np.int64)
        (value,) = (name for name in form.dtype.names or () if name != form.key)
        numbers = np.arange(self._next, self._next + len(block))
        self._next = self._next + len(block) if len(block) == wanted else stream.count
        self._median = int(np.median(keys)) if len(keys) else 1 << 40
        keys = np.concatenate((self._keys, keys))
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._numbers = np.concatenate((self._numbers, numbers))[order]
        self._values = np.concatenate((self._values, block[value].astype(np.int64)))[order]
