# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.rocketmq_index`: hashes, what a put writes, and that a walk ends."""

from segproof_harness.claims.claim import Loop, claim
from segproof_harness.claims.words import FAR

HASH = "0 <= hashed <= 4294967295\n"
FILE = "1 <= hash_slot_num <= 2147483647\n40 + 4 * hash_slot_num <= len(data)\n"

# --- the hash of a key

claim(
    "rocketmq_index:add_unit",
    HASH + "0 <= unit <= 65535",
    "0 <= result <= 4294967295\nresult == (hashed * 31 + unit) % 4294967296",
    laws="RMQHASH-1",
)
claim(
    "rocketmq_index:absolute_hash",
    HASH,
    """
        0 <= result <= 2147483647
        implies(hashed == 2147483648, result == 0)
        implies(hashed != 2147483648,
            result == max((hashed + 2147483648) % 4294967296 - 2147483648,
            2147483648 - (hashed + 2147483648) % 4294967296))
    """,
    laws="RMQHASH-2",
)
claim(
    "rocketmq_index:hash_of_units",
    ensures="0 <= result <= 4294967295\nresult == hash_of(units, len(units))",
    loops=(
        Loop(
            HASH + "hashed == hash_of(units, next_unit)",
            unfolds="hash_of(units, next_unit)\nhash_of(units, next_unit + 1)",
        ),
    ),
    formats={"units": "H"},
    laws="RMQHASH-1",
)
claim(
    "rocketmq_index:key_hash_of_units",
    ensures="0 <= result <= 2147483647",
    formats={"units": "H"},
    laws="RMQHASH-2",
)
claim(
    "rocketmq_index:utf8_character",
    "0 <= position < end\nend <= len(data)\n0 <= is_text <= 1",
    """
        result == -1 or (1 <= result % 8 <= 4 and position + result % 8 <= end
            and 0 <= result // 8 <= 1114111)
        implies(data[position] < 128, result == data[position] * 8 + 1)
    """,
)
claim(
    "rocketmq_index:hash_of_utf8",
    f"0 <= start <= {FAR}\nend <= len(data) or end <= start\n0 <= is_text <= 1",
    "-1 <= result <= 2147483647",
    loops=(
        Loop("start <= position <= max(start, end)\n" + HASH, "end - position"),
        Loop("start <= position <= max(start, end)\n" + HASH, "end - position"),
    ),
    laws="RMQHASH-1 RMQHASH-2",
)
HASHES = "each(0, {}, lambda n: 0 <= hashes[n] <= 2147483647)\n".format
claim(
    "rocketmq_index:hashes_of_rows",
    f"0 <= width <= {FAR}\nwidth * len(hashes) <= len(data)",
    "0 <= result <= len(hashes)\n" + HASHES("result"),
    loops=(
        Loop(HASHES("next_number") + "width * next_number <= len(data)"),
        Loop("start <= end <= start + width", "end - start"),
    ),
    changes=("hashes",),
)
claim(
    "rocketmq_index:hashes_of_texts",
    """
        0 <= is_text <= 1
        len(bounds) == len(hashes) + 1
        each(0, len(bounds), lambda n: 0 <= bounds[n] <= len(data))
    """,
    "0 <= result <= len(hashes)\n" + HASHES("result"),
    loops=(Loop(HASHES("next_number")),),
    changes=("hashes",),
)
claim(
    "rocketmq_index:hashes_of_joined",
    "0 <= is_text <= 1",
    "0 <= result <= len(hashes)\n" + HASHES("result"),
    loops=(
        Loop(HASHES("next_number") + f"0 <= start <= {FAR}\nstart <= len(data) + next_number"),
        Loop("start <= end\nend <= len(data) or end == start", "len(data) - end"),
    ),
    changes=("hashes",),
)

# --- what an entry says

