# SPDX-License-Identifier: Apache-2.0
"""Find the stores, folders of index files and single files of RocketMQ at or below a path.

The content of a folder decides what it is: a store has `commitlog`, `index` or `consumequeue` in
it; a folder of index files has files with names of 17 digits. Links are followed, each folder is
looked into once, and partitions of Kafka are passed over.

Laws: RMQDISK-3.
"""

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum

from segproof.files import Files, status_of
from segproof.reading.config_file import CONFIG, config_files_in, is_known_config
from segproof.reading.directory_kinds import holds_partitions
from segproof.reading.file_names import NameKind, read_file_name, read_partition_name
from segproof.reading.folder_names import has_folder, names_of
from segproof.reading.store_layouts import dledger_groups, holds_log, layout_around
from segproof.reading.timer_log import TIMER_LOG
from segproof.rocketmq.geometry import index_file_names
from segproof.rocketmq.message import BLANK_MAGIC_BYTES, MESSAGE_MAGICS

LEVELS_MAX = 16
TOO_DEEP = f"it lies more than {LEVELS_MAX} levels below the path, and is not looked into"
Tell = Callable[[str, str], None]
"""Takes the path of a folder, and why it is not looked into."""
LOG_NAME = re.compile(r"[0-9]{20}", re.ASCII)
PARTS = ("commitlog", "index", "consumequeue")
PART_LEVELS = 3
"""A queue of a store lies at consumequeue/TOPIC/QUEUE."""
PART_WORDS = {
    "commitlog": "the commit log",
    "consumequeue": "the folder of the queues",
    CONFIG: "the folder of topics and offsets",
    TIMER_LOG: "the timer log",
}
OF_NO_STORE = (
    "files of a commit log of RocketMQ are here, and no store has them: give a directory in which"
    " this one has the name commitlog"
)
GUESS_FILE = "segproof-index.guessed"
"""The file in a store that says that slots and entries of its index are a guess of ours."""


class PlaceKind(StrEnum):
    """What a path is."""

    STORE = "store"
    INDEX_FOLDER = "index folder"
    INDEX_FILE = "index file"
    LOG_FILE = "commit-log file"
    QUEUE_FILE = "consume-queue file"
    CHECKPOINT = "store checkpoint"
    CONFIG_FILE = "config file"


@dataclass(frozen=True, slots=True)
class Place:
    """One thing of RocketMQ's. Small and plain: it travels to processes."""

    kind: PlaceKind
    path: str
    size_bytes: int = 0
    """Bytes that will be read, as far as known; for progress only."""

    @property
    def directory(self) -> str:
        """What it is ordered by among others."""
        return self.path


def find_places(path: str, files: Files, tell: Tell | None = None) -> list[Place]:
    """Return what lies at or below a path, in the order of the names; empty if nothing.

    A folder that is not looked into is told to `tell`, with the reason.
    Raises: OSError where `path` itself can't be read.
    """
    status = files.status(path)
    if status is None:
        return []
    if not status.is_directory:
        found = place_of(path, files)
        return [] if found is None else [found]
    return list(_below(path, files.list_directory(path), files, 0, {status.identity}, tell))


def place_of(path: str, files: Files) -> Place | None:
    """Return what exactly this path is, or None. Raises: OSError."""
    status = files.status(path)
    if status is None:
        return None
    if status.is_directory:
        return _folder(path, files.list_directory(path), files)
    folder, name = posixpath.split(posixpath.normpath(path))
    if index_file_names([name]):
        return Place(PlaceKind.INDEX_FILE, path)
    if LOG_NAME.fullmatch(name):
        return Place(_kind_of_log(path, files), path)
    if name == "checkpoint" and is_store_folder(folder or ".", files):
        return Place(PlaceKind.CHECKPOINT, path)
    return None


def config_place_of(path: str, files: Files) -> Place | None:
    """Return the place of a single file of `config`: by its name, or by the store around it."""
    folder, name = posixpath.split(os.path.abspath(path))
    above, own = posixpath.split(folder)
    is_config = is_known_config(name)
    if not is_config and own == CONFIG and config_files_in([name]):
        is_config = is_store_folder(above, files)
    status = status_of(files, path) if is_config else None
    return Place(PlaceKind.CONFIG_FILE, path) if status and not status.is_directory else None


def _kind_of_log(path: str, files: Files) -> PlaceKind:
    """Return what a file of 20 digits is: by its folders, else by its first bytes."""
    parts = os.path.abspath(path).split(os.sep)
    if "consumequeue" in parts[-4:]:
        return PlaceKind.QUEUE_FILE
    if "commitlog" in parts[-2:]:
        return PlaceKind.LOG_FILE
    with closing(files.open(path)) as file:
        magic = file.pread(4, 4)
    return (
        PlaceKind.LOG_FILE
        if magic in (*MESSAGE_MAGICS, BLANK_MAGIC_BYTES)
        else PlaceKind.QUEUE_FILE
    )


