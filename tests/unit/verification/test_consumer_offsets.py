# SPDX-License-Identifier: Apache-2.0
"""Offsets in `config` that lie beyond the end of their queue."""

import shutil
from pathlib import Path

import pytest

from segproof.findings import Finding, Severity, Verdict
from segproof.verification import verify
from segproof_harness.files.shipped_directories import ROCKETMQ
from segproof_harness.laws.judged_store import store_disagreements
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.reported_findings import verified
from segproof_tests.store_files import long_store, write_config

COUNT = 24
"""Messages of the store, in three queues: each queue ends at 8."""
NAME = "consumerOffset.json"


def told(store: Path) -> list[Finding]:
    """Return the findings of offsets; the model says the same of the store."""
    found = [one for one in verify(store) if one.law == "RMQDISK-54"]
    assert [] == [one for one in store_disagreements(store) if one.law == "RMQDISK-54"]
    return found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a sound store with three queues of 8 messages."""
    return long_store(tmp_path / "store", COUNT)


@pytest.mark.checks("RMQDISK-54")
def test_an_offset_beyond_its_queue_is_told(store: Path) -> None:
    """A group at 999999 of a queue that ends at 8 was no finding."""
    text = '{"offsetTable":{"T@g":{0:8,1:999999},"T@h":{"2":"9"}}}'
    write_config(store, text)
    first, second = told(store)
    assert (Severity.WARNING, str(store / "config" / NAME)) == (first.severity, first.path)
    assert (text.index("999999"), "at most 8", "999999") == (
        first.position, first.expected, first.actual,
    )  # fmt: skip
    for part in ("group g", "queue 1 of T", "999999", "ends at 8"):
        assert part in first.message
    assert (text.index('"9"'), "9") == (second.position, second.actual)
    assert first.hint.startswith("decide by")
    _, summaries = verified(store)
    assert Verdict.READABLE_WITH_DEFECTS is summaries[-1].verdict


@pytest.mark.checks("RMQDISK-54")
def test_the_end_of_a_queue_is_lawful(store: Path) -> None:
    """A group that has consumed everything stands at the end; -1 says that it has not begun."""
    write_config(store, '{"offsetTable":{"T@g":{0:8,1:0,2:-1}},"dataVersion":{"counter":99}}')
    assert [] == told(store)
    write_config(store, '{"offsetTable":{"T@g":{0:9}}}')
    assert 1 == len(told(store))


@pytest.mark.checks("RMQDISK-54")
@pytest.mark.parametrize(
    "text",
    [
        '{"offsetTable":{"Gone@g":{0:50}}}',
        '{"offsetTable":{"T":{0:50},"@":{0:50},"T@g":{"x":50,0:"many",1:null,2:1.5}}}',
        '{"pullOffsetTable":{"T@g":{0:50}},"offsetTable":{"T@g":{}}}',
        '{"offsetTable":{"T@g":[50]}}', '{"offsetTable":null}', "null", "{}",
    ],
)  # fmt: skip
def test_what_no_queue_here_can_judge_is_not_judged(text: str, store: Path) -> None:
    """A deleted topic keeps its offsets; what is no offset is left alone."""
    write_config(store, text)
    assert [] == told(store)


@pytest.mark.checks("RMQDISK-54")
def test_a_static_topic_is_not_judged(store: Path) -> None:
    """The offsets of its logical queues are counted over several brokers."""
    write_config(store, '{"offsetTable":{"T@g":{0:50}}}')
    write_config(store, '{"topicQueueMappingTable":{"T":{"epoch":1}}}', "topicQueueMapping.json")
    assert [] == told(store)


@pytest.mark.checks("RMQDISK-54")
def test_queues_that_lag_are_no_proof(store: Path) -> None:
    """A broker makes units again of the messages in the log: the later end counts."""
    write_config(store, '{"offsetTable":{"T@g":{0:8,1:8,2:8}}}')
    (path,) = (store / "consumequeue" / "T" / "1").iterdir()
    put_bytes(path, 20 * 5, bytes(path.stat().st_size - 20 * 5))
    assert [] == told(store)
    shutil.rmtree(store / "consumequeue")
    assert [] == told(store)
    write_config(store, '{"offsetTable":{"T@g":{0:8,1:8,2:11}}}')
    assert ["11"] == [one.actual for one in told(store)]


@pytest.mark.checks("RMQDISK-54")
def test_only_the_offsets_know_of_the_lost_end(store: Path) -> None:
    """The last file of the log is gone, the queues were made again of what is left."""
    write_config(store, '{"offsetTable":{"T@g":{0:8,1:8,2:8}}}')
    max((store / "commitlog").iterdir()).unlink()
    for name in ("consumequeue", "index", "checkpoint"):
        path = store / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    found = told(store)
    assert found
    assert {"8"} == {one.actual for one in found}


@pytest.mark.checks("RMQDISK-54")
def test_an_empty_queue_lost_all(store: Path) -> None:
    """A queue whose folder is there, and that has no unit and no message, ends at 0."""
    path = store / "consumequeue" / "T" / "7" / f"{0:020d}"
    path.parent.mkdir()
    path.write_bytes(bytes(min((store / "consumequeue" / "T" / "0").iterdir()).stat().st_size))
    write_config(store, '{"offsetTable":{"T@g":{7:3}}}')
    (one,) = told(store)
    assert one.expected == "at most 0"
    assert "the queue is empty: its next message gets offset 0" in one.message
    for cause in ("copied beside a running broker", "cleanExpiredCQ"):
        assert cause in one.hint


@pytest.mark.checks("RMQDISK-54")
def test_the_backup_is_judged_too(store: Path) -> None:
    """A broker goes on with it where it can't read the file; what both say is told once."""
    write_config(store, '{"offsetTable":{"T@g":{0:11,1:1')
    write_config(store, '{"offsetTable":{"T@g":{0:999999,1:8}}}', f"{NAME}.bak")
    (one,) = told(store)
    assert one.path.endswith(f"{NAME}.bak")
    write_config(store, '{"offsetTable":{"T@g":{0:1000000,1:8}}}')
    (one,) = told(store)
    assert one.path.endswith(NAME)