claim(
    "rocketmq_index:slot_position",
    "0 <= key_hash\n1 <= hash_slot_num <= 2147483647",
    "40 <= result <= 36 + 4 * hash_slot_num\nresult == 40 + key_hash % hash_slot_num * 4",
    laws="RMQHASH-3",
)
claim(
    "rocketmq_index:time_difference",
    ensures="0 <= result <= 2147483647",
    proves="""
        implies(begin_timestamp <= 0, result == 0)
        implies(begin_timestamp > 0,
            result == min(max(wrapped(store_timestamp - begin_timestamp), 0) // 1000, 2147483647))
    """,
    laws="RMQIDX-21",
)
claim(
    "rocketmq_index:read_time",
    "-2147483648 <= time_diff <= 2147483647",
    "result == wrapped(begin_timestamp + time_diff * 1000)",
    laws="RMQIDX-33",
)
claim(
    "rocketmq_index:previous_index",
    ensures="result == (slot_value if 0 < slot_value < index_count else 0)",
    laws="RMQIDX-20",
)

# --- putting

claim(
    "rocketmq_index:write_int32",
    "0 <= position\nposition + 4 <= len(data)\nis_i32(value)",
    """
        i32(data, position) == value
        same_but(data, old(data), position, position + 4)
    """,
    changes=("data",),
    formats={"data": "B"},
)
BYTES = "\n".join(f"data[position + {n}] == value // {256 ** (7 - n)} % 256" for n in range(8))
claim(
    "rocketmq_index:write_int64",
    "0 <= position\nposition + 8 <= len(data)",
    BYTES
    + """
        same_but(data, old(data), position, position + 8)
    """,
    changes=("data",),
    formats={"data": "B"},
)
PUT = "header[5] == old(header)[5] + {}\nis_i32(header[4])\n".format
claim(
    "rocketmq_index:put_entries",
    """
        1 <= hash_slot_num <= 2147483647
        len(header) >= 7
        0 <= header[5]
        0 <= index_num <= 2147483647
        is_i32(header[4])
        1 <= together <= 2147483647
        40 + 4 * hash_slot_num + 20 * index_num <= len(data)
        len(phy_offsets) == len(hashes)
        len(store_timestamps) == len(hashes)
        each(0, len(hashes), lambda n: 0 <= hashes[n] <= 2147483647)
    """,
    """
        0 <= result <= len(hashes)
        header[5] == old(header)[5] + result
        result == len(hashes) or header[5] >= index_num
    """,
    loops=(
        Loop(
            "0 <= number <= len(hashes)\nnumber == 0 or header[5] <= index_num\n" + PUT("number"),
            "len(hashes) - number",
        ),
        Loop("0 <= looked_at <= 255 * (next_ahead - number)"),
        Loop(
            "0 <= number <= block\nheader[5] + block - number <= index_num\n" + PUT("number"),
            "block - number",
        ),
    ),
    changes=("data", "header"),
    formats={"data": "B"},
    laws="RMQIDX-17 RMQIDX-25",
)

# --- walking

