# SPDX-License-Identifier: Apache-2.0
"""The offset index: which byte of the log to start reading at for an offset.

Upstream: Kafka, OffsetIndex (4.3.1).
Layout: entry i is bytes 8i..8i+7: OFFSET_ENTRY of layouts/kafka.py.
Laws: OFFIDX-1 to OFFIDX-23.
Not covered: whether a position is the start of a batch; `segproof.verify` compares with the log.
"""

from bisect import bisect_right
from collections.abc import Iterator
from operator import index as to_int
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segproof.counts import plural
from segproof.errors import IndexFullError, InvalidArgumentError, InvalidOffsetError, SegproofError
from segproof.integers import (
    INT32_MAX,
    INT32_MIN,
    as_int64,
    in_range,
    int64_array,
    make_tuple,
)
from segproof.kafka.abstract_index import BEYOND_KEYS, WARM_BYTES, AbstractIndex
from segproof.kafka.bulk_lookup import int64_difference
from segproof.kafka.index_mapping import Published
from segproof.kernels.index_rules import (
    APPEND_FULL,
    APPEND_OFFSET_TOO_SMALL,
    APPEND_STORE,
    offset_append,
    offset_distance,
)
from segproof.kernels.slot_search import lower_slot, upper_slot
from segproof.layouts.kafka import OFFSET_ENTRY

_ENTRY = OFFSET_ENTRY.struct()
_WARM_ENTRIES = WARM_BYTES // _ENTRY.size


class OffsetPosition(NamedTuple):
    """An offset, and the position in the log from which to read for it."""

    offset: int
    position: int


