# SPDX-License-Identifier: Apache-2.0
"""Every verb on one mutant: how it ended, what it said, and what it took and changed.

`explain` is left out: it reads no directory but those of the package.
"""

import contextlib
import hashlib
import io
import os
import random
import re
import stat
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from segproof import scan
from segproof.errors import RowsLeftOutWarning, SegproofError
from segproof.tables.schemas import TABLES
from segproof_harness import cli

__all__ = ["Asked", "contents", "ended_badly", "rebuilt_in_place", "saved", "scanned"]

MEMORY_MIB = 192
"""What the verbs may take beside what the process has before, some 60 MiB: 256 in all."""
EXPECTED_CODES = (0, 1)
USAGE = 2
MAY_LACK = ("lookup", "rebuild", "salvage")
"""Verbs that refuse a directory which lacks what they need to begin."""
LAYOUTS = ("the layout of", "which segproof does not read")
"""A whole layout that is not read has nothing to list or to show."""
REFUSALS = re.compile(
    "there is no commit log in this store|there is no partition with a log here|this is a part|"
    "of such a store nothing is made|segproof does not read them|"
    "a link out of its folder is not read|cannot be read|a cluster's metadata is not saved|"
    "segproof follows no such link|no log is in this folder|files of the log are missing before"
)
"""The reasons for which a salvage may keep nothing."""
HASHED_BYTES = 1 << 28
"""Of a larger file, which is all hole, only the length is compared."""
INDEXES = re.compile(
    r"(.*/)?([0-9]+\.(index|timeindex|txnindex)|index(/.*)?|segproof-index\.guessed)"
)
"""What `rebuild --in-place` may change."""


class Asked(NamedTuple):
    """What the verbs are run on."""

    folder: Path
    is_store: bool
    """Whether the healthy directory is a store of RocketMQ."""
    has_parts: bool
    """Whether the mutant still is a directory of that kind."""
    questions: Mapping[str, tuple[str, ...]]
    """For each partition or store below the folder, what is looked up in it."""


def ended_badly(draw: random.Random, asked: Asked, scratch: Path) -> Iterator[str]:
    """Run the verbs that leave a directory as it is, and tell of those that end badly."""
    for arguments in _commands(draw, asked, scratch):
        yield from _judged(asked, arguments)[1]


def saved(draw: random.Random, asked: Asked, out: Path) -> tuple[bool, list[str]]:
    """Salvage a mutant; return whether all was said to be kept, and what went wrong."""
    more = [*_one_job(asked), *([] if asked.is_store else draw.choice(([], ["--records"])))]
    more += draw.choice(([], ["--format", "jsonl"]))
    code, wrong = _judged(asked, ["salvage", str(asked.folder), "--out", str(out), *more])
    return code == 0, wrong


def scanned(draw: random.Random, asked: Asked) -> Iterator[str]:
    """Read one table of a mutant, and tell of an error that is none of its files."""
    table, damage = draw.choice(sorted(TABLES)), draw.choice(("fail", "skip", "keep"))
    more: dict[str, Any] = {} if table == "findings" else {"on_damage": damage}
    with warnings.catch_warnings(), contextlib.suppress(SegproofError, OSError):
        warnings.simplefilter("ignore", RowsLeftOutWarning)
        for rows in scan(asked.folder, table=table, **more):
            if rows.num_rows == 0:
                yield f"scan of {table}: a batch without a row"


def rebuilt_in_place(asked: Asked) -> list[str]:
    """Rebuild the indexes of a mutant itself, and tell of other files that this changed."""
    before = _but_folders(asked.folder)
    _, wrong = _judged(asked, ["rebuild", str(asked.folder), "--in-place", *_one_job(asked)])
    after = _but_folders(asked.folder)
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    others = sorted(name for name in changed if not INDEXES.fullmatch(name))
    if others:
        wrong.append(f"rebuild --in-place changed {others}")
    return wrong


