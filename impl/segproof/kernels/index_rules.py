# SPDX-License-Identifier: Apache-2.0
"""The decisions of the index files: room, distance, what an append does, what a truncation keeps.

Each is a pure function of ints (and of bytes, where slots are searched), so that the decision the
index takes is the very one whose claim is proved.

Mirrors: segproof_model/kafka/format/{abstract,offset,time}_index.py under the profile `segproof`.
Upstream: Kafka, AbstractIndex, OffsetIndex, TimeIndex (4.3.1).
Laws: ABSIDX-1, ABSIDX-7, ABSIDX-21; OFFIDX-2, 4 to 6, 10, 17; TIMEIDX-2 to 8, 11, 12, 15.
"""

from segproof.kernels.dispatch import kernel
from segproof.kernels.slot_search import key_at, lower_slot

Bytes = bytes | bytearray | memoryview

# What an append does. Those above APPEND_TIMESTAMP_TOO_SMALL are decided by a writable index only.
APPEND_NOTHING = 0
APPEND_FULL = 1
APPEND_OFFSET_TOO_SMALL = 2
APPEND_TIMESTAMP_TOO_SMALL = 3
APPEND_NO_ROOM = 4
APPEND_OFFSET_TOO_FAR = 5
APPEND_STORE = 6


def whole_entries(size: int, entry_size: int) -> int:
    """Return `size` bytes rounded to whole entries, toward zero as Java divides. Law: ABSIDX-7."""
    if size < 0:
        return -(-size // entry_size * entry_size)
    return size // entry_size * entry_size


def is_full(entries: int, max_entries: int, reserved: int) -> bool:
    """Return whether no slot is left but the `reserved` ones. Laws: OFFIDX-10, TIMEIDX-2."""
    return entries >= max_entries - reserved


def offset_distance(offset: int, base_offset: int) -> int:
    """Return `offset - base_offset`, wrapped at 64 bits; 0..2147483647 fit. Law: ABSIDX-21.

    `base_offset` is an int64, so one wrap is enough. An offset outside 64 bits never fits: -1.
    """
    if not -9223372036854775808 <= offset <= 9223372036854775807:
        return -1
    distance = offset - base_offset
    if distance > 9223372036854775807:
        return distance - 18446744073709551616
    if distance < -9223372036854775808:
        return distance + 18446744073709551616
    return distance


def offset_append(
    entries: int, max_entries: int, last_offset: int, base_offset: int, offset: int
) -> int:
    """Return what an append to the offset index does. Laws: OFFIDX-2, OFFIDX-4 to OFFIDX-6."""
    if is_full(entries, max_entries, 0):
        return APPEND_FULL
    if entries > 0 and offset <= last_offset:
        return APPEND_OFFSET_TOO_SMALL
    if not 0 <= offset_distance(offset, base_offset) <= 2147483647:
        return APPEND_OFFSET_TOO_FAR
    return APPEND_STORE


def time_append(
    entries: int,
    length: int,
    last_timestamp: int,
    last_offset: int,
    base_offset: int,
    timestamp: int,
    offset: int,
    skip_full_check: bool,
) -> int:
    """Return what an append to a time index file of `length` bytes does.

    Laws: TIMEIDX-3 to TIMEIDX-8, TIMEIDX-14 to TIMEIDX-16. Without room for a whole entry the
    distance is still judged before the offset, as upstream does, which writes in that order.
    """
    if not skip_full_check and is_full(entries, length // 12, 1):
        return APPEND_FULL
    if entries > 0 and offset < last_offset:
        return APPEND_OFFSET_TOO_SMALL
    if entries > 0 and timestamp < last_timestamp:
        return APPEND_TIMESTAMP_TOO_SMALL
    if timestamp <= last_timestamp:
        return APPEND_NOTHING
    room = length - entries * 12
    if room < 8:
        return APPEND_NO_ROOM
    if not 0 <= offset_distance(offset, base_offset) <= 2147483647:
        return APPEND_OFFSET_TOO_FAR
    if room < 12:
        return APPEND_NO_ROOM
    return APPEND_STORE


@kernel
def kept_entries(
    data: Bytes,
    entry_size: int,
    key_position: int,
    entries: int,
    relative: int,
    warm_entries: int,
) -> int:
    """Return how many entries a truncation to the int32 key `relative` keeps.

    None below the first key; those before the lower slot if it matches; else the lower slot too.
    Laws: OFFIDX-17, TIMEIDX-11, TIMEIDX-12.
    """
    slot = lower_slot(data, entry_size, key_position, 4, entries, relative, warm_entries)
    if slot < 0:
        return 0
    if key_at(data, entry_size, key_position, 4, slot) == relative:
        return slot
    return slot + 1
