# SPDX-License-Identifier: Apache-2.0
"""Contracts of the time index: entries, fullness, the append rule, the cases of truncate_to.

Mirrors: model/segproof_model/kafka/time_index.py, impl/segproof/kafka/time_index.py.
Used by: registry.
"""

import struct

from segproof.kafka import time_index
from segproof.kernels.index_rules import (
    APPEND_FULL,
    APPEND_NO_ROOM,
    APPEND_NOTHING,
    APPEND_OFFSET_TOO_FAR,
    APPEND_OFFSET_TOO_SMALL,
    APPEND_STORE,
    APPEND_TIMESTAMP_TOO_SMALL,
    is_full,
    kept_entries,
    time_append,
)
from segproof_model.directory import Directory
from segproof_model.kafka.time_index import TimeIndex, TimestampOffset
from segproof_model.language.integers import wrap32, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import SEGPROOF

ENTRY = time_index._ENTRY.format
"""The layout by which the index reads and writes an entry."""

_kept_entries = kept_entries.interpreted
_KINDS: dict[int, object] = {
    APPEND_NOTHING: None,
    APPEND_FULL: Raised(ErrorKind.INVALID_ARGUMENT),
    APPEND_OFFSET_TOO_SMALL: Raised(ErrorKind.INVALID_OFFSET),
    APPEND_TIMESTAMP_TOO_SMALL: Raised(ErrorKind.ILLEGAL_STATE),
    APPEND_NO_ROOM: Raised(ErrorKind.BUFFER_OVERFLOW),
    APPEND_OFFSET_TOO_FAR: Raised(ErrorKind.INDEX_OFFSET_OVERFLOW),
    APPEND_STORE: None,
}


def _model(data: bytes, entries: int, base_offset: int, last_entry: TimestampOffset) -> TimeIndex:
    directory = Directory((("x", data),))
    size, slots = len(data), len(data) // 12
    return TimeIndex(
        SEGPROOF, base_offset, -1, True, "x", "x", directory, size, slots, entries, entries * 12,
        True, last_entry,
    )  # fmt: skip


def entry_decode(data: bytes, base_offset: int) -> bool:
    """Read the second of two entries.

    pre: len(data) == 24
    post: _
    """
    timestamp, relative = struct.unpack_from(ENTRY, data, 12)
    expected = _model(data, 2, base_offset, TimestampOffset(-1, 0))._entry(1)
    return expected == TimestampOffset(timestamp, base_offset + relative)


def entry_encode(timestamp: int, relative: int) -> bool:
    """Write an entry, byte for byte; the model's wraps leave its numbers as they are.

    pre: -(2**63) <= timestamp < 2**63
    pre: 0 <= relative < 2**31
    post: _
    """
    if wrap64(timestamp) != timestamp or wrap32(relative) != relative:
        return False
    # The model's int64_bytes and int32_bytes without their wraps, which would hide the bytes.
    written = timestamp.to_bytes(8, "big", signed=True) + relative.to_bytes(4, "big", signed=True)
    return written == struct.pack(ENTRY, timestamp, relative)


def fullness(entries: int, max_entries: int) -> bool:
    """Be full with one slot left.

    pre: 0 <= entries <= max_entries
    post: _
    """
    last = TimestampOffset(-1, 0)
    model = TimeIndex(
        SEGPROOF, 0, -1, True, "x", "x", Directory(), 0, max_entries, entries, 0, True, last
    )
    return is_full(entries, max_entries, 1) == model.is_full


def append_rule(
    entries: int,
    spare_bytes: int,
    last_timestamp: int,
    last_offset: int,
    base_offset: int,
    timestamp: int,
    offset: int,
    skip_full_check: bool,
) -> bool:
    """Store, do nothing or refuse with the model's error kind, partial slots at the end included.

    pre: 0 <= entries <= 2
    pre: 0 <= spare_bytes <= 1
    pre: -(2**63) <= last_timestamp < 2**63
    pre: -(2**63) <= timestamp < 2**63
    pre: -(2**63) <= last_offset < 2**63
    pre: -(2**63) <= base_offset < 2**63
    pre: -(2**63) <= offset < 2**63
    pre: entries > 0 or last_timestamp == -1
    post: _
    """
    length = 32 if spare_bytes else 24
    last = TimestampOffset(last_timestamp, last_offset)
    model = _model(bytes(length), entries, base_offset, last)
    step = model.maybe_append(timestamp, offset, skip_full_check)
    verdict = time_append(
        entries, length, last_timestamp, last_offset, base_offset, timestamp, offset,
        skip_full_check,
    )  # fmt: skip
    stored = entries + 1 if verdict == APPEND_STORE else entries
    return step.outcome == _KINDS[verdict] and step.after.entries == stored


def truncate_to_cases(data: bytes, offset: int) -> bool:
    """Keep none, those before a match, or those up to the lower slot; offsets may repeat.

    pre: len(data) == 36
    post: _
    """
    kept = _kept_entries(data, 12, 8, 3, offset, 682)
    model = _model(data, 3, 0, TimestampOffset(-1, 0))
    return kept == model.truncate_to(offset).after.entries
