# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's index file: the hash of a key, putting entries, and walking chains of them.

Mirrors: segproof_model/rocketmq/format/{key_hash,index_file}.py under the profile `segproof`.
Upstream: RocketMQ IndexFile (4.7.1 to 5.5.1); Java String.hashCode.
Layout: header of 40 bytes; slot s is the int32 at 40 + 4s; entry i is at 40 + 4H + 20i: int32 hash,
    int64 offset, int32 time difference in seconds, int32 previous index.
Laws: RMQHASH-1 to RMQHASH-3, RMQIDX-17 to RMQIDX-25, RMQIDX-31 to RMQIDX-36, RMQIDX-40.

`data` is the whole file, as bytes or a memoryview of format B; other memoryviews are of format q.
Texts are UTF-8: `is_text` says that they come from Python's texts, where a lone surrogate stands as
the three bytes that its number would have. A walk reads entries below `index_count` only, each
nearer to the beginning than the one before, so it ends on any bytes.
"""

from segproof.kernels.dispatch import kernel
from segproof.kernels.records import add_int64
from segproof.kernels.slot_search import int32_at, int64_at

Bytes = bytes | bytearray | memoryview

HEADER_BYTES = 40
CORRUPT = -1
"""A chain leads to where no entry is, or upwards."""
NO_ROOM = -2
"""More was found than there is room for."""


# --- the hash of a key


@kernel
def add_unit(hashed: int, unit: int) -> int:
    """Return the hash with one more UTF-16 unit; hashes are 0..2^32-1 here. Law: RMQHASH-1."""
    return (hashed * 31 + unit) & 4294967295


@kernel
def absolute_hash(hashed: int) -> int:
    """Return what an entry keeps of a hash of 0..2^32-1: 0..2^31-1. Law: RMQHASH-2."""
    if hashed < 2147483648:
        return hashed
    if hashed == 2147483648:
        return 0
    return 4294967296 - hashed


@kernel
def hash_of_units(units: Bytes) -> int:
    """Return the hash, 0..2^32-1, of UTF-16 units: bytes, or a memoryview of format H."""
    hashed = 0
    for unit in units:
        hashed = (hashed * 31 + unit) & 4294967295
    return hashed


@kernel
def key_hash_of_units(units: Bytes) -> int:
    """Return what an entry keeps of a text given as units, as `hash_of_units` takes them."""
    return absolute_hash(hash_of_units(units))


@kernel
def utf8_character(data: Bytes, position: int, end: int, is_text: int) -> int:
    """Return 8 * code point + bytes of the character at `position`, or -1 if it is not UTF-8."""
    first = data[position] + 0
    if first < 128:
        return first * 8 + 1
    if first < 194 or first > 244:
        return -1
    size = 2
    code = first - 192
    least = 128
    if first >= 240:
        size = 4
        code = first - 240
        least = 65536
    elif first >= 224:
        size = 3
        code = first - 224
        least = 2048
    if position + size > end:
        return -1
    for number in range(1, size):
        byte = data[position + number] + 0
        if byte < 128 or byte >= 192:
            return -1
        code = code * 64 + byte - 128
    if code < least or code > 1114111:
        return -1
    if 55296 <= code < 57344 and not is_text:
        return -1
    return code * 8 + size


@kernel
def hash_of_utf8(data: Bytes, start: int, end: int, is_text: int) -> int:
    """Return the hash, 0..2^31-1, that an entry keeps of a text; -1 if it is not UTF-8."""
    hashed = 0
    position = start
    # Four ASCII characters at a time, whose products don't wait for each other.
    while position + 4 <= end:
        one = data[position] + 0
        two = data[position + 1] + 0
        three = data[position + 2] + 0
        four = data[position + 3] + 0
        if one >= 128 or two >= 128 or three >= 128 or four >= 128:
            break
        together = one * 29791 + two * 961 + three * 31 + four
        hashed = (hashed * 923521 + together) & 4294967295
        position += 4
    while position < end:
        character = utf8_character(data, position, end, is_text)
        if character < 0:
            return -1
        code = character // 8
        position += character % 8
        if code >= 65536:
            hashed = add_unit(hashed, 55296 + (code - 65536) // 1024)
            code = 56320 + code % 1024
        hashed = add_unit(hashed, code)
    return absolute_hash(hashed)


@kernel
def hashes_of_rows(data: Bytes, width: int, hashes: memoryview) -> int:
    """Write the hash of each row of `width` bytes, without the zero bytes at its end.

    Return the number of the first row that is not UTF-8, or how many there are.
    """
    for number in range(len(hashes)):
        start = number * width
        end = start + width
        while end > start and data[end - 1] == 0:
            end -= 1
        hashed = hash_of_utf8(data, start, end, 0)
        if hashed < 0:
            return number
        hashes[number] = hashed
    return len(hashes)


@kernel
def hashes_of_texts(data: Bytes, bounds: memoryview, is_text: int, hashes: memoryview) -> int:
    """Write the hash of each text; text n is the bytes from bounds[n] to bounds[n + 1].

    Return the number of the first text that is not UTF-8, or how many there are.
    """
    for number in range(len(hashes)):
        hashed = hash_of_utf8(data, bounds[number], bounds[number + 1], is_text)
        if hashed < 0:
            return number
        hashes[number] = hashed
    return len(hashes)


@kernel
def hashes_of_joined(data: Bytes, is_text: int, hashes: memoryview) -> int:
    """Write the hash of each text; behind each but the last stands one zero byte, and in none.

    Return the number of the first text that is not UTF-8, or how many there are.
    """
    start = 0
    for number in range(len(hashes)):
        end = start
        while end < len(data) and data[end] != 0:
            end += 1
        hashed = hash_of_utf8(data, start, end, is_text)
        if hashed < 0:
            return number
        hashes[number] = hashed
        start = end + 1
    return len(hashes)


# --- what an entry says


@kernel
def slot_position(key_hash: int, hash_slot_num: int) -> int:
    """Return where the slot of a hash lies in the file. Law: RMQHASH-3."""
    return 40 + key_hash % hash_slot_num * 4


@kernel
def time_difference(store_timestamp: int, begin_timestamp: int) -> int:
    """Return the seconds that an entry keeps: 0..2147483647. Law: RMQIDX-21."""
    if begin_timestamp <= 0:
        return 0
    if store_timestamp >= begin_timestamp:
        seconds = (store_timestamp - begin_timestamp) // 1000
    elif store_timestamp >= begin_timestamp - 9223372036854775807 - 1:
        return 0
    else:
        # So far below that 64 bits make it positive; no step of this sum leaves them.
        above_least = store_timestamp + 9223372036854775807 + 1
        seconds = (above_least + (9223372036854775807 - begin_timestamp) + 1) // 1000
    if seconds > 2147483647:
        return 2147483647
    return seconds


@kernel
def read_time(begin_timestamp: int, time_diff: int) -> int:
    """Return the time in ms that an entry is read as, wrapped at 64 bits. Law: RMQIDX-33."""
    return add_int64(begin_timestamp, time_diff * 1000)


@kernel
def previous_index(slot_value: int, index_count: int) -> int:
    """Return what a new entry stores as its previous index: no other index than of an entry.

    Upstream takes the index of the new entry itself too (RMQIDX-20, RMQIDX-29).
    """
    if 0 < slot_value < index_count:
        return slot_value
    return 0


# --- putting


@kernel
def write_int32(data: memoryview, position: int, value: int) -> None:
    """Write a big-endian int32."""
    data[position] = (value >> 24) & 255
    data[position + 1] = (value >> 16) & 255
    data[position + 2] = (value >> 8) & 255
    data[position + 3] = value & 255


@kernel
def write_int64(data: memoryview, position: int, value: int) -> None:
    """Write a big-endian int64."""
    data[position] = (value >> 56) & 255
    data[position + 1] = (value >> 48) & 255
    data[position + 2] = (value >> 40) & 255
    data[position + 3] = (value >> 32) & 255
    data[position + 4] = (value >> 24) & 255
    data[position + 5] = (value >> 16) & 255
    data[position + 6] = (value >> 8) & 255
    data[position + 7] = value & 255


@kernel
def put_entries(
    data: memoryview,
    hash_slot_num: int,
    index_num: int,
    hashes: memoryview,
    phy_offsets: memoryview,
    store_timestamps: memoryview,
    header: memoryview,
    together: int,
) -> int:
    """Put an entry for each hash until the file is full; return how many were put.

    `header` holds the six fields in the order of the file and is kept up to date, as the file is
    after each entry. Its seventh number is scratch. The slots of `together` entries are looked at
    before the first of them is put, so that the processor waits for all of them at once.
    """
    entries_at = 40 + hash_slot_num * 4
    number = 0
    while number < len(hashes) and header[5] < index_num:
        block = min(number + together, len(hashes), number + index_num - header[5])
        looked_at = 0
        for ahead in range(number, block):
            looked_at += data[slot_position(hashes[ahead], hash_slot_num)]
        header[6] = looked_at
        while number < block:
            index_count = header[5]
            slot_at = slot_position(hashes[number], hash_slot_num)
            previous = previous_index(int32_at(data, slot_at), index_count)
            at = entries_at + index_count * 20
            write_int32(data, at, hashes[number])
            write_int64(data, at + 4, phy_offsets[number])
            write_int32(data, at + 12, time_difference(store_timestamps[number], header[0]))
            write_int32(data, at + 16, previous)
            write_int32(data, slot_at, index_count)
            if index_count <= 1:
                header[2] = phy_offsets[number]
                header[0] = store_timestamps[number]
                write_int64(data, 16, header[2])
                write_int64(data, 0, header[0])
            if previous == 0:
                header[4] = header[4] + 1 if header[4] < 2147483647 else -2147483648
                write_int32(data, 32, header[4])
            header[5] = index_count + 1
            write_int32(data, 36, header[5])
            header[3] = phy_offsets[number]
            write_int64(data, 24, header[3])
            header[1] = store_timestamps[number]
            write_int64(data, 8, header[1])
            number += 1
    return number


# --- walking


@kernel
def walk_chain(
    data: Bytes,
    hash_slot_num: int,
    begin_timestamp: int,
    key_hash: int,
    begin: int,
    end: int,
    walk: memoryview,
) -> int:
    """Walk a chain on, writing what it finds until there is no room; return how much, or CORRUPT.

    walk[0] is the entry to go on from, 0 at the end of the chain, and walk[1] what that entry must
    be below; both are kept up to date. What is found is written behind them. Both bounds of the
    time are inclusive. Laws: RMQIDX-31, RMQIDX-33, RMQIDX-35, RMQIDX-36.
    """
    entries_at = 40 + hash_slot_num * 4
    current = walk[0]
    above = walk[1]
    count = 0
    while current != 0 and count + 2 < len(walk):
        if not 0 < current < above:
            return CORRUPT
        at = entries_at + current * 20
        time_diff = int32_at(data, at + 12)
        if time_diff < 0:
            return CORRUPT
        time_read = read_time(begin_timestamp, time_diff)
        if int32_at(data, at) == key_hash and begin <= time_read <= end:
            walk[count + 2] = int64_at(data, at + 4)
            count += 1
        above = current
        current = int32_at(data, at + 16)
        if time_read < begin:
            current = 0
    # What the last entry leads to counts, though nothing more is wanted.
    if current != 0 and not 0 < current < above:
        return CORRUPT
    walk[0] = current
    walk[1] = above
    return count


@kernel
def newest_entries(
    data: Bytes, hash_slot_num: int, hashes: memoryview, first: int, last: int, cursors: memoryview
) -> None:
    """Write what the slots of the hashes first..last-1 lead to, from cursors[0] on."""
    for lane in range(last - first):
        cursors[lane] = int32_at(data, slot_position(hashes[first + lane], hash_slot_num))


@kernel
def visit_entries(
    data: Bytes,
    hash_slot_num: int,
    begin_timestamp: int,
    hashes: memoryview,
    first: int,
    max_num: int,
    begin: int,
    end: int,
    cursors: memoryview,
    lanes: memoryview,
    active: int,
    counts: memoryview,
    owners: memoryview,
    matches: memoryview,
    total: int,
) -> tuple[int, int]:
    """Read one entry of each of `active` chains; return how many go on, and how much was found.

    Instead of the first number, CORRUPT where a chain leads up or holds a negative difference.
    There is no branch in it, which would be guessed wrongly half of the time. Chain
    lanes[0..active-1] stands at cursors[lane] and belongs to hash first + lane, which has found
    counts[first + lane + 1] so far. What is found goes behind the `total` owners and matches.
    """
    entries_at = 40 + hash_slot_num * 4
    # A first look at both ends of each entry, in so few steps that many are waited for together.
    looked_at = 0
    for place in range(active):
        at = entries_at + cursors[lanes[place]] * 20
        looked_at += data[at]
        looked_at += data[at + 19]
    if active > 0:
        matches[total] = looked_at
    going_on = 0
    bad = 0
    for place in range(active):
        lane = lanes[place]
        current = cursors[lane]
        at = entries_at + current * 20
        time_diff = int32_at(data, at + 12)
        previous = int32_at(data, at + 16)
        time_read = read_time(begin_timestamp, max(time_diff, 0))
        is_late = 1 if time_read >= begin else 0
        matched = 1 if int32_at(data, at) == hashes[first + lane] else 0
        matched *= is_late * (1 if time_read <= end else 0)
        owners[total] = lane
        matches[total] = int64_at(data, at + 4)
        total += matched
        matched += counts[first + lane + 1]
        counts[first + lane + 1] = matched
        leads_on = is_late * (1 if previous != 0 else 0)
        bad += 1 if time_diff < 0 else 0
        # What an entry leads to counts, though nothing more is wanted.
        bad += leads_on * (1 if previous < 0 or previous >= current else 0)
        leads_on *= 1 if matched < max_num else 0
        cursors[lane] = previous
        lanes[going_on] = lane
        going_on += leads_on
    if bad > 0:
        return CORRUPT, total
    return going_on, total


@kernel
def follow_chains(
    data: Bytes,
    hash_slot_num: int,
    limit: int,
    begin_timestamp: int,
    hashes: memoryview,
    first: int,
    last: int,
    max_num: int,
    begin: int,
    end: int,
    cursors: memoryview,
    lanes: memoryview,
    counts: memoryview,
    owners: memoryview,
    matches: memoryview,
) -> int:
    """Follow the chains of the hashes first..last-1 side by side; return how much was found.

    It is CORRUPT where a slot does not lead to an entry below `limit` or a chain is damaged, and
    NO_ROOM where `matches` may be too short. Hash n finds counts[n + 1].
    """
    newest_entries(data, hash_slot_num, hashes, first, last, cursors)
    active = 0
    bad = 0
    for lane in range(last - first):
        counts[first + lane + 1] = 0
        lanes[active] = lane
        bad += 0 if 0 <= cursors[lane] < limit else 1
        active += 1 if cursors[lane] != 0 and max_num > 0 else 0
    if bad > 0:
        return CORRUPT
    total = 0
    while active > 0:
        if total + active > len(matches):
            return NO_ROOM
        active, total = visit_entries(
            data,
            hash_slot_num,
            begin_timestamp,
            hashes,
            first,
            max_num,
            begin,
            end,
            cursors,
            lanes,
            active,
            counts,
            owners,
            matches,
            total,
        )
    return CORRUPT if active == CORRUPT else total


@kernel
def walk_chains(
    data: Bytes,
    hash_slot_num: int,
    limit: int,
    begin_timestamp: int,
    hashes: memoryview,
    first: int,
    last: int,
    max_num: int,
    begin: int,
    end: int,
    cursors: memoryview,
    lanes: memoryview,
    owners: memoryview,
    matches: memoryview,
    starts: memoryview,
    found: memoryview,
) -> int:
    """Walk the chains of the hashes first..last-1 side by side; return 0, CORRUPT or NO_ROOM.

    A slot must lead to an entry below `limit`. What hash n finds, at most `max_num`, is written to
    found[starts[n]:starts[n + 1]]; starts[first] is given. `cursors` and `lanes` have a number for
    each hash; `owners` and `matches` take what is found until it is put in order. After CORRUPT or
    NO_ROOM nothing of it counts.
    """
    total = follow_chains(
        data,
        hash_slot_num,
        limit,
        begin_timestamp,
        hashes,
        first,
        last,
        max_num,
        begin,
        end,
        cursors,
        lanes,
        starts,
        owners,
        matches,
    )
    if total < 0:
        return total
    if starts[first] + total > len(found):
        return NO_ROOM
    for lane in range(last - first):
        cursors[lane] = starts[first + lane]
        starts[first + lane + 1] += starts[first + lane]
    for place in range(total):
        lane = owners[place]
        found[cursors[lane]] = matches[place]
        cursors[lane] += 1
    return 0
