# SPDX-License-Identifier: Apache-2.0
"""The plan: files are cut into units of work, and units are packed into tasks.

A partition that a task can hold is one unit, and so is a place of RocketMQ. A larger partition is
cut into its segments, and a segment whose log is larger than two tasks into pieces, at entries of
its offset index. Tasks travel as compressed bytes: there may be hundreds of thousands of segments.
"""

import io
import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

from segproof.files import Files
from segproof.findings import Finding
from segproof.inventory.partitions import Partition
from segproof.inventory.segments import Segment
from segproof.reading.packed_segments import with_unpacked
from segproof.verifying.path_verification import KnownPlaces, known_places, walk
from segproof.verifying.split_logs import cuts_of, log_state
from segproof.verifying.summarising import Work
from segproof.wording.reporting import Wanted
from segproof_spark.arrow_files import files_of
from segproof_spark.tasks import dearest_first, packed

TASK_BYTES_MIN = 64 << 20
TASK_BYTES_MAX = 1 << 30
TASKS_A_CORE = 8
"""So many tasks for each core even out what was not estimated well."""
SEGMENT_BYTES = 1 << 20
"""A segment takes as long as reading so many bytes more than it has."""
KNOWN_FINDINGS = 1000
"""Findings of names and directories that one unit takes."""
NAMES = [one.name for one in fields(Segment)]
_values_of, _number_of_seen = attrgetter(*NAMES), NAMES.index("seen")


@dataclass(frozen=True, slots=True)
class Known:
    """Findings of names and directories, which are known already."""

    place: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class WholeUnit:
    """A partition, or a place of RocketMQ, that is checked as a whole."""

    place: str
    """The path or URL that was given, at or below which it lies."""
    work: Work


@dataclass(frozen=True, slots=True)
class SegmentUnit:
    """A segment of a partition that is joined afterwards."""

    place: str
    partition: int
    """Its number among those that are joined."""
    number: int
    """Which of its segments."""
    segment: Segment


@dataclass(frozen=True, slots=True)
class PieceUnit:
    """Bytes [start, end) of a log that is checked as a whole afterwards."""

    place: str
    partition: int
    number: int
    segment: Segment
    start: int
    end: int


Unit = Known | WholeUnit | SegmentUnit | PieceUnit


@dataclass(slots=True)
class Plan:
    """All tasks; what they hold is read by `units_of` and `partition_of`."""

    tasks: list[bytes] = field(default_factory=list)
    partitions: list[bytes] = field(default_factory=list)
    """The partitions whose segments are joined afterwards, each with its place."""
    logs: int = 0
    """How many logs are cut into pieces."""
    bytes_to_read: int = 0


def make_plan(
    places: Sequence[str],
    wanted: Wanted,
    cores: int,
    task_bytes: int | None = None,
    *,
    is_cut: bool = True,
) -> Plan:
    """Return the tasks for all that lies at or below some paths and URLs.

    `task_bytes` is about what a task reads; by default it follows from how much there is. Unless
    `is_cut`, a partition is one unit, however large.
    Raises: OSError where one of the places can't be read.
    """
    works: list[tuple[str, Work]] = []
    units: list[tuple[int, Unit]] = []
    beside = KnownPlaces()
    for files, path in map(open_place, places if len(places) > 1 else ()):
        beside += known_places(path, files)
    for place in places:
        files, path = open_place(place)
        findings: list[Finding] = []
        walked = walk(path, wanted, files, findings, beside)
        works += ((place, _slim(work)) for work in walked)
        for start in range(0, len(findings), KNOWN_FINDINGS):
            known = Known(place, tuple(findings[start : start + KNOWN_FINDINGS]))
            units.append((SEGMENT_BYTES, known))
    plan = Plan(bytes_to_read=sum(work.size_bytes for _, work in works))
    if task_bytes is None:
        total = sum(_cost(work) for _, work in works)
        task_bytes = total // (TASKS_A_CORE * cores)
        task_bytes = max(TASK_BYTES_MIN, min(task_bytes, TASK_BYTES_MAX))
    for place, work in works:
        if is_cut:
            units += _units_of(place, work, task_bytes, plan)
        else:
            units.append((_cost(work), WholeUnit(place, work)))
    tasks = ((cost, _as_bytes(taken)) for cost, taken in packed(units, task_bytes))
    plan.tasks = dearest_first(tasks)
    return plan


def _slim(work: Work) -> Work:
    """Return it without what its files were when they were listed: each task looks again."""
    if not isinstance(work, Partition):
        return work
    return replace(work, segments=tuple(Segment(*_fields_of(each)) for each in work.segments))


def _fields_of(segment: Segment) -> list[Any]:
    """Return the fields of a segment in order, but what its files were when they were listed."""
    values = list(_values_of(segment))
    values[_number_of_seen] = ()
    return values


def _cost(work: Work) -> int:
    segments = len(work.segments) if isinstance(work, Partition) else 1
    return work.size_bytes + SEGMENT_BYTES * segments


def _units_of(place: str, work: Work, task_bytes: int, plan: Plan) -> Iterator[tuple[int, Unit]]:
    """Yield the units of a partition or place, each with its cost; note in the plan what is cut."""
    cost = _cost(work)
    if not isinstance(work, Partition) or cost <= task_bytes:
        yield cost, WholeUnit(place, work)
        return
    files, _ = open_place(place)
    partition = len(plan.partitions)
    pieces = [_pieces_of(segment, task_bytes, files) for segment in work.segments]
    if len(pieces) == 1 and not pieces[0]:
        yield cost, WholeUnit(place, work)
        return
    plan.partitions.append(_as_bytes((place, work)))
    for number, (segment, cut) in enumerate(zip(work.segments, pieces, strict=True)):
        if not cut:
            unit = SegmentUnit(place, partition, number, segment)
            yield segment.size_bytes + SEGMENT_BYTES, unit
            continue
        plan.logs += 1
        for start, end in cut:
            yield end - start, PieceUnit(place, partition, number, segment, start, end)


def _pieces_of(segment: Segment, task_bytes: int, files: Files) -> list[tuple[int, int]]:
    """Return [start, end) of the pieces of a log; none where it is not cut."""
    if segment.size_bytes <= 2 * task_bytes or ".log" not in segment.suffixes:
        return []
    state = log_state(segment, files)
    if state is None or state.size_bytes <= 2 * task_bytes:
        return []
    cuts = cuts_of(segment, state.size_bytes, task_bytes, files)
    if not cuts:
        return []
    return list(zip([0, *cuts], [*cuts, state.size_bytes], strict=True))


def _as_bytes(described: object) -> bytes:
    """Return it pickled, segments as their fields: Python takes long to ask each for its state."""
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {Segment: lambda segment: (Segment, tuple(_fields_of(segment)))}
    pickler.dump(described)
    return zlib.compress(stream.getvalue(), 1)


def units_of(task: bytes) -> list[Unit]:
    """Return the units of a task."""
    units: list[Unit] = pickle.loads(zlib.decompress(task))
    return units


@lru_cache(maxsize=2)
def partition_of(described: bytes) -> tuple[str, Partition]:
    """Return the place of one of `Plan.partitions`, and the partition."""
    place, partition = pickle.loads(zlib.decompress(described))
    return place, partition


@lru_cache(maxsize=4)
def open_place(place: str) -> tuple[Files, str]:
    """Return the file system of a place and the path in it; opened once in a process."""
    files, path = files_of(place)
    return with_unpacked(files), path
