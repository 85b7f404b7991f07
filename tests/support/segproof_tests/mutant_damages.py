# SPDX-License-Identifier: Apache-2.0
"""Drawn damages to real directories, which know what the files are made of.

Where numbers lie in a file decides what is put there: lengths, counts and offsets get their limits,
their neighbours and those of other places; a batch that was changed gets its checksum made right
again as often as not; whole batches, entries and units are moved, doubled and taken out.
"""

import os
import random
import shutil
import struct
from functools import cache
from pathlib import Path

from segproof.compression import SMALL_BATCH_LIMIT_BYTES
from segproof.kafka import Record, write_batch
from segproof.layouts.kafka import BATCH, BATCH_HEADER_BYTES
from segproof.layouts.rocketmq import MESSAGE
from segproof_harness.laws.file_damages import sum_again
from segproof_tests.mutant_files import (
    ENTRIES,
    Drawn,
    Fields,
    drawn_file,
    file_bytes,
    kind_of,
    regular_files,
)
from segproof_tests.mutant_folders import DAMAGES_TO_FOLDERS

__all__ = ["damage", "old_times"]

NUMBERS = (0, 1, -1, 2, 7, 127, 128, 255, 256, 1 << 15, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1)
WIDTHS = {1: "b", 2: "h", 4: "i", 8: "q"}
FIELDS: dict[str, Fields] = {
    ".log": BATCH.places,
    "commitlog": MESSAGE.places,
    **{kind: fields for kind, (_, _, fields) in ENTRIES.items()},
}
FAR_NAMES = ("00000000000000000000", "00000000004000000000", "09223372036854775807",
             "00010000000000000000", "00000000000000000061", "9", "first", "-1")  # fmt: skip
JUNK_BYTES = 64
FAR_BYTES = 1 << 32


def damage(draw: random.Random, folder: Path, other: Path) -> list[str]:
    """Change one to three things below `folder`; pieces may come from `other`."""
    return [draw.choice(DAMAGES)(draw, folder, other) for _ in range(draw.choice((1, 1, 1, 2, 3)))]


