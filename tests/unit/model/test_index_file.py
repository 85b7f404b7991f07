# SPDX-License-Identifier: Apache-2.0
"""The model of an index file: its bytes, what a put keeps, where a chain ends, who holds it.

Every number here was answered by the JVM's classes, but for what says segproof.
"""

from dataclasses import replace
from typing import Any

import pytest

from segproof_model.directory import Directory
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import (
    ROCKETMQ_4_7_0,
    ROCKETMQ_5_3_3,
    ROCKETMQ_5_5_1,
    ROCKETMQ_PROFILES,
    SEGPROOF,
    Profile,
)
from segproof_model.rocketmq.index_file import IndexEntry, IndexFile, index_file_size
from segproof_model.rocketmq.index_header import IndexHeader
from segproof_model.rocketmq.reference_resource import ReferenceResource

EVERY = pytest.mark.parametrize("profile", [SEGPROOF, *ROCKETMQ_PROFILES], ids=lambda p: p.name)
INT64_MAX = 2**63 - 1
INT32_MAX = 2**31 - 1
CORRUPT, UNMAPPED = Raised(ErrorKind.CORRUPT_INDEX), Raised(ErrorKind.UNMAPPED)
GOLDEN = """
    0000018bcfe5687b 0000018bd50bc47b 0000000100000000 0000000100000400 00000003 00000006
    00000005 00000000 00000004 00000002
    0000000000000000 0000000000000000 00000000 00000000
    00013ff2 0000000100000000 00000000 00000000
    00013ff3 0000000100000100 00000000 00000000
    00013ff2 0000000100000200 00000001 00000001
    05fe3b22 0000000100000300 00000000 00000003
    00013ff4 0000000100000400 00015180 00000000
""".replace("0000000000000000 0000000000000000 00000000 00000000", "00" * 20)


def opened(
    slots: int = 1, entries: int = 8, end_phy_offset: int = 0, end_timestamp: int = 0, **known: Any
) -> Any:
    """Return an open file; with `image`, on these bytes, loaded."""
    image = known.pop("image", None)
    directory = Directory() if image is None else Directory().write("7", image)
    ends = (end_phy_offset, end_timestamp)
    file: Any = IndexFile.open("7", slots, entries, *ends, directory=directory, **known).after
    return file if image is None else file.load().after


def put(file: Any, *puts: tuple[str, int, int]) -> Any:
    """Return the file after puts that are taken."""
    for key, phy_offset, store_timestamp in puts:
        step = file.put_key(key, phy_offset, store_timestamp)
        assert step.outcome is True
        file = step.after
    return file


def chained(times: list[int], **known: Any) -> Any:
    """Return a file with one entry of the key "k" for each time, its offset the entry's number."""
    puts = [("k", number, time) for number, time in enumerate(times, 1)]
    return put(opened(1, len(times) + 1, **known), *puts)


def with_number(file: Any, position: int, value: int) -> Any:
    """Return the file with another int32 at a position of its bytes."""
    image = file.image[:position] + value.to_bytes(4, "big", signed=True)
    image += file.image[position + 4 :]
    return replace(file, directory=file.directory.write(file.file_name, image))


def select(file: Any, key: str | None = "k", begin: int = 0, end: int = INT64_MAX) -> Any:
    """Return the outcome of a query for at most 64 offsets."""
    return file.select_phy_offset((), key, 64, begin, end).outcome


def slot(file: Any, value: int) -> Any:
    """Return the file with another value in slot 0."""
    return with_number(file, 40, value)


def previous(file: Any, index: int, value: int) -> Any:
    """Return the file with another previous index of an entry."""
    return with_number(file, file.entry_position(index) + 16, value)


