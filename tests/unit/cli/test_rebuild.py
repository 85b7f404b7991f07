# SPDX-License-Identifier: Apache-2.0
"""The verb `rebuild`: rows, summary, exit codes, and what it says where it can't."""

import errno
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from segproof.files import RealFiles
from segproof.kafka import RecordFile
from segproof.kafka.checkpoint_file import write_checkpoint
from segproof_harness import cli
from segproof_harness.files.shipped_directories import partition_of, scenarios, stores
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.printed_rows import Capsys

BY_NAME = {scenario.name: partition_of(scenario) for scenario in scenarios()}
(STORE,) = (store for store in stores() if store.parent.name == "small-5.5.1")
FIELDS = [
    "path", "entries", "old_entries", "changed", "backup", "index_interval_bytes", "interval_from",
    "law", "why",
]  # fmt: skip
SEGMENT = "00000000000000001014"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a private copy of the directory `txn-a`."""
    target = tmp_path / "t-0"
    shutil.copytree(BY_NAME["txn-a"], target, copy_function=shutil.copyfile)
    return target


def images(directory: Path) -> dict[str, bytes]:
    """Return the bytes of each file."""
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_out_writes_rows_and_a_summary(copy: Path, capsys: Capsys) -> None:
    """One object a file, in the order of the directory; the old one is not touched."""
    before = images(copy)
    (copy / f"{SEGMENT}.index").write_bytes(b"\1" * 80)
    damaged = images(copy)
    out = copy.parent / "new" / "t-0"
    assert 0 == cli.run(["rebuild", str(copy), "--out", str(out), "--format", "jsonl"])
    captured = capsys.readouterr()
    rows = [json.loads(line) for line in captured.out.splitlines()]
    assert [FIELDS] * 9 == [list(row) for row in rows]
    assert [f"{out}/{SEGMENT}.index"] == [row["path"] for row in rows if row["changed"]]
    assert [None] == [row["old_entries"] for row in rows if row["changed"]]
    assert "1 of 9 index files changed, 8 sound ones stay, in " in captured.err
    assert damaged == images(copy)
    assert before == images(out)
    assert 0 == cli.run(["verify", str(out), "--deep"])


def test_in_place(copy: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run tells the same and writes nothing; then the old file is replaced, and no other.

    The command that it prints keeps the old file.
    """
    monkeypatch.chdir(copy.parent)
    before = images(copy)
    (copy / f"{SEGMENT}.timeindex").unlink()
    damaged = images(copy)
    row = f"{copy}/{SEGMENT}.timeindex: 108 entries, before: none; DISK-5: it is missing"
    assert 0 == cli.run(["rebuild", str(copy), "--dry-run"])
    captured = capsys.readouterr()
    assert [f"would change: {row}"] == captured.out.splitlines()
    assert "1 of 9 index files would change, 8 sound ones stay" in captured.err
    assert damaged == images(copy)
    (command,) = re.findall("keeps the old files.+: `segproof (.+)`", captured.err)
    assert command.endswith(" --in-place --backup ../replaced")
    assert 0 == cli.run(shlex.split(command))
    assert [f"changed: {row}"] == capsys.readouterr().out.splitlines()
    assert before == images(copy)


def test_an_unsound_old_file_is_not_called_missing(copy: Path, capsys: Capsys) -> None:
    """The next command has the options of the dry run."""
    (copy / f"{SEGMENT}.index").write_bytes(b"\1" * 80)
    options = ["--out", str(copy.parent / "new"), "--max-index-bytes", "4096", "--copy"]
    assert 0 == cli.run(["rebuild", str(copy), "--dry-run", *options])
    captured = capsys.readouterr()
    assert ", before: an unsound file; " in captured.out
    words = ["segproof", "rebuild", str(copy), *options]
    assert f"stay as they are: `{shlex.join(words)}`" in captured.err


def test_a_broken_log_is_a_finding(copy: Path, capsys: Capsys) -> None:
    """Exit 1, the finding as everywhere, and nothing is written."""
    log = copy / f"{SEGMENT}.log"
    flip_bits(log, 5000)
    out = copy.parent / "out"
    assert 1 == cli.run(["rebuild", str(copy), "--out", str(out), "--format", "jsonl"])
    captured = capsys.readouterr()
    (finding,) = map(json.loads, captured.out.splitlines())
    assert (finding["law"], finding["path"]) == ("BATCH-3", str(log))
    assert "all later segments" in finding["message"]
    assert "nothing was written: 1 error" in captured.err
    assert not out.exists()
    arguments = finding["reproduce"].split()
    assert 1 == cli.run(arguments[1:])
    assert finding["law"] in capsys.readouterr().out


