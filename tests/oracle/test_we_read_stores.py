# SPDX-License-Identifier: Apache-2.0
"""segproof reads what RocketMQ's own message store leaves: stopped, killed, and started again."""

import shutil
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from tests.oracle.stores import (
    CONFIG,
    ENTRIES,
    INT64_MAX,
    LOG_BYTES,
    NEWEST,
    OLD,
    QUEUE_BYTES,
    SLOTS,
    StoreProcess,
    draft,
    index_bytes,
    keys_of,
    recovered_by_model,
)

from segproof.repair import rebuild_index
from segproof.rocketmq.consume_queue import ConsumeQueue
from segproof.rocketmq.message import encode_message, string_to_message_properties
from segproof.rocketmq.message_store import MessageStore, MessageStoreConfig
from segproof.store_lookup import StoreReader
from segproof.verification import verify
from segproof_model.releases import SEGPROOF, release_named
from segproof_model.rocketmq.broker.index_service_deviations import NamesAreDistinct
from segproof_model.rocketmq.broker.index_service_releases import TagsAreNotIndexed

pytestmark = pytest.mark.needs("java", "jpype")
COUNT = 150
KILLED_ENTRIES = 100
"""Entries of an index file in a store that is killed: its rebuilt files are some time apart."""
KILLED_AFTER = 70
KILLED_CONFIG = {**CONFIG, "maxIndexNum": KILLED_ENTRIES}
MISSING = ["Orders#missing", "Else#k1"]


def keys_of_all(release: str, count: int = COUNT) -> list[str]:
    """Return every key of the first messages, each once."""
    found = [key for number in range(count) for key in keys_of(draft(number), release)]
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Left:
    """A store that was stopped cleanly, and what it said before."""

    release: str
    path: Path
    places: list[dict[str, int]]
    """Where each message lies."""
    answers: list[tuple[str, tuple[int, int, int], tuple[int, ...]]]
    """Key, window (begin, end, number at most), offsets."""
    queues: dict[tuple[str, int], list[dict[str, int]]]
    """What a consumer of each queue reads."""


@pytest.fixture(scope="module", params=[NEWEST, OLD])
def left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Give a store of some hundred messages."""
    path = tmp_path_factory.mktemp("theirs") / "store"
    drafts = [draft(number) for number in range(COUNT)]
    with StoreProcess(request.param, path) as store:
        assert store.ask("load") is True
        places = store.ask("put", messages=drafts)
        times = [place["store_timestamp"] for place in places]
        windows = [
            (0, INT64_MAX, 64), (0, INT64_MAX, 2), (times[50], INT64_MAX, 64),
            (0, times[50], 64), (times[50], times[100], 5),
        ]  # fmt: skip
        asked = list(product(keys_of_all(request.param) + MISSING, windows))
        questions = [(*key.split("#", 1), most, begin, end) for key, (begin, end, most) in asked]
        found = store.ask("query", questions=questions)
        queues = {
            (topic, number): store.ask("consume", topic=topic, queue_id=number, count=COUNT)
            for topic, number in {(one["topic"], one["queue_id"]) for one in drafts}
        }
        store.stop()
    answers = [
        (key, window, tuple(one["phy_offsets"]))
        for (key, window), one in zip(asked, found, strict=True)
    ]
    return Left(request.param, path, places, answers, queues)


@pytest.mark.parametrize("deep", [False, True])
def test_verify_finds_nothing(left: Left, deep: bool) -> None:
    """A store that was stopped cleanly has notes at most."""
    assert len(index_bytes(left.path)) > 10
    assert [] == [one for one in verify(left.path, deep=deep) if one.is_defect]


@pytest.mark.checks("RMQSVC-17", "RMQSVC-19", "RMQIDX-16", "RMQIDX-33", "RMQIDX-36")
def test_lookup_answers_as_the_store(left: Left) -> None:
    """Every key in five windows: the offsets that the store's own index answered, in its order."""
    reader = StoreReader(left.path)
    for key, (begin, end, most), offsets in left.answers:
        assert offsets == reader.lookup_key(key, begin, end, most, raw=True).phy_offsets, key
    assert sum(len(offsets) > 0 for _, _, offsets in left.answers) > 2 * COUNT


def test_lookup_finds_the_messages_of_a_key(left: Left) -> None:
    """Without --raw these are the messages that were put with the key, newest first."""
    reader = StoreReader(left.path)
    for key in keys_of_all(left.release):
        expected = [
            place["phy_offset"]
            for number, place in enumerate(left.places)
            for _ in range(_times(key, number, left.release))
        ]
        found = reader.lookup_key(key, max_num=10_000).phy_offsets
        assert tuple(reversed(expected)) == found, key


def _times(key: str, number: int, release: str) -> int:
    return keys_of(draft(number), release).count(key)


@pytest.mark.checks("RMQLOG-1", "RMQLOG-4")
def test_messages_are_read_as_they_were_put(left: Left) -> None:
    """Every record has the body and properties that were put; written again it has its bytes."""
    reader = StoreReader(left.path)
    assert reader.log is not None
    for number, place in enumerate(left.places):
        one, message = draft(number), reader.look_message(place["phy_offset"])
        assert message is not None
        assert one["body"].encode() == message.body
        assert (
            one["properties"].items()
            <= dict(string_to_message_properties(message.properties)).items()
        )
        assert place["queue_offset"] == message.queue_offset
        position = place["phy_offset"] % LOG_BYTES
        file = reader.log.file_of(place["phy_offset"])
        assert file is not None
        data = Path(file.path).read_bytes()[position : position + message.total_size]
        assert data == encode_message(message)


