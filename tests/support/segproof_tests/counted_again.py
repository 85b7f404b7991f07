# SPDX-License-Identifier: Apache-2.0
"""A second way to count what `verify` counts: plain loops over the bytes of a data directory.

It shares no code with the product, and knows magic 2 only. The damages are those after which a
count follows from the bytes alone: sizes and offsets in headers are as they were written.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

from segproof.kafka import Record, write_batch

__all__ = ["Counted", "counted", "make_partition"]

_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ 0x82F63B78 * (_byte & 1)
    _TABLE.append(_byte)


def _castagnoli(data: bytes) -> int:
    """Return the CRC-32C, byte by byte."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 255] ^ value >> 8
    return value ^ 0xFFFFFFFF


@dataclass(frozen=True)
class Framed:
    """A batch as its size frames it."""

    position: int
    first: int
    last: int
    is_sound: bool


def _framed(log: bytes) -> Iterator[Framed]:
    position = 0
    while position + 61 <= len(log):
        base, length, _, _, crc, _, delta = struct.unpack_from(">qiibIhi", log, position)
        end = position + 12 + length
        if length < 49 or end > len(log):
            return
        made = _castagnoli(log[position + 21 : end])
        yield Framed(position, base, base + delta, made == crc)
        position = end


@dataclass(frozen=True)
class Counted:
    """What a summary says, counted again."""

    segments: int
    bytes_checked: int
    batches: int
    first_offset: int
    end_offset: int
    lost_offsets: int
    batches_behind_damage: int
    missing_offsets: int
    broken: tuple[tuple[str, int], ...]
    """Name and byte of each batch with a wrong checksum."""


def counted(folder: Path) -> Counted:
    """Count a partition whose last batch is sound, and where no offset was compacted away."""
    bases = sorted({int(path.name[:20]) for path in folder.iterdir()})
    kept: set[int] = set()
    compacted: set[int] = set()
    missing = batches = behind = size = 0
    broken = []
    end, is_damaged = bases[0], False
    for base in bases:
        name = f"{base:020d}.log"
        size += sum(path.stat().st_size for path in folder.glob(f"{base:020d}.*"))
        if not (folder / name).exists():
            continue
        found = list(_framed((folder / name).read_bytes()))
        batches += len(found)
        missing += base - end if batches > len(found) else 0
        missing += sum(after.first - before.last - 1 for before, after in pairwise(found))
        end = base
        for one in found:
            compacted |= set(range(end, one.first))
            end = one.last + 1
            is_damaged |= not one.is_sound
            behind += is_damaged and one.is_sound
            if one.is_sound:
                kept |= set(range(one.first, one.last + 1))
            else:
                broken.append((name, one.position))
    lost = end - bases[0] - len(kept) - len(compacted)
    return Counted(len(bases), size, batches, bases[0], end, lost, behind, missing, tuple(broken))


# --- drawn partitions ----------------------------------------------------------------------------


def _batch(random: Random, offset: int, count: int) -> bytes:
    """Return a batch of records without keys, which no compaction takes."""
    records = [
        Record(offset + number, 1000 + offset, None, random.randbytes(random.randint(1, 9)))
        for number in range(count)
    ]
    return write_batch(records, base_offset=offset)


def make_partition(folder: Path, random: Random) -> None:
    """Write a partition of a few segments, and damage it in ways that can be counted again."""
    folder.mkdir(parents=True)
    offset = random.choice((0, 1000))
    logs: list[tuple[int, list[bytes]]] = []
    for _ in range(random.randint(1, 5)):
        base, batches = offset, []
        for _ in range(random.randint(1, 5)):
            count = random.randint(1, 4)
            batches.append(_batch(random, offset, count))
            offset += count
        logs.append((base, batches))
    for place, (base, batches) in enumerate(logs):
        is_last = place == len(logs) - 1
        damage = random.choice(("none", "none", "bits", "gap", "cut", "log", "segment"))
        if is_last and damage in ("cut", "log", "segment"):
            damage = "bits"
        if damage == "segment" and place == 0:
            damage = "log"
        _write(folder, base, _damaged(random, batches, damage, is_last), damage)


def _damaged(random: Random, batches: list[bytes], damage: str, is_last: bool) -> list[bytes]:
    rows = len(batches) - is_last
    if damage == "bits":
        return [
            _flipped(random, one) if row < rows and random.random() < 0.5 else one
            for row, one in enumerate(batches)
        ]
    if damage == "gap" and len(batches) > 2:
        gone = random.randrange(1, len(batches) - 1)
        return batches[:gone] + batches[gone + 1 :]
    if damage == "cut":
        return batches[: random.randint(1, len(batches))]
    return batches


def _flipped(random: Random, batch: bytes) -> bytes:
    at = random.choice((17, 21, 61, len(batch) - 1))
    return batch[:at] + bytes([batch[at] ^ 1 << 6]) + batch[at + 1 :]


def _write(folder: Path, base: int, batches: list[bytes], damage: str) -> None:
    if damage == "segment":
        return
    if damage != "log":
        (folder / f"{base:020d}.log").write_bytes(b"".join(batches))
    (folder / f"{base:020d}.timeindex").write_bytes(b"")
    (folder / f"{base:020d}.index").write_bytes(b"")
