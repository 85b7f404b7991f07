# SPDX-License-Identifier: Apache-2.0
"""What a file is by its content, where its name does not tell: as `fsck` puts it into lost+found.

A file system check names what it finds by its inode (`#131077`). A log of Kafka and a file of a
commit log of RocketMQ have checksums and offsets in them, so each tells what it is and where it
begins. An index has no checksum: it is recognised only if several entries rise (at least two of a
transaction index, and eight of another one), and nothing else has its shape. No content is a guess
by a single magic number. Small files are told where they are whole: a producer snapshot by its
checksum, a checkpoint by its version and its number of lines.

At most `HEAD_BYTES` of a file are read, and its first batch if that is larger. Of a name in it at
most `NAME_MAX` characters are told.
"""

import json
import re
from collections.abc import Callable
from contextlib import closing
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.errors import SegproofError
from segproof.files import Files, ReadOnlyFile, holds_zeros
from segproof.findings import time_text
from segproof.integers import is_integer
from segproof.kafka.producer_snapshot import read_snapshot
from segproof.kafka.segment_names import segment_file_name
from segproof.layouts.rocketmq import CHECKPOINT
from segproof.reading.config_offsets import NAME_MAX
from segproof.reading.index_entries import ENTRY_TYPES, TRANSACTION_ENTRY
from segproof.reading.node_ids import NO_NODE, Broker, broker_in
from segproof.rocketmq.consume_queue import UNITS
from segproof.rocketmq.index_header import HEADER, StoredHeader
from segproof.rocketmq.index_table import ENTRY_BYTES
from segproof.rocketmq.store_checkpoint import CHECKPOINT_BYTES, StoredCheckpoint
from segproof.stretches.kafka.facts import UNKNOWN_NAME, Reach
from segproof.stretches.kafka.framing import LogSource, frame_log
from segproof.stretches.kafka.mending import BATCH_BYTES_MAX
from segproof.stretches.kafka.single_batch import OneBatch, batch_at
from segproof.stretches.rocketmq.candidates import whole_messages
from segproof.stretches.unreadable_blocks import ReadableParts

HEAD_BYTES = 1 << 20
"""A sound batch or message is looked for in this many bytes of a file."""
ENTRIES_MIN = 8
"""An index with fewer entries may be anything."""
TRANSACTIONS_MIN = 2
"""The same of a transaction index: the five numbers of each of its entries bound each other."""
ENTRIES_ASKED = 1 << 12
FIRST_MS, LAST_MS = 946_684_800_000, 4_102_444_800_000
"""Times from 2000 on, and before 2100, in milliseconds."""
FROM_FSCK = re.compile(r"#[0-9]+", re.ASCII)
"""A file that has lost its name gets this one from a file system check: # and its inode number."""
_TOPIC_ID = re.compile(rb"version: 0\ntopic_id: ([A-Za-z0-9_-]{22})\n?")
_LINE_OF_EPOCH = re.compile(r"([0-9]{1,10}) ([0-9]{1,19})", re.ASCII)
_LINE_OF_OFFSET = re.compile(r"[A-Za-z0-9._-]{1,249} [0-9]{1,10} [0-9]{1,19}", re.ASCII)
_VOTE = ("data_version", "leaderEpoch", "votedId")
"""Numbers in each `quorum-state`, among others."""
_TABLES = {
    "topicConfigTable": "topics.json",
    "offsetTable": "consumerOffset.json or delayOffset.json",
    "subscriptionGroupTable": "subscriptionGroup.json",
}
"""A name in a file of JSON in the folder config of a store, and the names of files with it."""


class Kind(Enum):
    """What is done with a file that holds no record."""

    REMADE = "index"
    """It is made new from a log."""
    TOPIC_ID = "partition.metadata"
    EPOCHS = "leader-epoch-checkpoint"
    SNAPSHOT = "producer snapshot"
    OFFSETS = "checkpoint of offsets"
    NODE = "meta.properties"
    VOTE = "quorum-state"
    OF_STORE = "checkpoint or configuration of RocketMQ"


