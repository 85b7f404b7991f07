# SPDX-License-Identifier: Apache-2.0
"""A stray file of a segment beside partitions hides none of them, whoever reads the directory.

One sound log that lay in a data directory made it "sound": its partitions were never visited.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from segproof.files import REAL_FILES
from segproof.findings import Severity, Summary, Verdict
from segproof.inventory.stores import find_places
from segproof.reading.directory_kinds import STRAY
from segproof.rebuilding.segment_build import Options
from segproof.repair import rebuild_all, salvage
from segproof.verification import verify
from segproof.verifying import unread_files
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, partition_of
from segproof_harness.reports.verdicts import split_commands
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import verified
from segproof_tests.store_files import copied_store

PLAIN = partition_of(KAFKA / "plain")
LOG = "00000000000000000000.log"
STRAYS = (
    LOG,
    "00000000000000000007.index",
    "7.log",
    "00000000000000000000.log.deleted",
    "00000000000000000007.log.swap",
    "0-1-v1.log",
    "00000000000000000000-nTUvKKLyQvyLgNeBaVtNmA.log",
)


def damaged(data: Path, *, named: bool = True, brokers: bool = True) -> Path:
    """Return a data directory with one damaged partition and a sound one."""
    for name in ("a-0", "b-0"):
        shutil.copytree(PLAIN, data / name)
    flip_bits(data / "a-0" / LOG, 100)
    if brokers:
        (data / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    return data


@pytest.mark.checks("DISK-3", "DISK-45")
@pytest.mark.parametrize("stray", STRAYS)
@pytest.mark.parametrize(("folder", "brokers"), [("data", True), ("kafka-logs-1", False)])
def test_a_stray_file_hides_no_partition(
    tmp_path: Path, stray: str, folder: str, *, brokers: bool
) -> None:
    """The damage in a partition beside it is told, and so is the file."""
    data = damaged(tmp_path / folder, brokers=brokers)
    shutil.copy(PLAIN / LOG, data / stray)
    found, summaries = verified(data)
    assert "BATCH-3" in {one.law for one in found if one.path == str(data / "a-0" / LOG)}
    own = {(one.law, one.severity) for one in found if one.path == str(data / stray)}
    assert own == {("DISK-3", Severity.ERROR), ("DISK-45", Severity.NOTE)}
    assert {str(data / "a-0"), str(data / "b-0")} <= {one.path for one in summaries}


@pytest.mark.checks("DISK-3", "DISK-45")
@pytest.mark.parametrize(
    "told", ["the end", "another end", "begin", "above", "two", "two ends", "nothing"]
)
def test_a_partition_without_its_folder_is_one_finding(
    tmp_path: Path, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive unpacked at the wrong place: 18 errors, and none named the topic or a step."""
    data = damaged(tmp_path / "data")
    for path in PLAIN.iterdir():
        shutil.copy(path, data)
    lines = {
        "the end": ["x 3 746", "y 0 7"],
        "another end": ["x 3 745"],
        "begin": ["x 3 0"],
        "above": ["x 3 99999"],
        "two": ["x 3 1", "y 0 2"],
        "two ends": ["x 3 746", "y 0 746"],
        "nothing": ["a 0 746"],
    }[told]
    text = "\n".join(["0", str(len(lines)), *lines, ""])
    (data / "recovery-point-offset-checkpoint").write_text(text)
    monkeypatch.chdir(tmp_path)
    found, summaries = verified("data")
    (one,) = [one for one in found if one.law == "DISK-3"]
    assert ("data/" + LOG, Severity.ERROR) == (one.path, one.severity)
    assert "27 files of segments lie so, 9 logs with offsets 0 to 745" in one.message
    assert "of topic id K1r5SbjTQ2y24zoosPP8Eg" in one.message
    assert (told != "nothing") is ("the checkpoints here name x-3" in one.message)
    assert ("x-3, y-0" in one.message) is (told in ("two", "two ends"))
    names = {path.name for path in PLAIN.iterdir()}
    assert len(names) == summaries[0].not_looked_into
    for command in split_commands(one.hint)[1]:
        subprocess.run(["bash", "-ec", command.replace("segproof", "true")], check=True)
    (copy,) = (tmp_path / "loose").glob("*/*")
    assert ("x-3" if told == "the end" else "unknown-0") == copy.name
    assert (told != "the end") is ("which these files do not say" in one.hint)
    assert (told == "the end") is ("x-3 with this end" in one.message)
    assert names == {path.name for path in copy.iterdir()}
    assert not [each for each in verify(copy) if each.is_defect]
    done = list(salvage(data, tmp_path / "saved"))
    assert 3 == len(done)


