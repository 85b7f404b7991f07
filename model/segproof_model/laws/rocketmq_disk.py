# SPDX-License-Identifier: Apache-2.0
"""The laws of RocketMQ's index files as a verifier finds them: one file, and several together.

Every predicate takes the bytes of files and the number of slots H, which no file tells. Entries are
those that the header counts, as far as there is room for them.

Used by: the harness, the tests of `verify`, the generated pages.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from segproof_model.directory import Directory
from segproof_model.language.integers import wrap64
from segproof_model.laws.judging import never_falls
from segproof_model.laws.registry import law

FILE = "index-file"
SERVICE = "index-service"
INDEX_FILE = "RocketMQ IndexFile 4.7.0 to 5.5.1"
INDEX_SERVICE = "RocketMQ IndexService 4.7.0 to 5.5.1"
OWN = "segproof"

HEADER = struct.Struct(">qqqqii")
ENTRY = struct.Struct(">iqii")
INT32_MAX = 2**31 - 1
INDEX_NAME = re.compile(r"[0-9]{17}")


class Header(NamedTuple):
    """The six fields of the header."""

    begin_timestamp: int
    end_timestamp: int
    begin_phy_offset: int
    end_phy_offset: int
    hash_slot_count: int
    index_count: int


class Entry(NamedTuple):
    """One entry."""

    key_hash: int
    phy_offset: int
    time_diff: int
    prev_index: int


# --- reading


def header_of(image: bytes) -> Header:
    """Return the header; zeros stand for what is missing."""
    return Header(*HEADER.unpack(image[:40].ljust(40, b"\0")))


def room_of(image: bytes, hash_slot_num: int) -> int:
    """Return how many entries fit, entry 0 with them."""
    return max(0, len(image) - 40 - 4 * hash_slot_num) // 20


def count_of(image: bytes, hash_slot_num: int) -> int:
    """Return the index behind the last entry."""
    return min(max(header_of(image).index_count, 1), max(1, room_of(image, hash_slot_num)))


def slots_of(image: bytes, hash_slot_num: int) -> tuple[int, ...]:
    """Return the slots."""
    return struct.unpack(f">{hash_slot_num}i", image[40 : 40 + 4 * hash_slot_num])


def entry_at(image: bytes, hash_slot_num: int, index: int) -> Entry:
    """Return one entry."""
    return Entry(*ENTRY.unpack_from(image, 40 + 4 * hash_slot_num + 20 * index))


def entries_of(image: bytes, hash_slot_num: int) -> list[Entry]:
    """Return the entries from the first on; the one with index i is at place i - 1."""
    return [
        entry_at(image, hash_slot_num, index) for index in range(1, count_of(image, hash_slot_num))
    ]


def is_empty(image: bytes) -> bool:
    """Return whether the header counts no entry."""
    return header_of(image).index_count <= 1


def difference_of(begin_timestamp: int, store_timestamp: int) -> int:
    """Return the seconds that an entry has for a message (RMQIDX-21)."""
    if begin_timestamp <= 0:
        return 0
    return max(0, min(wrap64(store_timestamp - begin_timestamp) // 1000, INT32_MAX))


def links_of(image: bytes, hash_slot_num: int) -> Iterator[tuple[int, int]]:
    """Yield (slot it belongs to, index it names) of each slot and entry that names a lawful one."""
    count = count_of(image, hash_slot_num)
    for slot, head in enumerate(slots_of(image, hash_slot_num)):
        if 0 < head < count:
            yield slot, head
    for index, entry in enumerate(entries_of(image, hash_slot_num), 1):
        if 0 < entry.prev_index < index:
            own = entry.key_hash % hash_slot_num if entry.key_hash >= 0 else -1
            yield own, entry.prev_index


# --- one file


@law("RMQDISK-1", structure=FILE, scope="file", source=INDEX_FILE)
def length_fits(image: bytes, hash_slot_num: int) -> bool:
    """An index file of H slots has 40 + 4H + 20N bytes, for one slot or more and N of 2 or more."""
    room = len(image) - 40 - 4 * hash_slot_num
    return hash_slot_num >= 1 and room >= 40 and room % 20 == 0


@law("RMQDISK-2", structure=FILE, scope="file", source=OWN)
def slots_can_be_told(image: bytes) -> bool:
    """Of all numbers of slots that fit the length one alone fits header and chains too."""
    words = (len(image) - 40) // 4
    fitting = [
        slots
        for slots in range(1, words - 9)
        if length_fits(image, slots) and _chains_hold(image, slots)
    ]
    return len(fitting) == 1


def _chains_hold(image: bytes, hash_slot_num: int) -> bool:
    return not is_empty(image) and all(
        predicate(image, hash_slot_num)
        for predicate in (
            count_has_room,
            slots_lead_to_entries,
            chains_lead_back,
            chains_keep_to_their_slot,
            each_entry_is_named_once,
            header_has_the_ends,
        )
    )


@law("RMQDISK-3", structure=FILE, scope="file", source="RocketMQ UtilAll.timeMillisToHumanString")
def name_is_a_time(name: str) -> bool:
    """The name of an index file is a time: year, month, day, hour, minute, second, thousandths."""
    if not INDEX_NAME.fullmatch(name):
        return False
    _, month, day, hour, minute, second = map(
        int, (name[:4], name[4:6], name[6:8], name[8:10], name[10:12], name[12:14])
    )
    lengths = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    is_day = 1 <= month <= 12 and 1 <= day <= lengths[month - 1]
    return is_day and hour <= 23 and minute <= 59 and second <= 60


@law("RMQDISK-4", structure=FILE, scope="file", source=INDEX_FILE)
def count_has_room(image: bytes, hash_slot_num: int) -> bool:
    """The index count of the header is neither negative nor larger than N."""
    return 0 <= header_of(image).index_count <= room_of(image, hash_slot_num)


@law("RMQDISK-5", structure=FILE, scope="file", source=INDEX_FILE)
def empty_file_is_zero(image: bytes) -> bool:
    """Behind a header that counts no entry all bytes are zero."""
    return not is_empty(image) or not any(image[40:])


@law("RMQDISK-6", structure=FILE, scope="file", source=INDEX_FILE)
def rest_is_zero(image: bytes, hash_slot_num: int) -> bool:
    """Behind the last entry, and the place of one put that was cut off, all bytes are zero."""
    rest = 40 + 4 * hash_slot_num + 20 * (count_of(image, hash_slot_num) + 1)
    return is_empty(image) or not any(image[rest:])


@law("RMQDISK-7", structure=FILE, scope="file", source=INDEX_FILE)
def entry_0_is_zero(image: bytes, hash_slot_num: int) -> bool:
    """Entry 0, which stands for none, is zero."""
    start = 40 + 4 * hash_slot_num
    return is_empty(image) or not any(image[start : start + 20])


@law("RMQDISK-8", structure=FILE, scope="file", source=INDEX_FILE)
def slots_lead_to_entries(image: bytes, hash_slot_num: int) -> bool:
    """Each slot is 0 or the index of an entry that the header counts."""
    count = count_of(image, hash_slot_num)
    return is_empty(image) or all(0 <= head < count for head in slots_of(image, hash_slot_num))


@law("RMQDISK-9", structure=FILE, scope="file", source=INDEX_FILE)
def chains_lead_back(image: bytes, hash_slot_num: int) -> bool:
    """The previous index of each entry is 0 or that of an earlier entry, so every chain ends."""
    return all(
        0 <= entry.prev_index < index
        for index, entry in enumerate(entries_of(image, hash_slot_num), 1)
    )


@law("RMQDISK-10", structure=FILE, scope="file", source=INDEX_FILE)
def chains_keep_to_their_slot(image: bytes, hash_slot_num: int) -> bool:
    """Key hashes are not negative, and each slot and entry names an entry of its own slot."""
    entries = entries_of(image, hash_slot_num)
    slots = [one.key_hash % hash_slot_num if one.key_hash >= 0 else -1 for one in entries]
    return -1 not in slots and all(
        own == slots[index - 1] for own, index in links_of(image, hash_slot_num)
    )


@law("RMQDISK-11", structure=FILE, scope="file", source=INDEX_FILE)
def each_entry_is_named_once(image: bytes, hash_slot_num: int) -> bool:
    """Each entry is named once, by a slot or a later entry: so it lies on the chain of its slot."""
    named = sorted(index for _, index in links_of(image, hash_slot_num))
    return is_empty(image) or named == list(range(1, count_of(image, hash_slot_num)))


@law("RMQDISK-12", structure=FILE, scope="file", source=INDEX_FILE)
def slot_count_fits(image: bytes, hash_slot_num: int) -> bool:
    """The slot count is the number of slots in use, or up to that of entries (until 4.7.0)."""
    used = sum(head != 0 for head in slots_of(image, hash_slot_num))
    entries = count_of(image, hash_slot_num) - 1
    return is_empty(image) or used <= header_of(image).hash_slot_count <= entries


@law("RMQDISK-13", structure=FILE, scope="file", source=INDEX_FILE)
def differences_fit(image: bytes, hash_slot_num: int) -> bool:
    """Time differences are not negative, and the last entry's is that of the end timestamp.

    That of a file's first entry is measured from the end of the file before.
    """
    entries, header = entries_of(image, hash_slot_num), header_of(image)
    if any(one.time_diff < 0 for one in entries):
        return False
    if len(entries) < 2 or header.index_count > room_of(image, hash_slot_num):
        return True
    expected = difference_of(header.begin_timestamp, header.end_timestamp)
    return entries[-1].time_diff == expected


@law("RMQDISK-14", structure=FILE, scope="file", source=INDEX_FILE)
def entries_read_within_the_header(image: bytes, hash_slot_num: int) -> bool:
    """No entry behind the first one reads later than the end timestamp: the clock never went back.

    By up to 20 years of 366 days that is a note: a clock was off, and was put right. More is not
    excused. With a begin timestamp of 0 or less no difference is kept.
    """
    return seconds_behind_the_end(image, hash_slot_num) <= 0


def seconds_behind_the_end(image: bytes, hash_slot_num: int) -> int:
    """Return by how much an entry behind the first one reads later than the end, at most."""
    header = header_of(image)
    if header.begin_timestamp <= 0:
        return 0
    room = (header.end_timestamp - header.begin_timestamp) // 1000
    late = [one.time_diff - room for one in entries_of(image, hash_slot_num)[1:]]
    return max(0, *late) if late else 0


@law("RMQDISK-15", structure=FILE, scope="file", source=INDEX_SERVICE)
def offsets_never_fall(image: bytes, hash_slot_num: int) -> bool:
    """The offsets of the entries never fall, and none is negative."""
    return never_falls([0, *(one.phy_offset for one in entries_of(image, hash_slot_num))])


@law("RMQDISK-16", structure=FILE, scope="file", source=INDEX_FILE)
def header_has_the_ends(image: bytes, hash_slot_num: int) -> bool:
    """Begin and end offset are those of the first and last entry; until the second put both begin
    and end timestamp, and without entries both offsets too, are the same.
    """
    header, entries = header_of(image), entries_of(image, hash_slot_num)
    same_time = header.begin_timestamp == header.end_timestamp
    if is_empty(image):
        return same_time and header.begin_phy_offset == header.end_phy_offset
    if not entries or header.index_count > room_of(image, hash_slot_num):
        return True
    ends = (entries[0].phy_offset, entries[-1].phy_offset)
    is_right = ends == (header.begin_phy_offset, header.end_phy_offset)
    return is_right and (same_time or len(entries) > 1)


# --- files beside each other


@law("RMQDISK-17", structure=SERVICE, scope="disk", source=INDEX_SERVICE)
def files_follow_each_other(images: Sequence[bytes]) -> bool:
    """In the order of their names no index file begins before the one before it ends."""
    headers = [header_of(image) for image in images if not is_empty(image)]
    return all(
        before.end_phy_offset <= after.begin_phy_offset for before, after in pairwise(headers)
    )


@law("RMQDISK-18", structure=SERVICE, scope="disk", source=INDEX_SERVICE)
def files_have_one_length(images: Sequence[bytes]) -> bool:
    """All index files of a store have the same length."""
    return len({len(image) for image in images}) <= 1


@law("RMQDISK-19", structure=SERVICE, scope="disk", source=INDEX_SERVICE)
def earlier_files_are_full(images: Sequence[bytes], hash_slot_num: int) -> bool:
    """Every index file but the last one is full."""
    return all(
        header_of(image).index_count >= room_of(image, hash_slot_num) for image in images[:-1]
    )


def parts_of(store: Directory) -> set[str]:
    """Return what of a store is there."""
    known = {"commitlog", "consumequeue", "index", "checkpoint", "abort"}
    return {name.partition("/")[0] for name in store} & known


def lies_alone(store: Directory) -> bool:
    """Return whether only a commit log is there, as where a broker keeps it apart."""
    return parts_of(store) == {"commitlog"}


@law("RMQDISK-20", structure=SERVICE, scope="disk", source="RocketMQ StoreCheckpoint")
def checkpoint_is_sound(store: Directory) -> bool:
    """A store with a log or queues has a checkpoint, unless the log lies alone; it has 4096 bytes,
    and none of its three times is negative."""
    checkpoint = store.read("checkpoint")
    if checkpoint is None:
        return lies_alone(store) or parts_of(store).isdisjoint({"commitlog", "consumequeue"})
    times = struct.unpack(">3q", checkpoint[:24].ljust(24, b"\0"))
    return len(checkpoint) == 4096 and min(times) >= 0


@law("RMQDISK-21", structure=SERVICE, scope="disk", source="RocketMQ IndexService.flush")
def checkpoint_knows_the_index(checkpoint: bytes, images: Sequence[bytes]) -> bool:
    """The checkpoint's time for indexes is not above the end timestamp of every index file, and
    there is one if that time is above 0."""
    ends = [header_of(image).end_timestamp for image in images if not is_empty(image)]
    if len(checkpoint) < 40 or (images and not ends):
        return True
    (stored,) = struct.unpack_from(">q", checkpoint, 16)
    return bool(stored <= max(ends, default=0))


@law("RMQDISK-22", structure=SERVICE, scope="disk", source="RocketMQ DefaultMessageStore")
def store_was_stopped(store: Directory) -> bool:
    """A store whose broker has stopped cleanly has no file `abort`."""
    return "abort" not in store


@law("RMQDISK-38", structure=SERVICE, scope="disk", source=INDEX_SERVICE)
def index_names_are_known(store: Directory) -> bool:
    """A folder of index files holds nothing else."""
    names = [name.removeprefix("index/") for name in store if name.startswith("index/")]
    return all(INDEX_NAME.fullmatch(name) for name in names if name)
