# SPDX-License-Identifier: Apache-2.0
"""What a file is by its content, where its name does not tell: as `fsck` puts it into lost+found.

A file system check names what it finds by its inode (`#131077`). A log of Kafka and a file of a
commit log of RocketMQ have checksums and offsets in them, so each tells what it is and where it
begins. An index has no checksum: it is recognised only if several entries rise, and nothing else
has its shape. No content is a guess by a single magic number.

At most `HEAD_BYTES` of a file are read, and its first batch if that is larger.
"""

import re
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files, ReadOnlyFile
from segproof.findings import time_text
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.index_entries import ENTRY_TYPES
from segproof.reading.log_pieces import LogPieces
from segproof.reading.pieces import Piece, PieceKind
from segproof.reading.restorable_batches import BATCH_BYTES_MAX
from segproof.reading.store_pieces import whole_messages
from segproof.rocketmq.consume_queue import UNITS
from segproof.rocketmq.index_header import HEADER, StoredHeader
from segproof.rocketmq.index_table import ENTRY_BYTES

HEAD_BYTES = 1 << 20
"""A sound batch or message is looked for in this many bytes of a file."""
ENTRIES_MIN = 8
"""An index with fewer entries may be anything."""
ENTRIES_ASKED = 1 << 12
FIRST_MS, LAST_MS = 946_684_800_000, 4_102_444_800_000
"""Times from 2000 on, and before 2100, in milliseconds."""
FROM_FSCK = re.compile(r"#[0-9]+", re.ASCII)
"""A file that has lost its name gets this one from a file system check: # and its inode number."""
_TOPIC_ID = re.compile(rb"version: 0\ntopic_id: ([A-Za-z0-9_-]{22})\n?")


class Content(NamedTuple):
    """What a file is, as its content tells."""

    words: str
    """The description of the file. It begins with a noun, such as "a log of Kafka"."""
    name: str = ""
    """The name under which segproof reads a copy; empty if the content tells none."""
    is_log: bool = False
    """Whether it holds records or messages."""
    is_rocketmq: bool = False
    is_of_topic: bool = False
    """Whether it says the id of a topic."""


def is_from_fsck(name: str) -> bool:
    """Return whether a file system check may have given a file its name."""
    return FROM_FSCK.fullmatch(name) is not None


def content_of(path: str, files: Files) -> Content | None:
    """Return what a file is by its content; None if it does not tell, or can't be read.

    Raises: never.
    """
    try:
        with closing(files.open(path)) as file:
            found = (told(file) for told in _KINDS)
            return next((one for one in found if one is not None), None)
    except OSError:
        return None


def _commit_log(file: ReadOnlyFile) -> Content | None:
    for position, message in whole_messages(file.pread(HEAD_BYTES, 0)):
        start = message.physical_offset - position
        if start >= 0:
            words = (
                f"a file of a commit log of RocketMQ that begins at offset {start}; its first sound"
                f" message is of topic {message.topic}, stored at"
                f" {time_text(message.store_timestamp)}"
            )
            return Content(words, f"{start:020d}", is_log=True, is_rocketmq=True)
    return None


def _log(file: ReadOnlyFile) -> Content | None:
    first = _first_batch(file)
    if first is None:
        return None
    if first.kind is not PieceKind.SOUND:
        words = "a snapshot of a cluster's metadata, or a log that no broker loads"
        return Content(words, segment_file_name(first.first_offset, ".log"), is_log=True)
    at = f" at byte {first.start}" if first.start else ""
    words = (
        f"a log of Kafka; its first sound batch{at} has the offsets {first.first_offset} to"
        f" {first.last_offset}, of {time_text(first.max_timestamp)}, and no log says its topic"
    )
    return Content(words, segment_file_name(first.first_offset, ".log"), is_log=True)


