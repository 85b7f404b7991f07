# SPDX-License-Identifier: Apache-2.0
"""The laws of an index file's bytes, opening, header and puts; its queries are in index_chains.

An opening is a `Transition` with the operation "open", no state before, and the arguments of
`IndexFile.open` with `directory`, `profile` and `structure`.

Used by: the harness, `verify`'s tests, the generated pages.
"""

import re
from typing import Any

from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.judging import low_32_bits, raised, refused
from segproof_model.laws.key_judging import (
    ENTRY,
    FIELDS,
    HEADER,
    entry_place,
    follows,
    is_inside,
    is_of_file,
    is_refused,
    is_regular,
    is_regular_size,
    kept_hash,
    memory,
    number_at,
    old_slot_value,
    opened,
    put_entry,
    put_hash,
    seconds_after,
    size_of,
    slot_place,
    slot_value,
    stored,
    written,
)
from segproof_model.laws.registry import Transition, law
from segproof_model.laws.remembering import remembered
from segproof_model.rocketmq.index_file import IndexFile
from segproof_model.rocketmq.index_header import IndexHeader

STRUCTURE = "index-file"
CLASS = "RocketMQ IndexFile, 4.0.0 to 5.5.1"
CONSTRUCTOR = "RocketMQ IndexFile and MappedFile constructors, 4.0.0 to 5.5.1"
HEADER_CLASS = "RocketMQ IndexHeader, 4.0.0 to 5.5.1"
PUT = "RocketMQ IndexFile.putKey, 4.0.0 to 5.5.1"


@law("RMQIDX-1", structure=STRUCTURE, scope="state", source=CLASS)
def size_follows_the_numbers(file: Any) -> bool:
    """The size is wrap32(40 + 4 hash_slot_num + 20 index_num): header, slots, entries."""
    if not isinstance(file, IndexFile):
        return True
    size = size_of(file.hash_slot_num, file.index_num)
    return file.file_size == size and (not file.is_mapped or len(file.image) >= size)


@law("RMQIDX-2", structure=STRUCTURE, scope="state", source=HEADER_CLASS)
def header_is_big_endian(file: Any) -> bool:
    """The header is, big-endian, begin and end timestamp, begin and end offset, as int64, then
    slot count and index count as int32."""
    if not isinstance(file, IndexFile):
        return True
    return _is_big_endian(file.header)


@remembered
def _is_big_endian(header: IndexHeader) -> bool:
    data = header.to_bytes()
    fields = [getattr(header, name) for name in FIELDS]
    return data == HEADER.pack(*fields) and type(header).from_bytes(data) == header


@law("RMQIDX-3", structure=STRUCTURE, scope="step", source=PUT)
def entry_is_big_endian(transition: Transition) -> bool:
    """An entry is, big-endian, int32 key hash, int64 offset, int32 seconds, int32 previous index;
    a slot is the int32 number of its newest entry."""
    if not written(transition):
        return True
    file, arguments = transition.before, transition.arguments
    seconds = seconds_after(file.begin_timestamp, arguments["store_timestamp"])
    previous = follows(file, old_slot_value(transition))
    entry = ENTRY.pack(put_hash(transition), arguments["phy_offset"], seconds, previous)
    start = 40 + 4 * file.hash_slot_num + 20 * file.index_count
    slot = 40 + 4 * (put_hash(transition) % file.hash_slot_num)
    number = file.index_count.to_bytes(4, "big")
    image = transition.after.image
    return bool(image[start : start + 20] == entry and image[slot : slot + 4] == number)


@law("RMQIDX-4", structure=STRUCTURE, scope="step", source=PUT)
def entry_0_stays_empty(transition: Transition) -> bool:
    """Entry 0 is never written by a put; its 20 bytes stay zero in a fresh file."""
    if not is_of_file(transition, "put_key") or not is_regular(transition.before):
        return True
    start = 40 + 4 * transition.before.hash_slot_num
    before, after = transition.before.image, transition.after.image
    return bool(before[start : start + 20] == after[start : start + 20])


def _has_slot(file: Any, key: str | None) -> bool:
    """Return whether a put or query looks for the slot of a key."""
    return key is not None and file.hash_slot_num != 0 and file.is_mapped


