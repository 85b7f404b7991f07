# SPDX-License-Identifier: Apache-2.0
"""What is in the small files of a partition and of a data directory: rows of `dump`.

Producer snapshots, `leader-epoch-checkpoint`, `partition.metadata`, the checkpoints of offsets and
the marker of a clean stop. The names of the fields are part of the command line's contract.
"""

import base64
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from segproof.errors import CorruptCheckpointError, NumberFormatError, TooLargeError
from segproof.files import REAL_FILES, Files
from segproof.integers import parse_int
from segproof.inventory.small_files import SMALL_FILE_BYTES
from segproof.kafka.checkpoint_file import (
    EPOCH_FORMATTER,
    OFFSET_FORMATTER,
    EntryFormatter,
    read_checkpoint,
    read_text_file,
)
from segproof.kafka.partition_metadata_file import read_partition_metadata
from segproof.kafka.producer_snapshot import ProducerStateEntry, read_snapshot_file
from segproof.reading.file_names import (
    CLEAN_SHUTDOWN_MARKER,
    EPOCHS,
    METADATA,
    OFFSET_CHECKPOINTS,
    REMOTE_EPOCH_SUFFIXES,
    SNAPSHOT_SUFFIX,
    NameKind,
    read_file_name,
    read_remote_name,
)

Row = dict[str, Any]
Read = Callable[[str, Files], Iterator[Row]]


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A small file, told by its name."""

    path: str
    read: Read


def small_file(path: str) -> SmallFile | None:
    """Return what the name says, or None if no small file has it."""
    name = os.path.basename(path)
    read = READERS.get(name)
    known = read_file_name(name)
    if known.kind is NameKind.KNOWN and known.suffix == SNAPSHOT_SUFFIX:
        read = _producers
    if (remote := read_remote_name(name)) is not None and not remote.passing:
        if remote.suffix == SNAPSHOT_SUFFIX:
            read = _producers
        elif remote.suffix in REMOTE_EPOCH_SUFFIXES:
            read = READERS[EPOCHS]
    return None if read is None else SmallFile(path, read)


def small_files(directory: str, files: Files = REAL_FILES) -> list[SmallFile]:
    """Return the small files of a directory: snapshots by offset, then the others by name.

    Raises: OSError.
    """
    names = sorted(files.list_directory(directory), key=lambda name: (name in READERS, name))
    found = (small_file(os.path.join(directory, name)) for name in names)
    return [each for each in found if each is not None]


def small_file_rows(
    file: SmallFile, limit: int | None = None, files: Files = REAL_FILES
) -> Iterator[Row]:
    """Yield the rows of a file, in its order.

    Raises: OSError if it can't be read; SegproofError where Kafka can't read it either, and
    TooLargeError above `limit` bytes, by default `SMALL_FILE_BYTES`.
    """
    status, most = files.status(file.path), limit or SMALL_FILE_BYTES
    if status is not None and status.size_bytes > most:
        raise TooLargeError(
            f"a file of {status.size_bytes} bytes is not read into memory",
            path=file.path,
            expected=f"at most {most} bytes",
            actual=status.size_bytes,
            hint="to see it, give a higher limit: --limit-bytes",
        )
    return file.read(file.path, files)


def _producers(path: str, files: Files) -> Iterator[Row]:
    yield from map(_producer_row, read_snapshot_file(path, files=files))


def _producer_row(entry: ProducerStateEntry) -> Row:
    """Return the row of a producer; its batch as null without one."""
    batch = entry.batch_metadata[-1] if entry.batch_metadata else None
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "coordinator_epoch": entry.coordinator_epoch,
        "current_txn_first_offset": entry.current_txn_first_offset,
        "last_timestamp": entry.last_timestamp,
        "first_sequence": batch and batch.first_seq,
        "last_sequence": batch and batch.last_seq,
        "first_offset": batch and batch.first_offset,
        "last_offset": batch and batch.last_offset,
        "offset_delta": batch and batch.offset_delta,
    }


def _entries_of(formatter: EntryFormatter[Any]) -> Read:
    """Return the reader of a checkpoint: its entries have names."""

    def read(path: str, files: Files) -> Iterator[Row]:
        data = read_text_file(files, path)
        for entry in read_checkpoint(data, formatter.from_string, source=path):
            yield entry._asdict()

    return read


def _metadata(path: str, files: Files) -> Iterator[Row]:
    found = read_partition_metadata(read_text_file(files, path), source=path)
    topic_id = base64.urlsafe_b64encode(found.topic_id.bytes).rstrip(b"=").decode("ascii")
    yield {"version": found.version, "topic_id": topic_id}


def _marker(path: str, files: Files) -> Iterator[Row]:
    """Yield the epoch of the broker that stopped; before 3.8 the marker is empty."""
    data = read_text_file(files, path)
    if not data:
        return
    try:
        content = json.loads(data)
        version, epoch = parse_int(str(content["version"]), 32), content["brokerEpoch"]
        row = {"version": version, "broker_epoch": parse_int(str(epoch), 64)}
    except (ValueError, TypeError, KeyError, RecursionError, NumberFormatError) as error:
        raise CorruptCheckpointError(
            "the marker of a clean stop holds no broker epoch", law="DISK-40", path=path
        ) from error
    yield row


READERS: dict[str, Read] = {
    EPOCHS: _entries_of(EPOCH_FORMATTER),
    METADATA: _metadata,
    **dict.fromkeys(OFFSET_CHECKPOINTS, _entries_of(OFFSET_FORMATTER)),
    CLEAN_SHUTDOWN_MARKER: _marker,
}
"""How each small file is read, by its name; snapshots are known by their suffix."""
