# SPDX-License-Identifier: Apache-2.0
"""What a recovery tells of leader epochs and producers."""

import pytest

from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.batch_writing import write_batch
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record
from segproof_model.language.files import Files
from segproof_model.releases import RELEASES


def segment_of(kind: type[LogSegment], *epochs: int) -> LogSegment:
    """Return a segment with a batch of one record for each epoch."""
    segment = kind(Files(), "", 0, LogConfig())
    for offset, epoch in enumerate(epochs):
        records = [Record(offset, 1, None, b"v")]
        data = write_batch(records, base_offset=offset, partition_leader_epoch=epoch)
        segment.append(offset, MemoryRecords(data))
    return segment


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("kafka-4.4.0", [(0, 0), (2, 1)]),
        ("kafka-2.8.2", [(0, 0), (2, 1)]),
        ("kafka-2.4.1", [(2, 1)]),
        ("kafka-2.1.1", [(2, 1)]),
        ("kafka-2.0.1", [(0, 0), (2, 1)]),
    ],
)
def test_epoch_zero_by_release(name: str, entries: list[tuple[int, int]]) -> None:
    """From 2.1.1 to 2.6 recovery passes epoch 0 over; an epoch that falls begins nothing."""
    release = RELEASES[name]
    cache = release.kind(LeaderEpochFileCache)(Files(), None)
    segment_of(release.kind(LogSegment), 0, 2, 1).recover(None, cache)
    assert entries == cache.epoch_entries()


def test_epochs_and_segment_share_the_files() -> None:
    """An epoch that recovery assigns is in the file that the segment sees."""
    segment = segment_of(LogSegment, 3)
    cache = LeaderEpochFileCache(segment.files, "leader-epoch-checkpoint")
    producers = ProducerStateManager(segment.files)
    segment.recover(producers, cache)
    assert b"0\n1\n3 0\n" == segment.files.image("leader-epoch-checkpoint")
    assert 1 == producers.map_end_offset


def test_an_invalid_record_that_producers_find_ends_the_scan() -> None:
    """The batch whose control record has no readable key is kept, what follows is cut."""
    segment = segment_of(LogSegment, 3)
    control = write_batch(
        [Record(1, 1, b"\0", b"v")], base_offset=1, producer_id=5, producer_epoch=0, is_control=True
    )
    behind = write_batch([Record(2, 1, None, b"v")], base_offset=2)
    kept = segment.size + len(control)
    segment.append(2, MemoryRecords(control + behind))
    assert len(behind) == segment.recover(ProducerStateManager(segment.files), None)
    assert kept == segment.size
