# SPDX-License-Identifier: Apache-2.0
"""What RocketMQ's own store does with a damaged log: as `verify` says, before it starts."""

import re
import shutil
from pathlib import Path

import pytest
from tests.oracle.stores import LOG_BYTES, NEWEST, OLD, StoreProcess, our_messages, write_store

from segproof.findings import Severity
from segproof.rocketmq.commit_log import CommitLog
from segproof.verification import verify

pytestmark = pytest.mark.needs("java", "jpype")
COUNT = 200
LAWS = ("RMQDISK-24", "RMQDISK-26", "RMQDISK-27")


def damaged(path: Path, number: int, *, is_killed: bool) -> int:
    """Write a store, and flip a bit in the body of one of its messages; return its offset."""
    offsets = write_store(path, our_messages(COUNT))
    at = offsets[number]
    file = path / "commitlog" / f"{at - at % LOG_BYTES:020d}"
    data = bytearray(file.read_bytes())
    start = data.index(f"body {number} ".encode(), at % LOG_BYTES)
    data[start] ^= 1
    file.write_bytes(data)
    if is_killed:
        (path / "abort").touch()
        (path / "checkpoint").write_bytes(bytes(4096))  # nothing was known to be durable
    return at


@pytest.mark.checks(*LAWS)
@pytest.mark.parametrize("release", [NEWEST, OLD])
@pytest.mark.parametrize(("number", "is_killed"), [(190, False), (60, True)])
def test_a_recovery_that_reaches_damage_cuts_there(
    release: str, number: int, is_killed: bool, tmp_path: Path
) -> None:
    """The log then ends where `verify` says; later files are gone, and with them the messages."""
    path = tmp_path / "store"
    at = damaged(path, number, is_killed=is_killed)
    (told,) = (one for one in verify(path) if one.law in LAWS)
    assert told.severity is Severity.ERROR
    assert f"keeps the {number} messages before it" in told.message
    assert f"throws these {COUNT - 1 - number} away" in told.message
    assert "and reaches it" in told.message
    with StoreProcess(release, path) as store:
        assert store.ask("load") is True
        assert at == store.ask("max_offset")
    kept = [offset for offset, found in CommitLog.open(path).scan() if found.message is not None]
    assert number == len([offset for offset in kept if offset < at])
    starts = [int(one.name) for one in (path / "commitlog").iterdir()]
    assert not [start for start in starts if start > at + LOG_BYTES]


def test_a_recovery_that_does_not_reach_damage_leaves_it(tmp_path: Path) -> None:
    """After a clean stop the damage of an old file stays, and what lies behind it too."""
    path = tmp_path / "store"
    damaged(path, 5, is_killed=False)
    before = shutil.copytree(path / "commitlog", tmp_path / "before")
    (told,) = (one for one in verify(path) if one.law in LAWS)
    assert re.search(r"begins at offset \d{5} here, and does not reach it", told.message)
    with StoreProcess(NEWEST, path) as store:
        assert store.ask("load") is True
        end = store.ask("max_offset")
    assert end > COUNT * 100
    for file in before.iterdir():
        assert file.read_bytes() == (path / "commitlog" / file.name).read_bytes()
