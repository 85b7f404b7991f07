# SPDX-License-Identifier: Apache-2.0
"""Devices without room: what is mapped has its room first, and what fails names its file.

That a rebuild leaves nothing behind is asked in test_rebuild_ends and test_rocketmq_rebuild.
"""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segproof.files import REAL_FILES
from segproof.kafka import OffsetIndex, TimeIndex
from segproof.rocketmq import IndexFile
from segproof_harness.files.shipped_directories import partition_of, scenarios

PLAIN = partition_of(next(each for each in scenarios() if each.name == "plain"))
SIZE = 1 << 20
ROCKETMQ_ENTRIES = (SIZE - 40 - 4 * 10) // 20
OPENINGS: list[Callable[[Path], Any]] = [
    lambda path: OffsetIndex(path, 0, SIZE, create=True),
    lambda path: TimeIndex(path, 0, SIZE, create=True),
    lambda path: IndexFile.open(path, 10, ROCKETMQ_ENTRIES, create=True),
]
EACH_OPENING = pytest.mark.parametrize(
    "opened", OPENINGS, ids=["offset index", "time index", "index file"]
)


def refuses(number: int) -> Callable[..., None]:
    """Return a call that reserves nothing."""

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@EACH_OPENING
@pytest.mark.parametrize("is_sparse", [False, True], ids=["new", "sparse"])
@pytest.mark.parametrize("knows", [True, False], ids=["reserving", "writing"])
def test_what_is_mapped_has_its_room(
    opened: Any, is_sparse: bool, knows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write into a hole of a mapped file found no room on a full device: SIGBUS, no word."""
    path = tmp_path / "20200101000000000"
    if is_sparse:
        with opened(path) as file:
            size = path.stat().st_size
            if isinstance(file, IndexFile):
                assert file.put_key("k", 7, 7)
            else:
                file.close_handler()
        image = path.read_bytes()
        path.write_bytes(image[:4096])
        os.truncate(path, size)
    if not knows:
        monkeypatch.setattr(os, "posix_fallocate", refuses(errno.EOPNOTSUPP))
    with opened(path):
        status = path.stat()
        assert status.st_blocks * 512 >= status.st_size > SIZE - 100
        assert not is_sparse or image == path.read_bytes()


@EACH_OPENING
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_device_without_room_is_an_error(
    opened: Any, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who writes an index gets an error that names the file, and no file is left."""
    path = tmp_path / "20200101000000000"
    monkeypatch.setattr(os, "posix_fallocate", refuses(number))
    with pytest.raises(OSError) as raised:
        opened(path)
    assert (number, str(path)) == (raised.value.errno, str(raised.value.filename))
    assert [] == list(tmp_path.iterdir())


def test_an_index_that_can_not_grow_keeps_its_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is closed with an error, and holds what it held when there is room again."""
    index = OffsetIndex(tmp_path / "x", 0, 80, create=True)
    index.append(1, 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", refuses(errno.ENOSPC))
        with pytest.raises(OSError, match="No space left"):
            index.resize(SIZE)
    with OffsetIndex(tmp_path / "x", 0, create=True) as again:
        assert [(1, 1)] == list(again)


@pytest.mark.parametrize("call", ["pwrite", "truncate", "map"])
def test_an_error_of_a_file_tells_its_path(call: str, tmp_path: Path) -> None:
    """`no space left on device` alone says neither where nor what to do."""
    (tmp_path / "x").write_bytes(b"abc")
    file: Any = REAL_FILES.open(str(tmp_path / "x"))
    with pytest.raises(OSError) as raised:
        {
            "pwrite": lambda: file.pwrite(b"x", 0),
            "truncate": lambda: file.truncate(0),
            "map": lambda: file.map(3),
        }[call]()
    assert str(tmp_path / "x") == raised.value.filename


LIMITED = """
import resource, sys
from segproof_harness.cli import run
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
sys.exit(run(sys.argv[1:]))
"""


def run_limited(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in a process that can write no large file."""
    # -B: Python would cut what it compiles at that limit too, and keep it for the next process.
    return subprocess.run(
        [sys.executable, "-B", "-c", LIMITED, *words], capture_output=True, text=True, check=False
    )


def test_a_page_beyond_a_limit_of_the_process(tmp_path: Path) -> None:
    """The error names the page, and nothing of it is left."""
    page = tmp_path / "page.html"
    done = run_limited("report", str(PLAIN), "--out", str(page))
    assert (2, "") == (done.returncode, done.stdout)
    assert f"segproof: {page}: file too large\n" == done.stderr
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("how", ["--out", "--in-place"])
def test_a_rebuild_beyond_a_limit_of_the_process(how: str, tmp_path: Path) -> None:
    """A limit on the size of files, of which a signal tells too, is one line and exit code 2."""
    place = tmp_path / "t-0"
    place.mkdir()
    images = {path.name: path.read_bytes() for path in PLAIN.iterdir()}
    for name, data in images.items():
        (place / name).write_bytes(data)
    words = ["rebuild", str(place), how]
    done = run_limited(*words, str(tmp_path / "new")) if how == "--out" else run_limited(*words)
    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.endswith("rebuilt.deleted: file too large\n")
    assert 1 == done.stderr.count("\n")
    assert images == {path.name: path.read_bytes() for path in place.iterdir()}
    assert [place] == list(tmp_path.iterdir())
