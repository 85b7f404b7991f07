# SPDX-License-Identifier: Apache-2.0
"""What is in a file of a RocketMQ store, one flat object a line: the rows of `dump`.

Index files: the header, then each entry; the commit log: each record; a consume queue: each unit;
the checkpoint: its fields. The names of the fields are part of the command line's contract.
"""

import os
import posixpath
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, islice, pairwise
from typing import Any

from segproof.errors import CorruptIndexError, CorruptRecordError, SegproofError, TooLargeError
from segproof.files import REAL_FILES, File, Files, first_byte, first_byte_of
from segproof.hints import writes
from segproof.layouts.rocketmq import QUEUE_UNIT
from segproof.reading.batch_rows import HIGHER, Row
from segproof.reading.store_paths import LOG_NAME, Place, PlaceKind
from segproof.reading.store_reader import geometry_of, index_files_of, slots_untold
from segproof.rocketmq.commit_log import CommitLog, LogFile, log_file_name, named_offset
from segproof.rocketmq.index_table import (
    Geometry,
    entry_blocks,
    read_stored_header,
    refuse_missing_entries,
)
from segproof.rocketmq.message import MAGIC_V1, string_to_message_properties
from segproof.rocketmq.store_checkpoint import StoredCheckpoint
from segproof_harness.reading.log_file_rows import LARGE_RECORD_BYTES, Shown
from segproof_harness.reading.partition_under_profile import answered
from segproof_harness.reading.row_range import RowRange
from segproof_harness.reading.store_under_profile import contents
from segproof_harness.reports.bytes_as_text import BASE64, Encoders
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files as ModelFiles
from segproof_model.rocketmq.broker.store_checkpoint import StoreCheckpoint
from segproof_model.rocketmq.format.index_file import IndexFile
from segproof_model.rocketmq.format.message import Message

CRC_MASK = 0x7FFFFFFF
_UNIT = QUEUE_UNIT.struct()
_PIECE_BYTES = _UNIT.size * 8192


def files_of(place: Place, files: Files = REAL_FILES) -> list[Place]:
    """Return the files of a store or folder that can be dumped, in order.

    A folder of a store that can't be listed is among them: reading it tells why. Raises: OSError
    for `place` itself.
    """
    indexes = [Place(PlaceKind.INDEX_FILE, path) for path in index_files_of(place, files)]
    if place.kind is PlaceKind.INDEX_FOLDER:
        return indexes
    if place.kind is not PlaceKind.STORE:
        return [place]
    found: list[Place] = []
    names = files.list_directory(place.path)
    if "checkpoint" in names:
        found.append(Place(PlaceKind.CHECKPOINT, posixpath.join(place.path, "checkpoint")))
    queue, log = PlaceKind.QUEUE_FILE, PlaceKind.LOG_FILE
    if "commitlog" in names:
        paths = _paths([posixpath.join(place.path, "commitlog")], log, found, files)
        found += _numbered(paths, log)
    if "consumequeue" in names:
        paths = [posixpath.join(place.path, "consumequeue")]
        for _ in ("topics", "queues", "files"):
            paths = _paths(paths, queue, found, files)
        found += _numbered(paths, queue)
    return found + indexes


def _paths(folders: list[str], kind: PlaceKind, found: list[Place], files: Files) -> list[str]:
    """Return what is in folders; add those that can't be listed to `found`, but no plain file."""
    paths = []
    for folder in folders:
        try:
            paths += [posixpath.join(folder, name) for name in files.list_directory(folder)]
        except OSError as error:
            if not isinstance(error, NotADirectoryError) or not os.path.isfile(folder):
                found.append(Place(kind, folder))
    return paths


def _numbered(paths: list[str], kind: PlaceKind) -> list[Place]:
    return [Place(kind, path) for path in paths if LOG_NAME.fullmatch(posixpath.basename(path))]


def next_files(found: Iterable[Place]) -> dict[str, int]:
    """Return where the next file of its log or queue begins, for each path but the last ones."""
    folders: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for one in found:
        folder, name = posixpath.split(one.path)
        start = named_offset(name)
        if one.kind in (PlaceKind.LOG_FILE, PlaceKind.QUEUE_FILE) and start is not None:
            folders[folder].append((start, one.path))
    return {
        path: following
        for starts in folders.values()
        for (_, path), (following, _) in pairwise(sorted(starts))
    }


