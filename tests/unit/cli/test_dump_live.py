# SPDX-License-Identifier: Apache-2.0
"""`dump` beside a writer that removes or cuts what is being read: that is no damage."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from segproof.reading.batch_rows import Row
from segproof.reading.file_names import SegmentFile
from segproof.reading.store_paths import Place, PlaceKind
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, stores
from segproof_harness.reading import segment_file_rows, store_file_rows
from segproof_tests.partition_files import copied_partition

PLAIN = KAFKA / "plain" / "plain-0"


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, path: Path, behind: int, happens: Callable[[], None]
) -> None:
    """Let something happen behind so many rows of a file; -1: behind the last one."""
    right = segment_file_rows.rows_of

    def changed(file: SegmentFile, *options: Any) -> Iterator[Row]:
        number = 0
        for number, row in enumerate(right(file, *options)):
            if file.path == str(path) and number == behind:
                happens()
            yield row
        if file.path == str(path) and behind < 0:
            happens()

    monkeypatch.setattr(segment_file_rows, "rows_of", changed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of a partition."""
    return copied_partition("plain", tmp_path)


@pytest.mark.parametrize("when", ["before it", "behind its rows"])
def test_file_removed_meanwhile(
    folder: Path, when: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rest of a directory is dumped, and the exit code is 0; it was 1, or 2 and no rest."""
    first, second = sorted(folder.glob("*.log"))[:2]
    if when == "before it":
        before = sorted(folder.glob(f"{first.stem}.*"), key=lambda one: one.suffix)[0]
        meanwhile(monkeypatch, before, -1, second.unlink)
    else:
        meanwhile(monkeypatch, second, -1, second.unlink)
    assert 0 == cli.run(["dump", str(folder), "--format", "jsonl"])
    shown = capsys.readouterr()
    assert f"{second}: it was removed while the directory was read" in shown.err
    assert max(folder.glob("*.index")).name in shown.out


def test_file_of_a_store_removed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker removes old files of a store too; it was exit code 1."""
    store = shutil.copytree(next(iter(stores())), tmp_path / "store")
    found = store_file_rows.files_of(Place(PlaceKind.STORE, str(store)))
    last = Path(found[-1].path)

    def files_of(place: Place) -> list[Place]:
        last.unlink()
        return found

    monkeypatch.setattr(store_file_rows, "files_of", files_of)
    assert 0 == cli.run(["dump", str(store)])
    assert f"{last}: it was removed while the directory was read" in capsys.readouterr().err


@pytest.mark.parametrize("behind", [0, -1])
def test_log_cut_meanwhile(
    folder: Path,
    behind: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A truncation ends the rows of a log, but for those that were read before, and is told."""
    log = max(folder.glob("*.log"))
    assert 0 == cli.run(["dump", str(log), "--format", "jsonl"])
    before = capsys.readouterr().out
    first_size = int.from_bytes(log.read_bytes()[8:12], "big") + 12
    meanwhile(monkeypatch, log, behind, lambda: os.truncate(log, first_size))
    assert 0 == cli.run(["dump", str(log), "--format", "jsonl"])
    shown = capsys.readouterr()
    assert before == shown.out
    assert ("it was cut while it was read" in shown.err) == (behind == 0)
