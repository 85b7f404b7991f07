# SPDX-License-Identifier: Apache-2.0
"""Building the indexes of all segments, here or in several processes.

A segment whose producer snapshot is sound begins a chain: it needs nothing of the segments before.
The chains of a partition are built beside each other, the segments of one after each other.
"""

from collections.abc import Sequence
from functools import partial

from segproof.files import SharedFiles
from segproof.inventory.segments import Segment
from segproof.kernels.records import walk_batches
from segproof.processes import Meter, Sharing, processes_for
from segproof.rebuilding.judged_indexes import Judged
from segproof.rebuilding.partition_files import PartitionFiles
from segproof.rebuilding.segment_build import BuiltSegment, Wanted, build_segment, keep_segment
from segproof.rebuilding.transactions import begun_before, state_of_snapshot

USUAL_BATCH_BYTES = 4096
BATCHES_OF_A_UNIT = 8
"""So many headers are stepped over in one unit of a kernel's work."""


def build(
    partition: PartitionFiles,
    wanted: Wanted,
    judged: Judged | None,
    files: SharedFiles,
    meter: Meter,
    jobs: int,
) -> list[BuiltSegment]:
    """Build the indexes that are wrong beside their places; return all segments by base offset.

    None for `judged` builds all. Behind a broken log its chain ends.
    Raises: as `build_segment`.
    """
    chains = _chains(partition, judged, files)
    is_built = {segment.base_offset for chain in chains for segment in chain}
    kept = [one for one in partition.segments if one.base_offset not in is_built]
    total = sum(segment.log_bytes for chain in chains for segment in chain)
    # Now, not when so many were read: what is compiled here every process has from its birth.
    walk_batches.announce(total // (USUAL_BATCH_BYTES * BATCHES_OF_A_UNIT))
    built = [keep_segment(segment, wanted, files) for segment in kept]
    meter.add(sum(segment.log_bytes for segment in kept))
    sharing = Sharing(
        processes_for(jobs, len(chains), total), files, meter, "rebuild",
        lambda _: partition.directory,
    )  # fmt: skip
    work = partial(_build_chain, partition=partition, wanted=wanted, judged=judged)
    with sharing.results(work, chains) as made:
        built += [one for chain in made for one in chain]
    return sorted(built, key=lambda one: one.segment.base_offset)


def _chains(
    partition: PartitionFiles, judged: Judged | None, files: SharedFiles
) -> list[list[Segment]]:
    """Return the segments to build, those together that need the transactions of one another."""
    if judged is not None and not any(map(judged.is_to_build, partition.segments)):
        return []
    chains: list[list[Segment]] = []
    for segment in partition.segments:
        if not chains or state_of_snapshot(segment, files) is not None:
            chains.append([])
        chains[-1].append(segment)
    if judged is None:
        return chains
    needed = []
    for chain in chains:
        if any(map(judged.needs_transactions, chain)):
            needed.append(chain)
        else:
            needed += [[segment] for segment in chain if judged.is_to_build(segment)]
    return needed


def _build_chain(
    chain: Sequence[Segment],
    files: SharedFiles,
    meter: Meter,
    partition: PartitionFiles,
    wanted: Wanted,
    judged: Judged | None,
) -> list[BuiltSegment]:
    """Build the segments of one chain, here or in a worker."""
    producers = state_of_snapshot(chain[0], files)
    if producers is None:
        producers = begun_before(chain[0], partition.segments, files)
    built = []
    for segment in chain:
        defects = None if judged is None else judged.defects_of(segment)
        built.append(build_segment(segment, wanted, defects, producers, files, meter.add))
        if built[-1].finding is not None:
            break
    return built
