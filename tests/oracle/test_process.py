# SPDX-License-Identifier: Apache-2.0
"""The child of a release: one that hangs, dies, floods its log or loses its parent."""

import contextlib
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from segproof.processes import quiet_fork
from segproof_harness.histories.replay import replay_seed
from segproof_harness.histories.subject_names import subject_named
from segproof_harness.releases import process as process_module
from segproof_harness.releases import release_subject as oracle
from segproof_harness.releases.jars import FOLDER_VARIABLE
from segproof_harness.releases.pinned import release_named
from segproof_harness.releases.process import NoAnswerError, OracleError, OracleProcess, process_for
from segproof_harness.releases.release_subject import OracleSubject
from segproof_harness.structures.operations import Operation, Value
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import structure_named
from segproof_tests.printed_rows import Capsys

KAFKA, ROCKETMQ, NEWEST_ROCKETMQ = "kafka-4.3.1", "rocketmq-4.9.8", "rocketmq-5.5.1"
ENDING_SECONDS = 20.0
"""A loaded machine may take long to end a process."""
NAME = "20231114221320123"
OPEN: dict[str, Value] = {
    "file_name": NAME,
    "geometry": (1, 4),
    "end_phy_offset": 0,
    "end_timestamp": 0,
    "now_ms": 1_700_000_000_123,
    "damage": (),
}


def circle() -> Setup:
    """Return an index file whose two entries are each the other's predecessor, of key hash 7."""
    header = struct.pack(">qqqqii", 0, 0, 0, 0, 1, 3)
    entries = b"".join(struct.pack(">iqii", 7, 0, 0, previous) for previous in (0, 2, 1, 0))
    return Setup(OPEN, {NAME: header + struct.pack(">i", 2) + entries})


LOAD = Operation("load", {})
ENDLESS = Operation(
    "select_phy_offset",
    {"phy_offsets": (), "key": "another", "max_num": 5, "begin": 0, "end": 10},
)


@pytest.fixture
def process(request: pytest.FixtureRequest) -> Iterator[OracleProcess]:
    """A child of its own, of the release that the test is marked with."""
    marker = request.node.get_closest_marker("needs")
    assert marker is not None
    one = OracleProcess(release_named(marker.args[0]))
    yield one
    one.end()


def pid_of(process: OracleProcess) -> int:
    """Return the number of a child that runs."""
    assert process._process is not None
    return process._process.pid


def scratch_of(process: OracleProcess) -> Path:
    """Return the folder where the child has its files."""
    assert process._scratch is not None
    return Path(process._scratch)


def wait_until(is_so: Callable[[], bool]) -> bool:
    """Return whether something becomes so in time."""
    until = time.monotonic() + ENDING_SECONDS
    while time.monotonic() < until:
        if is_so():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.needs(KAFKA)
def test_an_ended_child_leaves_nothing(process: OracleProcess, capfd: Capsys) -> None:
    """No process, no zombie, no folder; and nothing on standard output or error."""
    process.start()
    pid, scratch = pid_of(process), scratch_of(process)
    assert scratch.is_dir()
    assert process.ask("absent", "offset-index", seconds=ENDING_SECONDS).left_out is not None
    process.end()
    assert not scratch.exists()
    assert not Path("/proc", str(pid)).exists()
    shown = capfd.readouterr()
    assert ("", "") == (shown.out, shown.err)


@pytest.mark.needs(KAFKA)
def test_a_child_that_is_killed_in_the_middle(process: OracleProcess) -> None:
    """It is told as dead; the next question starts another one."""
    process.start()
    pid = pid_of(process)
    os.kill(pid, signal.SIGSTOP)
    killer = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(NoAnswerError, match="its JVM died") as caught:
        process.ask("absent", "offset-index", seconds=ENDING_SECONDS)
    killer.join()
    assert caught.value.died
    process.ask("absent", "offset-index", seconds=ENDING_SECONDS)
    assert pid != pid_of(process)