class Content(NamedTuple):
    """What a file is, as its content tells."""

    words: str
    """The description of the file. It begins with a noun, such as "a log of Kafka"."""
    name: str = ""
    """The name under which segproof reads a copy; empty if the content tells none."""
    is_log: bool = False
    """Whether it holds records or messages."""
    is_rocketmq: bool = False
    kind: Kind = Kind.REMADE
    """For a file without records."""
    topic_id: str = ""
    """Of a `partition.metadata`."""


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
                f" message is of topic {message.topic[:NAME_MAX]}, stored at"
                f" {time_text(message.store_timestamp)}"
            )
            return Content(words, f"{start:020d}", is_log=True, is_rocketmq=True)
    return None


def _log(file: ReadOnlyFile) -> Content | None:
    first = _first_batch(file)
    if first is None:
        return None
    if not first.is_loadable:
        words = "a snapshot of a cluster's metadata, or a log that no broker loads"
        return Content(words, segment_file_name(first.first, ".log"), is_log=True)
    at = f" at byte {first.start}" if first.start else ""
    words = (
        f"a log of Kafka; its first sound batch{at} has the offsets {first.first} to"
        f" {first.last}, of {time_text(first.max_time)}, and no log says its topic"
    )
    return Content(words, segment_file_name(first.first, ".log"), is_log=True)


def _first_batch(file: ReadOnlyFile) -> OneBatch | None:
    size = file.size()
    known = batch_at(file, 0, min(size, BATCH_BYTES_MAX))
    if known is not None and known.first >= 0:
        return known
    # No sound batch with offsets begins at byte 0: a later one is looked for.
    source = LogSource(UNKNOWN_NAME, None, lambda: file, end=HEAD_BYTES)
    rows = frame_log(ReadableParts(file), source).rows
    is_sound = rows["is_loadable"] & ~rows["is_mended"] & (rows["first"] >= 0)
    sound = rows[is_sound & (rows["first"] <= rows["last"])]
    starts = sound["start"][sound["reach"] == sound["reach"].max(initial=Reach.SEARCH)]
    return batch_at(file, int(starts[0]), size) if len(starts) else None


def _topic_id(file: ReadOnlyFile) -> Content | None:
    found = _TOPIC_ID.fullmatch(file.pread(64, 0))
    if found is None:
        return None
    topic_id = found[1].decode()
    words = f"a partition.metadata of Kafka, of topic id {topic_id}"
    return Content(words, kind=Kind.TOPIC_ID, topic_id=topic_id)


def _small(file: ReadOnlyFile) -> bytes | None:
    """Return the content of a small file; None if it is empty, or more than `HEAD_BYTES`."""
    size = file.size()
    return file.pread(size, 0) if 0 < size <= HEAD_BYTES else None


def _producers(file: ReadOnlyFile) -> Content | None:
    if file.pread(2, 0) != b"\0\1" or (data := _small(file)) is None:
        return None
    try:
        entries = read_snapshot(data)
    except SegproofError:
        return None
    words = "a producer snapshot of Kafka, of no producer"
    if entries:
        ids = [one.producer_id for one in entries]
        known = f"producer {ids[0]}" if len(ids) == 1 else f"the producers {min(ids)} to {max(ids)}"
        last = max(one.last_offset for one in entries)
        words = f"a producer snapshot of Kafka, of {known}"
        words += f", whose last batch ends at offset {last}" if last >= 0 else ""
    return Content(words, kind=Kind.SNAPSHOT)


