# SPDX-License-Identifier: Apache-2.0
"""A salvage that is only planned tells what one does that writes."""

from pathlib import Path
from random import Random

import pytest

from segproof.files import REAL_FILES
from segproof.inventory.walk import partition_in
from segproof.repair import SEGMENT_JUDGE, salvage
from segproof.salvaging.partition_salvage import planned_salvage
from segproof.salvaging.planned_logs import PlannedFiles
from segproof.verifying.directory_checks import judged_inventory
from segproof_harness.salvage_draws.draws import PARTITION, drawn_partition, write_damaged
from segproof_tests.reported_findings import state_of

COUNTED = (
    "bytes_read", "bytes_kept", "unreadable_bytes", "batches", "records", "first_offset",
    "last_offset", "restored_batches", "restored_headers", "moved_batches", "renamed_logs",
    "set_aside_batches", "lost_offsets", "is_end_lost", "are_more_lost", "unproven_offsets",
    "lost_between_logs", "gap_count", "gaps",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(9_930_030, 9_930_042))
def test_a_plan_tells_what_a_salvage_tells(seed: int, tmp_path: Path) -> None:
    """All that is counted; and nothing is written."""
    _, damaged, others = drawn_partition(seed)
    source = tmp_path / PARTITION
    write_damaged(source, damaged, others)
    items, _ = judged_inventory(str(source), REAL_FILES)
    (partition,) = (one for item in items if (one := partition_in(item)) is not None)
    before = state_of(tmp_path)
    planned = planned_salvage(partition, SEGMENT_JUDGE, REAL_FILES)
    assert before == state_of(tmp_path)
    (told,) = salvage(source, tmp_path / "out")
    assert [getattr(told, name) for name in COUNTED] == [getattr(planned, name) for name in COUNTED]


def test_a_planned_file_is_read_like_a_copy(tmp_path: Path) -> None:
    """Of many pieces, with bytes written over some of them."""
    drawn = Random(20261130)
    sources = []
    for number in range(3):
        path = tmp_path / str(number)
        path.write_bytes(drawn.randbytes(100))
        sources.append(REAL_FILES.open(str(path)))
    files = PlannedFiles(REAL_FILES)
    new = files.open(str(tmp_path / "new"), writable=True, create=True)
    copy = bytearray()
    for _ in range(20):
        old = drawn.choice(sources)
        start = drawn.randrange(101)
        end = drawn.randrange(start, 101)
        files.copy(old, start, end, new, len(copy))
        copy += old.pread(end - start, start)
        if end - start > 8:
            new.pwrite(b"12345678", len(copy) - 8)
            copy[-8:] = b"12345678"
    assert len(copy) == new.size() == files.open(new.path).size()
    assert not (tmp_path / "new").exists()
    for _ in range(200):
        start, size = drawn.randrange(len(copy) + 9), drawn.randrange(len(copy))
        wanted = bytes(copy[start : start + size])
        assert wanted == new.pread(size, start)
        buffer = memoryview(bytearray(size))
        assert wanted == buffer[: new.pread_into(buffer, start)]
    for one in sources:
        one.close()
