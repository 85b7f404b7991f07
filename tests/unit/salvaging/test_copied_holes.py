# SPDX-License-Identifier: Apache-2.0
"""What salvage and rebuild copy of sparse files: the holes take no room, in the copy either."""

import os
from pathlib import Path

import pytest

from segproof.files import REAL_FILES
from segproof.rebuilding.kept_files import copy_file
from segproof.repair import salvage_store
from segproof.verification import verify
from segproof_tests.store_files import INDEX, copied_store

FAR = 1 << 40


def sparse(path: Path, size: int) -> Path:
    """Write a file of two bytes, with holes around the second."""
    with path.open("wb") as file:
        file.write(b"a")
        file.seek(size // 2)
        file.write(b"b")
        file.truncate(size)
    return path


def data_of(path: Path) -> tuple[int, bytes, bytes]:
    """Return the size of a sparse file and its bytes; it takes no room on the disk."""
    status = path.stat()
    assert status.st_blocks * 512 < 1 << 20
    with path.open("rb") as file:
        first = file.read(2)
        file.seek(status.st_size // 2 - 1)
        return status.st_size, first, file.read(3)


COPIED = (FAR, b"a\0", b"\0b\0")


def test_a_salvage_of_a_store_copies_no_hole(tmp_path: Path) -> None:
    """A timer log of 8 TiB, which holds nothing, filled the disk."""
    store, out = copied_store(tmp_path), tmp_path / "out"
    (store / "config").mkdir()
    sparse(store / "config" / "notes", FAR)
    salvage_store(store, out)
    assert COPIED == data_of(out / "config" / "notes")


def test_a_copy_of_a_kept_file_has_its_holes(tmp_path: Path) -> None:
    """`rebuild --copy` and `--backup` copy whole files."""
    source, target = sparse(tmp_path / "source", FAR), tmp_path / "target"
    copy_file(str(source), str(target), None, REAL_FILES)
    assert COPIED == data_of(target)
    cut = tmp_path / "cut"
    copy_file(str(source), str(cut), 5000, REAL_FILES)
    assert b"a".ljust(5000, b"\0") == cut.read_bytes()


@pytest.mark.checks("DISK-7")
def test_an_index_file_that_no_broker_can_map_costs_no_message(tmp_path: Path) -> None:
    """A salvage ended there, since it took the length of such a file for that of a new one."""
    store, out = copied_store(tmp_path), tmp_path / "out"
    os.truncate(store / INDEX, (1 << 32) + 1)
    told = salvage_store(store, out)
    assert (12, "default") == (told.messages, told.geometry_from)
    (found,) = verify(store, laws=["DISK-7"])
    assert "segproof rebuild" in str(found.hint)
    assert "--hash-slots" in str(found.hint)


@pytest.mark.parametrize("name", ["config/topics.json.bak", "config/notes", "timerlog/0", "timerx"])
def test_a_link_to_itself_beside_the_log_costs_no_message(name: str, tmp_path: Path) -> None:
    """A salvage ended at it, and what it had saved so far was called incomplete."""
    store, out = copied_store(tmp_path), tmp_path / "out"
    (store / name).parent.mkdir(exist_ok=True)
    (store / name).symlink_to((store / name).name)
    told = salvage_store(store, out)
    assert 12 == told.messages
    part = Path(name).parts[-1 if name.startswith("config") else 0]
    assert any(part in words and "symbolic links" in words for words in told.left_out)
