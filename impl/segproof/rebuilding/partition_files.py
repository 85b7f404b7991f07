# SPDX-License-Identifier: Apache-2.0
"""What lies in a partition directory that is to be rebuilt: segments, other files, obstacles.

Upstream: Kafka 4.3.1: LogFileUtils, LogLoader.
Laws: FILE-1, FILE-2, LOAD-1, DISK-1, DISK-7.
"""

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

from segproof.errors import InvalidArgumentError, SegproofError
from segproof.files import NOT_REGULAR, Files, FileStatus
from segproof.findings import Finding, Severity
from segproof.hints import changes, writes
from segproof.inventory.segment_listing import ALL_FILES, sized
from segproof.inventory.segments import Segment
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.directory_kinds import holds_partitions
from segproof.reading.file_names import SEGMENT_SUFFIXES, FileName, NameKind, read_file_name
from segproof.reading.unfinished import MARKER, unfinished_at
from segproof.rebuilding.safe_places import check_finished, log_changed
from segproof.wording.reporting import Reporter, Wanted
from segproof.wording.segment_files import FILE_SIZE_MAX_BYTES, LARGE_LOG, STRUCTURES

BESIDE = ".rebuilt.deleted"
"""What the name of an index ends with until it is whole and durable.

Kafka takes `X.index.rebuilt.deleted` for nothing but a file to remove: when a broker loads the
partition after a crash, it does, as every release does with names that end with `.deleted`.
"""

IN_THE_WAY = "no new index can take its name, so nothing was changed here"
COMPLETE = changes(
    "let a broker load the partition, which completes the swap, and stop it cleanly",
    only_if="each .swap log is whole, as `segproof dump` shows",
    if_wrong="the broker cuts such a log where it is torn, and records that no other file has are"
    " lost",
    copy_step="copy the directory away before a broker starts here",
)


class PartitionFiles(NamedTuple):
    """What is to be done in one directory."""

    directory: str
    segments: tuple[Segment, ...]
    """Those with a log, by base offset, closed, and with the index files that are regular."""
    logs: Mapping[int, FileStatus]
    """What each log is, as it was found."""
    others: tuple[str, ...]
    """Names of the files that belong to the partition beside its segments."""
    left_out: tuple[str, ...]
    """Each file that a complete directory does not have, with the reason."""
    leftovers: tuple[str, ...]
    """Names of what an earlier rebuild in this place was ended with."""
    findings: tuple[Finding, ...]
    """Why nothing can be rebuilt, if there is something."""
    blocked: tuple[Finding, ...] = ()
    """Why nothing can be rebuilt in place: a name of an index belongs to a folder, or to another
    kind of file."""

    @property
    def log_bytes(self) -> int:
        """How many bytes the logs have."""
        return sum(segment.log_bytes for segment in self.segments)


