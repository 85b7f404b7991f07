# SPDX-License-Identifier: Apache-2.0
"""The end of a log that is gone: the index alone proves it, and nothing may remove the proof."""

import shutil
from pathlib import Path

import pytest

from segproof.repair import rebuild_index, salvage_store
from segproof_harness.cli import run
from segproof_tests.plain_reader import files_in
from segproof_tests.printed_rows import Capsys
from segproof_tests.store_files import long_store


def lose_end(store: Path, how: str) -> None:
    """Remove the last file of the log, or write zeros over it."""
    last = max((store / "commitlog").iterdir())
    if how == "gone":
        last.unlink()
    else:
        last.write_bytes(bytes(last.stat().st_size))


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize("how", ["gone", "zeros"])
def test_the_index_alone_proves_a_loss(how: str, tmp_path: Path, capsys: Capsys) -> None:
    """Without queues "everything kept" was said, though the index led beyond the log."""
    store = long_store(tmp_path / "store")
    lose_end(store, how)
    shutil.rmtree(store / "consumequeue")
    told = salvage_store(store, tmp_path / "out")
    assert not told.is_whole
    assert told.lost_messages
    assert not told.is_lost_exact
    assert 1 == run(["salvage", str(store), "--out", str(tmp_path / "again")])
    assert "as queues and index tell" in capsys.readouterr().out


def test_without_queues_and_index_nothing_is_claimed(tmp_path: Path) -> None:
    """Then nothing but the checkpoint tells of a file that is gone, and the count stays open."""
    store = long_store(tmp_path / "store")
    lose_end(store, "gone")
    for name in ("consumequeue", "index"):
        shutil.rmtree(store / name)
    (store / "checkpoint").unlink()
    told = salvage_store(store, tmp_path / "out")
    assert told.is_whole
    assert told.lost_messages is None


@pytest.mark.checks("RMQDISK-23", "RMQDISK-52")
@pytest.mark.parametrize("how", ["gone", "zeros"])
@pytest.mark.parametrize("queues", ["gone", "rocksdb"])
def test_no_rebuild_removes_the_only_proof(how: str, queues: str, tmp_path: Path) -> None:
    """The entries that lead beyond the last message were dropped, and `verify` said "sound"."""
    store = long_store(tmp_path / "store")
    lose_end(store, how)
    shutil.rmtree(store / "consumequeue")
    if queues == "rocksdb":
        (store / "consumequeue").mkdir()
        (store / "consumequeue" / "CURRENT").write_text("MANIFEST-000004\n")
    before = files_in(store / "index")
    found = rebuild_index(store, in_place=True)
    law = "RMQDISK-23" if how == "gone" else "RMQDISK-52"
    assert [law] == [one.law for one in found.findings]
    assert before == files_in(store / "index")
    # With a copy of the old index it is made all the same, if that is wanted.
    cut = rebuild_index(store, in_place=True, cut_tail=True, backup=tmp_path / "kept")
    assert () == cut.findings
    assert cut.messages


@pytest.mark.checks("RMQDISK-25")
@pytest.mark.parametrize("numbers", [(1, 2), (0, 3)])
def test_no_rebuild_of_a_log_with_a_file_over_another(
    numbers: tuple[int, int], tmp_path: Path
) -> None:
    """Old index files were removed, the only ones that told what the lost file had held."""
    store = long_store(tmp_path / "store")
    logs = sorted((store / "commitlog").iterdir())
    shutil.copyfile(logs[numbers[0]], logs[numbers[1]])
    before = files_in(store / "index")
    found = rebuild_index(store, in_place=True)
    assert [("RMQDISK-25", str(logs[numbers[1]]), 0)] == [
        (one.law, one.path, one.position) for one in found.findings
    ]
    assert before == files_in(store / "index")
