# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's own store and a damaged log: it cuts where `verify` says, and it takes what `salvage`
made of it.
"""

import re
import shutil
from pathlib import Path

import pytest
from tests.oracle.stores import (
    LOG_BYTES,
    NEWEST,
    OLD,
    SLOTS,
    StoreProcess,
    draft,
    our_messages,
    write_store,
)

from segproof.findings import Severity
from segproof.repair import salvage_store
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.message import blank_tail
from segproof.store_lookup import StoreReader
from segproof.verification import verify
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.store_files import messages_of

pytestmark = pytest.mark.needs("java", "jpype")
COUNT = 200
LAWS = ("RMQDISK-24", "RMQDISK-26", "RMQDISK-27")


def damaged(path: Path, number: int, *, is_killed: bool) -> int:
    """Write a store, and flip a bit in the body of one of its messages; return its offset."""
    offsets = write_store(path, our_messages(COUNT))
    at = offsets[number]
    file = path / "commitlog" / f"{at - at % LOG_BYTES:020d}"
    data = bytearray(file.read_bytes())
    start = data.index(f"body {number} ".encode(), at % LOG_BYTES)
    data[start] ^= 1
    file.write_bytes(data)
    if is_killed:
        (path / "abort").touch()
        (path / "checkpoint").write_bytes(bytes(4096))  # nothing was known to be durable
    return at


@pytest.mark.checks(*LAWS)
@pytest.mark.parametrize("release", [NEWEST, OLD])
@pytest.mark.parametrize(("number", "is_killed"), [(190, False), (60, True)])
def test_a_recovery_that_reaches_damage_cuts_there(
    release: str, number: int, is_killed: bool, tmp_path: Path
) -> None:
    """The log then ends where `verify` says; later files are gone, and with them the messages."""
    path = tmp_path / "store"
    at = damaged(path, number, is_killed=is_killed)
    (told,) = (one for one in verify(path) if one.law in LAWS)
    assert told.severity is Severity.ERROR
    assert f"keeps the {number} messages before it" in told.message
    assert f"throws these {COUNT - 1 - number} away" in told.message
    assert "so it reaches this place" in told.message
    with StoreProcess(release, path) as store:
        assert store.ask("load") is True
        assert at == store.ask("max_offset")
    kept = [offset for offset, found in CommitLog.open(path).scan() if found.message is not None]
    assert number == len([offset for offset in kept if offset < at])
    starts = [int(one.name) for one in (path / "commitlog").iterdir()]
    assert not [start for start in starts if start > at + LOG_BYTES]


def test_a_recovery_that_does_not_reach_damage_leaves_it(tmp_path: Path) -> None:
    """After a clean stop the damage of an old file stays, and what lies behind it too."""
    path = tmp_path / "store"
    damaged(path, 5, is_killed=False)
    before = shutil.copytree(path / "commitlog", tmp_path / "before")
    (told,) = (one for one in verify(path) if one.law in LAWS)
    assert re.search(r"recovers from offset \d{5} on, after this place", told.message)
    with StoreProcess(NEWEST, path) as store:
        assert store.ask("load") is True
        end = store.ask("max_offset")
    assert end > COUNT * 100
    for file in before.iterdir():
        assert file.read_bytes() == (path / "commitlog" / file.name).read_bytes()


@pytest.mark.checks("RMQDISK-24")
def test_a_recovery_goes_on_behind_a_false_blank_end(tmp_path: Path) -> None:
    """It cuts nothing and ends at the end of the log, as `verify` says."""
    path = tmp_path / "store"
    offsets = write_store(path, our_messages(COUNT))
    at = offsets[60]
    file = path / "commitlog" / f"{at - at % LOG_BYTES:020d}"
    data = bytearray(file.read_bytes())
    data[at % LOG_BYTES : at % LOG_BYTES + 8] = blank_tail(LOG_BYTES - at % LOG_BYTES)[:8]
    file.write_bytes(data)
    (path / "abort").touch()
    (path / "checkpoint").write_bytes(bytes(4096))
    (told,) = (one for one in verify(path) if one.law in LAWS)
    assert "goes on with the next file" in told.message
    with StoreProcess(NEWEST, path) as store:
        assert store.ask("load") is True
        assert store.ask("max_offset") > offsets[-1]
    assert bytes(data) == file.read_bytes()


# --- salvage


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give what was saved of a store with damage of each kind, in its first file and later ones."""
    folder = tmp_path_factory.mktemp("saved")
    path, out = folder / "store", folder / "saved"
    offsets = write_store(path, our_messages(600))
    logs = sorted((path / "commitlog").iterdir())
    assert len(logs) >= 10
    for number, (start, size) in {0: (3000, 900), 2: (9000, 7384), 5: (0, 500), 8: (7, 1)}.items():
        put_bytes(logs[number], start, b"\xff" * size)
    logs[4].unlink()
    told = salvage_store(path, out)
    assert not told.is_whole
    assert told.gap_count == 5
    assert told.unqueued_messages == told.restored_messages == 0
    assert told.lost_messages == len(offsets) - told.messages
    assert len(messages_of(out, LOG_BYTES)) == told.messages > 300
    assert [] == [str(one) for one in verify(out, deep=True, hash_slots=SLOTS) if one.is_defect]
    return out


def expected_from(path: Path, topic: str, queue_id: int, number: int) -> list[tuple[int, int]]:
    """Return number and offset of what a queue has from a number on."""
    return sorted(
        (one.queue_offset, at)
        for at, one in messages_of(path, LOG_BYTES).items()
        if (one.topic, one.queue_id) == (topic, queue_id) and one.queue_offset >= number
    )


@pytest.mark.checks("RMQDISK-36", "RMQDISK-37", "RMQLOG-3")
@pytest.mark.parametrize(("release", "is_killed"), [(NEWEST, False), (NEWEST, True), (OLD, True)])
def test_a_saved_store_serves_every_message(
    release: str, is_killed: bool, saved: Path, tmp_path: Path
) -> None:
    """It loads; each queue gives every kept message from each number on, once or, in its first
    file, more often; keys find them; it goes on behind them. After a kill it reads the whole log.
    """
    path = shutil.copytree(saved, tmp_path / "store")
    if is_killed:
        (path / "abort").touch()
        (path / "checkpoint").write_bytes(bytes(4096))
    messages = messages_of(path, LOG_BYTES)
    end = max(messages) + messages[max(messages)].total_size
    with StoreProcess(release, path) as store:
        assert store.ask("load") is True
        assert end == store.ask("max_offset")
        for topic in ("Orders", "Orders-2"):
            for queue_id in (0, 1):
                for number in (0, 11, 60):
                    found = store.ask("consume_from", topic=topic, queue_id=queue_id, number=number)
                    read = {(one["queue_offset"], one["phy_offset"]) for one in found}
                    assert expected_from(path, topic, queue_id, number) == sorted(read)
        one = draft(7)
        last, _ = expected_from(path, one["topic"], one["queue_id"], 0)[-1]
        (place,) = store.ask("put", messages=[one])
        assert place["phy_offset"] >= end
        assert place["queue_offset"] == last + 1
        store.stop()
    if is_killed:
        return  # it made the index new, and gave files of one millisecond one name (RMQSVC-9)
    reader = StoreReader(path, hash_slot_num=SLOTS)
    for at, message in messages.items():
        name, _, unique = message.properties.partition("\x02")[0].partition("\x01")
        if name == "UNIQ_KEY":
            found = reader.lookup_key(f"{message.topic}#{unique}", max_num=1000).phy_offsets
            assert at in found
