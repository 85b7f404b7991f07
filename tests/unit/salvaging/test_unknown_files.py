# SPDX-License-Identifier: Apache-2.0
"""A file of another store after the end of a log, where nothing but its name leads to it."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from segproof.files import REAL_FILES
from segproof.findings import Finding, Severity
from segproof.repair import salvage_store
from segproof.rocketmq.message import BLANK_BYTES, INNER_BATCH, encode_message
from segproof.verification import verify
from segproof_harness.files.memory_stores import message_of, write_log
from segproof_harness.laws.judged_store import StoreJudge
from segproof_tests.reported_findings import contents
from segproof_tests.store_files import LOG_BYTES, keep, logs, long_store, messages_of

OTHER_HOST = bytes([10, 0, 0, 7, 0, 0, 42, 159])


def told(store: Path) -> list[Finding]:
    """Return what `verify` says of files that nothing knows."""
    return [one for one in verify(store, hash_slots=16) if one.law == "RMQDISK-56"]


def broken(store: Path) -> bool:
    """Return whether the model says so too."""
    return StoreJudge(contents(store), 16).breaks("RMQDISK-56")


PARTS = ["index consumequeue", "index", "consumequeue"]


def with_foreign(folder: Path, topic: str, parts: str, count: int) -> tuple[Path, Path]:
    """Return a store, and its file that another broker wrote."""
    store = long_store(folder / "store", count)
    other = long_store(folder / "other", 40, topic, 53)
    place = logs(other)[len(logs(store)) + 1]
    image = bytearray(place.read_bytes())
    for at in messages_of(other):
        if at // LOG_BYTES * LOG_BYTES == int(place.name):
            image[at % LOG_BYTES + 64 : at % LOG_BYTES + 72] = OTHER_HOST
    (store / "commitlog" / place.name).write_bytes(image)
    keep(store, parts)
    return store, store / "commitlog" / place.name


@pytest.mark.checks("RMQDISK-56")
@pytest.mark.parametrize("parts", [*PARTS, ""])
@pytest.mark.parametrize(("topic", "count"), [("Other", 10), ("T", 16)])
def test_both_readings_are_told(topic: str, parts: str, count: int, tmp_path: Path) -> None:
    """It was taken in without a word. Own files look alike, so it is kept, and not in silence."""
    store, path = with_foreign(tmp_path, topic, parts, count)
    saved = salvage_store(store, tmp_path / "out", hash_slot_num=16, index_num=200)
    assert not saved.foreign_messages
    assert not saved.is_whole
    assert any(line.startswith(f"{path}: kept, and it may be") for line in saved.left_out)
    (one,) = told(store)
    assert (str(path), Severity.WARNING) == (one.path, one.severity)
    assert broken(store)


@pytest.mark.checks("RMQDISK-56")
@pytest.mark.parametrize("parts", [*PARTS, ""])
@pytest.mark.parametrize("later", [0, 1])
def test_own_files_that_queues_do_not_know_yet_are_kept(
    parts: str, later: int, tmp_path: Path
) -> None:
    """Queues and index are of an older backup, or were not flushed; a file between is broken."""
    store = long_store(tmp_path / "store", 40)
    own, older = messages_of(store), long_store(tmp_path / "older", 10)
    for name in ("index", "consumequeue"):
        shutil.rmtree(store / name)
        if name in parts:
            shutil.copytree(older / name, store / name)
    if later:
        place = logs(store)[2]
        place.write_bytes(bytes(LOG_BYTES))
        own = {at: one for at, one in own.items() if at // LOG_BYTES != 2}
    saved = salvage_store(store, tmp_path / "out", hash_slot_num=16, index_num=200)
    kept = messages_of(tmp_path / "out")
    assert own == {at: one for at, one in kept.items() if one.sys_flag & 12 != 12}
    assert not saved.foreign_messages
    assert [] == told(store)
    assert not broken(store)
    assert not any("another store" in line for line in saved.left_out)


@pytest.mark.checks("RMQDISK-56")
def test_an_older_copy_of_an_earlier_file_makes_no_file_foreign(tmp_path: Path) -> None:
    """Queues, index and the first file are of a backup; the later files are the store's own."""
    store = long_store(tmp_path / "store", 40)
    older = long_store(tmp_path / "older", 4)
    for name in ("index", "consumequeue"):
        shutil.rmtree(store / name)
        shutil.copytree(older / name, store / name)
    shutil.copyfile(logs(older)[0], logs(store)[0])
    saved = salvage_store(store, tmp_path / "out", hash_slot_num=16, index_num=200)
    assert not saved.foreign_messages
    assert [] == told(store)


def filled(store: Path, topics: str, *, step: int = 1, sys_flag: int = 0, again: int = -1) -> Path:
    """Write a log: each file is filled by messages of one topic, whose numbers go on by `step`.

    Within the file `again` the topic was deleted, and begins with 0.
    """
    size = len(encode_message(message_of("T")))
    each = (LOG_BYTES - BLANK_BYTES) // size
    due: Counter[str] = Counter()
    messages = []
    for place, topic in enumerate(topics):
        for rank in range(each):
            if place == again and rank == each - 3:
                due.clear()
            messages.append(message_of(topic, queue_offset=due[topic], sys_flag=sys_flag))
            due[topic] += step
    write_log(REAL_FILES, str(store), messages, LOG_BYTES)
    return store


@pytest.mark.checks("RMQDISK-56")
def test_own_files_whose_queues_look_odd_are_kept(tmp_path: Path) -> None:
    """They were set aside as those of another store, for certain, and the rest was "sound"."""
    batches = filled(tmp_path / "batches", "TTT", step=10, sys_flag=INNER_BATCH)
    again = filled(tmp_path / "again", "TTT", again=1)
    expired = filled(tmp_path / "expired", "ATTA")
    logs(expired)[0].unlink()
    missing = filled(tmp_path / "missing", "TATA")
    logs(missing)[1].unlink()
    for store in (batches, again, expired, missing):
        own = messages_of(store)
        saved = salvage_store(store, tmp_path / "out" / store.name, hash_slot_num=16, index_num=200)
        kept = messages_of(tmp_path / "out" / store.name)
        assert own == {at: one for at, one in kept.items() if at in own}, store.name
        assert not saved.foreign_messages
        assert not any("another store" in line for line in saved.left_out), store.name
        assert [] == told(store)
        assert not broken(store)
