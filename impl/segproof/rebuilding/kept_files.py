# SPDX-License-Identifier: Apache-2.0
"""Files that are brought to another directory: linked where that is possible, or copied durably.

So do the logs of a partition come into a new directory, and old index files into a backup.
"""

import contextlib
import errno
import os
from collections.abc import Iterable
from contextlib import closing

from segproof.errors import InvalidArgumentError, SegproofError
from segproof.files import File, Files, ReadOnlyFile, SharedFiles
from segproof.reading.equal_files import is_same
from segproof.reading.file_names import is_known_in_data_directory, read_partition_name
from segproof.rebuilding.safe_places import make_directory

COPY_BYTES = 1 << 20
CANNOT_LINK = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}
)
PART = ".part"
"""What the name of a copy in a backup ends with until it is whole and durable."""


def bring(source: str, target: str, files: SharedFiles) -> None:
    """Link a file, or copy it where no link is possible. Raises: SegproofError; OSError."""
    try:
        files.link(source, target)
    except OSError as error:
        if error.errno not in CANNOT_LINK:
            raise
        copy_file(source, target, None, files)


def copy_file(source: str, target: str, size: int | None, files: SharedFiles) -> None:
    """Copy a file, or its first `size` bytes, durably, with its owner, rights and time.

    Raises: SegproofError where it becomes shorter meanwhile; OSError.
    """
    status = files.status(source)
    if status is None:
        raise FileNotFoundError(errno.ENOENT, "no such file", source)
    with (
        closing(files.open(source)) as old,
        closing(files.open(target, writable=True, create=True)) as new,
    ):
        copy_with_holes(old, status.size_bytes if size is None else size, new)
        new.sync()
    with contextlib.suppress(PermissionError):
        files.take_access(target, source)
    # Retention goes by it where a log has no timestamps.
    files.set_modified(target, status.modified_ns)


def copy_with_holes(old: ReadOnlyFile, size: int, new: File) -> None:
    """Copy the first bytes of a file to an empty one, in which its holes take no room either.

    Raises: SegproofError where the file ends before; OSError.
    """
    for start, end in old.data_ranges(0, size):
        copy_bytes(old, start, end, new, start)
    if old.size() < size:
        raise _became_shorter(old.path, old.size())
    if new.size() < size:
        new.truncate(size)


def copy_bytes(old: ReadOnlyFile, start: int, end: int, new: File, position: int) -> None:
    """Copy the bytes [start, end) of a file to a position of another one.

    Raises: SegproofError where the file ends before; OSError.
    """
    buffer = memoryview(bytearray(min(COPY_BYTES, end - start)))
    while start < end:
        count = old.pread_into(buffer[: end - start], start)
        if not count:
            raise _became_shorter(old.path, start)
        new.pwrite(buffer[:count], position)
        start, position = start + count, position + count


def _became_shorter(path: str, position: int) -> SegproofError:
    return SegproofError(
        "the file became shorter while it was copied",
        path=path,
        position=position,
        hint="stop the broker that is at work here",
    )


# --- backups


def check_backup(place: str, backup: str, files: Files) -> None:
    """Return if a broker does not find the backup of a partition or a data directory.

    Raises: InvalidArgumentError.
    """
    old, new = os.path.realpath(place), os.path.realpath(backup)
    if os.path.commonpath((old, new)) in (old, new):
        raise InvalidArgumentError(
            f"{backup} and {place} lie in each other", hint="give a backup outside of the data"
        )
    above, name = os.path.split(old)
    is_inside = read_partition_name(name) is not None and os.path.commonpath((above, new)) == above
    if is_inside and any(map(is_known_in_data_directory, files.list_directory(above))):
        raise InvalidArgumentError(
            f"{backup} lies in the data directory {above}: a broker takes it for a partition, and"
            " its start fails",
            hint="give a directory outside of it",
        )


def backup_of(path: str, backup: str) -> str:
    """Return where an old file goes: its whole path, below the directory of the backup."""
    return os.path.join(backup, os.path.realpath(path).lstrip(os.sep))


def keep_old_files(olds: Iterable[tuple[str, str]], backup: str, files: SharedFiles) -> None:
    """Bring each old file to its path in the backup, durably; nothing there is replaced.

    A link keeps the old file when another one takes its name. What an earlier run, which was ended,
    has kept of the same file stays. Raises: FileExistsError where another file is; OSError.
    """
    folders: set[str] = set()
    for old, kept in olds:
        folder = os.path.dirname(kept)
        folders |= make_directory(folder, backup, files)
        if files.status(kept) is not None:
            if not is_same(old, kept, files):
                words = "the backup has another file of this name; give a new directory"
                raise FileExistsError(errno.EEXIST, words, kept)
            continue
        files.remove(kept + PART)
        bring(old, kept + PART, files)
        files.rename(kept + PART, kept)
    for folder in sorted(folders, reverse=True):
        files.sync_directory(folder)
