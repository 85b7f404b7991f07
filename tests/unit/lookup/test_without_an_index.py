# SPDX-License-Identifier: Apache-2.0
"""Keys of a store whose index is lost: the commit log is read, also behind damage."""

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.errors import SegproofError
from segproof.files import REAL_FILES
from segproof.reading.log_gaps import Gap, GapKind
from segproof.reading.log_in_order import Filler, LogInOrder
from segproof.reading.record_keys import keys_of
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.message import BLANK_MAGIC, MAGIC_V2, Message, dispatch_request_of
from segproof.store_lookup import StoreReader
from segproof_harness.cli import run
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.memory_stores import (
    FIRST_TIMESTAMP_MS,
    log_images,
    message_of,
    write_log,
)
from segproof_tests.altered_files import altered
from segproof_tests.printed_rows import Capsys
from segproof_tests.store_files import LOG, SMALL, copied_store

ROLLED = "rolled-4.9.8"
SIZE = 1200


def stored(store: Path) -> dict[int, Message]:
    """Return the messages of a sound store, by offset."""
    found = CommitLog.open(store).scan()
    return {at: result.message for at, result in found if result.message is not None}


@pytest.mark.checks("RMQSVC-14", "RMQSVC-15", "RMQDISK-33")
@pytest.mark.parametrize("name", [SMALL, ROLLED, "u8msgs-4.9.8"])
def test_each_key_is_found_as_by_the_brokers_index(name: str, tmp_path: Path) -> None:
    """A scan names the messages that the index of a real broker leads to, each once."""
    store = copied_store(tmp_path, name)
    keys = sorted(
        {key for one in stored(store).values() for key in keys_of(dispatch_request_of(one))}
    )
    indexed = StoreReader(store)
    expected = {key: indexed.lookup_key(key, max_num=1000).phy_offsets for key in keys}
    shutil.rmtree(store / "index")
    answers = StoreReader(store).scan_keys([*keys, "No#such"], max_num=1000)
    assert {key: tuple(dict.fromkeys(found)) for key, found in expected.items()} == {
        key: answers[key].phy_offsets for key in keys
    }
    assert len(keys) > 10
    assert answers["No#such"].reason == "no message has this key in this time"


def test_times_and_numbers_bound_the_answer(tmp_path: Path) -> None:
    """Times are those of the messages, both inclusive; the newest messages are told first."""
    reader = StoreReader(copied_store(tmp_path))
    key = "TopicTest#order-1"
    offsets = reader.scan_keys([key])[key].phy_offsets
    times = [reader.look_message(at).store_timestamp for at in offsets]  # type: ignore[union-attr]
    assert len(offsets) == 3
    assert offsets[1:2] == reader.scan_keys([key], times[1], times[1])[key].phy_offsets
    assert offsets[1:] == reader.scan_keys([key], times[2], times[0] - 1)[key].phy_offsets
    assert offsets[:2] == reader.scan_keys([key], max_num=2)[key].phy_offsets
    assert reader.scan_keys([key], max_num=0)[key].phy_offsets == ()


def messages() -> list[Message]:
    """Return messages of both versions, without and with bodies, in files of SIZE bytes."""
    made = []
    for number in range(40):
        one = message_of(
            "T", {"KEYS": f"k{number} all"}, body=b"b" * (number * 37 % 260),
            store_timestamp=FIRST_TIMESTAMP_MS + number,
        )  # fmt: skip
        made.append(replace(one, magic=MAGIC_V2) if number % 3 else one)
    return made


IMAGES = log_images(messages(), SIZE)
Damages = st.lists(
    st.tuples(st.integers(0, SIZE * len(IMAGES) - 1), st.integers(1, 300), st.integers(0, 255)),
    min_size=1, max_size=4,
)  # fmt: skip


@given(Damages)
@pytest.mark.checks("RMQLOG-3", "RMQDISK-24", "RMQDISK-27")
def test_each_untouched_message_is_found_behind_damage(damages: list[tuple[int, int, int]]) -> None:
    """Wherever bytes are overwritten: pieces touch, and hold every message that was left whole."""
    before = MemoryFiles()
    whole = b"".join(IMAGES.values())
    broken = bytearray(whole)
    for start, size, byte in damages:
        end = min(start + size, len(broken))
        broken[start:end] = bytes([byte]) * (end - start)
    for place, name in enumerate(IMAGES):
        write_file(before, f"/s/commitlog/{name}", bytes(broken[place * SIZE : (place + 1) * SIZE]))
    log = CommitLog.open("/s", files=before)
    found, reached, is_lost = set(), 0, False
    for piece in LogInOrder(log, before, open_file=before.open).pieces():
        assert not isinstance(piece, Filler)
        start = piece.start if isinstance(piece, Gap) else int(piece.lies_at[0])
        blank = broken[reached + 4 : reached + 8] == BLANK_MAGIC.to_bytes(4, "big", signed=True)
        assert reached == start or (blank and start % SIZE == 0)
        if isinstance(piece, Gap):
            reached, is_lost = piece.end, is_lost or piece.kind is not GapKind.ZEROS
            continue
        found |= set(piece.lies_at.tolist())
        reached = int(piece.lies_at[-1] + piece.rows[-1, 1])
    for at, message in ORIGINAL.items():
        end = at + message.total_size
        assert at in found or whole[at:end] != broken[at:end]
    assert is_lost or found == set(ORIGINAL)


