# SPDX-License-Identifier: Apache-2.0
"""Which segments a directory has, by the names in it; and again, once a segment has a defect."""

import posixpath
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from segproof.files import Files, status_of
from segproof.inventory.remote_segments import remote_segments
from segproof.inventory.segments import Segment
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import (
    CLEAN_SHUTDOWN_MARKER,
    METADATA_TOPIC,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    FileName,
    NameKind,
    partition_of,
    read_file_name,
)
from segproof.reading.index_origins import leads_to
from segproof.reading.live_writer import has_rested
from segproof.reading.log_order import first_offset_of, offsets_of
from segproof.reading.overlapping_logs import Overlap, overlapping_logs
from segproof.reading.packed_segments import with_unpacked
from segproof.reading.waiting_logs import LOG_SWAP, as_completed

SNAPSHOTS_MAX = 8
"""Snapshots inside one segment that are compared with it; a broker leaves one or two."""
ASKED_MAX = 4
"""Logs that are asked whether an index without a log leads to their batches."""
ALL_FILES = frozenset(SEGMENT_SUFFIXES)
_Listed = dict[tuple[int, str], Segment]
"""The segments of a directory by base offset and stem."""


def kinds_of(names: Iterable[str]) -> dict[str, FileName]:
    """Return what each name in a partition directory stands for."""
    return {name: read_file_name(name) for name in names}


def segments_of(
    directory: str, kinds: Mapping[str, FileName], files: Files, judged: frozenset[str]
) -> Iterator[Segment]:
    """Yield the segments of a directory in order; the offset of the next one has a log."""
    if judged == ALL_FILES:
        kinds = as_completed(directory, kinds, files)
    found: dict[int, set[str]] = {}
    swaps: set[int] = set()
    passed: set[int] = set()
    snapshots: list[int] = []
    for name, known in kinds.items():
        if known.kind is NameKind.SEGMENT:
            found.setdefault(known.base_offset, set()).add(known.suffix)
            if known.suffix == ".log" and _is_passed_by(posixpath.join(directory, name), files):
                passed.add(known.base_offset)
            if name.endswith(".swap"):
                swaps.add(known.base_offset)
        elif known.kind is NameKind.KNOWN and known.suffix == SNAPSHOT_SUFFIX:
            snapshots.append(known.base_offset)
    snapshots.sort()
    bases = sorted(found)
    with_log = [base for base in bases if ".log" in found[base] and base not in passed]
    strangers: Mapping[int, Overlap] = {}
    if judged == ALL_FILES and not swaps:
        strangers = overlapping_logs(directory, with_log, snapshots, files)
        snapshots = [one for one in snapshots if one not in strangers]
    borders = [base for base in with_log if base not in strangers]
    is_stopped = _is_stopped(directory, files)
    held = {}
    if judged == ALL_FILES and len(with_log) < len(bases):
        indexed = [base for base in bases if {".index", ".log"} & found[base] == {".index"}]
        held = _misnamed(
            directory, [base for base in with_log if base not in swaps], indexed, files
        )
    for base in bases:
        at = bisect_right(borders, base)
        is_followed = ".log" in found[base] and base not in strangers and at < len(borders)
        after = borders[at] if is_followed else None
        first = bisect_right(snapshots, base)
        behind = len(snapshots) if after is None else bisect_left(snapshots, after)
        inside = snapshots[first : min(behind, first + SNAPSHOTS_MAX)]
        yield Segment(
            directory,
            base,
            frozenset(found[base]),
            after,
            is_stopped,
            judged,
            snapshots=tuple(inside) if judged == ALL_FILES else (),
            is_swap=base in swaps,
            held_by="" if ".log" in found[base] else held.get(base, ""),
            is_passed_by=base in passed,
            overlap=strangers.get(base),
        )


def _is_passed_by(path: str, files: Files) -> bool:
    status = status_of(files, path)
    return status is not None and not status.is_regular


def waiting_segment(
    directory: str, name: str, known: FileName, names: Collection[str], files: Files
) -> list[Segment]:
    """Return the segment of one `.swap` file, if it is a log or an index whose log waits too."""
    log = segment_file_name(known.base_offset, LOG_SWAP)
    is_waiting = known.kind is NameKind.PENDING and name.endswith(".swap")
    if not is_waiting or known.suffix not in SEGMENT_SUFFIXES or log not in names:
        return []
    own = {
        segment_file_name(known.base_offset, f"{one}.swap"): FileName(
            NameKind.SEGMENT, known.base_offset, one
        )
        for one in {".log", known.suffix}
    }
    return list(segments_of(directory, own, files, frozenset((known.suffix,))))


