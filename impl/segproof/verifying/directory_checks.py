# SPDX-License-Identifier: Apache-2.0
"""From a path to the partitions and segments in it; what the names alone say.

A directory is what its content says: one with files of segments is a partition, one with partitions
or a broker's own files a data directory; others are searched, a bounded number of levels deep.

Links are followed, since a broker follows them, and each directory is looked into once.

Laws: FILE-1, FILE-2, LOAD-1, DISK-1, DISK-3, DISK-20, DISK-26.
Used by: verifying/running.py.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from segproof.files import Files, FileStatus
from segproof.verifying.names import (
    CLEAN_SHUTDOWN_MARKER,
    SEGMENT_SUFFIXES,
    FileName,
    NameKind,
    is_known_in_data_directory,
    read_file_name,
    read_partition_name,
    segment_file_name,
)
from segproof.verifying.reporting import Reporter
from segproof.verifying.segments import Segment, report_unreadable, report_vanished

__all__ = ["ALL_FILES", "Partition", "find_partitions", "list_again", "sized"]

LEVELS_MAX = 16
PARTITION = "partition-log"
ALL_FILES = frozenset(SEGMENT_SUFFIXES)


@dataclass(frozen=True, slots=True)
class Partition:
    """One directory with the segments that are to be checked, in order of their offsets."""

    directory: str
    segments: tuple[Segment, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes that will be read, as far as known."""
        return sum(segment.size_bytes for segment in self.segments)


@dataclass(slots=True)
class _Walk:
    files: Files
    reporter: Reporter
    root: str
    """The path that was given."""
    seen: dict[tuple[int, int], str]
    """The directories that were looked into, by identity."""

    def enters(self, path: str, status: FileStatus, level: int) -> bool:
        """Return whether to look into a directory; report one that is passed over (DISK-26)."""
        earlier = self.seen.get(status.identity)
        if earlier is not None:
            is_above = path.startswith(earlier.rstrip("/") + "/")
            words = f"it is {earlier} once more, and verified under that name"
            if is_above:
                words = f"it leads back to {earlier}, in which it lies: the way ends here"
        elif level >= LEVELS_MAX:
            words = f"it lies more than {LEVELS_MAX} levels below {self.root} and is not verified"
        else:
            if status.identity[1] > 0:
                self.seen[status.identity] = path
            return True
        self.reporter.add("DISK-26", path, words, reproduce_path=self.root)
        return False


def find_partitions(path: str, files: Files, reporter: Reporter) -> Iterator[Partition]:
    """Yield every partition at or below `path`, or the one segment that a file belongs to.

    Raises: OSError where `path` itself can't be read; below it, that is a finding.
    """
    status = files.status(path)
    if status is None:
        raise FileNotFoundError(2, "no such file or directory", path)
    if not status.is_directory:
        yield from _single_file(path, files, reporter)
        return
    walk = _Walk(files, reporter, path, {})
    walk.enters(path, status, 0)
    found = False
    names = files.list_directory(path)
    for partition in _directory(path, names, walk, 0):
        found = found or bool(partition.segments)
        yield partition
    if not found:
        reporter.add("DISK-20", path, "there is nothing of Kafka's to verify here")


def _single_file(path: str, files: Files, reporter: Reporter) -> Iterator[Partition]:
    """Yield the segment of one file; its siblings are read where the file is compared with them."""
    directory, name = posixpath.split(path)
    directory = directory or "."
    known = read_file_name(name)
    if known.kind is not NameKind.SEGMENT:
        if not _report_name(path, known, reporter):
            reporter.add(
                "DISK-20", path, "verify does not look into files of this name", structure=PARTITION
            )
        return
    try:
        names = files.list_directory(directory)
    except OSError:
        names = [name]
    for segment in _segments_of(directory, names, files, frozenset((known.suffix,))):
        if segment.base_offset == known.base_offset:
            yield Partition(directory, (segment,))


def _join(directory: str, name: str) -> str:
    return posixpath.join(directory, name)


def _directory(path: str, names: list[str], walk: _Walk, level: int) -> Iterator[Partition]:
    """Yield the partitions of one directory and of those in it."""
    kinds = {name: read_file_name(name) for name in names}
    own = read_partition_name(posixpath.basename(posixpath.normpath(path)))
    has_segments = any(known.kind is NameKind.SEGMENT for known in kinds.values())
    has_traces = any(known.kind is not NameKind.FOREIGN for known in kinds.values())
    if has_segments or (has_traces and own is not None):
        yield _partition(path, kinds, walk)
        return
    yield from _data_directory(path, names, walk, level)


def _partition(path: str, kinds: dict[str, FileName], walk: _Walk) -> Partition:
    reporter = walk.reporter
    for name, known in kinds.items():
        full = _join(path, name)
        if known.kind is NameKind.FOREIGN:
            reporter.add(
                "DISK-3", full, "no file of a partition has this name", reproduce_path=path
            )
        else:
            _report_name(full, known, reporter)
    return Partition(path, tuple(_segments_of(path, list(kinds), walk.files, ALL_FILES)))


