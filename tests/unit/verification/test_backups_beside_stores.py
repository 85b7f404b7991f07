# SPDX-License-Identifier: Apache-2.0
"""A store which expired its first files, beside a folder with copies made before."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from segproof.findings import Finding, Summary, Verdict
from segproof.rebuilding.store_rebuild import rebuild_index
from segproof.salvaging.store_salvage import salvage_store
from segproof.verification import verify
from segproof_harness import cli
from segproof_tests.store_files import ENTRIES, LOG_BYTES, SLOTS, long_store


def backed_up(
    top: Path, copied: tuple[int, ...], expired: tuple[int, ...] = (0, 1), name: str = "backup"
) -> tuple[Path, Path]:
    """Copy files of a log, by number, beside its store, which then loses some; return both."""
    store, folder = top / "store", top / name
    if not store.exists():
        long_store(store, 40)
    folder.mkdir()
    logs = sorted((store / "commitlog").iterdir())
    for number in copied:
        shutil.copy(logs[number], folder)
    for number in expired:
        logs[number].unlink()
    return store, folder


def judged(path: Path) -> tuple[list[Finding], Summary]:
    """Return the findings about a path, and the first summary."""
    summaries: list[Summary] = []
    found = list(verify(path, on_summary=summaries.append))
    return found, summaries[0]


def steps(note: Finding) -> str:
    """Return the commands of a hint, as a script."""
    commands = note.hint.partition(". Then verify")[0].split("`")[1::2]
    return "\n".join(one for one in commands if " " in one)


@pytest.mark.checks("RMQDISK-41", "RMQDISK-42")
@pytest.mark.parametrize("copied", [(0, 1, 2), (1, 2), (0, 1, 2, 3), (0, 2, 3)])
def test_a_healthy_store_beside_a_backup_of_older_files_is_read(
    copied: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No broker writes a message into two folders: its own file and the copy have the same ones.
    With one such file it was "the log lies over 2 folders", and each verb refused the store.
    """
    monkeypatch.chdir(tmp_path)
    store, folder = backed_up(tmp_path, copied)
    older = len({*copied} & {0, 1})
    for path in (store, tmp_path):
        found, summary = judged(path)
        assert [] == [one for one in found if one.is_defect]
        (note,) = (one for one in found if one.law == "RMQDISK-41")
        assert (os.fspath(folder), str(older)) == (note.path, note.actual)
        assert (Verdict.SOUND, older) == (summary.verdict, summary.not_looked_into)
    assert "RMQDISK-42" not in {one.law for one in judged(folder)[0]}
    for verb, *rest in (["dump"], ["lookup", "--phy-offset", str(2 * LOG_BYTES)], ["ls"]):
        assert 0 == cli.run([verb, str(store), *rest])
        assert "over 2 folders" not in "".join(capsys.readouterr())
    told = salvage_store(store, tmp_path / "out")
    assert told.has_every_message
    assert [os.fspath(folder) in one for one in told.left_out] == [True]
    rebuild_index(store, tmp_path / "rebuilt", SLOTS, ENTRIES)
    subprocess.run(["sh", "-ec", steps(note)], check=True)
    (joined,) = (path.parent for path in Path("joined").glob("*/commitlog"))
    has_hole = 1 not in copied
    assert has_hole * ["RMQDISK-23"] == [one.law for one in verify(joined) if one.is_defect]
    for path in (store / "commitlog").iterdir():
        assert (joined / "commitlog" / path.name).resolve() == path


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("of_copy", [False, True])
@pytest.mark.parametrize("damage", ["wrong byte", "zeros behind"])
def test_a_common_file_that_differs_is_a_copy_all_the_same(
    damage: str, of_copy: bool, tmp_path: Path
) -> None:
    """An earlier state of the file, or one wrong byte in it: the store is judged by its own."""
    store, folder = backed_up(tmp_path, (0, 1, 2))
    path = (folder if of_copy else store / "commitlog") / f"{2 * LOG_BYTES:020d}"
    data = bytearray(path.read_bytes())
    if damage == "wrong byte":
        data[4] ^= 1
    else:
        data[LOG_BYTES // 2 :] = bytes(LOG_BYTES - LOG_BYTES // 2)
    path.write_bytes(data)
    found, summary = judged(store)
    assert "RMQDISK-42" not in {one.law for one in found}
    assert [os.fspath(folder)] == [one.path for one in found if one.law == "RMQDISK-41"]
    assert of_copy == (summary.verdict is Verdict.SOUND)
    assert of_copy == ([] == [one for one in found if one.is_defect])


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("data", [bytes(LOG_BYTES), b"later"])
def test_a_common_file_without_a_common_message_is_no_copy(data: bytes, tmp_path: Path) -> None:
    """A broker makes a file before it needs it, perhaps once more in another folder."""
    store, folder = backed_up(tmp_path, (0, 1, 2))
    path = folder / f"{2 * LOG_BYTES:020d}"
    half = path.read_bytes()[LOG_BYTES // 2 :]
    own = store / "commitlog" / path.name
    if data.strip(b"\0"):
        own.write_bytes(own.read_bytes()[: LOG_BYTES // 2].ljust(LOG_BYTES, b"\0"))
        data = bytes(LOG_BYTES // 2) + half
    path.write_bytes(data)
    assert ["RMQDISK-42"] == [one.law for one in verify(store)]


@pytest.mark.checks("RMQDISK-42")
def test_a_whole_store_beside_a_part_of_a_copy_is_read(tmp_path: Path) -> None:
    """No queue leads to a file that its own log lacks."""
    store, _ = backed_up(tmp_path, (0, 1), expired=())
    found, summary = judged(store)
    assert Verdict.SOUND is summary.verdict
    assert not {"RMQDISK-41", "RMQDISK-42"} & {one.law for one in found}


@pytest.mark.checks("RMQDISK-41", "RMQDISK-42")
@pytest.mark.parametrize("second", [(0, 1), (0,), (1, 2, 3), (0, 1, 2)])
def test_two_backups_are_named(second: tuple[int, ...], tmp_path: Path) -> None:
    """An archive and a backup, or two backups: no row of files in turn."""
    backed_up(tmp_path, second, expired=(), name="other")
    store, folder = backed_up(tmp_path, (0, 1, 2))
    found, summary = judged(store)
    assert Verdict.SOUND is summary.verdict
    (note,) = (one for one in found if one.law == "RMQDISK-41")
    assert "2" == note.actual
    assert all(
        os.fspath(one) in f"{note.path} {note.message}" for one in (folder, tmp_path / "other")
    )


@pytest.mark.checks("RMQDISK-42")
def test_a_store_without_queues_beside_a_backup_is_read(tmp_path: Path) -> None:
    """Queues may be in RocksDB: the index alone leads to the older files."""
    store, folder = backed_up(tmp_path, (0, 1, 2))
    shutil.rmtree(store / "consumequeue")
    laws = {one.law: one for one in verify(store)}
    assert "RMQDISK-42" not in laws
    assert os.fspath(folder) == laws["RMQDISK-41"].path
