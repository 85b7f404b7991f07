# SPDX-License-Identifier: Apache-2.0
"""A segment as the laws see it: its batches and entries, and whether the entries fit the log."""

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from segproof_model.kafka.format import log_segment_releases_before_2 as before_2
from segproof_model.kafka.format.log_segment_deviations import ClosedSegmentIsClosed
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.language.states import Refused
from segproof_model.laws.arithmetic import is_rising, low_32_bits
from segproof_model.laws.kafka.format.index_slots import is_in_file, is_regular, pairs
from segproof_model.laws.kafka.format.offset_index import is_last_slot_remembered
from segproof_model.laws.kafka.format.record_file import Scan, scan_of
from segproof_model.laws.kept_answers import kept
from segproof_model.laws.register import has


class Batch(NamedTuple):
    """The fields of one batch that the laws use."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    max_timestamp: int


class SegmentView:
    """A segment."""

    def __init__(self, segment: Any) -> None:
        self.segment, self.base_offset = segment, int(segment.base_offset)
        self.image = bytes(segment.log.image[: segment.size])
        """The bytes of the log up to its logical end."""
        self.begun = segment.size - segment.bytes_since_last_index_entry
        """The position from which bytes are counted for the next index entry."""
        self.batches, self.is_readable = batches_in(scan_of(segment.log))
        """The batches of the log, and whether the whole log is readable."""
        self.maximum = segment.max_timestamp_and_offset_so_far
        """The largest timestamp with its offset; None if it was not asked for."""
        self.is_closed = has(segment, ClosedSegmentIsClosed) and bool(segment.is_closed)
        """Whether it is a closed segment of segproof, which refuses every use."""
        self.lazy_indexes = segment.lazy_offset_index, segment.lazy_time_index
        self.indexes = [lazy.index for lazy in self.lazy_indexes]
        """The offset and the time index; None for one that is not loaded."""
        slots = [[] if index is None else pairs(index) for index in self.indexes]
        self.are_usable = [
            one is None or (one.is_mapped and one.entries == len(found))
            for one, found in zip(self.indexes, slots, strict=True)
        ]
        self.offsets = [(self.base_offset + distance, position) for distance, position in slots[0]]
        """Offset and position of each entry of the offset index; none if it is not loaded."""
        self.times = [(timestamp, self.base_offset + distance) for timestamp, distance in slots[1]]
        """Timestamp and offset of each entry of the time index; none if it is not loaded."""
        self.last_time = self.times[-1][0] if self.times else -1

    def first_reaching(self, offset: int) -> Batch | None:
        """Return the first batch whose last offset is not below this one."""
        return next((one for one in self.batches if one.last_offset >= offset), None)

    @property
    def next_offset(self) -> int:
        """The offset after the last batch; the base offset if no batch reaches the last entry."""
        last = self.offsets[-1][0] if self.offsets else self.base_offset
        is_reached = self.first_reaching(last) is not None
        return self.batches[-1].last_offset + 1 if is_reached else self.base_offset

    def key_of(self, batch: Batch) -> int:
        """Return the offset that an entry for the batch gets: its last one, up to 1.1 its first."""
        return (
            batch.base_offset if has(self.segment, before_2.FirstOffsetIsKey) else batch.last_offset
        )

    def can_hold(self, offset: int) -> bool:
        """Return whether an index can hold the distance of an offset from the base, which wraps."""
        distance = (offset - self.base_offset + 2**63) % 2**64 - 2**63
        lowest = -(2**63) if has(self.segment, before_2.FarOffsetIsInvalidArgument) else 0
        return lowest <= distance < 2**31

    def stored(self, offset: int) -> int:
        """Return an offset as an index returns it: up to 1.1 its distance is cut to 32 bits."""
        return self.base_offset + low_32_bits(offset - self.base_offset)

    # --- whether laws can be asked ---------------------------------------------------------------

    @property
    def is_ordered(self) -> bool:
        """Whether all is readable, and each batch begins after the previous batch and the base."""
        reached = [self.base_offset - 1, *(one.last_offset for one in self.batches)]
        both = zip(reached, self.batches, strict=False)
        in_order = all(before < one.base_offset <= one.last_offset for before, one in both)
        return in_order and self.is_readable

    @property
    def is_known(self) -> bool:
        """Whether all entries are known: each index is loaded, or has no file."""
        files = self.segment.files
        return all(lazy.index is not None or lazy.name not in files for lazy in self.lazy_indexes)

    @property
    def is_trimmed(self) -> bool:
        """Whether both index files hold their entries and nothing else."""
        indexes = [index for index in self.indexes if index is not None]
        return [len(index.image) == index.size_in_bytes for index in indexes] == [True, True]

    @property
    def is_last_time_known(self) -> bool:
        """Whether the time index, if it is loaded, remembers the last of the entries it counts."""
        index, checks = self.indexes[1], (is_regular, is_in_file, is_last_slot_remembered)
        return index is None or all(check(index) for check in checks)

    @cached_property
    def is_true(self) -> bool:
        """Whether the log is in order, and the offset index true of it (SEG-7), as its release has
        keys; both can be used."""
        if not (self.is_known and self.is_ordered and self.segment.log.is_open):
            return False
        offsets, positions = ([entry[side] for entry in self.offsets] for side in (0, 1))
        is_ordered = self.are_usable[0] and is_rising(offsets) and is_rising(positions)
        return is_ordered and all(map(self._is_true, offsets, positions))

    def _is_true(self, offset: int, position: int) -> bool:
        """Return whether a batch exists, and the batch of this key is the first there or later."""
        found = self.first_reaching(offset)
        is_key = found is not None and self.key_of(found) == offset and found.position >= position
        return is_key and any(one.position == position for one in self.batches)

    @cached_property
    def is_true_of_times(self) -> bool:
        """Whether each time entry, too, is the largest timestamp up to the batch that it names."""

        def largest_up_to(offset: int) -> tuple[int, int]:
            return largest_of(one for one in self.batches if one.last_offset <= offset)

        is_usable = self.is_true and self.are_usable[1]
        return is_usable and all(entry == largest_up_to(entry[1]) for entry in self.times)


@kept
def segment_view(segment: Any) -> SegmentView:
    """Return the laws' view of a segment."""
    return SegmentView(segment)


