# SPDX-License-Identifier: Apache-2.0
"""What a crash left on its way into or out of a partition, and what Kafka's next start makes of it.

The loader first removes `.deleted` and `.cleaned` files. A `.swap` file at or above the lowest
`.cleaned` offset belongs to a change that was not finished, and is removed too; every other one
takes the place of all segments that begin within its own offsets.

Upstream: Kafka 4.3.1: LogLoader.removeTempFilesAndCollectSwapFiles, LocalLog.replaceSegments.
Laws: LOAD-1, DISK-41, DISK-42; those of swapped_logs.
"""

import posixpath
from collections.abc import Mapping

from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import reads, writes
from segproof.reading.file_names import SEGMENT_SUFFIXES, FileName, NameKind
from segproof.verifying.reporting import Reporter
from segproof.verifying.rules import declare
from segproof.verifying.swapped_logs import (
    end_of,
    is_kept,
    report_damage,
    report_only_copies,
    swap_logs,
)

declare("partition-log", Severity.NOTE,
    reads("nothing: see what the message says of the next start"), "DISK-41")  # fmt: skip
COPY_AWAY = writes("copy this file away before a broker starts here")
declare("partition-log", Severity.WARNING, COPY_AWAY, "DISK-42")


def report_pending(
    directory: str, kinds: Mapping[str, FileName], files: Files, reporter: Reporter
) -> None:
    """Report the pending and temporary files of a partition."""
    pending = [name for name, known in kinds.items() if known.kind is NameKind.PENDING]
    logs = sorted(
        known.base_offset
        for known in kinds.values()
        if known.kind is NameKind.SEGMENT and known.suffix == ".log"
    )
    cleaned = [kinds[name].base_offset for name in pending if name.endswith(".cleaned")]
    only_copies = _report_swaps(directory, kinds, logs, files, reporter)
    for name in pending:
        path = posixpath.join(directory, name)
        known = kinds[name]
        if name.endswith(".deleted"):
            words = "it was removed from the log: Kafka deletes it, now or at its next start"
        elif name.endswith(".cleaned"):
            words = (
                "the cleaner, or the splitting of a segment, was writing it: Kafka deletes it at"
                " its next start, and the segments that it was made from stay"
            )
        elif cleaned and known.base_offset >= min(cleaned):
            words = (
                f"a change that was not finished, as the .cleaned file of offset {min(cleaned)}"
                " says: Kafka deletes it at its next start"
            )
            if name.endswith(".log.swap") and not is_kept(
                known.base_offset, logs, directory, files
            ):
                _report_loss(path, known.base_offset, directory, reporter)
        elif name.endswith(".log.swap"):
            words = _swap(path, known.base_offset, logs, files)
        elif known.suffix in SEGMENT_SUFFIXES:
            words = "Kafka puts it in its place at its next start, with the log of its name"
        else:
            words = f"at its next start Kafka renames it to {name.removesuffix('.swap')}"
        reporter.at(path).add("LOAD-1", words, hint=COPY_AWAY if path in only_copies else None)
    for name, known in kinds.items():
        if name.endswith(".tmp") and known.kind is NameKind.KNOWN:
            words = "it was being written: Kafka does not read it, and the next write replaces it"
            path = posixpath.join(directory, name)
            reporter.at(path, shown_by=directory).add("DISK-41", words)


def _report_swaps(
    directory: str,
    kinds: Mapping[str, FileName],
    logs: list[int],
    files: Files,
    reporter: Reporter,
) -> set[str]:
    """Report damaged `.swap` logs, and removed logs that may be the only copy; return the paths."""
    swaps = swap_logs(kinds)
    damaged = {
        base
        for base, name in swaps.items()
        if report_damage(reporter.at(posixpath.join(directory, name)), base, logs, files)
    }
    deleted = {
        known.base_offset: reporter.at(posixpath.join(directory, name), shown_by=directory)
        for name, known in kinds.items()
        if known.kind is NameKind.PENDING and name.endswith(".log.deleted")
    }
    copies = report_only_copies(deleted, logs, damaged, list(swaps))
    return copies | {posixpath.join(directory, swaps[base]) for base in damaged}


def _report_loss(path: str, base_offset: int, directory: str, reporter: Reporter) -> None:
    reporter.at(path, shown_by=directory).add(
        "DISK-42",
        f"Kafka deletes this file at its next start, and no log holds offset {base_offset}:"
        " its records are in no other place",
        expected=f"a log with offset {base_offset}",
    )


def _swap(path: str, base_offset: int, logs: list[int], files: Files) -> str:
    """Return what becomes of a swap log."""
    end = end_of(path, base_offset, files)
    if end is None:
        return "Kafka puts it in its place at its next start"
    replaced = [base for base in logs if base_offset <= base < end]
    whom = f"{len(replaced)} segments" if len(replaced) != 1 else "one segment"
    return (
        f"at its next start Kafka puts it in the place of the segments with base offsets from"
        f" {base_offset} to {max(end - 1, base_offset)}, here {whom}"
    )


def words_of_directory(state: str) -> str:
    """Return what a partition's directory of that state is, in words."""
    return {
        "delete": "the broker is about to remove this partition: it is deleted for good, now or"
        " behind the next start",
        "future": "a copy of a partition that is being moved here from another log directory: the"
        " broker goes on with it, and gives it its plain name when it has caught up",
        "stray": "the cluster has not assigned this partition to the broker, which has set it aside"
        " and never deletes it by itself",
    }[state]
