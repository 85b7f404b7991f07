# SPDX-License-Identifier: Apache-2.0
"""What the queues say of messages at a place of the log: how many speak for it, and against it.

A unit of a queue has the number of its message by where it lies. And numbers rise in a queue, one
by one: those of the messages kept around a place say which ones may be there.

Laws: RMQDISK-25, RMQDISK-35.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from segproof.integers import INT64_MAX
from segproof.layouts.rocketmq import MESSAGE_BYTES_MIN
from segproof.rocketmq.message import has_queue_place
from segproof.stretches.rocketmq.desk import Desk
from segproof.stretches.rocketmq.facts import CELL_BYTES, Int64s, Met

NEAR_MESSAGES = 256
"""Messages on each side in which the queue of a doubted message is looked for. A broker of 64 busy
queues stores each of them 4 times within so many; more of them would be more details to read."""
WRONG_MIN = 8
"""If fewer units lead into messages that are not theirs, one damaged sector of a queue may be the
cause: a sector holds 25 units."""
WRONG_TIMES = 3
"""Units are another store's if more than so many times as many lead into other messages as to
their own: one damaged queue of four makes three right units for each wrong one, and never three
wrong ones for each right one."""


class Witness(NamedTuple):
    """How many messages something speaks for, and how many something speaks against."""

    right: int
    wrong: int


def are_of_other_log(right: int, wrong: int) -> bool:
    """Return whether units are another log's by how many lead to their message, or to another."""
    return wrong >= WRONG_MIN and wrong > WRONG_TIMES * right


def is_queued(desk: Desk, row: int) -> bool:
    """Return whether a row is one message that is in a queue."""
    one = desk.rows[row]
    return bool(one["messages"] == 1 and has_queue_place(one["flags"]))


def numbers_of(desk: Desk, rows: Iterable[int]) -> dict[int, int]:
    """Return for each queue the first number that some rows have, of their first NEAR_MESSAGES."""
    found: dict[int, int] = {}
    seen = 0
    for row in rows:
        if seen >= NEAR_MESSAGES:
            break
        seen += int(desk.rows["messages"][row])
        desk.need([row])
        if is_queued(desk, row):
            found.setdefault(int(desk.rows["queue"][row]), int(desk.rows["number"][row]))
    return found


def witness(
    desk: Desk,
    rows: Sequence[int],
    by: int,
    before: Iterable[int],
    after: Iterable[int],
    *,
    is_here: bool = False,
) -> Witness:
    """Return what speaks for rows, and against them, at the offsets that they say and `by` more.

    `before` and `after` are the rows around that place, the nearest one first. With `is_here` these
    are not surer than the rows: a number is wrong only between two that rise. Else a number without
    a unit in a log that has some must go on in its queue.
    """
    desk.need(rows)
    least, most = numbers_of(desk, before), numbers_of(desk, after)
    reached, right, wrong = dict(least), 0, 0
    for row in rows:
        if not is_queued(desk, row):
            continue
        one, offset = desk.rows[row], int(desk.said[row]) + by
        queue, number = int(one["queue"]), int(one["number"])
        units = desk.unit_at(queue, number)
        low, high = reached.get(queue, -1), most.get(queue, INT64_MAX)
        reached[queue] = max(low, number)
        is_between = low < number < high or (is_here and not 0 <= low < high < INT64_MAX)
        if len(units):
            is_it = (units["offset"] == offset) & (units["size"] == desk.sizes[row])
            right, wrong = right + bool(is_it.any()), wrong + (not is_it.any())
        elif not is_between:
            wrong += 1
        elif number - 1 in (low, least.get(queue)) or number + 1 == high:
            right += number - 1 == least.get(queue) or number + 1 == high
        elif not is_here and len(desk.units):
            wrong += 1
    return Witness(right, wrong)


def can_go_on(desk: Desk, rows: Sequence[int], before: Int64s) -> bool:
    """Return whether the numbers of rows can follow those of rows before them, the nearest one
    first: they rise, and leave no more out than there is room for messages between."""
    reached = numbers_of(desk, before.tolist())
    end = int(desk.said[before[0]] + desk.sizes[before[0]])
    room = (int(desk.said[rows[0]]) - end) // MESSAGE_BYTES_MIN
    for row in filter(partial(is_queued, desk), rows):
        queue, number = int(desk.rows["queue"][row]), int(desk.rows["number"][row])
        step = number - reached.get(queue, number - 1)
        room -= step - 1
        if step < 1 or room < 0:
            return False
        reached[queue] = number
    return True


def _met_elsewhere(desk: Desk, start: int, end: int) -> tuple[int, int]:
    """Return how many units at hand that lead elsewhere than to [start, end) lead to their message,
    and how many to another one."""
    units = desk.units[desk.units["size"] > 0]
    met = units["met"][(units["offset"] < start) | (units["offset"] >= end)]
    return int((met == Met.AGREES).sum()), int((met == Met.AGAINST).sum())


def are_units_ours(desk: Desk, start: int, end: int) -> bool:
    """Return whether the units at hand that lead elsewhere than to [start, end) are of this log."""
    right, wrong = _met_elsewhere(desk, start, end)
    return right > 0 and WRONG_TIMES * right >= wrong


def is_part_of_other(desk: Desk, start: int, end: int) -> bool:
    """Return whether a unit leads to a message that begins before `start` and ends after it, or
    begins in (start, end). Units that lead to other messages elsewhere too are not asked."""
    right, wrong = _met_elsewhere(desk, start, end)
    if not len(desk.units) or wrong > WRONG_TIMES * right:
        return False
    units = desk.units_in(max(0, start - CELL_BYTES), end)
    units = units[units["size"] > 0]
    is_over = (units["offset"] != start) & (units["offset"] + units["size"] > start)
    return bool(is_over.any())
