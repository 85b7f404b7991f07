# SPDX-License-Identifier: Apache-2.0
"""Worked examples of a consume queue: the bytes of units, and lookups by time between them."""

import pytest

from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.consume_queue import ConsumeQueue, ConsumeQueueUnit, read_units
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.files.memory_stores import message_of, write_log


@pytest.mark.checks("RMQCQ-1")
def test_units_of_known_bytes() -> None:
    """Offset, size and tags code, big-endian; valid with an offset from 0 and a size from 1 on."""
    data = bytes.fromhex(
        "0000000100000200 00000060 ffffffff80000000"
        "0000000000000000 7fffffff 0000000000000000"
        "ffffffffffffffff 00000060 0000000000000000"
        "0000000000000000 00000000 0000000000000001"
    )
    units = read_units(data)
    assert ConsumeQueueUnit(2**32 + 512, 96, -(2**31)) == units[0]
    assert ConsumeQueueUnit(0, 2**31 - 1, 0) == units[1]
    assert [True, True, False, False] == [unit.is_valid for unit in units]


@pytest.mark.checks("RMQCQ-3")
@pytest.mark.parametrize(
    ("asked", "lower", "upper"),
    [
        (500, 0, 0),  # before all
        (1000, 0, 0),
        (1500, 1, 0),  # between two
        (2000, 1, 2),  # the first and the last of equal ones
        (2500, 3, 2),
        (3000, 3, 3),
        (3500, 4, 3),  # behind all
    ],
)
def test_lookups_between_units(asked: int, lower: int, upper: int) -> None:
    """Messages of the seconds 1, 2, 2 and 3."""
    files = MemoryFiles()
    messages = [message_of(store_timestamp=time) for time in (1000, 2000, 2000, 3000)]
    write_log(files, "/s", messages, 1000)
    log = CommitLog.open("/s", files=files)
    queue = ConsumeQueue.open("/s", "T", 0, 1000, create=True, files=files)
    for number, (offset, result) in enumerate(log.scan()):
        if result.success:
            queue.put_message_position_info(offset, result.size, 0, number)
    assert lower == queue.get_offset_in_queue_by_time(asked, log, "lower")
    assert upper == queue.get_offset_in_queue_by_time(asked, log, "upper")