def test_a_torn_tail(copy: Path, capsys: Capsys) -> None:
    """It is left out only where that is asked for, which stderr says."""
    last = sorted(copy.glob("*.log"))[-1]
    with last.open("ab") as file:
        file.write(bytes(100))
    out = copy.parent / "out"
    assert 1 == cli.run(["rebuild", str(copy), "--out", str(out)])
    assert "--cut-tail" in capsys.readouterr().out
    assert 0 == cli.run(["rebuild", str(copy), "--out", str(out), "--cut-tail"])
    assert "left out: the last 100 bytes of the last log" in capsys.readouterr().err
    assert (out / last.name).stat().st_size == last.stat().st_size - 100


def test_epochs_behind_the_cut_are_left_out(copy: Path) -> None:
    """A broker that loads the log drops them; the old directory, of links to it, keeps them."""

    def cut(name: str, text: bytes) -> Path:
        epochs.unlink(missing_ok=True)
        epochs.write_bytes(text)
        out = copy.parent / name
        assert 0 == cli.run(["rebuild", str(copy), "--out", str(out), "--cut-tail"])
        assert text == epochs.read_bytes()
        return out

    last, epochs = max(copy.glob("*.log")), copy / "leader-epoch-checkpoint"
    os.truncate(last, last.stat().st_size - 3)
    out = cut("unreadable", b"no epochs")
    assert b"no epochs" == (out / epochs.name).read_bytes()
    with RecordFile.open(str(out / last.name)) as log:
        end = max(batch.next_offset for batch in log.batches())
    begins = ["0 0", f"1 {end - 1}", f"2 {end}", f"3 {end + 9}"]
    kept = (cut("cut", write_checkpoint(begins)) / epochs.name).read_bytes()
    assert write_checkpoint(begins[:2]) == kept


def test_what_is_left_out_is_named(copy: Path, capsys: Capsys) -> None:
    """A foreign file is no reason to stop."""
    (copy / "notes.txt").touch()
    assert 0 == cli.run(["rebuild", str(copy), "--out", str(copy.parent / "out")])
    assert "left out: notes.txt: no file of a partition has this name" in capsys.readouterr().err


def test_profiles(copy: Path, capsys: Capsys) -> None:
    """Old releases enter first offsets: the same positions, other offsets."""
    shown = []
    for profile in ("kafka-1.1.1", "kafka-2.4.1", "kafka-4.3.1", "segproof"):
        out = copy.parent / profile
        assert 0 == cli.run(["rebuild", str(copy), "--out", str(out), "--profile", profile])
        shown.append((out / f"{SEGMENT}.index").read_bytes())
    assert shown[0] != shown[1]
    assert shown[1] == shown[2] == shown[3]
    assert shown[0][4::8] == shown[1][4::8]
    assert 2 == cli.run(["rebuild", str(copy), "--in-place", "--profile", "kafka-0"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "either --out DIR2, a new directory, or --in-place, "),
        (["--in-place", "--out", "x"], "either --out DIR2, a new directory, or --in-place, "),
        (["--in-place", "--cut-tail"], "need --out"),
        (["--in-place", "--copy"], "need --out"),
        (["{full}", "--out", "x"], "--out goes with one path"),
        (["--out", "x", "--backup", "y"], "--backup is for --in-place"),
        (["--in-place", "--backup", "{copy}/inner"], "lie in each other"),
        (["--out", "{copy}/inner"], "lie in each other"),
        (["--out", "{copy}"], "lie in each other"),
        (["--out", "{full}"], "exists and is not empty"),
        (["--out", "{full}/file"], "not a directory"),
        (["--in-place", "--all", "--max-index-bytes", "24"], "more bytes for an index"),
        (["--in-place", "--index-interval-bytes", "-1"], "--index-interval-bytes"),
    ],
)
def test_usage(arguments: list[str], words: str, copy: Path, capsys: Capsys) -> None:
    """Exit 2, one line that says what is wrong, and nothing has changed."""
    full = copy.parent / "full"
    full.mkdir()
    (full / "file").touch()
    before = images(copy)
    filled = [each.format(copy=copy, full=full) for each in arguments]
    assert 2 == cli.run(["rebuild", str(copy), *filled])
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""
    assert before == images(copy)


