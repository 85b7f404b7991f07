# SPDX-License-Identifier: Apache-2.0
"""Segments that lack offsets where no other segment of the partition does.

Compaction leaves gaps over a whole log. A log without gaps was not compacted, so a segment of it
that lacks offsets has lost records. An index would show what the log held, so only segments without
such proof are asked: an index is missing, the log is empty, or a producer snapshot shows that a
segment began in the gap.

Laws: DISK-63.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import SNAPSHOT_SUFFIX


class Extent(NamedTuple):
    """The offsets of a segment whose log was read whole."""

    path: str
    """Path of its log."""
    base_offset: int
    next_base_offset: int | None
    """None for the last segment."""
    batches: int
    missing: int
    """Offsets from the base offset to the last batch, or to the next segment, in no batch."""
    end_position: int
    """The byte after its last batch."""
    lacks_index: bool
    """Whether its offset index or its time index is missing."""
    doubt: str = ""
    """Why no file proves that the log is whole, in words; empty if nothing is missing."""


def are_losses(extents: Sequence[Extent]) -> bool:
    """Return whether the offsets that doubtful segments lack are lost, for all that is known.

    So it is if no other segment lacks offsets, and a whole segment shows that the log was not
    compacted: one before the first gap, since compaction begins at the start of a log, or one whose
    indexes are there. A log without any batch has lost all.
    """
    gaps = [number for number, one in enumerate(extents) if one.missing]
    if not gaps or not all(extents[number].doubt for number in gaps):
        return False
    if not any(one.batches for one in extents):
        return True
    return any(
        one.batches
        and not one.missing
        and one.next_base_offset is not None
        and (number < gaps[0] or not one.lacks_index)
        for number, one in enumerate(extents)
    )


def doubt_about(
    suffixes: Iterable[str], batches: int, gap: tuple[int, int], snapshots: Iterable[int]
) -> str:
    """Return why no file proves that a closed log is whole, in words; empty if one may.

    `gap` is the offset after its last batch, and that of the next segment.
    """
    lacking = [one for one in (".index", ".timeindex") if one not in suffixes]
    if lacking:
        return f"no {' or '.join(lacking)} file shows what the log held"
    if not batches:
        return "the log is empty"
    inside = next((one for one in snapshots if gap[0] <= one < gap[1]), None)
    if inside is not None:
        return f"{segment_file_name(inside, SNAPSHOT_SUFFIX)} shows that a segment began among them"
    return ""
