# SPDX-License-Identifier: Apache-2.0
"""A store, or a file of a commit log, that two paths of one call lead to, and copies of a log.

A link shows one store twice: it is no backup. Where two stores share the file that their brokers
append to, each destroys what the other one wrote. A copy of a log is a backup or a replica: what
counts is which one has more, and whether one has what the other one lost.

Laws: RMQDISK-58.
"""

import os
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from segproof.counts import plural, verb
from segproof.files import Files, status_of
from segproof.findings import Severity
from segproof.hints import Hint, reads
from segproof.inventory.stores import find_places
from segproof.reading.log_differences import (
    NO_MESSAGE,
    LogDifferences,
    LogFileFacts,
    OnlyOne,
    differences,
)
from segproof.reading.log_in_order import with_right_names
from segproof.reading.log_rows import Surroundings, begins, log_folder
from segproof.reading.store_layouts import unread_layout
from segproof.reading.store_paths import Place, PlaceKind
from segproof.rocketmq.commit_log import (
    COMMIT_LOG,
    CommitLog,
    LogFile,
    inferred_size,
    named_offset,
)
from segproof.verifying.log_directories import add_pair
from segproof.wording.reporting import Reporter
from segproof.wording.rules import declare

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
DOUBTS_MAX = 16
"""For at most this many logs messages are read to learn whether they are copies of one."""


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


class KnownStores:
    """What the paths of a call have, and what is known of their logs: each is looked at once, and
    two copies are compared once for both.
    """

    def __init__(self, places: Iterable[StorePlace], files: Files) -> None:
        self.files = files
        self.facts = LogFileFacts(files)
        self._around = Surroundings(files)
        self._places = {_plain(one): one for one in places}
        self._by_identity: dict[object, list[str]] = defaultdict(list)
        self._times: dict[str, int] = defaultdict(int)
        """How many single files of a log have a name."""
        for plain, one in sorted(self._places.items()):
            self._by_identity[one.identity].append(plain)
            self._times[_name_of(one)] += 1
        self._stores = sum(one.kind is PlaceKind.STORE for one in self._places.values())
        self._logs: dict[str, CommitLog | None] = {}
        self._found: dict[tuple[str, str], LogDifferences] = {}
        self._index: _Index | None = None

    def has(self, places: Iterable[StorePlace]) -> bool:
        """Return whether all these places are among those known."""
        return all(_plain(one) in self._places for one in places)

    def once_more(self, one: StorePlace) -> StorePlace | None:
        """Return another place that is the same one, by another path; None without any."""
        same = (plain for plain in self._by_identity[one.identity] if plain != _plain(one))
        found = next(same, None)
        return None if found is None else self._places[found]

    def log(self, one: StorePlace) -> CommitLog | None:
        """Return the log of a place; None if it has none that can be read."""
        if one.path not in self._logs:
            try:
                self._logs[one.path] = _log_of(one, self.files, self._around)
            except OSError:
                self._logs[one.path] = None  # the checks of the log report it
        return self._logs[one.path]

    def copies(self, one: StorePlace) -> Iterator[tuple[StorePlace, CommitLog, CommitLog]]:
        """Yield the other places whose logs are of one log with that of a place, by path, and both
        logs. Raises: OSError.
        """
        mine = self.log(one) if self._may_be_copied(one) else None
        if mine is None:
            return
        if self._index is None:
            asked = {
                plain: each for plain, each in self._places.items() if self._may_be_copied(each)
            }
            logs = {plain: log for plain, each in asked.items() if (log := self.log(each))}
            self._index = _Index(logs, self.facts)
        found, in_doubt = self._index.of_one_log(mine)
        for plain in sorted({*found, *sorted(in_doubt)[:DOUBTS_MAX]}):
            two = self._places[plain]
            its = self.log(two)
            if plain == _plain(one) or its is None or not _may_have_same(one, two):
                continue
            if plain in found or self.facts.are_of_one_log(mine, its):
                yield two, mine, its

    def differences(
        self, one: StorePlace, two: StorePlace, mine: CommitLog, its: CommitLog
    ) -> LogDifferences:
        """Return what the log of a place has and that of another one lacks. Raises: OSError."""
        plain, other = _plain(one), _plain(two)
        if other < plain:
            return self.differences(two, one, its, mine).seen_from_there()
        if (plain, other) not in self._found:
            files_alone = {one.kind, two.kind} - {PlaceKind.STORE}
            starts = {each.start for each in min(mine, its, key=_files_of).log_files}
            self._found[plain, other] = differences(
                mine, its, self.facts, starts if files_alone else None
            )
        return self._found[plain, other]

    def _may_be_copied(self, one: StorePlace) -> bool:
        """Return whether another place may have its log: a store, or a file of the same name."""
        is_file, is_store = one.kind is PlaceKind.LOG_FILE, one.kind is PlaceKind.STORE
        others = self._stores - is_store
        if is_file:
            others += self._times[_name_of(one)] - 1
        elif is_store:
            others += len(self._places) - self._stores
        return others > 0


