# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.legacy_records`."""

from segproof_harness.claims.claim import Loop, claim, expressions_of
from segproof_harness.claims.words import FAR, buffer_part

RECORD_PART = buffer_part("position")
BLOCK = buffer_part("start")

ENDS = """
    0 <= result[0] <= capacity
    start <= result[2] <= max(start, end)
    LEGACY_GOOD <= result[1] <= LEGACY_FULL
    implies(result[1] == LEGACY_GOOD, result[2] + 12 > end
        or result[2] + 12 + i32(buffer, result[2] + 8) > end)
    implies(result[1] == LEGACY_BAD_SIZE, i32(buffer, result[2] + 8) < 14)
    implies(result[1] == LEGACY_FULL, result[0] == capacity)
"""
WALKED = """
    {0} == 0 or positions[0] == start
    pairs(0, {0}, lambda m, n: m + 1 < n or positions[n] == positions[m] + 12 + i32(buffer,
        positions[m] + 8))
    each(0, {0}, lambda n: start <= positions[n] and positions[n] + 26 <= end)
    {1} == (start if {0} == 0 else positions[{0} - 1] + 12 + i32(buffer, positions[{0} - 1] + 8))
    same_but(positions, old(positions), 0, {0})
""".format
claim(
    "legacy_records:walk_legacy_positions",
    BLOCK + "0 <= capacity <= len(positions)",
    ENDS + WALKED("result[0]", "result[2]"),
    loops=(
        Loop(
            """
            start <= position <= max(start, end)
            0 <= count <= capacity
            """
            + WALKED("count", "position"),
            "end - position",
        ),
    ),
    changes=("positions",),
    laws="BATCH-11",
)
claim(
    "legacy_records:legacy_field",
    RECORD_PART,
    """
        iff(result[0] == FIELD_NO_ROOM, position + 4 > end)
        iff(result[0] == FIELD_TOO_LONG, position + 4 <= end and position + 4
            + i32(buffer, position) > end)
        implies(result[0] < 0, result[1] == 0 and -2 <= result[0])
        implies(result[0] >= 0, result[0] == position + 4 and result[1] == max(-1, i32(buffer,
            position)) and result[0] + max(result[1], 0) <= end)
    """,
)
NEWEST = """
    start <= newest and newest + 26 <= position == newest + 12 + i32(buffer, newest + 8)
    rows[8 * row - 8] == decoded_int64(buffer, newest)
    rows[8 * row - 7] == (-1 if buffer[newest + 16] == 0 else decoded_int64(buffer, newest + 18))
    rows[8 * row - 6] < 0 or rows[8 * row - 6] == newest + (22 if buffer[newest + 16] == 0 else 30)
    rows[8 * row - 6] < 0 or rows[8 * row - 5] == max(-1, i32(buffer, rows[8 * row - 6] - 4))
    rows[8 * row - 6] >= 0 or (rows[8 * row - 5] == 0 and rows[8 * row - 4] == FIELD_NO_ROOM)
    rows[8 * row - 4] < 0 or rows[8 * row - 4] == rows[8 * row - 6] + max(rows[8 * row - 5], 0) + 4
    rows[8 * row - 4] < 0 or rows[8 * row - 3] == max(-1, i32(buffer, rows[8 * row - 4] - 4))
    rows[8 * row - 4] >= 0 or rows[8 * row - 3] == 0
    rows[8 * row - 2] == buffer[newest + 17] and rows[8 * row - 1] == buffer[newest + 16]
"""
"""What the row of the newest message says; it holds of each row, when that is the newest."""
claim(
    "legacy_records:walk_legacy_messages",
    BLOCK + f"0 <= capacity <= {FAR // 8}\n8 * capacity <= len(rows)",
    ENDS + "same_but(rows, old(rows), 0, 8 * result[0])",
    loops=(
        Loop(
            """
            start <= position <= max(start, end)
            0 <= row <= capacity
            same_but(rows, old(rows), 0, 8 * row)
            """
            + "\n".join(f"implies(row > 0, {one})" for one in expressions_of(NEWEST)),
            "end - position",
            ghosts={"newest": ("start", "position - 12 - size")},
        ),
    ),
    changes=("rows",),
    laws="BATCH-11",
)