@law("RMQIDX-5", structure=STRUCTURE, scope="step", source=CLASS)
def addresses_wrap(transition: Transition) -> bool:
    """Addresses have 32 bits: one outside the file ends a put or query, one that wraps into it is
    taken as it is."""
    if not is_of_file(transition, "put_key", "select_phy_offset"):
        return True
    file, key = transition.before, transition.arguments["key"]
    if not _has_slot(file, key):
        return True
    slot = is_inside(file, slot_place(file, kept_hash(key)), 4)
    if transition.operation == "select_phy_offset":
        given = tuple(transition.arguments["phy_offsets"])
        return slot or transition.outcome == given
    entry = is_inside(file, entry_place(file, file.index_count), ENTRY.size)
    room = file.index_count < file.index_num
    if file.file_size < HEADER.size:
        return slot or transition.outcome is False
    return transition.outcome is (room and slot and entry)


def _is_new(transition: Transition) -> bool:
    return transition.arguments["file_name"] not in transition.arguments["directory"]


@law("RMQIDX-6", structure=STRUCTURE, scope="step", source=HEADER_CLASS)
def fresh_count_is_not_stored(transition: Transition) -> bool:
    """In a fresh file the index count is 1 in memory and 0 in the file, until a put or flush."""
    if not opened(transition) or not _is_new(transition) or transition.after.file_size < 40:
        return True
    return memory(transition.after)[4:] == (0, 1) and stored(transition.after)[4:] == (0, 0)


def _loaded(file: Any) -> tuple[int, ...]:
    """Return the stored numbers as loading takes them."""
    *others, index_count = stored(file)
    return (*others, max(index_count, 1))


@law("RMQIDX-7", structure=STRUCTURE, scope="step", source=f"{HEADER_CLASS}, load")
def loading_mends_the_count_only(transition: Transition) -> bool:
    """Loading takes the six stored numbers, an index count <= 0 as 1, and changes no byte.

    Nothing else is looked at.
    """
    if not is_of_file(transition, "load") or not transition.before.is_mapped:
        return True
    before, after = transition.before, transition.after
    if before.file_size < HEADER.size:
        return raised(transition, ErrorKind.INDEX_ERROR)
    return memory(after) == _loaded(before) and bool(after.directory == before.directory)


@law("RMQIDX-8", structure=STRUCTURE, scope="step", source=HEADER_CLASS)
def numbers_are_written_at_once(transition: Transition) -> bool:
    """A number of the header that is set is in memory and in the file; others stay in both."""
    if not written(transition):
        return True
    before, after = transition.before, transition.after
    set_fields = {"end_timestamp", "end_phy_offset", "index_count"}
    if before.index_count <= 1:
        set_fields |= {"begin_timestamp", "begin_phy_offset"}
    if memory(after)[4] != memory(before)[4]:
        set_fields.add("hash_slot_count")
    rows = zip(FIELDS, memory(before), stored(before), memory(after), stored(after), strict=True)
    return all(
        kept == value if name in set_fields else (value, kept) == (old_value, old_kept)
        for name, old_value, old_kept, value, kept in rows
    )


def _is_int64(text: str) -> bool:
    if not re.fullmatch(r"[+-]?\d+", text) or max(text) > "\uffff":
        return False
    return -(2**63) <= int(text) < 2**63


@law("RMQIDX-9", structure=STRUCTURE, scope="step", source=CONSTRUCTOR)
def names_are_numbers(transition: Transition) -> bool:
    """A name whose base is no int64 raises and creates nothing; a negative size raises when an
    empty file was created.

    segproof creates none, and refuses every size that is not that of its slots and entries.
    """
    if transition.operation != "open" or "hash_slot_num" not in transition.arguments:
        return True
    arguments = transition.arguments
    name, directory = arguments["file_name"], arguments["directory"]
    if not _is_int64(name.split("/")[-1]):
        unchanged = bool(transition.after == directory)
        return raised(transition, ErrorKind.NUMBER_FORMAT) and unchanged
    numbers = arguments["hash_slot_num"], arguments["index_num"]
    if arguments["profile"].rmq_checks_geometry:
        if is_regular_size(*numbers) and numbers[1] >= 2:
            return not raised(transition, ErrorKind.INVALID_ARGUMENT)
        return raised(transition, ErrorKind.INVALID_ARGUMENT) and transition.after == directory
    if size_of(*numbers) >= 0 or raised(transition, ErrorKind.IO_ERROR):
        return not raised(transition, ErrorKind.INVALID_ARGUMENT)
    created = directory.write(name, directory.read(name) or b"")
    return raised(transition, ErrorKind.INVALID_ARGUMENT) and bool(transition.after == created)


