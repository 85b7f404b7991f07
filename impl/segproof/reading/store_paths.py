# SPDX-License-Identifier: Apache-2.0
"""What a path is to RocketMQ: a store, a folder of index files, or a single file.

The content of a folder decides what it is: a store has `commitlog`, `index` or `consumequeue` in
it; a folder of index files has files with names of 17 digits.

Laws: RMQDISK-3.
"""

import os
import posixpath
import re
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum

from segproof.files import Files, status_of
from segproof.reading.config_file import CONFIG, config_files_in, is_known_config
from segproof.reading.file_names import NameKind, read_file_name, read_partition_name
from segproof.reading.folder_names import has_folder, names_of
from segproof.reading.store_layouts import dledger_groups, holds_log, layout_around
from segproof.reading.timer_log import TIMER_LOG
from segproof.rocketmq.geometry import index_file_names
from segproof.rocketmq.message import BLANK_MAGIC_BYTES, MESSAGE_MAGICS

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


def place_of(path: str, files: Files) -> Place | None:
    """Return what exactly this path is, or None. Raises: OSError."""
    status = files.status(path)
    if status is None:
        return None
    if status.is_directory:
        return folder_place(path, files.list_directory(path), files)
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


def folder_place(path: str, names: list[str], files: Files) -> Place | None:
    """Return what a folder with these names in it is, or None."""
    name = posixpath.basename(os.path.abspath(path))
    is_partition = read_partition_name(name) is not None and is_of_kafka(names)
    if not is_partition and _is_store(path, names, files):
        return Place(PlaceKind.STORE, path)
    if index_file_names(names) and not is_of_kafka(names):
        return Place(PlaceKind.INDEX_FOLDER, path)
    return None


def is_of_kafka(names: Iterable[str]) -> bool:
    """Return whether a file of a segment of Kafka is among the names."""
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
    return is_of_kafka(names_of(path, files))


def is_rather_kafkas(path: str, files: Files) -> bool:
    """Return whether a directory is one of Kafka's partitions, though one folder is of a store.

    Two of the folders of a store make it a store, and so does one beside its checkpoint.
    Raises: never.
    """
    parts = [name for name in (*PARTS, "checkpoint") if name in names_of(path, files)]
    return len(parts) < 2 and has_partition(path, files)


def regular_size(path: str, files: Files) -> int:
    """Return how many bytes a regular file has; 0 for what is none. Raises: never."""
    status = status_of(files, path)
    return status.size_bytes if status is not None and status.is_regular else 0
