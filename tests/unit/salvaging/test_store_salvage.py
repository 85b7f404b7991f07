# SPDX-License-Identifier: Apache-2.0
"""Saving a store of RocketMQ: every sound message, in a log, queues and an index that fit."""

import errno
import json
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import InvalidArgumentError, SegproofError
from segproof.files import REAL_FILES
from segproof.findings import Severity
from segproof.reading.unfinished import SALVAGE_MARKER
from segproof.repair import salvage, salvage_store
from segproof.rocketmq.consume_queue import ConsumeQueue, read_units
from segproof.rocketmq.message import blank_tail, dispatch_request_of
from segproof.verification import verify
from segproof_harness.cli import run
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.memory_stores import (
    FIRST_TIMESTAMP_MS,
    log_images,
    message_of,
    write_log,
)
from segproof_tests.altered_files import altered
from segproof_tests.changed_bytes import flip_bits, put_bytes
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import contents, state_of
from segproof_tests.store_files import LOG, copied_store, drawn_messages, messages_of

SLOTS, ENTRIES = 16, 64
SIZE = 1500
QUEUE_FILE_BYTES = 20 * 8


@pytest.mark.parametrize("name", ["small-5.5.1", "small-4.7.0", "rolled-4.9.8", "u8msgs-4.9.8"])
def test_a_sound_store_is_saved_as_it_is(name: str, tmp_path: Path) -> None:
    """Log, queues and index of a real broker come out byte for byte; only names of index files,
    and the checkpoint, may differ."""
    store = copied_store(tmp_path, name)
    (store / "config").mkdir()
    (store / "config" / "subscriptionGroup.json").write_text("{}")
    before = state_of(store)
    out = tmp_path / "out"
    told = salvage_store(store, out)
    assert before == state_of(store)
    assert told.is_whole
    assert (0, 0, 0, 0) == (
        told.gap_count,
        told.stand_ins,
        told.restored_messages,
        told.older_messages,
    )
    for part in ("commitlog", "consumequeue", "config"):
        assert contents(store / part) == contents(out / part)
    assert (out / "config" / "subscriptionGroup.json").read_text() == "{}"
    indexes = [[one.read_bytes() for one in sorted(p.glob("index/*"))] for p in (store, out)]
    assert indexes[0] == indexes[1]
    assert [] == [str(one) for one in verify(out, deep=True) if one.is_defect]


def made_store(store: Path, count: int = 60) -> Path:
    """Write a store of several files, with its queues."""
    write_log(REAL_FILES, str(store), drawn_messages(count), SIZE)
    queues = [
        ConsumeQueue.open(store, "T", queue, QUEUE_FILE_BYTES, create=True) for queue in range(3)
    ]
    for at, message in messages_of(store).items():
        request = dispatch_request_of(message)
        queues[message.queue_id].put_message_position_info(
            at, message.total_size, request.tags_code, message.queue_offset
        )
    return store


