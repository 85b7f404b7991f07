# SPDX-License-Identifier: Apache-2.0
"""A partition as one whose broker has stopped, for a rebuild: its zeros at the end are wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from segproof.files import SharedFiles
from segproof.findings import Finding
from segproof.inventory.partitions import Partition
from segproof.inventory.segment_listing import sized
from segproof.inventory.segments import Segment
from segproof.processes import Meter, Sharing, processes_for
from segproof.verifying.partition_verification import PartitionCheck
from segproof.verifying.segment_carry import LogCarry
from segproof.verifying.segment_verification import SteadyCheck
from segproof.wording.reporting import Wanted
from segproof.wording.segment_files import ClosedSegment


def check_closed(
    partition: Partition, files: SharedFiles, meter: Meter, jobs: int
) -> tuple[list[ClosedSegment], list[Finding]]:
    """Return what `verify` finds in each segment of a partition, and in all of them together.

    Each segment is taken for closed. Raises: SegproofError where a process was ended from outside.
    """
    segments = [replace(sized(one, files), is_stopped=True) for one in partition.segments]
    whole = PartitionCheck(replace(partition, segments=tuple(segments)), Wanted(), files)
    found = []
    for segment, findings, carry in _each(segments, files, meter, jobs):
        whole.add(segment, carry)
        found.append(ClosedSegment(segment, findings, carry.indexed_end))
    return found, whole.finish()


def _each(
    segments: Sequence[Segment], files: SharedFiles, meter: Meter, jobs: int
) -> Iterator[tuple[Segment, list[Finding], LogCarry]]:
    """Yield each segment with its findings and what it hands on, in order."""
    sharing = Sharing(
        processes_for(jobs, len(segments), sum(one.size_bytes for one in segments)),
        files, meter, "rebuild", lambda segment: segment.directory,
    )  # fmt: skip
    with sharing.results(_check, segments) as checked:
        for segment, (findings, carry) in zip(segments, checked, strict=True):
            yield segment, findings, carry


def _check(segment: Segment, files: SharedFiles, meter: Meter) -> tuple[list[Finding], LogCarry]:
    """Check one segment, here or in a worker."""
    check = SteadyCheck(segment, Wanted(), files)
    for done in check.run():
        meter.add(done)
    return check.findings, check.carry
