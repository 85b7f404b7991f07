# SPDX-License-Identifier: Apache-2.0
"""Where the commands that findings and errors print make new files."""

import posixpath
from functools import lru_cache
from itertools import chain, count
from zlib import crc32

from segproof.files import REAL_FILES, status_of
from segproof.reading.data_places import data_directory_around


def new_place(name: str, place: str) -> str:
    """Return the path of a directory that is not there, for new files made of those at `place`.

    It lies in the working directory; above what is damaged, and above a directory of partitions,
    where a broker refuses odd names, if the working directory is there.
    """
    try:
        here = folder = posixpath.realpath(".")
    except OSError:  # the working directory was removed
        return name
    damaged = posixpath.realpath(place)
    if posixpath.commonpath((damaged, folder)) == damaged:
        folder = posixpath.dirname(damaged)
    while (around := _around(f"{folder}/{name}", _seen(folder))) is not None:
        folder = posixpath.dirname(around)
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    paths = (posixpath.join(folder, one) for one in names)
    free = next(one for one in paths if status_of(REAL_FILES, one) is None)
    return posixpath.relpath(free, here)


def own_place(name: str, place: str, *sources: str) -> str:
    """Return a directory below `new_place` that belongs to the copies of these sources alone.

    So commands that one run prints write into one place only if they copy the same. The name of the
    directory has no dash: it is never taken for that of a partition.
    """
    paths = "\0".join(_absolute(one) for one in sources)
    label = f"{crc32(paths.encode('utf-8', 'surrogatepass')):08x}"
    return posixpath.join(new_place(name, place), label)


def _absolute(path: str) -> str:
    try:
        return posixpath.abspath(path)
    except OSError:  # the working directory was removed
        return posixpath.normpath(path)


def _seen(folder: str) -> tuple[object, ...]:
    """Return which folders a folder and all above it are, and when each was changed."""
    above = [folder]
    while (upper := posixpath.dirname(above[-1])) != above[-1]:
        above.append(upper)
    states = (status_of(REAL_FILES, one) for one in above)
    return tuple(None if one is None else (one.identity, one.modified_ns) for one in states)


@lru_cache(maxsize=64)
def _around(path: str, _: tuple[object, ...]) -> str | None:
    """Return the broker's directory around a new place; folders that stay are listed once.

    Each finding asks, and the working directory may have thousands of names.
    """
    return data_directory_around(path, REAL_FILES, fewest=1)