def store_rows(
    place: Place,
    shown: Shown,
    *,
    hash_slots: int | None = None,
    following: int | None = None,
    files: Files = REAL_FILES,
) -> Iterator[Row]:
    """Yield the wanted rows of one file, in its order.

    They are chosen by the offset in the commit log, or of a queue's unit in the queue, and by the
    store time of a message. The header of an index file is there, unless several numbers of slots
    fit it.

    `shown` says what a message with a wrong checksum means; its limit is that of a body.
    `following` is where the next file of the log or queue begins: what lies between both files is
    lost. None: nothing is asked.

    Raises: OSError if it can't be read; SegproofError where reading it fails, after the rows
    before the damage, and where a file behind it is missing.
    """
    path, release, wanted = place.path, shown.release, shown.wanted
    is_of_row = place.kind in (PlaceKind.LOG_FILE, PlaceKind.QUEUE_FILE)
    if is_of_row and named_offset(posixpath.basename(path)) is None:
        raise SegproofError(
            "no store gives a file this name: offsets end at 2^63 - 1",
            law="RMQDISK-39",
            path=path,
            hint=writes(
                "to see what it holds, copy it to a name that an offset can be, as"
                f" {log_file_name(0)}, in a folder commitlog of its own"
            ),
        )
    if place.kind is PlaceKind.INDEX_FILE:
        geometry = geometry_of(path, hash_slots, files)
        if release is None:
            rows: Iterator[Row] = _index_rows(path, geometry, files)
        else:
            rows = _model_index_rows(path, geometry, release, files)
        yield next(rows)
        entries = (row for row in rows if wanted.takes_offset(row["phy_offset"]))
        yield from islice(entries, wanted.most)
    elif place.kind is PlaceKind.LOG_FILE:
        messages = _undamaged(_log_rows(path, shown, files), path, shown)
        yield from islice(
            chain(messages, _missing_behind(place, following, wanted, files)), wanted.most
        )
    elif place.kind is PlaceKind.QUEUE_FILE:
        units = (
            row for row in _queue_rows(path, files) if wanted.takes_offset(row["queue_offset"])
        )
        yield from islice(
            chain(units, _missing_behind(place, following, wanted, files)), wanted.most
        )
    else:
        yield _checkpoint_row(path, release, files)


def _missing_behind(
    place: Place, following: int | None, wanted: RowRange, files: Files
) -> Iterator[Row]:
    """Yield nothing. Raises: CorruptRecordError where wanted rows may be in files that are missing.

    They begin where this file ends, and end where the next one begins.
    """
    status = files.status(place.path)
    if following is None or status is None:
        return
    end, is_log = (
        int(posixpath.basename(place.path)) + status.size_bytes,
        place.kind is PlaceKind.LOG_FILE,
    )
    unit_bytes = 1 if is_log else _UNIT.size
    is_before = wanted.first_offset is not None and wanted.first_offset * unit_bytes >= following
    is_behind = wanted.end_offset is not None and wanted.end_offset * unit_bytes <= end
    if following <= end or is_before or is_behind:
        return
    yield from ()
    raise CorruptRecordError(
        f"the file ends at offset {end}, and the next one begins at {following}: what lay"
        " between is in no file",
        law="RMQDISK-23" if is_log else "RMQDISK-35",
        path=place.path,
        position=status.size_bytes,
    )


def _undamaged(rows: Iterator[Row | TooLargeError], path: str, shown: Shown) -> Iterator[Row]:
    """Yield the rows; tell what is left out, or raise it."""
    for row in rows:
        if not isinstance(row, dict):
            shown.report(row)
        elif row["crc_valid"] or shown.keeps:
            yield row
        else:
            wrong = CorruptRecordError(
                f"a message of {row['size']} bytes has a wrong checksum",
                law="RMQLOG-3",
                path=path,
                position=row["phy_offset"] - int(os.path.basename(path)),
            )
            shown.report(wrong)


