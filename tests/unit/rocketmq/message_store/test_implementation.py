# SPDX-License-Identifier: Apache-2.0
"""A RocketMQ store: its commit log in pieces, its recovery, its queries in rounds."""

import datetime
import os
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segproof.errors import InvalidArgumentError, SegproofError, TooLargeError
from segproof.files import REAL_FILES, File, RealFiles
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.consume_queue import ConsumeQueue
from segproof.rocketmq.message import FAILED, MAGIC_V1, Message, encode_message
from segproof.rocketmq.message_store import MessageStore, MessageStoreConfig, QueryMessageResult
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.memory_stores import (
    FIRST_TIMESTAMP_MS,
    log_images,
    message_of,
    write_log,
)
from segproof_model.language.files import Files as ModelFiles
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import apply
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.broker.message_store import MessageStore as ModelStore
from segproof_model.rocketmq.broker.message_store import MessageStoreConfig as ModelConfig

MOST = 2**63 - 1
SIZE = 1000
CONFIG = MessageStoreConfig(8, 50, SIZE)


def some(count: int) -> list[Message]:
    """Return messages of one key each, a second apart."""
    return [
        message_of("T", {"KEYS": f"k{number}"}, store_timestamp=FIRST_TIMESTAMP_MS + 1000 * number)
        for number in range(count)
    ]


def offsets_of(log: CommitLog, first: int | None = None) -> list[int]:
    """Return the offsets of the sound records."""
    return [offset for offset, result in log.scan(first) if result.success]


@pytest.mark.checks("RMQLOG-3")
def test_a_scan_crosses_files_and_ends_at_the_first_failure() -> None:
    """Blank ends lead on and are not told; the zeros behind the last record are."""
    files = MemoryFiles()
    write_log(files, "/s", some(30), SIZE, start=5000)
    log = CommitLog.open("/s", files=files)
    found = list(log.scan())
    assert [True] * 30 == [result.success for _, result in found[:-1]]
    assert (found[-1][1], SIZE) == (FAILED, log.mapped_file_size)
    assert (5000, 5000 + SIZE * len(log.log_files)) == (log.min_offset, log.max_offset)
    for offset, result in found[:-1]:
        assert result.message is not None
        assert result.message.physical_offset == offset
        assert log.look_message(offset) == result.message
        assert log.pickup_store_timestamp(offset, result.size) == result.message.store_timestamp
    assert offsets_of(log)[7:] == offsets_of(log, found[7][0])
    for outside in (4999, log.max_offset):
        assert list(log.scan(outside)) == []
        assert log.look_message(outside) is None
        assert log.pickup_store_timestamp(outside, 100) == -1


def test_a_log_that_is_cut_anywhere() -> None:
    """A cut inside a record is a failure there; what lies before it is read."""
    image = log_images(some(4), SIZE)["0" * 20]
    starts = [104 * number for number in range(5)]
    for length in range(0, 440, 3):
        files = MemoryFiles()
        write_file(files, "/s/commitlog/" + "0" * 20, image[:length])
        found = list(CommitLog.open("/s", SIZE, files=files).scan())
        whole = [start for start, end in pairwise(starts) if end <= length]
        assert whole == [offset for offset, result in found if result.success]
        assert (starts[len(whole)], FAILED) == found[-1]


def test_no_log_and_odd_names() -> None:
    """A store without a log has an empty one; names that are no offsets are passed over.

    Where one that is an offset is no file, the log can't be told: what it held would be left out.
    """
    files = MemoryFiles()
    log = CommitLog.open("/s", files=files)
    assert ((), -1, 0, []) == (log.log_files, log.min_offset, log.max_offset, list(log.scan()))
    write_log(files, "/s", some(1), SIZE)
    for name in ("1", "9" * 20, "\u0661" * 20, "0" * 19 + "x"):
        write_file(files, f"/s/commitlog/{name}", b"")
    assert len(CommitLog.open("/s", files=files).log_files) == 1
    files.make_directory("/s/commitlog/" + "0" * 17 + "999")
    with pytest.raises(OSError, match="not a regular file"):
        CommitLog.open("/s", files=files)
    for size in (0, -1, 2**31):
        with pytest.raises(InvalidArgumentError):
            CommitLog.open("/s", size, files=files)


class CountingFile:
    """A file that counts what is read of it at once."""

    def __init__(self, file: File, counts: list[int]) -> None:
        self._file, self._counts = file, counts
        self.path = file.path

    def pread(self, size: int, position: int) -> bytes:
        """Read, and count."""
        self._counts.append(size)
        return self._file.pread(size, position)

    def close(self) -> None:
        """Close."""
        self._file.close()


class CountingFiles(RealFiles):
    """Real files that count what is read of them at once."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open."""
        file = super().open(path, writable=writable, create=create)
        counting: File = CountingFile(file, self.counts)  # type: ignore[assignment]
        return counting


