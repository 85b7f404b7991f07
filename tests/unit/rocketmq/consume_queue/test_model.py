# SPDX-License-Identifier: Apache-2.0
"""The consume queue: what is written, where it ends, and lookups by time.

Each number was seen in the answers of the real classes 4.7.0, 4.9.8 or 5.5.1.
"""

from dataclasses import replace
from typing import Any

import pytest

from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import apply, opened
from segproof_model.laws.register import Transition, broken_step_laws
from segproof_model.laws.rocketmq.format import consume_queue as laws
from segproof_model.releases import RELEASES
from segproof_model.rocketmq.format.commit_log import CommitLog
from segproof_model.rocketmq.format.consume_queue import BLANK_UNIT, ConsumeQueue, read_units
from segproof_model.rocketmq.format.message import MAGIC_V1, Message
from segproof_tests.model_steps import done

FOLDER = "consumequeue/T/3"


@pytest.mark.checks("RMQCQ-2")
def test_a_queue_that_begins_late_is_filled() -> None:
    """Units before the first are fillers; what the queue has is not written again."""
    queue = ConsumeQueue(Files(), FOLDER, 100)
    for number in (7, 8):
        queue.put_message_position_info(10 * number, 10, -1, number)
    assert [BLANK_UNIT] * 2 == queue.units()[:2]
    assert (7, 9, 90) == (
        queue.min_offset_in_queue,
        queue.max_offset_in_queue,
        queue.max_physic_offset,
    )
    assert [f"{FOLDER}/00000000000000000100"] == list(queue.files)
    again = ConsumeQueue(queue.files, FOLDER, 100)
    again.min_logic_offset = 140
    assert queue == again
    put = "put_message_position_info"
    assert Step(queue, True) == apply(queue, put, 80, 10, -1, 9) == apply(queue, put, 95, 10, -1, 8)
    assert 10 == apply(queue, put, 95, 10, -1, 0).after.max_offset_in_queue


@pytest.mark.checks("RMQCQ-1")
def test_an_invalid_unit_ends_a_queue() -> None:
    """Opening stops behind the last valid unit; the files that lie behind it can be removed."""
    queue = ConsumeQueue(Files(), FOLDER, 40)
    for number in range(6):
        queue.put_message_position_info(10 * number, 10, 0, number)
    queue.files.write(f"{FOLDER}/{40:020d}", bytes(40))
    again = ConsumeQueue(queue.files, FOLDER, 40)
    assert (40, 20, 3) == (again.end, again.max_physic_offset, len(again.starts()))
    again.truncate_dirty_files()
    assert [0, 40] == again.starts()
    units = read_units(bytes(40))
    assert [False, False] == [unit.is_valid for unit in units]
    assert laws.unit_is_twenty_bytes(bytes(40), units)
    assert not laws.unit_is_twenty_bytes(bytes(40), units[1:])
    assert not laws.unit_is_twenty_bytes(bytes(39), units)
    assert not laws.unit_is_twenty_bytes(bytes(40), [units[0], units[1]._replace(tags_code=4)])


def put(queue: Any, offset: int, number: int) -> Transition:
    """Return the step of a put of ten bytes."""
    arguments = {"offset": offset, "size": 10, "tags_code": 1, "cq_offset": number}
    return done(queue, "put_message_position_info", **arguments)


FIRST = put(opened(ConsumeQueue, Files(), FOLDER, 100).after, 0, 0).after
SECOND = put(FIRST, 10, 1).after
OTHER_END = apply(SECOND, lambda queue: setattr(queue, "max_physic_offset", 10)).after


@pytest.mark.checks("RMQCQ-2")
@pytest.mark.parametrize(
    ("before", "offset", "number", "after", "outcome"),
    [
        (FIRST, 0, 1, SECOND, True),
        (SECOND, 20, 1, put(SECOND, 20, 2).after, True),
        (FIRST, 10, 1, FIRST, True),
        (FIRST, 10, 1, SECOND, False),
        (FIRST, 10, 1, OTHER_END, True),
        (FIRST, 11, 1, SECOND, True),
    ],
)
def test_broken_puts(before: Any, offset: int, number: int, after: Any, outcome: bool) -> None:
    """What is known is written, what is not is not, or as another unit."""
    step = put(before, offset, number)
    assert [] == broken_step_laws(step)
    assert ["RMQCQ-2"] == broken_step_laws(replace(step, after=after, outcome=outcome))


TIMES = (1000, 1000, 1005, 1020, 1020)


def queue_of_times(name: str) -> tuple[ConsumeQueue, CommitLog]:
    """Return a queue of messages with these store times, and their log."""
    head = (0, MAGIC_V1, 0, 3, 5, 7, 0, 0, 0, bytes(8))
    records = [Message(*head, at, bytes(8), 0, 0, b"", "T", "").to_bytes() for at in TIMES]
    data = b"".join(records).ljust(4096, b"\0")
    log = RELEASES[name].kind(CommitLog)(Files({f"commitlog/{0:020d}": data}), "")
    queue = RELEASES[name].kind(ConsumeQueue)(Files(), FOLDER, 400)
    for number, one in enumerate(records):
        queue.put_message_position_info(number * len(one), len(one), 0, number)
    return queue, log


@pytest.mark.checks("RMQCQ-3")
@pytest.mark.parametrize("name", ["segproof", "rocketmq-5.5.1", "rocketmq-5.1.4"])
@pytest.mark.parametrize(
    ("time_ms", "lower", "upper"),
    [
        (999, 0, 0),
        (1000, 0, 1),
        (1002, 2, 1),
        (1005, 2, 2),
        (1019, 3, 2),
        (1020, 3, 4),
        (1021, 5, 4),
    ],
)
def test_boundaries_by_time(time_ms: int, lower: int, upper: int, name: str) -> None:
    """Between, on, before and behind the times of the queue."""
    queue, log = queue_of_times(name)
    assert lower == queue.get_offset_in_queue_by_time(time_ms, log)
    assert upper == queue.get_offset_in_queue_by_time(time_ms, log, "upper")
    law = laws.lookup_by_time_follows_its_rule
    assert law(queue, TIMES, time_ms, "lower", lower)
    assert law(queue, TIMES, time_ms, "upper", upper)
    for wrong in (-1, 1):
        assert not law(queue, TIMES, time_ms, "lower", lower + wrong)
        assert not law(queue, TIMES, time_ms, "upper", upper + wrong)
    assert not law(queue, (), time_ms, "lower", 1)


@pytest.mark.checks("RMQCQ-3")
@pytest.mark.parametrize("name", ["rocketmq-5.0.0", "rocketmq-4.9.8"])
@pytest.mark.parametrize(
    ("time_ms", "nearest"),
    [(999, 0), (1000, 1), (1002, 1), (1003, 2), (1005, 2), (1019, 3), (1020, 3), (1021, 4)],
)
def test_nearest_by_time(time_ms: int, nearest: int, name: str) -> None:
    """Up to 5.0 the nearest unit, which of several of one time is not told."""
    queue, log = queue_of_times(name)
    found = queue.get_offset_in_queue_by_time(time_ms, log)
    assert TIMES[nearest] == TIMES[found]
    law = laws.lookup_by_time_follows_its_rule
    assert law(queue, TIMES, time_ms, "lower", found)
    for wrong in set(range(-1, 6)) - {n for n, time in enumerate(TIMES) if time == TIMES[nearest]}:
        assert not law(queue, TIMES, time_ms, "lower", wrong)
    assert law(queue, (1000, 1002), 1001, "", 0)  # the earlier of two that are as near
    assert not law(queue, (1000, 1002), 1001, "", 1)
