# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.segment_search`: what is found, and which batches lie before it.

Of each batch before the one that is found it is claimed why the search passes it. Of the records of
a batch only what is found is judged. It is not claimed that the first one is found, nor that
SEARCH_NONE means there is none. The searches for many targets claim neither of batches nor of
records which one is the first: they call `find_batch` and `find_time`.
"""

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
# Where the batch at p ends, and where the batch number n from `start` on begins.
define("batch_end(d, p)", "p + i32(d, p + 8) + 12")
define("batch_at(d, start, n)", "start if n <= 0 else batch_end(d, batch_at(d, start, n - 1))")
# No whole batch begins at p.
define("no_batch(d, p, end)", "p >= end - 17 or batch_end(d, p) > end")
# None of the first n batches reaches the target; but for a batch whose last offset is not below the
# first one of the next batch.
define(
    "fall_short(d, start, n, target)",
    "each(0, n, lambda m: decoded_int64(d, batch_at(d, start, m)) < target"
    " and (last_of_batch(d, batch_at(d, start, m)) < target"
    " or decoded_int64(d, batch_at(d, start, m + 1)) <= last_of_batch(d, batch_at(d, start, m))))",
)
# A batch has 26 bytes at least.
BATCHES = "max(end - start, 0) // 26 + 1"
# All batches before the one that is found are passed for a reason; if none is found, all are.
PASSED = f"""
        implies(result[0] == SEARCH_FOUND, some(0, {BATCHES}, lambda n:
            batch_at(buffer, start, n) == {{0}} and {{1}}(buffer, start, n, target)))
        implies(result[0] == SEARCH_NONE, some(0, {BATCHES}, lambda n:
            no_batch(buffer, batch_at(buffer, start, n), end)
            and {{1}}(buffer, start, n, target)))
""".format
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
    """
    + PASSED("result[1]", "fall_short"),
    loops=(
        Loop(
            """
            0 <= passed
            start + 26 * passed <= position == batch_at(buffer, start, passed)
            each(0, passed, lambda n: decoded_int64(buffer, batch_at(buffer, start, n)) < target)
            iff(passed == 0, previous == -1)
            passed == 0 or previous == batch_at(buffer, start, passed - 1)
            start <= position <= max(start, end)
            previous == -1 or (start <= previous and 26 <= previous_size
                and previous + previous_size == position <= end)
            previous == -1 or (previous_size == i32(buffer, previous + 8) + 12
                and previous_last == last_of_batch(buffer, previous))
            """,
            "end - position",
            unfolds="batch_at(buffer, start, passed)\nbatch_at(buffer, start, passed + 1)",
            ghosts={"passed": ("0", "passed + 1")},
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
# The first n batches are of magic 2. Either a header promises no timestamp that is late enough, or
# the batch can be looked into: it is not compressed, and its count of records is not negative.
define(
    "passed_by(d, start, n, target)",
    "each(0, n, lambda m: d[batch_at(d, start, m) + 16] == 2"
    " and (decoded_int64(d, batch_at(d, start, m) + 35) < target"
    " or (d[batch_at(d, start, m) + 22] % 8 == 0 and i32(d, batch_at(d, start, m) + 57) >= 0)))",
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
        implies(result[0] == SEARCH_FOUND, decoded_int64(buffer, result[3] + 35) >= target)
        implies(result[0] == SEARCH_NONE, result[1] == 0 and result[2] == 0 and result[3] == 0)
        implies(result[0] == SEARCH_ODD, result[1] == 0 and result[2] == 0)
    """
    + PASSED("result[3]", "passed_by"),
    loops=(
        Loop(
            """
            0 <= passed
            start + 26 * passed <= position == batch_at(buffer, start, passed)
            position <= max(start, end)
            passed_by(buffer, start, passed, target)
            """,
            "end - position",
            unfolds="batch_at(buffer, start, passed)\nbatch_at(buffer, start, passed + 1)",
            ghosts={"passed": ("0", "passed + 1")},
        ),
    ),
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
