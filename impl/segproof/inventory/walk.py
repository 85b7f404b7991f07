# SPDX-License-Identifier: Apache-2.0
"""One walk over what lies at or below a path: partitions, other directories, what was not listed.

A directory is what its content says: one with files of segments is a partition, one with partitions
or a broker's own files a data directory; others are searched, a bounded number of levels deep.

Links are followed, since a broker follows them, and each directory is looked into once. Nothing is
judged: what is odd is a value too.

Upstream: Kafka 4.3.1: LogManager, LogLoader.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from segproof.counts import plural
from segproof.files import LINK_TO_NOTHING, Files, FileStatus, LinkOutError, check_limits
from segproof.inventory.loose import (
    LOST_AND_FOUND,
    Strays,
    is_found_log,
    is_log_directory,
    strays_in,
)
from segproof.inventory.partitions import Partition, remote_partition, whole_partition
from segproof.inventory.remote_segments import remote_segments
from segproof.inventory.segment_listing import (
    kinds_of,
    misnamed_log,
    parent_of,
    segments_of,
    waiting_segment,
)
from segproof.inventory.small_files import Entries, KnownOffsets, Offsets, Parsed
from segproof.kafka.checkpoint_file import TopicPartitionOffset
from segproof.reading.directory_kinds import holds_partitions
from segproof.reading.file_names import (
    EPOCHS,
    OFFSET_CHECKPOINTS,
    REMOTE_INDEX_CACHE,
    FileName,
    NameKind,
    holds_remote_segments,
    is_known_in_data_directory,
    is_of_redpanda,
    partition_of,
    read_file_name,
    read_partition_name,
    read_remote_name,
)
from segproof.reading.folder_names import KnownFolders
from segproof.reading.live_writer import STEP_PAUSES_SECONDS, wait_for_a_step
from segproof.reading.unfinished import VERBS
from segproof.reading.unread_places import DATABASE, REDPANDA_WORDS, is_database

LEVELS_MAX = 16
_REDPANDA_LEVELS = 3
_join = posixpath.join
TOO_DEEP = f"it lies more than {LEVELS_MAX} levels below the path, and is not looked into"


@dataclass(frozen=True, slots=True)
class Listed:
    """A folder with segments, or one of a partition that has none."""

    partition: Partition
    kinds: Mapping[str, FileName]
    """What each name in it stands for."""
    is_remote: bool = False
    """Whether its segments are in tiered storage."""


@dataclass(frozen=True, slots=True)
class OneFile:
    """A file that was given by itself."""

    path: str
    names: tuple[str, ...]
    """The names beside it, and its own."""
    partition: Partition | None
    """With the segment that it belongs to; None for a file of no segment."""


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """A directory that is no partition; what lies in it follows, and `DirectoryEnd` after that."""

    path: str
    names: tuple[str, ...]
    checkpoints: Mapping[str, Parsed[Entries[TopicPartitionOffset]]]
    """Its checkpoints of offsets, as far as they are there, by name."""
    absent: Mapping[str, Mapping[str, int]]
    """What they say of partitions that have no folder in it: by TOPIC-N, then by checkpoint."""
    strays: Strays


@dataclass(frozen=True, slots=True)
class DirectoryEnd:
    """The end of a `DataDirectory`; the empty folders of partitions in it follow as `Listed`."""

    path: str
    is_kafkas: bool
    """Whether something of Kafka's is in it or below it."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder in a data directory, before it is looked into."""

    path: str
    above: str
    status: FileStatus


@dataclass(frozen=True, slots=True)
class Other:
    """What is neither a partition nor a broker's own file."""

    path: str
    above: str
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A folder that is not looked into: it was met before, or lies too deep."""

    path: str
    earlier: str | None
    """The path by which it was met; None: it lies more than LEVELS_MAX levels deep."""
    partition: Partition | None
    """Without segments; None for a folder that is not named like a partition."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The folder of a partition that a broker deletes."""

    path: str
    above: str


@dataclass(frozen=True, slots=True)
class DeadLink:
    """A link to nothing, under a name that is not that of a partition."""

    path: str
    above: str


@dataclass(frozen=True, slots=True)
class Vanished:
    """A folder that was removed while its directory was read."""

    path: str


@dataclass(frozen=True, slots=True)
class NotListed:
    """What can't be looked at: partitions may be in it."""

    path: str
    above: str
    error: OSError
    is_folder: bool
    """False: not even that is known."""

    @property
    def may_hide_partitions(self) -> bool:
        """Whether a broker may read it: it is not lost+found, and no link out of its folder."""
        is_usual = posixpath.basename(self.path) == LOST_AND_FOUND and self.is_folder
        return not is_usual and not isinstance(self.error, LinkOutError)

    @property
    def words(self) -> str:
        """Why, in words."""
        return f"it cannot be read: {self.error.strerror or self.error}"


