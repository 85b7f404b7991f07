# SPDX-License-Identifier: Apache-2.0
"""The file `partition.metadata`: which topic a partition's directory belongs to.

Upstream: Kafka, PartitionMetadataFile and PartitionMetadata (4.3.1; the file exists since 2.8).
Layout: UTF-8, `version: 0`, LF, `topic_id: `, 22 characters of url-safe base64; no LF at the end.
Laws: META-1, META-2.
Not covered: an id that is recorded and not yet flushed (here `write` does both).
"""

import base64
import os
import re
import uuid
from typing import NamedTuple, NoReturn

from segproof.errors import CorruptCheckpointError, InvalidArgumentError, NumberFormatError
from segproof.files import REAL_FILES, Files
from segproof.integers import parse_int
from segproof.kafka.checkpoint_file import (
    check_may_write,
    lines_of,
    read_text_file,
    write_atomically,
)

CURRENT_VERSION = 0
_ZERO = uuid.UUID(int=0)
_SEPARATOR = re.compile(":[ \t\n\v\f\r]+")
_TOPIC_ID = re.compile("[A-Za-z0-9_-]{22}(==)?")


class PartitionMetadata(NamedTuple):
    """What the file says."""

    version: int
    topic_id: uuid.UUID

    def to_bytes(self) -> bytes:
        """Return the bytes of the file. Laws: META-1."""
        text = base64.urlsafe_b64encode(self.topic_id.bytes).rstrip(b"=").decode("ascii")
        return f"version: {self.version}\ntopic_id: {text}".encode("ascii")


def read_partition_metadata(data: bytes, *, source: str | None = None) -> PartitionMetadata:
    """Return what the bytes of a file say; `source` names them in errors.

    Lines behind the second are not looked at, nor is what stands before a colon.
    Laws: META-1, META-2.
    Raises: CorruptCheckpointError.
    """
    lines = lines_of(data, source)
    version_text = _value_of(lines, 0, source)
    try:
        version = parse_int(version_text, 32)
    except NumberFormatError as error:
        _refuse(f"the version {error.message}", source, error)
    if version < CURRENT_VERSION:
        _refuse(f"version {version} is unknown", source)
    text = _value_of(lines, 1, source)
    if not _TOPIC_ID.fullmatch(text):
        _refuse(f"the topic id {text[:40]!r} is not 22 characters of url-safe base64", source)
    topic_id = uuid.UUID(bytes=base64.urlsafe_b64decode(text[:22] + "=="))
    if topic_id == _ZERO:
        _refuse("the topic id is zero", source)
    return PartitionMetadata(version, topic_id)


def _value_of(lines: list[str], number: int, source: str | None) -> str:
    """Return what stands behind the only colon and white space of a line."""
    if number >= len(lines):
        _refuse(f"{len(lines)} lines, 2 expected", source)
    parts = _SEPARATOR.split(lines[number])
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    if len(parts) != 2:
        _refuse(f"line {number + 1} is {lines[number][:80]!r}, not `name: value`", source)
    return parts[1]


def _refuse(message: str, source: str | None, cause: Exception | None = None) -> NoReturn:
    raise CorruptCheckpointError(message, law="META-2", path=source) from cause


class PartitionMetadataFile:
    """The `partition.metadata` at a path, whether or not it exists.

    For reading, or with `writable=True` for writing; `create=True` also lets `write` make it.
    Nothing is kept open or remembered: each call reads or writes the file.
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
        self._asked = {"writable": writable, "create": create}
        self._files = files

    def __repr__(self) -> str:
        return f"PartitionMetadataFile({self.file!r})"

    def exists(self) -> bool:
        """Return whether there is a file."""
        return self._files.status(self.file) is not None

    def read(self) -> PartitionMetadata:
        """Return what the file says.

        Laws: META-1, META-2.
        Raises: FileNotFoundError, OSError; CorruptCheckpointError; TooLargeError.
        """
        return read_partition_metadata(read_text_file(self._files, self.file), source=self.file)

    def write(self, topic_id: uuid.UUID) -> None:
        """Let the file name this topic, atomically.

        Laws: META-1, META-2.
        Raises: InvalidArgumentError for the zero id, which no reader takes; OSError, such as
        ReadOnlyFileError.
        """
        check_may_write(self._files, self.file, **self._asked)
        if topic_id == _ZERO:
            raise InvalidArgumentError("the topic id is zero", law="META-2", path=self.file)
        data = PartitionMetadata(CURRENT_VERSION, topic_id).to_bytes()
        write_atomically(self._files, self.file, data)

    def delete(self) -> None:
        """Remove the file. Raises: FileNotFoundError, OSError, such as ReadOnlyFileError."""
        if self.exists():
            check_may_write(self._files, self.file, **self._asked)
        if not self._files.remove(self.file):
            raise FileNotFoundError(f"{self.file}: there is no such file")
