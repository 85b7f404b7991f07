# SPDX-License-Identifier: Apache-2.0
"""Links to folders in a store of RocketMQ: a salvage copies what a broker reads, and no more."""

from pathlib import Path

import pytest

from segproof.salvaging.store_salvage import salvage_store
from segproof_tests.store_files import copied_store

TIMERS = "0" * 20


def _foreign(folder: Path) -> Path:
    """Make a folder with what must not be copied, also below it."""
    (folder / "below").mkdir(parents=True)
    for name in ("key", "below/key", "below/topics.json", f"below/{TIMERS}"):
        (folder / name).write_bytes(b"secret")
    return folder


def _copied(out: Path, name: str) -> dict[str, bytes]:
    folder = out / name
    found = (one for one in folder.rglob("*") if one.is_file())
    return {one.relative_to(folder).as_posix(): one.read_bytes() for one in found}


def test_a_linked_config_gives_what_a_broker_reads(tmp_path: Path) -> None:
    """Every file of the folder was copied."""
    store, out = copied_store(tmp_path), tmp_path / "out"
    elsewhere = _foreign(tmp_path / "elsewhere")
    (elsewhere / "topics.json").write_bytes(b"{}")
    (elsewhere / "topics.json.bak").write_bytes(b"{ }")
    (store / "config").symlink_to(elsewhere)
    told = salvage_store(store, out)
    assert {"topics.json": b"{}", "topics.json.bak": b"{ }"} == _copied(out, "config")
    for name in ("key", "below"):
        (words,) = [one for one in told.left_out if one.startswith(f"{store}/config/{name}:")]
        assert str(elsewhere) in words
    assert 12 == told.messages


def test_a_linked_timer_log_gives_its_files(tmp_path: Path) -> None:
    """The folder was copied whole, with the folders below it."""
    store, out = copied_store(tmp_path), tmp_path / "out"
    elsewhere = _foreign(tmp_path / "elsewhere")
    (elsewhere / TIMERS).write_bytes(bytes(520))
    (store / "timerlog").symlink_to(elsewhere)
    told = salvage_store(store, out)
    assert {TIMERS: bytes(520)} == _copied(out, "timerlog")
    left = [one.split(":")[0] for one in told.left_out]
    assert {f"{store}/timerlog/key", f"{store}/timerlog/below"} <= {*left}


@pytest.mark.parametrize("folder", ["timerlog", "config", "config/kept", "."])
@pytest.mark.parametrize("target", [".", "elsewhere"])
def test_a_linked_folder_is_not_entered(folder: str, target: str, tmp_path: Path) -> None:
    """A link to the folder that it is in ended the salvage each time."""
    store, out = copied_store(tmp_path), tmp_path / "out"
    place = store / folder
    place.mkdir(parents=True, exist_ok=True)
    if folder == "config/kept":  # a database of RocksDB
        (place / "CURRENT").write_text("MANIFEST-000005\n")
        (place / "MANIFEST-000005").write_bytes(b"manifest")
    to = _foreign(tmp_path / "elsewhere") if target == "elsewhere" else Path(".")
    (place / "loop").symlink_to(to)
    told = salvage_store(store, out)
    assert 12 == told.messages
    assert b"secret" not in {path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert not (out / folder / "loop").exists()
    path = "/".join(one for one in (str(store), folder, "loop") if one != ".")
    assert any(one.startswith(f"{path}:") for one in told.left_out)
    assert (folder == "config/kept") == (out / "config/kept/MANIFEST-000005").exists()


def test_a_linked_database_of_the_configuration_is_left_out(tmp_path: Path) -> None:
    """Its link may lead to the database of another program."""
    store, out = copied_store(tmp_path), tmp_path / "out"
    elsewhere = _foreign(tmp_path / "elsewhere")
    (elsewhere / "CURRENT").write_text("MANIFEST-000005\n")
    (elsewhere / "MANIFEST-000005").write_bytes(b"secret")
    (store / "config").mkdir()
    (store / "config" / "kept").symlink_to(elsewhere)
    told = salvage_store(store, out)
    assert not (out / "config").exists()
    assert any(str(elsewhere) in one for one in told.left_out)
