# SPDX-License-Identifier: Apache-2.0
"""The laws of the consume queue."""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from segproof_model.laws.register import Transition, has, law
from segproof_model.rocketmq.format import consume_queue_releases as older
from segproof_model.rocketmq.format.consume_queue import BLANK_UNIT, ConsumeQueue, ConsumeQueueUnit

CLASS = "RocketMQ ConsumeQueue, 4.0.0 to 5.5.1"
UNIT = struct.Struct(">qiq")


@law("RMQCQ-1", ConsumeQueue, CLASS)
def unit_is_twenty_bytes(consume_queue: bytes, units: Sequence[ConsumeQueueUnit]) -> bool:
    """A unit is 20 bytes: int64 log offset, int32 size, int64 tags code; it is valid exactly when
    offset >= 0 and size > 0.

    `consume_queue` is the written part of a file.
    """
    whole = consume_queue[: len(consume_queue) // 20 * 20]
    is_read = list(UNIT.iter_unpack(whole)) == [tuple(unit) for unit in units]
    return is_read and all(one.is_valid is (one[0] >= 0 and one[1] > 0) for one in units)


@law("RMQCQ-2", ConsumeQueue, CLASS, on="put_message_position_info")
def known_message_is_not_written(step: Transition) -> bool:
    """A put whose offset + size <= the known maximum, or whose position is before the current end,
    returns true and writes nothing.

    Number 0 is always written at the end. Any other put adds one unit at the end, after fillers in
    a new queue that does not begin at 0.
    """
    before, after, number = step.before, step.after, step.arguments["cq_offset"]
    offset, size = step.arguments["offset"], step.arguments["size"]
    end = offset if has(before, older.QueueReachesBegin) else offset + size
    if end <= before.max_physic_offset:
        return step.outcome is True and step.is_unchanged
    old, new = before.units(), after.units()
    if before.starts() and 0 < number < before.max_offset_in_queue:
        return step.outcome is True and bool(old == new and after.end == before.end)
    fillers, unit = new[len(old) : -1], new[len(old) :][-1:]
    is_placed = not fillers if before.starts() else after.max_offset_in_queue == number + 1
    is_reached = after.max_physic_offset == end and new[: len(old)] == old
    is_written = unit == [(offset, size, step.arguments["tags_code"])] and is_reached
    return step.outcome is True and is_written and is_placed and {*fillers} <= {BLANK_UNIT}


@law("RMQCQ-3", ConsumeQueue, CLASS)
def lookup_by_time_follows_its_rule(
    queue: ConsumeQueue, times: Sequence[int], timestamp: int, boundary_type: str, outcome: object
) -> bool:
    """Lookup by time follows one of two rules by release: the nearest unit in <= 5.1.0, the lower
    or the upper boundary in >= 5.1.1.

    `times` are the store times of a queue that begins at 0 and has one file, all above 0 and not
    falling. Of two equally near units the earlier one counts; the lower boundary is the first unit
    at or after the time, or the end of the queue; the upper boundary is the last unit at or before
    it, or 0.
    """
    if not times or not has(queue, older.NearestUnitIsFound):
        upper = max(bisect_right(times, timestamp) - 1, 0)
        return outcome == (bisect_left(times, timestamp) if boundary_type == "lower" else upper)
    if not isinstance(outcome, int) or not 0 <= outcome < len(times):
        return False
    nearest = min((abs(time - timestamp), time) for time in times)
    return nearest == (abs(times[outcome] - timestamp), times[outcome])
