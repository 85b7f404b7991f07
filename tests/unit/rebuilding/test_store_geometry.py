# SPDX-License-Identifier: Apache-2.0
"""How many slots and entries a new index gets, and that a guess is told until it is none."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import CorruptIndexError, InvalidArgumentError
from segproof.files import REAL_FILES
from segproof.reading.store_paths import GUESS_FILE
from segproof.rebuilding import store_geometry
from segproof.rebuilding.store_geometry import GeometryFrom, new_geometry
from segproof.repair import rebuild_index, salvage_store
from segproof.rocketmq.geometry import find_geometry
from segproof.rocketmq.index_table import Geometry
from segproof.store_lookup import StoreReader
from segproof.verification import verify
from segproof_harness.cli import run
from segproof_harness.laws.judged_store import StoreJudge
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import state_of
from segproof_tests.store_files import INDEX, LOG, copied_store

SMALL = Geometry(16, 64)
GIVEN = (8, 100)
KEY = "TopicTest#order-1"


def laws_of(store: Path, **options: Any) -> list[str]:
    """Return the laws of all defects."""
    return [one.law for one in verify(store, **options) if one.is_defect]


def without_index(tmp_path: Path) -> Path:
    """Return a store whose index is lost, and the checkpoint with it."""
    store = copied_store(tmp_path)
    shutil.rmtree(store / "index")
    return store


@pytest.mark.checks("RMQDISK-51")
def test_a_guess_is_told_until_the_numbers_are_given(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A salvage without an old index made one of 420 MB without a word, in which a broker with 16
    slots finds nothing, and `verify` called it sound. Now the report, the new store and `verify`
    tell the guess. It is taken over by the next salvage and rebuild, and ends with given
    numbers."""
    monkeypatch.setattr(store_geometry, "DEFAULT_GEOMETRY", Geometry(100, 400))
    store, out, again = without_index(tmp_path), tmp_path / "out", tmp_path / "again"
    assert run(["salvage", str(store), "--out", str(out)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "guessed: 100 slots and 400 entries in each index file" in shown
    assert "give --hash-slots and --index-num" in shown
    assert (out / GUESS_FILE).read_bytes().startswith(b"100 slots and 400 entries")
    (warning,) = (one for one in verify(out) if one.is_defect)
    assert "RMQDISK-51" == warning.law
    assert "100 slots and 400 entries" in warning.message
    assert StoreJudge({GUESS_FILE: b""}, 16).breaks("RMQDISK-51")
    told = salvage_store(out, again)
    assert (GeometryFrom.GUESSED_INDEX, 100) == (told.geometry_from, told.hash_slot_num)
    assert ["RMQDISK-51"] == laws_of(again)
    rebuilt = rebuild_index(out, in_place=True)
    assert GeometryFrom.GUESSED_INDEX == rebuilt.geometry_from
    assert ["RMQDISK-51"] == laws_of(out)
    before = state_of(out)
    rebuild_index(out, tmp_path / "elsewhere", *GIVEN)
    rebuild_index(out, None, *GIVEN, in_place=True, dry_run=True)
    assert before == state_of(out)
    rebuilt = rebuild_index(out, None, *GIVEN, in_place=True)
    assert (GeometryFrom.GIVEN, 8, 100) == (
        rebuilt.geometry_from, rebuilt.hash_slot_num, rebuilt.index_num,
    )  # fmt: skip
    assert [] == laws_of(out)
    assert not (out / GUESS_FILE).exists()


def test_given_numbers_and_those_of_old_files_are_no_guess(tmp_path: Path, capsys: Capsys) -> None:
    """The report of a salvage tells the numbers and where they are from, as text and as JSON."""
    lost = without_index(tmp_path)
    words = ["--hash-slots", "8", "--index-num", "100"]
    assert run(["salvage", str(lost), "--out", str(tmp_path / "a"), *words]) == 0
    assert "index: 8 slots and 100 entries in each file (given)" in capsys.readouterr().out
    kept = copied_store(tmp_path / "kept")
    assert 0 == run(["salvage", str(kept), "--out", str(tmp_path / "b"), "--format", "jsonl"])
    row = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (*SMALL, "old index") == (row["hash_slot_num"], row["index_num"], row["geometry_from"])
    for out in ("a", "b"):
        assert [] == laws_of(tmp_path / out)
        assert not (tmp_path / out / GUESS_FILE).exists()


def test_one_number_that_is_given_leaves_the_other_a_guess(tmp_path: Path) -> None:
    """Both numbers decide which bytes a broker reads."""
    store = str(without_index(tmp_path))
    for slots, entries in ((8, None), (None, 9)):
        told = new_geometry(store, slots, entries, REAL_FILES)
        assert (GeometryFrom.DEFAULT, True) == (told.origin, told.is_guess)
    told = new_geometry(store, 8, 9, REAL_FILES)
    assert (Geometry(8, 9), False) == (told.geometry, told.is_guess)


@pytest.mark.checks("RMQDISK-2")
def test_few_entries_tell_their_slots(tmp_path: Path) -> None:
    """Of a store with one message the slots were guessed wrong: `verify` of a salvaged store found
    7 errors, and `lookup` no message, with exit code 0."""
    whole = copied_store(tmp_path)
    for messages in range(1, 5):
        store = Path(shutil.copytree(whole, tmp_path / f"store-{messages}"))
        data, end = (store / LOG).read_bytes(), 0
        for _ in range(messages):
            end += int.from_bytes(data[end : end + 4], "big")
        (store / LOG).write_bytes(data[:end].ljust(len(data), b"\0"))
        out = tmp_path / f"out-{messages}"
        salvage_store(store, out)
        (path,) = (out / "index").iterdir()
        assert ("inferred", SMALL) == (find_geometry(path).origin, find_geometry(path).geometry)
        assert [] == laws_of(out, deep=True)
        assert 0 in StoreReader(out).lookup_key(KEY).phy_offsets


@pytest.mark.checks("RMQDISK-2")
def test_slots_that_can_not_be_told_are_no_answer(tmp_path: Path, capsys: Capsys) -> None:
    """A file that more pairs fit than are tried is ambiguous: no verb answers from the first of
    them. `salvage` takes one, and says that it is a guess; `rebuild` asks for the numbers."""
    store = copied_store(tmp_path)
    data = bytearray((store / LOG).read_bytes())
    size = int.from_bytes(data[:4], "big")
    (store / LOG).write_bytes(data[:size].ljust(len(data), b"\0"))
    salvage_store(store, tmp_path / "one")
    path = next((tmp_path / "one" / "index").iterdir())
    put_bytes(path, -1, b"\1")  # the last byte that is not zero tells nothing now
    answer = find_geometry(path)
    assert "ambiguous" == answer.origin
    assert len(answer.candidates) > 1
    reader = StoreReader(tmp_path / "one")
    with pytest.raises(CorruptIndexError, match="numbers of slots fit the file"):
        reader.lookup_key(KEY)
    assert (0,) == StoreReader(tmp_path / "one", hash_slot_num=16).lookup_key(KEY).phy_offsets
    assert 1 == run(["lookup", str(tmp_path / "one"), "--key", KEY])
    assert 1 == run(["dump", str(path)])
    assert "say how many it has" in capsys.readouterr().err
    with pytest.raises(InvalidArgumentError, match="do not tell how many slots"):
        rebuild_index(tmp_path / "one", in_place=True)
    told = salvage_store(tmp_path / "one", tmp_path / "two")
    assert GeometryFrom.AMBIGUOUS == told.geometry_from
    assert "RMQDISK-51" in laws_of(tmp_path / "two")
    assert (store / INDEX).exists()
