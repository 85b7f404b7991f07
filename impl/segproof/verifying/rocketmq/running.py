# SPDX-License-Identifier: Apache-2.0
"""Running all checks of RocketMQ's files at one place.

Used by: verification.py; the Spark checks.
"""

import posixpath
from collections.abc import Callable, Iterator, Sequence

from segproof.files import Files
from segproof.findings import Finding, Severity
from segproof.rocketmq.commit_log import CommitLog, LogFile
from segproof.rocketmq.geometry import find_geometries, find_geometry
from segproof.verifying.reporting import Reporter, Wanted
from segproof.verifying.rocketmq.index_checks import IndexSummary, check_index_file
from segproof.verifying.rocketmq.key_checks import KeyChecks
from segproof.verifying.rocketmq.log_records import LogRecords
from segproof.verifying.rocketmq.places import Place, PlaceKind
from segproof.verifying.rocketmq.queue_checks import QueueChecks, check_queue_file
from segproof.verifying.rocketmq.store_checks import (
    check_abort,
    check_checkpoint,
    check_index_names,
    check_order,
    is_time_name,
    read_index_time,
)
from segproof.verifying.segments import report_unreadable

__all__ = ["check_place", "size_of"]

SERVICE = "index-service"
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
            report_unreadable(path, error, reporter, "index-file")
        else:
            _, found = check_index_file(path, answer, wanted, files)
            yield from found
        if not is_time_name(posixpath.basename(path)):
            reporter.add("RMQDISK-3", path, "its name is no time")
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
        report_unreadable(folder, error, reporter, SERVICE)
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
    except FileNotFoundError:
        reporter.add(
            "DISK-2", path, "it was removed while the folder was read", severity=Severity.NOTE,
            structure="index-file", reproduce_path=folder,
        )  # fmt: skip
    except OSError as error:
        report_unreadable(path, error, reporter, "index-file", reproduce_path=folder)


def _store(store: str, wanted: Wanted, files: Files, advance: Advance) -> Iterator[Finding]:
    reporter = Reporter(wanted)
    folder = posixpath.join(store, "index")
    status = files.status(folder)
    summaries: list[IndexSummary] = []
    is_complete = True
    if status is not None and status.is_directory:
        summaries, found, is_complete = _index_folder(folder, wanted, files, advance)
        yield from found
    checkpoint = posixpath.join(store, "checkpoint")
    if files.status(checkpoint) is not None:
        check_checkpoint(checkpoint, summaries, files, reporter)
    abort = posixpath.join(store, "abort")
    marker = files.status(abort)
    if marker is not None:
        time = read_index_time(checkpoint, files)
        check_abort(abort, marker, summaries, reporter, time)
    yield from reporter.drain()
    has_index = status is not None and (is_complete or bool(summaries))
    yield from _log(
        store, summaries, marker is not None, files, reporter, advance, has_index, is_complete
    )


def _log(
    store: str,
    summaries: Sequence[IndexSummary],
    is_running: bool,
    files: Files,
    reporter: Reporter,
    advance: Advance,
    has_index: bool,
    is_complete: bool,
) -> Iterator[Finding]:
    """Yield the findings of the commit log, and of what is compared with it."""
    queues = QueueChecks(store, files, reporter)
    try:
        records = LogRecords(store, files, reporter)
    except OSError as error:
        report_unreadable(posixpath.join(store, "commitlog"), error, reporter, SERVICE)
        yield from reporter.finish()
        return
    has_log = bool(records.log.log_files)
    queues.check(has_log)
    yield from reporter.drain()
    if not has_log:
        yield from reporter.finish()
        return
    ends = (one.header.end_phy_offset for one in summaries if one.stop > 1)
    records.known_end = max(ends, default=-1)
    records.check_names()
    keys = None
    try:
        if has_index:
            keys = KeyChecks(store, summaries, records, is_running, files, reporter, is_complete)
        for block in records.blocks():
            if keys is not None:
                keys.add(block)
            queues.add(block)
            advance(records.take_read())
            yield from reporter.drain()
        if keys is not None:
            keys.finish()
        queues.finish(records, is_running)
    except OSError as error:
        words = _path_of(error, store)
        reporter.add(
            "DISK-2", words, "it vanished, or could not be read any more, while the store was"
            f" read: {error.strerror or error}", structure=SERVICE, reproduce_path=store,
        )  # fmt: skip
    finally:
        if keys is not None:
            keys.close()
    yield from reporter.finish()


def _path_of(error: OSError, store: str) -> str:
    """Return the path that an error of the operating system names, or the store."""
    return error.filename if isinstance(error.filename, str) else store
