# SPDX-License-Identifier: Apache-2.0
"""One file of the message-key index: a hash table of chains, newest entry first.

Mirrors: impl/segproof/rocketmq/index_file.py.
Upstream: RocketMQ IndexFile, and the parts of MappedFile that it uses (4.7.0 to 5.5.1).
Layout: 40 bytes of header; hash_slot_num slots, int32 each, the number of the slot's newest entry;
    index_num entries of 20 bytes: int32 key hash @0, int64 offset @4, int32 seconds after the begin
    timestamp @12, int32 number of the slot's entry before @16. Entry 0 is never written.
Laws: RMQIDX-1 to RMQIDX-42, RMQHASH-3, RMQHASH-4, RMQREF-3, RMQREF-4.
Not covered: threads; a name that is a symbolic link. Where the JVM would touch memory that it has
    unmapped, and die, this says `unmapped`.
Used by: index_service, the harness.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Self

from segproof_model.directory import Directory
from segproof_model.kafka.checkpoint_file import parsed_int
from segproof_model.language.integers import (
    INT32_MAX,
    int32_at,
    int32_bytes,
    int64_at,
    int64_bytes,
    wrap32,
    wrap64,
)
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import ROCKETMQ_5_5_1, Profile
from segproof_model.rocketmq.index_header import IndexHeader
from segproof_model.rocketmq.key_hash import index_key_hash
from segproof_model.rocketmq.reference_resource import ReferenceResource
from segproof_model.values import replace

CORRUPT_INDEX = Raised(ErrorKind.CORRUPT_INDEX)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
UNMAPPED = Raised(ErrorKind.UNMAPPED)
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
    return wrap32(IndexHeader.SIZE + wrap32(hash_slot_num * 4) + wrap32(index_num * 20))


def is_sound_geometry(hash_slot_num: int, index_num: int) -> bool:
    """Return whether there is a slot, an entry to write, and a size that 31 bits hold."""
    size = IndexHeader.SIZE + hash_slot_num * 4 + index_num * 20
    return hash_slot_num >= 1 and index_num >= 2 and size <= INT32_MAX


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The state of an index file.

    >>> file = IndexFile.open("20261121000000000", 4, 6).after
    >>> file = file.put_key("T#a", 100, 1700000000123).after
    >>> file.select_phy_offset([], "T#a", 64, 0, 2**63 - 1).outcome
    (100,)
    """

    SLOT_SIZE: ClassVar[int] = 4
    ENTRY_SIZE: ClassVar[int] = 20

    profile: Profile
    file_name: str
    hash_slot_num: int
    index_num: int
    """How many entries have room, entry 0 included, which stays empty."""
    directory: Directory
    header: IndexHeader = field(default_factory=IndexHeader)
    """The header in memory; that in the file may differ (RMQIDX-6, RMQIDX-7, RMQIDX-11)."""
    resource: ReferenceResource = field(default_factory=ReferenceResource)
    is_mapped: bool = True
    """Whether the bytes can be reached: until the file is shut down or destroyed."""
    now_ms: int = 0
    """What a clock would say."""

    @classmethod
    def open(
        cls,
        file_name: str,
        hash_slot_num: int,
        index_num: int,
        end_phy_offset: int = 0,
        end_timestamp: int = 0,
        *,
        directory: Directory = Directory(),
        profile: Profile = ROCKETMQ_5_5_1,
        now_ms: int = 0,
    ) -> "Step[IndexFile] | Step[Directory]":
        """Open a file, or make it, all zeros; begin and end may be given (RMQIDX-9 to RMQIDX-12).

        What is given is that of the file before, where this one continues it.
        """
        refusal = _refusal(file_name, hash_slot_num, index_num, directory, profile)
        if refusal is not None:
            return Step(directory, refusal)
        image = directory.read(file_name)
        size = index_file_size(hash_slot_num, index_num)
        if size < 0:
            return Step(directory.write(file_name, image or b""), INVALID_ARGUMENT)
        grown = directory.write(file_name, (image or b"").ljust(size, b"\0"))
        opened = cls(profile, file_name, hash_slot_num, index_num, grown, now_ms=now_ms)
        if image is not None and profile.rmq_opening_loads:
            opened = opened.load().after
        step = opened._seeded(end_phy_offset, end_timestamp)
        return step if step.outcome is None else Step(step.after.directory, step.outcome)

    def _seeded(self, end_phy_offset: int, end_timestamp: int) -> Step[Self]:
        seeds: dict[str, int] = {}
        if end_phy_offset > 0:
            seeds |= {"begin_phy_offset": end_phy_offset, "end_phy_offset": end_phy_offset}
        if end_timestamp > 0:
            seeds |= {"begin_timestamp": end_timestamp, "end_timestamp": end_timestamp}
        step = self._with_header(seeds)
        return Step(step.after, None if step.outcome else Raised(ErrorKind.INDEX_ERROR))

    @property
    def file_size(self) -> int:
        """How many bytes are mapped; the file may be longer (RMQIDX-10)."""
        return index_file_size(self.hash_slot_num, self.index_num)

    @property
    def begin_timestamp(self) -> int:
        """The begin timestamp in memory, in milliseconds."""
        return self.header.begin_timestamp

    @property
    def end_timestamp(self) -> int:
        """The end timestamp in memory, in milliseconds."""
        return self.header.end_timestamp

    @property
    def begin_phy_offset(self) -> int:
        """The begin offset in memory."""
        return self.header.begin_phy_offset

    @property
    def end_phy_offset(self) -> int:
        """The end offset in memory."""
        return self.header.end_phy_offset

    @property
    def hash_slot_count(self) -> int:
        """The slot count in memory."""
        return self.header.hash_slot_count

    @property
    def index_count(self) -> int:
        """The index count in memory: the number of the next entry."""
        return self.header.index_count

    @property
    def ref_count(self) -> int:
        """How many use the file, its owner included."""
        return self.resource.ref_count

    @property
    def is_available(self) -> bool:
        """Whether the file answers: not shut down, as segproof does it, and not destroyed."""
        return self.resource.is_available

    @property
    def is_refused(self) -> bool:
        """Whether the profile refuses any use, because the file is closed."""
        return not (self.profile.rmq_closed_answers_nothing or self.is_mapped)

    @property
    def image(self) -> bytes:
        """The exact bytes of the file; none if there is no file."""
        return self.directory.read(self.file_name) or b""

    def to_bytes(self) -> bytes:
        """Return the exact bytes of the file."""
        return self.image

    def sees(self, directory: Directory) -> Self:
        """Return the same file in the directory as others left it."""
        return replace(self, directory=directory)

    def index_key_hash_method(self, key: str | None) -> int | Raised:
        """Return the hash of a key; a null one raises the null error."""
        return Raised(ErrorKind.NULL) if key is None else index_key_hash(key)

    def _hash_or_error(self, key: str | None) -> int | Raised:
        """Return the hash of a key, or why it has no slot (RMQHASH-4)."""
        if key is not None and self.hash_slot_num == 0:
            return Raised(ErrorKind.ARITHMETIC)
        return self.index_key_hash_method(key)

    def slot_of(self, key_hash: int) -> int:
        """Return the number of the slot of a hash (RMQHASH-3)."""
        return key_hash % abs(self.hash_slot_num)

    def slot_position(self, slot: int) -> int:
        """Return where a slot lies, as 32 bits hold it (RMQIDX-1, RMQIDX-5)."""
        return wrap32(IndexHeader.SIZE + wrap32(slot * self.SLOT_SIZE))

    def entry_position(self, index: int) -> int:
        """Return where an entry lies, as 32 bits hold it (RMQIDX-1, RMQIDX-5)."""
        slots_end = IndexHeader.SIZE + wrap32(self.hash_slot_num * self.SLOT_SIZE)
        return wrap32(slots_end + wrap32(index * self.ENTRY_SIZE))

    def _is_inside(self, position: int, size: int) -> bool:
        return 0 <= position <= self.file_size - size

    def slot_value(self, key_hash: int) -> int | None:
        """Return the value of the hash's slot, or None if it lies outside the file."""
        position = self.slot_position(self.slot_of(key_hash))
        return int32_at(self.image, position) if self._is_inside(position, 4) else None

    def entry(self, index: int) -> IndexEntry | None:
        """Return what stands where an entry lies, or None if that is outside the file."""
        start, image = self.entry_position(index), self.image
        if not self._is_inside(start, self.ENTRY_SIZE):
            return None
        key_hash = int32_at(image, start)
        numbers = int64_at(image, start + 4), int32_at(image, start + 12)
        slot = self.slot_of(key_hash) if self.hash_slot_num else 0
        return IndexEntry(slot, index, key_hash, *numbers, int32_at(image, start + 16))

    def entries_list(self) -> list[IndexEntry]:
        """Every entry below the count that lies in the file, in its order."""
        found = (self.entry(index) for index in range(1, min(self.index_count, self.index_num)))
        return [entry for entry in found if entry is not None]

    def _with_bytes(self, writes: Iterable[tuple[int, bytes]]) -> Step[Self]:
        """Write in this order; the outcome is whether no place lay outside (RMQIDX-28)."""
        image = self.image
        inside = True
        for position, data in writes:
            if not self._is_inside(position, len(data)):
                inside = False
                break
            image = image[:position] + data + image[position + len(data) :]
        return Step(replace(self, directory=self.directory.write(self.file_name, image)), inside)

    def _with_header(self, values: dict[str, int]) -> Step[Self]:
        """Set fields in this order, each in memory and then in the file (RMQIDX-8)."""
        file = self
        for name, value in values.items():
            header = replace(file.header, **{name: value})
            step = replace(file, header=header)._with_bytes(
                [(header.POSITIONS[name], header.stored(name))]
            )
            file = step.after
            if not step.outcome:
                return Step(file, False)
        return Step(file, True)

    def load(self) -> Step[Self]:
        """Take the header from the file (RMQIDX-7)."""
        if not self.is_mapped:
            return Step(self, UNMAPPED)
        stored = IndexHeader.from_bytes(self.image.ljust(IndexHeader.SIZE, b"\0"))
        inside = [
            name
            for name, position in IndexHeader.POSITIONS.items()
            if self._is_inside(position, len(stored.stored(name)))
        ]
        header = replace(self.header, **{name: getattr(stored, name) for name in inside})
        if len(inside) < len(IndexHeader.POSITIONS):
            return Step(replace(self, header=header), Raised(ErrorKind.INDEX_ERROR))
        return Step(replace(self, header=header.loaded()))

    def is_write_full(self) -> bool:
        """Return whether no entry has room (RMQIDX-13)."""
        return self.index_count >= self.index_num

    def is_time_matched(self, begin: int, end: int) -> bool:
        """Return whether the header's times meet those from `begin` to `end` (RMQIDX-16)."""
        first, last = self.begin_timestamp, self.end_timestamp
        return (begin < first and end > last) or first <= begin <= last or first <= end <= last

    def time_diff(self, store_timestamp: int) -> int:
        """Return the seconds that an entry keeps (RMQIDX-21)."""
        if self.begin_timestamp <= 0:
            return 0
        seconds = wrap64(store_timestamp - self.begin_timestamp) // 1000
        return min(max(seconds, 0), INT32_MAX)

    def accepted(self, slot_value: int) -> int:
        """Return the entry that a new one of the slot follows, 0 for none (RMQIDX-20)."""
        newest = self.index_count - self.profile.rmq_checks_chains
        return slot_value if 0 < slot_value <= newest else 0

    def put_key(self, key: str | None, phy_offset: int, store_timestamp: int) -> Step[Self]:
        """Add an entry; the outcome is whether it has room (RMQIDX-17 to RMQIDX-29)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        if self.is_write_full():
            return Step(self, False)
        key_hash = self._hash_or_error(key)
        if isinstance(key_hash, Raised):
            return Step(self, key_hash)
        if not self.is_mapped:
            return Step(self, UNMAPPED)
        slot_value = self.slot_value(key_hash)
        if slot_value is None:
            return Step(self, False)
        prev_index = self.accepted(slot_value)
        start = self.entry_position(self.index_count)
        written = self._with_bytes(
            [
                (start, int32_bytes(key_hash)),
                (wrap32(start + 4), int64_bytes(phy_offset)),
                (wrap32(start + 12), int32_bytes(self.time_diff(store_timestamp))),
                (wrap32(start + 16), int32_bytes(prev_index)),
                (self.slot_position(self.slot_of(key_hash)), int32_bytes(self.index_count)),
            ]
        )
        if not written.outcome:
            return written
        return written.after._counted(prev_index, phy_offset, store_timestamp)

    def _counted(self, prev_index: int, phy_offset: int, store_timestamp: int) -> Step[Self]:
        """Set the header for the entry just written (RMQIDX-23 to RMQIDX-25)."""
        values: dict[str, int] = {}
        if self.index_count <= 1:
            values |= {"begin_phy_offset": phy_offset, "begin_timestamp": store_timestamp}
        if prev_index == 0 or self.profile.rmq_slot_count_each_put:
            values["hash_slot_count"] = wrap32(self.hash_slot_count + 1)
        values["index_count"] = self.index_count + 1
        values |= {"end_phy_offset": phy_offset, "end_timestamp": store_timestamp}
        return self._with_header(values)

    def select_phy_offset(
        self, phy_offsets: Sequence[int], key: str | None, max_num: int, begin: int, end: int
    ) -> Step[Self]:
        """Add the offsets of a key to those given, newest first (RMQIDX-31 to RMQIDX-40).

        The outcome is all of them, `max_num` at most where none was given; `begin` and `end` are
        inclusive, in milliseconds.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        held = self.resource.hold()
        if not held.outcome:
            return Step(self, tuple(phy_offsets))
        key_hash = self._hash_or_error(key)
        if isinstance(key_hash, Raised):
            leaks = self.profile.rmq_null_key_leaks
            return Step(replace(self, resource=held.after) if leaks else self, key_hash)
        if not self.is_mapped:
            return Step(self, UNMAPPED)
        walk = self._checked_walk if self.profile.rmq_checks_chains else self._walk
        return Step(self, walk(list(phy_offsets), key_hash, max_num, begin, end))

    def time_read(self, entry: IndexEntry) -> int:
        """Return the store time that an entry stands for, in milliseconds (RMQIDX-33)."""
        return wrap64(self.begin_timestamp + 1000 * entry.time_diff)

    def _walk(
        self, found: list[int], key_hash: int, max_num: int, begin: int, end: int
    ) -> tuple[int, ...] | Raised:
        """Follow the chain of a slot as upstream does, which may never end (RMQIDX-40)."""
        current = self.slot_value(key_hash)
        if current is None or not 0 < current <= self.index_count or self.index_count <= 1:
            return tuple(found)
        visited: dict[int, int] = {}
        room = max_num - len(found)
        while len(found) < max_num:
            if visited.get(current) == len(found):
                return Raised(ErrorKind.ENDLESS)
            if current in visited and room > LONGEST_LIST:
                return Raised(ErrorKind.OUT_OF_MEMORY)
            visited[current] = len(found)
            entry = self.entry(current)
            if entry is None or entry.time_diff < 0:
                break
            time_read = self.time_read(entry)
            if entry.key_hash == key_hash and begin <= time_read <= end:
                found.append(entry.phy_offset)
            leads_on = 0 < entry.prev_index <= self.index_count and entry.prev_index != current
            if not leads_on or time_read < begin:
                break
            current = entry.prev_index
        return tuple(found)

    def _checked_walk(
        self, found: list[int], key_hash: int, max_num: int, begin: int, end: int
    ) -> tuple[int, ...] | Raised:
        """Follow the chain of a slot downwards; one that does not lead there is corrupt."""
        current = self.slot_value(key_hash)
        if current == 0 or self.index_count <= 1:
            return tuple(found)
        above = self.index_count
        while current is not None and 0 < current < above:
            if len(found) >= max_num:
                return tuple(found)
            # A number without room is none, though its place may wrap into the file.
            entry = self.entry(current) if current < self.index_num else None
            if entry is None or entry.time_diff < 0:
                return CORRUPT_INDEX
            time_read = self.time_read(entry)
            if entry.key_hash == key_hash and begin <= time_read <= end:
                found.append(entry.phy_offset)
            if entry.prev_index == 0 or time_read < begin:
                return tuple(found)
            above, current = current, entry.prev_index
        return CORRUPT_INDEX

    def flush(self) -> Step[Self]:
        """Write the header as it is in memory (RMQIDX-14)."""
        held = self.resource.hold()
        if not held.outcome:
            return Step(self)
        if not self.is_mapped:
            return Step(self, UNMAPPED)
        step = self._with_bytes(
            (position, self.header.stored(name)) for name, position in IndexHeader.POSITIONS.items()
        )
        if not step.outcome:
            return Step(replace(step.after, resource=held.after), Raised(ErrorKind.INDEX_ERROR))
        return Step(step.after)

    def shutdown(self) -> Step[Self]:
        """Flush the file and give its memory back; it stays on disk (5.0 on).

        Upstream the file stays available, and any use of its bytes kills the process; segproof's
        is closed, and a second shutdown does nothing.
        """
        flushed = self.flush()
        hides = self.profile.rmq_shutdown_hides_errors and flushed.outcome != UNMAPPED
        if isinstance(flushed.outcome, Raised) and not hides:
            return flushed
        closed = replace(flushed.after, is_mapped=False)
        if self.profile.rmq_closed_answers_nothing or not self.is_available:
            return Step(closed)
        return Step(replace(closed, resource=closed.resource.shutdown(0, now_ms=self.now_ms).after))

    def close(self) -> Step[Self]:
        """Shut the file down."""
        return self.shutdown()

    def destroy(self, interval_forcibly_ms: int) -> Step[Self]:
        """Give the memory back and delete the file, unless somebody holds it (RMQREF-3).

        One who holds it is not asked any more `interval_forcibly_ms` after the first try.
        """
        resource = self.resource.shutdown(interval_forcibly_ms, now_ms=self.now_ms).after
        if not resource.is_cleanup_over:
            return Step(replace(self, resource=resource), False)
        directory = self.directory.remove(self.file_name)
        return Step(replace(self, resource=resource, directory=directory, is_mapped=False), True)


def _refusal(
    file_name: str, hash_slot_num: int, index_num: int, directory: Directory, profile: Profile
) -> Raised | None:
    """Return why a file is not opened before anything is created, or None (RMQIDX-9)."""
    if parsed_int(file_name.rpartition("/")[2], 64) is None:
        return Raised(ErrorKind.NUMBER_FORMAT)
    if profile.rmq_checks_geometry and not is_sound_geometry(hash_slot_num, index_num):
        return INVALID_ARGUMENT
    parents = [file_name[:end] for end, letter in enumerate(file_name) if letter == "/"]
    if any(name.startswith(f"{file_name}/") or name in parents for name in directory):
        return Raised(ErrorKind.IO_ERROR)
    image = directory.read(file_name)
    size = index_file_size(hash_slot_num, index_num)
    if profile.rmq_checks_geometry and image and len(image) != size:
        return CORRUPT_INDEX
    return None
