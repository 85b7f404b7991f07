# SPDX-License-Identifier: Apache-2.0
"""The demo: what it says when all is well, when something is missing, when something is wrong."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segproof.findings import Finding
from segproof_harness import cli
from segproof_harness.conformance import demo
from segproof_harness.files import shipped_directories
from segproof_harness.files.shipped_directories import scenarios, stores
from segproof_harness.laws.broken_files import EXAMPLES, finding_of
from segproof_tests.printed_rows import Capsys


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the demo take one directory and few histories, on a machine without Java."""
    one = [each for each in scenarios() if each.name == "compacted"]
    store = [each for each in stores() if each.parent.name == "small-5.5.1"]
    for module in (demo, shipped_directories):
        monkeypatch.setattr(module, "scenarios", lambda: one)
        monkeypatch.setattr(module, "stores", lambda: store)
    monkeypatch.setattr(demo, "HISTORIES", 3)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)


def rows(capsys: Capsys, code: int) -> list[dict[str, Any]]:
    """Run the demo and return its closing table."""
    assert code == cli.run(["demo", "--format", "jsonl"])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_what_needs_java_reads_not_run_without_it(capsys: Capsys) -> None:
    """What is missing is said with the remedy, and is no pass; all the rest passes."""
    assert 0 == cli.run(["demo", "--format", "jsonl"])
    shown = capsys.readouterr()
    *table, kafka, rocketmq, spark = map(json.loads, shown.out.splitlines())
    for row, what in ((kafka, "oracle"), (rocketmq, "oracle"), (spark, "Spark")):
        assert "not run" == row["verdict"]
        assert f"{what}: not run: " in row["figures"]
        assert "install" in row["figures"]
        assert f"not run: {row['what']}: {row['figures']}" in shown.err.splitlines()[-3:]
    assert {"passed"} == {row["verdict"] for row in table}
    assert len(table) >= 8


def test_without_a_package_for_spark(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    """Where nothing stands on top of the harness, what is left out is said too."""
    monkeypatch.setattr(demo, "ENTRY_POINTS", "segproof.no-such-group")
    *_, last = rows(capsys, 0)
    assert ("verify and replay on Spark", "not run") == (last["what"], last["verdict"])


def test_a_finding_fails_the_demo(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    """Damaged files make the row FAILED, the exit code 1, and the finding is shown."""
    found = finding_of("BATCH-2", EXAMPLES["BATCH-2"])
    assert found is not None

    def verify(*_: object, **__: object) -> Iterator[Finding]:
        return iter([found])

    monkeypatch.setattr("segproof.verification.verify", verify)
    assert 1 == cli.run(["demo"])
    shown = capsys.readouterr()
    assert "verify real files              FAILED" in shown.out
    assert "verify RocketMQ stores         FAILED" in shown.out
    assert "BATCH-2" in shown.err


def test_an_answer_that_differs_fails_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """One answer of a store that is not the recorded one makes its row FAILED, and is shown."""
    monkeypatch.setattr(
        "segproof.rocketmq.store_checkpoint.StoreCheckpoint.min_timestamp", property(lambda _: 7)
    )
    assert 1 == cli.run(["demo"])
    shown = capsys.readouterr()
    assert "answers of RocketMQ            FAILED" in shown.out
    assert "small-5.5.1: checkpoint minTimestamp: expected" in shown.err


def test_copy_to(tmp_path: Path, capsys: Capsys) -> None:
    """The files are copied into a new directory only."""
    target = tmp_path / "dumps"
    assert 0 == cli.run(["demo", "--copy-to", str(target)])
    assert {"compacted-0", "rocketmq"} == {each.name for each in target.iterdir()}
    assert (target / "rocketmq" / "small-5.5.1" / "checkpoint").stat().st_size == 4096
    assert 2 == cli.run(["demo", "--copy-to", str(target)])
    assert "already exists" in capsys.readouterr().err


def test_copy_to_where_nothing_can_be(capsys: Capsys) -> None:
    """A path that the system refuses to look at is usage; it was called an internal error."""
    assert 2 == cli.run(["demo", "--copy-to", "d" * 300])
    assert "name too long" in capsys.readouterr().err