@EVERY
def test_golden_file(profile: Profile) -> None:
    """Five puts and one too many; up to 4.7.0 each counts a slot."""
    file = opened(4, 6, profile=profile)
    assert (bytes(176), 1) == (file.image, file.index_count)
    file = put(
        file,
        ("T#a", 2**32, 1700000000123),
        ("T#b", 2**32 + 256, 1700000001122),
        ("T#a", 2**32 + 512, 1700000001123),
        ("U#\u4e2d\U0001f600", 2**32 + 768, 1699999999999),
        ("T#c", 2**32 + 1024, 1700086400123),
    )
    expected = bytearray.fromhex(GOLDEN)
    if profile.rmq_slot_count_each_put:
        expected[35] = 5
    assert expected == file.to_bytes()
    full = file.put_key("T#d", 0, 0)
    assert (False, file) == (full.outcome, full.after)
    assert file.is_write_full()
    assert (2**32 + 512, 2**32) == select(file, "T#a")
    assert (2**32 + 768,) == select(file, "U#\u4e2d\U0001f600")
    assert () == select(file, "T#a", 5, 4)
    assert [1, 2, 3, 4, 5] == [entry.index for entry in file.entries_list()]
    assert IndexEntry(2, 3, 81906, 2**32 + 512, 1, 1) == file.entry(3)
    assert [entry.slot for entry in file.entries_list()] == [2, 3, 2, 2, 0]


@EVERY
def test_second_golden_file(profile: Profile) -> None:
    """Two keys in turn, and a list that is not empty."""
    keys = ("k0", "k1", "k0", "k1", "k0")
    puts = [(key, 100 + n, 1000000 + 1500 * n) for n, key in enumerate(keys)]
    file = put(opened(10, 20, profile=profile), *puts)
    rows = [(row.key_hash, row.time_diff, row.prev_index) for row in file.entries_list()]
    assert rows == [(3365, 0, 0), (3366, 1, 0), (3365, 3, 1), (3366, 4, 2), (3365, 6, 3)]
    slots = 5 if profile.rmq_slot_count_each_put else 2
    assert IndexHeader(1000000, 1006000, 100, 104, slots, 6) == file.header
    assert file.header == IndexHeader.from_bytes(file.image)
    assert (104, 102, 100) == select(file, "k0")
    given = file.select_phy_offset((-1, -2), "k0", 3, 0, INT64_MAX)
    assert (-1, -2, 104) == given.outcome
    for max_num in (2, 0, -1):
        assert (-1, -2) == file.select_phy_offset((-1, -2), "k0", max_num, 0, INT64_MAX).outcome


@pytest.mark.parametrize(
    ("store_timestamp", "seconds"),
    [
        (5000, 0),
        (4001, 0),
        (6999, 1),
        (5000 + 1000 * INT32_MAX, INT32_MAX),
        (5000 + 1000 * INT32_MAX + 1000, INT32_MAX),
        (-(2**63), INT32_MAX),
        (-(2**63) + 4999, INT32_MAX),
        (-(2**63) + 5000, 0),
        (0, 0),
    ],
)
def test_seconds(store_timestamp: int, seconds: int) -> None:
    """Rounded toward 0, cut at both ends; the difference wraps at 64 bits."""
    file = put(opened(), ("k", 1, 5000), ("k", 2, store_timestamp))
    assert seconds == file.entry(2).time_diff
    assert (5000, store_timestamp) == (file.begin_timestamp, file.end_timestamp)


@pytest.mark.parametrize("first", [0, -1])
def test_begin_at_zero_keeps_no_seconds(first: int) -> None:
    """All later ones are then as old as the first."""
    file = put(opened(), ("k", 1, first), ("k", 2, 10**9))
    assert (first, 0) == (file.begin_timestamp, file.entry(2).time_diff)


