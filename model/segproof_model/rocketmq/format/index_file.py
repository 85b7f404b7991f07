# SPDX-License-Identifier: Apache-2.0
"""One file of the message-key index: a hash table of chains, newest entry first.

Upstream: RocketMQ 5.5.1, IndexFile, and the parts of MappedFile that it uses. Otherwise:
    index_file_releases, index_file_deviations, index_service_deviations.
Layout: 40 bytes of header; hash_slot_num slots, int32 each, the number of the slot's newest entry;
    index_num entries of 20 bytes: int32 key hash @0, int64 offset @4, int32 seconds after the begin
    timestamp @12, int32 number of the slot's entry before @16. Entry 0 is never written.
Laws: RMQIDX-1 to RMQIDX-42, RMQHASH-3, RMQHASH-4, RMQREF-3, RMQREF-4.
Not covered: threads; a name that is a symbolic link. Where the JVM would touch memory that it has
    unmapped, and die, this says `unmapped`.
"""

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from segproof_model.language.files import Files
from segproof_model.language.integers import (
    INT32_MAX,
    int32_at,
    int32_bytes,
    int64_at,
    int64_bytes,
    parsed_int,
    wrap32,
    wrap64,
)
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refusal, refuse
from segproof_model.rocketmq.format.index_header import HEADER_SIZE, POSITIONS, IndexHeader
from segproof_model.rocketmq.format.key_hash import index_key_hash
from segproof_model.rocketmq.format.reference_resource import ReferenceResource

SLOT_SIZE, ENTRY_SIZE = 4, 20
LONGEST_LIST = 1 << 20
"""How many offsets a repeating chain may add: more than that exhausts some memory."""


class IndexEntry(NamedTuple):
    """One entry of an index file, and where it belongs."""

    slot: int
    """Number of the slot of its hash."""
    index: int  # type: ignore[assignment]  # hides the method of tuples
    """Number of the entry, 1 for the first."""
    key_hash: int
    phy_offset: int
    time_diff: int
    """Whole seconds from the begin timestamp to the message's store time."""
    prev_index: int
    """Number of the entry before it in its slot, 0 for none."""


def index_file_size(hash_slot_num: int, index_num: int) -> int:
    """Return the size in bytes, as 32 bits hold it (RMQIDX-1).

    >>> index_file_size(4, 6), index_file_size(10, 214748365)
    (176, 84)
    """
    return wrap32(HEADER_SIZE + hash_slot_num * SLOT_SIZE + index_num * ENTRY_SIZE)