@pytest.mark.checks("RMQDISK-54")
def test_offsets_of_delayed_messages(store: Path, tmp_path: Path) -> None:
    """Level n is queue n - 1 of the topic of delayed messages."""
    other = long_store(tmp_path / "delayed", COUNT, topic="SCHEDULE_TOPIC_XXXX")
    write_config(other, '{"offsetTable":{1:8,3:9}}', "delayOffset.json")
    (one,) = told(other)
    assert "level 3" in one.message
    write_config(store, '{"offsetTable":{1:8,3:9}}', "delayOffset.json")
    assert [] == told(store)


@pytest.mark.checks("RMQDISK-54")
@pytest.mark.parametrize("name", ["small-4.7.0", "small-5.5.1"])
def test_the_ends_of_real_queues_are_lawful(name: str, tmp_path: Path) -> None:
    """A group that has consumed each queue to its end, and one that is a message further."""
    store = tmp_path / "store"
    shutil.copytree(ROCKETMQ / name / "store", store)
    for path in [store, *store.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    rows = []
    for queue in sorted(store.glob("consumequeue/*/*")):
        units = sum(
            any(data[at : at + 20])
            for data in (path.read_bytes() for path in queue.iterdir())
            for at in range(0, len(data), 20)
        )
        first = int(min(path.name for path in queue.iterdir())) // 20
        rows.append((queue.parent.name, queue.name, first + units))
    for further in (0, 1):
        groups = ",".join(f'"{topic}@g{q}":{{{q}:{end + further}}}' for topic, q, end in rows)
        write_config(store, f'{{"offsetTable":{{{groups}}}}}')
        assert further * len(rows) == len(told(store))
