# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.index_rules`."""

from segproof_harness.claims.claim import claim
from segproof_harness.claims.slot_search import LAYOUT

KEY = "key(data, entry_size, key_position, 4, {})".format

claim(
    "index_rules:whole_entries",
    "entry_size == 8 or entry_size == 12",
    """
        result % entry_size == 0
        implies(size >= 0, 0 <= size - result < entry_size)
        implies(size < 0, 0 <= result - size < entry_size)
    """,
    cases={"entry_size": (8, 12)},
    laws="ABSIDX-7",
)
claim(
    "index_rules:is_full",
    ensures="result == (max_entries - entries <= reserved)",
    laws="OFFIDX-10 TIMEIDX-2",
)
claim(
    "index_rules:offset_distance",
    "is_i64(base_offset)",
    """
        implies(is_i64(offset), result == wrapped(offset - base_offset))
        implies(not is_i64(offset), result == -1)
    """,
    laws="ABSIDX-21",
)
claim(
    "index_rules:offset_append",
    "is_i64(base_offset)",
    """
        iff(result == APPEND_FULL, entries >= max_entries)
        iff(result == APPEND_OFFSET_TOO_SMALL, entries < max_entries and entries > 0
            and offset <= last_offset)
        iff(result == APPEND_STORE, entries < max_entries and (entries <= 0
            or offset > last_offset) and is_i64(offset)
            and 0 <= wrapped(offset - base_offset) <= 2147483647)
        (
            result == APPEND_FULL or result == APPEND_OFFSET_TOO_SMALL
            or result == APPEND_OFFSET_TOO_FAR or result == APPEND_STORE
        )
    """,
    laws="OFFIDX-2 OFFIDX-4 OFFIDX-5 OFFIDX-6",
)
claim(
    "index_rules:time_append",
    "is_i64(base_offset)\n0 <= entries\n0 <= length",
    """
        APPEND_NOTHING <= result <= APPEND_STORE
        iff(result == APPEND_FULL, not skip_full_check and entries >= length // 12 - 1)
        implies(result == APPEND_STORE, entries * 12 + 12 <= length)
        implies(result == APPEND_STORE, timestamp > last_timestamp and (entries == 0
            or offset >= last_offset))
        implies(result == APPEND_STORE, is_i64(offset)
            and 0 <= wrapped(offset - base_offset) <= 2147483647)
        implies(result == APPEND_NOTHING, timestamp <= last_timestamp and (entries == 0
            or (timestamp == last_timestamp and offset >= last_offset)))
        implies(result == APPEND_OFFSET_TOO_SMALL, entries > 0 and offset < last_offset)
        implies(result == APPEND_TIMESTAMP_TOO_SMALL, entries > 0 and timestamp < last_timestamp)
        implies(result == APPEND_NO_ROOM, entries * 12 + 12 > length)
        implies(result == APPEND_NO_ROOM, entries * 12 + 8 > length or (is_i64(offset)
            and 0 <= wrapped(offset - base_offset) <= 2147483647))
        implies(result == APPEND_OFFSET_TOO_FAR, entries * 12 + 8 <= length and (not is_i64(offset)
            or not 0 <= wrapped(offset - base_offset) <= 2147483647))
    """,
    laws="TIMEIDX-3 TIMEIDX-4 TIMEIDX-5 TIMEIDX-6 TIMEIDX-7 TIMEIDX-8",
)
claim(
    "index_rules:kept_entries",
    LAYOUT.replace("key_size == 4 or key_size == 8", "").replace("key_size", "4")
    + """
        0 <= entries
        entry_size * entries <= len(data)
        0 <= warm_entries
    """,
    f"""
        0 <= result <= entries
        implies(rising_slots(data, entry_size, key_position, 4, entries), each(0, entries,
            lambda s: iff(s < result, {KEY("s")} < relative)))
    """,
    laws="OFFIDX-17 TIMEIDX-11 TIMEIDX-12",
)
