# SPDX-License-Identifier: Apache-2.0
"""A store that has lost its log, or all that queues and checkpoint knew, is not sound."""

import shutil
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.repair import rebuild_index, salvage_store
from segproof_harness.laws.judged_store import store_disagreements
from segproof_tests.reported_findings import verified
from segproof_tests.store_files import long_store

COUNT = 90


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a sound store with three queues of one topic."""
    return long_store(tmp_path / "store", COUNT)


def agreed(store: Path) -> tuple[Summary, list[Finding]]:
    """Return the verdict and the findings; the model agrees with them."""
    found, summaries = verified(store)
    assert [] == list(store_disagreements(store))
    return summaries[-1], found


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize("rest", ["all", "queues", "index", "checkpoint"])
@pytest.mark.parametrize("keeps_folder", [False, True])
def test_a_store_without_its_log_is_unreadable(
    keeps_folder: bool, rest: str, is_running: bool, store: Path
) -> None:
    """A store without the folder of its log was sound, and one with an empty folder unreadable."""
    shutil.rmtree(store / "commitlog")
    if keeps_folder:
        (store / "commitlog").mkdir()
    if is_running:
        (store / "abort").touch()
    if rest in ("queues", "checkpoint"):
        shutil.rmtree(store / "index")
    if rest in ("index", "checkpoint"):
        shutil.rmtree(store / "consumequeue")
        (store / "consumequeue").mkdir()
    summary, found = agreed(store)
    assert (Verdict.UNREADABLE, None) == (summary.verdict, summary.lost_offsets)
    (told,) = (one for one in found if one.law == "RMQDISK-23")
    assert Severity.ERROR is told.severity
    assert "begins a new log" in told.message
    assert "keep the store as it is" in (told.hint or "")


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize("keeps_folder", [False, True])
def test_log_files_in_the_store_itself_are_named(
    keeps_folder: bool, store: Path, tmp_path: Path
) -> None:
    """Files of the log that were unpacked one folder too high were "not looked into"."""
    for path in (store / "commitlog").iterdir():
        path.rename(store / path.name)
    if not keeps_folder:
        (store / "commitlog").rmdir()
    summary, found = agreed(store)
    assert Verdict.UNREADABLE is summary.verdict
    (told,) = (one for one in found if one.law == "RMQDISK-23")
    assert "lie in the store itself" in told.message
    assert f"mv -n {store}/0{'?' * 19} {store}/commitlog/" in (told.hint or "")
    with pytest.raises(InvalidArgumentError, match="in the store itself"):
        salvage_store(store, tmp_path / "saved")
    with pytest.raises(InvalidArgumentError, match="in the store itself"):
        rebuild_index(store, tmp_path / "rebuilt", 16, 64)


@pytest.mark.checks("RMQDISK-42")
def test_one_log_file_in_the_store_itself_is_part_of_the_log(store: Path) -> None:
    """Of a log with one of its files in the store itself, what is missing is not lost."""
    names = sorted(path.name for path in (store / "commitlog").iterdir())
    (store / "commitlog" / names[1]).rename(store / names[1])
    (told,), summaries = verified(store)
    assert ("RMQDISK-42", Verdict.NOT_CHECKED) == (told.law, summaries[-1].verdict)


@pytest.mark.checks("RMQDISK-37", "RMQDISK-20")
def test_a_killed_store_without_queues_is_not_sound(store: Path) -> None:
    """A power loss took queues, index and the times of the checkpoint; nothing was said of it."""
    shutil.rmtree(store / "consumequeue")
    shutil.rmtree(store / "index")
    (store / "checkpoint").write_bytes(bytes(4096))
    (store / "abort").touch()
    summary, found = agreed(store)
    assert Verdict.READABLE_WITH_DEFECTS is summary.verdict
    told = {one.law: one.message for one in found}
    assert "90 messages are in the commit log, and no queue" in told["RMQDISK-37"]
    assert "all its times are 0" in told["RMQDISK-20"]


@pytest.mark.checks("RMQDISK-37")
@pytest.mark.parametrize("count", [64, 65])
def test_a_new_broker_may_be_about_to_make_its_queues(count: int, tmp_path: Path) -> None:
    """Beside `abort` the first 64 messages of a store may wait for their queues."""
    store = long_store(tmp_path / "store", count)
    shutil.rmtree(store / "consumequeue")
    shutil.rmtree(store / "index")
    (store / "checkpoint").write_bytes(bytes(4096))
    (store / "abort").touch()
    _, found = agreed(store)
    assert (count > 64) is any(one.law == "RMQDISK-37" for one in found)


@pytest.mark.checks("RMQDISK-37")
@pytest.mark.parametrize(
    ("name", "text", "severity"),
    [
        ("topics.json", '{"topicConfigTable":{"T":{"topicName":"T"}}}', Severity.WARNING),
        ("topics.json.bak", '{"topicConfigTable":{"T":{"topicName":"T"}}}', Severity.WARNING),
        ("topics.json", '{"topicConfigTable":{"U":{"topicName":"U"}}}', Severity.NOTE),
        ("consumerOffset.json", '{"offsetTable":{"T@g":{0:1}}}', Severity.WARNING),
        ("consumerOffset.json", '{"offsetTable":{"U@g":{0:1}}}', Severity.NOTE),
        ("subscriptionGroup.json", "{}", Severity.NOTE),
    ],
)
def test_a_known_topic_without_queues_is_told(
    name: str, text: str, severity: Severity, store: Path
) -> None:
    """A topic that `config` knows was not deleted: its messages can't be consumed."""
    (store / "config").mkdir()
    (store / "config" / name).write_text(text)
    (store / "consumequeue/T").rename(store / "other")
    for number in range(3):
        queue = store / "consumequeue/U" / str(number)
        queue.mkdir(parents=True)
        (queue / ("0" * 20)).write_bytes(bytes(160))
    shutil.rmtree(store / "other")
    _, found = agreed(store)
    (told,) = (one for one in found if one.law == "RMQDISK-37")
    assert (severity, "such as T" in told.message) == (told.severity, True)


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize("sibling", ["", "abort", "consumequeue", "config"])
def test_an_index_that_is_alone_is_only_noted(sibling: str, store: Path) -> None:
    """An index that somebody copied with its checkpoint is no store that has lost its log."""
    shutil.rmtree(store / "commitlog")
    shutil.rmtree(store / "consumequeue")
    if sibling == "abort":
        (store / sibling).touch()
    elif sibling:
        (store / sibling).mkdir()
    _, found = agreed(store)
    (told,) = (one for one in found if one.law == "RMQDISK-23")
    assert (Severity.ERROR if sibling else Severity.NOTE) is told.severity
