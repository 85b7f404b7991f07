# SPDX-License-Identifier: Apache-2.0
"""One file of the message-key index: a hash table of chains, newest entry first.

One writer, any number of readers, no lock. The writer publishes one tuple, (bytes, index count,
begin timestamp), after each entry; a reader takes that tuple once. A slot is written before the
tuple, as upstream writes it before the count: a reader who meets an entry too new for its tuple
goes on to the one before, and so gets the answer of its tuple.

Upstream: RocketMQ IndexFile, and the parts of MappedFile that it uses (5.5.1).
Layout: kernels/rocketmq_index.py.
Laws: RMQIDX-1 to RMQIDX-42, RMQHASH-3, RMQHASH-4, RMQREF-3, RMQREF-4.
Not covered: a second writer; another process that cuts the file.
"""

import os
import struct
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import index as to_int
from typing import ClassVar, Final, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segproof.closing import Closing, told_state, undone_if_it_fails
from segproof.errors import (
    CorruptIndexError,
    IndexClosedError,
    InvalidArgumentError,
    ReadOnlyIndexError,
)
from segproof.files import REAL_FILES, File, Files, Mapping, unmap
from segproof.hints import writes
from segproof.integers import INT32_MAX, INT64_MAX, INT64_MIN, in_range, int64_array, now_ms
from segproof.kernels import rocketmq_index as kernels
from segproof.rocketmq.index_header import IndexHeader
from segproof.rocketmq.index_opening import index_file_size, open_handle
from segproof.rocketmq.index_table import ENTRY, ENTRY_DTYPE
from segproof.rocketmq.key_hash import Keys, index_key_hash, index_key_hash_many, no_text
from segproof.rocketmq.reference_resource import ReferenceResource

Int64Array = NDArray[np.int64]
Published = tuple[memoryview, int, int]
"""The bytes of the file, the index count, and the begin timestamp."""
Answer = TypeVar("Answer")

_INT32: Final = struct.Struct(">i")
_FOUND_AT_ONCE: Final = 16
_SLOTS_TOGETHER: Final = 256
"""So many slots are looked at before the first of them is changed."""
_CHAINS_TOGETHER: Final = 2048
_ROWS_AT_ONCE: Final = 4096
# Single calls run the rules as plain functions: calling compiled code takes longer than they do.
_previous_index = kernels.previous_index.interpreted
_time_difference = kernels.time_difference.interpreted


class IndexEntry(NamedTuple):
    """One entry of an index file, and where it belongs."""

    slot: int
    """Number of the slot of its hash."""
    index: int  # type: ignore[assignment]  # the method of tuples goes by this name too
    """Number of the entry, 1 for the first."""
    key_hash: int
    phy_offset: int
    time_diff: int
    """Whole seconds from the begin timestamp to the message's store time."""
    prev_index: int
    """Number of the entry before it in its slot, 0 for none."""


