# SPDX-License-Identifier: Apache-2.0
"""Running all checks of RocketMQ's files at one place."""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from segproof.files import Files
from segproof.findings import Finding, Severity
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog, LogFile, named_offset
from segproof.rocketmq.geometry import find_geometries, find_geometry
from segproof.verifying.reporting import Reporter, Wanted
from segproof.verifying.rocketmq.index_file_checks import IndexSummary, check_index_file
from segproof.verifying.rocketmq.key_checks import KeyChecks
from segproof.verifying.rocketmq.log_records import LogRecords, list_log
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
from segproof.verifying.rocketmq.store_paths import PARTS, Place, PlaceKind

__all__ = ["check_place", "size_of"]

SERVICE = "index-service"
KNOWN_NAMES = (*PARTS, "checkpoint", "abort")
"""What of a store is looked at."""
Advance = Callable[[int], None]
"""Called with the number of bytes read since the last call."""


def check_place(
    place: Place, wanted: Wanted, files: Files, advance: Advance = lambda count: None
) -> Iterator[Finding]:
    """Yield the findings of one place. Bad data and unreadable files are findings, never raised."""
    if place.kind is PlaceKind.STORE:
        yield from _store(place.path, wanted, files, advance)
    elif place.kind is PlaceKind.INDEX_FOLDER:
        yield from _index_folder(place.path, wanted, files, advance)[1]
    else:
        yield from _single(place, wanted, files, advance)


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
    try:
        status = files.status(path)
    except OSError:
        return 0
    return status.size_bytes if status is not None and status.is_regular else 0


def _single(place: Place, wanted: Wanted, files: Files, advance: Advance) -> Iterator[Finding]:
    path, reporter = place.path, Reporter(wanted)
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
        for _ in LogRecords(path, files, reporter, log).blocks():
            pass
    name = posixpath.basename(path)
    if place.kind in (PlaceKind.QUEUE_FILE, PlaceKind.LOG_FILE) and named_offset(name) is None:
        report_stray(path, reporter, path, "no broker starts with it")
    advance(_size(path, files))
    yield from reporter.finish()


def _index_folder(
    folder: str, wanted: Wanted, files: Files, advance: Advance
) -> tuple[list[IndexSummary], list[Finding], bool]:
    """Return the index files of a folder, all findings, and whether each file could be read."""
    reporter = Reporter(wanted)
    try:
        names = check_index_names(folder, files, reporter)
    except OSError as error:
        reporter.at(folder, SERVICE).unreadable(error)
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
    check_order(summaries, folder, reporter)
    return summaries, [*found, *reporter.finish()], len(answers) == len(names)


def _unreadable(path: str, files: Files, reporter: Reporter, folder: str) -> None:
    """Report why a file could not be looked into; one that is gone was removed by the broker."""
    try:
        files.open(path).close()
    except OSError as error:
        is_gone = isinstance(error, FileNotFoundError)
        if not is_gone or posixpath.basename(path) in files.list_directory(folder):
            reporter.at(path, "index-file", shown_by=folder).unreadable(error)
            return
        reporter.at(path, "index-file", shown_by=folder).add(
            "DISK-2", "it was removed while the folder was read", severity=Severity.NOTE
        )


