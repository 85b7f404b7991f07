# SPDX-License-Identifier: Apache-2.0
"""What an index file keeps and finds, in every release and in the implementation.

Every number here was answered by the JVM's classes.
"""

from typing import Any

import pytest

from segproof.rocketmq.index_file import IndexFile
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.structures.outcomes import normalise
from segproof_model.language.files import Files
from segproof_model.releases import RELEASES, SEGPROOF
from segproof_model.rocketmq.format.index_file import IndexEntry
from segproof_model.rocketmq.format.index_file import IndexFile as Model
from segproof_model.rocketmq.format.index_file_releases import EachPutIsCounted
from segproof_model.rocketmq.format.index_header import IndexHeader

NAME = "20261121000000000"
INT64_MAX, INT32_MAX = 2**63 - 1, 2**31 - 1
IMPLEMENTATION = "implementation"
SIDES = [IMPLEMENTATION, "segproof", *(name for name in RELEASES if name.startswith("rocketmq"))]
NEWEST = pytest.mark.parametrize("side", SIDES[:3])
"""The implementation, its profile and the newest release: for what no release does differently."""
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


class Implementation:
    """The implementation under the names of the model."""

    def __init__(self, *numbers: int) -> None:
        self.files = MemoryFiles()
        self.file = IndexFile.open(f"/{NAME}", *numbers, create=True, files=self.files)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    @property
    def image(self) -> bytes:
        """The bytes of the file."""
        return self.files.images("/")[NAME]

    @property
    def is_write_full(self) -> bool:
        """Whether another entry has no room."""
        return self.file.is_write_full()

    @property
    def header(self) -> tuple[int, ...]:
        """The fields of the header, as the file's own accessors tell them."""
        return tuple(getattr(self.file, name) for name in IndexHeader._fields)

    def entries_list(self) -> list[IndexEntry]:
        """Return all entries."""
        return [IndexEntry(*normalise(one)) for one in self.file]

    def entry(self, index: int) -> IndexEntry:
        """Return an entry."""
        return next(one for one in self.entries_list() if one.index == index)

    def select_phy_offset(self, found: tuple[int, ...], *asked: Any) -> tuple[int, ...]:
        """Return what was found before and what is found now."""
        return tuple(self.file.select_phy_offset(list(found), *asked))


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest) -> str:
    """Return the name of a release, or the implementation."""
    return str(request.param)


def new_file(side: str, slots: int = 1, entries: int = 8, *ends: int) -> Any:
    """Return a file that was made."""
    if side == IMPLEMENTATION:
        return Implementation(slots, entries, *ends)
    return RELEASES[side].kind(Model)(Files(), NAME, slots, entries, *ends)


def counts_each_put(side: str) -> bool:
    """Return whether a release counts a slot for each put."""
    return RELEASES.get(side, SEGPROOF).has(EachPutIsCounted)


def put(file: Any, *puts: tuple[str, int, int]) -> Any:
    """Put entries, which are taken, and return the file."""
    assert [True] * len(puts) == [file.put_key(*one) for one in puts]
    return file


def chained(side: str, times: list[int]) -> Any:
    """Return a file with one entry of the key "k" for each time, its offset the entry's number."""
    puts = [("k", number, time) for number, time in enumerate(times, 1)]
    return put(new_file(side, 1, len(times) + 1), *puts)


def select(file: Any, key: str = "k", begin: int = 0, end: int = INT64_MAX, most: int = 64) -> Any:
    """Return what a query finds."""
    return file.select_phy_offset((), key, most, begin, end)


@pytest.mark.checks("RMQIDX-41", "RMQIDX-1", "RMQIDX-2", "RMQIDX-3", "RMQIDX-17")
def test_golden_file(side: str) -> None:
    """Five puts and one too many; up to 4.7.0 each counts a slot."""
    file = new_file(side, 4, 6)
    assert (bytes(176), 1) == (file.image, file.index_count)
    put(
        file,
        ("T#a", 2**32, 1700000000123),
        ("T#b", 2**32 + 256, 1700000001122),
        ("T#a", 2**32 + 512, 1700000001123),
        ("U#\u4e2d\U0001f600", 2**32 + 768, 1699999999999),
        ("T#c", 2**32 + 1024, 1700086400123),
    )
    expected = bytearray.fromhex(GOLDEN)
    if counts_each_put(side):
        expected[35] = 5
    assert expected == file.image
    assert file.is_write_full
    assert not file.put_key("T#d", 0, 0)
    assert expected == file.image
    assert (2**32 + 512, 2**32) == select(file, "T#a")
    assert (2**32 + 768,) == select(file, "U#\u4e2d\U0001f600")
    assert () == select(file, "T#a", 5, 4)
    assert [1, 2, 3, 4, 5] == [entry.index for entry in file.entries_list()]
    assert IndexEntry(2, 3, 81906, 2**32 + 512, 1, 1) == file.entry(3)
    assert [2, 3, 2, 2, 0] == [entry.slot for entry in file.entries_list()]


