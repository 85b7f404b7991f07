# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.legacy_records`."""

from segproof_harness.claims.claim import Loop, claim
from segproof_harness.claims.words import FAR, buffer_part

RECORD_PART = buffer_part("position")
BLOCK = buffer_part("start")

claim(
    "legacy_records:walk_legacy_positions",
    BLOCK + "0 <= capacity <= len(positions)",
    """
        0 <= result[0] <= capacity
        each(0, result[0], lambda n: start <= positions[n] and positions[n] + 26 <= end)
    """,
    loops=(
        Loop(
            """
            start <= position <= max(start, end)
            0 <= count <= capacity
            each(0, count, lambda n: start <= positions[n] and positions[n] + 26 <= end)
            """,
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
        result[0] == FIELD_TOO_LONG or result[0] == FIELD_NO_ROOM or result[0] == position + 4
        result[1] >= -1
        implies(result[0] > 0, result[0] + max(result[1], 0) <= end)
    """,
)
claim(
    "legacy_records:walk_legacy_messages",
    BLOCK + f"0 <= capacity <= {FAR // 8}\n8 * capacity <= len(rows)",
    """
        0 <= result[0] <= capacity
        LEGACY_GOOD <= result[1] <= LEGACY_FULL
        start <= result[2] <= max(start, end)
    """,
    loops=(Loop("start <= position <= max(start, end)\n0 <= row <= capacity", "end - position"),),
    changes=("rows",),
    laws="BATCH-11",
)