def misnamed_log(
    directory: str, name: str, known: FileName, names: Iterable[str], files: Files
) -> list[Segment]:
    """Return the segment of one log that no broker reads, by its name; without one for others.

    Its base offset is the number in the name. Without a number it is the first offset of its sound
    batches.
    """
    base = known.base_offset
    if known.suffix != ".log" or name.endswith((".deleted", ".cleaned", ".swap")):
        return []
    if known.kind is NameKind.NO_OFFSET:
        try:
            base = (offsets_of(posixpath.join(directory, name), files) or (0, 0))[0]
        except OSError:
            return []  # what can't be opened is told by the finding of the name
    others = {one: of for one, of in kinds_of(names).items() if of.kind is NameKind.SEGMENT} | {
        name: FileName(NameKind.SEGMENT, base, ".log")
    }
    found = segments_of(directory, others, files, frozenset((".log",)))
    return [
        replace(one, suffixes=frozenset((".log",)), log_name=name)
        for one in found
        if one.base_offset == base
    ]


def _misnamed(
    directory: str, bases: Iterable[int], indexed: Iterable[int], files: Files
) -> dict[int, str]:
    """Return the names of the logs whose first offset is another than their names say, by it.

    A compacted log may begin after its name: then it is known by an index without a log, whose base
    offset is one of `indexed`. It is one of the next few logs that begin there or later, since a
    log has no offset below its base offset. Cost: the first batch of each log is read.
    """
    found = {}
    for base in bases:
        name = segment_file_name(base, ".log")
        first = first_offset_of(posixpath.join(directory, name), files.open)
        if first is not None and first != base:
            found[first] = name
    firsts = sorted(found)
    for base in indexed:
        at = len(firsts) if base in found else bisect_left(firsts, base)
        for first in firsts[at : at + ASKED_MAX]:
            if leads_to(posixpath.join(directory, found[first]), directory, base, files):
                found[base] = found[first]
                break
    return found


class Listings:
    """Segments as their directories show them now.

    A directory that has rested since it was listed for another segment is not listed once more. Its
    modification time tells: each new, renamed or removed name changes it. A directory without one,
    as where files lie behind URLs, is listed for each segment. The last listing is kept.
    """

    def __init__(self, files: Files) -> None:
        self._files = with_unpacked(files)
        self._key: tuple[object, ...] = ()
        self._kept: _Listed = {}

    def again(self, segment: Segment) -> Segment | None:
        """Return a segment as its directory shows it now, or None if it is gone."""
        directory, judged = segment.directory, segment.judged
        if segment.log_name or (segment.is_swap and judged != ALL_FILES):
            return sized(segment, self._files)  # a file that was given by itself
        status = status_of(self._files, directory)
        is_kept = status is not None and has_rested(status)
        key = (directory, status, bool(segment.stem), judged)
        if not is_kept or key != self._key:
            try:
                self._kept = _listed(directory, bool(segment.stem), judged, self._files)
            except OSError:
                return segment
            self._key = key if is_kept else ()
        again = self._kept.get((segment.base_offset, segment.stem))
        if again is None:
            return None
        # The marker lies in the directory above.
        is_stopped = not again.stem and _is_stopped(directory, self._files)
        return sized(replace(again, is_stopped=is_stopped), self._files)


def _listed(directory: str, is_remote: bool, judged: frozenset[str], files: Files) -> _Listed:
    """List a directory. Raises: OSError."""
    names = files.list_directory(directory)
    segments: Iterable[Segment] = (
        remote_segments(directory, names, judged)
        if is_remote
        else segments_of(directory, kinds_of(names), files, judged)
    )
    return {(one.base_offset, one.stem): one for one in segments}


def sized(segment: Segment, files: Files) -> Segment:
    """Return the segment with what its files are now."""
    seen = segment.look(files)
    return replace(segment, seen=seen, size_bytes=sum(max(0, each.size_bytes) for each in seen))


def parent_of(directory: str) -> str:
    """Return the directory above."""
    plain = posixpath.normpath(directory)
    if posixpath.basename(plain) in (".", ".."):
        return posixpath.normpath(posixpath.join(plain, ".."))
    return posixpath.dirname(plain) or "."


def _is_stopped(directory: str, files: Files) -> bool:
    """Return whether the data directory has the marker of a clean stop.

    It says nothing of the log of the metadata, which a broker closes after it, and which is
    recovered at each start (Kafka 4.3.1, KafkaRaftLog).
    """
    name = partition_of(directory)
    if name is not None and name.topic == METADATA_TOPIC:
        return False
    marker = posixpath.join(parent_of(directory), CLEAN_SHUTDOWN_MARKER)
    return status_of(files, marker) is not None
