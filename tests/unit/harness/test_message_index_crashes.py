# SPDX-License-Identifier: Apache-2.0
"""Histories of RocketMQ's key index that crash: each message is found by its keys, and once."""

import random

import pytest

from segproof.rocketmq.index_file import IndexFile
from segproof.rocketmq.index_service import IndexService
from segproof_harness.crashes.explore import Settings, drawn_history, explore
from segproof_harness.crashes.rocketmq.message_index import Found, MessageIndexWorld
from segproof_harness.machine.simulated_files import SimulatedFiles

SETTINGS = Settings(bound=4, second=1)


def begun() -> tuple[MessageIndexWorld, Found]:
    """Return a world, and what is right in it."""
    world = MessageIndexWorld(random.Random(1))
    files = SimulatedFiles(1 << 18)
    world.begin(files)
    found = world.look_at(world.load(files), files)
    return world, found._replace(kept=found.answers)


def test_a_key_is_judged_by_the_log() -> None:
    """An answer that is there twice, or is missing, is a fault; so is one that was durable."""
    world, right = begun()
    key, answer = next(iter(right.answers.items()))
    assert [] == world.judge(right, 0, 0)
    for kind, wrong in (("key twice", (*answer, answer[0])), ("wrong key", answer[1:])):
        faults = world.judge(right._replace(answers={**right.answers, key: wrong}), 0, 0)
        assert [kind] == [one.kind for one in faults]
    lost = right._replace(covered_ms=2**62, kept={**right.kept, key: answer[1:]})
    assert ["lost key"] == [one.kind for one in world.judge(lost, 0, 0)]


@pytest.mark.slow
def test_an_index_keeps_what_it_promised() -> None:
    """A history with a crash in each recovery."""
    history = drawn_history(MessageIndexWorld.weights, 3, 8)
    result = explore(MessageIndexWorld, 3, history, SETTINGS)
    assert [] == [one.fault for one in result.violations]
    assert result.images >= result.loads > 50


def test_a_file_that_was_not_flushed_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that keeps each file up to the checkpoint's time, as RocketMQ does, is caught."""

    def durable_files(self: IndexService) -> list[IndexFile]:
        time = self.store_checkpoint.index_msg_timestamp
        return [file for file in self.index_files if file.end_timestamp <= time]

    monkeypatch.setattr(IndexService, "_durable_files", durable_files)
    history = drawn_history(MessageIndexWorld.weights, 0, 3)
    result = explore(MessageIndexWorld, 0, history, SETTINGS)
    assert "key twice" in {kind for _, kind in result.counts}
