# SPDX-License-Identifier: Apache-2.0
"""What releases of RocketMQ do against their own purpose, on the smallest store that shows it.

Each test states what the real store does, so that a release which mends it is noticed.
"""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.stores import (
    CONFIG,
    ENTRIES,
    INT64_MAX,
    LOG_BYTES,
    NEWEST,
    OLD,
    SLOTS,
    StoreProcess,
    draft,
    index_bytes,
    recovered_by_model,
    write_store,
)

from segproof.repair import salvage_store
from segproof.rocketmq.message import Message
from segproof.rocketmq.message_store import MessageStore, MessageStoreConfig
from segproof.verification import verify
from segproof_harness.files.memory_stores import FIRST_TIMESTAMP_MS, message_of
from segproof_model.releases import release_named

pytestmark = pytest.mark.needs("java", "jpype")


def small_messages(count: int, step_ms: int = 1000) -> list[Message]:
    """Return messages of one queue, a key each, so many milliseconds apart."""
    return [
        message_of(
            "T", {"KEYS": f"k{number}"}, queue_offset=number,
            store_timestamp=FIRST_TIMESTAMP_MS + step_ms * number,
        )
        for number in range(count)
    ]  # fmt: skip


def found_by_key(store: StoreProcess, count: int) -> list[list[int]]:
    """Return the offsets of each key."""
    questions = [("T", f"k{number}", 64, 0, INT64_MAX) for number in range(count)]
    return [one["phy_offsets"] for one in store.ask("query", questions=questions)]


LOSES_THE_FIRST = ["rocketmq-5.5.1", "rocketmq-5.4.0", "rocketmq-5.3.3"]
LOSES_ALL = ["rocketmq-5.1.4", "rocketmq-5.0.0", "rocketmq-4.3.2"]
KEEPS_ALL = ["rocketmq-4.9.8"]


@pytest.mark.checks("RMQLOG-5")
@pytest.mark.parametrize("release", [*LOSES_THE_FIRST, *LOSES_ALL, *KEEPS_ALL])
def test_a_start_loses_messages_behind_the_queues(release: str, tmp_path: Path) -> None:
    """After a clean exit with four messages of which the queue has one, others are lost.

    Releases from 5.3.2 on read the log on from where the queues end, and take that place, the
    first byte of the next message, for one that was dispatched: this message comes into no queue
    and no index, and the ones behind it take its place in the queue. Releases 5.0.0 to 5.1.4, and
    4.3.2, read on from the end of the log, and lose all of them; 4.7.0 to 4.9.8 none. The next
    message to be stored then gets a number that a message of the log has.
    """
    path = tmp_path / "store"
    offsets = write_store(path, small_messages(4), queued=1, index=False)
    expected = recovered_by_model(path, release_named(release))
    with StoreProcess(release, path) as store:
        assert store.ask("load") is True
        read = store.ask("consume", topic="T", queue_id=0, count=4)
        keys = found_by_key(store, 4)
        assert expected == list(index_bytes(path).values())
        stored = store.ask("put", messages=[_next()])[0]
    places = [(one["phy_offset"], one["queue_offset"]) for one in read]
    pairs = list(zip(offsets, range(4), strict=True))
    kept = [0]
    if release not in LOSES_ALL:
        kept = [0, 2, 3] if release in LOSES_THE_FIRST else [0, 1, 2, 3]
    assert [pairs[number] for number in kept] == places
    assert [[offsets[number]] if number in kept[1:] else [] for number in range(4)] == keys
    assert len(kept) == stored["queue_offset"]


def _next() -> dict[str, Any]:
    return {"topic": "T", "queue_id": 0, "body": "next", "properties": {"KEYS": "next"}}


@pytest.mark.checks("RMQLOG-5")
@pytest.mark.parametrize("release", [NEWEST, *LOSES_ALL])
def test_removed_queues_are_made_new(release: str, tmp_path: Path) -> None:
    """Queues that were removed after a clean exit are made new, but in 4.3.2, 5.0.0 and 5.1.4.

    There a consumer gets none of the messages, which the log still has.
    """
    path = tmp_path / "store"
    write_store(path, small_messages(4), queued=0, index=False)
    with StoreProcess(release, path) as store:
        assert store.ask("load") is True
        read = store.ask("consume", topic="T", queue_id=0, count=4)
    expected = [] if release in LOSES_ALL else [0, 1, 2, 3]
    assert expected == [one["queue_offset"] for one in read]


