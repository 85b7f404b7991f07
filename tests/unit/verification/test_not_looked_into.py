# SPDX-License-Identifier: Apache-2.0
"""Sound is said only of what was read: each file that the code knows is read, or it is listed.

The tests walk every name that the code knows. A name is right if the check of a directory with a
broken file of that name opens and reads the file, or names it in a finding of DISK-45 or
RMQDISK-41.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from segproof.files import File, Files, RealFiles
from segproof.findings import NOT_LOOKED_INTO, Finding, Severity, Summary, Verdict
from segproof.reading import file_names
from segproof.reading.file_names import OFFSET_CHECKPOINTS, NameKind, read_file_name
from segproof.reading.store_paths import PARTS
from segproof.reading.unread_places import UNREAD_NAMES
from segproof.repair import salvage
from segproof.verification import verify
from segproof.verifying.rocketmq import unread_parts
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, partition_of
from segproof_harness.reports.verdicts import split_commands
from segproof_tests.partition_files import write_segment
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import verified
from segproof_tests.small_logs import batch
from segproof_tests.store_files import copied_store

ZERO = "0" * 20
ID = "AAAAAAAAAAAAAAAAAAAAAA"
BROKEN = b"\xff\x00 broken \xff" * 9
IN_PARTITION = (
    *(ZERO + suffix for suffix in file_names.SEGMENT_SUFFIXES),
    f"{ZERO}.snapshot", "leader-epoch-checkpoint", "partition.metadata", "quorum-state",
    "remote_log_snapshot", f"{ZERO}-0000000001.checkpoint", f"{ZERO}-0000000001.checkpoint.part",
)  # fmt: skip
ON_THEIR_WAY = (
    f"{ZERO}.log.deleted", f"{ZERO}.log.swap", f"{ZERO}.index.swap", f"{ZERO}.log.cleaned",
    f"{ZERO}.snapshot.deleted", f"{ZERO}-0000000001.checkpoint.deleted", f"{ZERO}.swap",
    *(f"{name}.tmp" for name in IN_PARTITION if not name.startswith(f"{ZERO}.")),
    f"{ZERO}.snapshot.tmp",
)  # fmt: skip
REMOTE = tuple(
    f"{ZERO}-{ID}{suffix}"
    for suffix in (
        *(".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".leader_epoch_checkpoint"),
        *(".leader-epoch-checkpoint", ".indexes", ".rsm-manifest"),
    )
)


class Spy:
    """The files of the operating system; `read` gets the paths of which bytes were read."""

    def __init__(self) -> None:
        self._files = RealFiles()
        self.read: set[str] = set()

    def open(self, path: str, **how: bool) -> File:
        """Open a file; note it once bytes are read."""
        return cast(File, _SpiedFile(self._files.open(path, **how), path, self.read))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


class _SpiedFile:
    def __init__(self, file: File, path: str, read: set[str]) -> None:
        self._file, self._path, self._read = file, path, read

    def pread(self, size: int, position: int) -> bytes:
        """Read, and note it."""
        self._read.add(self._path)
        return self._file.pread(size, position)

    def pread_into(self, buffer: memoryview, position: int) -> int:
        """Read, and note it."""
        self._read.add(self._path)
        return self._file.pread_into(buffer, position)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def looked_at(path: Path) -> tuple[set[str], set[str], list[Finding]]:
    """Verify; return which files were read, which are listed as not looked into, and all."""
    spy = Spy()
    found = list(verify(path, files=cast(Files, spy)))
    return spy.read, {one.path for one in found if one.is_not_looked_into}, found


def assert_read_or_listed(root: Path, path: Path) -> None:
    """A broken file is read and told as a defect, or it is listed; never both, never nothing."""
    read, listed, found = looked_at(root)
    if str(path) in listed:
        (one,) = (one for one in found if one.path == str(path) and one.is_not_looked_into)
        assert Severity.NOTE is one.severity
        assert "it was not looked into: " in one.message
        return
    assert str(path) in read, f"{path.name} is neither read nor listed"
    assert any(one.path == str(path) for one in found), f"{path.name} is read, and not judged"


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Path:
    """A data directory with one sound partition."""
    folder = tmp_path / "data"
    shutil.copytree(partition_of(KAFKA / "unclean-before"), folder / "unclean-0")
    assert not list(verify(folder, laws=NOT_LOOKED_INTO))
    return folder


@pytest.mark.checks("DISK-45")
@pytest.mark.parametrize("name", [*IN_PARTITION, *ON_THEIR_WAY])
def test_each_file_of_a_partition_is_read_or_listed(data: Path, name: str) -> None:
    """A KRaft snapshot of zeros was no word's worth: sound."""
    path = data / "unclean-0" / name
    path.write_bytes(BROKEN)
    assert_read_or_listed(data, path)


