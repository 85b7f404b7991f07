# SPDX-License-Identifier: Apache-2.0
"""The file `partition.metadata`: which topic a partition's directory belongs to.

Upstream: Kafka 4.4.0, PartitionMetadataFile and PartitionMetadata. Otherwise: checkpoint_releases,
    checkpoint_deviations.
Layout: UTF-8, `version: 0`, LF, `topic_id: `, 22 characters of url-safe base64; no LF at the end.
Laws: META-1, META-2.
Not covered: an id that is recorded and not yet flushed (here `write` does both).
"""

import base64
import re
from typing import ClassVar, NamedTuple

from segproof_model.kafka.broker.checkpoint_file import lines_of
from segproof_model.language.files import Files
from segproof_model.language.integers import parsed_int
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refuse

VERSION = 0
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


class PartitionMetadataFile(State):
    """A `partition.metadata` at a path.

    >>> file = PartitionMetadataFile(Files(), "partition.metadata")
    >>> file.write(b"sixteen bytes...")
    >>> file.exists(), file.read().topic_id
    (True, b'sixteen bytes...')
    """

    end_kind: ClassVar = ErrorKind.UNMAPPED
    """The error for a file that ends before its second line."""
    base64_kind: ClassVar = ErrorKind.INVALID_ARGUMENT
    """The error for an id that is not written in base64."""

    def __init__(self, files: Files, name: str) -> None:
        self.files, self.name = files, name

    def exists(self) -> bool:
        """Return whether there is a file."""
        return self.name in self.files

    def read(self) -> PartitionMetadata:
        """Return what the file says (META-1, META-2)."""
        if not self.exists():
            refuse(ErrorKind.FILE_NOT_FOUND)
        lines = lines_of(self.files.image(self.name))
        if not lines:
            refuse(self.end_kind)
        version = parsed_int(_value_of(lines[0]) or "", 32)
        if version is None or not self.is_known(version):
            refuse(ErrorKind.IO_ERROR)
        if len(lines) < 2:
            refuse(self.end_kind)
        text = _value_of(lines[1])
        if text is None:
            refuse(ErrorKind.IO_ERROR)
        if not re.fullmatch("[A-Za-z0-9_-]{22}(==)?", text):
            refuse(self.base64_kind)
        topic_id = base64.urlsafe_b64decode(text[:22] + "==")
        if topic_id == ZERO:
            refuse(ErrorKind.IO_ERROR)
        return PartitionMetadata(version, topic_id)

    def is_known(self, version: int) -> bool:
        """Return whether a file of this version is read."""
        return version >= VERSION

    def write(self, topic_id: bytes) -> None:
        """Let the file name this topic, by way of `.tmp`."""
        temporary = f"{self.name}.tmp"
        self.files.write(temporary, PartitionMetadata(VERSION, topic_id).to_bytes())
        self.files.rename(temporary, self.name)

    def delete(self) -> None:
        """Remove the file."""
        if not self.files.remove(self.name):
            refuse(ErrorKind.FILE_NOT_FOUND)


def _value_of(line: str) -> str | None:
    """Return what stands behind the colon and white space, if it does so once."""
    parts = re.split(":[ \t\n\v\f\r]+", line)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts[1] if len(parts) == 2 else None
