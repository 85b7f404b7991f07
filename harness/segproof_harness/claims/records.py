# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.records`."""

from segproof_harness.claims.claim import Loop, claim, define
from segproof_harness.claims.words import FAR, buffer_part

RECORD_PART = buffer_part("position")
BLOCK = buffer_part("start")

claim(
    "records:decode_int16",
    "0 <= position\nposition + 2 <= len(buffer)",
    "-32768 <= result <= 32767\nresult == i16(buffer, position)",
)
claim(
    "records:decode_int32",
    "0 <= position\nposition + 4 <= len(buffer)",
    "is_i32(result)\nresult == i32(buffer, position)",
)
claim(
    "records:decode_int64",
    "0 <= position\nposition + 8 <= len(buffer)",
    "is_i64(result)",
    proves="result == i64(buffer, position)",
    word="decoded_int64",
)
claim("records:add_int64", ensures="result == wrapped(one + other)", laws="BATCH-4")
VARINT = """
    implies(result[1] > 0, go_on(buffer, position, result[1] - 1 - position)
        and buffer[result[1] - 1] < 128)
    implies(result[1] == OVERLONG, position + {0} <= end and go_on(buffer, position, {0}))
    implies(result[1] == TRUNCATED, end - position < {0} and go_on(buffer, position,
        end - position))
    implies(result[1] < 0, result[0] == 0)
    implies(result[1] > 0, result[0] == zigzag({1}(buffer, position, result[1] - position) % {2}))
""".format
FOUND = """
    result[1] == OVERLONG or result[1] == TRUNCATED or position < result[1] <= min(end,
        position + {})
""".format
claim(
    "records:decode_varint",
    "0 <= position\nend <= len(buffer)",
    "is_i32(result[0])" + FOUND(5),
    proves=VARINT(5, "raw5", 2**32),
    laws="BATCH-7",
)
claim(
    "records:decode_varlong",
    "0 <= position\nend <= len(buffer)",
    FOUND(10),
    proves=VARINT(10, "raw10", 2**64),
    laws="BATCH-7",
)
claim(
    "records:compression_code",
    ensures="0 <= result <= 7\nresult == attributes % 8",
    laws="BATCH-18",
)
claim(
    "records:attribute_bit",
    "3 <= bit <= 6\n-32768 <= attributes <= 32767",
    """
        implies(bit == 3, result == attributes // 8 % 2)
        implies(bit == 4, result == attributes // 16 % 2)
        implies(bit == 5, result == attributes // 32 % 2)
        implies(bit == 6, result == attributes // 64 % 2)
    """,
    cases={"bit": (3, 4, 5, 6)},
    laws="BATCH-8 BATCH-19",
)
claim(
    "records:increment_sequence",
    "is_i32(sequence)\nis_i32(increment)",
    """
        is_i32(result)
        implies(sequence >= 0 and increment >= 0, result == (sequence + increment) % 2147483648)
        implies(sequence >= 0 and increment < 0,
            result == (sequence + increment) % 4294967296 - 2147483648)
    """,
    laws="BATCH-5",
)
claim(
    "records:decrement_sequence",
    "0 <= sequence <= 2147483647\n0 <= decrement <= 2147483647",
    "result == (sequence - decrement) % 2147483648",
    laws="BATCH-5",
)
claim(
    "records:decode_batch_header",
    """
        0 <= position
        len(fields) >= 14
        position + 18 <= len(buffer)
        implies(buffer[position + 16] == 1, position + 26 <= len(buffer))
        implies(buffer[position + 16] == 2, position + 61 <= len(buffer))
    """,
    """
        fields[0] == decoded_int64(buffer, position)
        fields[2] == (buffer[position + 16] + 128) % 256 - 128
        fields[13] == i32(buffer, position + 8) + 12
        implies(buffer[position + 16] == 2, fields[1] == wrapped(fields[0] + i32(buffer,
            position + 23)) and fields[12] == i32(buffer, position + 23))
        implies(buffer[position + 16] == 2, fields[5] == decoded_int64(buffer, position + 27)
            and fields[6] == decoded_int64(buffer, position + 35))
        implies(buffer[position + 16] == 2, fields[7] == decoded_int64(buffer, position + 43)
            and fields[9] == i32(buffer, position + 53))
        implies(buffer[position + 16] == 2, fields[4] == u32(buffer, position + 17)
            and fields[10] == i32(buffer, position + 12) and fields[11] == i32(buffer,
            position + 57))
        implies(buffer[position + 16] == 2, fields[3] == i16(buffer, position + 21)
            and fields[8] == i16(buffer, position + 51))
        implies(buffer[position + 16] != 2, fields[3] == (buffer[position + 17] + 128) % 256 - 128)
        implies(buffer[position + 16] != 2, fields[7] == -1 and fields[8] == -1
            and fields[9] == -1 and fields[10] == -1)
        implies(buffer[position + 16] != 2, fields[1] == fields[0] and fields[4] == u32(buffer,
            position + 12) and fields[12] == 0)
        implies(buffer[position + 16] != 2,
            fields[11] == (1 if buffer[position + 17] % 8 == 0 else -1))
        implies(buffer[position + 16] == 1, fields[5] == decoded_int64(buffer, position + 18)
            and fields[6] == fields[5])
        implies(buffer[position + 16] != 1 and buffer[position + 16] != 2,
            fields[5] == -1 and fields[6] == -1)
        same_but(fields, old(fields), 0, 14)
    """,
    changes=("fields",),
    laws="BATCH-1 BATCH-4 BATCH-12",
)
define("header_size(d, p)", "61 if d[p + 16] == 2 else 26")
WALKED = """
    {0} == 0 or rows[0] == start
    {1} == (start if {0} == 0 else rows[2 * {0} - 2] + rows[2 * {0} - 1])
    each(1, {0}, lambda n: rows[2 * n] == rows[2 * n - 2] + rows[2 * n - 1])
    each(0, {0}, lambda n: rows[2 * n + 1] == i32(buffer, rows[2 * n] + 8) + 12)
    each(0, {0}, lambda n: buffer[rows[2 * n] + 16] <= 2)
    each(0, {0}, lambda n: rows[2 * n] + header_size(buffer, rows[2 * n]) <= min(end, filled))
    same_but(rows, old(rows), 0, 2 * {0})
    each(0, {0}, lambda n: start <= rows[2 * n] and rows[2 * n + 1] >= 26
        and rows[2 * n] + rows[2 * n + 1] <= end)
    implies(whole == 1, each(0, {0}, lambda n: rows[2 * n] + rows[2 * n + 1] <= filled))
""".format
claim(
    "records:walk_batches",
    f"""
        0 <= start <= {FAR}
        -{FAR} <= end <= {FAR}
        -{FAR} <= filled <= len(buffer)
        0 <= capacity <= {FAR}
        2 * capacity <= len(rows)
    """,
    """
        0 <= result[0] <= capacity
        start <= result[1]
        SCAN_END <= result[2] <= SCAN_FULL
        implies(result[2] == SCAN_END, result[1] >= end - 17
            or result[1] + i32(buffer, result[1] + 8) + 12 > end)
        implies(result[2] != SCAN_END, result[1] + 17 < end)
        implies(result[2] == SCAN_BAD_SIZE, i32(buffer, result[1] + 8) < 14)
        implies(result[2] == SCAN_BAD_MAGIC, buffer[result[1] + 16] > 2)
        implies(result[2] == SCAN_SHORT_HEADER, result[1] + header_size(buffer, result[1]) > end)
        implies(result[2] == SCAN_MORE, result[1] + header_size(buffer, result[1]) > filled
            or (whole == 1 and result[1] + i32(buffer, result[1] + 8) + 12 > filled))
        implies(result[2] == SCAN_FULL, result[0] == capacity)
    """
    + WALKED("result[0]", "result[1]"),
    loops=(
        Loop(
            "start <= position <= max(start, end)\n0 <= count <= capacity"
            + WALKED("count", "position"),
            "end - position",
        ),
    ),
    changes=("rows",),
    laws="SCAN-1 SCAN-2 SCAN-5 SCAN-6",
)
claim(
    "records:next_header",
    RECORD_PART,
    """
        -6 <= result[0] < 0 or position < result[0] <= end
        implies(result[0] > 0, position < result[1] and 0 <= result[2]
            and result[1] + result[2] < result[3])
        implies(result[0] > 0, result[4] >= -1 and result[3] + max(result[4], 0) == result[0])
        implies(result[0] < 0, result[1] == 0 and result[2] == 0 and result[3] == 0
            and result[4] == 0)
    """,
)
HEADER_ROWS = """
    each(0, {0}, lambda n: 0 <= rows[4 * n + 1]
        and is_slice(0, rows[4 * n], rows[4 * n + 1], end))
    each(0, {0}, lambda n: is_slice(0, rows[4 * n + 2], rows[4 * n + 3], end))
    same_but(rows, old(rows), 0, 4 * {0})
""".format
claim(
    "records:read_headers",
    f"""
        0 <= count <= {FAR // 8}
        2 * count <= len(records)
        0 <= capacity <= {FAR // 8}
        4 * capacity <= len(rows)
        0 <= end <= len(buffer)
        len(buffer) <= {FAR}
        each(0, count, lambda n: 0 <= records[2 * n] <= {FAR})
    """,
    "0 <= result <= capacity" + HEADER_ROWS("result"),
    loops=(
        Loop("0 <= filled <= capacity\n" + HEADER_ROWS("filled")),
        Loop(f"0 <= filled <= capacity\n0 <= position <= {FAR}\n" + HEADER_ROWS("filled")),
    ),
    changes=("rows",),
)
claim(
    "records:next_record",
    RECORD_PART,
    """
        -7 <= result[0] < 0 or position < result[0] <= end
        is_i32(result[2])
        implies(result[0] > 0, result[4] >= -1 and position < result[3]
            and result[3] + max(result[4], 0) <= end)
        implies(result[0] > 0, result[6] >= -1 and position < result[5]
            and result[5] + max(result[6], 0) <= end)
        implies(result[0] > 0, 0 <= result[8] and position < result[7]
            and result[7] + result[8] <= end)
        implies(result[0] < 0, result[1] == 0 and result[2] == 0 and result[3] == 0
            and result[4] == 0 and result[5] == 0 and result[6] == 0 and result[7] == 0
            and result[8] == 0)
        implies(result[0] > 0, position < result[3] < result[5] < result[7] <= result[0])
        implies(result[0] > 0, result[3] + max(result[4], 0) < result[5]
            and result[5] + max(result[6], 0) < result[7])
    """,
    loops=(Loop("first_header <= after <= limit"),),
    laws="BATCH-16",
)
RECORD_ROWS = """
    each(0, {0}, lambda n: is_i32(rows[8 * n + 1]))
    each(0, {0}, lambda n: is_slice(start, rows[8 * n + 2], rows[8 * n + 3], end))
    each(0, {0}, lambda n: is_slice(start, rows[8 * n + 4], rows[8 * n + 5], end))
    each(0, {0}, lambda n: start < rows[8 * n + 6] and 0 <= rows[8 * n + 7]
        and rows[8 * n + 6] + rows[8 * n + 7] <= end)
    same_but(rows, old(rows), 0, 8 * {0})
""".format
claim(
    "records:walk_records",
    BLOCK + f"count < 0 or (0 <= capacity <= {FAR // 8} and 8 * capacity <= len(rows))",
    """
        0 <= result[0] <= max(capacity, 0)
        RECORDS_GOOD <= result[1] <= RECORDS_SKIPPED
        implies(result[1] == RECORDS_GOOD, result[0] == min(count, max(capacity, 0))
            or capacity < 0)
        implies(result[1] == RECORDS_GOOD and 0 < count <= capacity, result[2] == end)
        iff(count < 0, result[1] == RECORDS_NEGATIVE_COUNT)
        implies(count <= 0, result[0] == 0 and result[2] == start)
        implies(count == 0, result[1] == RECORDS_GOOD)
        start <= result[2] <= max(start, end)
    """
    + RECORD_ROWS("result[0]"),
    loops=(
        Loop(
            "start <= position <= max(start, end)\nnext_row > 0 or position == start\n"
            "implies(0 < count == next_row, position == end)\n" + RECORD_ROWS("next_row")
        ),
    ),
    changes=("rows",),
    laws="BATCH-16 BATCH-17",
)
claim(
    "records:short_varint",
    "0 <= position\nposition + 2 <= len(buffer)",
    "result[1] == 0 or position < result[1] <= position + 2\n-8192 <= result[0] <= 8191",
    proves="""
        implies(result[1] == 0, result[0] == 0)
        implies(result[1] > 0, result[0] == zigzag(raw5(buffer, position, result[1] - position)))
    """,
    laws="BATCH-7",
)
claim(
    "records:plain_record",
    RECORD_PART,
    """
        result[0] == 0 or position + 7 < result[0] <= end
        implies(result[0] == 0, result[1] == 0 and result[2] == 0 and result[3] == 0
            and result[4] == 0 and result[5] == 0 and result[6] == 0)
        is_i32(result[2])
        implies(result[0] > 0, is_slice(position, result[3], result[4], end)
            and is_slice(position, result[5], result[6], end))
        implies(result[0] > 0, position < result[3] < result[5] < result[0])
        implies(result[0] > 0, result[3] + max(result[4], 0) < result[5]
            and result[5] + max(result[6], 0) < result[0])
    """,
    laws="BATCH-16",
)
READ_ROWS = """
    each(0, {0}, lambda n: is_i32(columns[capacity + n]))
    each(0, {0}, lambda n:
        is_slice(0, columns[2 * capacity + n], columns[3 * capacity + n], len(buffer)))
    each(0, {0}, lambda n:
        is_slice(0, columns[4 * capacity + n], columns[5 * capacity + n], len(buffer)))
    each(0, {0}, lambda n: 0 < columns[6 * capacity + n] and 0 <= columns[7 * capacity + n]
        and columns[6 * capacity + n] + columns[7 * capacity + n] <= len(buffer))
    same_but(columns, old(columns), 0, 8 * capacity)
""".format
claim(
    "records:read_batches",
    f"""
        0 <= count <= {FAR // 8}
        2 * count <= len(batches)
        0 <= capacity <= {FAR // 8}
        8 * capacity <= len(columns)
        len(buffer) <= {FAR}
        each(0, count, lambda n: 0 <= batches[2 * n] and 61 <= batches[2 * n + 1]
            and batches[2 * n] + batches[2 * n + 1] <= len(buffer))
    """,
    """
        0 <= result[0] <= count
        0 <= result[1] <= capacity
        each(0, result[0], lambda n: 0 <= i32(buffer, batches[2 * n] + 57) <= result[1])
        implies(result[0] == 0, result[1] == 0)
    """
    + READ_ROWS("result[1]"),
    loops=(
        Loop(
            "0 <= filled <= capacity\nimplies(next_index == 0, filled == 0)\n"
            "each(0, next_index, lambda n: 0 <= i32(buffer, batches[2 * n] + 57) <= filled)\n"
            + READ_ROWS("filled")
        ),
        Loop(
            "batches[2 * index] + 61 <= position <= end\n"
            "next_row > filled or position == batches[2 * index] + 61\n" + READ_ROWS("next_row")
        ),
    ),
    changes=("columns",),
    laws="BATCH-16 BATCH-17",
)
claim(
    "records:summarise_records",
    BLOCK + f"0 <= at <= {FAR}\nat + 6 <= len(rows)\nis_i32(count)",
    """
        RECORDS_GOOD <= rows[at] <= RECORDS_SKIPPED
        start <= rows[at + 1] <= max(start, end)
        0 <= rows[at + 2] <= max(count, 0)
        implies(rows[at] == RECORDS_GOOD, rows[at + 2] == count)
        implies(rows[at] == RECORDS_GOOD and count > 0, rows[at + 1] == end)
        iff(count < 0, rows[at] == RECORDS_NEGATIVE_COUNT)
        implies(count == 0, rows[at] == RECORDS_GOOD)
        implies(rows[at + 2] == 0, rows[at + 1] == start and rows[at + 3] == -1
            and rows[at + 4] == 1 and rows[at + 5] == -9223372036854775808)
        0 <= rows[at + 4] <= 1
        implies(rows[at + 4] == 1, rows[at + 3] >= rows[at + 2] - 1)
        implies(rows[at + 2] == 1, rows[at + 4] == (1 if rows[at + 3] >= 0 else 0))
        same_but(rows, old(rows), at, at + 6)
    """,
    loops=(
        Loop(
            """
            0 <= seen <= max(count, 0)
            start <= position <= max(start, end)
            RECORDS_GOOD <= status <= RECORDS_SKIPPED
            iff(count < 0, status == RECORDS_NEGATIVE_COUNT)
            count != 0 or status == RECORDS_GOOD
            implies(status == RECORDS_GOOD and seen == count and count > 0, position == end)
            0 <= rising <= 1
            rising == 0 or last_delta >= seen - 1
            seen != 1 or rising == (1 if last_delta >= 0 else 0)
            seen != 0 or (position == start and last_delta == -1 and rising == 1
                and largest == -9223372036854775808)
            """,
            "2 * (count - seen) + (1 if status == RECORDS_GOOD else 0)",
        ),
    ),
    changes=("rows",),
    laws="BATCH-16 BATCH-17 BATCH-18",
)
SUMMARIES = """
    each(0, {0}, lambda n: RECORDS_GOOD <= rows[6 * n] <= RECORDS_SKIPPED)
    each(0, {0}, lambda n: 0 <= rows[6 * n + 4] <= 1)
    each(0, {0}, lambda n: rows[6 * n] == RECORDS_SKIPPED or (batches[2 * n + 1] >= 61
        and buffer[batches[2 * n] + 16] == 2 and buffer[batches[2 * n] + 22] % 8 == 0))
    each(0, {0}, lambda n: rows[6 * n] != RECORDS_GOOD or i32(buffer, batches[2 * n] + 57) <= 0
        or rows[6 * n + 1] == batches[2 * n] + batches[2 * n + 1])
    each(0, {0}, lambda n: rows[6 * n] == RECORDS_SKIPPED
        or rows[6 * n + 1] >= batches[2 * n] + 61)
""".format
WRITTEN = "same_but(rows, old(rows), 0, {})\n".format
claim(
    "records:summarise_batches",
    f"""
        0 <= count <= {FAR // 6}
        6 * count <= len(rows)
        2 * count <= len(batches)
        len(buffer) <= {FAR}
        each(0, count, lambda n: 0 <= batches[2 * n] and 26 <= batches[2 * n + 1]
            and batches[2 * n] + batches[2 * n + 1] <= len(buffer))
    """,
    SUMMARIES("count") + WRITTEN("6 * count"),
    loops=(
        Loop(SUMMARIES("next_index") + WRITTEN("6 * next_index")),
        Loop(
            SUMMARIES("index")
            + WRITTEN("6 * index + 6")
            + "each(0, next_column, lambda n: rows[6 * index + n] == 0)"
        ),
    ),
    changes=("rows",),
)