def _first_batch(file: ReadOnlyFile) -> Piece | None:
    size = file.size()
    known = LogPieces(file, 0, min(size, BATCH_BYTES_MAX)).batch_at(0)
    if known is not None and known.first_offset >= 0:
        return known
    # No sound batch with offsets begins at byte 0: a later one is looked for.
    pieces = LogPieces(file, 0, min(size, HEAD_BYTES)).sound()
    return next((one for one in pieces if one.first_offset >= 0), None)


def _topic_id(file: ReadOnlyFile) -> Content | None:
    found = _TOPIC_ID.fullmatch(file.pread(64, 0))
    if found is None:
        return None
    words = f"a partition.metadata of Kafka, of topic id {found[1].decode()}"
    return Content(words, is_of_topic=True)


def _index_file(file: ReadOnlyFile) -> Content | None:
    data = file.pread(HEADER.size, 0)
    if len(data) < HEADER.size or file.size() == len(data):
        return None
    told = StoredHeader(*HEADER.unpack(data))
    times = (FIRST_MS, told.begin_timestamp, told.end_timestamp, LAST_MS)
    offsets = (0, told.begin_phy_offset, told.end_phy_offset)
    counts = (1, told.hash_slot_count, told.index_count, file.size() // ENTRY_BYTES)
    if not all(list(one) == sorted(one) for one in (times, offsets, counts)):
        return None
    return Content(
        "an index file of RocketMQ, of messages stored from"
        f" {time_text(told.begin_timestamp)} to {time_text(told.end_timestamp)}",
        is_rocketmq=True,
    )


def _time_index(file: ReadOnlyFile) -> Content | None:
    rows = _entries(file, ENTRY_TYPES[".timeindex"])
    if rows is None or not (_rises(rows["offset"]) and _rises(rows["timestamp"], least=0)):
        return None
    first, last = int(rows["timestamp"][0]), int(rows["timestamp"][-1])
    if not FIRST_MS <= first <= last < LAST_MS:
        return None
    return Content(f"a time index of Kafka, whose first time is {time_text(first)}")


def _offset_index(file: ReadOnlyFile) -> Content | None:
    rows = _entries(file, ENTRY_TYPES[".index"])
    if rows is None or not (_rises(rows["offset"]) and _rises(rows["position"])):
        return None
    return Content("an offset index of Kafka; its offsets count from the name that it had")


def _queue(file: ReadOnlyFile) -> Content | None:
    rows = _entries(file, UNITS)
    if rows is None or not _rises(rows["commit_log_offset"]) or not (rows["size"] > 0).all():
        return None
    if (np.diff(rows["commit_log_offset"]) < rows["size"][:-1]).any():
        return None
    first, last = int(rows["commit_log_offset"][0]), int(rows["commit_log_offset"][-1])
    words = "a file of a consume queue of RocketMQ, whose first units lead to offsets"
    return Content(f"{words} {first} to {last} of the commit log", is_rocketmq=True)


def _entries(file: ReadOnlyFile, kind: np.dtype[np.void]) -> NDArray[np.void] | None:
    """Return the first entries of an index, up to one of zeros; None if they are too few."""
    if file.size() % kind.itemsize:
        return None
    data = file.pread(ENTRIES_ASKED * kind.itemsize, 0)
    rows = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)
    used = np.ones(len(rows), np.bool_)
    # The first entry of a queue leads to byte 0, and its size is no zero.
    for name in kind.names or ():
        used &= rows[name] == 0
    ends = np.flatnonzero(used)
    rows = rows[: int(ends[0])] if len(ends) else rows
    return rows if len(rows) >= ENTRIES_MIN else None


def _rises(column: NDArray[np.int64], least: int = 1) -> bool:
    """Return whether numbers are not negative, and each is above the one before by `least`."""
    numbers = column.astype(np.int64)
    return bool(numbers[0] >= 0 and (np.diff(numbers) >= least).all())


_KINDS: tuple[Callable[[ReadOnlyFile], Content | None], ...] = (
    _commit_log,
    _topic_id,
    _offset_index,
    _time_index,
    _queue,
    _index_file,
    _log,
)
"""What each kind of file tells, the cheapest first; a log is searched, so it comes last."""
