# SPDX-License-Identifier: Apache-2.0
"""A store, or a file of a commit log, that two paths of one call lead to, and copies of a log.

A link shows one store twice: it is no backup. Where two stores share the file that their brokers
append to, each destroys what the other one wrote. A copy of a log is a backup or a replica: what
counts is which one has more, and whether one has what the other one lost.

Laws: RMQDISK-58.
"""

import os
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from segproof.counts import plural, verb
from segproof.files import Files, status_of
from segproof.findings import Severity
from segproof.hints import Hint, reads
from segproof.reading.log_differences import (
    LogDifferences,
    are_of_one_log,
    differences,
    shared_files,
)
from segproof.reading.log_names import with_right_names
from segproof.reading.log_rows import begins, log_folder
from segproof.reading.store_layouts import unread_layout
from segproof.reading.store_paths import Place, PlaceKind, find_places
from segproof.rocketmq.commit_log import (
    COMMIT_LOG,
    CommitLog,
    LogFile,
    inferred_size,
    named_offset,
)
from segproof.verifying.log_directories import add_pair
from segproof.verifying.reporting import Reporter
from segproof.verifying.rules import declare

STORE_TWICE = "RMQDISK-58"
COPIES = reads(
    "nothing, if one is a backup, or the store of a replica; else compare both with a replica, and"
    " keep both as they are until it is known which one the broker goes on with"
)
declare("index-service", Severity.NOTE, COPIES, STORE_TWICE)
ONE_BY_LINK = reads(
    "nothing, if both paths are meant so: they lead to the same bytes on the disk, and this call"
    " reads no others"
)
SHARED = reads(
    "compare both with `ls -li`: files of one number are one file. Nothing, if no broker runs with"
    " the other one, and only files that no broker writes to are shared; this is no backup against"
    " a damaged disk"
)
SHARED_END = reads(
    "compare both with `ls -li`: files of one number are one file. Start at most one broker with"
    " them, and count on no backup here: what one writes is in both. A backup has bytes of its own"
)
OTHER_HAS_ALL = reads(
    "nothing, if this is an older backup; else the other one has each sound message of this one,"
    " and `segproof verify` of it says whether it is sound. Keep both as they are until the broker"
    " serves these messages"
)
LACKING = reads(
    "keep both as they are: neither replaces the other one. `segproof dump` of both shows the"
    " messages; a person decides which store, or which replica, the broker goes on with"
)
RIVALS_MAX = 4
"""A log is compared with at most this many of its copies."""


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A store, a folder of index files or a single file of RocketMQ, at a path of a call."""

    path: str
    kind: PlaceKind
    identity: object
    """What tells it from others, by whatever path it is met."""


class _Told(NamedTuple):
    """What is to be said of two places."""

    severity: Severity
    words: str
    hint: Hint
    other: StorePlace


def store_places(path: str, files: Files) -> list[StorePlace]:
    """Return what lies at or below a path of RocketMQ's. What can't be read has none."""
    try:
        return as_store_places(find_places(path, files), files)
    except OSError:
        return []


def as_store_places(places: Iterable[Place], files: Files) -> list[StorePlace]:
    """Return places with their identities."""
    return [StorePlace(one.path, one.kind, _identity(one.path, files)) for one in places]


def _identity(path: str, files: Files) -> object:
    status = status_of(files, path)
    return status.identity if status is not None and status.identity[1] > 0 else path


class _Logs:
    """The logs of the places of one path and of others, each listed once."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: dict[str, CommitLog | None] = {}
        self._heads: dict[LogFile, bytes] = {}

    def of(self, one: StorePlace) -> CommitLog | None:
        """Return the log of a place; None if it has none that is read. Raises: OSError."""
        if one.path not in self._known:
            self._known[one.path] = _log_of(one, self._files)
        return self._known[one.path]

    def are_of_one(self, one: CommitLog, other: CommitLog) -> bool:
        """Return whether two logs have a message in common. Raises: OSError."""
        return are_of_one_log(one, other, self._files, self._heads)


def report_twice(
    own: Sequence[StorePlace], others: Iterable[StorePlace], files: Files, reporter: Reporter
) -> None:
    """Report each place of a path that is another one too, or whose log is a copy."""
    every = {_plain(one): one for one in (*others, *own)}
    logs = _Logs(files)
    for one in own:
        rivals = [two for place, two in sorted(every.items()) if place != _plain(one)]
        told = _twice(one, rivals, logs, files)
        if told is not None:
            report = reporter.at(one.path)
            found = report.finding(
                STORE_TWICE, told.words, actual=told.other.path, severity=told.severity,
                hint=told.hint,
            )  # fmt: skip
            add_pair(found, one.path, told.other.path, report)


def _plain(one: StorePlace) -> str:
    return os.path.abspath(one.path)


def _twice(
    one: StorePlace, rivals: Sequence[StorePlace], logs: _Logs, files: Files
) -> _Told | None:
    """Return what is to be said of a place and one other; None if nothing is."""
    for two in rivals:
        if two.identity == one.identity:
            what = "store" if one.kind is PlaceKind.STORE else one.kind.value
            by = "a link or a mount" if one.kind is PlaceKind.STORE else "a link or a hard link"
            words = f"it is {two.path} once more, by {by}: one {what} is verified under"
            return _Told(Severity.NOTE, f"{words} both names, and counts twice", ONE_BY_LINK, two)
    if one.kind not in (PlaceKind.STORE, PlaceKind.LOG_FILE):
        return None
    try:
        told = list(_of_logs(one, rivals, logs, files))
    except OSError:
        return None  # the checks of the log report what can't be read
    order = list(Severity)
    return min(told, key=lambda each: order.index(each.severity), default=None)


