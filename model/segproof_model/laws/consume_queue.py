# SPDX-License-Identifier: Apache-2.0
"""The laws of the consume queue.

Used by: the harness, the generated pages.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from segproof_model.laws.registry import Transition, law
from segproof_model.profiles import ROCKETMQ_5_5_1, Profile
from segproof_model.rocketmq.consume_queue import BLANK_UNIT, ConsumeQueue, ConsumeQueueUnit

STRUCTURE = "index-service"
CLASS = "RocketMQ ConsumeQueue, 4.0.0 to 5.5.1"
UNIT = 20


@law("RMQCQ-1", structure=STRUCTURE, scope="pure", source=CLASS)
def unit_is_twenty_bytes(data: bytes, units: Sequence[ConsumeQueueUnit]) -> bool:
    """A unit is 20 bytes: int64 log offset, int32 size, int64 tags code; it is valid exactly when
    offset >= 0 and size > 0.

    `data` is the written part of a file.
    """
    parts = [data[at : at + UNIT] for at in range(0, len(data), UNIT)]
    whole = [part for part in parts if len(part) == UNIT]
    for part, unit in zip(whole, units, strict=False):
        numbers = [(0, 8), (8, 12), (12, 20)]
        found = [int.from_bytes(part[start:end], "big", signed=True) for start, end in numbers]
        if found != [unit.commit_log_offset, unit.size, unit.tags_code]:
            return False
        if unit.is_valid is not (found[0] >= 0 and found[1] > 0):
            return False
    return len(whole) == len(units)


@law("RMQCQ-2", structure=STRUCTURE, scope="step", source=CLASS)
def known_message_is_not_written(transition: Transition) -> bool:
    """A put whose offset + size <= the known maximum, or whose position lies before the current
    end, returns true and writes nothing.

    Number 0 is written wherever the queue ends. Any other put adds one unit at the end, after
    fillers in a new queue that does not begin at 0.
    """
    before, after, arguments = transition.before, transition.after, transition.arguments
    if not isinstance(before, ConsumeQueue) or transition.operation != "put_message_position_info":
        return True
    if transition.outcome is not True:
        return False
    number, end = arguments["cq_offset"], arguments["offset"]
    end += arguments["size"] if before.profile.rmq_queue_knows_end else 0
    if end <= before.max_physic_offset:
        return bool(after == before)
    old, new = before.units(), after.units()
    if before.starts() and 0 < number < before.max_offset_in_queue:
        return old == new and bool(after.end == before.end)
    unit = (arguments["offset"], arguments["size"], arguments["tags_code"])
    fillers = new[len(old) : -1]
    starts_later = not before.starts() and bool(fillers)
    is_filled = fillers == [BLANK_UNIT] * len(fillers) and (starts_later or not fillers)
    placed = before.starts() or after.max_offset_in_queue == number + 1
    return new[-1] == unit and is_filled and bool(placed) and after.max_physic_offset == end


@law("RMQCQ-3", structure=STRUCTURE, scope="pure", source=CLASS)
def lookup_by_time_follows_its_rule(
    times: Sequence[int],
    timestamp: int,
    boundary_type: str,
    outcome: object,
    profile: Profile = ROCKETMQ_5_5_1,
) -> bool:
    """Lookup by time follows one of two rules by release: the nearest unit in <= 5.1.0, the lower
    or the upper boundary in >= 5.1.1.

    `times` are the store times of a queue that begins at 0 and has one file, all above 0 and not
    falling. The nearest is the earlier one of two that are as near; the lower boundary is the first
    unit at or after the time, or behind the last; the upper one the last at or before it, or 0.
    """
    if not times:
        return outcome == 0
    if profile.rmq_queue_lookup == "boundary":
        if boundary_type == "lower":
            return outcome == bisect_left(times, timestamp)
        return outcome == max(bisect_right(times, timestamp) - 1, 0)
    if not isinstance(outcome, int) or not 0 <= outcome < len(times):
        return False
    chosen = times[outcome]
    nearest = min(abs(time - timestamp) for time in times)
    earlier_as_near = chosen > timestamp and timestamp - nearest in times
    return abs(chosen - timestamp) == nearest and not earlier_as_near