@pytest.mark.checks("DISK-45")
@pytest.mark.parametrize("name", sorted(file_names.KNOWN_IN_DATA_DIRECTORY))
def test_each_file_beside_partitions_is_read_or_listed(data: Path, name: str) -> None:
    """What a broker keeps beside its partitions, and each of these names with `.tmp`."""
    path = data / name
    path.write_bytes(BROKEN)
    assert_read_or_listed(data, path)
    path.rename(data / f"{name}.tmp")
    assert_read_or_listed(data, data / f"{name}.tmp")


@pytest.mark.checks("DISK-45")
@pytest.mark.parametrize("name", REMOTE)
@pytest.mark.parametrize("passing", ["", ".deleted", ".tmp"])
def test_each_file_of_a_remote_segment_is_read_or_listed(
    tmp_path: Path, name: str, passing: str
) -> None:
    """Files of segments in tiered storage, as a plugin packs them too."""
    folder = tmp_path / "remote"
    folder.mkdir()
    (folder / f"{ZERO[:-1]}7-{ID}.log").write_bytes(b"")
    (folder / f"{name}{passing}").write_bytes(BROKEN)
    read, listed, found = looked_at(folder)
    told = {Path(path).name for path in listed}
    assert f"{name}{passing}" in told or str(folder / name) in read
    assert any(Path(one.path).name.startswith(ZERO) for one in found)


def test_a_small_file_of_a_remote_segment_is_read_beside_the_log(tmp_path: Path) -> None:
    """Alone it was neither read nor told: which offset it is of, only the log says."""
    folder = tmp_path / "remote"
    folder.mkdir()
    (folder / f"{ZERO}-{ID}.log").write_bytes(b"")
    for suffix in (".snapshot", ".leader_epoch_checkpoint"):
        path = folder / f"{ZERO}-{ID}{suffix}"
        path.write_bytes(BROKEN)
        read, listed, found = looked_at(folder)
        assert str(path) in read - listed
        assert any(one.path == str(path) and one.is_defect for one in found)


STORE_NAMES = {*PARTS, *unread_parts.KNOWN_NAMES, *UNREAD_NAMES}


@pytest.mark.checks("RMQDISK-41")
@pytest.mark.parametrize(
    "name",
    [
        *sorted(STORE_NAMES),
        *("backup", "notes.txt", "timerwheel.1000", "dledger-n0", "config/notes"),
        *("config/topics.json", "config/topics.json.bak", "timerlog/00000000000000000000"),
    ],
)
def test_each_name_in_a_store_is_read_or_listed(tmp_path: Path, name: str) -> None:
    """The broken topics of a broker, and its timers, were sound."""
    store = tmp_path / "store"
    shutil.copytree(KAFKA.parent / "rocketmq" / "small-4.9.8" / "store", store)
    assert not list(verify(store, laws=NOT_LOOKED_INTO))
    path = store / name
    if path.is_dir():
        path = next(one for one in path.rglob("*") if one.is_file())
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(BROKEN)
    read, listed, found = looked_at(store)
    is_marker = name == "abort"  # its presence is what it says
    is_no_folder = any(one.path == str(path) and one.law == "DISK-1" for one in found)
    assert str(path) in (read | listed) or is_marker or is_no_folder
    assert any(Path(one.path).is_relative_to(store / name) for one in found)


