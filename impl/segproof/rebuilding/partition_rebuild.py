# SPDX-License-Identifier: Apache-2.0
"""Rebuilding a partition: into a new directory, or in place.

Every new index is built beside its place, made durable, and renamed over it when all of them are.
So each name has its old file whole or its new one whole, whatever happens, and a second run
completes what the first one left. What a broker makes of each moment:

- built beside, not renamed: it loads the old files, and removes those that end with `.deleted`;
- some renamed: each index is whole and of the same log, the old ones as good as they were;
- all renamed: it loads the new ones.

Upstream: Kafka 4.3.1: LogLoader.removeTempFilesAndCollectSwapFiles, LogSegment.recover.
Laws: SEG-20 to SEG-30, LOAD-1, PROD-13.
"""

from dataclasses import dataclass

from segproof.files import Files, SharedFiles
from segproof.findings import Finding
from segproof.processes import Meter
from segproof.rebuilding.intervals import DEFAULT_INTERVAL_BYTES, inferred_interval
from segproof.rebuilding.judged_indexes import Judges, judge
from segproof.rebuilding.partition_files import (
    PartitionFiles,
    check_unchanged,
    refusing_what_vanishes,
)
from segproof.rebuilding.partition_targets import (
    InPlace,
    NewDirectory,
    Nowhere,
    Place,
    snapshots_behind,
)
from segproof.rebuilding.segment_build import IntervalSource, Options, RebuiltFile, Wanted
from segproof.rebuilding.segment_chains import build

__all__ = ["Options", "Rebuilt", "RebuiltFile"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What was done."""

    files: tuple[RebuiltFile, ...]
    """Every index file, by segment; none where there are findings."""
    findings: tuple[Finding, ...]
    """Why nothing was written, if there is something."""
    left_out: tuple[str, ...]
    """Files of the old directory that are not in the new one, each with the reason."""
    cut_bytes: int = 0
    """Bytes behind the last valid batch that the new directory does not have."""


def rebuild_partition(
    partition: PartitionFiles,
    out: str | None,
    options: Options,
    judges: Judges,
    files: SharedFiles,
    meter: Meter,
    jobs: int,
    *,
    is_locked: bool = False,
) -> Rebuilt:
    """Rebuild what was read of a partition, with options that go together; see `segproof.rebuild`.

    `is_locked`: the caller holds the lock of the data directory.
    """
    source = partition.directory
    findings = partition.findings or (partition.blocked if out is None else ())
    if findings:
        return Rebuilt((), findings, partition.left_out)
    with refusing_what_vanishes(source):
        interval = _interval(options.index_interval_bytes, partition, files)
    wanted = Wanted(options, source if out is None else out, *interval, judges.verify)
    place: Place = InPlace(partition, files, is_locked=is_locked, backup=options.backup)
    if options.dry_run:
        place = Nowhere()
    elif out is not None:
        place = NewDirectory(partition, out, files, copies=options.copy)
    with refusing_what_vanishes(source), place:
        judged = judge(partition, interval[0], judges.check_closed, files, meter, jobs)
        if judged.hidden:
            return Rebuilt((), judged.hidden, partition.left_out)
        wrong = None if options.is_all else judged
        built = build(partition, wanted, wrong, files, meter, jobs)
        check_unchanged(partition, files)
        findings = tuple(one.finding for one in built if one.finding is not None)
        findings = findings or judged.hidden_ends(is_tail_cut=options.cut_tail)
        if findings:
            return Rebuilt((), findings, partition.left_out)
        place.complete(built)
    cut = sum(one.segment.log_bytes - one.valid_bytes for one in built)
    behind = (f"{name}: it is behind the cut" for name in snapshots_behind(partition, built))
    made = tuple(index for one in built for index in one.indexes)
    return Rebuilt(made, (), (*partition.left_out, *behind), cut)


def _interval(
    given: int | None, partition: PartitionFiles, files: Files
) -> tuple[int, IntervalSource]:
    """Return the interval for segments whose old index does not tell one, and who said it."""
    if given is not None:
        return given, "given"
    found = inferred_interval(partition, files)
    return (DEFAULT_INTERVAL_BYTES, "default") if found is None else (found, "other segments")