@lru_cache(maxsize=256)  # a log grows: most of its batches lie where they lay
def _numbers_of(kind: Any, *fields: Hashable) -> tuple[int, int, int]:
    """Return the offsets and the largest timestamp of the batch that has these fields."""
    one = kind(*fields)
    return one.base_offset, one.last_offset, one.max_timestamp


@kept
def batches_in(scan: Scan, start: int = 0) -> tuple[list[Batch], bool]:
    """Return the batches of records that begin at `start`, and whether they can all be read."""
    found: list[Batch] = []
    try:
        for one in scan.batches:
            numbers = _numbers_of(type(one), *vars(one).values())  # type: ignore[arg-type]
            found.append(Batch(start + one.position, one.size_bytes, *numbers))
    except Refused:
        return found, False
    return found, scan.error is None


@kept
def appended(segment: Any, data: bytes) -> tuple[list[Batch], bool]:
    """Return the batches of appended bytes, at their future positions."""
    records = segment.kind(MemoryRecords)(data, codecs=segment.log.codecs)
    return batches_in(scan_of(records), segment.size)


def due(batches: Sequence[Batch], begun: int, interval: int) -> list[Batch]:
    """Return the batches that begin more bytes than the interval after the last returned batch, or
    at first after the start of the count.
    """
    found: list[Batch] = []
    for one in batches:
        if one.position - begun > interval:
            found.append(one)
            begun = one.position
    return found


def largest_of(batches: Iterable[Batch]) -> tuple[int, int]:
    """Return the largest timestamp and the last offset of the first batch that has it."""
    best = max(batches, key=lambda one: one.max_timestamp, default=Batch(0, 0, -1, -1, -1))
    return best.max_timestamp, best.last_offset