def test_continued_file() -> None:
    """The first entry counts from the end of the file before, and reads later than it is."""
    file = opened(1, 8, 77, 2000000)
    assert (77, 77, 2000000, 2000000, 0, 1) == (
        file.begin_phy_offset,
        file.end_phy_offset,
        file.begin_timestamp,
        file.end_timestamp,
        file.hash_slot_count,
        file.index_count,
    )
    assert file.image[32:40] == bytes(8)
    file = put(file, ("k", 100, 2005000))
    assert (5, 2005000, 100) == (
        file.entry(1).time_diff, file.begin_timestamp, file.begin_phy_offset
    )  # fmt: skip
    assert () == select(file, end=2005000)
    assert (100,) == select(file, end=2010000)
    offset_only, time_only = opened(1, 8, 77, -1).header, opened(1, 8, 0, 9).header
    assert (77, 77, 0, 0) == (
        offset_only.begin_phy_offset, offset_only.end_phy_offset,
        offset_only.begin_timestamp, offset_only.end_timestamp,
    )  # fmt: skip
    assert (0, 0, 9, 9) == (
        time_only.begin_phy_offset, time_only.end_phy_offset,
        time_only.begin_timestamp, time_only.end_timestamp,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("begin", "end", "matched"),
    [
        (0, 999, False),
        (0, 1000, True),
        (0, 2000, True),
        (999, 2000, True),
        (999, 2001, True),
        (1500, 1600, True),
        (2000, 9000, True),
        (2001, 9000, False),
        (3000, 0, False),
        (1500, 0, True),
        (9000, 1500, True),
    ],
)
def test_times_match(begin: int, end: int, matched: bool) -> None:
    """The table of a file from 1000 to 2000."""
    file = put(opened(), ("k", 1, 1000), ("k", 2, 2000))
    assert file.is_time_matched(begin, end) is matched


def test_times_match_a_fresh_file() -> None:
    """It spans 0 to 0."""
    windows = ((0, 5), (-1, 1), (1, 2))
    assert [opened().is_time_matched(*window) for window in windows] == [True, True, False]


def test_walk_stops_at_an_old_entry() -> None:
    """Older ones are not looked at, be they newer in time."""
    file = chained([1000000, 1010000, 1002000, 1012000])
    assert (4, 3, 2, 1) == select(file)
    assert (4,) == select(file, begin=1005000)


def test_seconds_are_rounded_down() -> None:
    """What was stored at 1500 after the begin is seen at 1000 after it."""
    file = chained([5000, 6500])
    assert ((2,), ()) == (select(file, begin=6000, end=6000), select(file, begin=6500, end=6500))


def test_colliding_keys_are_one() -> None:
    """Only hashes are compared; an absolute one and 0 collide too."""
    file = put(opened(3, 8), ("AaAa", 1, 9), ("BBBB", 2, 9), ("polygenelubricants", 3, 9))
    assert (2, 1) == select(file, "AaBB")
    assert (3,) == select(file, "")


CHAIN = [1000, 2000, 3000, 4000]


@pytest.mark.parametrize("value", [-1, -(2**31), 6, INT32_MAX])
def test_slot_without_an_entry(value: int) -> None:
    """A slot value that is none finds nothing, and a put begins a new chain."""
    file = slot(chained(CHAIN), value)
    assert () == select(file)
    assert CORRUPT == select(slot(chained(CHAIN, profile=SEGPROOF), value))
    damaged = slot(opened(1, 8, image=chained(CHAIN).image), value)
    for profile in (ROCKETMQ_5_5_1, SEGPROOF):
        damaged = slot(put(opened(1, 8, profile=profile), ("k", 1, 1), ("k", 2, 2)), value)
        written = put(damaged, ("k", 3, 3))
        assert (0, 2) == (written.entry(3).prev_index, written.hash_slot_count)


def test_slot_of_the_next_entry() -> None:
    """It is followed into zeros, which are an entry of hash 0; a put makes it its own loop."""
    file = slot(put(opened(1, 8), ("", 50, 1000)), 2)
    assert (0,) == select(file, "")
    assert () == select(file, "k")
    looped = put(file, ("k", 60, 1000))
    assert (2, 1) == (looped.entry(2).prev_index, looped.hash_slot_count)
    assert (60,) == select(looped)
    ours = slot(put(opened(1, 8, profile=SEGPROOF), ("", 50, 1000)), 2)
    assert CORRUPT == select(ours, "")
    begun = put(ours, ("k", 60, 1000))
    assert (0, 2) == (begun.entry(2).prev_index, begun.hash_slot_count)
    older = slot(put(opened(1, 8, profile=ROCKETMQ_4_7_0), ("", 50, 1000)), 2)
    assert put(older, ("k", 60, 1000)).hash_slot_count == 2


