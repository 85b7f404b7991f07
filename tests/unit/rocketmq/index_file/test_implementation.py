# SPDX-License-Identifier: Apache-2.0
"""An index file of RocketMQ: golden bytes, the model's answers on sound and on damaged files.

Bulk calls answer what single ones do, whether kernels are compiled or not; what is refused changes
nothing. Readers beside the writer: test_readers.py.
"""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.errors import (
    CorruptIndexError,
    IndexClosedError,
    InvalidArgumentError,
    NullError,
    NumberFormatError,
)
from segproof.files import File, Mapping
from segproof.rocketmq import index_file as module
from segproof.rocketmq.index_file import IndexFile
from segproof.rocketmq.index_header import IndexHeader
from segproof_harness.files.memory_files import MemoryFiles, write_file

NAME = "/20261121000000000"
MOST = 2**63 - 1
GOLDEN = bytes.fromhex(
    "0000018bcfe5687b0000018bd50bc47b000000010000000000000001000004000000000300000006"
    "00000005000000000000000400000002"
    "0000000000000000000000000000000000000000"
    "00013ff200000001000000000000000000000000"
    "00013ff300000001000001000000000000000000"
    "00013ff200000001000002000000000100000001"
    "05fe3b2200000001000003000000000000000003"
    "00013ff400000001000004000001518000000000"
)
GOLDEN_PUTS = [
    ("T#a", 2**32, 1700000000123),
    ("T#b", 2**32 + 256, 1700000001122),
    ("T#a", 2**32 + 512, 1700000001123),
    ("U#\u4e2d\U0001f600", 2**32 + 768, 1699999999999),
    ("T#c", 2**32 + 1024, 1700086400123),
]
KERNELS = ("put_entries", "walk_chain", "walk_chains", "hashes_of_joined", "hashes_of_rows")
KEYS = ["T#a", "T#b", "AaAa", "BBBB", "", "polygenelubricants", "\u4e2d", "U#\ud83d", "k7"]
ACCESSORS = [
    "file_size", "hash_slot_num", "index_num", "begin_timestamp", "end_timestamp",
    "begin_phy_offset", "end_phy_offset", "hash_slot_count", "index_count", "ref_count",
    "is_available",
]  # fmt: skip


@pytest.fixture
def files() -> MemoryFiles:
    """Files in memory."""
    return MemoryFiles()