class _Listing:
    def __init__(self, directory: str, files: Files) -> None:
        self.directory = directory
        self.files = files
        self.reporter = Reporter(Wanted())
        self.logs: dict[int, FileStatus] = {}
        self.indexes: dict[int, set[str]] = {}
        self.others: list[str] = []
        self.left_out: list[str] = []
        self.leftovers: list[str] = []
        self.blocks = Reporter(Wanted())

    def take(self, name: str) -> None:
        """Sort in one name of the directory."""
        if name.endswith(BESIDE):
            self.leftovers.append(name)
            return
        path = os.path.join(self.directory, name)
        try:
            status = self.files.status(path)
        except OSError as error:
            self.reporter.at(path, "partition-log").unreadable(error)
            return
        known = read_file_name(name)
        if status is None or not status.is_regular:
            self._take_irregular(name, path, known, is_there=status is not None)
            return
        if known.kind is NameKind.SEGMENT:
            self._take_segment(path, known.base_offset, known.suffix, status)
        elif known.kind is NameKind.KNOWN and not name.endswith(".tmp"):
            self.others.append(name)
        else:
            self._take_odd(name, path, known.kind)

    def _take_irregular(self, name: str, path: str, known: FileName, *, is_there: bool) -> None:
        """Report a log or an index that is a directory, a device, or a log that is a link to
        nothing; leave out the rest.
        """
        is_segment = known.kind is NameKind.SEGMENT
        if is_segment and known.suffix == SEGMENT_SUFFIXES[0]:
            error = OSError(errno.EISDIR, f"{NOT_REGULAR}, so a broker passes it by")
            self.reporter.at(path, "record-file").unreadable(error)
            return
        if is_segment and is_there:
            self.blocks.at(path, STRUCTURES[known.suffix]).of_wrong_kind(NOT_REGULAR, IN_THE_WAY)
        self._leave(name, NOT_REGULAR)

    def _take_segment(self, path: str, base: int, suffix: str, status: FileStatus) -> None:
        if suffix != ".log":
            self.indexes.setdefault(base, set()).add(suffix)
            return
        self.logs[base] = status
        if status.size_bytes > FILE_SIZE_MAX_BYTES:
            self.reporter.at(path, "record-file").add(
                "DISK-7",
                f"the log has {status.size_bytes} bytes",
                expected=FILE_SIZE_MAX_BYTES,
                actual=status.size_bytes,
                hint=LARGE_LOG,
            )
            return
        try:
            self.files.open(path).close()
        except OSError as error:
            self.reporter.at(path, "record-file").unreadable(error)

    def _take_odd(self, name: str, path: str, kind: NameKind) -> None:
        is_log = name.removesuffix(".tmp").removesuffix(".swap").endswith(".log")
        if kind is NameKind.PENDING and name.endswith(".swap"):
            self.reporter.at(path).add(
                "LOAD-1",
                "the broker was ended while it put this file in place, so the segments here may be"
                " both old and new",
                severity=Severity.ERROR,
                hint=COMPLETE,
            )
        elif kind is NameKind.PENDING:
            self._leave(name, "a broker would remove it")
        elif kind in (NameKind.MISNAMED, NameKind.NO_OFFSET) and is_log:
            law = "FILE-1" if kind is NameKind.MISNAMED else "FILE-2"
            words = "its offset is not written in 20 digits" if law == "FILE-1" else "no offset"
            self.reporter.at(path).add(
                law,
                f"a log whose name a broker can't use: {words}; it may hold records"
                " that no other file has",
            )
        elif kind is NameKind.FOREIGN:
            self._leave(name, "no file of a partition has this name")
        else:
            self._leave(name, "a broker does not read a file of this name")

    def _leave(self, name: str, why: str) -> None:
        if name != MARKER:
            self.left_out.append(f"{name}: {why}")

    def partition(self) -> PartitionFiles:
        """Return what was found."""
        for base in sorted(self.indexes.keys() - self.logs.keys()):
            for suffix in sorted(self.indexes[base]):
                self._leave(segment_file_name(base, suffix), "an index without a log")
        following = dict(pairwise(sorted(self.logs)))
        segments = (
            Segment(
                self.directory, base, frozenset({".log", *self.indexes.get(base, ())}),
                following.get(base), True, ALL_FILES,
            )
            for base in sorted(self.logs)
        )  # fmt: skip
        return PartitionFiles(
            self.directory,
            tuple(sized(one, self.files) for one in segments),
            self.logs,
            tuple(self.others),
            tuple(self.left_out),
            tuple(self.leftovers),
            tuple(self.reporter.finish()),
            tuple(self.blocks.finish()),
        )


def read_partition(directory: str, files: Files) -> PartitionFiles:
    """Return what is to be rebuilt in a partition directory.

    Raises: OSError where the directory can't be listed; NotADirectoryError; InvalidArgumentError
    for a directory without a log; SegproofError for one that was not completed.
    """
    status = files.status(directory)
    if status is not None and not status.is_directory:
        raise NotADirectoryError(20, "not a directory", directory)
    names = files.list_directory(directory)
    check_finished(directory, unfinished_at(directory, files))
    listing = _Listing(directory, files)
    for name in names:
        listing.take(name)
    partition = listing.partition()
    if not partition.segments and not partition.findings:
        raise InvalidArgumentError(
            "there is no log in this directory",
            path=directory,
            hint="give the directory of one partition, such as TOPIC-0",
        )
    if holds_partitions(directory, names, files):
        raise InvalidArgumentError(
            "a directory of partitions: the log in it is of none",
            path=directory,
            hint="give the directory of one partition, such as TOPIC-0",
        )
    return partition


@contextmanager
def refusing_what_vanishes(directory: str) -> Iterator[None]:
    """Let a file of the directory that is gone since it was listed be one clear refusal.

    Raises: SegproofError in the place of FileNotFoundError.
    """
    try:
        yield
    except FileNotFoundError as error:
        path = error.filename
        if not isinstance(path, str) or os.path.dirname(path) != os.path.normpath(directory):
            raise
        raise SegproofError(
            "the file was removed while the log was read: a broker is at work here",
            path=path,
            hint=writes("stop the broker, or rebuild from a copy or a snapshot of the disk"),
        ) from error


def check_unchanged(partition: PartitionFiles, files: Files) -> None:
    """Return if all logs are what they were when they were listed.

    Raises: SegproofError; OSError.
    """
    bases = set()
    for name in files.list_directory(partition.directory):
        known = read_file_name(name)
        if known.kind is NameKind.SEGMENT and known.suffix == SEGMENT_SUFFIXES[0]:
            bases.add(known.base_offset)
    changed = bases ^ {segment.base_offset for segment in partition.segments}
    for segment in partition.segments:
        if files.status(segment.path(".log")) != partition.logs[segment.base_offset]:
            changed.add(segment.base_offset)
    if changed:
        name = segment_file_name(min(changed), ".log")
        raise log_changed(os.path.join(partition.directory, name))
