# SPDX-License-Identifier: Apache-2.0
"""Logs that wait as `.swap` for their place: they hold data, which Kafka's next start uses.

The cleaner, or the splitting of a segment, renames a finished log to `.swap`, then the old logs to
`.deleted`, the first one first, then the `.swap` log to its own name. The loader completes this: it
deletes every other file of the offsets that the `.swap` logs hold, and renames them. So as long as
the first old log is there, the old logs hold all of it. Afterwards only the `.swap` logs do. What
that deletion takes away without a replacement is found by `replaced_logs`.

Upstream: Kafka 4.3.1: LocalLog.replaceSegments, LogLoader.load.
Laws: LOAD-2, DISK-58, DISK-59.
Not covered: indexes that wait as `.swap`.
"""

import posixpath
from collections.abc import Mapping
from contextlib import closing

import numpy as np

from segproof.errors import SegproofError
from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import writes
from segproof.kafka.batch_table import BatchScan
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import SEGMENT_SUFFIXES, FileName, NameKind
from segproof.verifying.reporting import PathReporter
from segproof.verifying.rules import declare

LOG_SWAP = ".log.swap"
declare("partition-log", Severity.ERROR,
    writes("copy the whole directory away before a broker starts here, and save it with `segproof"
    " salvage DIR --out DIR2`: the old logs are sound as far as verify reports nothing of them"),
    "DISK-58")  # fmt: skip
declare("partition-log", Severity.WARNING,
    writes("copy this file away before a broker starts here: its next start deletes it"),
    "DISK-59")  # fmt: skip


def swap_logs(kinds: Mapping[str, FileName]) -> dict[int, str]:
    """Return the logs that the next start completes, by base offset: their names.

    Those at or above the lowest `.cleaned` file belong to a change that was not finished.
    """
    pending = {name: known for name, known in kinds.items() if known.kind is NameKind.PENDING}
    cleaned = [known.base_offset for name, known in pending.items() if name.endswith(".cleaned")]
    return {
        known.base_offset: name
        for name, known in pending.items()
        if name.endswith(LOG_SWAP) and not (cleaned and known.base_offset >= min(cleaned))
    }


def as_completed(
    directory: str, kinds: Mapping[str, FileName], files: Files
) -> Mapping[str, FileName]:
    """Return the names of a partition, with `.swap` logs as segments where only they hold offsets.

    The segments that begin within them are left out. Where the first old log of a `.swap` log is
    there, it changes nothing. A log between two `.swap` logs stays: it alone holds its offsets.
    """
    logs = bases_of(kinds)
    swaps = {
        base: name
        for base, name in swap_logs(kinds).items()
        if not is_kept(base, logs, directory, files)
    }
    if not swaps:
        return kinds
    ends = {
        base: end_of(posixpath.join(directory, name), base, files) or base + 1
        for base, name in swaps.items()
    }
    kept = {
        name: known
        for name, known in kinds.items()
        if known.kind is not NameKind.SEGMENT
        or not any(base <= known.base_offset < end for base, end in ends.items())
    }
    return kept | {
        name: FileName(NameKind.SEGMENT, base, SEGMENT_SUFFIXES[0]) for base, name in swaps.items()
    }


def is_kept(offset: int, logs: list[int], directory: str, files: Files) -> bool:
    """Return whether a log of the partition reaches the offset. `logs` are base offsets, sorted."""
    below = [base for base in logs if base <= offset]
    if not below or below[-1] == offset:
        return bool(below)
    path = posixpath.join(directory, segment_file_name(below[-1], ".log"))
    end = end_of(path, below[-1], files)
    return end is None or end > offset


def end_of(path: str, base_offset: int, files: Files) -> int | None:
    """Return the offset after the last batch of a log, at least its base; None if unreadable."""
    end = base_offset + 1
    try:
        with closing(files.open(path)) as file:
            for table in BatchScan(file, 0, file.size(), deep=False).tables():
                end = max(end, int(table["last_offset"].max()) + 1)
    except (OSError, SegproofError):
        return None
    return end


def damage_in(path: str, files: Files) -> int | None:
    """Return the byte of the first damage in a log, None without any. Raises: OSError."""
    with closing(files.open(path)) as file:
        size = file.size()
        scan = BatchScan(file, 0, size, deep=False)
        for checked in scan:
            bad = np.flatnonzero(~checked.crc_valid)
            if len(bad):
                return int(checked.table["position"][bad[0]])
        return scan.end_position if scan.end_position < size else None


def report_damage(report: PathReporter, base: int, logs: list[int], files: Files) -> bool:
    """Report a `.swap` log that is damaged while the old logs are there; return if it is damaged.

    Where the old logs are gone it is checked as a segment, which tells more.
    """
    try:
        position = damage_in(report.path, files)
    except OSError as error:
        report.failed(error)
        return True
    if position is None:
        return False
    if is_kept(base, logs, posixpath.dirname(report.path), files):
        report.add(
            "DISK-58",
            f"this log is damaged at byte {position}, and at its next start Kafka puts it in the"
            " place of the old logs, which it deletes",
            position=position,
            expected="a sound log",
        )
    return True


def report_only_copies(
    deleted: Mapping[int, PathReporter], logs: list[int], damaged: set[int], swaps: list[int]
) -> set[str]:
    """Report removed logs whose offsets only a damaged `.swap` log holds; return their paths."""
    found = set[str]()
    for base, report in deleted.items():
        below = [one for one in sorted({*logs, *swaps}) if one <= base]
        if below and below[-1] in damaged and below[-1] not in logs:
            report.add(
                "DISK-59",
                "Kafka deletes this log at its next start, and the .swap log of offset"
                f" {below[-1]}, which took its place, is damaged: this may be the only copy of what"
                " is lost there",
            )
            found.add(report.path)
    return found


def bases_of(kinds: Mapping[str, FileName]) -> list[int]:
    """Return the base offsets of the logs, sorted."""
    return sorted(
        known.base_offset
        for known in kinds.values()
        if known.kind is NameKind.SEGMENT and known.suffix == ".log"
    )