def _of_logs(
    one: StorePlace, rivals: Sequence[StorePlace], logs: _Logs, files: Files
) -> Iterator[_Told]:
    """Yield what is to be said of the first copies of a log. Raises: OSError."""
    rivals = [two for two in rivals if _may_have_same(one, two)]
    mine, count = logs.of(one) if rivals else None, 0
    for two in rivals if mine is not None else ():
        its = logs.of(two)
        if mine is None or its is None:
            continue
        shared = shared_files(mine, its, files)
        if not shared and not logs.are_of_one(mine, its):
            continue
        files_alone = {one.kind, two.kind} - {PlaceKind.STORE}
        starts = {each.start for each in min(mine, its, key=_files_of).log_files}
        found = differences(mine, its, files, starts if files_alone else None)
        yield _told(one, two, mine, its, shared, found, files)
        count += 1
        if count >= RIVALS_MAX:
            return


def _files_of(log: CommitLog) -> int:
    return len(log.log_files)


def _may_have_same(one: StorePlace, two: StorePlace) -> bool:
    """Return whether two places may have messages of one log, and one is no file of the other."""
    paths = _plain(one), _plain(two)
    if two.kind is PlaceKind.LOG_FILE is one.kind:
        return posixpath.basename(paths[0]) == posixpath.basename(paths[1])
    is_inside = any(path.startswith(f"{above}/") for path in paths for above in paths)
    return two.kind in (PlaceKind.STORE, PlaceKind.LOG_FILE) and not is_inside


def _log_of(one: StorePlace, files: Files) -> CommitLog | None:
    """Return the commit log of a store, or of a single file; None if it has none that is read."""
    if one.kind is PlaceKind.LOG_FILE:
        start, status = named_offset(posixpath.basename(one.path)), status_of(files, one.path)
        if start is None or status is None:
            return None
        alone = (LogFile(start, one.path, status.size_bytes),)
        return CommitLog(posixpath.dirname(one.path), inferred_size(alone), alone, files)
    folder = log_folder(posixpath.join(one.path, COMMIT_LOG), files)
    layout = unread_layout(one.path, files) if folder is not None else None
    if folder is None or (layout is not None and not layout.is_beside):
        return None
    size = inferred_size(folder.log_files)
    cut = tuple(each._replace(size_bytes=min(each.size_bytes, size)) for each in folder.log_files)
    placed, _ = with_right_names(CommitLog(one.path, size, cut, files), files)
    return placed


def _told(
    one: StorePlace, two: StorePlace, mine: CommitLog, its: CommitLog,
    shared: Sequence[LogFile], found: LogDifferences, files: Files,
) -> _Told:  # fmt: skip
    """Return what is to be said of two logs: one is a copy of the other, or both are one."""
    is_file = one.kind is PlaceKind.LOG_FILE
    severity, hint = Severity.NOTE, COPIES
    if len(shared) == len(mine.log_files):
        words = f"this file is a file of {two.path} too" if is_file else (
            f"each file of its log is a file of the log of {two.path} too"
        )  # fmt: skip
    elif shared:
        count = f"{len(shared)} of {plural(len(mine.log_files), 'file')} of its log"
        words = f"{count} {verb(len(shared), 'is', 'are')} in the log of {two.path} too"
    elif is_file:
        words = f"this file is of the same log as {two.path}, as a copy of it has it"
    else:
        words = f"its log is the one of {two.path} too, as a copy has it"
    if shared:
        words += ", by a link or a hard link: one copy on the disk"
        hint = SHARED
        if not {each.path for each in shared}.isdisjoint(_written(mine, files)):
            severity, hint = Severity.WARNING, SHARED_END
            words += ", and the file to which a broker appends is among them"
    words += f"; {_words_of(found)}"
    if found.clashes or found.lacking_here:
        severity = Severity.WARNING
        if not shared:
            hint = LACKING if found.only_here else OTHER_HAS_ALL
    return _Told(severity, words, hint, two)


def _written(log: CommitLog, files: Files) -> list[str]:
    """Return the file to which a broker appends: the last one with a message, and later ones."""
    found: list[str] = []
    for one in reversed(log.log_files):
        found.append(one.path)
        if begins(one, files):
            break
    return found


def _words_of(found: LogDifferences) -> str:
    """Return in words which of two logs has more."""
    here = plural(found.only_here, "sound message")
    there = plural(found.only_there, "sound message")
    if not found.only_here and not found.only_there:
        return "both have the same sound messages"
    if found.clashes and not found.agrees_after:
        return (
            f"from offset {found.first_clash} on they have different messages, as if two brokers"
            f" had gone on with them: {here} only here, {there} only there"
        )
    if found.clashes:
        words = f"at {plural(found.clashes, 'offset')} they have different messages, first at"
        words += f" {found.first_clash}: one of two is damaged where no checksum covers it"
        if (found.only_here, found.only_there) == (found.clashes, found.clashes):
            return words
        return f"{words}; {here} only here, {there} only there"
    lacking_here = f", {found.lacking_here} of them missing or damaged within this log"
    lacking_there = f", {found.lacking_there} of them missing or damaged within that log"
    lacking_here *= found.lacking_here > 0
    lacking_there *= found.lacking_there > 0
    if not found.only_there:
        return f"this one has more: {here} that the other one lacks{lacking_there}"
    if not found.only_here:
        return f"the other one has more: {there} that this one lacks{lacking_here}"
    return (
        f"each has what the other one lacks: {here} only here{lacking_there}; {there} only there"
        f"{lacking_here}"
    )
