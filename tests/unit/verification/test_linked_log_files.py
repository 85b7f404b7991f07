# SPDX-License-Identifier: Apache-2.0
"""Files of a commit log that were moved to another folder, and one of them linked back."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from segproof.findings import Verdict
from segproof.repair import salvage_store
from segproof.verification import verify
from segproof_tests.reported_findings import verified
from segproof_tests.store_files import long_store


def moved(top: Path, gone: list[int], linked: list[int]) -> tuple[Path, Path]:
    """Move files of a log, by number, to a folder, and link some back; return store and folder."""
    store, folder = long_store(top / "store", 40), top / "other"
    folder.mkdir()
    logs = sorted((store / "commitlog").iterdir())
    for number in gone:
        logs[number].rename(folder / logs[number].name)
    for number in linked:
        logs[number].symlink_to(folder / logs[number].name)
    return store, folder


@pytest.mark.checks("RMQDISK-41")
@pytest.mark.parametrize("linked", [1, 2])
def test_older_files_beside_a_linked_one_are_named(linked: int, tmp_path: Path) -> None:
    """The link hid that the folder has an earlier file of the log."""
    store, folder = moved(tmp_path, [0, 1, 2][: linked + 1], [1, 2][:linked])
    found, summaries = verified(store)
    (note,) = (one for one in found if one.law == "RMQDISK-41")
    assert (os.fspath(folder), "1") == (note.path, note.actual)
    assert (Verdict.SOUND, 1) == (summaries[0].verdict, summaries[0].not_looked_into)
    told = salvage_store(store, tmp_path / "out", hash_slot_num=16, index_num=64)
    assert any(os.fspath(folder) in one for one in told.left_out)


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize(("gone", "linked"), [([0, 1, 2], [1]), ([2, 3], [2]), ([1, 2, 3], [1, 3])])
def test_other_files_beside_a_linked_one_are_named(
    gone: list[int], linked: list[int], tmp_path: Path
) -> None:
    """The commands of the hint make one store of both folders, though both have a name."""
    store, folder = moved(tmp_path, gone, linked)
    (only,) = verify(store)
    assert only.law == "RMQDISK-42"
    assert os.fspath(folder) in only.message
    commands = [one for one in re.findall(r"`([^`]+)`", only.hint) if " " in one]
    steps = [one for one in commands if one.startswith(("install", "cp", "ln"))]
    assert steps
    subprocess.run(["bash", "-e", "-c", "\n".join(steps)], cwd=tmp_path, check=True)
    (new,) = (path.parent for path in (tmp_path / "joined").glob("*/commitlog"))
    assert not [one for one in verify(new) if one.is_defect]


def test_a_log_that_is_linked_whole_is_sound(tmp_path: Path) -> None:
    """Each file of the other folder is read by its link."""
    store, _ = moved(tmp_path, [0, 1, 2], [0, 1, 2])
    found = [one for one in verify(store) if one.is_defect or one.law == "RMQDISK-41"]
    assert not found