def test_no_name_that_the_code_knows_is_left_out() -> None:
    """Each alternative of the patterns of names has a name in the tests above."""
    names = {*IN_PARTITION, *(one.removesuffix(".part") for one in IN_PARTITION)}
    for alternative in file_names.KNOWN_IN_PARTITION.pattern.split("|"):
        assert any(re.fullmatch(alternative, name) for name in names), alternative
    suffixes = re.search(r"\?P<suffix>([^)]+)\)", file_names.REMOTE_NAME.pattern)
    assert suffixes is not None
    for alternative in suffixes[1].split("|"):
        assert any(re.search(f"({alternative})$", name) for name in REMOTE), alternative
    kinds = {read_file_name(name).kind for name in (*IN_PARTITION, *ON_THEIR_WAY)}
    assert {NameKind.SEGMENT, NameKind.KNOWN, NameKind.PENDING} == kinds
    assert set(OFFSET_CHECKPOINTS) < file_names.KNOWN_IN_DATA_DIRECTORY


@pytest.mark.checks("DISK-45")
def test_folders_that_are_passed_over_are_listed(data: Path) -> None:
    """A partition that is to be deleted, and what lies too deep."""
    gone = data / f"gone-0.{'a' * 32}-delete"
    shutil.copytree(data / "unclean-0", gone)
    deep = data.joinpath(*map(str, range(20)), "deep-0")
    shutil.copytree(data / "unclean-0", deep)
    too_deep = data.joinpath(*map(str, range(17)))
    listed = {one.path for one in verify(data, laws=NOT_LOOKED_INTO)}
    assert {str(gone), str(too_deep)} == listed


def redpanda(tmp_path: Path) -> Path:
    """Return a data directory of Redpanda with two partitions."""
    data = tmp_path / "data"
    for topic, folder in (("plain", "0_12"), ("other", "3_40")):
        path = data / "kafka" / topic / folder
        path.mkdir(parents=True)
        (path / "0-1-v1.log").write_bytes(BROKEN)
        (path / "0-1-v1.base_index").write_bytes(bytes(81))
        (path / "archival_metadata.snapshot").write_bytes(bytes(64))
    (data / "config_cache.yaml").write_text("x: 1")
    return data


@pytest.mark.checks("DISK-46")
@pytest.mark.parametrize(
    ("below", "named"),
    [
        ("..", ""), ("", ""), ("kafka", "kafka"), ("kafka/plain", "kafka/plain"),
        ("kafka/plain/0_12", "kafka/plain/0_12"),
        ("kafka/plain/0_12/0-1-v1.log", "kafka/plain/0_12/0-1-v1.log"),
        ("kafka/plain/0_12/0-1-v1.base_index", "kafka/plain/0_12/0-1-v1.base_index"),
    ],
)  # fmt: skip
def test_the_layout_of_redpanda_is_named_and_not_judged(
    tmp_path: Path, below: str, named: str
) -> None:
    """A file of it was "readable with defects", to be moved away; a directory was nothing."""
    data = redpanda(tmp_path)
    path = data / below
    (one,) = verify(path)
    expected = data / named if below != ".." else path / "data"
    assert ("DISK-46", str(expected), Severity.WARNING) == (one.law, one.path, one.severity)
    (told,) = summaries_of(path, laws=["OFFIDX-1"])
    assert (Verdict.NOT_CHECKED, 0) == (told.verdict, told.bytes_checked)


