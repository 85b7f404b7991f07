# SPDX-License-Identifier: Apache-2.0
"""Verify a store of RocketMQ, a folder of index files, or one file."""

import posixpath
from collections.abc import Callable, Iterator
from contextlib import closing

from segproof.files import Files, status_of
from segproof.findings import Finding, Severity
from segproof.hints import reads
from segproof.reading.store_paths import PARTS, Place, PlaceKind
from segproof.reading.unfinished import VERBS
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog, LogFile, named_offset
from segproof.rocketmq.geometry import find_geometries, find_geometry
from segproof.verifying.checked import Checked
from segproof.verifying.reporting import Reporter, Wanted
from segproof.verifying.rocketmq.commit_log_damage import Recovery
from segproof.verifying.rocketmq.index_file_checks import IndexSummary, check_index_file
from segproof.verifying.rocketmq.key_checks import KeyChecks
from segproof.verifying.rocketmq.log_records import LogRecords, RecordsCheck, TimesAlone, list_log
from segproof.verifying.rocketmq.queue_checks import QueueChecks, check_queue_file
from segproof.verifying.rocketmq.store_checks import (
    check_abort,
    check_checkpoint,
    check_index_names,
    check_order,
    is_folder,
    is_time_name,
    look_inside,
    read_checkpoint,
    report_no_checkpoint,
    report_stray,
)
from segproof.verifying.unfinished_outputs import report_store
from segproof.verifying.unread_files import ROCKETMQ, not_looked_into

STORE = "index-service"
KNOWN_NAMES = (*PARTS, "checkpoint", "abort")
"""What of a store is looked at."""
UNREAD_NAMES = {
    "config": "topics, subscriptions and the offsets of consumers are not judged",
    "lock": "a broker's lock file holds the word lock, and this one does not",
    "timerlog": "messages that wait for their time are not judged",
    "timerwheel": "messages that wait for their time are not judged",
    "consumequeue_ext": "what filters of consumers computed is not judged",
}
"""What a broker keeps in its store and no check reads, with the reason."""
LOCK_WORDS = (b"", b"lock")
"""What the lock file of a store holds."""
Advance = Callable[[int], None]
"""Called with the number of bytes read since the last call."""


def check_place(
    place: Place,
    wanted: Wanted,
    files: Files,
    advance: Advance = lambda count: None,
    checked: Checked | None = None,
) -> Iterator[Finding]:
    """Yield the findings of one place. Bad data and unreadable files are findings, never raised.

    `checked` is filled meanwhile.
    """
    told = checked or Checked()

    def count(done: int) -> None:
        told.bytes_checked += done
        advance(done)

    if place.kind is PlaceKind.STORE:
        yield from _Store(place.path, wanted, files, count, told).run()
    elif place.kind is PlaceKind.INDEX_FOLDER:
        summaries, found, _ = _index_folder(place.path, wanted, files, count)
        told.segments = len(summaries)
        yield from found
    else:
        told.segments = 1
        yield from _single(place, wanted, files, count, told)


def size_of(place: Place, files: Files) -> int:
    """Return about how many bytes `check_place` will read."""
    paths = [place.path]
    if place.kind is PlaceKind.STORE:
        folders = [posixpath.join(place.path, name) for name in ("index", "commitlog")]
        paths = [one for folder in folders for one in _inside(folder, files)]
    elif place.kind is PlaceKind.INDEX_FOLDER:
        paths = _inside(place.path, files)
    return sum(_size(path, files) for path in paths)


def _inside(folder: str, files: Files) -> list[str]:
    try:
        return [posixpath.join(folder, name) for name in files.list_directory(folder)]
    except OSError:
        return []


def _size(path: str, files: Files) -> int:
    status = status_of(files, path)
    return status.size_bytes if status is not None and status.is_regular else 0


