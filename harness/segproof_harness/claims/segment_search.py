# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.segment_search`: what is found lies where a search may look."""

from segproof_harness.claims.claim import Loop, claim, define
from segproof_harness.claims.words import FAR

READ = f"""
    -{FAR} <= end <= {FAR}
    -{FAR} <= filled <= {FAR}
    filled <= len(buffer)
"""
STATUS = "SEARCH_FOUND <= result[0] <= SEARCH_ODD\n"
MANY = (
    READ
    + f"""
    0 <= count <= len(starts)
    count <= len(targets)
    0 <= origin <= {FAR // 2}
    each(0, count, lambda n: origin <= starts[n] <= {FAR // 2})
"""
)

# The offset of the last record of the batch at p.
define(
    "last_of_batch(d, p)",
    "wrapped(decoded_int64(d, p) + i32(d, p + 23)) if d[p + 16] == 2 else decoded_int64(d, p)",
)
claim(
    "segment_search:find_batch",
    f"0 <= start <= {FAR}" + READ,
    STATUS
    + """
        implies(result[0] == SEARCH_FOUND, start <= result[1] and 26 <= result[2]
            and result[1] + result[2] <= end)
        implies(result[0] == SEARCH_FOUND, result[2] == i32(buffer, result[1] + 8) + 12
            and (decoded_int64(buffer, result[1]) >= target
            or last_of_batch(buffer, result[1]) >= target))
        implies(result[0] != SEARCH_FOUND, result[1] == 0 and result[2] == 0)
    """,
    loops=(
        Loop(
            """
            start <= position <= max(start, end)
            previous == -1 or (start <= previous and 26 <= previous_size
                and previous + previous_size == position <= end)
            previous == -1 or (previous_size == i32(buffer, previous + 8) + 12
                and previous_last == last_of_batch(buffer, previous))
            previous == -1 or decoded_int64(buffer, previous) < target
            """,
            "end - position",
        ),
    ),
    laws="SEG-12",
)
ANSWERED = """
    0 <= result[0] <= count
    result[1] == SEARCH_NONE if result[0] == count else SEARCH_MORE <= result[1] <= SEARCH_ODD
"""
DECIDED = """
    each(0, {0}, lambda n: (positions[n] == -1 and sizes[n] == -1) or (starts[n] <= positions[n]
        and 26 <= sizes[n] and positions[n] + sizes[n] <= end + origin))
    each(0, {0}, lambda n: positions[n] == -1
        or sizes[n] == i32(buffer, positions[n] - origin + 8) + 12)
    same_but(positions, old(positions), 0, {0})
    same_but(sizes, old(sizes), 0, {0})
""".format
claim(
    "segment_search:find_batches",
    MANY + "count <= len(positions)\ncount <= len(sizes)",
    ANSWERED + DECIDED("result[0]"),
    loops=(Loop(DECIDED("next_number")),),
    changes=("positions", "sizes"),
    laws="SEG-12",
)
claim(
    "segment_search:find_in_batch",
    f"0 <= position\nposition + 61 <= behind <= {FAR}\nbehind <= len(buffer)",
    STATUS
    + """
        result[0] != SEARCH_MORE
        implies(result[0] == SEARCH_FOUND, result[1] >= target and result[2] >= starting_offset)
        implies(result[0] == SEARCH_FOUND and buffer[position + 22] // 8 % 2 == 1,
            result[1] == decoded_int64(buffer, position + 35))
        implies(result[0] != SEARCH_FOUND, result[1] == 0 and result[2] == 0)
        implies(buffer[position + 22] % 8 != 0 or i32(buffer, position + 57) < 0,
            result[0] == SEARCH_ODD)
    """,
    loops=(Loop("position < at <= behind"),),
    laws="SCAN-18 SEG-39",
)
claim(
    "segment_search:find_time",
    f"0 <= start <= {FAR}" + READ,
    STATUS
    + """
        implies(result[0] == SEARCH_FOUND, result[1] >= target and result[2] >= starting_offset
            and start <= result[3] and result[3] + 61 <= end)
        implies(result[0] == SEARCH_MORE, start <= result[3] and filled < result[3] + result[1])
        implies(result[0] == SEARCH_MORE, result[2] == 0 and (result[1] == 61
            or result[1] == i32(buffer, result[3] + 8) + 12))
        implies(result[0] == SEARCH_MORE, result[3] + 17 < end
            and (result[3] + 17 > filled or 26 <= i32(buffer, result[3] + 8) + 12
            <= end - result[3]))
        implies(result[0] == SEARCH_FOUND, buffer[result[3] + 16] == 2
            and result[3] + i32(buffer, result[3] + 8) + 12 <= min(end, filled))
        implies(result[0] == SEARCH_NONE, result[1] == 0 and result[2] == 0 and result[3] == 0)
        implies(result[0] == SEARCH_ODD, result[1] == 0 and result[2] == 0)
    """,
    loops=(Loop("start <= position <= max(start, end)", "end - position"),),
    laws="SCAN-18 SEG-39",
)
TIMES = """
    each(0, {0}, lambda n: (timestamps[n] == -1 and offsets[n] == -1)
        or (timestamps[n] >= targets[n] and offsets[n] >= starting_offset))
    same_but(timestamps, old(timestamps), 0, {0})
    same_but(offsets, old(offsets), 0, {0})
""".format
claim(
    "segment_search:find_times",
    MANY + "count <= len(timestamps)\ncount <= len(offsets)",
    ANSWERED + TIMES("result[0]"),
    loops=(Loop(TIMES("next_number")),),
    changes=("timestamps", "offsets"),
    laws="SCAN-18 SEG-39",
)
