# SPDX-License-Identifier: Apache-2.0
"""The store checkpoint: what is in memory, and what in the file; each law can be broken."""

from typing import Any

import pytest

from segproof_harness.laws.every_law import LAWS
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import apply, frozen, opened, outcome_of
from segproof_model.laws.register import Transition, broken_state_laws, broken_step_laws
from segproof_model.releases import NEWEST_ROCKETMQ, RELEASES, SEGPROOF
from segproof_model.rocketmq.broker.store_checkpoint import StoreCheckpoint


def test_the_checkpoint_of_the_specification() -> None:
    """physic 0xAABB and logics 0xCCDD give 40707; memory is not the file before a flush."""
    checkpoint = StoreCheckpoint(Files(), "checkpoint")
    checkpoint.set_physic_msg_timestamp(0xAABB)
    checkpoint.set_logics_msg_timestamp(0xCCDD)
    assert (40707, 0) == (checkpoint.min_timestamp, checkpoint.min_timestamp_index)
    assert bytes(4096) == checkpoint.files.image("checkpoint")
    checkpoint.flush()
    written = "000000000000aabb000000000000ccdd"
    assert written == checkpoint.files.image("checkpoint")[:16].hex()
    assert checkpoint == StoreCheckpoint(checkpoint.files, "checkpoint")
    checkpoint.shutdown()
    assert Raised(ErrorKind.UNMAPPED) == outcome_of(checkpoint.flush)


@pytest.mark.parametrize(
    ("name", "known"), [("rocketmq-4.9.8", 3), ("rocketmq-5.3.3", 5), ("rocketmq-5.5.1", 6)]
)
def test_unknown_fields_stay(name: str, known: int) -> None:
    """A release leaves what it does not know."""
    checkpoint = RELEASES[name].kind(StoreCheckpoint)(Files({"c": b"\1" * 4100}), "c")
    assert known == len(checkpoint.values)
    checkpoint.set_physic_msg_timestamp(0)
    checkpoint.set_logics_msg_timestamp(0)
    checkpoint.set_index_msg_timestamp(0)
    checkpoint.flush()
    assert bytes(24) + b"\1" * (4100 - 24) == checkpoint.files.image("c")


def test_times_before_all_times() -> None:
    """3 s before the least of all numbers: upstream wraps to a late time."""
    for release, expected in ((SEGPROOF, 0), (NEWEST_ROCKETMQ, 2**63 - 3000)):
        checkpoint = release.kind(StoreCheckpoint)(Files(), "c")
        checkpoint.set_physic_msg_timestamp(-(2**63))
        assert expected == checkpoint.min_timestamp
        outcome = outcome_of(checkpoint.set_physic_msg_timestamp, 2**63)
        assert Raised(ErrorKind.INVALID_ARGUMENT) == outcome


# --- the laws ------------------------------------------------------------------------------------

NEW: Any = opened(StoreCheckpoint, Files(), "c").after
SET: Any = apply(NEW, "set_index_msg_timestamp", 7).after
FLUSHED: Any = apply(SET, "flush").after
TWO_SET: Any = apply(SET, "set_physic_msg_timestamp", 7).after
OLD: Any = opened(
    RELEASES["rocketmq-4.9.8"].kind(StoreCheckpoint), Files({"c": b"\1" * 4096}), "c"
).after
OLD_CUT: Any = apply(OLD, lambda draft: draft.files.write("c", b"\1" * 24 + bytes(4072))).after


@pytest.mark.checks("RMQCKPT-1")
def test_fields_at_other_places() -> None:
    """The law of the file's bytes sees a short file, and a number in another field."""
    law, data = LAWS["RMQCKPT-1"].predicate, FLUSHED.files.image("c")
    assert law(data, (0, 0, 7, 0, 0, 0))
    assert not law(data[:-1], (0, 0, 7, 0, 0, 0))
    assert not law(data, (0, 7, 0, 0, 0, 0))


@pytest.mark.checks("RMQCKPT-2", "RMQCKPT-3")
@pytest.mark.parametrize(
    ("law_id", "before", "operation", "arguments", "wrong"),
    [
        ("RMQCKPT-2", OLD, "flush", {}, OLD_CUT),
        ("RMQCKPT-3", SET, "flush", {}, SET),
        ("RMQCKPT-3", SET, "flush", {}, NEW),
        ("RMQCKPT-3", NEW, "set_index_msg_timestamp", {"value": 7}, FLUSHED),
        ("RMQCKPT-3", NEW, "set_index_msg_timestamp", {"value": 7}, NEW),
        ("RMQCKPT-3", NEW, "set_index_msg_timestamp", {"value": 7}, TWO_SET),
        ("RMQCKPT-3", NEW, "min_timestamp", {}, SET),
    ],
)
def test_broken_steps(
    law_id: str, before: Any, operation: str, arguments: dict[str, int], wrong: Any
) -> None:
    """Memory and file change as the laws say, and not at other times, or elsewhere."""
    step = apply(before, operation, **arguments)
    for after, broken in ((step.after, []), (wrong, [law_id])):
        done = Transition(type(before), before, operation, arguments, after, step.outcome)
        assert broken == broken_step_laws(done)


@pytest.mark.checks("RMQCKPT-3")
def test_file_that_is_not_read() -> None:
    """Opening takes what the file says."""
    files, arguments = frozen(Files({"c": FLUSHED.files.image("c")})), {"name": "c"}
    step = opened(StoreCheckpoint, files, "c")
    for after, broken in ((step.after, []), (NEW, ["RMQCKPT-3"])):
        done = Transition(StoreCheckpoint, files, "open", arguments, after, None)
        assert broken == broken_step_laws(done)


class Careless(StoreCheckpoint):
    """Takes no time off."""

    @property
    def min_timestamp(self) -> int:
        """The least time as it is."""
        return min(self.physic_msg_timestamp, self.logics_msg_timestamp)


@pytest.mark.checks("RMQCKPT-4")
def test_checkpoint_without_safety() -> None:
    """3 s are taken off."""
    for kind, broken in ((StoreCheckpoint, []), (Careless, ["RMQCKPT-4"])):
        checkpoint = kind(Files(), "c")
        checkpoint.set_physic_msg_timestamp(9000)
        checkpoint.set_logics_msg_timestamp(9000)
        assert broken == broken_state_laws(checkpoint)
