# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's message store loads what segproof wrote, does not change it, and answers from it."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.stores import (
    ENTRIES,
    INT64_MAX,
    LISTENING_ON_LOOPBACK,
    NEWEST,
    OLD,
    SLOTS,
    StoreProcess,
    all_keys,
    draft,
    index_bytes,
    keys_of,
    our_messages,
    recovered_by_model,
    write_store,
)

from segproof.repair import rebuild_index
from segproof.rocketmq.message import Message
from segproof.store_lookup import StoreReader
from segproof.verification import verify
from segproof_harness.cli import run
from segproof_harness.files.memory_stores import FIRST_TIMESTAMP_MS
from segproof_model.releases import release_named
from segproof_tests.printed_rows import Capsys

pytestmark = pytest.mark.needs("java", "jpype")
COUNT = 200
MISSING = ["Orders#missing", "Orders#", "orders#everyone", "Else#k1", "Orders#T#missing"]


class Loaded:
    """A store of ours, in the hands of the real one."""

    def __init__(self, path: Path, store: StoreProcess, before: dict[str, bytes]) -> None:
        self.path = path
        self.store = store
        self.before = before
        """The index files as segproof wrote them."""

    def raw(self, keys: list[str], windows: list[tuple[int, int, int]]) -> list[tuple[Any, ...]]:
        """Return (key, window, offsets) for each question to the real index."""
        asked = list(product(keys, windows))
        questions = [(*key.split("#", 1), most, begin, end) for key, (begin, end, most) in asked]
        found = self.store.ask("query", questions=questions)
        return [
            (key, window, tuple(one["phy_offsets"]))
            for (key, window), one in zip(asked, found, strict=True)
        ]


@pytest.fixture(scope="module", params=[NEWEST, OLD])
def loaded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loaded]:
    """Give a store that segproof wrote and the real one has loaded and started."""
    path = tmp_path_factory.mktemp("ours") / "store"
    write_store(path, our_messages(COUNT))
    assert [] == [one for one in verify(path, deep=True, hash_slots=SLOTS) if one.is_defect]
    before = index_bytes(path)
    assert len(before) > 10
    with StoreProcess(request.param, path) as store:
        assert store.ask("load") is True
        yield Loaded(path, store, before)


def test_it_keeps_our_index_files(loaded: Loaded) -> None:
    """Loading and starting removes none, makes none, and changes no byte; no port is opened."""
    assert loaded.before == index_bytes(loaded.path)
    assert all(port.endswith(LISTENING_ON_LOOPBACK) for port in _hosts(loaded))


def _hosts(loaded: Loaded) -> list[str]:
    return [port.partition(":")[0] for port in loaded.store.ask("ports")]


@pytest.mark.checks("RMQSVC-17", "RMQSVC-19", "RMQIDX-33", "RMQIDX-36", "RMQLOG-7")
def test_it_answers_every_key_as_lookup_does(loaded: Loaded) -> None:
    """Every key, missing ones too, in five windows of time, with four numbers of offsets."""
    first, last = FIRST_TIMESTAMP_MS, FIRST_TIMESTAMP_MS + 700 * COUNT
    middle = (first + last) // 2
    windows = [
        (begin, end, most)
        for begin, end in [
            (0, INT64_MAX), (middle, INT64_MAX), (0, middle), (middle, middle + 9000), (last, first)
        ]
        for most in (64, 3, 1, 0)
    ]  # fmt: skip
    reader = StoreReader(loaded.path, hash_slot_num=SLOTS)
    answered = 0
    for key, (begin, end, most), offsets in loaded.raw(all_keys(COUNT) + MISSING, windows):
        assert offsets == reader.lookup_key(key, begin, end, most, raw=True).phy_offsets, key
        answered += len(offsets) > 0
    assert answered > 1000


