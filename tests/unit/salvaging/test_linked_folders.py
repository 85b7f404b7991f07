# SPDX-License-Identifier: Apache-2.0
"""Links to folders and files: a salvage copies what a broker reads, and no more."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.repair import salvage, salvage_store
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, partition_of
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import contents
from segproof_tests.store_files import copied_store

TIMERS = "0" * 20


def _foreign(folder: Path) -> Path:
    """Make a folder with what must not be copied, also below it."""
    (folder / "below").mkdir(parents=True)
    for name in ("key", "below/key", "below/topics.json", f"below/{TIMERS}"):
        (folder / name).write_bytes(b"secret")
    return folder


def test_a_linked_config_gives_what_a_broker_reads(tmp_path: Path) -> None:
    """Every file of the folder was copied."""
    store, out = copied_store(tmp_path), tmp_path / "out"
    elsewhere = _foreign(tmp_path / "elsewhere")
    (elsewhere / "topics.json").write_bytes(b"{}")
    (elsewhere / "topics.json.bak").write_bytes(b"{ }")
    (store / "config").symlink_to(elsewhere)
    told = salvage_store(store, out)
    assert {"topics.json": b"{}", "topics.json.bak": b"{ }"} == contents(out / "config")
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
    assert {TIMERS: bytes(520)} == contents(out / "timerlog")
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


@pytest.mark.parametrize("linked", [[342], [0, 693]])
def test_a_log_that_is_a_link_to_another_disk_is_not_lost(
    tmp_path: Path, linked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was "lost: 78 offsets", "missing", and no step said how such a partition is saved."""
    for name in ("plain-0", "other-0"):
        shutil.copytree(partition_of(KAFKA / "plain"), tmp_path / "data" / name)
    disk = tmp_path / "disk"
    disk.mkdir()
    for base in linked:
        log = tmp_path / "data" / "plain-0" / f"{base:020d}.log"
        shutil.move(log, disk)
        log.symlink_to(disk / log.name)
    monkeypatch.chdir(tmp_path)
    told = {os.path.basename(one.directory): one for one in salvage("data", "saved")}
    assert told["other-0"].is_whole
    assert told["plain-0"].target is None
    assert 0 == told["plain-0"].lost_offsets
    (words,) = told["plain-0"].left_out
    assert "nothing is known to be lost" in words
    commands = [one.replace("DIR2", "again") for one in re.findall("`([^`]+)`", words)]
    for command in commands[:-1]:
        subprocess.run(["bash", "-ec", command], check=True)
    assert 0 == cli.run(commands[-1].split()[1:])
    names = sorted(path.name for path in (tmp_path / "again" / "plain-0").glob("*.log"))
    whole = partition_of(KAFKA / "plain").glob("*.log")
    assert sorted(path.name for path in whole) == names
    with pytest.raises(InvalidArgumentError, match="nothing is known to be lost"):
        list(salvage("data/plain-0", "alone"))


def test_a_linked_identity_is_not_called_broken(tmp_path: Path, capsys: Capsys) -> None:
    """The file behind the link was read, and said to have neither broker.id nor cluster.id."""
    shutil.copytree(partition_of(KAFKA / "plain"), tmp_path / "data" / "plain-0")
    (tmp_path / "elsewhere").write_text("a secret")
    (tmp_path / "data" / "meta.properties").symlink_to(tmp_path / "elsewhere")
    assert 0 == cli.run(["salvage", str(tmp_path / "data"), "--out", str(tmp_path / "saved")])
    said = capsys.readouterr().err
    assert f"is a link and was not read: look at {tmp_path / 'elsewhere'}" in said
    assert "no broker reads" not in said
