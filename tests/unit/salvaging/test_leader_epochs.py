# SPDX-License-Identifier: Apache-2.0
"""Leader epochs of the first and of the last batch, which have one neighbour in the log."""

from pathlib import Path

import pytest

from segproof.repair import salvage
from segproof.verification import verify
from segproof_tests.partition_files import batches_of, copied_partition

CHECKPOINT = "leader-epoch-checkpoint"


def _with_epochs(folder: Path, entries: str, own: int, end: int | None, first: int | None) -> None:
    """Give all batches of a partition an epoch, and the first and the last one another."""
    logs = sorted(folder.glob("*.log"))
    for path in logs:
        found = [bytearray(one) for one in batches_of(path.read_bytes())]
        epochs = [own] * len(found)
        if path == logs[0] and first is not None:
            epochs[0] = first
        if path == logs[-1] and end is not None:
            epochs[-1] = end
        for one, epoch in zip(found, epochs, strict=True):
            one[12:16] = epoch.to_bytes(4, "big", signed=True)
        path.write_bytes(b"".join(found))
    (folder / CHECKPOINT).write_text(f"0\n{len(entries.splitlines())}\n{entries}\n")


def _epochs(folder: Path) -> list[int]:
    logs = [path.read_bytes() for path in sorted(folder.glob("*.log"))]
    found = [one for log in logs for one in batches_of(log)]
    return [int.from_bytes(one[12:16], "big", signed=True) for one in found]


@pytest.mark.checks("EPOCH-1", "DISK-37")
@pytest.mark.parametrize(
    ("entries", "first", "end"),
    [
        ("5 0", None, 5 + (1 << 21)),
        ("5 0", None, 5 + (1 << 16) + 1),
        ("5 0", None, 4),
        ("5 0", None, -1),
        ("4 0\n5 0", None, 4),
        ("5 0\n7 746", None, 6),  # by the checkpoint no leader began before offset 746
        ("5 0", 4, None),
        ("5 0", 5 + (1 << 21), None),
        ("5 0", 1, 5 + (1 << 21)),
        ("no entry", None, 4),  # the epoch falls by a bit, and two batches agree
        ("no entry", 7, None),
    ],
)
def test_the_checkpoint_proves_the_epoch_of_an_end(
    entries: str, first: int | None, end: int | None, tmp_path: Path
) -> None:
    """A wrong last epoch was written into the new checkpoint: followers truncate by it."""
    bad = copied_partition("plain", tmp_path)
    _with_epochs(bad, entries, 5, end, first)
    (told,) = salvage(bad, tmp_path / "out")
    new = tmp_path / "out" / bad.name
    assert (told.restored_epochs, told.is_whole) == ((first, end).count(None) % 2 or 2, True)
    assert {5} == {*_epochs(new)}
    assert "5 0" in (new / CHECKPOINT).read_text().splitlines()
    assert [] == [str(one) for one in verify(tmp_path / "out", laws=["DISK-37"])]


@pytest.mark.checks("EPOCH-1", "DISK-37")
@pytest.mark.parametrize(
    ("entries", "first", "end"),
    [
        ("5 0", None, 6),  # a new leader, and the file was written before
        ("5 0", None, 5 + (1 << 16)),
        ("5 0\n9 693", None, 1 << 21),  # the batch before contradicts the file
        ("5 0\n9 700\n8 700", None, 1 << 21),  # the file contradicts itself
        ("no entry", None, 1 << 21),
        ("3 0\n5 9", 4, None),
        ("5 0", None, 2),  # a broker makes this file of these batches
    ],
)
def test_an_epoch_that_nothing_proves_wrong_stays(
    entries: str, first: int | None, end: int | None, tmp_path: Path
) -> None:
    """A leader may begin shortly before a crash, and its entry be lost."""
    bad = copied_partition("plain", tmp_path)
    _with_epochs(bad, entries, 5, end, first)
    (told,) = salvage(bad, tmp_path / "out")
    assert 0 == told.restored_epochs
    assert _epochs(bad) == _epochs(tmp_path / "out" / bad.name)


@pytest.mark.checks("EPOCH-1")
def test_a_checkpoint_of_an_earlier_salvage_proves_no_epoch(tmp_path: Path) -> None:
    """The second salvage gave the last batch the wrong epoch of the first one."""
    bad = copied_partition("plain", tmp_path)
    _with_epochs(bad, "no entry", 5, 3, 9)
    salvage(bad, tmp_path / "once")
    salvage(tmp_path / "once" / bad.name, tmp_path / "twice")
    assert _epochs(tmp_path / "once" / bad.name) == _epochs(tmp_path / "twice" / bad.name)


@pytest.mark.checks("EPOCH-1")
def test_an_epoch_that_falls_gets_the_later_one_of_the_checkpoint(tmp_path: Path) -> None:
    """The leader of the last batch wrote nothing else; one bit made its epoch lower."""
    bad = copied_partition("plain", tmp_path)
    last = batches_of(max(bad.glob("*.log")).read_bytes())[-1]
    offset = int.from_bytes(last[:8], "big")
    _with_epochs(bad, f"5 0\n6 {offset}", 5, 2, None)
    (told,) = salvage(bad, tmp_path / "out")
    assert told.restored_epochs == 1
    assert _epochs(tmp_path / "out" / bad.name)[-2:] == [5, 6]


@pytest.mark.checks("DISK-28", "EPOCH-1")
@pytest.mark.parametrize("bit", [0, 4, 28])
def test_the_finding_of_a_flipped_bit_names_the_salvage(bit: int, tmp_path: Path) -> None:
    """It said that the log holds batches of two leaders, and a salvage restored the epoch."""
    folder = copied_partition("plain", tmp_path)
    log = sorted(folder.glob("*.log"))[1]
    found = [bytearray(one) for one in batches_of(log.read_bytes())]
    found[3][12:16] = (1 << bit).to_bytes(4, "big")
    whole, damaged = log.read_bytes(), b"".join(found)
    log.write_bytes(damaged)
    (told,) = verify(folder, laws=["DISK-28"])
    assert "segproof salvage" in told.hint
    assert "on both sides" in told.hint
    (saved,) = salvage(folder, tmp_path / "out")
    assert saved.restored_epochs == 1
    assert (tmp_path / "out" / folder.name / log.name).read_bytes() == whole