def test_cycles() -> None:
    """One that matches is walked until the list is full; another for ever."""
    file = previous(chained(CHAIN), 1, 4)
    ten = file.select_phy_offset((), "k", 10, 0, INT64_MAX).outcome
    assert (4, 3, 2, 1, 4, 3, 2, 1, 4, 3) == ten
    out_of_memory = file.select_phy_offset((), "k", INT32_MAX, 0, INT64_MAX).outcome
    assert Raised(ErrorKind.OUT_OF_MEMORY) == out_of_memory
    assert Raised(ErrorKind.ENDLESS) == select(file, "x")
    assert Raised(ErrorKind.ENDLESS) == select(file, end=999)
    assert (4, 3, 2) == select(file, begin=2000)
    looped = previous(chained(CHAIN), 2, 2)
    assert ((4, 3, 2), ()) == (select(looped), select(looped, "x"))


def test_segproof_refuses_cycles() -> None:
    """Numbers must fall; where the walk ends before, nothing is wrong."""
    for file in (
        previous(chained(CHAIN, profile=SEGPROOF), 1, 4),
        previous(chained(CHAIN, profile=SEGPROOF), 2, 2),
        previous(chained(CHAIN, profile=SEGPROOF), 2, 3),
        previous(chained(CHAIN, profile=SEGPROOF), 2, -1),
    ):
        assert [CORRUPT] * 2 == [select(file), select(file, "x")]
        assert (4,) == file.select_phy_offset((), "k", 1, 0, INT64_MAX).outcome
        assert (4, 3) == select(file, begin=3000)


def test_negative_seconds() -> None:
    """The walk ends before the entry; the greatest are only too far."""
    for profile, expected in ((ROCKETMQ_5_5_1, (4, 3)), (SEGPROOF, CORRUPT)):
        file = chained(CHAIN, profile=profile)
        assert expected == select(with_number(file, file.entry_position(2) + 12, -1))
        far = with_number(file, file.entry_position(2) + 12, INT32_MAX)
        assert (4, 3, 1) == select(far, end=9000)


def test_entry_outside_of_the_file() -> None:
    """An index error ends the walk, and nobody holds the file longer for it."""
    for profile, expected in ((ROCKETMQ_5_5_1, (4,)), (SEGPROOF, CORRUPT)):
        file = previous(chained(CHAIN, profile=profile), 4, 5)
        file = with_number(file, 36, 7).load().after
        assert (7, True) == (file.index_count, file.is_write_full())
        if profile == SEGPROOF:
            file = slot(file, 6)
        step = file.select_phy_offset((), "k", 64, 0, INT64_MAX)
        assert (expected, 1) == (step.outcome, step.after.ref_count)


def test_address_that_wraps() -> None:
    """Entry 214748365 lies 4 bytes behind entry 0, in 32 bits."""
    file = with_number(chained(CHAIN), 36, INT32_MAX).load().after
    assert file.entry_position(214748365) == file.entry_position(0) + 4
    wrapped = slot(file, 214748365)
    assert wrapped.entry(214748365) is not None
    assert () == select(wrapped)


@EVERY
def test_null_key(profile: Profile) -> None:
    """It raises; upstream a query then holds the file for ever, until a destroy forces it."""
    file = opened(profile=profile)
    null = Raised(ErrorKind.NULL)
    assert (null, file) == (file.put_key(None, 1, 1).outcome, file.put_key(None, 1, 1).after)
    assert null == file.index_key_hash_method(None)
    step = file.select_phy_offset((), None, 1, 0, 0)
    assert null == step.outcome
    assert step.after.ref_count == (1 if profile == SEGPROOF else 2)
    if profile == SEGPROOF:
        return
    kept = step.after.destroy(1000)
    assert (False, 1, False) == (kept.outcome, kept.after.ref_count, kept.after.is_available)
    assert "7" in kept.after.directory
    assert () == select(kept.after)
    assert kept.after.put_key("k", 1, 1).outcome is True
    again = replace(kept.after, now_ms=999).destroy(1000)
    assert (False, kept.after.ref_count) == (again.outcome, again.after.ref_count)
    forced = replace(kept.after, now_ms=1000).destroy(1000)
    assert (True, -1002) == (forced.outcome, forced.after.ref_count)
    assert "7" not in forced.after.directory


