# SPDX-License-Identifier: Apache-2.0
"""Text checkpoints: a version line, a count line, then a line for each entry.

Mirrors: impl/segproof/kafka/checkpoint_file.py.
Upstream: Kafka, CheckpointFile, OffsetCheckpointFile and LeaderEpochCheckpointFile (4.3.1; their
    Scala twins up to 3.0).
Layout: UTF-8. A line ends with LF, CR or CR LF and is written with LF. Entries are
    `topic partition offset` or `epoch startOffset`, one space between fields as written, any run
    of white space as read.
Laws: CKPT-1 to CKPT-6.
Not covered: which of two errors is told where a file is not UTF-8 and wrong otherwise too (the
    real class decodes 8192 bytes at a time); memory that a count of 2^31 - 1 would take.
Used by: leader_epoch_cache, partition_metadata_file, partition_log, the harness.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Self, TypeVar

from segproof_model.directory import Directory
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

Entry = TypeVar("Entry")
FILE_NOT_FOUND = Raised(ErrorKind.FILE_NOT_FOUND)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
IO_ERROR = Raised(ErrorKind.IO_ERROR)
NUMBER_FORMAT = Raised(ErrorKind.NUMBER_FORMAT)
CURRENT_VERSION = 0


def lines_of(data: bytes) -> list[str] | Raised:
    """Return the lines of a text; one that the end of the file ends counts unless it is empty.

    >>> lines_of(bytes("a\\n\\r\\nb\\rc", "ascii")), lines_of(b"\\xff").kind.value
    (['a', '', 'b', 'c'], 'io-error')
    """
    try:
        lines = re.split("\r\n|\r|\n", data.decode())
    except UnicodeDecodeError:
        return IO_ERROR
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


def parsed_int(text: str, bits: int) -> int | None:
    """Return the number, as Java parses one of so many bits, or None.

    A sign may stand before the digits, which may be those of any script below U+10000.

    >>> parsed_int("+07", 32), parsed_int("2147483648", 32), parsed_int(" 1", 32)
    (7, None, None)
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or max(digits) > "\uffff":
        return None
    value = 0
    for digit in digits:
        value = value * 10 + int(digit)
        if value > 2 ** (bits - 1):
            return None
    if text[0] == "-":
        return -value
    return value if value < 2 ** (bits - 1) else None


class EntryFormatter(NamedTuple):
    """How an entry becomes a line, and a line an entry."""

    to_string: Callable[[Any], str]
    from_string: Callable[[str], Any]
    """The entry; None for a wrong number of fields; `Raised` for a field that is no number."""


def read_checkpoint(
    data: bytes,
    parse: Callable[[str], Entry | Raised | None],
    version: int = CURRENT_VERSION,
    *,
    profile: Profile = NEWEST_KAFKA,
) -> list[Entry] | Raised:
    """Return the entries of a checkpoint's bytes (CKPT-1 to CKPT-4).

    >>> read_checkpoint(bytes("0\\n1\\n5 120\\n", "ascii"), epoch_of)
    [EpochEntry(epoch=5, start_offset=120)]
    """
    lines = lines_of(data)
    if isinstance(lines, Raised) or (lines and parsed_int(lines[0], 32) != version):
        return IO_ERROR
    if len(lines) < 2:
        return []
    count = parsed_int(lines[1], 32)
    if count is None:
        return IO_ERROR
    if count < 0:
        return IO_ERROR if profile.text_damage_is_io_error else INVALID_ARGUMENT
    entries: list[Entry] = []
    for line in lines[2:]:
        entry = parse(line)
        if entry is None:
            return IO_ERROR
        if isinstance(entry, Raised):
            return Raised(profile.entry_number_kind)
        entries.append(entry)
    return entries if len(entries) == count else IO_ERROR


def write_checkpoint(lines: Iterable[str], version: int = CURRENT_VERSION) -> bytes:
    """Return the bytes of a checkpoint with these entry lines (CKPT-1).

    >>> write_checkpoint(["5 120"]).decode().split()
    ['0', '1', '5', '120']
    """
    known = list(lines)
    text = "".join(f"{line}\n" for line in (version, len(known), *known))
    return text.encode(errors="replace")


