# SPDX-License-Identifier: Apache-2.0
"""What the offset index and the time index share: capacity, search, resize, truncation, close.

How the file is opened, mapped and given to readers: kafka/index_mapping.py.

Upstream: Kafka, AbstractIndex (4.3.1).
Laws: ABSIDX-1 to ABSIDX-26.
Not covered: a second process that cuts a file which is open for writing here.
"""

import os
import struct
from operator import index as to_int
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segproof.closing import Closing, told_state
from segproof.errors import CorruptIndexError, IndexOffsetOverflowError, InvalidArgumentError
from segproof.files import REAL_FILES, Files
from segproof.hints import writes
from segproof.integers import INT32_MAX, as_int64
from segproof.kafka.bulk_lookup import Columns
from segproof.kafka.index_mapping import IndexMapping, Published
from segproof.kafka.segment_names import base_offset_of
from segproof.kernels.index_rules import is_full, kept_entries, offset_distance
from segproof.kernels.slot_search import entries_at, lower_slot, lower_slots_of_any

BEYOND_KEYS = INT32_MAX + 1
"""A distance above every int32 key; below every key is `-BEYOND_KEYS - 1`."""
WARM_BYTES = 8192
"""The warm section of a search: as many entries as fill this many bytes."""
_COUNTED_BYTES = 1 << 16
"""So many bytes are looked at together for the last one that is not zero."""
_ENTRIES_DECODED = {True: 100, False: 4000}
"""So many entries are decoded while one is searched, by kernels that are compiled or not."""