@pytest.mark.checks("RMQDISK-25", "RMQDISK-37")
def test_wrong_offsets_and_numbers(tmp_path: Path) -> None:
    """A message that says another offset gets the right one back; one with a number that does not
    fit is in no queue, and those behind it are."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    found = list(messages_of(store).items())
    data = bytearray((store / LOG).read_bytes())
    for at, field in ((found[20][0], 28), (found[30][0], 20)):
        data[at + field] = 0x7F
    (store / LOG).write_bytes(data)
    told = salvage_store(store, tmp_path / "out")
    assert (1, 1, 1) == (told.restored_messages, told.unqueued_messages, told.stand_ins)
    assert len(found) == told.messages
    assert not told.is_whole
    (warning,) = (one for one in verify(tmp_path / "out") if one.is_defect)
    assert (Severity.WARNING, "RMQDISK-37") == (warning.severity, warning.law)


@pytest.mark.checks("RMQDISK-24")
def test_messages_behind_a_false_blank_end_are_saved(tmp_path: Path) -> None:
    """A message of a real store is overwritten by a blank end that takes the rest of the file, or
    by one of another size: it is lost, and said to be, and no other one."""
    for number, size in ((40, None), (40, 77), (219, 77)):
        folder = tmp_path / f"{number}-{size}"
        store = copied_store(folder, "rolled-4.9.8")
        found = messages_of(store)
        at = list(found)[number]
        put_bytes(store / LOG, at, blank_tail(size or (store / LOG).stat().st_size - at)[:8])
        told = salvage_store(store, folder / "out")
        assert found.keys() - {at} == messages_of(folder / "out").keys()
        assert (1, 1, False) == (told.gap_count, told.lost_messages, told.is_whole)
        assert [] == [str(one) for one in verify(folder / "out") if one.is_defect]


@pytest.mark.checks("RMQDISK-37")
def test_a_wrong_number_costs_the_queue_one_message(tmp_path: Path) -> None:
    """A bit of a number, or of a queue id, is flipped, at the begin, in the middle or at the end of
    a queue; the old queues are there, or lost. All other messages keep their numbers."""
    whole = copied_store(tmp_path, "rolled-4.9.8")
    found = list(messages_of(whole).items())
    before_last = [at for at, one in found if one.queue_id == found[-1][1].queue_id][-2]
    number_of = {at: number for number, (at, _) in enumerate(found)}
    without_queues = (
        (0, 26, 64), (30, 27, 64), (30, 27, 1), (number_of[before_last], 26, 64), (219, 27, 2)
    )  # fmt: skip
    for number, field, bit in (*without_queues, (0, 27, 1), (30, 15, 2)):
        folder = tmp_path / f"{number}-{field}-{bit}"
        store = Path(shutil.copytree(whole, folder / "store"))
        flip_bits(store / LOG, found[number][0] + field, bit)
        if (number, field, bit) in without_queues:
            shutil.rmtree(store / "consumequeue")
        told = salvage_store(store, folder / "out")
        right = numbered_messages(folder / "out")
        assert [found[number][0]] == [
            at for at, one in found
            if right.get((one.topic, one.queue_id, one.queue_offset)) != at
        ]  # fmt: skip
        assert len(found) == told.messages


def numbered_messages(store: Path) -> dict[tuple[str, int, int], int]:
    """Return where the message of each number lies, but for numbers of lost messages."""
    found, messages = {}, messages_of(store)
    for path in store.glob("consumequeue/*/*/*"):
        data = path.read_bytes().rstrip(b"\0")
        whole = data.ljust(-(-len(data) // 20) * 20, b"\0")
        for number, unit in enumerate(read_units(whole), int(path.name) // 20):
            message = messages.get(unit.commit_log_offset)
            if unit.is_valid and message is not None and message.queue_offset == number:
                key = (message.topic, message.queue_id, number)
                assert (path.parent.parent.name, path.parent.name) == (key[0], str(key[1]))
                assert unit.size == message.total_size
                assert key not in found
                found[key] = unit.commit_log_offset
    return found


@pytest.mark.checks("RMQDISK-37")
def test_zeros_that_queues_lead_to_are_a_gap(tmp_path: Path) -> None:
    """The last messages of a log are zeros, or a blank end: the old queues tell that they are lost;
    without any queue the index does, without both the checkpoint, and else no file."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    at = list(messages_of(store))[-3]
    data = (store / LOG).read_bytes()
    (store / LOG).write_bytes(data[:at].ljust(len(data), b"\0"))
    told = salvage_store(store, tmp_path / "out")
    assert (217, 3, False) == (told.messages, told.lost_messages, told.is_whole)
    assert [("zeros", at, 3)] == [(gap.kind, gap.offset, gap.messages) for gap in told.gaps]
    false_end = data[:at] + blank_tail(len(data) - at)
    (store / LOG).write_bytes(false_end)
    told = salvage_store(store, tmp_path / "third")
    assert (217, 3, False) == (told.messages, told.lost_messages, told.is_whole)
    assert [("broken", at, 3)] == [(gap.kind, gap.offset, gap.messages) for gap in told.gaps]
    shutil.rmtree(store / "consumequeue")
    told = salvage_store(store, tmp_path / "by-index")
    assert (217, 3, False) == (told.messages, told.lost_messages, told.is_lost_exact)
    shutil.rmtree(store / "index")
    (line,) = salvage_store(store, tmp_path / "by-checkpoint").left_out
    assert line.endswith("they are not in the log")
    (store / "checkpoint").unlink()
    assert salvage_store(store, tmp_path / "second").is_whole