@pytest.mark.checks("RMQIDX-21", "RMQIDX-24", "RMQIDX-31")
def test_second_golden_file(side: str) -> None:
    """Two keys in turn, and a list that is not empty."""
    keys = ("k0", "k1", "k0", "k1", "k0")
    puts = [(key, 100 + n, 1000000 + 1500 * n) for n, key in enumerate(keys)]
    file = put(new_file(side, 10, 20), *puts)
    rows = [(row.key_hash, row.time_diff, row.prev_index) for row in file.entries_list()]
    assert [(3365, 0, 0), (3366, 1, 0), (3365, 3, 1), (3366, 4, 2), (3365, 6, 3)] == rows
    slots = 5 if counts_each_put(side) else 2
    assert IndexHeader(1000000, 1006000, 100, 104, slots, 6) == file.header
    assert file.header == IndexHeader.from_bytes(file.image)
    assert (104, 102, 100) == select(file, "k0")
    assert (-1, -2, 104) == file.select_phy_offset((-1, -2), "k0", 3, 0, INT64_MAX)
    for most in (2, 0, -1):
        assert (-1, -2) == file.select_phy_offset((-1, -2), "k0", most, 0, INT64_MAX)


@NEWEST
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
def test_seconds(store_timestamp: int, seconds: int, side: str) -> None:
    """Rounded toward 0, cut at both ends; the difference wraps at 64 bits."""
    file = put(new_file(side), ("k", 1, 5000), ("k", 2, store_timestamp))
    assert seconds == file.entry(2).time_diff
    assert (5000, store_timestamp) == (file.begin_timestamp, file.end_timestamp)


@pytest.mark.parametrize("first", [0, -1])
def test_begin_at_zero_keeps_no_seconds(first: int, side: str) -> None:
    """All later ones are then as old as the first."""
    file = put(new_file(side), ("k", 1, first), ("k", 2, 10**9))
    assert (first, 0) == (file.begin_timestamp, file.entry(2).time_diff)


@pytest.mark.checks("RMQIDX-26", "RMQIDX-12", "RMQIDX-6")
def test_continued_file(side: str) -> None:
    """The first entry counts from the end of the file before, and reads later than it is."""
    file = new_file(side, 1, 8, 77, 2000000)
    assert IndexHeader(2000000, 2000000, 77, 77, 0, 1) == file.header
    assert bytes(8) == file.image[32:40]
    put(file, ("k", 100, 2005000))
    begin = file.begin_timestamp, file.begin_phy_offset
    assert (5, 2005000, 100) == (file.entry(1).time_diff, *begin)
    assert () == select(file, end=2005000)
    assert (100,) == select(file, end=2010000)
    assert IndexHeader(0, 0, 77, 77) == new_file(side, 1, 8, 77, -1).header
    assert IndexHeader(9, 9, 0, 0) == new_file(side, 1, 8, 0, 9).header


@NEWEST
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
def test_times_match(begin: int, end: int, matched: bool, side: str) -> None:
    """The table of a file from 1000 to 2000."""
    file = put(new_file(side), ("k", 1, 1000), ("k", 2, 2000))
    assert matched is file.is_time_matched(begin, end)


def test_times_match_a_fresh_file(side: str) -> None:
    """It spans 0 to 0."""
    windows = ((0, 5), (-1, 1), (1, 2))
    file = new_file(side)
    assert [True, True, False] == [file.is_time_matched(*window) for window in windows]


@pytest.mark.checks("RMQIDX-33", "RMQIDX-36")
def test_walk_stops_at_an_old_entry(side: str) -> None:
    """Older ones are not looked at, be they newer in time."""
    file = chained(side, [1000000, 1010000, 1002000, 1012000])
    assert (4, 3, 2, 1) == select(file)
    assert (4,) == select(file, begin=1005000)


@pytest.mark.checks("RMQIDX-33")
def test_seconds_are_rounded_down(side: str) -> None:
    """What was stored at 1500 after the begin is seen at 1000 after it."""
    file = chained(side, [5000, 6500])
    assert ((2,), ()) == (select(file, begin=6000, end=6000), select(file, begin=6500, end=6500))


def test_colliding_keys_are_one(side: str) -> None:
    """Only hashes are compared; an absolute one and 0 collide too."""
    file = put(new_file(side, 3, 8), ("AaAa", 1, 9), ("BBBB", 2, 9), ("polygenelubricants", 3, 9))
    assert (2, 1) == select(file, "AaBB")
    assert (3,) == select(file, "")
