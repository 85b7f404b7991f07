# SPDX-License-Identifier: Apache-2.0
"""Slot searches on index files: fixed-size entries with big-endian keys.

Mirrors: segproof_model/kafka/format/abstract_index.py (search).
Upstream: Kafka, AbstractIndex.indexSlotRangeFor (since 2.1.0).
Layout: slot s is bytes entry_size * s on; its key is the int32 or int64 at key_position in it.
Laws: ABSIDX-22 to ABSIDX-26, OFFIDX-16 as the profile `segproof` has it.

`data` is bytes or a memoryview of format B; every other argument is an int or, where it says so, a
memoryview of format q or i. A search reads slots below `entries` only and ends on any bytes.
"""

from segproof.kernels.dispatch import kernel

Bytes = bytes | bytearray | memoryview


@kernel
def int32_at(data: Bytes, position: int) -> int:
    """Return the big-endian int32 at `position`."""
    value = (
        data[position] * 16777216
        + data[position + 1] * 65536
        + data[position + 2] * 256
        + data[position + 3]
    )
    if value >= 2147483648:
        return value - 4294967296
    return value


@kernel
def int64_at(data: Bytes, position: int) -> int:
    """Return the big-endian int64 at `position`."""
    low = (
        data[position + 4] * 16777216
        + data[position + 5] * 65536
        + data[position + 6] * 256
        + data[position + 7]
    )
    return int32_at(data, position) * 4294967296 + low


@kernel
def key_at(data: Bytes, entry_size: int, key_position: int, key_size: int, slot: int) -> int:
    """Return the key of a slot: an int64 where `key_size` is 8, else an int32."""
    position = entry_size * slot + key_position
    if key_size == 8:
        return int64_at(data, position)
    return int32_at(data, position)


@kernel
def _halve(
    data: Bytes, entry_size: int, key_position: int, key_size: int, target: int, low: int, high: int
) -> int:
    """Return the slot in which halving [low, high] ends, or -2 - slot if a probe met the target."""
    while low < high:
        middle = (low + high + 1) // 2
        key = key_at(data, entry_size, key_position, key_size, middle)
        if key > target:
            high = middle - 1
        elif key < target:
            low = middle
        else:
            return -2 - middle
    return low


@kernel
def lower_slot(
    data: Bytes,
    entry_size: int,
    key_position: int,
    key_size: int,
    entries: int,
    target: int,
    warm_entries: int,
) -> int:
    """Return the greatest slot with key <= target, or -1.

    Where keys repeat or fall, the slot that the probes of the warm search meet (ABSIDX-26).
    """
    if entries == 0:
        return -1
    first = entries - 1 - warm_entries
    if first < 0:
        first = 0
    if key_at(data, entry_size, key_position, key_size, first) < target:
        found = _halve(data, entry_size, key_position, key_size, target, first, entries - 1)
    elif key_at(data, entry_size, key_position, key_size, 0) > target:
        return -1
    else:
        found = _halve(data, entry_size, key_position, key_size, target, 0, first)
    if found < 0:
        return -2 - found
    return found


@kernel
def upper_slot(
    data: Bytes,
    entry_size: int,
    key_position: int,
    key_size: int,
    entries: int,
    target: int,
    warm_entries: int,
) -> int:
    """Return the smallest slot with key >= target, or -1.

    Where keys repeat or fall, the slot that the probes of the warm search meet (ABSIDX-26).
    """
    if entries == 0:
        return -1
    first = entries - 1 - warm_entries
    if first < 0:
        first = 0
    if key_at(data, entry_size, key_position, key_size, first) < target:
        found = _halve(data, entry_size, key_position, key_size, target, first, entries - 1)
    elif key_at(data, entry_size, key_position, key_size, 0) >= target:
        return 0
    else:
        found = _halve(data, entry_size, key_position, key_size, target, 0, first)
    if found < 0:
        return -2 - found
    if found == entries - 1:
        return -1
    return found + 1


@kernel
def lower_slots_of_any(
    data: Bytes,
    entry_size: int,
    key_position: int,
    key_size: int,
    entries: int,
    targets: memoryview,
    slots: memoryview,
    warm_entries: int,
) -> None:
    """Write `lower_slot` of each target (format q) into `slots` (format q)."""
    for number in range(len(targets)):
        slots[number] = lower_slot(
            data, entry_size, key_position, key_size, entries, targets[number], warm_entries
        )


