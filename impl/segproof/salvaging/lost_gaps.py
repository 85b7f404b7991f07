# SPDX-License-Identifier: Apache-2.0
"""Offsets that are in no new log, though nothing of the old logs was left out.

Laws: DISK-25, DISK-63, DISK-70.
"""

import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from segproof.files import Files
from segproof.integers import INT64_MAX
from segproof.inventory.partitions import Partition, segments_in_doubt
from segproof.inventory.segments import Segment
from segproof.kafka.batch_table import BatchTable, read_batch_headers
from segproof.reading.claimed_offsets import claims
from segproof.reading.cleaner_traces import CleanerTraces, Cleaning
from segproof.reading.cut_outs import CutOutGap
from segproof.reading.dense_logs import Extent, doubt_about
from segproof.reading.file_names import SNAPSHOT_SUFFIX, read_file_name
from segproof.reading.keyless_records import (
    KeylessEnds,
    end_batches,
    first_keyless,
)
from segproof.reading.log_order import NamedLog
from segproof.salvaging.gaps import Gap, LogGap
from segproof.salvaging.other_logs import SegmentJudge
from segproof.salvaging.salvaged_partition import SalvagedPartition
from segproof.stretches.kafka.header_rows import first_offsets, state_first_offset


@dataclass(slots=True)
class _Kept:
    """What the new logs hold of a segment."""

    end: int
    """The offset after the last batch so far."""
    batches: int = 0
    size_bytes: int = 0
    first_offset: int | None = None
    """The first offset of the first batch; None without any."""
    gaps: list[tuple[int, int, int]] = field(default_factory=list)
    """Position, first and last offset of what is missing."""

    def take(self, table: BatchTable) -> None:
        """Take the next batches."""
        lasts = table["last_offset"]
        before = np.concatenate([[self.end - 1], lasts[:-1]])
        is_known = state_first_offset(table)
        firsts = np.where(is_known, first_offsets(table), before + 1)
        if self.first_offset is None:
            self.first_offset = int(firsts[0])
        starts = self.size_bytes + np.cumsum(table["size_bytes"]) - table["size_bytes"]
        for row in np.flatnonzero(firsts > before + 1).tolist():
            self.gaps.append((int(starts[row]), int(before[row]) + 1, int(firsts[row]) - 1))
        self.end = int(lasts[-1]) + 1
        self.batches += len(table)
        self.size_bytes += int(table["size_bytes"].sum())

    @property
    def missing(self) -> int:
        """How many offsets are missing."""
        return sum(last - first + 1 for _, first, last in self.gaps)


class Doubt(NamedTuple):
    """Offsets in no batch that was kept."""

    first_offset: int
    number: int
    is_damaged: bool = False
    """Whether bytes of a log are damaged there; else only names of files tell of the offsets."""


def doubts_of_gaps(gaps: Sequence[Gap]) -> list[Doubt]:
    """Return the offsets that gaps cost whose ends the names of files tell."""
    return [
        Doubt(one.first_lost_offset, one.last_lost_offset + 1 - one.first_lost_offset)
        for one in gaps
        if one.last_lost_offset is not None
    ]


def is_loss_hidden(
    told: SalvagedPartition, left_out: int, harmless: int, *, is_lossless: bool
) -> bool:
    """Return whether lost offsets may be among those that no gap tells.

    Offsets are left out between batches that touch, as by compaction. In a gap that `is_lossless`
    none is missing, or batches lay at a wrong place: so the lost ones may be those. Of the
    batches that were set aside, `harmless` ones cost no offset: they are of other partitions, or
    copies of batches that were kept.
    """
    is_asked = is_lossless or told.set_aside_batches > harmless or told.moved_batches > 0
    return is_asked and left_out > told.lost_offsets


def doubts_of_damage(
    pending: Sequence[Gap], ends: tuple[int, int], log: NamedLog, files: Files
) -> list[Doubt]:
    """Return the offsets [ends) of gaps side by side, unless broken batches claim all of them.

    A sound batch of `log` follows. What is missing before the name of that log is missing at the
    end of another one: the name tells that it was there, whatever bytes are left of it.
    """
    begin, end = ends
    if _are_claimed(pending, end - begin, files):
        return []
    named = max(begin, min(log.base_offset, end))
    is_damaged = any(one.kind == LogGap.BROKEN and one.path == log.path for one in pending)
    doubts = [Doubt(begin, named - begin), Doubt(named, end - named, is_damaged)]
    return [one for one in doubts if one.number]


