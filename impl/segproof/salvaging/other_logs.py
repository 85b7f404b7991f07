# SPDX-License-Identifier: Apache-2.0
"""Logs that are not those of their segment, and what a salvage reads of a log before it saves it.

Laws: DISK-69.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from segproof.files import Files
from segproof.inventory.segments import Segment
from segproof.kafka.batch_table import read_batch_headers
from segproof.reading import log_order
from segproof.reading.asked_entries import asked_entries
from segproof.reading.cut_outs import CutOutGap
from segproof.reading.index_origins import MISLED, shares_of_entries
from segproof.reading.log_order import NamedLog
from segproof.reading.offset_entries import entries_in
from segproof.salvaging.gaps import Gap, LogGap
from segproof.stretches.kafka.facts import FramedLog
from segproof.stretches.kafka.header_rows import first_offsets
from segproof.stretches.unreadable_blocks import ReadableParts


def _nothing_sound(_path: str) -> int:
    return 0


def _nothing_framed(_path: str) -> None:
    return None


class SegmentJudge(NamedTuple):
    """Says what the indexes of one segment show of its log. Travels to processes."""

    foreign_end: Callable[[Segment, Files], int | None]
    """Returns up to which offset the log went that has another one in its place, or None."""
    cut_outs: Callable[[Segment, Files], tuple[list[CutOutGap], int]]
    """Returns the gaps that held batches, and how many offsets the log lacks in other gaps."""
    sound_to: Callable[[str], int] = _nothing_sound
    """Returns up to which byte of the log at a path all checksums are known to be right."""
    framed: Callable[[str], FramedLog | None] = _nothing_framed
    """Returns what is known of all batches of the log at a path, or None."""


class OtherLogs(NamedTuple):
    """Logs that are not those of their indexes."""

    paths: frozenset[str] = frozenset()
    """Those that match no index of this partition. Most are of other topics."""
    all: frozenset[str] = frozenset()
    """These, and those of this partition that were put over another one."""
    lost: Sequence[Gap] = ()
    """The offsets that those of this partition have cost."""
    end: int = 0
    """If the last log is one of these: the offset up to which its indexes say that it went."""


def other_logs(segments: Sequence[Segment], files: Files, judge: SegmentJudge) -> OtherLogs:
    """Return the logs that are not those of their indexes.

    If two logs have exchanged their names, the index of each lies beside the other log. `verify`
    takes a log for one of the partition where it says that only the offsets before it are lost.
    """
    paths, put_over, lost, end = set(), set(), [], 0
    for one in segments:
        until, path = judge.foreign_end(one, files), one.path(".log")
        if until is None:
            continue
        is_own = until == log_order.first_offset_of(path, files.open)
        indexed = [each for each in segments if _is_of_index(path, each, files)]
        if not is_own and not indexed:
            paths.add(path)
        is_end = not is_own and one.next_base_offset is None
        end = until if is_end else end
        if not is_own and all(".log" in each.suffixes for each in indexed):
            continue  # it is a copy, or of another topic
        put_over.add(path)
        if not is_end:
            lost.append(Gap(path, LogGap.MISSING.value, 0, 0, one.base_offset, until - 1))
    return OtherLogs(frozenset(paths), frozenset(paths | put_over), lost, end)


def _is_of_index(log: str, segment: Segment, files: Files) -> bool:
    """Return whether entries of a segment's offset index lead to the batches of a log.

    All that are asked do, and they are two at least. Raises: OSError.
    """
    if ".index" not in segment.suffixes:
        return False
    entries = entries_in(segment.path(".index"), segment.base_offset, files)
    right = 0
    with closing(ReadableParts(files.open(log))) as file:
        for one in asked_entries(file, entries):
            if not one.is_right:
                return False
            right += 1
    return right > 1


def doubts_of_indexes(segments: Iterable[Segment], files: Files) -> Iterator[str]:
    """Yield in words which offsets may be lost where a log and its index contradict each other.

    That is where a segment has a name below its own, or its log may be another partition's.

    Entries are relative to the base offset of the name: under a lower name all of them are for
    offsets that are lower by the same number. A gap of compaction leaves them right. Raises:
    OSError.
    """
    for one in segments:
        if {".log", ".index"} <= one.suffixes and (apart := _apart(one, files)) > 0:
            base = one.base_offset
            yield (
                f"{one.path('.log')}: its index was made under the name {base + apart}: the name"
                f" {base} is that of another segment, and no log here has the offsets {base} to"
                f" {base + apart - 1}. They are lost, unless they were removed or compacted:"
                " compare with another replica"
            )
        elif {".log", ".index"} <= one.suffixes and (first := _unled_from(one, files)) is not None:
            base = one.base_offset
            yield (
                f"{one.path('.log')}: no entry of its indexes is right, and its first batch has"
                f" offset {first}, not {base}: it may be the log of another partition. Then what"
                f" the indexes were made of is lost, an unknown number of offsets from {base} on:"
                " compare with another replica"
            )


def _apart(segment: Segment, files: Files) -> int:
    """Return by how much the entries that are asked, two at least, are for too low offsets; else 0.

    They lie below their batches, so that none has the first offset of its batch.
    """
    entries = entries_in(segment.path(".index"), segment.base_offset, files)
    found: list[int] = []
    with closing(ReadableParts(files.open(segment.path(".log")))) as file:
        for offset, _, batch in asked_entries(file, entries):
            if batch is None or batch.first <= offset:
                return 0
            found.append(batch.last - offset)
    return found[0] if len(found) > 1 and len({*found}) == 1 else 0


def _unled_from(segment: Segment, files: Files) -> int | None:
    """Return a log's first offset, if that is above the log's name and no index entry fits the log.

    None for any other log, and for one whose entries all lie after its end.
    """
    log = NamedLog(segment.path(".log"), segment.base_offset)
    entries = entries_in(segment.path(".index"), log.base_offset, files)
    with closing(ReadableParts(files.open(log.path))) as file:
        is_inside = (entries.positions < file.size()).any()
        if not is_inside or any(one.is_right for one in asked_entries(file, entries)):
            return None
        table = read_batch_headers(file, 0, file.size()).table
    first = int(first_offsets(table[:1])[0]) if len(table) else -1
    is_misled = first > log.base_offset and shares_of_entries(log, table, files) == MISLED
    return first if is_misled else None
