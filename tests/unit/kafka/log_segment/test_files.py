# SPDX-License-Identifier: Apache-2.0
"""The files of a segment: opened late, renamed, closed and removed; the lazy index."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from segproof.errors import (
    IndexClosedError,
    InvalidArgumentError,
)
from segproof.kafka import CompletedTxn, LogConfig, LogSegment, RollParams
from segproof.kafka.lazy_index import LazyIndex
from segproof.kafka.offset_index import OffsetPosition
from segproof.kafka.record_file import RecordFile
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.files.watched_files import WatchedFiles
from segproof_tests import memory_segments
from segproof_tests.memory_segments import BASE, BATCHES, LOG, NOW, TIMES, batch, images


class CountingFiles(WatchedFiles):
    """Files in memory that note which paths they are asked for."""

    def __init__(self) -> None:
        super().__init__(clock_ms=lambda: NOW)
        self.asked: list[str] = []
        self.make_directory("/t")

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Note a question."""
        if call == "status":
            self.asked.append(path)


opened = partial(memory_segments.opened, new=CountingFiles)
filled = partial(memory_segments.filled, new=CountingFiles)


# --- files


@pytest.mark.checks("FILE-4", "LAZY-1")
def test_opening_is_lazy() -> None:
    """Only the log is made; no index is opened, and no path is asked for twice."""
    files = CountingFiles()
    segment = opened(files)
    assert list(files.images("/t")) == [LOG]
    assert len(files.asked) == len(set(files.asked))
    segment.change_file_suffixes("", ".swap")
    assert segment.has_suffix(".swap")
    segment.close()
    assert list(files.images("/t")) == [LOG + ".swap"]
    segment = LogSegment.open(
        "/t", BASE, LogConfig(), True, file_suffix=".swap", create=True, files=files
    )
    segment.delete_if_exists()
    assert files.images("/t") == {}


@pytest.mark.checks("SEG-46", "SEG-47")
def test_all_files_are_renamed_and_removed() -> None:
    """A wrong suffix is refused before anything moves."""
    segment = filled()
    segment.update_txn_index(CompletedTxn(1, 40, 41, False), 40)
    assert segment.txn_index.is_empty
    segment.update_txn_index(CompletedTxn(1, 40, 41, True), 40)
    assert len(segment.collect_aborted_txns(40, 50).aborted_transactions) == 1
    names = sorted(images(segment))
    assert len(names) == 4
    with pytest.raises(InvalidArgumentError, match=r"\[SEG-46\]"):
        segment.change_file_suffixes(".swap", "")
    assert names == sorted(images(segment))
    segment.change_file_suffixes("", ".deleted")
    assert [name + ".deleted" for name in names] == sorted(images(segment))
    segment.append(48, batch(48, 9))
    segment.delete_if_exists()
    assert images(segment) == {}
    segment.delete_if_exists()


@pytest.mark.checks("SEG-44", "SEG-45", "SEG-48")
def test_close_writes_the_last_entry_and_close_handlers_nothing() -> None:
    """A segment that was only opened makes no index when it is closed."""
    segment = filled()
    segment.flush()
    segment.close()
    assert len(images(segment)[TIMES]) == 48
    segment = filled()
    before = images(segment)
    segment.close_handlers()
    assert before == images(segment)


def operations(segment: LogSegment) -> Iterator[Any]:
    """Yield every operation that a closed segment refuses."""
    yield lambda: segment.append(48, batch(48, 9))
    yield lambda: segment.append_many(batch(48, 9))
    yield lambda: segment.append_from_file(
        RecordFile.open("/t/x", create=True, files=segment._files), 0
    )
    yield lambda: segment.read(40, 1)
    yield lambda: segment.read(40, -1)
    yield lambda: segment.read_many([40])
    yield lambda: segment.translate_offset(40)
    yield lambda: segment.read_next_offset()
    yield lambda: segment.has_overflow()
    yield lambda: segment.find_offset_by_timestamp(40, 0)
    yield lambda: segment.find_offset_by_timestamp_many([40], 0)
    yield lambda: segment.recover()
    yield lambda: segment.truncate_to(41)
    yield lambda: segment.flush()
    yield lambda: segment.resize_indexes(96)
    yield lambda: segment.sanity_check(False)
    yield lambda: segment.should_roll(RollParams(1, 1, 1, 1, 1, 1))
    yield lambda: segment.time_waited_for_roll(1, 1)
    yield lambda: segment.on_become_inactive_segment()
    yield lambda: segment.collect_aborted_txns(1, 2)
    yield lambda: segment.fetch_upper_bound_offset(OffsetPosition(0, 0), 2)


