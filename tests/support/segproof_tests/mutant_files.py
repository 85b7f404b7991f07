# SPDX-License-Identifier: Apache-2.0
"""Which files a directory has, and of which kind they are; for damages that are drawn."""

import random
import stat
from collections.abc import Callable
from pathlib import Path

__all__ = ["ENTRIES", "Drawn", "Fields", "drawn_file", "file_bytes", "kind_of", "regular_files"]

Drawn = Callable[[random.Random, Path, Path], str]
"""Changes something in a directory; is given another one, and says in words what it did."""

Fields = tuple[tuple[int, int], ...]

ENTRIES: dict[str, tuple[int, int, Fields]] = {
    ".index": (0, 8, ((0, 4), (4, 4))),
    ".timeindex": (0, 12, ((0, 8), (8, 4))),
    ".txnindex": (0, 34, ((0, 2), (2, 8), (10, 8), (18, 8), (26, 8))),
    "consumequeue": (0, 20, ((0, 8), (8, 4), (12, 8))),
    "index": (40, 20, ((0, 4), (4, 8), (12, 4), (16, 4))),
    "checkpoint": (0, 8, ((0, 8),)),
    "timerlog": (0, 52, ((0, 4), (4, 8), (12, 4), (16, 8), (24, 4), (28, 8), (36, 4))),
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
