# SPDX-License-Identifier: Apache-2.0
"""The file `partition.metadata`: which topic a partition's directory belongs to.

Mirrors: impl/segproof/kafka/partition_metadata_file.py.
Upstream: Kafka, PartitionMetadataFile and PartitionMetadata (4.3.1; the file exists since 2.8).
Layout: UTF-8, `version: 0`, LF, `topic_id: `, 22 characters of url-safe base64; no LF at the end.
Laws: META-1, META-2.
Not covered: an id that is recorded and not yet flushed (here `write` does both).
Used by: partition_log, the harness.
"""

import base64
import re
from dataclasses import dataclass
from typing import NamedTuple, Self

from segproof_model.directory import Directory
from segproof_model.kafka.checkpoint_file import lines_of, parsed_int
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

FILE_NOT_FOUND = Raised(ErrorKind.FILE_NOT_FOUND)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
IO_ERROR = Raised(ErrorKind.IO_ERROR)
UNMAPPED = Raised(ErrorKind.UNMAPPED)
CURRENT_VERSION = 0
ZERO = bytes(16)


class PartitionMetadata(NamedTuple):
    """What the file says."""

    version: int
    topic_id: bytes
    """16 bytes; the implementation, which may import it, has a `uuid.UUID`."""

    def to_bytes(self) -> bytes:
        """Return the bytes of the file (META-1).

        >>> PartitionMetadata(0, bytes([*range(15), 1])).to_bytes().split()
        [b'version:', b'0', b'topic_id:', b'AAECAwQFBgcICQoLDA0OAQ']
        """
        text = base64.urlsafe_b64encode(self.topic_id)[:22]
        return b"version: %d\ntopic_id: %s" % (self.version, text)


def _value_of(line: str) -> str | None:
    """Return what stands behind the colon and white space, if it does so once."""
    parts = re.split(":[ \t\n\v\f\r]+", line)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts[1] if len(parts) == 2 else None


def read_partition_metadata(
    data: bytes, *, profile: Profile = NEWEST_KAFKA
) -> PartitionMetadata | Raised:
    """Return what the bytes of a file say (META-1, META-2)."""
    is_io_error = profile.text_damage_is_io_error
    lines = lines_of(data)
    if isinstance(lines, Raised):
        return lines
    if not lines:
        return IO_ERROR if is_io_error else UNMAPPED
    version = parsed_int(_value_of(lines[0]) or "", 32)
    if version is None or version < 0 or (profile.metadata_version_is_exact and version > 0):
        return IO_ERROR
    if len(lines) < 2:
        return IO_ERROR if is_io_error else UNMAPPED
    text = _value_of(lines[1])
    if text is None:
        return IO_ERROR
    if not re.fullmatch("[A-Za-z0-9_-]{22}(==)?", text):
        return IO_ERROR if is_io_error else INVALID_ARGUMENT
    topic_id = base64.urlsafe_b64decode(text[:22] + "==")
    return IO_ERROR if topic_id == ZERO else PartitionMetadata(version, topic_id)


@dataclass(frozen=True, slots=True)
class PartitionMetadataFile:
    """A `partition.metadata` at a path.

    >>> file = PartitionMetadataFile.open("partition.metadata").after
    >>> file.exists(), file.write(b"sixteen bytes...").after.read().topic_id
    (False, b'sixteen bytes...')
    """

    profile: Profile
    name: str
    directory: Directory

    @classmethod
    def open(
        cls, file: str, *, directory: Directory = Directory(), profile: Profile = NEWEST_KAFKA
    ) -> "Step[PartitionMetadataFile]":
        """Name the file; nothing is made or read."""
        return Step(cls(profile, file, directory))

    def exists(self) -> bool:
        """Return whether there is a file."""
        return self.name in self.directory

    def read(self) -> PartitionMetadata | Raised:
        """Return what the file says."""
        data = self.directory.read(self.name)
        if data is None:
            return FILE_NOT_FOUND
        return read_partition_metadata(data, profile=self.profile)

    def write(self, topic_id: bytes) -> Step[Self]:
        """Let the file name this topic, by way of `.tmp`."""
        if self.profile.unreadable_text_is_refused and topic_id == ZERO:
            return Step(self, INVALID_ARGUMENT)
        data = PartitionMetadata(CURRENT_VERSION, topic_id).to_bytes()
        temporary = f"{self.name}.tmp"
        moved = self.directory.write(temporary, data).rename(temporary, self.name)
        return Step(replace(self, directory=moved))

    def delete(self) -> Step[Self]:
        """Remove the file."""
        if not self.exists():
            return Step(self, FILE_NOT_FOUND)
        return Step(replace(self, directory=self.directory.remove(self.name)))
