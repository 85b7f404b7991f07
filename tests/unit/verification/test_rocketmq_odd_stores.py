# SPDX-License-Identifier: Apache-2.0
"""Stores in which files are missing, are no files, or lie far away; and what `abort` excuses."""

import errno
import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.files import RealFiles
from segproof.findings import Finding, Severity
from segproof.rocketmq.message import MAGIC_V1, Message, encode_message
from segproof.verification import verify
from segproof.verifying.rocketmq import queue_checks
from segproof_harness.cli import run
from segproof_harness.files.memory_stores import message_of, write_log
from segproof_harness.laws.broken_stores import entry
from segproof_harness.laws.file_damages import int32, int64, overwrite
from segproof_harness.laws.judged_store import store_disagreements
from segproof_tests.store_files import INDEX, LOG, LOG_BYTES, QUEUE, copied_store, long_store

MEMORY_BYTES = 32 << 20
YEARS = 20 * 366 * 86_400
MAX = 2**31 - 1

KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path.name),
    "dangling": lambda path: path.symlink_to("nothing"),
}
"""What can stand where a file should be."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a copy of a small store that was stopped."""
    return copied_store(tmp_path)


def defects(store: Path) -> list[Finding]:
    """Return what verify finds but for notes."""
    return [one for one in verify(store, deep=True) if one.is_defect]


# --- what is no file


@pytest.mark.checks("DISK-1")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", [LOG, INDEX, QUEUE, "checkpoint", "commitlog", "consumequeue", "consumequeue/TopicTest"]
)
def test_what_is_no_file_is_told(name: str, kind: str, store: Path) -> None:
    """Each is a finding, and the others are not lost; nothing waits for a writer of a pipe."""
    path = store / name
    if kind == "folder" and path.is_dir():
        return
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    KINDS[kind](path)
    other = store / "index/notes"
    other.write_bytes(b"x")
    found = list(verify(store))
    assert str(path) in {one.path for one in found if one.law == "DISK-1" and one.is_defect}
    assert str(other) in {one.path for one in found}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [LOG, QUEUE, "consumequeue/TopicTest/0", "checkpoint"])
