# SPDX-License-Identifier: Apache-2.0
"""What lies beside partitions and belongs into none: files of segments, and folders of a log."""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

from segproof.files import Files
from segproof.reading.directory_kinds import is_stray_beside
from segproof.reading.file_contents import is_from_fsck
from segproof.reading.file_names import (
    NameKind,
    is_known_in_data_directory,
    is_of_salvage,
    read_file_name,
)
from segproof.reading.store_layouts import holds_log

LOST_AND_FOUND = "lost+found"
"""The folder at the root of a file system; only the superuser can list it."""
_NUMBERED = re.compile(r"[0-9]{17}|[0-9]{20}", re.ASCII)
"""A name of RocketMQ's."""
ASKED_MAX = 1000
"""At most this many files of a folder are recognised by their content."""


@dataclass(frozen=True, slots=True)
class Strays:
    """The names beside partitions that belong into one, or into another layout."""

    names: frozenset[str]
    loose: tuple[tuple[int, str], ...]
    """Base offsets and names of the files of segments among them, in order."""
    small: tuple[str, ...]
    """Names of the small files of a partition that lie beside several such files, with a log."""

    @property
    def logs(self) -> list[str]:
        """The names of the logs, in order of their offsets."""
        return [name for _, name in self.loose if name.endswith(".log")]

    @property
    def together(self) -> list[str]:
        """Names of files that are likely of one partition without its folder."""
        is_set = bool(self.logs) and len(self.loose) > 1
        return [*(name for _, name in self.loose), *self.small] if is_set else []


def strays_in(names: Iterable[str]) -> Strays:
    """Return the strays among the names in a directory of partitions."""
    names = list(names)
    strays = {name for name in names if is_stray_beside(name)}
    kinds = {name: read_file_name(name) for name in strays}
    loose = sorted(
        (known.base_offset, name)
        for name, known in kinds.items()
        if known.kind in (NameKind.SEGMENT, NameKind.MISNAMED)
    )
    has_log = any(name.endswith(".log") for _, name in loose)
    small = [name for name in names if has_log and len(loose) > 1 and _is_small(name)]
    return Strays(frozenset({*strays, *small}), tuple(loose), tuple(small))


def _is_small(name: str) -> bool:
    """Return whether a file is one of a partition, and of no segment."""
    is_own = read_file_name(name).kind is NameKind.KNOWN
    return is_own and not is_known_in_data_directory(name)


def is_log_directory(names: Iterable[str]) -> bool:
    """Return whether a broker's own files are among the names: a start reads such a directory."""
    return any(map(is_known_in_data_directory, names))


def is_named_by_its_owner(name: str) -> bool:
    """Return whether a salvage or RocketMQ gives files of this name theirs."""
    return is_of_salvage(name) or _NUMBERED.fullmatch(name) is not None


def is_found_log(directory: str, name: str, files: Files) -> bool:
    """Return whether a folder that a file system check found holds a commit log. Raises: never.

    No store has such a folder.
    """
    is_of_fsck = posixpath.basename(posixpath.abspath(directory)) == LOST_AND_FOUND
    if is_named_by_its_owner(name) or not (is_of_fsck or is_from_fsck(name)):
        return False
    return is_log_folder(posixpath.join(directory, name), files)


def is_log_folder(path: str, files: Files) -> bool:
    """Return whether files of a commit log are in a folder. Raises: never."""
    try:
        return holds_log(path, files)
    except OSError:
        return False
