# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.rocketmq_records`: walks end, and stay in their buffers."""

from segproof_harness.claims.claim import Loop, claim, define
from segproof_harness.claims.words import FAR

HASH = "0 <= hashed <= 4294967295"

claim(
    "rocketmq_records:is_name",
    f"0 <= start <= {FAR}\n0 <= end <= len(buffer)\n0 <= first <= last <= len(names)",
    """
        implies(result, end - start == last - first and each(0, last - first, lambda n:
            buffer[start + n] == names[first + n]))
        implies(not result and end - start == last - first, some(0, last - first, lambda n:
            buffer[start + n] != names[first + n]))
    """,
    loops=(Loop("each(0, next_number, lambda n: buffer[start + n] == names[first + n])"),),
)
claim(
    "rocketmq_records:find_properties",
    f"""
        0 <= start <= {FAR}
        0 <= end <= len(buffer)
        len(names) == 16
        0 <= row
        row + 16 <= len(rows)
    """,
    """
        0 <= result <= max(end - start, 0) + 1
        same_but(rows, old(rows), row + 10, row + 16)
    """,
    loops=(
        Loop(
            """
            start <= part <= max(start, end + 1)
            0 <= count <= part - start
            same_but(rows, old(rows), row + 10, row + 16)
            """,
            "end - part",
        ),
        Loop("part <= stop <= end\nseparator == -1 or part <= separator < stop", "end - stop"),
    ),
    changes=("rows",),
    laws="RMQLOG-4",
)
claim(
    "rocketmq_records:read_message",
    f"""
        0 <= position <= {FAR}
        position + 8 <= end
        end <= len(buffer)
        len(names) == 16
        0 <= row
        row + 16 <= len(rows)
    """,
    "result == -1 or (91 <= result and position + result <= end)",
    loops=(Loop(),),
    changes=("rows",),
    laws="RMQLOG-1 RMQLOG-3",
)
claim(
    "rocketmq_records:walk_messages",
    f"""
        0 <= position <= {FAR}
        -{FAR} <= end <= {FAR}
        end <= len(buffer)
        len(names) == 16
        len(rows) <= {FAR}
    """,
    """
        0 <= result[0]
        16 * result[0] <= len(rows)
        old(position) <= result[1] <= max(old(position), end)
        WALK_OTHER <= result[2] <= WALK_FULL
    """,
    loops=(
        Loop(
            """
            old(position) <= position <= max(old(position), end)
            0 <= count
            16 * count <= len(rows)
            """,
            "len(rows) - 16 * count",
        ),
    ),
    changes=("rows",),
)
claim(
    "rocketmq_records:extend_hash",
    f"0 <= start <= {FAR}\nend <= len(buffer)\n" + HASH,
    "-1 <= result <= 4294967295",
    loops=(Loop("start <= position <= max(start, end)\n" + HASH, "end - position"),),
    laws="RMQHASH-1",
)
claim(
    "rocketmq_records:key_hash",
    f"0 <= start <= {FAR}\nend <= len(buffer)\ntopic_hash <= 4294967295",
    "-1 <= result <= 2147483647",
    laws="RMQHASH-2",
)
define(
    "room_of(rows, n)",
    "0 if n <= 0 else room_of(rows, n - 1) + 2 + max((rows[16 * n - 5] + 1) // 2, 0)",
)
define("is_part(buffer, start, length)", "0 <= start and start + length <= len(buffer)")
claim(
    "rocketmq_records:hash_keys",
    f"""
        len(buffer) <= {FAR}
        len(messages) == len(hashes)
        each(0, len(rows) // 16 + 1, lambda n: 0 <= room_of(rows, n) <= len(hashes))
        each(0, len(rows) // 16, lambda m: is_part(buffer, rows[16 * m + 8], rows[16 * m + 9])
            and rows[16 * m + 9] >= 0)
        each(0, len(rows) // 16, lambda m: is_part(buffer, rows[16 * m + 10], rows[16 * m + 11])
            or rows[16 * m + 11] <= 0)
        each(0, len(rows) // 16, lambda m: is_part(buffer, rows[16 * m + 12], rows[16 * m + 13])
            or rows[16 * m + 13] == -1)
        each(0, len(rows) // 16, lambda m: is_part(buffer, rows[16 * m + 14], rows[16 * m + 15])
            or rows[16 * m + 15] <= 0)
        each(0, len(rows) // 16, lambda m: -1 <= rows[16 * m + 10] and -1 <= rows[16 * m + 11]
            and -1 <= rows[16 * m + 13] and -1 <= rows[16 * m + 15])
    """,
    "0 <= result <= len(hashes)",
    loops=(
        Loop(
            "0 <= count <= room_of(rows, next_message)",
            unfolds="room_of(rows, next_message)\nroom_of(rows, next_message + 1)",
        ),
        Loop(
            """
            rows[row + 10] <= start <= max(rows[row + 10], stop + 1)
            0 <= count <= room_of(rows, message) + 1 + (start - rows[row + 10]) // 2
            """,
            "stop + 1 - start",
        ),
        Loop("start <= end <= stop", "stop - end"),
    ),
    changes=("hashes", "messages"),
    laws="RMQSVC-13 RMQSVC-14 RMQSVC-15",
)
