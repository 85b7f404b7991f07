# SPDX-License-Identifier: Apache-2.0
"""Stores whose log is not whole in its folder: over several folders, in DLedger, cut, or replaced.

Public reports that such stores are modelled on: apache/rocketmq 7355, 8041 and 8859,
openmessaging/dledger 285.
"""

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.repair import rebuild_index, salvage, salvage_store
from segproof.rocketmq.commit_log import CommitLog
from segproof.verification import verify
from segproof_harness.laws.broken_stores import entry
from segproof_harness.laws.file_damages import int64, overwrite
from segproof_harness.laws.judged_store import store_disagreements
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.reported_findings import contents, verified
from segproof_tests.rows import paired
from segproof_tests.store_files import (
    ENTRIES,
    INDEX,
    LOG,
    LOG_BYTES,
    QUEUE,
    SLOTS,
    copied_store,
    long_store,
)

FILES = 4
"""Log files of a store that is written here."""


def log_name(start: int) -> str:
    """Return the name of the log file that begins at an offset."""
    return f"{start:020d}"


def defects(path: Path) -> list[Finding]:
    """Return what verify finds but for notes."""
    return [one for one in verify(path) if one.is_defect]


def refused(store: Path, target: Path) -> str:
    """Return why rebuild and salvage refuse a store; they change nothing."""
    before = contents(store)
    words = set()
    for in_place in (True, False):
        with pytest.raises(InvalidArgumentError) as error:
            rebuild_index(store, None if in_place else target, SLOTS, ENTRIES, in_place=in_place)
        words.add(str(error.value))
    with pytest.raises(InvalidArgumentError) as error:
        salvage_store(store, target)
    words.add(str(error.value))
    assert before == contents(store)
    assert not target.exists()
    assert len(words) == 1
    return words.pop()


# --- a log over several folders

OTHER_NAMES = "disks with other names"
"""Such are looked for only if files after the first one are missing: others may have expired."""
PLACES = {
    "disks": ("rmqstore1/store", "rmqstore2/commitlog", "rmqstore3/commitlog"),
    "in the store": ("store", "store/commitlog2", "store/commitlog3"),
    "beside the store": ("store", "commitlog2", "commitlog3"),
    "disks with the same path": ("d1/rmq/store", "d2/rmq/commitlog", "d3/rmq/commitlog"),
    OTHER_NAMES: ("a/store", "b/commitlog", "c/commitlog"),
    "stores": ("a1/store", "a2/store/commitlog", "a3/store/commitlog"),
}