def _checkpoint(file: ReadOnlyFile) -> Content | None:
    if file.pread(2, 0) != b"0\n" or (data := _small(file)) is None:
        return None
    try:
        _, count, *lines = data.decode("ascii").removesuffix("\n").split("\n")
    except ValueError:
        return None
    if count != str(len(lines)):
        return None
    if not lines:
        words = "a checkpoint of Kafka without an entry: of leader epochs, or of offsets"
        return Content(words, kind=Kind.OFFSETS)
    if all(map(_LINE_OF_OFFSET.fullmatch, lines)):
        words = (
            f"a checkpoint of offsets of Kafka; its first line is {lines[0]!r}, and it does not say"
            " whether they are recovery points, log starts, high watermarks or those of the cleaner"
        )
        return Content(words, kind=Kind.OFFSETS)
    if not all(map(_LINE_OF_EPOCH.fullmatch, lines)):
        return None
    entries = [tuple(map(int, line.split(" "))) for line in lines]
    if not all(one[0] < two[0] and one[1] <= two[1] for one, two in pairwise(entries)):
        return None
    epoch, start = entries[-1]
    first = f"epoch {entries[0][0]} from offset {entries[0][1]} on"
    words = f"a leader-epoch-checkpoint of Kafka: {first}"
    words += f", up to epoch {epoch} from offset {start} on" if entries[1:] else ""
    return Content(words, kind=Kind.EPOCHS)


def _node(file: ReadOnlyFile) -> Content | None:
    data = _small(file)
    if data is None or b"version=" not in data or b"\0" in data:
        return None
    broker = broker_in(data)
    if not isinstance(broker, Broker):
        return None
    words = "a meta.properties of Kafka"
    words += f", of node {broker.node}" if broker.node != NO_NODE else ""
    words += f" of cluster {broker.cluster[:NAME_MAX]}" if broker.cluster else ""
    words += f", for the log directory {broker.directory}" if broker.directory else ""
    return Content(words, kind=Kind.NODE)


def _json_file(file: ReadOnlyFile) -> Content | None:
    if file.pread(1, 0) != b"{" or (data := _small(file)) is None:
        return None
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if all(is_integer(told.get(name), 32) for name in _VOTE):
        words = f"a quorum-state of Kafka, the vote of a node in epoch {told['leaderEpoch']}"
        return Content(words, kind=Kind.VOTE)
    named = [name for key, name in _TABLES.items() if key in told]
    if len(named) != 1:
        return None
    words = f"a file of the folder config of a store of RocketMQ: {named[0]}"
    return Content(words, is_rocketmq=True, kind=Kind.OF_STORE)


def _store_checkpoint(file: ReadOnlyFile) -> Content | None:
    if file.size() != CHECKPOINT_BYTES or not holds_zeros(file, CHECKPOINT.size, CHECKPOINT_BYTES):
        return None
    times = StoredCheckpoint.read_from(file)[:3]
    if not all(FIRST_MS <= one < LAST_MS for one in times):
        return None
    words = f"a checkpoint of a store of RocketMQ, whose log was flushed at {time_text(times[0])}"
    return Content(words, is_rocketmq=True, kind=Kind.OF_STORE)


def _transactions(file: ReadOnlyFile) -> Content | None:
    data = _small(file)
    if data is None or len(data) % TRANSACTION_ENTRY.itemsize:
        return None
    rows = np.frombuffer(data, TRANSACTION_ENTRY)
    if len(rows) < TRANSACTIONS_MIN:
        return None
    first, last = (rows[name].astype(np.int64) for name in ("first_offset", "last_offset"))
    is_one = not rows["version"].any() and bool((rows["producer_id"] >= 0).all())
    is_one &= bool((first >= 0).all() and (first < last).all()) and _rises(last)
    if not is_one or not (rows["last_stable_offset"] <= last + 1).all():
        return None
    words = f"a transaction index of Kafka, of the aborted transactions {first[0]} to {last[-1]}"
    return Content(words)


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
    _checkpoint,
    _producers,
    _json_file,
    _node,
    _store_checkpoint,
    _transactions,
    _offset_index,
    _time_index,
    _queue,
    _index_file,
    _log,
)
"""What each kind of file tells, the cheapest first; a log is searched, so it comes last."""