def _store(store: str, wanted: Wanted, files: Files, advance: Advance) -> Iterator[Finding]:
    reporter = Reporter(wanted)
    checkpoint = posixpath.join(store, "checkpoint")
    stored = read_checkpoint(checkpoint, files)  # first: what it knows of is there already
    inside = look_inside(store, files, reporter, store, KNOWN_NAMES.__contains__)
    folders = {one.name for one in inside if one.name in PARTS and is_folder(one, reporter, store)}
    there = {one.name: one.status for one in inside if one.status is not None}
    names = {one.name for one in inside}
    is_log_alone = names == {COMMIT_LOG}
    time = stored.index_msg_timestamp
    summaries: list[IndexSummary] = []
    is_complete = True
    if "index" in folders:
        folder = posixpath.join(store, "index")
        summaries, found, is_complete = _index_folder(folder, wanted, files, advance)
        yield from found
    if "checkpoint" in there:
        is_told = is_complete and ("index" in folders or "index" not in names)
        check_checkpoint(checkpoint, summaries, files, reporter, time, is_told)
    elif "checkpoint" not in names and not names.isdisjoint((COMMIT_LOG, "consumequeue")):
        report_no_checkpoint(checkpoint, is_log_alone, reporter)
    is_running = "abort" in there
    if is_running:
        abort = posixpath.join(store, "abort")
        check_abort(abort, there["abort"], summaries, reporter, time)
    yield from reporter.drain()
    # Before the log is listed: what a queue leads to is in the log, also beside a writer.
    queues = QueueChecks(store, files, reporter, is_running)
    if "consumequeue" in folders:
        queues.check("commitlog" in folders)
    else:
        queues.is_whole = "consumequeue" not in names and not is_log_alone
    has_entries = any(not one.is_empty for one in summaries)
    if COMMIT_LOG not in names and (
        queues.furthest >= 0 or (has_entries and "checkpoint" in names)
    ):
        reporter.at(posixpath.join(store, COMMIT_LOG), shown_by=store).add(
            "RMQDISK-23",
            "it is not here, and index or queues lead into it: they are judged by themselves",
            severity=Severity.NOTE,
            hint="nothing if the broker keeps it elsewhere (storePathCommitLog); else look for it"
            " in lost+found or on a replica",
        )
    if "commitlog" in folders:
        log, unread = list_log(store, files, reporter)
        if log.log_files:
            records = LogRecords(store, files, reporter, log, unread)
            has_place = "index" in folders or ("index" not in names and not is_log_alone)
            index = summaries if has_place and (is_complete or summaries) else None
            checks = _Checks(store, files, reporter, queues, is_running, is_complete)
            yield from checks.run(records, index, advance, stored.logics_msg_timestamp)
        elif not unread and (queues.furthest >= 0 or has_entries):
            reporter.at(posixpath.join(store, COMMIT_LOG), shown_by=store).add(
                "RMQDISK-23", "it holds no file, and index or queues lead into it"
            )
    yield from reporter.finish()


class _Checks(NamedTuple):
    """What a log is compared with."""

    store: str
    files: Files
    reporter: Reporter
    queues: QueueChecks
    is_running: bool
    is_complete: bool
    """Whether each index file could be read."""

    def run(
        self,
        records: LogRecords,
        index: Sequence[IndexSummary] | None,
        advance: Advance,
        queue_time: int,
    ) -> Iterator[Finding]:
        """Yield the findings of the commit log, and of what is compared with it."""
        yield from self.reporter.drain()
        summaries = index or []
        ends = [one.header.end_phy_offset for one in summaries if not one.is_empty]
        usable = (one.header.end_phy_offset for one in summaries if one.stop > 1)
        records.known_end = max(usable, default=-1)
        self.queues.reached = max(self.queues.furthest, max(ends, default=-1))
        records.check_names()
        keys = None
        try:
            if index is not None:
                keys = KeyChecks(
                    self.store, index, records, self.is_running, self.files, self.reporter,
                    self.is_complete,
                )  # fmt: skip
            for block in records.blocks():
                if keys is not None:
                    keys.add(block)
                self.queues.add(block)
                advance(records.take_read())
                yield from self.reporter.drain()
            if keys is not None:
                keys.finish(self.queues.furthest)
            self.queues.finish(records, queue_time)
        except OSError as error:
            self.reporter.at(_path_of(error, self.store), SERVICE, shown_by=self.store).add(
                "DISK-2",
                "it vanished, or could not be read any more,"
                f" while the store was read: {error.strerror or error}",
            )


def _path_of(error: OSError, store: str) -> str:
    """Return the path that an error of the operating system names, or the store."""
    return error.filename if isinstance(error.filename, str) else store