class OffsetIndex(AbstractIndex):
    """An offset index file.

    `base_offset` is by default the one that the name of the file says, as
    `00000000000000000040.index` says 40. Without `writable` or `create` the file is read once into
    private memory and never touched again. With `writable=True` changes go to the file, and `close`
    cuts the free room behind its entries. With `create=True` it is writable, and a missing file is
    made, with `max_index_size_bytes`, rounded down to whole entries; an existing one keeps its
    length. The zero slots at its end, which a crash leaves, are free room and no entries.

    Read: `lookup`, `lookup_many`, `entry`, `fetch_upper_bound_offset`, `last_offset`, iteration,
    `to_numpy`. Write: `append`, `append_many`, `truncate_to`, `truncate`, `reset`, `resize`,
    `trim_to_valid_size`. Check: `sanity_check`. File: `flush`, `close`, `rename_to`,
    `delete_if_exists`.

    Raises: InvalidArgumentError for a new file with room for no entry, and for a base offset that
    the name does not say, or says otherwise; FileNotFoundError without `create`; OSError.
    """

    ENTRY_SIZE = _ENTRY.size
    _ENTRY = _ENTRY
    _KEY_SIZE = 4
    _ENTRY_DTYPE = OFFSET_ENTRY.dtype
    _OFFSET_IS_KEY = True
    _MISSING = (0, 0)
    _NAMES = ("offset", "position")
    _SANITY_LAW = "OFFIDX-20"
    _SUFFIX = ".index"

    last_offset: int
    """Offset of the last entry, or the base offset (OFFIDX-3)."""

    def _read_last_entry(self) -> None:
        view, entries = self._current()
        last = _ENTRY.unpack_from(view, (entries - 1) * 8)[0] if entries else 0
        self.last_offset = self.base_offset + last

    def lookup(self, target_offset: int) -> OffsetPosition:
        """Return the entry with the greatest offset <= `target_offset`.

        Below the first entry: the base offset and position 0.

        Cost: at most 2 + log2(entries) probes. Laws: OFFIDX-11, OFFIDX-12.
        Raises: IndexClosedError.
        """
        if type(target_offset) is not int:
            target_offset = to_int(target_offset)
        base_offset = self.base_offset
        relative = target_offset - base_offset
        if not -BEYOND_KEYS <= relative <= BEYOND_KEYS:
            relative = BEYOND_KEYS if relative > 0 else -BEYOND_KEYS - 1
        while True:
            cuts = self._cuts
            published = self._published
            if published is None:
                raise self._closed()
            view, entries = published
            try:
                decoded = self._increasing_keys
                if decoded is not None and decoded[0] is published:
                    slot = bisect_right(decoded[1], relative - decoded[2]) - 1
                else:
                    slot = lower_slot.call(view, 8, 0, 4, entries, relative, _WARM_ENTRIES)
                    self._count_lookup(published)
                key, position = _ENTRY.unpack_from(view, slot * 8) if slot >= 0 else (0, 0)
            except Exception:  # a released view; compiled kernels say it their own way
                if self._published is published:
                    raise
            else:
                if self._cuts == cuts:
                    return make_tuple(OffsetPosition, (base_offset + key, position))

    def lookup_many(self, target_offsets: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return `lookup` of each target: (offsets, positions), each int64 of shape (targets,).

        Fastest for targets that never fall. The keys are tested once for strict growth; where they
        repeat or fall, each target is searched as `lookup` does.

        Raises: InvalidArgumentError unless the targets are one row of integers; IndexClosedError.
        """
        targets = int64_array(target_offsets, "target_offsets")
        base = self.base_offset
        relative = int64_difference(targets, base, -BEYOND_KEYS - 1, BEYOND_KEYS)
        return self._lookup_many(relative)

    def entry(self, n: int) -> OffsetPosition:
        """Return entry `n`, counted from 0, with its absolute offset (OFFIDX-13, OFFIDX-14).

        Raises: InvalidArgumentError for n >= entries; IndexError for n < 0; IndexClosedError.
        """
        key, position = self._stored(n)
        return OffsetPosition(self.base_offset + key, position)

    def fetch_upper_bound_offset(
        self, fetch_offset: OffsetPosition, fetch_size: int
    ) -> OffsetPosition | None:
        """Return the first entry whose position is not below `fetch_offset.position + fetch_size`.

        None without such an entry. The sum does not wrap, and the first entry is found as any other
        (OFFIDX-15, OFFIDX-16). Raises: IndexClosedError.
        """
        target = as_int64(to_int(fetch_offset.position) + to_int(fetch_size))

        def read(published: Published) -> OffsetPosition | None:
            view, entries = published
            slot = upper_slot(view, 8, 4, 4, entries, target, _WARM_ENTRIES)
            if slot < 0:
                return None
            key, position = _ENTRY.unpack_from(view, slot * 8)
            return OffsetPosition(self.base_offset + key, position)

        return self._reading(read)

    def append(self, offset: int, position: int) -> None:
        """Add an entry behind the last one.

        The first offset may be the base offset. The position is stored as it is (OFFIDX-9).

        Laws: OFFIDX-2 to OFFIDX-9, OFFIDX-23.
        Raises, with nothing changed: IndexFullError; InvalidOffsetError unless the offset is larger
        than the last one; IndexOffsetOverflowError; InvalidArgumentError for a position outside 32
        bits; ReadOnlyIndexError, IndexClosedError.
        """
        offset, position = to_int(offset), to_int(position)
        view, entries = self._current()
        self._check_append(entries, self.last_offset, offset, position)
        _ENTRY.pack_into(view, entries * 8, offset_distance(offset, self.base_offset), position)
        self.last_offset = offset
        self._publish(view, entries + 1)

    def _check_append(self, entries: int, last_offset: int, offset: int, position: int) -> None:
        """Raise what an append behind these entries raises."""
        verdict = offset_append(entries, self.length // 8, last_offset, self.base_offset, offset)
        if verdict != APPEND_STORE:
            raise self._refusal(verdict, entries, last_offset, offset)
        in_range(position, "the position", INT32_MIN, INT32_MAX, law="OFFIDX-1", path=self.file)
        self._check_writable("append")

    def _refusal(self, verdict: int, entries: int, last_offset: int, offset: int) -> SegproofError:
        """Return the error for an append that `offset_append` refuses."""
        if verdict == APPEND_FULL:
            return IndexFullError(
                f"the index is full with {plural(entries, 'entry')}", law="OFFIDX-4", path=self.file
            )
        if verdict == APPEND_OFFSET_TOO_SMALL:
            return InvalidOffsetError(
                f"offset {offset} is not larger than the last one, {last_offset}",
                law="OFFIDX-5",
                path=self.file,
            )
        return self._too_far(offset)

    def append_many(self, offsets: ArrayLike, positions: ArrayLike) -> None:
        """Call `append` for each pair, all or none; both arguments are rows of one length.

        Raises: what `append` raises for the first pair that it refuses; InvalidArgumentError unless
        the rows are integers and equally long.
        """
        new_offsets = int64_array(offsets, "offsets")
        new_positions = int64_array(positions, "positions")
        view, entries = self._current()
        if len(new_offsets) != len(new_positions):
            raise InvalidArgumentError("offsets and positions differ in length", path=self.file)
        if not len(new_offsets):
            return
        distances = new_offsets - self.base_offset  # wraps at 64 bits, as upstream
        bad = (distances < 0) | (distances > INT32_MAX)
        bad |= (new_positions < INT32_MIN) | (new_positions > INT32_MAX)
        bad[1:] |= new_offsets[1:] <= new_offsets[:-1]
        bad[max(self.max_entries - entries, 0) :] = True
        bad[0] |= not self.writable or (entries > 0 and int(new_offsets[0]) <= self.last_offset)
        if bool(bad.any()):
            first = int(np.argmax(bad))
            last = int(new_offsets[first - 1]) if first else self.last_offset
            pair = int(new_offsets[first]), int(new_positions[first])
            self._check_append(entries + first, last, *pair)
        records = np.empty(len(new_offsets), self._ENTRY_DTYPE)
        records["offset"], records["position"] = distances, new_positions
        written = records.tobytes()
        view[entries * 8 : entries * 8 + len(written)] = written
        self.last_offset = int(new_offsets[-1])
        self._publish(view, entries + len(new_offsets))

    def to_numpy(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return all entries as private arrays of shape (entries,): absolute offsets, positions."""
        records = self._reading(self._records)
        offsets = records["offset"].astype(np.int64) + self.base_offset
        return offsets, records["position"].astype(np.int32)

    def __iter__(self) -> Iterator[OffsetPosition]:
        """Yield the entries of this moment, in the order of the file."""
        offsets, positions = self.to_numpy()
        return map(OffsetPosition, offsets.tolist(), positions.tolist())
