# SPDX-License-Identifier: Apache-2.0
"""Readers beside the writer of an index file: answers from before or after, never a half entry."""

import struct
import threading
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import CorruptIndexError, IndexClosedError
from segproof.rocketmq.index_file import IndexFile
from segproof.rocketmq.index_header import IndexHeader
from segproof_harness.files.memory_files import MemoryFiles
from segproof_tests.beside import run_beside

NAME = "/20261121000000000"
MOST = 2**63 - 1


@pytest.fixture
def files() -> MemoryFiles:
    """Files in memory."""
    return MemoryFiles()


@pytest.mark.parametrize("before", [0, 1, 2])
def test_reader_while_the_writer_is_between_slot_and_count(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """The slot has the new entry, nothing published has: the reader gets the answer from before."""
    file = IndexFile.open(NAME, 1, 9, create=True, files=files)
    for number in range(before):
        file.put_key("k", number, 10**12)
    seen: list[object] = []
    count = IndexHeader.count_entry

    def counting(header: IndexHeader, *arguments: Any) -> None:
        seen.append(file.select_phy_offset([], "k", 9, 0, MOST))
        seen.append(file.select_phy_offset_many(["k"], 9, 0, MOST)[1].tolist())
        count(header, *arguments)

    monkeypatch.setattr(IndexHeader, "count_entry", counting)
    file.put_key("k", before, 10**12)
    assert [list(range(before))[::-1]] * 2 == seen
    assert list(range(before + 1))[::-1] == file.select_phy_offset([], "k", 9, 0, MOST)


def test_slot_that_was_left_too_new_is_corrupt(files: MemoryFiles) -> None:
    """A crash between slot and count leaves a slot that leads to no entry; a put mends it."""
    file = IndexFile.open(NAME, 1, 9, create=True, files=files)
    file.put_key("k", 0, 10**12)
    handle = files.open(NAME, writable=True)
    handle.pwrite(struct.pack(">i", 2), 40)
    with pytest.raises(CorruptIndexError):
        file.select_phy_offset([], "k", 9, 0, MOST)
    with pytest.raises(CorruptIndexError):
        file.select_phy_offset_many(["k"], 9, 0, MOST)
    file.put_key("k", 1, 10**12)
    assert [1] == file.select_phy_offset([], "k", 9, 0, MOST)
    assert (2, 0) == (file.hash_slot_count, list(file)[-1].prev_index)


def test_reader_beside_the_writer(files: MemoryFiles) -> None:
    """Each answer is that of some moment, and no later answer is of an earlier moment."""
    file = IndexFile.open(NAME, 1, 3000, create=True, files=files)
    seen = [-1]

    def read() -> None:
        found = file.select_phy_offset([], "k", 5, 0, MOST)
        newest = max(seen[-1], *found, -1)
        assert list(range(newest, -1, -1))[:5] == found
        seen.append(newest)

    def write() -> None:
        for number in range(2501):
            file.put_key("k", number, 10**12 + number)

    assert [] == run_beside(write, read)
    assert len(seen) > 1


def test_closing_under_a_reader(tmp_path: Path) -> None:
    """A reader gets its answer or the error of a closed file, never a page that is gone."""
    for number in range(20):
        file = IndexFile.open(tmp_path / str(number), 1, 50, create=True)
        for entry in range(49):
            file.put_key("k", entry, 10**12)
        failures: list[str] = []

        def read(file: IndexFile = file, failures: list[str] = failures) -> None:
            try:
                while True:
                    assert 49 == len(file.select_phy_offset([], "k", 64, 0, MOST))
            except IndexClosedError as error:
                failures.append(str(error))

        reader = threading.Thread(target=read)
        reader.start()
        file.close()
        reader.join(60)
        assert 1 == len(failures)