@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_closed_segment_is_closed(is_loaded: bool) -> None:
    """One kind of error for everything, and no file changes; a second close does nothing."""
    segment = filled() if is_loaded else opened()
    segment.close()
    before = images(segment)
    for operation in operations(segment):
        with pytest.raises(IndexClosedError):
            operation()
    segment.close()
    assert before == images(segment) or set(images(segment)) - set(before) == {"x"}


@pytest.mark.checks("SEG-43")
def test_sanity_check() -> None:
    """An offset index must be there; a new time index is cut."""
    segment = opened()
    with pytest.raises(FileNotFoundError):
        segment.sanity_check(True)
    assert len(segment.offset_index) == 0
    segment.sanity_check(True)
    assert len(images(segment)[TIMES]) == 0


@pytest.mark.checks("SEG-40")
def test_the_modification_time() -> None:
    """It is what `largest_timestamp` falls back to; setting it takes all three files."""
    segment = opened()
    assert segment.last_modified == NOW
    with pytest.raises(FileNotFoundError):
        segment.set_last_modified(5)
    assert segment.last_modified == NOW
    assert segment.largest_timestamp == NOW
    assert len(segment.offset_index) == 0
    segment.set_last_modified(5)
    assert segment.largest_timestamp == segment.last_modified == 5


@pytest.mark.checks("SEG-49")
def test_a_segment_that_is_opened_believes_its_time_index() -> None:
    """A log whose tail was not indexed reports too small a timestamp until it is recovered."""
    before = filled()
    before.close_handlers()
    files = before._files
    assert isinstance(files, MemoryFiles)
    segment = opened(files)
    assert segment.max_timestamp_so_far == 1060
    segment.recover()
    assert segment.max_timestamp_so_far == 1070


def test_a_preallocated_log() -> None:
    """Its bytes do not count until they are written, and go when it is closed."""
    segment = opened(init_file_size=5000, preallocate=True)
    assert (segment.size, len(images(segment)[LOG])) == (0, 5000)
    segment.append(40, BATCHES[0])
    segment.close()
    assert images(segment)[LOG] == BATCHES[0]


# --- lazy indexes


@pytest.mark.checks("LAZY-2", "LAZY-3", "LAZY-4", "LAZY-5", "LAZY-6")
def test_a_lazy_index() -> None:
    """It is opened once, at the first need; what it does not hold open it moves and removes."""
    files = CountingFiles()
    lazy = LazyIndex.for_offset("/t/a", 0, 80, create=True, files=files)
    lazy.rename_to("/t/b")
    assert (lazy.is_loaded, lazy.file) == (False, "/t/b")
    assert not lazy.delete_if_exists()
    index = lazy.get()
    assert lazy.is_loaded
    assert index is lazy.get()
    assert files.images("/t") == {"b": bytes(80)}
    lazy.rename_to("/t/c")
    assert (lazy.file, index.file) == ("/t/c", "/t/c")
    lazy.update_parent_dir("/u")
    assert index.file == "/u/c"
    lazy.update_parent_dir("/t")
    lazy.close()
    assert index is lazy.get()
    with pytest.raises(IndexClosedError):
        index.lookup(1)
    unused = LazyIndex.for_time("/t/d", 0, 80, create=True, files=files)
    unused.update_parent_dir("/t")
    unused.close_handler()
    with pytest.raises(IndexClosedError):
        unused.get()
    assert list(files.images("/t")) == ["c"]