def _index_rows(path: str, geometry: Geometry | None, files: Files) -> Iterator[Row]:
    with closing(files.open(path)) as file:
        header = read_stored_header(file)
        if header is None:
            raise CorruptIndexError("it is shorter than a header", law="RMQDISK-1", path=path)
        yield dict(header._asdict())
        if header.index_count <= 1:
            return
        if geometry is None:
            raise slots_untold(path, "--hash-slots")
        stop, end = min(header.index_count, geometry.index_num), 1
        for first, block in entry_blocks(file, geometry, 1, stop):
            for index, entry in enumerate(block.tolist(), first):
                yield _entry_row(index, entry, geometry)
            end = first + len(block)
        refuse_missing_entries(header.index_count, end, geometry, path)


def _entry_row(index: int, entry: tuple[int, ...], geometry: Geometry) -> Row:
    key_hash, phy_offset, time_diff, prev_index = entry
    return {
        "slot": key_hash % geometry.hash_slot_num if key_hash >= 0 else None,
        "index": index,
        "key_hash": key_hash,
        "phy_offset": phy_offset,
        "time_diff": time_diff,
        "prev_index": prev_index,
    }


def _model_index_rows(
    path: str, geometry: Geometry | None, release: Release, files: Files
) -> Iterator[Row]:
    """Yield the rows as a release has them after loading the file."""
    if geometry is None:
        raise slots_untold(path, "--hash-slots")
    name = os.path.basename(path)
    with answered(path):
        index = release.kind(IndexFile)(ModelFiles({name: contents(path, files)}), name, *geometry)
        index.load()
    yield index.header._asdict()
    for entry in index.entries_list():
        fields = (entry.key_hash, entry.phy_offset, entry.time_diff, entry.prev_index)
        yield _entry_row(entry.index, fields, geometry)


def _log_rows(path: str, shown: Shown, files: Files) -> Iterator[Row | TooLargeError]:
    """Yield the wanted records of one file of the log, up to its blank end or the last one's zeros.

    Raises: CorruptRecordError where something else follows.
    """
    status, release, wanted = files.status(path), shown.release, shown.wanted
    start, size = int(os.path.basename(path)), 0 if status is None else status.size_bytes
    end, log_file = start, LogFile(start, path, size)
    if release is None and wanted.first_offset is not None:
        end = _start_offset(log_file, wanted.first_offset, files)
    for offset, size_bytes, message, is_valid in _records(end, log_file, release, files):
        if wanted.end_offset is not None and offset >= wanted.end_offset:
            return
        end = offset + size_bytes
        if not wanted.takes(offset, offset, message.store_timestamp):
            continue
        body_bytes, most = len(message.body), shown.limit or LARGE_RECORD_BYTES
        is_large = shown.with_records and body_bytes > most
        with_body = shown.with_records and not is_large
        row = record_row(message, offset, with_body, shown.encoders)
        row["crc_valid"] &= is_valid
        yield row
        if is_large:
            yield TooLargeError(
                f"a body of {body_bytes} bytes is not shown",
                path=path,
                position=offset - start,
                expected=f"at most {most} bytes",
                hint=HIGHER,
            )
    head = contents(path, files, 8, end - start)
    words = "no record can be read here"
    if head[4:] == b"\xcb\xd4\x31\x94":
        blank_end = end - start + int.from_bytes(head[:4], "big")
        if blank_end >= size or first_byte_of(files, path, blank_end, size) is None:
            return
        words = f"a blank end up to byte {blank_end} begins here, and more follows after it"
    elif not head.strip(b"\0"):
        if first_byte_of(files, path, end - start, size) is not None:
            words = "zeros begin here, and more follows after them"
        elif has_later_file(path, files):
            words = "the records end here, without the blank end of a full file"
        else:
            return
    raise CorruptRecordError(words, law="RMQLOG-3", path=path, position=end - start)


def has_later_file(path: str, files: Files) -> bool:
    """Return whether the folder of a log or queue has a file of a later offset."""
    folder, name = os.path.split(path)
    try:
        names = files.list_directory(folder or ".")
    except OSError:
        return False
    return any(other > name for other in names if LOG_NAME.fullmatch(other))


def _log_of(log_file: LogFile, files: Files) -> CommitLog:
    folder = os.path.dirname(log_file.path)
    return CommitLog(folder, max(1, log_file.size_bytes), (log_file,), files)