class AbstractIndex(IndexMapping, Closing):
    """A file of fixed-size entries, open for writing through a mapping or for reading as a copy.

    Not used directly: see `OffsetIndex` and `TimeIndex`.
    """

    _KEY_SIZE: ClassVar[int]
    _ENTRY: ClassVar[struct.Struct]
    _ENTRY_DTYPE: ClassVar[np.dtype[Any]]
    """One entry with the fields `key` and `value`, big-endian as in the file."""
    _OFFSET_IS_KEY: ClassVar[bool]
    """Whether the keys are offsets, or else the values."""
    _MISSING: ClassVar[tuple[int, int]]
    """Key and value, as if stored, that a target below all keys finds."""
    _NAMES: ClassVar[tuple[str, str]]
    """What key and value are called in messages."""
    _SANITY_LAW: ClassVar[str]
    _SUFFIX: ClassVar[str]
    """How the names of these files end."""

    def __init__(
        self,
        file: str | os.PathLike[str],
        base_offset: int | None = None,
        max_index_size_bytes: int = -1,
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
    ) -> None:
        self.base_offset = base_offset_of(os.fspath(file), self._SUFFIX, base_offset)
        self._columns: tuple[Published, Columns] | None = None
        self._increasing_keys: tuple[Published, memoryview, int] | None = None
        self._searches: tuple[Published | None, int] = (None, 0)
        super().__init__(file, max_index_size_bytes, writable=writable, create=create, files=files)
        self._read_last_entry()

    def _count_entries(self, view: memoryview) -> int:
        """Count the slots up to the last one that is not all zero: the rest was never written.

        The only slot of a time index is an entry, be it zero.
        """
        end = self._whole(len(view))
        if end == self.ENTRY_SIZE and not self._OFFSET_IS_KEY:
            return 1  # timestamp 0 for the base offset: a closed file has no free slot
        while end:
            start = max(end - _COUNTED_BYTES, 0)
            written = len(bytes(view[start:end]).rstrip(b"\0"))
            if written:
                return -(-(start + written) // self.ENTRY_SIZE)
            end = start
        return 0

    # Room and entries

    def __len__(self) -> int:
        """Return the number of entries."""
        return self.entries

    @property
    def max_entries(self) -> int:
        """How many entries the file has room for."""
        return self.length // self.ENTRY_SIZE

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all entries (ABSIDX-6)."""
        return self.ENTRY_SIZE * self.entries

    @property
    def is_full(self) -> bool:
        """Whether an append is refused."""
        return is_full(self.entries, self.max_entries, 0)

    def relative_offset(self, offset: int) -> int:
        """Return the distance of `offset` from the base offset (ABSIDX-21).

        Raises: IndexOffsetOverflowError outside 0..2147483647, both inclusive.
        """
        offset = to_int(offset)
        distance = offset_distance(offset, self.base_offset)
        if not 0 <= distance <= INT32_MAX:
            raise self._too_far(offset)
        return distance

    def _too_far(self, offset: int) -> IndexOffsetOverflowError:
        distance = offset_distance(offset, self.base_offset)
        return IndexOffsetOverflowError(
            f"offset {offset} is {distance} away from the base offset {self.base_offset}",
            law="OFFIDX-6",
            path=self.file,
            expected=f"0 to {INT32_MAX}",
            actual=distance,
            hint="roll a new segment before appending",
        )

    def can_append_offset(self, offset: int) -> bool:
        """Return whether the distance from the base offset is in 0..2147483647."""
        return 0 <= offset_distance(to_int(offset), self.base_offset) <= INT32_MAX

    def _stored(self, n: int) -> tuple[int, int]:
        """Return key and value of entry `n` as they are stored."""
        number = to_int(n)

        def read(published: Published) -> tuple[int, int]:
            view, entries = published
            if number >= entries:
                raise InvalidArgumentError(
                    f"no entry {number} among {entries}", law="OFFIDX-13", path=self.file
                )
            if number < 0:
                raise IndexError(f"{self.file}: entry number {number} is negative [OFFIDX-13]")
            key, value = self._ENTRY.unpack_from(view, number * self.ENTRY_SIZE)
            return key, value

        return self._reading(read)

    def lookup_slot(self, target: int) -> int:
        """Return the number of the entry that `lookup` of the target finds; -1 below the first.

        Raises: IndexClosedError.
        """
        if self._OFFSET_IS_KEY:
            key = min(max(to_int(target) - self.base_offset, -BEYOND_KEYS - 1), BEYOND_KEYS)
        else:
            key = as_int64(target)
        size, key_size, warm_entries = (
            self.ENTRY_SIZE,
            self._KEY_SIZE,
            WARM_BYTES // self.ENTRY_SIZE,
        )
        return self._reading(
            lambda now: lower_slot(now[0], size, 0, key_size, now[1], key, warm_entries)
        )

    def sanity_check(self) -> None:
        """Check every entry: keys strictly increasing, values not falling, nothing negative.

        So offsets lie from the base offset on. Laws: OFFIDX-20, TIMEIDX-17, stricter than upstream.
        Raises: CorruptIndexError, with the position of the first bad entry; IndexClosedError.
        """
        records = self._reading(self._records)
        size = self.ENTRY_SIZE
        if self.length % size:
            raise self._corrupt(
                f"the length {self.length} is no multiple of {size}", self.max_entries
            )
        keys, values = (records[name].astype(np.int64) for name in records.dtype.names or ())
        good = (keys >= 0) & (values >= 0)
        good[1:] &= (keys[:-1] < keys[1:]) & (values[:-1] <= values[1:])
        if not bool(good.all()):
            number = int(np.argmin(good))
            (key_name, value_name), (key_base, value_base) = self._NAMES, self._bases()
            key, value = key_base + int(keys[number]), value_base + int(values[number])
            raise self._corrupt(
                f"entry {number} ({key_name} {key}, {value_name} {value}) does not follow the one "
                "before",
                number,
            )

    def _corrupt(self, message: str, number: int) -> CorruptIndexError:
        return CorruptIndexError(
            message,
            law=self._SANITY_LAW,
            path=self.file,
            position=number * self.ENTRY_SIZE,
            hint=writes("rebuild the index from its log, into a new directory"),
        )

    # What the writer changes

    def resize(self, new_size: int) -> bool:
        """Set the file length to `new_size` rounded to whole entries; return whether it changed.

        Entries stay; grown bytes are zero (ABSIDX-7, ABSIDX-8).

        Raises, with nothing changed: InvalidArgumentError below the bytes of the entries and above
        2147483647; ReadOnlyIndexError, IndexClosedError; BufferError where something holds a view
        for good. OSError: the length is as before, or, where the file could not be mapped again,
        the index is closed.
        """
        new_size = to_int(new_size)
        view, entries = self._current()
        size = self._whole(new_size)
        if size == self.length:
            return False
        self._check_writable("resize")
        if size < entries * self.ENTRY_SIZE:
            raise InvalidArgumentError(
                f"{new_size} bytes do not hold the {entries} entries",
                law="ABSIDX-9",
                path=self.file,
                expected=f"at least {entries * self.ENTRY_SIZE}",
                actual=new_size,
            )
        self._check_size(new_size, "ABSIDX-7")
        self._remap(view, entries, size)
        self._read_last_entry()
        return True

    def trim_to_valid_size(self) -> None:
        """Cut the file behind the last entry (ABSIDX-12)."""
        self.resize(self.size_in_bytes)

    def truncate_to(self, offset: int) -> None:
        """Keep the entries with an offset below `offset`; the file stays as it is.

        Timestamps play no part. In a time index, where offsets may repeat, the entries kept are
        those that the probes of the search leave: the first of the equal ones may stay.

        Laws: OFFIDX-17, OFFIDX-18, TIMEIDX-11, TIMEIDX-12, ABSIDX-20. Raises: IndexClosedError.
        """
        self._keep_entries(self.entries_below(offset))

    def entries_below(self, offset: int) -> int:
        """Return how many entries a truncation to `offset` keeps. Raises: IndexClosedError."""
        distance = to_int(offset) - self.base_offset
        relative = min(max(distance, -BEYOND_KEYS - 1), BEYOND_KEYS)
        position = 0 if self._OFFSET_IS_KEY else self._KEY_SIZE
        warm_entries = WARM_BYTES // self.ENTRY_SIZE
        view, entries = self._current()
        return kept_entries(view, self.ENTRY_SIZE, position, entries, relative, warm_entries)

    def truncate(self) -> None:
        """Forget every entry; the file stays as it is (ABSIDX-20)."""
        self._keep_entries(0)

    def _keep_entries(self, count: int) -> None:
        view, _ = self._current()
        self._publish(view, count)
        # After publishing, before the first slot is written over: a reader that began with the
        # slots that are free now sees the change and begins again.
        self._cuts += 1
        self._read_last_entry()

    def reset(self) -> None:
        """Forget every entry and give the file its maximum size again (ABSIDX-13).

        Raises: InvalidArgumentError for a negative maximum size, with nothing changed.
        """
        self._current()
        size = self._whole(self.max_index_size_bytes)
        if size != self.length:
            self._check_writable("reset")
        if size < 0:
            raise InvalidArgumentError(
                "the maximum size is negative", law="ABSIDX-13", path=self.file, actual=size
            )
        self.truncate()
        self.resize(size)

    def flush(self) -> None:
        """Write the entries and the length to the device and wait."""
        self._current()
        if self._mapping is None:
            return
        if self.length:
            self._mapping.flush()
        elif self._handle is not None:
            # Nothing is mapped, so there is nothing to flush; after a loss of power the file could
            # have its old length again, and zeros that count as entries.
            self._handle.sync()

    def close(self) -> None:
        """Cut the file behind the last entry, if it is open for writing, and unmap (ABSIDX-14).

        A second close does nothing.
        """
        if self._published is None:
            return
        if self.writable:
            self.trim_to_valid_size()
        self.close_handler()

    def close_handler(self) -> None:
        """Unmap; the file keeps its length (ABSIDX-16)."""
        super().close_handler()
        self._columns = self._increasing_keys = None
        self._searches = (None, 0)

    def delete_if_exists(self) -> bool:
        """Close without trimming, remove the file, return whether there was one (ABSIDX-18)."""
        self.close_handler()
        return self._files.remove(self.file)

    def rename_to(self, file: str | os.PathLike[str]) -> None:
        """Move the file, over an existing one too; the index stays open (ABSIDX-19).

        Raises: FileNotFoundError and other OSErrors, with `file` as it was.
        """
        target = os.fspath(file)
        self._files.rename(self.file, target)
        self.file = target

    def update_parent_dir(self, parent_dir: str | os.PathLike[str]) -> None:
        """Say that the directory was moved; only the remembered path changes."""
        self.file = os.path.join(os.fspath(parent_dir), os.path.basename(self.file))

    def __repr__(self) -> str:
        state = told_state(
            f"{self.entries} of {self.max_entries}",
            is_open=self._published is not None,
            writable=self.writable,
        )
        return f"{type(self).__name__}({self.file!r}, base_offset={self.base_offset}, {state})"

    def _read_last_entry(self) -> None:
        raise NotImplementedError

    # Bulk

    def _lookup_many(
        self, targets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (keys, values) of the lower slots of the targets, offsets absolute."""

        def look_up(published: Published) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            columns = self._columns_of(published, len(targets))
            if columns is not None and columns.increase:
                return columns.look_up(targets)
            return self._each_entry_of(published, targets)

        return self._reading(look_up)

    def _bases(self) -> tuple[int, int]:
        """Return what is added to a stored key and to a stored value."""
        return (self.base_offset, 0) if self._OFFSET_IS_KEY else (0, self.base_offset)

    def _columns_of(self, published: Published, lookups: int) -> Columns | None:
        """Return the decoded entries of this moment; None where so few lookups do not pay it."""
        if self._columns is not None and self._columns[0] is published:
            return self._columns[1]
        if lookups * _ENTRIES_DECODED[lower_slot.is_compiled] < published[1]:
            return None
        columns = Columns.of(self._records(published), self._bases(), self._MISSING)
        self._columns = (published, columns)
        if columns.increase:
            self._increasing_keys = (published, *columns.distances())
        return columns

    def _count_lookup(self, published: Published) -> None:
        """Count a lookup that searched the bytes; decode the entries after many of one moment."""
        counted = self._searches
        count = counted[1] + 1 if counted[0] is published else 1
        self._searches = (published, count)
        self._columns_of(published, count)

    def _each_entry_of(
        self, published: Published, targets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Search for each target as `lookup` does, on the bytes as they are."""
        view, entries = published
        slots, keys, values = (np.empty(len(targets), np.int64) for _ in range(3))
        if len(targets):
            shape = (view, self.ENTRY_SIZE, 0, self._KEY_SIZE)
            warm_entries = WARM_BYTES // self.ENTRY_SIZE
            answers = (slots.data, keys.data, values.data)
            for kernel in (lower_slots_of_any, entries_at):
                kernel.announce(len(targets))
            lower_slots_of_any(*shape, entries, targets.data, slots.data, warm_entries)
            entries_at(*shape, self._KEY_SIZE, *answers, *self._MISSING)
        key_base, value_base = self._bases()
        keys += key_base
        values += value_base
        return keys, values

    def _records(self, published: Published) -> NDArray[np.void]:
        """Return a private copy of the entries, fields `key` and `value`."""
        view, entries = published
        return np.frombuffer(bytes(view[: entries * self.ENTRY_SIZE]), self._ENTRY_DTYPE)