def _are_claimed(pending: Sequence[Gap], lost: int, files: Files) -> bool:
    """Return whether the broken batches of gaps side by side claim so many lost offsets."""
    first, last = pending[0], pending[-1]
    end = last.position + last.size_bytes
    is_in_one = sum(one.size_bytes for one in pending) == end - first.position
    if first.path != last.path or not is_in_one:
        return False
    with suppress(OSError), closing(files.open(first.path)) as file:
        return claims(file, first.position, end, lost)
    return False


def take_doubts(
    told: SalvagedPartition,
    doubtful: Sequence[Doubt],
    partition: Partition,
    logs: Sequence[str],
    left_out: int,
    files: Files,
) -> None:
    """Count those of the lost offsets as unproven that compaction may have taken.

    `logs` are the new logs, and they leave `left_out` offsets out: if no gap tells some of these,
    the log was compacted.
    """
    if not doubtful:
        return
    traces = CleanerTraces(partition.was_cleaned, first_keyless(logs, files))
    ranges = {(one.first_lost_offset, one.last_lost_offset) for one in told.gaps}
    known = sum(
        last + 1 - first
        for first, last in ranges
        if last is not None and told.first_offset <= first <= last <= told.last_offset
    )
    was_cleaned = traces.was_here or left_out > known
    for one in doubtful:
        is_lost = traces.of_gap(one.first_offset) is Cleaning.EXCLUDED
        if not is_lost and (one.is_damaged or was_cleaned):
            told.lost_offsets -= one.number
            told.unproven_offsets += one.number


def lost_cut_outs(
    segments: Sequence[Segment],
    logs: Sequence[str],
    told: Collection[Gap],
    files: Files,
    judge: SegmentJudge,
) -> tuple[list[tuple[str, CutOutGap]], int]:
    """Return the gaps that held batches, as the indexes show, each with the path of its log.

    And how many offsets may be lost in these gaps, and in other gaps of the same logs. `logs` are
    the new logs, and `told` the gaps that were told already: what is missing there is counted.
    Batches that were put back into a gap are no loss.
    """
    found, unproven = [], 0
    for one in segments:
        gaps, others = ([], 0) if one.held_by else judge.cut_outs(one, files)
        found += [(one.path(".log"), gap) for gap in gaps]
        if gaps and not any(gap.lost for gap in gaps):
            unproven += max(0, others)
    known = [(one.first_lost_offset, one.last_lost_offset) for one in told]
    found = [
        (name, gap) for name, gap in found
        if not any(
            last is not None and first <= gap.first_offset and gap.end_offset <= last + 1
            for first, last in known
        )
    ]  # fmt: skip
    for path in logs if found else ():
        with closing(files.open(path)) as file:
            table = read_batch_headers(file, 0, file.size()).table
        firsts, lasts = first_offsets(table), table["last_offset"]
        found = [
            (name, gap)
            for name, gap in found
            if not ((firsts < gap.end_offset) & (lasts >= gap.first_offset)).any()
        ]
    return found, unproven + sum(gap.unproven for _, gap in found)


def doubts_of_names(
    logs: Iterable[NamedLog], ranges: Sequence[tuple[int, int]], told: Collection[Gap]
) -> Iterator[str]:
    """Yield in words which offsets may be lost where logs have names of other offsets.

    A name says that a segment began there. `ranges` are first and end offsets of the new logs, in
    order, and `told` the gaps that were told already.
    """
    known = [
        range(one.first_lost_offset, one.last_lost_offset + 1)
        for one in told
        if one.last_lost_offset is not None
    ]
    for path, base in logs:
        following = min((first for first, _ in ranges if first > base), default=None)
        is_held = any(first <= base < end for first, end in ranges)
        is_told = any(base in one for one in known)
        if following is not None and not is_held and not is_told:
            yield (
                f"{path}: its name says that a segment began at offset {base}, and its batches are"
                f" of another one: no log here has the offsets {base} to {following - 1}. They are"
                " lost, unless the name is wrong, or they were removed or compacted: compare with"
                " another replica"
            )


