# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.slot_search`.

On rising keys a search gives what its definition says. On any bytes it gives what its probes saw:
how many there are, and in which order, is not claimed.
"""

from segproof_harness.claims.claim import Loop, claim, define

LAYOUT = """
    0 < entry_size <= 2147483647
    0 <= key_position <= 2147483647
    key_position + key_size <= entry_size
    key_size == 4 or key_size == 8
"""
SEARCHED = (
    LAYOUT
    + """
    0 <= entries
    entry_size * entries <= len(data)
    0 <= warm_entries
"""
)
SLOTS = "data, entry_size, key_position, key_size"
define(
    "rising_slots(data, entry_size, key_position, key_size, entries)",
    f"pairs(0, entries, lambda i, j: key({SLOTS}, i) < key({SLOTS}, j))",
)
RISING = f"rising_slots({SLOTS}, entries)"

claim(
    "slot_search:int32_at",
    "0 <= position\nposition + 4 <= len(data)",
    "is_i32(result)\nresult == i32(data, position)",
)
claim(
    "slot_search:int64_at",
    "0 <= position\nposition + 8 <= len(data)",
    "result == i64(data, position)",
)
claim(
    "slot_search:key_at",
    "0 <= slot\n" + LAYOUT + "entry_size * slot + key_position + key_size <= len(data)",
    "implies(key_size == 4, is_i32(result))",
    proves="""
        implies(key_size == 4, result == i32(data, entry_size * slot + key_position))
        implies(key_size == 8, result == i64(data, entry_size * slot + key_position))
    """,
    word="key",
)
claim(
    "slot_search:_halve",
    LAYOUT + "0 <= low <= high\nentry_size * (high + 1) <= len(data)",
    f"""
        implies(result >= 0, low <= result <= high)
        implies(result >= 0, result == low or key({SLOTS}, result) < target)
        implies(result >= 0, result == high or key({SLOTS}, result + 1) > target)
        implies(result < 0, low <= -2 - result <= high)
        implies(result < 0, key({SLOTS}, -2 - result) == target)
    """,
    loops=(
        Loop(
            f"""
            old(low) <= low <= high <= old(high)
            low == old(low) or key({SLOTS}, low) < target
            high == old(high) or key({SLOTS}, high + 1) > target
            """,
            "high - low",
        ),
    ),
)
claim(
    "slot_search:lower_slot",
    SEARCHED,
    f"""
        -1 <= result < entries
        implies(result == -1, entries == 0 or key({SLOTS}, 0) > target)
        implies(result >= 0, key({SLOTS}, result) <= target)
        implies(0 <= result < entries - 1, key({SLOTS}, result + 1) > target or key({SLOTS},
            result) == target)
        implies({RISING}, each(0, entries, lambda s: iff(s <= result, key({SLOTS}, s) <= target)))
    """,
    laws="ABSIDX-22 ABSIDX-23",
)
claim(
    "slot_search:upper_slot",
    SEARCHED,
    f"""
        -1 <= result < entries
        implies(result == -1, entries == 0 or key({SLOTS}, entries - 1) < target)
        implies(result >= 0, key({SLOTS}, result) >= target)
        implies(result > 0, key({SLOTS}, result - 1) < target or key({SLOTS}, result) == target)
        implies({RISING} and result >= 0, each(0, entries, lambda s: iff(s < result, key({SLOTS},
            s) < target)))
        implies({RISING} and result == -1, each(0, entries, lambda s: key({SLOTS}, s) < target))
    """,
    laws="ABSIDX-24 OFFIDX-16",
)
ANY_SLOTS = f"""
    each(0, {{0}}, lambda n: -1 <= slots[n] < entries)
    each(0, {{0}}, lambda n: slots[n] == -1 or key({SLOTS}, slots[n]) <= targets[n])
    each(0, {{0}}, lambda n: slots[n] >= 0 or entries == 0 or key({SLOTS}, 0) > targets[n])
"""
claim(
    "slot_search:lower_slots_of_any",
    SEARCHED + "len(slots) == len(targets)",
    ANY_SLOTS.format("len(targets)"),
    loops=(Loop(ANY_SLOTS.format("next_number")),),
    changes=("slots",),
)
FOUND_SLOTS = f"""
    each(0, {{0}}, lambda n: implies(slots[n] < 0, keys[n] == missing_key
        and values[n] == missing_value))
    each(0, {{0}}, lambda n: implies(slots[n] >= 0, keys[n] == key({SLOTS}, slots[n])))
    each(0, {{0}}, lambda n: implies(slots[n] >= 0, values[n] == i32(data, entry_size * slots[n]
        + value_position)))
"""
claim(
    "slot_search:entries_at",
    LAYOUT
    + """
        entry_size == 8 or entry_size == 12
        0 <= value_position
        value_position + 4 <= entry_size
        len(keys) == len(slots)
        len(values) == len(slots)
        each(0, len(slots), lambda n: slots[n] < 0
            or entry_size * slots[n] + entry_size <= len(data))
    """,
    FOUND_SLOTS.format("len(slots)"),
    loops=(Loop(FOUND_SLOTS.format("next_number")),),
    changes=("keys", "values"),
    cases={"entry_size": (8, 12)},
)
LOWER = "each({}, {}, lambda n: is_lower(keys, entries, targets[n], slots[n]))".format
define(
    "is_between(keys, entries, target, base, length)",
    "0 <= base and base + length <= entries and (base == 0 or keys[base - 1] <= target)"
    " and (base + length == entries or keys[base + length] > target)",
)
LANES = """
    each({}, {}, lambda n: is_between(keys, entries, targets[n], slots[n], {}))
