# SPDX-License-Identifier: Apache-2.0
"""Whether a new directory would lie where a broker of Kafka reads: its next start may end there.

Upstream: Kafka 4.4.0: LogManager.loadLogs.
Laws: DISK-47.
"""

import posixpath
from itertools import islice
from typing import Final

from segproof.files import Files, status_of
from segproof.reading.file_names import (
    NameKind,
    is_known_in_data_directory,
    read_file_name,
    read_partition_name,
    starts_with_folder,
)
from segproof.reading.folder_names import names_of

_LOCK: Final = ".lock"
"""Many programs name a file so: alone it says nothing of Kafka."""


def data_directory_around(path: str, files: Files, *, fewest: int = 2) -> str | None:
    """Return the directory of a broker's data that a new directory would lie in; None without one.

    It has a broker's own files or a log, at any level above `path`. Or it has `fewest` partitions,
    and the folder that would be new in it has no name of a partition: one partition alone may be a
    copy in a working directory. Raises: never.
    """
    child = posixpath.realpath(path)
    is_new = True  # whether the child is made with the new directory, or is that
    while (above := posixpath.dirname(child)) != child:
        names = names_of(above, files)
        if any(is_known_in_data_directory(name) and name != _LOCK for name in names):
            return above
        if any(map(_is_log, names)):
            return above
        is_odd = is_new and not starts_with_folder(posixpath.basename(child))
        partitions = (name for name in names if is_odd and _is_partition(above, name, files))
        if len([*islice(partitions, fewest)]) == fewest:
            return above
        is_new = status_of(files, above) is None
        child = above
    return None


def _is_log(name: str) -> bool:
    # Asked of each name above a new place: nearly all end otherwise.
    return name.endswith(".log") and read_file_name(name).kind is NameKind.SEGMENT


def _is_partition(above: str, name: str, files: Files) -> bool:
    """Return whether a name is that of a partition's folder with a log in it."""
    if read_partition_name(name) is None:
        return False
    return any(map(_is_log, names_of(posixpath.join(above, name), files)))
