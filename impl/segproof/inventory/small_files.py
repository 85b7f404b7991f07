# SPDX-License-Identifier: Apache-2.0
"""What the small files of a partition and of a data directory say, or why they can't be read.

Nothing is created: the classes that keep these files make missing ones, the readers here don't.

Upstream: Kafka 4.3.1: ProducerStateManager, LeaderEpochCheckpointFile, PartitionMetadataFile,
    OffsetCheckpointFile.
Not covered: files above SMALL_FILE_BYTES.
"""

import posixpath
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from segproof.errors import SegproofError
from segproof.files import Files, check_limits
from segproof.kafka.checkpoint_file import (
    EPOCH_FORMATTER,
    OFFSET_FORMATTER,
    EpochEntry,
    TopicPartitionOffset,
    read_checkpoint,
    read_text_file,
)
from segproof.kafka.partition_metadata_file import read_partition_metadata
from segproof.kafka.producer_snapshot import ProducerStateEntry, read_snapshot_file
from segproof.reading.file_names import OFFSET_CHECKPOINTS

SMALL_FILE_BYTES = 6 << 20
"""More than 130000 producers or partitions; a larger file is not read into memory."""
Content = TypeVar("Content")
Offsets = dict[tuple[str, int], dict[str, int]]
"""By topic and partition: the names of checkpoints and the offset in each."""


class Oversized(NamedTuple):
    """A file of more than SMALL_FILE_BYTES, which was not read."""

    size_bytes: int


class Parsed(NamedTuple, Generic[Content]):
    """What a file says, or why it can't be read. Neither: it is gone."""

    content: Content | None = None
    error: OSError | SegproofError | Oversized | None = None


class Entries(NamedTuple, Generic[Content]):
    """What a checkpoint says."""

    entries: list[Content]
    stump: bytes | None = None
    """All bytes of a file that ends before its count of entries: Kafka reads no entry in it."""


def parse(path: str, files: Files, read: Callable[[], Content]) -> Parsed[Content]:
    """Return what `read` returns for a file, or why it can't.

    Raises: ProcessLimitError.
    """
    try:
        status = files.status(path)
        if status is None:
            return Parsed()
        if status.size_bytes > SMALL_FILE_BYTES and status.is_regular:
            return Parsed(error=Oversized(status.size_bytes))
        return Parsed(read())
    except FileNotFoundError:
        return Parsed()
    except SegproofError as error:
        return Parsed(error=error)
    except OSError as error:
        check_limits(error)
        return Parsed(error=error)


def _parse_checkpoint(
    path: str, from_string: Callable[[str], Content | None], files: Files
) -> Parsed[Entries[Content]]:
    def read() -> Entries[Content]:
        data = read_text_file(files, path)
        entries = read_checkpoint(data, from_string, source=path)
        return Entries(entries, data if len(data.splitlines()) < 2 else None)

    return parse(path, files, read)


def parse_epochs(path: str, files: Files) -> Parsed[Entries[EpochEntry]]:
    """Return what a `leader-epoch-checkpoint` says, whether or not its entries fit each other."""
    return _parse_checkpoint(path, EPOCH_FORMATTER.from_string, files)


def parse_offsets(path: str, files: Files) -> Parsed[Entries[TopicPartitionOffset]]:
    """Return what a checkpoint of offsets says."""
    return _parse_checkpoint(path, OFFSET_FORMATTER.from_string, files)


def parse_producers(path: str, files: Files) -> Parsed[Sequence[ProducerStateEntry]]:
    """Return what a producer snapshot says."""
    return parse(path, files, lambda: read_snapshot_file(path, files=files))


def odd_epoch(entries: Sequence[EpochEntry]) -> int | None:
    """Return the number from 0 of the first entry that does not rise above the one before it.

    0 is a first entry with a negative number, where all rise. None: nothing is wrong.
    """
    for number, (one, two) in enumerate(pairwise(entries), 1):
        if one.epoch >= two.epoch or one.start_offset >= two.start_offset:
            return number
    is_negative = entries and min(entries[0].epoch, entries[0].start_offset) < 0
    return 0 if is_negative else None


def known_epochs(path: str, files: Files) -> list[EpochEntry]:
    """Return the entries of a `leader-epoch-checkpoint`; none where something is wrong with it."""
    content = parse_epochs(path, files).content
    entries = [] if content is None else content.entries
    return entries if odd_epoch(entries) is None else []


def known_offsets(path: str, files: Files) -> list[TopicPartitionOffset]:
    """Return the entries of a checkpoint of offsets; none where it can't be read."""
    content = parse_offsets(path, files).content
    return [] if content is None else content.entries


def last_offset(entry: ProducerStateEntry) -> int:
    """Return the last offset that an entry of a snapshot names: its snapshot is of a later one."""
    return max(entry.last_offset, entry.current_txn_first_offset or -1)


def topic_id_of(path: str, files: Files) -> str | None:
    """Return the id in a `partition.metadata`; None if it can't be read."""
    try:
        told = read_partition_metadata(read_text_file(files, path), source=path)
    except (OSError, SegproofError):
        return None
    return told.to_bytes().decode("ascii").rpartition(" ")[2]


class KnownOffsets:
    """What the checkpoints of offsets in data directories say, each of them read once.

    Memory: an entry for each line of the checkpoints.
    """

    def __init__(self) -> None:
        self._known: dict[str, Offsets] = {}

    def of(self, directory: str, files: Files) -> Offsets:
        """Return what the checkpoints of a directory say. Raises: ProcessLimitError."""
        if directory not in self._known:
            self.read(directory, OFFSET_CHECKPOINTS, files)
        return self._known[directory]

    def read(
        self, directory: str, names: Iterable[str], files: Files
    ) -> dict[str, Parsed[Entries[TopicPartitionOffset]]]:
        """Read the checkpoints of these names, so that `of` knows them; return each as read."""
        parsed = {name: parse_offsets(posixpath.join(directory, name), files) for name in names}
        found = self._known[directory] = Offsets()
        for name, (content, _) in parsed.items():
            for entry in content.entries if content is not None else ():
                found.setdefault((entry.topic, entry.partition), {})[name] = entry.offset
        return parsed
