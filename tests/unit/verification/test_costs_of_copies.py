# SPDX-License-Identifier: Apache-2.0
"""What it costs to verify a store of RocketMQ beside its copies, or beside many other stores."""

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from segproof.findings import Finding, Severity
from segproof.reading.equal_files import COMPARED_BYTES
from segproof.reading.log_differences import AFTER_BYTES, BEFORE_BYTES
from segproof.stretches.rocketmq.message_blocks import CHUNK_BYTES
from segproof.verification import verify
from segproof.verifying.path_verification import KnownPlaces, known_places, plan
from segproof.wording.reporting import Wanted
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.watched_files import READS, WatchedFiles
from segproof_harness.laws.borders.store_files import LOG_BYTES, TIME, log_of, record
from segproof_tests.altered_files import listed
from segproof_tests.store_files import LOG_BYTES as STORE_LOG_BYTES
from segproof_tests.store_files import long_store

LAW = "RMQDISK-58"
MIB = 1 << 20
FIRST_BYTES = MIB + 4096
"""More than what is read of the begin of a file to know it."""
BODY = b"b" * (MIB // 4)


class CountingFiles(WatchedFiles):
    """Files that count the bytes that are read, and the calls."""

    calls_of_files = WatchedFiles.calls_of_files | READS

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.bytes_read: Counter[str] = Counter()

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Count."""
        self.calls[call] += 1
        if call in READS:
            wanted, position = arguments
            size = wanted if call == "pread" else len(wanted)
            self.bytes_read[path] += max(0, min(size, handle.inner.size() - position))


def told(paths: Sequence[str], files: CountingFiles) -> list[Finding]:
    """Return what a call with these paths tells of copies; count only what that takes."""
    beside = KnownPlaces(one for path in paths for one in known_places(path, files))
    files.calls.clear()
    files.bytes_read.clear()
    wanted = Wanted(frozenset({LAW}))
    return [found for path in paths for found in plan(path, wanted, files, beside)[1]]


def large(number: int, offset: int) -> bytes:
    """Return a long message."""
    return record(number, offset, body=BODY, properties="")


WHOLE = len(large(0, 0))


def large_log(size: int, start: int = 0) -> bytes:
    """Return a file of a log that is full of long messages."""
    numbers = range((size - 8) // WHOLE)
    return log_of(*(large(number, start + number * WHOLE) for number in numbers), size=size)


def changed(log: bytes, *numbers: int) -> bytes:
    """Return a file of long messages, and damage some of them."""
    damaged = bytearray(log)
    for number in numbers:
        damaged[number * WHOLE + 200] ^= 1
    return bytes(damaged)


def store_of(files: CountingFiles, name: str, *logs: bytes, start: int = 0) -> str:
    """Write a store whose log has these files."""
    for number, data in enumerate(logs):
        write_file(files, f"/{name}/commitlog/{start + number * len(logs[0]):020d}", data)
    return f"/{name}"


@pytest.mark.checks("RMQDISK-58")
@pytest.mark.parametrize("copies", [2, 4])
def test_copies_are_compared_once(copies: int) -> None:
    """Each of two equal logs was read once per direction, and once more for each other copy."""
    files, size = CountingFiles(), 6 * MIB
    logs = [large_log(size), large_log(size, size)]
    paths = [store_of(files, f"copy{number}", *logs) for number in range(copies)]
    found = told(paths, files)
    assert len(found) == copies
    assert all(one.message.endswith("both have the same sound messages") for one in found)
    comparisons = copies - 1
    assert sum(files.bytes_read.values()) < 2 * comparisons * 2 * (size + FIRST_BYTES)


@pytest.mark.checks("RMQDISK-58")
def test_messages_are_read_only_where_bytes_differ() -> None:
    """One other byte let both files be read as messages from their begin, the last ones twice."""
    files, size = CountingFiles(), 40 * MIB
    log = large_log(size)
    paths = [store_of(files, "one", log), store_of(files, "two", changed(log, 4))]
    assert len(told(paths, files)) == len(paths)
    around = BEFORE_BYTES + AFTER_BYTES + COMPARED_BYTES + 3 * CHUNK_BYTES
    assert max(files.bytes_read.values()) < size + around + 2 * FIRST_BYTES


@pytest.mark.checks("RMQDISK-58")
@pytest.mark.parametrize("numbers", [(4, 8), (12, 80), (0, 90), (3, 40, 85)])
def test_messages_that_differ_far_from_each_other(numbers: Sequence[int]) -> None:
    """Each is found, and none is counted twice."""
    files, size = CountingFiles(), 24 * MIB
    log = large_log(size)
    paths = [store_of(files, "one", log), store_of(files, "two", changed(log, *numbers))]
    found = told(paths, files)
    lost = f"{len(numbers)} of them missing or damaged within"
    more = f"has more: {len(numbers)} sound messages that"
    assert [True, True] == [more in one.message and lost in one.message for one in found]


@pytest.mark.checks("RMQDISK-58")
def test_equal_messages_before_the_bytes_that_differ_count() -> None:
    """One that the other log lost in the file before "came after its end", which is a note."""
    files, size, body = CountingFiles(), 8 * MIB, b"b" * (25 * MIB // 16)
    length = len(record(0, 0, body=body, properties=""))
    logs = [
        log_of(
            *(
                record(number, start + number * length, body=body, properties="")
                for number in range(5)
            ),
            size=size,
        )
        for start in (0, size)
    ]
    lost = [4 * length, 4 * length + 3 * length // 4]
    other = [log[:end].ljust(size, b"\0") for log, end in zip(logs, lost, strict=True)]
    found = told([store_of(files, "one", *logs), store_of(files, "two", *other)], files)
    assert [Severity.NOTE, Severity.WARNING] == [one.severity for one in found]
    assert "1 of them missing or damaged within this log" in found[1].message


@pytest.mark.checks("RMQDISK-58")
def test_a_backup_that_ends_earlier() -> None:
    """The file that a broker goes on with is read from where the backup ends, to its own end."""
    files, size = CountingFiles(), 24 * MIB
    log = large_log(size)
    early = log[: 90 * WHOLE].ljust(size, b"\0")
    late = log[: 92 * WHOLE].ljust(size, b"\0")
    paths = [store_of(files, "early", early), store_of(files, "late", late)]
    assert [
        "the other one has more: 2 sound messages that this one lacks",
        "this one has more: 2 sound messages that the other one lacks",
    ] == [one.message.split("; ", 1)[1] for one in told(paths, files)]
    rest = BEFORE_BYTES + COMPARED_BYTES + 2 * CHUNK_BYTES
    assert max(files.bytes_read.values()) < size + rest + 2 * FIRST_BYTES


@pytest.mark.checks("RMQDISK-58")
def test_files_of_one_log_alone_are_counted_as_files() -> None:
    """Each message of a file that one log lacks was read, only to be counted."""
    files, size = CountingFiles(), 12 * MIB
    logs = [large_log(size, number * size) for number in range(3)]
    paths = [store_of(files, "one", *logs), store_of(files, "two", logs[0])]
    found = told(paths, files)
    assert [
        "this one has more: 2 files of the log that the other one lacks",
        "the other one has more: 2 files of the log that this one lacks",
    ] == [one.message.split("; ", 1)[1] for one in found]
    alone = [files.bytes_read[f"/one/commitlog/{number * size:020d}"] for number in (1, 2)]
    assert max(alone) <= CHUNK_BYTES + FIRST_BYTES
    files = CountingFiles()
    paths = [store_of(files, "one", *logs), store_of(files, "two", logs[0])]
    write_file(files, f"/two/commitlog/{2 * size:020d}", logs[2])
    found = told(paths, files)
    assert found[0].message.endswith(
        "1 file of the log that the other one lacks, 1 of them missing or damaged within that log"
    )
    assert found[1].message.endswith(", 1 of them missing or damaged within this log")


def calls_of_stores(count: int, log_files: int) -> int:
    """Return how often so many stores of different logs ask for a status, open a file or read."""
    files = CountingFiles()
    paths = []
    for number in range(count):
        logs = [log_of(record(at, at * LOG_BYTES, time=TIME + number)) for at in range(log_files)]
        paths.append(store_of(files, f"store{number}", *logs, bytes(LOG_BYTES)))
    assert [] == told(paths, files)
    return sum(files.calls[call] for call in ("status", "open", "pread"))


def test_unrelated_stores_are_not_compared_in_pairs() -> None:
    """All files of two stores were asked for their status for each pair of stores."""
    few, many = calls_of_stores(4, 6), calls_of_stores(16, 6)
    assert many < 5 * few


def calls_of_files(count: int) -> Counter[str]:
    """Return the calls that so many files of one log take, each at a path of its own."""
    files = CountingFiles()
    paths = []
    for number in range(count):
        paths.append(f"/commitlog/{number * LOG_BYTES:020d}")
        write_file(files, paths[-1], log_of(record(number, number * LOG_BYTES)))
    assert [] == told(paths, files)
    return files.calls


def test_many_files_of_a_log_at_own_paths() -> None:
    """No file of a log is looked at for the others: none has its name."""
    few, many = calls_of_files(5), calls_of_files(20)
    assert many.total() <= 4 * few.total()
    assert many["open"] <= 20


def listings_of(stores: int, top: Path) -> int:
    """Return how many folders are listed for so many stores beside each other without their end."""
    store = long_store(top / "s0" / "store")
    max((store / "commitlog").iterdir()).unlink()
    for number in range(1, stores):
        shutil.copytree(store, top / f"s{number}" / "store")
    count: list[int] = []
    found = list(verify(top, files=listed(before=count.append)))
    assert stores == sum("missing or elsewhere" in one.message for one in found)
    return len(count)


@pytest.mark.checks("RMQDISK-42")
def test_each_further_store_takes_as_many_listings(tmp_path: Path) -> None:
    """Each store listed the folders of all others again: quadratic time."""
    tops = ((2, "few"), (4, "more"), (6, "most"))
    two, four, six = (listings_of(count, tmp_path / name) for count, name in tops)
    assert four - two == six - four


@pytest.mark.checks("RMQDISK-41")
@pytest.mark.parametrize("is_copy", [True, False])
def test_a_file_of_zeros_beside_a_store_is_read_once(is_copy: bool, tmp_path: Path) -> None:
    """It was read whole each time that something was asked of its folder: 14 times."""
    whole = long_store(tmp_path / "store", 40)
    files = CountingFiles()
    logs = sorted((whole / "commitlog").iterdir())
    for path in (path for path in whole.rglob("*") if path.is_file()):
        if path not in logs[:2]:
            write_file(files, f"/a/store/{path.relative_to(whole)}", path.read_bytes())
    for path in logs if is_copy else logs[:2]:
        write_file(files, f"/a/backup/{path.name}", path.read_bytes())
    number = len(logs) if is_copy else 2
    zeros = f"/a/backup/{number * STORE_LOG_BYTES:020d}"
    write_file(files, zeros, bytes(STORE_LOG_BYTES))
    assert "RMQDISK-41" in {one.law for one in verify("/a/store", files=files)}
    compared = 0 if is_copy else STORE_LOG_BYTES  # with the own file of its name
    assert STORE_LOG_BYTES <= files.bytes_read[zeros] - compared < 2 * STORE_LOG_BYTES