claim(
    "rocketmq_index:walk_chain",
    """
        0 <= hash_slot_num <= 2147483647
        len(walk) >= 2
        0 <= walk[1] <= 2147483647
        40 + hash_slot_num * 4 + 20 * walk[1] <= len(data)
    """,
    """
        CORRUPT <= result <= len(walk) - 2
        implies(result >= 0, walk[0] == 0 or 0 < walk[0] < walk[1])
        implies(result > 0, walk[1] < old(walk)[1])
    """,
    loops=(
        Loop(
            """
            0 <= count <= len(walk) - 2
            above <= old(walk)[1]
            implies(count > 0, above < old(walk)[1])
            """,
            "above",
        ),
    ),
    changes=("walk",),
    laws="RMQIDX-31 RMQIDX-35 RMQIDX-36",
)
claim(
    "rocketmq_index:newest_entries",
    FILE
    + """
        0 <= first <= last <= len(hashes)
        last - first <= len(cursors)
        each(0, len(hashes), lambda n: 0 <= hashes[n] <= 2147483647)
    """,
    "each(0, last - first, lambda n: is_i32(cursors[n]))",
    loops=(Loop("each(0, next_lane, lambda n: is_i32(cursors[n]))"),),
    changes=("cursors",),
)
claim(
    "rocketmq_index:visit_entries",
    """
        0 <= hash_slot_num <= 2147483647
        0 <= active <= len(lanes)
        active <= 2147483647
        0 <= first <= 2147483647
        0 <= total
        total + active <= len(matches)
        len(owners) == len(matches)
        len(cursors) <= 2147483647
        len(counts) == len(hashes) + 1
        len(data) <= 2147483647000
        each(0, active, lambda p: 0 <= lanes[p] < len(cursors) and first + lanes[p] < len(hashes)
            and 0 <= cursors[lanes[p]]
            and 40 + hash_slot_num * 4 + 20 * cursors[lanes[p]] + 20 <= len(data))
        each(0, active, lambda p: 0 <= counts[first + lanes[p] + 1] <= total)
        pairs(0, active, lambda p, r: lanes[p] < lanes[r])
    """,
    """
        result[0] == CORRUPT or 0 <= result[0] <= active
        total <= result[1] <= total + active
        each(0, result[0], lambda p: 0 <= counts[first + lanes[p] + 1] <= result[1])
        pairs(0, result[0], lambda p, r: lanes[p] < lanes[r])
        each(0, result[0], lambda p: 0 <= lanes[p] < len(cursors)
            and 0 < cursors[lanes[p]] < old(cursors)[lanes[p]])
        each(0, result[0], lambda p: some(p, active, lambda r: lanes[p] == old(lanes)[r]))
    """,
    loops=(
        Loop("0 <= looked_at <= 510 * next_place"),
        Loop(
            """
            0 <= going_on <= next_place
            0 <= bad <= 2 * next_place
            old(total) <= total <= old(total) + next_place
            each(next_place, active, lambda p: lanes[p] == old(lanes)[p])
            each(next_place, active, lambda p: cursors[lanes[p]] == old(cursors)[lanes[p]])
            each(0, going_on, lambda p: 0 <= counts[first + lanes[p] + 1] <= total)
            each(next_place, active, lambda p: 0 <= counts[first + lanes[p] + 1] <= total)
            pairs(0, going_on, lambda p, r: lanes[p] < lanes[r])
            each(0, going_on, lambda p: each(next_place, active, lambda r:
                lanes[p] < old(lanes)[r]))
            each(0, going_on, lambda p: 0 <= lanes[p] < len(cursors))
            each(0, going_on, lambda p: bad > 0 or 0 < cursors[lanes[p]] < old(cursors)[lanes[p]])
            each(0, going_on, lambda p: some(p, next_place, lambda r: lanes[p] == old(lanes)[r]))
            """
        ),
    ),
    changes=("cursors", "lanes", "counts", "owners", "matches"),
    laws="RMQIDX-31 RMQIDX-35 RMQIDX-36",
)
claim(
    "rocketmq_index:follow_chains",
    FILE
    + """
        0 <= first <= last <= len(hashes)
        last - first <= len(cursors)
        last - first <= len(lanes)
        len(cursors) <= 2147483647
        first <= 2147483647
        len(counts) == len(hashes) + 1
        len(owners) == len(matches)
        len(data) <= 2147483647000
        limit <= 2147483647
        40 + 4 * hash_slot_num + 20 * limit <= len(data)
        each(0, len(hashes), lambda n: 0 <= hashes[n] <= 2147483647)
    """,
    "NO_ROOM <= result <= len(matches)",
    loops=(
        Loop(
            """
            0 <= active <= next_lane
            0 <= bad <= next_lane
            each(0, last - first, lambda n: is_i32(cursors[n]))
            each(0, active, lambda p: 0 <= lanes[p] < next_lane and cursors[lanes[p]] != 0
                and counts[first + lanes[p] + 1] == 0)
            each(0, next_lane, lambda n: implies(bad == 0, 0 <= cursors[n] < limit))
            pairs(0, active, lambda p, r: lanes[p] < lanes[r])
            """
        ),
        Loop(
            """
            CORRUPT <= active <= last - first
            0 <= total <= len(matches)
            each(0, active, lambda p: 0 <= counts[first + lanes[p] + 1] <= total)
            each(0, active, lambda p: 0 <= lanes[p] < last - first
                and 0 < cursors[lanes[p]] < limit - rounds)
            pairs(0, active, lambda p, r: lanes[p] < lanes[r])
            0 <= rounds
            """,
            "limit - rounds",
            ghosts={"rounds": ("0", "rounds + 1")},
        ),
    ),
    changes=("cursors", "lanes", "counts", "owners", "matches"),
    laws="RMQIDX-31 RMQIDX-35 RMQIDX-36",
)
