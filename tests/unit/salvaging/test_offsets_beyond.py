# SPDX-License-Identifier: Apache-2.0
"""Offsets of consumers that lie beyond the end of their queue in a saved store."""

import json
import shutil
from pathlib import Path

import pytest

from segproof.findings import Finding
from segproof.reading.config_offsets import WRITE_OFFSET
from segproof.repair import salvage_store
from segproof.salvaging.store_salvage import SalvagedStore
from segproof.verification import verify
from segproof_harness.cli import run
from segproof_tests.store_files import long_store, write_config

ROOT = Path(__file__).resolve().parents[3]
COUNT = 24
"""Messages of the store, in three queues: each queue ends at 8."""
NAME = "consumerOffset.json"


def lose_end(store: Path) -> None:
    """Remove the last file of the log: queues and index still lead to it."""
    max((store / "commitlog").iterdir()).unlink()


def beyond(told: SalvagedStore) -> list[tuple[int, int, int]]:
    """Return queue, offset, and end of each offset that is told."""
    return [(one.queue_id, one.offset, one.end) for one in told.offsets_beyond]


def of_offsets(store: Path) -> list[Finding]:
    """Return what `verify` tells of offsets."""
    return [one for one in verify(store) if one.law == "RMQDISK-54"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a sound store with three queues of 8 messages."""
    return long_store(tmp_path / "store", COUNT)


@pytest.mark.checks("RMQDISK-54")
def test_a_queue_that_ends_earlier_is_told(store: Path, tmp_path: Path) -> None:
    """The old queues still led to 8, so `verify` had no word; the new ones end before that."""
    text = '{"offsetTable":{"T@g":{0:8,1:8,2:1}}}'
    write_config(store, text)
    write_config(store, text, f"{NAME}.bak")
    lose_end(store)
    assert [] == of_offsets(store)
    told = salvage_store(store, tmp_path / "out")
    assert told.gap_count
    assert [0, 1] * 2 == [queue for queue, _, _ in beyond(told)]
    assert {NAME, f"{NAME}.bak"} == {one.file for one in told.offsets_beyond}
    for one in told.offsets_beyond:
        assert (one.topic, one.group, one.offset) == ("T", "g", 8)
        assert one.end < 8
        assert text[one.position] == "8"
    assert text == (tmp_path / "out" / "config" / NAME).read_text()
    assert [(one.position, one.expected) for one in of_offsets(tmp_path / "out")] == [
        (one.position, f"at most {one.end}") for one in told.offsets_beyond[:2]
    ]


@pytest.mark.checks("RMQDISK-54")
def test_what_the_report_says_makes_the_result_sound(store: Path, tmp_path: Path) -> None:
    """The group had read all: the person writes the end of the queue in place of the offset."""
    write_config(store, '{"offsetTable":{"T@g":{0:8,1:8,2:1}}}')
    lose_end(store)
    told = salvage_store(store, tmp_path / "out")
    path = tmp_path / "out" / "config" / NAME
    data = bytearray(path.read_bytes())
    for one in told.offsets_beyond:
        data[one.position : one.position + len(str(one.offset))] = str(one.end).encode()
    path.write_bytes(data)
    assert [] == [one for one in verify(tmp_path / "out", deep=True) if one.is_defect]


@pytest.mark.checks("RMQDISK-54")
def test_no_offset_is_ordered_without_a_condition(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The backup was of another store, and the cut file beside it had the right offset: 5 messages
    would have been passed over. Hint, report and both pages have one text.
    """
    write_config(store, '{"offsetTable":{"T@g":{0:3,1:1')
    write_config(store, '{"offsetTable":{"T@g":{0:999999,1:1}}}', f"{NAME}.bak")
    (told,) = of_offsets(store)
    assert 1 == run(["salvage", str(store), "--out", str(tmp_path / "out")])
    report = " ".join(capsys.readouterr().out.split())
    assert str(tmp_path / "out" / "config" / f"{NAME}.broken") in report
    pages = (ROOT / "docs" / "howto").glob("*.md")
    texts = {one.name: " ".join(one.read_text("utf-8").split()) for one in pages}
    for text in (
        told.hint, report,
        texts["save-a-damaged-store.md"], texts["bring-back-a-whole-directory.md"],
    ):  # fmt: skip
        assert WRITE_OFFSET.beside_copy in text
        assert text.count("the end of the queue in place") == 1


@pytest.mark.checks("RMQDISK-54")
def test_an_offset_that_was_beyond_before_is_told_too(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No message is lost, and the result fails the `verify` that the report tells to run: it said
    that everything was kept, with exit code 0."""
    write_config(store, '{"offsetTable":{"T@g":{0:8,1:11,"2":"12"}}}')
    told = salvage_store(store, tmp_path / "out")
    assert [(1, 11, 8), (2, 12, 8)] == beyond(told)
    assert told.has_every_message
    assert not told.is_whole
    assert 2 == len(of_offsets(tmp_path / "out"))
    assert 1 == run(["salvage", str(store), "--out", str(tmp_path / "two")])
    printed = capsys.readouterr()
    words = " ".join((printed.out + printed.err).split())
    for part in (
        "every message kept",
        "group g has consumed queue 1 of T up to offset 11",
        "ends at 8",
        "2 consumer offsets beyond the new queues",
        "Before a broker starts",
    ):
        assert part in words, part
    again = ["salvage", str(store), "--out", str(tmp_path / "three"), "--format", "jsonl"]
    assert 1 == run(again)
    (row,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert [(11, 8), (12, 8)] == [(one["offset"], one["end"]) for one in row["offsets_beyond"]]


@pytest.mark.checks("RMQDISK-54")
def test_offsets_inside_their_queues_are_kept_without_a_word(store: Path, tmp_path: Path) -> None:
    """So the result is whole."""
    write_config(store, '{"offsetTable":{"T@g":{0:8,1:0,2:-1},"Gone@g":{0:50}}}')
    told = salvage_store(store, tmp_path / "out")
    assert [] == told.offsets_beyond
    assert told.is_whole
    assert [] == [one for one in verify(tmp_path / "out", deep=True) if one.is_defect]


@pytest.mark.checks("RMQDISK-54")
def test_a_queue_that_lost_all_is_told(store: Path, tmp_path: Path) -> None:
    """The new store has no such queue, so `verify` of it has nothing to compare the offset with."""
    other = long_store(tmp_path / "other", 3, topic="Other")
    shutil.copytree(other / "consumequeue" / "Other", store / "consumequeue" / "Other")
    write_config(store, '{"offsetTable":{"Other@g":{1:1}}}')
    told = salvage_store(store, tmp_path / "out")
    assert [] == of_offsets(tmp_path / "out")
    assert [(1, 1, 0)] == beyond(told)


@pytest.mark.checks("RMQDISK-54")
def test_a_queue_of_which_nothing_is_left_is_told(store: Path, tmp_path: Path) -> None:
    """The log is damaged, and the queues are gone: all messages of this one may be lost."""
    write_config(store, '{"offsetTable":{"Other@g":{1:1}}}')
    shutil.rmtree(store / "consumequeue")
    assert [] == beyond(salvage_store(store, tmp_path / "out"))
    path = min((store / "commitlog").iterdir())
    path.write_bytes(bytes(300) + path.read_bytes()[300:])
    told = salvage_store(store, tmp_path / "two")
    assert told.gap_count
    assert [(1, 1, 0)] == beyond(told)


@pytest.mark.checks("RMQDISK-54")
def test_offsets_of_delayed_messages(store: Path, tmp_path: Path) -> None:
    """Level 2 is queue 1 of the topic of delayed messages."""
    other = long_store(tmp_path / "delayed", COUNT, topic="SCHEDULE_TOPIC_XXXX")
    write_config(other, '{"offsetTable":{1:8,2:9}}', "delayOffset.json")
    told = salvage_store(other, tmp_path / "out")
    assert [(1, 9, 8)] == beyond(told)
    assert "level 2" in told.offsets_beyond[0].words
