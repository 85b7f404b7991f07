# SPDX-License-Identifier: Apache-2.0
"""What the rules of the proofs would translate wrongly is refused, or its proof fails.

Each small kernel here does not do what is claimed of it, or does it only where it is interpreted.
"""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from segproof_harness.claims.claim import KERNELS, Claim, Loop, define
from segproof_harness.claims.every_claim import CLAIMS

pytest.importorskip("z3", reason="not run: z3 is not installed")
from segproof_tests.proofs.conditions import Prover
from segproof_tests.proofs.forms import RefusedError

HEAD = """
import functools
from collections.abc import Iterable
from segproof.kernels.dispatch import kernel
Bytes = bytes | memoryview
LIMIT, BIG, ALL = 1, 2**64, -1
"""
WRITES = """
def other(rows: memoryview) -> int:
    rows[1] = 7
    return 0
"""
WRITING = Claim("", "len(rows) >= 2", "rows[1] == 7\nresult == 0", changes=("rows",))
BYTE = Claim("", "len(data) > 1", "result == data[0]")
TOYS: dict[str, tuple[Any, ...]] = {
    "nested loops over one name": (
        """
def toy() -> int:
    seen = 0
    for n in range(2):
        for n in range(3):
            seen += 1
    return seen""",
        Claim("", "", "result == 3"),
    ),
    "a variable named as the bound of a loop": (
        """
def toy() -> int:
    seen = 0
    for n in range(2):
        end_n = 0
        seen += 1
    return seen + end_n""",
        Claim("", "", "result == 1"),
    ),
    "`and` as a number": (
        """
def toy(n: int) -> int:
    return (n and 5) + 0""",
        Claim("", "n == 7", "result == 1"),
    ),
    "a loop whose test writes": (
        """
def other(rows: memoryview) -> int:
    rows[0] += 1
    return 1
def toy(rows: memoryview, n: int) -> None:
    while other(rows) > 0 and n > 0:
        n -= 1""",
        Claim(
            "", "len(rows) > 0\nrows[0] < 50", "rows[0] == old(rows)[0] + 1",
            loops=(Loop("True", "n"),), changes=("rows",),
        ),
        Claim(
            "", "len(rows) > 0\nrows[0] < 99", "rows[0] == old(rows)[0] + 1\nresult == 1",
            changes=("rows",),
        ),
    ),
    "a ghost beyond 64 bits": (
        """
@kernel
def toy(limit: int) -> int:
    n = 0
    while n < limit:
        n += 1
    return n""",
        Claim(
            "", "0 <= limit", "result <= 1",
            loops=(
                Loop(
                    "0 <= n <= limit\nghost == n * 9223372036854775807", "limit - n",
                    {"ghost": ("0", "ghost + 9223372036854775807")},
                ),
            ),
        ),
    ),
    "a ghost named as a variable": (
        """
def toy(n: int) -> int:
    for i in range(2):
        pass
    return n""",
        Claim("", "", "result == 7", loops=(Loop("n == 7", "", {"n": ("7", "7")}),)),
    ),
    "a number of 65 bits": (
        """
@kernel
def toy() -> int:
    return 9223372036854775808 - 1""",
        Claim("", "", "result == 9223372036854775807"),
    ),
    "a constant of 65 bits": (
        """
@kernel
def toy() -> int:
    return BIG % 10""",
        Claim("", "", "result == 6"),
    ),
    "int64 where bytes are claimed": (
        """
def other(data: Bytes) -> int:
    return data[0]
def toy(data: memoryview) -> int:
    return other(data)""",
        Claim("", "len(data) > 1", "0 <= result <= 255"),
        Claim("", "len(data) > 1", "0 <= result <= 255"),
    ),
    "a large number for compiled code": (
        """
@kernel
def other(n: int) -> int:
    return n
def toy(n: int) -> int:
    return other(n)""",
        Claim("", "", "is_i64(result)"),
        Claim("", "", "is_i64(result)\nresult == n"),
    ),
    "a number for a bool": (
        """
def other(flag: bool) -> int:
    return 1 if flag == True else 0
def toy() -> int:
    return other(2)""",
        Claim("", "", "result == 1"),
        Claim("", "", "implies(flag, result == 1)"),
    ),
    "one array twice": (
        """
def other(a: memoryview, b: memoryview) -> int:
    a[0] = 1
    return b[0]
def toy(rows: memoryview) -> int:
    rows[0] = 0
    return other(rows, rows)""",
        Claim("", "len(rows) > 0", "result == 0", changes=("rows",)),
        Claim("", "len(a) > 0\nlen(b) > 0", "result == b[0]", changes=("a",)),
    ),
    "a second name of an array": (
        """
def toy(rows: memoryview, others: memoryview) -> None:
    rows = others
    rows[0] = 1""",
        Claim("", "len(others) > 0", "others[0] == old(others)[0]", changes=("rows",)),
    ),
    "a number in place of an array": (
        """
def toy(rows: memoryview) -> None:
    rows = 5""",
        Claim("", "", "rows == 5"),
    ),
    "an index that writes": (
        WRITES
        + """
def toy(rows: memoryview) -> None:
    rows[other(rows)] = 5""",
        Claim("", "len(rows) >= 2\nrows[1] == 0", "rows[1] == 0", changes=("rows",)),
        WRITING,
    ),
    "an argument that writes": (
        WRITES
        + """
def third(rows: memoryview, n: int) -> int:
    return rows[1]
def toy(rows: memoryview) -> int:
    return third(rows, other(rows))""",
        Claim("", "len(rows) >= 2\nrows[1] == 0", "result == 0", changes=("rows",)),
        WRITING,
        Claim("", "len(rows) >= 2", "result == rows[1]"),
    ),
    "a keyword": (
        """
def other(n: int) -> int:
    return -n
def toy() -> int:
    return max(1, 2, key=other)""",
        Claim("", "", "result == 2"),
    ),
    "the largest of one number": (
        """
def toy(n: int) -> int:
    return max(n)""",
        Claim("", "", "result == n"),
    ),
    "a compiled sum": (
        """
@kernel
def toy(rows: memoryview) -> int:
    return sum(rows)""",
        Claim("", "", "result == sum(rows)"),
    ),
    "compared pairs": (
        """
def toy(n: int, m: int) -> bool:
    return (n, 1) == (m, 1)""",
        Claim("", "", "not result"),
    ),
    "the difference of two bytes": (
        """
@kernel
def toy(data: Bytes) -> int:
    return data[0] - data[1]""",
        Claim("", "len(data) > 1", "result == data[0] - data[1]"),
    ),
    "the difference of two bytes in variables": (
        """
@kernel
def toy(data: Bytes) -> int:
    a = data[0]
    b = a if a > 3 else data[1]
    return data[1] - b""",
        Claim("", "len(data) > 1", "result <= 255"),
    ),
    "the negative of a byte": (
        """
@kernel
def toy(data: Bytes) -> int:
    for one in data:
        return -one
    return 0""",
        Claim("", "", "-255 <= result <= 0"),
    ),
    "a byte that is returned": (
        """
@kernel
def other(data: Bytes) -> int:
    return data[0]
@kernel
def toy(data: Bytes) -> int:
    return 0 - other(data) - data[1]""",
        Claim("", "len(data) > 1", "result <= 0"),
        BYTE,
    ),
    "a far shift": (
        """
@kernel
def toy(n: int) -> int:
    return n >> 64""",
        Claim("", "n >= 0", "result == 0"),
    ),
    "a mask of all bits": (
        """
def toy(n: int) -> int:
    return n & ALL""",
        Claim("", "", "result == 0"),
    ),
    "bytes that no buffer holds": (
        """
def toy(data: Bytes) -> int:
    first = data[0]
    return 0""",
        Claim("", "len(data) > 0\neach(0, len(data), lambda n: data[n] > 300)", "result == 5"),
    ),
    "a word that knows no length": (
        """
def other(data: Bytes) -> int:
    return len(data)
def toy(a: Bytes, b: Bytes) -> int:
    return other(a) - other(b)""",
        Claim("", "len(a) == 1\nlen(b) == 2\nforall(lambda n: a[n] == b[n])", "result == 7"),
        Claim("", "", "result == len(data)", word="size"),
    ),
    "a range that ends at its own number": (
        """
def toy(n: int) -> None:
    pass""",
        Claim("", "n == 5", "each(0, n, lambda n: n < 0)"),
    ),
    "an earlier value of a number that counts": (
        """
def toy(n: int) -> None:
    pass""",
        Claim("", "n == 5", "each(0, 5, lambda n: old(n) == 5)"),
    ),
    "a local name in a claim": (
        """
def toy() -> int:
    LIMIT = 5
    return LIMIT""",
        Claim("", "", "result == LIMIT"),
    ),
    "a local name without a value": (
        """
def toy(n: int) -> int:
    if n > 0:
        LIMIT = 1
    return LIMIT""",
        Claim("", "", "result == 1"),
    ),
    "a tuple as a truth": (
        """
def toy() -> int:
    return 1 if () else 2""",
        Claim("", "", "result == 1"),
    ),
    "a byte of 300": (
        """
def toy(data: bytearray) -> None:
    data[0] = 300""",
        Claim("", "len(data) > 0", "data[0] == 300", changes=("data",)),
    ),
    "a format that is not known": (
        """
def toy(data: memoryview) -> None:
    data[0] = 300""",
        Claim("", "len(data) > 0", "True", changes=("data",), formats={"data": "b"}),
    ),
    "a negative divisor in a claim": (
        """
def toy() -> int:
    return -3""",
        Claim("", "", "result == 7 // -2"),
    ),
    "a bool that becomes a number": (
        """
def toy(n: int) -> int:
    found = n < 0
    while n > 0:
        found = 5
        n -= 1
    return found + 0""",
        Claim("", "", "result <= 1", loops=(Loop("True", "n"),)),
    ),
    "a result that is missing": (
        """
def other(n: int) -> int:
    if n > 0:
        return 1
def toy() -> int:
    return other(0)""",
        Claim("", "", "result == result"),
        Claim("", "", "implies(n > 0, result == 1)"),
    ),
    "a decorator": (
        """
def negated(function):
    return functools.wraps(function)(lambda n: -function(n))
@negated
def toy(n: int) -> int:
    return n""",
        Claim("", "", "result == n"),
    ),
    "an iterable that is used up": (
        """
def toy(pairs: Iterable[tuple[int, int]]) -> int:
    for a, b in pairs:
        pass
    for a, b in pairs:
        return 1
    return 0""",
        Claim(
            "", "", "implies(len(pairs) > 0, result == 1)",
            loops=(Loop(), Loop("next_item == 0")),
        ),
    ),
    "one ghost of two loops": (
        """
def toy(n: int) -> int:
    seen = 0
    for i in range(1):
        pass
    for k in range(n):
        seen = 1
        for j in range(1):
            pass
    return seen""",
        Claim(
            "", "", "result == 0",
            loops=(
                Loop("g == 0", ghosts={"g": ("0", "0")}),
                Loop("seen == g"),
                Loop("g == 1", ghosts={"g": ("1", "1")}),
            ),
        ),
    ),
}  # fmt: skip