def _original() -> dict[int, Message]:
    files = MemoryFiles()
    for name, image in IMAGES.items():
        write_file(files, f"/s/commitlog/{name}", image)
    scanned = CommitLog.open("/s", files=files).scan()
    return {at: result.message for at, result in scanned if result.message is not None}


ORIGINAL = _original()


def test_a_search_ends_where_too_much_looks_like_messages() -> None:
    """A file full of heads of messages that say long bodies: the rest is told as not searched."""
    files, size = MemoryFiles(), 1 << 21
    data = bytearray(size)
    for at in range(16, size // 2, 40):
        data[at : at + 8] = (size // 2).to_bytes(4, "big") + b"\xda\xa3\x20\xa7"
        data[at + 28 : at + 36] = at.to_bytes(8, "big")
    write_file(files, f"/s/{LOG}", bytes(data))
    log = CommitLog.open("/s", files=files)
    kinds = [gap.kind for gap in LogInOrder(log, files, open_file=files.open).gaps()]
    assert [GapKind.BROKEN, GapKind.UNSEARCHED] == kinds


def test_many_damaged_places_are_read_a_few_times() -> None:
    """Each second message of a long file is damaged: no place costs a large part of the file."""
    drafts = [message_of("T", {"KEYS": f"k{number}"}, body=bytes(5000)) for number in range(800)]
    files, size = MemoryFiles(), 1 << 22
    ((name, image),) = log_images(drafts, size).items()
    data = bytearray(image)
    for at in range(0, 800 * 5107, 2 * 5107):
        data[data.index(b"\xda\xa3", at)] = 0
    write_file(files, f"/s/commitlog/{name}", bytes(data))
    read = 0

    def open_file(path: str, **options: Any) -> Any:
        file = files.open(path, **options)

        def pread(count: int, position: int) -> bytes:
            nonlocal read
            found = file.pread(count, position)
            read += len(found)
            return found

        return altered(file, pread=pread)

    log = CommitLog.open("/s", files=files)
    gaps = list(LogInOrder(log, files, open_file=open_file).gaps())
    assert [GapKind.BROKEN] * 400 == [one.kind for one in gaps if one.kind is GapKind.BROKEN]
    assert read < 400 * 250_000


# --- the command line


def test_a_store_without_an_index_says_how_to_ask_its_log(tmp_path: Path, capsys: Capsys) -> None:
    """The answer is null with the reason and the option; with it the message itself is shown."""
    store = copied_store(tmp_path)
    shutil.rmtree(store / "index")
    words = ["lookup", str(store), "--key", "TopicTest#order-1"]
    assert run(words) == 0
    assert "there is no index file: `segproof lookup" in capsys.readouterr().out
    assert run([*words, "--scan", "--max", "1"]) == 0
    shown = capsys.readouterr().out
    for line in (
        "message at offset 746: ",
        "property KEYS: order-1",
        "bytes: body-5",
        "2026-11-21T",
    ):
        assert line in shown
    assert run([*words, "--scan", "--max", "1", "--show", "--format", "jsonl"]) == 0
    (message,) = json.loads(capsys.readouterr().out)["messages"]
    assert (message["phy_offset"], message["body"]) == (746, "Ym9keS01")
    for other in ("--raw", "--profile=rocketmq-5.5.1"):
        assert run([*words, "--scan", other]) == 2


def test_damage_is_told_beside_what_is_found(tmp_path: Path, capsys: Capsys) -> None:
    """One byte of a body changes: messages behind it are found, and the exit code is 1."""
    store = copied_store(tmp_path)
    log = store / LOG
    data = bytearray(log.read_bytes())
    data[data.index(b"body-2")] ^= 1
    log.write_bytes(data)
    assert run(["lookup", str(store), "--key", "TopicTest#order-1", "--scan", "--no-show"]) == 1
    shown = capsys.readouterr().out
    assert "phy_offsets: [746, 0]" in shown
    assert "no sound message in 159 bytes at 1 place:" in shown


def test_messages_behind_the_index_are_not_called_missing(tmp_path: Path) -> None:
    """An index that ends before the log does not say that the log has no message of a key."""
    store = copied_store(tmp_path, ROLLED)
    newest = sorted((store / "index").iterdir())[-1]
    last = max(stored(store).items())[1]
    key = keys_of(dispatch_request_of(last))[0]
    assert StoreReader(store).lookup_key(key).phy_offsets
    newest.unlink()
    reason = StoreReader(store).lookup_key(key, begin=last.store_timestamp - 500).reason
    assert reason is not None
    command = shlex.join(["segproof", "lookup", str(store), "--key", key, "--scan"])
    assert f"the log goes on behind it: `{command}` reads the commit log" in reason


def test_a_body_that_is_no_text_is_shown_as_hexadecimal_digits(
    tmp_path: Path, capsys: Capsys
) -> None:
    """Bytes that a terminal would act on are not written to it."""
    message = message_of("T", {"KEYS": "k"}, body=b"\xff\x1b[31m")
    write_log(REAL_FILES, str(tmp_path / "s"), [message], SIZE)
    assert run(["lookup", str(tmp_path / "s"), "--key", "T#k", "--scan"]) == 0
    assert "body: 6 bytes, no UTF-8: ff1b5b33 316d" in capsys.readouterr().out
    with pytest.raises(SegproofError):
        StoreReader(copied_store(tmp_path, "collisions-4.9.8")).scan_keys(["T#k"])
