# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.index_rules`, of `segment_rules` and of `log_rules`."""

from segproof_harness.claims.claim import Loop, claim
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
        implies(result == APPEND_OFFSET_TOO_FAR, not is_i64(offset)
            or not 0 <= wrapped(offset - base_offset) <= 2147483647)
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

claim(
    "segment_rules:fits_segment",
    "is_i64(base_offset)",
    "result == (is_i64(offset) and 0 <= wrapped(offset - base_offset) <= 2147483647)",
    laws="SEG-2 SEG-41",
)
claim(
    "segment_rules:time_waited",
    ensures="""
        implies(first_timestamp >= 0, result == message_timestamp - first_timestamp)
        implies(first_timestamp < 0, result == now - created)
    """,
    laws="SEG-36",
)
claim(
    "segment_rules:roll_is_due",
    ensures="""
        result == (size + messages_size > max_segment_bytes or (size > 0
            and waited + roll_jitter_ms > max_segment_ms))
    """,
    laws="SEG-37",
)
claim(
    "segment_rules:read_size",
    ensures="""
        implies(min_one_message, result == min(max(max_size, batch_size), max_position - start))
        implies(not min_one_message, result == min(max_size, max_position - start))
    """,
    laws="SEG-16",
)
CHOSEN = """
    each(0, {0}, lambda n: 0 <= rows[n] < {1})
    pairs(0, {0}, lambda m, n: rows[m] < rows[n])
""".format
claim(
    "segment_rules:indexed_batches",
    """
        0 <= count <= len(sizes)
        count <= 2147483647
        0 <= bytes_since <= 2147483647
        count <= len(rows)
        each(0, count, lambda n: 0 <= sizes[n] <= 2147483647)
    """,
    "0 <= result[0] <= count\n0 <= result[1]\n" + CHOSEN("result[0]", "count"),
    loops=(
        Loop(
            "0 <= entries <= next_number\n0 <= bytes_since <= 2147483647 * (next_number + 1)\n"
            + CHOSEN("entries", "next_number")
        ),
    ),
    changes=("rows",),
    laws="SEG-4 SEG-6 SEG-22 SEG-25",
)

claim(
    "log_rules:floor_place",
    ensures="""
        -1 <= result < len(bases)
        implies(rises(bases, len(bases)), each(0, len(bases), lambda s: iff(s <= result,
            bases[s] <= offset)))
    """,
    loops=(
        Loop(
            """
            0 <= low <= high <= len(bases)
            low == 0 or bases[low - 1] <= offset
            high == len(bases) or bases[high] > offset
            """,
            "high - low",
        ),
    ),
    laws="LOG-1",
)
claim(
    "log_rules:roll_base",
    ensures="""
        implies(first_offset != -1, result == max(first_offset, log_end_offset))
        implies(first_offset == -1, result == max(last_offset - 2147483647, log_end_offset))
    """,
    laws="LOG-11",
)
claim(
    "log_rules:max_position_of",
    ensures="""
        implies(segment_base < bound_base, result == segment_size)
        implies(segment_base == bound_base, result == max(bound_position, -1))
        implies(segment_base > bound_base, result == -1)
    """,
    laws="LOG-6",
)
claim(
    "log_rules:stable_bound",
    ensures="""
        implies(first_unstable_offset >= 0, result == min(first_unstable_offset, high_watermark))
        implies(first_unstable_offset < 0, result == high_watermark)
    """,
)
claim(
    "log_rules:offsets_may_go",
    ensures="result == (upper_bound <= high_watermark and not is_last_and_empty)",
    laws="LOG-17",
)
LEFT = "sum(sizes) - sum_of(sizes, {}) >= retention_bytes".format
claim(
    "log_rules:breached_by_size",
    ensures=f"""
        0 <= result <= len(sizes)
        implies(retention_bytes < 0, result == 0)
        implies(retention_bytes >= 0, each(1, result + 1, lambda n: {LEFT("n")}))
        implies(retention_bytes >= 0 and result < len(sizes), not {LEFT("result + 1")})
    """,
    loops=(
        Loop(
            f"""
            count == next_size
            excess == sum(sizes) - retention_bytes - sum_of(sizes, next_size)
            each(1, next_size + 1, lambda n: {LEFT("n")})
            """,
            unfolds="sum_of(sizes, next_size)\nsum_of(sizes, next_size + 1)",
        ),
    ),
    laws="LOG-18",
)
