# SPDX-License-Identifier: Apache-2.0
"""Slots and entries of a new index that nobody knows, and marks beside index files."""

import shutil
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.findings import Verdict
from segproof.reading.unfinished import MARKER
from segproof.repair import rebuild_index
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof.verification import verify
from segproof_tests.reported_findings import verified
from segproof_tests.store_files import long_store

DEFECTS, ONLY = Verdict.READABLE_WITH_DEFECTS, Verdict.INDEX_DAMAGE_ONLY


@pytest.mark.checks("RMQDISK-51")
@pytest.mark.parametrize(("slots", "entries"), [(None, None), (16, None), (None, 200)])
def test_a_guess_leaves_the_store_never(
    slots: int | None, entries: int | None, tmp_path: Path
) -> None:
    """Copied into the store, its index was "sound": nothing beside new files says it."""
    store = long_store(tmp_path / "store", 4)
    shutil.rmtree(store / "index")
    for is_dry in (False, True):
        with pytest.raises(InvalidArgumentError, match="give --hash-slots and --index-num"):
            rebuild_index(store, tmp_path / "new", slots, entries, dry_run=is_dry)
    assert not (tmp_path / "new").exists()
    assert rebuild_index(store, tmp_path / "new", 16, 200).files


@pytest.mark.checks("DISK-61")
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_rebuild_in_place_ends_what_was_copied_unfinished(
    is_folder: bool, tmp_path: Path
) -> None:
    """The mark of an unfinished rebuild came with its files, and stayed."""
    store = long_store(tmp_path / "store", 4)
    mark = store / "index" / MARKER
    if is_folder:
        (mark / "index").mkdir(parents=True)
    else:
        mark.touch()
    assert "DISK-61" in {one.law for one in verify(store)} or is_folder
    done = rebuild_index(store, None, 16, 200, in_place=True)
    assert MARKER in done.removed
    assert not [one for one in verify(store) if one.is_defect]


@pytest.mark.checks("RMQDISK-21")
@pytest.mark.parametrize(
    ("time", "is_gone", "verdict"),
    [(0, True, ONLY), (5, True, ONLY), (2**45, False, DEFECTS)],
)
def test_a_store_that_lacks_only_its_index(
    time: int, is_gone: bool, verdict: Verdict, tmp_path: Path
) -> None:
    """It has index damage only, and a rebuild ends that; a wrong checkpoint is another defect."""
    store = long_store(tmp_path / "store", 8)
    with StoreCheckpoint.open(store / "checkpoint", writable=True) as checkpoint:
        checkpoint.set_index_msg_timestamp(time)
        checkpoint.flush()
    if is_gone:
        shutil.rmtree(store / "index")
    _, told = verified(store)
    assert [verdict] == [one.verdict for one in told]
    rebuild_index(store, None, 16, 200, in_place=True)
    assert is_gone is not any(one.is_defect for one in verify(store))
