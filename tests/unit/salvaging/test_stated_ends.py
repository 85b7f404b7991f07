# SPDX-License-Identifier: Apache-2.0
"""How far the last log went: what its indexes state, and what wrong entries do not."""

from pathlib import Path

import pytest

from segproof.findings import Verdict
from segproof_harness.laws.borders.log_files import offset_entries, time_entries
from segproof_harness.salvage_draws.draws import salvage_of_kafka, told_by_verify
from segproof_tests.partition_files import aged, looked_at, write_segment
from segproof_tests.small_logs import batch

KEYED = {offset: batch(offset, key=b"k") for offset in range(64)}
STARTS = {offset: offset * len(KEYED[0]) for offset in KEYED}
TIMES = time_entries(*((1000 + offset, offset) for offset in (9, 19, 29)))
OTHER_TIMES = time_entries(*((2000 + offset, offset) for offset in (9, 19, 29, 39)))
CUT = 30
"""The logs of most tests end before this offset, with a whole batch."""


def entries(*rows: int | tuple[int, int]) -> bytes:
    """Return an index that leads to batches; a second number is the offset that one states."""
    told = [row if isinstance(row, tuple) else (row, row) for row in rows]
    return offset_entries(*((offset, STARTS[at]) for at, offset in told))


def stated(tmp_path: Path, indexes: dict[str, bytes], *broken: int, torn: int = 0) -> int:
    """Return how many offsets are lost at least, as a salvage and `verify` tell of a last log."""
    folder = tmp_path / "in" / "t-0"
    log = bytearray(b"".join(KEYED[offset] for offset in range(CUT)))
    for offset in broken:
        log[STARTS[offset] : STARTS[offset] + 61] = bytes(61)
    write_segment(folder, bytes(log[: len(log) - torn]), 0, **indexes)
    found = salvage_of_kafka(folder, tmp_path / "out")
    assert found == told_by_verify(aged(folder))
    return found.lost


@pytest.mark.checks("SEG-7", "DISK-25")
@pytest.mark.parametrize(
    "index",
    [
        entries((20, 20 | 1 << 25)),
        entries((10, 10 | 1 << 11), 20, 25),
        entries((0, 1 << 11), 20, 25),
        entries((25, 25 | 1 << 11)),
    ],
)
def test_a_wrong_entry_before_the_last_batch_states_no_end(index: bytes, tmp_path: Path) -> None:
    """One bit of it made "at least 33554432 offsets lost", where the log was damaged elsewhere."""
    assert stated(tmp_path, {"index": index}, 0, 1) == 0


@pytest.mark.checks("SEG-7", "DISK-9")
@pytest.mark.parametrize("broken", [(), (5,), (0,)])
@pytest.mark.parametrize(
    "indexes",
    [
        {"index": offset_entries((7, 150), (15, 333), (40, 5000), (50, 6000))},
        {"timeindex": OTHER_TIMES},
        {"index": offset_entries((7, 150), (40, 5000)), "timeindex": OTHER_TIMES},
    ],
)
def test_an_index_of_another_log_states_no_end(
    broken: tuple[int, ...], indexes: dict[str, bytes], tmp_path: Path
) -> None:
    """It did, if it led to few batches of the log, or was a time index."""
    assert stated(tmp_path, indexes, *broken) == 0
    if not broken:
        assert looked_at(tmp_path / "in" / "t-0")[0].verdict is Verdict.INDEX_DAMAGE_ONLY


@pytest.mark.checks("DISK-9")
@pytest.mark.parametrize(("bits", "lost"), [(0, 0), (1 << 20, 0), (1, 1)])
def test_a_time_entry_of_a_torn_batch_states_no_more(bits: int, lost: int, tmp_path: Path) -> None:
    """One bit of its offset made "at least 1048576 offsets lost"; the header has its timestamp."""
    last = CUT - 1
    times = time_entries((1009, 9), (1000 + last + lost, last ^ bits if not lost else CUT))
    found = stated(tmp_path, {"index": entries(9), "timeindex": times}, torn=10)
    assert found == 2 * lost


@pytest.mark.checks("DISK-25")
@pytest.mark.parametrize("broken", [(), (5,), (CUT - 1,)])
@pytest.mark.parametrize(
    "indexes",
    [
        {"index": entries(10, 20, 40, 49), "timeindex": TIMES},
        {"index": entries(40, 49)},
        {"index": entries((10, 11), 20, 25, 49)},
    ],
)
def test_a_right_index_states_an_end_that_is_gone(
    broken: tuple[int, ...], indexes: dict[str, bytes], tmp_path: Path
) -> None:
    """All its entries lie behind the end, or those before it are right more often than wrong."""
    assert stated(tmp_path, indexes, *broken) == 50 - CUT + (CUT - 1 in broken)
