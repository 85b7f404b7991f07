# SPDX-License-Identifier: Apache-2.0
"""Messages of a store that lie elsewhere than at the offset that they say.

Files of the log were swapped or renamed, bytes put in or taken out, blocks written elsewhere."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from segproof.files import REAL_FILES
from segproof.findings import Summary
from segproof.reading.log_in_order import with_right_names
from segproof.repair import rebuild_index, salvage_store
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.message import Message, encode_message
from segproof.salvaging.store_salvage import SalvagedStore
from segproof.verification import verify
from segproof_harness.cli import run
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.memory_stores import (
    FIRST_TIMESTAMP_MS,
    log_images,
    message_of,
    write_log,
)
from segproof_tests.reported_findings import contents, verified
from segproof_tests.store_files import LOG, copied_store, messages_of

SIZE = 1500
SLOTS, ENTRIES = 16, 200
PER_FILE = 7
"""Messages of a file of the log."""


def made_store(store: Path, count: int = 40) -> dict[int, Message]:
    """Write a store of several log files without queues; return its messages."""
    drafts = [
        message_of(
            "T", {"KEYS": f"k{number}"}, body=b"b" * 60, queue_offset=number,
            store_timestamp=FIRST_TIMESTAMP_MS + 1000 * number,
        )
        for number in range(count)
    ]  # fmt: skip
    write_log(REAL_FILES, str(store), [replace(one, queue_id=0) for one in drafts], SIZE)
    return messages_of(store)


def saved(store: Path, out: Path) -> SalvagedStore:
    """Save a store with log files of SIZE bytes."""
    return salvage_store(store, out, hash_slot_num=SLOTS, index_num=ENTRIES, mapped_file_size=SIZE)


def renamed(store: Path, new_names: dict[int, int]) -> None:
    """Give log files of a store other names, by number."""
    log = store / "commitlog"
    for old in new_names:
        os.rename(log / f"{old * SIZE:020d}", log / f"moved-{old}")
    for old, new in new_names.items():
        os.rename(log / f"moved-{old}", log / f"{new * SIZE:020d}")


@pytest.mark.checks("RMQDISK-25")
@pytest.mark.parametrize("new_names", [{0: 1, 1: 0}, {1: 3, 3: 1}, {0: 2, 2: 4, 4: 0}])
def test_files_with_swapped_names(
    new_names: dict[int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two files of a log had each other's names: 332 messages of 900 got new offsets, and 167 no
    queue. `verify` told each message, and `rebuild` made an index of them. Now each message keeps
    its own offset, and one finding for each file says that the names are swapped."""
    store = tmp_path / "store"
    whole = made_store(store)
    sound = [one for one in verify(store) if one.is_defect]
    renamed(store, new_names)
    found = [one for one in verify(store) if one.is_defect]
    swapped = [one for one in found if one.law == "RMQDISK-25"]
    assert sorted(f"{new * SIZE:020d}" for new in new_names.values()) == sorted(
        os.path.basename(one.path) for one in swapped
    )
    assert all("names of files of the log are swapped" in one.message for one in swapped)
    assert len(sound) == len(found) - len(swapped)
    told = saved(store, tmp_path / "out")
    assert whole == messages_of(tmp_path / "out")
    assert (told.is_whole, len(whole)) == (True, told.messages)
    assert {(new * SIZE, old * SIZE, True) for old, new in new_names.items()} == {
        (one.named, one.start, one.is_swapped) for one in told.misnamed_files
    }
    (refusal,) = rebuild_index(store, None, SLOTS, ENTRIES, in_place=True).findings
    assert ("RMQDISK-25", "messages from offset" in refusal.message) == (refusal.law, True)
    words = ["--hash-slots", "16", "--index-num", "200", "--format", "jsonl"]
    assert 0 == run(["salvage", str(store), "--out", str(tmp_path / "again"), *words])
    row = json.loads(capsys.readouterr().out.splitlines()[0])
    assert len(new_names) == len(row["misnamed_files"])