@dataclass(frozen=True, slots=True)
class Layout:
    """A folder of a layout that is not read: a database of RocksDB, or a directory of Redpanda."""

    path: str
    places: int = 0
    """How many folders of partitions of Redpanda lie in it; 0 for a database."""

    @property
    def words(self) -> str:
        """What it is, in words."""
        if not self.places:
            return DATABASE
        return f"the layout of Redpanda, in {plural(self.places, 'place')}: {REDPANDA_WORDS}"


Item = (
    Listed | OneFile | DataDirectory | DirectoryEnd | Folder | Other | PassedOver | Deleted
    | DeadLink | Vanished | NotListed | Layout
)  # fmt: skip


def take_inventory(
    path: str, files: Files, offsets: KnownOffsets | None = None, *, with_segments: bool = True
) -> Iterator[Item]:
    """Yield what lies at or below a path, by the names; layouts that are not read come last.

    `offsets` gets to know what the checkpoints say that are met. Without segments, a partition has
    its names only, and no log is opened: each is opened to tell its segment. Memory: the names of
    the directories above the present one. Raises: OSError where `path` itself can't be read.
    """
    status = files.status(path)
    if status is None:
        raise FileNotFoundError(2, "no such file or directory", path)
    if not status.is_directory:
        yield _one_file(path, files)
        return
    walk = _Walk(files, KnownFolders(files), path, offsets or KnownOffsets(), with_segments)
    walk.enter(path, status)
    names = files.list_directory(path)
    for pause in STEP_PAUSES_SECONDS:
        # A log that begins, or begins again, has no segment for a moment.
        if not has_traces_only(names) or not wait_for_a_step([path], files, pause):
            break
        names = files.list_directory(path)
    yield from walk.directory(path, names, 0)
    yield from _layouts(walk.databases, walk.of_redpanda, path)


def partition_in(item: Item) -> Partition | None:
    """Return the partition of an item."""
    return item.partition if isinstance(item, Listed | OneFile | PassedOver) else None


def unread_words(item: NotListed | Layout) -> str | None:
    """Return why no partition of an item is known, though some may be in it; None for others."""
    if isinstance(item, NotListed):
        return item.words if item.may_hide_partitions else None
    return item.words if item.places else None


def absent_in(names: Iterable[str], offsets: Offsets) -> dict[str, dict[str, int]]:
    """Return what checkpoints say of the partitions that have no folder, by TOPIC-N.

    `names` are those in their data directory.
    """
    known = (read_partition_name(name) for name in names)
    there = {(each.topic, each.partition) for each in known if each is not None}
    return {
        f"{topic}-{partition}": told
        for (topic, partition), told in offsets.items()
        if (topic, partition) not in there
    }


def has_traces_only(names: Iterable[str]) -> bool:
    """Return whether there are files of a partition and no segment."""
    names = set(names)
    kinds = {read_file_name(name).kind for name in names}
    has_traces = NameKind.PENDING in kinds or EPOCHS in names
    return NameKind.SEGMENT not in kinds and has_traces


def _one_file(path: str, files: Files) -> OneFile:
    directory, name = posixpath.split(path)
    directory = directory or "."
    try:
        names = files.list_directory(directory)
    except OSError:
        names = [name]
    known, remote = read_file_name(name), read_remote_name(name)
    if remote is not None and not remote.passing and holds_remote_segments(directory, names):
        found = [
            one
            for one in remote_segments(directory, names, frozenset((remote.suffix,)))
            if one.stem == remote.stem and remote.suffix in one.suffixes
        ]
    elif known.kind is NameKind.SEGMENT:
        kinds, judged = kinds_of(names), frozenset((known.suffix,))
        found = [
            one
            for one in segments_of(directory, kinds, files, judged)
            if one.base_offset == known.base_offset
        ]
    else:
        found = waiting_segment(directory, name, known, names, files)
        if known.kind in (NameKind.MISNAMED, NameKind.NO_OFFSET):
            found = misnamed_log(directory, name, known, names, files)
    return OneFile(path, tuple(names), Partition(directory, tuple(found)) if found else None)


def _layouts(databases: list[str], of_redpanda: list[str], root: str) -> Iterator[Layout]:
    """Yield the folders of other layouts.

    The path of a partition of Redpanda is DATA/NAMESPACE/TOPIC/NUMBER_REVISION.
    """
    yield from map(Layout, databases)
    told: dict[str, int] = {}
    for data in of_redpanda:
        for _ in range(_REDPANDA_LEVELS):
            if data.rstrip("/") != root.rstrip("/"):
                data = posixpath.dirname(data.rstrip("/")) or "."
        told[data] = told.get(data, 0) + 1
    yield from (Layout(data, count) for data, count in told.items())


