# SPDX-License-Identifier: Apache-2.0
"""Whether partitions lie in a directory, although files of a segment lie in it too.

One stray file decides nothing: a log that somebody put beside the partitions would hide them all.
"""

import posixpath
import re
from collections.abc import Collection, Iterable

from segproof.files import Files
from segproof.reading.file_names import (
    EPOCHS,
    METADATA,
    NameKind,
    is_index_cache,
    is_known_in_data_directory,
    is_of_redpanda,
    partition_of,
    read_file_name,
    read_partition_name,
    read_remote_name,
)
from segproof.reading.folder_names import has_folder, names_of

OF_PARTITION = frozenset({EPOCHS, METADATA})
"""Files that a broker writes into each partition, and beside none."""
_WAITING = re.compile(r"\.(deleted|cleaned|swap)$")
STRAY = "a file of a segment in a directory of partitions, in no partition: no broker reads it"


def is_stray_beside(name: str) -> bool:
    """Return whether a file of this name belongs into a partition, or into another layout."""
    kind = read_file_name(_WAITING.sub("", name)).kind
    is_of_segment = kind in (NameKind.SEGMENT, NameKind.MISNAMED)
    return is_of_segment or is_of_redpanda(name) or read_remote_name(name) is not None


def holds_partitions(path: str, names: Collection[str], files: Files) -> bool:
    """Return whether folders named TOPIC-N in a directory are partitions, whatever lies beside.

    A partition may have such a folder too, that somebody put there. A directory that is named like
    a partition (`kafka-logs-1`) is none if a broker's own files lie in it. Without these it is a
    partition if it is one as a broker writes them (`_is_whole`); if it has a log alone, unless
    there is such a partition below it. Raises: never.
    """
    if is_index_cache(path):
        return False
    below = [name for name in names if read_partition_name(name) is not None]
    if not any(has_folder(path, name, files) for name in below):
        return False
    own = partition_of(path)
    if own is None or any(map(is_known_in_data_directory, names)):
        return True
    if _is_whole(names):
        return False
    has_log = any(name.endswith(".log") for name in _segments_in(names))
    folders = (names_of(posixpath.join(path, name), files) for name in below)
    return not has_log or any(map(_is_whole, folders))


def _is_whole(names: Collection[str]) -> bool:
    """Return whether files are those of a partition as a broker writes them.

    It writes an index beside each log, and newer releases two more files into each partition.
    """
    segments = _segments_in(names)
    logs = (name.removesuffix(".log") for name in segments if name.endswith(".log"))
    return any(f"{log}.index" in segments for log in logs) or not OF_PARTITION.isdisjoint(names)


def _segments_in(names: Iterable[str]) -> set[str]:
    """Return the names that are files of a segment, or will be, without the suffix of waiting."""
    bare = (_WAITING.sub("", name) for name in names)
    return {name for name in bare if read_file_name(name).kind is NameKind.SEGMENT}
