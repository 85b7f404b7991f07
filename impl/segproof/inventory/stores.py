# SPDX-License-Identifier: Apache-2.0
"""The stores, folders of index files and single files of RocketMQ at or below a path.

Links are followed, each folder is looked into once, and partitions of Kafka are passed over.

Laws: RMQDISK-3.
"""

import posixpath
from collections.abc import Iterator

from segproof.files import Files
from segproof.inventory.walk import LEVELS_MAX, NotListed, PassedOver
from segproof.reading.directory_kinds import holds_partitions
from segproof.reading.file_names import read_partition_name
from segproof.reading.folder_names import names_of
from segproof.reading.store_paths import (
    Place,
    PlaceKind,
    folder_place,
    is_of_kafka,
    place_of,
    regular_size,
)


def take_stores(path: str, files: Files) -> Iterator[Place | NotListed | PassedOver]:
    """Yield what lies at or below a path, in the order of the names, and what can't be looked into.

    Raises: OSError where `path` itself can't be read.
    """
    status = files.status(path)
    if status is None:
        return
    if status.is_directory:
        yield from _below(path, files.list_directory(path), files, 0, {status.identity})
    elif (found := place_of(path, files)) is not None:
        yield found


def find_places(path: str, files: Files) -> list[Place]:
    """Return the places at or below a path. Raises: OSError where `path` itself can't be read."""
    return [one for one in take_stores(path, files) if isinstance(one, Place)]


def _below(
    path: str, names: list[str], files: Files, level: int, seen: set[tuple[int, int]]
) -> Iterator[Place | NotListed | PassedOver]:
    """Yield what lies in a folder that was not looked into before."""
    found = folder_place(path, names, files)
    if found is not None:
        yield found
        return
    if is_of_kafka(names) and not holds_partitions(path, names, files):
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
                yield PassedOver(full, None, None)
                continue
            inner = files.list_directory(full)
        except OSError as error:
            yield NotListed(full, path, error, is_folder=True)
            continue
        yield from _below(full, inner, files, level + 1, seen)


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
