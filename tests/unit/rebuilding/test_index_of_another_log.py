# SPDX-License-Identifier: Apache-2.0
"""An index of another log does not tell how many slots and entries the broker has."""

import os
import shutil
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.files import REAL_FILES
from segproof.reading.store_paths import GUESS_FILE
from segproof.rebuilding.store_geometry import GeometryFrom, new_geometry
from segproof.repair import rebuild_index, salvage_store
from segproof.verification import verify
from segproof_harness.cli.rebuild_store import guess_words
from segproof_tests.store_files import INDEX, LOG, copied_store, long_store

BIG = "u8msgs-4.9.8"


def with_index_of(tmp_path: Path, name: str, other: str) -> Path:
    """Return a copy of a store with the index of another one."""
    store = copied_store(tmp_path / "this", name)
    shutil.rmtree(store / "index")
    shutil.copytree(copied_store(tmp_path / "other", other) / "index", store / "index")
    return store


def origin_of(store: Path) -> GeometryFrom:
    """Return what tells slots and entries of a new index."""
    return new_geometry(str(store), None, None, REAL_FILES).origin


def laws_of(store: Path) -> set[str]:
    """Return the laws of all defects."""
    return {one.law for one in verify(store) if one.is_defect}


@pytest.mark.checks("RMQDISK-44")
@pytest.mark.checks("RMQDISK-51")
def test_an_index_of_another_store_tells_only_a_guess(tmp_path: Path) -> None:
    """Rebuild and salvage made an index with its slots, and `verify` called that sound."""
    store = with_index_of(tmp_path, "rolled-4.9.8", "small-5.5.1")
    assert "RMQDISK-44" in laws_of(store)
    new = tmp_path / "new"
    with pytest.raises(InvalidArgumentError, match=r"of another commit log .* give --hash-slots"):
        rebuild_index(store, new)
    assert not new.exists()
    told = salvage_store(store, tmp_path / "saved")
    assert GeometryFrom.OTHER_LOG == told.geometry_from
    assert "which are of another log" in (guess_words(told) or "")
    assert {"RMQDISK-51"} == laws_of(tmp_path / "saved")
    assert rebuild_index(store, new, 16, 64).files
    rebuilt = rebuild_index(store, in_place=True)
    assert GeometryFrom.OTHER_LOG == rebuilt.geometry_from
    assert (store / GUESS_FILE).exists()
    assert "RMQDISK-51" in laws_of(store)


@pytest.mark.checks("RMQDISK-44")
@pytest.mark.parametrize(
    ("name", "other"),
    [(BIG, "small-4.9.8"), ("small-4.9.8", BIG), ("small-5.5.1", "rolled-4.9.8"),
     ("rolled-4.9.8", "small-4.7.0")],
)  # fmt: skip
def test_stores_of_all_lengths(name: str, other: str, tmp_path: Path) -> None:
    """The index of a longer log leads beyond the end of a shorter one."""
    assert GeometryFrom.OTHER_LOG is origin_of(with_index_of(tmp_path, name, other))


@pytest.mark.parametrize("name", ["small-4.7.0", "small-5.5.1", "rolled-4.9.8", BIG])
def test_an_own_index_tells(name: str, tmp_path: Path) -> None:
    """Of a sound store, and with one number given."""
    store = copied_store(tmp_path, name)
    whole = new_geometry(str(store), None, None, REAL_FILES)
    assert GeometryFrom.OLD_INDEX is whole.origin
    half = new_geometry(str(store), whole.geometry.hash_slot_num, None, REAL_FILES)
    assert whole == half


def test_an_index_of_an_older_or_newer_state_tells(tmp_path: Path) -> None:
    """The log has lost its end or its begin, or went on."""
    store = long_store(tmp_path / "store", 64)
    logs = sorted((store / "commitlog").iterdir())
    for number, gone in enumerate((logs[:1], logs[:-1], logs[1:], logs[1:-1])):
        state = Path(shutil.copytree(store, tmp_path / str(number)))
        for path in gone:
            (state / path.relative_to(store)).unlink()
        assert GeometryFrom.OLD_INDEX is origin_of(state), number
    rolled = copied_store(tmp_path / "rolled", "rolled-4.9.8")
    for path in sorted((rolled / "index").iterdir())[:-1]:
        path.unlink()
        assert GeometryFrom.OLD_INDEX is origin_of(rolled)


def test_an_index_that_leads_beyond_the_last_file_tells(tmp_path: Path) -> None:
    """Later files of the log may be lost: `verify` says so, and nothing of another log."""
    store = long_store(tmp_path / "store", 64)
    former = copied_store(tmp_path / "former", "rolled-4.9.8")
    shutil.rmtree(store / "index")
    (store / "index").mkdir()
    newest = sorted((former / "index").iterdir())[-1]
    shutil.copyfile(newest, store / "index" / newest.name)
    assert {"RMQDISK-23", "RMQDISK-33"} == laws_of(store)
    assert GeometryFrom.OLD_INDEX is origin_of(store)


