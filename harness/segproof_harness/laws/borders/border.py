# SPDX-License-Identifier: Apache-2.0
"""A border of a law: two directories that lie next to each other, on either side of one bound.

The files and the findings that are due follow from the sentence of the law, never from a run of
`verify`. The predicate of the model judges both sides too, where the law has one for such files.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segproof.findings import Severity

PARTITION, STORE = "t-0", "store"
DIRECTORY = "{directory}"
"""Stands for the path of the directory in the words of a finding."""


@dataclass(frozen=True, slots=True)
class Zeros:
    """A file of zeros that takes no room on the disk."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link; `target` is relative to the directory of the link."""

    target: str


class Folder:
    """An empty directory."""


Content = bytes | Zeros | Link | Folder
Files = Mapping[str, Content]
"""The files of a directory, by their names below it; `../NAME` lies beside the directory."""


@dataclass(frozen=True, slots=True)
class Due:
    """A finding that one side of a border must give."""

    file: str
    """Name of the file below the directory that is written; empty: the directory."""
    position: int | None = None
    """Byte in that file; None: the law is about no single byte."""
    expected: object = None
    actual: object = None
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True)
class Border:
    """The two sides of one bound of a law."""

    law: str
    bound: str
    """What differs between the two sides, in words."""
    lawful: Files
    unlawful: Files
    due: Due | Sequence[Due]
    """The only findings of the law on the unlawful side."""
    still: Due | Sequence[Due] = ()
    """The only findings of the law on the lawful side. Not empty where the bound divides two
    severities: then `lawful` is the milder side."""
    deep: bool = False
    """Whether `verify` has to read the records."""
    below: str = ""
    """The path to verify, below the directory."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further parameters of `verify`."""
    folder: str = PARTITION
    """The name of the directory; `store` for RocketMQ."""
    not_by_the_model: str = ""
    """Why the predicate of the model is not asked; empty: it is, where the law has one."""

    @property
    def is_of_severity(self) -> bool:
        """Whether the bound divides two severities."""
        return bool(self.dues(self.still))

    @staticmethod
    def dues(told: Due | Sequence[Due]) -> list[Due]:
        """Return one finding or several as a list."""
        return [told] if isinstance(told, Due) else list(told)


WRITTEN_S = 10**9
"""When the files seem to have changed: long ago, so that `verify` waits for no writer."""


def write_files(files: Files, folder: Path) -> None:
    """Write the files into a directory, which must not exist."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, Zeros):
            with path.open("wb") as file:
                file.truncate(content.size_bytes)
        elif isinstance(content, Link):
            path.symlink_to(content.target)
        else:
            path.mkdir()
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (WRITTEN_S, WRITTEN_S), follow_symlinks=False)
