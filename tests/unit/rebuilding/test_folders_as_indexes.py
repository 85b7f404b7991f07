# SPDX-License-Identifier: Apache-2.0
"""A folder, or a pipe, under the name of an index file: told, and never half rebuilt."""

import os
import shutil
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.findings import Summary, Verdict
from segproof.hints import Effect
from segproof.repair import rebuild, rebuild_index, salvage_store
from segproof.verification import verify
from segproof.wording.reporting import WRONG_KIND
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.reports.consumers import what_consumers_see
from segproof_tests.plain_reader import files_in
from segproof_tests.store_files import ENTRIES, INDEX, SLOTS, copied_store, long_store

BASE = "0" * 20
KINDS = {"folder": os.mkdir, "pipe": os.mkfifo}


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Return a copy of a partition whose last offset index is to be made new."""
    path = tmp_path / "txn-a-0"
    shutil.copytree(KAFKA / "txn-a" / "txn-a-0", path, copy_function=shutil.copyfile)
    next(iter(sorted(path.glob("*1732.index")))).write_bytes(b"")
    return path


def names_in(path: Path) -> set[str]:
    """Return all that is in a directory, folders too."""
    return {str(one.relative_to(path)) for one in path.rglob("*")}


@pytest.mark.checks("DISK-1")
@pytest.mark.parametrize(
    ("suffix", "kind"), [(".index", "folder"), (".timeindex", "pipe"), (".txnindex", "folder")]
)
def test_nothing_of_a_partition_is_replaced_beside_a_folder(
    suffix: str, kind: str, partition: Path, tmp_path: Path
) -> None:
    """The rebuild replaced the other indexes, and ended with an error at the folder."""
    path = partition / f"{BASE}{suffix}"
    path.unlink()
    KINDS[kind](path)
    before, names = files_in(partition), names_in(partition)
    for is_dry in (True, False):
        told = rebuild(
            partition, in_place=not is_dry, dry_run=is_dry,
            backup=None if is_dry else tmp_path / "backup",
        )  # fmt: skip
        assert [str(path)] == [one.path for one in told.findings]
        assert "no new index can take its name" in told.findings[0].message
        assert () == told.files
    assert (before, names) == (files_in(partition), names_in(partition))
    assert not (tmp_path / "backup").exists()
    assert () == rebuild(partition, tmp_path / "out").findings
    assert [] == [one for one in verify(tmp_path / "out") if one.is_defect]


@pytest.mark.checks("DISK-1")
@pytest.mark.parametrize("suffix", [".timeindex", ".txnindex"])
def test_the_hint_of_a_folder_leads_to_a_sound_partition(suffix: str, partition: Path) -> None:
    """It was to check the rights and the disk; consumers were said to get a wrong offset."""
    path = partition / f"{BASE}{suffix}"
    path.unlink()
    (path / "notes").mkdir(parents=True)
    summaries: list[Summary] = []
    found = verify(partition, on_summary=summaries.append)
    (told,) = [one for one in found if one.path == str(path)]
    assert Verdict.INDEX_DAMAGE_ONLY == summaries[-1].verdict
    assert WRONG_KIND == told.hint
    assert Effect.CHANGES_FILES == WRONG_KIND.effect
    assert "serves no partition of this data directory" in (what_consumers_see(told) or "")
    path.rename(partition.parent / "aside")
    assert () == rebuild(partition, in_place=True).findings
    assert [] == [one for one in verify(partition) if one.is_defect]


@pytest.mark.checks("DISK-1")
def test_nothing_of_a_store_is_replaced_beside_a_folder(tmp_path: Path) -> None:
    """The rebuild ended with an error at the folder, and without one beside other files."""
    store = long_store(tmp_path / "store")
    first, *_ = sorted((store / "index").iterdir())
    first.unlink()
    first.mkdir()
    before, names = files_in(store), names_in(store)
    told = rebuild_index(store, in_place=True, backup=tmp_path / "backup")
    assert [str(first)] == [one.path for one in told.findings]
    assert (before, names) == (files_in(store), names_in(store))
    made = rebuild_index(store, tmp_path / "out", SLOTS, ENTRIES)
    assert made.messages == 24
    assert salvage_store(store, tmp_path / "saved").is_whole
    (only,) = [one for one in verify(store) if one.is_defect]
    assert "end their start at it" in only.message
    assert "do not start" in (what_consumers_see(only) or "")
    first.rename(tmp_path / "aside")
    assert () == rebuild_index(store, None, SLOTS, ENTRIES, in_place=True).findings
    assert [] == [one for one in verify(store) if one.is_defect]


def test_the_length_of_a_folder_tells_no_slots(tmp_path: Path) -> None:
    """A salvage made an index of 44 slots and 194 entries, since a folder has 4096 bytes."""
    store = copied_store(tmp_path)
    (store / INDEX).unlink()
    (store / INDEX).mkdir()
    with pytest.raises(InvalidArgumentError, match="give --hash-slots and --index-num"):
        rebuild_index(store, tmp_path / "out")
    told = salvage_store(store, tmp_path / "saved")
    assert told.geometry_from == "default"


def test_a_folder_under_a_number_is_told(tmp_path: Path) -> None:
    """It was said that RocketMQ loads and grows it."""
    store = copied_store(tmp_path)
    (store / "index" / "123").mkdir()
    (only,) = [one for one in verify(store) if one.is_defect]
    assert "DISK-1" == only.law
    assert [only.path] == [one.path for one in rebuild_index(store, in_place=True).findings]
