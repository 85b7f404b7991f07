# SPDX-License-Identifier: Apache-2.0
"""Damage to a store: what disks do to its log, fields that no checksum covers, and its queues."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from segproof_harness.salvage_draws.disk_damages import (
    DISK_DAMAGES,
    Damage,
    Damaged,
    bit_of_field,
    put,
)
from segproof_harness.salvage_draws.disk_damages import Target as Stretch
from segproof_harness.salvage_draws.rocketmq_reader import UNIT
from segproof_harness.salvage_draws.rocketmq_stores import (
    NO_HOSTS,
    OTHER_HOSTS,
    DrawnStore,
    drawn_store,
)

MESSAGE_COUNTS = (1, 2, 3, 12, 40, 40, 120)
FOREIGN_IDENT = 500_000
CLOCKS_MS = (1, 1 << 41, 1 << 50)
"""Times of clocks that are wrong: 1970, 2039, and the year 37648."""
CUTS = ("torn end", "cut between parts")
"""Damage after which a file keeps its length; all others leave that of a file of the log."""


@dataclass
class DamagedStore:
    """A sound store, and what damage left of it."""

    sound: DrawnStore
    log: Damaged
    """The files of the log without the zeros at their ends, while they are damaged."""
    others: dict[str, bytearray]
    """All other files by their paths in the store."""
    queue_damages: list[Damage] = field(default_factory=list)

    @property
    def damages(self) -> list[Damage]:
        """Return all that was done."""
        return [*self.log.done, *self.queue_damages]

    def files(self) -> dict[str, bytes]:
        """Return each file of the damaged store by its path in it."""
        size, kept = self.sound.file_size, {one.name for one in self.log.done if one.kind in CUTS}
        logs = {
            f"commitlog/{name}": bytes(data if name in kept else data.ljust(size, b"\0")[:size])
            for name, data in zip(self.log.names, self.log.files, strict=True)
        }
        return logs | {path: bytes(data) for path, data in self.others.items()}


def draw_store(seed: int, folder: Path) -> DamagedStore:
    """Return a store with one to three damages. Sound stores are made in `folder` first.

    Blocks of another store are copied over it, of the same broker or of another one.
    """
    random = Random(seed)
    store = damaged_store(drawn_store(random, folder / "sound", MESSAGE_COUNTS))
    hosts = Random(f"hosts {seed}").choice((NO_HOSTS, OTHER_HOSTS))
    other = drawn_store(random, folder / "foreign", MESSAGE_COUNTS[3:], FOREIGN_IDENT, hosts)
    logs = sorted((other.path / "commitlog").iterdir())
    store.log.foreign = random.choice(logs).read_bytes().rstrip(b"\0")
    for _ in range(random.choice((1, 1, 2, 3))):
        if random.random() < 0.8:
            LOG_DAMAGES[random.choice(list(LOG_DAMAGES))](store.log, random)
        else:
            QUEUE_DAMAGES[random.choice(list(QUEUE_DAMAGES))](store, random)
    return store


def damaged_store(sound: DrawnStore) -> DamagedStore:
    """Return a store, not damaged so far."""
    paths = [path for path in sorted(sound.path.rglob("*")) if path.is_file()]
    files = {str(path.relative_to(sound.path)): bytearray(path.read_bytes()) for path in paths}
    names = [path.name for path in paths if path.parent.name == "commitlog"]
    logs = [files.pop(f"commitlog/{name}").rstrip(b"\0") for name in names]
    starts = [
        [at - int(name) for at in sound.messages if int(name) <= at < int(name) + sound.file_size]
        for name in names
    ]
    return DamagedStore(sound, Damaged(names, logs, starts), files)


def _clock(damaged: Damaged, random: Random) -> None:
    """Give some messages of a file the store time of a wrong clock."""
    number = random.randrange(len(damaged.files))
    data, time = damaged.files[number], struct.pack(">q", random.choice(CLOCKS_MS))
    for start in damaged.starts[number]:
        if random.random() < 0.2 and start + 76 <= len(data):
            at = start + (68 if data[start + 39] & 16 else 56)
            put(damaged, "wrong clock", Stretch(number, at, at + 8), time)


LOG_DAMAGES: dict[str, Callable[[Damaged, Random], None]] = {
    **DISK_DAMAGES,
    "size field": bit_of_field("size field", 0, 4),
    "body checksum": bit_of_field("body checksum", 8, 4),
    "queue": bit_of_field("queue", 12, 4),
    "number": bit_of_field("number", 20, 8),
    "offset": bit_of_field("offset", 28, 8),
    "flags": bit_of_field("flags", 36, 4),
    "wrong clock": _clock,
}
"""Each kind of damage to the log of a store by its name."""


# --- queues


def _queues(store: DamagedStore) -> Sequence[str]:
    return [path for path in store.others if path.startswith("consumequeue/")]


def _wrong_tags(store: DamagedStore, random: Random) -> None:
    """Change the tags code of a unit."""
    for path in random.sample(_queues(store), min(1, len(_queues(store)))):
        data = store.others[path]
        used = len(data.rstrip(b"\0")) // UNIT.size + 1
        at = UNIT.size * random.randrange(used) + 12
        if at + 8 <= len(data):
            data[at + 7] ^= 1 << random.randrange(8)
            store.queue_damages.append(Damage("wrong tags", path, at, 8))


def _queue_files_swapped(store: DamagedStore, random: Random) -> None:
    if len(_queues(store)) > 1:
        one, other = random.sample(_queues(store), 2)
        store.others[one], store.others[other] = store.others[other], store.others[one]
        store.queue_damages.append(Damage("queues swapped", one, 0, 0, other))


def _queue_lost(store: DamagedStore, random: Random) -> None:
    for path in random.sample(_queues(store), min(1, len(_queues(store)))):
        del store.others[path]
        store.queue_damages.append(Damage("queue lost", path, 0, 0))


def _queue_zeros(store: DamagedStore, random: Random) -> None:
    for path in random.sample(_queues(store), min(1, len(_queues(store)))):
        at = random.randrange(0, len(store.others[path]), 512)
        store.others[path][at : at + 512] = bytes(len(store.others[path][at : at + 512]))
        store.queue_damages.append(Damage("queue zeros", path, at, 512))


QUEUE_DAMAGES: dict[str, Callable[[DamagedStore, Random], None]] = {
    "wrong tags": _wrong_tags,
    "queues swapped": _queue_files_swapped,
    "queue lost": _queue_lost,
    "queue zeros": _queue_zeros,
}
"""Each kind of damage to the queues of a store by its name."""
