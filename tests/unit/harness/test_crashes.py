# SPDX-License-Identifier: Apache-2.0
"""Histories that crash: what is judged and counted, and that our logs keep what they promise."""

import random

import pytest

from segproof.kafka import LogConfig
from segproof_harness.canaries.crashes import CRASH_CANARIES
from segproof_harness.crashes.every_world import WORLDS, world_named
from segproof_harness.crashes.explore import (
    KEPT_MAX,
    Explored,
    Settings,
    drawn_history,
    explore,
)
from segproof_harness.crashes.kafka.log_answers import Batch, wrong_answers
from segproof_harness.crashes.kafka.partition_log import Found, PartitionLogWorld, Promised
from segproof_harness.crashes.known_violations import Seen, known_number
from segproof_harness.crashes.worlds import Fault, Operation, operations_of
from segproof_harness.machine.fault_model import mode_named
from segproof_harness.machine.simulated_files import SimulatedFiles


def batch(base_offset: int) -> Batch:
    """Return a batch of two records, as far as a judge looks into it."""
    return Batch(base_offset, bytes(23) + (1).to_bytes(4, "big"))


FIRST, SECOND, THIRD = (batch(base) for base in (0, 2, 4))


def promised(*batches: Batch, first: int = 0, durable: int = 0) -> Promised:
    """Return what is promised of a log that ends behind its batches."""
    return Promised(batches, first, durable, batches[-1].next_offset if batches else 0)


def found(*batches: Batch, start: int = 0, end: int, more: int = 0) -> Found:
    """Return what was found; the next append gets an offset that is `more` too high."""
    return Found(batches, start, end, end + more, ())


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        (None, found(FIRST, SECOND, end=4)),
        (None, found(FIRST, SECOND, THIRD, end=6)),
        (None, found(FIRST, end=2)),
        ("lost", found(end=0)),
        ("lost", found(SECOND, end=4)),
        ("lost", found(FIRST, THIRD, end=6)),
        ("lost", found(FIRST, batch(3), end=5)),
        ("hole", found(FIRST, end=4)),
        ("hole", found(FIRST, SECOND, THIRD, end=9)),
        ("reused", found(FIRST, SECOND, end=4, more=-2)),
    ],
)
def test_a_log_is_judged_by_what_was_promised(kind: str | None, left: Found) -> None:
    """Its batches are a run of those that were written, with all durable ones and no hole."""
    world = PartitionLogWorld(random.Random(0))
    before = promised(FIRST, SECOND, durable=1)
    after = promised(FIRST, SECOND, THIRD, durable=2)
    faults = world.judge(left, before, after)
    assert [fault.kind for fault in faults] == ([] if kind is None else [kind])


def test_what_lies_before_the_log_start_may_be_lost() -> None:
    """Raising the start raises the recovery point, and nothing is flushed for it."""
    world = PartitionLogWorld(random.Random(0))
    state = promised(FIRST, SECOND, THIRD, first=2, durable=2)
    for left in (found(start=4, end=4), found(THIRD, start=4, end=6), found(FIRST, end=2)):
        assert not world.judge(left, state, state)
    state = state._replace(durable=3)
    assert [one.kind for one in world.judge(found(start=4, end=4), state, state)] == ["lost"]


def test_wrong_answers_are_told() -> None:
    """An answer that differs from a reading is a fault, whatever else is right."""
    world = PartitionLogWorld(random.Random(0))
    fault = Fault("answer", "translate_offset(0) is None")
    left = found(FIRST, end=2)._replace(faults=(fault,))
    assert list(world.judge(left, promised(FIRST), promised(FIRST))) == [fault]


def test_a_lookup_by_time_asks_one_segment() -> None:
    """It lies before the log start here, so nothing is found in the segment behind it."""
    world = PartitionLogWorld(random.Random(18))
    world.begin(SimulatedFiles(1 << 16))
    for operation in operations_of("append:537219 retain:900189 append:617288"):
        world.apply(operation)
    log = world.log
    assert [0, 1] == log.log_segments.base_offsets()
    assert log.log_start_offset == 1
    [batch] = log.log_segments.active_segment.log
    assert log.fetch_offset_by_timestamp(batch.max_timestamp) is None
    assert [] == list(wrong_answers(log))


def test_a_log_that_claims_less_than_it_promised_is_judged_by_its_promise() -> None:
    """A flush, a roll, a checkpoint and enough messages promise; a truncation takes it back."""
    world = PartitionLogWorld(random.Random(0))
    world.config = LogConfig(flush_messages=4, segment_bytes=1200, segment_index_bytes=480)
    world.begin(SimulatedFiles(1 << 16))

    def durable_after(history: str) -> list[int]:
        found = []
        for operation in operations_of(history):
            world.apply(operation)
            found.append(world.state().durable)
        return found

    assert [0, 1, 1, 1] == durable_after("follower:1 flush:0 follower:1 write_checkpoints:0")
    assert [3] == durable_after("follower:1")
    assert [3, 4] == durable_after("follower:1 roll:0")
    world.log.truncate_to(0)
    assert [0] == durable_after("truncate_fully:0")


def test_names_in_no_order_excuse_what_is_lost() -> None:
    """With the names of one moment, the same violation is a new one."""
    fault = Fault("lost", "")
    assert known_number(Seen(fault, has_names_in_order=False)) == 8
    assert known_number(Seen(fault, has_names_in_order=True)) is None


def test_histories_are_added_with_few_violations_of_a_kind() -> None:
    """Others are counted."""
    canary = CRASH_CANARIES["C-01"]
    settings = Settings((mode_named("ordered"),), bound=4)
    total = Explored()
    for seed in (3, 6):
        total.add(
            explore(canary.world, seed, drawn_history(canary.world.weights, seed, 6), settings)
        )
    assert total.histories == 2
    assert total.counts[None, "lost"] > 2 * KEPT_MAX
    assert [one.seed for one in total.new] == [3] * KEPT_MAX


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7])
def test_a_log_keeps_what_it_promised(seed: int) -> None:
    """A few histories, with a crash in each recovery; `segproof crash` runs more."""
    history = drawn_history(PartitionLogWorld.weights, seed, 8)
    result = explore(PartitionLogWorld, seed, history, Settings(bound=4, second=1))
    assert [] == [one.fault for one in result.new]
    assert result.histories == 1
    assert result.cuts > 20
    assert result.images >= result.loads > 50
    assert result.second == result.loads


def test_the_same_seed_finds_the_same() -> None:
    """A history is drawn from its seed, and so are images; a planted defect shows both."""
    canary = CRASH_CANARIES["C-01"]
    settings = Settings((mode_named("ordered"),), bound=4)
    history = drawn_history(canary.world.weights, 3, 6)
    first, again = (explore(canary.world, 3, history, settings) for _ in range(2))
    assert first == again
    assert history == operations_of(" ".join(map(str, history)))
    assert history != drawn_history(canary.world.weights, 4, 6)


def test_names() -> None:
    """A world and a history are named in words; what is none is refused."""
    assert operations_of("append:12 flush:7") == [Operation("append", 12), Operation("flush", 7)]
    assert [world_named(name) for name in WORLDS] == list(WORLDS.values())
    with pytest.raises(ValueError, match="'append' is not an operation"):
        operations_of("append")
    with pytest.raises(ValueError, match="no world atlantis: one of partition-log, log-manager"):
        world_named("atlantis")
