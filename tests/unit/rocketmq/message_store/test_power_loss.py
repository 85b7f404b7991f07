# SPDX-License-Identifier: Apache-2.0
"""What a crash leaves of a store's index: recovery loses no entry of it, and makes none twice."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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
NOW_MS, LATER_MS = 10**12, 10**12 + 1000
MOST = 2**63 - 1
Answers = list[list[int]]
"""For each message, where the messages with its key begin."""


class Setup(NamedTuple):
    """What a store is configured to."""

    entries: int = ENTRIES
    is_safe: bool = True


SAFE = Setup()


def timed(times_ms: Iterable[int]) -> list[Message]:
    """Return messages of one key each, so many milliseconds after the first time."""
    return [
        message_of("T", {"KEYS": f"k{n}"}, store_timestamp=FIRST_TIMESTAMP_MS + time_ms)
        for n, time_ms in enumerate(times_ms)
    ]


def spaced(count: int, step_ms: int) -> list[Message]:
    """Return messages of one key each, so many milliseconds apart."""
    return timed(step_ms * n for n in range(count))


def opened_store(files: MemoryFiles, setup: Setup = SAFE) -> MessageStore:
    """Return the loaded store."""
    config = MessageStoreConfig(SLOTS, setup.entries, SIZE, message_index_safe=setup.is_safe)
    store = MessageStore.open("/s", config, create=True, files=files, time=lambda: NOW_MS)
    assert store.load()
    return store


def begin(files: MemoryFiles, messages: Sequence[Message]) -> None:
    """Make a store that runs, with a log and queues that are durable, and no index."""
    write_log(files, "/s", messages, SIZE)
    with StoreCheckpoint.open("/s/checkpoint", create=True, files=files) as checkpoint:
        checkpoint.set_logics_msg_timestamp(max(one.store_timestamp for one in messages))
    write_file(files, "/s/abort", b"")
    files.make_directory("/s/index")


def fed(messages: list[Message], count: int, setup: Setup = SAFE) -> dict[str, bytes]:
    """Return the files of a store whose index was told of so many messages."""
    files = MemoryFiles()
    begin(files, messages)
    store = opened_store(files, setup)
    for message in [result.message for _, result in store.commit_log.scan()][:count]:
        assert message is not None
        store.do_dispatch(dispatch_request_of(message))
    return files.images("/s", with_folders=True)


def recovered(images: Mapping[str, bytes], count: int, setup: Setup = SAFE) -> Answers:
    """Return what the store answers after it was loaded and recovered."""
    files = MemoryFiles()
    files.make_directory("/s/index")
    for name, data in images.items():
        write_file(files, f"/s/{name}", data)
    with opened_store(files, setup) as store:
        store.recover()
        asked = [store.index_service.query_offset("T", f"k{n}", 64, 0, MOST) for n in range(count)]
        return [list(one.phy_offsets) for one in asked]


def recovered_by(
    release: Release, images: Mapping[str, bytes], count: int, setup: Setup = SAFE
) -> Answers:
    """Return what the model of a release answers."""

    def load(files: ModelFiles) -> Any:
        config = ModelConfig(SLOTS, setup.entries, SIZE, message_index_safe=setup.is_safe)
        store = release.kind(ModelStore)(files, "", config)
        store.load_and_recover()
        return store

    store: Any = opened(load, ModelFiles(dict(images), now_ms=LATER_MS)).after
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


def header_alone(images: dict[str, bytes]) -> None:
    """Leave of the newest index file its length and its header."""
    newest = max(name for name in images if name.startswith("index/"))
    images[newest] = images[newest][:40].ljust(len(images[newest]), b"\0")


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
    assert [2, 2, 2, 1] == [len(one) for one in recovered_by(NEWEST_ROCKETMQ, images, 4)]


@pytest.mark.checks("RMQSVC-4")
def test_an_unflushed_file_of_the_same_millisecond_is_not_durable() -> None:
    """The newest file has its header and not its entries. It ends at the time that the checkpoint
    has of the file before it. RocketMQ 5.5.1 takes it for durable, and of its two messages makes
    only the entry of the last one.
    """
    messages = spaced(5, 0)
    images = fed(messages, 5)
    header_alone(images)
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


BACK_MS = 10_000
"""So far the clock is set back."""


@pytest.mark.checks("RMQSVC-4", "RMQLOG-5")
@pytest.mark.parametrize("is_safe", [False, True])
@pytest.mark.parametrize(
    ("times_ms", "entries"),
    [
        ([0] * 24, ENTRIES),
        ([*range(BACK_MS, BACK_MS + 40), *range(30)], 41),
        ([BACK_MS, BACK_MS + 1, BACK_MS + 2, 0, 1, 2, 100], ENTRIES),
    ],
    ids=["one millisecond", "clock set back behind a full file", "between two full files"],
)
def test_a_kill_loses_no_entry(times_ms: list[int], entries: int, is_safe: bool) -> None:
    """All bytes are there. Files that may be torn are deleted. Where RocketMQ 5.5.1 keeps them,
    their entries are made again, with or without `message_index_safe`.
    """
    messages, setup = timed(times_ms), Setup(entries, is_safe)
    images, count = fed(messages, len(messages), setup), len(messages)
    right = right_answers(messages)
    assert right == recovered(images, count, setup)
    assert right == recovered_by(SEGPROOF, images, count, setup)


@pytest.mark.checks("RMQSVC-4", "RMQLOG-5")
def test_a_flushed_file_stays_when_the_clock_is_set_back() -> None:
    """Both full files are flushed, and the second ends earlier: so the checkpoint falls. RocketMQ
    5.5.1 deletes the first one, and enters the message at the end of the second again.
    """
    messages = timed([BACK_MS, BACK_MS + 1, BACK_MS + 2, 0, 1, 2, 100])
    found = recovered_by(NEWEST_ROCKETMQ, fed(messages, 7), 7)
    assert [0, 0, 0, 1, 1, 2, 1] == [len(one) for one in found]


@pytest.mark.checks("RMQSVC-4", "RMQLOG-5")
@pytest.mark.parametrize("is_safe", [False, True])
def test_an_unflushed_file_that_ends_earlier_is_not_durable(is_safe: bool) -> None:
    """The newest, full file has its header alone, and ends before the checkpoint's time, since the
    clock was set back. RocketMQ 5.5.1 keeps it.
    """
    messages, setup = timed([BACK_MS, BACK_MS + 1, BACK_MS + 2, 0, 1, 2]), Setup(is_safe=is_safe)
    images = fed(messages, 6)
    header_alone(images)
    right = right_answers(messages)
    assert right == recovered(images, 6, setup) == recovered_by(SEGPROOF, images, 6, setup)
    found = recovered_by(NEWEST_ROCKETMQ, images, 6, setup)
    assert [1, 1, 1, 0, 0, 1] == [len(one) for one in found]


@pytest.mark.checks("RMQSVC-4", "RMQLOG-5")
def test_a_flushed_file_with_an_earlier_name_is_not_mixed_up() -> None:
    """The clock was set back between two flushed files: the newer one has the earlier name. The
    order of their messages counts, and both stay.
    """
    messages = spaced(7, 1000)
    images = fed(messages, 7)
    first, second, _ = sorted(name for name in images if name.startswith("index/"))
    images[first], images[second] = images[second], images[first]
    files = MemoryFiles()
    for name, data in images.items():
        write_file(files, f"/s/{name}", data)
    with opened_store(files) as store:
        ends = [file.end_timestamp - FIRST_TIMESTAMP_MS for file in store.index_service.index_files]
    assert [5000, 2000] == ends


@pytest.mark.checks("RMQLOG-5")
@pytest.mark.parametrize("is_safe", [False, True])
def test_a_safe_recovery_goes_back_over_all_files_of_the_log(is_safe: bool) -> None:
    """The only index file has room, and tells of more than ten files of the log. RocketMQ deletes
    it too: without `message_index_safe` its entries are lost.
    """
    messages, setup = spaced(120, 1000), Setup(200, is_safe)
    images = fed(messages, 120, setup)
    right = right_answers(messages)
    found = recovered(images, 120, setup)
    assert found == recovered_by(SEGPROOF, images, 120, setup)
    assert found == (right if is_safe else [*[[]] * 117, *right[117:]])
    lost = recovered_by(NEWEST_ROCKETMQ, images, 120, setup).count([])
    assert (36 if is_safe else 117) == lost


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