@pytest.mark.parametrize("size", [2**31 - 1, 600 << 20, 1000 << 20])
def test_a_size_that_lies_takes_no_memory(tmp_path: Path, size: int) -> None:
    """A record that says it has most of a file of 1 GiB is not read into memory."""
    path = tmp_path / "commitlog" / ("0" * 20)
    path.parent.mkdir()
    record = size.to_bytes(4, "big") + encode_message(message_of())[4:]
    path.write_bytes(record)
    os.truncate(path, 1 << 30)
    files = CountingFiles()
    log = CommitLog.open(tmp_path, files=files)
    if size < 1 << 30:
        with pytest.raises(TooLargeError):
            list(log.scan())
    else:
        assert list(log.scan()) == [(0, FAILED)]
    assert max(files.counts) <= 1 << 20


def test_a_failure_looks_no_further_than_twice_its_size(tmp_path: Path) -> None:
    """Which failure it is may depend on what follows, but never on much of it."""
    path = tmp_path / "commitlog" / ("0" * 20)
    path.parent.mkdir()
    data = bytearray(encode_message(message_of(body=bytes(2 << 20))))
    data[8] ^= 1
    path.write_bytes(bytes(data))
    os.truncate(path, 1 << 28)
    files = CountingFiles()
    assert list(CommitLog.open(tmp_path, files=files).scan()) == [(0, FAILED)]
    assert max(files.counts) < 5 << 20


# --- loading and recovering


def make_store(files: MemoryFiles, count: int) -> list[int]:
    """Write a store with a log of some messages; return their offsets."""
    write_log(files, "/s", some(count), SIZE)
    return offsets_of(CommitLog.open("/s", SIZE, files=files))


def entries_of(store: MessageStore) -> list[int]:
    """Return the offset of each entry of the index."""
    return [one.phy_offset for file in store.index_service.index_files for one in file]


def test_a_recovery_after_a_crash_begins_with_the_newest_sure_file() -> None:
    """That is the newest one whose first message is not newer than what queues have reached."""
    files = MemoryFiles()
    offsets = make_store(files, 30)
    write_file(files, "/s/abort", b"")
    with MessageStore.open("/s", CONFIG, create=True, files=files) as store:
        store.store_checkpoint.set_logics_msg_timestamp(FIRST_TIMESTAMP_MS + 20_000)
        store.recover()
        assert [offset for offset in offsets if offset >= 2000] == entries_of(store)
        store.store_checkpoint.set_logics_physical_offset(1000)
    safe = MessageStoreConfig(8, 50, SIZE, message_index_safe=True)
    files.remove(files_in(files, "/s/index")[0])
    with MessageStore.open("/s", safe, create=True, files=files) as store:
        store.recover()
        assert offsets == entries_of(store)


def files_in(files: MemoryFiles, folder: str) -> list[str]:
    """Return the paths of the files in a folder."""
    return [f"{folder}/{name}" for name in files.list_directory(folder)]


def test_a_log_file_of_another_length_is_not_loaded() -> None:
    """An empty last one is what a broker has just made."""
    files = MemoryFiles()
    make_store(files, 3)
    write_file(files, "/s/commitlog/" + "0" * 16 + "1000", b"")
    assert MessageStore.open("/s", CONFIG, create=True, files=files).load()
    wrong = MessageStoreConfig(8, 50, SIZE + 1)
    assert not MessageStore.open("/s", wrong, create=True, files=files).load()


def test_an_index_that_is_off_is_not_fed() -> None:
    """Nothing is made then."""
    files = MemoryFiles()
    make_store(files, 3)
    off = MessageStoreConfig(8, 50, SIZE, message_index_enable=False)
    with MessageStore.open("/s", off, create=True, files=files) as store:
        store.recover()
        assert entries_of(store) == []
        assert files.status("/s/index") is None


# --- beside the model


def drawn_store(random: Random, files: MemoryFiles) -> None:
    """Write a log, perhaps damaged, perhaps with a queue and the marker of a crash."""
    messages = [
        message_of(
            "T",
            {"KEYS": random.choice(["a", "b", "a b"])},
            store_timestamp=random.choice([FIRST_TIMESTAMP_MS + number * 1000, 0]),
            body=bytes(random.choice([0, 60])),
        )
        for number in range(random.randrange(30))
    ]
    write_log(files, "/s", messages, 500, random.choice([0, 5000]))
    log = CommitLog.open("/s", 500, files=files)
    records = [(offset, result.size) for offset, result in log.scan() if result.success]
    if random.random() < 0.6:
        queue = ConsumeQueue.open("/s", "T", 0, 100, create=True, files=files)
        for number, record in enumerate(records[: random.randrange(len(records) + 1)]):
            queue.put_message_position_info(*record, 0, number)
    if random.random() < 0.5:
        write_file(files, "/s/abort", b"")
    if random.random() < 0.3:
        file = files.open(random.choice(log.log_files).path, writable=True)
        file.pwrite(b"\xff\xff", random.randrange(498))
        file.close()
    if random.random() < 0.3:
        write_file(files, f"/s/commitlog/{log.max_offset:020d}", b"")


