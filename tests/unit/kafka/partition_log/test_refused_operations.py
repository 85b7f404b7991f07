# SPDX-License-Identifier: Apache-2.0
"""What a log refuses leaves everything as it was: its files, ends, epochs and producers."""

from collections.abc import Callable
from typing import Any

import pytest

from segproof.errors import SegproofError
from segproof.kafka import PartitionLog, Record, write_batch
from segproof_harness.laws.borders.log_files import marker
from segproof_tests.memory_logs import START_MS, Place, batch

END = 54
"""Where the log ends: nine batches of six records."""


def of_producer(sequence: int, *, epoch: int = 1, count: int = 2, **more: Any) -> bytes:
    """Return a batch of producer 5."""
    return batch(count, producer_id=5, producer_epoch=epoch, base_sequence=sequence, **more)


def filled() -> tuple[Place, PartitionLog]:
    """Return a log of several segments, epochs and producers; a transaction is open."""
    place = Place()
    log = place.open()
    for number in range(9):
        log.append_as_leader(batch(6), number // 3)
    log.append_as_leader(of_producer(0, is_transactional=True), 3)
    log.append_as_leader(of_producer(2, is_transactional=True), 3)
    log.update_high_watermark(20)
    return place, log


def state(place: Place, log: PartitionLog) -> dict[str, Any]:
    """Return all that a log holds and says."""
    producers = log.producer_state_manager
    return {
        "files": place.image(),
        "ends": (
            log.log_start_offset, log.log_end_offset, log.high_watermark, log.last_stable_offset,
            log.recovery_point,
        ),
        "segments": [(one.base_offset, one.size, one.max_timestamp_so_far)
                     for one in log.log_segments],
        "epochs": log.leader_epoch_cache.epoch_entries(),
        "producers": dict(producers.active_producers),
        "transactions": (producers.ongoing_txns, producers.unreplicated_txns),
        "map end": producers.map_end_offset,
    }  # fmt: skip


def damaged(records: bytes) -> bytes:
    """Return a batch whose last byte is wrong."""
    return records[:-1] + bytes([records[-1] ^ 1])


NEXT = END + 4
OLD_MARKER = marker(0, "COMMIT", timestamp=START_MS, producer_id=5)
REFUSED: dict[str, Callable[[PartitionLog], object]] = {
    "leader: wrong checksum": lambda log: log.append_as_leader(damaged(batch(2)), 9),
    "leader: offsets that do not begin at 0": lambda log: log.append_as_leader(batch(2, 7), 9),
    "leader: larger than a segment": lambda log: log.append_as_leader(batch(60), 9),
    "leader: a sequence out of order": lambda log: log.append_as_leader(
        of_producer(9, is_transactional=True), 9
    ),
    "leader: an older epoch of the producer": lambda log: log.append_as_leader(
        of_producer(4, epoch=0, is_transactional=True), 9
    ),
    "leader: no transaction in an open one": lambda log: log.append_as_leader(of_producer(4), 9),
    "leader: a marker of an older epoch": lambda log: log.append_as_leader(
        OLD_MARKER, 9, origin="coordinator", transaction_version=1
    ),
    "leader: a negative epoch": lambda log: log.append_as_leader(batch(2), -2),
    "follower: wrong checksum": lambda log: log.append_as_follower(damaged(batch(2, NEXT)), 9),
    "follower: a gap back": lambda log: log.append_as_follower(batch(2, NEXT - 1), 9),
    "follower: a later batch is wrong": lambda log: log.append_as_follower(
        batch(2, NEXT, partition_leader_epoch=7)
        + damaged(batch(2, NEXT + 2, partition_leader_epoch=8)),
        9,
    ),
    "follower: a later batch goes back": lambda log: log.append_as_follower(
        batch(2, NEXT, partition_leader_epoch=7) + batch(2, NEXT, partition_leader_epoch=8), 9
    ),
    "follower: a later batch is not of the transaction": lambda log: log.append_as_follower(
        batch(2, NEXT, partition_leader_epoch=7)
        + of_producer(4, base_offset=NEXT + 2, partition_leader_epoch=8),
        9,
    ),
    "follower: larger than a segment": lambda log: log.append_as_follower(batch(60, NEXT), 9),
    "truncate: a negative offset": lambda log: log.truncate_to(-1),
    "start: beyond the high watermark": lambda log: log.maybe_increment_log_start_offset(21),
    "split: no such segment": lambda log: log.split_overflowed_segment(1),
    "split: nothing to split": lambda log: log.split_overflowed_segment(0),
}


@pytest.mark.checks("LOG-9", "LOG-10")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_changes_nothing(name: str) -> None:
    """Files, ends, epochs and producers are those before; and the log goes on."""
    place, log = filled()
    before = state(place, log)
    with pytest.raises(SegproofError):
        REFUSED[name](log)
    assert before == state(place, log)
    log.append_as_leader(of_producer(4, is_transactional=True), 9)
    assert END + 6 == log.log_end_offset


def test_a_refused_append_that_would_roll_changes_nothing() -> None:
    """A batch that begins a new segment and is refused leaves the old one the active one."""
    place, log = filled()
    before = state(place, log)
    wrong = damaged(write_batch([Record(0, START_MS, None, bytes(900))], base_offset=0))
    for append in (log.append_as_leader, log.append_as_follower):
        with pytest.raises(SegproofError):
            append(wrong, 9)
        assert before == state(place, log)


@pytest.mark.parametrize("is_leader", [True, False])
def test_an_index_that_takes_no_entry_changes_nothing(is_leader: bool) -> None:
    """It holds an entry of a later offset; epochs were entered before it was asked."""
    place, log = filled()
    log.append_as_leader(batch(3, is_transactional=False), 3)
    log.log_segments.active_segment.offset_index.append(END + 900, 0)
    before = state(place, log)
    append = log.append_as_leader if is_leader else log.append_as_follower
    records = batch(3, 0 if is_leader else log.log_end_offset, partition_leader_epoch=9)
    with pytest.raises(SegproofError):
        append(records, 9)
    assert before == state(place, log)
