# SPDX-License-Identifier: Apache-2.0
"""How many slots and entries the files of a new index get, and whether that is a guess.

A broker reads all index files with its own numbers (maxHashSlotNum, maxIndexNum). With others it
finds nothing in them. Where no old index file tells the numbers, RocketMQ's defaults are a guess. A
file in the store then says so, until the index is made with given numbers; no broker reads it.

Upstream: RocketMQ 5.5.1: MessageStoreConfig.maxHashSlotNum, maxIndexNum.
Laws: RMQDISK-44, RMQDISK-51.
"""

import os
from collections.abc import Mapping
from contextlib import closing, suppress
from enum import StrEnum
from typing import NamedTuple

from segproof.errors import InvalidArgumentError, SegproofError
from segproof.files import Files
from segproof.integers import INT32_MAX
from segproof.kernels.rocketmq_index import HEADER_BYTES
from segproof.reading.store_paths import GUESS_FILE
from segproof.rebuilding.index_kinship import files_of_other_log
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.geometry import (
    DEFAULT_GEOMETRY,
    GeometryAnswer,
    find_geometries,
    index_file_names,
)
from segproof.rocketmq.index_service import INDEX
from segproof.rocketmq.index_table import ENTRY_BYTES, SLOT_BYTES, Geometry

WORDS_OF_AN_ENTRY = ENTRY_BYTES // SLOT_BYTES
WORDS_OF_A_SLOT = 4 * WORDS_OF_AN_ENTRY
"""Of its entries, by default."""


class GeometryFrom(StrEnum):
    """What told the slots and entries of a new index."""

    GIVEN = "given"
    """The caller gave both numbers."""
    OLD_INDEX = "old index"
    """The old index files tell the numbers that were not given."""
    AMBIGUOUS = "ambiguous old index"
    """A guess: several pairs fit the old index files, and one of them is taken."""
    GUESSED_INDEX = "guessed old index"
    """A guess: the old index was made with guessed numbers."""
    OTHER_LOG = "index of another log"
    """A guess: the old index is of another log than the one that is here, as of another store."""
    DEFAULT = "default"
    """A guess: RocketMQ's defaults in place of each number that was not given."""


class NewGeometry(NamedTuple):
    """Slots and entries of the files of a new index."""

    geometry: Geometry
    origin: GeometryFrom
    has_old_files: bool
    """Whether there are old index files."""

    @property
    def is_guess(self) -> bool:
        """Whether the broker may have other numbers."""
        return self.origin not in (GeometryFrom.GIVEN, GeometryFrom.OLD_INDEX)


def new_geometry(
    store: str, hash_slot_num: int | None, index_num: int | None, files: Files
) -> NewGeometry:
    """Return slots and entries of a new index of a store; None: a number that is not given.

    What can't be read of the old index tells nothing. Files of another log tell only a guess, and
    nothing beside files of this one.
    """
    folder = os.path.join(store, INDEX)
    names: list[str] = []
    with suppress(OSError):
        names = old_index_names(store, files)
    if hash_slot_num is not None and index_num is not None:
        return NewGeometry(Geometry(hash_slot_num, index_num), GeometryFrom.GIVEN, bool(names))
    old, origin = DEFAULT_GEOMETRY, GeometryFrom.DEFAULT
    with suppress(OSError, SegproofError):
        found = find_geometries(folder, names, hash_slot_num=hash_slot_num, files=files)
        others = _of_other_log(store, found, files)
        own = {name: answer for name, answer in found.items() if name not in others}
        for _, answer in sorted((own or found).items()):
            is_told = answer.origin != "ambiguous"
            if answer.geometry is not None and (is_told or origin is not GeometryFrom.OLD_INDEX):
                old = answer.geometry
                origin = GeometryFrom.OLD_INDEX if is_told else GeometryFrom.AMBIGUOUS
        if origin is GeometryFrom.OLD_INDEX and not own:
            origin = GeometryFrom.OTHER_LOG
        if origin is GeometryFrom.DEFAULT and names:
            like_default = _like_default(os.path.join(folder, names[-1]), files)
            if like_default is not None:
                old, origin = like_default, GeometryFrom.AMBIGUOUS
        if origin is GeometryFrom.OLD_INDEX and files.status(os.path.join(store, GUESS_FILE)):
            origin = GeometryFrom.GUESSED_INDEX
    slots = old.hash_slot_num if hash_slot_num is None else hash_slot_num
    entries = old.index_num if index_num is None else index_num
    return NewGeometry(Geometry(slots, entries), origin, bool(names))


def old_index_names(store: str, files: Files) -> list[str]:
    """Return the names of the old index files, oldest first; of regular files only.

    The length of a folder under such a name would tell slots and entries of no file.
    Raises: OSError.
    """
    folder = os.path.join(store, INDEX)
    status = files.status(folder)
    if status is None or not status.is_directory:
        return []
    found = []
    for name in index_file_names(files.list_directory(folder)):
        one = files.status(os.path.join(folder, name))
        if one is not None and one.is_regular:
            found.append(name)
    return found