def test_what_is_no_partition(copy: Path, capsys: Capsys) -> None:
    """An empty directory, a file, nothing at all: exit 2."""
    (copy.parent / "empty").mkdir()
    for path, words in (
        (copy.parent / "empty", "the directory of one partition"),
        (copy / f"{SEGMENT}.log", "not a directory"),
        (copy / "nothing", "no such file or directory"),
    ):
        assert 2 == cli.run(["rebuild", str(path), "--out", f"{copy.parent}-new"])
        assert words in capsys.readouterr().err


def test_missing_rights(copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    """A directory in which no file may be made is exit 2, for every user, root included."""
    before = images(copy)

    def refuse(files: RealFiles, path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(RealFiles, "create_new", refuse)
    assert 2 == cli.run(["rebuild", str(copy), "--in-place", "--all", "--jobs", "1"])
    assert "permission denied" in capsys.readouterr().err
    assert before == images(copy)


@pytest.mark.slow
def test_progress_on_a_terminal(copy: Path) -> None:
    """The bar is there on a terminal, and what is shown in the end is the summary."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "segproof_harness.cli", "rebuild", str(copy), "--in-place"]
    with (copy.parent / "rows").open("w") as rows:
        done = subprocess.run(command, stdout=rows, stderr=follower, check=False)
    os.close(follower)
    shown = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert done.returncode == 0
    assert "rebuild" in shown
    assert "0 of 9 index files changed" in shown


def test_a_store_without_an_index_gets_one_as_by_default(tmp_path: Path, capsys: Capsys) -> None:
    """In place, where a file keeps it, that both numbers are a guess is said. Elsewhere they must
    be given."""
    store = tmp_path / "store"
    shutil.copytree(STORE, store, ignore=shutil.ignore_patterns("index"))
    out = tmp_path / "new"
    given = ["--hash-slots", "8", "--index-num", "50"]
    assert 0 == cli.run(["rebuild", str(store), "--out", str(out / "a"), *given])
    assert "no old index file" not in capsys.readouterr().err
    for options, slots in ([], 5_000_000), (given[:2], 8):
        assert 2 == cli.run(["rebuild", str(store), "--out", str(out / "b"), *options])
        assert "give --hash-slots and --index-num" in capsys.readouterr().err
        assert not (out / "b").exists()
        assert 0 == cli.run(["rebuild", str(store), "--dry-run", *options])
        told = capsys.readouterr().err
        assert f"guessed: {slots} slots and 20000000 entries" in told
        assert "no old index file tells them" in told


@pytest.mark.parametrize("output_format", ["text", "jsonl"])
def test_a_whole_directory(copy: Path, output_format: str, capsys: Capsys) -> None:
    """Partitions and stores in one run: what could not be rebuilt makes the exit code 1."""
    data = copy.parent
    shutil.copytree(STORE, data / "store")
    (data / "store-without-log" / "commitlog").mkdir(parents=True)
    (copy / f"{SEGMENT}.index").unlink()
    arguments = ["rebuild", str(data), "--in-place", "--backup", f"{data}-kept"]
    assert 1 == cli.run([*arguments, "--format", output_format])
    captured = capsys.readouterr()
    assert "store-without-log/commitlog: there is no commit log" in captured.err
    assert (
        "1 partition and 2 stores: 1 of 10 index files changed, 9 sound ones stay, 1 not rebuilt,"
        " with 1 error, in "
    ) in captured.err
    if output_format == "text":
        assert [f"changed: {copy}/{SEGMENT}.index: 115 entries"] == [
            line.split(",")[0] for line in captured.out.splitlines()
        ]
        return
    rows = [json.loads(line) for line in captured.out.splitlines()]
    assert [FIELDS] * 9 + [FIELDS[:5]] == [list(row) for row in rows]
    assert [f"{copy}/{SEGMENT}.index"] == [row["path"] for row in rows if row["changed"]]
