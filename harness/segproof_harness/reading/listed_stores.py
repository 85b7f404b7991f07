# SPDX-License-Identifier: Apache-2.0
"""What stores of RocketMQ at a path hold: their commit logs, consume queues and index files.

Cheap: the ends of the queues tell the end of the commit log, whose records are not scanned.
"""

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

from segproof.errors import InvalidArgumentError, SegproofError
from segproof.files import REAL_FILES, Files, status_of
from segproof.inventory.stores import find_places
from segproof.reading.store_layouts import check_whole
from segproof.reading.store_paths import Place, PlaceKind
from segproof.reading.store_reader import index_file_paths
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog
from segproof.rocketmq.consume_queue import CONSUME_QUEUE, ConsumeQueue
from segproof.rocketmq.index_table import read_stored_header
from segproof_harness.reports.text import reason_of

Row = dict[str, Any]


def store_part_rows(path: str, files: Files = REAL_FILES) -> Iterator[Row]:
    """Yield the rows of each store at or below `path`: commit log, queues by topic, index files.

    What can't be read is null, and `reason` says why. Raises: OSError for `path`.
    """
    for place in find_places(path, files):
        if place.kind is PlaceKind.STORE:
            yield from _store_rows(place, files)
        elif place.kind is PlaceKind.INDEX_FOLDER:
            yield _index_row(place.path, files)


def _store_rows(place: Place, files: Files) -> Iterator[Row]:
    store = place.path
    try:
        log, reason = CommitLog.open(store, files=files), None
    except (SegproofError, OSError) as error:
        log, reason = None, reason_of(error)
    queues, end = [], -1
    for topic, queue_id in _queues(store, files):
        row, reached = _queue_row(store, topic, queue_id, log, files)
        queues.append(row)
        end = max(end, reached)
    row = _row("commit-log", os.path.join(store, COMMIT_LOG))
    row["end_offset"] = end if end >= 0 else None
    row["reason"] = _part_of(store, files)
    if log is None:
        yield {**row, "reason": reason}
    elif not log.log_files:
        yield {**row, "files": 0, "size_bytes": 0}
    else:
        yield {
            **row,
            "files": len(log.log_files),
            "size_bytes": sum(one.size_bytes for one in log.log_files),
            "first_offset": log.min_offset,
            "first_timestamp": _stored_at(log, log.min_offset),
            "max_timestamp": max(
                (one["max_timestamp"] for one in queues if one["max_timestamp"] is not None),
                default=None,
            ),
        }
    yield from queues
    folder = os.path.join(store, "index")
    status = status_of(files, folder)
    if status is not None and status.is_directory:
        yield _index_row(folder, files)


def _part_of(store: str, files: Files) -> str | None:
    """Return the layout of a store in words, if it is not read; None for a usual store."""
    try:
        check_whole(store, files)
    except InvalidArgumentError as error:
        return f"{error.path}: {error.message}"
    return None


def _row(kind: str, path: str) -> Row:
    """Return a row of which nothing is known."""
    names = ("topic", "queue_id", "files", "size_bytes", "first_offset", "end_offset",
             "first_timestamp", "max_timestamp", "reason")  # fmt: skip
    return {"kind": kind, "path": path, **dict.fromkeys(names)}


def _queues(store: str, files: Files) -> Iterator[tuple[str, int]]:
    root = os.path.join(store, CONSUME_QUEUE)
    for topic in sorted(_folders(root, files)):
        numbers = [one for one in _folders(os.path.join(root, topic), files) if one.isdecimal()]
        for number in sorted(numbers, key=int):
            if number == str(int(number)):
                yield topic, int(number)


def _folders(path: str, files: Files) -> list[str]:
    """Return the names of the folders in a folder; none where it can't be listed."""
    with suppress(OSError):
        names = files.list_directory(path)
        states = ((name, status_of(files, os.path.join(path, name))) for name in names)
        return [name for name, state in states if state is not None and state.is_directory]
    return []


def _queue_row(
    store: str, topic: str, queue_id: int, log: CommitLog | None, files: Files
) -> tuple[Row, int]:
    """Return the row of a queue, and the end in the commit log of its last message; -1: none."""
    folder = os.path.join(store, CONSUME_QUEUE, topic, str(queue_id))
    row = {**_row("consume-queue", folder), "topic": topic, "queue_id": queue_id}
    try:
        names = files.list_directory(folder)
        states = [status_of(files, os.path.join(folder, name)) for name in names]
        sizes = [one.size_bytes for one in states if one is not None and one.is_regular]
        row |= {"files": len(sizes), "size_bytes": sum(sizes)}
        with ConsumeQueue.open(store, topic, queue_id, files=files) as queue:
            size = queue.inferred_file_size()
        with ConsumeQueue.open(store, topic, queue_id, size, files=files) as queue:
            first, end = queue.min_offset_in_queue, queue.max_offset_in_queue
            row |= {"first_offset": first, "end_offset": end}
            if end > first and log is not None:
                for name, number in (("first_timestamp", first), ("max_timestamp", end - 1)):
                    row[name] = _time_of_unit(queue, number, log)
            return row, queue.max_physic_offset
    except (SegproofError, OSError) as error:
        row["reason"] = reason_of(error)
    return row, -1


def _time_of_unit(queue: ConsumeQueue, number: int, log: CommitLog) -> int | None:
    """Return the store time of a queue's message; None if the commit log does not tell it."""
    units = queue.mapped_file_size // 20
    unit = queue.unit(number // units * queue.mapped_file_size, number % units)
    time = log.pickup_store_timestamp(unit.commit_log_offset, unit.size)
    return time if time >= 0 else None


def _stored_at(log: CommitLog, offset: int) -> int | None:
    with suppress(SegproofError, OSError):
        message = log.look_message(offset)
        return None if message is None else message.store_timestamp
    return None


def _index_row(folder: str, files: Files) -> Row:
    """Return the row of the index files; the offsets are those of the commit log."""
    row = _row("index-folder", folder)
    try:
        paths = index_file_paths(folder, files)
        headers = []
        size = 0
        for path in paths:
            with closing(files.open(path)) as file:
                headers.append(read_stored_header(file))
                size += file.size()
    except (SegproofError, OSError) as error:
        return {**row, "reason": reason_of(error)}
    short = next((path for path, one in zip(paths, headers, strict=True) if one is None), None)
    known = [one for one in headers if one is not None and one.index_count > 1]
    return {
        **row,
        "files": len(paths),
        "size_bytes": size,
        "first_offset": min((one.begin_phy_offset for one in known), default=None),
        "end_offset": None,
        "first_timestamp": min((one.begin_timestamp for one in known), default=None),
        "max_timestamp": max((one.end_timestamp for one in known), default=None),
        "reason": short and f"{short}: an index file is shorter than its header",
    }
