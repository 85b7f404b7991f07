# SPDX-License-Identifier: Apache-2.0
"""What opening does to files: nothing, unless writing or creating is asked for."""

import contextlib
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import (
    CorruptIndexError,
    IndexClosedError,
    IndexStateError,
    InvalidArgumentError,
    ReadOnlyError,
    SegproofError,
)
from segproof.kafka.batch_writing import write_batch
from segproof.kafka.broker.log_manager import LogManager
from segproof.kafka.broker.partition_log import PartitionLog
from segproof.kafka.checkpoint_file import OffsetCheckpointFile
from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof.kafka.log_config import LogConfig
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.partition_metadata_file import PartitionMetadataFile
from segproof.kafka.record import Record
from segproof.kafka.record_file import RecordFile
from segproof.kafka.segments.log_segment import LogSegment
from segproof.kafka.time_index import TimeIndex
from segproof.kafka.transaction_index import AbortedTxn, TransactionIndex

BASE = 40
KINDS = {".index": OffsetIndex, ".timeindex": TimeIndex}

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100, segment_index_bytes=1200)


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
    damaged = path.rename(tmp_path / f"{BASE + 6:020d}.txnindex")
    with TransactionIndex.open(damaged) as index, pytest.raises(CorruptIndexError):
        index.sanity_check()  # the name says it, so the entry is wrong, and can be looked at


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


