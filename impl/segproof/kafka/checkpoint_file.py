# SPDX-License-Identifier: Apache-2.0
"""Text checkpoints: a version line, a count line, then a line for each entry.

Upstream: Kafka, CheckpointFile, OffsetCheckpointFile and LeaderEpochCheckpointFile (4.3.1).
Layout: UTF-8. A line ends with LF, CR or CR LF and is written with LF. Entries are
    `topic partition offset` or `epoch startOffset`, one space between fields as written, any run
    of white space as read.
Laws: CKPT-1 to CKPT-6.
Not covered: files above `READ_BYTES_MAX`, which are refused.
"""

import errno
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from operator import index as to_int
from typing import Generic, NamedTuple, NoReturn, TypeVar

from segproof.errors import (
    CorruptCheckpointError,
    InvalidArgumentError,
    NumberFormatError,
    ReadOnlyFileError,
    TooLargeError,
)
from segproof.files import REAL_FILES, Files
from segproof.integers import parse_int

Entry = TypeVar("Entry")
CURRENT_VERSION = 0
READ_BYTES_MAX = 1 << 24
"""The largest file that is taken into memory, a hundred thousand partitions with the longest names.

The shortest lines take forty times their bytes.
"""

_LINE_END = re.compile("\r\n|\r|\n")
_SPACES = re.compile("[ \t\n\v\f\r]+")


def read_text_file(files: Files, path: str) -> bytes:
    """Return the bytes of a text file.

    Raises: FileNotFoundError, OSError; TooLargeError above `READ_BYTES_MAX`.
    """
    with closing(files.open(path)) as file:
        size = file.size()
        if size > READ_BYTES_MAX:
            raise TooLargeError(
                f"{size} bytes, more than the {READ_BYTES_MAX} that are read", path=path
            )
        return file.pread(size, 0)


def write_atomically(files: Files, path: str, data: bytes, *, syncs_directory: bool = True) -> None:
    """Let the file at `path` hold exactly `data`: by way of `.tmp`, sync, rename, sync directory.

    Who writes many files in a row may leave the directory out, and sync it once behind them.

    At each moment, and after a crash at any, the file holds its old bytes or the new ones. Where
    an error is raised before the rename, `.tmp` is gone and the file is as it was.
    Laws: CKPT-5.
    Raises: OSError.
    """
    temporary = f"{path}.tmp"
    try:
        with closing(files.open(temporary, writable=True, create=True)) as file:
            file.truncate(0)
            file.pwrite(data, 0)
            file.sync()
        files.rename(temporary, path)
    except OSError:
        with suppress(OSError):  # the first error tells more
            files.remove(temporary)
        raise
    if syncs_directory:
        files.sync_directory(os.path.dirname(path) or ".")