@pytest.mark.checks("DISK-3")
@pytest.mark.parametrize(
    ("file", "told", "is_named"),
    [
        ("log-start-offset-checkpoint", "x 3 746", False),
        ("cleaner-offset-checkpoint", "x 3 746", False),
        ("replication-offset-checkpoint", "x 3 746", True),
        ("replication-offset-checkpoint", "x 3 747", False),
        ("log-start-offset-checkpoint", "x 3 0", True),
    ],
)
def test_only_an_end_names_a_partition(
    tmp_path: Path, file: str, told: str, *, is_named: bool
) -> None:
    """Where a log starts is not where it ends, and no checkpoint is above the end."""
    data = damaged(tmp_path / "data")
    for path in PLAIN.iterdir():
        shutil.copy(path, data)
    is_begin = told == "x 3 0"
    if is_begin or told == "x 3 747":
        (data / "recovery-point-offset-checkpoint").write_text("0\n1\nx 3 746\n")
    (data / file).write_text(f"0\n1\n{told}\n")
    (one,) = verify(data, laws=["DISK-3"])
    assert is_named is ("x-3 with this end" in one.message)
    assert is_named is ("/x-3" in one.hint)


@pytest.mark.checks("DISK-3")
@pytest.mark.parametrize("name", ["00000000000000000050.log", "00000000000000000745.log"])
@pytest.mark.parametrize("is_empty", [True, False])
def test_loose_logs_of_two_partitions_are_not_one(
    tmp_path: Path, name: str, *, is_empty: bool
) -> None:
    """Commands put the logs of two partitions into one folder."""
    data = damaged(tmp_path / "data")
    for path in PLAIN.iterdir():
        shutil.copy(path, data)
    (data / name).write_bytes(b"" if is_empty else (PLAIN / LOG).read_bytes())
    (data / "recovery-point-offset-checkpoint").write_text("0\n1\nx 3 746\n")
    (one,) = verify(data, laws=["DISK-3"])
    assert "10 logs with offsets that overlap" in one.message
    assert f"and {name} begins at" in one.message
    assert "as those of one partition" not in one.message
    assert "cp " not in one.hint
    assert "a folder of its own for the logs of each partition" in one.hint
    assert "x-3 with this end" not in one.message


@pytest.mark.checks("DISK-3")
def test_every_reader_walks_past_a_stray_log(tmp_path: Path, capfd: Capsys) -> None:
    """Salvage saves the partitions and names the log; rebuild and tables take the partitions."""
    data = damaged(tmp_path / "data")
    shutil.copy(PLAIN / LOG, data / LOG)
    done = list(salvage(data, tmp_path / "saved"))
    assert sorted(os.listdir(tmp_path / "saved"))[:2] == ["a-0", "b-0"]
    assert str(data / LOG) in " ".join(line for one in done for line in one.left_out)
    before = sorted(os.listdir(data))
    rebuilt = list(rebuild_all([data], options=Options(in_place=True)))
    assert {str(data / "a-0"), str(data / "b-0")} == {one.path for one in rebuilt}
    assert before == sorted(os.listdir(data))
    assert cli.run(["ls", str(data)]) in (0, 1)
    told = capfd.readouterr()
    assert "a-0" in told.out
    assert "b-0" in told.out
    assert f"{data}/{LOG}" in told.err
    assert cli.run(["dump", str(data)]) == 1
    assert LOG in capfd.readouterr().err


def test_a_stray_log_hides_no_store(tmp_path: Path) -> None:
    """A folder with a log of Kafka and a partition is searched for stores."""
    store = copied_store(tmp_path / "both" / "store")
    shutil.copytree(PLAIN, tmp_path / "both" / "a-0")
    shutil.copy(PLAIN / LOG, tmp_path / "both" / LOG)
    assert [str(store)] == [one.path for one in find_places(str(tmp_path / "both"), REAL_FILES)]


@pytest.mark.checks("DISK-45")
@pytest.mark.parametrize("name", ["old", "old-1"])
def test_a_folder_in_a_partition_is_not_looked_into(tmp_path: Path, name: str) -> None:
    """No broker reads it, and no check: the verdict counts its files."""
    shutil.copytree(PLAIN, tmp_path / "plain-0")
    shutil.copytree(PLAIN, tmp_path / "plain-0" / name)
    found, summaries = verified(tmp_path / "plain-0")
    (note,) = [one for one in found if one.law == "DISK-45"]
    assert str(tmp_path / "plain-0" / name) == note.path
    count = len(os.listdir(PLAIN))
    assert f"({count} files)" in note.message
    assert (Verdict.SOUND, count) == (summaries[0].verdict, summaries[0].not_looked_into)


def old_partition(folder: Path, *, indexes: bool = True) -> Path:
    """Write a partition of a release that keeps no file of its own beside the segments."""
    folder.mkdir(parents=True)
    for path in PLAIN.iterdir():
        if path.suffix == ".log" or (indexes and path.suffix in (".index", ".timeindex")):
            shutil.copy(path, folder)
    return folder


