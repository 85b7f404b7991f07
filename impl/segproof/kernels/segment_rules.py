# SPDX-License-Identifier: Apache-2.0
"""The decisions of a segment: which offsets fit, when to roll, what a read may return, what is
indexed.

Each is a pure function of ints, so that the decision the segment takes is the very one whose
claim is proved.

Mirrors: segproof_model/kafka/format/log_segment.py under the profile `segproof`.
Upstream: Kafka, LogSegment (4.3.1).
Laws: SEG-2, SEG-4, SEG-16, SEG-17, SEG-19, SEG-22, SEG-36, SEG-37, SEG-41.
"""

from segproof.kernels.dispatch import kernel
from segproof.kernels.index_rules import offset_distance


def fits_segment(offset: int, base_offset: int) -> bool:
    """Return whether an offset can be told from the base offset in 31 bits. Laws: SEG-2, SEG-41.

    The difference wraps at 64 bits, as upstream; an offset outside 64 bits never fits.
    """
    return 0 <= offset_distance(offset, base_offset) <= 2147483647


def time_waited(now: int, message_timestamp: int, first_timestamp: int, created: int) -> int:
    """Return for how many ms a segment has waited to be rolled. Law: SEG-36.

    By the clock of its messages where the first batch has a timestamp, else by the wall's.
    """
    if first_timestamp >= 0:
        return message_timestamp - first_timestamp
    return now - created


def roll_is_due(
    size: int,
    max_segment_bytes: int,
    messages_size: int,
    waited: int,
    max_segment_ms: int,
    roll_jitter_ms: int,
) -> bool:
    """Return whether a segment is rolled for its size or its age. Law: SEG-37.

    It is compared without a sum that could overflow. An empty segment has no age.
    """
    if size > max_segment_bytes - messages_size:
        return True
    return size > 0 and waited > max_segment_ms - roll_jitter_ms


def read_size(
    max_size: int, batch_size: int, min_one_message: bool, max_position: int, start: int
) -> int:
    """Return how many bytes a read from `start` may return; negative: it is refused. Law: SEG-16.

    `max_position` is exclusive. Only `max_size` gives way to a first batch that is larger.
    """
    adjusted = max_size
    if min_one_message and batch_size > max_size:
        adjusted = batch_size
    if max_position - start < adjusted:
        return max_position - start
    return adjusted


@kernel
def indexed_batches(
    sizes: memoryview, count: int, interval: int, bytes_since: int, rows: memoryview
) -> tuple[int, int]:
    """Fill `rows` with the numbers of the batches that get an index entry.

    Return how many there are, and the bytes since the last indexed batch. A batch gets one if more
    than `interval` bytes lie between the beginning of the last indexed batch and its own; it counts
    itself for the next. Laws: SEG-4, SEG-6, SEG-22, SEG-25.
    """
    entries = 0
    for number in range(count):
        if bytes_since > interval:
            rows[entries] = number
            entries += 1
            bytes_since = 0
        bytes_since += sizes[number]
    return entries, bytes_since