@law("RMQIDX-10", structure=STRUCTURE, scope="step", source=CONSTRUCTOR)
def opening_grows_and_never_cuts(transition: Transition) -> bool:
    """Opening extends a shorter file with zeros, and leaves a longer one as long as it is.

    segproof refuses an existing file of another size, but grows one of no bytes.
    """
    arguments = transition.arguments
    if transition.operation != "open" or "hash_slot_num" not in arguments:
        return True
    old = arguments["directory"].read(arguments["file_name"])
    size = size_of(arguments["hash_slot_num"], arguments["index_num"])
    if not isinstance(transition.after, IndexFile):
        return isinstance(transition.outcome, Raised)
    if arguments["profile"].rmq_checks_geometry and old:
        return len(old) == size == len(transition.after.image)
    image, grown = transition.after.image, (old or b"") + bytes(max(size - len(old or b""), 0))
    return len(image) == len(grown) and bool(image[32:] == grown[32:])


@law("RMQIDX-11", structure=STRUCTURE, scope="step", source=CONSTRUCTOR)
def opened_file_looks_empty(transition: Transition) -> bool:
    """An existing file that is opened, and not loaded, has slot count 0 and index count 1.

    segproof loads the header of an existing file.
    """
    if not opened(transition) or _is_new(transition):
        return True
    file = transition.after
    if transition.arguments["profile"].rmq_opening_loads:
        return memory(file)[4:] == _loaded(file)[4:]
    return memory(file)[4:] == (0, 1)


@law("RMQIDX-12", structure=STRUCTURE, scope="step", source=CONSTRUCTOR)
def start_values_are_independent(transition: Transition) -> bool:
    """An offset > 0 given to the constructor becomes begin and end offset, a time > 0 begin and
    end timestamp, in memory and in the file; the counters stay as they are stored."""
    if not opened(transition) or transition.after.file_size < HEADER.size:
        return True
    arguments, file = transition.arguments, transition.after
    old = arguments["directory"].read(arguments["file_name"])
    kept = HEADER.unpack((old or b"")[:40].ljust(40, b"\0"))
    loads = arguments["profile"].rmq_opening_loads
    in_memory, in_file = kept[:4] if loads else (0, 0, 0, 0), kept[:4]
    times, offsets = slice(0, 2), slice(2, 4)
    for name, place in (("end_timestamp", times), ("end_phy_offset", offsets)):
        given = arguments.get(name, 0)
        expected = ((given, given),) * 2 if given > 0 else (in_memory[place], in_file[place])
        if (memory(file)[place], stored(file)[place]) != expected:
            return False
    return stored(file)[4:] == kept[4:]


@law("RMQIDX-13", structure=STRUCTURE, scope="step", source="RocketMQ IndexFile.isWriteFull")
def full_is_a_count(transition: Transition) -> bool:
    """A file is full exactly when its index count is not below index_num."""
    if not is_of_file(transition, "is_write_full"):
        return True
    file = transition.before
    return transition.outcome is (file.index_num <= file.index_count)


@law("RMQIDX-14", structure=STRUCTURE, scope="step", source="RocketMQ IndexFile.flush")
def flush_writes_the_header(transition: Transition) -> bool:
    """flush writes the six numbers from memory, and does nothing once the file is not available."""
    if not is_of_file(transition, "flush"):
        return True
    before, after = transition.before, transition.after
    if not before.is_available:
        return transition.outcome is None and bool(after == before)
    if not before.is_mapped or before.file_size < HEADER.size:
        return isinstance(transition.outcome, Raised)
    image = HEADER.pack(*memory(before)) + before.image[40:]
    return bool(after.image == image) and after.header == before.header


@law("RMQIDX-15", structure=STRUCTURE, scope="step", source=CLASS)
def flushed_file_answers_the_same(transition: Transition) -> bool:
    """After flush, reopening and loading, every query has the answer it had before.

    An answer comes from the header in memory and the bytes behind it, so both must be the same.
    """
    if not is_of_file(transition, "flush") or isinstance(transition.outcome, Raised):
        return True
    file = transition.after
    if not file.is_available or not file.is_mapped:
        return True
    numbers, known = (file.hash_slot_num, file.index_num), {"profile": file.profile}
    again = IndexFile.open(file.file_name, *numbers, directory=file.directory, **known).after
    if not isinstance(again, IndexFile):
        return False
    loaded = again.load().after
    return memory(loaded) == memory(file) and loaded.image[40:] == file.image[40:]


