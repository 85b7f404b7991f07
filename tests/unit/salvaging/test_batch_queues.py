# SPDX-License-Identifier: Apache-2.0
"""Topics with queues of batches (`queue.type` BatchCQ): no ordinary queue is made for them."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.files import REAL_FILES
from segproof.findings import Finding, Severity
from segproof.repair import rebuild_index, salvage_store
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.consume_queue import ConsumeQueue
from segproof.rocketmq.message import Message, dispatch_request_of
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof.salvaging.store_salvage import SalvagedStore
from segproof.verification import verify
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.memory_stores import (
    FIRST_TIMESTAMP_MS,
    message_of,
    write_log,
)
from segproof_harness.laws.judged_store import store_disagreements
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.reported_findings import verified
from segproof_tests.store_files import ENTRIES, LOG_BYTES, SLOTS

BATCHES, QUEUES = "batchconsumequeue", "consumequeue"
INNER_BATCH = 0xC0
PER_MESSAGE = 3
"""Messages in each batch."""
UNIT = struct.Struct(">qiqqqhi4x")


def topics_json(**types: str) -> str:
    """Return the file of topics, each with a `queue.type`; empty: without attributes."""
    table = {
        topic: {"readQueueNums": 4, "attributes": {"queue.type": kind}} if kind else {}
        for topic, kind in types.items()
    }
    return json.dumps({"topicConfigTable": table})


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Path:
    """Return a sound store: T has ordinary queues, Ship queues of batches."""
    store, following = tmp_path / "store", {"T": 0, "Ship": 0}
    messages: list[Message] = []
    for number in range(30):
        topic = "T" if number % 3 else "Ship"
        new = message_of(
            topic, {"KEYS": f"k{number}"}, body=b"b" * 60, queue_offset=following[topic],
            sys_flag=0 if number % 3 else INNER_BATCH,
            store_timestamp=FIRST_TIMESTAMP_MS + 1000 * number,
        )  # fmt: skip
        messages.append(new)
        following[topic] += 1 if number % 3 else PER_MESSAGE
    write_log(REAL_FILES, str(store), messages, LOG_BYTES)
    queue = ConsumeQueue.open(store, "T", 0, 20 * 32, create=True)
    units = b""
    for at, result in CommitLog.open(store).scan():
        if (one := result.message) is None:
            continue
        code = dispatch_request_of(one).tags_code
        if one.topic == "T":
            queue.put_message_position_info(at, one.total_size, code, one.queue_offset)
            continue
        times = (one.store_timestamp, one.queue_offset, PER_MESSAGE, 0)
        units += UNIT.pack(at, one.total_size, code, *times)
    queue.close()
    write_file(
        REAL_FILES, str(store / BATCHES / "Ship/0" / ("0" * 20)), units.ljust(46 * 40, b"\0")
    )
    rebuild_index(store, None, SLOTS, ENTRIES, in_place=True)
    with StoreCheckpoint.open(store / "checkpoint", create=True) as checkpoint:
        checkpoint.set_physic_msg_timestamp(FIRST_TIMESTAMP_MS + 29_000)
        checkpoint.set_logics_msg_timestamp(FIRST_TIMESTAMP_MS + 29_000)
        checkpoint.flush()
    write_file(
        REAL_FILES, str(store / "config/topics.json"), topics_json(T="", Ship="BatchCQ").encode()
    )
    return store


def defects(store: Path) -> list[Finding]:
    """Return the defects, on which the model agrees."""
    assert [] == list(store_disagreements(store))
    return [one for one in verify(store) if one.is_defect]


def saved(store: Path) -> SalvagedStore:
    """Save a store; no ordinary queue is made for Ship."""
    out = store.with_name("out")
    told = salvage_store(store, out, hash_slot_num=SLOTS, index_num=ENTRIES)
    assert ["T"] == [one.name for one in sorted((out / QUEUES).iterdir())]
    return told


def assert_brought(store: Path) -> None:
    """The files of the queues of batches are in the new store, byte for byte."""
    old, new = (one / BATCHES / "Ship/0" / ("0" * 20) for one in (store, store.with_name("out")))
    assert old.read_bytes() == new.read_bytes()


def without_config(store: Path) -> None:
    """Remove `config`, as where RocksDB keeps it."""
    shutil.rmtree(store / "config")


def with_backup_only(store: Path) -> None:
    """Leave the backup of the topics alone."""
    (store / "config/topics.json").rename(store / "config/topics.json.bak")


def beside_a_broker(store: Path) -> None:
    """Put the marker of a broker that runs, or was killed, into the store."""
    (store / "abort").write_bytes(b"")


@pytest.mark.checks("RMQDISK-37")
@pytest.mark.parametrize(
    "change", [lambda store: None, without_config, with_backup_only, beside_a_broker]
)
def test_queues_of_batches_are_brought_along(store: Path, change: Callable[[Path], None]) -> None:
    """Their messages were told as without a queue, and the advised salvage made ordinary ones."""
    change(store)
    assert [] == defects(store)
    told = saved(store)
    assert (30, [], 0) == (told.messages, told.left_out, told.unqueued_messages)
    assert_brought(store)
    assert [] == defects(store.with_name("out"))


@pytest.mark.checks("RMQDISK-37")
def test_a_store_of_queues_of_batches_alone_has_queues(tmp_path: Path, store: Path) -> None:
    """Without `consumequeue` nothing says that the store has no queue."""
    shutil.rmtree(store / QUEUES)
    (only,) = defects(store)
    assert "20 messages are in the commit log, and no queue is here but those in" in only.message


def damage(store: Path, topic: str) -> None:
    """Break one message of a topic in the log."""
    for at, result in CommitLog.open(store).scan():
        if at > LOG_BYTES and result.message is not None and result.message.topic == topic:
            path = store / "commitlog" / f"{at // LOG_BYTES * LOG_BYTES:020d}"
            flip_bits(path, at % LOG_BYTES + 100)
            return


@pytest.mark.parametrize("topic", ["T", "Ship"])
def test_queues_with_a_lost_message_are_left_out_whole(topic: str, store: Path) -> None:
    """A lost message of another topic costs the queues of batches nothing."""
    damage(store, topic)
    _, summaries = verified(store)
    told = saved(store)
    assert (1, True) == (told.lost_messages, told.is_lost_exact)
    assert (29, 1) == (summaries[0].batches, summaries[0].lost_offsets)
    if topic == "T":
        assert [] == told.left_out
        assert_brought(store)
        return
    (only,) = told.left_out
    assert "Ship: it was not copied: 1 unit of it leads to no message of its queue that" in only
    assert not (store.with_name("out") / BATCHES).exists()
    (lost,) = defects(store.with_name("out"))
    assert "9 messages are in the commit log, and no queue of their topics is here" in lost.message
    assert "segproof salvage" not in lost.hint


def units_in(path: Path) -> list[int]:
    """Return the offsets to which the units of a file lead, zeros left out."""
    return [row[0] for row in UNIT.iter_unpack(path.read_bytes()) if row[1]]


def test_units_beyond_the_lost_end_are_cut_off_and_told(store: Path) -> None:
    """They came along byte for byte, without a word."""
    last = max((store / "commitlog").iterdir())
    last.write_bytes(bytes(last.stat().st_size))
    told = saved(store)
    (only,) = told.left_out
    old, new = (one / BATCHES / "Ship/0" / ("0" * 20) for one in (store, store.with_name("out")))
    kept = [at for at in units_in(old) if at <= told.last_offset]
    count = len(units_in(old)) - len(kept)
    assert 0 < count < len(units_in(old))
    assert f"{count} unit" in only
    assert "beyond the end of the new log" in only
    assert kept == units_in(new)
    assert old.stat().st_size == new.stat().st_size
    assert not told.is_whole
    assert [] == defects(store.with_name("out"))


def test_a_file_of_units_beyond_the_lost_end_is_not_needed(store: Path) -> None:
    """Each file of a queue has a unit that leads to a kept message."""
    file = store / BATCHES / "Ship/0" / ("0" * 20)
    units, room = file.read_bytes(), 46 * 5
    for at in (0, room):
        (file.parent / f"{at:020d}").write_bytes(units[at : at + room])
    for log_file in sorted((store / "commitlog").iterdir())[1:]:
        log_file.write_bytes(bytes(log_file.stat().st_size))
    told = saved(store)
    brought = store.with_name("out") / BATCHES / "Ship/0"
    assert [file.name] == [one.name for one in brought.iterdir()]
    assert all(at <= told.last_offset for at in units_in(brought / file.name))


@pytest.mark.parametrize("unit", [0, 4])
@pytest.mark.parametrize("at", [2, 7, 11])
def test_a_damaged_unit_is_told(store: Path, unit: int, at: int) -> None:
    """One bit in an offset or a size, and the queue came along as it was, without a word."""
    path = store / BATCHES / "Ship/0" / ("0" * 20)
    flip_bits(path, unit * UNIT.size + at, 0x10)
    told = saved(store)
    (only,) = told.left_out
    assert "1 unit of it leads to no message of its queue that was kept" in only
    assert told.has_every_message
    assert not told.is_whole
    assert not (store.with_name("out") / BATCHES).exists()


@pytest.mark.checks("RMQDISK-37")
def test_a_topic_with_the_type_alone_has_lost_its_queues(store: Path) -> None:
    """`config` says that the queues are of batches, and no file of one is here."""
    shutil.rmtree(store / BATCHES)
    (only,) = defects(store)
    assert ("RMQDISK-37", "10", Severity.WARNING) == (only.law, only.actual, only.severity)
    assert only.path.endswith(BATCHES)
    assert "segproof salvage" not in only.hint
    (left,) = saved(store).left_out
    assert "it has the queue.type BatchCQ in config, and no file of its queues is here" in left


@pytest.mark.checks("RMQDISK-57")
def test_a_queue_in_the_folder_of_the_other_type_ends_a_start(store: Path) -> None:
    """A broker compares the folder of each queue with the type of its topic."""
    shutil.copytree(store / QUEUES / "T", store / QUEUES / "Ship")
    found = [one for one in defects(store) if one.law == "RMQDISK-57"]
    (message,) = (one.message for one in found)
    assert "consumequeue has the queue.type BatchCQ in it, such as Ship: a broker ends" in message
    assert [] == saved(store).left_out
    assert_brought(store)


@pytest.mark.checks("RMQDISK-57")
@pytest.mark.parametrize("kind", ["", "SimpleCQ"])
def test_queues_of_batches_are_kept_whatever_config_says(kind: str, store: Path) -> None:
    """The folder alone shows what the queues are; the other type in `config` is told."""
    (store / "config/topics.json").write_text(topics_json(T="", Ship=kind))
    (only,) = defects(store)
    assert "has not the queue.type BatchCQ in it, such as Ship" in only.message
    told = saved(store)
    (lack,) = told.config_lacks
    assert only.message in lack
    assert [] == told.left_out
    assert_brought(store)


def test_a_topic_that_was_made_again_keeps_its_ordinary_queues(store: Path) -> None:
    """Files in both folders: the type in `config` tells which one counts."""
    (store / "config/topics.json").write_text(topics_json(T="", Ship=""))
    shutil.copytree(store / QUEUES / "T", store / QUEUES / "Ship")
    out = store.with_name("out")
    told = salvage_store(store, out, hash_slot_num=SLOTS, index_num=ENTRIES)
    assert any("the topic has ordinary queues" in one for one in told.left_out)
    assert (out / QUEUES / "Ship").exists()
    assert not (out / BATCHES).exists()


@pytest.mark.parametrize("name", [BATCHES, f"{BATCHES}/Ship", f"{BATCHES}/Ship/0"])
def test_no_link_is_followed(name: str, store: Path, tmp_path: Path) -> None:
    """A link may lead to any folder of the machine."""
    (store / name).rename(tmp_path / "elsewhere")
    (store / name).symlink_to(tmp_path / "elsewhere")
    (only,) = saved(store).left_out
    assert "is a link to " in only
    assert not list(store.with_name("out").rglob(f"{BATCHES}/Ship/0/*"))


def test_what_lies_beside_the_queues_is_told(store: Path) -> None:
    """A folder without a file of a queue is left out."""
    (store / BATCHES / "empty").mkdir()
    assert ["no file of a queue is in it"] == [
        one.rpartition(": ")[2] for one in saved(store).left_out
    ]