def write_log(disk: Path) -> Path:
    """Return the folder of a log with epochs, a snapshot and an open transaction, as a crash."""
    manager = LogManager(disk, CONFIG, create=True)
    log = manager.get_or_create_log("t", 0, uuid.UUID(int=7))
    for number in range(20):
        records = [Record(0, 1_700_000_000_000 + number, b"k", b"v")]
        options: Any = {"producer_id": 5, "producer_epoch": 0, "base_sequence": number}
        is_open = number >= 18
        batch = write_batch(records, base_offset=0, is_transactional=is_open, **options)
        log.append_as_leader(batch, leader_epoch=number // 8)
    manager.checkpoint_log_recovery_offsets()
    log.close_handlers()
    with contextlib.suppress(IndexClosedError):
        manager.shutdown()
    return disk / "t-0"


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_that_is_read_is_as_it_was(tmp_path: Path, is_clean: bool) -> None:
    """Reading recovered, trimmed and removed files, and made the folder of a wrong path."""
    folder = write_log(tmp_path)
    with max(folder.glob("*.log")).open("ab") as torn:
        torn.write(BATCH[:30])
    (folder / "00000000000000000009.txnindex.deleted").write_bytes(b"x")
    before = images(folder)
    for is_writable in (False, True):
        with pytest.raises(FileNotFoundError):
            PartitionLog.open(tmp_path / "wrong", CONFIG, writable=is_writable)
    assert not (tmp_path / "wrong").exists()
    log = PartitionLog.open(folder, CONFIG, last_shutdown_clean=is_clean)
    assert (0, 20, (0, 1, 2)) == (
        log.log_start_offset,
        log.log_end_offset,
        tuple(entry.epoch for entry in log.leader_epoch_cache.entries),
    )
    records = log.read(0, 10_000).records
    assert records is not None
    assert 0 == next(iter(records)).base_offset
    found = log.fetch_offset_by_timestamp(1_700_000_000_012)
    assert found is not None
    assert 12 == found.offset
    assert 18 == log.producer_state_manager.first_undecided_offset()
    assert 18 == min(log.update_high_watermark(20), log.last_stable_offset)
    changes: tuple[Callable[[], object], ...] = (
        lambda: log.append_as_leader(BATCH, 0),
        lambda: log.append_as_follower(BATCH, 0),
        log.roll,
        lambda: log.truncate_to(0),
        lambda: log.truncate_fully_and_start_at(0),
        lambda: log.maybe_increment_log_start_offset(3),
        log.delete_old_segments,
        lambda: log.split_overflowed_segment(0),
        log.delete,
        log.producer_state_manager.take_snapshot,
        lambda: log.producer_state_manager.delete_snapshots_before(100),
    )
    for change in changes:
        with pytest.raises(ReadOnlyError, match="writable=True"):
            change()
    log.flush(True)
    assert "read-only" in repr(log)
    log.close()
    assert before == images(folder)
    with PartitionLog.open(folder, CONFIG, last_shutdown_clean=False, writable=True) as log:
        assert 20 == log.log_end_offset
    assert before != images(folder)


def test_a_log_directory_that_is_read_is_as_it_was(tmp_path: Path) -> None:
    """It is not locked, so it can be read beside a broker, which has it locked."""
    folder = write_log(tmp_path)
    before = images(folder), (tmp_path / ".kafka_cleanshutdown").exists()
    names = sorted(path.name for path in tmp_path.iterdir())
    with LogManager(tmp_path, CONFIG, writable=True) as writer:
        writer.load_logs()
        between = images(folder)
        with LogManager(tmp_path, CONFIG) as reader:
            assert 20 == reader.load_logs()["t", 0].log_end_offset
            assert reader.get_or_create_log("t", 0) is reader.logs["t", 0]
            for change in (
                lambda: reader.get_or_create_log("t", 1),
                lambda: reader.get_or_create_log("u", 0, uuid.UUID(int=8)),
                reader.checkpoint_log_start_offsets,
            ):
                with pytest.raises(ReadOnlyError, match="writable=True"):
                    change()
        assert between == images(folder)
    assert before[0].keys() <= images(folder).keys()
    assert {*names, ".kafka_cleanshutdown"} == {path.name for path in tmp_path.iterdir()}
    with LogManager(tmp_path, CONFIG) as reader:
        reader.load_logs()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    with LogManager(tmp_path / "wrong", CONFIG) as reader, pytest.raises(FileNotFoundError):
        reader.load_logs()
    assert not (tmp_path / "wrong").exists()


def test_half_replaced_segments_are_not_read(tmp_path: Path) -> None:
    """What a crash left of a split is put in place by a writer only; without it there is a hole."""
    folder = write_log(tmp_path)
    (folder / f"{0:020d}.log").rename(folder / f"{0:020d}.log.swap")
    with pytest.raises(IndexStateError, match=r"\.swap: .*half replaced.*writable=True"):
        PartitionLog.open(folder, CONFIG)


@pytest.mark.parametrize("kind", [OffsetCheckpointFile, PartitionMetadataFile])
def test_a_small_file_is_written_only_where_that_is_asked_for(tmp_path: Path, kind: Any) -> None:
    """Asking a missing checkpoint for its entries made an empty one."""
    path = tmp_path / "x"
    content: Any = {("t", 0): 5} if kind is OffsetCheckpointFile else uuid.UUID(int=7)
    with pytest.raises(FileNotFoundError):
        kind(path).read()
    with pytest.raises(ReadOnlyError, match=r"x: .*writable=True"):
        kind(path).write(content)
    with pytest.raises(FileNotFoundError, match="create=True"):
        kind(path, writable=True).write(content)
    assert {} == images(tmp_path)
    kind(path, create=True).write(content)
    before = images(tmp_path)
    with pytest.raises(ReadOnlyError):
        kind(path).write(content)
    kind(path, writable=True).write(content)
    assert before == images(tmp_path)


def test_epochs_that_are_read_are_not_changed(tmp_path: Path) -> None:
    """Neither in the file nor in memory, which would no longer be what the file says."""
    path = tmp_path / "leader-epoch-checkpoint"
    with pytest.raises(FileNotFoundError):
        LeaderEpochFileCache.open(path)
    LeaderEpochFileCache.open(path, create=True).assign(3, 0)
    before, cache = images(tmp_path), LeaderEpochFileCache.open(path)
    with pytest.raises(ReadOnlyError):
        cache.assign(4, 10)
    assert (before, 3) == (images(tmp_path), cache.latest_epoch())
