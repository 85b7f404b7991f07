# SPDX-License-Identifier: Apache-2.0
"""The index file: its bytes, what a put keeps, where a chain ends, who holds it.

Every number here was answered by the JVM's classes, but for what says segproof.
"""

from typing import Any

import pytest

from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.language.states import apply, opened, outcome_of
from segproof_model.releases import NEWEST_ROCKETMQ, RELEASES, SEGPROOF
from segproof_model.rocketmq.format.index_file import IndexEntry, IndexFile, index_file_size
from segproof_model.rocketmq.format.index_header import IndexHeader

INT64_MAX = 2**63 - 1
INT32_MAX = 2**31 - 1
CORRUPT, UNMAPPED = Raised(ErrorKind.CORRUPT_INDEX), Raised(ErrorKind.UNMAPPED)
INDEX_ERROR, INVALID = Raised(ErrorKind.INDEX_ERROR), Raised(ErrorKind.INVALID_ARGUMENT)


def new_file(
    slots: int = 1, entries: int = 8, *ends: int, release: Release = NEWEST_ROCKETMQ
) -> IndexFile:
    """Return a file that was made."""
    return release.kind(IndexFile)(Files(), "7", slots, entries, *ends)


def put(file: IndexFile, *puts: tuple[str, int, int]) -> IndexFile:
    """Put entries, which are taken, and return the file."""
    assert [True] * len(puts) == [file.put_key(*one) for one in puts]
    return file


def chained(times: list[int], release: Release = NEWEST_ROCKETMQ) -> IndexFile:
    """Return a file with one entry of the key "k" for each time, its offset the entry's number."""
    puts = [("k", number, time) for number, time in enumerate(times, 1)]
    return put(new_file(1, len(times) + 1, release=release), *puts)


def with_number(file: IndexFile, position: int, value: int) -> IndexFile:
    """Let another int32 stand at a position of a file's bytes."""
    image = file.image[:position] + value.to_bytes(4, "big", signed=True)
    file.files.write(file.file_name, image + file.image[position + 4 :])
    return file


def slot(file: IndexFile, value: int) -> IndexFile:
    """Let slot 0 have another value."""
    return with_number(file, 40, value)


def previous(file: IndexFile, index: int, value: int) -> IndexFile:
    """Let an entry follow another one."""
    return with_number(file, file.entry_position(index) + 16, value)


def entry(file: IndexFile, index: int) -> IndexEntry:
    """Return an entry, which lies in the file."""
    found = file.entry(index)
    assert found is not None
    return found


def select(
    file: IndexFile, key: str | None = "k", begin: int = 0, end: int = INT64_MAX, most: int = 64
) -> Any:
    """Return the outcome of a query."""
    return outcome_of(file.select_phy_offset, (), key, most, begin, end)


# --- chains --------------------------------------------------------------------------------------


CHAIN = [1000, 2000, 3000, 4000]


@pytest.mark.parametrize("value", [-1, -(2**31), 6, INT32_MAX])
def test_slot_without_an_entry(value: int) -> None:
    """A slot value that is none finds nothing, and a put begins a new chain."""
    assert () == select(slot(chained(CHAIN), value))
    assert CORRUPT == select(slot(chained(CHAIN, SEGPROOF), value))
    for release in (NEWEST_ROCKETMQ, SEGPROOF):
        file = put(new_file(1, 8, release=release), ("k", 1, 1), ("k", 2, 2))
        put(slot(file, value), ("k", 3, 3))
        assert (0, 2) == (entry(file, 3).prev_index, file.hash_slot_count)


def test_slot_of_the_next_entry() -> None:
    """It is followed into zeros, which are an entry of hash 0; a put makes it its own loop."""
    file = slot(put(new_file(1, 8), ("", 50, 1000)), 2)
    assert ((0,), ()) == (select(file, ""), select(file, "k"))
    put(file, ("k", 60, 1000))
    assert (2, 1) == (entry(file, 2).prev_index, file.hash_slot_count)
    assert (60,) == select(file)
    ours = slot(put(new_file(1, 8, release=SEGPROOF), ("", 50, 1000)), 2)
    assert CORRUPT == select(ours, "")
    put(ours, ("k", 60, 1000))
    assert (0, 2) == (entry(ours, 2).prev_index, ours.hash_slot_count)
    older = slot(put(new_file(1, 8, release=RELEASES["rocketmq-4.7.0"]), ("", 50, 1000)), 2)
    assert 2 == put(older, ("k", 60, 1000)).hash_slot_count


def test_cycles() -> None:
    """One that matches is walked until the list is full; another for ever."""
    file = previous(chained(CHAIN), 1, 4)
    assert (4, 3, 2, 1, 4, 3, 2, 1, 4, 3) == select(file, most=10)
    assert Raised(ErrorKind.OUT_OF_MEMORY) == select(file, most=INT32_MAX)
    assert Raised(ErrorKind.ENDLESS) == select(file, "x") == select(file, end=999)
    assert (4, 3, 2) == select(file, begin=2000)
    looped = previous(chained(CHAIN), 2, 2)
    assert ((4, 3, 2), ()) == (select(looped), select(looped, "x"))


