# SPDX-License-Identifier: Apache-2.0
"""Small damages to files in a folder, for examples of broken laws."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from segproof.checksums import crc32, crc32c
from segproof.layouts.kafka import BATCH, CHECKED_FROM, MESSAGE_1, MESSAGE_CHECKED_FROM

Damage = Callable[[Path], None]
"""Changes the files in a partition directory."""
Subject = TypeVar("Subject")
Given = ParamSpec("Given")
Result = TypeVar("Result")


def later(
    do: Callable[Concatenate[Subject, Given], Result],
) -> Callable[Given, Callable[[Subject], Result]]:
    """Let a function be given what differs first, and what it is done to later.

    Of `f(folder, name)` it makes `f(name)(folder)`, as damages are told in tables.
    """

    @wraps(do)
    def given(*arguments: Given.args, **options: Given.kwargs) -> Callable[[Subject], Result]:
        def on(subject: Subject) -> Result:
            return do(subject, *arguments, **options)

        on.__name__ = do.__name__  # by which a row of a test is called
        return on

    return given


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


@later
def overwrite(folder: Path, name: str, position: int, data: bytes) -> None:
    """Replace bytes of a file."""
    with (folder / name).open("r+b") as file:
        file.seek(position)
        file.write(data)


@later
def flip(folder: Path, name: str, position: int) -> None:
    """Flip the lowest bit of a byte."""
    before = (folder / name).read_bytes()[position]
    overwrite(name, position, bytes([before ^ 1]))(folder)


@later
def add(folder: Path, name: str, data: bytes) -> None:
    """Append bytes to a file, which is created if there is none."""
    with (folder / name).open("ab") as file:
        file.write(data)


@later
def write(folder: Path, name: str, data: bytes) -> None:
    """Let a file hold exactly these bytes; its folder is made if it is missing."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_bytes(data)


def cut(name: str, size: int) -> Damage:
    """Cut so many bytes off the end of a file."""
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size - size)


def remove(name: str) -> Damage:
    """Remove a file."""
    return lambda folder: (folder / name).unlink()


@later
def rename(folder: Path, source: str, target: str) -> None:
    """Give a file another name."""
    (folder / source).replace(folder / target)


@later
def together(folder: Path, *damages: Damage) -> None:
    """Do one damage after another."""
    for damage in damages:
        damage(folder)


@later
def swap(folder: Path, name: str, one: int, other: int, size: int) -> None:
    """Swap two stretches of a file."""
    data = (folder / name).read_bytes()
    overwrite(name, one, data[other : other + size])(folder)
    overwrite(name, other, data[one : one + size])(folder)


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
