# SPDX-License-Identifier: Apache-2.0
"""What a crash leaves of a store's index: recovery loses no entry of it, and makes none twice."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from segproof.rocketmq.message import Message, dispatch_request_of
from segproof.rocketmq.message_store import MessageStore, MessageStoreConfig
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.memory_stores import FIRST_TIMESTAMP_MS, message_of, write_log
from segproof_harness.machine.simulated_files import SimulatedFiles, crashes_in
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files as ModelFiles
from segproof_model.language.states import apply, opened
from segproof_model.releases import NEWEST_ROCKETMQ, SEGPROOF
from segproof_model.rocketmq.broker.message_store import MessageStore as ModelStore
from segproof_model.rocketmq.broker.message_store import MessageStoreConfig as ModelConfig

SIZE = 1000
SECTOR_BYTES = 64
SLOTS = ENTRIES = 4
"""Three entries have room in an index file."""
NOW_MS = 10**12
MOST = 2**63 - 1
Answers = list[list[int]]
"""For each message, where the messages with its key begin."""


def spaced(count: int, step_ms: int) -> list[Message]:
    """Return messages of one key each, so many milliseconds apart."""
    return [
        message_of("T", {"KEYS": f"k{n}"}, store_timestamp=FIRST_TIMESTAMP_MS + step_ms * n)
        for n in range(count)
    ]


def opened_store(files: MemoryFiles) -> MessageStore:
    """Return the loaded store."""
    config = MessageStoreConfig(SLOTS, ENTRIES, SIZE, message_index_safe=True)
    store = MessageStore.open("/s", config, create=True, files=files, time=lambda: NOW_MS)
    assert store.load()
    return store


def begin(files: MemoryFiles, messages: Sequence[Message]) -> None:
    """Make a store that runs, with a log and queues that are durable, and no index."""
    write_log(files, "/s", messages, SIZE)
    with StoreCheckpoint.open("/s/checkpoint", create=True, files=files) as checkpoint:
        checkpoint.set_logics_msg_timestamp(messages[-1].store_timestamp)
    write_file(files, "/s/abort", b"")
    files.make_directory("/s/index")


def fed(messages: list[Message], count: int) -> dict[str, bytes]:
    """Return the files of a store whose index was told of so many messages."""
    files = MemoryFiles()
    begin(files, messages)
    store = opened_store(files)
    for message in [result.message for _, result in store.commit_log.scan()][:count]:
        assert message is not None
        store.do_dispatch(dispatch_request_of(message))
    return files.images("/s", with_folders=True)


def recovered(images: Mapping[str, bytes], count: int) -> Answers:
    """Return what the store answers after it was loaded and recovered."""
    files = MemoryFiles()
    files.make_directory("/s/index")
    for name, data in images.items():
        write_file(files, f"/s/{name}", data)
    with opened_store(files) as store:
        store.recover()
        asked = [store.index_service.query_offset("T", f"k{n}", 64, 0, MOST) for n in range(count)]
        return [list(one.phy_offsets) for one in asked]


def recovered_by(release: Release, images: Mapping[str, bytes], count: int) -> Answers:
    """Return what the model of a release answers."""

    def load(files: ModelFiles) -> Any:
        config = ModelConfig(SLOTS, ENTRIES, SIZE, message_index_safe=True)
        store = release.kind(ModelStore)(files, "", config)
        store.load_and_recover()
        return store

    store: Any = opened(load, ModelFiles(dict(images), now_ms=NOW_MS)).after
    questions = [("T", f"k{n}", 64, 0, MOST) for n in range(count)]
    asked: list[Any] = [
        apply(store.index_service, "query_offset", *one).outcome for one in questions
    ]
    return [list(one.phy_offsets) for one in asked]


def right_answers(messages: list[Message]) -> Answers:
    """Return the answers where each message has one entry."""
    files = MemoryFiles()
    begin(files, messages)
    return [[offset] for offset, result in opened_store(files).commit_log.scan() if result.success]


@pytest.mark.checks("RMQSVC-4")
def test_a_file_without_its_header_makes_no_entry_twice() -> None:
    """The next index file has its name and its length, and none of its bytes: its end is 0, so
    every message seems to be new. RocketMQ 5.5.1 indexes them all again.
    """
    messages = spaced(4, 1000)
    images = fed(messages, 4)
    newest = max(name for name in images if name.startswith("index/"))
    images[newest] = bytes(len(images[newest]))
    right = right_answers(messages)
    assert right == recovered(images, 4) == recovered_by(SEGPROOF, images, 4)
    assert [1, 3, 2, 2] == [len(one) for one in recovered_by(NEWEST_ROCKETMQ, images, 4)]


@pytest.mark.checks("RMQSVC-4")
def test_an_unflushed_file_of_the_same_millisecond_is_not_durable() -> None:
    """The newest file has its header and not its entries. It ends at the time that the checkpoint
    has of the file before it. RocketMQ 5.5.1 takes it for durable, and of its two messages makes
    only the entry of the last one.
    """
    messages = spaced(5, 0)
    images = fed(messages, 5)
    newest = max(name for name in images if name.startswith("index/"))
    images[newest] = images[newest][:40].ljust(len(images[newest]), b"\0")
    right = right_answers(messages)
    assert right == recovered(images, 5) == recovered_by(SEGPROOF, images, 5)
    assert [*right[:3], [], right[4]] == recovered_by(NEWEST_ROCKETMQ, images, 5)


@pytest.mark.checks("RMQSVC-4", "RMQLOG-5")
def test_a_safe_recovery_begins_where_the_index_ends() -> None:
    """All messages are of one millisecond, in several files of the log. Only the first index file
    is durable, which ends in the first of these, and by its time the checkpoint covers them all.
    """
    messages = spaced(24, 0)
    images = fed(messages, 4)
    assert len([name for name in images if name.startswith("commitlog/")]) > 2
    right = right_answers(messages)
    assert right == recovered(images, 24) == recovered_by(SEGPROOF, images, 24)


@pytest.mark.checks("RMQSVC-4", "RMQSVC-10", "RMQSVC-12", "RMQLOG-5")
@pytest.mark.parametrize("step_ms", [0, 400, 1000])
def test_each_message_has_one_entry_wherever_it_crashes(step_ms: int) -> None:
    """At each step of building, with each sector of an index file written or not.

    A sector has 64 bytes here: the header and the first slots.
    """
    messages, files = spaced(8, step_ms), SimulatedFiles()
    begin(files, messages)
    store = opened_store(files)
    files.settle()

    def build() -> None:
        for _, result in store.commit_log.scan():
            if result.message is not None:
                store.do_dispatch(dispatch_request_of(result.message))
                files.look()

    right = right_answers(messages)
    for image in crashes_in(files, build, bound=12, sector_bytes=SECTOR_BYTES):
        found = {path.removeprefix("/s/"): data for path, data in image.items()}
        assert right == recovered(found, len(messages))
