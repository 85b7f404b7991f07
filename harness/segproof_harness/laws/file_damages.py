# SPDX-License-Identifier: Apache-2.0
"""Small damages to files in a folder, for examples of broken laws."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from segproof.checksums import crc32, crc32c
from segproof.layouts.kafka import BATCH, CHECKED_FROM, MESSAGE_1, MESSAGE_CHECKED_FROM

Damage = Callable[[Path], None]
"""Changes the files in a partition directory."""


@dataclass(frozen=True, slots=True)
class Example:
    """One way to break a law."""

    damage: str
    """What was done, in words."""
    do: Damage
    scenario: str
    """The directory whose copy is damaged."""
    deep: bool = False
    """Whether only a deep run sees it."""
    below: str = ""
    """The path to verify, below the partition directory; empty: the directory."""
    system: str = "kafka"
    """Or `rocketmq`; then the directory is a store."""


def overwrite(name: str, position: int, data: bytes) -> Damage:
    """Replace bytes of a file."""

    def do(folder: Path) -> None:
        with (folder / name).open("r+b") as file:
            file.seek(position)
            file.write(data)

    return do


def flip(name: str, position: int) -> Damage:
    """Flip the lowest bit of a byte."""

    def do(folder: Path) -> None:
        before = (folder / name).read_bytes()[position]
        overwrite(name, position, bytes([before ^ 1]))(folder)

    return do


def add(name: str, data: bytes) -> Damage:
    """Append bytes to a file, which is created if there is none."""

    def do(folder: Path) -> None:
        with (folder / name).open("ab") as file:
            file.write(data)

    return do


def write(name: str, data: bytes) -> Damage:
    """Let a file hold exactly these bytes; its folder is made if it is missing."""

    def do(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(data)

    return do


def cut(name: str, size: int) -> Damage:
    """Cut so many bytes off the end of a file."""
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size - size)


def remove(name: str) -> Damage:
    """Remove a file."""
    return lambda folder: (folder / name).unlink()


def rename(source: str, target: str) -> Damage:
    """Give a file another name."""

    def do(folder: Path) -> None:
        (folder / source).replace(folder / target)

    return do


def together(*damages: Damage) -> Damage:
    """Do one damage after another."""

    def do(folder: Path) -> None:
        for damage in damages:
            damage(folder)

    return do


def swap(name: str, one: int, other: int, size: int) -> Damage:
    """Swap two stretches of a file."""

    def do(folder: Path) -> None:
        data = (folder / name).read_bytes()
        overwrite(name, one, data[other : other + size])(folder)
        overwrite(name, other, data[one : one + size])(folder)

    return do


def sum_again(data: bytearray, start: int = 0, end: int | None = None) -> None:
    """Make the checksum of the batch in a stretch of bytes right again."""
    batch = bytes(data[start:end])
    if BATCH["magic"].of(batch) == 2:
        BATCH["crc"].put(data, crc32c(batch[CHECKED_FROM:]), start)
    else:
        MESSAGE_1["crc"].put(data, crc32(batch[MESSAGE_CHECKED_FROM:]), start)


def int16(value: int) -> bytes:
    """Return the 2 bytes of a number."""
    return value.to_bytes(2, "big", signed=True)


def int32(value: int) -> bytes:
    """Return the 4 bytes of a number."""
    return value.to_bytes(4, "big", signed=True)


def int64(value: int) -> bytes:
    """Return the 8 bytes of a number."""
    return value.to_bytes(8, "big", signed=True)
