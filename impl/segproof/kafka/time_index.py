# SPDX-License-Identifier: Apache-2.0
"""The time index: from which offset on to look for a timestamp.

Upstream: Kafka, TimeIndex (4.3.1).
Layout: entry i is bytes 12i..12i+11: TIME_ENTRY of layouts/kafka.py.
Laws: TIMEIDX-1 to TIMEIDX-19.
Not covered: whether a timestamp is that of a batch; `segproof.verify` compares with the log.
"""

from bisect import bisect_right
from collections.abc import Iterator
from operator import index as to_int
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segproof.counts import plural
from segproof.errors import (
    IndexBufferOverflowError,
    IndexFullError,
    IndexStateError,
    InvalidArgumentError,
    InvalidOffsetError,
    SegproofError,
)
from segproof.integers import (
    INT32_MAX,
    INT64_MAX,
    INT64_MIN,
    as_int64,
    in_range,
    int64_array,
    make_tuple,
)
from segproof.kafka.abstract_index import WARM_BYTES, AbstractIndex
from segproof.kernels.index_rules import (
    APPEND_FULL,
    APPEND_NO_ROOM,
    APPEND_NOTHING,
    APPEND_OFFSET_TOO_SMALL,
    APPEND_STORE,
    APPEND_TIMESTAMP_TOO_SMALL,
    is_full,
    offset_distance,
    time_append,
)
from segproof.kernels.slot_search import lower_slot
from segproof.layouts.kafka import TIME_ENTRY

_ENTRY = TIME_ENTRY.struct()
_WARM_ENTRIES = WARM_BYTES // _ENTRY.size


class TimestampOffset(NamedTuple):
    """The largest timestamp up to an offset, in ms since 1970."""

    timestamp: int
    offset: int