def test_a_renamed_file_goes_where_it_is_free(tmp_path: Path) -> None:
    """A file that has the name of no other one is read at its own offset, also one that belongs
    before the first or behind the last; not where another file has that offset."""
    for new_names in ({0: 9}, {2: 9}, {4: 11}):
        folder = tmp_path / str(new_names)
        whole = made_store(folder / "store")
        healthy = [one.law for one in verify(folder / "store") if one.is_defect]
        renamed(folder / "store", new_names)
        found = [one.law for one in verify(folder / "store") if one.is_defect]
        assert sorted([*healthy, "RMQDISK-25"]) == sorted(found)
        told = saved(folder / "store", folder / "out")
        assert (whole, True) == (messages_of(folder / "out"), told.is_whole)
    whole = made_store(tmp_path / "store")
    data = (tmp_path / "store" / "commitlog" / f"{SIZE:020d}").read_bytes()
    copy = tmp_path / "store" / "commitlog" / f"{9 * SIZE:020d}"
    copy.write_bytes(data)
    told = saved(tmp_path / "store", tmp_path / "out")
    assert [] == told.misnamed_files
    assert whole == messages_of(tmp_path / "out")
    assert PER_FILE <= told.copied_messages


ODD_FILES: dict[str, tuple[list[tuple[float, float | None, bool]], list[str], range]] = {
    # steps, as (from, to, is copied); the laws, and the offsets of the lost messages
    "a copy": ([(2, 2.3, True)], ["RMQDISK-23"], range(0)),
    "a copy before all": ([(0, 0.01, True)], ["RMQDISK-23"], range(0)),
    "renamed": ([(2, 2.3, False)], ["RMQDISK-25"], range(0)),
    "the first one renamed twice": (
        [(0, 0.01, True), (0, 0.02, False)], ["RMQDISK-23", "RMQDISK-25"], range(0)
    ),
    "a copy, and another file gone": (
        [(3, 3.5, True), (1, None, False)], ["RMQDISK-23", "RMQDISK-23"], range(SIZE, 2 * SIZE)
    ),
}  # fmt: skip


