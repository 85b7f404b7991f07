# SPDX-License-Identifier: Apache-2.0
"""A rebuild says of a broken log what `verify` says: the same law at the same byte."""

from pathlib import Path

import pytest

from segproof.rebuilding.segment_build import Options
from segproof.repair import rebuild_all, rebuild_index
from segproof.verification import verify
from segproof_tests.partition_files import batches_of, copied_partition
from segproof_tests.store_files import copied_store


@pytest.mark.slow
@pytest.mark.checks("RMQDISK-24", "RMQDISK-27")
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("damage", [b"?" * 40, bytes(300), b"\0\0\0\x01"])
def test_a_rebuild_of_a_broken_store_says_what_verify_says(
    share: float, damage: bytes, tmp_path: Path
) -> None:
    """The same law at the same byte; the end is cut only where no sound message follows."""
    store = copied_store(tmp_path)
    (log,) = sorted((store / "commitlog").iterdir())
    data = log.read_bytes()
    end = len(data.rstrip(b"\0"))
    at = int(end * share) + 20 * (share == 1)
    log.write_bytes(data[:at] + damage + data[at + len(damage) :])
    told = rebuild_index(
        store, hash_slot_num=64, index_num=256, in_place=True, dry_run=True, all_files=True
    )
    sound = {one.position for one in verify(store) if one.path == str(log)}
    for finding in told.findings:
        assert ("--cut-tail" in str(finding.hint)) <= (told.left_messages == 0)
        assert finding.position in sound
        laws = {one.law for one in verify(store) if one.position == finding.position}
        assert finding.law in laws
        assert finding.reproduce is not None
        assert finding.reproduce.endswith(f"--law {finding.law}")


@pytest.mark.checks("DISK-13", "BATCH-2", "BATCH-3")
@pytest.mark.parametrize("place", [3, 8, 10, 16, 40, 70])
def test_a_rebuild_of_a_broken_log_says_what_verify_says(place: int, tmp_path: Path) -> None:
    """Of the last log, in which sound batches follow: its end is never cut."""
    partition = copied_partition("plain", tmp_path)
    log = sorted(partition.glob("*.log"))[-1]
    data = bytearray(log.read_bytes())
    batches = batches_of(bytes(data))
    data[sum(map(len, batches[:5])) + place] ^= 1
    log.write_bytes(data)
    (told,) = rebuild_all([partition], None, Options(in_place=True, dry_run=True))
    (finding,) = told.done.findings
    assert "--cut-tail" not in str(finding.hint)
    found = [one for one in verify(log, position=finding.position) if one.law == finding.law]
    assert found
    assert finding.reproduce in {one.reproduce for one in found}
