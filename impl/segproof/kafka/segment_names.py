# SPDX-License-Identifier: Apache-2.0
"""The names of a segment's files, and of what a log keeps beside them.

Upstream: Kafka, LogFileUtils (since 3.5), in older releases Log.
Laws: FILE-1, FILE-2.
"""

import os
from typing import NamedTuple

from segproof.errors import InvalidArgumentError, NumberFormatError
from segproof.integers import in_range

SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX = ".deleted", ".cleaned", ".swap"
KEPT_CHECKPOINT_SUFFIX = ".checkpoint.deleted"
"""Of a deleted snapshot of a metadata log, which is not this log's business."""


def segment_file_name(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file, the base offset in at least 20 digits (FILE-1).

    A minus sign is not counted.
    """
    sign = "-" if base_offset < 0 else ""
    return f"{sign}{abs(base_offset):020d}{suffix}"


def offset_of_name(name: str, suffix: str) -> int | None:
    """Return the offset in a name with this suffix; None unless Kafka writes it just so."""
    number = name.removesuffix(suffix)
    if number == name or len(number) > 20 + (number[:1] == "-"):
        return None
    if not number.isascii() or not number.removeprefix("-").isdigit():
        return None
    offset = int(number)
    fits = -(1 << 63) <= offset < 1 << 63
    return offset if fits and segment_file_name(offset, suffix) == name else None


def named_base_offset(path: str, suffix: str) -> int | None:
    """Return the base offset that the name of a segment's file says, or None (FILE-1).

    Names that end in `.deleted`, `.cleaned` or `.swap` behind the suffix say it too.
    """
    name = os.path.basename(path)
    later = (one for one in (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX) if name.endswith(one))
    return offset_of_name(name.removesuffix(next(later, "")), suffix)


def base_offset_of(path: str, suffix: str, given: int | None = None) -> int:
    """Return the base offset of a segment's file: what its name says, else what is given.

    Raises: InvalidArgumentError where neither says one, where the name says another one than is
    given, and outside 64 bits.
    """
    named = named_base_offset(path, suffix)
    if given is None and named is None:
        raise InvalidArgumentError(
            "the name of the file does not say the base offset",
            law="FILE-1",
            path=path,
            expected=segment_file_name(0, suffix),
            actual=os.path.basename(path)[:40],
            hint=f"pass base_offset, or call the file as Kafka does: 20 digits and {suffix}",
        )
    offset = named if given is None else in_range(given, "the base offset", path=path)
    assert offset is not None
    if named is not None and named != offset:
        raise InvalidArgumentError(
            f"the base offset is {named} by the name of the file, not {offset}",
            law="FILE-1",
            path=path,
            expected=named,
            actual=offset,
            hint="leave the base offset out, or open the file of the other segment",
        )
    return offset


class SegmentName(NamedTuple):
    """What the name of a segment's file, of a snapshot, or of a file to be removed says."""

    base_offset: int
    kind: str
    """`.log`, `.index`, `.timeindex`, `.txnindex` or `.snapshot`; nothing of one to be removed."""
    suffix: str
    """`.deleted`, `.cleaned`, `.swap` or nothing."""


def parse_name(name: str, folder: str) -> SegmentName | None:
    """Return what a name says, or None for one that a log does not use. Laws: FILE-1, FILE-2.

    Raises: NumberFormatError where the name is that of a segment's file, of a `.cleaned` or a
    `.swap`, and not as Kafka writes it: such a file may be a second one of its offset.
    """
    if name.endswith(DELETED_SUFFIX):
        is_foreign = name.endswith(KEPT_CHECKPOINT_SUFFIX)
        return None if is_foreign else SegmentName(0, "", DELETED_SUFFIX)
    suffix = next((one for one in (SWAP_SUFFIX, CLEANED_SUFFIX) if name.endswith(one)), "")
    plain = name.removesuffix(suffix)
    kinds = (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX)[: len(SEGMENT_SUFFIXES) if suffix else None]
    kind = next((one for one in kinds if plain.endswith(one)), "")
    base_offset = offset_of_name(plain, kind) if kind else None
    if base_offset is not None:
        return SegmentName(base_offset, kind, suffix)
    if kind in SEGMENT_SUFFIXES or suffix:
        raise NumberFormatError(
            "a file of a log whose name is not an offset and a suffix as Kafka writes them",
            law="FILE-2",
            path=os.path.join(folder, name),
            expected="the base offset in 20 digits, -2^63 to 2^63 - 1, and .log or another suffix",
            actual=name[:40],
            hint="look into it with `segproof dump`; nothing was changed",
        )
    return None