def _single(
    place: Place, wanted: Wanted, files: Files, advance: Advance, checked: Checked
) -> Iterator[Finding]:
    path, reporter = place.path, Reporter(wanted, structure=STORE)
    if place.kind is PlaceKind.INDEX_FILE:
        try:
            answer = find_geometry(path, hash_slot_num=wanted.hash_slots, files=files)
        except OSError as error:
            reporter.at(path, "index-file").unreadable(error)
        else:
            _, found = check_index_file(path, answer, wanted, files)
            yield from found
        if not is_time_name(posixpath.basename(path)):
            reporter.at(path).add("RMQDISK-3", "its name is no time")
    elif place.kind is PlaceKind.CHECKPOINT:
        check_checkpoint(path, None, files, reporter)
    elif place.kind is PlaceKind.QUEUE_FILE:
        check_queue_file(path, files, reporter)
    else:
        size = _size(path, files)
        one = LogFile(int(posixpath.basename(path)), path, size)
        log = CommitLog(posixpath.dirname(posixpath.dirname(path)) or ".", size, (one,), files)
        records = LogRecords(path, files, reporter, log)
        times = TimesAlone(records)
        for block in records.blocks():
            times.add(block)
        checked.batches, checked.missing_offsets = records.kept, records.fillers
        checked.lost_messages = records.lost
        checked.first_offset, checked.end_offset = one.start, records.end
        checked.batches_behind_damage = records.sound_behind
    name = posixpath.basename(path)
    if place.kind in (PlaceKind.QUEUE_FILE, PlaceKind.LOG_FILE) and named_offset(name) is None:
        report_stray(path, reporter, "no broker starts with it")
    advance(_size(path, files))
    yield from reporter.finish()


def _index_folder(
    folder: str, wanted: Wanted, files: Files, advance: Advance
) -> tuple[list[IndexSummary], list[Finding], bool]:
    """Return the index files of a folder, all findings, and whether each file could be read."""
    reporter = Reporter(wanted, structure="index-file", shown_by=folder)
    try:
        names = check_index_names(folder, files, reporter)
    except OSError as error:
        reporter.at(folder, STORE).unreadable(error)
        return [], reporter.finish(), False
    answers = find_geometries(folder, names, hash_slot_num=wanted.hash_slots, files=files)
    summaries, found = [], reporter.drain()
    for name in names:
        path = posixpath.join(folder, name)
        answer = answers.get(name)
        if answer is None:
            _unreadable(path, files, reporter, folder)
            continue
        summary, more = check_index_file(path, answer, wanted, files)
        found += more
        advance(_size(path, files))
        if summary is not None:
            summaries.append(summary)
    check_order(summaries, reporter)
    return summaries, [*found, *reporter.finish()], len(answers) == len(names)


def _unreadable(path: str, files: Files, reporter: Reporter, folder: str) -> None:
    """Report why a file could not be looked into; one that is gone was removed by the broker."""
    try:
        files.open(path).close()
    except OSError as error:
        is_gone = isinstance(error, FileNotFoundError)
        if not is_gone or posixpath.basename(path) in files.list_directory(folder):
            reporter.at(path).unreadable(error)
            return
        reporter.at(path).add(
            "DISK-2", "it was removed while the folder was read", severity=Severity.NOTE
        )