def old_times(folder: Path) -> None:
    """Give all below a folder one old time: else a verifier takes it for what is being written."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (1_600_000_000, 1_600_000_000), follow_symlinks=False)


def _starts(data: bytearray, kind: str) -> list[int]:
    """Return where the parts of a file begin: batches, messages or entries; and its end."""
    found, at = [], 0
    if kind in ENTRIES:
        first, size, _ = ENTRIES[kind]
        return list(range(first, len(data), size))
    lead, overhead = (8, 12) if kind == ".log" else (0, 0)
    while kind in (".log", "commitlog") and at + 12 < len(data):
        size = int.from_bytes(data[at + lead : at + lead + 4], "big", signed=True) + overhead
        if size <= 0 or at + size > len(data):
            break
        found.append(at)
        at += size
    return [*found, at]


def _number(draw: random.Random, before: int, width: int) -> int:
    nearby = (before + draw.choice((-1, 1, 2, 12, -8)), before ^ (1 << draw.randrange(8 * width)))
    value = draw.choice((*NUMBERS, *nearby))
    half = 1 << (8 * width - 1)
    return (value + half) % (2 * half) - half


def _field(draw: random.Random, folder: Path, _: Path) -> str:
    """Put another number into a field; a batch may get the right checksum for it."""
    path = drawn_file(draw, folder)
    data, kind = file_bytes(path), kind_of(path)
    starts = _starts(data, kind)
    at = draw.choice(starts or [0])
    offset, width = draw.choice(FIELDS.get(kind) or ((draw.randrange(len(data) + 1), 4),))
    if at + offset + width > len(data):
        return f"{path.name}: nothing, its last part has no such field"
    form = ">" + WIDTHS[width]
    (before,) = struct.unpack_from(form, data, at + offset)
    value = _number(draw, before, width)
    struct.pack_into(form, data, at + offset, value)
    end = min((start for start in starts if start > at), default=at)
    summed = kind == ".log" and draw.random() < 0.7 and end - at >= BATCH_HEADER_BYTES
    if summed:
        sum_again(data, at, end)
    path.write_bytes(data)
    again = ", its checksum made right" if summed else ""
    return f"{path.name}: at {at} + {offset}, {before} became {value}{again}"


def _inner(draw: random.Random, folder: Path, _: Path) -> str:
    """Change a byte behind the header of a batch, and make its checksum right."""
    logs = [path for path in regular_files(folder) if path.suffix == ".log"]
    path = draw.choice(logs or regular_files(folder))
    data = file_bytes(path)
    starts = _starts(data, ".log")
    at = draw.choice(starts)
    end = min((start for start in starts if start > at), default=at)
    if end - at <= BATCH_HEADER_BYTES:
        return f"{path.name}: nothing, no record in the part at {at}"
    place = draw.randrange(at + BATCH_HEADER_BYTES, end)
    data[place] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, data[place] ^ 1 << draw.randrange(8)))
    sum_again(data, at, end)
    path.write_bytes(data)
    return f"{path.name}: byte {place} became {data[place]}, the checksum of {at} made right"


def _parts(draw: random.Random, folder: Path, _: Path) -> str:
    """Swap, double, move or take out whole parts."""
    path = drawn_file(draw, folder)
    data = file_bytes(path)
    starts = _starts(data, kind_of(path))
    if len(starts) < 3:
        return f"{path.name}: nothing, it has no two parts"
    ends = [*starts[1:], len(data)]
    parts = [bytes(data[start:end]) for start, end in zip(starts, ends, strict=True)]
    one, two = draw.randrange(len(parts)), draw.randrange(len(parts))
    how = draw.choice(("swapped", "doubled", "moved", "taken out"))
    if how == "swapped":
        parts[one], parts[two] = parts[two], parts[one]
    elif how == "doubled":
        parts.insert(two, parts[one])
    elif how == "moved":
        parts.insert(two, parts.pop(one))
    else:
        parts.pop(one)
    path.write_bytes(bytes(data[: starts[0]]) + b"".join(parts))
    return f"{path.name}: part {one} {how}, with part {two}"


def _bytes(draw: random.Random, folder: Path, other: Path) -> str:
    """Cut, fill with zeros, add, take out, flip or splice bytes, wherever they lie."""
    path = drawn_file(draw, folder)
    data = file_bytes(path)
    at = draw.randrange(len(data) + 1)
    size = draw.choice((1, 4, 8, 12, 20, 34, 61, 512, 4096, len(data)))
    end = min(len(data), at + size)
    how = draw.choice(("cut", "zeroed", "added", "taken out", "flipped", "spliced", "zeros behind",
                       "followed by a bomb", "followed by a far byte"))  # fmt: skip
    if how == "cut":
        del data[at:]
    elif how == "zeroed":
        data[at:end] = bytes(end - at)
    elif how == "added":
        data[at:at] = draw.randbytes(draw.randrange(JUNK_BYTES))
    elif how == "taken out":
        del data[at:end]
    elif how == "flipped" and at < len(data):
        data[at] ^= 1 << draw.randrange(8)
    elif how == "spliced":
        foreign = file_bytes(drawn_file(draw, other))
        data[at:end] = foreign[at:end]
    elif how == "zeros behind":
        data += bytes(size)
    elif how == "followed by a bomb":
        data += _bomb()
    path.write_bytes(data)
    if how == "followed by a far byte":
        with path.open("r+b") as file:
            file.seek(FAR_BYTES)
            file.write(b"x")
    return f"{path.name}: bytes {at} to {end} {how}"


def _names(draw: random.Random, folder: Path, other: Path) -> str:
    """Rename, double, swap or remove files, or bring one from elsewhere."""
    path, second = drawn_file(draw, folder), drawn_file(draw, folder)
    if not path.is_file():
        return "nothing, no file is left"
    far = draw.choice(FAR_NAMES)
    suffix = draw.choice((path.suffix, path.suffix, ".deleted", ".swap", ".cleaned", ""))
    target = path.with_name(far + suffix)
    how = draw.choice(("renamed", "copied", "swapped", "removed", "replaced", "segment renamed"))
    if how == "renamed":
        path.replace(target)
    elif how == "copied" and target != path:
        shutil.copyfile(path, target)
    elif how == "swapped":
        one, two = path.read_bytes(), second.read_bytes()
        path.write_bytes(two)
        second.write_bytes(one)
        return f"{path.name} and {second.name} swapped"
    elif how == "removed":
        path.unlink()
    elif how == "replaced":
        shutil.copyfile(drawn_file(draw, other), path)
    elif how == "segment renamed":
        for each in path.parent.glob(path.stem + ".*"):
            each.replace(each.with_name(far + each.suffix))
    return f"{path.name} {how}, {target.name}"


def _odd_kinds(draw: random.Random, folder: Path, _: Path) -> str:
    """Put something that is no regular file in the place of one."""
    path = drawn_file(draw, folder)
    path.unlink(missing_ok=True)
    how = draw.choice(("directory", "pipe", "link to nothing", "link to itself", "hole"))
    if how == "directory":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "hole":
        path.touch()
        os.truncate(path, draw.choice((4096, 1 << 32, 1 << 43)))
    else:
        path.symlink_to(path.name if how == "link to itself" else "nowhere")
    return f"{path.name}: a {how}"


def _folders(draw: random.Random, folder: Path, _: Path) -> str:
    """Remove a folder, or tell that a store was not stopped."""
    folders = [
        path for path in sorted(folder.rglob("*")) if path.is_dir() and not path.is_symlink()
    ]
    if len(folders) < 2 or draw.random() < 0.5:
        (folder / "abort").touch()
        return "abort: added"
    path = draw.choice(folders)
    shutil.rmtree(path)
    return f"{path.relative_to(folder)}: removed"


@cache
def _bomb() -> bytes:
    """Return a batch of some ten thousand bytes that inflates to more than is read by default."""
    record = Record(1 << 20, 1_600_000_000_000, None, bytes(2 * SMALL_BATCH_LIMIT_BYTES))
    return write_batch([record], base_offset=1 << 20, compression="gzip")


DAMAGES: tuple[Drawn, ...] = (_field, _field, _field, _inner, _parts, _bytes, _bytes, _names,
                              _odd_kinds, _folders, *DAMAGES_TO_FOLDERS)  # fmt: skip
