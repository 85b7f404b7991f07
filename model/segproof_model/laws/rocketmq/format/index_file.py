# SPDX-License-Identifier: Apache-2.0
"""The laws of an index file's bytes, opening, header and puts; its queries are in index_chains."""

from typing import Any

from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.arithmetic import low_32_bits
from segproof_model.laws.register import Transition, has, law
from segproof_model.laws.rocketmq.format import index_entries as read
from segproof_model.laws.rocketmq.format.index_entries import IndexBytes, Put, law_of_puts
from segproof_model.rocketmq.format import index_file_deviations as ours
from segproof_model.rocketmq.format import index_file_releases as older
from segproof_model.rocketmq.format.index_file import IndexFile

CLASS = "RocketMQ IndexFile, 4.0.0 to 5.5.1"
CONSTRUCTOR = "RocketMQ IndexFile and MappedFile constructors, 4.0.0 to 5.5.1"
HEADER_CLASS = "RocketMQ IndexHeader, 4.0.0 to 5.5.1"
PUT = "RocketMQ IndexFile.putKey, 4.0.0 to 5.5.1"


@law("RMQIDX-1", IndexFile, CLASS)
def size_follows_the_numbers(state: Any) -> bool:
    """The size is wrap32(40 + 4 hash_slot_num + 20 index_num): header, slots, entries."""
    size = read.size_of(state.hash_slot_num, state.index_num)
    return state.file_size == size and (not state.is_mapped or len(state.image) >= size)


@law("RMQIDX-2", IndexFile, HEADER_CLASS)
def header_is_big_endian(state: Any) -> bool:
    """The header is, big-endian, begin and end timestamp, begin and end offset, as int64, then
    slot count and index count as int32."""
    data = read.HEADER.pack(*state.header)
    return bool(state.header.to_bytes() == data and state.header.from_bytes(data) == state.header)


@law_of_puts("RMQIDX-3")
def entry_is_big_endian(put: Put) -> bool:
    """An entry is, big-endian, int32 key hash, int64 offset, int32 seconds, int32 previous index;
    a slot is the int32 number of its newest entry."""
    entry = (put.number, put.key_hash, put.phy_offset, put.seconds, put.previous)
    return put.entry == entry and put.head == put.number


@law("RMQIDX-4", IndexFile, PUT, on="put_key")
def entry_0_stays_empty(step: Transition) -> bool:
    """Entry 0 is never written by a put; its 20 bytes stay zero in a fresh file."""
    start = 40 + 4 * step.before.hash_slot_num
    old, new = (file.image[start : start + 20] for file in (step.before, step.after))
    return bool(old == new) or not read.is_regular(step.before)


@law("RMQIDX-5", IndexFile, CLASS, on="put_key select_phy_offset")
def addresses_wrap(step: Transition) -> bool:
    """Addresses have 32 bits: an address outside the file ends a put or query, an address that
    wraps into the file is used.
    """
    file, key = step.before, step.arguments["key"]
    if key is None or file.hash_slot_num == 0 or not file.is_mapped:
        return True
    is_in = read.is_inside(file, read.slot_place(file, read.kept_hash(key)), 4)
    if step.operation == "select_phy_offset":
        return is_in or not step.succeeded or step.outcome == tuple(step.arguments["phy_offsets"])
    is_in &= read.is_inside(file, read.entry_place(file, file.index_count), 20)
    has_room = file.index_count < file.index_num and file.file_size >= 40
    return step.outcome is (is_in and has_room)


@law("RMQIDX-6", IndexFile, HEADER_CLASS, on="open")
def fresh_count_is_not_stored(step: Transition) -> bool:
    """In a fresh file the index count is 1 in memory and 0 in the file, until a put or flush."""
    file, is_new = step.after, step.arguments["file_name"] not in step.before
    if not is_new or not step.succeeded or file.file_size < 40:
        return True
    return bool(file.header[4:] == (0, 1)) and read.header_of(file.image)[4:] == (0, 0)


@law("RMQIDX-7", IndexFile, f"{HEADER_CLASS}, load", on="load")
def loading_mends_the_count_only(step: Transition) -> bool:
    """Loading takes the six stored numbers, an index count <= 0 as 1, and changes no byte.

    Nothing else is looked at.
    """
    before, stored = step.before, read.header_of(step.before.image)
    if not before.is_mapped or before.file_size < 40:
        return not step.succeeded
    loaded = stored._replace(index_count=max(stored.index_count, 1))
    return bool(step.after.header == loaded) and step.changed_only("header")


@law_of_puts("RMQIDX-8")
def numbers_are_written_at_once(put: Put) -> bool:
    """Setting a number of the header changes it in memory and in the file; the others stay."""
    old = zip(put.before.header, read.header_of(put.before.image), strict=True)
    new = zip(put.after.header, read.header_of(put.after.image), strict=True)
    return all(now == was or now[0] == now[1] for was, now in zip(old, new, strict=True))


