# SPDX-License-Identifier: Apache-2.0
"""What random histories once showed of the model of a partition's log, one example each."""

import pytest

from segproof_model.directory import Directory
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.partition_log import PartitionLog
from segproof_model.kafka.record_batch import Record, write_batch
from segproof_model.outcomes import Raised
from segproof_model.profiles import KAFKA_4_3_1, SEGPROOF, Profile

STEM = 20 * "0"


def _stored(offset: int) -> bytes:
    batch = write_batch(
        [Record(offset, 1000, None, b"v")], base_offset=offset, partition_leader_epoch=0
    )
    assert isinstance(batch, bytes)
    return batch


@pytest.mark.parametrize("profile", [SEGPROOF, KAFKA_4_3_1], ids=lambda profile: profile.name)
def test_a_split_ends_where_no_batch_is(profile: Profile) -> None:
    """A segment that overflows and ends in no batch is not split; the model stopped instead."""
    log = _stored(0) + _stored(2**31 + 5) + bytes(30)
    directory = Directory(((f"{STEM}.log", log),))
    config = LogConfig(segment_index_bytes=240)
    step = PartitionLog.open("", config, 0, 0, False, directory=directory, profile=profile)
    assert isinstance(step.outcome, Raised)
    assert isinstance(step.after, Directory)
    assert log == step.after.read(f"{STEM}.log")
