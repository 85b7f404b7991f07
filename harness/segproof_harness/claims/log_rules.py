# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.log_rules`."""

from segproof_harness.claims.claim import Loop, claim

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
