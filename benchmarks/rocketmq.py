# SPDX-License-Identifier: Apache-2.0
"""Rows about RocketMQ's index files: entries put and keys looked up, beside IndexFile in the JVM.

Files of the default size (5,000,000 slots, 20,000,000 entries), keys of 26 characters that lie
anywhere in them: "TopicTest#" and 16 hexadecimal digits of a mixed counter. The JVM's strings are
created before each pass, so that no hash is cached; each pass of puts fills a new file.
"""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.contestants import ROCKETMQ, Contestant, NotRunError, Passes, ours
from benchmarks.measuring import Bench, race, rate, say, seconds_each
from benchmarks.table import Cell, Goal, NotRun, Row, Section
from segproof.rocketmq.index_file import IndexFile

HASH_SLOT_NUM, INDEX_NUM = 5_000_000, 20_000_000
KEY_BYTES = 26
PUTS, QUERIES, QUICK_PART = 5_000_000, 500_000, 10
INTERPRETED_PART = 50
"""Interpreted kernels get this part of the keys."""
SINGLE_CALLS = 100_000
FIRST_STORE_TIMESTAMP = 1_700_000_000_000
MESSAGE_BYTES = 256
"""Entry n is of offset n times this."""
_MILLIONS, _US = 1e6, 1e-6
_RELEASE = "RocketMQ 5.5.1"
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
Start = Callable[[], Contestant]


