# SPDX-License-Identifier: Apache-2.0
"""Commands that are printed to be pasted: bash reads the words that were meant."""

import io
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from segproof.commands import command_line, quoted, words_in
from segproof_harness import cli
from segproof_harness.reports.terminal import Lines
from segproof_tests.partition_files import copied_partition, name_of
from segproof_tests.store_files import LOG, copied_store

ODD = os.fsdecode(b"-a 'b' \"c\"\n\x1b[31m`d` $HOME\\ \xff \xc3\xa9-0")
"""A name with a dash in front, quotes, a new line, an escape, and a byte that is no UTF-8."""
WORDS = (ODD, "", "t-0", "a b", "it's", "!1", "*", "\u2028", "--key", "#x", "~", "a\tb")


def read_by_bash(commands: Sequence[str]) -> list[list[str]]:
    """Return the arguments of each `segproof` command as bash passes them on."""
    function = r"""segproof() { printf '%s\0' "$@" $'\n'; }"""
    done = subprocess.run(
        ["bash", "-c", "\n".join([function, *commands])], capture_output=True, check=True
    )
    *told, last = os.fsdecode(done.stdout).split("\0\n\0")
    assert (b"", "") == (done.stderr, last)
    return [one.split("\0") for one in told]


def test_bash_reads_each_word_back() -> None:
    """A printed word is one line of printable characters."""
    command = command_line("segproof", *WORDS)
    assert command.isprintable()
    assert "`" not in command
    assert [[*WORDS]] == read_by_bash([command])
    assert 1 + len(WORDS) == len(words_in(command))
    assert r"$'\xed\xa0\xbd'" == quoted("\ud83d")  # half of a pair, which no bash passes on


def test_commands_name_odd_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of `verify`, `rebuild --dry-run` and `salvage`, in the directory where they ran."""
    monkeypatch.chdir(tmp_path)
    copied_partition("plain", tmp_path).rename(ODD)
    index = Path(f"./{ODD}", name_of(60, ".index"))
    index.write_bytes(index.read_bytes()[:-3])
    place = f"./{ODD}"
    assert 1 == cli.run(["verify", place, "--no-notes"])
    printed = [each for each in capsys.readouterr().out.split("\n") if "  segproof " in each]
    assert 0 == cli.run(["rebuild", place, "--dry-run"])
    assert 0 == cli.run(["salvage", place, "--out", "-out"])
    printed += [each.split("`")[1] for each in capsys.readouterr().err.split("\n") if "`" in each]
    told = read_by_bash(printed)
    verbs = ["rebuild", "verify", "rebuild", "verify"]
    assert verbs == [words[0] for words in told]
    assert [place, f"{place}/{index.name}", place, "./-out"] == [words[1] for words in told]
    assert f"../rebuilt/{ODD}" == told[0][3]


@pytest.mark.parametrize(
    ("working", "path", "is_broker", "out"),
    [
        (".", "data", False, "saved"),
        (".", "data", True, "saved"),
        ("data", ".", False, "../saved"),
        ("data", ".", True, "../saved"),
        ("data/plain-0", ".", False, "../../saved"),
        ("data/plain-0", ".", True, "../../saved"),
        ("data/plain-0", f"{name_of(60, '.log')}", True, "../../saved"),
    ],
)
def test_the_command_that_saves_runs_where_verify_ran(
    working: str,
    path: str,
    is_broker: bool,
    out: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """For each of two damaged partitions it makes the directory of its name; none in the way of a
    broker, and none inside of what is saved."""
    for scenario in ("plain", "txn-a"):
        folder = copied_partition(scenario, tmp_path / "data")
        with next(folder.glob("*60.log"), folder / name_of(0, ".log")).open("r+b") as file:
            file.seek(300)
            file.write(b"oops")
    if is_broker:
        (tmp_path / "data" / "meta.properties").touch()
    monkeypatch.chdir(tmp_path / working)
    assert 1 == cli.run(["verify", path, "--law", "BATCH-3"])
    shown = capsys.readouterr().out.splitlines()
    commands = [one.strip() for one in shown if one.startswith("    segproof salvage ")]
    assert commands
    for words in read_by_bash(commands):
        assert ["--out", out] == words[2:]
        name = Path(words[1]).resolve().name
        assert 1 == cli.run(words)
        assert Path(out, name).is_dir()
        assert 0 == cli.run(["verify", f"{out}/{name}"])


@pytest.mark.parametrize("way", ["", "./", "../{}/"])
@pytest.mark.parametrize(("verb", "position"), [("salvage", 1000), ("rebuild", 12)])
def test_a_store_is_found_from_inside_a_folder_of_it(
    verb: str,
    position: int,
    way: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One file was verified there; what the command makes of the store lies beside it."""
    store = copied_store(tmp_path, "small-5.5.1")
    path = store / LOG if verb == "salvage" else next((store / "index").iterdir())
    with path.open("r+b") as file:
        file.seek(position)
        file.write(b"oops")
    monkeypatch.chdir(path.parent)
    assert 1 == cli.run(["verify", way.format(path.parent.name) + path.name, "--no-notes"])
    shown = capsys.readouterr().out.splitlines()
    (words,) = read_by_bash([one for one in shown if one.startswith(f"    segproof {verb} ")])
    assert [verb, "..", "--out"] == words[:3]
    assert cli.run(words) < 2
    assert [store, Path(words[3]).resolve().parent] == sorted(tmp_path.iterdir(), reverse=True)
    assert cli.run(["verify", words[3]]) < 2


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 132])
def test_a_terminal_of_any_width_shows_commands_whole(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that is broken over two lines would be pasted as two commands."""
    words = (
        "end it with `kafka-transactions.sh abort --topic orders --partition 0 --start-offset 7`,"
        " or ask with `segproof lookup /data/store --key 'TOPIC#KEY' --scan`, or `pip install 'a'`"
    )
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    copied_partition("plain", tmp_path).rename(tmp_path / "orders eu-0")
    index = tmp_path / "orders eu-0" / name_of(60, ".index")
    index.write_bytes(index.read_bytes()[:-3])
    Lines().write(words, indent=4)
    monkeypatch.chdir(tmp_path)
    for details in ([], ["--all"]):
        assert 1 == cli.run(["verify", "orders eu-0", "--no-notes", *details])
    monkeypatch.undo()
    lines = terminal.getvalue().splitlines()
    for command in words.split("`")[1::2]:
        assert sum(command in line for line in lines) == 1
    saved = "segproof rebuild 'orders eu-0' --out '../rebuilt/orders eu-0'"
    assert sum(saved in line for line in lines) == 2
    shown = f"segproof verify 'orders eu-0/{index.name}' --law "
    assert all(re.search(r" --law [A-Z0-9-]+( --|$)", line) for line in lines if shown in line)
    assert sum(shown in line for line in lines) >= 2
