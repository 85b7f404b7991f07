# SPDX-License-Identifier: Apache-2.0
"""A directory as a value: names to bytes.

Used by: every structure that creates, renames or deletes files.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Directory:
    """The regular files of one directory, sorted by name; equal directories compare equal.

    >>> one = Directory().write("a", b"x")
    >>> one.rename("a", "b").read("b"), one.read("b")
    (b'x', None)
    """

    files: tuple[tuple[str, bytes], ...] = ()

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.files)

    def __contains__(self, name: str) -> bool:
        return any(name == known for known, _ in self.files)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of the file, or None if there is none."""
        for known, data in self.files:
            if known == name:
                return data
        return None

    def write(self, name: str, data: bytes) -> "Directory":
        """Return the directory in which the file `name` holds exactly `data`."""
        known = self.read(name)
        if known == data:
            return self
        if known is None:
            return Directory(tuple(sorted((*self.files, (name, data)))))
        return Directory(tuple((name, data) if pair[0] == name else pair for pair in self.files))

    def remove(self, name: str) -> "Directory":
        """Return the directory without the file; the same directory if there is none."""
        if name not in self:
            return self
        return Directory(tuple(pair for pair in self.files if pair[0] != name))

    def rename(self, source: str, target: str) -> "Directory":
        """Return the directory with `source` moved over `target`; unchanged without `source`."""
        data = self.read(source)
        return self if data is None else self.remove(source).write(target, data)
