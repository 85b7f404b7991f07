# SPDX-License-Identifier: Apache-2.0
"""Counts the extents of folders that are kept at once: memory must not grow with the folders."""

import weakref
from dataclasses import dataclass, field
from types import ModuleType

import pytest

from segproof.files import Files
from segproof.inventory.folder_extents import Extent, extent_of


@dataclass
class ExtentsRead:
    """What was read of folders."""

    paths: list[str] = field(default_factory=list)
    most_kept: int = 0
    """How many extents were kept at once, at most."""


def count_extents(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> ExtentsRead:
    """Count the extents that a module reads, and how many of them are kept at once.

    Their arrays are watched, as a tuple cannot be.
    """
    read = ExtentsRead()
    kept: dict[int, str] = {}

    def counted(path: str, files: Files) -> Extent:
        extent = extent_of(path, files)
        number = len(read.paths)
        read.paths.append(path)
        kept[number] = path
        weakref.finalize(extent.batches, kept.pop, number)
        read.most_kept = max(read.most_kept, len(kept))
        return extent

    monkeypatch.setattr(module, "extent_of", counted)
    return read
