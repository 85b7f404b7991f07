# SPDX-License-Identifier: Apache-2.0
"""What the indexes do where a size is absurd, a number is not an int, or the device fails."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from segproof.errors import IndexClosedError, InvalidArgumentError
from segproof.files import REAL_FILES
from segproof.kafka import (
    AbortedTxn,
    OffsetIndex,
    RecordFile,
    TimeIndex,
    TransactionIndex,
    offset_index,
    time_index,
)
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.files.watched_files import WatchedFiles
from segproof_model.kafka.format.offset_index import OffsetIndex as ModelOffsetIndex
from segproof_model.kafka.format.record_file import RecordFile as ModelRecordFile
from segproof_model.kafka.format.time_index import TimeIndex as ModelTimeIndex
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import apply, opened
from segproof_model.releases import SEGPROOF

INT64_MIN = np.int64(-(2**63))
BOTH = pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
MODELS: Any = {
    OffsetIndex: SEGPROOF.kind(ModelOffsetIndex),
    TimeIndex: SEGPROOF.kind(ModelTimeIndex),
}
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)


class FailingFiles(WatchedFiles):
    """Files in memory on a device that fails: in `truncate` or in `map`, while `fails` names it."""

    fails: frozenset[str] = frozenset()

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Fail: no room on the device, or no memory."""
        if call in self.fails:
            number = errno.ENOSPC if call == "truncate" else errno.ENOMEM
            raise OSError(number, os.strerror(number))


def append(index: Any, number: Any) -> None:
    """Append one entry to either index."""
    if isinstance(index, OffsetIndex):
        index.append(number, number)
    else:
        index.maybe_append(number, number)


@BOTH
@pytest.mark.parametrize("size", [2**31, 2**40, 2**63])
def test_size_of_no_file(kind: Any, size: int, tmp_path: Path) -> None:
    """A size above 31 bits was a sparse file of terabytes that nothing could open again."""
    path = tmp_path / "x"
    with pytest.raises(InvalidArgumentError):
        kind(path, 0, size, create=True)
    assert [] == list(tmp_path.iterdir())
    refused = opened(MODELS[kind], Files(), "x", 0, size)
    assert (INVALID_ARGUMENT, Files()) == (refused.outcome, refused.after)
    with kind(path, 0, 120, create=True) as index:
        append(index, 1)
        with pytest.raises(InvalidArgumentError):
            index.resize(size)
        assert (120, 120) == (index.length, path.stat().st_size)
        append(index, 2)
    model = MODELS[kind](Files(), "x", 0, 120)
    step = apply(model, "resize", size)
    assert (INVALID_ARGUMENT, model) == (step.outcome, step.after)


def test_preallocated_size_of_no_log(tmp_path: Path) -> None:
    """A log segment of more than 31 bits is not preallocated either."""
    with pytest.raises(InvalidArgumentError):
        RecordFile.open(tmp_path / "x", create=True, init_file_size=2**40, preallocate=True)
    assert [] == list(tmp_path.iterdir())
    kind = SEGPROOF.kind(ModelRecordFile)
    step = opened(kind, Files(), "x", init_file_size=2**40, preallocate=True)
    assert (INVALID_ARGUMENT, Files()) == (step.outcome, step.after)


@BOTH
@pytest.mark.parametrize("fails", ["truncate", "map"])
def test_file_made_in_vain_is_removed(kind: Any, fails: str) -> None:
    """A full device left an empty file behind, which the next opening took for the index."""
    files = FailingFiles()
    files.fails = frozenset({fails})
    with pytest.raises(OSError, match=r"No space left|Cannot allocate"):
        kind("/x", 0, 120, create=True, files=files)
    assert {} == files.images("/")
    files.fails = frozenset()
    assert 120 == kind("/x", 0, 120, create=True, files=files).length


@BOTH
@pytest.mark.parametrize("fails", [{"map"}, {"truncate", "map"}])
def test_index_that_is_not_mapped_again_is_closed(kind: Any, fails: set[str]) -> None:
    """It stayed open on a private copy: appends broke, and flush wrote nothing and said nothing."""
    files = FailingFiles()
    index = kind("/x", 0, 120, create=True, files=files)
    append(index, 1)
    append(index, 2)
    files.fails = frozenset(fails)
    with pytest.raises(OSError, match="Cannot allocate"):
        index.resize(96)
    for use in (index.flush, lambda: append(index, 3), lambda: index.lookup(1)):
        with pytest.raises(IndexClosedError):
            use()
    index.close()
    assert 2 == index.entries
    files.fails = frozenset()
    assert 2 == len(kind("/x", 0, create=True, files=files))


@BOTH
def test_resize_on_a_full_device(kind: Any) -> None:
    """Where only the length could not be changed, the index goes on as it was."""
    files = FailingFiles()
    index = kind("/x", 0, 120, create=True, files=files)
    append(index, 1)
    files.fails = frozenset({"truncate"})
    with pytest.raises(OSError, match="No space left"):
        index.resize(240)
    append(index, 2)
    assert (120, 2) == (index.length, len(list(index)))
    assert 120 == len(files.images("/")["x"])