@pytest.mark.needs(ROCKETMQ)
def test_a_child_that_hangs(process: OracleProcess) -> None:
    """A walk along a chain that is a circle is ended by the parent, with the child."""
    process.ask("start", "index-file", circle(), seconds=ENDING_SECONDS)
    process.ask("apply", LOAD, seconds=ENDING_SECONDS)
    pid = pid_of(process)
    with pytest.raises(NoAnswerError, match="no answer in 1 s") as caught:
        process.ask("apply", ENDLESS, seconds=1.0)
    assert not caught.value.died
    assert not Path("/proc", str(pid)).exists()


@pytest.mark.needs(ROCKETMQ)
def test_an_endless_operation_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model says that the walk has no end, and the real class shows it: both `endless`.

    The whole history does not end; then each operation is asked alone, and the one that hangs is
    found.
    """
    for limit in ("HISTORY_SECONDS", "STEP_SECONDS"):
        monkeypatch.setattr(oracle, limit, 1.5)  # any limit shows it; the class works all the time
    structure = structure_named("index-file")
    real = subject_named(ROCKETMQ, structure)
    assert isinstance(real, OracleSubject)
    real.prepare(circle(), [LOAD, ENDLESS], 1)
    for one in (subject_named(f"model:{ROCKETMQ}", structure), real):
        assert one.start(circle()).error is None
        assert one.apply(LOAD).error is None
        assert "endless" == one.apply(ENDLESS).error
        one.stop()


@pytest.mark.needs(KAFKA)
def test_a_dead_jvm_is_a_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that dies is no crash of the harness, and no pass."""
    process = process_for(KAFKA)
    asked = process.ask

    def ask(name: str, *arguments: object, seconds: float) -> object:
        if name in ("history", "apply"):
            if process._process is None:
                process.start()
            os.kill(pid_of(process), signal.SIGKILL)
        return asked(name, *arguments, seconds=seconds)

    monkeypatch.setattr(process, "ask", ask)
    result = replay_seed("offset-index", KAFKA, 0, 1, ("model", KAFKA))
    process.end()
    assert 1 == len(result.findings)
    assert "died" in result.findings[0].message


@pytest.mark.needs(KAFKA)
def test_a_forked_process_has_a_child_of_its_own(process: OracleProcess) -> None:
    """Two processes never ask the same child, and the one that leaves first ends its own alone."""
    process.start()
    pid = pid_of(process)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def work() -> None:
        process.ask("absent", "offset-index", seconds=ENDING_SECONDS)
        theirs.send(pid_of(process))
        process.end()

    with quiet_fork():
        worker = context.Process(target=work)
        worker.start()
    assert ours.poll(3 * ENDING_SECONDS)
    assert pid != ours.recv()
    worker.join()
    assert 0 == worker.exitcode
    process.ask("absent", "offset-index", seconds=ENDING_SECONDS)
    assert pid == pid_of(process)