@pytest.mark.checks("RMQDISK-23", "RMQDISK-25")
@pytest.mark.parametrize("case", ODD_FILES)
def test_a_file_whose_name_no_file_of_the_log_can_have(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy under an odd name ended `salvage` with an error after it had written; `verify` counted
    its messages twice, and told a loss where none was. A renamed file has its messages lost."""
    steps, laws, lost = ODD_FILES[case]
    store, out = tmp_path / "store", tmp_path / "out"
    whole = made_store(store)
    log = store / "commitlog"
    healthy = [one.law for one in verify(store) if one.is_defect]
    for before, after, is_copied in steps:
        old = log / f"{int(before * SIZE):020d}"
        if after is not None:
            shutil.copyfile(old, log / f"{int(after * SIZE):020d}")
        if not is_copied:
            old.unlink()
    summaries: list[Summary] = []
    found = [one.law for one in verify(store, on_summary=summaries.append) if one.is_defect]
    assert sorted(healthy + laws) == sorted(found)
    kept = {at: one for at, one in whole.items() if at not in lost}
    assert (len(kept), bool(lost)) == (summaries[0].batches, summaries[0].lost_offsets != 0)
    told = saved(store, out)
    assert (kept, not lost) == (messages_of(out, SIZE), told.is_whole)
    assert rebuild_index(store, None, SLOTS, ENTRIES, in_place=True).findings
    words = ["--hash-slots", "16", "--index-num", "200", "--mapped-file-size", str(SIZE)]
    assert bool(lost) == run(["salvage", str(store), "--out", str(tmp_path / "again"), *words])
    assert "report it" not in capsys.readouterr().err


def test_a_file_too_many_of_another_store(tmp_path: Path) -> None:
    """The log keeps its own messages where they are, and the others are kept too, or set aside."""
    store, out = copied_store(tmp_path), tmp_path / "out"
    other = copied_store(tmp_path / "other", "small-4.7.0")
    whole = messages_of(store)
    shutil.copyfile(other / LOG, store / "commitlog" / f"{61:020d}")
    told = salvage_store(store, out)
    kept = messages_of(out)
    assert whole == {at: kept.get(at) for at in whole}
    assert len(whole) + len(messages_of(other)) == told.messages + told.foreign_messages
    assert not told.is_whole


@pytest.mark.parametrize("name", ["00010000000000000000", "00000000000000016364"])
def test_the_only_file_has_a_name_far_away(name: str, tmp_path: Path) -> None:
    """It belongs where its messages say that they are, also if no queue and no index knows them."""
    store = copied_store(tmp_path)
    log = store / "commitlog"
    whole = messages_of(store)
    (log / f"{0:020d}").rename(log / name)
    told = salvage_store(store, tmp_path / "out")
    assert (True, 0, [0]) == (
        told.is_whole, told.restored_messages, [one.start for one in told.misnamed_files]
    )  # fmt: skip
    assert whole == messages_of(tmp_path / "out")
    shutil.rmtree(store / "consumequeue")
    shutil.rmtree(store / "index")
    assert [0] == [one.start for one in with_right_names(CommitLog.open(store), REAL_FILES)[1]]


def test_a_file_without_messages_takes_the_name_that_is_left(tmp_path: Path) -> None:
    """A preallocated file of zeros and a full one have each other's names."""
    store = tmp_path / "store"
    whole = made_store(store)
    last = len(list((store / "commitlog").iterdir()))
    (store / "commitlog" / f"{last * SIZE:020d}").write_bytes(bytes(SIZE))
    renamed(store, {last: 1, 1: last})
    log, misnamed = with_right_names(CommitLog.open(store), REAL_FILES)
    assert [SIZE, last * SIZE] == sorted(one.start for one in misnamed)
    assert [one * SIZE for one in range(last + 1)] == [one.start for one in log.log_files]
    assert (whole, True) == (messages_of_saved(store, tmp_path / "out"))


def messages_of_saved(store: Path, out: Path) -> tuple[dict[int, Message], bool]:
    """Save a store; return its messages, and whether it is whole."""
    told = saved(store, out)
    return messages_of(out, SIZE), told.is_whole


@pytest.mark.checks("RMQDISK-24")
@pytest.mark.parametrize("shift", [1, 7, 8, 91, 512, -1, -8, -100])
def test_bytes_that_were_put_in_or_taken_out(shift: int, tmp_path: Path) -> None:
    """Behind 8 bytes too many 119 whole messages were not searched for. Now each is at its own
    offset; only what the bytes lie in is lost. `verify` and `salvage` count alike."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    whole, before = messages_of(store), (store / LOG).read_bytes()
    at = 16_206
    put_in, rest = (b"\xee" * shift, before[at:]) if shift > 0 else (b"", before[at - shift :])
    data = (before[:at] + put_in + rest).ljust(len(before), b"\0")
    (store / LOG).write_bytes(data[: len(before)])
    touched = range(at, at + 1) if shift > 0 else range(at, at - shift)
    intact = {
        place: one for place, one in whole.items()
        if not any(place < byte < place + one.total_size for byte in touched)
        and not place <= touched[-1] < place + one.total_size
    }  # fmt: skip
    _, summaries = verified(store)
    told = salvage_store(store, tmp_path / "out")
    kept = messages_of(tmp_path / "out")
    assert intact.items() <= kept.items()
    assert kept.items() <= whole.items()
    assert len(whole) - len(kept) == told.lost_messages == summaries[0].lost_offsets
    assert told.is_lost_exact
    assert len(kept) - len([one for one in kept if one < at]) == told.moved_messages
    assert [] == [str(one) for one in verify(tmp_path / "out", deep=True) if one.is_defect]


def test_parts_of_a_file_in_another_order(tmp_path: Path) -> None:
    """Each belongs directly before or behind one that was put where it belongs."""
    store = tmp_path / "store"
    whole = made_store(store)
    path = store / "commitlog" / f"{2 * SIZE:020d}"
    data, starts = path.read_bytes(), [at - 2 * SIZE for at in whole if at // SIZE == 2]
    end = starts[-1] + whole[2 * SIZE + starts[-1]].total_size
    cuts = [starts[0], starts[1], starts[3], starts[5], end]
    parts = [data[begin:stop] for begin, stop in pairwise(cuts)]
    path.write_bytes(b"".join(parts[number] for number in (1, 3, 0, 2)) + data[end:])
    told = saved(store, tmp_path / "out")
    assert whole == messages_of(tmp_path / "out")
    assert (True, len(starts)) == (told.is_whole, told.moved_messages)


def changed(store: Path, change: Callable[[bytearray], None]) -> None:
    """Change the bytes of a store's log file."""
    data = bytearray((store / LOG).read_bytes())
    change(data)
    (store / LOG).write_bytes(data)


def test_one_message_with_a_wrong_offset_stays(tmp_path: Path) -> None:
    """Its neighbours are at their own offsets: so its field is damaged, whatever offset it says."""
    whole_store = copied_store(tmp_path / "whole", "rolled-4.9.8")
    whole = messages_of(whole_store)
    at = list(whole)[20]
    for offset in (at + 8, at + 512, at + 4096, 40_000, 60_000, 2, at ^ (1 << 40)):
        store = copied_store(tmp_path / str(offset), "rolled-4.9.8")

        def change(data: bytearray, offset: int = offset) -> None:
            data[at + 28 : at + 36] = offset.to_bytes(8, "big")

        changed(store, change)
        told = salvage_store(store, tmp_path / str(offset) / "out")
        assert whole == messages_of(tmp_path / str(offset) / "out")
        assert (1, 0) == (told.restored_messages, told.moved_messages)


def test_messages_in_the_body_of_another_one_are_not_believed(tmp_path: Path) -> None:
    """A broken message has a message of another log in its body, or one that is there as well."""
    whole = {}
    for name, offset in (("other", 777_777), ("far", 300), ("same", 0)):
        store = tmp_path / name
        inner = encode_message(message_of("T", {"KEYS": "inner"}, body=b"x", queue_offset=99))
        inner = inner[:28] + offset.to_bytes(8, "big") + inner[36:]
        bodies = [b"first", b"<" + inner + b">", b"last"]
        drafts = [
            message_of("T", {"KEYS": f"k{number}"}, body=body, queue_offset=number)
            for number, body in enumerate(bodies)
        ]
        (image,) = log_images([replace(one, queue_id=0) for one in drafts], 2000).values()
        path = store / "commitlog" / ("0" * 20)
        write_file(REAL_FILES, str(path), image)
        whole = messages_of(store)
        data = bytearray(image)
        data[list(whole)[1] + 88] ^= 1  # the body's first byte
        path.write_bytes(data)
        told = salvage_store(store, tmp_path / f"{name}-out", hash_slot_num=4, index_num=20)
        kept = messages_of(tmp_path / f"{name}-out")
        assert [b"first", b"last"] == [one.body for one in kept.values()]
        assert 0 == told.moved_messages


def test_a_part_of_a_copy_takes_the_place_of_a_damaged_message(tmp_path: Path) -> None:
    """A block of the log lies at another place too: what is damaged at its own place is taken from
    there, and the rest is a copy."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    whole, places = messages_of(store), list(messages_of(store))

    def change(data: bytearray) -> None:
        start, end, at = places[40], places[46], places[60]
        data[at : at + end - start] = data[start:end]
        data[places[42] + 88] ^= 1

    changed(store, change)
    told = salvage_store(store, tmp_path / "out")
    kept = messages_of(tmp_path / "out")
    assert whole.items() >= kept.items()
    assert {*places[:60]} <= kept.keys()
    assert (1, 5) == (told.moved_messages, told.copied_messages)


@pytest.mark.checks("RMQDISK-40")
def test_a_saved_store_is_saved_again_byte_for_byte(tmp_path: Path) -> None:
    """A filler had the impossible store time of the message behind it, so the next salvage changed
    it; and fillers were counted as messages."""
    store = copied_store(tmp_path)
    places = list(messages_of(store))

    def change(data: bytearray) -> None:
        data[places[5] + 88] ^= 1
        data[places[8] + 88] ^= 1
        data[places[6] + 56 : places[6] + 64] = (1 << 41).to_bytes(8, "big")

    changed(store, change)
    first = salvage_store(store, tmp_path / "a")
    second = salvage_store(tmp_path / "a", tmp_path / "b")
    third = salvage_store(tmp_path / "b", tmp_path / "c")
    assert (10, 0, 1) == (first.messages, first.fillers, first.restored_times)
    for told in (second, third):
        assert (10, 2, 0) == (told.messages, told.fillers, told.restored_times)
        assert told.is_whole
    for part in ("commitlog", "consumequeue", "index"):
        one, two, three = (contents(tmp_path / name / part) for name in "abc")
        assert one == two == three