@EVERY
def test_destroyed_file(profile: Profile) -> None:
    """It is gone, and so are its bytes; destroying it again succeeds."""
    file = chained(CHAIN, profile=profile)
    gone = replace(file, index_num=9).destroy(0).after
    assert (b"", 0, False) == (gone.image, gone.ref_count, gone.is_available)
    assert gone.put_key("k", 1, 1).outcome == UNMAPPED
    assert gone.load().outcome == UNMAPPED
    assert (None, gone) == (gone.flush().outcome, gone.flush().after)
    assert select(gone) == (UNMAPPED if profile == SEGPROOF else ())
    assert gone.destroy(0).outcome is True
    full = replace(gone, index_num=5)
    assert full.put_key("k", 1, 1).outcome == (UNMAPPED if profile == SEGPROOF else False)


def test_shutdown() -> None:
    """The header is written; upstream the file does not know that it is closed."""
    file = opened().shutdown()
    assert (None, 1, True) == (file.outcome, file.after.ref_count, file.after.is_available)
    assert b"\0\0\0\1" == file.after.image[36:40]
    dead = file.after
    outcomes = (select(dead), dead.flush().outcome, dead.shutdown().outcome, dead.close().outcome)
    assert (UNMAPPED,) * 4 == outcomes
    ours = opened(profile=SEGPROOF).close().after
    assert (0, False, UNMAPPED) == (ours.ref_count, ours.is_available, select(ours))
    assert (None, ours) == (ours.shutdown().outcome, ours.shutdown().after)
    for closed in (dead, ours):
        destroyed = closed.destroy(0)
        assert (True, []) == (destroyed.outcome, list(destroyed.after.directory))


def test_existing_file() -> None:
    """Opened, it looks empty until it is loaded; segproof loads it."""
    image = put(opened(), ("k", 1, 1000), ("k", 2, 2000)).image
    directory = Directory().write("7", image)
    plain: Any = IndexFile.open("7", 1, 8, directory=directory).after
    assert (IndexHeader(), image, ()) == (plain.header, plain.image, select(plain))
    assert (2, 1) == select(plain.load().after)
    overwritten = put(plain, ("k", 9, 3000))
    assert (9, 2) == (overwritten.entry(1).phy_offset, overwritten.index_count)
    ours: Any = IndexFile.open("7", 1, 8, directory=directory, profile=SEGPROOF).after
    assert (2, 1) == select(ours)


def test_loading_mends_the_count() -> None:
    """In memory alone; the next put overwrites the first entry."""
    for count in (0, -5):
        file = with_number(put(opened(), ("k", 1, 1000), ("k", 2, 2000)), 36, count)
        file = with_number(file, 32, -7).load().after
        assert (1, -7) == (file.index_count, file.hash_slot_count)
        assert file.image[36:40] == count.to_bytes(4, "big", signed=True)
        written = put(file, ("k", 9, 3000))
        assert (9, 9, -6) == (
            written.entry(1).phy_offset, written.begin_phy_offset, written.hash_slot_count
        )  # fmt: skip


@pytest.mark.parametrize("length", [0, 10, 300])
def test_other_lengths(length: int) -> None:
    """A short file grows, a long one stays; segproof refuses both, unless the file is empty."""
    directory = Directory().write("7", b"\xff" * length)
    file: Any = IndexFile.open("7", 1, 8, directory=directory).after
    assert (b"\xff" * length).ljust(204, b"\0") == file.image
    strict: Any = IndexFile.open("7", 1, 8, directory=directory, profile=SEGPROOF)
    if length == 0:
        assert strict.after.image == bytes(204)
    else:
        assert (CORRUPT, directory) == (strict.outcome, strict.after)


@pytest.mark.parametrize(
    "name", ["", "x", "1x", "--1", "1.0", " 1", str(2**63), "a/", "\U0001d7d8"]
)
@EVERY
def test_name_that_is_no_number(name: str, profile: Profile) -> None:
    """It raises before anything is created."""
    step = IndexFile.open(name, 1, 8, profile=profile)
    assert (Raised(ErrorKind.NUMBER_FORMAT), Directory()) == (step.outcome, step.after)


