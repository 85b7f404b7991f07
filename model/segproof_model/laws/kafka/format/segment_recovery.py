# SPDX-License-Identifier: Apache-2.0
"""The laws of a segment's recovery.

It is judged as the harness does it: from an empty producer state or none, and beside epochs or
none. It answers the number of bytes removed, and then what was learned of producers and the epochs:
of these speaks broker/recovered_epochs_and_producers.
"""

import math
from contextlib import suppress
from typing import Any

from segproof_model.kafka.format import log_segment_releases_before_2 as before_2
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.log_segment_deviations import (
    RecoveryEndsWhereOffsetsFall,
    is_torn,
    no_batches,
    offsets_of,
)
from segproof_model.kafka.format.log_segment_releases import CallIsIndexedAsAWhole
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused
from segproof_model.laws.kafka.format.segment_views import Batch, due, largest_of, segment_view
from segproof_model.laws.register import Transition, has, law

RECOVER = "Kafka LogSegment.recover, since 1.1.1"


def _valid_ends(segment: Any) -> list[int]:
    """Return 0 and the end of each batch up to the first that is not valid, or that segproof's
    recovery ends before since its stored offset falls.
    """
    ends, before = [0], no_batches(segment.base_offset)
    flushed_end = segment.flushed_end if has(segment, RecoveryEndsWhereOffsetsFall) else math.inf
    with suppress(Refused):
        for batch in segment.log.batches():
            batch.ensure_valid()
            offsets = offsets_of(batch)
            if before[1].stop >= flushed_end and is_torn(offsets.start, before):
                break
            before = before[1], offsets
            ends.append(batch.position + batch.size_bytes)
    return ends


def _is_whole(step: Transition) -> bool:
    """Return whether a recovery kept all that is valid, and all of that can be read."""
    is_kept = step.succeeded and step.after.size == _valid_ends(step.before)[-1]
    return is_kept and segment_view(step.after).is_readable


def _due(segment: LogSegment) -> list[Batch]:
    """Return the batches that recovery enters into the offset index."""
    return due(segment_view(segment).batches, 0, segment.config.index_interval_bytes)


@law("SEG-20", LogSegment, RECOVER, on="recover")
def recovery_keeps_what_is_valid(step: Transition) -> bool:
    """After recovery the log is its longest prefix of batches that scan and are valid, or ends
    before a batch whose records are unreadable; the answer begins with the number of removed bytes.

    In segproof the prefix also ends before a batch whose stored offset is below the segment's base
    or not above the last offset of the batch before, unless that one fits between the batches
    beside it: no checksum covers the offset, and a torn append may leave 0 there. What lies below
    an offset up to which all was flushed, at least 0, is no torn append. All releases keep such a
    batch: the log end falls, and the next append gets offsets of flushed records.
    """
    before, after, ends = step.before, step.after, _valid_ends(step.before)
    if not step.succeeded:
        return True
    removed, producers, _ = step.answer
    reads_records = producers is not None or has(before, before_2.FirstOffsetIsKey)
    is_end = after.size in (ends if reads_records else ends[-1:])
    is_kept = segment_view(after).image == segment_view(before).image[: after.size]
    return is_end and is_kept and bool(removed == before.size - after.size)


@law("SEG-21", LogSegment, RECOVER)
def recovery_is_idempotent(first: Any, second: Any, removed: int) -> bool:
    """A second recovery from the same producer state and epochs returns 0 and changes no file."""
    return removed == 0 and bool(first.files == second.files)


@law("SEG-22", LogSegment, RECOVER, on="recover")
def recovery_indexes_what_is_due(step: Transition) -> bool:
    """Recovery adds an entry to the offset index exactly for a batch that begins more bytes than
    the interval after the last batch with an entry: its last offset (up to 1.1 its first) and
    position.
    """
    after = segment_view(step.after)
    expected = [(after.stored(after.key_of(one)), one.position) for one in _due(step.after)]
    return not (step.succeeded and after.is_readable) or after.offsets == expected


@law("SEG-23", LogSegment, RECOVER, on="recover")
def recovery_ends_with_the_maximum(step: Transition) -> bool:
    """Recovery writes the largest timestamp so far with each offset entry and once more at the
    end, each time if it grew, with the last offset of the batch that has it."""
    after, expected = segment_view(step.after), [(-1, -1)]
    for end in [*(one.position for one in _due(step.after)), step.after.size]:
        largest = largest_of(one for one in after.batches if one.position <= end)
        expected += [largest] if largest[0] > expected[-1][0] else []
    times = [(timestamp, after.stored(offset)) for timestamp, offset in expected[1:]]
    return not _is_whole(step) or after.times == times


@law("SEG-24", LogSegment, RECOVER, on="recover")
def recovery_trims_the_indexes(step: Transition) -> bool:
    """After recovery the two index files have exactly their entries."""
    return not step.succeeded or segment_view(step.after).is_trimmed


@law("SEG-25", LogSegment, "Kafka LogSegment.append and recover, since 1.1.1")
def recovery_rebuilds_the_live_index(live: Any, recovered: Any) -> bool:
    """If each append into a new segment has carried one batch above all offsets before and none has
    failed, recovery builds the same offset index, and the same time index with at most one more
    entry."""
    one, other = segment_view(live), segment_view(recovered)
    is_more = 0 <= len(other.times) - len(one.times) <= 1
    return is_more and one.offsets == other.offsets and other.times[: len(one.times)] == one.times


@law("SEG-26", LogSegment, "Kafka LogSegment, since 4.1.0", unless=CallIsIndexedAsAWhole)
def recovery_rebuilds_what_batches_left(live: Any, recovered: Any) -> bool:
    """Where append indexes each batch, SEG-25 also holds for calls with several batches."""
    return recovery_rebuilds_the_live_index(live, recovered)


@law("SEG-27", LogSegment, RECOVER, on="recover")
def failed_recovery_cuts_nothing(step: Transition) -> bool:
    """Recovery raises the segment-overflow error for a valid batch too far from the base, and
    raises errors of the indexes. Then the log is uncut, unless only the last time entry fails,
    which is written after the cut.

    In segproof a batch whose stored offset is below the base ends the recovery without an error
    (SEG-20).
    """
    before, after = segment_view(step.before), segment_view(step.after)
    if not step.succeeded:
        is_kept = after.image == before.image
        ends = [] if step.raised(ErrorKind.SEGMENT_OVERFLOW) else _valid_ends(step.before)
        return is_kept or after.image in [before.image[:end] for end in ends]
    is_near = all(before.can_hold(one.last_offset) for one in after.batches)
    return is_near or has(step.before, before_2.FarOffsetIsInvalidArgument)


@law("SEG-29", LogSegment, RECOVER, on="recover")
def recovery_keeps_the_counters(step: Transition) -> bool:
    """Recovery keeps the count of bytes since the last entry and the first timestamp."""
    names = "bytes_since_last_index_entry", "rolling_based_timestamp"
    return all(getattr(step.before, name) == getattr(step.after, name) for name in names)