@pytest.mark.checks("DISK-45")
@pytest.mark.parametrize(
    ("inside", "indexes"),
    [("empty", False), ("a file", True), ("a log", False), ("a link to nothing of Kafka", True)],
)
def test_a_folder_of_such_a_name_makes_no_data_directory(
    tmp_path: Path, capfd: Capsys, inside: str, *, indexes: bool
) -> None:
    """A partition of old releases with a folder orders-0 in it was refused by dump, ls and salvage.

    It has neither an epoch checkpoint nor a topic id, and the folder made it a data directory.
    """
    folder = old_partition(tmp_path / "old-0", indexes=indexes)
    inner = folder / "orders-0"
    if inside == "a link to nothing of Kafka":
        (tmp_path / "elsewhere").mkdir()
        inner.symlink_to(tmp_path / "elsewhere")
    else:
        inner.mkdir()
    if inside == "a file":
        (inner / "CURRENT").write_bytes(b"x")
    elif inside == "a log":
        (inner / LOG).write_bytes(bytes(10))
    count = len(list(folder.glob("*.log")))
    found, summaries = verified(folder)
    assert [(str(folder), count)] == [(one.path, one.segments) for one in summaries]
    assert str(inner) in {one.path for one in found if one.law == "DISK-45"}
    (done,) = salvage(folder, tmp_path / "saved")
    assert (str(tmp_path / "saved" / "old-0"), []) == (done.target, done.left_out)
    assert cli.run(["ls", str(folder)]) == 0
    assert cli.run(["dump", str(folder), "--max", "2"]) == 0
    assert cli.run(["rebuild", str(folder), "--out", str(tmp_path / "rebuilt")]) in (0, 1)
    assert STRAY not in capfd.readouterr().err


@pytest.mark.checks("DISK-60")
def test_removed_logs_make_a_partition_too(tmp_path: Path) -> None:
    """An old partition with a copy of itself in it was "sound", though all its logs are removed."""
    folder = old_partition(tmp_path / "old-0")
    shutil.copytree(folder, folder / "old-0")
    for path in [one for one in folder.iterdir() if one.is_file()]:
        path.rename(path.with_name(path.name + ".deleted"))
    found = [one.path for one in verify(folder) if one.law == "DISK-60"]
    assert sorted(str(one) for one in folder.glob("*.log.deleted")) == found


@pytest.mark.checks("DISK-3")
def test_a_lone_log_in_a_directory_of_partitions_makes_no_partition(tmp_path: Path) -> None:
    """kafka-logs-1 with whole partitions below, one of an old release, and a log beside them."""
    data = tmp_path / "kafka-logs-1"
    old_partition(data / "old-0")
    shutil.copy(PLAIN / LOG, data / LOG)
    found = list(verify(data))
    assert {"DISK-3", "DISK-45"} == {one.law for one in found if one.path == str(data / LOG)}
    (done, left_out) = salvage(data, tmp_path / "saved")
    assert str(tmp_path / "saved" / "old-0") == done.target
    assert STRAY in left_out.left_out[0]


@pytest.mark.checks("DISK-45")
def test_a_count_that_ends_early_says_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are counted at any depth, up to a bound, and links in a circle end."""
    monkeypatch.setattr(unread_files, "FILES_COUNTED", 5)
    shutil.copytree(PLAIN, tmp_path / "plain-0")
    inner = tmp_path / "plain-0" / "old" / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "loop").symlink_to(tmp_path / "plain-0" / "old")
    for number, words in ((4, "(4 files)"), (9, "(at least 5 files)")):
        for one in range(number):
            (inner / str(one)).touch()
        (note,) = verify(tmp_path / "plain-0", laws=["DISK-45"])
        assert words in note.message


@pytest.mark.checks("DISK-42", "LOAD-1")
@pytest.mark.parametrize(
    ("base", "beside"),
    [
        *((342, one) for one in ("nothing", "empty", "cut", "whole", "zeros", "a page of zeros")),
        *((base, one) for base in (0, 693) for one in ("nothing", "whole", "a page of zeros")),
    ],
)
def test_a_cleaned_log_alone_holds_its_offsets(base: int, beside: str, tmp_path: Path) -> None:
    """It was "sound": Kafka deletes it, "and the segments that it was made from stay"."""
    folder = tmp_path / "data" / PLAIN.name
    shutil.copytree(PLAIN, folder, copy_function=shutil.copyfile)
    log = folder / f"{base:020d}.log"
    whole = log.read_bytes()
    (folder / f"{log.name}.cleaned").write_bytes(whole)
    for path in folder.glob(f"{base:020d}.*index"):
        path.unlink()
    page = len(whole) // 2
    log.write_bytes({
        "cut": whole[:page],
        "whole": whole,
        "zeros": bytes(len(whole)),
        "a page of zeros": whole[:page] + bytes(4096) + whole[page + 4096 :],
    }.get(beside, b""))  # fmt: skip
    if beside == "nothing":
        log.unlink()
    os.utime(folder, (0, 0))
    summaries: list[Summary] = []
    found = {one.law: one for one in verify(folder, on_summary=summaries.append)}
    (told,) = salvage(folder, tmp_path / "out")
    words = " ".join(told.left_out)
    if beside == "whole":
        assert "DISK-42" not in found
        assert "stay" in found["LOAD-1"].message
        assert "without .cleaned" not in words
        return
    assert "this may be the only copy" in found["DISK-42"].message
    assert "are not here" in found["LOAD-1"].message
    assert "copy this file away" in found["LOAD-1"].hint
    assert summaries[-1].verdict is not Verdict.SOUND
    assert "without .cleaned in its name" in words
