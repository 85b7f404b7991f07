# SPDX-License-Identifier: Apache-2.0
"""What the text of `verify` says to do about a store whose log is sound."""

import os
import shutil
from pathlib import Path

import pytest

from segproof.findings import Severity
from segproof.verification import verify
from segproof_harness.cli import run
from segproof_tests.store_files import copied_store, long_store


@pytest.mark.checks("RMQDISK-2", "RMQDISK-18")
def test_a_cut_queue_saves_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A full disk cut a queue and an index file: "save the log first" was said of a sound log, and
    the number of slots was asked of a file that lacks a part.
    """
    store = copied_store(tmp_path, "rolled-4.9.8")
    queue = min((store / "consumequeue/TopicA/0").iterdir())
    os.truncate(queue, queue.stat().st_size - 8)
    last = max((store / "index").iterdir())
    os.truncate(last, last.stat().st_size // 2)
    assert 1 == run(["verify", str(store)])
    written = " ".join(capsys.readouterr().out.split())
    assert "index damage only" in written
    assert "save the log first" not in written
    assert "else it lacks a part" in written


@pytest.mark.checks("RMQDISK-33")
@pytest.mark.parametrize("is_running", [False, True])
def test_the_hint_about_an_index_that_is_gone(is_running: bool, tmp_path: Path) -> None:
    """Beside `abort` the finding said that the broker makes the entries, and the hint that none
    does; without it the command made files for 20 million entries, and no word said where they go.
    """
    store = copied_store(tmp_path, "rolled-4.9.8")
    shutil.rmtree(store / "index")
    if is_running:
        shutil.rmtree(store / "consumequeue")
        (store / "checkpoint").write_bytes(bytes(4096))
        (store / "abort").touch()
    (told,) = (one for one in verify(store) if one.law == "RMQDISK-33")
    assert (Severity.NOTE if is_running else Severity.WARNING) is told.severity
    assert is_running is ("indexes them when it runs" in told.message)
    assert is_running is not ("no broker makes their entries" in told.hint)
    assert is_running is not ("--hash-slots and --index-num" in told.hint)
    assert is_running is not ("belong into the folder index" in told.hint)


@pytest.mark.checks("RMQDISK-42", "RMQDISK-23")
def test_commands_of_a_shell_are_whole_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a narrow terminal the commands to join a log were wrapped, and failed when pasted."""
    monkeypatch.setenv("COLUMNS", "80")
    store = long_store(tmp_path / "store", 90)
    log_files = sorted((store / "commitlog").iterdir())
    other = tmp_path / "moved-away-by-hand-to-another-disk"
    other.mkdir()
    shutil.move(log_files[1], other)
    assert 1 == run(["verify", str(store), "--fail-on", "not-checked"])
    written = capsys.readouterr().out
    lines = [line.strip() for line in written.splitlines()]
    (made,) = (one for one in lines if one.startswith("install -d "))
    new = made.removeprefix("install -d ")
    assert f"ln -s {other}/0{'?' * 19} {new}/" in lines
    assert "somebody moved files out of it" in " ".join(written.split())
    for path in log_files[:1] + log_files[2:]:
        shutil.move(path, store)
    shutil.move(other / log_files[1].name, store)
    assert 1 == run(["verify", str(store)])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert f"install -d {store}/commitlog && mv -n {store}/0{'?' * 19} {store}/commitlog/" in lines