@dataclass(frozen=True, slots=True)
class CheckpointFile(Generic[Entry]):
    """A checkpoint at a path."""

    profile: Profile
    name: str
    version: int
    formatter: EntryFormatter
    directory: Directory

    @classmethod
    def open(
        cls,
        file: str,
        version: int,
        formatter: EntryFormatter,
        *,
        directory: Directory = Directory(),
        profile: Profile = NEWEST_KAFKA,
    ) -> "Step[CheckpointFile[Entry]]":
        """Open the file; a missing one is made, empty."""
        found = directory if file in directory else directory.write(file, b"")
        return Step(cls(profile, file, version, formatter, found))

    def read(self) -> list[Entry] | Raised:
        """Return the entries in the order of the file (CKPT-2 to CKPT-4, CKPT-6)."""
        data = self.directory.read(self.name)
        if data is None:
            return FILE_NOT_FOUND
        parse = self.formatter.from_string
        return read_checkpoint(data, parse, self.version, profile=self.profile)

    def write(self, entries: Iterable[Entry]) -> Step[Self]:
        """Let the file hold exactly these entries, by way of `.tmp` (CKPT-5, CKPT-6)."""
        known = list(entries)
        data = write_checkpoint(map(self.formatter.to_string, known), self.version)
        parse = self.formatter.from_string
        if self.profile.unreadable_text_is_refused and known != read_checkpoint(
            data, parse, self.version, profile=self.profile
        ):
            return Step(self, INVALID_ARGUMENT)
        temporary = f"{self.name}.tmp"
        moved = self.directory.write(temporary, data).rename(temporary, self.name)
        return Step(replace(self, directory=moved))


class TopicPartitionOffset(NamedTuple):
    """One entry of a checkpoint of offsets."""

    topic: str
    partition: int
    offset: int


def _partition_offset_of(line: str) -> TopicPartitionOffset | Raised | None:
    fields = fields_of(line)
    if len(fields) != 3:
        return None
    partition, offset = parsed_int(fields[1], 32), parsed_int(fields[2], 64)
    if partition is None or offset is None:
        return NUMBER_FORMAT
    return TopicPartitionOffset(fields[0], partition, offset)


OFFSET_FORMATTER = EntryFormatter(lambda entry: " ".join(map(str, entry)), _partition_offset_of)


@dataclass(frozen=True, slots=True)
class OffsetCheckpointFile:
    """Offsets by topic and partition: what a log directory knows of all its logs."""

    checkpoint: CheckpointFile[TopicPartitionOffset]

    @classmethod
    def open(
        cls, file: str, *, directory: Directory = Directory(), profile: Profile = NEWEST_KAFKA
    ) -> "Step[OffsetCheckpointFile]":
        """Open the file; a missing one is made, empty."""
        opened: Step[CheckpointFile[TopicPartitionOffset]] = CheckpointFile.open(
            file, CURRENT_VERSION, OFFSET_FORMATTER, directory=directory, profile=profile
        )
        return Step(cls(opened.after))

    @property
    def directory(self) -> Directory:
        """The directory of the file."""
        return self.checkpoint.directory

    def read(self) -> dict[tuple[str, int], int] | Raised:
        """Return offset by (topic, partition); of one that stands twice the last counts."""
        entries = self.checkpoint.read()
        if isinstance(entries, Raised):
            return entries
        return {(entry.topic, entry.partition): entry.offset for entry in entries}

    def write(self, offsets: Mapping[tuple[str, int], int]) -> Step[Self]:
        """Let the file hold exactly these offsets, in their order."""
        entries = [TopicPartitionOffset(*key, offset) for key, offset in offsets.items()]
        step = self.checkpoint.write(entries)
        return Step(replace(self, checkpoint=step.after), step.outcome)


class EpochEntry(NamedTuple):
    """One leader epoch."""

    epoch: int
    start_offset: int
    """First offset written in the epoch, inclusive."""


def epoch_of(line: str) -> EpochEntry | Raised | None:
    """Return the entry of a line of `leader-epoch-checkpoint`."""
    fields = fields_of(line)
    if len(fields) != 2:
        return None
    epoch, start_offset = parsed_int(fields[0], 32), parsed_int(fields[1], 64)
    if epoch is None or start_offset is None:
        return NUMBER_FORMAT
    return EpochEntry(epoch, start_offset)


EPOCH_FORMATTER = EntryFormatter(lambda entry: " ".join(map(str, entry)), epoch_of)


class LeaderEpochCheckpointFile(CheckpointFile[EpochEntry]):
    """The file `leader-epoch-checkpoint`: the entries as they stand, not judged."""

    __slots__ = ()