@law("RMQIDX-16", structure=STRUCTURE, scope="step", source="RocketMQ IndexFile.isTimeMatched")
def times_match_by_three_tests(transition: Transition) -> bool:
    """is_time_matched(b, e) holds exactly when b < B and e > E, or B <= b <= E, or B <= e <= E,
    whatever the order of b and e, and of begin B and end E."""
    if not is_of_file(transition, "is_time_matched"):
        return True
    begin, end = transition.arguments["begin"], transition.arguments["end"]
    first, last = memory(transition.before)[:2]
    within = [first <= time <= last for time in (begin, end)]
    return transition.outcome is (any(within) or (begin < first and last < end))


@law("RMQIDX-17", structure=STRUCTURE, scope="step", source=PUT)
def full_file_takes_nothing(transition: Transition) -> bool:
    """A put into a full file answers no and changes nothing, and one into a file with room takes
    it: index_num - 1 entries in all."""
    if not is_of_file(transition, "put_key"):
        return True
    before, after = transition.before, transition.after
    if is_refused(before):
        return refused(transition, ErrorKind.UNMAPPED)
    if before.index_count >= before.index_num:
        return transition.outcome is False and bool(after == before)
    return transition.outcome is not False or not is_regular(before)


@law("RMQIDX-18", structure=STRUCTURE, scope="step", source=PUT)
def each_put_counts_one(transition: Transition) -> bool:
    """After each put that is taken the index count is one more, in memory and in the file."""
    if not written(transition):
        return True
    count = transition.before.index_count + 1
    return bool(memory(transition.after)[5] == count == stored(transition.after)[5])


@law("RMQIDX-19", structure=STRUCTURE, scope="step", source=PUT)
def put_writes_nothing_else(transition: Transition) -> bool:
    """A put writes its own entry, one slot and the header, and no other byte."""
    if not written(transition):
        return True
    file = transition.before
    entry, slot = entry_place(file, file.index_count), slot_place(file, put_hash(transition))
    image = bytearray(transition.after.image)
    for place, size in ((entry, 20), (slot, 4), (0, 40)):
        image[place : place + size] = file.image[place : place + size]
    return bool(bytes(image) == file.image)


@law("RMQIDX-20", structure=STRUCTURE, scope="step", source=PUT)
def previous_is_the_old_slot(transition: Transition) -> bool:
    """The previous index is the old slot value v when 0 < v <= index count, else 0.

    segproof takes only 0 < v < index count.
    """
    if not written(transition):
        return True
    value, count = old_slot_value(transition), transition.before.index_count
    if transition.before.profile.rmq_checks_chains:
        count -= 1
    return put_entry(transition).prev_index == (value if value in range(1, count + 1) else 0)


@law("RMQIDX-21", structure=STRUCTURE, scope="step", source=PUT)
def seconds_count_from_the_old_begin(transition: Transition) -> bool:
    """The seconds are those since the begin timestamp before the put, as 64 bits hold them: 0 if
    that is <= 0 or later, 2147483647 at most."""
    if not written(transition):
        return True
    begin, store = transition.before.begin_timestamp, transition.arguments["store_timestamp"]
    return put_entry(transition).time_diff == seconds_after(begin, store)


@law("RMQIDX-22", structure=STRUCTURE, scope="step", source=PUT)
def slot_names_the_newest(transition: Transition) -> bool:
    """The slot of the key is set to the index count before the put."""
    if not written(transition):
        return True
    return bool(slot_value(transition.after, put_hash(transition)) == transition.before.index_count)


@law("RMQIDX-23", structure=STRUCTURE, scope="step", source=PUT)
def first_entry_sets_the_begin(transition: Transition) -> bool:
    """With an index count <= 1 a put sets begin offset and begin timestamp to its own, replacing
    those of the constructor; later ones leave them."""
    if not written(transition):
        return True
    before, after, arguments = transition.before, transition.after, transition.arguments
    begin = (before.begin_timestamp, before.begin_phy_offset)
    if before.index_count <= 1:
        begin = (arguments["store_timestamp"], arguments["phy_offset"])
    return (after.begin_timestamp, after.begin_phy_offset) == begin


@law("RMQIDX-24", structure=STRUCTURE, scope="step", source=PUT)
def slot_count_grows_with_new_slots(transition: Transition) -> bool:
    """The slot count grows by one per put up to 4.7.0, and later only when no previous index is
    stored."""
    if not written(transition):
        return True
    before, after = transition.before, transition.after
    grows = before.profile.rmq_slot_count_each_put or put_entry(transition).prev_index == 0
    return bool(after.hash_slot_count == low_32_bits(before.hash_slot_count + grows))