def _commands(draw: random.Random, asked: Asked, scratch: Path) -> Iterator[list[str]]:
    path = str(asked.folder)
    form = ["--format", draw.choice(("text", "jsonl", "sarif", "junit"))]
    way = draw.choice((["--deep", *form], form, ["--summary"], ["--all"]))
    yield ["verify", path, "--jobs", "1", *way, *draw.choice(([], ["--fail-on", "not-checked"]))]
    yield ["dump", path, *_rows(draw), *draw.choice(([], *[["--max", "20"]] * 3))]
    place = draw.choice(sorted(asked.questions))
    more = draw.choice(([], ["--explain"], ["--format", "jsonl"]))
    yield ["lookup", str(asked.folder / place), *asked.questions[place], *more]
    yield ["ls", path, *draw.choice(([], ["--segments"], ["--format", "jsonl"]))]
    where = draw.choice((["--dry-run"], ["--out", str(scratch / "rebuilt")]))
    yield ["rebuild", path, *where, *_one_job(asked)]
    yield ["report", path, "--jobs", "1", "--out", str(scratch / "report.html")]
    files = [each for each in sorted(asked.folder.rglob("*")) if not each.is_dir()]
    if files:
        verb, file = draw.choice(("verify", "dump")), str(draw.choice(files))
        yield [verb, file, *(_rows(draw) if verb == "dump" else ["--deep"])]


def _one_job(asked: Asked) -> list[str]:
    return [] if asked.is_store else ["--jobs", "1"]


def _rows(draw: random.Random) -> list[str]:
    """Draw how a dump shows rows, and what it does where some are damaged."""
    form = ["--format", draw.choice(("text", "jsonl", "csv", "parquet"))]
    damage = ["--on-damage", draw.choice(("fail", "skip", "keep"))]
    return [*form, *damage, *draw.choice(([], ["--records"]))]


def _judged(asked: Asked, arguments: list[str]) -> tuple[int, list[str]]:
    """Run a verb; return its exit code and what of its end is wrong."""
    _forget_peak()  # of the judge itself
    at_rest = _resident_mib("VmRSS")
    code, said = _run(arguments)
    taken = _resident_mib("VmHWM") - at_rest
    shown = " ".join([*arguments[:1], *arguments[2:]])
    # A file that can't be read is usage, so is a folder in which neither log nor index is left.
    may_be_usage = arguments[0] in MAY_LACK or not os.path.isdir(arguments[1])
    may_be_usage |= not asked.has_parts
    may_be_usage |= arguments[0] in ("dump", "ls") and any(one in said for one in LAYOUTS)
    if arguments[0] == "salvage" and not REFUSALS.search(said):
        may_be_usage = False
    wrong = []
    if code not in EXPECTED_CODES and not (code == USAGE and may_be_usage):
        wrong.append(f"{shown}: exit {code}: {said[-300:]}")
    if "Traceback (most recent" in said:
        wrong.append(f"{shown}: a traceback: {said[-300:]}")
    if taken > MEMORY_MIB:
        _forget_peak()
        wrong.append(f"{shown}: {taken} MiB of memory")
    return code, wrong


def _run(arguments: list[str]) -> tuple[int, str]:
    """Run a command line in this process; return its exit code and the end of what it said."""
    said = io.StringIO()
    with contextlib.redirect_stdout(_Nowhere()), contextlib.redirect_stderr(said):
        code = cli.run(arguments)
    return code, said.getvalue()


class _NowhereInBytes(io.RawIOBase):
    """A stream of bytes that keeps nothing."""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        return len(memoryview(data))  # type: ignore[arg-type]


class _Nowhere(io.TextIOBase):
    """A stream that keeps nothing."""

    buffer = _NowhereInBytes()

    def write(self, text: str) -> int:
        return len(text)


# --- what a process took and left


def contents(folder: Path) -> dict[str, str]:
    """Return kind, times and bytes of all below a folder; of what lies in holes only the length."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        status = path.lstat()
        told = f"{status.st_mode} {status.st_size} {status.st_mtime_ns}"
        if stat.S_ISLNK(status.st_mode):
            told += os.readlink(path)
        elif stat.S_ISREG(status.st_mode) and status.st_size < HASHED_BYTES:
            told += hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(folder))] = told
    return found


def _but_folders(folder: Path) -> dict[str, str]:
    """Return all but folders; a link to one stays, whether or not it is there yet."""
    all_of_them = contents(folder)
    return {name: kept for name, kept in all_of_them.items() if not _is_folder(folder / name)}


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _resident_mib(name: str) -> int:
    """Return `VmRSS`, what this process has in memory, or `VmHWM`, the peak of it; 0: unknown."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) >> 10
    return 0