def lines_of(data: bytes, path: str | None = None) -> list[str]:
    """Return the lines of a text; one that the end of the file ends counts unless it is empty.

    Raises: CorruptCheckpointError for bytes that are not UTF-8, and for zeros alone, which a loss
    of power leaves.
    """
    if data and not data.strip(b"\0"):
        raise CorruptCheckpointError("the file is zeros", law="CKPT-3", path=path)
    try:
        lines = _LINE_END.split(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise CorruptCheckpointError(
            f"not UTF-8: {error.reason}", law="CKPT-3", path=path, position=error.start
        ) from error
    if not lines[-1]:
        lines.pop()
    return lines


def fields_of(line: str) -> list[str]:
    """Return what white space separates; empty fields at the end do not count, at the start one."""
    fields = _SPACES.split(line)
    while line and fields and not fields[-1]:
        fields.pop()
    return fields


def check_may_write(files: Files, path: str, *, writable: bool, create: bool) -> None:
    """Return if a file may be written, or made where it is missing.

    Raises: ReadOnlyFileError; FileNotFoundError.
    """
    if not (writable or create):
        raise ReadOnlyFileError(
            "the file was opened for reading", path=path, hint="open it with writable=True"
        )
    if not create and files.status(path) is None:
        raise FileNotFoundError(errno.ENOENT, "there is no such file; create=True makes it", path)


class EntryFormatter(NamedTuple, Generic[Entry]):
    """How an entry becomes a line, and a line an entry."""

    to_string: Callable[[Entry], str]
    from_string: Callable[[str], Entry | None]
    """The entry, or None for a wrong number of fields. Raises NumberFormatError."""


def read_checkpoint(
    data: bytes,
    parse: Callable[[str], Entry | None],
    version: int = CURRENT_VERSION,
    *,
    source: str | None = None,
) -> list[Entry]:
    """Return the entries of a checkpoint's bytes; `source` names them in errors.

    Nothing is allocated for the count, which is compared with the lines that there are.
    Laws: CKPT-1 to CKPT-4.
    Raises: CorruptCheckpointError; NumberFormatError for a field of an entry that is no number.
    """
    lines = lines_of(data, source)
    if not lines:
        return []
    found = _header_int(lines[0], 1, source)
    if found != version:
        _refuse(f"version {found} is unknown", 1, source, version, found)
    if len(lines) == 1:
        return []
    count = _header_int(lines[1], 2, source)
    if count < 0:
        _refuse(f"{count} entries promised", 2, source)
    entries = []
    for number, line in enumerate(lines[2:], 3):
        try:
            entry = parse(line)
        except NumberFormatError as error:
            error.path = source
            raise
        if entry is None:
            _refuse(f"{line[:80]!r} has a wrong number of fields", number, source)
        entries.append(entry)
    if len(entries) != count:
        _refuse(f"{count} entries promised, {len(entries)} found", 2, source, count, len(entries))
    return entries


def _header_int(line: str, number: int, source: str | None) -> int:
    try:
        return parse_int(line, 32)
    except NumberFormatError as error:
        raise CorruptCheckpointError(
            f"line {number}: {error.message}", law="CKPT-3", path=source
        ) from error


def _refuse(
    message: str, number: int, source: str | None, expected: object = None, actual: object = None
) -> NoReturn:
    raise CorruptCheckpointError(
        f"line {number}: {message}",
        law="CKPT-3",
        path=source,
        expected=expected,
        actual=actual,
    )


def write_checkpoint(lines: Iterable[str], version: int = CURRENT_VERSION) -> bytes:
    """Return the bytes of a checkpoint with these entry lines.

    Laws: CKPT-1.
    Raises: InvalidArgumentError for a line that UTF-8 cannot write.
    """
    known = list(lines)
    try:
        return "\n".join((str(version), str(len(known)), *known, "")).encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"an entry cannot be written: {error}", law="CKPT-6") from error


class CheckpointFile(Generic[Entry]):
    """A checkpoint at a path, for reading, or with `writable=True` for writing.

    With `create=True` it is writable, and a missing file is made, empty. Nothing is kept open or
    remembered: each call reads or writes the file.
    Raises: OSError if the file cannot be made.
    """

    def __init__(
        self,
        file: str | os.PathLike[str],
        version: int,
        formatter: EntryFormatter[Entry],
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
    ) -> None:
        self.file = os.fspath(file)
        self.version = to_int(version)
        self._formatter = formatter
        self._files = files
        self._asked = {"writable": writable, "create": create}
        made = files.create_new(self.file) if create else None
        if made is not None:
            made.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.file!r}, version {self.version})"

    def read(self) -> list[Entry]:
        """Return the entries in the order of the file.

        Laws: CKPT-2, CKPT-3, CKPT-4, CKPT-6.
        Raises: OSError; its CorruptCheckpointError says what is wrong in the file.
        NumberFormatError; TooLargeError.
        """
        data = read_text_file(self._files, self.file)
        return read_checkpoint(data, self._formatter.from_string, self.version, source=self.file)

    def write(self, entries: Iterable[Entry]) -> None:
        """Let the file hold exactly these entries, atomically.

        Laws: CKPT-5, CKPT-6.
        Raises: InvalidArgumentError for an entry that would not be read back; OSError, such as
        ReadOnlyFileError.
        """
        check_may_write(self._files, self.file, **self._asked)
        lines = [self._line_of(entry) for entry in entries]
        write_atomically(self._files, self.file, write_checkpoint(lines, self.version))

    def _line_of(self, entry: Entry) -> str:
        line = self._formatter.to_string(entry)
        try:
            is_same = self._formatter.from_string(line) == entry
        except NumberFormatError:
            is_same = False
        if not is_same or "\n" in line or "\r" in line:
            raise InvalidArgumentError(
                f"{entry!r} would not be read back from {line[:80]!r}", law="CKPT-6", path=self.file
            )
        return line