@pytest.mark.checks("RMQDISK-37")
def test_a_last_file_that_is_missing_is_a_gap(tmp_path: Path) -> None:
    """Queues lead behind the end of the log: so many messages are lost."""
    store = made_store(tmp_path / "store")
    (*_, last) = sorted((store / "commitlog").iterdir())
    lost = sum(at >= int(last.name) for at in messages_of(store))
    last.unlink()
    told = salvage_store(store, tmp_path / "out", hash_slot_num=SLOTS, index_num=ENTRIES)
    assert (lost, False) == (told.lost_messages, told.is_whole)
    (gap,) = told.gaps
    assert ("missing", int(last.name), SIZE) == (gap.kind, gap.offset, gap.size_bytes)


def test_blocks_that_the_disk_does_not_give_cost_only_what_is_in_them(tmp_path: Path) -> None:
    """One block of a log fails: the messages of all others are saved."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    bad = 8192
    files = _files_that_fail(str(store / LOG), bad)
    told = salvage_store(store, tmp_path / "out", files=files)
    whole = {
        at: one for at, one in messages_of(store).items()
        if at + one.total_size <= bad or at >= bad + 4096
    }  # fmt: skip
    assert messages_of(tmp_path / "out").keys() == whole.keys()
    assert 4096 == told.unreadable_bytes
    assert told.gap_count == 1
    assert told.lost_messages == 220 - len(whole)


def test_a_block_that_fails_after_it_was_read_ends_the_salvage(tmp_path: Path) -> None:
    """All messages from there on to the next gap were left out, and no word told of it."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    files = _files_that_fail(str(store / LOG), 8192, after_reads=1)
    with pytest.raises(OSError, match="not there: the log was changed, or its disk fails"):
        salvage_store(store, tmp_path / "out", files=files)


def _files_that_fail(failing: str, bad: int, after_reads: int = 0) -> Any:
    """Return real files; one of them gives no block at `bad`, after so many readings of it."""
    seen = 0

    def open_file(path: str, **options: Any) -> Any:
        file = REAL_FILES.open(path, **options)

        def pread(size: int, position: int) -> bytes:
            nonlocal seen
            if path == failing and position < bad + 4096 and position + size > bad:
                seen += 1
                if seen > after_reads:
                    raise OSError(errno.EIO, "input/output error", path)
            return file.pread(size, position)

        return altered(file, pread=pread)

    return altered(REAL_FILES, open=open_file)


def test_the_length_of_a_lone_log_file_can_be_given(tmp_path: Path, capsys: Capsys) -> None:
    """A copy that ended early: the new file has the length that the broker wants."""
    store = copied_store(tmp_path)
    whole = messages_of(store)
    last = max(whole)
    data = (store / LOG).read_bytes()
    (store / LOG).write_bytes(data[: last + 40])
    words = ["salvage", str(store), "--out", str(tmp_path / "out"), "--mapped-file-size", "16384"]
    assert run(words) == 1
    assert "with log files of 16384 bytes" in capsys.readouterr().out
    assert (tmp_path / "out" / LOG).read_bytes() == data[:last].ljust(16384, b"\0")
    assert run(["salvage", str(tmp_path), "--out", str(tmp_path / "k"), *words[-2:]]) == 2