class _Index:
    """Which logs have a file, by what it is and by the message that begins it."""

    def __init__(self, logs: dict[str, CommitLog], facts: LogFileFacts) -> None:
        self._facts = facts
        self._logs = logs
        self._by_identity: dict[object, set[str]] = defaultdict(set)
        self._by_head: dict[int, dict[bytes, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._begun: dict[int, set[str]] = defaultdict(set)
        """The logs with a message that begins their file at an offset."""
        self._blank: dict[tuple[LogFile, ...], bool] = {}
        for plain, log in logs.items():
            for each in log.log_files:
                if (identity := facts.identity(each)) is not None:
                    self._by_identity[identity].add(plain)
                head = self._head(each)
                self._by_head[each.start][head].add(plain)
                if head:
                    self._begun[each.start].add(plain)

    def of_one_log(self, log: CommitLog) -> tuple[set[str], set[str]]:
        """Return the logs that have a file of a log, or the message that begins one of its files;
        and those that may be of one log with it, since no message begins a file here or there.

        Two logs are in no doubt where a message begins a file of both, or where one has no message
        at all, as where a disk has left zeros.
        """
        found: set[str] = set()
        in_doubt: set[str] = set()
        known: set[str] = set()
        for each in log.log_files:
            if (identity := self._facts.identity(each)) is not None:
                found |= self._by_identity[identity]
            head, others = self._head(each), self._by_head[each.start]
            found |= others[head] if head else set()
            in_doubt = in_doubt.union(others[b""]) if head else in_doubt.union(*others.values())
            known |= self._begun[each.start] if head else set()
        in_doubt -= found | known
        if not in_doubt or self._is_blank(log):
            return found, set()
        return found, {plain for plain in in_doubt if not self._is_blank(self._logs[plain])}

    def _is_blank(self, log: CommitLog) -> bool:
        """Return whether a log has no sound message."""
        if log.log_files not in self._blank:
            size = log.mapped_file_size
            self._blank[log.log_files] = not any(
                self._head(each) or self._has_message(each, size) for each in log.log_files
            )
        return self._blank[log.log_files]

    def _has_message(self, one: LogFile, mapped_file_size: int) -> bool:
        try:
            return self._facts.first(one, mapped_file_size) != NO_MESSAGE
        except OSError:
            return False

    def _head(self, one: LogFile) -> bytes:
        try:
            return self._facts.head(one)
        except OSError:
            return b""  # the checks of the log report what can't be read


def report_twice(own: Sequence[StorePlace], known: KnownStores, reporter: Reporter) -> None:
    """Report each place of a path that is another one too, or whose log is a copy."""
    for one in own:
        told = _twice(one, known)
        if told is not None:
            report = reporter.at(one.path)
            found = report.finding(
                STORE_TWICE, told.words, actual=told.other.path, severity=told.severity,
                hint=told.hint,
            )  # fmt: skip
            add_pair(found, one.path, told.other.path, report)


def _plain(one: StorePlace) -> str:
    return os.path.abspath(one.path)


def _name_of(one: StorePlace) -> str:
    """Return the name of a single file of a log; empty for all else."""
    return posixpath.basename(one.path) if one.kind is PlaceKind.LOG_FILE else ""


def _twice(one: StorePlace, known: KnownStores) -> _Told | None:
    """Return what is to be said of a place and one other; None if nothing is."""
    two = known.once_more(one)
    if two is not None:
        what = "store" if one.kind is PlaceKind.STORE else one.kind.value
        by = "a link or a mount" if one.kind is PlaceKind.STORE else "a link or a hard link"
        words = f"it is {two.path} once more, by {by}: one {what} is verified under"
        return _Told(Severity.NOTE, f"{words} both names, and counts twice", ONE_BY_LINK, two)
    if one.kind not in (PlaceKind.STORE, PlaceKind.LOG_FILE):
        return None
    try:
        told = [_told(one, *copy, known) for copy in islice(known.copies(one), RIVALS_MAX)]
    except OSError:
        return None  # the checks of the log report what can't be read
    order = list(Severity)
    return min(told, key=lambda each: order.index(each.severity), default=None)


def _files_of(log: CommitLog) -> int:
    return len(log.log_files)


def _may_have_same(one: StorePlace, two: StorePlace) -> bool:
    """Return whether two places may have messages of one log, and one is no file of the other."""
    paths = _plain(one), _plain(two)
    if two.kind is PlaceKind.LOG_FILE is one.kind:
        return posixpath.basename(paths[0]) == posixpath.basename(paths[1])
    is_inside = any(path.startswith(f"{above}/") for path in paths for above in paths)
    return two.kind in (PlaceKind.STORE, PlaceKind.LOG_FILE) and not is_inside


def _log_of(one: StorePlace, files: Files, around: Surroundings) -> CommitLog | None:
    """Return the commit log of a store, or of a single file; None if it has none that is read."""
    if one.kind is PlaceKind.LOG_FILE:
        start, status = named_offset(posixpath.basename(one.path)), status_of(files, one.path)
        if start is None or status is None:
            return None
        alone = (LogFile(start, one.path, status.size_bytes),)
        return CommitLog(posixpath.dirname(one.path), inferred_size(alone), alone, files)
    folder = log_folder(posixpath.join(one.path, COMMIT_LOG), files)
    if folder is None or unread_layout(one.path, files, around, is_beside_told=False) is not None:
        return None
    size = inferred_size(folder.log_files)
    cut = tuple(each._replace(size_bytes=min(each.size_bytes, size)) for each in folder.log_files)
    return with_right_names(CommitLog(one.path, size, cut, files), files)[0]


def _told(
    one: StorePlace, two: StorePlace, mine: CommitLog, its: CommitLog, known: KnownStores
) -> _Told:
    """Return what is to be said of two logs: one is a copy of the other, or both are one.

    Raises: OSError.
    """
    shared = known.facts.shared(mine, its)
    found = known.differences(one, two, mine, its)
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
        if not {each.path for each in shared}.isdisjoint(_written(mine, known.files)):
            severity, hint = Severity.WARNING, SHARED_END
            words += ", and the file to which a broker appends is among them"
    words += f"; {_words_of(found)}"
    if found.clashes or found.there.is_lost:
        severity = Severity.WARNING
        if not shared:
            hint = LACKING if found.here.is_more else OTHER_HAS_ALL
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
    here, there = _amount(found.here), _amount(found.there)
    if not found.here.is_more and not found.there.is_more:
        return "both have the same sound messages"
    if found.clashes and not found.agrees_after:
        return (
            f"from offset {found.first_clash} on they have different messages, as if two brokers"
            f" had gone on with them: {here} only here, {there} only there"
        )
    if found.clashes:
        words = f"at {plural(found.clashes, 'offset')} they have different messages, first at"
        words += f" {found.first_clash}: one of two is damaged where no checksum covers it"
        if found.here == found.there == OnlyOne(found.clashes):
            return words
        return f"{words}; {here} only here, {there} only there"
    lost_here, lost_there = _lost(found.there, "this"), _lost(found.here, "that")
    if not found.there.is_more:
        return f"this one has more: {here} that the other one lacks{lost_there}"
    if not found.here.is_more:
        return f"the other one has more: {there} that this one lacks{lost_here}"
    return (
        f"each has what the other one lacks: {here} only here{lost_there}; {there} only there"
        f"{lost_here}"
    )


def _amount(only: OnlyOne) -> str:
    """Return in words what one of two logs has alone."""
    parts = [f"{plural(only.files, 'file')} of the log"] if only.files else []
    if only.messages or not parts:
        parts.insert(0, plural(only.messages, "sound message"))
    return " and ".join(parts)


def _lost(only: OnlyOne, which: str) -> str:
    """Return in words what of it the other log lacks between its own messages."""
    if not only.is_lost:
        return ""
    parts = [f"{only.lost_messages} of these messages"] if only.lost_messages else []
    parts += [f"{only.lost_files} of these files"] if only.lost_files else []
    if len(parts) == 1 and not (only.messages and only.files):
        parts = [f"{only.lost_messages or only.lost_files} of them"]
    return f", {' and '.join(parts)} missing or damaged within {which} log"
