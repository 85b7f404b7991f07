# SPDX-License-Identifier: Apache-2.0
"""Segments that lack offsets where no other segment of the partition does.

Compaction leaves gaps over a whole log. A log without gaps was not compacted, so a segment of it
that lacks offsets has lost records. An index would show what the log held, so only segments without
such proof are asked: an index is missing, the log is empty, or a producer snapshot shows that a
segment began in the gap. So is a segment that lacks offsets after its last batch only, as many as
a segment may have: all files of the next segment may be gone. A log that was compacted once, and
whose last gaps were merged away but one, looks the same: see `cleaner_traces`.

Laws: DISK-63.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from segproof.files import Files
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.cleaner_traces import CleanerTraces, Cleaning
from segproof.reading.file_names import SNAPSHOT_SUFFIX, NameKind, read_file_name
from segproof.reading.folder_names import names_of

KEYLESS = "a record before them has no key"
GONE = "they are as many as a segment may have, of which no file is in this folder"
"""The doubt about a segment after which another one may be missing."""


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
    missing_at_end: int = 0
    """How many of the missing offsets are after its last batch."""
    keyless_from: int | None = None
    """The last offset of the first known batch of the partition that has a record without a key.

    It is asked for only where offsets are missing at the end."""

    def has_room_for(self, base_offset: int) -> bool:
        """Return whether a segment with this base offset belongs into the gap at its end."""
        end = self.next_base_offset or 0
        return end - self.missing_at_end <= base_offset < end

    @property
    def is_never_cleaned(self) -> bool:
        """Whether a record without a key lies before the gap at its end: no compaction left it."""
        end, keyless = self.next_base_offset, self.keyless_from
        if end is None or keyless is None or not self.missing_at_end:
            return False
        is_only_gap = self.missing == self.missing_at_end
        return (is_only_gap or not self.doubt) and keyless < end - self.missing_at_end

    @property
    def is_whole(self) -> bool:
        """Whether it is closed, and has batches with all of its offsets."""
        return self.batches > 0 and not self.missing and self.next_base_offset is not None


def misnamed_logs(directory: str, files: Files) -> dict[int, str]:
    """Return the names of the logs of a partition that no broker finds, by base offset (FILE-1)."""
    kinds = {name: read_file_name(name) for name in names_of(directory, files)}
    return {
        known.base_offset: name
        for name, known in kinds.items()
        if known.kind is NameKind.MISNAMED and known.suffix == ".log"
    }


def judged(
    extents: Sequence[Extent],
    removed: Mapping[int, str],
    find_keyless: Callable[[], int | None],
    *,
    was_here: bool,
) -> Iterator[tuple[Extent, Cleaning]]:
    """Yield the segments in doubt, each with what is known of the offsets that it lacks.

    `removed` are the names of removed or misnamed logs that are still there, by base offset: what
    one of them holds is not lost yet. `was_here` and what `find_keyless` returns are those of
    `CleanerTraces`. A segment with both indexes is left out if compaction explains its gap.
    """
    lost = []
    if not was_here:
        lost = [
            one._replace(missing=one.missing_at_end, doubt=one.doubt or KEYLESS)
            for one in extents
            if one.is_never_cleaned
        ]
        extents = with_gone_segments([
            one._replace(missing=one.missing - one.missing_at_end, missing_at_end=0)
            if one.is_never_cleaned
            else one
            for one in extents
        ])  # fmt: skip
    is_alone = are_losses(extents)
    traces = CleanerTraces(was_here, find_keyless() if is_alone else None)
    for one in (*lost, *extents):
        if not (one.missing and one.doubt):
            continue
        known = traces.of_gap(one.base_offset) if is_alone else Cleaning.SHOWN
        if one.is_never_cleaned and not was_here:
            known = Cleaning.EXCLUDED
        held = next((name for base, name in removed.items() if one.has_room_for(base)), None)
        doubt = one.doubt
        if held is not None:
            known = Cleaning.UNKNOWN if known is Cleaning.EXCLUDED else known
            why = "which was removed from the log"
            why = why if held.endswith(".deleted") else "whose name no broker reads"
            doubt = f"{held} may hold them, {why}"
        if known is not Cleaning.SHOWN or one.lacks_index:
            yield one._replace(doubt=doubt), known


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


def with_gone_segments(extents: Sequence[Extent]) -> list[Extent]:
    """Return the extents, with a doubt about those after which a whole segment may be gone.

    It may be if as many offsets are missing as half of the whole segment has that has the fewest,
    and if the log has half the bytes of the longest whole one, so that compaction has not shortened
    it.
    """
    whole = [one for one in extents if one.is_whole]
    if not whole:
        return list(extents)
    fewest = min((one.next_base_offset or 0) - one.base_offset for one in whole)
    longest = max(one.end_position for one in whole)
    return [
        one._replace(doubt=GONE)
        if one.missing
        and not one.doubt
        and one.missing == one.missing_at_end
        and one.missing * 2 >= fewest
        and one.end_position * 2 >= longest
        else one
        for one in extents
    ]


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
