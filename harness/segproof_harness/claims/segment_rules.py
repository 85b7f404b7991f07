# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.segment_rules`."""

from segproof_harness.claims.claim import Loop, claim

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
    pairs(0, {0}, lambda m, n: rows[m] < rows[n])
    each(0, {0}, lambda n: 0 <= rows[n] < {1})
    {0} == 0 or old(bytes_since) + sum_of(sizes, rows[0]) > interval
    pairs(0, {0}, lambda m, n: m + 1 < n or sum_of(sizes, rows[n]) - sum_of(sizes, rows[m])
        > interval)
    {2} == sum_of(sizes, {1}) + (old(bytes_since) if {0} == 0 else -sum_of(sizes, rows[{0} - 1]))
    same_but(rows, old(rows), 0, {0})
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
    "0 <= result[0] <= count\n0 <= result[1]\n" + CHOSEN("result[0]", "count", "result[1]"),
    loops=(
        Loop(
            "0 <= entries <= next_number\n0 <= bytes_since <= 2147483647 * (next_number + 1)\n"
            + CHOSEN("entries", "next_number", "bytes_since"),
            unfolds="sum_of(sizes, next_number)\nsum_of(sizes, next_number + 1)",
        ),
    ),
    changes=("rows",),
    laws="SEG-4 SEG-6 SEG-22 SEG-25",
)