@pytest.mark.parametrize("real", [True, False], ids=["real", "memory"])
@BOTH
def test_a_view_that_is_held_for_good(
    kind: Any, real: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback held one, and whoever closed the file waited for ever, without a word."""
    monkeypatch.setattr("segproof.files.UNMAP_SECONDS", 0.0)
    index = kind(
        tmp_path / "x" if real else "/x",
        0,
        120,
        create=True,
        files=REAL_FILES if real else MemoryFiles(),
    )
    append(index, 1)
    held = index._current()[0][:8]
    with pytest.raises(BufferError, match="has held a view of the file"):
        index.resize(240)
    append(index, 2)
    assert (120, 2) == (index.length, len(list(index)))
    last = index._current()[0][:8]
    with pytest.raises(BufferError, match="has held a view of the file"):
        index.close_handler()
    with pytest.raises(IndexClosedError):
        index.lookup(1)
    del held, last


def is_plain(value: object) -> bool:
    """Return whether a value, or each in it, is an int of Python."""
    return all(type(item) is int for item in (value if isinstance(value, tuple) else (value,)))


@BOTH
def test_integers_of_numpy(kind: Any, tmp_path: Path) -> None:
    """Their differences wrapped: a target below all entries found the last, a cut kept all."""
    index = kind(tmp_path / "x", np.int64(100), np.int32(120), create=True)
    append(index, np.int64(105))
    last = index.last_offset if kind is OffsetIndex else index.last_entry
    assert (index.base_offset, is_plain(last)) == (100, True)
    nothing = (100, 0) if kind is OffsetIndex else (-1, 100)
    for target, answer in ((INT64_MIN, nothing), (np.int64(105), (105, 105))):
        assert answer == index.lookup(target)
        assert is_plain(index.lookup(target))
    assert is_plain(index.entry(np.uint8(0)))
    assert index.can_append_offset(np.int32(101))
    assert not index.can_append_offset(INT64_MIN)
    assert index.resize(np.int32(96))
    index.truncate_to(INT64_MIN)
    assert 0 == len(index)


@BOTH
def test_fractions_are_no_numbers(kind: Any, tmp_path: Path) -> None:
    """A float is refused wherever an integer is meant."""
    with pytest.raises(TypeError):
        kind(tmp_path / "x", 0.5, 120, create=True)
    index = kind(tmp_path / "x", 0, 120, create=True)
    calls = ("lookup", "truncate_to", "entry", "resize", "relative_offset", "can_append_offset")
    for name in calls:
        with pytest.raises(TypeError):
            getattr(index, name)(5.5)
    with pytest.raises(TypeError):
        append(index, 5.5)
    with pytest.raises(InvalidArgumentError):
        kind(tmp_path / "y", 2**63, 120, create=True)


def test_integers_of_numpy_in_other_files(tmp_path: Path) -> None:
    """The transaction index and the record file keep and answer ints of Python as well."""
    start: Any = np.int64(0)
    index: Any = TransactionIndex(start, tmp_path / "x", create=True)
    numbers: Any = (np.int64(number) for number in (0, 7, 1, 9, 10))
    index.append(AbortedTxn(*numbers))
    assert (int, int) == (type(index.last_offset), type(index.start_offset))
    assert 1 == len(index.collect_aborted_txns(np.int64(0), np.int64(5)).aborted_transactions)
    with pytest.raises(TypeError):
        index.truncate_to(5.5)
    log = RecordFile.open(tmp_path / "log", create=True)
    log.append(b"0123456789")
    limits: Any = np.int32(4), np.int32(2**31 - 1)
    assert b"456789" == log.slice(*limits).read()
    cut: Any = np.int64(3)
    assert 7 == log.truncate_to(cut)
    assert int is type(log.size_in_bytes())


@pytest.mark.parametrize("length", [12, 15, 24])
def test_lone_zero_slot_of_a_time_index(length: int, tmp_path: Path) -> None:
    """An entry of timestamp 0 for the base offset is 12 zero bytes; it was lost at reopening."""
    image = bytes(length)
    (tmp_path / "x").write_bytes(image)
    ours = TimeIndex(tmp_path / "x", 50)
    model = MODELS[TimeIndex](Files({"x": image}), "x", 50)
    expected = [(0, 50)] if length < 24 else []
    assert expected == list(ours) == [model.stored(number) for number in range(model.entries)]


@BOTH
def test_kernel_on_a_released_view(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled kernel says of a released view what the compiler says, and no ValueError."""
    index = kind("/x", 0, 120, create=True, files=MemoryFiles())
    append(index, 1)
    module = offset_index if kind is OffsetIndex else time_index
    right = module.lower_slot.interpreted
    writes = [lambda: index.resize(96)]

    def search(*arguments: Any) -> int:
        if writes:
            writes.pop()()
            raise NotImplementedError("cannot determine the type of a released memoryview")
        return int(right(*arguments))

    monkeypatch.setattr(module, "lower_slot", SimpleNamespace(call=search))
    assert (1, 1) == index.lookup(5)
    assert [] == writes
    append(index, 2)
    writes.append(lambda: False)
    with pytest.raises(NotImplementedError):
        index.lookup(5)