def _start_offset(log_file: LogFile, wanted: int, files: Files) -> int:
    """Return where reading begins: at the wanted offset if a record with this offset lies there."""
    if not log_file.start < wanted < log_file.start + log_file.size_bytes:
        return log_file.start
    found = _log_of(log_file, files).check(wanted)
    is_there = found.message is not None and found.message.physical_offset == wanted
    return wanted if found.success and is_there else log_file.start


def _records(
    start: int, log_file: LogFile, release: Release | None, files: Files
) -> Iterator[tuple[int, int, Any, bool]]:
    """Yield offset, size and message of the records, and whether the checksum is right.

    Under a release from the file's start on, up to the first whose checksum is wrong.
    """
    if release is None:
        yield from _records_as_found(start, _log_of(log_file, files))
        return
    data, position = contents(log_file.path, files), 0
    check = release.kind(Message).check_message_and_return_size
    while True:
        result = check(data, position)
        if not result.success or result.message is None:
            return
        yield log_file.start + position, result.size, result.message, True
        position += result.size


def _records_as_found(offset: int, log: CommitLog) -> Iterator[tuple[int, int, Any, bool]]:
    while True:
        for at, found in log.scan(offset):
            if found.message is not None:
                yield at, found.size, found.message, True
                offset = at + found.size
        unchecked = log.check(offset, check_crc=False)
        if unchecked.message is None or not unchecked.size:
            return
        yield offset, unchecked.size, unchecked.message, False
        offset += unchecked.size


def record_row(message: Any, phy_offset: int, with_body: bool, encoders: Encoders = BASE64) -> Row:
    """Return the row of a record, of either package."""
    properties = dict(string_to_message_properties(message.properties))
    row: Row = {
        "phy_offset": phy_offset,
        "size": message.total_size,
        "magic": 1 if message.magic == MAGIC_V1 else 2,
        "topic": message.topic,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "store_timestamp": message.store_timestamp,
        "born_timestamp": message.born_timestamp,
        "keys": properties.get("KEYS"),
        "uniq_key": properties.get("UNIQ_KEY"),
        "tags": properties.get("TAGS"),
        "flag": message.flag,
        "sys_flag": message.sys_flag,
        "reconsume_times": message.reconsume_times,
        "prepared_transaction_offset": message.prepared_transaction_offset,
        "physical_offset": message.physical_offset,
        "body_size": len(message.body),
        "crc_valid": not message.body or zlib.crc32(message.body) & CRC_MASK == message.body_crc,
    }
    if with_body:
        row["properties"] = properties
        row["body"] = encoders.value(message.body)
    return row


def _queue_rows(path: str, files: Files) -> Iterator[Row]:
    """Yield the units before the zeros at the end of a queue's file.

    Raises: CorruptIndexError for other bytes after the last unit; for zeros, if a file follows.
    """
    first = number = int(os.path.basename(path)) // _UNIT.size
    with closing(files.open(path)) as file:
        for offset, size, tags_code in _units(file):
            if not (offset or size or tags_code):
                break
            yield {
                "queue_offset": number,
                "commit_log_offset": offset,
                "size": size,
                "tags_code": tags_code,
            }
            number += 1
        position, end = (number - first) * _UNIT.size, file.size()
        words = ""
        if first_byte(file, position, end) is not None:
            is_partial = end - position < _UNIT.size
            words = "part of a unit" if is_partial else "zeros begin here, and more follows"
        elif end > position and has_later_file(path, files):
            words = "the units end here, though a file of the queue follows"
        if words:
            raise CorruptIndexError(words, path=path, position=position)


def _units(file: File) -> Iterator[tuple[int, ...]]:
    """Yield the whole units of a queue's file."""
    position = 0
    while data := file.pread(_PIECE_BYTES, position):
        yield from _UNIT.iter_unpack(data[: len(data) // _UNIT.size * _UNIT.size])
        position += len(data)


def _checkpoint_row(path: str, release: Release | None, files: Files) -> Row:
    with closing(files.open(path)) as file:
        size, stored = file.size(), StoredCheckpoint.read_from(file)
    if size < 8 * len(stored):
        raise SegproofError(f"a checkpoint of {size} bytes", law="RMQDISK-20", path=path)
    known = len(stored) if release is None else release.kind(StoreCheckpoint).field_count
    return dict(list(stored._asdict().items())[:known])