@kernel
def entries_at(
    data: Bytes,
    entry_size: int,
    key_position: int,
    key_size: int,
    value_position: int,
    slots: memoryview,
    keys: memoryview,
    values: memoryview,
    missing_key: int,
    missing_value: int,
) -> None:
    """Write key and value of each slot (format q); of slot -1 the two missing ones."""
    for number in range(len(slots)):
        slot = slots[number]
        if slot < 0:
            keys[number] = missing_key
            values[number] = missing_value
        else:
            keys[number] = key_at(data, entry_size, key_position, key_size, slot)
            values[number] = int32_at(data, entry_size * slot + value_position)


@kernel
def lower_slots_of_random(
    keys: memoryview, entries: int, targets: memoryview, slots: memoryview, lanes: int
) -> None:
    """Write the lower slot of each target into `slots`, `lanes` searches side by side.

    `keys` (format i or q) are native and must strictly increase. The searches of one group take
    the same steps, so the processor waits for their cache misses together.
    """
    count = len(targets)
    start = 0
    while start < count:
        end = start + lanes
        if end > count:
            end = count
        for number in range(start, end):
            slots[number] = 0
        length = entries
        while length > 1:
            half = length // 2
            for number in range(start, end):
                base = slots[number]
                if keys[base + half - 1] <= targets[number]:
                    base = base + half
                slots[number] = base
            length = length - half
        for number in range(start, end):
            base = slots[number]
            if entries == 0 or keys[base] > targets[number]:
                slots[number] = base - 1
        start = end


@kernel
def _lower_native_slot(keys: memoryview, entries: int, target: int) -> int:
    """Return the greatest slot with key <= target, or -1, of native keys that strictly increase."""
    low = -1
    high = entries
    while high - low > 1:
        middle = (low + high) // 2
        if keys[middle] <= target:
            low = middle
        else:
            high = middle
    return low


@kernel
def _merge(
    keys: memoryview,
    entries: int,
    targets: memoryview,
    slots: memoryview,
    number: int,
    end: int,
    slot: int,
) -> None:
    """Write the lower slots of the targets number..end-1; that of the first is not below `slot`."""
    while number < end:
        slots[number] = slot
        if slot + 1 < entries and keys[slot + 1] <= targets[number]:
            slot = slot + 1
        else:
            number = number + 1


@kernel
def lower_slots_of_rising(
    keys: memoryview, entries: int, targets: memoryview, slots: memoryview
) -> None:
    """Write the lower slot of each target into `slots`, for targets that never fall.

    `keys` (format i or q) are native and must strictly increase. Three thirds of the targets are
    merged with the keys side by side, as many as the processor has registers for. A step takes the
    next key or the next target without a branch: it writes the slot so far, which the last step of
    that target makes the right one.
    """
    third = len(targets) // 3
    if third == 0:
        _merge(keys, entries, targets, slots, 0, len(targets), -1)
        return
    a, b, c = 0, third, 2 * third
    end_a, end_b, end_c = b, c, len(targets)
    at_a = _lower_native_slot(keys, entries, targets[a])
    at_b = _lower_native_slot(keys, entries, targets[b])
    at_c = _lower_native_slot(keys, entries, targets[c])
    last = entries - 1
    while a < end_a and at_a < last and b < end_b and at_b < last and c < end_c and at_c < last:
        slots[a] = at_a
        slots[b] = at_b
        slots[c] = at_c
        key_a = 1 if keys[at_a + 1] <= targets[a] else 0
        key_b = 1 if keys[at_b + 1] <= targets[b] else 0
        key_c = 1 if keys[at_c + 1] <= targets[c] else 0
        at_a += key_a
        at_b += key_b
        at_c += key_c
        a += 1 - key_a
        b += 1 - key_b
        c += 1 - key_c
    _merge(keys, entries, targets, slots, a, end_a, at_a)
    _merge(keys, entries, targets, slots, b, end_b, at_b)
    _merge(keys, entries, targets, slots, c, end_c, at_c)


@kernel
def native_entries_at(
    keys: memoryview,
    values: memoryview,
    missing_slot: int,
    slots: memoryview,
    found_keys: memoryview,
    found_values: memoryview,
    key_base: int,
    value_base: int,
) -> None:
    """Write base + key and base + value of each slot (format q); of -1 those at `missing_slot`.

    `keys` and `values` (format i or q) are native; the sums must fit into 64 bits.
    """
    for number in range(len(slots)):
        slot = slots[number]
        if slot < 0:
            slot = missing_slot
        found_keys[number] = keys[slot] + key_base
        found_values[number] = values[slot] + value_base
