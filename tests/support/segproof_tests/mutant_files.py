# SPDX-License-Identifier: Apache-2.0
"""Which files a directory has, and of which kind they are; for damages that are drawn."""

import random
import stat
from collections.abc import Callable
from pathlib import Path

from segproof.layouts.kafka import INDEX_ENTRIES
from segproof.layouts.rocketmq import CHECKPOINT, INDEX_ENTRY, INDEX_HEADER, QUEUE_UNIT, TIMER_ENTRY

__all__ = ["ENTRIES", "Drawn", "Fields", "drawn_file", "file_bytes", "kind_of", "regular_files"]

Drawn = Callable[[random.Random, Path, Path], str]
"""Changes something in a directory; is given another one, and says in words what it did."""

Fields = tuple[tuple[int, int], ...]

ENTRIES: dict[str, tuple[int, int, Fields]] = {
    **{suffix: (0, one.size, one.places) for suffix, one in INDEX_ENTRIES.items()},
    "consumequeue": (0, QUEUE_UNIT.size, QUEUE_UNIT.places),
    "index": (INDEX_HEADER.size, INDEX_ENTRY.size, INDEX_ENTRY.places),
    "checkpoint": (0, 8, CHECKPOINT.places[:1]),
    "timerlog": (0, TIMER_ENTRY.size, TIMER_ENTRY.places[:-1]),
}
"""By suffix or folder: where the first entry lies, how long each is, and its fields."""
FOLDERS = ("commitlog", "consumequeue", "index", "timerlog")
LARGE_BYTES = 1 << 26


def regular_files(folder: Path) -> list[Path]:
    """Return the regular files below a folder, but for one that is all hole."""
    found = [path for path in sorted(folder.rglob("*")) if stat.S_ISREG(path.lstat().st_mode)]
    return [path for path in found if path.stat().st_size < LARGE_BYTES] or [folder / "nothing"]


def drawn_file(draw: random.Random, folder: Path) -> Path:
    """Draw a kind of file, and one of the kind: of some there are many more than of others."""
    files = regular_files(folder)
    kind = draw.choice(sorted({kind_of(path) for path in files}))
    return draw.choice([path for path in files if kind_of(path) == kind])


def file_bytes(path: Path) -> bytearray:
    """Return what a file holds; nothing of one that is not there, or is all hole."""
    is_small = path.is_file() and path.stat().st_size < LARGE_BYTES
    return bytearray(path.read_bytes() if is_small else b"")


def kind_of(path: Path) -> str:
    """Return what decides how a file is made up: its suffix or, in a store, its folder."""
    if path.suffix in (".log", *ENTRIES):
        return path.suffix
    kinds = [part for part in path.parts[-4:] if part in FOLDERS]
    return kinds[-1] if kinds else path.name