@pytest.mark.parametrize("release", [NEWEST])
def test_a_single_message_behind_the_queues_is_lost(release: str, tmp_path: Path) -> None:
    """Where one message only lies behind the end of the queues, a consumer never gets it."""
    path = tmp_path / "store"
    offsets = write_store(path, small_messages(2), queued=1, index=False)
    with StoreProcess(release, path) as store:
        assert store.ask("load") is True
        read = store.ask("consume", topic="T", queue_id=0, count=2)
        assert [offsets[0]] == [one["phy_offset"] for one in read]
        assert [[], []] == found_by_key(store, 2)
        assert store.ask("put", messages=[_next()])[0]["queue_offset"] == 1


def test_segproof_tells_its_index_of_it(tmp_path: Path) -> None:
    """Our own recovery of the same store has entries of that message (profile `segproof`)."""
    path = tmp_path / "store"
    offsets = write_store(path, small_messages(4), queued=1, index=False)
    with MessageStore.open(
        path, MessageStoreConfig(SLOTS, ENTRIES, LOG_BYTES), create=True
    ) as store:
        assert store.load()
        store.recover()
        found = [
            store.index_service.query_offset("T", f"k{number}", 64, 0, INT64_MAX).phy_offsets
            for number in range(4)
        ]
    assert [(), *((offset,) for offset in offsets[1:])] == found


FEW_BYTES = 256
"""Of a log file: two messages."""
MANY_FILES = {**CONFIG, "mappedFileSizeCommitLog": FEW_BYTES}
COUNT = 36


@pytest.mark.checks("RMQLOG-5")
@pytest.mark.parametrize("release", [NEWEST, "rocketmq-5.3.3"])
def test_queues_are_made_new_from_ten_files_only(release: str, tmp_path: Path) -> None:
    """Of a log of 18 files 5.4.0 and 5.5.1 read the last ten where the queues were removed.

    A consumer gets none of the messages before, and no key of them is found, unless the option
    commitLogRecoverMaxNum is set to the number of files. Releases 5.3.2 and 5.3.3 read all.
    """
    path = tmp_path / "store"
    write_store(path, small_messages(COUNT), queued=0, index=False, log_bytes=FEW_BYTES)
    assert len(list(path.glob("commitlog/*"))) == COUNT // 2
    expected = recovered_by_model(path, release_named(release), log_bytes=FEW_BYTES)
    with StoreProcess(release, path, MANY_FILES) as store:
        assert store.ask("load") is True
        keys = found_by_key(store, COUNT)
        read = store.ask("consume", topic="T", queue_id=0, count=COUNT)
        assert expected == list(index_bytes(path).values())
    lost = 16 if release == NEWEST else 0
    assert [not found for found in keys] == [number < lost for number in range(COUNT)]
    assert ([] if lost else list(range(COUNT))) == [one["queue_offset"] for one in read]


@pytest.mark.parametrize("release", [NEWEST, "rocketmq-5.1.4", "rocketmq-4.9.8"])
def test_what_verify_advises_for_queues_works(release: str, tmp_path: Path) -> None:
    """A store whose queues lack messages is whole again after what the finding says to do.

    The hint was to remove the queues and the checkpoint, and to let a broker make them anew: a
    start that cuts a damaged log. A salvage makes them in a new store.
    """
    path, saved = tmp_path / "store", tmp_path / "saved"
    write_store(path, small_messages(COUNT), queued=3, log_bytes=FEW_BYTES)
    (found,) = [one for one in verify(path, deep=True) if one.is_defect]
    assert "RMQDISK-37" == found.law
    assert f"segproof salvage {path}" in found.hint
    salvage_store(path, saved)
    with StoreProcess(release, saved, MANY_FILES) as store:
        assert store.ask("load") is True
        read = store.ask("consume", topic="T", queue_id=0, count=COUNT)
    assert list(range(COUNT)) == [one["queue_offset"] for one in read]
    assert [] == [one for one in verify(saved, deep=True) if one.is_defect]