class TopicPartitionOffset(NamedTuple):
    """One entry of a checkpoint of offsets."""

    topic: str
    partition: int
    offset: int


def _partition_offset_of(line: str) -> TopicPartitionOffset | None:
    fields = fields_of(line)
    if len(fields) != 3:
        return None
    return TopicPartitionOffset(fields[0], parse_int(fields[1], 32), parse_int(fields[2], 64))


OFFSET_FORMATTER = EntryFormatter[TopicPartitionOffset](
    lambda entry: f"{entry.topic} {entry.partition} {entry.offset}", _partition_offset_of
)


class OffsetCheckpointFile:
    """Offsets by topic and partition: what a log directory knows of all its logs.

    `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`,
    `replication-offset-checkpoint` and `cleaner-offset-checkpoint` are such files.
    They are for reading, or with `writable=True` for writing; with `create=True` a missing one is
    made, empty. Raises: OSError if it cannot be made.
    """

    def __init__(
        self,
        file: str | os.PathLike[str],
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
    ) -> None:
        self.file = os.fspath(file)
        self._checkpoint = CheckpointFile(
            file, CURRENT_VERSION, OFFSET_FORMATTER, writable=writable, create=create, files=files
        )

    def __repr__(self) -> str:
        return f"OffsetCheckpointFile({self.file!r})"

    def read(self) -> dict[tuple[str, int], int]:
        """Return offset by (topic, partition); of one that stands twice the last counts.

        Raises: as `CheckpointFile.read`.
        """
        return {(entry.topic, entry.partition): entry.offset for entry in self._checkpoint.read()}

    def write(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Let the file hold exactly these offsets, in their order, atomically.

        Raises: InvalidArgumentError for a topic with white space, or a number of more than 32 or
        64 bits; OSError.
        """
        self._checkpoint.write(
            TopicPartitionOffset(topic, to_int(partition), to_int(offset))
            for (topic, partition), offset in offsets.items()
        )


class EpochEntry(NamedTuple):
    """One leader epoch."""

    epoch: int
    start_offset: int
    """First offset written in the epoch, inclusive."""


def epoch_of(line: str) -> EpochEntry | None:
    """Return the entry of a line of `leader-epoch-checkpoint`. Raises NumberFormatError."""
    fields = fields_of(line)
    if len(fields) != 2:
        return None
    return EpochEntry(parse_int(fields[0], 32), parse_int(fields[1], 64))


EPOCH_FORMATTER = EntryFormatter[EpochEntry](
    lambda entry: f"{entry.epoch} {entry.start_offset}", epoch_of
)


class LeaderEpochCheckpointFile(CheckpointFile[EpochEntry]):
    """The file `leader-epoch-checkpoint`: the entries as they stand, not judged."""

    def __init__(
        self,
        file: str | os.PathLike[str],
        version: int = CURRENT_VERSION,
        formatter: EntryFormatter[EpochEntry] = EPOCH_FORMATTER,
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
    ) -> None:
        super().__init__(file, version, formatter, writable=writable, create=create, files=files)
