# SPDX-License-Identifier: Apache-2.0
"""What opening does to files: nothing, unless writing or creating is asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import InvalidArgumentError, ReadOnlyError, SegproofError
from segproof.kafka.batch_writing import write_batch
from segproof.kafka.log_config import LogConfig
from segproof.kafka.log_segment import LogSegment
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.record import Record
from segproof.kafka.record_file import RecordFile
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


BATCH = write_batch([Record(BASE, 1_700_000_000_000, b"k", b"v")], base_offset=BASE)


def images(folder: Path) -> dict[str, bytes]:
    """Return what a folder holds."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_record_file_is_read_only_unless_writing_is_asked_for(tmp_path: Path) -> None:
    """Opening a path with a typing error made an empty log."""
    path = tmp_path / f"{BASE:020d}.log"
    for is_writable in (False, True):
        with pytest.raises(FileNotFoundError):
            RecordFile.open(path, writable=is_writable)
    assert {} == images(tmp_path)
    with RecordFile.open(path, create=True) as log:
        log.append(BATCH)
    with RecordFile.open(path) as log:
        assert [BASE] == [batch.base_offset for batch in log]
        assert f"RecordFile({str(path)!r}, {len(BATCH)} bytes, read-only)" == repr(log)
        assert f"bytes 0 to {len(BATCH)}, read-only" in repr(log.slice(0, 1000))
        changes: tuple[Callable[[], object], ...] = (
            lambda: log.append(BATCH),
            lambda: log.truncate_to(0),
        )
        for change in changes:
            with pytest.raises(SegproofError, match=r"40\.log: .*open it with writable=True"):
                change()
    assert repr(log).endswith(", closed)")
    assert {path.name: BATCH} == images(tmp_path)


def test_a_segment_that_is_read_changes_no_file(tmp_path: Path) -> None:
    """It trimmed its indexes, wrote a time entry and made the files that were missing."""
    config = LogConfig(segment_index_bytes=1200, index_interval_bytes=0)
    with pytest.raises(FileNotFoundError):
        LogSegment.open(tmp_path, BASE, config, writable=True)
    with LogSegment.open(tmp_path, BASE, config, create=True) as segment:
        segment.append(BASE, BATCH)
        segment.close_handlers()
    before = images(tmp_path)
    assert {1200, len(BATCH)} == {len(data) for data in before.values()}
    with LogSegment.open(tmp_path, BASE, config) as segment:
        assert BASE + 1 == segment.read_next_offset()
        assert segment.find_offset_by_timestamp(0, BASE) is not None
        segment.flush()
        changes: tuple[Callable[[], object], ...] = (
            lambda: segment.append(BASE + 1, BATCH),
            lambda: segment.append_many(BATCH),
            lambda: segment.truncate_to(BASE),
            segment.recover,
            segment.on_become_inactive_segment,
            lambda: segment.resize_indexes(12),
            lambda: segment.set_last_modified(0),
            lambda: segment.change_file_suffixes("", ".deleted"),
            segment.delete_if_exists,
        )
        for change in changes:
            with pytest.raises(ReadOnlyError, match="writable=True"):
                change()
    assert before == images(tmp_path)
    with LogSegment.open(tmp_path, BASE, config, writable=True) as segment:
        segment.append(BASE + 1, write_batch([Record(BASE + 1, 0, b"", b"")], base_offset=BASE + 1))
    assert before != images(tmp_path)
