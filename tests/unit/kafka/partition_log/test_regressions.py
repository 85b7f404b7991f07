# SPDX-License-Identifier: Apache-2.0
"""What random histories of a partition's log once showed, one example each."""

from dataclasses import replace

import pytest

from segproof.errors import CorruptRecordError
from segproof.kafka import LogConfig, PartitionLog, Record, write_batch
from segproof_tests.memory_logs import Place, batch, filled

LOG = "00000000000000000000.log"


def test_what_follows_a_later_epoch_is_framed() -> None:
    """A follower leaves batches of a later epoch out, but refuses what is no batch behind them."""
    log = Place().open()
    later = batch(1, partition_leader_epoch=5) + bytes(30)
    with pytest.raises(CorruptRecordError):
        log.append_as_follower(later, 0)
    assert log.log_end_offset == 0


def test_the_last_offset_of_the_first_batch_is_as_it_was_given() -> None:
    """It is told as a client gave it; it was that in the log."""
    log = Place().open()
    answers = [log.append_as_leader(batch(3), 0) for _ in range(2)]
    assert [2, 2] == [answer.last_offset_of_first_batch for answer in answers]


def test_a_log_that_ends_below_its_start_keeps_no_snapshot() -> None:
    """Its snapshots are removed at once; they were renamed, and stayed for the delay."""
    place = Place()
    filled(place, 9).close()
    log = place.open(log_start_offset=1000)
    assert (1000, 1000) == (log.log_start_offset, log.log_end_offset)
    assert [] == place.names(".snapshot.deleted")
    assert ["00000000000000001000.snapshot"] == place.names(".snapshot")


def test_messages_of_magic_0_have_no_largest_timestamp() -> None:
    """The offset of the largest timestamp is none; it was the first message's."""
    log = Place().open()
    log.append_as_follower(write_batch([Record(0, -1, None, b"v")], base_offset=0, magic=0), 0)
    assert log.fetch_offset_by_timestamp(-3) is None


def test_a_damaged_batch_does_not_move_the_bound_of_committed_reads() -> None:
    """The high watermark lies in a batch whose base offset is damaged, an open transaction behind.

    A read was bounded by that transaction, though the log told the high watermark as its last
    stable offset.
    """
    place = Place()
    log = place.open()
    log.append_as_leader(batch(2), 0)
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    log.append_as_leader(batch(2, is_transactional=True, **producer), 0)
    log.close()
    image = place.image()[LOG]
    place.put(LOG, b"\x08" + image[1:])
    log = place.open()
    assert (0, 0) == (log.high_watermark, log.last_stable_offset)
    assert log.read(4, 0, "txn_committed").aborted_transactions is None


def test_a_cut_that_cannot_be_read_lowers_the_recovery_point() -> None:
    """A truncation meets damage once it has cut: the log ends there, and is durable no further."""
    place = Place()
    filled(place, 4, 2).close()
    image = place.image()
    size = len(image[LOG]) // 4
    third = 2 * size
    place.put(LOG, image[LOG][: third + 8] + bytes(4) + image[LOG][third + 12 :])
    log = place.open()
    log.fetch_offset_by_timestamp(-3)  # so that the cut has a largest timestamp to look for
    assert 8 == log.recovery_point
    with pytest.raises(CorruptRecordError):
        log.truncate_to(7)
    assert (7, 7) == (log.log_end_offset, log.recovery_point)
    assert log.size == 3 * size


def test_the_jitter_is_bounded_by_the_age_alone() -> None:
    """A drawn number counts modulo jitter or age; the lag of compaction bounded it as well."""
    place = Place()
    lag = LogConfig(segment_jitter_ms=70, max_compaction_lag_ms=10, cleanup_policy="compact")
    for config, expected in ((lag, 30), (replace(lag, segment_ms=40), 20)):
        log = PartitionLog.open("/j-0", config, create=True, files=place.files, draw=lambda: 100)
        assert expected == log.log_segments.active_segment.roll_jitter_ms
        log.close()
