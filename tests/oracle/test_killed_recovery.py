# SPDX-License-Identifier: Apache-2.0
"""A recovery that cuts a log, and is ended before it is done: what the next load finds."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from segproof.kafka import PartitionLog
from segproof_tests.memory_logs import CONFIG, batch

DRIVER = Path(__file__).with_name("load_driver.py")
SEGMENTS = [f"{base:020d}.log" for base in (0, 4, 8, 12, 16, 20)]


def damaged(folder: Path) -> None:
    """Write a log of segments with two batches each; the second batch of the second is damaged."""
    log = PartitionLog.open(folder, CONFIG, create=True)
    for _ in range(5):
        log.append_as_leader(batch(2), 0)
        log.append_as_leader(batch(2), 0)
        log.roll()
    log.close_handlers()
    path = folder / SEGMENTS[1]
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


@contextmanager
def loading(release: str, folder: Path) -> Iterator[Callable[[], str]]:
    """Yield what loads a log as after a crash, in one JVM; it returns the end, or the error."""
    command = [sys.executable, str(DRIVER), release, str(folder)]
    with (
        tempfile.TemporaryDirectory() as scratch,
        (Path(scratch) / "said").open("w+") as said,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env={**os.environ, "TMPDIR": scratch},
        ) as process,
    ):

        def load() -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("load\n")
            process.stdin.flush()
            answer = process.stdout.readline().strip()
            assert answer, (Path(scratch) / "said").read_text()
            return answer

        try:
            yield load
        finally:
            process.kill()


def offsets(folder: Path) -> list[int]:
    """Return the base offset of each batch, of all segments."""
    with PartitionLog.open(folder, CONFIG, create=True) as log:
        return [one.base_offset for segment in log.log_segments for one in segment.log]


@pytest.mark.parametrize(
    "release",
    [
        pytest.param(name, marks=pytest.mark.needs("java", "jpype", name))
        for name in ("kafka-0.11.0.3", "kafka-2.8.2", "kafka-4.3.1")
    ],
)
def test_a_recovery_that_is_ended_leaves_a_hole(release: str, tmp_path: Path) -> None:
    """Kafka cuts first, then renames what lies behind, from the first one on.

    A rename that fails ends it where a kill might. The next load finds nothing damaged, and says
    nothing of the offsets 6 to 11.
    """
    folder = tmp_path / "t-0"
    damaged(folder)
    obstacle = folder / f"{SEGMENTS[3]}.deleted"
    (obstacle / "x").mkdir(parents=True)
    with loading(release, folder) as load:
        assert not load().isdigit()
        (obstacle / "x").rmdir()
        obstacle.rmdir()
        assert "20" == load()
    assert offsets(folder) == [0, 2, 4, 12, 14, 16, 18]


def test_our_recovery_that_is_ended_leaves_none(tmp_path: Path) -> None:
    """The same obstacle: the segments behind it are gone, and the damaged one is as it was."""
    folder = tmp_path / "t-0"
    damaged(folder)
    obstacle = folder / f"{SEGMENTS[3]}.deleted"
    (obstacle / "x").mkdir(parents=True)
    with pytest.raises(OSError, match="deleted"):
        PartitionLog.open(folder, CONFIG, last_shutdown_clean=False, create=True)
    (obstacle / "x").rmdir()
    obstacle.rmdir()
    PartitionLog.open(folder, CONFIG, last_shutdown_clean=False, create=True).close()
    assert offsets(folder) == [0, 2, 4]
