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


def found(column: int, name_size: int) -> str:
    """Return that a value is as before, or lies behind room for its name, up to a 2 or the end."""
    at, size = f"rows[row + {column}]", f"rows[row + {column + 1}]"
    return f"""
        old(rows)[row + {column}] == {at} or start <= {at} - {name_size + 1}
        old(rows)[row + {column}] == {at} or (start < {at} - 1 and 1 <= {size}
            and {at} + {size} <= end and buffer[{at} - 1] == 1)
        old(rows)[row + {column}] == {at} or {at} + {size} == end or buffer[{at} + {size}] == 2
        old(rows)[row + {column}] == {at} or each({at}, {at} + {size}, lambda n: buffer[n] != 2)
        (old(rows)[row + {column}] != {at} or {size} == old(rows)[row + {column + 1}]
            or {at} + {size} <= end)
    """


PROPERTIES = "same_but(rows, old(rows), row + 10, row + 16)" + "".join(
    found(*one) for one in ((10, 4), (12, 8), (14, 4))
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
    """
    + PROPERTIES,
    loops=(
        Loop(
            """
            start <= part <= max(start, end + 1)
            0 <= count <= part - start
            """
            + PROPERTIES,
            "end - part",
        ),
        Loop(
            """
            part <= stop <= end
            each(part, stop, lambda n: buffer[n] != 2)
            separator == -1 or (part <= separator < stop and buffer[separator] == 1)
            each(part, stop if separator == -1 else separator, lambda n: buffer[n] != 1)
            """,
            "end - stop",
        ),
    ),
    changes=("rows",),
    laws="RMQLOG-4",
)
# A host has 20 bytes with the address of IPv6, else 8.
define("host_size(flag)", "20 if flag % 2 == 1 else 8")
define("i8(d, p)", "(d[p] + 128) % 256 - 128")
STORED_AT = "position + 48 + host_size(rows[row + 4] // 16)"
TOPIC_SIZE = "(1 if buffer[position + 7] == 167 else 2)"
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
    f"""
        result == -1 or (91 <= result == i32(buffer, position) and position + result <= end)
        same_but(rows, old(rows), row, row + 16)
        result == -1 or (rows[row] == position and rows[row + 1] == result)
        result == -1 or rows[row + 2] == decoded_int64(buffer, position + 28)
        result == -1 or rows[row + 4] == i32(buffer, position + 36)
        result == -1 or rows[row + 7] == i32(buffer, position + 8)
        result == -1 or rows[row + 3] == decoded_int64(buffer, {STORED_AT})
        result == -1 or rows[row + 5] == {STORED_AT} + 24 + host_size(rows[row + 4] // 32)
        result == -1 or rows[row + 6] == max(i32(buffer, rows[row + 5] - 4), 0)
        result == -1 or rows[row + 8] == rows[row + 5] + rows[row + 6] + {TOPIC_SIZE}
        result == -1 or rows[row + 9] == (i8(buffer, rows[row + 8] - 1) if {TOPIC_SIZE} == 1
            else i16(buffer, rows[row + 8] - 2))
        result == -1 or 0 <= rows[row + 9]
        result == -1 or rows[row + 8] + rows[row + 9] + 2 <= position + result
    """,
    changes=("rows",),
    laws="RMQLOG-1 RMQLOG-3",
)
MESSAGES = """
    {0} == 0 or rows[0] == old(position)
    {1} == (old(position) if {0} == 0 else rows[16 * {0} - 16] + rows[16 * {0} - 15])
    each(0, {0}, lambda n: old(position) <= rows[16 * n] and 91 <= rows[16 * n + 1]
        and rows[16 * n] + rows[16 * n + 1] <= end)
    each(0, {0}, lambda n: i32(buffer, rows[16 * n] + 4) == -626843481
        or i32(buffer, rows[16 * n] + 4) == -626843477)
    same_but(rows, old(rows), 0, 16 * {0} + 16)
""".format
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
        iff(result[2] == WALK_FULL, 16 * result[0] + 16 > len(rows))
        implies(result[2] != WALK_FULL and result[1] + 8 <= end,
            iff(result[2] == WALK_BLANK, i32(buffer, result[1] + 4) == -875286124
            and 0 <= i32(buffer, result[1]) <= end - result[1]))
    """
    + MESSAGES("result[0]", "result[1]"),
    loops=(
        Loop(
            """
            old(position) <= position <= max(old(position), end)
            0 <= count
            16 * count <= len(rows)
            """
            + MESSAGES("count", "position"),
            "len(rows) - 16 * count",
        ),
    ),
    changes=("rows",),
)
claim(
    "rocketmq_records:extend_hash",
    f"0 <= start <= {FAR}\nend <= len(buffer)\n" + HASH,
    """
        -1 <= result <= 4294967295
        implies(each(start, end, lambda n: buffer[n] < 128),
            result == ascii_hash(buffer, start, hashed, max(end - start, 0)) % 4294967296)
    """,
    loops=(
        Loop(
            HASH
            + """
            start <= position <= max(start, end)
            before == old(hashed)
            implies(each(start, position, lambda n: buffer[n] < 128),
                hashed == ascii_hash(buffer, start, before, position - start) % 4294967296)
            """,
            "end - position",
            ghosts={"before": ("hashed", "before")},
            unfolds="""
            ascii_hash(buffer, start, before, position - start)
            ascii_hash(buffer, start, before, position - start + 1)
            """,
        ),
    ),
    laws="RMQHASH-1",
)
claim(
    "rocketmq_records:key_hash",
    f"0 <= start <= {FAR}\nend <= len(buffer)\ntopic_hash <= 4294967295",
    """
        -1 <= result <= 2147483647
        implies(topic_hash < 0, result == -1)
        implies(topic_hash >= 0 and each(start, end, lambda n: buffer[n] < 128), result == absolute(
            ascii_hash(buffer, start, topic_hash, max(end - start, 0)) % 4294967296))
    """,
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
