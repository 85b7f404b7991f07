# SPDX-License-Identifier: Apache-2.0
"""What opening does to files: nothing, unless writing or creating is asked for."""

from pathlib import Path
from typing import Any

import pytest

from segproof.errors import InvalidArgumentError, ReadOnlyError
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.time_index import TimeIndex
from segproof.kafka.transaction_index import AbortedTxn, TransactionIndex

BASE = 40
KINDS = {".index": OffsetIndex, ".timeindex": TimeIndex}


def left_by_a_crash(folder: Path, suffix: str) -> Path:
    """Return an index with three entries and room behind them."""
    path = folder / f"{BASE:020d}{suffix}"
    index: Any = KINDS[suffix](path, max_index_size_bytes=1200, create=True)
    for number in (1, 2, 3):
        add = index.append if suffix == ".index" else index.maybe_append
        add(*((BASE + number, number) if suffix == ".index" else (number, BASE + number)))
    index.close_handler()
    return path


@pytest.mark.parametrize("suffix", KINDS)
def test_an_index_is_as_long_after_it_was_read_as_before(tmp_path: Path, suffix: str) -> None:
    """Opening and closing cut a real index from 8192 to 104 bytes."""
    path = left_by_a_crash(tmp_path, suffix)
    before = path.read_bytes()
    with KINDS[suffix](path) as index:
        assert (BASE, 3) == (index.base_offset, len(index))
        assert "3 of " in repr(index)
        assert "read-only" in repr(index)
        for change in (lambda: index.resize(2400), index.trim_to_valid_size):
            with pytest.raises(ReadOnlyError, match="writable=True"):
                change()
    assert before == path.read_bytes()
    with KINDS[suffix](path, writable=True):
        pass
    assert before.rstrip(b"\0") == path.read_bytes()


@pytest.mark.parametrize("suffix", [*KINDS, ".txnindex"])
def test_a_missing_index_is_made_only_where_that_is_asked_for(tmp_path: Path, suffix: str) -> None:
    """A wrong path made a file of 10 MiB, or an empty one, beside the real ones."""
    path = tmp_path / f"{BASE:020d}{suffix}"
    for is_writable in (False, True):
        if suffix == ".txnindex":
            with TransactionIndex.open(path, writable=is_writable) as index:
                with pytest.raises((ReadOnlyError, FileNotFoundError)):
                    index.append(AbortedTxn(0, 1, BASE, BASE + 5, BASE))
                assert [] == index.all_aborted_txns()
        else:
            with pytest.raises(FileNotFoundError):
                KINDS[suffix](path, writable=is_writable)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", ".deleted", ".swap", ".cleaned"])
def test_the_name_of_an_index_says_its_base_offset(tmp_path: Path, name: str) -> None:
    """A base offset that was wrong gave wrong answers, without a word."""
    path = left_by_a_crash(tmp_path, ".index")
    path = path.rename(f"{path}{name}")
    with OffsetIndex(path) as index:
        assert BASE + 3 == index.last_offset
    for wrong in (0, BASE + 1):
        with pytest.raises(InvalidArgumentError, match=r"is 40 by the name.*FILE-1"):
            OffsetIndex(path, wrong)
    other = path.rename(tmp_path / "copy.index")
    with pytest.raises(InvalidArgumentError, match=r"copy.index: .*pass base_offset"):
        OffsetIndex(other)
    assert BASE + 3 == OffsetIndex(other, BASE).last_offset


def test_a_transaction_index_refuses_a_base_offset_above_its_entries(tmp_path: Path) -> None:
    """Its entries have whole offsets, so the file itself can tell."""
    path = tmp_path / "copy.txnindex"
    with TransactionIndex.open(path, BASE, create=True) as index:
        index.append(AbortedTxn(0, 1, BASE, BASE + 5, BASE))
    assert BASE == TransactionIndex.open(path, BASE).start_offset
    with pytest.raises(InvalidArgumentError, match="ended at 45"):
        TransactionIndex.open(path, BASE + 6)