@pytest.fixture(name="prover")
def _prover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes a module of kernels and their claims, and proves each."""

    def prove(source: str, *claims: Claim) -> Prover:
        path, prover = tmp_path / "toys.py", Prover()
        path.write_text(HEAD + source, encoding="ascii")
        spec = importlib.util.spec_from_file_location(f"{KERNELS}toys", path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        names = ["toys:toy", "toys:other", "toys:third"][: len(claims)]
        for name, claim in zip(names, claims, strict=True):
            monkeypatch.setitem(CLAIMS, name, claim)
        for name in names:
            prover.prove(name)
        return prover

    return prove


@pytest.mark.parametrize("toy", TOYS)
def test_a_false_claim_is_not_proved(prover: Any, toy: str) -> None:
    """The kernel is refused, with the line, or a condition fails."""
    told = ""
    try:
        failures = prover(*TOYS[toy]).failures
    except RefusedError as error:
        told = str(error)
    print(told or failures)
    assert "line " in told or failures


@pytest.mark.parametrize(
    ("head", "meaning", "why"),
    [
        ("i32(x)", "x", "means something already"),
        ("each(x)", "x", "means something already"),
        ("key(d)", "d", "means something already"),
        ("far(x)", "x + LIMIT", "a name is no parameter"),
        ("was(rows)", "old(rows)[0]", "a name is no parameter"),
        ("low(n)", "each(0, 3, lambda n: n > 1)", "means two things"),
        ("grows(n)", "grows(n - 1) + 1", "the form of a recursive word"),
        ("grows(n)", "0 if n <= 0 else grows(n) + 1", "the form of a recursive word"),
        ("grows(n)", "grows(n - 1) if n <= 0 else 0", "the form of a recursive word"),
    ],
)
def test_a_word_that_may_contradict_itself_is_refused(head: str, meaning: str, why: str) -> None:
    """No function is what it says, or what it says depends on the place where it stands."""
    with pytest.raises(ValueError, match=why):
        define(head, meaning)


def test_words_do_not_speak_of_each_other_in_a_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second word of two is refused, since the first one speaks of it."""
    monkeypatch.setattr("segproof_harness.claims.claim.WORDS", {})
    define("first(n)", "second(n) + 1")
    with pytest.raises(ValueError, match="second is used before it is defined"):
        define("second(n)", "0 if n <= 0 else second(n - 1) + first(n)")
