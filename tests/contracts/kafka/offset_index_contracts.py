# SPDX-License-Identifier: Apache-2.0
"""Contracts of the offset index: entries, fullness, the append rule, the cases of truncate_to.

Mirrors: model/segproof_model/kafka/offset_index.py, impl/segproof/kafka/offset_index.py.
Used by: registry.
"""

import struct

from segproof.kafka import offset_index
from segproof.kernels.index_rules import (
    APPEND_FULL,
    APPEND_OFFSET_TOO_FAR,
    APPEND_OFFSET_TOO_SMALL,
    APPEND_STORE,
    is_full,
    kept_entries,
    offset_append,
    offset_distance,
)
from segproof_model.directory import Directory
from segproof_model.kafka.offset_index import OffsetIndex, OffsetPosition
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import SEGPROOF

ENTRY = offset_index._ENTRY.format
"""The layout by which the index reads and writes an entry."""

_kept_entries = kept_entries.interpreted
_KINDS: dict[int, object] = {
    APPEND_FULL: Raised(ErrorKind.INVALID_ARGUMENT),
    APPEND_OFFSET_TOO_SMALL: Raised(ErrorKind.INVALID_OFFSET),
    APPEND_OFFSET_TOO_FAR: Raised(ErrorKind.INDEX_OFFSET_OVERFLOW),
    APPEND_STORE: None,
}


def _model(data: bytes, entries: int, base_offset: int, last_offset: int) -> OffsetIndex:
    directory = Directory((("x", data),))
    size, slots = len(data), len(data) // 8
    return OffsetIndex(
        SEGPROOF, base_offset, -1, True, "x", "x", directory, size, slots, entries, entries * 8,
        True, last_offset,
    )  # fmt: skip


def entry_decode(data: bytes, base_offset: int) -> bool:
    """Read the second of two entries.

    pre: len(data) == 16
    post: _
    """
    relative, position = struct.unpack_from(ENTRY, data, 8)
    expected = _model(data, 2, base_offset, 0)._entry(1)
    return expected == OffsetPosition(base_offset + relative, position)


def entry_encode(relative: int, position: int) -> bool:
    """Write an entry, byte for byte.

    pre: 0 <= relative < 2**31
    pre: -(2**31) <= position < 2**31
    post: _
    """
    expected = _model(bytes(8), 0, 0, 0).append(relative, position).after.to_bytes()
    return expected == struct.pack(ENTRY, relative, position)


def fullness(entries: int, max_entries: int) -> bool:
    """Be full exactly when no slot is left.

    pre: 0 <= entries <= max_entries
    post: _
    """
    model = OffsetIndex(
        SEGPROOF, 0, -1, True, "x", "x", Directory(), 0, max_entries, entries, 0, True, 0
    )
    return is_full(entries, max_entries, 0) == model.is_full


def append_rule(entries: int, last_offset: int, base_offset: int, offset: int) -> bool:
    """Store or refuse, with the model's error kind, and store the model's distance.

    pre: 0 <= entries <= 2
    pre: -(2**63) <= last_offset < 2**63
    pre: -(2**63) <= base_offset < 2**63
    pre: -(2**63) <= offset < 2**63
    post: _
    """
    step = _model(bytes(16), entries, base_offset, last_offset).append(offset, 77)
    verdict = offset_append(entries, 2, last_offset, base_offset, offset)
    if step.outcome != _KINDS[verdict]:
        return False
    if verdict != APPEND_STORE:
        return True
    written = struct.pack(ENTRY, offset_distance(offset, base_offset), 77)
    return step.after.slot(entries) == written


def truncate_to_cases(data: bytes, offset: int) -> bool:
    """Keep none, those before a match, or those up to the lower slot; keys may repeat or fall.

    pre: len(data) == 24
    post: _
    """
    kept = _kept_entries(data, 8, 0, 3, offset, 1024)
    return kept == _model(data, 3, 0, 0).truncate_to(offset).after.entries
