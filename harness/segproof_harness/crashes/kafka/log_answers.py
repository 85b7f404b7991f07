# SPDX-License-Identifier: Apache-2.0
"""What a log holds and answers, looked at from outside: each lookup is compared with a reading."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from segproof.kafka import LogSegment, PartitionLog
from segproof_harness.crashes.worlds import Fault

__all__ = ["Batch", "batches_of", "derived_of", "wrong_answers"]


class Batch(NamedTuple):
    """A batch as its log holds it."""

    base_offset: int
    data: bytes

    @property
    def next_offset(self) -> int:
        """The offset after the last one of the batch."""
        return self.base_offset + int.from_bytes(self.data[23:27], "big") + 1


def batches_of(log: PartitionLog) -> tuple[Batch, ...]:
    """Return the batches of all segments, in the order in which they lie there."""
    found = []
    for segment in log.log_segments:
        data = segment.log.read()
        for one in segment.log:
            found.append(Batch(one.base_offset, data[one.position : one.position + one.size_bytes]))
    return tuple(found)


def wrong_answers(log: PartitionLog) -> Iterator[Fault]:
    """Yield each lookup by an index that differs from reading the log from its beginning."""
    times: list[tuple[int, int]] = []
    for segment in log.log_segments:
        yield from _wrong_positions(segment)
        for batch in segment.log:
            if batch.next_offset <= log.log_start_offset:
                continue  # nobody reads it, and it is not recovered
            if batch.is_control:
                times.append((batch.max_timestamp, batch.last_offset))
            else:
                times += [(one.timestamp, one.offset) for one in batch.records()]
    for target in sorted({time + more for time, _ in times for more in (0, 1)}):
        found = log.fetch_offset_by_timestamp(target)
        answer = found and (found.timestamp, found.offset)
        reading = (one for one in times if one[0] >= target and one[1] >= log.log_start_offset)
        expected = next(reading, None)
        if answer != expected:
            words = f"fetch_offset_by_timestamp({target}) is {answer}, and reading finds {expected}"
            yield Fault("answer", words)


def _wrong_positions(segment: LogSegment) -> Iterator[Fault]:
    batches = list(segment.log)
    end = batches[-1].next_offset if batches else segment.base_offset
    for offset in range(segment.base_offset, end + 2):
        found = segment.translate_offset(offset)
        answer = found and (found.offset, found.position)
        batch = next((one for one in batches if one.last_offset >= offset), None)
        expected = batch and (batch.base_offset, batch.position)
        if answer != expected:
            words = f"translate_offset({offset}) is {answer}, and reading finds {expected}"
            yield Fault("answer", words)
    largest = max((one.max_timestamp for one in batches), default=None)
    if largest is not None and segment.largest_record_timestamp != largest:
        yield Fault(
            "answer",
            f"the largest timestamp of segment {segment.base_offset} is"
            f" {segment.largest_record_timestamp}, and reading finds {largest}",
        )


def derived_of(log: PartitionLog) -> dict[str, Any]:
    """Return what a log keeps beside its batches, and what is made of them alone."""
    state = log.producer_state_manager
    aborted = log.collect_aborted_transactions(log.log_start_offset, log.log_end_offset + 1)
    producers = {
        number: (one.producer_epoch, one.last_seq, one.current_txn_first_offset)
        for number, one in state.active_producers.items()
    }
    return {
        "producers": (producers, state.ongoing_txns),
        "epochs": tuple(log.leader_epoch_cache.entries),
        "aborted transactions": sorted(
            (one.producer_id, one.first_offset, one.last_offset) for one in aborted
        ),
    }