def spread(
    top: Path, names: tuple[str, str, str], own: int = 0, turn: int = 0
) -> tuple[Path, Path, Path]:
    """Lay the log of a store over three folders, one name in two of them; return the folders.

    `own` is the file that stays in the folder of the store; `turn` which other folder comes first.
    """
    store = top / names[0]
    long_store(store)
    folders = (store / "commitlog", top / names[1], top / names[2])
    for folder in folders[1:]:
        folder.mkdir(parents=True)
    logs = sorted(folders[0].iterdir())
    others = [path for path in logs if path != logs[own]]
    for number, path in enumerate(others):
        path.rename(folders[1 + (number + turn) % 2] / path.name)
    last = others[-1].name
    empty = folders[2] if (folders[1] / last).exists() else folders[1]
    (empty / last).write_bytes(bytes(LOG_BYTES))
    return folders


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize(
    ("place", "own"),
    [(place, own) for place in PLACES for own in (0, 1, 3) if (place, own) != (OTHER_NAMES, 3)],
)
def test_a_log_over_several_folders_is_left_alone(place: str, own: int, tmp_path: Path) -> None:
    """Verify wrote 662 errors, and the hint of one let rebuild remove the old index files."""
    own_log, *others = spread(tmp_path, PLACES[place], own)
    (only,) = verify(own_log.parent)
    assert ("RMQDISK-42", Severity.WARNING) == (only.law, only.severity)
    assert all(os.fspath(folder) in only.message for folder in others)
    assert "storePathCommitLog" in only.message
    assert "link" in only.hint
    assert "over 3 folders" in refused(own_log.parent, tmp_path / "out")


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("place", ["disks", "in the store", "a b/c'd"])
def test_the_commands_of_the_hint_make_a_whole_store(
    place: str, turn: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint had no command, and "the one that holds messages" did not say which that is."""
    places = PLACES.get(place, (f"{place}1/store", f"{place}2/commitlog", f"{place}3/commitlog"))
    own_log, *others = spread(tmp_path, places, 0, turn)
    monkeypatch.chdir(tmp_path)
    (only,) = verify(os.path.relpath(own_log.parent))
    (empty,) = (
        path for folder in others for path in folder.iterdir() if not any(path.read_bytes())
    )
    (right,) = (folder for folder in others if folder != empty.parent)
    assert f"the file {empty.name} lies in" in only.message
    named = only.message.partition("; that in ")[2].removesuffix(" contains messages")
    assert right == Path(named).absolute()
    commands = only.hint.partition(". Then verify")[0].split("`")[1::2]
    subprocess.run(["sh", "-ec", "\n".join(commands)], check=True)
    (new,) = (path.parent for path in Path("joined").glob("*/commitlog"))
    summaries: list[Summary] = []
    assert not any(one.is_defect for one in verify(new, on_summary=summaries.append))
    assert [(4, Verdict.SOUND)] == [(one.segments, one.verdict) for one in summaries]
    rebuild_index(new, None, SLOTS, ENTRIES, in_place=True)


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize(("place", "there"), paired(PLACES, [(0, 1), (2, 3), (0, 2), (1, 3)]))
def test_a_row_of_files_shows_the_log_where_no_queue_does(
    place: str, there: tuple[int, int], tmp_path: Path
) -> None:
    """Half a log was sound beside queues in RocksDB, and rebuild made an index of that half."""
    store = long_store(tmp_path / PLACES[place][0])
    other = tmp_path / PLACES[place][1]
    other.mkdir(parents=True)
    for number in {*range(4)} - {*there}:
        path = store / "commitlog" / log_name(number * LOG_BYTES)
        path.rename(other / path.name)
    for part in ("index", "consumequeue"):
        shutil.rmtree(store / part)
    database = store / "consumequeue"
    database.mkdir()
    (database / "CURRENT").write_bytes(b"MANIFEST-000004\n")
    (database / "MANIFEST-000004").write_bytes(b"m")
    (only,) = verify(store)
    assert ("RMQDISK-42", Severity.WARNING) == (only.law, only.severity)
    assert os.fspath(other) in only.message
    assert "over 2 folders" in refused(store, tmp_path / "out")
    path = sorted(other.iterdir())[0]  # a file that says another offset, so that it is no part
    overwrite(path.name, 28, int64(7))(other)
    assert "RMQDISK-42" not in {one.law for one in verify(store)}


@pytest.mark.checks("RMQDISK-23")
def test_hints_about_missing_log_files_name_the_other_folders(tmp_path: Path) -> None:
    """Files of the log over two disks were to be looked for in lost+found only."""
    store = long_store(tmp_path / "store")
    logs = sorted((store / "commitlog").iterdir())
    for number in (1, 3, 0, 2):
        logs[number].unlink()
        if number != 1:
            (hint, *_) = (one.hint for one in verify(store) if one.law == "RMQDISK-23")
            assert "storePathCommitLog" in hint


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("turn", [0, 1])
def test_each_folder_of_such_a_log_is_left_alone(turn: int, tmp_path: Path) -> None:
    """The folders that hold a part of the log only were judged as logs with holes."""
    spread(tmp_path, PLACES["disks"], 0, turn)
    found, summaries = verified(tmp_path)
    assert ["RMQDISK-42"] * 3 == [one.law for one in found]
    assert 3 == len(summaries)
    assert "over 3 folders" in refused(tmp_path / "rmqstore2", tmp_path / "out")


@pytest.mark.checks("RMQDISK-42")
def test_the_hint_leads_to_a_store_that_is_sound(tmp_path: Path) -> None:
    """Links to all files of the log, beside copies of the rest, make a store that is whole."""
    own_log, *others = spread(tmp_path, PLACES["disks"])
    joined = tmp_path / "joined"
    shutil.copytree(own_log.parent, joined, ignore=shutil.ignore_patterns("commitlog"))
    (joined / "commitlog").mkdir()
    for folder in (own_log, *others):
        for path in folder.iterdir():
            if any(path.read_bytes()):
                (joined / "commitlog" / path.name).symlink_to(path)
    assert [] == defects(joined)


def test_copies_and_logs_of_others_are_no_parts(tmp_path: Path) -> None:
    """A copy of the log beside the store, and the log of another store, change no finding."""
    store = long_store(tmp_path / "store")
    shutil.copytree(store / "commitlog", tmp_path / "backup" / "commitlog")
    shutil.copytree(copied_store(tmp_path / "other", "u8msgs-4.9.8") / "commitlog", tmp_path / "x")
    assert [] == defects(store)
    (store / "commitlog" / log_name(3 * LOG_BYTES)).unlink()
    assert {"RMQDISK-23"} == {one.law for one in defects(store)}


# --- a log that lacks files


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize("part", ["index", "consumequeue"])
def test_a_log_without_its_end_is_one_finding(part: str, tmp_path: Path) -> None:
    """Each entry and unit that led there was an error, and the hint was to replace the index."""
    store = long_store(tmp_path / "store")
    shutil.rmtree(store / part)
    for start in (2 * LOG_BYTES, 3 * LOG_BYTES):
        (store / "commitlog" / log_name(start)).unlink()
    about_end = [one for one in defects(store) if "the last file ends" in one.message]
    (only,) = about_end
    assert ("RMQDISK-23", Severity.ERROR) == (only.law, only.severity)
    assert "2 files" in only.message
    laws = {one.law for one in defects(store)}
    assert laws <= {"RMQDISK-23", "RMQDISK-21", "RMQDISK-33", "RMQDISK-37"}
    assert [] == list(store_disagreements(store))


@pytest.mark.checks("RMQDISK-23")
def test_an_index_that_leads_to_missing_files_stays(tmp_path: Path) -> None:
    """A rebuild in place removed index files that told what the missing files held."""
    store = long_store(tmp_path / "store")
    (store / "commitlog" / log_name(3 * LOG_BYTES)).unlink()
    before = contents(store)
    for target, options in ((None, {"in_place": True}), (tmp_path / "out", {})):
        for cut_tail in (False, target is None):
            rebuilt = rebuild_index(
                store,
                target,
                SLOTS,
                ENTRIES,
                cut_tail=cut_tail,
                **options,  # type: ignore[arg-type]
            )
            assert ["RMQDISK-23"] == [one.law for one in rebuilt.findings]
    assert before == contents(store)
    rebuilt = rebuild_index(store, tmp_path / "out", SLOTS, ENTRIES, cut_tail=True)
    assert 0 < rebuilt.messages < 24
    assert before == contents(store)


def test_a_hole_is_one_finding_and_its_entries_are_not_judged(tmp_path: Path) -> None:
    """What leads into a missing file in the middle is not judged."""
    store = long_store(tmp_path / "store")
    (store / "commitlog" / log_name(LOG_BYTES)).unlink()
    assert ["RMQDISK-23"] == [one.law for one in defects(store)]


def test_a_single_wrong_unit_is_not_a_missing_file(tmp_path: Path) -> None:
    """One unit and one entry that lead far away are reported by themselves."""
    store = copied_store(tmp_path)
    overwrite(QUEUE, 20 * 11, int64(1 << 40))(store)
    overwrite(INDEX, entry(26, 4), int64(1 << 41))(store)
    laws = {one.law for one in defects(store)}
    assert {"RMQDISK-28", "RMQDISK-37"} <= laws
    assert "RMQDISK-23" not in laws
    assert [] == list(store_disagreements(store))


# --- empty files


@pytest.mark.checks("RMQDISK-23", "RMQDISK-35")
@pytest.mark.parametrize(
    ("name", "law", "severity"),
    [
        (f"commitlog/{log_name(0)}", "RMQDISK-23", Severity.ERROR),
        (f"commitlog/{log_name(3 * LOG_BYTES)}", "RMQDISK-23", Severity.ERROR),
        (f"commitlog/{log_name(4 * LOG_BYTES)}", "RMQDISK-23", Severity.WARNING),
        (f"consumequeue/T/0/{log_name(0)}", "RMQDISK-35", Severity.WARNING),
        (f"consumequeue/New/0/{log_name(0)}", "RMQDISK-35", Severity.WARNING),
    ],
)
def test_an_empty_file_names_the_releases_that_fail(
    name: str, law: str, severity: Severity, tmp_path: Path
) -> None:
    """4.9.8 ends its start at any file of 0 bytes, and later releases unless it is the last one."""
    store = long_store(tmp_path / "store")
    (store / name).parent.mkdir(parents=True, exist_ok=True)
    (store / name).write_bytes(b"")
    about = [one for one in defects(store) if one.path == os.fspath(store / name)]
    told = [one for one in about if "has 0 bytes" in one.message]
    assert [(law, severity)] == [(one.law, one.severity) for one in told]
    assert "up to 4.9.8 end their start" in told[0].message
    assert "RMQDISK-28" not in {one.law for one in defects(store)}
    assert [] == list(store_disagreements(store))


def test_a_log_file_of_another_length_says_that_no_broker_starts(tmp_path: Path) -> None:
    """All releases compare the length with mappedFileSizeCommitLog."""
    store = long_store(tmp_path / "store")
    os.truncate(store / "commitlog" / log_name(3 * LOG_BYTES), LOG_BYTES - 8)
    (only,) = defects(store)
    assert "RMQDISK-23" == only.law
    assert "every release ends its start" in only.message


# --- DLedger


def dledger_store(top: Path, hole: bool = False) -> Path:
    """Return a store whose messages lie in a log of DLedger, each behind a header of 48 bytes."""
    store = copied_store(top)
    data = (store / LOG).read_bytes()
    units = bytearray((store / QUEUE).read_bytes())
    new, index, position, number = b"", b"", 0, 0
    while (size := int.from_bytes(data[position : position + 4], "big")) > 0:
        body = bytearray(data[position : position + size])
        start = len(new)
        struct.pack_into(">q", body, 28, start + 48)
        new += struct.pack(">iiqqqiiii", 1, 48 + size, number, 1, start, 0, 0, 0, size) + body
        index += struct.pack(">iqiqq", 1, start, 48 + size, number, 1)
        struct.pack_into(">qi", units, 20 * number, start + 48, size)
        position, number = position + size, number + 1
    if hole:
        new = new[:700] + bytes(400) + new[1100:]
    shutil.rmtree(store / "commitlog")
    shutil.rmtree(store / "index")
    (store / "commitlog").mkdir()
    (store / QUEUE).write_bytes(units)
    for name, content in (("data", new.ljust(16384, b"\0")), ("index", index.ljust(3200, b"\0"))):
        (store / "dledger-n0" / name).mkdir(parents=True)
        (store / "dledger-n0" / name / log_name(0)).write_bytes(content)
    (store / "dledger-n0" / "checkpoint").write_text("committedIndex=11\n")
    return store


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("hole", [False, True])
def test_a_store_of_dledger_is_named(hole: bool, tmp_path: Path) -> None:
    """Verify called it unreadable, with hints to look for the log and to remove the checkpoint."""
    store = dledger_store(tmp_path, hole)
    for path in (store, store / "dledger-n0", store / "dledger-n0" / "data" / log_name(0)):
        (only,) = verify(path)
        assert ("RMQDISK-42", Severity.WARNING) == (only.law, only.severity), path
        assert "DLedger" in only.message
        assert "remove" not in only.hint
    assert [] == list(store_disagreements(store))
    assert "DLedger" in refused(store, tmp_path / "out")


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("name", ["dledger-n0", "dledger-n0.old", "group0"])
@pytest.mark.parametrize("damaged", ["data", "index", "no file"])
def test_a_damaged_begin_or_another_name_hides_no_dledger(
    name: str, damaged: str, tmp_path: Path
) -> None:
    """Four wrong bytes, or another name of the folder, made the store one whose log is lost."""
    store = dledger_store(tmp_path)
    if damaged != "no file":
        overwrite(f"dledger-n0/{damaged}/{log_name(0)}", 0, b"\xff" * 4)(store)
    (store / "dledger-n0").rename(store / name)
    (only,) = verify(store)
    assert "RMQDISK-42" == only.law
    assert [] == list(store_disagreements(store))
    assert "DLedger" in refused(store, tmp_path / "out")


@pytest.mark.checks("RMQDISK-42")
def test_a_store_that_went_on_with_dledger_is_named(tmp_path: Path) -> None:
    """Its first messages lie in the usual log, and the later ones in that of DLedger."""
    store = dledger_store(tmp_path)
    whole = copied_store(tmp_path / "usual")
    shutil.copytree(whole / "commitlog", store / "commitlog", dirs_exist_ok=True)
    units = bytearray((whole / QUEUE).read_bytes())
    struct.pack_into(">qiq", units, 12 * 20, 16384 + 48, 200, 0)
    (store / QUEUE).write_bytes(units)
    (only,) = verify(store)
    assert "RMQDISK-42" == only.law
    assert [] == list(store_disagreements(store))


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("new", [0, 4, 9])
def test_a_false_start_without_dledger_hides_no_dledger(new: int, tmp_path: Path) -> None:
    """The log "was replaced": a broker had begun one at 0, and the last units may be of that."""
    store, other = dledger_store(tmp_path), copied_store(tmp_path / "other")
    shutil.copytree(other / "commitlog", store / "commitlog", dirs_exist_ok=True)
    units = bytearray((store / QUEUE).read_bytes())
    began = (other / QUEUE).read_bytes()
    units[20 * (12 - new) : 20 * 12] = began[: 20 * new]
    (store / QUEUE).write_bytes(units)
    (only,) = verify(store)
    assert "RMQDISK-42" == only.law
    assert "dledger-n0/data" in only.message
    assert [] == list(store_disagreements(store))
    assert "DLedger" in refused(store, tmp_path / "out")


def test_a_group_that_is_left_over_changes_nothing(tmp_path: Path) -> None:
    """A store that went back to the usual log is judged by it."""
    store = dledger_store(tmp_path)
    shutil.copytree(copied_store(tmp_path / "usual"), store, dirs_exist_ok=True)
    assert [] == defects(store)
    assert [] == list(store_disagreements(store))


# --- a log that was replaced


@pytest.mark.checks("RMQDISK-44")
@pytest.mark.parametrize("name", ["u8msgs-4.9.8", "small-5.5.1", "rolled-4.9.8"])
def test_the_log_of_another_store_is_one_finding(name: str, tmp_path: Path) -> None:
    """Verify wrote 1 021 errors, and the cause was in none of them."""
    store = long_store(tmp_path / "store")
    shutil.rmtree(store / "commitlog")
    shutil.copytree(copied_store(tmp_path / "other", name) / "commitlog", store / "commitlog")
    (only,) = defects(store)
    assert ("RMQDISK-44", Severity.ERROR) == (only.law, only.severity)
    assert "index and queues were made of another log" in only.message
    assert "the index leads up to offset" in only.message
    assert "the queues lead up to offset" in only.message
    assert [] == list(store_disagreements(store))
    before = contents(store)
    rebuilt = rebuild_index(store, None, SLOTS, ENTRIES, in_place=True, all_files=False)
    assert ["RMQDISK-44"] == [one.law for one in rebuilt.findings]
    assert before == contents(store)


@pytest.mark.checks("RMQDISK-44")
def test_an_index_of_a_former_log_is_told_by_the_queues(tmp_path: Path) -> None:
    """A broker that finds no log removes its queues and keeps its index."""
    store = copied_store(tmp_path, "u8msgs-4.9.8")
    shutil.rmtree(store / "index")
    shutil.copytree(long_store(tmp_path / "old") / "index", store / "index")
    found = {one.law: one for one in defects(store)}
    assert Severity.WARNING == found["RMQDISK-44"].severity
    assert "the queues agree" in found["RMQDISK-44"].message
    assert "rebuild" in found["RMQDISK-44"].hint
    assert not found.keys() & {"RMQDISK-28", "RMQDISK-29", "RMQDISK-30", "RMQDISK-31"}
    assert [] == list(store_disagreements(store))


@pytest.mark.checks("RMQDISK-44")
@pytest.mark.parametrize("part", ["index", "consumequeue"])
def test_the_end_that_is_told_is_of_the_part_that_is_wrong(part: str, tmp_path: Path) -> None:
    """It was the end of the right part, where that leads further."""
    store = long_store(tmp_path / "store")
    other = copied_store(tmp_path / "other")
    shutil.rmtree(store / part)
    shutil.copytree(other / part, store / part)
    (told,) = (one for one in defects(store) if one.law == "RMQDISK-44")
    lead = "the queues lead" if part == "consumequeue" else "the index leads"
    _, found, end = told.message.partition(f"{lead} up to offset ")
    assert found
    messages = {at for at, one in CommitLog.open(other).scan() if one.message is not None}
    assert int(end.partition(",")[0]) in messages


@pytest.mark.checks("RMQDISK-44")
@pytest.mark.parametrize(("wrong", "is_other"), [(19, False), (20, True)])
def test_an_index_is_of_another_log_from_three_in_four_wrong_entries_on(
    wrong: int, is_other: bool, tmp_path: Path
) -> None:
    """Of 26 entries 19 wrong ones are damage, which is reported one by one."""
    store = copied_store(tmp_path)
    for index in range(27 - wrong, 27):
        at = entry(index, 4)
        offset = int.from_bytes((store / INDEX).read_bytes()[at : at + 8], "big")
        overwrite(INDEX, at, int64(offset + 1))(store)
    laws = {one.law for one in defects(store)}
    assert is_other == ("RMQDISK-44" in laws)
    assert is_other != ("RMQDISK-29" in laws)
    assert [] == list(store_disagreements(store))


@pytest.mark.checks("DISK-20")
@pytest.mark.parametrize(
    "part", ["commitlog", "consumequeue", "consumequeue/T", "consumequeue/T/0"]
)
def test_a_part_of_a_store_names_the_store(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder of the log `verify .` said that nothing of RocketMQ is there."""
    store = long_store(tmp_path / "store")
    monkeypatch.chdir(store / part)
    for path in (Path(), Path("..", Path(part).name), store / part):
        (only,) = verify(path)
        assert "DISK-20" == only.law
        assert only.message.endswith(f"of a store of RocketMQ: give the path of the store, {store}")
        with pytest.raises(InvalidArgumentError, match=f"give the path of the store, {store}"):
            list(salvage(path, tmp_path / "out"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other" / "log").mkdir(parents=True)
    (none,) = verify(tmp_path / "other" / "log")
    assert none.message == "there is nothing of Kafka's here, and no store of RocketMQ"


# --- a folder with older files of the log


def archived(top: Path, count: int = 2) -> tuple[Path, Path]:
    """Move the first files of a log to a folder that has nothing else; return store and folder."""
    store = long_store(top / "store")
    folder = top / "old" / "commitlog"
    folder.mkdir(parents=True)
    for path in sorted((store / "commitlog").iterdir())[:count]:
        path.rename(folder / path.name)
    return store, folder


@pytest.mark.checks("RMQDISK-41", "RMQDISK-42")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_store_beside_an_archive_of_older_files_is_judged(count: int, tmp_path: Path) -> None:
    """Nothing of it was checked, and salvage ended: its older files had expired, and copies of
    them lay in a folder of their own."""
    store, folder = archived(tmp_path, count)
    found, summaries = verified(store)
    assert [] == [one for one in found if one.is_defect]
    (note,) = (one for one in found if one.law == "RMQDISK-41")
    assert (os.fspath(folder), str(count)) == (note.path, note.actual)
    assert "storePathCommitLog" in note.message
    assert (Verdict.SOUND, count) == (summaries[0].verdict, summaries[0].not_looked_into)
    told = salvage_store(store, tmp_path / "out")
    assert told.has_every_message
    assert [os.fspath(folder) in one for one in told.left_out] == [True]
    rebuild_index(store, tmp_path / "rebuilt", SLOTS, ENTRIES)
    summaries.clear()
    list(verify(folder.parent, on_summary=summaries.append))
    assert Verdict.NOT_CHECKED is not summaries[0].verdict
    damaged = sorted((store / "commitlog").iterdir())[0]
    flip_bits(damaged, 4)
    assert "RMQDISK-24" in {one.law for one in verify(store)}


@pytest.mark.checks("RMQDISK-42")
def test_files_that_lie_in_turn_are_no_archive(tmp_path: Path) -> None:
    """A broker makes files on each of its disks in turn, and an empty one before it needs it."""
    store, folder = archived(tmp_path, 1)
    last = max((store / "commitlog").iterdir())
    (folder / last.name).write_bytes(bytes(LOG_BYTES))
    assert ["RMQDISK-42"] == [one.law for one in verify(store)]
    (folder / last.name).unlink()
    (store / "commitlog" / log_name(2 * LOG_BYTES)).rename(folder / log_name(2 * LOG_BYTES))
    assert ["RMQDISK-42"] == [one.law for one in verify(store)]


@pytest.mark.checks("RMQDISK-42")
def test_a_log_that_the_index_contradicts_is_no_part(tmp_path: Path) -> None:
    """The queues of a store are gone and it lacks its first file: the log of another store, in a
    folder beside it, was taken for that file, and none of both was checked."""
    store = long_store(tmp_path / "store")
    (store / "commitlog" / log_name(0)).unlink()
    shutil.rmtree(store / "consumequeue")
    other = long_store(tmp_path / "other", topic="Another", step=53)
    for path in sorted((other / "commitlog").iterdir())[1:]:
        path.unlink()
    for part in ("consumequeue", "index"):
        shutil.rmtree(other / part)
    (other / "checkpoint").unlink()
    assert "RMQDISK-42" not in {one.law for one in verify(store)}
    assert "RMQDISK-42" not in {one.law for one in verify(other)}
    assert salvage_store(other, tmp_path / "out", mapped_file_size=LOG_BYTES).is_whole


@pytest.mark.checks("RMQDISK-42")
def test_a_file_that_is_not_full_has_no_next_one(tmp_path: Path) -> None:
    """A store with queues in RocksDB, and the later files of another store: no row."""
    store = long_store(tmp_path / "store", 5)
    other = long_store(tmp_path / "other")
    assert 1 == len(list((store / "commitlog").iterdir()))
    (other / "commitlog" / log_name(0)).unlink()
    for top, parts in ((store, ("consumequeue", "index")), (other, ("consumequeue", "index"))):
        for part in parts:
            shutil.rmtree(top / part)
    (other / "checkpoint").unlink()
    assert "RMQDISK-42" not in {one.law for one in verify(store)}
