# SPDX-License-Identifier: Apache-2.0
"""What `verify` says of a damage in a commit log: what lies behind it, what a recovery does."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from segproof.files import REAL_FILES
from segproof.findings import Finding, Severity
from segproof.repair import rebuild_index
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.consume_queue import ConsumeQueue
from segproof.rocketmq.message import Message, blank_tail, dispatch_request_of
from segproof.store_lookup import StoreReader
from segproof.verification import verify
from segproof_harness.cli import run
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.memory_stores import FIRST_TIMESTAMP_MS, log_images, message_of
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.printed_rows import Capsys
from segproof_tests.store_files import LOG, copied_store

ROLLED = "rolled-4.9.8"
SIZE = 1000
LAWS = ("RMQDISK-24", "RMQDISK-26", "RMQDISK-27")


def places(store: Path) -> list[tuple[int, Message]]:
    """Return the messages of a sound log, with their offsets."""
    found = CommitLog.open(store).scan()
    return [(at, result.message) for at, result in found if result.message is not None]


def damages(store: Path) -> list[Finding]:
    """Return what is found of the records of the log."""
    return [one for one in verify(store) if one.law in LAWS]


@pytest.mark.checks(*LAWS)
@pytest.mark.parametrize("kind", ["body", "magic", "size", "zeros", "blank", "blank to the end"])
def test_messages_behind_damage_are_counted(kind: str, tmp_path: Path, capsys: Capsys) -> None:
    """One message of a real store is damaged: an error tells how many lie behind, and how many are
    lost, by the queues; no hint lets a broker start."""
    store = copied_store(tmp_path, ROLLED)
    found = places(store)
    number = 40
    at, message = found[number]
    data = bytearray((store / LOG).read_bytes())
    change = {
        "body": (at + 90, b"\xff"),
        "magic": (at + 5, b"\0"),
        "size": (at, (1 << 20).to_bytes(4, "big")),
        "zeros": (at, bytes(message.total_size)),
        "blank": (at + 4, b"\xcb\xd4\x31\x94"),
        "blank to the end": (at, blank_tail(len(data) - at)[:8]),
    }
    position, changed = change[kind]
    data[position : position + len(changed)] = changed
    (store / LOG).write_bytes(data)
    (told,) = damages(store)
    behind = found[number + 1 :]
    assert told.position == at
    assert told.severity is Severity.ERROR
    size = sum(one.total_size for _, one in behind)
    for words in (
        f"{len(behind)} sound messages of {size} bytes lie behind it in 1 file",
        f"from offset {behind[0][0]} to {behind[-1][0]}, stored 2026-11-21T",
        f"{message.total_size} bytes in 1 place are lost, with 1 message, as queues and index tell",
        f"keeps the {number} messages before it, cuts the log here and throws these {len(behind)}",
        "(the next start of 5.5.1 recovers from offset 0 on, so it reaches this place)",
    ):
        assert words in told.message
    assert "segproof salvage" in told.hint
    assert run(["verify", str(store), "--summary"]) == 1
    words = f"{len(behind)} sound messages behind damage, which a recovery that reaches it would"
    assert words in capsys.readouterr().out


def test_a_torn_tail_has_nothing_sound_behind_it(tmp_path: Path) -> None:
    """The last message is cut: a warning, without a number of messages that would be lost."""
    store = copied_store(tmp_path, ROLLED)
    at, message = places(store)[-1]
    for folder in ("index", "consumequeue"):
        (store / folder).rename(tmp_path / folder)
    put_bytes(store / LOG, at + 60, bytes(message.total_size - 60))
    (told,) = damages(store)
    assert told.severity is Severity.WARNING
    assert "behind it in" not in told.message
    assert "throws" not in told.message


def written(store: Path, images: dict[str, bytes]) -> Path:
    """Write the files of a log."""
    for name, image in images.items():
        write_file(REAL_FILES, str(store / "commitlog" / name), image)
    return store


def drawn(
    count: int, first_ms: int = FIRST_TIMESTAMP_MS, body: bytes = b"body"
) -> Iterator[Message]:
    """Yield messages of one queue, a second apart."""
    for number in range(count):
        yield message_of(
            "T", {"KEYS": f"k{number}"}, body=body, queue_offset=number,
            store_timestamp=first_ms + 1000 * number,
        )  # fmt: skip


def break_second(path: Path) -> None:
    """Flip a bit in the body of the second message of a file."""
    data = bytearray(path.read_bytes())
    data[data.index(b"body", data.index(b"body") + 1)] ^= 1
    path.write_bytes(data)


def test_what_an_earlier_recovery_cut_off_is_told_as_older(tmp_path: Path) -> None:
    """New messages over a part of old ones: the rest of the old ones is no loss."""
    (old,) = log_images(drawn(8), SIZE).values()
    (new,) = log_images(drawn(2, FIRST_TIMESTAMP_MS + 10**7, b"another body"), SIZE).values()
    end = len(new.rstrip(b"\0"))
    store = written(tmp_path / "s", {LOG[10:]: new[:end] + old[end:]})
    (told,) = damages(store)
    assert told.severity is Severity.WARNING
    # The first of them has no room behind the new messages: a salvage sets it aside.
    assert "4 sound messages" in told.message
    assert "4 of them are older than the last message before the damage" in told.message
    assert "a recovery after an abnormal stop" in told.hint


def test_a_blank_end_hides_no_messages(tmp_path: Path, capsys: Capsys) -> None:
    """A broker goes on with the next file behind a false blank end, and cuts nothing; messages
    behind a true one that an earlier recovery has cut off are no loss."""
    images = log_images(drawn(30), SIZE)
    store = written(tmp_path / "s", images)
    name, found = min(images), places(store)
    at, count = found[2][0], sum(offset < SIZE for offset, _ in found)
    false_end = images[name][:at] + blank_tail(SIZE - at)[:8] + images[name][at + 8 :]
    (store / "commitlog" / name).write_bytes(false_end)
    (told,) = damages(store)
    assert (Severity.ERROR, "RMQDISK-24", at) == (told.severity, told.law, told.position)
    assert f"a blank end of {SIZE - at} bytes, with sound messages behind it" in told.message
    assert f"{30 - 3} sound messages" in told.message
    assert "goes on with the next file" in told.message
    assert "throws" not in told.message
    assert run(["verify", str(store), "--summary"]) == 1
    assert "behind damage, which" not in capsys.readouterr().out
    scan = StoreReader(store).scan_keys([f"T#k{number}" for number in range(count)])
    assert [2] == [number for number, one in enumerate(scan.values()) if not one.phy_offsets]
    older = log_images(drawn(30, FIRST_TIMESTAMP_MS - 10**7), SIZE)[name]
    (store / "commitlog" / name).write_bytes(false_end[: at + 8] + older[at + 8 :])
    assert [] == damages(store)


def test_files_behind_a_hole_are_counted(tmp_path: Path) -> None:
    """Damage in the first of several files: the messages of all later files are told too; of a
    damage in a later file only what lies behind that one."""
    images = log_images(drawn(30), SIZE)
    assert len(images) >= 4
    store = written(tmp_path / "s", images)
    found = places(store)
    names = list(images)
    for name in (names[0], names[2]):
        break_second(store / "commitlog" / name)
    first, second = damages(store)
    by_file = [[at for at, _ in found if at // SIZE == number] for number in range(len(images))]
    # The second message of each of the two files is the damaged one.
    behind_second = len(by_file[2]) - 2 + sum(map(len, by_file[3:]))
    behind_first = len(by_file[0]) - 2 + len(by_file[1]) + 1 + behind_second
    assert f"{behind_first} sound messages" in first.message
    assert f"in {len(images)} files" in first.message
    assert "in 2 places" in first.message
    assert f"{behind_second} sound messages" in second.message
    kept = 1 + len(by_file[1]) + 1
    assert f"keeps the {kept} messages before it" in second.message


def test_a_file_that_the_next_start_does_not_read_is_told_apart(tmp_path: Path) -> None:
    """After a clean stop the recovery begins where the queues end, and reaches no older damage."""
    images = log_images(drawn(30), SIZE)
    store = written(tmp_path / "s", images)
    queue = ConsumeQueue.open(store, "T", 0, 2000, create=True)
    for at, message in places(store):
        request = dispatch_request_of(replace(message, physical_offset=at))
        queue.put_message_position_info(
            at, message.total_size, request.tags_code, message.queue_offset
        )
    name = next(iter(images))
    break_second(store / "commitlog" / name)
    (told,) = damages(store)
    last = SIZE * (len(images) - 1)
    words = f"(the next start of 5.5.1 recovers from offset {last} on, after this place: it does"
    assert f"{words} not read it, and cuts nothing here)" in told.message
    (store / "abort").touch()
    (told,) = damages(store)
    assert (
        "(the next start of 5.5.1 recovers from offset 0 on, so it reaches this place)"
        in told.message
    )


def test_a_rebuild_that_cuts_says_how_many_messages_it_leaves_out(
    tmp_path: Path, capsys: Capsys
) -> None:
    """Of a log with a hole an index is made only if asked for, and never without the number."""
    store = copied_store(tmp_path, ROLLED)
    found = places(store)
    count, (at, message) = len(found), found[1]
    data = bytearray((store / LOG).read_bytes())
    data[at + 88 : at + 89] = b"\0"
    assert message.body[:1] != b"\0"
    (store / LOG).write_bytes(data)
    words = ["rebuild", str(store), "--out", str(tmp_path / "new")]
    assert run(words) == 1
    assert f"{count - 2} sound messages of " in capsys.readouterr().out
    assert run([*words, "--cut-tail"]) == 0
    assert f"with {count - 2} sound messages behind damage" in capsys.readouterr().err


@pytest.mark.checks("RMQDISK-24")
def test_messages_behind_a_false_blank_end_are_not_left_out_in_silence(tmp_path: Path) -> None:
    """A broker passes over them: an index without them is made only if asked for, and counts
    them."""
    store = copied_store(tmp_path)
    put_bytes(store / LOG, 746, blank_tail((store / LOG).stat().st_size - 746)[:8])
    (told,) = rebuild_index(store, tmp_path / "a", 16, 64).findings
    assert ("RMQDISK-24", 746) == (told.law, told.position)
    assert "6 sound messages" in told.message
    rebuilt = rebuild_index(store, tmp_path / "b", 16, 64, cut_tail=True)
    assert (5, 6, 16384 - 746) == (rebuilt.messages, rebuilt.left_messages, rebuilt.left_bytes)