def _report_name(path: str, known: FileName, reporter: Reporter) -> bool:
    """Report what is wrong with a file's name; return whether something is."""
    if known.kind is NameKind.MISNAMED:
        right = segment_file_name(known.base_offset, known.suffix)
        reporter.add(
            "FILE-1",
            path,
            f"the name is not the base offset {known.base_offset} in 20 digits: a broker does not"
            " find this file",
            expected=right,
            actual=posixpath.basename(path),
        )
    elif known.kind is NameKind.NO_OFFSET:
        reporter.add(
            "FILE-2",
            path,
            "the name says no offset: what stands before its first dot is no 64-bit number",
            expected="an offset in 20 digits",
            actual=posixpath.basename(path),
        )
    elif known.kind is NameKind.PENDING:
        reporter.add("LOAD-1", path, "the file was on its way out of, or into, the partition")
    else:
        return False
    return True


def _segments_of(
    directory: str, names: list[str], files: Files, judged: frozenset[str]
) -> Iterator[Segment]:
    """Yield the segments of a directory in order; the offset of the next one has a log."""
    found: dict[int, set[str]] = {}
    for name in names:
        known = read_file_name(name)
        if known.kind is NameKind.SEGMENT:
            found.setdefault(known.base_offset, set()).add(known.suffix)
    bases = sorted(found)
    with_log = [base for base in bases if ".log" in found[base]]
    following = dict(pairwise(with_log))
    is_stopped = _is_stopped(directory, files)
    for base in bases:
        segment = Segment(
            directory,
            base,
            frozenset(found[base]),
            following.get(base),
            is_stopped,
            judged,
        )
        yield segment


def list_again(segment: Segment, files: Files) -> Segment | None:
    """Return a segment as its directory shows it now, or None if it is gone."""
    try:
        names = files.list_directory(segment.directory)
    except OSError:
        return segment
    for other in _segments_of(segment.directory, names, files, segment.judged):
        if other.base_offset == segment.base_offset:
            return sized(other, files)
    return None


def sized(segment: Segment, files: Files) -> Segment:
    """Return the segment with what its files are now."""
    seen = segment.look(files)
    return replace(segment, seen=seen, size_bytes=sum(max(0, each.size_bytes) for each in seen))


def _is_stopped(directory: str, files: Files) -> bool:
    """Return whether the data directory has the marker of a clean stop."""
    parent = posixpath.dirname(posixpath.normpath(directory))
    if posixpath.normpath(directory) == ".":
        parent = ".."
    try:
        return files.status(_join(parent, CLEAN_SHUTDOWN_MARKER)) is not None
    except OSError:
        return False


def _data_directory(path: str, names: list[str], walk: _Walk, level: int) -> Iterator[Partition]:
    """Yield what lies in the directories of a directory that is no partition."""
    is_kafkas = any(is_known_in_data_directory(name) for name in names)
    others: list[str] = []
    for name in names:
        full = _join(path, name)
        status = _status(path, name, walk)
        if status is None or is_known_in_data_directory(name):
            continue
        partition = read_partition_name(name)
        if not status.is_directory:
            others.append(full)
            continue
        if not walk.enters(full, status, level):
            if partition is not None:
                is_kafkas = True
                yield Partition(full, ())
            continue
        if partition is not None and partition.state == "delete":
            words = "the broker is about to remove this partition"
            walk.reporter.add("LOAD-1", full, words, reproduce_path=path)
            is_kafkas = True
            continue
        try:
            inner = walk.files.list_directory(full)
        except FileNotFoundError:
            report_vanished(full, walk.reporter, PARTITION)
            continue
        except OSError as error:
            report_unreadable(full, error, walk.reporter, PARTITION, reproduce_path=path)
            continue
        found = False
        for one in _directory(full, inner, walk, level + 1):
            found = is_kafkas = True
            yield one
        if not found and partition is not None and not inner:
            yield Partition(full, ())
        elif not found and not any(is_known_in_data_directory(one) for one in inner):
            others.append(full)
    if is_kafkas:
        for full in others:
            words = "neither a partition nor a broker's own file"
            walk.reporter.add("DISK-3", full, words, reproduce_path=path)


def _status(directory: str, name: str, walk: _Walk) -> FileStatus | None:
    """Return the status of a listed name, or None; report why it can't be known (DISK-1)."""
    full = _join(directory, name)
    try:
        status = walk.files.status(full)
        is_lost = status is None and read_partition_name(name) is not None
        # What the broker has removed meanwhile is no longer listed.
        if is_lost and name in walk.files.list_directory(directory):
            raise FileNotFoundError(2, "it is a link to nothing")
    except OSError as error:
        report_unreadable(full, error, walk.reporter, PARTITION, reproduce_path=directory)
        return None
    return status
