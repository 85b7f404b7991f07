# SPDX-License-Identifier: Apache-2.0
"""A store which expired or lost files, beside a folder with copies of its own, or of others."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from segproof.findings import Finding, Verdict
from segproof.repair import rebuild_index, salvage_store
from segproof.verification import verify
from segproof_harness import cli
from segproof_tests.reported_findings import judged
from segproof_tests.store_files import ENTRIES, LOG_BYTES, OURS, SLOTS, long_store


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
def test_a_common_file_without_a_common_message_is_no_copy(tmp_path: Path) -> None:
    """A broker makes a file before it needs it, perhaps once more in another folder."""
    store, folder = backed_up(tmp_path, (0, 1, 2))
    path = folder / f"{2 * LOG_BYTES:020d}"
    half = path.read_bytes()[LOG_BYTES // 2 :]
    own = store / "commitlog" / path.name
    own.write_bytes(own.read_bytes()[: LOG_BYTES // 2].ljust(LOG_BYTES, b"\0"))
    path.write_bytes(bytes(LOG_BYTES // 2) + half)
    assert ["RMQDISK-42"] == [one.law for one in verify(store)]


@pytest.mark.checks("RMQDISK-41", "RMQDISK-42")
@pytest.mark.parametrize("made", [(2,), (2, 3)])
def test_a_file_that_was_made_ahead_says_nothing(
    made: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A backup has the file of zeros that the broker had made next: "the log lies over 2 folders",
    and each verb refused the store.
    """
    monkeypatch.chdir(tmp_path)
    store, folder = backed_up(tmp_path, (0, 1))
    for number in made:
        (folder / f"{number * LOG_BYTES:020d}").write_bytes(bytes(LOG_BYTES))
    found, summary = judged(store)
    assert [] == [one for one in found if one.is_defect]
    (note,) = (one for one in found if one.law == "RMQDISK-41")
    assert (os.fspath(folder), "2") == (note.path, note.actual)
    assert (Verdict.SOUND, 2) == (summary.verdict, summary.not_looked_into)
    assert salvage_store(store, tmp_path / "out").has_every_message
    subprocess.run(["sh", "-ec", steps(note)], check=True)
    (joined,) = (path.parent for path in Path("joined").glob("*/commitlog"))
    for path in (store / "commitlog").iterdir():
        assert (joined / "commitlog" / path.name).resolve() == path


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


# --- a store that lost files