def index_of_this_log(store: str, files: Files) -> list[str]:
    """Return the paths of the old index files, in order, without those of another log.

    What can't be read is of no other log.
    """
    folder, names, others = os.path.join(store, INDEX), list[str](), set[str]()
    with suppress(OSError, SegproofError):
        names = old_index_names(store, files)
        others = _of_other_log(store, find_geometries(folder, names, files=files), files)
    return [os.path.join(folder, name) for name in names if name not in others]


def told_geometry(
    store: str, hash_slot_num: int | None, index_num: int | None, files: Files, *, is_moved: bool
) -> NewGeometry:
    """Return slots and entries of a new index, if they are given or told, or if it is the first.

    `is_moved` says that its files leave the store. Raises: InvalidArgumentError where old index
    files do not tell them, and for a guess of what leaves the store.
    """
    least = (1 if hash_slot_num is None else hash_slot_num, 2 if index_num is None else index_num)
    if least[0] < 1 or least[1] < 2:
        raise InvalidArgumentError("an index file has a slot and two entries at least")
    told = new_geometry(store, hash_slot_num, index_num, files)
    if told.has_old_files and told.origin in (GeometryFrom.DEFAULT, GeometryFrom.AMBIGUOUS):
        raise InvalidArgumentError(
            "the old index files do not tell how many slots and entries they have: give"
            " --hash-slots and --index-num (maxHashSlotNum and maxIndexNum of the broker)",
            path=os.path.join(store, INDEX),
        )
    if is_moved:
        _check_told(told, store)
    return told


def _check_told(geometry: NewGeometry, store: str) -> None:
    """Return if slots and entries of index files that leave the store are no guess: nothing beside
    these files could say so. Raises: InvalidArgumentError.
    """
    if geometry.origin is GeometryFrom.OTHER_LOG:
        raise InvalidArgumentError(
            "the old index is of another commit log than the one that is here (RMQDISK-44), and the"
            " broker may have other numbers of slots and entries than it: give --hash-slots and"
            " --index-num (maxHashSlotNum and maxIndexNum of the broker)",
            path=os.path.join(store, INDEX),
        )
    if geometry.is_guess:
        raise InvalidArgumentError(
            "no old index file tells how many slots and entries those of the broker have, and new"
            " ones outside of the store can't say that theirs are a guess: give --hash-slots and"
            f" --index-num (maxHashSlotNum and maxIndexNum of the broker, {DEFAULT_GEOMETRY[0]} and"
            f" {DEFAULT_GEOMETRY[1]} by default)",
            path=os.path.join(store, INDEX),
        )


def _of_other_log(store: str, found: Mapping[str, GeometryAnswer], files: Files) -> set[str]:
    """Return the names of index files of another log; none where the log can't be opened."""
    told = {
        os.path.join(store, INDEX, name): answer.geometry
        for name, answer in found.items()
        if answer.geometry is not None
    }
    others: set[str] = set()
    with suppress(OSError, SegproofError):
        others = files_of_other_log(told, CommitLog.open(store, files=files), files)
    if len(others) == len(told):  # the rest tells nothing by itself
        return set(found) if told else set()
    return {os.path.basename(path) for path in others}


def _like_default(path: str, files: Files) -> Geometry | None:
    """Return the pair that fits the length of a file, with about four entries for each slot.

    So it is by default. A file without entries tells only its length. None where no index file has
    this length. Raises: OSError.
    """
    status = files.status(path)
    size = 0 if status is None else status.size_bytes
    if size > INT32_MAX:
        return None
    words = (size - HEADER_BYTES) // SLOT_BYTES
    slots = words // (WORDS_OF_A_SLOT + 1)
    slots -= (slots - words) % WORDS_OF_AN_ENTRY
    if slots < 1:
        return None
    return Geometry(slots, (words - slots) // WORDS_OF_AN_ENTRY)


def keep_guess(store: str, geometry: Geometry, files: Files) -> None:
    """Write durably into a store that the numbers of its index are a guess. Raises: OSError."""
    path = os.path.join(store, GUESS_FILE)
    words = (
        f"{geometry.hash_slot_num} slots and {geometry.index_num} entries in each index file: a"
        " guess of segproof, since no old index file told the numbers of the broker\n"
    )
    with closing(files.open(path, writable=True, create=True)) as file:
        file.truncate(0)
        file.pwrite(words.encode(), 0)
        file.sync()
    files.sync_directory(store)


def forget_guess(store: str, files: Files) -> None:
    """Remove durably what says that the numbers are a guess. Raises: OSError."""
    path = os.path.join(store, GUESS_FILE)
    if files.status(path) is not None:
        files.remove(path)
        files.sync_directory(store)
