# SPDX-License-Identifier: Apache-2.0
"""Files of a commit log in a folder inside of `commitlog`, packed, or under another name."""

import gzip
import subprocess
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.findings import Finding
from segproof.salvaging.store_salvage import salvage_store
from segproof.verification import verify
from segproof_harness.laws.judged_store import store_disagreements
from segproof_tests.store_files import LOG_BYTES, long_store

FIRST, MIDDLE, LAST = 0, LOG_BYTES, 3 * LOG_BYTES


def log_path(store: Path, start: int) -> Path:
    """Return the path of a file of the log."""
    return store / "commitlog" / f"{start:020d}"


def strays(store: Path) -> list[Finding]:
    """Return the findings about what does not belong into the folder of the log."""
    found = list(verify(store))
    assert [] == list(store_disagreements(store))
    return [one for one in found if one.law == "RMQDISK-39"]


def follow(finding: Finding) -> None:
    """Do what the hint says, without its copy of the store."""
    (step,) = [one for one in finding.hint.split("`") if "commitlog" in one]
    subprocess.run(["/bin/sh", "-c", step], check=True)


@pytest.mark.checks("RMQDISK-39")
@pytest.mark.parametrize("start", [FIRST, MIDDLE, LAST])
@pytest.mark.parametrize("name", ["d2/{}", "a/b/{}", "{}.gz", "d2/{}.gz", "{}.bak", "d2/moved"])
def test_a_file_of_the_log_that_lies_inside_is_put_back(
    name: str, start: int, tmp_path: Path
) -> None:
    """The hint was to move the only copy of the messages out of the store."""
    store = long_store(tmp_path / "store")
    file = log_path(store, start)
    data = file.read_bytes()
    new = store / "commitlog" / name.format(file.name)
    new.parent.mkdir(parents=True, exist_ok=True)
    file.rename(new)
    if name.endswith(".gz"):
        new.write_bytes(gzip.compress(data, 1))
    (only,) = strays(store)
    assert "out of the store" not in only.hint
    assert "the log has no file of its offset" in only.message
    assert file.name in only.message
    told = salvage_store(store, tmp_path / "out")
    assert not told.is_whole
    assert any("the log has no file of its offset" in one for one in told.left_out)
    follow(only)
    assert data == file.read_bytes()
    (only,) = [one for one in verify(store) if one.is_defect]
    assert "the log has a file of the same name" in only.message
    assert "out of the store" not in only.hint


def test_a_whole_log_that_lies_inside_is_named(tmp_path: Path) -> None:
    """The folder of the log was empty to verify, and to a salvage."""
    store = long_store(tmp_path / "store")
    (store / "log").mkdir()
    (store / "commitlog").rename(store / "log" / "old")
    (store / "log").rename(store / "commitlog")
    (only,) = strays(store)
    assert "4 files of a commit log are here" in only.message
    with pytest.raises(InvalidArgumentError, match="no commit log") as caught:
        salvage_store(store, tmp_path / "out")
    assert "RMQDISK-39" in str(caught.value.hint)


@pytest.mark.parametrize("content", [b"x", b"", bytes(2000)])
def test_what_is_no_file_of_a_log_may_be_moved_out(content: bytes, tmp_path: Path) -> None:
    """Notes, and what holds no message, are no files of the log."""
    store = long_store(tmp_path / "store")
    (store / "commitlog" / "notes").write_bytes(content)
    (only,) = strays(store)
    assert "out of the store" in only.hint
