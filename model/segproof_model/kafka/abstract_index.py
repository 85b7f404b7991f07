# SPDX-License-Identifier: Apache-2.0
"""What the offset index and the time index share: capacity, slots, search, resize, trim, reset.

Mirrors: impl/segproof/kafka/abstract_index.py.
Upstream: Kafka, AbstractIndex (since 1.1.1).
Layout: fixed-size entries back to back, nothing else in the file.
Laws: ABSIDX-1 to ABSIDX-26.
Not covered: directories that vanish under a file.
Used by: offset_index, time_index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from segproof_model.directory import Directory
from segproof_model.language.integers import INT32_MAX, truncated_multiple, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import Profile
from segproof_model.values import replace

INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
UNMAPPED = Raised(ErrorKind.UNMAPPED)
INDEX_ERROR = Raised(ErrorKind.INDEX_ERROR)
READ_ONLY = Raised(ErrorKind.READ_ONLY)
TIME_ENTRY_SIZE = 12
WARM_BYTES = 8192
"""The warm section of a search: as many entries as fill this many bytes."""


@dataclass(frozen=True, slots=True)
class AbstractIndex:
    """The state of an index: what is in its directory, and the counters beside it."""

    ENTRY_SIZE: ClassVar[int]

    profile: Profile
    base_offset: int
    max_index_size_bytes: int
    writable: bool
    name: str
    opened_name: str
    """The name of the file when it was opened."""
    directory: Directory
    length: int
    """File length in bytes, as the index believes."""
    max_entries: int
    entries: int
    position: int
    """Where the next entry is written, in bytes."""
    is_mapped: bool

    @property
    def image(self) -> bytes:
        """The exact bytes of the file; none if it is gone."""
        return self.directory.read(self.name) or b""

    def to_bytes(self) -> bytes:
        """Return the exact bytes of the file."""
        return self.image

    @property
    def is_full(self) -> bool:
        """Whether an append is refused."""
        return self.entries >= self.max_entries

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all entries."""
        return self.ENTRY_SIZE * self.entries

    @property
    def is_refused(self) -> bool:
        """Whether the profile refuses any use, because the index is closed."""
        return self.profile.closed_is_closed and not self.is_mapped

    def relative_offset(self, offset: int) -> int | Raised:
        """Return the distance from the base offset, if 31 bits hold it (ABSIDX-21)."""
        distance = wrap64(offset - self.base_offset)
        if not self.can_append_offset(offset):
            return Raised(ErrorKind.INDEX_OFFSET_OVERFLOW)
        return distance

    def can_append_offset(self, offset: int) -> bool:
        """Return whether 31 bits hold the distance from the base offset."""
        return 0 <= wrap64(offset - self.base_offset) <= INT32_MAX

    def resize(self, new_size: int) -> Step[Self]:
        """Set the file length to whole entries (ABSIDX-7 to -11)."""
        size = truncated_multiple(new_size, self.ENTRY_SIZE)
        if self.is_refused:
            return Step(self, UNMAPPED)
        if size == self.length and self.profile.resize_short_cut:
            return Step(self, False)
        if self.profile.resize_keeps_read_only and not self.writable:
            return Step(self, READ_ONLY)
        is_possible = self.position <= size and new_size <= INT32_MAX
        if self.profile.checks_before_changing and not is_possible:
            return Step(self, INVALID_ARGUMENT)
        opened = replace(self, directory=self.directory.write(self.name, self.image))
        if not self.is_mapped:
            return Step(opened, UNMAPPED)
        if size < 0:
            unmapped = self.profile.failed_resize_unmaps
            return Step(replace(opened, is_mapped=not unmapped), Raised(ErrorKind.IO_ERROR))
        resized = replace(
            self,
            directory=self.directory.write(self.name, self.image[:size].ljust(size, b"\0")),
            length=size,
            max_entries=size // self.ENTRY_SIZE,
            writable=True,
            position=self.position if self.position <= size else 0,
        )
        done = True if self.profile.resize_short_cut else None
        return Step(resized, done if self.position <= size else INVALID_ARGUMENT)

    def trim_to_valid_size(self) -> Step[Self]:
        """Cut the file behind the last entry (ABSIDX-12)."""
        ignored = not (self.profile.trim_after_close_handler_fails or self.profile.closed_is_closed)
        if not self.is_mapped and ignored:
            return Step(self)
        step = self.resize(self.size_in_bytes)
        return Step(step.after, step.outcome if isinstance(step.outcome, Raised) else None)

    def reset(self) -> Step[Self]:
        """Forget every entry and take the maximum size again (ABSIDX-13)."""
        if self.profile.checks_before_changing:
            refused = self.keep_entries(0)
            if isinstance(refused.outcome, Raised):
                return Step(self, refused.outcome)
            outcome = refused.after.resize(self.max_index_size_bytes).outcome
            if isinstance(outcome, Raised):
                return Step(self, outcome)
        truncated = self.truncate()
        if isinstance(truncated.outcome, Raised):
            return truncated
        step = truncated.after.resize(self.max_index_size_bytes)
        return Step(step.after, step.outcome if isinstance(step.outcome, Raised) else None)

    def truncate(self) -> Step[Self]:
        """Forget every entry; the file stays as it is (ABSIDX-20)."""
        return self.keep_entries(0)

    def keep_entries(self, count: int) -> Step[Self]:
        """Forget the entries from slot `count` on; the file stays as it is."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        if not self.is_mapped:
            return Step(replace(self, entries=count), UNMAPPED)
        kept = replace(self, entries=count, position=count * self.ENTRY_SIZE)
        return Step(kept.with_last_entry())

    def truncate_to(self, offset: int) -> Step[Self]:
        """Keep the entries below `offset`, by their offsets (OFFIDX-17, -18, TIMEIDX-11, -12)."""
        if not self.is_mapped:
            return Step(self, UNMAPPED)
        relative, stored = offset - self.base_offset, self.relative_offsets()
        slot = self.largest_lower_bound(stored, relative)
        if isinstance(slot, Raised):
            return Step(self, slot)
        if slot < 0:
            return self.keep_entries(0)
        return self.keep_entries(slot if stored[slot] == relative else slot + 1)

    def flush(self) -> Step[Self]:
        """Make the entries durable."""
        is_done = self.is_mapped or self.profile.unmapped_index_flushes
        return Step(self, None if is_done else UNMAPPED)

    def close(self) -> Step[Self]:
        """Trim, up to 4.3, and unmap (ABSIDX-14).

        An index that was opened for reading is not trimmed by segproof.
        """
        if not self.profile.close_writes:
            return self.close_handler()
        if not self.is_mapped and self.profile.closed_is_closed:
            return Step(self)
        if self.profile.resize_keeps_read_only and not self.writable:
            return self.close_handler()
        trimmed = self.trim_to_valid_size()
        if isinstance(trimmed.outcome, Raised):
            return trimmed
        return trimmed.after.close_handler() if self.profile.close_unmaps else trimmed

    def close_handler(self) -> Step[Self]:
        """Unmap; the file keeps its length (ABSIDX-16)."""
        return Step(replace(self, is_mapped=False))

    def delete_if_exists(self) -> Step[Self]:
        """Unmap, remove the file, return whether there was one (ABSIDX-18)."""
        existed = self.name in self.directory
        directory = self.directory.remove(self.name)
        return Step(replace(self, is_mapped=False, directory=directory), existed)

    def rename_to(self, file: str) -> Step[Self]:
        """Move the file, over an existing one too (ABSIDX-19)."""
        if self.name not in self.directory:
            name = self.name if self.profile.checks_before_changing else file
            return Step(replace(self, name=name), Raised(ErrorKind.FILE_NOT_FOUND))
        return Step(replace(self, name=file, directory=self.directory.rename(self.name, file)))

    def with_last_entry(self) -> Self:
        """Return the same state with the remembered last entry read from the file."""
        raise NotImplementedError

    def keys(self) -> list[int]:
        """What is stored first in the slots that are entries and that the file really has."""
        raise NotImplementedError

    def values(self) -> list[int]:
        """What is stored second in the same slots."""
        raise NotImplementedError

    def relative_offsets(self) -> list[int]:
        """The keys or the values: whichever are offsets."""
        raise NotImplementedError

    @property
    def measured_length(self) -> int:
        """The length in bytes that sanity_check looks at: that of the file, if it does so, which
        has the name that it was opened by, or is gone."""
        if not self.profile.sanity_measures_file:
            return self.length
        return len(self.directory.read(self.opened_name) or b"")

    def all_are_sane(self) -> bool:
        """Return whether keys increase, values never fall, and nothing is negative."""
        keys, values = self.keys(), self.values()
        return (
            all(key >= 0 for key in keys)
            and all(one < two for one, two in zip(keys, keys[1:], strict=False))
            and all(value >= 0 for value in values)
            and all(one <= two for one, two in zip(values, values[1:], strict=False))
        )

    def no_entry(self, n: int) -> Raised | None:
        """Return the error of asking for entry `n`, if there is none (OFFIDX-13)."""
        if self.is_refused:
            return UNMAPPED
        if n >= self.entries:
            return INVALID_ARGUMENT
        if not self.is_mapped:
            return UNMAPPED
        return INDEX_ERROR if n < 0 or (n + 1) * self.ENTRY_SIZE > self.length else None

    def slot(self, number: int) -> bytes:
        """Return the bytes of a slot; fewer than an entry where the file has ended."""
        start = number * self.ENTRY_SIZE
        return self.image[start : start + self.ENTRY_SIZE]

    def largest_lower_bound(self, keys: Sequence[int], target: int) -> int | Raised:
        """Return the greatest slot with key <= target, or -1."""
        found = search(keys, self.entries, target, self.profile, WARM_BYTES // self.ENTRY_SIZE)
        return found if isinstance(found, Raised) else found[0]

    def smallest_upper_bound(self, keys: Sequence[int], target: int) -> int | Raised:
        """Return the slot that an upper bound search reports, or -1 (ABSIDX-24)."""
        found = search(keys, self.entries, target, self.profile, WARM_BYTES // self.ENTRY_SIZE)
        return found if isinstance(found, Raised) else found[1]


def search(
    keys: Sequence[int], entries: int, target: int, profile: Profile, warm_entries: int
) -> tuple[int, int] | Raised:
    """Return (lower slot, upper slot) of `target` among the keys of the first `entries` slots.

    `keys` are the slots the file really has; fewer than `entries` after a failed resize.
    """
    if len(keys) == entries and all(one < two for one, two in zip(keys, keys[1:], strict=False)):
        return search_by_definition(keys, target, exact_first=profile.upper_bound_exact)
    try:
        return search_by_probing(keys, entries, target, profile, warm_entries)
    except IndexError:
        return INDEX_ERROR


def search_by_definition(keys: Sequence[int], target: int, *, exact_first: bool) -> tuple[int, int]:
    """Return the slots for strictly increasing keys (ABSIDX-22, ABSIDX-24).

    >>> search_by_definition([1, 4, 6, 8], 4, exact_first=False)
    (1, 1)
    >>> search_by_definition([1, 4, 6, 8], 1, exact_first=False)
    (0, 1)
    """
    not_above = [slot for slot, key in enumerate(keys) if key <= target]
    wanted = [
        slot
        for slot, key in enumerate(keys)
        if key > target or (key == target and (slot > 0 or exact_first))
    ]
    return max(not_above, default=-1), min(wanted, default=-1)


def search_by_probing(
    keys: Sequence[int], entries: int, target: int, profile: Profile, warm_entries: int
) -> tuple[int, int]:
    """Return the slots for keys that repeat or fall: those that probes meet (ABSIDX-26)."""
    if entries == 0:
        return -1, -1
    first = 0
    if profile.search == "warm":
        first = max(0, entries - 1 - warm_entries)
        if keys[first] < target:
            return halve(keys, entries, target, first, entries - 1)
    if keys[0] > target:
        return -1, 0
    last = entries - 1 if profile.search == "plain" else first
    lower, upper = halve(keys, entries, target, 0, last)
    return lower, 0 if profile.upper_bound_exact and keys[0] == target else upper


def halve(keys: Sequence[int], entries: int, target: int, low: int, high: int) -> tuple[int, int]:
    """Halve [low, high] until one slot is left or a probe meets the target."""
    while low < high:
        middle = (low + high + 1) // 2
        if keys[middle] > target:
            high = middle - 1
        elif keys[middle] < target:
            low = middle
        else:
            return middle, middle
    return low, -1 if low == entries - 1 else low + 1


@dataclass(frozen=True, slots=True)
class Opened:
    """What opening found: the directory after it, and the counters, or an error."""

    directory: Directory
    entries: int
    outcome: Raised | None = None


def open_file(
    directory: Directory,
    name: str,
    max_index_size: int,
    entry_size: int,
    writable: bool,
    profile: Profile,
) -> Opened:
    """Open or create an index file (ABSIDX-1 to ABSIDX-4)."""
    if profile.checks_before_changing and max_index_size > INT32_MAX:
        return Opened(directory, 0, INVALID_ARGUMENT)
    image = directory.read(name)
    if image is not None:
        return Opened(directory, count_entries(image, entry_size, profile))
    if profile.checks_before_changing and not writable:
        return Opened(directory, 0, Raised(ErrorKind.FILE_NOT_FOUND))
    refused = None
    if max_index_size < entry_size:
        refused = INVALID_ARGUMENT
    elif not writable:
        refused = Raised(ErrorKind.IO_ERROR)
    if refused is not None:
        after = directory if profile.checks_before_changing else directory.write(name, b"")
        return Opened(after, 0, refused)
    return Opened(directory.write(name, bytes(max_index_size // entry_size * entry_size)), 0)


def count_entries(image: bytes, entry_size: int, profile: Profile) -> int:
    """Return how many slots of an existing file count as entries.

    Every whole slot does, zeros too; for segproof the zero slots at the end do not. A time
    index of one slot is an entry of timestamp 0: closing has left nothing else.
    """
    count = len(image) // entry_size
    is_lone_timestamp = count == 1 and entry_size == TIME_ENTRY_SIZE
    if profile.zero_tail_is_free and not is_lone_timestamp:
        while count and not any(image[(count - 1) * entry_size : count * entry_size]):
            count -= 1
    return count
