# SPDX-License-Identifier: Apache-2.0
"""`verify --watch`: rounds, what is news, and how it ends."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segproof_harness import cli
from segproof_harness.cli.verify import tell_counts
from segproof_tests.partition_files import copied_partition, name_of
from segproof_tests.printed_rows import Capsys

COMMAND = [sys.executable, "-m", "segproof_harness.cli"]
OLD_S = 1_700_000_000
Step = Callable[[], object]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return a data directory with two partitions."""
    copied_partition("plain", tmp_path)
    copied_partition("txn-a", tmp_path)
    return tmp_path


def rounds(
    capsys: Capsys,
    monkeypatch: pytest.MonkeyPatch,
    disk: Path,
    *steps: Step,
    code: int,
    options: tuple[str, ...] = (),
) -> list[tuple[str, str]]:
    """Return what is printed before each step, and before Ctrl-C behind the last one."""
    waiting, printed = list(steps), list[tuple[str, str]]()

    def sleep(_seconds: float) -> None:
        shown = capsys.readouterr()
        printed.append((shown.out, shown.err))
        if not waiting:
            raise KeyboardInterrupt
        waiting.pop(0)()

    monkeypatch.setattr("segproof_harness.cli.watch.sleep", sleep)
    assert code == cli.run(["verify", str(disk), "--jobs", "1", "--watch", "7", *options])
    assert ("", "") == tuple(capsys.readouterr())
    return printed


@pytest.mark.slow
def test_only_news_is_printed(disk: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new defect, a repair, a partition that is gone; not a file that was only touched."""
    index = disk / "plain-0" / name_of(60, ".index")
    sound = index.read_bytes()

    def put(data: bytes) -> Step:
        def write() -> None:
            index.write_bytes(data)
            os.utime(index, (OLD_S, OLD_S + sum(data)))  # verify need not wait

        return write

    begun, touched, broken, worse, mended, gone = rounds(
        capsys,
        monkeypatch,
        disk,
        lambda: os.utime(index, (OLD_S, OLD_S)),
        put(sound[:4] + b"\xff" * 4 + sound[8:]),
        put(b"\xff" * 16 + sound[16:]),
        put(sound),
        lambda: shutil.rmtree(disk / "txn-a-0"),
        code=0,
    )
    assert begun[0].count("sound: ") == 2
    assert "2 partitions: 2 sound\n" in begun[1]
    assert begun[1].endswith(" UTC, --watch goes on\n")
    assert ("", "") == touched
    assert broken[0].startswith(f"index damage only: {disk}/plain-0: ")
    assert "txn-a" not in broken[0]
    assert "error SEG-7 " in broken[0]
    assert worse[0].startswith(f"index damage only: {disk}/plain-0: ")
    assert broken[0] != worse[0]
    assert mended[0].startswith(f"sound: {disk}/plain-0: ")
    assert ("", True) == (gone[0], gone[1].startswith(f"no longer there: {disk}/txn-a-0\n"))


def test_ctrl_c_ends_with_the_exit_code_of_the_last_round(
    disk: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an entry ignores is no news, in JSON either."""
    index = disk / "plain-0" / name_of(60, ".index")
    config = disk.parent / "watch.toml"
    config.write_text('[[ignore]]\nlaw = "DISK-5"\nreason = "known"\n', encoding="ascii")
    options = ("--format", "jsonl", "--summary")
    _, lost = rounds(capsys, monkeypatch, disk, index.unlink, code=1, options=options)
    (told,) = map(json.loads, lost[0].splitlines())
    assert ("index-damage-only", 1) == (told["verdict"], told["warnings"])
    ignoring = (*options, "--config", str(config))
    rounds(capsys, monkeypatch, disk, lambda: os.utime(disk), code=0, options=ignoring)


def test_ctrl_c_right_behind_the_closing_line_ends_with_its_exit_code(
    disk: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line was written, and the exit code of its round not kept yet."""
    (disk / "plain-0" / name_of(60, ".index")).unlink()

    def tell_and_press(*told: Any) -> None:
        tell_counts(*told)
        raise KeyboardInterrupt

    monkeypatch.setattr("segproof_harness.cli.verify.tell_counts", tell_and_press)
    assert 1 == cli.run(["verify", str(disk), "--jobs", "1", "--watch", "7"])
    assert capsys.readouterr().err.endswith(" UTC, --watch goes on\n")


def test_files_behind_a_link_are_watched(
    disk: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition may lie on another disk. A link that leads back is no endless way."""
    linked = disk / "linked"
    linked.mkdir()
    (linked / "plain-0").symlink_to(disk / "plain-0")
    (linked / "back").symlink_to(linked)
    index = disk / "plain-0" / name_of(60, ".index")
    _, lost = rounds(capsys, monkeypatch, linked, index.unlink, code=1, options=("--summary",))
    assert lost[0].startswith(f"index damage only: {linked}/plain-0: ")


def test_a_path_that_is_gone_is_told_and_checked_when_it_is_back(
    disk: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition that a broker moved ended the watch over all others with exit code 2."""
    shutil.rmtree(disk / "txn-a-0")
    watched, away = disk / "plain-0", disk.parent / "away"
    _, gone, still, back, moved = rounds(
        capsys,
        monkeypatch,
        watched,
        lambda: watched.rename(away),
        lambda: None,
        lambda: away.rename(watched),
        lambda: watched.rename(away),
        code=2,
        options=("--summary",),
    )
    told = f"{watched}: no such file or directory; it is checked again when it is back"
    assert told == gone[1].splitlines()[0]
    assert gone[1].splitlines()[1] == f"no longer there: {watched}"
    assert ("", "") == still
    assert back[0].startswith(f"sound: {watched}: ")
    assert told == moved[1].splitlines()[0]


@pytest.mark.slow
def test_a_process_is_ended_by_a_signal_without_a_traceback(disk: Path) -> None:
    """The real thing, with several processes of its own."""
    (disk / "plain-0" / name_of(60, ".index")).unlink()
    words = [*COMMAND, "verify", str(disk), "--jobs", "2", "--watch", "0.1"]
    with subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A parent that runs in the background hands on an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stderr is not None
        while "goes on" not in (line := process.stderr.readline()):
            assert line
        os.killpg(process.pid, signal.SIGINT)
        assert ("", 1) == (process.stderr.read(), process.wait())


@pytest.mark.parametrize(
    "options",
    [
        ("0",),
        ("1e300",),
        ("nan",),
        ("5", "--format", "junit"),
        ("5", "--max-findings", "1"),
        ("5", "--against", "model"),
    ],
    ids=" ".join,
)
def test_what_does_not_go_with_watching_is_usage(
    options: tuple[str, ...], disk: Path, capsys: Capsys
) -> None:
    """It is said before anything is checked."""
    assert 2 == cli.run(["verify", str(disk), "--watch", *options])
    shown = capsys.readouterr()
    assert ("", True) == (shown.out, "--watch" in shown.err)