@pytest.mark.checks("RMQDISK-41", "RMQDISK-42")
@pytest.mark.parametrize(
    ("gone", "copied", "lost"),
    [
        ((0, 1, 4), (0, 1, 2, 3, 4), (4,)),
        ((0, 1, 4), (2, 3, 4), (4,)),
        ((0, 1, 4, 6), (1, 2, 3, 4, 5, 6), (4, 6)),
        ((6,), (0, 1, 2, 3, 4, 5, 6), (6,)),
    ],
)
def test_the_backup_that_has_a_lost_file_is_named(
    gone: tuple[int, ...],
    copied: tuple[int, ...],
    lost: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither verify nor salvage had a word of it, and "at least 6 messages" were lost."""
    monkeypatch.chdir(tmp_path)
    store, folder = backed_up(tmp_path, copied, gone)
    found, summary = judged(store)
    assert any(one.is_defect for one in found)
    (note,) = (one for one in found if one.law == "RMQDISK-41")
    count = len({*copied} & {*gone})
    assert (os.fspath(folder), count) == (note.path, summary.not_looked_into)
    names = ", ".join(f"{number * LOG_BYTES:020d}" for number in lost)
    assert f"that this log lacks, {names}" in note.message
    told = salvage_store(store, tmp_path / "out")
    assert not told.has_every_message
    assert [names in one for one in told.left_out] == [True]
    subprocess.run(["sh", "-ec", steps(note)], check=True)
    (joined,) = (path.parent for path in Path("joined").glob("*/commitlog"))
    assert [] == [one for one in verify(joined) if one.is_defect]
    assert salvage_store(joined, tmp_path / "whole").has_every_message


@pytest.mark.checks("RMQDISK-41", "RMQDISK-42")
def test_a_damaged_store_beside_a_backup_without_the_lost_file_is_read(tmp_path: Path) -> None:
    """One common file made it "the log lies over 2 folders", and salvage refused it."""
    store, folder = backed_up(tmp_path, (0, 1, 2), (0, 1, 4))
    found, summary = judged(store)
    assert "RMQDISK-42" not in {one.law for one in found}
    assert [os.fspath(folder)] == [one.path for one in found if one.law == "RMQDISK-41"]
    assert "lacks" not in next(one.message for one in found if one.law == "RMQDISK-41")
    assert (Verdict.READABLE_WITH_GAPS, 2) == (summary.verdict, summary.not_looked_into)


# --- files of another broker

OTHER_HOST = bytes((10, 0, 0, 7)) + (10911).to_bytes(4, "big")


def two_brokers(
    top: Path, copied: tuple[int, ...], host: bytes | None, gone: tuple[int, ...] = (0, 1)
) -> tuple[Path, Path]:
    """Return a store that lost files, and a folder with copies of another broker's files, whose
    messages have equal sizes; its address is the same one without `host`.
    """
    own_host = OURS[0] if host is None or len(host) == 8 else bytes(15) + b"\2" + host[16:]
    far = top / "far" / "away" / "and" / "away" / "other"
    other = long_store(far, 40, sent=(host or own_host, b"c"))
    store, folder = long_store(top / "store", 40, sent=(own_host, b"d")), top / "other-backup"
    folder.mkdir()
    for number, path in enumerate(sorted((other / "commitlog").iterdir())):
        if number in copied:
            shutil.copy(path, folder)
    for number in gone:
        (store / "commitlog" / f"{number * LOG_BYTES:020d}").unlink()
    shutil.rmtree(top / "far")
    return store, folder


@pytest.mark.checks("RMQDISK-41", "RMQDISK-42")
@pytest.mark.parametrize("host", [None, OTHER_HOST])
@pytest.mark.parametrize("copied", [(0, 1, 2), (0, 1, 2, 3)])
def test_a_folder_with_other_messages_at_the_same_places_is_named(
    copied: tuple[int, ...],
    host: bytes | None,
    tmp_path: Path,
) -> None:
    """A backup of another broker whose messages have equal sizes: the store was refused, and the
    join mixed those of both. Later nothing was said of it: neither where a broker once started
    without its other disk, made a file of that once more, and lost its older messages there.
    """
    store, folder = two_brokers(tmp_path, copied, host)
    found, summary = judged(store)
    assert (Verdict.SOUND, 2) == (summary.verdict, summary.not_looked_into)
    laws = {one.law: one for one in found}
    assert "RMQDISK-42" not in laws
    note = laws["RMQDISK-41"]
    assert (os.fspath(folder), "2") == (note.path, note.actual)
    assert f"2 files here that this log lacks, {0:020d}, {LOG_BYTES:020d}, may be" in note.message
    doubt = "have other messages at the same places" if host is None else "stored by a broker at"
    assert doubt in note.message
    assert "ln -s" not in note.hint
    told = salvage_store(store, tmp_path / "out")
    assert told.has_every_message
    assert [os.fspath(folder) in one for one in told.left_out] == [True]


@pytest.mark.checks("RMQDISK-41", "RMQDISK-42")
def test_a_folder_to_which_nothing_leads_is_not_named(tmp_path: Path) -> None:
    """Copies of another broker's files, with messages of other sizes, beside a healthy store."""
    store, folder = backed_up(tmp_path, (), (0, 1))
    for path in (long_store(tmp_path / "a" / "b" / "c" / "d", 40, step=53) / "commitlog").iterdir():
        shutil.move(path, folder)
    shutil.rmtree(tmp_path / "a")
    assert not {"RMQDISK-41", "RMQDISK-42"} & {one.law for one in judged(store)[0]}


@pytest.mark.checks("RMQDISK-41", "RMQDISK-42")
@pytest.mark.parametrize("is_part", [False, True])
def test_a_doubted_folder_is_told_beside_one_that_is_sure(is_part: bool, tmp_path: Path) -> None:
    """The commands link what is of the log, and the words name what they leave out."""
    store, doubted = two_brokers(tmp_path, (0, 1, 2), OTHER_HOST)
    sure = tmp_path / "sure" / "commitlog"
    sure.mkdir(parents=True)
    if is_part:
        (store / "commitlog" / f"{4 * LOG_BYTES:020d}").rename(sure / f"{4 * LOG_BYTES:020d}")
    else:
        whole = long_store(tmp_path / "a" / "b" / "c" / "d", 40, sent=(OURS[0], b"d"))
        for number in (0, 1, 2):
            shutil.move(whole / "commitlog" / f"{number * LOG_BYTES:020d}", sure)
        shutil.rmtree(tmp_path / "a")
    laws = {one.law: one for one in judged(store)[0]}
    told = laws["RMQDISK-42" if is_part else "RMQDISK-41"]
    assert f"2 files in {doubted} that this log lacks" in told.message
    assert "the commands of the hint leave them out" in told.message
    assert "may be of another broker" in told.message
    assert f"ln -sf {sure}/" in told.hint or f"ln -s {sure}/" in told.hint
    assert os.fspath(doubted) not in told.hint


@pytest.mark.checks("RMQDISK-41", "RMQDISK-42")
@pytest.mark.parametrize("host", [None, OTHER_HOST, bytes(15) + b"\1" + OTHER_HOST[4:]])
def test_older_files_are_told_apart_by_the_address_of_the_broker(
    host: bytes | None, tmp_path: Path
) -> None:
    """They were flatly "of the log of" a store of another broker, with the commands to join both.
    An address may have changed, so that this proves nothing.
    """
    store, folder = two_brokers(tmp_path, (0, 1), host)
    found, summary = judged(store)
    assert (Verdict.SOUND, 2) == (summary.verdict, summary.not_looked_into)
    (note,) = (one for one in found if one.law == "RMQDISK-41")
    assert os.fspath(folder) == note.path
    assert "may be of the log of" in note.message
    assert (host is not None) == ("may be of another broker" in note.message)
    assert (host is None) == ("ln -s" in note.hint)
    if host is not None:
        address = "[::1]:10911" if len(host) > 8 else "10.0.0.7:10911"
        assert f"stored by a broker at {address}, those" in note.message


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("host", [None, OTHER_HOST])
@pytest.mark.parametrize("copied", [(1,), (1, 3)])
def test_files_that_fill_a_gap_are_not_joined_in_doubt(
    copied: tuple[int, ...],
    host: bytes | None,
    tmp_path: Path,
) -> None:
    """A broker that lacks a disk makes its file once more, or it is another broker's."""
    store, _ = two_brokers(tmp_path, copied, host, gone=(1,))
    found, _ = judged(store)
    laws = {one.law: one for one in found}
    if host is not None and len(copied) > 1:
        assert {"RMQDISK-23", "RMQDISK-41"} <= laws.keys()
        assert "RMQDISK-42" not in laws
        assert "may be of another broker" in laws["RMQDISK-41"].message
        return
    (only,) = found
    doubt = host is not None or len(copied) > 1
    assert "RMQDISK-42" == only.law
    assert ("may lie over 2 folders" if doubt else "lies over 2 folders") in only.message
    assert ("have other messages at the same places" in only.message) == (len(copied) > 1)
    assert ("may be of another broker" in only.message) == (host is not None)
    assert doubt == ("ln -s" not in only.hint)


@pytest.mark.checks("RMQDISK-41", "RMQDISK-42")
@pytest.mark.parametrize("host", [None, OTHER_HOST])
def test_where_no_queue_speaks_nothing_is_certain(host: bytes | None, tmp_path: Path) -> None:
    """Queues may be in RocksDB, and the files of a row may be of an archive or another broker: "the
    log lies over 2 folders"."""
    store, folder = two_brokers(tmp_path, (0, 1), host)
    shutil.rmtree(store / "consumequeue")
    shutil.rmtree(store / "index")
    found, _ = judged(store)
    laws = {one.law: one for one in found}
    if host is None:
        assert "may lie over 2 folders" in laws["RMQDISK-42"].message
        assert "ln -s" in laws["RMQDISK-42"].hint
    else:
        assert "RMQDISK-42" not in laws
        assert os.fspath(folder) == laws["RMQDISK-41"].path
        assert "may be of another broker" in laws["RMQDISK-41"].message
