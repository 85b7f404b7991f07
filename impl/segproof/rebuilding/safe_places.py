# SPDX-License-Identifier: Apache-2.0
"""What keeps a rebuild and a salvage safe: locks, new directories, marks.

Upstream: Kafka 4.3.1: LogManager.lockLogDirs. RocketMQ 5.5.1: DefaultMessageStore.lockFile.
"""

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Final

from segproof.errors import InvalidArgumentError, SegproofError
from segproof.files import File, Files, SharedFiles
from segproof.hints import writes
from segproof.reading.data_places import data_directory_around
from segproof.reading.unfinished import (
    MARKER,
    SALVAGE_MARKER,
    Unfinished,
    mark_of,
    partitions_of,
)

IS_FULL: Final = "the directory exists and is not empty; give a new one"


def log_changed(path: str) -> SegproofError:
    """Return the error for a log that is another one than it was."""
    return SegproofError(
        "the log changed while it was read: a broker is at work here",
        path=path,
        hint=writes("stop the broker, or rebuild from a copy or a snapshot of the disk"),
    )


def check_apart(source: str, target: str, beside: str) -> None:
    """Return if neither directory lies in the other one. Raises: InvalidArgumentError."""
    old, new = os.path.realpath(source), os.path.realpath(target)
    if os.path.commonpath((old, new)) in (old, new):
        raise InvalidArgumentError(
            f"{target} and {source} lie in each other",
            hint=f"give a new directory beside the {beside}",
        )


def check_outside(target: str, files: Files) -> None:
    """Return if no data directory of a broker is around a new one. Raises: InvalidArgumentError."""
    around = data_directory_around(target, files)
    if around is not None:
        name = os.path.basename(os.path.realpath(target))
        raise InvalidArgumentError(
            f"{target} lies in {around}, a directory of a broker's data: a start of Kafka ends at a"
            " folder there that is no partition",
            hint=f"give a directory outside of it: {os.path.join(os.path.dirname(around), name)}",
        )


def lock_of(path: str, locked: str, files: SharedFiles) -> File | None:
    """Take the lock that a running broker has; None without the file.

    Raises: SegproofError where a broker has it; PermissionError where it can't be taken.
    """
    if files.status(path) is None:
        return None
    lock = files.lock_file(path)
    if lock is None:
        raise SegproofError(
            f"another process has locked the {locked}: a broker runs here",
            path=path,
            hint=writes("stop the broker, or rebuild into a new directory"),
        )
    return lock


def check_finished(directory: str, mark: Unfinished | None) -> None:
    """Return if a partition or store has no mark of an unfinished output. Raises: SegproofError."""
    if mark is not None:
        raise SegproofError(
            mark.words, path=directory, expected="without " + mark.path, hint=writes(mark.step)
        )


def names_in_new(directory: str, files: Files) -> list[str] | None:
    """Return what lies in a directory that is to be new; None where it is not there.

    Raises: NotADirectoryError.
    """
    status = files.status(directory)
    if status is None:
        return None
    if not status.is_directory:
        raise NotADirectoryError(errno.ENOTDIR, "not a directory", directory)
    return files.list_directory(directory)


def not_empty(path: str, words: str = IS_FULL) -> FileExistsError:
    """Return the error for a directory that is to be new, and holds something else."""
    return FileExistsError(errno.ENOTEMPTY, words, path)


def check_empty(
    directory: str, files: Files, is_kept: Callable[[str], bool] = lambda name: False
) -> None:
    """Return if a directory for what is saved is not there, or is empty.

    `is_kept` says which names may be in it all the same.
    Raises: FileExistsError, NotADirectoryError.
    """
    names = names_in_new(directory, files) or []
    if SALVAGE_MARKER in names:
        path = os.path.join(directory, SALVAGE_MARKER)
        mark = Unfinished(path, "salvage", partitions_of(path, files))
        is_known = mark.partitions is not None
        step = mark.hint(names) if is_known else "move the directory away, and save again"
        words = f"a salvage ended here before it was whole, or is at work: {step}"
        raise not_empty(directory, words)
    if not all(map(is_kept, names)):
        raise not_empty(directory)


def make_directory(folder: str, top: str, files: Files) -> set[str]:
    """Make a directory in `top`, or `top` itself; return those whose names are to be made durable.

    These are the directories from `folder` to the one above `top`, and to the first that was there.
    """
    above, end = os.path.abspath(folder), os.path.dirname(os.path.abspath(top))
    to_sync = {above}
    while len(above) > len(end) or files.status(above) is None:
        above = os.path.dirname(above)
        to_sync.add(above)
    files.make_directory(folder)
    return to_sync


def begin_salvage(directory: str, files: Files, partitions: Iterable[str] = ()) -> None:
    """Make the directory, and mark it as incomplete; the mark names the partitions to come.

    Raises: FileExistsError where another salvage has just done so; OSError.
    """
    is_new = files.status(directory) is None
    made = make_directory(directory, directory, files) if is_new else {directory}
    mark = files.create_new(os.path.join(directory, SALVAGE_MARKER))
    if mark is None:
        raise not_empty(directory, "another salvage has begun here")
    _write_mark(mark, partitions, made, files)


def end_salvage(directory: str, files: Files) -> None:
    """Take the mark away: all files are whole and durable. Raises: OSError."""
    files.sync_directory(directory)
    files.remove(os.path.join(directory, SALVAGE_MARKER))
    files.sync_directory(directory)


def begin_rebuild(directory: str, partitions: Iterable[str], files: Files) -> bool:
    """Mark a directory in which several partitions are to be made; return whether it is new.

    The mark of a rebuild that was killed there is written over. Raises: OSError.
    """
    is_new = files.status(directory) is None
    made = make_directory(directory, directory, files) if is_new else {directory}
    mark = files.open(os.path.join(directory, MARKER), writable=True, create=True)
    _write_mark(mark, partitions, made, files)
    return is_new


def _write_mark(mark: File, partitions: Iterable[str], made: Iterable[str], files: Files) -> None:
    """Write a mark, and sync the mark and the new directories. Raises: OSError."""
    with closing(mark):
        mark.truncate(0)
        mark.pwrite(mark_of(partitions), 0)
        mark.sync()
    for folder in sorted(made, reverse=True):
        files.sync_directory(folder)


def end_rebuild(directory: str, failed: Sequence[str], files: Files, *, is_new: bool) -> None:
    """Let the mark name the partitions that could not be made, or take it away, and the directory
    too where it is new and empty. Raises: OSError.
    """
    if failed and files.list_directory(directory) != [MARKER]:
        begin_rebuild(directory, failed, files)
        return
    files.remove(os.path.join(directory, MARKER))
    if is_new and not files.list_directory(directory):
        files.remove_directory(directory)
    else:
        files.sync_directory(directory)
