# SPDX-License-Identifier: Apache-2.0
"""What the commit log and a consume queue share: a row of files of one size.

Upstream: RocketMQ 5.5.1, MappedFileQueue.
Layout: `<folder>/<20 digits>`: the position of the file's first byte.
Laws: RMQDISK-39.
Not covered: files that are no regular ones; a name that is not 20 digits, or in which not all bytes
    of a file would have an offset of 63 bits.
"""

from segproof_model.language.files import Files
from segproof_model.language.integers import INT32_MAX, INT64_MAX
from segproof_model.language.states import State

LAST_START = INT64_MAX - INT32_MAX
"""Behind it not all bytes of the longest file have an offset."""


def offset_to_file_name(start: int) -> str:
    """Return the name of the file that begins at an offset.

    >>> offset_to_file_name(65536)
    '00000000000000065536'
    """
    return f"{start:020d}"


class MappedFileQueue(State):
    """The files of a folder that are named by where they begin."""

    def __init__(self, files: Files, folder: str, mapped_file_size: int) -> None:
        """Name the files; nothing is made."""
        self.files, self.folder = files, folder
        self.mapped_file_size = mapped_file_size
        """How many bytes each file takes."""

    def path(self, start: int) -> str:
        """Return the name of the file that begins at a position."""
        return f"{self.folder}/{offset_to_file_name(start)}"

    def image(self, start: int) -> bytes:
        """Return all bytes of the file that begins at a position."""
        return self.files.image(self.path(start))

    def mapped(self, start: int) -> bytes:
        """Return the bytes of that file, but for those that another one takes."""
        return self.image(start)[: self.mapped_file_size]

    def starts(self) -> list[int]:
        """Return the positions at which files begin, in order."""
        front = f"{self.folder}/"
        names = [name[len(front) :] for name in self.files.images if name.startswith(front)]
        numbers = [int(n) for n in names if len(n) == 20 and n.isascii() and n.isdigit()]
        return sorted(number for number in numbers if number <= LAST_START)

    def start_of(self, position: int) -> int | None:
        """Return where the file begins that takes a position; None without one."""
        for start in self.starts():
            if start <= position < start + self.mapped_file_size:
                return start
        return None
