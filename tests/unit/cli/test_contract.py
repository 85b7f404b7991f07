# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole: exit codes, streams, import times, signals."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

from segproof_harness import cli
from segproof_harness.cli import oracle
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_tests.printed_rows import Capsys

PLAIN = partition_of(next(each for each in scenarios() if each.name == "plain"))
COMMAND = [sys.executable, "-m", "segproof_harness.cli"]
HEAVY = ("numpy", "numba", "pyspark", "hypothesis", "pyarrow", "rich.progress")
TERMINAL = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "60", "NO_COLOR": "1"}


def test_help_and_version(capsys: Capsys) -> None:
    """Help lists every verb with an example each; the version names formats and profiles."""
    assert 0 == cli.run(["--help"])
    shown = capsys.readouterr().out
    assert 0 == cli.run(["--version"])
    version = capsys.readouterr().out
    assert "kafka-4.3.1" in version
    assert "offset index" in version
    for verb in cli.VERBS:
        name = verb.__name__.rpartition(".")[2]
        assert f"  {name} " in shown
        assert 0 == cli.run([name, "--help"])
        assert "Examples:" in capsys.readouterr().out
    assert "  oracle " in shown
    for command in oracle.app.registered_commands:
        assert command.name is not None
        assert 0 == cli.run(["oracle", command.name, "--help"])
        assert "Examples:" in capsys.readouterr().out


def test_help_imports_nothing_heavy() -> None:
    """`segproof --help` imports none of the heavy libraries; the benchmarks time it."""
    code = (
        "import sys; from segproof_harness import cli; cli.run(['--help']); "
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == "[]"


def test_an_empty_argument_is_refused(capsys: Capsys) -> None:
    """A variable that is not set must not make the current directory what is verified."""
    assert 2 == cli.run(["verify", ""])
    assert "is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-verb"],
        ["--no-such-option"],
        ["verify"],
        ["verify", "/no/such/path"],
        ["verify", str(PLAIN), "--law", "NOLAW-1"],
        ["verify", str(PLAIN), "--jobs", "0"],
        ["verify", str(PLAIN), "--format", "xml"],
        ["dump", "/no/such/file.index"],
        ["dump", "/no/such/00000000000000000000.index"],
        ["dump", str(PLAIN.parent / "expected.json")],
        ["dump", str(PLAIN), "--profile", "kafka-0.1"],
        ["lookup", str(PLAIN)],
        ["lookup", "/no/such/directory", "--offset", "1"],
        ["lookup", str(PLAIN), "--offset", "many"],
        ["lookup", str(PLAIN), "--offset", "9223372036854775808"],
        ["lookup", str(PLAIN), "--offsets", "/no/such/file"],
        ["replay", "/no/such/trace"],
        ["replay", "--structure", "no-such"],
        ["replay", "--subjects", "nobody"],
        ["replay", "--profile", "kafka-0.1"],
        ["explain", "NOLAW-1"],
    ],
    ids=" ".join,
)
def test_usage_is_exit_code_2(arguments: list[str], capsys: Capsys) -> None:
    """What can't be meant, and a path that can't be read, gives one clear message and exit 2."""
    assert 2 == cli.run(arguments)
    shown = capsys.readouterr()
    assert "" == shown.out
    assert shown.err.strip()
    assert "Traceback" not in shown.err
    assert len(shown.err.splitlines()) <= 5


