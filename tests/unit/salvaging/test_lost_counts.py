# SPDX-License-Identifier: Apache-2.0
"""How many messages are lost: exact, or at least so many, in `verify` and in `salvage`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from segproof.files import REAL_FILES
from segproof.reading.log_gaps import Gap, GapKind
from segproof.reading.queue_units import LostMessages, messages_in
from segproof.repair import salvage_store
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.message import Message
from segproof_harness.cli import run
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.memory_stores import log_images, message_of
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.reported_findings import verified

SLOTS, ENTRIES = 8, 100
PREPARED, ROLLED_BACK = 4, 12


def made_store(folder: Path, flags: list[int], *, with_keys: bool) -> tuple[Path, list[int]]:
    """Write a store with queues and an index; return it, and where its messages lie."""
    drafts: list[Message] = []
    number = 0
    for flag in flags:
        keys = {"KEYS": f"k{len(drafts)}"} if with_keys else {"A": f"{len(drafts):03}"}
        draft = message_of("T", keys, body=b"b" * 20, queue_offset=number)
        drafts.append(replace(draft, queue_id=0, sys_flag=flag))
        number += flag not in (PREPARED, ROLLED_BACK)
    (image,) = log_images(drafts, 8000).values()
    write_file(REAL_FILES, str(folder / "log" / "commitlog" / ("0" * 20)), image)
    # A salvage of a sound log makes its queues and its index.
    salvage_store(folder / "log", folder / "store", hash_slot_num=SLOTS, index_num=ENTRIES)
    places = [at for at, one in CommitLog.open(folder / "store").scan() if one.message is not None]
    return folder / "store", places


def break_between(store: Path, start: int, end: int) -> None:
    """Overwrite a part of the log."""
    path = store / "commitlog" / ("0" * 20)
    put_bytes(path, start, b"\xee" * (end - start))


@pytest.mark.checks("RMQDISK-24")
@pytest.mark.parametrize(
    ("flags", "with_keys", "known", "is_exact"),
    [
        ([0, 0, 0], True, 3, True), ([0, 0, 0], False, 3, True),
        ([0, PREPARED, 0], True, 3, True), ([0, PREPARED, 0], False, 2, False),
        ([PREPARED], True, 1, True), ([PREPARED], False, 0, False),
        ([0, ROLLED_BACK, 8], True, 2, False), ([0, 8, 8], False, 3, True),
        ([PREPARED, PREPARED, 0], True, 3, True), ([ROLLED_BACK] * 3, True, 0, False),
        ([PREPARED, ROLLED_BACK, 0], True, 2, False),
    ],
)  # fmt: skip
def test_lost_messages_are_exact_or_at_least(
    flags: list[int], with_keys: bool, known: int, is_exact: bool, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """ "Lost: 15 messages" was said where 17 were: no queue has a unit of prepared messages. The
    index has those with keys. Where bytes are left that no unit takes, it is "at least"."""
    store, places = made_store(tmp_path, [0, 0, *flags, 0, 0], with_keys=with_keys)
    break_between(store, places[2], places[2 + len(flags)])
    _, summaries = verified(store)
    assert (known if is_exact else None, known) == (
        summaries[0].lost_offsets, summaries[0].lost_at_least,
    )  # fmt: skip
    words = ["--format", "jsonl"]
    assert 1 == run(["salvage", str(store), "--out", str(tmp_path / "json"), *words])
    row, gap = map(json.loads, capsys.readouterr().out.splitlines())
    assert (known, is_exact) == (row["lost_messages"], row["is_lost_exact"])
    assert (known, is_exact) == (gap["messages"], gap["is_exact"])
    assert 1 == run(["salvage", str(store), "--out", str(tmp_path / "text")])
    assert 1 == run(["verify", str(store)])
    shown = " ".join(capsys.readouterr().out.split())
    count = f"{known} message{'s' * (known != 1)}"
    told = count if is_exact else f"at least {count}" if known else "an unknown number of messages"
    assert f"lost: {told}, as queues and index tell" in shown
    assert f"; {told} lost" in shown
    assert f"bytes in 1 place are lost, with {told}" in shown


def test_each_offset_counts_once(tmp_path: Path) -> None:
    """A message has a unit and several entries; a gap that begins inside of one has room."""
    store, places = made_store(tmp_path, [0] * 6, with_keys=True)
    path = str(store / "commitlog" / ("0" * 20))

    def lost(start: int, end: int) -> LostMessages:
        found = messages_in(str(store), [Gap(GapKind.BROKEN, path, start, end)], REAL_FILES)
        assert found is not None
        return found[0]

    assert LostMessages(2, True) == lost(places[1], places[3])
    assert LostMessages(2, True) == lost(places[1] - 90, places[3] + 0)
    assert LostMessages(2, False) == lost(places[1] - 91, places[3])
    assert LostMessages(0, True) == lost(places[1] + 1, places[1] + 91)
    assert LostMessages(0, False) == lost(places[1] + 1, places[1] + 92)
    assert LostMessages(1, True) == lost(places[1], places[1] + 1)
