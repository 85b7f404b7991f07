# SPDX-License-Identifier: Apache-2.0
"""Two folders of one partition that are of two generations of its topic: nothing joins them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.verification import verify
from segproof_harness.files.shipped_directories import KAFKA, partition_of
from segproof_harness.laws.borders.log_files import batch
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.partition_files import split_copies
from segproof_tests.rows import paired

PLAIN = partition_of(KAFKA / "plain")
SECOND, LAST = "00000000000000000060.log", "00000000000000000693.log"
META = "version=1\nnode.id=1\ncluster.id=c\ndirectory.id={}\n"


def broker(folder: Path, directory: str) -> Path:
    """Return a log directory with one partition; `directory` is one letter of its id."""
    shutil.copytree(PLAIN, folder / "plain-0")
    (folder / "meta.properties").write_text(META.format(directory * 22))
    return folder


def _both_damaged(one: Path, two: Path) -> None:
    for path in (one / SECOND, two / LAST):
        flip_bits(path, path.stat().st_size // 2)


OTHER_ID = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
IDS = {
    "other": ((None, OTHER_ID), "so they are of two generations"),
    "missing": ((None, b""), "so they may be of two generations"),
    "unreadable": ((b"version: 0\n", None), "so they may be of two generations"),
    "unreadable in both": ((b"x", b"x"), "so they may be of two generations"),
    "none": ((b"", b""), None),
    "same": ((OTHER_ID, OTHER_ID), None),
}
"""What `partition.metadata` of two copies says: None as it is, nothing for no file; the words."""


def _write_ids(copies: tuple[Path, Path], told: tuple[bytes | None, bytes | None]) -> None:
    for copy, content in zip(copies, told, strict=True):
        if content is not None:
            (copy / "partition.metadata").unlink()
        if content:
            (copy / "partition.metadata").write_bytes(content)


@pytest.mark.checks("DISK-48", "DISK-50")
@pytest.mark.parametrize(
    ("ids_told", "damage", "is_known"), paired(IDS, [_both_damaged, split_copies], [True, False])
)
def test_no_join_of_two_generations_of_a_topic(
    tmp_path: Path, ids_told: str, damage: Callable[[Path, Path], object], *, is_known: bool
) -> None:
    """Commands joined a topic and the one that was made again: sound, with records of both."""
    brokers = broker(tmp_path / "one", "a"), broker(tmp_path / "two", "b")
    copies = brokers[0] / "plain-0", brokers[1] / "plain-0"
    damage(*copies)
    told, words = IDS[ids_told]
    _write_ids(copies, told)
    if not is_known:
        (brokers[1] / "meta.properties").unlink()
    for one in verify(tmp_path, laws=["DISK-48"]):
        is_joined = words is None and (damage is not split_copies or is_known)
        assert is_joined is ("make one whole copy" in one.hint) is ("cp -a" in one.hint)
        assert is_joined is ("together they are whole" in one.message)
        is_told = damage is not split_copies or ids_told == "other" or is_joined
        if words is not None and is_told:
            assert words in one.message
            assert "A person decides which generation" in one.hint
            assert ("nothing, if one is a backup" in one.hint) is (not is_known)


@pytest.mark.checks("DISK-48")
def test_no_copy_is_less_than_one_of_another_generation(tmp_path: Path) -> None:
    """Of two generations with the same batches, or none, the hint let one be moved away."""
    one, two = broker(tmp_path / "one", "a"), broker(tmp_path / "two", "b")
    _write_ids((one / "plain-0", two / "plain-0"), (None, OTHER_ID))
    for _ in range(2):
        for found in verify(tmp_path, laws=["DISK-48"]):
            assert "two generations" in found.message
            assert "has more" not in found.message
            assert "move the folder" not in found.hint
            assert "A person decides" in found.hint
        for path in (two / "plain-0").glob("*.log"):
            path.write_bytes(b"")


@pytest.mark.checks("DISK-48")
@pytest.mark.parametrize(("epoch", "is_joined"), [(-1, True), (2, False), (3, True), (4, True)])
def test_no_join_where_leader_epochs_would_fall(
    tmp_path: Path, epoch: int, *, is_joined: bool
) -> None:
    """Without topic ids the epochs alone show that a log was begun again."""
    for number, (name, own) in enumerate({"one": 3, "two": epoch}.items()):
        folder = tmp_path / name / "t-0"
        folder.mkdir(parents=True)
        (tmp_path / name / "meta.properties").write_text(META.format("ab"[number] * 22))
        log = batch(number, partition_leader_epoch=own)
        (folder / f"{number:020d}.log").write_bytes(log)
    found = verify(tmp_path, laws=["DISK-48"])
    assert [is_joined] * 2 == ["make one whole copy" in one.hint for one in found]
