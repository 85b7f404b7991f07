# SPDX-License-Identifier: Apache-2.0
"""Every verb where the system is hostile: a full or closed stream, no temporary folder, no home.

One line on stderr and exit code 2, or the usual answer; nothing is written beside the data or in
the present directory. Each case is a process of its own, forked from one that has loaded all.
"""

import errno
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from segproof.files import LIMITS
from segproof_harness import cli
from segproof_harness.cli import oracle
from segproof_harness.files.shipped_directories import partition_of, scenarios, stores

PLAIN = str(partition_of(next(each for each in scenarios() if each.name == "plain")))
STORE = str(next(each for each in stores() if each.parent.name == "small-5.5.1"))
VERBS: dict[str, list[str]] = {
    "--help": [],
    "--version": [],
    "bench": ["--help"],
    "completion": ["bash"],
    "crash": ["--seeds", "0:1", "--length", "2", "--bound", "2"],
    "demo": ["--copy-to", "{new}"],
    "doctor": ["--format", "jsonl"],
    "dump": [PLAIN, "--records"],
    "dump of a store": [STORE],
    "dump in json": [PLAIN, "--format", "jsonl"],
    "explain": ["SEG-7"],
    "lookup": [PLAIN, "--offset", "5", "--explain"],
    "lookup in json": [PLAIN, "--timestamp", "5", "--format", "jsonl"],
    "lookup in a store": [STORE, "--phy-offset", "0"],
    "ls": [PLAIN, STORE],
    "oracle": ["list"],
    "rebuild": [PLAIN, "--out", "{new}", "--jobs", "2"],
    "rebuild of a store": [STORE, "--out", "{new}", "--format", "jsonl"],
    "replay": ["--structure", "offset-index", "--count", "2", "--length", "5"],
    "report": [PLAIN, "--out", "{new}"],
    "salvage": [PLAIN, "--out", "{new}", "--jobs", "2"],
    "verify": [PLAIN, "--deep", "--jobs", "2"],
    "verify in json": [PLAIN, "--format", "jsonl"],
    "verify of a store": [STORE, "--deep"],
}
SILENT = {"crash", "replay"}
"""They write to stderr alone where all is well."""
SCRATCH = {"explain"}
"""They need a temporary folder."""
FULL = "segproof: standard output: no space left on device\n"
CLOSED = "segproof: standard output: closed\n"
ENVIRONMENTS = {
    "full stdout": (2, FULL),
    "closed stdout": (2, CLOSED),
    "full streams": (2, ""),
    "closed streams": (2, ""),
    "no temporary folder": (0, ""),
    "no home": (0, ""),
}
"""Exit code and stderr of each verb; where all is well, stderr may say more."""
CHILD = """
import contextlib, io, json, os, sys, tempfile
import segproof.repair
import segproof.store_lookup
import segproof.verification
import segproof_harness.laws.broken_files, segproof_harness.releases.readiness
import segproof_harness.reading.segment_file_rows, segproof_harness.reading.store_file_rows
import segproof_harness.histories.replay
from segproof_harness import cli
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named

list(map(structure_named, STRUCTURE_IDS))
with contextlib.redirect_stdout(io.StringIO()):
    cli.run(["explain", "SEG-7"])  # what one verb has imported, the next need not

def refuse(*_):
    raise AssertionError("the folder of temporary files was looked for by writing")

def begin(where, folder):
    os.chdir(folder)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{folder}.{name}", os.O_WRONLY | os.O_CREAT), number)
    tempfile._get_default_tempdir = refuse
    if where == "no temporary folder":
        os.environ["TMPDIR"] = "/dev/null/none"
        os.access = lambda path, mode: mode != os.W_OK
    if where == "no home":
        for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
            os.environ.pop(name, None)
        os.path.expanduser = lambda path: path
    if where == "full stdout":
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    if where == "full streams":
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        os.dup2(1, 2)
    if where in ("closed stdout", "closed streams"):
        os.close(1)
        sys.stdout = sys.__stdout__ = None
    if where == "closed streams":
        os.close(2)
        sys.stderr = sys.__stderr__ = None

for where, folder, arguments in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        sys.argv[1:] = arguments
        begin(where, folder)
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
        try:  # as Python does when it ends, which takes its time
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
        except OSError:
            code = 120
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def state(folder: str) -> list[tuple[str, int, int]]:
    """Return name, length and time of change of a folder and of all that is in it."""
    found = [Path(folder), *sorted(Path(folder).rglob("*"))]
    return [(str(one), one.stat().st_size, one.stat().st_mtime_ns) for one in found]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, tuple[int, str]]]:
    """Run every verb everywhere; return exit code and stderr of each, by environment and verb."""
    cases = []
    for where in ENVIRONMENTS:
        for name, arguments in VERBS.items():
            folder = str(tmp_path_factory.mktemp("present"))
            given = [one.replace("{new}", f"{folder}.new") for one in arguments]
            cases.append((where, folder, [name.split()[0], *given]))
    places = [PLAIN, STORE, *(folder for _, folder, _ in cases)]
    before = [state(place) for place in places]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(cases)], capture_output=True, text=True
    )
    codes = [int(line) for line in done.stdout.split()]
    assert len(cases) == len(codes), done.stderr
    assert before == [state(place) for place in places]
    found: dict[str, dict[str, tuple[int, str]]] = {where: {} for where in ENVIRONMENTS}
    for (where, folder, _), name, code in zip(
        cases, [*VERBS] * len(ENVIRONMENTS), codes, strict=True
    ):
        found[where][name] = code, Path(f"{folder}.err").read_text()
    return found


def test_the_table_has_every_verb() -> None:
    """A new verb gets its row."""
    verbs = {verb.__name__.rpartition(".")[2] for verb in cli.VERBS} | {oracle.app.info.name}
    assert verbs == {name.split()[0] for name in VERBS if not name.startswith("--")}


@pytest.mark.slow
@pytest.mark.parametrize("where", ENVIRONMENTS)
def test_every_verb(where: str, answers: dict[str, dict[str, tuple[int, str]]]) -> None:
    """It was an internal error, an error of each file, an exit code of Python's, or a file made."""
    expected, line = ENVIRONMENTS[where]
    for name, (code, said) in answers[where].items():
        assert "Traceback" not in said, (name, said)
        if where == "full stdout" and name in SILENT:
            assert 0 == code, (name, said)
        elif where == "no temporary folder" and name in SCRATCH:
            assert (2, 1) == (code, said.count("\n")), (name, said)
            assert said.startswith("segproof: /dev/null/none/"), said
        else:
            assert expected == code, (name, said)
            assert line == (said if expected else ""), (name, said)


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "line"), [(">/dev/full", FULL), (">&-", CLOSED)])
def test_a_whole_process(ending: str, line: str) -> None:
    """Python flushes its streams once more when it ends, and complains in its own words."""
    command = [sys.executable, "-m", "segproof_harness.cli", "dump", PLAIN]
    done = subprocess.run(f"{shlex.join(command)} {ending}", shell=True, capture_output=True)
    assert (2, line) == (done.returncode, done.stderr.decode())