""".format
claim(
    "slot_search:lower_slots_of_random",
    """
        0 <= entries <= len(keys)
        len(slots) == len(targets)
        1 <= lanes <= 1000
        rises(keys, entries)
    """,
    LOWER(0, "len(targets)"),
    loops=(
        Loop("0 <= start <= count\n" + LOWER(0, "start"), "count - start"),
        Loop("each(start, next_number, lambda n: slots[n] == 0)\n" + LOWER(0, "start")),
        Loop(
            "0 <= length <= entries\nlength >= 1 or entries == 0\n"
            + LANES("start", "end", "length")
            + LOWER(0, "start"),
            "length",
        ),
        Loop(
            LANES("start", "next_number", "length - half")
            + LANES("next_number", "end", "length")
            + LOWER(0, "start")
        ),
        Loop(
            LOWER("start", "next_number")
            + "\n"
            + LANES("next_number", "end", "length")
            + LOWER(0, "start")
        ),
    ),
    changes=("slots",),
    laws="ABSIDX-22",
)
claim(
    "slot_search:_lower_native_slot",
    "0 <= entries <= len(keys)",
    "is_lower(keys, entries, target, result)",
    proves="implies(rises(keys, entries),"
    " each(0, entries, lambda s: iff(s <= result, keys[s] <= target)))",
    loops=(
        Loop(
            """
            -1 <= low < high <= entries
            low == -1 or keys[low] <= target
            high == entries or keys[high] > target
            """,
            "high - low",
        ),
    ),
)
claim(
    "slot_search:_merge",
    """
        0 <= entries <= len(keys)
        0 <= number
        end <= len(targets)
        end <= len(slots)
        -1 <= slot < max(entries, 0)
        slot == -1 or number >= end or keys[slot] <= targets[number]
        pairs(number, end, lambda i, j: targets[i] <= targets[j])
    """,
    LOWER("number", "end") + "\nsame_but(slots, old(slots), number, end)",
    loops=(
        Loop(
            """
            old(number) <= number
            old(slot) <= slot < max(entries, 0)
            slot == -1 or number >= end or keys[slot] <= targets[number]
            same_but(slots, old(slots), old(number), end)
            """
            + LOWER("old(number)", "number"),
            "(end - number) + (entries - slot)",
        ),
    ),
    changes=("slots",),
)


def merged(number: str, low: str) -> str:
    """Return where one of the three merges stands: its next target and the slot so far."""
    at = f"at_{number}"
    return f"""
        {low} <= {number} <= end_{number}
        {number} + 1 >= end_{number} or targets[{number}] <= targets[{number} + 1]
        -1 <= {at} < max(entries, 0)
        {at} == -1 or {number} >= end_{number} or keys[{at}] <= targets[{number}]
    """


MERGES = (("a", "0"), ("b", "third"), ("c", "2 * third"))
claim(
    "slot_search:lower_slots_of_rising",
    """
        0 <= entries <= len(keys)
        len(slots) == len(targets)
        rises(keys, entries)
        pairs(0, len(targets), lambda i, j: targets[i] <= targets[j])
    """,
    LOWER(0, "len(targets)"),
    loops=(
        Loop(
            "".join(merged(*one) for one in MERGES)
            + "\n".join(LOWER(low, number) for number, low in MERGES),
            "(end_a - a + end_b - b + end_c - c) + (last - at_a + last - at_b + last - at_c)",
        ),
    ),
    changes=("slots",),
    laws="ABSIDX-22",
)
claim(
    "slot_search:native_entries_at",
    """
        len(found_keys) == len(slots)
        len(found_values) == len(slots)
        len(values) == len(keys)
        0 <= missing_slot < len(keys) or each(0, len(slots), lambda n: slots[n] >= 0)
        each(0, len(slots), lambda n: slots[n] < len(keys))
        each(0, len(keys), lambda s: is_i64(keys[s] + key_base)
            and is_i64(values[s] + value_base))
    """,
    """
        each(0, len(slots), lambda n: implies(slots[n] >= 0,
            found_keys[n] == keys[slots[n]] + key_base
            and found_values[n] == values[slots[n]] + value_base))
        each(0, len(slots), lambda n: implies(slots[n] < 0,
            found_keys[n] == keys[missing_slot] + key_base
            and found_values[n] == values[missing_slot] + value_base))
    """,
    loops=(
        Loop(
            """
            each(0, next_number, lambda n: implies(slots[n] >= 0,
                found_keys[n] == keys[slots[n]] + key_base
                and found_values[n] == values[slots[n]] + value_base))
            each(0, next_number, lambda n: implies(slots[n] < 0,
                found_keys[n] == keys[missing_slot] + key_base
                and found_values[n] == values[missing_slot] + value_base))
            """
        ),
    ),
    changes=("found_keys", "found_values"),
)