class IndexFile(Closing):
    """An index file, open for reading, or for writing where that was asked for.

    Read: `select_phy_offset`, `select_phy_offset_many`, `is_time_matched`, iteration. Write:
    `put_key`, `put_keys`. File: `flush`, `shutdown` (`close`), `destroy`. Made by `open`.
    """

    SLOT_SIZE: ClassVar[int] = _INT32.size
    ENTRY_SIZE: ClassVar[int] = ENTRY.size

    file_name: str
    hash_slot_num: int
    index_num: int
    """How many entries have room, entry 0 included, which stays empty."""

    def __init__(
        self,
        file_name: str,
        hash_slot_num: int,
        index_num: int,
        handle: File,
        *,
        writable: bool = False,
        files: Files = REAL_FILES,
        time: Callable[[], int] = now_ms,
    ) -> None:
        self.file_name = file_name
        self.hash_slot_num = hash_slot_num
        self.index_num = index_num
        self.writable = writable
        """Whether entries may be put."""
        self._files = files
        self._handle = handle
        mapped = handle.map if writable else handle.map_copy
        self._mapping: Mapping = mapped(self.file_size)
        self._resource = ReferenceResource(self._give_back, time=time)
        self._entries_at = IndexHeader.SIZE + hash_slot_num * 4
        self._written_below = 0
        """Entries below this number are whole, also where they are not published yet."""
        view = self._mapping.view()
        self._header = IndexHeader(view)
        self._published: Published | None = None
        self._publish(view)

    # Opening

    @classmethod
    def open(
        cls,
        file_name: str | os.PathLike[str],
        hash_slot_num: int,
        index_num: int,
        end_phy_offset: int = 0,
        end_timestamp: int = 0,
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
        time: Callable[[], int] = now_ms,
    ) -> Self:
        """Open a file for reading, and read its header.

        With `writable=True` entries may be put. With `create=True` it is writable, and a missing
        file is made, all zeros, with the directories above it. `end_phy_offset` and
        `end_timestamp`, where above 0, are those of the file before, which a writable one
        continues. Laws: RMQIDX-1, RMQIDX-9, RMQIDX-12.

        Raises, with nothing created or changed: NumberFormatError for a name that is no int64;
        InvalidArgumentError for less than one slot or two entries, or more than 2^31 - 1 bytes;
        CorruptIndexError for a file of another length; OSError.
        """
        path = os.fspath(file_name)
        slots, entries = to_int(hash_slot_num), to_int(index_num)
        seeds = in_range(end_phy_offset, "end_phy_offset"), in_range(end_timestamp, "end_timestamp")
        asked = {"writable": writable or create, "create": create}
        handle, is_new = open_handle(files, path, slots, entries, **asked)
        with undone_if_it_fails(handle.close, lambda: is_new and files.remove(path)):
            opened = cls(
                path, slots, entries, handle, writable=asked["writable"], files=files, time=time
            )
        if not is_new:
            opened.load()
        if opened.writable:
            opened._header.continue_from(*seeds)
        opened._publish(opened._current()[0])
        return opened

    def load(self) -> None:
        """Take the header from the file, as opening does (RMQIDX-7). Raises: IndexClosedError."""
        view = self._current()[0]
        self._header.load()
        self._written_below = 0
        self._publish(view)

    # What readers see

    def _current(self) -> Published:
        published = self._published
        if published is None:
            raise IndexClosedError("the index file is closed", law="RMQREF-4", path=self.file_name)
        return published

    def _publish(self, view: memoryview) -> None:
        self._published = (view, self._header.index_count, self._header.begin_timestamp)

    def _reading(self, read: Callable[[Published], Answer]) -> Answer:
        """Return `read` of what is published, again if that was replaced meanwhile."""
        while True:
            published = self._current()
            try:
                return read(published)
            except Exception:  # a newer entry; a released view, as compiled kernels say
                if self._published is published:
                    raise

    @property
    def file_size(self) -> int:
        """The length in bytes."""
        return index_file_size(self.hash_slot_num, self.index_num)

    @property
    def begin_timestamp(self) -> int:
        """Store time in milliseconds of the first entry's message."""
        return self._header.begin_timestamp

    @property
    def end_timestamp(self) -> int:
        """Store time in milliseconds of the last entry's message, no maximum (RMQIDX-25)."""
        return self._header.end_timestamp

    @property
    def begin_phy_offset(self) -> int:
        """Offset in the commit log of the first entry's message."""
        return self._header.begin_phy_offset

    @property
    def end_phy_offset(self) -> int:
        """Offset in the commit log of the last entry's message."""
        return self._header.end_phy_offset

    @property
    def hash_slot_count(self) -> int:
        """How many slots have entries, as far as puts could tell (RMQIDX-24)."""
        return self._header.hash_slot_count

    @property
    def index_count(self) -> int:
        """The number of the next entry; 1 in a new file (RMQIDX-6)."""
        return self._header.index_count

    @property
    def ref_count(self) -> int:
        """How many use the file, its owner included; 0 or less after closing."""
        return self._resource.ref_count

    @property
    def is_available(self) -> bool:
        """Whether the file is neither shut down nor destroyed."""
        return self._resource.is_available

    def __len__(self) -> int:
        """Return how many entries there are."""
        return min(self.index_count, self.index_num) - 1

    def __iter__(self) -> Iterator[IndexEntry]:
        """Yield the entries of this moment, in the order of the file. Raises: IndexClosedError."""
        self._current()
        for start in range(1, len(self) + 1, _ROWS_AT_ONCE):
            rows = self._rows(start, min(start + _ROWS_AT_ONCE, len(self) + 1))
            for number, row in enumerate(rows.tolist(), start):
                yield IndexEntry(row[0] % self.hash_slot_num, number, *row)

    def entry(self, index: int) -> IndexEntry:
        """Return the entry of a number. Raises: InvalidArgumentError; IndexClosedError."""
        if not 0 < index <= len(self):
            raise InvalidArgumentError(f"there is no entry {index}", path=self.file_name)
        row = self._rows(index, index + 1).tolist()[0]
        return IndexEntry(row[0] % self.hash_slot_num, index, *row)

    def _rows(self, start: int, end: int) -> NDArray[np.void]:
        """Return a private copy of the entries start..end-1."""
        first, last = self._entries_at + start * 20, self._entries_at + end * 20
        data = self._reading(lambda published: bytes(published[0][first:last]))
        return np.frombuffer(data, ENTRY_DTYPE)

    def is_write_full(self) -> bool:
        """Return whether no entry has room (RMQIDX-13)."""
        return self.index_count >= self.index_num

    def is_time_matched(self, begin: int, end: int) -> bool:
        """Return whether the header's times meet those from `begin` to `end` (RMQIDX-16).

        Both are inclusive, in milliseconds, in whatever order.
        """
        first, last = self.begin_timestamp, self.end_timestamp
        return (begin < first and end > last) or first <= begin <= last or first <= end <= last

    def index_key_hash_method(self, key: str) -> int:
        """Return the hash that an entry keeps of a key.

        Raises: NullError for None; WrongTypeError for anything else than a text.
        """
        if not isinstance(key, str):
            raise no_text(key, self.file_name)
        return index_key_hash(key)

    # Putting

    def put_key(self, key: str, phy_offset: int, store_timestamp: int) -> bool:
        """Add an entry for a message; return False, with nothing changed, if none has room.

        `phy_offset` is its offset in the commit log, `store_timestamp` in milliseconds.

        Laws: RMQIDX-17 to RMQIDX-27. Raises, with nothing changed: NullError for None;
        WrongTypeError for a key that is no text; InvalidArgumentError for a number outside 64 bits;
        ReadOnlyIndexError, IndexClosedError.
        """
        published = self._published or self._current()
        if not self.writable:
            raise self._read_only()
        if published[1] >= self.index_num:
            return False
        offset, timestamp = to_int(phy_offset), to_int(store_timestamp)
        if not (INT64_MIN <= offset <= INT64_MAX and INT64_MIN <= timestamp <= INT64_MAX):
            offset = in_range(offset, "phy_offset")
            timestamp = in_range(timestamp, "store_timestamp")
        self._put(published, self.index_key_hash_method(key), offset, timestamp)
        return True

    def _put(
        self, published: Published, key_hash: int, phy_offset: int, store_timestamp: int
    ) -> None:
        view, index_count, begin_timestamp = published
        assert 0 < index_count < self.index_num
        slot_at = 40 + key_hash % self.hash_slot_num * 4
        previous = _previous_index(_INT32.unpack_from(view, slot_at)[0], index_count)
        time_diff = _time_difference(store_timestamp, begin_timestamp)
        entry_at = self._entries_at + index_count * 20
        ENTRY.pack_into(view, entry_at, key_hash, phy_offset, time_diff, previous)
        self._written_below = index_count + 1
        _INT32.pack_into(view, slot_at, index_count)
        header = self._header
        if index_count <= 1:
            header.begin_with(phy_offset, store_timestamp)
        header.count_entry(previous == 0, phy_offset, store_timestamp)
        self._published = (view, header.index_count, header.begin_timestamp)

    def put_keys(self, keys: Keys, phy_offsets: ArrayLike, store_timestamps: ArrayLike) -> int:
        """Call `put_key` for each key until the file is full; return how many were put.

        Keys are a sequence of texts, a numpy array of bytes (UTF-8, each without the zero bytes at
        its end), or an Arrow array of strings; the others are rows of as many integers.

        Raises, with nothing changed: NullError where a key is None or null; InvalidArgumentError
        for keys that are not UTF-8 and for rows that differ in length; ReadOnlyIndexError,
        IndexClosedError.
        """
        self._current()
        return self.put_hashes(index_key_hash_many(keys), phy_offsets, store_timestamps)

    def put_hashes(
        self, hashes: Int64Array, phy_offsets: ArrayLike, store_timestamps: ArrayLike
    ) -> int:
        """Do what `put_keys` does for keys whose hashes are known, each 0..2^31 - 1.

        Raises, with nothing changed: InvalidArgumentError for another hash and for rows that differ
        in length; ReadOnlyIndexError, IndexClosedError.
        """
        published = self._current()
        if not self.writable:
            raise self._read_only()
        offsets = int64_array(phy_offsets, "phy_offsets")
        timestamps = int64_array(store_timestamps, "store_timestamps")
        if not len(hashes) == len(offsets) == len(timestamps):
            raise InvalidArgumentError(
                "keys, phy_offsets and store_timestamps differ in length", path=self.file_name
            )
        if len(hashes) and not 0 <= hashes.min() <= hashes.max() <= INT32_MAX:
            raise InvalidArgumentError("the hash of a key is 0..2^31 - 1", path=self.file_name)
        room = min(len(hashes), max(self.index_num - published[1], 0))
        kernels.put_entries.announce(room)
        if not kernels.put_entries.is_compiled:
            rows = zip(hashes.tolist(), offsets.tolist(), timestamps.tolist(), strict=True)
            for _, row in zip(range(room), rows, strict=False):
                self._put(self._current(), *row)
            return room
        header = np.array([*self._header.values(), 0], np.int64)
        # No reader runs beside a compiled kernel: it sees all of these entries or none.
        self._written_below = published[1] + room
        count = kernels.put_entries(
            published[0],
            self.hash_slot_num,
            self.index_num,
            hashes.data,
            offsets.data,
            timestamps.data,
            header.data,
            _SLOTS_TOGETHER,
        )
        self._header.keep(header.tolist()[:-1])
        self._publish(published[0])
        return count

    # Finding

    def select_phy_offset(
        self, phy_offsets: list[int], key: str, max_num: int, begin: int, end: int
    ) -> list[int]:
        """Append the offsets of a key to the list, newest first, until it has `max_num`; return it.

        `begin` and `end` are inclusive, in milliseconds. An entry counts with its second, rounded
        down from the begin timestamp on; keys of equal hash are one key. The walk ends after the
        first entry older than `begin`.

        Laws: RMQIDX-31 to RMQIDX-36, RMQIDX-40. Raises, with the list as it was: NullError for
        None; CorruptIndexError where the chain leads to no entry or upwards; IndexClosedError;
        InvalidArgumentError for a time outside 64 bits.
        """
        if self._published is None:
            self._current()
        if not self._resource.is_available:
            return phy_offsets
        first, last = to_int(begin), to_int(end)
        if not (INT64_MIN <= first <= INT64_MAX and INT64_MIN <= last <= INT64_MAX):
            in_range(begin, "begin")
            in_range(end, "end")
        room = to_int(max_num) - len(phy_offsets)
        phy_offsets += self._found(self.index_key_hash_method(key), room, first, last)
        return phy_offsets

    def _found(self, key_hash: int, room: int, begin: int, end: int) -> list[int]:
        return self._reading(lambda published: self._chain(published, key_hash, room, begin, end))

    def _chain(
        self, published: Published, key_hash: int, room: int, begin: int, end: int
    ) -> list[int]:
        """Return what a walk finds, at most `room` offsets."""
        view, index_count, begin_timestamp = published
        slot_at = 40 + key_hash % self.hash_slot_num * 4
        head = _INT32.unpack_from(view, slot_at)[0]
        if head == 0 or index_count <= 1:
            return []
        if not 0 < head < index_count:
            head = self._older_head(published, slot_at, head)
        if head == 0 or room <= 0:
            return []
        walk = memoryview(array("q", bytes(16 + 8 * min(room, _FOUND_AT_ONCE))))
        walk[0], walk[1] = head, min(index_count, self.index_num)
        answers: list[int] = []
        while True:
            count = kernels.walk_chain.call(
                view, self.hash_slot_num, begin_timestamp, key_hash, begin, end, walk
            )
            if count == kernels.CORRUPT:
                raise self._corrupt(slot_at)
            answers += walk[2 : 2 + count].tolist()
            if walk[0] == 0 or len(answers) == room:
                return answers
            size = min(room - len(answers), len(answers) + _FOUND_AT_ONCE)
            walk = memoryview(array("q", [*walk[:2], *bytes(size)]))

    def _older_head(self, published: Published, slot_at: int, head: int) -> int:
        """Return the newest entry of a slot that is published, 0 for none, behind newer ones.

        Raises: CorruptIndexError where the slot leads to no entry.
        """
        view, index_count, _ = published
        while index_count <= head < self._written_below:
            entry_at = self._entries_at + head * self.ENTRY_SIZE
            key_hash, _, _, previous = ENTRY.unpack_from(view, entry_at)
            if 40 + key_hash % self.hash_slot_num * 4 != slot_at or previous >= head:
                break
            head = previous
        if not 0 <= head < index_count:
            raise self._corrupt(slot_at)
        return head

    def _corrupt(self, slot_at: int) -> CorruptIndexError:
        return CorruptIndexError(
            f"the chain of slot {(slot_at - 40) // 4} leads to no entry, or upwards",
            law="RMQIDX-40",
            path=self.file_name,
            position=slot_at,
            hint=writes("rebuild the index from the commit log, into a new directory"),
        )

    def select_phy_offset_many(
        self, keys: Keys, max_num: int, begin: int, end: int
    ) -> tuple[Int64Array, Int64Array]:
        """Return `select_phy_offset` of each key, at most `max_num` each: (starts, phy_offsets).

        What key n finds is phy_offsets[starts[n]:starts[n + 1]]; keys are those of `put_keys`.

        Raises: what `select_phy_offset` raises for the first key for which it does.
        """
        self._current()
        hashes = index_key_hash_many(keys)
        asked = to_int(max_num), in_range(begin, "begin"), in_range(end, "end")
        kernels.walk_chains.announce(len(hashes))
        if not self._resource.is_available:
            return np.zeros(len(hashes) + 1, np.int64), np.empty(0, np.int64)
        if kernels.walk_chains.is_compiled:
            found = self._reading(lambda published: self._chains(published, hashes, *asked))
            if found is not None:
                return found
        each = [self._found(key_hash, *asked) for key_hash in hashes.tolist()]
        starts = np.zeros(len(each) + 1, np.int64)
        np.cumsum([len(one) for one in each], out=starts[1:])
        return starts, np.array([offset for one in each for offset in one], np.int64)

    def _chains(
        self, published: Published, hashes: Int64Array, max_num: int, begin: int, end: int
    ) -> tuple[Int64Array, Int64Array] | None:
        """Return (starts, offsets), or None where a chain leads to no entry, or upwards."""
        view, index_count, begin_timestamp = published
        starts = np.zeros(len(hashes) + 1, np.int64)
        if index_count <= 1:
            return starts, np.empty(0, np.int64)
        limit = min(index_count, self.index_num) if max_num > 0 else index_count
        asked = min(max(max_num, 0), INT64_MAX), begin, end
        lanes = _scratch(_CHAINS_TOGETHER)
        found, room = np.empty(len(hashes) + _CHAINS_TOGETHER, np.int64), 2 * _CHAINS_TOGETHER
        matches = _scratch(room)
        first = 0
        while first < len(hashes):
            last = min(first + _CHAINS_TOGETHER, len(hashes))
            state = kernels.walk_chains.call(
                view,
                self.hash_slot_num,
                limit,
                begin_timestamp,
                hashes.data,
                first,
                last,
                *asked,
                *lanes,
                *matches,
                starts.data,
                found.data,
            )
            if state == kernels.CORRUPT:
                return None
            if state == kernels.NO_ROOM:
                room *= 2
                matches = _scratch(room)
                found = np.concatenate([found, np.empty(len(found), np.int64)])
            else:
                first = last
        return starts, found[: int(starts[-1])]

    # The file

    def flush(self) -> None:
        """Store the header as it is in memory, write all to the device, and wait (RMQIDX-14).

        Does nothing once the file is closed, and for one that is open for reading.
        """
        if not self.writable or not self._resource.hold():
            return
        try:
            self._header.update_byte_buffer()
            self._mapping.flush()
        finally:
            self._resource.release()

    def shutdown(self) -> None:
        """Flush the file and unmap it; it stays on disk. A second call does nothing.

        Raises: OSError of the flush; the file is unmapped all the same.
        """
        try:
            self.flush()
        finally:
            if self._resource.is_available:
                self._resource.shutdown(0)

    def close(self) -> None:
        """Shut the file down."""
        self.shutdown()

    def destroy(self, interval_forcibly_ms: int) -> bool:
        """Unmap and delete the file; return False, with the file in place, while it is held.

        One who holds it is not asked any more `interval_forcibly_ms` after the first call. True is
        the answer even if the deletion fails (RMQREF-3). Raises: ReadOnlyIndexError.
        """
        if not self.writable:
            raise self._read_only()
        self._resource.shutdown(interval_forcibly_ms)
        if not self._resource.is_cleanup_over:
            return False
        with suppress(OSError):
            self._files.remove(self.file_name)
        return True

    def _read_only(self) -> ReadOnlyIndexError:
        return ReadOnlyIndexError(
            "the index file was opened for reading",
            path=self.file_name,
            hint="open it with writable=True",
        )

    def _give_back(self) -> bool:
        """Unmap once no reader is inside; a reader that comes later finds the file closed."""
        published, self._published = self._published, None
        if published is not None:
            try:
                unmap(published[0], self._mapping)
            finally:
                self._handle.close()
        return True

    def __repr__(self) -> str:
        state = told_state(
            f"{len(self)} of {self.index_num - 1}",
            is_open=self._published is not None,
            writable=self.writable,
        )
        return f"IndexFile({self.file_name!r}, {self.hash_slot_num}, {self.index_num}, {state})"


def _scratch(length: int) -> tuple[memoryview, memoryview]:
    """Return room for two rows of numbers."""
    return np.empty(length, np.int64).data, np.empty(length, np.int64).data
