# SPDX-License-Identifier: Apache-2.0
"""Damage to the logs of a partition: what disks do, and fields that no checksum covers."""

import struct
from collections.abc import Callable
from random import Random

from segproof_harness.salvage_draws.disk_damages import (
    BLOCKS,
    DISK_DAMAGES,
    Damaged,
    Target,
    a_file,
    a_part,
    bit_of_field,
    put,
    some_blocks,
)
from segproof_harness.salvage_draws.kafka_partitions import Partition
from segproof_harness.salvage_draws.kafka_reader import framed

__all__ = ["KAFKA_DAMAGES", "damage_partition", "damaged_logs"]
OFFSETS_NEAR = 20
"""A foreign batch is near a place if its offset is within this many of the offset there."""


def damaged_logs(partition: Partition, foreign: bytes) -> Damaged:
    """Return the logs of a partition, not damaged so far."""
    bases = sorted(partition.logs)
    return Damaged(
        [f"{base:020d}.log" for base in bases],
        [bytearray(partition.logs[base]) for base in bases],
        [[batch.position for batch in framed(partition.logs[base])] for base in bases],
        foreign,
    )


def damage_partition(partition: Partition, foreign: bytes, random: Random) -> Damaged:
    """Return the logs of a partition with one to three damages."""
    damaged = damaged_logs(partition, foreign)
    for _ in range(random.choice((1, 1, 2, 3))):
        KAFKA_DAMAGES[random.choice(list(KAFKA_DAMAGES))](damaged, random)
    return damaged


def _wild_offset(damaged: Damaged, random: Random) -> None:
    part = a_part(damaged, random)
    wild = random.choice((random.randbytes(8), bytes(4) + random.randbytes(4)))
    put(damaged, "base offset, wild", part._replace(end=min(part.end, part.start + 8)), wild)


def _foreign_at_its_offsets(damaged: Damaged, random: Random) -> None:
    """Write a block of another topic where the offsets are those that its batches say."""
    number, block = a_file(damaged, random), random.choice(BLOCKS)
    data = damaged.files[number]
    start = random.randrange(0, max(1, len(data)), block)
    here = [
        struct.unpack_from(">q", data, at)[0]
        for at in damaged.starts[number]
        if start <= at < start + block and at + 8 <= len(data)
    ]
    near = [one.position for one in framed(damaged.foreign)
            if here and abs(one.offset - here[0]) < OFFSETS_NEAR]  # fmt: skip
    if near:
        there = random.choice(near) // block * block
        target = Target(number, start, min(start + block, len(data)))
        stretch = damaged.foreign[there : there + block]
        put(damaged, "foreign, near offsets", target, stretch, f"another log at {there}")


def _foreign_batches(damaged: Damaged, random: Random) -> None:
    """Write whole batches of another topic over some blocks: the first begins where one began."""
    part, blocks = a_part(damaged, random), some_blocks(damaged, random, (1, 2))
    batches = list(framed(damaged.foreign))
    if batches:
        at = random.choice(batches).position
        end = min(len(damaged.files[part.number]), part.start + blocks.end - blocks.start)
        target = Target(part.number, part.start, end)
        stretch = damaged.foreign[at : at + target.end - target.start]
        put(damaged, "foreign batches", target, stretch, f"another log at {at}")


def _file_size(damaged: Damaged, random: Random) -> None:
    """Let a log be longer than what was written: zeros, as of a file made at its full size."""
    number, size = a_file(damaged, random), random.choice((1, 512, 4096, 20_000))
    damaged.note("wrong size of a log", number, len(damaged.files[number]), size)
    damaged.files[number] += bytes(size)


def _name_too_high(damaged: Damaged, random: Random) -> None:
    base = int(damaged.names[-1][:20]) + random.randint(1, 10**7)
    number = len(damaged.names) - 1
    damaged.note("name too high", number, 0, len(damaged.files[-1]), f"{base:020d}.log")
    damaged.names[-1] = f"{base:020d}.log"


KAFKA_DAMAGES: dict[str, Callable[[Damaged, Random], None]] = {
    **DISK_DAMAGES,
    "base offset, one bit": bit_of_field("base offset, one bit", 0, 8),
    "base offset, low bit": bit_of_field("base offset, low bit", 6, 2),
    "base offset, wild": _wild_offset,
    "size field": bit_of_field("size field", 8, 4),
    "leader epoch": bit_of_field("leader epoch", 12, 4),
    "magic": bit_of_field("magic", 16, 1),
    "foreign, near offsets": _foreign_at_its_offsets,
    "foreign batches": _foreign_batches,
    "wrong size of a log": _file_size,
    "name too high": _name_too_high,
}
"""Each kind of damage to a partition by its name."""
