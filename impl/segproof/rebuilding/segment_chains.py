# SPDX-License-Identifier: Apache-2.0
"""Building the indexes of all segments, here or in several processes.

A segment whose producer snapshot is sound begins a chain: it needs nothing of the segments before.
The chains of a partition are built beside each other, the segments of one after each other.
"""

from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool

from segproof.errors import SegproofError
from segproof.files import REAL_FILES, SharedFiles
from segproof.kernels.records import walk_batches
from segproof.processes import Meter, Progress, Workers, count_bytes
from segproof.rebuilding.partition_files import Partition, Segment
from segproof.rebuilding.segment_build import BuiltSegment, Wanted, build_segment
from segproof.rebuilding.transactions import begun_before, state_of_snapshot

USUAL_BATCH_BYTES = 4096
BATCHES_OF_A_UNIT = 8
"""So many headers are stepped over in one unit of a kernel's work."""


def build(
    partition: Partition,
    wanted: Wanted,
    files: SharedFiles,
    on_progress: Progress | None,
    jobs: int,
) -> list[BuiltSegment]:
    """Build the indexes of all segments beside their places; return them by base offset.

    Behind a broken log its chain ends. Raises: as `build_segment`.
    """
    chains: list[list[Segment]] = []
    for segment in partition.segments:
        if not chains or state_of_snapshot(segment, files) is not None:
            chains.append([])
        chains[-1].append(segment)
    total = sum(segment.status.size_bytes for segment in partition.segments)
    # Now, not when so many were read: what is compiled here every process has from its birth.
    walk_batches.announce(total // (USUAL_BATCH_BYTES * BATCHES_OF_A_UNIT))
    meter = Meter(on_progress, total)
    if jobs > 1 and len(chains) > 1 and files is REAL_FILES:
        return _in_processes(partition, chains, wanted, meter, min(jobs, len(chains)))
    built = []
    for chain in chains:
        built += _build_chain(chain, partition, wanted, files, meter.add)
    return built


def _build_chain(
    chain: Sequence[Segment],
    partition: Partition,
    wanted: Wanted,
    files: SharedFiles,
    on_bytes: Callable[[int], None],
) -> list[BuiltSegment]:
    producers = state_of_snapshot(chain[0], files)
    if producers is None:
        producers = begun_before(chain[0], partition.segments, files)
    built = []
    for segment in chain:
        built.append(build_segment(segment, wanted, producers, files, on_bytes))
        if built[-1].finding is not None:
            break
    return built


def _run_chain(chain: list[Segment], partition: Partition, wanted: Wanted) -> list[BuiltSegment]:
    """Build the segments of one chain in a worker."""
    return _build_chain(chain, partition, wanted, REAL_FILES, count_bytes)


def _in_processes(
    partition: Partition,
    chains: Sequence[list[Segment]],
    wanted: Wanted,
    meter: Meter,
    jobs: int,
) -> list[BuiltSegment]:
    try:
        with Workers(jobs, meter) as workers:
            futures = [workers.submit(_run_chain, chain, partition, wanted) for chain in chains]
            return [one for future in futures for one in workers.result(future)]
    except BrokenProcessPool as error:
        raise SegproofError(
            "a process of the rebuild was ended from outside, perhaps for want of memory",
            path=partition.directory,
            hint="rebuild with jobs=1",
        ) from error