@pytest.mark.parametrize("name", ["+5", "-5", "index/5", "\u0663", str(-(2**63)), "007"])
def test_name_that_is_a_number(name: str) -> None:
    """As Java reads numbers, in any script."""
    assert IndexFile.open(name, 1, 8).outcome is None


@EVERY
def test_name_of_a_directory(profile: Profile) -> None:
    """It cannot be opened, nor what would lie below a file."""
    directory = Directory().write("index/5/x", b"").write("6", b"")
    for name in ("index/5", "6/7"):
        step = IndexFile.open(name, 1, 8, directory=directory, profile=profile)
        assert (Raised(ErrorKind.IO_ERROR), directory) == (step.outcome, step.after)


def test_sizes_that_wrap() -> None:
    """A negative size raises when the file is there; a small one takes nothing."""
    invalid = Raised(ErrorKind.INVALID_ARGUMENT)
    negative = IndexFile.open("7", 2**30 - 100, 2**30)
    assert (invalid, Directory().write("7", b"")) == (negative.outcome, negative.after)
    small: Any = IndexFile.open("7", 10, 214748365).after
    assert (84, 84) == (small.file_size, index_file_size(10, 214748365))
    assert small.put_key("T#a", 1, 1).outcome is False
    for numbers in ((0, 8), (1, 1), (-1, 8), (10, 214748365), (2**30 - 100, 2**30), (1, 2**27)):
        step = IndexFile.open("7", *numbers, profile=SEGPROOF)
        assert (invalid, Directory()) == (step.outcome, step.after)


def test_file_without_slots() -> None:
    """Dividing by 0 is an error, and a query then holds the file."""
    file = opened(0, 8)
    assert Raised(ErrorKind.ARITHMETIC) == file.put_key("k", 1, 1).outcome
    step = file.select_phy_offset((), "k", 1, 0, 0)
    assert (Raised(ErrorKind.ARITHMETIC), 2) == (step.outcome, step.after.ref_count)


def test_file_without_a_whole_header() -> None:
    """Negative numbers of slots can give one; each use of the header then fails on its way."""
    index_error = Raised(ErrorKind.INDEX_ERROR)
    seeded = IndexFile.open("7", -9, 2, 5, 6)
    assert 44 == index_file_size(-9, 2)
    assert seeded.outcome is None
    directory = Directory().write("7", bytes(24))
    seeded = IndexFile.open("7", -14, 2, 5, 6)
    assert (index_error, directory) == (seeded.outcome, replace_first_bytes(seeded.after, 24))
    file: Any = IndexFile.open("7", -14, 2).after
    assert (24, index_error, index_error) == (
        file.file_size, file.load().outcome, file.flush().outcome
    )  # fmt: skip
    assert file.flush().after.ref_count == 2
    shut = file.shutdown()
    assert (None, False, 2) == (shut.outcome, shut.after.is_mapped, shut.after.ref_count)
    older = replace(file, profile=ROCKETMQ_5_3_3).shutdown()
    assert (index_error, True, 2) == (older.outcome, older.after.is_mapped, older.after.ref_count)


def replace_first_bytes(directory: Any, size: int) -> Directory:
    """Return the directory with the file "7" all zeros, as it must have this size."""
    assert len(directory.read("7")) == size
    return Directory().write("7", bytes(size))


def test_resource_released_too_often() -> None:
    """One that was not shut down is not cleaned up, and not to be held again."""
    resource = ReferenceResource().release().after
    assert (0, True, False) == (resource.ref_count, resource.is_available, resource.is_cleanup_over)
    assert resource.hold().outcome is False
    assert resource.release().after.ref_count == -1
    ended = ReferenceResource().shutdown(0, now_ms=5).after
    assert (0, 5, True) == (
        ended.ref_count, ended.first_shutdown_timestamp_ms, ended.is_cleanup_over
    )  # fmt: skip
    assert ended == ended.shutdown(0, now_ms=9).after


def test_another_writer_is_seen() -> None:
    """What others did in the directory is the file's, but for the header in memory."""
    file = opened()
    other = put(file, ("k", 1, 1000))
    assert (other.image, 1) == (file.sees(other.directory).image, file.index_count)