@pytest.mark.parametrize("has_old_queue", [False, True])
def test_of_two_messages_with_one_number_the_first_has_it(
    has_old_queue: bool, tmp_path: Path
) -> None:
    """Behind lost numbers too, where neither goes on; unless the old queue has the second there."""
    drafts = [message_of(queue_offset=0), replace(message_of(body=bytes(700)), queue_id=1)]
    drafts += [message_of(queue_offset=number) for number in (3, 3, 4)]
    store = tmp_path / "store"
    write_log(REAL_FILES, str(store), drafts, 2 * SIZE)
    first, second = (at for at, one in messages_of(store).items() if one.queue_offset == 3)
    if has_old_queue:
        old = ConsumeQueue.open(store, "T", 0, QUEUE_FILE_BYTES, create=True)
        for number in range(4):
            size = messages_of(store)[second].total_size
            old.put_message_position_info(second - 3 + number, size, 0, number)
    told = salvage_store(store, tmp_path / "out", hash_slot_num=SLOTS, index_num=ENTRIES)
    expected = second if has_old_queue else first
    assert expected == numbered_messages(tmp_path / "out")["T", 0, 3]
    assert (1, 2) == (told.unqueued_messages, told.stand_ins)
    laws = {one.law for one in verify(tmp_path / "out") if one.severity is Severity.ERROR}
    assert set() == laws


def test_hostile_names_do_not_leave_the_new_store(tmp_path: Path) -> None:
    """A topic is no path, and a file far away makes no files before it."""
    store = tmp_path / "store"
    topics = ["../../x", "..", "a/b", "", "\0", "t" * 120]
    drafts = [message_of(topic, {"KEYS": "k"}) for topic in topics]
    write_log(REAL_FILES, str(store), drafts, SIZE)
    out = tmp_path / "new" / "out"
    told = salvage_store(store, out, hash_slot_num=SLOTS, index_num=ENTRIES)
    assert (len(topics), 5) == (told.messages, told.unqueued_messages)
    assert ["t" * 120] == [one.name for one in (out / "consumequeue").iterdir()]
    assert [out] == list((tmp_path / "new").iterdir())
    (image,) = log_images([message_of()], SIZE, start=SIZE * 10**9).values()
    write_file(REAL_FILES, str(store / "commitlog" / f"{SIZE * 10**9:020d}"), image)
    with pytest.raises(SegproofError, match="files of the log are missing"):
        salvage_store(store, tmp_path / "far", hash_slot_num=SLOTS, index_num=ENTRIES)


def test_what_can_not_be_saved_is_refused(tmp_path: Path, capsys: Capsys) -> None:
    """A store without a log, a directory that is full, one inside the store: nothing is written."""
    store = copied_store(tmp_path)
    for out in (store / "new", tmp_path):
        assert run(["salvage", str(store), "--out", str(out)]) == 2
    with pytest.raises(InvalidArgumentError, match="no commit log"):
        salvage_store(copied_store(tmp_path / "c", "collisions-4.9.8"), tmp_path / "out")
    with pytest.raises(InvalidArgumentError, match="a store of RocketMQ") as refused:
        next(salvage(store, tmp_path / "out"))
    assert "salvage_store" in (refused.value.hint or "")
    assert not (tmp_path / "out").exists()
    (store / LOG).write_bytes(b"\xff" * 16384)
    assert run(["salvage", str(store), "--out", str(tmp_path / "out")]) == 1
    assert "no sound message in 16384 bytes" in capsys.readouterr().out
    assert not (tmp_path / "out" / "commitlog").exists()


def test_an_index_beside_the_log_of_a_cluster_names_what_is_not_saved(
    tmp_path: Path, capsys: Capsys
) -> None:
    """It was a step for Python, and said nothing of the log."""
    copied_store(tmp_path, "collisions-4.9.8").rename(tmp_path / "both")
    (tmp_path / "both" / "checkpoint").unlink()
    log = tmp_path / "both" / "__cluster_metadata-0" / f"{0:020}.log"
    log.parent.mkdir()
    log.write_bytes(bytes(3855))
    assert 2 == run(["salvage", str(tmp_path / "both"), "--out", str(tmp_path / "out")])
    assert "the log of a cluster's metadata is not saved" in capsys.readouterr().err


