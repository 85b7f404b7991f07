# SPDX-License-Identifier: Apache-2.0
"""What a log holds and answers, looked at from outside: each lookup is compared with a reading."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from segproof.kafka import LogSegment, PartitionLog, RecordBatch
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


class _Times(NamedTuple):
    """The times in one segment."""

    largest: int
    records: list[tuple[int, int]]
    """Time and offset of each record that may be read; of control records only the last."""


def wrong_answers(log: PartitionLog) -> Iterator[Fault]:
    """Yield each lookup by an index that differs from reading the log from its beginning."""
    segments = []
    for segment in log.log_segments:
        yield from _wrong_positions(segment)
        if batches := list(segment.log):
            largest = max(one.max_timestamp for one in batches)
            segments.append(_Times(largest, [*_times(batches, log.log_start_offset)]))
    times = {time for one in segments for time, _ in one.records}
    for target in sorted({time + more for time in times for more in (0, 1)}):
        found = log.fetch_offset_by_timestamp(target)
        answer = found and (found.timestamp, found.offset)
        # A lookup asks one segment, the first with a time that is large enough (law LOG-15).
        asked = [one for one in segments if one.largest >= target]
        if answer is None and asked and not asked[0].records:
            continue  # it lies before the log start
        records = next((one.records for one in asked if one.records), [])
        expected = next((one for one in records if one[0] >= target), None)
        if answer != expected:
            words = f"fetch_offset_by_timestamp({target}) is {answer}, and reading finds {expected}"
            yield Fault("answer", words)


def _times(batches: Iterable[RecordBatch], start: int) -> Iterator[tuple[int, int]]:
    """Yield time and offset of what may be read, from the log start on."""
    for batch in batches:
        if batch.next_offset <= start:
            continue  # nobody reads it, and it is not recovered
        if batch.is_control:
            yield batch.max_timestamp, batch.last_offset
        else:
            read = (one for one in batch.records() if one.offset >= start)
            yield from ((one.timestamp, one.offset) for one in read)


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