def told(answer: Any) -> Any:
    """Return an answer that both sides can be compared by."""
    if isinstance(answer, Raised):
        return answer.kind.value
    if isinstance(answer, tuple):
        return [one.physical_offset for one in answer[0]], *answer[1:]
    return answer


def drawn_operation(random: Random) -> tuple[str, tuple[Any, ...]]:
    """Return the name and the arguments of something that a store can be asked."""
    if random.random() < 0.4:
        return "recover", ()
    begins, ends = (0, FIRST_TIMESTAMP_MS + 5000), (MOST, FIRST_TIMESTAMP_MS + 9000)
    topic, key = random.choice(["T", "U"]), random.choice("abc")
    wanted = random.choice([-1, 0, 1, 3, 99])
    return "query_message", (topic, key, wanted, random.choice(begins), random.choice(ends))


@settings(max_examples=60)
@given(random=st.randoms(use_true_random=False))
def test_stores_agree_with_the_model(random: Random) -> None:
    """Loading, recovering and asking, with what the checkpoint says of the crash or without."""
    files = MemoryFiles()
    drawn_store(random, files)
    options = (3, 6, 500, random.random() < 0.9, random.random() < 0.3, random.choice([64, 2]))
    for _ in range(2):
        with StoreCheckpoint.open("/s/checkpoint", create=True, files=files) as checkpoint:
            checkpoint.set_logics_msg_timestamp(random.choice([0, FIRST_TIMESTAMP_MS + 20_000]))
            checkpoint.set_index_msg_timestamp(random.choice([0, FIRST_TIMESTAMP_MS + 10_000]))
            checkpoint.set_logics_physical_offset(random.choice([0, 0, 700]))
        images = files.images("/", with_folders=True)
        stored = ModelFiles(images, FIRST_TIMESTAMP_MS)
        model = SEGPROOF.kind(ModelStore)(stored, "s", ModelConfig(*options))
        with MessageStore.open(
            "/s", MessageStoreConfig(*options), create=True, files=files,
            time=lambda: FIRST_TIMESTAMP_MS, zone=datetime.UTC,
        ) as ours:  # fmt: skip
            for name, arguments in [("load", ()), *(drawn_operation(random) for _ in range(5))]:
                step = apply(model, name, *arguments)
                model = step.after
                try:
                    answer = getattr(ours, name)(*arguments)
                except SegproofError as error:
                    answer = error.kind
                assert told(step.outcome) == told(answer)
                assert dict(model.files.images) == files.images("/", with_folders=True)


# --- queries


def test_messages_of_a_key() -> None:
    """In the order of the log, at most as many as are wanted, newest first chosen."""
    files = MemoryFiles()
    messages = [
        message_of("T", {"KEYS": "k"}, store_timestamp=FIRST_TIMESTAMP_MS + 1000 * number)
        for number in range(5)
    ]
    write_log(files, "/s", messages, SIZE)
    with MessageStore.open("/s", CONFIG, create=True, files=files) as store:
        assert store.query_message("T", "k", 9, 0, MOST) == QueryMessageResult((), 0, 0)
        store.recover()
        found = store.query_message("T", "k", 2, 0, MOST)
        assert [3, 4] == [
            (one.store_timestamp - FIRST_TIMESTAMP_MS) // 1000 for one in found.messages
        ]
        assert found[1:] == (FIRST_TIMESTAMP_MS + 4000, found.messages[-1].physical_offset)
        assert len(store.query_message("T", "k", 9, 0, FIRST_TIMESTAMP_MS + 1000).messages) == 2
        assert store.query_message("T", "z", 9, 0, MOST).messages == ()


def test_entries_without_a_message_are_passed_over() -> None:
    """An index may be older or newer than the log; three rounds end in nothing."""
    files = MemoryFiles()
    write_log(files, "/s", [message_of("T", {"KEYS": "k"}, magic=MAGIC_V1)], SIZE)
    with MessageStore.open("/s", CONFIG, create=True, files=files) as store:
        store.recover()
        store.index_service.index_files[0].put_key("T#k", 50_000, FIRST_TIMESTAMP_MS)
        assert len(store.query_message("T", "k", 9, 0, MOST).messages) == 1
    for name in files_in(files, "/s/commitlog"):
        files.remove(name)
    with MessageStore.open("/s", CONFIG, create=True, files=files) as store:
        assert store.load()
        assert store.query_message("T", "k", 9, 0, MOST).messages == ()


def test_real_files(tmp_path: Path) -> None:
    """The same on a disk, with the defaults of the process: local names, the present time."""
    write_log(REAL_FILES, os.fspath(tmp_path), some(30), SIZE)
    with MessageStore.open(tmp_path, CONFIG, create=True) as store:
        assert store.load()
        store.recover()
        assert len(store.query_message("T", "k29", 32, 0, MOST).messages) == 1
    names = os.listdir(tmp_path / "index")
    assert [17] == [len(name) for name in names]