def key_rows(first: int, count: int) -> NDArray[np.bytes_]:
    """Return the keys number first..first+count-1, numpy's bytes of 26."""
    mixed = np.arange(first, first + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    rows = np.empty((count, KEY_BYTES), np.uint8)
    rows[:, :10] = np.frombuffer(b"TopicTest#", np.uint8)
    for place in range(16):
        nibbles = mixed >> np.uint64(60 - 4 * place) & np.uint64(15)
        rows[:, 10 + place] = _DIGITS[nibbles.astype(np.intp)]
    return rows.view(f"S{KEY_BYTES}").ravel()


def read_keys(path: str | Path, part: int = 1) -> NDArray[np.bytes_]:
    """Return the first so many parts of the keys of a file."""
    keys = np.fromfile(path, f"S{KEY_BYTES}")
    return keys[: len(keys) // part]


def write_index(path: Path, keys: NDArray[np.bytes_]) -> None:
    """Write the file that is asked for keys."""
    with IndexFile.open(path, HASH_SLOT_NUM, INDEX_NUM, create=True) as file:
        numbers = np.arange(len(keys))
        file.put_keys(keys, numbers * MESSAGE_BYTES, numbers + FIRST_STORE_TIMESTAMP)


def with_form(form: str) -> None:
    """Check that keys can have this form here. Raises: NotRunError."""
    if form == "arrow" and importlib.util.find_spec("pyarrow") is None:
        raise NotRunError("pyarrow is not installed (the extra `spark`)")


class _Sides:
    """Both sides of a row, with the parts of a name of a mode and the words behind it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def theirs(self, mode: str, *words: object) -> Start:
        return lambda: self.bench.java.contestant(mode, 2, *words, profile=ROCKETMQ)

    def ours(self, kernels: str, mode: str, *words: object, form: str = "numpy") -> Start:
        def start() -> Contestant:
            with_form(form)
            return ours(kernels, mode, 1, *words)

        return start

    def race(self, starts: dict[str, Start], passes: int) -> dict[str, Passes | NotRun]:
        return race(starts, passes, wait=not self.bench.quick)


def sections(bench: Bench) -> list[Section]:
    """Measure puts, lookups, single calls, and opening."""
    puts, queries = (n // QUICK_PART if bench.quick else n for n in (PUTS, QUERIES))
    keys, index = bench.folder / "keys", bench.folder / "20231114221320000"
    rows = key_rows(0, puts)
    rows.tofile(keys)
    write_index(index, rows)
    hits, misses = bench.folder / "hits", bench.folder / "misses"
    rows[np.random.default_rng(4).integers(0, puts, queries)].tofile(hits)
    key_rows(1 << 40, queries).tofile(misses)
    sides = _Sides(bench)
    many = Section(
        "RocketMQ: many keys at once",
        f"Millions of keys a second: {puts} puts into a new file of the default size "
        f"({HASH_SLOT_NUM} slots, {INDEX_NUM} entries), {queries} lookups of keys that are there, "
        "in random order, and of keys that are not; the JVM calls `putKey` and `selectPhyOffset` "
        "for each. Same keys, same bytes in the file, same answers. Keys of 26 characters: a numpy "
        "array of bytes, an Arrow array, a list of texts. Interpreted kernels, a fiftieth of them.",
        _RELEASE,
        [*_put_rows(sides, keys, puts), *_select_rows(sides, index, (hits, misses), queries)],
    )
    single = Section(
        "RocketMQ: one key from Python",
        f"A call of `put_key` and of `select_phy_offset`, median of passes over {SINGLE_CALLS} "
        "random keys, and opening a file of the default size; the JVM opens and loads it.",
        _RELEASE,
        [*_single_rows(sides, index, hits, min(SINGLE_CALLS, queries)), _opening(sides, index)],
    )
    return [many, single, _verifying(sides)]


def _put_rows(sides: _Sides, keys: Path, count: int) -> Iterator[Row]:
    say("RocketMQ, put_keys")
    places = {name: sides.bench.folder / f"puts-{name}" for name in ("theirs", *_FORMS, "slow")}
    starts = {"theirs": sides.theirs("index-put", places["theirs"], keys)}
    for form in _FORMS:
        words = ("index-put", places[form], keys, form)
        starts[form] = sides.ours("compiled", *words, form=form)
    results = sides.race(starts, sides.bench.passes)
    slow = sides.ours("interpreted", "index-put", places["slow"], keys, "numpy", INTERPRETED_PART)
    interpreted = sides.race({"slow": slow}, 3)["slow"]
    for form, shape in _FORMS.items():
        cells: dict[str, Cell] = {
            "theirs": rate(results["theirs"], count, _MILLIONS),
            "compiled": rate(results[form], count, _MILLIONS),
        }
        if form == "numpy":
            cells["interpreted"] = rate(interpreted, count // INTERPRETED_PART, _MILLIONS)
        goal = None if form == "list" else Goal(2, is_ratio=True)
        yield _row(f"put_keys, {shape}", "M/s", cells, goal, higher_is_better=True)


_FORMS = {"numpy": "numpy bytes", "arrow": "Arrow strings", "list": "a list of texts"}


def _select_rows(
    sides: _Sides, index: Path, queries: tuple[Path, Path], count: int
) -> Iterator[Row]:
    for what, path in zip(("hits", "misses"), queries, strict=True):
        say(f"RocketMQ, select_phy_offset_many, {what}")
        results = sides.race(
            {
                "theirs": sides.theirs("index-select", index, path),
                "compiled": sides.ours("compiled", "index-select", index, path),
            },
            2 * sides.bench.passes + 1,
        )
        slow = sides.ours("interpreted", "index-select", index, path, INTERPRETED_PART)
        cells = {name: rate(result, count, _MILLIONS) for name, result in results.items()}
        interpreted = sides.race({"slow": slow}, 3)["slow"]
        cells["interpreted"] = rate(interpreted, count // INTERPRETED_PART, _MILLIONS)
        goal = Goal(2, is_ratio=True)
        words = f"select_phy_offset_many, {what}"
        yield _row(words, "M/s", cells, goal, higher_is_better=True)


def _single_rows(sides: _Sides, index: Path, queries: Path, count: int) -> Iterator[Row]:
    kernels = ("compiled", "interpreted")
    places = {name: sides.bench.folder / f"each-{name}" for name in kernels}
    for what, mode, paths in (
        ("put_key", "index-put-each", places),
        ("select_phy_offset", "index-select-each", dict.fromkeys(kernels, index)),
    ):
        say(f"RocketMQ, {what} one by one")
        starts = {name: sides.ours(name, mode, paths[name], queries, count) for name in kernels}
        results = sides.race(starts, sides.bench.passes)
        cells = {name: seconds_each(result, count, _US) for name, result in results.items()}
        yield _row(what, "us", cells, Goal(5, is_ratio=False, at_least=False))


def _opening(sides: _Sides, index: Path) -> Row:
    say("RocketMQ, opening")
    starts = {
        "theirs": sides.theirs("index-open", index),
        "compiled": sides.ours("compiled", "index-open", index),
    }
    results = sides.race(starts, 2 * sides.bench.passes + 1)
    cells = {name: seconds_each(result, 1, _US) for name, result in results.items()}
    return _row("open", "us", cells, Goal(1000, is_ratio=False, at_least=False))


def _verifying(sides: _Sides) -> Section:
    """Measure verify of a file without room for one more entry."""
    say("RocketMQ, verify")
    count = (INDEX_NUM if not sides.bench.quick else PUTS // QUICK_PART) - 1
    path = sides.bench.folder / "20231114221330000"
    write_index(path, key_rows(0, count))
    starts = {name: sides.ours(name, "verify", path) for name in ("compiled", "interpreted")}
    results = sides.race(starts, sides.bench.passes)
    cells = {name: seconds_each(result, 1, 1.0) for name, result in results.items()}
    return Section(
        "RocketMQ: verify of an index file",
        f"A file of the default size with {count} entries, by itself, page cache warm. In RocketMQ "
        "there is no check to hold this against.",
        _RELEASE,
        [_row("verify", "s", cells, Goal(5, is_ratio=False, at_least=False))],
    )


def _row(
    what: str, unit: str, cells: dict[str, Cell], goal: Goal | None, higher_is_better: bool = False
) -> Row:
    sides = (cells.get("theirs"), cells["compiled"], cells.get("interpreted"))
    return Row(what, unit, *sides, goal, higher_is_better)