@pytest.mark.checks("DISK-46")
@pytest.mark.parametrize("verb", ["salvage", "rebuild"])
def test_nothing_is_made_of_the_layout_of_redpanda(
    tmp_path: Path, verb: str, capsys: Capsys
) -> None:
    """Its files are no logs of Kafka: the verbs refuse them, and write nothing."""
    data, out = redpanda(tmp_path), tmp_path / "out"
    assert 2 == cli.run([verb, str(data), "--out", str(out)])
    assert not out.exists() or not list(out.iterdir())
    assert str(data) in capsys.readouterr().err


# --- what verdicts and exit codes say


def summaries_of(path: Path, **asked: Any) -> list[Summary]:
    """Return the summaries of a run."""
    _, told = verified(path, **asked)
    return told


@pytest.mark.slow
@pytest.mark.checks("DISK-45")
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_verdict_counts_what_was_not_looked_into(data: Path, count: int, capsys: Capsys) -> None:
    """The partition is sound, and the verdict says of how many files it says nothing."""
    folder = data / "unclean-0"
    for number in range(count):
        (folder / f"0000000000000000000{number}.log.deleted").write_bytes(b"x")
    (one,) = summaries_of(folder)
    assert (Verdict.SOUND, count) == (one.verdict, one.not_looked_into)
    head = {0: "sound:", 1: "sound, 1 file not looked into:"}
    assert 0 == cli.run(["verify", str(folder), "--summary"])
    text = capsys.readouterr()
    assert text.out.startswith(head.get(count, "sound, 3 files not looked into:"))
    assert (f"{count} file" in text.err) is (count > 0)
    assert (1 if count else 0) == cli.run(["verify", str(folder), "--fail-on", "not-checked"])
    assert 0 == cli.run(["verify", str(folder), "--fail-on", "warning"])
    capsys.readouterr()
    cli.run(["verify", str(folder), "--format", "jsonl"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (told,) = (row for row in rows if row.get("type") == "summary")
    assert count == told["not_looked_into"]


@pytest.mark.checks("DISK-45")
@pytest.mark.parametrize(
    "name", ["remote_log_snapshot", f"{ZERO}.log.deleted", f"{ZERO}.log.cleaned"]
)
def test_a_file_alone_that_no_check_reads_is_not_checked(
    data: Path, name: str, capsys: Capsys
) -> None:
    """A path of which nothing was read must not pass, whatever is asked for."""
    path = data / "unclean-0" / name
    path.write_bytes(BROKEN)
    (one,) = summaries_of(path)
    assert (Verdict.NOT_CHECKED, 1, 0) == (one.verdict, one.not_looked_into, one.bytes_checked)
    assert 1 == cli.run(["verify", str(path), "--law", "OFFIDX-1"])
    assert "not checked: " in capsys.readouterr().out


@pytest.mark.checks("RMQDISK-41")
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("abort", b"", "judged with its store"),
        ("abort", b"4711", "judged with its store"),
        ("lock", b"lock", "a broker's lock file"),
        ("lock", b"other", "this one does not"),
        ("timerwheel", BROKEN, "compared with the timer log"),
        ("timerwheel.12", BROKEN, "a saved state of the timer wheel"),
        ("brokerIdentity", BROKEN, "identity of the broker"),
        ("config/timercheck", BROKEN, "compared with the timer log"),
    ],
)
def test_a_file_of_a_store_alone_is_not_checked(
    name: str, content: bytes, reason: str, tmp_path: Path
) -> None:
    """It was "unreadable: no file of Kafka or RocketMQ has such a name", and the store names it."""
    store = copied_store(tmp_path)
    for folder in (store, tmp_path / "elsewhere"):
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content)
    (found,), told = verified(store / name)
    assert ("RMQDISK-41", Severity.WARNING) == (found.law, found.severity)
    assert reason in found.message
    assert [(Verdict.NOT_CHECKED, 1)] == [(one.verdict, one.not_looked_into) for one in told]
    (stray,) = verify(tmp_path / "elsewhere" / name)
    assert "DISK-20" == stray.law
    unknown = store / "no-such-file"
    unknown.write_bytes(content)
    assert ["DISK-20"] == [one.law for one in verify(unknown)]