class IndexFile(State):
    """An index file.

    >>> file = IndexFile(Files(), "20261121000000000", 4, 6)
    >>> file.put_key("T#a", 100, 1700000000123)
    True
    >>> file.select_phy_offset([], "T#a", 64, 0, 2**63 - 1)
    (100,)
    """

    def __init__(
        self,
        files: Files,
        file_name: str,
        hash_slot_num: int,
        index_num: int,
        end_phy_offset: int = 0,
        end_timestamp: int = 0,
    ) -> None:
        """Map a file, or make it, all zeros; begin and end may be given (RMQIDX-9 to RMQIDX-12).

        What is given is that of the file before, where this one continues it.
        """
        self.files, self.file_name = files, file_name
        self.hash_slot_num, self.index_num = hash_slot_num, index_num
        self.file_size = index_file_size(hash_slot_num, index_num)
        """How many bytes are mapped; the file may be longer (RMQIDX-10)."""
        self.header = IndexHeader()
        """The header in memory; that in the file may differ (RMQIDX-6, RMQIDX-7, RMQIDX-11)."""
        self.resource = self.kind(ReferenceResource)()
        self.is_mapped = True
        """Whether the bytes can be reached: until the file is shut down or destroyed."""
        if parsed_int(file_name.rpartition("/")[2], 64) is None:
            refuse(ErrorKind.NUMBER_FORMAT)
        self.map_file()
        if end_phy_offset > 0:
            self.set_header(begin_phy_offset=end_phy_offset, end_phy_offset=end_phy_offset)
        if end_timestamp > 0:
            self.set_header(begin_timestamp=end_timestamp, end_timestamp=end_timestamp)

    def map_file(self) -> None:
        """Make the file, or let it grow, by zeros (RMQIDX-9, RMQIDX-10)."""
        parents = [self.file_name[:n] for n, letter in enumerate(self.file_name) if letter == "/"]
        if any(name.startswith(f"{self.file_name}/") or name in parents for name in self.files):
            refuse(ErrorKind.IO_ERROR)
        self.files.write(self.file_name, self.image)
        if self.file_size < 0:
            refuse(ErrorKind.INVALID_ARGUMENT)
        self.files.write(self.file_name, self.image.ljust(self.file_size, b"\0"))

    # --- header and references -----------------------------------------------------------------

    begin_timestamp = property(attrgetter("header.begin_timestamp"))
    end_timestamp = property(attrgetter("header.end_timestamp"))
    begin_phy_offset = property(attrgetter("header.begin_phy_offset"))
    end_phy_offset = property(attrgetter("header.end_phy_offset"))
    hash_slot_count = property(attrgetter("header.hash_slot_count"))
    index_count = property(attrgetter("header.index_count"))
    ref_count = property(attrgetter("resource.ref_count"))
    is_available = property(attrgetter("resource.is_available"))
    """Of the header in memory, and of the resource."""

    @property
    def image(self) -> bytes:
        """The exact bytes of the file; none if there is no file."""
        return self.files.image(self.file_name)

    def check_mapped(self) -> None:
        """Refuse to touch bytes that were given back."""
        if not self.is_mapped:
            refuse(ErrorKind.UNMAPPED)

    def set_header(self, **values: int) -> None:
        """Set fields in this order, each in memory and then in the file (RMQIDX-8)."""
        for name, value in values.items():
            self.header = self.header._replace(**{name: value})
            self.put(POSITIONS[name], self.header.stored(name))

    def load(self) -> None:
        """Take the header from the file, its index count as 1 at least (RMQIDX-7)."""
        self.check_mapped()
        stored = IndexHeader.from_bytes(self.image)
        for name, position in POSITIONS.items():
            self.check_inside(position, len(stored.stored(name)))
            self.header = self.header._replace(**{name: getattr(stored, name)})
        self.header = self.header._replace(index_count=max(self.header.index_count, 1))

    # --- places --------------------------------------------------------------------------------

    def slot_of(self, key_hash: int) -> int:
        """Return the number of the slot of a hash (RMQHASH-3)."""
        return key_hash % abs(self.hash_slot_num)

    def slot_position(self, slot: int) -> int:
        """Return where a slot lies, as 32 bits hold it (RMQIDX-1, RMQIDX-5)."""
        return wrap32(HEADER_SIZE + slot * SLOT_SIZE)

    def entry_position(self, index: int) -> int:
        """Return where an entry lies, as 32 bits hold it (RMQIDX-1, RMQIDX-5)."""
        return wrap32(HEADER_SIZE + self.hash_slot_num * SLOT_SIZE + index * ENTRY_SIZE)

    def is_inside(self, position: int, size: int) -> bool:
        """Return whether so many bytes are mapped from a position on."""
        return 0 <= position <= self.file_size - size

    def check_inside(self, position: int, size: int) -> None:
        """Refuse a place outside of the file (RMQIDX-28)."""
        if not self.is_inside(position, size):
            refuse(ErrorKind.INDEX_ERROR)

    def put(self, position: int, data: bytes) -> None:
        """Write at a place inside of the file."""
        self.check_inside(position, len(data))
        image = self.image
        self.files.write(self.file_name, image[:position] + data + image[position + len(data) :])

    def slot_value(self, key_hash: int) -> int | None:
        """Return the value of the hash's slot; None if it lies outside of the file."""
        position = self.slot_position(self.slot_of(key_hash))
        return int32_at(self.image, position) if self.is_inside(position, SLOT_SIZE) else None

    def entry(self, index: int) -> IndexEntry | None:
        """Return the entry of a number; None if it lies outside of the file."""
        start, image = self.entry_position(index), self.image
        if not self.is_inside(start, ENTRY_SIZE):
            return None
        key_hash = int32_at(image, start)
        numbers = int64_at(image, start + 4), int32_at(image, start + 12)
        slot = self.slot_of(key_hash) if self.hash_slot_num else 0
        return IndexEntry(slot, index, key_hash, *numbers, int32_at(image, start + 16))

    def entries_list(self) -> list[IndexEntry]:
        """Return every entry below the count that lies in the file, in its order."""
        found = map(self.entry, range(1, min(self.header.index_count, self.index_num)))
        return [entry for entry in found if entry is not None]

    # --- keys and times ------------------------------------------------------------------------

    def index_key_hash_method(self, key: str | None) -> int:
        """Return the hash of a key."""
        return refuse(ErrorKind.NULL) if key is None else index_key_hash(key)

    def hash_with_slot(self, key: str | None) -> int:
        """Return the hash of a key; where there are no slots, none is its (RMQHASH-4)."""
        key_hash = self.index_key_hash_method(key)
        return key_hash if self.hash_slot_num else refuse(ErrorKind.ARITHMETIC)

    def is_time_matched(self, begin: int, end: int) -> bool:
        """Return whether the header's times meet those from `begin` to `end` (RMQIDX-16)."""
        first, last = self.header.begin_timestamp, self.header.end_timestamp
        return (begin < first and end > last) or first <= begin <= last or first <= end <= last

    def time_diff(self, store_timestamp: int) -> int:
        """Return the seconds that an entry keeps (RMQIDX-21)."""
        if self.header.begin_timestamp <= 0:
            return 0
        seconds = wrap64(store_timestamp - self.header.begin_timestamp) // 1000
        return min(max(seconds, 0), INT32_MAX)

    def time_read(self, entry: IndexEntry) -> int:
        """Return the store time that an entry stands for, in milliseconds (RMQIDX-33)."""
        return wrap64(self.header.begin_timestamp + 1000 * entry.time_diff)

    def accepted(self, index: int) -> int:
        """Return the number of an entry that one may follow, 0 for none (RMQIDX-20)."""
        return index if 0 < index <= self.header.index_count else 0

    # --- putting -------------------------------------------------------------------------------

    @property
    def is_write_full(self) -> bool:
        """Whether no entry has room (RMQIDX-13)."""
        return self.header.index_count >= self.index_num

    def put_key(self, key: str | None, phy_offset: int, store_timestamp: int) -> bool:
        """Add an entry; return whether it has room (RMQIDX-17 to RMQIDX-29)."""
        if self.is_write_full:
            return False
        key_hash = self.hash_with_slot(key)
        self.check_mapped()
        return refusal(partial(self.put_entry, key_hash, phy_offset, store_timestamp)) is None

    def put_entry(self, key_hash: int, phy_offset: int, store_timestamp: int) -> None:
        """Write entry, slot and header, up to the first place outside (RMQIDX-22 to RMQIDX-25)."""
        slot_position = self.slot_position(self.slot_of(key_hash))
        self.check_inside(slot_position, SLOT_SIZE)
        prev_index = self.accepted(int32_at(self.image, slot_position))
        start = self.entry_position(self.header.index_count)
        self.put(start, int32_bytes(key_hash))
        self.put(wrap32(start + 4), int64_bytes(phy_offset))
        self.put(wrap32(start + 12), int32_bytes(self.time_diff(store_timestamp)))
        self.put(wrap32(start + 16), int32_bytes(prev_index))
        self.put(slot_position, int32_bytes(self.header.index_count))
        if self.header.index_count <= 1:
            self.set_header(begin_phy_offset=phy_offset, begin_timestamp=store_timestamp)
        self.count_slot(prev_index)
        self.set_header(index_count=self.header.index_count + 1)
        self.set_header(end_phy_offset=phy_offset, end_timestamp=store_timestamp)

    def count_slot(self, prev_index: int) -> None:
        """Count the slot of a new entry, if no other was in it (RMQIDX-24)."""
        if prev_index == 0:
            self.set_header(hash_slot_count=wrap32(self.header.hash_slot_count + 1))

    # --- selecting -----------------------------------------------------------------------------

    def select_phy_offset(
        self, phy_offsets: Sequence[int], key: str | None, max_num: int, begin: int, end: int
    ) -> tuple[int, ...]:
        """Add the offsets of a key to those given, newest first (RMQIDX-31 to RMQIDX-40).

        There are `max_num` at most; `begin` and `end` are inclusive, in milliseconds. A key that
        has no hash leaves the file held (RMQIDX-39).
        """
        if not self.resource.hold():
            return tuple(phy_offsets)
        key_hash = self.hash_with_slot(key)
        found = list(phy_offsets)
        try:
            self.check_mapped()
            self.walk(found, key_hash, max_num, begin, end)
        finally:
            self.resource.release_hold()
        return tuple(found)

    def walk(self, found: list[int], key_hash: int, max_num: int, begin: int, end: int) -> None:
        """Follow the chain of a slot, newest entry first, and add what matches.

        A chain that leads back is walked for ever, or until memory is full (RMQIDX-40).
        """
        current = self.slot_value(key_hash) if self.header.index_count > 1 else 0
        room = max_num - len(found)
        visited: dict[int, int] = {}
        while current and self.accepted(current) and len(found) < max_num:
            if visited.get(current) == len(found):
                refuse(ErrorKind.ENDLESS)
            if current in visited and room > LONGEST_LIST:
                refuse(ErrorKind.OUT_OF_MEMORY)
            visited[current] = len(found)
            entry = self.entry(current)
            if entry is None or entry.time_diff < 0:
                return
            time_read = self.time_read(entry)
            if entry.key_hash == key_hash and begin <= time_read <= end:
                found.append(entry.phy_offset)
            if entry.prev_index == current or time_read < begin:
                return
            current = entry.prev_index

    # --- the file as a file --------------------------------------------------------------------

    def flush(self) -> None:
        """Write the header as it is in memory (RMQIDX-14); an error leaves the file held."""
        if self.resource.can_be_held:
            self.check_mapped()
            self.resource.hold()
            for name, position in POSITIONS.items():
                self.put(position, self.header.stored(name))
            self.resource.release_hold()

    def shutdown(self) -> None:
        """Flush the file, which may fail, and give its memory back; it stays on disk.

        The file stays available; to give the memory back twice kills the process.
        """
        failed = refusal(self.flush)
        if failed is not None and failed.kind is ErrorKind.UNMAPPED:
            raise failed
        self.is_mapped = False

    def close(self) -> None:
        """Shut the file down."""
        self.shutdown()

    def destroy(self, interval_forcibly_ms: int) -> bool:
        """Give the memory back and delete the file, unless somebody holds it (RMQREF-3).

        One who holds it is not asked any more `interval_forcibly_ms` after the first try.
        """
        self.resource.shutdown(interval_forcibly_ms, self.files.now_ms)
        if not self.resource.is_cleanup_over:
            return False
        self.files.remove(self.file_name)
        self.is_mapped = False
        return True