@pytest.fixture(name="way")
def small_blocks(way: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let blocks be small, whatever does the work."""
    monkeypatch.setattr(module, "_CHAINS_TOGETHER", 3)
    monkeypatch.setattr(module, "_SLOTS_TOGETHER", 2)
    return way


def image(files: MemoryFiles) -> bytes:
    """Return the bytes of the file."""
    return files.images("/")[NAME[1:]]


TIMES = st.sampled_from(
    [-(2**63), -1, 0, 1, 999, 1000, 1999, 2000, 5000, 10**12, 10**12 + 999, 10**12 + 1000, MOST]
) | st.integers(-(2**63), MOST)  # fmt: skip
OFFSETS = st.integers(-3, 3) | st.integers(-(2**63), MOST)


# --- many at once


@pytest.mark.checks("RMQIDX-17", "RMQIDX-19", "RMQIDX-33", "RMQIDX-36")
@pytest.mark.usefixtures("way")
@given(
    st.lists(st.tuples(st.sampled_from(KEYS), OFFSETS, TIMES), max_size=12),
    st.integers(1, 4),
    st.integers(0, 12),
    st.lists(st.tuples(st.integers(-1, 5), TIMES, TIMES), max_size=3),
)
def test_many_do_what_single_calls_do(
    puts: list[tuple[str, int, int]], slots: int, cut: int, queries: list[tuple[int, int, int]]
) -> None:
    """The same bytes, counters, answers; in one call or in two, until the file is full."""
    one_by_one, at_once = MemoryFiles(), MemoryFiles()
    single = IndexFile.open(NAME, slots, 9, create=True, files=one_by_one)
    bulk = IndexFile.open(NAME, slots, 9, create=True, files=at_once)
    done = [single.put_key(*put) for put in puts]
    count = 0
    for part in (puts[:cut], puts[cut:]):
        keys, offsets, times = ([put[n] for put in part] for n in range(3))
        count += bulk.put_keys(keys, np.array(offsets, np.int64), np.array(times, np.int64))
    assert sum(done) == count
    assert image(one_by_one) == image(at_once)
    for name in ACCESSORS:
        assert getattr(single, name) == getattr(bulk, name)
    for query in [(64, 0, MOST), *queries]:
        starts, found = bulk.select_phy_offset_many(KEYS, *query)
        expected = [single.select_phy_offset([], key, *query) for key in KEYS]
        ends = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        assert expected == [found[start:end].tolist() for start, end in ends]


@pytest.mark.usefixtures("way")
def test_long_chains_at_once(files: MemoryFiles) -> None:
    """Room for what is found grows with it; every kind of keys."""
    file = IndexFile.open(NAME, 2, 2000, create=True, files=files)
    keys = np.array([b"one", b"two", b"three"] * 600)
    assert 1800 == file.put_keys(keys, np.arange(1800), np.arange(1800) + 10**12)
    assert 0 == file.put_keys([], [], [])
    starts, found = file.select_phy_offset_many(np.array([b"two", b"none", b"one"]), 10**9, 0, MOST)
    assert [0, 600, 600, 1200] == starts.tolist()
    assert [*range(1798, 0, -3), *range(1797, -1, -3)] == found.tolist()
    assert found[:600].tolist() == file.select_phy_offset([], "two", 10**9, 0, MOST)
    starts, found = file.select_phy_offset_many(["two"] * 5, 2, 0, MOST)
    assert [1798, 1795] * 5 == found.tolist()
    assert 199 == file.put_keys(["x"] * 300, range(300), range(300))
    assert file.is_write_full()


@pytest.mark.checks("RMQIDX-40")
@pytest.mark.usefixtures("way")
def test_first_corrupt_chain_of_many(files: MemoryFiles) -> None:
    """A chain that leads up is an error for many keys too, unless no walk comes there."""
    made = IndexFile.open(NAME, 4, 6, create=True, files=files)
    for put in GOLDEN_PUTS:
        made.put_key(*put)
    made.close()
    data = bytearray(image(files))
    struct.pack_into(">i", data, 40 + 16 + 20 + 16, 3)  # the previous entry of entry 1
    write_file(files, NAME, bytes(data))
    file = IndexFile.open(NAME, 4, 6, create=True, files=files)
    assert [4294967552] == file.select_phy_offset_many(["T#b"], 9, 0, MOST)[1].tolist()
    assert [4294967808] == file.select_phy_offset_many(["T#a"], 1, 0, MOST)[1].tolist()
    found = [5]
    for call in (
        lambda: file.select_phy_offset_many(["T#b", "T#a"], 9, 0, MOST),
        lambda: file.select_phy_offset(found, "T#a", 9, 0, MOST),
    ):
        with pytest.raises(CorruptIndexError, match="slot 2") as caught:
            call()
        assert ("RMQIDX-40", 48) == (caught.value.law, caught.value.position)
    assert [5] == found


@pytest.mark.checks("RMQIDX-40")
@pytest.mark.usefixtures("way")
def test_what_the_last_wanted_entry_leads_to_counts(files: MemoryFiles) -> None:
    """A chain that leads up is an error though the list is full, for one key and for many."""
    made = IndexFile.open(NAME, 1, 4, create=True, files=files)
    for number in (1, 2):
        made.put_key("k", number, 1000)
    made.close()
    data = bytearray(image(files))
    struct.pack_into(">i", data, 40 + 4 + 2 * 20 + 16, 3)  # the previous entry of entry 2
    write_file(files, NAME, bytes(data))
    file = IndexFile.open(NAME, 1, 4, create=True, files=files)
    for call in (
        lambda: file.select_phy_offset([], "k", 1, 0, MOST),
        lambda: file.select_phy_offset_many(["k"], 1, 0, MOST),
    ):
        with pytest.raises(CorruptIndexError):
            call()
    assert [] == file.select_phy_offset([], "k", 0, 0, MOST)
    assert [] == file.select_phy_offset_many(["k"], 0, 0, MOST)[1].tolist()


def test_rows_of_different_lengths_are_refused(files: MemoryFiles) -> None:
    """And so are null keys and keys that are not UTF-8; nothing is put."""
    file = IndexFile.open(NAME, 4, 6, create=True, files=files)
    before = image(files)
    keys: Any
    for keys, offsets, error in (
        (["a", "b"], [1], InvalidArgumentError),
        (["a", None], [1, 2], NullError),
        (np.array([b"a", b"\xff"]), [1, 2], InvalidArgumentError),
        (["a"], [0.5], InvalidArgumentError),
    ):
        with pytest.raises(error):
            file.put_keys(keys, offsets, [1] * len(keys))
    assert (before, 1) == (image(files), file.index_count)


@pytest.mark.usefixtures("way")
def test_reader_before_many_entries_are_published(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them stand in the file: the reader passes them over, or gets some of the first."""
    file = IndexFile.open(NAME, 2, 90, create=True, files=files)
    assert 2 == file.put_keys(["k", "k"], [0, 1], [10**12] * 2)
    seen: list[list[int]] = []
    for name in ("keep", "count_entry"):
        original = getattr(IndexHeader, name)

        def reading(
            header: IndexHeader, *arguments: Any, original: Callable[..., None] = original
        ) -> None:
            seen.append(file.select_phy_offset([], "k", 99, 0, MOST))
            seen.append(file.select_phy_offset_many(["k"], 99, 0, MOST)[1].tolist())
            original(header, *arguments)

        monkeypatch.setattr(IndexHeader, name, reading)
    assert 80 == file.put_keys(["k", "other"] * 40, range(2, 82), [10**12] * 80)
    assert [1, 0] == seen[0]
    newest = [*range(80, 0, -2), 1, 0]
    assert all(one in [newest[start:] for start in range(41)] for one in seen)
    assert newest == file.select_phy_offset([], "k", 99, 0, MOST)


# --- refusals and the life of a file


@pytest.mark.checks("RMQIDX-9")
def test_names_that_are_no_numbers(tmp_path: Path) -> None:
    """They are refused before any directory is made; signs and foreign digits are digits."""
    for name in ("index", "", "1.5", " 1", "9223372036854775808", "1_0"):
        with pytest.raises(NumberFormatError):
            IndexFile.open(
                tmp_path / "below" / name / "" if not name else tmp_path / "below" / name,
                4,
                6,
                create=True,
            )
    assert [] == list(tmp_path.iterdir())
    for name in ("+5", "-5", "\u0665\u0666", "20261121000000000"):
        IndexFile.open(tmp_path / "below" / name, 4, 6, create=True).close()
    assert 4 == len(list((tmp_path / "below").iterdir()))


def test_sizes_that_do_not_fit(tmp_path: Path) -> None:
    """No slot, no entry to write, more bytes than 31 bits count, a directory in its place."""
    for slots, entries in ((0, 6), (4, 1), (-1, -1), (10, 214748365), (2**29, 2)):
        with pytest.raises(InvalidArgumentError):
            IndexFile.open(tmp_path / "1", slots, entries, create=True)
    assert [] == list(tmp_path.iterdir())
    (tmp_path / "1").mkdir()
    with pytest.raises(IsADirectoryError):
        IndexFile.open(tmp_path / "1", 4, 6, create=True)


def test_file_that_cannot_be_mapped_is_not_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file goes; an old one stays as it was."""
    files = MemoryFiles()

    def refuse(self: File, size: int) -> Mapping:
        raise OSError(12, "no memory")

    IndexFile.open(NAME, 4, 6, create=True, files=files).close()
    before = image(files)
    handle = files.open(NAME)
    monkeypatch.setattr(type(handle), "map", refuse)
    for name in (NAME, "/2"):
        with pytest.raises(OSError, match="no memory"):
            IndexFile.open(name, 4, 6, create=True, files=files)
    assert {NAME[1:]: before} == files.images("/")


@pytest.mark.checks("RMQHASH-4", "RMQIDX-39")
def test_arguments_that_are_refused(files: MemoryFiles) -> None:
    """A null key, and numbers outside 64 bits; nothing is put, held or appended."""
    file = IndexFile.open(NAME, 4, 6, create=True, files=files)
    before, key = image(files), None
    calls: list[Callable[[], object]] = [
        lambda: file.put_key(key, 1, 1),  # type: ignore[arg-type]
        lambda: file.select_phy_offset([], key, 1, 0, 1),  # type: ignore[arg-type]
        lambda: file.index_key_hash_method(key),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(NullError):
            call()
    for call in (
        lambda: file.put_key("k", 2**63, 1),
        lambda: file.put_key("k", 1, -(2**63) - 1),
        lambda: file.select_phy_offset([], "k", 1, 0, 2**63),
        lambda: IndexFile.open("/3", 4, 6, 2**63, create=True, files=files),
    ):
        with pytest.raises(InvalidArgumentError):
            call()
    assert (before, 1, 1) == (image(files), file.index_count, file.ref_count)


@pytest.mark.checks("RMQIDX-15", "RMQIDX-14")
def test_reopened_file_answers_as_before(tmp_path: Path) -> None:
    """On a real file: puts, flush, close, open; a closed file raises, and keeps its counters."""
    path = tmp_path / "index" / "20261121000000000"
    with IndexFile.open(path, 4, 6, create=True) as file:
        for put in GOLDEN_PUTS:
            file.put_key(*put)
        file.flush()
        assert "5 of 5" in repr(file)
    assert "closed" in repr(file)
    file.flush()
    assert 6 == file.index_count
    for call in (
        file.load,
        lambda: list(file),
        lambda: file.put_keys([], [], []),
        lambda: file.select_phy_offset_many([], 1, 0, 1),
    ):
        with pytest.raises(IndexClosedError):
            call()
    assert GOLDEN == path.read_bytes()
    again = IndexFile.open(path, 4, 6, create=True)
    assert [4294967808, 4294967296] == again.select_phy_offset([], "T#a", 64, 0, MOST)
    with pytest.raises(CorruptIndexError):
        IndexFile.open(path, 4, 7, create=True)
    assert again.destroy(0)
    assert not path.exists()
    assert again.destroy(0)


@pytest.mark.checks("RMQREF-2", "RMQREF-3")
def test_file_that_is_held_stays(files: MemoryFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flush holds the file: destroying it waits for that, or for the interval to pass."""
    now = [1000]
    file = IndexFile.open(NAME, 4, 6, create=True, files=files, time=lambda: now[0])
    file.put_key("k", 5, 1)
    answers: list[object] = []

    def destroyed() -> None:
        answers.append(file.destroy(50))
        now[0] = 1049
        answers.append(file.destroy(50))
        answers.append(file.select_phy_offset([7], "k", 9, 0, MOST))
        answers.append(image(files) != b"")

    monkeypatch.setattr(file._mapping, "flush", destroyed)
    file.flush()
    assert [False, False, [7], True] == answers
    assert file.destroy(50)
    assert {} == files.images("/")