@pytest.mark.checks("RMQCQ-1")
def test_queues_are_read_as_a_consumer_reads_them(left: Left) -> None:
    """Each unit leads to the message that the store gives a consumer at this place."""
    assert len(left.queues) == 4
    for (topic, queue_id), expected in left.queues.items():
        units = ConsumeQueue.open(left.path, topic, queue_id, QUEUE_BYTES, create=True).units()
        assert [one["phy_offset"] for one in expected] == [unit.commit_log_offset for unit in units]


@pytest.mark.checks("RMQLOG-5", "RMQLOG-7")
def test_a_rebuilt_index_is_the_same(left: Left, tmp_path: Path) -> None:
    """`rebuild` makes every index file of the store from its commit log, byte for byte."""
    rebuilt = rebuild_index(left.path, tmp_path / "new", SLOTS, ENTRIES)
    assert not any(file.changed for file in rebuilt.files)
    new = {file.name: file.read_bytes() for file in sorted((tmp_path / "new").iterdir())}
    assert index_bytes(left.path) == new


# --- killed


@dataclass(frozen=True)
class Killed:
    """A store that was killed while it took messages."""

    release: str
    path: Path
    """As it was then, for one test that starts it again."""
    copy: Path
    """The same, which nobody changes."""
    said: list[dict[str, int]]
    """What it had said of its messages."""


@pytest.fixture(scope="module", params=[NEWEST, OLD])
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """Give a store that got SIGKILL in the middle of taking messages."""
    folder = tmp_path_factory.mktemp("killed")
    path, copy = folder / "store", folder / "copy"
    with StoreProcess(request.param, path, KILLED_CONFIG) as store:
        assert store.ask("load") is True
        store.tell("put_on", messages=[draft(number) for number in range(COUNT)])
        said = [store.answer() for _ in range(KILLED_AFTER)]
        store.kill()
    shutil.copytree(path, copy)
    return Killed(request.param, path, copy, said)


AT_THE_END = {"RMQDISK-6", "RMQDISK-8", "RMQDISK-24", "RMQDISK-33", "RMQDISK-37"}
"""What may be found of the message that was being stored: a step was done, the next one was not."""


def test_verify_tells_the_truth_of_a_killed_store(killed: Killed) -> None:
    """What was said is in the log and is found by its keys; nothing is damaged before the end."""
    findings = list(verify(killed.copy, deep=True))
    assert "RMQDISK-22" in {one.law for one in findings}
    defects = [one for one in findings if one.is_defect]
    assert {one.law for one in defects} <= AT_THE_END, defects
    assert len(defects) <= 2, defects
    _check_said(killed, killed.copy)


def _check_said(killed: Killed, path: Path) -> None:
    """Assert that every message is there of which the store had said where it lies."""
    reader = StoreReader(path)
    for number, place in enumerate(killed.said):
        message = reader.look_message(place["phy_offset"])
        assert message is not None
        assert draft(number)["body"].encode() == message.body
        for key in keys_of(draft(number), killed.release):
            found = reader.lookup_key(key, max_num=10_000).phy_offsets
            assert place["phy_offset"] in found, key


@pytest.mark.checks("RMQLOG-5", "RMQSVC-4", "RMQSVC-12")
def test_the_restart_is_predicted(killed: Killed) -> None:
    """The index files after the restart of a killed store are those of the model, byte for byte.

    Only their names, times of the restart, can't be told before.
    """
    release = release_named(killed.release).flipped(NamesAreDistinct)
    expected = recovered_by_model(killed.copy, release, KILLED_ENTRIES)
    with StoreProcess(killed.release, killed.path, KILLED_CONFIG) as store:
        assert store.ask("load") is True
    after = index_bytes(killed.path)
    assert expected == list(after.values())
    assert [] == [one for one in verify(killed.path, deep=True) if one.is_defect]


@pytest.mark.checks("RMQLOG-5", "RMQLOG-7", "RMQSVC-4", "RMQSVC-12")
def test_our_recovery_of_a_killed_store(killed: Killed, tmp_path: Path) -> None:
    """Our recovery has the index files that our model has; `rebuild` has every message in them."""
    expected = recovered_by_model(killed.copy, SEGPROOF, KILLED_ENTRIES)
    recovered, rebuilt = tmp_path / "recovered", tmp_path / "rebuilt"
    for path in (recovered, rebuilt):
        shutil.copytree(killed.copy, path)
    config = MessageStoreConfig(SLOTS, KILLED_ENTRIES, LOG_BYTES)
    with MessageStore.open(recovered, config, create=True) as store:
        assert not store.last_exit_ok
        assert store.load()
        store.recover()
    assert expected == list(index_bytes(recovered).values())
    has_tags = not release_named(killed.release).has(TagsAreNotIndexed)
    rebuild_index(
        rebuilt, None, SLOTS, KILLED_ENTRIES, in_place=True, index_tags=has_tags, cut_tail=True
    )
    _check_said(killed, rebuilt)
    assert [] == [
        one for one in verify(rebuilt, deep=True) if one.is_defect and one.law != "RMQDISK-37"
    ]
