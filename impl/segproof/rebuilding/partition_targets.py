# SPDX-License-Identifier: Apache-2.0
"""Where the new indexes go: into the partition itself, or into a new directory.

Both are entered before anything is built, completed once, and left with nothing half done: what was
built beside is removed where it was not put in place.

Upstream: Kafka 4.3.1: LogManager.lockLogDirs, LogLoader.
Laws: LOAD-1, LOAD-5.
"""

import contextlib
import os
from collections.abc import Sequence
from typing import Protocol, Self

from segproof.errors import SegproofError
from segproof.files import File, SharedFiles
from segproof.integers import INT64_MAX
from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import (
    EPOCHS,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    NameKind,
    read_file_name,
)
from segproof.reading.unfinished import MARKER
from segproof.rebuilding.kept_files import bring, copy_file, keep_old_files
from segproof.rebuilding.partition_files import BESIDE, PartitionFiles, check_unchanged
from segproof.rebuilding.safe_places import (
    lock_of,
    make_directory,
    names_in_new,
    not_empty,
)
from segproof.rebuilding.segment_build import BuiltSegment

LOCK = ".lock"
"""The file in a data directory that a broker has locked while it runs."""


def lock_path(directory: str) -> str:
    """Return the lock of the data directory that a partition lies in."""
    return os.path.join(os.path.dirname(os.path.realpath(directory)), LOCK)


class Place(Protocol):
    """Where the new indexes go."""

    def __enter__(self) -> object:
        """Make ready for building."""

    def __exit__(self, *_: object) -> None:
        """Remove what was not put in place."""

    def complete(self, built: Sequence[BuiltSegment]) -> None:
        """Put the new indexes, which are durable, in their places."""


def snapshots_behind(partition: PartitionFiles, built: Sequence[BuiltSegment]) -> list[str]:
    """Return the names of snapshots behind the end of a log that is cut.

    A broker that cuts a log when it recovers it removes them, since they tell of what is gone.
    """
    end = _cut_at(built)
    known = ((name, read_file_name(name)) for name in partition.others)
    return [
        name for name, read in known if read.suffix == SNAPSHOT_SUFFIX and read.base_offset > end
    ]


def _cut_at(built: Sequence[BuiltSegment]) -> int:
    return next((one.end_offset for one in built if one.is_cut), INT64_MAX)


class InPlace:
    """The partition's own directory; a broker that would use it is kept out meanwhile."""

    def __init__(
        self,
        partition: PartitionFiles,
        files: SharedFiles,
        *,
        is_locked: bool = False,
        backup: str | None = None,
    ) -> None:
        self._partition = partition
        self._directory = partition.directory
        self._files = files
        self._is_locked = is_locked
        self._backup = backup
        self._lock: File | None = None

    def __enter__(self) -> Self:
        if not self._is_locked:
            self._lock = lock_of(lock_path(self._directory), "data directory", self._files)
        try:
            for name in self._partition.leftovers:
                self._files.remove(os.path.join(self._directory, name))
        except BaseException:
            self._unlock()
            raise
        return self

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def complete(self, built: Sequence[BuiltSegment]) -> None:
        """Rename what differs over the old files, durably; keep these first, if that is asked."""
        if self._backup is not None:
            olds = (index for one in built for index in one.indexes if index.backup is not None)
            keep_old_files(
                [(one.path, one.backup or "") for one in olds], self._backup, self._files
            )
        for index in (index for one in built for index in one.indexes):
            if index.changed and self._files.status(index.path + BESIDE) is not None:
                self._files.rename(index.path + BESIDE, index.path)
        self._files.sync_directory(self._directory)

    def __exit__(self, *_: object) -> None:
        try:
            _remove_each(self._files, self._directory, (BESIDE,))
        finally:
            self._unlock()


