# SPDX-License-Identifier: Apache-2.0
"""Text checkpoints: a version line, a count line, then a line for each entry.

Upstream: Kafka 4.4.0, CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile. Otherwise:
    checkpoint_releases, checkpoint_deviations.
Layout: UTF-8. A line ends with LF, CR or CR LF and is written with LF. Entries are
    `topic partition offset` or `epoch startOffset`, one space between fields as written, any run
    of white space as read.
Laws: CKPT-1 to CKPT-6.
Not covered: which of two errors is told where a file is not UTF-8 and wrong otherwise too (the
    real class decodes 8192 bytes at a time); memory that a count of 2^31 - 1 would take.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from segproof_model.language.files import Files
from segproof_model.language.integers import parsed_int
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refuse

VERSION = 0


class TopicPartitionOffset(NamedTuple):
    """One entry of a checkpoint of offsets."""

    topic: str
    partition: int
    offset: int


class EpochEntry(NamedTuple):
    """One leader epoch."""

    epoch: int
    start_offset: int
    """First offset written in the epoch, inclusive."""


class CheckpointFile(State):
    """A checkpoint at a path.

    >>> checkpoint = LeaderEpochCheckpointFile(Files(), "leader-epoch-checkpoint")
    >>> checkpoint.write([EpochEntry(5, 120)])
    >>> checkpoint.files.image("leader-epoch-checkpoint").split(), checkpoint.read()
    ([b'0', b'1', b'5', b'120'], [EpochEntry(epoch=5, start_offset=120)])
    """

    count_kind: ClassVar = ErrorKind.INVALID_ARGUMENT
    """The error for a negative count."""
    number_kind: ClassVar = ErrorKind.NUMBER_FORMAT
    """The error for a field of an entry that is no number."""

    def __init__(
        self, files: Files, name: str, entry: type[Any], bits: tuple[int | None, ...]
    ) -> None:
        """Make the file, empty, if there is none."""
        self.files, self.name = files, name
        self.entry, self.bits = entry, bits
        """What a line becomes, and of how many bits each field is; None: it is text."""
        if name not in files:
            files.write(name, b"")

    def read(self) -> list[Any]:
        """Return the entries in the order of the file (CKPT-2 to CKPT-4, CKPT-6)."""
        if self.name not in self.files:
            refuse(ErrorKind.FILE_NOT_FOUND)
        return self.entries_in(self.files.image(self.name))

    def write(self, entries: Iterable[Any]) -> None:
        """Let the file hold exactly these entries, by way of `.tmp` (CKPT-5, CKPT-6)."""
        temporary = f"{self.name}.tmp"
        self.files.write(temporary, self.image_of(list(entries)))
        self.files.rename(temporary, self.name)

    def image_of(self, entries: list[Any]) -> bytes:
        """Return the bytes of a file with these entries (CKPT-1)."""
        lines = [VERSION, len(entries), *(" ".join(map(str, entry)) for entry in entries)]
        return "".join(f"{line}\n" for line in lines).encode(errors="replace")

    def entries_in(self, data: bytes) -> list[Any]:
        """Return the entries in the bytes of a file (CKPT-1 to CKPT-4)."""
        lines = lines_of(data)
        if lines and parsed_int(lines[0], 32) != VERSION:
            refuse(ErrorKind.IO_ERROR)
        if len(lines) < 2:
            return []
        count = parsed_int(lines[1], 32)
        if count is None:
            refuse(ErrorKind.IO_ERROR)
        if count < 0:
            refuse(self.count_kind)
        entries = [self.entry_of(line) for line in lines[2:]]
        return entries if len(entries) == count else refuse(ErrorKind.IO_ERROR)

    def entry_of(self, line: str) -> Any:
        """Return the entry that a line is."""
        fields = fields_of(line)
        if len(fields) != len(self.bits):
            refuse(ErrorKind.IO_ERROR)
        return self.entry(*map(self.parsed, fields, self.bits))

    def parsed(self, field: str, bits: int | None) -> str | int:
        """Return what a field says (CKPT-4)."""
        value = field if bits is None else parsed_int(field, bits)
        return refuse(self.number_kind) if value is None else value


class OffsetCheckpointFile(State):
    """Offsets by topic and partition: what a log directory knows of all its logs."""

    def __init__(self, files: Files, name: str) -> None:
        self.files = files
        self.checkpoint = self.kind(CheckpointFile)(
            files, name, TopicPartitionOffset, (None, 32, 64)
        )

    def read(self) -> dict[tuple[str, int], int]:
        """Return offset by (topic, partition); of one that stands twice the last counts."""
        entries = self.checkpoint.read()
        return {(entry.topic, entry.partition): entry.offset for entry in entries}

    def write(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Let the file hold exactly these offsets, in their order."""
        self.checkpoint.write(TopicPartitionOffset(*key, offsets[key]) for key in offsets)


class LeaderEpochCheckpointFile(CheckpointFile):
    """The file `leader-epoch-checkpoint`: the entries as they stand, not judged."""

    def __init__(self, files: Files, name: str) -> None:
        super().__init__(files, name, EpochEntry, (32, 64))


def lines_of(data: bytes) -> list[str]:
    """Return the lines of a text; one that the end of the file ends counts unless it is empty.

    >>> lines_of(bytes("a\\n\\r\\nb\\rc", "ascii"))
    ['a', '', 'b', 'c']
    """
    try:
        lines = re.split("\r\n|\r|\n", data.decode())
    except UnicodeDecodeError:
        refuse(ErrorKind.IO_ERROR)
    return lines if lines[-1] else lines[:-1]


def fields_of(line: str) -> list[str]:
    """Return what white space separates; empty fields at the end do not count, at the start one.

    >>> fields_of("t  0 5 "), fields_of(" 0 5"), fields_of("")
    (['t', '0', '5'], ['', '0', '5'], [''])
    """
    fields = re.split("[ \t\n\v\f\r]+", line)
    while fields and not fields[-1] and line:
        fields.pop()
    return fields
