# SPDX-License-Identifier: Apache-2.0
"""The laws of an index file as a verifier finds it."""

import re

from segproof_model.laws.arithmetic import never_falls
from segproof_model.laws.register import law
from segproof_model.laws.rocketmq.format.index_entries import IndexBytes, seconds_between
from segproof_model.rocketmq.format.index_file import IndexFile

INDEX_FILE = "RocketMQ IndexFile 4.7.0 to 5.5.1"
INDEX_SERVICE = "RocketMQ IndexService 4.7.0 to 5.5.1"
INDEX_NAME = re.compile(r"[0-9]{17}")


@law("RMQDISK-1", IndexFile, INDEX_FILE)
def length_fits(raw_index_file: IndexBytes) -> bool:
    """An index file of H slots has 40 + 4H + 20N bytes, for one slot or more and N of 2 or more."""
    room = len(raw_index_file.image) - raw_index_file.start
    return raw_index_file.hash_slot_num >= 1 and room >= 40 and room % 20 == 0


@law("RMQDISK-2", IndexFile, "segproof")
def slots_can_be_told(raw_image: bytes) -> bool:
    """Only one number of slots fits length, header and chains."""
    of_header = length_fits, count_has_room, header_has_the_ends
    of_chains = slots_lead_to_entries, chains_lead_back, chains_keep_to_their_slot
    laws = *of_header, *of_chains, each_entry_is_named_once
    readings = [IndexBytes(raw_image, slots) for slots in range(1, (len(raw_image) - 40) // 4 - 9)]
    fitting = [one for one in readings if all(holds(one) for holds in laws)]
    return len(fitting) == 1 and not fitting[0].is_empty


@law("RMQDISK-3", IndexFile, "RocketMQ UtilAll.timeMillisToHumanString")
def name_is_a_time(name: str) -> bool:
    """The name of an index file is a time: year, month, day, hour, minute, second, thousandths."""
    if not INDEX_NAME.fullmatch(name):
        return False
    month, day, hour, minute, second = (int(name[at : at + 2]) for at in range(4, 14, 2))
    lengths = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    is_day = 1 <= month <= 12 and 1 <= day <= lengths[month]
    return is_day and hour <= 23 and minute <= 59 and second <= 60


@law("RMQDISK-4", IndexFile, INDEX_FILE)
def count_has_room(index_file: IndexBytes) -> bool:
    """The index count of the header is neither negative nor larger than N."""
    return 0 <= index_file.header.index_count <= index_file.room


@law("RMQDISK-5", IndexFile, INDEX_FILE)
def empty_file_is_zero(index_file: IndexBytes) -> bool:
    """After a header that counts no entry all bytes are zero."""
    return not index_file.is_empty or not any(index_file.image[40:])


@law("RMQDISK-6", IndexFile, INDEX_FILE)
def rest_is_zero(index_file: IndexBytes) -> bool:
    """After the last entry, and the entry of one unfinished put, all bytes are zero."""
    rest = index_file.start + 20 * (index_file.count + 1)
    return index_file.is_empty or not any(index_file.image[rest:])


@law("RMQDISK-7", IndexFile, INDEX_FILE)
def entry_0_is_zero(index_file: IndexBytes) -> bool:
    """Entry 0, which means "none", is zero."""
    start = index_file.start
    return index_file.is_empty or not any(index_file.image[start : start + 20])


@law("RMQDISK-8", IndexFile, INDEX_FILE)
def slots_lead_to_entries(index_file: IndexBytes) -> bool:
    """Each slot is 0 or the index of an entry that the header counts."""
    return index_file.is_empty or all(0 <= head < index_file.count for head in index_file.slots)


@law("RMQDISK-9", IndexFile, INDEX_FILE)
def chains_lead_back(index_file: IndexBytes) -> bool:
    """The previous index of each entry is 0 or that of an earlier entry, so every chain ends."""
    return all(0 <= entry.prev_index < entry.number for entry in index_file.entries)


@law("RMQDISK-10", IndexFile, INDEX_FILE)
def chains_keep_to_their_slot(index_file: IndexBytes) -> bool:
    """Key hashes are not negative, and each slot and entry names an entry of its own slot."""
    slots = [index_file.slot_of(entry) for entry in index_file.entries]
    return -1 not in slots and all(own == slots[number - 1] for own, number in index_file.links())


@law("RMQDISK-11", IndexFile, INDEX_FILE)
def each_entry_is_named_once(index_file: IndexBytes) -> bool:
    """Each entry is named once, by a slot or a later entry, so it is on the chain of its slot."""
    named = sorted(number for _, number in index_file.links())
    return index_file.is_empty or named == list(range(1, index_file.count))


@law("RMQDISK-12", IndexFile, INDEX_FILE)
def slot_count_fits(index_file: IndexBytes) -> bool:
    """The slot count is the number of slots in use, or up to that of entries (until 4.7.0)."""
    used = sum(head != 0 for head in index_file.slots)
    return index_file.is_empty or used <= index_file.header.hash_slot_count <= len(
        index_file.entries
    )


@law("RMQDISK-13", IndexFile, INDEX_FILE)
def differences_fit(index_file: IndexBytes) -> bool:
    """Time differences are not negative, and the last entry's difference fits the end timestamp.

    The difference of a file's first entry is measured from the end of the previous file.
    """
    differences, header = [entry.time_diff for entry in index_file.entries], index_file.header
    is_asked = len(differences) > 1 and header.index_count <= index_file.room
    expected = seconds_between(header.begin_timestamp, header.end_timestamp)
    return min(differences, default=0) >= 0 and (not is_asked or differences[-1] == expected)


@law("RMQDISK-14", IndexFile, INDEX_FILE)
def entries_read_within_the_header(index_file: IndexBytes) -> bool:
    """No entry after the first one reads later than the end timestamp: the clock never went back.

    Up to 20 years of 366 days this is a note: a wrong clock was corrected. More is a warning. With
    a begin timestamp of 0 or less no difference is stored.
    """
    return seconds_behind_the_end(index_file) <= 0


def seconds_behind_the_end(index_file: IndexBytes) -> int:
    """Return the most by which an entry after the first one reads later than the end."""
    header = index_file.header
    room = (header.end_timestamp - header.begin_timestamp) // 1000
    late = [entry.time_diff - room for entry in index_file.entries[1:]]
    return max(0, *late) if late and header.begin_timestamp > 0 else 0


@law("RMQDISK-15", IndexFile, INDEX_SERVICE)
def offsets_never_fall(index_file: IndexBytes) -> bool:
    """The offsets of the entries never fall, and none is negative."""
    return never_falls([0, *(entry.phy_offset for entry in index_file.entries)])


@law("RMQDISK-16", IndexFile, INDEX_FILE)
def header_has_the_ends(index_file: IndexBytes) -> bool:
    """Begin and end offset are the offsets of the first and last entry. Until the second put begin
    and end timestamp are equal; without entries both offsets are equal too.
    """
    entries, (begin, end, *offsets, _, count) = index_file.entries, index_file.header
    if index_file.is_empty:
        return begin == end and offsets[0] == offsets[1]
    if not entries or count > index_file.room:
        return True
    ends = [entries[0].phy_offset, entries[-1].phy_offset]
    return ends == offsets and (begin == end or len(entries) > 1)
