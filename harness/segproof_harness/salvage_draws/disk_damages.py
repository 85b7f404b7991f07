# SPDX-License-Identifier: Apache-2.0
"""Damage as disks, file systems and hands make it, to files that are held in memory.

A damage is drawn, done, and noted: its kind, the file, the position and the size. It knows blocks
and bytes only; what knows batches or messages is beside it (`kafka_damages`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

BLOCKS = (512, 512, 4096)
"""Sizes in bytes of the blocks that disks write: a sector, and a page of most file systems."""
BLOCKS_AT_ONCE = (1, 1, 1, 2, 8)
"""How many blocks go to a wrong place together."""
HOLE_BLOCKS = (2, 4, 8)
"""Blocks of a hole, which is larger than what else becomes zeros."""


class Damage(NamedTuple):
    """One damage that was done."""

    kind: str
    name: str
    """The file that was damaged."""
    position: int
    size: int
    source: str = ""
    """For a block that was moved: the file and the position that it came from."""

    def __str__(self) -> str:
        """Return the damage in words."""
        words = f"{self.kind}: {self.name} at {self.position}, {self.size} bytes"
        return f"{words} from {self.source}" if self.source else words


@dataclass
class Damaged:
    """Files of one log while they are damaged."""

    names: list[str]
    """The name of each file, rising."""
    files: list[bytearray]
    starts: list[list[int]]
    """For each file, where its batches or messages begin, as written."""
    foreign: bytes = b""
    """A file of the log of another topic or store."""
    done: list[Damage] = field(default_factory=list)

    def note(self, kind: str, number: int, position: int, size: int, source: str = "") -> None:
        """Note a damage to the file of an index, unless it hit no byte."""
        if size or source:
            self.done.append(Damage(kind, self.names[number], position, size, source))


class Target(NamedTuple):
    """A stretch of a file."""

    number: int
    """The index of the file in `Damaged.files`."""
    start: int
    end: int


def a_file(damaged: Damaged, random: Random) -> int:
    """Return the index of a file with bytes; of any file if all are empty."""
    filled = [number for number, data in enumerate(damaged.files) if data]
    return random.choice(filled or range(len(damaged.files)))


def a_part(damaged: Damaged, random: Random) -> Target:
    """Return the stretch of one batch or message, as it was written."""
    number = a_file(damaged, random)
    size = len(damaged.files[number])
    starts = [at for at in damaged.starts[number] if at < size] or [0]
    place = random.randrange(len(starts))
    return Target(number, starts[place], (starts[place + 1 :] or [size])[0])


def some_blocks(damaged: Damaged, random: Random, counts: tuple[int, ...] = (1,)) -> Target:
    """Return a stretch of whole blocks, cut at the end of the file."""
    number = a_file(damaged, random)
    size, block = len(damaged.files[number]), random.choice(BLOCKS)
    start = random.randrange(0, max(1, size), block)
    return Target(number, start, min(size, start + block * random.choice(counts)))


def put(damaged: Damaged, kind: str, target: Target, data: bytes, source: str = "") -> None:
    """Write bytes over a stretch, and note it; the file keeps its length."""
    data = data[: target.end - target.start]
    damaged.files[target.number][target.start : target.start + len(data)] = data
    damaged.note(kind, target.number, target.start, len(data), source)


def flip(damaged: Damaged, kind: str, number: int, position: int, random: Random) -> None:
    """Flip one bit of a byte, and note it."""
    if position < len(damaged.files[number]):
        damaged.files[number][position] ^= 1 << random.randrange(8)
        damaged.note(kind, number, position, 1)


def bit_of_field(kind: str, offset: int, width: int) -> Callable[[Damaged, Random], None]:
    """Return the damage that flips one bit of a field of a batch or message."""

    def do(damaged: Damaged, random: Random) -> None:
        part = a_part(damaged, random)
        place = part.start + offset + random.randrange(width)
        flip(damaged, kind, part.number, place, random)

    return do


def _one_bit(damaged: Damaged, random: Random) -> None:
    number = a_file(damaged, random)
    flip(damaged, "one bit", number, random.randrange(len(damaged.files[number]) or 1), random)


def _zeros(damaged: Damaged, random: Random) -> None:
    target = some_blocks(damaged, random, (1, 1, 3))
    put(damaged, "zeros", target, bytes(target.end - target.start))


def _hole(damaged: Damaged, random: Random) -> None:
    target = some_blocks(damaged, random, HOLE_BLOCKS)
    put(damaged, "hole", target, bytes(target.end - target.start))


def _garbage(damaged: Damaged, random: Random) -> None:
    target = some_blocks(damaged, random, (1, 1, 3))
    put(damaged, "garbage", target, random.randbytes(target.end - target.start))


def _between(damaged: Damaged, kind: str, one: Target, other: Target, *, is_swap: bool) -> None:
    """Copy the stretch `other` over `one`; with `is_swap` the two change places."""
    first = damaged.files[one.number]
    second = damaged.files[other.number]
    size = min(one.end - one.start, other.end - other.start)
    here = bytes(first[one.start : one.start + size])
    there = bytes(second[other.start : other.start + size])
    source = f"{damaged.names[other.number]} at {other.start}"
    put(damaged, kind, one, there, source)
    if is_swap:
        second[other.start : other.start + size] = here


def _block_copied(damaged: Damaged, random: Random) -> None:
    one = some_blocks(damaged, random, BLOCKS_AT_ONCE)
    start = random.randrange(0, max(1, len(damaged.files[one.number])), 512)
    end = min(len(damaged.files[one.number]), start + one.end - one.start)
    other = Target(one.number, start, end)
    _between(damaged, "block copied", one, other, is_swap=False)


def _copies(damaged: Damaged, random: Random) -> None:
    """Write one block to two or three more places of its file."""
    block = some_blocks(damaged, random)
    size, length = len(damaged.files[block.number]), block.end - block.start
    for _ in range(random.choice((2, 3))):
        start = random.randrange(0, max(1, size), 512)
        over = Target(block.number, start, min(size, start + length))
        _between(damaged, "copies of a block", over, block, is_swap=False)


def _blocks_swapped(damaged: Damaged, random: Random) -> None:
    one = some_blocks(damaged, random, BLOCKS_AT_ONCE)
    size = len(damaged.files[one.number])
    start = random.randrange(0, max(1, size), 512)
    length = min(one.end - one.start, size - start, abs(start - one.start))
    other = Target(one.number, start, start + length)
    _between(damaged, "blocks swapped", one, other, is_swap=True)


def _misdirected(damaged: Damaged, random: Random) -> None:
    """Write blocks of one file into another, most often to the same position."""
    one = some_blocks(damaged, random, BLOCKS_AT_ONCE)
    numbers = [number for number in range(len(damaged.files)) if number != one.number]
    number = random.choice(numbers or [one.number])
    size = len(damaged.files[number])
    start = one.start if random.random() < 0.6 else random.randrange(0, max(1, size), 512)
    other = Target(number, min(start, size), min(size, start + one.end - one.start))
    _between(damaged, "misdirected write", one, other, is_swap=random.random() < 0.3)


def _foreign_block(damaged: Damaged, random: Random) -> None:
    """Write blocks of the other topic's log; often to the position that they had there."""
    one = some_blocks(damaged, random, BLOCKS_AT_ONCE)
    start = one.start
    if random.random() < 0.5 or start >= len(damaged.foreign):
        start = random.randrange(0, max(1, len(damaged.foreign)), 512)
    data = damaged.foreign[start : start + one.end - one.start]
    put(damaged, "foreign block", one, data, f"another log at {start}")


