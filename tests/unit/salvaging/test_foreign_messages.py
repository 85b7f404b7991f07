# SPDX-License-Identifier: Apache-2.0
"""A file of another store in the place of one of the log: its messages are never mixed in."""

import os
import shutil
from pathlib import Path

import pytest

from segproof.findings import Severity, Summary, Verdict
from segproof.repair import salvage_store
from segproof.rocketmq.consume_queue import UNIT_BYTES, read_units
from segproof.rocketmq.message import Message
from segproof.salvaging.store_salvage import SalvagedStore
from segproof.verification import verify
from segproof_harness.laws.judged_store import StoreJudge
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.printed_rows import Capsys, shown
from segproof_tests.reported_findings import contents, verified
from segproof_tests.rows import paired
from segproof_tests.store_files import LOG_BYTES, keep, logs, long_store, messages_of

COUNT = 40


def in_file(messages: dict[int, Message], number: int) -> dict[int, Message]:
    """Return those in one file."""
    return {at: one for at, one in messages.items() if at // LOG_BYTES == number}


def saved(store: Path) -> tuple[SalvagedStore, dict[int, Message]]:
    """Save a store; return what was told, and its messages."""
    told = salvage_store(store, store.with_name("out"), hash_slot_num=16, index_num=200)
    return told, messages_of(store.with_name("out"))


def agreed(store: Path, told: SalvagedStore) -> Summary:
    """Return what `verify` says of the store, which is what its salvage told."""
    found, summaries = verified(store, hash_slots=16)
    (summary,) = summaries
    assert summary.verdict is Verdict.READABLE_WITH_GAPS
    assert (told.messages, told.lost_messages or 0) == (summary.batches, summary.lost_at_least)
    assert (summary.lost_offsets is not None) == (told.is_lost_exact and told.lost_messages != 0)
    words = ("copied", "is missing", "replaced")
    missing = [one for one in found if any(each in one.message for each in words)]
    assert missing
    assert all("segproof salvage" in one.hint for one in missing)
    return summary


@pytest.mark.checks("RMQDISK-25")
@pytest.mark.parametrize("parts", ["index consumequeue", "index", "consumequeue", ""])
@pytest.mark.parametrize(
    ("taken", "place", "topic"),
    [(0, 1, "Other"), (0, 2, "T"), (2, 1, "Other"), (0, -1, "T"), (1, 0, "T")],
)
def test_a_file_of_another_store_is_set_aside(
    taken: int, place: int, topic: str, parts: str, tmp_path: Path
) -> None:
    """Its messages "got the right offset back", in queues of this store."""
    store = long_store(tmp_path / "store", COUNT)
    own, place = messages_of(store), place % len(logs(store))
    other = long_store(tmp_path / "other", COUNT, topic, 53)
    # What both have, byte by byte, is a copy.
    foreign = {at: one for at, one in in_file(messages_of(other), taken).items()
               if own.get(at) != one}  # fmt: skip
    shutil.copyfile(logs(other)[taken], logs(store)[place])
    keep(store, parts)
    told, kept = saved(store)
    assert kept == {at: one for at, one in own.items() if at // LOG_BYTES != place}
    assert (len(foreign), False, 0, 0) == (
        told.foreign_messages, told.is_whole, told.restored_messages, told.misplaced_messages,
    )  # fmt: skip
    (line,) = [one for one in told.left_out if "another store" in one]
    assert line.startswith(f"{logs(store)[place]}: {len(foreign)} messages")
    assert f"from byte {min(foreign) % LOG_BYTES} on" in line
    agreed(store, told)


@pytest.mark.parametrize(("queue", "units"), [(0, 3), (1, 2)])
def test_three_units_show_that_a_file_is_of_another_store(
    queue: int, units: int, tmp_path: Path
) -> None:
    """None of them leads to its message; two such units may be damaged."""
    store = long_store(tmp_path / "store")
    known = in_file(messages_of(store), 0).values()
    assert units == len([one for one in known if one.queue_id == queue])
    other = long_store(tmp_path / "other", COUNT, "Other", 53)
    shutil.copyfile(logs(other)[0], logs(store)[0])
    keep(store, "consumequeue")
    for folder in (store / "consumequeue" / "T").iterdir():
        if folder.name != str(queue):
            shutil.rmtree(folder)
    told, _ = saved(store)
    assert (7 if units > 2 else 0) == told.foreign_messages


@pytest.mark.checks("RMQDISK-44")
@pytest.mark.parametrize("parts", ["index consumequeue", "index", "consumequeue"])
@pytest.mark.parametrize("place", [0, 1, -2])
def test_a_file_of_another_store_at_its_own_offset(parts: str, place: int, tmp_path: Path) -> None:
    """Each message says where it lies: queues and index contradict the file, and no other one."""
    store = long_store(tmp_path / "store", 64, step=3)
    own, place = messages_of(store), place % len(logs(store))
    other = long_store(tmp_path / "other", 90, "Other", step=5)
    foreign = in_file(messages_of(other), place)
    shutil.copyfile(logs(other)[place], logs(store)[place])
    keep(store, parts)
    told, kept = saved(store)
    assert kept == {at: one for at, one in own.items() if at // LOG_BYTES != place}
    assert len(foreign) == told.foreign_messages
    assert not told.is_whole
    agreed(store, told)
    assert StoreJudge(contents(store), 16).breaks("RMQDISK-44")


@pytest.mark.checks("RMQDISK-44")
@pytest.mark.parametrize("units", [1, 2])
def test_few_units_and_the_numbers_show_that_the_last_file_is_of_another_store(
    units: int, tmp_path: Path
) -> None:
    """Its messages were served, and `salvage` told exactly 0 lost."""
    store = long_store(tmp_path / "store", COUNT + units - 1)
    own, place = messages_of(store), len(logs(store)) - 1
    other = long_store(tmp_path / "other", 90, step=5)
    foreign = in_file(messages_of(other), place)
    shutil.copyfile(logs(other)[place], logs(store)[place])
    keep(store, "consumequeue")
    told, kept = saved(store)
    assert kept == {at: one for at, one in own.items() if at // LOG_BYTES != place}
    assert len(foreign) == told.foreign_messages

    assert units == len(in_file(own, place)) == told.lost_messages
    agreed(store, told)


@pytest.mark.checks("RMQDISK-25")
@pytest.mark.parametrize(
    ("taken", "place", "parts"),
    [
        (*row, parts)
        for row, parts in paired(
            [(0, 1), (0, 2), (2, 1), (1, 0)], ["index consumequeue", "index", "consumequeue", ""]
        )
    ],
)
def test_a_copy_of_another_file_of_the_log(
    taken: int, place: int, parts: str, tmp_path: Path
) -> None:
    """`verify` counted the copies as messages of the log, and told no loss."""
    store = long_store(tmp_path / "store", COUNT)
    own = messages_of(store)
    shutil.copyfile(logs(store)[taken], logs(store)[place])
    keep(store, parts)
    told, kept = saved(store)
    assert kept == {at: one for at, one in own.items() if at // LOG_BYTES != place}
    summary = agreed(store, told)
    assert summary.lost_at_least == (len(in_file(own, place)) if parts else 0)


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize(
    ("length", "parts"), paired([None, 400, 0], ["index consumequeue", "index", "consumequeue"])
)
def test_a_missing_file_before_a_cut_one(parts: str, length: int | None, tmp_path: Path) -> None:
    """`verify` counted from the cut file on only, and both were one finding of two places."""
    store = long_store(tmp_path / "store", COUNT)
    gone, cut = logs(store)[1:3]
    gone.unlink()
    if length is not None:
        os.truncate(cut, length)
    keep(store, parts)
    told, _ = saved(store)
    agreed(store, told)
    found = list(verify(store, hash_slots=16))
    (missing,) = [one for one in found if one.path == str(gone)]
    assert missing.message.startswith("this file is missing")


@pytest.mark.checks("RMQDISK-25")
@pytest.mark.parametrize(
    ("parts", "places"),
    paired(["index consumequeue", "index", "consumequeue", ""], [[4], [4, 5], [9, 10, 11]]),
)
def test_damaged_offsets_make_no_foreign_messages(
    places: list[int], parts: str, tmp_path: Path
) -> None:
    """Queues, index, or numbers that go on show that they are of this store."""
    store = long_store(tmp_path / "store", COUNT)
    own = messages_of(store)
    for number in places:
        at = sorted(own)[number]
        path = logs(store)[at // LOG_BYTES]
        put_bytes(path, at % LOG_BYTES + 28, (777_777 * number).to_bytes(8, "big"))
    keep(store, parts)
    told, kept = saved(store)
    assert (own, 0) == (kept, told.foreign_messages)


@pytest.mark.checks("RMQDISK-44")
def test_a_log_that_was_replaced_is_kept(tmp_path: Path) -> None:
    """All of the log contradicts index and queues: then it is the log."""
    store = long_store(tmp_path / "store", COUNT)
    other = long_store(tmp_path / "other", COUNT, "Other", 53)
    shutil.rmtree(store / "commitlog")
    shutil.copytree(other / "commitlog", store / "commitlog")
    told, kept = saved(store)
    assert (messages_of(other), 0) == (kept, told.foreign_messages)
    (line,) = told.left_out  # it said "everything kept", or only what the gaps cost
    assert "this log is not that of index and queues" in line
    assert not told.is_whole


@pytest.mark.checks("RMQDISK-44")
def test_a_log_of_which_units_know_nothing_is_not_whole(tmp_path: Path) -> None:
    """Eight units that contradict it were asked for: of fewer messages all was kept, 0 lost."""
    store, other = long_store(tmp_path / "store", 4), long_store(tmp_path / "other", 4, "Other", 53)
    shutil.rmtree(store / "commitlog")
    shutil.copytree(other / "commitlog", store / "commitlog")
    keep(store, "consumequeue")
    told, kept = saved(store)
    assert (messages_of(other), False, False) == (kept, told.is_lost_exact, told.is_whole)
    assert "or these are damaged" in told.left_out[-1]


@pytest.mark.checks("RMQDISK-25")
@pytest.mark.parametrize(("by", "count"), [(900 * LOG_BYTES, COUNT), (1, COUNT), (1, 4), (4096, 4)])
def test_a_log_whose_names_are_all_wrong_by_one_distance_is_kept(
    by: int, count: int, tmp_path: Path
) -> None:
    """Also by 1, where no name is one of this log, or of its only file: nothing was saved."""
    moved = long_store(tmp_path / "moved" / "store", count)
    for path in reversed(logs(moved)):
        path.rename(path.with_name(f"{int(path.name) + by:020d}"))
    keep(moved, "")
    told, kept = saved(moved)
    assert (count, 0) == (len(kept), told.foreign_messages)
    assert not any("another store" in one for one in told.left_out)


@pytest.mark.parametrize("parts", ["index consumequeue", "consumequeue"])
def test_a_queue_file_of_another_store_proves_no_loss(parts: str, tmp_path: Path) -> None:
    """Numbers that no message has led beyond the end of a whole log: it told 3 as lost."""
    store, other = long_store(tmp_path / "store"), long_store(tmp_path / "other", 90, step=1)
    file = Path("consumequeue", "T", "1", f"{160:020d}")
    shutil.copyfile(other / file, store / file)
    keep(store, parts)
    told, kept = saved(store)
    assert (24, 0, 0) == (len(kept), told.lost_messages, told.gap_count)


@pytest.mark.parametrize(("step", "unqueued"), [(1, 9), (37, 0)])
def test_a_file_before_the_log_takes_no_numbers_of_its_queues(
    step: int, unqueued: int, tmp_path: Path
) -> None:
    """No unit leads into it, as if its own units had expired: own messages stay in their queues."""
    store, other = long_store(tmp_path / "store", 64), long_store(tmp_path / "other", 64, step=step)
    for path in logs(store)[:5]:
        path.unlink()
    shutil.copyfile(logs(other)[4], store / "commitlog" / logs(other)[4].name)
    keep(store, "consumequeue")
    for path in filter(Path.is_file, (store / "consumequeue").rglob("*")):
        for place, unit in enumerate(read_units(path.read_bytes())):
            if unit.commit_log_offset < 5 * LOG_BYTES:
                put_bytes(path, place * UNIT_BYTES, bytes(UNIT_BYTES))
    told, _ = saved(store)
    assert (unqueued, 0) == (told.unqueued_messages, told.stand_ins)
    found, _ = verified(store.with_name("out"), hash_slots=16)
    assert Severity.ERROR not in {one.severity for one in found}


@pytest.mark.checks("RMQDISK-44")
@pytest.mark.parametrize("parts", ["index consumequeue", "index", "consumequeue"])
def test_a_shorter_log_of_another_store(parts: str, tmp_path: Path) -> None:
    """`verify` told an unknown number of lost messages, and `salvage` not why they are lost."""
    store = long_store(tmp_path / "store", COUNT)
    other = long_store(tmp_path / "other", 12, "Other", 53)
    shutil.rmtree(store / "commitlog")
    shutil.copytree(other / "commitlog", store / "commitlog")
    keep(store, parts)
    told, _ = saved(store)
    assert "this log is not that of index and queues" in told.left_out[0]
    assert agreed(store, told).lost_at_least > 0


def test_the_report_says_where_they_stay(tmp_path: Path, capsys: Capsys) -> None:
    """A line for people, a field for programs, and exit code 1."""
    store = long_store(tmp_path / "store", COUNT)
    other = long_store(tmp_path / "other", COUNT, "Other", 53)
    shutil.copyfile(logs(other)[0], logs(store)[1])
    out = shown(capsys, "salvage", store, "--out", tmp_path / "out", code=1)
    assert "messages of another store: they are not in the new one" in out
    assert f"left out: {logs(store)[1]}" in out