@dataclass(slots=True)
class _Walk:
    files: Files
    folders: KnownFolders
    root: str
    offsets: KnownOffsets
    with_segments: bool
    seen: dict[tuple[int, int], str] = field(default_factory=dict)
    """The directories that were looked into, by identity."""
    databases: list[str] = field(default_factory=list)
    of_redpanda: list[str] = field(default_factory=list)

    def enter(self, path: str, status: FileStatus) -> None:
        """Know a directory again, where the system tells it from others."""
        if status.identity[1] > 0:
            self.seen[status.identity] = path

    def directory(self, path: str, names: list[str], level: int) -> Iterator[Item]:
        """Yield what one directory is, and what lies in it."""
        files = self.files
        if holds_partitions(path, names, files):
            yield from self._data_directory(path, names, level)
            return
        if is_database(path, names, files):
            self.databases.append(path)
            return
        if any(map(is_of_redpanda, names)):
            self.of_redpanda.append(path)
            return
        kinds = kinds_of(names)
        has_segments = any(known.kind is NameKind.SEGMENT for known in kinds.values())
        has_traces = any(known.kind is not NameKind.FOREIGN for known in kinds.values())
        if has_segments or (has_traces and partition_of(path) is not None):
            yield Listed(self._partition(path, kinds), kinds)
        elif holds_remote_segments(path, names):
            there = Partition(path, ())
            if self.with_segments:
                there = remote_partition(path, names, files)
            yield Listed(there, kinds, is_remote=True)
        else:
            yield from self._data_directory(path, names, level)

    def _partition(self, path: str, kinds: Mapping[str, FileName]) -> Partition:
        if not self.with_segments:
            return Partition(path, ())
        return whole_partition(path, kinds, self.files, self.offsets)

    def _data_directory(self, path: str, names: list[str], level: int) -> Iterator[Item]:
        kept = [name for name in OFFSET_CHECKPOINTS if name in names]
        own = parent_of(_join(path, "partition"))
        checkpoints = self.offsets.read(own, kept, self.files)
        absent, strays = absent_in(names, self.offsets.of(own, self.files)), strays_in(names)
        yield DataDirectory(path, tuple(names), checkpoints, absent, strays)
        is_kafkas = is_log_directory(names) or REMOTE_INDEX_CACHE in names
        empty: list[str] = []
        for name in names:
            status = self._status(path, name)
            if isinstance(status, NotListed | DeadLink):
                yield status
                continue
            if status is None or name in strays.names or is_known_in_data_directory(name):
                continue
            if name in VERBS:
                continue
            full = _join(path, name)
            if not status.is_directory:
                yield Other(full, path)
            elif not is_found_log(path, name, self.files):
                yield Folder(full, path, status)
                for item in self._folder(full, path, status, level, empty):
                    is_deleted = isinstance(item, Deleted) and item.path == full
                    is_kafkas = is_kafkas or is_deleted or partition_in(item) is not None
                    yield item
        yield DirectoryEnd(path, is_kafkas)
        for bare in empty if is_kafkas else ():
            yield Listed(self._partition(bare, {}), {})

    def _folder(
        self, path: str, above: str, status: FileStatus, level: int, empty: list[str]
    ) -> Iterator[Item]:
        """Yield what a folder in a data directory is; `empty` gets an empty one of a partition."""
        partition = read_partition_name(posixpath.basename(path))
        earlier = self.seen.get(status.identity)
        if earlier is not None or level >= LEVELS_MAX:
            yield PassedOver(path, earlier, None if partition is None else Partition(path, ()))
            return
        self.enter(path, status)
        if partition is not None and partition.state == "delete":
            yield Deleted(path, above)
            return
        try:
            names = self.files.list_directory(path)
        except FileNotFoundError:
            yield Vanished(path)
            return
        except OSError as error:
            check_limits(error)
            yield NotListed(path, above, error, is_folder=True)
            return
        found, layouts = False, len(self.databases) + len(self.of_redpanda)
        for item in self.directory(path, names, level + 1):
            found = found or partition_in(item) is not None
            yield item
        if found or len(self.databases) + len(self.of_redpanda) > layouts:
            return
        if partition is not None and not names:
            empty.append(path)
        elif not is_log_directory(names):
            yield Other(path, above, is_folder=True)

    def _status(self, directory: str, name: str) -> FileStatus | NotListed | DeadLink | None:
        """Return the status of a listed name, or why it has none; None: it is gone."""
        full = _join(directory, name)
        try:
            status = self.files.status(full)
            # What the broker has removed meanwhile is no longer listed.
            if status is None and name in self.folders.of(directory).kinds:
                if read_partition_name(name) is None:
                    return DeadLink(full, directory)
                raise FileNotFoundError(2, LINK_TO_NOTHING)
        except OSError as error:
            check_limits(error)
            return NotListed(full, directory, error, is_folder=False)
        return status