def part_of_store(path: str, files: Files) -> str | None:
    """Return in words of which store a folder is a part; None if it is a part of none.

    A folder of a log has its words too, where it is beside no store. Raises: OSError.
    """
    below = os.path.abspath(path)
    for _ in range(PART_LEVELS):
        above, name = posixpath.split(below)
        if name in (*PARTS, *PART_WORDS) and is_store_folder(above, files):
            what = PART_WORDS.get(name, "a part") if below == os.path.abspath(path) else "a part"
            return f"this is {what} of a store of RocketMQ: give the path of the store, {above}"
        below = above
    if not holds_log(path, files):
        return None
    layout = layout_around(path, files)
    return OF_NO_STORE if layout is None else f"a part of a store of RocketMQ: {layout.words}"


def is_store_folder(path: str, files: Files) -> bool:
    """Return whether a path is a folder that is a store. Raises: never."""
    try:
        return _is_store(path, files.list_directory(path), files)
    except OSError:
        return False


def _is_store(path: str, names: list[str], files: Files) -> bool:
    """Return whether a folder is a store; one named `index` alone must hold an index file."""
    if dledger_groups(path, files):
        return True
    there = [name for name in PARTS if name in names and has_folder(path, name, files)]
    if there != ["index"]:
        return bool(there)
    if "checkpoint" in names:
        return True
    try:
        return bool(index_file_names(files.list_directory(posixpath.join(path, "index"))))
    except OSError:
        return False


def _folder(path: str, names: list[str], files: Files) -> Place | None:
    name = posixpath.basename(os.path.abspath(path))
    is_partition = read_partition_name(name) is not None and _is_of_kafka(names)
    if not is_partition and _is_store(path, names, files):
        return Place(PlaceKind.STORE, path)
    if index_file_names(names) and not _is_of_kafka(names):
        return Place(PlaceKind.INDEX_FOLDER, path)
    return None


def _is_of_kafka(names: Iterable[str]) -> bool:
    return any(read_file_name(name).kind is NameKind.SEGMENT for name in names)


def has_partition(path: str, files: Files) -> bool:
    """Return whether a folder TOPIC-N with a file of a segment is in a directory. Raises: never."""
    return any(is_partition(posixpath.join(path, name), files) for name in names_of(path, files))


def is_partition(path: str, files: Files) -> bool:
    """Return whether a folder is named TOPIC-N and has a file of a segment. Raises: never."""
    is_named = read_partition_name(posixpath.basename(path)) is not None
    return is_named and holds_segments(path, files)


def holds_segments(path: str, files: Files) -> bool:
    """Return whether a file of a segment of Kafka is in a folder. Raises: never."""
    return _is_of_kafka(names_of(path, files))


def is_rather_kafkas(path: str, files: Files) -> bool:
    """Return whether a directory is one of Kafka's partitions, though one folder is of a store.

    Two of the folders of a store make it a store, and so does one beside its checkpoint.
    Raises: never.
    """
    parts = [name for name in (*PARTS, "checkpoint") if name in names_of(path, files)]
    return len(parts) < 2 and has_partition(path, files)


def _below(
    path: str,
    names: list[str],
    files: Files,
    level: int,
    seen: set[tuple[int, int]],
    tell: Tell | None,
) -> Iterator[Place]:
    """Yield the places in a folder that was not looked into before."""
    found = _folder(path, names, files)
    if found is not None:
        yield found
        return
    if _is_of_kafka(names) and not holds_partitions(path, names, files):
        return
    for name in names:
        if read_partition_name(name) is not None:
            continue
        full = posixpath.join(path, name)
        try:
            status = files.status(full)
            if status is None or not status.is_directory or status.identity in seen:
                continue
            seen.add(status.identity)
            if level >= LEVELS_MAX:
                if tell is not None:
                    tell(full, TOO_DEEP)
                continue
            inner = files.list_directory(full)
        except OSError as error:
            if tell is not None:  # `verify` tells it by its own walk
                tell(full, f"it cannot be listed: {error.strerror or error}")
            continue
        yield from _below(full, inner, files, level + 1, seen, tell)


def size_of(place: Place, files: Files) -> int:
    """Return about how many bytes a check of a place will read."""
    paths = [place.path]
    if place.kind is PlaceKind.STORE:
        folders = [posixpath.join(place.path, name) for name in ("index", "commitlog")]
        paths = [one for folder in folders for one in _inside(folder, files)]
    elif place.kind is PlaceKind.INDEX_FOLDER:
        paths = _inside(place.path, files)
    return sum(regular_size(path, files) for path in paths)


def _inside(folder: str, files: Files) -> list[str]:
    return [posixpath.join(folder, name) for name in names_of(folder, files)]


def regular_size(path: str, files: Files) -> int:
    """Return how many bytes a regular file has; 0 for what is none. Raises: never."""
    status = status_of(files, path)
    return status.size_bytes if status is not None and status.is_regular else 0
