# SPDX-License-Identifier: Apache-2.0
"""Sound stores of RocketMQ, drawn by a seed: a log of some files, queues, an index, a checkpoint.

The writer knows the layout of the files by itself. Only the index is made by segproof.
"""

import struct
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from segproof.files import REAL_FILES
from segproof.repair import rebuild_index
from segproof_harness.files.memory_files import write_file
from segproof_harness.salvage_draws.rocketmq_reader import (
    BLANK,
    MAGIC,
    MAGIC_V2,
    UNIT,
    Stored,
    java_hash,
    parsed,
)

TOPICS = ("Orders", "Pay", "\u00fcber")
TAGS = ("", "", "red", "blue")
QUEUE_UNITS = 40
SLOTS, ENTRIES = 16, 64
FIRST_MS = 1_700_000_000_000
COUNTS = (12, 40, 120)


class Hosts(NamedTuple):
    """Each message states the addresses of its producer and of the broker that stored it."""

    born: bytes
    store: bytes


NO_HOSTS = Hosts(b"", b"")
OTHER_HOSTS = Hosts(bytes((10, 0, 0, 3)), bytes((10, 0, 0, 2)))
"""Of another broker."""


def encoded(
    random: Random, offset: int, number: int, ident: int, time: int, hosts: Hosts = NO_HOSTS
) -> bytes:
    """Return a message with an own body."""
    is_new, flags = random.random() < 0.3, random.choice((0, 0, 0, 0, 4, 8, 12, 16, 48))
    body = b"%06d:" % ident + random.randbytes(random.choice((0, 5, 40, 200, 700)))
    topic = random.choice(TOPICS)
    tags = random.choice(TAGS)
    keys = " ".join(f"k{ident * 3 % 50 + extra}" for extra in range(random.choice((0, 1, 2))))
    pairs = {"KEYS": keys, "UNIQ_KEY": f"U{ident}" if random.random() < 0.7 else "", "TAGS": tags}
    properties = "".join(f"{key}\x01{value}\x02" for key, value in pairs.items() if value).encode()
    host = hosts.born.ljust(20 if flags & 16 else 8, b"\0")
    store_host = hosts.store.ljust(20 if flags & 32 else 8, b"\0")
    name = topic.encode()
    rest = b"".join(
        (
            struct.pack(
                ">iiiqqiq", zlib.crc32(body) & 0x7FFFFFFF, ident % 3, 7, number, offset, flags,
                time - random.randrange(50),
            ),
            host,
            struct.pack(">q", time),
            store_host,
            struct.pack(">iqi", 0, 0, len(body)),
            body,
            struct.pack(">h" if is_new else ">b", len(name)),
            name,
            struct.pack(">h", len(properties)),
            properties,
        )
    )  # fmt: skip
    return struct.pack(">iI", len(rest) + 8, MAGIC_V2 if is_new else MAGIC) + rest


@dataclass
class DrawnStore:
    """A sound store."""

    path: Path
    file_size: int
    messages: dict[int, Stored] = field(default_factory=dict)
    """By offset."""


def drawn_store(
    random: Random,
    path: Path,
    counts: Sequence[int] = COUNTS,
    first_ident: int = 0,
    hosts: Hosts = NO_HOSTS,
) -> DrawnStore:
    """Write a store with a log of some files, its queues, an index and a checkpoint.

    It has as many messages as one of `counts` says; their bodies begin with rising numbers from
    `first_ident` on, so two stores have none in common.
    """
    drawn = DrawnStore(path, random.choice((4096, 8192, 20_000)))
    size, offset, time = drawn.file_size, 0, FIRST_MS
    if random.random() < 0.3:
        offset = size * random.choice((1, 7))
    numbers: Counter[tuple[str, int]] = Counter()
    logs: dict[int, bytearray] = {}
    begun = offset
    for ident in range(first_ident, first_ident + random.choice(counts)):
        time += random.choice((0, 1, 30, 2000))
        state = random.getstate()
        probe = parsed(encoded(random, offset, 0, ident, time, hosts), 0)
        assert probe is not None
        if offset % size + len(probe.raw) + 8 > size:
            tail = size - offset % size
            logs.setdefault(offset - offset % size, bytearray()).extend(
                struct.pack(">iI", tail, BLANK).ljust(tail, b"\0")
            )
            offset += tail
        key = (probe.topic, probe.queue)
        random.setstate(state)
        found = parsed(encoded(random, offset, numbers[key], ident, time, hosts), 0)
        assert found is not None
        numbers[key] += found.is_queued
        logs.setdefault(offset - offset % size, bytearray()).extend(found.raw)
        drawn.messages[offset] = found
        offset += len(found.raw)
    for start, data in logs.items():
        _write(path / "commitlog" / f"{start:020d}", bytes(data).ljust(size, b"\0"))
    _write_queues(drawn)
    _write(path / "checkpoint", struct.pack(">qqq", time, time, 0).ljust(4096, b"\0"))
    assert begun in drawn.messages
    rebuild_index(path, None, SLOTS, ENTRIES, in_place=True)
    return drawn


def _write(path: Path, data: bytes) -> None:
    write_file(REAL_FILES, str(path), data)


def _write_queues(drawn: DrawnStore) -> None:
    files: dict[tuple[str, int, int], bytearray] = {}
    for offset, one in drawn.messages.items():
        if one.is_queued:
            first = one.number - one.number % QUEUE_UNITS
            unit = UNIT.pack(offset, len(one.raw), java_hash(one.tags) if one.tags else 0)
            files.setdefault((one.topic, one.queue, first), bytearray()).extend(unit)
    for (topic, queue, first), data in files.items():
        path = drawn.path / "consumequeue" / topic / str(queue) / f"{20 * first:020d}"
        _write(path, bytes(data).ljust(20 * QUEUE_UNITS, b"\0"))
