# SPDX-License-Identifier: Apache-2.0
"""What text checkpoints do with huge claims, broken disks and numbers that are not Python's."""

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from segproof.errors import (
    CorruptCheckpointError,
    InvalidArgumentError,
    NumberFormatError,
    TooLargeError,
)
from segproof.integers import parse_int
from segproof.kafka import EpochEntry, LeaderEpochFileCache, OffsetCheckpointFile
from segproof.kafka.checkpoint_file import (
    OFFSET_FORMATTER,
    READ_BYTES_MAX,
    CheckpointFile,
    EntryFormatter,
    read_checkpoint,
)
from segproof_harness.files.memory_files import MemoryFiles


@pytest.mark.checks("CKPT-3")
@pytest.mark.parametrize("count", [2**31 - 1, 10**6, 2**31, 10**30, -1])
def test_count_is_not_believed(count: int) -> None:
    """A count takes no memory, however large."""
    data = b"0\n%d\nt 0 5\n" % count
    tracemalloc.start()
    try:
        with pytest.raises(CorruptCheckpointError) as raised:
            read_checkpoint(data, OFFSET_FORMATTER.from_string, source="file")
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
    assert isinstance(raised.value, OSError)
    assert "file" in str(raised.value)
    assert "line 2" in str(raised.value)


def test_number_of_a_million_digits() -> None:
    """A number of any length is judged at once; Python alone would refuse it by an error."""
    assert 7 == parse_int("0" * 10**6 + "7", 32)
    with pytest.raises(NumberFormatError):
        parse_int("9" * 10**6, 64)


def test_file_beyond_memory(tmp_path: Path) -> None:
    """A file of gigabytes, here a sparse one, is not taken into memory."""
    path = tmp_path / "checkpoint"
    path.touch()
    os.truncate(path, READ_BYTES_MAX + 1)
    with pytest.raises(TooLargeError):
        OffsetCheckpointFile(path, create=True).read()


@pytest.mark.checks("CKPT-5")
def test_stale_temporary_file(tmp_path: Path) -> None:
    """What a crash left in `.tmp`, longer than what is written, does not come back."""
    path = tmp_path / "checkpoint"
    (tmp_path / "checkpoint.tmp").write_bytes(b"x" * 1000)
    OffsetCheckpointFile(path, create=True).write({("t", 0): 5})
    assert b"0\n1\nt 0 5\n" == path.read_bytes()
    assert ["checkpoint"] == os.listdir(tmp_path)


@pytest.mark.checks("CKPT-6")
@pytest.mark.parametrize("entry", ["a\nb", "a\r", "\ud800"])
def test_line_that_would_not_be_one(entry: str) -> None:
    """A formatter that takes any line can't smuggle in a second one, nor what is no UTF-8."""
    files = MemoryFiles()
    file = CheckpointFile("/x", 0, EntryFormatter[str](str, str), create=True, files=files)
    file.write(["", "kept"])
    with pytest.raises(InvalidArgumentError):
        file.write([entry])
    assert ["", "kept"] == file.read()


@pytest.mark.checks("EPOCH-11")
def test_failed_write_changes_nothing(tmp_path: Path) -> None:
    """Where the file can't be written, the cache stays as it was."""
    path = tmp_path / "leader-epoch-checkpoint"
    cache = LeaderEpochFileCache.open(path, create=True)
    cache.assign(1, 10)
    (tmp_path / "leader-epoch-checkpoint.tmp").mkdir()
    with pytest.raises(OSError, match="tmp"):
        cache.assign(2, 20)
    with pytest.raises(OSError, match="tmp"):
        cache.clear_and_flush()
    assert [EpochEntry(1, 10)] == cache.epoch_entries()
    assert b"0\n1\n1 10\n" == path.read_bytes()


def test_integers_of_numpy() -> None:
    """They neither wrap nor leak."""
    cache = LeaderEpochFileCache.in_memory()
    cache.assign(np.int32(1), np.int64(2**63 - 1))  # type: ignore[arg-type]
    (entry,) = cache.epoch_entries()
    assert (int, int) == (type(entry.epoch), type(entry.start_offset))
    assert cache.file is None
    assert 1 == cache.epoch_for_offset(np.int64(2**63 - 1))  # type: ignore[arg-type]
