# SPDX-License-Identifier: Apache-2.0
"""What is recognised and not read: a finding names it, so that no verdict passes it off as sound.

`not_looked_into` reports one file or directory, a note. `report_layout` reports a whole layout that
segproof does not read: the only finding of its directory. `why_unread` and `why_unread_beside` know
the files of a partition and of a data directory; a check that reads
one of these files needs its reason removed here, and its name from `UNREAD_NAME` of the model.

Laws: DISK-3, DISK-45, DISK-46, RMQDISK-41.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping

from segproof.counts import plural
from segproof.files import Files, status_of
from segproof.findings import Severity
from segproof.hints import Hint, reads
from segproof.inventory.walk import DataDirectory, Layout
from segproof.reading.file_names import (
    BOOTSTRAP,
    BROKER_FILE,
    CLEAN_SHUTDOWN_MARKER,
    EPOCHS,
    METADATA,
    OFFSET_CHECKPOINTS,
    QUORUM_STATE,
    SNAPSHOT_SUFFIX,
    FileName,
    NameKind,
    is_known_in_data_directory,
    is_like_a_log,
)
from segproof.reading.unread_places import (
    REDPANDA_HINT,
)
from segproof.reading.waiting_logs import LOG_SWAP, as_completed
from segproof.verifying.metadata_snapshots import is_metadata_snapshot
from segproof.wording.loose_files import stray_words
from segproof.wording.reporting import PathReporter, Reporter
from segproof.wording.rules import declare

KAFKA, ROCKETMQ = "DISK-45", "RMQDISK-41"
"""The laws of a file or directory of each system that was not read."""
HINT = reads("check it by other means if its content matters: no verdict covers it")
PENDING_HINT = reads(
    "look at what LOAD-1, and DISK-42, DISK-59 or DISK-60, say of this file: whether it is needed,"
    " and how it is saved; no verdict covers it"
)
declare("partition-log", Severity.NOTE, HINT, KAFKA)
declare("index-service", Severity.NOTE, HINT, ROCKETMQ)

LAYOUTS: set[str] = set()
"""Laws whose finding names a layout that is not read: nothing at its path was judged."""
LEVELS_COUNTED, FILES_COUNTED = 64, 100_000
LOCK = ".lock"
"""The file that a broker locks in its data directory; it is empty."""
_REASONS = (
    (r"remote_log_snapshot", "releases before 3.6 kept the state of remote segments in it"),
    (r".*\.deleted", "Kafka deletes it, now or at its next start; until then it is there"),
    (r".*\.cleaned", "it was being written; Kafka deletes it at its next start"),
    (r".*\.swap", "Kafka puts it in its place at its next start, or deletes it"),
    (r".*\.tmp", "it was being written"),
    (r"\.lock", "a broker's lock file is empty, and this one is not"),
)
HINT_OF_STRAY = reads(
    "look into it with `segproof verify` and `segproof dump` of the file itself, and find out"
    " which partition it is of: its records may be missing there"
)


def files_below(path: str, files: Files) -> int | None:
    """Return how many files are in a directory, at any depth; None for a file.

    At most FILES_COUNTED are counted, LEVELS_COUNTED levels deep. What cannot be listed is one.
    Links are not followed further than once. Raises: never.
    """
    status = status_of(files, path)
    if status is None or not status.is_directory:
        return None
    return _count_files(path, files, {status.identity}, LEVELS_COUNTED, FILES_COUNTED)


def _count_files(path: str, files: Files, seen: set[object], levels: int, most: int) -> int:
    try:
        names = files.list_directory(path)
    except OSError:
        return 1
    count = 0
    for name in names:
        full = posixpath.join(path, name)
        status = status_of(files, full)
        if status is None or not status.is_directory or levels <= 1:
            count += 1
        elif status.identity not in seen:
            if status.identity[1] > 0:
                seen.add(status.identity)
            count += _count_files(full, files, seen, levels - 1, most - count)
        if count >= most:
            return most
    return count


def not_looked_into(
    report: PathReporter,
    reason: str,
    law: str = KAFKA,
    *,
    is_all: bool = False,
    files: Files | None = None,
    hint: Hint | None = None,
) -> None:
    """Report a file or directory that was recognised and not read, with the reason.

    With `files` the verdict counts the files of a directory, else it is one.

    `is_all`: it is all that was asked for. Then the finding is a warning, whatever laws are asked
    for, so that the path does not pass as sound.
    """
    words = f"it was not looked into: {reason}"
    count = None if files is None else files_below(report.path, files)
    if count is not None:
        least = "at least " if count >= FILES_COUNTED else ""
        words += f" ({least}{plural(count, 'file')})" if count else " (it has no file)"
    if is_all:
        one = report.finding(law, words, severity=Severity.WARNING, actual=count, hint=hint)
        report.reporter.insist(one)
    else:
        report.add(law, words, actual=count, hint=hint)


def declare_layout(structure: str, hint: Hint, law: str) -> None:
    """Declare the law of a layout that is recognised and not read; its verdict is "not checked"."""
    declare(structure, Severity.WARNING, hint, law)
    LAYOUTS.add(law)


declare_layout("partition-log",
    REDPANDA_HINT, "DISK-46")  # fmt: skip


def report_layouts(
    layouts: Iterable[Layout], files: Files, reporter: Reporter, *, is_all: bool
) -> None:
    """Report folders below a path that are databases of RocksDB, or of the layout of Redpanda.

    `is_all`: nothing else was found there.
    """
    for one in layouts:
        if one.places:
            report_layout(reporter.at(one.path), "DISK-46", one.words)
        else:
            not_looked_into(reporter.at(one.path), one.words, is_all=is_all, files=files)


def report_layout(report: PathReporter, law: str, words: str, hint: Hint | None = None) -> None:
    """Report a layout that is recognised and not read, whatever laws are asked for.

    It is the only finding of its directory or file.
    """
    report.reporter.insist(report.finding(law, words, hint=hint))


def why_unread(name: str, known: FileName) -> str | None:
    """Return why no check reads a file of a partition; None if one does, or for a stray name."""
    if known.kind is NameKind.PENDING:
        return None if name.endswith(LOG_SWAP) else _reason(name)
    is_read = known.suffix == SNAPSHOT_SUFFIX or name in (EPOCHS, METADATA, QUORUM_STATE)
    is_read = is_read or is_metadata_snapshot(name)
    return _reason(name) if known.kind is NameKind.KNOWN and not is_read else None


def why_unread_beside(directory: str, name: str, files: Files) -> str | None:
    """Return why no check reads a file that a broker keeps beside partitions; None if one does."""
    if not is_known_in_data_directory(name):
        return None
    if name == LOCK:
        status = status_of(files, posixpath.join(directory, name))
        return _reason(name) if status is not None and status.size_bytes else None
    is_read = name in (CLEAN_SHUTDOWN_MARKER, BROKER_FILE, BOOTSTRAP, *OFFSET_CHECKPOINTS)
    return None if is_read else _reason(name)


def report_unread(
    directory: str, kinds: Mapping[str, FileName], files: Files, reporter: Reporter
) -> None:
    """Report the files of a partition that no check reads."""
    completed = as_completed(directory, kinds, files)
    for name, known in kinds.items():
        if name in completed and completed[name].kind is NameKind.SEGMENT:
            continue
        reason = why_unread(name, known)
        if is_like_a_log(name, known):
            reason = "its name is like that of a log, and no broker reads it; it may hold records"
        if reason is not None:
            path = posixpath.join(directory, name)
            hint = PENDING_HINT if known.kind is NameKind.PENDING else None
            not_looked_into(reporter.at(path, shown_by=directory), reason, hint=hint)


def report_unread_beside(
    directory: str, names: list[str], files: Files, reporter: Reporter
) -> None:
    """Report the files of a data directory that no check reads."""
    for name in names:
        reason = why_unread_beside(directory, name, files)
        if reason is not None:
            path = posixpath.join(directory, name)
            not_looked_into(reporter.at(path, shown_by=directory), reason)


def _reason(name: str) -> str:
    """Return why a file of this name is not read."""
    found = (reason for pattern, reason in _REASONS if re.fullmatch(pattern, name, re.DOTALL))
    return next(found, "no check reads a file of this name")


def report_strays(item: DataDirectory, files: Files, reporter: Reporter) -> None:
    """Report the files of segments beside partitions.

    And the small files of a partition, where they lie beside its logs.
    """
    told = {full: (words, hint) for full, words, hint in stray_words(item, files)}
    for name in sorted(item.strays.names):
        full = posixpath.join(item.path, name)
        report = reporter.at(full, shown_by=item.path)
        if full in told:
            words, advice = told[full]
            report.add("DISK-3", words, severity=Severity.ERROR, hint=advice or HINT_OF_STRAY)
        not_looked_into(report, "it lies beside partitions; name it to look into it")
