# SPDX-License-Identifier: Apache-2.0
"""The words of the claims: big-endian numbers, varints, what rises, what a search must find."""

from segproof_harness.claims.claim import define

FAR = 2**61
"""Positions up to here can be added to without leaving 64 bits; no buffer is so long."""

define("u16(d, p)", "d[p] * 256 + d[p + 1]")
define("u32(d, p)", "((d[p] * 256 + d[p + 1]) * 256 + d[p + 2]) * 256 + d[p + 3]")
define("i16(d, p)", "(u16(d, p) + 32768) % 65536 - 32768")
define("i32(d, p)", "(u32(d, p) + 2147483648) % 4294967296 - 2147483648")
define("wrapped(x)", "(x + 9223372036854775808) % 18446744073709551616 - 9223372036854775808")
define("i64(d, p)", "wrapped(u32(d, p) * 4294967296 + u32(d, p + 4))")
# The four or eight bytes from p on are x.
define(
    "holds_int32(d, p, x)",
    " and ".join(f"d[p + {n}] == x // {256 ** (3 - n)} % 256" for n in range(4)),
)
define(
    "holds_int64(d, p, x)",
    " and ".join(f"d[p + {n}] == x // {256 ** (7 - n)} % 256" for n in range(8)),
)
# A null (length -1) or a slice behind start and up to end.
define(
    "is_slice(start, position, length, end)",
    "start < position and -1 <= length and position + max(length, 0) <= end",
)
define("is_i32(x)", "-2147483648 <= x <= 2147483647")
define("is_i64(x)", "-9223372036854775808 <= x <= 9223372036854775807")

# A varint of n bytes from p on.
define("zigzag(raw)", "raw // 2 if raw % 2 == 0 else -(raw // 2) - 1")
define("digit(d, p, n, i)", "d[p + i] % 128 if i < n else 0")
define(
    "raw5(d, p, n)",
    "digit(d, p, n, 0) + 128 * (digit(d, p, n, 1) + 128 * (digit(d, p, n, 2)"
    " + 128 * (digit(d, p, n, 3) + 128 * digit(d, p, n, 4))))",
)
define(
    "raw10(d, p, n)",
    "raw5(d, p, n) + 34359738368 * (digit(d, p, n, 5) + 128 * (digit(d, p, n, 6)"
    " + 128 * (digit(d, p, n, 7) + 128 * (digit(d, p, n, 8) + 128 * digit(d, p, n, 9)))))",
)
define("go_on(d, p, n)", "each(p, p + n, lambda i: d[i] >= 128)")

define("rises(keys, entries)", "pairs(0, entries, lambda i, j: keys[i] < keys[j])")
define(
    "is_lower(keys, entries, target, s)",
    "-1 <= s < entries and (s == -1 or keys[s] <= target)"
    " and (s == entries - 1 or keys[s + 1] > target)",
)
define("hash_of(d, n)", "0 if n <= 0 else (hash_of(d, n - 1) * 31 + d[n - 1]) % 4294967296")
define(
    "same_but(now, before, low, high)",
    "forall(lambda n: implies(n < low or n >= high, now[n] == before[n]))",
)
# Of so many puts into a file whose index count is 0 or 1, the last one that sets where it begins:
# a put does so as long as the count is at most 1 before it.
define("sets_begin_last(puts, index_count)", "min(puts - 1, 1 - index_count)")
define("sum_of(d, n)", "0 if n <= 0 else sum_of(d, n - 1) + d[n - 1]")


def buffer_part(position: str, behind: str = "end") -> str:
    """Return what a kernel requires that reads `buffer` from a position up to another one."""
    return f"""
        0 <= {position} <= {FAR}
        -{FAR} <= {behind} <= {FAR}
        {behind} <= len(buffer)
    """