class Nowhere:
    """The place of a dry run: nothing is put in place, and no lock is taken."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def complete(self, built: Sequence[BuiltSegment]) -> None:
        """Do nothing."""


class NewDirectory:
    """A directory that is new or empty, or that an ended rebuild has left.

    Until it is complete and durable, the marker stands in it.
    """

    def __init__(
        self, partition: PartitionFiles, directory: str, files: SharedFiles, *, copies: bool
    ) -> None:
        self._partition = partition
        self._directory = directory
        self._files = files
        self._copies = copies
        self._is_complete = False
        self._is_new = False
        self._made: set[str] = set()
        """Directories whose names, or those in them, are to be made durable."""

    def __enter__(self) -> Self:
        found = names_in_new(self._directory, self._files)
        self._is_new, names = found is None, found or []
        if names and MARKER not in names:
            raise not_empty(self._directory)
        self._check_ours(names)
        try:
            self._made = make_directory(self._directory, self._directory, self._files)
            self._begin(names)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _check_ours(self, names: Sequence[str]) -> None:
        """Return if everything in a directory with the marker may be removed."""
        for name in names:
            kind = read_file_name(name).kind
            is_ours = name == MARKER or name.endswith(BESIDE)
            if not is_ours and kind not in (NameKind.SEGMENT, NameKind.KNOWN):
                words = "a rebuild was ended in this directory, but this file is not its own"
                raise not_empty(self._path(name), words)

    def _begin(self, names: Sequence[str]) -> None:
        self._files.open(self._path(MARKER), writable=True, create=True).close()
        self._files.sync_directory(self._directory)
        for name in names:
            if name != MARKER:
                self._files.remove(self._path(name))

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def complete(self, built: Sequence[BuiltSegment]) -> None:
        """Bring in everything else, give the indexes their names, and take the marker away."""
        for one in built:
            name = segment_file_name(one.segment.base_offset, ".log")
            self._bring(name, one.valid_bytes if one.is_cut else None)
        left_out = snapshots_behind(self._partition, built)
        for name in self._partition.others:
            if name not in left_out:
                self._bring(name, None)
        if EPOCHS in self._partition.others:
            self._cut_epochs(_cut_at(built))
        for index in (index for one in built for index in one.indexes if index.is_kept):
            source, target = self._paths(os.path.basename(index.path))
            copy_file(source, target + BESIDE, None, self._files)
        check_unchanged(self._partition, self._files)
        for index in (index for one in built for index in one.indexes):
            if self._files.status(index.path + BESIDE) is not None:
                self._files.rename(index.path + BESIDE, index.path)
        self._files.sync_directory(self._directory)
        self._files.sync_directory(os.path.dirname(os.path.realpath(self._directory)))
        for folder in sorted(self._made, reverse=True):
            self._files.sync_directory(folder)
        self._files.remove(self._path(MARKER))
        self._is_complete = True
        with contextlib.suppress(OSError):  # all is durable; at worst the marker comes back
            self._files.sync_directory(self._directory)

    def _paths(self, name: str) -> tuple[str, str]:
        return os.path.join(self._partition.directory, name), self._path(name)

    def _cut_epochs(self, end_offset: int) -> None:
        """Drop the epochs that begin behind a cut, as a broker does that loads the log."""
        path = self._path(EPOCHS)
        with contextlib.suppress(SegproofError):  # what can't be read stays as it is
            LeaderEpochFileCache.open(path, create=True, files=self._files).truncate_from_end(
                end_offset
            )
            with contextlib.suppress(PermissionError):
                self._files.take_access(path, os.path.join(self._partition.directory, EPOCHS))

    def _bring(self, name: str, size: int | None) -> None:
        """Link or copy one file; with a size, copy its first bytes."""
        source, target = self._paths(name)
        if size is None and not self._copies:
            bring(source, target, self._files)
        else:
            copy_file(source, target, size, self._files)

    def __exit__(self, *_: object) -> None:
        if self._is_complete:
            return
        bases = [one.base_offset for one in self._partition.segments]
        left = [segment_file_name(one, suffix) for one in bases for suffix in SEGMENT_SUFFIXES]
        _remove_each(self._files, self._directory, (BESIDE,), (*left, *self._partition.others))
        with contextlib.suppress(OSError):
            if self._files.list_directory(self._directory) in ([], [MARKER]):
                self._files.remove(self._path(MARKER))
                if self._is_new:
                    self._files.remove_directory(self._directory)


def _remove_each(
    files: SharedFiles, directory: str, endings: tuple[str, ...], names: Sequence[str] = ()
) -> None:
    """Remove the files with these endings or names, as far as that can be done."""
    try:
        found = files.list_directory(directory)
    except OSError:
        return
    for name in found:
        if name.endswith(endings) or name in names:
            with contextlib.suppress(OSError):
                files.remove(os.path.join(directory, name))