def test_the_verb_tells_gaps_and_what_is_lost(tmp_path: Path, capsys: Capsys) -> None:
    """As text and as objects; exit code 1, since something is lost; `verify` hints at this."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    at, message = list(messages_of(store).items())[40]
    with closing(REAL_FILES.open(str(store / LOG), writable=True)) as file:
        file.pwrite(b"\0\0", at + 4)
    (told,) = (one for one in verify(store) if one.law == "RMQDISK-24")
    assert f"segproof salvage {store} --out saved" in told.hint
    assert run(["salvage", str(store), "--out", str(tmp_path / "text")]) == 1
    shown = capsys.readouterr().out
    assert f"byte {at}: {message.total_size} bytes broken, with 1 message" in shown
    assert "lost: 1 message" in shown
    words = ["salvage", str(store), "--out", str(tmp_path / "json"), "--format", "jsonl"]
    assert run(words) == 1
    row, gap = map(json.loads, capsys.readouterr().out.splitlines())
    assert (219, 1, 1) == (row["messages"], row["lost_messages"], row["gap_count"])
    assert (at, message.total_size, 1) == (gap["offset"], gap["size_bytes"], gap["messages"])
    assert run(["verify", str(tmp_path / "json")]) == 0


def stored_blocks(store: Path) -> tuple[Path, list[bytes]]:
    """Write a log of one file whose messages are of 256 bytes each; return it, and its messages."""
    drafts = [
        replace(
            message_of(
                "T", {"KEYS": f"k{number:03}"}, body=b"b" * 140, queue_offset=number // 3,
                store_timestamp=FIRST_TIMESTAMP_MS + number,
            ),
            queue_id=number % 3,
        )
        for number in range(48)
    ]  # fmt: skip
    ((name, image),) = log_images(drafts, 1 << 16).items()
    log = store / "commitlog" / name
    write_file(REAL_FILES, str(log), image)
    size = next(iter(messages_of(store).values())).total_size
    return log, [image[at : at + size] for at in range(0, 48 * size, size)]


@pytest.mark.checks("RMQDISK-25", "RMQDISK-37")
def test_blocks_at_a_wrong_place_are_put_in_order(tmp_path: Path) -> None:
    """Two blocks of whole messages are swapped: each message gets its own offset and number back.
    Or one has a copy of the other: the copies are left out, and cost no number of another one."""
    for is_copy in (False, True):
        store, out = tmp_path / f"store{is_copy}", tmp_path / f"out{is_copy}"
        log, parts = stored_blocks(store)
        whole = messages_of(store)
        bad = [*parts[:12], *parts[18:24], *parts[12:18], *parts[24:]]
        if is_copy:
            bad = [*parts[:12], *parts[18:24], *parts[18:]]
        log.write_bytes(b"".join(bad).ljust(1 << 16, b"\0"))
        told = salvage_store(store, out, hash_slot_num=SLOTS, index_num=ENTRIES)
        lost = list(whole)[12:18] if is_copy else []
        assert {at: one for at, one in whole.items() if at not in lost} == messages_of(out, 1 << 16)
        assert (0 if is_copy else 12, len(lost)) == (told.moved_messages, told.copied_messages)
        assert (0, 0, 0) == (
            told.misplaced_messages, told.unqueued_messages, told.restored_messages,
        )  # fmt: skip
        assert told.is_whole is not is_copy
        assert whole.keys() - {*lost} == {*numbered_messages(out).values()}
        numbers = [("T", queue, 4, 5) for queue in range(3)] if is_copy else []
        assert numbers == [*told.lost_numbers]


def test_a_full_disk_leaves_a_mark(tmp_path: Path, capsys: Capsys) -> None:
    """Whatever write fails, the new store says that it is not whole, and no salvage goes on in it;
    a whole one has no mark."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    left = 0

    def open_file(path: str, **options: Any) -> Any:
        file = REAL_FILES.open(path, **options)

        def pwrite(data: bytes | memoryview, position: int) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(errno.ENOSPC, "No space left on device", path)
            file.pwrite(data, position)

        return altered(file, pwrite=pwrite) if options.get("writable") else file

    for number in (0, 1, 4):
        left, out = number, tmp_path / f"out{number}"
        with pytest.raises(OSError, match="No space left"):
            salvage_store(store, out, files=altered(REAL_FILES, open=open_file))
        assert (out / SALVAGE_MARKER).exists()
        assert 2 == run(["salvage", str(store), "--out", str(out)])
        assert "ended here before it was whole" in capsys.readouterr().err
    assert salvage_store(store, tmp_path / "whole").is_whole
    assert not (tmp_path / "whole" / SALVAGE_MARKER).exists()
