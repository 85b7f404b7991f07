# SPDX-License-Identifier: Apache-2.0
"""Where a missing file of a commit log lies, in words that lead there."""

import subprocess
from pathlib import Path

import pytest

from segproof.repair import salvage_store
from segproof.verification import verify
from segproof_harness.laws.judged_store import store_disagreements
from segproof_tests.store_files import LOG_BYTES, copied_store, long_store

NAME = f"{LOG_BYTES:020d}"


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize("place", ["lost+found/#123", "#123"])
def test_a_salvage_names_what_a_file_system_check_left(place: str, tmp_path: Path) -> None:
    """Of a whole file of the log it said that segproof does not know what it is."""
    store = long_store(tmp_path / "store")
    (store / place).parent.mkdir(exist_ok=True)
    (store / "commitlog" / NAME).rename(store / place)
    saved = salvage_store(store, tmp_path / "out")
    told, *others = [one for one in saved.left_out if one.startswith(f"{store / place}: ")]
    assert [] == others
    assert f"a file of a commit log of RocketMQ that begins at offset {LOG_BYTES}" in told
    assert not any("does not know" in one for one in saved.left_out)


@pytest.mark.checks("DISK-1", "RMQDISK-23")
def test_a_file_in_a_folder_of_its_name_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No finding named it, and one led to a finding that was not there."""
    monkeypatch.chdir(tmp_path)
    store = long_store(tmp_path / "my store")
    path = store / "commitlog" / NAME
    data = path.read_bytes()
    path.rename(tmp_path / "x")
    path.mkdir()
    (tmp_path / "x").rename(path / NAME)
    found = {one.law: one for one in verify(store) if one.is_defect}
    assert {"DISK-1", "RMQDISK-23"} == set(found)
    assert [] == list(store_disagreements(store))
    assert f"1 file of a commit log, such as {path / NAME}" in found["DISK-1"].message
    assert "DISK-1 names" in found["RMQDISK-23"].hint
    for law, command in (("DISK-1", "mv -n"), ("RMQDISK-39", "cp -pn")):
        (hint,) = [one.hint for one in verify(store) if one.law == law]
        (step,) = [one for one in hint.split("`")[1::2] if command in one]
        subprocess.run(["sh", "-ec", step], check=True)
    assert data == path.read_bytes()
    assert {"RMQDISK-39"} == {one.law for one in verify(store) if one.is_defect}


@pytest.mark.checks("RMQDISK-42")
def test_a_link_to_a_part_of_dledger_is_named(tmp_path: Path) -> None:
    """There was "nothing of Kafka's here, and no store of RocketMQ" where a link led."""
    store = copied_store(tmp_path)
    group = store / "dledger-n0"
    group.mkdir()
    (store / "commitlog").rename(group / "data")
    (store / "index").rename(group / "index")
    for path in (group / "index").iterdir():
        path.rename(path.with_name(f"{0:020d}"))
    (tmp_path / "link").symlink_to(group / "data")
    for path in (group / "data", tmp_path / "link"):
        (only,) = verify(path)
        assert "RMQDISK-42" == only.law
        assert "the folder of the log of DLedger" in only.message