@pytest.mark.checks("DISK-45", "RMQDISK-41")
@pytest.mark.parametrize("files", [0, 1, 2])
@pytest.mark.parametrize(
    "folder", ["lost+found", "batchconsumequeue", "t-0.0123456789abcdef0123456789abcdef-delete"]
)
def test_an_empty_folder_has_no_file_to_look_into(
    folder: str, files: int, tmp_path: Path, data: Path
) -> None:
    """The lost+found of a mounted disk was "1 file not looked into", and failed strict runs."""
    place = data if folder.endswith("-delete") else copied_store(tmp_path / "store")
    (place / folder).mkdir()
    for number in range(files):
        (place / folder / f"other.{number}").write_bytes(b"x")
    told = [one.not_looked_into for one in summaries_of(place)]
    assert files == sum(told)


@pytest.mark.checks("DISK-45", "RMQDISK-41")
@pytest.mark.parametrize("path", ["./both", "both/.", ".", "{}/../both"])
def test_a_file_in_a_store_is_told_once_by_each_path(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path with a dot in it let the file count as one outside of the store too."""
    both = tmp_path / "both"
    copied_store(both)
    (both / "store" / "#123").write_text("0\n0\n")
    monkeypatch.chdir(both if path == "." else tmp_path)
    rows = [(one.law, Path(one.path).name, one.severity) for one in verify(both)]
    assert "#123" in [name for _, name, _ in rows]
    found = list(verify(path.format(both)))
    assert rows == [(one.law, Path(one.path).name, one.severity) for one in found]


@pytest.mark.checks("LOAD-1")
def test_a_swap_alone_does_not_count_other_segments(data: Path) -> None:
    """ "Here 0 segments", though the log that it replaces lies beside it."""
    log = next(path for path in sorted((data / "unclean-0").glob("*.log")) if path.stat().st_size)
    swap = log.with_suffix(".log.swap")
    shutil.copyfile(log, swap)
    (alone,) = verify(swap, laws=["LOAD-1"])
    assert "in the place of the segments" in alone.message
    assert "here" not in alone.message
    together = next(one for one in verify(swap.parent, laws=["LOAD-1"]) if one.path == str(swap))
    assert "here one segment" in together.message


def test_an_empty_swap_takes_the_place_of_no_later_log(tmp_path: Path) -> None:
    """It ends behind the offset of its name; an index that lies there without a log is none."""
    one = batch(5)
    folder = tmp_path / "t-0"
    folder.mkdir()
    for name, data in ((".log.swap", b""), (".index", bytes(8))):
        (folder / f"{4:020d}{name}").write_bytes(data)
    (folder / f"{5:020d}.log").write_bytes(one)
    found, summaries = verified(folder)
    assert [1] == [told.batches for told in summaries]
    assert "DISK-2" not in {one.law for one in found}
    (saved,) = salvage(folder, tmp_path / "saved")
    assert (1, 5) == (saved.batches, saved.last_offset)


@pytest.mark.checks("DISK-45")
def test_notes_that_fail_a_run_are_shown(data: Path, capsys: Capsys) -> None:
    """`--no-notes` hides no finding that makes the exit code 1."""
    (data / "unclean-0" / "remote_log_snapshot").write_bytes(BROKEN)
    for options, is_shown in (([], False), (["--fail-on", "not-checked"], True)):
        code = cli.run(["verify", str(data), "--no-notes", *options])
        assert (int(is_shown), is_shown) == (code, "DISK-45" in capsys.readouterr().out)


@pytest.mark.checks("DISK-45")
def test_junit_skips_what_was_not_looked_into(data: Path, capsys: Capsys) -> None:
    """A skipped case; with `--fail-on not-checked` a failed one."""
    (data / "unclean-0" / "remote_log_snapshot").write_bytes(BROKEN)
    command = ["verify", str(data / "unclean-0"), "--format", "junit"]
    for options, skipped, failures in (([], 1, 0), (["--fail-on", "not-checked"], 0, 1)):
        assert failures == cli.run([*command, *options])
        text = capsys.readouterr().out
        assert f'skipped="{skipped}"' in text
        assert f'failures="{failures}"' in text
        assert ("<skipped message=" in text) is (skipped == 1)


UNKNOWN = (
    *(f"{1:020d}{one}" for one in (".LOG", ".Log", ".log.bak", ".log.gz", ".log.1", ".log~")),
    *(f"{1:020d}{one}" for one in ("", ".bak", ".zst", "_log", ".logs", ".log (2)")),
    f"{1:020d}.log.swap.1", "1.LOG", "1.log.bak", "copy of 1.log.old", f"{1:019d}.Log",
    f"x{1:020d}.log.bak", "1.log~",
)  # fmt: skip


@pytest.mark.checks("DISK-3", "DISK-45", "FILE-1", "FILE-2")
@pytest.mark.parametrize(
    ("name", "law"),
    [*((name, "DISK-3") for name in UNKNOWN), ("1.log", "FILE-1"), ("first.log", "FILE-2")],
)
def test_a_log_under_an_unknown_name_is_not_looked_into(
    name: str, law: str, tmp_path: Path
) -> None:
    """The verdict was "sound", and `salvage` said "everything kept" beside a `.LOG`."""
    batches = batch(0), batch(1)
    folder = write_segment(tmp_path / "t-0", batches[0])
    (folder / name).write_bytes(batches[1])
    found, summaries = verified(folder)
    assert {law, "DISK-45"} == {one.law for one in found if one.path.endswith(name)}
    assert 1 == summaries[-1].not_looked_into
    (told,) = salvage(folder, tmp_path / "saved")
    assert not told.is_whole
    assert [name in one for one in told.left_out] == [True]


@pytest.mark.checks("FILE-1", "DISK-63")
def test_a_log_whose_name_lacks_zeros_is_not_lost(tmp_path: Path, capsys: Capsys) -> None:
    """Its hint had a condition that never holds, that of its index spoke of batches."""
    folder = tmp_path / "plain-0"
    shutil.copytree(partition_of(KAFKA / "plain"), folder)
    for path in folder.glob(f"{342:020d}.*"):
        path.rename(folder / f"342{path.suffix}")
    found = list(verify(folder))
    hints = {Path(one.path).suffix: one.hint for one in found if one.law == "FILE-1"}
    assert {".log", ".index", ".timeindex"} == hints.keys()
    assert all("made new from its log" in hints[one] for one in (".index", ".timeindex"))
    (command,) = split_commands(hints[".log"])[1]
    assert f"segproof dump {folder}/342.log" == command
    assert 0 == cli.run(command.split()[1:])
    assert "base_offset: 342 " in capsys.readouterr().out
    (lost,) = [one for one in found if one.law == "DISK-63"]
    assert "342.log may hold them, whose name no broker reads" in lost.message
    assert "up to 78" == lost.actual
    (told,) = salvage(folder, tmp_path / "saved")
    assert 0 == told.lost_offsets
    for path in folder.glob("342.*"):
        path.rename(folder / f"{342:020d}{path.suffix}")
    assert not [one for one in verify(folder) if one.is_defect]


@pytest.mark.checks("DISK-45")
@pytest.mark.parametrize(
    "name", ["notes.txt", "1.txt", "log", "1.index.bak", f"{1:020d}.index.old"]
)
def test_a_stray_file_that_is_no_log(name: str, tmp_path: Path) -> None:
    """Other strays are named, and hold no records."""
    folder = write_segment(tmp_path / "t-0", batch(0))
    (folder / name).write_bytes(b"x")
    assert {"DISK-3"} == {one.law for one in verify(folder)}
