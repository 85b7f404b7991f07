# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.rocketmq_index`: hashes, what a put writes, and that a walk ends."""

from segproof_harness.claims.claim import Loop, claim, define, expressions_of
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
# Java's Math.abs of an int, and 0 for the least one; h is the int without its sign, 0..2^32-1.
define("absolute(h)", "h if h < 2147483648 else 0 if h == 2147483648 else 4294967296 - h")
claim(
    "rocketmq_index:absolute_hash",
    HASH,
    """
        0 <= result <= 2147483647
        result == absolute(hashed)
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
    ensures="0 <= result <= 2147483647\nresult == absolute(hash_of(units, len(units)))",
    formats={"units": "H"},
    laws="RMQHASH-2",
)
# UTF-8: the bytes behind the first one, and the code point of a character of 2, 3 or 4 bytes.
define("is_tail(d, p)", "128 <= d[p] < 192")
define(
    "has_tail(d, p, size, end)",
    "p + size <= end and is_tail(d, p + 1) and (size < 3 or is_tail(d, p + 2))"
    " and (size < 4 or is_tail(d, p + 3))",
)
define("code_of_2(d, p)", "(d[p] - 192) * 64 + d[p + 1] - 128")
define("code_of_3(d, p)", "((d[p] - 224) * 64 + d[p + 1] - 128) * 64 + d[p + 2] - 128")
define(
    "code_of_4(d, p)",
    "(((d[p] - 240) * 64 + d[p + 1] - 128) * 64 + d[p + 2] - 128) * 64 + d[p + 3] - 128",
)
define(
    "is_code_of_3(code, is_text)", "code >= 2048 and (is_text == 1 or not 55296 <= code < 57344)"
)
claim(
    "rocketmq_index:utf8_character",
    "0 <= position < end\nend <= len(data)\n0 <= is_text <= 1",
    """
        result == -1 or (1 <= result % 8 <= 4 and position + result % 8 <= end
            and 0 <= result // 8 <= 1114111)
        implies(data[position] < 128, result == data[position] * 8 + 1)
        implies(128 <= data[position] < 194 or data[position] > 244, result == -1)
        implies(194 <= data[position] < 224, result == (
            code_of_2(data, position) * 8 + 2 if has_tail(data, position, 2, end) else -1))
        implies(224 <= data[position] < 240, result == (
            code_of_3(data, position) * 8 + 3 if has_tail(data, position, 3, end)
            and is_code_of_3(code_of_3(data, position), is_text) else -1))
        implies(240 <= data[position] < 245, result == (
            code_of_4(data, position) * 8 + 4 if has_tail(data, position, 4, end)
            and 65536 <= code_of_4(data, position) <= 1114111 else -1))
    """,
)
# The hash h with n ASCII characters from p on behind it, not yet cut to 32 bits.
define(
    "ascii_hash(d, p, h, n)",
    "h if n <= 0 else ascii_hash(d, p, h, n - 1) * 31 + d[p + n - 1]",
)


def prefixes(count: int) -> str:
    """Return the hashes of what was read, and of up to so many characters more."""
    return "\n".join(
        f"ascii_hash(data, start, 0, position - start + {n})" for n in range(count + 1)
    )


HASHED = (
    HASH
    + """
    start <= position <= max(start, end)
    implies(each(start, position, lambda n: data[n] < 128),
        hashed == ascii_hash(data, start, 0, position - start) % 4294967296)
"""
)
claim(
    "rocketmq_index:hash_of_utf8",
    f"0 <= start <= {FAR}\nend <= len(data) or end <= start\n0 <= is_text <= 1",
    """
        -1 <= result <= 2147483647
        implies(each(start, end, lambda n: data[n] < 128),
            result == absolute(ascii_hash(data, start, 0, max(end - start, 0)) % 4294967296))
    """,
    loops=(
        Loop(
            HASHED + "position == start or each(start, position, lambda n: data[n] < 128)",
            "end - position",
            unfolds=prefixes(4),
        ),
        Loop(HASHED, "end - position", unfolds=prefixes(1)),
    ),
    word="text_hash",
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
TEXT_HASHES = """
    each(0, {0}, lambda n: 0 <= hashes[n] <= 2147483647)
    each(0, {0}, lambda n: hashes[n] == text_hash(data, bounds[n], bounds[n + 1], is_text))
    same_but(hashes, old(hashes), 0, {0})
""".format
claim(
    "rocketmq_index:hashes_of_texts",
    """
        0 <= is_text <= 1
        len(bounds) == len(hashes) + 1
        each(0, len(bounds), lambda n: 0 <= bounds[n] <= len(data))
    """,
    """
        0 <= result <= len(hashes)
        result == len(hashes) or text_hash(data, bounds[result], bounds[result + 1], is_text) < 0
    """
    + TEXT_HASHES("result"),
    loops=(Loop(TEXT_HASHES("next_number")),),
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
    "40 <= result <= 36 + 4 * hash_slot_num",
    proves="result == 40 + key_hash % hash_slot_num * 4",
    word="slot_of",
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
    word="seconds_since",
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
        holds_int32(data, position, value)
        implies(value >= 0, data[position] < 128)
        same_but(data, old(data), position, position + 4)
    """,
    proves="i32(data, position) == value",
    changes=("data",),
    formats={"data": "B"},
)
claim(
    "rocketmq_index:write_int64",
    "0 <= position\nposition + 8 <= len(data)",
    """
        holds_int64(data, position, value)
        same_but(data, old(data), position, position + 8)
    """,
    changes=("data",),
    formats={"data": "B"},
)
NEWEST = "40 + 4 * hash_slot_num + 20 * (header[5] - 1)"


def put(number: str, leads_to: str = "") -> str:
    """Return what holds once so many entries were put: what the newest of them says, and the file.

    That of an entry before it held when that one was the newest; nothing in it was changed since.
    """
    newest = f"""
        holds_int32(data, {NEWEST}, hashes[{number} - 1])
        holds_int64(data, {NEWEST} + 4, phy_offsets[{number} - 1])
        data[{NEWEST} + 12] < 128
        holds_int32(data, slot_of(hashes[{number} - 1], hash_slot_num), header[5] - 1)
        header[1] == store_timestamps[{number} - 1] and holds_int64(data, 8, header[1])
        header[3] == phy_offsets[{number} - 1] and holds_int64(data, 24, header[3])
        holds_int32(data, 36, header[5])
        old(header)[5] > 1 or (holds_int64(data, 0, header[0]) and header[0]
            == store_timestamps[sets_begin_last({number}, old(header)[5])])
        old(header)[5] > 1 or (holds_int64(data, 16, header[2]) and header[2]
            == phy_offsets[sets_begin_last({number}, old(header)[5])])
    """
    if leads_to:
        newest += f"""
            0 <= {leads_to} < max(header[5] - 1, 1)
            {leads_to} != 0 or holds_int32(data, 32, header[4])
        """
    return f"""
        header[5] == old(header)[5] + {number}
        is_i32(header[4])
        header[0] == old(header)[0] or ({number} > 0 and old(header)[5] <= 1)
        header[2] == old(header)[2] or ({number} > 0 and old(header)[5] <= 1)
        forall(lambda n: implies(40 + 4 * hash_slot_num <= n < 40 + 4 * hash_slot_num
            + 20 * old(header)[5] or {NEWEST} + 20 <= n, data[n] == old(data)[n]))
    """ + "\n".join(f"implies({number} > 0, {one})" for one in expressions_of(newest))


def putting(used: str, leads_to: str) -> str:
    """Return what each pass keeps: so many slots were used first, and what the newest leads to."""
    return f"""
        0 <= {used} <= number
        header[4] == old(header)[4] + {used} or header[4] == old(header)[4] + {used} - 4294967296
        implies(number > 0, holds_int32(data, {NEWEST} + 16, {leads_to}))
    """ + put("number", leads_to)


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
    "0 <= result <= len(hashes)\nresult == len(hashes) or header[5] >= index_num\n" + put("result"),
    loops=(
        Loop(
            "0 <= number <= len(hashes)\nnumber == 0 or header[5] <= index_num\n"
            + putting("all_used", "all_lead_to"),
            "len(hashes) - number",
            ghosts={"all_used": ("0", "used"), "all_lead_to": ("0", "leads_to")},
        ),
        Loop("0 <= looked_at <= 255 * (next_ahead - number)"),
        Loop(
            "0 <= number <= block\nheader[5] + block - number <= index_num\n"
            + putting("used", "leads_to"),
            "block - number",
            ghosts={
                "used": ("all_used", "used + (1 if previous == 0 else 0)"),
                "leads_to": ("all_lead_to", "previous"),
            },
        ),
    ),
    changes=("data", "header"),
    formats={"data": "B"},
    laws="RMQIDX-17 RMQIDX-25",
)