@law("RMQIDX-9", IndexFile, CONSTRUCTOR, on="open")
def names_are_numbers(step: Transition) -> bool:
    """A name whose base is not an int64 raises and creates nothing; a negative size raises after an
    empty file was created.

    segproof creates no file, and refuses every size other than that of its slots and entries.
    """
    there, (slots, entries) = step.before.images, step.arguments["geometry"]
    name = step.arguments["file_name"]
    if not read.is_long(name.rpartition("/")[2]):
        return step.raised(ErrorKind.NUMBER_FORMAT) and bool(step.after.images == there)
    is_bad, left = read.size_of(slots, entries) < 0, {**there, name: there.get(name, b"")}
    if has(step.kind, ours.SizeIsChecked):
        is_bad, left = slots < 1 or entries < 2 or 40 + 4 * slots + 20 * entries >= 2**31, there
    if step.raised(ErrorKind.INVALID_ARGUMENT):
        return is_bad and bool(step.after.images == left)
    return not is_bad or step.raised(ErrorKind.IO_ERROR)


@law("RMQIDX-10", IndexFile, CONSTRUCTOR, on="open")
def opening_grows_and_never_cuts(step: Transition) -> bool:
    """Opening extends a shorter file with zeros, and keeps the length of a longer one.

    segproof refuses an existing file of another size, and grows only an empty file.
    """
    if not step.succeeded:
        return True
    old, new = step.before.image(step.arguments["file_name"]), step.after.image
    size = read.size_of(*step.arguments["geometry"])
    grown = old.ljust(size, b"\0")
    is_sized = not old or len(old) == size or not has(step.after, ours.SizeIsChecked)
    return is_sized and bool(len(new) == len(grown) and new[32:] == grown[32:])


@law("RMQIDX-12", IndexFile, CONSTRUCTOR, on="open")
def start_values_are_independent(step: Transition) -> bool:
    """An offset > 0 given to the constructor becomes begin and end offset, a time > 0 begin and
    end timestamp, in memory and in the file; the counters stay as they are stored."""
    if not step.succeeded or step.after.file_size < 40:
        return True
    kept = read.header_of(step.before.image(step.arguments["file_name"]))
    given = [step.arguments[name] for name in ("end_timestamp", "end_phy_offset")]
    for place, value in enumerate(given):
        pair = slice(2 * place, 2 * place + 2)
        expected = (value, value) if value > 0 else kept[pair]
        in_memory, in_file = step.after.header[pair], read.header_of(step.after.image)[pair]
        if in_file != expected or in_memory not in (expected, (max(value, 0),) * 2):
            return False
    return read.header_of(step.after.image)[4:] == kept[4:]


@law("RMQIDX-13", IndexFile, "RocketMQ IndexFile.isWriteFull")
def full_is_a_count(state: Any) -> bool:
    """A file is full exactly when its index count is not below index_num."""
    return state.is_write_full is (state.index_num <= state.index_count)


@law("RMQIDX-14", IndexFile, "RocketMQ IndexFile.flush", on="flush")
def flush_writes_the_header(step: Transition) -> bool:
    """flush writes the six numbers from memory, and does nothing once the file is not available."""
    before = step.before
    if not before.is_available:
        return step.outcome is None and step.is_unchanged
    if not before.is_mapped or before.file_size < 40:
        return not step.succeeded
    image = read.HEADER.pack(*before.header) + before.image[40:]
    return bool(step.after.image == image) and step.changed_only("files")


@law("RMQIDX-15", IndexFile, CLASS, on="flush")
def flushed_file_answers_the_same(step: Transition) -> bool:
    """After flush, reopening and loading, every query has the same answer as before.

    An answer depends on the header in memory, which loading reads back, and the bytes after it.
    """
    file = step.after
    is_open = step.succeeded and file.is_available and file.is_mapped
    return not is_open or bool(read.header_of(file.image) == file.header)


@law("RMQIDX-16", IndexFile, "RocketMQ IndexFile.isTimeMatched", on="is_time_matched")
def times_match_by_three_tests(step: Transition) -> bool:
    """is_time_matched(b, e) holds exactly when b < B and e > E, or B <= b <= E, or B <= e <= E,
    whatever the order of b and e, and of begin B and end E."""
    begin, end = step.arguments["begin"], step.arguments["end"]
    first, last = step.before.begin_timestamp, step.before.end_timestamp
    within = [first <= time <= last for time in (begin, end)]
    return step.outcome is (any(within) or (begin < first and last < end))


@law("RMQIDX-17", IndexFile, PUT, on="put_key")
def full_file_takes_nothing(step: Transition) -> bool:
    """A put into a full file answers false and changes nothing; a file with room accepts it:
    index_num - 1 entries in all.
    """
    before = step.before
    if read.is_refused(before):
        return True
    if before.index_count >= before.index_num:
        return step.outcome is False and step.is_unchanged
    return step.outcome is not False or not read.is_regular(before)