FLUSH_SECONDS = 30.0
EAGER = {
    **CONFIG,
    "mappedFileSizeCommitLog": 4096,
    "maxIndexNum": 2000,
    "flushIntervalConsumeQueue": 50,
    "flushConsumeQueueThoroughInterval": 1,
}
"""Queues are flushed at once, which a broker does each minute."""


def _reached(path: Path) -> int:
    """Return where the checkpoint says that the queues have reached the log."""
    return int.from_bytes((path / "checkpoint").read_bytes()[40:48], "big")


@pytest.mark.checks("RMQSVC-4")
def test_a_kill_loses_the_keys_of_the_newest_index_file(tmp_path: Path) -> None:
    """After a kill 5.5.1 removes the newest index file, and makes new only its last entries.

    The recovery begins with the log file that the flushed queues lead to, not with the first one
    that the removed index file had entries of: the keys before are not found any more, though their
    messages are there. The option messageIndexSafe, off by default, keeps them.
    """
    path = tmp_path / "store"
    drafts = [draft(number, ["T"]) for number in range(60)]
    with StoreProcess(NEWEST, path, EAGER) as store:
        assert store.ask("load") is True
        places = store.ask("put", messages=drafts)
        end = time.monotonic() + FLUSH_SECONDS
        while _reached(path) < places[50]["phy_offset"]:
            assert time.monotonic() < end, "the queues are not flushed"
            time.sleep(0.01)
        questions = [("T", f"U{number:04d}", 64, 0, INT64_MAX) for number in (0, 1, 59)]
        before = store.ask("query", questions=questions)
        store.kill()
    wanted = [[places[number]["phy_offset"]] for number in (0, 1, 59)]
    assert wanted == [one["phy_offsets"] for one in before]
    for safe, expected in ((False, [[], [], wanted[2]]), (True, wanted)):
        copy = tmp_path / f"{safe}"
        shutil.copytree(path, copy)
        with StoreProcess(NEWEST, copy, {**EAGER, "messageIndexSafe": safe}) as store:
            assert store.ask("load") is True
            after = [one["phy_offsets"] for one in store.ask("query", questions=questions)]
            read = store.ask("consume", topic="T", queue_id=0, count=1)
        assert expected == after
        assert places[0]["phy_offset"] == read[0]["phy_offset"]


@pytest.mark.checks("RMQSVC-4", "RMQSVC-12")
@pytest.mark.parametrize(("step_ms", "kept_bytes"), [(1000, 0), (0, 40)])
@pytest.mark.parametrize("release", [NEWEST, OLD, "rocketmq-4.3.2"])
def test_a_power_loss_repeats_keys_or_loses_them(
    release: str, step_ms: int, kept_bytes: int, tmp_path: Path
) -> None:
    """The newest index file has its name and its length, of its bytes none or the header alone.

    Without a header its end is 0, and the recovery puts every message into it again. With a header
    that ends in the millisecond in which the flushed file before it ends, the file counts as
    durable, and of its messages only the last one is put again. segproof does neither.
    """
    path, count = tmp_path / "store", ENTRIES + 1
    places = write_store(path, small_messages(count, step_ms))
    (path / "abort").touch()
    newest = sorted(path.glob("index/*"))[-1]
    data = newest.read_bytes()
    newest.write_bytes(data[:kept_bytes].ljust(len(data), b"\0"))
    ours = tmp_path / "ours"
    shutil.copytree(path, ours)
    with StoreProcess(release, path, {**CONFIG, "messageIndexSafe": True}) as store:
        assert store.ask("load") is True
        found = found_by_key(store, count)
    right = [[place] for place in places]
    if kept_bytes:
        assert [*right[:-2], [], right[-1]] == found
    else:
        assert all(set(one) == {place} for one, place in zip(found, places, strict=True))
        assert max(len(one) for one in found) > 1
    config = MessageStoreConfig(SLOTS, ENTRIES, LOG_BYTES, message_index_safe=True)
    with MessageStore.open(ours, config, writable=True) as saved:
        assert saved.load()
        saved.recover()
        asked = [saved.index_service.query_offset("T", f"k{n}", 64, 0, INT64_MAX) for n in
                 range(count)]  # fmt: skip
    assert right == [list(one.phy_offsets) for one in asked]