# --- walking

ENTRY = "40 + hash_slot_num * 4 + 20 * {}".format


def walked(walk_on: str, above: str) -> str:
    """Return what is known of the entry that was read last, `above`, and where it leads."""
    at = ENTRY(above)
    return f"""
        {above} == old(walk)[1] or 0 < {above} < old(walk)[1]
        {above} == old(walk)[1] or i32(data, {at} + 12) >= 0
        {above} == old(walk)[1] or {walk_on} == 0 or {walk_on} == i32(data, {at} + 16)
        {above} == old(walk)[1] or {walk_on} == (0 if {READ_TIME(at)} < begin
            else i32(data, {at} + 16))
        {above} != old(walk)[1] or {walk_on} == old(walk)[0]
    """


READ_TIME = "wrapped(begin_timestamp + i32(data, {} + 12) * 1000)".format
# The entry that a chain comes to after n steps.
define(
    "chain_at(d, slots, start, n)",
    "start if n <= 0 else i32(d, 56 + slots * 4 + 20 * chain_at(d, slots, start, n - 1))",
)
CHAIN = "chain_at(data, hash_slot_num, old(walk)[0], {})".format
HIT = ENTRY(CHAIN("k"))
# Each number that is written is that of an entry of the chain that matches.
MATCHES = f"""
    each(0, {{0}}, lambda n: some(0, old(walk)[1], lambda k:
        0 < {CHAIN("k")} < old(walk)[1] and i32(data, {HIT}) == key_hash
        and begin <= {READ_TIME(HIT)} <= end and walk[2 + n] == i64(data, {HIT} + 4)))
""".format
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
        implies(result >= 0 and walk[0] != 0, result == len(walk) - 2)
        same_but(walk, old(walk), 0, 2 + max(result, len(walk) if result < 0 else 0))
    """
    + MATCHES("result")
    + "\n".join(
        f"implies(result >= 0, {one})" for one in expressions_of(walked("walk[0]", "walk[1]"))
    ),
    loops=(
        Loop(
            f"""
            0 <= count <= len(walk) - 2
            implies(count > 0, above < old(walk)[1])
            same_but(walk, old(walk), 2, 2 + count)
            newest == old(walk)[0]
            0 <= visited
            visited + above <= old(walk)[1]
            current == 0 or current == {CHAIN("visited")}
            """
            + MATCHES("count")
            + walked("current", "above"),
            "above",
            unfolds="""
                chain_at(data, hash_slot_num, newest, visited)
                chain_at(data, hash_slot_num, newest, visited + 1)
            """,
            ghosts={"newest": ("walk[0]", "newest"), "visited": ("0", "visited + 1")},
        ),
    ),
    changes=("walk",),
    laws="RMQIDX-31 RMQIDX-33 RMQIDX-35 RMQIDX-36",
)
SLOT_VALUES = """
    each(0, {0}, lambda n: is_i32(cursors[n]))
    each(0, {0}, lambda n: cursors[n] == i32(data, slot_of(hashes[first + n], hash_slot_num)))
    same_but(cursors, old(cursors), 0, {0})
""".format
claim(
    "rocketmq_index:newest_entries",
    FILE
    + """
        0 <= first <= last <= len(hashes)
        last - first <= len(cursors)
        each(0, len(hashes), lambda n: 0 <= hashes[n] <= 2147483647)
    """,
    SLOT_VALUES("last - first"),
    loops=(Loop(SLOT_VALUES("next_lane")),),
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
    laws="RMQIDX-36",
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
)