@law_of_puts("RMQIDX-18")
def each_put_counts_one(put: Put) -> bool:
    """Each accepted put adds one to the index count, in memory and in the file."""
    counts = put.after.index_count, read.header_of(put.after.image).index_count
    return counts == (put.number + 1, put.number + 1)


@law_of_puts("RMQIDX-19")
def put_writes_nothing_else(put: Put) -> bool:
    """A put writes its own entry, one slot and the header, and no other byte."""
    image = bytearray(put.after.image)
    entry = read.entry_place(put.before, put.number)
    slot = read.slot_place(put.before, put.key_hash)
    for place, size in ((entry, 20), (slot, 4), (0, 40)):
        image[place : place + size] = put.before.image[place : place + size]
    return bool(image == put.before.image)


@law_of_puts("RMQIDX-20")
def previous_is_the_old_slot(put: Put) -> bool:
    """The previous index is the old slot value v when 0 < v <= index count, else 0.

    segproof takes only 0 < v < index count.
    """
    return put.entry.prev_index == put.previous


@law_of_puts("RMQIDX-21")
def seconds_count_from_the_old_begin(put: Put) -> bool:
    """The seconds are those since the begin timestamp before the put, as 64 bits hold them: 0 if
    that is <= 0 or later, 2147483647 at most."""
    return put.entry.time_diff == put.seconds


@law_of_puts("RMQIDX-22")
def slot_names_the_newest(put: Put) -> bool:
    """The slot of the key is set to the index count before the put."""
    return put.head == put.number


@law_of_puts("RMQIDX-23")
def first_entry_sets_the_begin(put: Put) -> bool:
    """With an index count <= 1 a put sets begin offset and begin timestamp to its own, replacing
    those of the constructor; later puts keep them.
    """
    before, after = ((one.begin_timestamp, one.begin_phy_offset) for one in (put.before, put.after))
    return after == ((put.store_timestamp, put.phy_offset) if put.number <= 1 else before)


@law_of_puts("RMQIDX-24")
def slot_count_grows_with_new_slots(put: Put) -> bool:
    """The slot count grows by one with each put up to 4.7.0, and later only if the put stores no
    previous index.
    """
    grows = has(put.before, older.EachPutIsCounted) or put.entry.prev_index == 0
    return bool(put.after.hash_slot_count == low_32_bits(put.before.hash_slot_count + grows))


@law_of_puts("RMQIDX-25")
def end_is_the_last_put(put: Put) -> bool:
    """End offset and end timestamp are the last put's, even if others are greater."""
    end = put.after.end_timestamp, put.after.end_phy_offset
    return end == (put.store_timestamp, put.phy_offset)


@law_of_puts("RMQIDX-26")
def continued_file_begins_with_a_gap(put: Put) -> bool:
    """The first entry of a file that was given an end timestamp P > 0 stores the seconds since P,
    and reads as that much later than its own time.
    """
    gap = read.seconds_between(put.before.begin_timestamp, put.store_timestamp)
    late = put.after.begin_timestamp + 1000 * put.entry.time_diff - put.store_timestamp
    return put.number > 1 or bool(late == 1000 * gap)


@law_of_puts("RMQIDX-27")
def begin_at_zero_has_no_seconds(put: Put) -> bool:
    """If the first message of a file has a timestamp <= 0, every later entry has 0 seconds."""
    return put.before.begin_timestamp > 0 or put.entry.time_diff == 0


@law("RMQIDX-28", IndexFile, PUT, on="put_key")
def index_error_leaves_a_part(step: Transition) -> bool:
    """A put whose address leaves the file answers false, keeps its earlier writes, and counts
    nothing.
    """
    is_cut = step.outcome is False and step.before.file_size >= 40
    return not is_cut or step.changed_only("files")


@law_of_puts("RMQIDX-29")
def slot_of_the_next_entry_loops(put: Put) -> bool:
    """A slot value equal to the index count is accepted: the entry points to itself, and the slot
    count does not grow in 4.7.1 and later.

    segproof begins a new chain.
    """
    if put.old_head != put.number:
        return True
    begins = has(put.before, ours.ChainsAreChecked)
    grown = put.before.hash_slot_count + (begins or has(put.before, older.EachPutIsCounted))
    is_counted = bool(put.after.hash_slot_count == low_32_bits(grown))
    return put.entry.prev_index == (0 if begins else put.number) and is_counted


@law("RMQIDX-30", IndexFile, PUT)
def chains_lead_downwards(index_file: IndexBytes) -> bool:
    """In a file of completed puts every previous index is smaller than its entry's number, and the
    slot count is the number of slots in use, up to 4.7.0 the number of entries.
    """
    entries = index_file.entries
    if max(index_file.header.index_count, 1) > index_file.room:
        return False
    is_downward = all(0 <= one.prev_index < one.number for one in entries)
    are_entries = all(0 <= head < index_file.count for head in index_file.slots)
    used = sum(head != 0 for head in index_file.slots)
    return is_downward and are_entries and index_file.header.hash_slot_count in (used, len(entries))
