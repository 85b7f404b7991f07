# SPDX-License-Identifier: Apache-2.0
"""A commit log over several folders, where two or three have a file of one name."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from segproof.findings import Finding
from segproof.reading import store_layouts
from segproof.repair import salvage_store
from segproof.store_lookup import StoreReader
from segproof.verification import verify
from segproof_tests.store_files import LOG_BYTES, long_store


def halves(path: Path) -> tuple[bytes, bytes]:
    """Return a file of a log without its later messages, and without its first ones."""
    data, starts = path.read_bytes(), [0]
    while any(data[starts[-1] : starts[-1] + 4]):
        starts.append(starts[-1] + int.from_bytes(data[starts[-1] : starts[-1] + 4], "big"))
    border = starts[len(starts) // 2]
    return data[:border].ljust(LOG_BYTES, b"\0"), bytes(border) + data[border:]


def spread_with_halves(
    top: Path, own: tuple[int, ...], moved: tuple[int, ...] = (1, 2)
) -> tuple[Path, Path, Path]:
    """Lay a log over three folders, the last file in two or three of them; return the folders."""
    store = long_store(top / "a1" / "store")
    folders = (store / "commitlog", top / "a2" / "commitlog", top / "a3" / "commitlog")
    logs = sorted(folders[0].iterdir())
    for folder, number, half in zip(folders[1:], (1, 2), halves(logs[3]), strict=True):
        folder.mkdir(parents=True)
        (folder / logs[3].name).write_bytes(half)
        if number in moved:
            logs[number].rename(folder / logs[number].name)
    if 3 not in own:
        logs[3].unlink()
    return folders


def joined(finding: Finding) -> Path:
    """Do what the hint says; return the new store."""
    commands = finding.hint.partition(". Then verify")[0].split("`")[1::2]
    subprocess.run(["sh", "-ec", "\n".join(commands)], check=True)
    (new,) = (path.parent for path in Path("joined").glob("*/commitlog"))
    return new


def over_two_disks(folder: Path) -> tuple[Path, Path, list[Path]]:
    """Write a store with the log files 1, 3 and 5 on a second disk; return the store, the folder of
    these files, and the paths that all log files had in the store."""
    store, part = long_store(folder / "a1" / "store", 40), folder / "a2" / "commitlog"
    part.mkdir(parents=True)
    logs = sorted((store / "commitlog").iterdir())
    for number in (1, 3, 5):
        logs[number].rename(part / logs[number].name)
    return store, part, logs


@pytest.mark.checks("RMQDISK-42")
def test_a_file_in_three_folders_hides_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with a file that another one had too was judged as a store of its own, and the join
    of the two others lacked what lies in it alone.
    """
    monkeypatch.chdir(tmp_path)
    folders = spread_with_halves(tmp_path, own=(0, 3))
    found = list(verify(tmp_path))
    assert ["RMQDISK-42"] * 3 == [one.law for one in found]
    for one in found:
        assert "over 3 folders" in one.message
        assert all(os.fspath(folder) in one.message for folder in folders)
        assert f"that in {folders[0]} has each sound message of the others" in one.message
    assert [] == [one for one in verify(joined(found[0])) if one.is_defect]


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("moved", [(1, 2), (1,)])
def test_of_two_files_with_messages_of_their_own_none_is_left_out_silently(
    moved: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two files of one name "the right one" was to be linked, and the last link won."""
    monkeypatch.chdir(tmp_path)
    folders = spread_with_halves(tmp_path, own=(0,), moved=moved)
    found = list(verify(tmp_path))
    assert ["RMQDISK-42"] * 3 == [one.law for one in found]
    for one in found:
        assert "over 3 folders" in one.message
        most, other = re.findall(r"that in (\S+) has (\d+) ", one.message)
        assert [os.fspath(folder) for folder in folders[1:]] == [most[0], other[0]]
        assert f"has {other[1]} that it lacks" in one.message
        assert "Decide by these messages" in one.hint
    new = joined(found[0])
    (lacks,) = [one for one in verify(new) if one.law == "RMQDISK-39"]
    assert f"{other[1]} sound messages of it are not there" in lacks.message
    saved = salvage_store(new, tmp_path / "out")
    assert any(f"{other[1]} sound messages of it are not there" in one for one in saved.left_out)


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("begin", [0, 100, LOG_BYTES])
@pytest.mark.parametrize("has_queues", [True, False])
def test_a_part_with_garbage_in_it_is_a_part(begin: int, has_queues: bool, tmp_path: Path) -> None:
    """From 8 KiB of garbage on it was another log: no finding named the folder, and what a salvage
    left out was said nowhere.
    """
    store, part = long_store(tmp_path / "a1" / "store", 40), tmp_path / "a2" / "commitlog"
    part.mkdir(parents=True)
    logs = sorted((store / "commitlog").iterdir())
    data = bytearray(b"".join(logs[number].read_bytes() for number in (1, 3)))
    data[begin : begin + LOG_BYTES * 2 // 3] = b"\xaa" * (LOG_BYTES * 2 // 3)
    for number, at in ((1, 0), (3, LOG_BYTES)):
        (part / logs[number].name).write_bytes(data[at : at + LOG_BYTES])
        logs[number].unlink()
    if not has_queues:
        shutil.rmtree(store / "consumequeue")
    (found,) = verify(store)
    assert "RMQDISK-42" == found.law
    assert os.fspath(part) in found.message


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("step", [50, 53, 100])
def test_a_log_with_other_messages_at_some_of_the_same_offsets_is_no_part(
    step: int, tmp_path: Path
) -> None:
    """Where messages have few lengths, a third of those of one log begin where those of another do;
    many of these have another length.
    """
    store = long_store(tmp_path / "a1" / "store", 200, step=40)
    other = long_store(tmp_path / "b", 200, step=step)
    part = tmp_path / "a2" / "commitlog"
    part.mkdir(parents=True)
    for number in (1, 3, 4, 5):
        name = f"{number * LOG_BYTES:020d}"
        (store / "commitlog" / name).unlink()
        (other / "commitlog" / name).rename(part / name)
    shutil.rmtree(other)
    assert "RMQDISK-42" not in {one.law for one in verify(store)}


def with_backup(top: Path) -> tuple[list[Path], Path]:
    """Return the log files of a store that lost its first two, and a backup with all."""
    store, backup = long_store(top / "store"), top / "backup"
    shutil.copytree(store / "commitlog", backup)
    logs = sorted((store / "commitlog").iterdir())
    for path in logs[:2]:
        path.unlink()
    return logs[2:], backup


@pytest.mark.checks("RMQDISK-41")
@pytest.mark.parametrize("end", [0, 400, LOG_BYTES])
def test_of_a_backup_the_join_has_what_a_damaged_own_file_lacks(
    end: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The own file was linked over the good copy, since files of both names were not compared."""
    monkeypatch.chdir(tmp_path)
    logs, backup = with_backup(tmp_path)
    logs[0].write_bytes((bytes(end) + logs[0].read_bytes()[end:]) if end else b"")
    (note,) = (one for one in verify(tmp_path / "store") if one.law == "RMQDISK-41")
    assert "links those with the most sound messages" in note.message
    assert 1 == note.hint.count(logs[0].name)
    assert logs[1].name not in note.hint
    new = joined(note)
    assert [] == [one for one in verify(new) if one.is_defect]
    targets = [path.resolve() for path in sorted((new / "commitlog").iterdir())[2:]]
    assert [backup / logs[0].name, logs[1]] == targets


@pytest.mark.checks("RMQDISK-41")
def test_a_reader_does_not_compare_a_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a note says costs nothing where no note is given."""
    with_backup(tmp_path)
    monkeypatch.setattr(store_layouts, "how_to_join", None)
    StoreReader(tmp_path / "store")
    with pytest.raises(TypeError):
        list(verify(tmp_path / "store"))


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("is_own", [True, False])
@pytest.mark.parametrize("odd", ["folder", "link", "other names"])
def test_only_log_files_are_linked(
    odd: str, is_own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder, or a link to nothing, was linked over the file of its name; a name of no log file
    in both folders ended the commands.
    """
    monkeypatch.chdir(tmp_path)
    store, part, logs = over_two_disks(tmp_path)
    folder, name = (store / "commitlog", logs[3].name) if is_own else (part, logs[2].name)
    if odd == "folder":
        (folder / name).mkdir()
    elif odd == "link":
        (folder / name).symlink_to("nowhere")
    else:
        for one in (store / "commitlog", part):
            (one / f"{name}.bak").write_bytes(b"other")
            (one / "0old").mkdir()
    (found,) = (one for one in verify(store) if one.law == "RMQDISK-42")
    new = joined(found)
    assert [path.name for path in logs] == sorted(os.listdir(new / "commitlog"))
    assert [] == [one for one in verify(new) if one.is_defect]


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("own", ["zeros", "damaged elsewhere", "the same"])
def test_a_damaged_message_is_more_than_no_message(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "None has a message" was said of a file with a damaged one, and the empty file linked."""
    monkeypatch.chdir(tmp_path)
    store, part, logs = over_two_disks(tmp_path)
    last, data = logs[6], bytearray(logs[6].read_bytes())
    size = int.from_bytes(data[:4], "big")
    assert not any(data[size:])
    data[size - 60] ^= 1
    (part / last.name).write_bytes(data)
    if own == "damaged elsewhere":
        data[size - 60] ^= 3
    last.write_bytes(bytes(LOG_BYTES) if own == "zeros" else data)
    (found,) = (one for one in verify(store) if one.law == "RMQDISK-42")
    assert "none has a message" not in found.message
    assert (own != "the same") == ("no sound message" in found.message)
    assert (own == "damaged elsewhere") == ("linked in the folder twice" in found.hint)
    new = joined(found)
    assert (new / "commitlog" / last.name).read_bytes()[:size].strip(b"\0")
    assert (own == "damaged elsewhere") == (new / "commitlog" / "twice").exists()