class _Store:
    """All checks of one store."""

    def __init__(
        self, store: str, wanted: Wanted, files: Files, advance: Advance, checked: Checked
    ) -> None:
        self._checked = checked
        self._store = store
        self._wanted = wanted
        self._files = files
        self._advance = advance
        self._reporter = Reporter(wanted, structure=STORE, shown_by=store)
        self._summaries: list[IndexSummary] = []
        self._is_complete = True
        """Whether each index file could be read."""
        # First: what the checkpoint knows of is there already, beside a writer.
        self._stored = read_checkpoint(self._path("checkpoint"), files)
        inside = look_inside(store, files, self._reporter, KNOWN_NAMES.__contains__)
        self._names = {one.name for one in inside}
        self._statuses = {one.name: one.status for one in inside if one.status is not None}
        self._folders = {
            one.name for one in inside if one.name in PARTS and is_folder(one, self._reporter)
        }
        self._is_log_alone = self._names == {COMMIT_LOG}
        self._is_running = "abort" in self._statuses
        self._queues = QueueChecks(store, files, self._reporter, self._is_running)

    def _path(self, name: str) -> str:
        return posixpath.join(self._store, name)

    def run(self) -> Iterator[Finding]:
        """Yield all findings."""
        if "index" in self._folders:
            self._summaries, found, self._is_complete = _index_folder(
                self._path("index"), self._wanted, self._files, self._advance
            )
            yield from found
        self._report_unread()
        self._check_checkpoint()
        if self._is_running:
            path, time = self._path("abort"), self._stored.index_msg_timestamp
            check_abort(path, self._statuses["abort"], self._summaries, self._reporter, time)
        yield from self._reporter.drain()
        # Before the log is listed: what a queue leads to is in the log, also beside a writer.
        if "consumequeue" in self._folders:
            self._queues.check(COMMIT_LOG in self._folders)
        else:
            self._queues.is_whole = "consumequeue" not in self._names and not self._is_log_alone
        has_entries = any(not one.is_empty for one in self._summaries)
        leads = self._queues.furthest >= 0 or (has_entries and "checkpoint" in self._names)
        if COMMIT_LOG not in self._names and leads:
            self._reporter.at(self._path(COMMIT_LOG)).add(
                "RMQDISK-23",
                "it is not here, and index or queues lead into it: they are judged by themselves",
                severity=Severity.NOTE,
                hint=reads(
                    "nothing if the broker keeps it elsewhere (storePathCommitLog); else look for"
                    " it in lost+found or on a replica"
                ),
            )
        if COMMIT_LOG in self._folders:
            log, unread = list_log(self._store, self._files, self._reporter)
            if log.log_files:
                recovery = Recovery(
                    self._store, log, self._files, self._stored, not self._is_running
                )
                records = LogRecords(
                    self._store, self._files, self._reporter, log, unread, recovery
                )
                yield from self._check_log(records)
                self._checked.segments = len(log.log_files)
                self._checked.missing_offsets = records.fillers
                self._checked.lost_messages = records.lost
                self._checked.first_offset, self._checked.end_offset = log.min_offset, records.end
                self._checked.batches_behind_damage = records.sound_behind
            elif not unread and (self._queues.furthest >= 0 or has_entries):
                self._reporter.at(self._path(COMMIT_LOG)).add(
                    "RMQDISK-23", "it holds no file, and index or queues lead into it"
                )
        yield from self._reporter.finish()

    def _report_unread(self) -> None:
        """Report what is in the store and no check reads (RMQDISK-41)."""
        try:
            names = self._files.list_directory(self._store)
        except OSError:
            return  # reported where the store was listed first
        report_store(self._store, names, self._reporter)
        for name in names:
            path = self._path(name)
            if (
                name in KNOWN_NAMES
                or name in VERBS
                or (name == "lock" and _is_lock(path, self._files))
            ):
                continue
            reason = UNREAD_NAMES.get(name, "segproof does not know what it is")
            not_looked_into(self._reporter.at(path, shown_by=self._store), reason, ROCKETMQ)

    def _check_checkpoint(self) -> None:
        path, names = self._path("checkpoint"), self._names
        if "checkpoint" in self._statuses:
            is_told = self._is_complete and ("index" in self._folders or "index" not in names)
            time = self._stored.index_msg_timestamp
            check_checkpoint(path, self._summaries, self._files, self._reporter, time, is_told)
        elif "checkpoint" not in names and not names.isdisjoint((COMMIT_LOG, "consumequeue")):
            report_no_checkpoint(path, self._is_log_alone, self._reporter)

    def _check_log(self, records: LogRecords) -> Iterator[Finding]:
        """Yield the findings of the commit log, and of what is compared with it."""
        yield from self._reporter.drain()
        try:
            records.check_names()
            checks = self._checks_of(records)
            for block in records.blocks():
                self._checked.batches = records.kept
                for check in checks:
                    check.add(block)
                self._advance(records.take_read())
                yield from self._reporter.drain()
            for check in checks:
                check.finish()
        except OSError as error:
            self._reporter.at(_path_of(error, self._store)).add(
                "DISK-2",
                "it vanished, or could not be read any more, while the store was read:"
                f" {error.strerror or error}",
            )

    def _checks_of(self, records: LogRecords) -> list[RecordsCheck]:
        """Return what is compared with the log: index, if it is judged, and queues."""
        has_place = "index" in self._folders or (
            "index" not in self._names and not self._is_log_alone
        )
        has_index = has_place and (self._is_complete or bool(self._summaries))
        summaries = self._summaries if has_index else []
        usable = (one.header.end_phy_offset for one in summaries if one.stop > 1)
        records.known_end = max(usable, default=-1)
        ends = (one.header.end_phy_offset for one in summaries if not one.is_empty)
        furthest = self._queues.furthest
        time = self._stored.logics_msg_timestamp
        self._queues.compare_with(records, time, max(furthest, max(ends, default=-1)))
        if not has_index:
            return [TimesAlone(records), self._queues]
        keys = KeyChecks(
            self._store, summaries, records, self._is_running, furthest, self._files,
            self._reporter, self._is_complete,
        )  # fmt: skip
        return [keys, self._queues]


def _is_lock(path: str, files: Files) -> bool:
    """Return whether a file holds what a broker writes into its lock file."""
    try:
        with closing(files.open(path)) as file:
            return file.pread(len(LOCK_WORDS[-1]) + 1, 0) in LOCK_WORDS
    except OSError:
        return False


def _path_of(error: OSError, store: str) -> str:
    """Return the path that an error of the operating system names, or the store."""
    return error.filename if isinstance(error.filename, str) else store
