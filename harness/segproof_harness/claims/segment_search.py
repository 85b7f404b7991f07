# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.segment_search`: what is found lies where a search may look."""

from segproof_harness.claims.claim import Loop, claim
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

claim(
    "segment_search:find_batch",
    f"0 <= start <= {FAR}" + READ,
    STATUS
    + """
        implies(result[0] == SEARCH_FOUND, start <= result[1] and 26 <= result[2]
            and result[1] + result[2] <= end)
        implies(result[0] != SEARCH_FOUND, result[1] == 0 and result[2] == 0)
    """,
    loops=(
        Loop(
            """
            start <= position <= max(start, end)
            previous == -1 or (start <= previous and 26 <= previous_size
                and previous + previous_size <= end)
            """,
            "end - position",
        ),
    ),
    laws="SEG-12",
)
DECIDED = """
    each(0, {0}, lambda n: (positions[n] == -1 and sizes[n] == -1) or (starts[n] <= positions[n]
        and 26 <= sizes[n] and positions[n] + sizes[n] <= end + origin))
""".format
claim(
    "segment_search:find_batches",
    MANY + "count <= len(positions)\ncount <= len(sizes)",
    "0 <= result[0] <= count" + DECIDED("result[0]"),
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
    """,
    loops=(Loop("start <= position <= max(start, end)", "end - position"),),
    laws="SCAN-18 SEG-39",
)
TIMES = """
    each(0, {0}, lambda n: (timestamps[n] == -1 and offsets[n] == -1)
        or (timestamps[n] >= targets[n] and offsets[n] >= starting_offset))
""".format
claim(
    "segment_search:find_times",
    MANY + "count <= len(timestamps)\ncount <= len(offsets)",
    "0 <= result[0] <= count" + TIMES("result[0]"),
    loops=(Loop(TIMES("next_number")),),
    changes=("timestamps", "offsets"),
    laws="SCAN-18 SEG-39",
)