PARENT = """
import os, signal, sys
from segproof_harness.releases.process import OracleProcess
from segproof_harness.releases.pinned import release_named
sys.path.append({folder!r})
from case import ENDLESS, LOAD, circle
process = OracleProcess(release_named({release!r}))
process.ask("start", "index-file", circle(), seconds=60)
process.ask("apply", LOAD, seconds=60)
print(process._process.pid, process._scratch, process._libraries, flush=True)
if {hangs}:
    process._pipe.send(("apply", (ENDLESS,)))
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.needs(ROCKETMQ)
@pytest.mark.parametrize("hangs", [False, True], ids=["idle", "in an endless call"])
def test_a_child_whose_parent_is_killed(hangs: bool, tmp_path: Path) -> None:
    """It leaves, from the middle of a call too, and takes its folders with it."""
    (tmp_path / "case.py").write_bytes(Path(__file__).read_bytes())
    source = PARENT.format(folder=str(tmp_path), release=ROCKETMQ, hangs=hangs)
    parent = subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    pid, *folders = parent.stdout.readline().split()
    time.sleep(0.5 if hangs else 0.0)
    assert Path("/proc", pid).exists()
    parent.stdin.close()
    parent.wait()
    parent.stdout.close()
    assert -signal.SIGKILL == parent.returncode
    assert wait_until(lambda: not Path("/proc", pid).exists())
    assert [] == [folder for folder in folders if Path(folder).exists()]


def oracle_run(release: str, structure: str, *options: str) -> list[str]:
    """Return the command that asks a release about one structure."""
    return [
        sys.executable,
        "-m",
        "segproof_harness.cli",
        "oracle",
        "run",
        release,
        "--structure",
        structure,
        *options,
    ]


@pytest.mark.needs(NEWEST_ROCKETMQ)
def test_a_run_leaves_no_file(tmp_path: Path) -> None:
    """The JVM unpacks RocksDB, 13 MB, which nothing in it removes when it is killed."""
    command = oracle_run(NEWEST_ROCKETMQ, "message-store", "--count", "1", "--length", "2")
    subprocess.run(
        command, check=True, capture_output=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert [] == [*tmp_path.iterdir()]


@pytest.mark.needs(KAFKA)
def test_a_run_that_is_terminated_leaves_no_process(tmp_path: Path) -> None:
    """Its processes waited for ever for a parent that a signal had ended, each with a JVM."""
    command = oracle_run(KAFKA, "offset-index", "--count", "100000", "--jobs", "2")
    run = subprocess.Popen(
        command, stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert wait_until(lambda: len([*tmp_path.iterdir()]) == 2)
    run.terminate()
    run.wait()
    assert wait_until(lambda: [] == [*tmp_path.iterdir()])


@pytest.mark.needs("jpype")
def test_the_log_of_a_child_stays_short(tmp_path: Path) -> None:
    """A JVM that prints without end does not fill the disk."""
    source = (
        "import os, sys, threading, time\n"
        "from segproof_harness.releases.child import watch\n"
        "threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()\n"
        "for _ in range(40):\n"
        "    os.write(1, bytes(100_000))\n"
        "    time.sleep(0.02)\n"
        "time.sleep(1)\n"
    )
    log = tmp_path / "log"
    with log.open("ab") as output:
        subprocess.run([sys.executable, "-c", source], stdout=output, check=True)
    assert log.stat().st_size <= 1 << 20


@pytest.mark.needs(KAFKA)
def test_a_child_without_jars_says_what_to_fetch(
    process: OracleProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """That it can't be started is an error of the harness, never an answer of the release."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(OracleError, match=f"run: `segproof oracle fetch {KAFKA}`") as caught:
        process.start()
    assert not isinstance(caught.value, NoAnswerError)
    assert process._process is None


@pytest.mark.needs(KAFKA)
def test_a_jvm_that_does_not_start(process: OracleProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error ends with the JVM's own words."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+NoSuchOption")
    with pytest.raises(OracleError, match=r"(?s)can't be started.*NoSuchOption"):
        process.start()


@pytest.mark.needs(KAFKA)
def test_a_question_that_is_interrupted(
    process: OracleProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer is not taken for that of the next question: the child is ended."""
    process.start()

    def poll(timeout_ms: float) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "_answers", SimpleNamespace(poll=poll))
    with contextlib.suppress(KeyboardInterrupt):
        process.ask("absent", "offset-index", seconds=1.0)
    assert process._process is None


def held_deleted(pid: int) -> list[str]:
    """Return the deleted files that a process has open, or maps."""
    links = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(link))
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [name for name in [*links, *maps] if name.endswith("(deleted)")]


@pytest.mark.needs("rocketmq-5.5.1")
def test_an_ended_store_holds_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each life of a store left some fifteen files and six threads to its JVM: 150 histories ended
    at the limit of open files. The memory that it leaves is given back with the child, of which a
    history of stores takes 40 MB; and the library that it unpacks is in the child's folder."""
    release = "rocketmq-5.5.1"
    threads = []
    for seed in (2, 3):  # both reopen many times
        replay_seed("message-store", release, seed, 30, ("model", release))
        pid = pid_of(process_for(release))
        assert [] == held_deleted(pid)
        threads.append(len(os.listdir(f"/proc/{pid}/task")))
    assert threads[1] <= threads[0] + 5  # a JVM has some more or less of its own
    folder = process_for(release)._libraries
    assert folder is not None
    assert [True] == [name.startswith("librocksdb") for name in os.listdir(folder)]
    monkeypatch.setattr(process_module, "RESIDENT_BYTES_MAX", 1)
    replay_seed("message-store", release, 2, 30, ("model", release))
    assert pid != pid_of(process_for(release))
    assert not os.path.exists(folder)
