# SPDX-License-Identifier: Apache-2.0
"""What random histories once showed of the model of a partition's log, one example each."""

import pytest

from segproof_model.directory import Directory
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.partition_log import PartitionLog
from segproof_model.kafka.record_batch import Record, write_batch
from segproof_model.language.outcomes import Raised
from segproof_model.profiles import KAFKA_2_8_2, KAFKA_4_3_1, SEGPROOF, Profile

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


@pytest.mark.parametrize(
    ("profile", "bases"), [(KAFKA_4_3_1, [0, 5]), (KAFKA_2_8_2, [5])], ids=["4.3.1", "2.8.2"]
)
def test_a_swap_within_a_segment(profile: Profile, bases: list[int]) -> None:
    """Up to 2.8 a swap replaces the segment that reaches into its range, as the real class says."""
    files = ((f"{STEM}.log", _stored(0) + _stored(10)), (f"{STEM[1:]}5.log.swap", _stored(5)))
    config = LogConfig(segment_index_bytes=240)
    log = PartitionLog.open("", config, directory=Directory(files), profile=profile).after
    assert isinstance(log, PartitionLog)
    assert bases == log.log_segments.base_offsets()


@pytest.mark.parametrize(
    ("profile", "stays"), [(KAFKA_4_3_1, True), (KAFKA_2_8_2, False)], ids=["4.3.1", "2.8.2"]
)
def test_the_snapshot_of_a_replaced_segment(profile: Profile, stays: bool) -> None:
    """Up to 2.8 the snapshot goes with the files of a segment, though another begins there."""
    config = LogConfig(segment_index_bytes=240, file_delete_delay_ms=0)
    log = PartitionLog.open("", config, profile=profile).after
    assert isinstance(log, PartitionLog)
    log = log.append_as_follower(_stored(0), 0).after.roll().after.roll().after
    log = log.delete_pending_files().after
    assert stays == (f"{STEM[1:]}1.snapshot" in log.directory)


def test_a_completed_swap_keeps_its_time() -> None:
    """A swap is renamed, so its log is as old as before: retention by time goes by it. The model
    took it for new."""
    files = ((f"{STEM}.log.swap", _stored(0)), (f"{STEM}.index.swap", b""))
    log = PartitionLog.open(
        "", LogConfig(segment_index_bytes=240), directory=Directory(files), now_ms=5_000,
        modified_ms={f"{STEM}.log.swap": 3_000},
    ).after  # fmt: skip
    assert isinstance(log, PartitionLog)
    assert [3_000] == [one.last_modified for one in log.log_segments]