def test_no_verb_stumbles_over_what_is_no_file(
    name: str, kind: str, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dump says what it could not read, and goes on if asked to; the others end in a clear line."""
    path = store / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    KINDS[kind](path)
    code = 0 if name.endswith("/0") and kind == "folder" else 1
    assert code == run(["dump", str(store)])
    capsys.readouterr()
    assert code == run(["dump", str(store), "--on-damage", "skip"])
    assert "hash_slot_count" in capsys.readouterr().out
    assert run(["lookup", str(store), "--key", "TopicTest#order-1"]) == (2 if name == LOG else 0)
    assert run(["rebuild", str(store), "--out", f"{store}-new"]) == (2 if name == LOG else 0)
    assert "internal error" not in capsys.readouterr().err


# --- what is missing


@pytest.mark.checks("RMQDISK-37")
@pytest.mark.parametrize("is_running", [False, True])
def test_a_lost_queue_is_told(is_running: bool, tmp_path: Path) -> None:
    """A queue whose folder is gone beside another of its topic, or is empty: also with `abort`."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    if is_running:
        (store / "abort").touch()
    assert [] == defects(store)
    shutil.rmtree(store / "consumequeue/TopicA/0")
    (store / "consumequeue/TopicB/1/00000000000000000000").unlink()
    assert {
        ("RMQDISK-37", f"{store}/consumequeue/TopicA/0"),
        ("RMQDISK-37", f"{store}/consumequeue/TopicB/1"),
    } == {(one.law, one.path) for one in defects(store)}


@pytest.mark.checks("RMQDISK-37")
def test_a_topic_that_was_deleted_is_no_defect(tmp_path: Path) -> None:
    """RocketMQ removes the queues of a topic, and its messages stay in the log for a while."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    shutil.rmtree(store / "consumequeue/TopicA")
    (found,) = verify(store)
    assert ("RMQDISK-37", Severity.NOTE) == (found.law, found.severity)
    assert "these are 1, such as TopicA" in found.message


@pytest.mark.checks("RMQDISK-37")
@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize("keeps_checkpoint", [False, True])
@pytest.mark.parametrize("gone", ["consumequeue", "consumequeue/*", "consumequeue/*/*"])
def test_no_queue_at_all_is_told(
    gone: str, keeps_checkpoint: bool, is_running: bool, tmp_path: Path
) -> None:
    """With the folder left, and nothing in it, nothing was said; beside `abort` a note."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    for path in store.glob(gone):
        shutil.rmtree(path)
    if is_running:
        (store / "abort").touch()
    if not keeps_checkpoint:
        (store / "checkpoint").unlink()
    found = {(one.law, one.path, one.severity) for one in defects(store)}
    assert ("RMQDISK-37", f"{store}/consumequeue", Severity.WARNING) in found


@pytest.mark.checks("RMQDISK-37")
def test_queues_that_may_come_yet_are_no_finding(tmp_path: Path) -> None:
    """A broker that runs has written its first messages, and no queue and no index yet."""
    store = copied_store(tmp_path)
    for name in ("consumequeue", "index"):
        shutil.rmtree(store / name)
    (store / "checkpoint").write_bytes(bytes(4096))
    (store / "abort").touch()
    found = list(verify(store))
    assert ["RMQDISK-20", "RMQDISK-22", "RMQDISK-33"] == [one.law for one in found]
    assert not any(one.is_defect for one in found)


def test_queues_that_only_the_log_has_take_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not told apart any more is counted all the same."""
    monkeypatch.setattr(queue_checks, "LOST_MAX", 1)
    store = copied_store(tmp_path, "rolled-4.9.8")
    for name in ("TopicA/0", "TopicB"):
        shutil.rmtree(store / "consumequeue" / name)
    told = [one for one in verify(store) if one.law == "RMQDISK-37"]
    counted = sum(int(one.actual or 0) for one in told)
    monkeypatch.undo()
    assert 2 == len(told)
    assert counted == sum(int(one.actual or 0) for one in verify(store) if one.law == "RMQDISK-37")


@pytest.mark.checks("RMQDISK-20")
@pytest.mark.parametrize("is_running", [False, True])
def test_a_checkpoint_that_is_gone_is_told(is_running: bool, store: Path) -> None:
    """Each broker makes it when it loads a store; nothing was said."""
    (store / "checkpoint").unlink()
    if is_running:
        (store / "abort").touch()
    (found,) = defects(store)
    assert ("RMQDISK-20", str(store / "checkpoint")) == (found.law, found.path)
    assert Severity.WARNING is found.severity


@pytest.mark.checks("RMQDISK-20")
def test_a_log_that_lies_alone_is_a_note(store: Path) -> None:
    """A broker may keep its log apart from the rest (storePathCommitLog)."""
    for name in ("consumequeue", "index"):
        shutil.rmtree(store / name)
    (store / "checkpoint").unlink()
    (found,) = verify(store)
    assert ("RMQDISK-20", Severity.NOTE) == (found.law, found.severity)
    assert [] == list(store_disagreements(store))


class Unlisted(RealFiles):
    """Files of which one folder can't be listed."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def list_directory(self, path: str) -> list[str]:
        """List a folder, or fail."""
        if path == self._folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return super().list_directory(path)


@pytest.mark.checks("DISK-1")
@pytest.mark.parametrize(
    "name", ["commitlog", "consumequeue", "consumequeue/TopicTest", "consumequeue/TopicTest/0"]
)
def test_what_is_in_a_folder_without_rights_is_not_called_lost(name: str, store: Path) -> None:
    """The log was said to hold no file, and the queue to lack its messages."""
    found = verify(store, files=Unlisted(store / name))
    assert [("DISK-1", f"{store}/{name}")] == [(one.law, one.path) for one in found]


# --- how much memory


@pytest.mark.parametrize("name", [QUEUE, LOG, INDEX])
@pytest.mark.parametrize(
    "far", ["00000000004000000000", "00010000000000000000", "09223372034707292160"]
)
def test_no_distance_between_names_takes_memory(name: str, far: str, store: Path) -> None:
    """A small file with a far name cost 8.4 GB: the units between were counted."""
    path = store / name
    shutil.copyfile(path, path.with_name(far[-len(path.name) :]))
    tracemalloc.start()
    try:
        list(verify(store, deep=True))
        assert tracemalloc.get_traced_memory()[1] < MEMORY_BYTES
    finally:
        tracemalloc.stop()


def test_a_message_with_many_keys_that_lack(store: Path) -> None:
    """Each missing entry was described at the cost of all keys: hours for 16 000 of them."""
    keys = " ".join(map(str, range(6000)))
    record = encode_message(
        Message(
            0, MAGIC_V1, 0, 0, 0, 12, 1778, 0, 1_795_223_700_000, bytes(8), 1_795_223_700_000,
            bytes(8), 0, 0, b"", "TopicTest", f"KEYS\x01{keys}\x02",
        )
    )  # fmt: skip
    data = (store / LOG).read_bytes()[:1778] + record
    (store / LOG).write_bytes(data.ljust(1 << 16, b"\0"))
    image = bytearray((store / INDEX).read_bytes())
    image[24:32] = int64(1778)
    image[entry(26, 4) : entry(26, 12)] = int64(1778)
    (store / INDEX).write_bytes(image)
    found = [one for one in defects(store) if one.law == "RMQDISK-31"]
    assert 101 == len(found)


# --- what the marker of a running broker excuses


@pytest.mark.checks("RMQDISK-32")
def test_abort_excuses_no_begin_timestamp(tmp_path: Path) -> None:
    """With the begin timestamp of every index file overwritten lookups find nothing."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    (store / "abort").touch()
    names = sorted(path.name for path in (store / "index").iterdir())
    for name in names:
        overwrite(f"index/{name}", 0, b"\xff" * 8)(store)
    found = {(one.law, one.path, one.position) for one in defects(store)}
    assert {("RMQDISK-32", f"{store}/index/{name}", 0) for name in names} <= found


@pytest.mark.checks("RMQDISK-32")
def test_abort_excuses_the_end_of_the_newest_index_file_only(tmp_path: Path) -> None:
    """A put writes the end timestamp last: a kill can leave the one before, in no closed file."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    (store / "abort").touch()
    names = sorted(path.name for path in (store / "index").iterdir())
    path = store / "index" / names[-1]
    end = int.from_bytes(path.read_bytes()[8:16], "big")
    overwrite(f"index/{names[-1]}", 8, int64(end - 1))(store)
    assert "RMQDISK-32" not in {one.law for one in defects(store)}
    path = store / "index" / names[-2]
    end = int.from_bytes(path.read_bytes()[8:16], "big")
    overwrite(f"index/{names[-2]}", 8, int64(end - 1))(store)
    assert [str(path)] == [one.path for one in defects(store) if one.law == "RMQDISK-32"]


@pytest.mark.checks("RMQDISK-33")
@pytest.mark.parametrize("keeps_queues", [True, False])
def test_abort_excuses_what_no_queue_knows_only(keeps_queues: bool, tmp_path: Path) -> None:
    """The newest index file is lost: the queues show that its messages had been indexed."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    (store / "abort").touch()
    max((store / "index").iterdir()).unlink()
    if not keeps_queues:
        shutil.rmtree(store / "consumequeue")
    told = "RMQDISK-33" if keeps_queues else "RMQDISK-37"
    assert [told] == [one.law for one in defects(store)]
    (note,) = (one for one in verify(store) if one.law == "RMQDISK-33")
    assert ("indexes them when it runs" in note.message) is not keeps_queues


@pytest.mark.checks("RMQDISK-14")
@pytest.mark.parametrize(
    ("seconds", "severity"),
    [
        (100, Severity.NOTE),
        (YEARS, Severity.NOTE),
        (2 * YEARS, Severity.WARNING),
        (MAX, Severity.WARNING),
    ],
)
def test_a_clock_goes_back_by_20_years_at_most(
    seconds: int, severity: Severity, store: Path
) -> None:
    """An entry 68 years behind the last message was a note: that the clock went back."""
    overwrite(INDEX, entry(5, 12), int32(seconds))(store)
    (found,) = (one for one in verify(store / "index") if one.law == "RMQDISK-14")
    assert severity is found.severity


@pytest.mark.parametrize(
    ("gone", "law", "severity", "words"),
    [
        ("index", "RMQDISK-21", Severity.WARNING, "there is none"),
        ("consumequeue", "RMQDISK-37", Severity.WARNING, "there are none"),
        ("commitlog", "RMQDISK-23", Severity.ERROR, "tell of messages"),
    ],
)
def test_a_folder_that_is_gone_is_told(
    gone: str, law: str, severity: Severity, words: str, tmp_path: Path
) -> None:
    """The checkpoint knows that there were index files and queues; nothing was said of any."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    shutil.rmtree(store / gone)
    (found,) = (one for one in verify(store) if one.law == law)
    assert severity is found.severity
    assert words in found.message


@pytest.mark.checks("RMQDISK-23", "RMQDISK-33")
def test_an_index_that_is_gone_is_told_without_a_checkpoint_time(tmp_path: Path) -> None:
    """Lookups by key found nothing, and no finding said why; of a log that lies alone none does."""
    store = copied_store(tmp_path)
    shutil.rmtree(store / "index")
    assert [("RMQDISK-33", Severity.WARNING)] == [(one.law, one.severity) for one in verify(store)]
    assert "messageIndexEnable" in next(verify(store)).hint
    shutil.rmtree(store / "consumequeue")
    (store / "checkpoint").unlink()
    assert ["RMQDISK-20"] == [one.law for one in verify(store)]


def test_a_log_that_only_the_index_leads_into_is_told(tmp_path: Path) -> None:
    """Queues and log were gone, and verify said nothing."""
    store = copied_store(tmp_path)
    shutil.rmtree(store / "commitlog")
    shutil.rmtree(store / "consumequeue")
    assert ["RMQDISK-23"] == [one.law for one in verify(store)]


@pytest.mark.checks("RMQDISK-44")
@pytest.mark.parametrize(
    ("times", "words"),
    [([], "the log has no message"), ([0], "index was made of another log than this one")],
)
def test_a_log_that_was_begun_again(times: list[int], words: str, tmp_path: Path) -> None:
    """A broker made a new log, and has stored nothing in it, or one message at time 0."""
    store = long_store(tmp_path / "store")
    shutil.rmtree(store / "commitlog")
    messages = [message_of("U", {}, body=b"b", store_timestamp=one) for one in times]
    write_log(RealFiles(), str(store), messages, LOG_BYTES)
    (told,) = (one for one in defects(store) if one.law == "RMQDISK-44")
    assert words in told.message


def test_units_before_the_log_are_counted(store: Path) -> None:
    """So it is after files have expired, and where the first one was lost: a note tells of both."""
    log = (store / LOG).rename(store / "commitlog" / f"{16384:020d}")
    log.write_bytes(bytes(log.stat().st_size))
    before = "lead to messages before the first one of the commit log, which expired with their"
    found = [one for one in verify(store) if f"{before} file or were lost with it" in one.message]
    assert {"RMQDISK-28", "RMQDISK-37"} == {one.law for one in found}
    assert {Severity.NOTE} == {one.severity for one in found}
    assert all("look for the first file of the log" in (one.hint or "") for one in found)


@pytest.mark.checks("RMQDISK-35")
@pytest.mark.parametrize("units", [1, 999, 1001, 2000])
def test_a_queue_file_of_another_length_is_told(units: int, store: Path) -> None:
    """RocketMQ loads files of one length: at another one the broker's start ends."""
    for queue in ("1", "2"):
        (store / "consumequeue/TopicTest" / queue).mkdir()
        (store / "consumequeue/TopicTest" / queue / ("0" * 20)).write_bytes(bytes(20_000))
    os.truncate(store / QUEUE, 20 * units)
    (found,) = [one for one in defects(store) if "the other files of queues" in one.message]
    assert ("RMQDISK-35", str(store / QUEUE)) == (found.law, found.path)


def test_a_queue_file_with_a_byte_far_behind_takes_no_time(store: Path) -> None:
    """What lies between the last unit and the byte is a hole, and is not read."""
    with (store / QUEUE).open("r+b") as file:
        file.seek(1 << 30)
        file.write(b"x")
    asked: list[int] = []
    read = os.pread

    def counted(descriptor: int, size_bytes: int, position: int) -> bytes:
        asked.append(size_bytes)
        return read(descriptor, size_bytes, position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pread", counted)
        assert defects(store)
    assert 0 < sum(asked) < 16 << 20