def test_the_verb_names_the_same_messages(loaded: Loaded, tmp_path: Path, capsys: Capsys) -> None:
    """`lookup --keys` names those of the store's messages that have the key, newest first.

    The store answers every message of the key's hash, as far as 64 go, in the order of the log.
    """
    keys = [key for key in all_keys(COUNT) if not key.endswith("everyone")]
    file = tmp_path / "keys"
    file.write_text("\n".join(keys), encoding="utf-8")
    words = ["lookup", str(loaded.path), "--keys", str(file), "--hash-slots", str(SLOTS)]
    assert run([*words, "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    questions = [(*key.split("#", 1), 64, 0, INT64_MAX) for key in keys]
    found = loaded.store.ask("query_messages", questions=questions)
    reader = StoreReader(loaded.path, hash_slot_num=SLOTS)
    with_key = {
        message.physical_offset: keys_of(draft(number))
        for number, message in enumerate(_messages(reader))
    }
    for key, row, offsets in zip(keys, rows, found, strict=True):
        expected = [one for one in sorted(set(offsets), reverse=True) if key in with_key[one]]
        assert expected == row["phy_offsets"], key
        assert key == row["target"]


def _messages(reader: StoreReader) -> list[Message]:
    assert reader.log is not None
    found = [result.message for _, result in reader.log.scan()]
    return [message for message in found if message is not None]


def test_a_consumer_reads_every_message_of_our_queues(loaded: Loaded) -> None:
    """Each queue that segproof wrote leads to its messages, all of them and in order."""
    places: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for message in _messages(StoreReader(loaded.path, hash_slot_num=SLOTS)):
        place = (message.topic, message.queue_id)
        places.setdefault(place, []).append((message.physical_offset, message.queue_offset))
    assert len(places) == 4
    for (topic, queue_id), expected in places.items():
        read = loaded.store.ask("consume", topic=topic, queue_id=queue_id, count=len(expected))
        assert expected == [(one["phy_offset"], one["queue_offset"]) for one in read]


@pytest.mark.parametrize("release", [NEWEST, OLD])
def test_it_continues_our_files(release: str, tmp_path: Path) -> None:
    """What it puts into our store goes on in our last files; what it leaves is sound to us.

    A message of each key is found that was put before and one that was put after.
    """
    path = tmp_path / "store"
    write_store(path, our_messages(60))
    before = index_bytes(path)
    with StoreProcess(release, path) as store:
        assert store.ask("load") is True
        places = store.ask("put", messages=[draft(number) for number in range(60)])
        questions = [(*key.split("#", 1), 64, 0, INT64_MAX) for key in all_keys(60)]
        found = [tuple(one["phy_offsets"]) for one in store.ask("query", questions=questions)]
        store.stop()
    after = index_bytes(path)
    newest = max(before)
    assert {name: before[name] for name in before if name != newest} == {
        name: after[name] for name in before if name != newest
    }
    assert len(after) > len(before)
    assert [] == [one for one in verify(path, deep=True, hash_slots=SLOTS) if one.is_defect]
    reader = StoreReader(path, hash_slot_num=SLOTS)
    for key, offsets in zip(all_keys(60), found, strict=True):
        answer = reader.lookup_key(key, raw=True).phy_offsets
        assert offsets == answer, key
    for number, place in enumerate(places):
        for key in keys_of(draft(number), release):
            assert place["phy_offset"] in reader.lookup_key(key).phy_offsets, key


@pytest.mark.checks("RMQLOG-5", "RMQSVC-12")
@pytest.mark.parametrize("release", [NEWEST, OLD])
@pytest.mark.parametrize("index", [True, False])
def test_it_makes_the_queues_that_we_leave_out(release: str, index: bool, tmp_path: Path) -> None:
    """Without queues it reads the whole log; its index is then what the model predicts.

    Where there is an index the keys of the last message are entered once more (RMQSVC-12); where
    there is none it is made.
    """
    count = 60 if index else 9  # so few that it makes one index file: names are milliseconds
    path = tmp_path / "store"
    write_store(path, our_messages(count), queued=0, index=index)
    expected = recovered_by_model(path, release_named(release))
    with StoreProcess(release, path) as store:
        assert store.ask("load") is True
        read = store.ask("consume", topic="Orders", queue_id=0, count=count)
        assert list(range(len(read))) == [one["queue_offset"] for one in read]
        assert len(read) > count // 5
    assert expected == list(index_bytes(path).values())


@pytest.mark.checks("RMQLOG-7")
def test_it_takes_a_rebuilt_index(tmp_path: Path) -> None:
    """An index that was lost and that `rebuild` made new is kept, and answers as before."""
    path = tmp_path / "store"
    write_store(path, our_messages(80))
    old = index_bytes(path)
    for name in old:
        (path / "index" / name).unlink()
    rebuild_index(path, None, SLOTS, ENTRIES, in_place=True, index_tags=True)
    new = index_bytes(path)
    assert list(old.values()) == list(new.values())
    with StoreProcess(NEWEST, path) as store:
        assert store.ask("load") is True
        questions = [(*key.split("#", 1), 64, 0, INT64_MAX) for key in all_keys(80)]
        found = store.ask("query", questions=questions)
    assert new == index_bytes(path)
    reader = StoreReader(path, hash_slot_num=SLOTS)
    for key, one in zip(all_keys(80), found, strict=True):
        assert tuple(one["phy_offsets"]) == reader.lookup_key(key, raw=True).phy_offsets