@pytest.mark.parametrize("share", [2, 10, 1000])
def test_damage_of_the_log_proves_nothing(share: int, tmp_path: Path) -> None:
    """Most entries lead to zeros, or to bytes that are no message."""
    for filling in (b"\0", b"\xff"):
        store = copied_store(tmp_path / filling.hex(), "small-4.9.8")
        data = (store / LOG).read_bytes()
        end = len(data.rstrip(b"\0"))
        kept = end // share
        (store / LOG).write_bytes(data[:kept] + filling * (end - kept) + data[end:])
        assert GeometryFrom.OLD_INDEX is origin_of(store)
        (store / LOG).write_bytes(filling * (end - kept) + data[end - kept :])
        assert GeometryFrom.OLD_INDEX is origin_of(store)


def test_damage_of_the_index_proves_nothing(tmp_path: Path) -> None:
    """A few entries that lead elsewhere, and swapped names of log files."""
    store = copied_store(tmp_path)
    data = bytearray((store / INDEX).read_bytes())
    for at in range(40 + 4 * 16 + 20 * 5 + 7, len(data), 20 * 3):
        data[at] ^= 1
    (store / INDEX).write_bytes(data)
    assert origin_of(store) in (GeometryFrom.OLD_INDEX, GeometryFrom.AMBIGUOUS)
    swapped = long_store(tmp_path / "long", 64)
    first, second = sorted((swapped / "commitlog").iterdir())[:2]
    os.rename(first, tmp_path / "first")
    os.rename(second, first)
    os.rename(tmp_path / "first", second)
    assert GeometryFrom.OLD_INDEX is origin_of(swapped)


@pytest.mark.checks("RMQDISK-44")
def test_files_of_this_log_tell_beside_others(tmp_path: Path) -> None:
    """The newer files are of another store, and have other slots."""
    store = copied_store(tmp_path, BIG)
    own = new_geometry(str(store), None, None, REAL_FILES).geometry
    other = copied_store(tmp_path / "other", "rolled-4.9.8")
    assert own != new_geometry(str(other), None, None, REAL_FILES).geometry
    for number, path in enumerate(sorted((other / "index").iterdir())):
        shutil.copyfile(path, store / "index" / f"{29990101000000000 + number}")
    told = new_geometry(str(store), None, None, REAL_FILES)
    assert (own, GeometryFrom.OLD_INDEX) == (told.geometry, told.origin)


@pytest.mark.checks("RMQDISK-44")
@pytest.mark.parametrize("name", ["rolled-4.9.8", BIG])
def test_an_index_of_another_log_tells_no_release(name: str, tmp_path: Path) -> None:
    """The new index counted puts as the foreign one, which another broker's release had written."""
    foreign = with_index_of(tmp_path / "foreign", name, "small-4.7.0")
    size = new_geometry(str(foreign), None, None, REAL_FILES).geometry
    bare = copied_store(tmp_path / "bare", name)
    shutil.rmtree(bare / "index")
    made = [
        [Path(one.path).read_bytes() for one in rebuild_index(store, tmp_path / new, *size).files]
        for store, new in ((foreign, "a"), (bare, "b"))
    ]
    assert made[0]
    assert made[0] == made[1]
    salvage_store(foreign, tmp_path / "c", hash_slot_num=size[0], index_num=size[1])
    saved = [one.read_bytes() for one in sorted((tmp_path / "c" / "index").iterdir())]
    assert made[1] == saved


@pytest.mark.checks("RMQDISK-44")
@pytest.mark.parametrize("is_new", [False, True])
def test_a_rebuild_names_the_cause_that_verify_names(is_new: bool, tmp_path: Path) -> None:
    """Of a shorter log of another store it said that the end is lost (RMQDISK-23), with a command
    of `verify` that says "sound".
    """
    store = copied_store(tmp_path / "this", "rolled-4.9.8")
    shutil.rmtree(store / "commitlog")
    other = copied_store(tmp_path / "other", "small-4.9.8")
    (other / "commitlog").rename(store / "commitlog")
    (shown,) = (one for one in verify(store) if one.law == "RMQDISK-44")
    out, numbers = (tmp_path / "out", (32, 100)) if is_new else (None, (None, None))
    (told,) = rebuild_index(store, out, *numbers, in_place=not is_new).findings
    assert (shown.law, shown.message, shown.reproduce) == (told.law, told.message, told.reproduce)
