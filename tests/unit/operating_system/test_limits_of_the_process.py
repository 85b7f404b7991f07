# SPDX-License-Identifier: Apache-2.0
"""A limit of the process is an error of the call, and never a finding about the files."""

import errno
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import popen_fork
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import ProcessLimitError
from segproof.files import LIMITS, REAL_FILES
from segproof.processes import Meter, Workers
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, ROCKETMQ, partition_of
from segproof_tests.altered_files import altered

NUMBERS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR)


@contextmanager
def no_more_files() -> Iterator[None]:
    """Let this process open no further file."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest, limits[1]))
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass  # no handle is left
    try:
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Path:
    shutil.copytree(partition_of(KAFKA / "plain"), tmp_path / "data" / "plain-0")
    shutil.copytree(ROCKETMQ / "small-4.9.8" / "store", tmp_path / "store")
    return tmp_path


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("place", ["data", "store"])
def test_a_limit_is_no_finding(data: Path, place: str, number: int) -> None:
    """Each file that can't be opened for want of handles was "it cannot be read", DISK-1."""
    names = {path.name for path in (data / place).rglob("*") if path.is_file()}
    ends = 0
    for name in sorted(names):

        def fail(path: str, name: str = name, **how: Any) -> Any:
            if os.path.basename(path) == name:
                raise OSError(number, os.strerror(number), path)
            return REAL_FILES.open(path, **how)

        try:
            found = list(verify(data / place, files=altered(open=fail)))
        except ProcessLimitError as error:
            ends += LIMITS[number] in str(error)
        else:
            assert not any(one.is_defect for one in found), name
    assert ends


def test_verbs_say_what_to_raise(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, with the command that helps, from every verb that reads."""
    folder, store = str(data / "data" / "plain-0"), str(data / "store")
    commands = [
        ["verify", folder, "--jobs", "1"], ["verify", store, "--jobs", "1"], ["dump", folder],
        ["dump", store], ["lookup", folder, "--offset", "3"],
        ["salvage", folder, "--out", str(data / "saved"), "--jobs", "1"],
        ["rebuild", folder, "--dry-run", "--jobs", "1"],
    ]  # fmt: skip
    for command in commands:
        cli.run(command)  # imports what it needs
    shutil.rmtree(data / "saved")
    capsys.readouterr()
    for command in commands:
        with no_more_files():
            code = cli.run(command)
        told = capsys.readouterr()
        assert 2 == code, command
        assert "ulimit -n" in told.err, command
        assert "DISK-1" not in told.out


@pytest.mark.slow
def test_a_low_limit_in_a_process_of_its_own(data: Path) -> None:
    """With too few handles the call ends without a verdict, with enough of them as always."""
    program = (
        "import resource, sys\n"
        "from segproof_harness import cli\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), 4096))\n"
        "sys.exit(cli.run(['verify', sys.argv[2], '--jobs', '1', '--no-notes']))\n"
    )
    codes = set()
    for limit in (4, 5, 6, 12):
        ended = subprocess.run(
            [sys.executable, "-c", program, str(limit), str(data / "data")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "DISK-1" not in ended.stdout
        codes.add(ended.returncode)
    assert {0, 2} == codes


def test_no_process_waits_where_only_some_could_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """`salvage` printed its error, and never ended: the first worker waited for work for ever."""
    launched = 0
    launch = vars(popen_fork.Popen)["_launch"]

    def once(self: Any, process: Any) -> None:
        nonlocal launched
        launched += 1
        if launched > 1:
            raise OSError(errno.EMFILE, "too many open files")
        launch(self, process)

    monkeypatch.setattr(popen_fork.Popen, "_launch", once)
    monkeypatch.setattr("threading.active_count", lambda: 1)
    before = set(multiprocessing.active_children())
    with pytest.raises(OSError, match="too many open files"), Workers(3, Meter(None, 0)) as workers:
        workers.submit(os.getpid)
    for child in set(multiprocessing.active_children()) - before:
        child.join(30)
        assert not child.is_alive()
    assert launched == 2