@law("RMQIDX-25", structure=STRUCTURE, scope="step", source=PUT)
def end_is_the_last_put(transition: Transition) -> bool:
    """End offset and end timestamp are those of the last put, greatest or not."""
    if not written(transition):
        return True
    after, arguments = transition.after, transition.arguments
    end = (arguments["store_timestamp"], arguments["phy_offset"])
    return (after.end_timestamp, after.end_phy_offset) == end


@law("RMQIDX-26", structure=STRUCTURE, scope="step", source=PUT)
def continued_file_begins_with_a_gap(transition: Transition) -> bool:
    """The first entry of a file that was given an end timestamp P > 0 keeps the seconds since P,
    and reads as that much later than its own time."""
    if not written(transition) or transition.before.index_count > 1:
        return True
    given, store = transition.before.begin_timestamp, transition.arguments["store_timestamp"]
    gap = seconds_after(given, store) if given > 0 else 0
    read = transition.after.begin_timestamp + 1000 * put_entry(transition).time_diff
    return bool(read == store + 1000 * gap)


@law("RMQIDX-27", structure=STRUCTURE, scope="step", source=PUT)
def begin_at_zero_has_no_seconds(transition: Transition) -> bool:
    """If the first message of a file has a timestamp <= 0, every later entry has 0 seconds."""
    if not written(transition) or transition.before.begin_timestamp > 0:
        return True
    return put_entry(transition).time_diff == 0


@law("RMQIDX-28", structure=STRUCTURE, scope="step", source=PUT)
def index_error_leaves_a_part(transition: Transition) -> bool:
    """A put that leaves the file's bytes answers no, keeps what it wrote before, and counts
    nothing."""
    if not is_of_file(transition, "put_key") or transition.outcome is not False:
        return True
    file, arguments = transition.before, transition.arguments
    if file.index_count >= file.index_num or file.file_size < HEADER.size:
        return True
    value = slot_value(file, put_hash(transition))
    seconds = seconds_after(file.begin_timestamp, arguments["store_timestamp"])
    previous = 0 if value is None else follows(file, value)
    entry = ENTRY.pack(put_hash(transition), arguments["phy_offset"], seconds, previous)
    image, start = bytearray(file.image), entry_place(file, file.index_count)
    for field, end in ((0, 4), (4, 12), (12, 16), (16, 20)):
        place = low_32_bits(start + field)
        if value is None or not is_inside(file, place, end - field):
            break
        image[place : place + end - field] = entry[field:end]
    return bool(transition.after.image == image and transition.after.header == file.header)


@law("RMQIDX-29", structure=STRUCTURE, scope="step", source=PUT)
def slot_of_the_next_entry_loops(transition: Transition) -> bool:
    """A slot value equal to the index count is accepted: the entry points to itself, and the slot
    count does not grow in 4.7.1 and later.

    segproof begins a new chain.
    """
    if not written(transition):
        return True
    before, after = transition.before, transition.after
    if old_slot_value(transition) != before.index_count:
        return True
    if before.profile.rmq_checks_chains:
        return put_entry(transition).prev_index == 0
    grown = 1 if before.profile.rmq_slot_count_each_put else 0
    loops = put_entry(transition).prev_index == before.index_count
    return bool(loops and after.hash_slot_count == low_32_bits(before.hash_slot_count + grown))


@law("RMQIDX-30", structure=STRUCTURE, scope="file", source=PUT)
def chains_lead_downwards(image: bytes, hash_slot_num: int) -> bool:
    """In a file of completed puts every previous index is smaller than its entry's, and the slot
    count is the number of slots in use, up to 4.7.0 that of the entries."""
    start = 40 + 4 * hash_slot_num
    if len(image) < start:
        return False
    *_, slot_count, index_count = HEADER.unpack(image[:40])
    slots = [number_at(image, place) for place in range(40, start, 4)]
    places = range(start + 20, start + 20 * index_count, 20)
    if len(image) < start + 20 * index_count or not all(
        0 <= value < max(index_count, 1) for value in slots
    ):
        return False
    previous = [ENTRY.unpack_from(image, place)[3] for place in places]
    downwards = all(0 <= value < number for number, value in enumerate(previous, 1))
    return downwards and slot_count in (len(slots) - slots.count(0), len(previous))
