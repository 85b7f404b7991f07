# SPDX-License-Identifier: Apache-2.0
"""Folders under the names of files of `config`, and what a broker reads in their place."""

from pathlib import Path

import pytest

from segproof.findings import Finding, Summary
from segproof.repair import salvage_store
from segproof.verification import verify
from segproof_tests.store_files import copied_store

TOPICS = '{"topicConfigTable":{"TopicTest":{"readQueueNums":4}}}'
STARTS_WITHOUT = "a broker starts without its topics"
READS_BACKUP = "a broker reads topics.json.bak in its place"
FAILS = "its start fails"
NO_WRITE = "it can't write its state"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a copy of a small store with a folder `config`."""
    made = copied_store(tmp_path)
    (made / "config").mkdir()
    return made


def put(store: Path, content: dict[str, str | None]) -> list[Finding]:
    """Make the files of `config`, a folder for each None; return the defects."""
    for name, text in content.items():
        path = store / "config" / name
        path.mkdir() if text is None else path.write_text(text)
    return [one for one in verify(store) if one.is_defect]


@pytest.mark.checks("DISK-1")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"topics.json": None}, {"topics.json": (STARTS_WITHOUT, NO_WRITE)}),
        (
            {"topics.json": None, "topics.json.bak": TOPICS},
            {"topics.json": (READS_BACKUP, NO_WRITE)},
        ),
        ({"topics.json": None, "topics.json.bak": "{"}, {"topics.json": (READS_BACKUP, FAILS)}),
        (
            {"topics.json": None, "topics.json.bak": None},
            {"topics.json": (FAILS,), "topics.json.bak": (FAILS,)},
        ),
        ({"topics.json": TOPICS, "topics.json.bak": None}, {"topics.json.bak": (NO_WRITE,)}),
        ({"topics.json": "", "topics.json.bak": None}, {"topics.json.bak": (FAILS,)}),
        ({"topics.json.bak": None}, {"topics.json.bak": (FAILS,)}),
        ({"consumerOffset.json": None}, {"consumerOffset.json": ("without consumer offsets",)}),
        ({"timermetrics": None}, {"timermetrics": ("counts of pending timers",)}),
        ({"broker.properties": None}, {"broker.properties": ("not a regular file",)}),
        ({"topics.json.tmp": None}, {"topics.json.tmp": ("not a regular file",)}),
    ],
)  # fmt: skip
def test_a_folder_in_the_place_of_a_file_is_told(
    content: dict[str, str | None], words: dict[str, tuple[str, ...]], store: Path, tmp_path: Path
) -> None:
    """Verify said "sound" of it; a salvage named the file alone."""
    found = {Path(one.path).name: one for one in put(store, content)}
    assert words.keys() == found.keys()
    for name, one in found.items():
        assert "DISK-1" == one.law
        assert [] == [each for each in words[name] if each not in one.message]
        assert one.hint.startswith("stop the broker and copy")
    told = salvage_store(store, tmp_path / "out")
    assert not told.is_whole
    reads = "a broker reads topics.json.bak on the new store"
    is_read = content == {"topics.json": None, "topics.json.bak": TOPICS}
    assert is_read is any(reads in one for one in told.config_lacks)
    for name in words:
        (store / "config" / name).rename(tmp_path / name)
        if content != {"topics.json": None, "topics.json.bak": TOPICS} and name == "topics.json":
            (store / "config" / name).write_text(TOPICS)
    assert [] == [one for one in verify(store) if one.law == "DISK-1"]


def test_a_file_that_is_too_large_is_not_looked_into(store: Path) -> None:
    """Verify said "sound" of it too."""
    with (store / "config" / "topics.json").open("wb") as file:
        file.truncate((64 << 20) + 1)
    summaries: list[Summary] = []
    (only,) = [one for one in verify(store, on_summary=summaries.append) if "config" in one.path]
    assert "RMQDISK-41" == only.law
    assert 1 == summaries[-1].not_looked_into


@pytest.mark.parametrize("name", ["config", "timerlog"])
def test_a_file_in_the_place_of_a_folder_is_left_out(
    name: str, store: Path, tmp_path: Path
) -> None:
    """A salvage said that everything was kept."""
    (store / "config").rmdir()
    (store / name).write_bytes(b"x")
    assert ["DISK-1"] == [one.law for one in verify(store) if one.is_defect]
    told = salvage_store(store, tmp_path / "out")
    assert [f"{store / name}: it was not copied: it is no folder"] == [*told.left_out]


def test_a_sound_config_stays_silent(store: Path, tmp_path: Path) -> None:
    """A file, its backup, and a state that was being written."""
    files = {"topics.json": TOPICS, "topics.json.bak": TOPICS, "topics.json.tmp": "{}"}
    assert [] == put(store, {**files, "broker.properties": "a=b\n"})
    assert salvage_store(store, tmp_path / "out").is_whole