@pytest.mark.parametrize(("index", "value"), [(1, 4), (2, 2), (2, 3), (2, -1)])
def test_segproof_refuses_cycles(index: int, value: int) -> None:
    """Numbers must fall; where the walk ends before, nothing is wrong."""
    file = previous(chained(CHAIN, SEGPROOF), index, value)
    assert CORRUPT == select(file) == select(file, "x")
    assert ((4,), (4, 3)) == (select(file, most=1), select(file, begin=3000))


def test_negative_seconds() -> None:
    """The walk ends before the entry; the greatest are only too far."""
    for release, expected in ((NEWEST_ROCKETMQ, (4, 3)), (SEGPROOF, CORRUPT)):
        file = chained(CHAIN, release)
        assert expected == select(with_number(file, file.entry_position(2) + 12, -1))
        far = with_number(file, file.entry_position(2) + 12, INT32_MAX)
        assert (4, 3, 1) == select(far, end=9000)


def test_entry_outside_of_the_file() -> None:
    """An index error ends the walk, and nobody holds the file longer for it."""
    for release, expected in ((NEWEST_ROCKETMQ, (4,)), (SEGPROOF, CORRUPT)):
        file = with_number(previous(chained(CHAIN, release), 4, 5), 36, 7)
        file.load()
        assert (7, True) == (file.index_count, file.is_write_full)
        if release is SEGPROOF:
            slot(file, 6)
        assert (expected, 1) == (select(file), file.ref_count)


def test_address_that_wraps() -> None:
    """Entry 214748365 lies 4 bytes behind entry 0, in 32 bits."""
    file = with_number(chained(CHAIN), 36, INT32_MAX)
    file.load()
    assert file.entry_position(214748365) == file.entry_position(0) + 4
    slot(file, 214748365)
    assert file.entry(214748365) is not None
    assert () == select(file)


# --- keys that are none, and who holds the file --------------------------------------------------


def test_null_key(rocketmq: Release) -> None:
    """It raises; a query then holds the file for ever, until a destroy forces it."""
    null, file = Raised(ErrorKind.NULL), new_file(release=rocketmq)
    assert (
        null == outcome_of(file.put_key, None, 1, 1) == outcome_of(file.index_key_hash_method, None)
    )
    assert (null, 2) == (select(file, None), file.ref_count)
    assert not file.destroy(1000)
    assert (1, False, ["7"]) == (file.ref_count, file.is_available, list(file.files))
    assert ((), True) == (select(file), file.put_key("k", 1, 1))
    file.files.now_ms = 999
    assert (False, 1) == (file.destroy(1000), file.ref_count)
    file.files.now_ms = 1000
    assert (True, -1002, []) == (file.destroy(1000), file.ref_count, list(file.files))


def test_null_key_in_segproof() -> None:
    """Nothing is changed by it."""
    file, null = new_file(release=SEGPROOF), Raised(ErrorKind.NULL)
    assert Step(file, null) == apply(file, "put_key", None, 1, 1)
    assert Step(file, null) == apply(file, "select_phy_offset", (), None, 1, 0, 0)


def test_destroyed_file(any_rocketmq: Release) -> None:
    """It is gone, and so are its bytes; destroying it again succeeds."""
    full, gone = chained(CHAIN, any_rocketmq), chained(CHAIN[:3], any_rocketmq)
    gone.index_num = 9
    for file in (full, gone):
        assert file.destroy(0)
        assert (b"", 0, False) == (file.image, file.ref_count, file.is_available)
    ours = any_rocketmq is SEGPROOF
    assert UNMAPPED == outcome_of(gone.put_key, "k", 1, 1) == outcome_of(gone.load)
    assert (UNMAPPED if ours else False) == outcome_of(full.put_key, "k", 1, 1)
    assert (UNMAPPED if ours else ()) == select(gone)
    assert Step(gone) == apply(gone, "flush")
    assert True is apply(gone, "destroy", 0).outcome


def test_shutdown() -> None:
    """The header is written; upstream the file does not know that it is closed."""
    dead = new_file()
    dead.shutdown()
    assert (1, True, b"\0\0\0\1") == (dead.ref_count, dead.is_available, dead.image[36:40])
    outcomes = select(dead), outcome_of(dead.flush), outcome_of(dead.shutdown)
    assert (UNMAPPED,) * 3 == outcomes
    ours = new_file(release=SEGPROOF)
    ours.close()
    assert (0, False, UNMAPPED) == (ours.ref_count, ours.is_available, select(ours))
    ours.shutdown()
    for closed in (dead, ours):
        assert (True, []) == (closed.destroy(0), list(closed.files))


# --- opening -------------------------------------------------------------------------------------


