# SPDX-License-Identifier: Apache-2.0
"""What the offset index and the time index share: capacity, slots, search, resize, trim, reset.

Upstream: Kafka 4.4.0, AbstractIndex. Otherwise: index_releases, index_deviations.
Layout: entries of one size back to back, nothing else in the file.
Laws: ABSIDX-1 to ABSIDX-26.
Not covered: directories that vanish under a file.
"""

from itertools import pairwise
from struct import Struct
from typing import ClassVar

from segproof_model.language.files import Files
from segproof_model.language.integers import INT32_MAX, truncated_multiple, wrap64
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refuse

WARM_BYTES = 8192
"""A search looks at the last entries first: at this // entry size of them, and one more."""


class AbstractIndex(State):
    """An index over a file of slots."""

    layout: ClassVar[Struct]
    """The two numbers of an entry as they are stored."""
    entry_size: ClassVar[int]
    corrupt_kind: ClassVar = ErrorKind.CORRUPT_INDEX
    mismatch_kind: ClassVar = ErrorKind.ILLEGAL_STATE
    resized: ClassVar[bool | None] = True
    """The answer of a resize that changed the file."""

    def __init__(
        self,
        files: Files,
        name: str,
        base_offset: int,
        max_index_size_bytes: int = -1,
        writable: bool = True,
    ) -> None:
        self.files, self.name, self.base_offset = files, name, base_offset
        self.max_index_size_bytes, self.writable = max_index_size_bytes, writable
        self.open_file()

    def open_file(self) -> None:
        """Open the file, or create one of zeros (ABSIDX-1 to ABSIDX-4)."""
        self.is_mapped = True
        is_new = self.name not in self.files
        if is_new:
            self.create()
        self.length = len(self.image)
        """File length in bytes, as the index believes."""
        self.max_entries = self.length // self.entry_size
        self.keep_entries(0 if is_new else self.count_entries())

    def create(self) -> None:
        """Make a file of as many empty slots as the maximum size holds."""
        self.files.write(self.name, b"")
        if self.max_index_size_bytes < self.entry_size:
            refuse(ErrorKind.INVALID_ARGUMENT)
        if not self.writable:
            refuse(ErrorKind.IO_ERROR)
        self.files.write(
            self.name, bytes(self.max_index_size_bytes // self.entry_size * self.entry_size)
        )

    def count_entries(self) -> int:
        """Return how many entries an old file has: one for each whole slot."""
        return self.length // self.entry_size

    # --- slots ---------------------------------------------------------------------------------

    @property
    def image(self) -> bytes:
        """The exact bytes of the file; none if it is gone."""
        return self.files.image(self.name)

    @property
    def is_full(self) -> bool:
        """Whether an append is refused."""
        return self.entries >= self.max_entries

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all entries."""
        return self.entry_size * self.entries

    def slot(self, number: int) -> bytes:
        """Return the bytes of a slot; fewer than an entry where the file has ended."""
        return self.image[number * self.entry_size : (number + 1) * self.entry_size]

    def stored_numbers(self) -> list[tuple[int, int]]:
        """Return what is stored in the slots that are entries and that the file really has."""
        size = min(self.entries, self.length // self.entry_size) * self.entry_size
        return list(self.layout.iter_unpack(self.image[:size].ljust(size, b"\0")))

    def keys(self) -> list[int]:
        """Return what is stored first in each entry."""
        return [key for key, _ in self.stored_numbers()]

    def values(self) -> list[int]:
        """Return what is stored second in each entry."""
        return [value for _, value in self.stored_numbers()]

    def relative_offsets(self) -> list[int]:
        """Return the offsets: the keys of an offset index, the values of a time index."""
        raise NotImplementedError

    def remember_last_entry(self) -> None:
        """Take the last entry from the file."""
        raise NotImplementedError

    def keep_entries(self, count: int) -> None:
        """Forget the entries from this slot on; the file stays as it is."""
        self.entries = count
        self.check_mapped()
        self.position = count * self.entry_size
        self.remember_last_entry()

    def check_mapped(self) -> None:
        """Refuse an index that was closed."""
        if not self.is_mapped:
            refuse(ErrorKind.UNMAPPED)

    def check_entry(self, number: int) -> None:
        """Refuse to tell of an entry that there is not (OFFIDX-13)."""
        if number >= self.entries:
            refuse(ErrorKind.INVALID_ARGUMENT)
        self.check_mapped()
        if number < 0 or (number + 1) * self.entry_size > self.length:
            refuse(ErrorKind.INDEX_ERROR)

    def can_append_offset(self, offset: int) -> bool:
        """Return whether 31 bits hold the distance from the base offset."""
        return 0 <= wrap64(offset - self.base_offset) <= INT32_MAX

    def relative_offset(self, offset: int) -> int:
        """Return the distance from the base offset, if 31 bits hold it (ABSIDX-21)."""
        if not self.can_append_offset(offset):
            refuse(ErrorKind.INDEX_OFFSET_OVERFLOW)
        return wrap64(offset - self.base_offset)

    def check_distance(self, offset: int) -> None:
        """Refuse an offset that is too far from the base."""
        self.relative_offset(offset)

    def check_appended(self) -> None:
        """Refuse, behind a failed resize, what is written already (ABSIDX-9)."""
        if self.position != self.size_in_bytes:
            refuse(self.mismatch_kind)

    def put(self, data: bytes) -> None:
        """Write at the position, and move it."""
        end = self.position + len(data)
        self.files.write(self.name, self.image[: self.position] + data + self.image[end:])
        self.position = end

    # --- searching -----------------------------------------------------------------------------

    def slots(self, keys: list[int], target: int) -> tuple[int, int]:
        """Return (greatest slot with key <= target, upper slot), -1 for none (ABSIDX-22, -24).

        Upper slot: the first whose key is > target, or the one that equals it. Slot 0 is never
        probed for equality, so an equal slot 0 does not count. This is the meaning where keys rise;
        where they repeat or fall, what counts is which slots the probes meet (ABSIDX-26).
        """
        # Behind a failed resize the file may end before the count: then there are fewer keys.
        if len(keys) == self.entries and rises(keys):
            below = [n for n, key in enumerate(keys) if key <= target]
            above = [n for n, key in enumerate(keys) if key > target or (key == target and n > 0)]
            return max(below, default=-1), min(above, default=-1)
        try:
            return self.probed(keys, target) if self.entries else (-1, -1)
        except IndexError:  # a probe behind the end of the file
            refuse(ErrorKind.INDEX_ERROR)

    @property
    def warm_slot(self) -> int:
        """The slot with which the warm section begins."""
        return max(0, self.entries - 1 - WARM_BYTES // self.entry_size)

    def probed(self, keys: list[int], target: int) -> tuple[int, int]:
        """Search the warm section, then what lies before it (ABSIDX-23)."""
        warm = self.warm_slot
        if keys[warm] < target:
            return self.halved(keys, target, warm, self.entries - 1)
        return (-1, 0) if keys[0] > target else self.halved(keys, target, 0, warm)

    def halved(self, keys: list[int], target: int, low: int, high: int) -> tuple[int, int]:
        """Halve [low, high] until one slot is left or a probe meets the target."""
        while low < high:
            middle = (low + high + 1) // 2
            if keys[middle] == target:
                return middle, middle
            low, high = (low, middle - 1) if keys[middle] > target else (middle, high)
        return low, -1 if low == self.entries - 1 else low + 1

    # --- changing ------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below the offset (OFFIDX-17, -18, TIMEIDX-11, -12)."""
        self.check_mapped()
        offsets, relative = self.relative_offsets(), offset - self.base_offset
        slot, _ = self.slots(offsets, relative)
        self.keep_entries(slot if slot >= 0 and offsets[slot] == relative else slot + 1)

    def truncate(self) -> None:
        """Forget every entry; the file stays as it is (ABSIDX-20)."""
        self.keep_entries(0)

    def resize(self, new_size: int) -> bool | None:
        """Give the file whole entries; False if it has that length (ABSIDX-7 to ABSIDX-11)."""
        size = truncated_multiple(new_size, self.entry_size)
        if self.has_length(size):
            return False
        self.check_resize(new_size, size)
        self.files.write(self.name, self.image)  # a file that is gone is there again, empty
        self.check_mapped()
        if size < 0:
            self.fail_resize()
        self.files.write(self.name, self.image[:size].ljust(size, b"\0"))
        self.length, self.max_entries, self.writable = size, size // self.entry_size, True
        if self.position > size:
            self.position = 0
            refuse(ErrorKind.INVALID_ARGUMENT)
        return self.resized

    def has_length(self, size: int) -> bool:
        """Return whether a resize to this size need not be made."""
        return size == self.length

    def check_resize(self, new_size: int, size: int) -> None:
        """Refuse a resize before anything is changed: nothing is."""

    def fail_resize(self) -> None:
        """Refuse a size below 0 (ABSIDX-10).

        The file was unmapped before its length is set, and stays so.
        """
        self.is_mapped = False
        refuse(ErrorKind.IO_ERROR)

    def trim_to_valid_size(self) -> None:
        """Cut the file behind the last entry (ABSIDX-12)."""
        if self.is_mapped:
            self.resize(self.size_in_bytes)

    def reset(self) -> None:
        """Forget every entry and take the maximum size again (ABSIDX-13)."""
        self.truncate()
        self.resize(self.max_index_size_bytes)

    # --- the file as a file --------------------------------------------------------------------

    def flush(self) -> None:
        """Make the entries durable; of an unmapped index there is nothing to do (ABSIDX-17)."""

    def close(self) -> None:
        """Unmap; nothing is trimmed: the log manager does that before (ABSIDX-14, ABSIDX-15)."""
        self.close_handler()

    def close_handler(self) -> None:
        """Unmap; the file keeps its length (ABSIDX-16)."""
        self.is_mapped = False

    def delete_if_exists(self) -> bool:
        """Unmap, remove the file, return whether there was one (ABSIDX-18)."""
        self.is_mapped = False
        return self.files.remove(self.name)

    def rename_to(self, file: str) -> None:
        """Move the file, over an existing one too (ABSIDX-19)."""
        was, self.name = self.name, file
        if not self.files.rename(was, file):
            refuse(ErrorKind.FILE_NOT_FOUND)

    def check_length(self) -> None:
        """Refuse a length that is not one of whole entries."""
        if self.length % self.entry_size:
            refuse(self.corrupt_kind)


def rises(numbers: list[int]) -> bool:
    """Return whether each number is greater than the one before."""
    return all(one < two for one, two in pairwise(numbers))