class TimeIndex(AbstractIndex):
    """A time index file.

    `base_offset` is by default the one that the name of the file says, as
    `00000000000000000040.timeindex` says 40. Without `writable` or `create` the file is read once
    into private memory and never touched again. With `writable=True` changes go to the file, and
    `close` cuts the free room behind its entries. With `create=True` it is writable, and a missing
    file is made, with `max_index_size_bytes`, rounded down to whole entries; an existing one keeps
    its length. The zero slots at its end, which a crash leaves, are free room and no entries.

    Read: `lookup`, `lookup_many`, `entry`, `last_entry`, iteration, `to_numpy`. Write:
    `maybe_append`, `maybe_append_many`, `truncate_to`, `truncate`, `reset`, `resize`,
    `trim_to_valid_size`. Check: `sanity_check`. File: `flush`, `close`, `rename_to`,
    `delete_if_exists`.

    Raises: InvalidArgumentError for a new file with room for no entry, and for a base offset that
    the name does not say, or says otherwise; FileNotFoundError without `create`; OSError.
    """

    ENTRY_SIZE = _ENTRY.size
    _ENTRY = _ENTRY
    _KEY_SIZE = 8
    _ENTRY_DTYPE = TIME_ENTRY.dtype
    _OFFSET_IS_KEY = False
    _MISSING = (-1, 0)
    _NAMES = ("timestamp", "offset")
    _SANITY_LAW = "TIMEIDX-17"
    _SUFFIX = ".timeindex"

    last_entry: TimestampOffset
    """The last entry, or (-1, base offset) (TIMEIDX-9)."""

    @property
    def is_full(self) -> bool:
        """Whether an append is refused; one slot is kept for the final entry (TIMEIDX-2)."""
        return is_full(self.entries, self.max_entries, 1)

    def _read_last_entry(self) -> None:
        view, entries = self._current()
        if entries:
            self.last_entry = self._entry(view, entries - 1)
        else:
            self.last_entry = TimestampOffset(-1, self.base_offset)

    def _entry(self, view: memoryview, number: int) -> TimestampOffset:
        timestamp, relative = _ENTRY.unpack_from(view, number * 12)
        return TimestampOffset(timestamp, self.base_offset + relative)

    def lookup(self, target_timestamp: int) -> TimestampOffset:
        """Return the entry with the greatest timestamp <= `target_timestamp`, in ms.

        Below the first entry: timestamp -1 and the base offset.

        Cost: at most 2 + log2(entries) probes. Law: TIMEIDX-10. Raises: IndexClosedError.
        """
        if type(target_timestamp) is not int:
            target_timestamp = to_int(target_timestamp)
        target = target_timestamp
        if not INT64_MIN <= target <= INT64_MAX:
            target = as_int64(target)
        while True:
            cuts = self._cuts
            published = self._published
            if published is None:
                raise self._closed()
            view, entries = published
            try:
                decoded = self._increasing_keys
                if decoded is not None and decoded[0] is published:
                    slot = bisect_right(decoded[1], target - decoded[2]) - 1
                else:
                    slot = lower_slot.call(view, 12, 0, 8, entries, target, _WARM_ENTRIES)
                    self._count_lookup(published)
                timestamp, relative = _ENTRY.unpack_from(view, slot * 12) if slot >= 0 else (-1, 0)
            except Exception:  # a released view; compiled kernels say it their own way
                if self._published is published:
                    raise
            else:
                if self._cuts == cuts:
                    return make_tuple(TimestampOffset, (timestamp, self.base_offset + relative))

    def lookup_many(
        self, target_timestamps: ArrayLike
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return `lookup` of each target: (timestamps, offsets), each int64 of shape (targets,).

        Fastest for targets that never fall. The keys are tested once for strict growth; where they
        repeat or fall, each target is searched as `lookup` does.

        Raises: InvalidArgumentError unless the targets are one row of integers; IndexClosedError.
        """
        targets = int64_array(target_timestamps, "target_timestamps")
        return self._lookup_many(targets)

    def entry(self, n: int) -> TimestampOffset:
        """Return entry `n`, counted from 0, with its absolute offset.

        Raises: InvalidArgumentError for n >= entries; IndexError for n < 0; IndexClosedError.
        """
        timestamp, relative = self._stored(n)
        return TimestampOffset(timestamp, self.base_offset + relative)

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        """Add an entry if `timestamp` is larger than the last one; equal changes nothing.

        `skip_full_check` gives the slot away that is kept for the final entry of a segment.

        Laws: TIMEIDX-3 to TIMEIDX-8, TIMEIDX-15.
        Raises, with nothing changed: IndexFullError, also where nothing would be stored;
        InvalidOffsetError for an offset below the last one; IndexStateError for a timestamp below
        the last one; IndexOffsetOverflowError; IndexBufferOverflowError without physical room;
        ReadOnlyIndexError, IndexClosedError.
        """
        timestamp, offset = to_int(timestamp), to_int(offset)
        view, entries = self._current()
        if self._is_nothing(entries, self.last_entry, timestamp, offset, skip_full_check):
            return
        _ENTRY.pack_into(view, entries * 12, timestamp, offset_distance(offset, self.base_offset))
        self.last_entry = TimestampOffset(timestamp, offset)
        self._publish(view, entries + 1)

    def check_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        """Return if `maybe_append` would; else raise what that raises. Nothing is stored."""
        self._is_nothing(self.entries, self.last_entry, timestamp, offset, skip_full_check)

    def _is_nothing(
        self,
        entries: int,
        last: TimestampOffset,
        timestamp: int,
        offset: int,
        skip_full_check: bool = False,
    ) -> bool:
        """Return whether an append behind these entries stores nothing; raise what it raises."""
        base = self.base_offset
        verdict = time_append(entries, self.length, *last, base, timestamp, offset, skip_full_check)
        if verdict == APPEND_NOTHING:
            return True
        if verdict > APPEND_TIMESTAMP_TOO_SMALL:
            self._check_writable("maybe_append")
        if verdict != APPEND_STORE:
            raise self._refusal(verdict, entries, last, timestamp, offset)
        in_range(timestamp, "the timestamp", path=self.file)
        return False

    def _refusal(
        self, verdict: int, entries: int, last: TimestampOffset, timestamp: int, offset: int
    ) -> SegproofError:
        """Return the error for an append that `time_append` refuses."""
        if verdict == APPEND_FULL:
            return IndexFullError(
                f"the index is full with {plural(entries, 'entry')}",
                law="TIMEIDX-3",
                path=self.file,
            )
        if verdict == APPEND_OFFSET_TOO_SMALL:
            return InvalidOffsetError(
                f"offset {offset} is below the last one, {last.offset}",
                law="TIMEIDX-4",
                path=self.file,
            )
        if verdict == APPEND_TIMESTAMP_TOO_SMALL:
            return IndexStateError(
                f"timestamp {timestamp} is below the last one, {last.timestamp}",
                law="TIMEIDX-5",
                path=self.file,
            )
        if verdict == APPEND_NO_ROOM:
            return IndexBufferOverflowError(
                f"no physical room for entry {entries}", law="TIMEIDX-15", path=self.file
            )
        return self._too_far(offset)

    def maybe_append_many(self, timestamps: ArrayLike, offsets: ArrayLike) -> None:
        """Call `maybe_append` for each pair, all or none; rows of integers of one length.

        Raises: what `maybe_append` raises for the first pair that it refuses; InvalidArgumentError
        unless the rows are integers and equally long.
        """
        new_timestamps = int64_array(timestamps, "timestamps")
        new_offsets = int64_array(offsets, "offsets")
        view, entries = self._current()
        if len(new_timestamps) != len(new_offsets):
            raise InvalidArgumentError("timestamps and offsets differ in length", path=self.file)
        if not len(new_offsets):
            return
        stored = self._stored_of(new_timestamps, new_offsets, entries)
        if not len(stored):
            return
        records = np.empty(len(stored), self._ENTRY_DTYPE)
        records["timestamp"] = new_timestamps[stored]
        records["offset"] = new_offsets[stored] - self.base_offset
        written = records.tobytes()
        view[entries * 12 : entries * 12 + len(written)] = written
        last = int(stored[-1])
        self.last_entry = TimestampOffset(int(new_timestamps[last]), int(new_offsets[last]))
        self._publish(view, entries + len(stored))

    def _stored_of(
        self, timestamps: NDArray[np.int64], offsets: NDArray[np.int64], entries: int
    ) -> NDArray[np.int64]:
        """Return which pairs are stored; raise what the first one that is refused raises."""
        last = self.last_entry
        # Row n + 1 of these is the last entry that pair n leaves behind, if none was refused.
        latest = np.maximum.accumulate(np.concatenate(([last.timestamp], timestamps)))
        is_stored = timestamps > latest[:-1]
        counts = entries + np.concatenate(([0], np.cumsum(is_stored)))
        stored = np.flatnonzero(is_stored)
        last_offsets = np.concatenate(([min(last.offset, INT64_MAX)], offsets[stored]))[
            counts - entries
        ]
        follows = (offsets >= last_offsets[:-1]) & (timestamps >= latest[:-1])
        distances = offsets - self.base_offset  # wraps at 64 bits, as upstream
        is_far = (distances < 0) | (distances > INT32_MAX)
        bad = (counts[:-1] > 0) & ~follows
        bad |= counts[:-1] >= self.max_entries - 1
        bad |= is_stored & (is_far | (not self.writable))
        if bool(bad.any()):
            first = int(np.argmax(bad))
            before = TimestampOffset(int(latest[first]), int(last_offsets[first]))
            pair = int(timestamps[first]), int(offsets[first])
            self._is_nothing(int(counts[first]), before, *pair)
        return stored

    def to_numpy(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all entries as private arrays: timestamps in ms and absolute offsets, int64."""
        records = self._reading(self._records)
        offsets = records["offset"].astype(np.int64) + self.base_offset
        return records["timestamp"].astype(np.int64), offsets

    def __iter__(self) -> Iterator[TimestampOffset]:
        """Yield the entries of this moment, in the order of the file."""
        timestamps, offsets = self.to_numpy()
        return map(TimestampOffset, timestamps.tolist(), offsets.tolist())
