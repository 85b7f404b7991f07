# SPDX-License-Identifier: Apache-2.0
"""Which index files a rebuild makes new: wrong ones, missing ones, and no sound one."""

import shutil
from pathlib import Path

import pytest

from segproof import rebuild
from segproof.rebuilding.partition_rebuild import Rebuilt
from segproof_harness.files.shipped_directories import partition_of, scenarios

SCENARIOS = {each.name: partition_of(each) for each in scenarios()}
STEMS = ["00000000000000001014", "00000000000000001732"]


def copy_of(name: str, target: Path) -> Path:
    """Return a private copy of a partition."""
    shutil.copytree(SCENARIOS[name], target, copy_function=shutil.copyfile)
    return target


def images(directory: Path) -> dict[str, bytes]:
    """Return the bytes of each file."""
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def changed(done: Rebuilt) -> dict[str, str | None]:
    """Return the law that each file broke that was made new."""
    return {Path(one.path).name: one.law for one in done.files if one.changed}


@pytest.mark.parametrize("in_place", [False, True], ids=["out", "in-place"])
def test_only_what_is_wrong_is_replaced(in_place: bool, tmp_path: Path) -> None:
    """Sound files stay, also a time index beside a wrong offset index; a dry run says the same."""
    directory, out = copy_of("txn-a", tmp_path / "t-0"), None if in_place else tmp_path / "out"
    wrong, cut = (directory / f"{stem}.index" for stem in STEMS)
    right = images(directory)
    wrong.write_bytes(bytes(range(1, 17)))
    cut.write_bytes(cut.read_bytes()[:8])
    last_times, missing = cut.with_suffix(".timeindex"), wrong.with_suffix(".txnindex")
    last_times.write_bytes(last_times.read_bytes()[:24])
    missing.unlink()
    before = images(directory)
    dry = rebuild(directory, out, in_place=in_place, dry_run=True)
    assert before == images(directory)
    assert in_place or not (tmp_path / "out").exists()
    done = rebuild(directory, out, in_place=in_place)
    assert dry == done
    laws = {
        wrong.name: "SEG-7", cut.name: "DISK-24", last_times.name: "DISK-10",
        missing.name: "DISK-12",
    }  # fmt: skip
    assert laws == changed(done)
    assert right == images(out or directory)


def test_the_index_of_an_old_release_is_sound(tmp_path: Path) -> None:
    """1.1.1 entered one first offset for each append: a recovery makes other entries."""
    directory = copy_of("v1-gzip", tmp_path / "t-0")
    index = min(directory.glob("*.index"))
    before = index.read_bytes()
    rebuild(directory, in_place=True)
    assert before == index.read_bytes()
    rebuild(directory, in_place=True, all_files=True)
    assert before != index.read_bytes()