def doubts_of_empty_end(log: NamedLog, next_offset: int) -> Iterator[str]:
    """Yield in words what the name of a last log without batches says of offsets before it.

    `next_offset` is the offset after what was kept.
    """
    if 0 < next_offset < log.base_offset:
        yield (
            f"{log.path}: its name says that the log went on to offset {log.base_offset}, and no"
            f" batch has the offsets {next_offset} to {log.base_offset - 1}. A broker gives them to"
            " new records of the saved partition: consumers that were beyond them pass these over"
        )


def gaps_of_dense_log(
    partition: Partition,
    logs: Sequence[str],
    told: Collection[Gap],
    cut_outs: Collection[CutOutGap],
    files: Files,
    *,
    are_apart: bool,
) -> tuple[list[Gap], int]:
    """Return the gaps that are losses, and how many offsets may be lost or may be compacted.

    `logs` are the new logs in order. `told` are the gaps that were told already, and
    `cut_outs` the gaps that the indexes tell of. `are_apart`: a new log ends before the next one.
    """
    names = map(read_file_name, partition.others)
    snapshots = [one.base_offset for one in names if one.suffix == SNAPSHOT_SUFFIX]
    segments = [one for one in partition.segments if ".log" in one.suffixes]
    if not are_apart and not _may_be_doubtful(segments, logs, snapshots):
        return [], 0
    ends = KeylessEnds(files)
    kept = _kept_of(segments, logs, files, ends)
    _leave_out(kept, told, cut_outs)
    followed = {
        before.path(".log")
        for before, one in zip(partition.segments, partition.segments[1:], strict=False)
        if ".log" not in one.suffixes and not one.held_by
    }
    extents, gaps = [], {}
    is_asked = are_apart and any(one.missing for one in kept)
    keyless = ends.first_keyless() if is_asked else None
    for segment, found in zip(segments, kept, strict=True):
        path, following = segment.path(".log"), segment.next_base_offset
        if path in followed or not _is_judged(found, [one for one in told if one.path == path]):
            continue
        doubt = ""
        if following is not None and found.missing and not segment.is_swap:
            reach = found.gaps[-1][1] if found.gaps[-1][2] == following - 1 else following
            doubt = doubt_about(segment.suffixes, found.batches, (reach, following), snapshots)
        lacks_index = not {".index", ".timeindex"} <= segment.suffixes
        gaps[path] = found.gaps
        extents.append(
            Extent(
                path,
                segment.base_offset,
                following,
                found.batches,
                found.missing,
                found.size_bytes,
                lacks_index,
                doubt,
                sum(last + 1 - first for _, first, last in found.gaps if following == last + 1),
                keyless,
            )
        )
    doubtful = list(segments_in_doubt(partition, extents, logs, files))
    asked = {one.path for one, _ in doubtful}
    empty = [one for one in extents if one.missing and not one.batches and one.path not in asked]
    if empty and not partition.was_cleaned and ends.first_keyless() is not None:
        # A compacted topic accepts no record without a key: no cleaner emptied these logs.
        doubtful += [(one, Cleaning.EXCLUDED) for one in empty]
    lost = [
        Gap(one.path, LogGap.MISSING.value, position, 0, first, last)
        for one, known in doubtful
        for position, first, last in gaps[one.path]
        if known is Cleaning.EXCLUDED
        and (one.missing > one.missing_at_end or last + 1 == one.next_base_offset)
    ]
    return lost, sum(one.missing for one, known in doubtful if known is not Cleaning.EXCLUDED)


def untold_offsets(
    logs: Sequence[str], told: Collection[Gap], begin: int | None, files: Files
) -> int:
    """Return how many offsets between the first and the last batch are in none, and in no gap told.

    `logs` are the new logs in order. `begin` is an offset before the first batch that counts as the
    first one, if any.
    """
    kept: _Kept | None = None
    for path in logs:
        with closing(files.open(path)) as file:
            table = read_batch_headers(file, 0, file.size()).table
        if len(table):
            kept = kept or _Kept(int(first_offsets(table)[0]) if begin is None else begin)
            kept.take(table)
    ranges = [
        (one.first_lost_offset, one.last_lost_offset)
        for one in told if one.last_lost_offset is not None
    ]  # fmt: skip
    gaps = kept.gaps if kept is not None else []
    return sum(
        last + 1 - first for _, first, last in gaps
        if not any(begin <= last and first <= end for begin, end in ranges)
    )  # fmt: skip