def test_existing_file() -> None:
    """Opened, it looks empty until it is loaded; segproof loads it."""
    image = put(new_file(), ("k", 1, 1000), ("k", 2, 2000)).image
    plain, other = (IndexFile(Files({"7": image}), "7", 1, 8) for _ in range(2))
    assert (IndexHeader(), image, ()) == (plain.header, plain.image, select(plain))
    plain.load()
    assert (2, 1) == select(plain)
    put(other, ("k", 9, 3000))
    assert (9, 2) == (entry(other, 1).phy_offset, other.index_count)
    ours = SEGPROOF.kind(IndexFile)(Files({"7": image}), "7", 1, 8)
    assert (2, 1) == select(ours)


@pytest.mark.parametrize("count", [0, -5])
def test_loading_mends_the_count(count: int) -> None:
    """In memory alone; the next put overwrites the first entry."""
    file = with_number(put(new_file(), ("k", 1, 1000), ("k", 2, 2000)), 36, count)
    with_number(file, 32, -7).load()
    assert (1, -7) == (file.index_count, file.hash_slot_count)
    assert count.to_bytes(4, "big", signed=True) == file.image[36:40]
    put(file, ("k", 9, 3000))
    header = file.begin_phy_offset, file.hash_slot_count
    assert (9, 9, -6) == (entry(file, 1).phy_offset, *header)


@pytest.mark.parametrize("length", [0, 10, 300])
def test_other_lengths(length: int) -> None:
    """A short file grows, a long one stays; segproof refuses both, unless the file is empty."""
    data = b"\xff" * length
    assert data.ljust(204, b"\0") == IndexFile(Files({"7": data}), "7", 1, 8).image
    strict = opened(SEGPROOF.kind(IndexFile), Files({"7": data}), "7", 1, 8)
    if length == 0:
        assert None is strict.outcome
    else:
        assert Step(Files({"7": data}), CORRUPT) == strict


@pytest.mark.parametrize(
    "name", ["", "x", "1x", "--1", "1.0", " 1", str(2**63), "a/", "\U0001d7d8"]
)
def test_name_that_is_no_number(name: str, any_rocketmq: Release) -> None:
    """It raises before anything is created."""
    step = opened(any_rocketmq.kind(IndexFile), Files(), name, 1, 8)
    assert Step(Files(), Raised(ErrorKind.NUMBER_FORMAT)) == step


@pytest.mark.parametrize("name", ["+5", "-5", "index/5", "\u0663", str(-(2**63)), "007"])
def test_name_that_is_a_number(name: str) -> None:
    """As Java reads numbers, in any script."""
    assert name == IndexFile(Files(), name, 1, 8).file_name


@pytest.mark.parametrize("name", ["index/5", "6/7"])
def test_name_of_a_directory(name: str, any_rocketmq: Release) -> None:
    """It cannot be opened, nor what would lie below a file."""
    files = Files({"index/5/x": b"", "6": b""})
    step = opened(any_rocketmq.kind(IndexFile), files, name, 1, 8)
    assert Step(files, Raised(ErrorKind.IO_ERROR)) == step


def test_sizes_that_wrap() -> None:
    """A negative size raises when the file is there; a small one takes nothing."""
    negative = opened(IndexFile, Files(), "7", 2**30 - 100, 2**30)
    assert Step(Files({"7": b""}), INVALID) == negative
    small = IndexFile(Files(), "7", 10, 214748365)
    assert (84, 84) == (small.file_size, index_file_size(10, 214748365))
    assert not small.put_key("T#a", 1, 1)


@pytest.mark.parametrize(
    "numbers", [(0, 8), (1, 1), (-1, 8), (10, 214748365), (2**30 - 100, 2**30), (1, 2**27)]
)
def test_segproof_refuses_sizes(numbers: tuple[int, int]) -> None:
    """Nothing is created."""
    assert Step(Files(), INVALID) == opened(SEGPROOF.kind(IndexFile), Files(), "7", *numbers)


def test_file_without_slots() -> None:
    """Dividing by 0 is an error, and a query then holds the file."""
    file = new_file(0, 8)
    assert Raised(ErrorKind.ARITHMETIC) == outcome_of(file.put_key, "k", 1, 1)
    assert (Raised(ErrorKind.ARITHMETIC), 2) == (select(file), file.ref_count)


def test_file_without_a_whole_header() -> None:
    """Negative numbers of slots can give one; each use of the header then fails on its way."""
    assert (44, None) == (
        index_file_size(-9, 2),
        opened(IndexFile, Files(), "7", -9, 2, 5, 6).outcome,
    )
    seeded = opened(IndexFile, Files(), "7", -14, 2, 5, 6)
    after: Any = seeded.after
    assert (INDEX_ERROR, 24) == (seeded.outcome, len(after.image("7")))
    file, older = (
        new_file(-14, 2, release=RELEASES[name]) for name in ("rocketmq-5.5.1", "rocketmq-5.3.3")
    )
    assert (24, INDEX_ERROR) == (file.file_size, outcome_of(file.load))
    assert (INDEX_ERROR, 2) == (outcome_of(file.flush), file.ref_count)
    assert (None, False, 3) == (outcome_of(file.shutdown), file.is_mapped, file.ref_count)
    assert (INDEX_ERROR, True, 2) == (outcome_of(older.shutdown), older.is_mapped, older.ref_count)
