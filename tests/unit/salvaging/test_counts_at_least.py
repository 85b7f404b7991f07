# SPDX-License-Identifier: Apache-2.0
"""Lost offsets of a partition: exact, "at least" or "not known", and the same in `verify`."""

from pathlib import Path

import pytest

from segproof_harness.laws.borders.log_files import offset_entries
from segproof_harness.salvage_draws.draws import salvage_of_kafka, told_by_verify
from segproof_harness.salvage_draws.verdict import Told
from segproof_tests.partition_files import aged, write_segment
from segproof_tests.small_logs import batch, log_of

KEYED = {offset: batch(offset, key=b"k") for offset in range(40)}


def keyed(start: int, end: int, broken: int = -1) -> bytes:
    """Return a log of batches with one record each, all with a key; one of them may be broken."""
    log = b"".join(KEYED[offset] for offset in range(start, end))
    at = sum(len(KEYED[offset]) for offset in range(start, broken))
    return log if broken < 0 else log[:at] + bytes(61) + log[at + 61 :]


def told(folder: Path) -> Told:
    """Return what a salvage tells of a partition, and see that `verify` tells the same."""
    found = salvage_of_kafka(folder, folder.parent.parent / "out")
    assert found == told_by_verify(aged(folder))
    return found


@pytest.mark.checks("DISK-13")
def test_the_name_above_a_lone_batch_proves_no_loss(tmp_path: Path) -> None:
    """A log of one batch, far below its name: the offsets between were "lost", exactly."""
    folder = tmp_path / "in" / "t-0"
    write_segment(folder, keyed(0, 11, broken=10))
    write_segment(folder, keyed(11, 12), 5_891_904)
    found = told(folder)
    assert (found.lost, found.is_exact) == (1, False)


@pytest.mark.checks("DISK-6")
def test_two_zeroed_logs_lose_each_offset_once(tmp_path: Path) -> None:
    """The first one's offsets counted twice: an index tells how far the last one went."""
    folder = tmp_path / "in" / "t-0"
    write_segment(folder, bytes(400), 1000)
    write_segment(folder, bytes(800), 1003, index=offset_entries((6, 500)))
    found = told(folder)
    assert (found.lost, found.is_exact) == (10, False)


@pytest.mark.checks("DISK-4")
def test_a_log_that_is_gone_hides_no_loss_before_it(tmp_path: Path) -> None:
    """The other log has too high a name: it was read after the one that is gone."""
    folder = tmp_path / "in" / "t-0"
    write_segment(folder, keyed(0, 10, broken=5), 6_689_365)
    write_segment(folder, keyed(11, 12), 11, index=b"").joinpath(f"{11:020}.log").unlink()
    assert (told(folder).at_most or 9) >= 2


@pytest.mark.checks("DISK-63")
def test_offsets_between_two_logs_alone_are_not_known(tmp_path: Path) -> None:
    """No other offset is left out, so hardly a cleaner was there: no offset was told."""
    folder = tmp_path / "in" / "t-0"
    entries = offset_entries((1, len(KEYED[0])))
    write_segment(folder, keyed(0, 9), index=entries, timeindex=b"")
    write_segment(folder, keyed(10, 30, broken=20), 10)
    found = told(folder)
    assert (found.lost, found.at_most) == (0, 2)


@pytest.mark.checks("LOG-4")
def test_batches_that_are_cut_apart_leave_the_count_open(tmp_path: Path) -> None:
    """Of two logs that claim the same offsets one may be another topic's, also what is kept."""
    folder = tmp_path / "in" / "t-0"
    write_segment(folder, keyed(0, 15))
    for first in (10, 20, 30, 40):
        write_segment(folder, log_of(first, first + 10), first)
    assert not told(folder).is_exact


@pytest.mark.checks("DISK-19")
@pytest.mark.parametrize(("bit", "lost"), [(5, 0), (6, 1)])
def test_a_bit_of_the_last_batch_counts_alike(bit: int, lost: int, tmp_path: Path) -> None:
    """A record before it has no key: `verify` asked for many batches, and called the log sound."""
    folder = tmp_path / "in" / "t-0"
    write_segment(folder, log_of(0, 4) + batch(4 + (1 << bit)))
    assert told(folder).lost == lost
