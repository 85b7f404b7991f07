# SPDX-License-Identifier: Apache-2.0
"""Contracts of the segment: offsets that fit, rolling, sizes of reads, entries, searches by offset.

Each is held against the definition, written down in the contract itself in exact numbers.

Mirrors: impl/segproof/kernels/segment_rules.py, impl/segproof/kernels/segment_search.py.
"""

from typing import Any

from segproof.kernels import segment_search
from segproof.kernels.segment_rules import (
    indexed_batches,
)
from segproof_tests.contracts import Mutant, contract

SEGMENTS = "segproof.kernels.segment_rules"
SEARCHES = "segproof.kernels.segment_search"

_indexed_batches: Any = indexed_batches.interpreted
_find_batch = segment_search.find_batch.interpreted
_find_in_batch = segment_search.find_in_batch.interpreted
_BATCH_BYTES = 61
_SMALLEST_BYTES = 26
"""The size of the smallest batch, a message of magic 0."""


@contract(
    f"{SEGMENTS}:indexed_batches",
    "SEG-4 SEG-22 SEG-25",
    "any 4 batches, any interval, any bytes since the last entry",
    Mutant("bytes_since > interval", "bytes_since >= interval"),
    Mutant("bytes_since = 0", "bytes_since = 1"),
    Mutant("rows[entries] = number", "rows[entries] = number + 1"),
)
def entries_by_positions(
    size_a: int, size_b: int, size_c: int, size_d: int, interval: int, bytes_since: int
) -> bool:
    """Counting bytes, as an append does, gives the entries that positions give, as in recovery.

    pre: min(size_a, size_b, size_c, size_d) > 0 and interval >= 0 and bytes_since >= 0
    post: _
    """
    sizes = [size_a, size_b, size_c, size_d]
    rows = [-1] * 4
    count, since = _indexed_batches(sizes, 4, interval, bytes_since, rows)
    indexed, position, last = [], 0, -bytes_since
    for number in range(4):
        if position - last > interval:
            indexed.append(number)
            last = position
        position += sizes[number]
    return rows[:count] == indexed and since == position - last


@contract(
    f"{SEGMENTS}:indexed_batches",
    "SEG-4 SEG-26",
    "any 3 batches in any two pieces, any interval",
    Mutant("return entries, bytes_since", "return entries, bytes_since + 1"),
)
def entries_of_pieces(
    size_a: int, size_b: int, size_c: int, interval: int, bytes_since: int, split: int
) -> bool:
    """Batches in two pieces get the entries that they get in one.

    pre: 0 <= split <= 3
    post: _
    """
    sizes = [size_a, size_b, size_c]
    whole, first, second = [-1] * 3, [-1] * 3, [-1] * 3
    count, since = _indexed_batches(sizes, 3, interval, bytes_since, whole)
    head, middle = _indexed_batches(sizes[:split], split, interval, bytes_since, first)
    tail, end = _indexed_batches(sizes[split:], 3 - split, interval, middle, second)
    joined = first[:head] + [split + number for number in second[:tail]]
    return (whole[:count], since) == (joined, end)


@contract(
    f"{SEARCHES}:find_batch",
    "SEG-12",
    "two empty batches with offsets of 32 bits that rise, any target",
    Mutant("previous_last = last", "previous_last = base"),
    Mutant("previous = position", "previous = start - 1"),
    Mutant("position + 23", "position + 22"),
)
def batch_of_offset(data: bytes, target: int) -> bool:
    """The first of two batches whose last offset is not below the target is found, or none.

    pre: len(data) == 16
    pre: _follow(data)
    post: _
    """
    log: Any = _batch([*data[:8]]) + _batch([*data[8:]])
    found = _find_batch(log, 0, len(log), len(log), target)
    for number in (0, 1):
        _, last_offset = _offsets(data[8 * number :])
        if last_offset >= target:
            return found == (segment_search.SEARCH_FOUND, number * _BATCH_BYTES, _BATCH_BYTES)
    return found == (segment_search.SEARCH_NONE, 0, 0)


@contract(
    f"{SEARCHES}:find_batch",
    "SEG-12",
    "any 30 raw bytes, any start, any part of them read, any target",
    Mutant("position > end - 12 - size", "position > end - size"),
    Mutant("if size < 14:", "if size < 13:"),
)
def batches_of_any_bytes(data: bytes, start: int, filled: int, target: int) -> bool:
    """Whatever the bytes are, a search ends inside of them, and asks for more only at their end.

    pre: len(data) == 30 and 0 <= start <= filled <= 30
    post: _
    """
    status, position, size = _find_batch(data, start, filled, 30, target)
    if status != segment_search.SEARCH_FOUND:
        return (position, size) == (0, 0)
    return start <= position and size >= _SMALLEST_BYTES and position + size <= 30


@contract(
    f"{SEARCHES}:find_in_batch",
    "SCAN-18 SEG-39",
    "two small records with any attributes, both timestamps of the batch from 0 to 127, deltas "
    "from 0 to 63 (one for timestamp and offset), any target, any starting offset",
    Mutant("timestamp >= target", "timestamp > target"),
    Mutant("offset >= starting_offset", "offset > starting_offset"),
    Mutant("largest if is_log_append", "first_timestamp if is_log_append"),
    Mutant("position + 27", "position + 35"),
)
def record_of_time(data: bytes, target: int, starting_offset: int) -> bool:
    """The first of two records at or after both the timestamp and the offset is found, or none.

    pre: len(data) == 5
    pre: max(data[1:]) < 128
    pre: data[3] % 2 == 0 and data[4] % 2 == 0
    post: _
    """
    header = [*bytes(22), data[0], *bytes(11), data[1], *bytes(7), data[2], *bytes(14), 0, 0, 0, 2]
    records = [byte for n in (3, 4) for byte in (14, 0, data[n], data[n], 1, 2, 0, 0)]
    batch: Any = header + records
    found = _find_in_batch(batch, 0, len(batch), target, starting_offset)
    if data[0] % 8:
        return found == (segment_search.SEARCH_ODD, 0, 0)
    for number in (3, 4):
        delta = data[number] // 2 if data[number] % 2 == 0 else -(data[number] // 2) - 1
        timestamp = data[2] if data[0] // 8 % 2 else data[1] + delta
        if timestamp >= target and delta >= starting_offset:
            return found == (segment_search.SEARCH_FOUND, timestamp, delta)
    return found == (segment_search.SEARCH_NONE, 0, 0)


def _batch(data: list[int]) -> list[int]:
    """Return an empty batch: its base offset is the first 4 bytes, its last delta 4 bytes more."""
    framing = [*bytes(4), *data[:4], 0, 0, 0, 49, 0, 0, 0, 0, 2]
    return [*framing, *bytes(6), *data[4:8], *bytes(34)]


def _offsets(data: bytes) -> tuple[int, int]:
    """Return the first and the last offset of such a batch."""
    base_offset = int.from_bytes(data[:4], "big")
    return base_offset, base_offset + int.from_bytes(data[4:8], "big", signed=True)


def _follow(data: bytes) -> bool:
    """Whether the offsets of two such batches rise."""
    (base_a, last_a), (base_b, last_b) = _offsets(data), _offsets(data[8:])
    return base_a <= last_a < base_b <= last_b
