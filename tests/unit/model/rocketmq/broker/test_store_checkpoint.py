# SPDX-License-Identifier: Apache-2.0
"""The store checkpoint: what is in memory, and what in the file."""

import pytest

from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
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