def _shifted(damaged: Damaged, random: Random) -> None:
    """Put a block in, or take one out: all that follows lies a block further on, or back."""
    block = some_blocks(damaged, random)
    data, size = damaged.files[block.number], block.end - block.start
    if random.random() < 0.5:
        data[block.start : block.start] = random.choice((bytes(size), random.randbytes(size)))
        damaged.note("block put in", block.number, block.start, size)
    else:
        del data[block.start : block.end]
        damaged.note("block taken out", block.number, block.start, size)


def _bytes_shifted(damaged: Damaged, random: Random) -> None:
    """Put some bytes in, or take some out, at any position."""
    number = a_file(damaged, random)
    data, size = damaged.files[number], random.choice((1, 8, 100, 5000))
    at = random.randrange(max(1, len(data)))
    if random.random() < 0.5:
        data[at:at] = random.randbytes(size)
        damaged.note("bytes put in", number, at, size)
    else:
        damaged.note("bytes taken out", number, at, len(data[at : at + size]))
        del data[at : at + size]


def _torn(damaged: Damaged, random: Random) -> None:
    number = a_file(damaged, random)
    at = random.randrange(max(1, len(damaged.files[number])))
    damaged.note("torn end", number, at, len(damaged.files[number]) - at)
    del damaged.files[number][at:]


def _cut_between(damaged: Damaged, random: Random) -> None:
    part = a_part(damaged, random)
    data = damaged.files[part.number]
    damaged.note("cut between parts", part.number, part.start, len(data) - part.start)
    del data[part.start :]


def _part_twice(damaged: Damaged, random: Random) -> None:
    part = a_part(damaged, random)
    data = damaged.files[part.number]
    data[part.end : part.end] = data[part.start : part.end]
    damaged.note("part twice", part.number, part.end, part.end - part.start)


def _parts_swapped(damaged: Damaged, random: Random) -> None:
    """Let a part and the one after it change places."""
    part = a_part(damaged, random)
    data = damaged.files[part.number]
    later = [at for at in damaged.starts[part.number] if at > part.end] or [len(data)]
    stretch = data[part.end : later[0]] + data[part.start : part.end]
    data[part.start : part.start + len(stretch)] = stretch
    damaged.note("parts swapped", part.number, part.start, len(stretch))


def _names_swapped(damaged: Damaged, random: Random) -> None:
    if len(damaged.names) > 1:
        one, other = sorted(random.sample(range(len(damaged.names)), 2))
        files, starts = damaged.files, damaged.starts
        files[one], files[other] = files[other], files[one]
        starts[one], starts[other] = starts[other], starts[one]
        damaged.note("names swapped", one, 0, len(damaged.files[one]), damaged.names[other])


def _file_lost(damaged: Damaged, random: Random) -> None:
    if len(damaged.names) > 1:
        number = random.randrange(len(damaged.names))
        damaged.note("file lost", number, 0, len(damaged.files[number]))
        for each in (damaged.names, damaged.files, damaged.starts):
            del each[number]


DISK_DAMAGES: dict[str, Callable[[Damaged, Random], None]] = {
    "one bit": _one_bit,
    "zeros": _zeros,
    "hole": _hole,
    "garbage": _garbage,
    "block copied": _block_copied,
    "copies of a block": _copies,
    "blocks swapped": _blocks_swapped,
    "misdirected write": _misdirected,
    "foreign block": _foreign_block,
    "shifted by a block": _shifted,
    "shifted by bytes": _bytes_shifted,
    "torn end": _torn,
    "cut between parts": _cut_between,
    "part twice": _part_twice,
    "parts swapped": _parts_swapped,
    "names swapped": _names_swapped,
    "file lost": _file_lost,
}
"""Each kind of damage by its name."""