def test_internal_error_is_exit_code_3(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    """A defect of ours is exit 3, told in three lines, without a traceback."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a planted defect")

    monkeypatch.setattr("segproof.verification.verify", fail)
    assert 3 == cli.run(["verify", str(PLAIN)])
    shown = capsys.readouterr().err
    assert "ZeroDivisionError: a planted defect" in shown
    assert "report" in shown
    assert "Traceback" not in shown


@pytest.mark.slow
def test_an_unknown_mode_of_kernels_is_usage() -> None:
    """It was an internal error."""
    done = subprocess.run(
        [*COMMAND, "verify", str(PLAIN)], capture_output=True, text=True,
        env={**os.environ, "SEGPROOF_KERNELS": "fast"},
    )  # fmt: skip
    assert (2, "") == (done.returncode, done.stdout)
    assert "SEGPROOF_KERNELS is 'fast'; it must be auto, compiled or interpreted" in done.stderr


def test_a_closed_pipe_ends_quietly() -> None:
    """A reader that goes away, as `head` does, gives neither a traceback nor a message."""
    process = subprocess.Popen(
        [*COMMAND, "dump", str(PLAIN), "--records", "--format", "jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert b"" == process.stderr.read()
    process.stderr.close()
    assert cli.EXIT_CLOSED_PIPE == process.wait(timeout=60)


@pytest.mark.slow
def test_ctrl_c_ends_cleanly() -> None:
    """Ctrl-C while waiting for standard input gives one line and the shell's exit code."""
    process = subprocess.Popen(
        [*COMMAND, "lookup", str(PLAIN), "--offset", "1", "--offsets", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        # A parent that runs in the background hands on an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert b"target: 1 " in process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert cli.EXIT_INTERRUPTED == process.returncode
    assert (b"", b"segproof: interrupted\n") == (out, err)


def test_other_packages_add_verbs(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    """An entry point that can't be imported says so when it is called, and only then."""
    broken = metadata.EntryPoint("extra", "no_such_package.cli:app", cli.ENTRY_POINTS)
    monkeypatch.setattr(cli, "_entry_points", lambda: (broken,))
    assert 0 == cli.run(["--help"])
    assert "extra" in capsys.readouterr().out
    assert 2 == cli.run(["extra", "anything"])
    assert "no_such_package" in capsys.readouterr().err


def test_nothing_is_written_beside_the_data() -> None:
    """Reading verbs leave no file and change none."""

    def state(folder: Path) -> list[tuple[str, int, int]]:
        return [
            (each.name, each.stat().st_size, each.stat().st_mtime_ns)
            for each in sorted(folder.iterdir())
        ]

    before = state(PLAIN)
    assert 0 == cli.run(["verify", str(PLAIN), "--deep"])
    assert 0 == cli.run(["dump", str(PLAIN)])
    assert 0 == cli.run(["lookup", str(PLAIN), "--offset", "700", "--timestamp", "0"])
    assert before == state(PLAIN)


@pytest.mark.slow
def test_data_goes_to_stdout_beside_a_terminal(tmp_path: Path) -> None:
    """With stderr on a terminal, findings still go to stdout, in a file line for line as they are.

    The bar of progress once took them all: `segproof verify DIR > FILE` at a prompt left an empty
    file, and on a terminal each long line, the command of a finding too, was broken by newlines.
    """
    command = [*COMMAND, "verify", os.fspath(PLAIN), "--jobs", "1"]
    expected = subprocess.run(command, capture_output=True, text=True).stdout
    commands = [line for line in expected.splitlines() if line.startswith("    segproof verify ")]
    assert commands
    ours, theirs = pty.openpty()
    try:
        with (tmp_path / "found").open("wb") as file:
            subprocess.run(command, stdout=file, stderr=theirs, env=TERMINAL)
        assert expected == (tmp_path / "found").read_text()
        piped = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=theirs, text=True, env=TERMINAL
        )
        assert expected == piped.stdout
        os.read(ours, 100_000)
        subprocess.run(command, stdout=theirs, stderr=theirs, env=TERMINAL)
        shown = os.read(ours, 100_000).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert all(line in shown for line in commands)
    assert all(word in shown for word in expected.split())


HOSTILE = "[red]\x1b[31mt\nerror SEG-7 forged\r\u202e\x9b\udcff\U000e0001-0"
"""A name of a folder: markup, a colour, lines, a change of direction, bytes that are no UTF-8."""


@pytest.mark.parametrize("is_store", [False, True], ids=["partition", "store"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "{}", "--deep", "--jobs", "1"],
        ["verify", "{}", "--against", "model"],
        ["dump", "{}"],
        ["lookup", "{}", "--offset", "5", "--explain"],
        ["lookup", "{}", "--phy-offset", "5", "--explain"],
        ["rebuild", "{}", "--out", "{}.new", "--jobs", "1"],
        ["demo", "--copy-to", "{}.new"],
        ["verify", "{}.missing"],
        ["verify", "{}", "--format", "{}"],
        ["replay", "{}"],
    ],
    ids=lambda arguments: " ".join(arguments[::2]),
)
def test_a_name_is_told_on_one_line(
    arguments: list[str], is_store: bool, tmp_path: Path, capsys: Capsys
) -> None:
    """`dump` printed paths as they are: a folder forged findings, and steered the terminal."""
    place = tmp_path / HOSTILE
    if is_store:
        for each in ("commitlog", "index", f"consumequeue/{HOSTILE}/0"):
            (place / each).mkdir(parents=True)
            (place / each / ("0" * 20)).write_bytes(bytes(100))
    else:
        shutil.copytree(PLAIN, place, copy_function=shutil.copyfile)
        place.chmod(0o755)
        (place / f"{693:020}.index").write_bytes(b"\1" * 17)
        (place / HOSTILE).write_bytes(b"x")
    cli.run([one.replace("{}", str(place)) for one in arguments])
    shown = capsys.readouterr()
    lines = (shown.out + shown.err).splitlines()
    is_told = any(r"[red]\x1b[31mt\nerror SEG-7 forged\r" in line for line in lines)
    assert is_told or arguments[0] in ("lookup", "rebuild")
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("error SEG-7 forged") for line in lines)