def _leave_out(
    kept: Sequence[_Kept], told: Collection[Gap], cut_outs: Collection[CutOutGap]
) -> None:
    """Forget what is missing of segments and was told already, or is told by their indexes."""
    ranges = {(one.first_offset, one.end_offset - 1) for one in cut_outs}
    bounds = [(one.first_lost_offset, one.last_lost_offset) for one in told]
    known = [(first, last) for first, last in bounds if last is not None]
    for each in kept:
        each.gaps = [
            one for one in each.gaps
            if one[1:] not in ranges
            and not any(first <= one[1] and one[2] <= last for first, last in known)
        ]  # fmt: skip


def _is_judged(found: _Kept, told: Sequence[Gap]) -> bool:
    """Return whether the rest of what a log lacks is judged; leave out what was told of it.

    After a damage, that is what lies between its last sound batch and the next segment.
    """
    if not told:
        return True
    known = [(one.first_lost_offset, one.last_lost_offset) for one in told]
    ranges = [(first, last) for first, last in known if last is not None]
    if len(ranges) < len(known) or not found.gaps:
        return False
    position, begin, end = at_end = found.gaps[-1]
    is_told = any(first <= end and begin <= last for first, last in ranges)
    are_inner_told = all(
        any(first <= one[1] and one[2] <= last for first, last in ranges) for one in found.gaps[:-1]
    )
    if is_told or not are_inner_told or position < found.size_bytes:
        return False
    found.gaps = [at_end]
    return True


def gaps_of_zeros(pending: Sequence[Gap], partition: Partition, next_offset: int) -> list[Gap]:
    """Return the zeros in closed logs that no batch follows, with the offsets that they cost.

    The name of the next log says how far the log went. `next_offset` is the offset after the last
    batch that was kept.
    """
    found = []
    ends = {one.path(".log"): one.next_base_offset for one in partition.segments}
    for one in pending:
        end = ends.get(one.path)
        if one.kind == LogGap.ZEROS and end is not None and end > next_offset:
            found.append(one._replace(first_lost_offset=next_offset, last_lost_offset=end - 1))
            next_offset = end
    return found


def _may_be_doubtful(
    segments: Sequence[Segment], logs: Sequence[str], snapshots: Collection[int]
) -> bool:
    """Return whether a segment may lack what proves it whole, before anything is read."""
    made, bases = {*map(posixpath.basename, logs)}, {one.base_offset for one in segments}
    closed = [one for one in segments if one.next_base_offset is not None]
    is_odd = not segments[-1].log_bytes  # its name alone says how far the log went
    is_odd |= any(
        not {".index", ".timeindex"} <= one.suffixes
        or posixpath.basename(one.path(".log")) not in made
        for one in closed
    )
    return is_odd or any(min(bases) < one < max(bases) and one not in bases for one in snapshots)


def _kept_of(
    segments: Sequence[Segment], logs: Sequence[str], files: Files, ends: KeylessEnds
) -> list[_Kept]:
    """Return what the new logs hold of each segment; `ends` takes their first and last batches."""
    kept = [_Kept(one.base_offset) for one in segments]
    bases = np.array([one.base_offset for one in segments], np.int64)
    for path in logs:
        with closing(files.open(path)) as file:
            table = read_batch_headers(file, 0, file.size()).table
        ends.add(path, end_batches(table))
        numbers = np.maximum(np.searchsorted(bases, table["last_offset"], "right") - 1, 0)
        for number in np.unique(numbers).tolist():
            kept[number].take(table[numbers == number])
    first = INT64_MAX  # a later batch may begin before the name of its segment, or of several
    for segment, found in zip(reversed(segments), reversed(kept), strict=True):
        following = segment.next_base_offset
        if following is not None and found.end < min(following, first):
            found.gaps.append((found.size_bytes, found.end, min(following, first) - 1))
        first = first if found.first_offset is None else min(first, found.first_offset)
    return kept