def test_the_folder_of_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is the first that can be written to; the present directory is never among them."""
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    monkeypatch.setenv("TEMP", str(tmp_path))
    cli._choose_temporary_folder()
    assert str(tmp_path) == tempfile.tempdir
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    cli._choose_temporary_folder()
    assert str(tmp_path / "none") == tempfile.tempdir


@pytest.mark.parametrize("number", ["ENOSPC", "EROFS", "EMFILE", "EINVAL"])
def test_an_error_of_the_system_is_one_line(
    number: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no verb expects one, it is told as it is, and is no defect of ours."""

    def fail(*_: object) -> None:
        raise OSError(getattr(errno, number), "no such luck", "/a/\x1b[31mplace")

    monkeypatch.setattr("segproof_harness.cli.doctor.checks", fail)
    assert 2 == cli.run(["doctor"])
    remedy = f": {LIMITS[errno.EMFILE]}" if number == "EMFILE" else ""
    assert f"segproof: /a/\\x1b[31mplace: no such luck{remedy}\n" == capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [OSError(errno.EINVAL, "no name"), OSError(errno.EBADF, "closed", "x"), OSError("?")]
)
def test_a_mistake_of_ours_is_told_by_every_verb(
    error: OSError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight verbs took every error of the system for one of the path that they were given."""
    monkeypatch.setattr("segproof.files.REAL_FILES.status", Mock(side_effect=error))
    for verb in (["dump"], ["lookup", "--offset", "0"], ["rebuild", "--out", "out"], ["verify"]):
        assert 3 == cli.run([*verb, PLAIN]), verb
        assert "internal error" in capsys.readouterr().err, verb
