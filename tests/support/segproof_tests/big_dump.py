# SPDX-License-Identifier: Apache-2.0
"""A data directory of any size, of all codecs, damaged in fifty known places.

Real segments are written once for each kind of partition and copied then, so that gigabytes take
seconds. Each corruption has a partition of its own, and says which law a verifier must report in
which file; every other partition is sound.

As a script: `python -m segproof_tests.big_dump DIR --bytes 10000000000`. It prints what is
expected, one `LAW<tab>PATH` a line.
"""

import argparse
import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from segproof.checksums import crc32c
from segproof.kafka import Record, write_batch, write_end_transaction_marker
from segproof.kafka.broker.partition_log import PartitionLog
from segproof.kafka.log_config import LogConfig
from segproof.layouts.kafka import OFFSET_ENTRY
from segproof_harness.laws.file_damages import later
from segproof_tests.changed_bytes import flip_bits

__all__ = ["CORRUPTIONS", "Corruption", "write_dump"]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KINDS = (*CODECS, "transactions", "large")
SEGMENTS = 4
"""Segments of a partition, but of the large ones, which have one that is closed."""
PARTITIONS = 72
LARGE_SHARE = 8
"""The large partitions have so many times the bytes of the others."""
RECORDS, RECORD_BYTES = 20, 400
START_MS = 1_600_000_000_000
STEP_MS = 10
OLD_NS = START_MS * 1_000_000
Damage = Callable[["Place"], None]


class Place:
    """One segment of one partition, which is damaged."""

    def __init__(self, directory: Path, number: int) -> None:
        self.directory = directory
        self.log = sorted(directory.glob("*.log"))[number]

    def file(self, suffix: str) -> Path:
        """Return one of its files."""
        return self.log.with_suffix(suffix)

    def position(self, share: float) -> int:
        """Return where a batch begins that far in the log, as its index says."""
        data = self.file(".index").read_bytes()
        entry = int(len(data) // 8 * share)
        return int.from_bytes(data[entry * 8 + 4 : entry * 8 + 8], "big")


@dataclass(frozen=True, slots=True)
class Corruption:
    """One way to damage a partition of a kind."""

    name: str
    kind: str
    number: int
    """Which of its segments."""
    laws: tuple[tuple[str, str], ...]
    """The laws that are broken then, each with a file: a suffix, or a whole name."""
    damage: Damage

    def make(self, directory: Path) -> list[tuple[str, str]]:
        """Damage a partition; return pairs of law and path that a verifier must report."""
        place = Place(directory, self.number)
        told = []
        for law, file in self.laws:
            path = place.file(file) if file.startswith(".") else directory / file
            told.append((law, str(path)))
        self.damage(place)
        return told


# --- damages


@later
def change(place: Place, suffix: str, at: Callable[[Place], int], form: str, amount: int) -> None:
    """Return the damage that adds to a big-endian number in a file."""
    with place.file(suffix).open("r+b") as file:
        file.seek(at(place))
        (value,) = struct.unpack(f">{form}", file.read(struct.calcsize(form)))
        file.seek(at(place))
        file.write(struct.pack(f">{form}", value + amount))


def entry(size: int, share: float, inside: int = 0) -> Callable[[Place], int]:
    """Return what finds a byte of an entry that far in a file of entries."""
    suffix = {8: ".index", 12: ".timeindex", 34: ".txnindex"}[size]
    return lambda place: int(place.file(suffix).stat().st_size // size * share) * size + inside


def in_batch(share: float, inside: int) -> Callable[[Place], int]:
    """Return what finds a byte of a batch that far in the log."""
    return lambda place: place.position(share) + inside


def summed(share: float, inside: int, form: str, amount: int) -> Damage:
    """Return the damage of a batch that makes its checksum right again."""
    wrong = change(".log", in_batch(share, inside), form, amount)

    def damage(place: Place) -> None:
        wrong(place)
        at = place.position(share)
        with place.log.open("r+b") as file:
            file.seek(at + 8)
            size = int.from_bytes(file.read(4), "big") + 12
            file.seek(at + 21)
            checksum = crc32c(file.read(size - 21))
            file.seek(at + 17)
            file.write(checksum.to_bytes(4, "big"))

    return damage


def resize(suffix: str, amount: int) -> Damage:
    """Return the damage that cuts a file, or adds zeros at its end."""
    return lambda place: os.truncate(place.file(suffix), place.file(suffix).stat().st_size + amount)


def empty(suffix: str) -> Damage:
    """Return the damage that leaves nothing of a file."""
    return lambda place: os.truncate(place.file(suffix), 0)


def remove(suffix: str) -> Damage:
    """Return the damage that removes a file."""
    return lambda place: place.file(suffix).unlink()


@later
def write(place: Place, name: str, data: bytes) -> None:
    """Return the damage that puts a file in the place of another one, or beside."""
    (place.directory / name).write_bytes(data)


# --- the corruptions


def _of_each_codec() -> Iterator[Corruption]:
    for codec in CODECS:
        for name, law, suffix, damage in (
            ("a bit of a record", "BATCH-3", ".log", _flip_record),
            ("an index position", "SEG-7", ".index", change(".index", entry(8, 0.5, 4), "i", 1)),
            ("a timestamp", "DISK-9", ".timeindex", change(".timeindex", entry(12, 0.5), "q", -1)),
            ("an index cut in an entry", "OFFIDX-1", ".index", resize(".index", -3)),
            ("a time index cut by an entry", "DISK-10", ".timeindex", resize(".timeindex", -12)),
            ("no index", "DISK-5", ".log", remove(".index")),
            ("zeros behind an index", "DISK-6", ".index", resize(".index", 80)),
        ):
            yield Corruption(f"{codec}: {name}", codec, 1, ((law, suffix),), damage)


def _flip_record(place: Place) -> None:
    """Change one bit in the records of a batch."""
    flip_bits(place.log, place.position(0.3) + 90, 4)


def _shift_positions(place: Place) -> None:
    """Let all entries in the middle of an index point one byte too far."""
    path = place.file(".index")
    data = np.fromfile(path, OFFSET_ENTRY.dtype)
    data["position"][len(data) // 3 : len(data) * 2 // 3] += 1
    data.tofile(path)


CORRUPTIONS = (
    *_of_each_codec(),
    Corruption("zeros behind a closed log", "none", 2, (("DISK-6", ".log"),), resize(".log", 4096)),
    Corruption("an unused attribute bit", "none", 0, (("DISK-15", ".log"),),
               summed(0.5, 21, "b", 2)),
    Corruption("a count of records", "none", 0, (("DISK-14", ".log"),), summed(0.5, 57, "i", 1)),
    Corruption("magic 3", "lz4", 0, (("DISK-23", ".log"),),
               change(".log", in_batch(0.5, 16), "b", 1)),
    Corruption("a log without its end", "zstd", 3, (("DUMP-6", ".log"),), resize(".log", -100)),
    Corruption("a name without its zeros", "gzip", 0, (("FILE-1", "7.index"),),
               write("7.index", b"")),
    Corruption("a checkpoint of epochs", "snappy", 0, (("CKPT-3", "leader-epoch-checkpoint"),),
               write("leader-epoch-checkpoint", b"7\n0\n")),
    Corruption("an aborted transaction's version", "transactions", 1, (("TXNIDX-1", ".txnindex"),),
               change(".txnindex", entry(34, 0.5), "h", 1)),
    Corruption("an aborted transaction's begin", "transactions", 1, (("DISK-11", ".txnindex"),),
               change(".txnindex", entry(34, 0.5, 10), "q", 1)),
    Corruption("no transaction index", "transactions", 1, (("DISK-12", ".log"),),
               remove(".txnindex")),
    Corruption("a transaction index cut", "transactions", 0, (("TXNIDX-1", ".txnindex"),
               ("DISK-12", ".txnindex")), resize(".txnindex", -1)),
    Corruption("a bit of a large log", "large", 0, (("BATCH-3", ".log"),), _flip_record),
    Corruption("index positions of a large log", "large", 0, (("SEG-7", ".index"),),
               _shift_positions),
    Corruption("a large log's index emptied", "large", 0, (("DISK-24", ".index"),),
               empty(".index")),
    Corruption("a large log's time index emptied", "large", 0, (("DISK-10", ".timeindex"),),
               empty(".timeindex")),
)  # fmt: skip
"""Fifty; each has a partition of its own."""


# --- writing


def write_dump(folder: Path, size_bytes: int, seed: int = 0) -> list[tuple[str, str]]:
    """Write a data directory of about `size_bytes`; return pairs of law and path to be found.

    The folder must not exist. The pairs are sorted; of one law and file there may be more findings.
    """
    folder.mkdir(parents=True)
    generator = random.Random(seed)
    large = sum(one.kind == "large" for one in CORRUPTIONS) + 1
    own = size_bytes // (PARTITIONS + large * (LARGE_SHARE - 1))
    templates = {kind: _template(folder, kind, own, generator) for kind in KINDS}
    expected: list[tuple[str, str]] = []
    for number, corruption in enumerate(CORRUPTIONS):
        directory = folder / f"damaged.{corruption.kind}-{number}"
        shutil.copytree(templates[corruption.kind], directory)
        expected += corruption.make(directory)
    sound = PARTITIONS - len(CORRUPTIONS) - len(KINDS)
    for number in range(sound):
        kind = KINDS[number % (len(KINDS) - 1)]
        shutil.copytree(templates[kind], folder / f"sound.{kind}-{number}")
    for path in (folder, *folder.rglob("*")):
        # A verifier waits for the writer of what was changed a moment ago.
        os.utime(path, ns=(OLD_NS, OLD_NS))
    return sorted(expected)


def _template(folder: Path, kind: str, size_bytes: int, generator: random.Random) -> Path:
    """Write one sound partition by the implementation's own log."""
    directory = folder / f"sound.{kind}-{PARTITIONS}"
    size_bytes *= LARGE_SHARE if kind == "large" else 1
    segment_bytes = size_bytes // SEGMENTS if kind != "large" else size_bytes
    config = LogConfig(segment_bytes=max(1 << 16, segment_bytes), max_message_bytes=1 << 24)
    clock = START_MS + STEP_MS * (1 << 30)
    log = PartitionLog.open(directory, config, create=True, time=lambda: clock)
    with log:
        for written, batch, more in _batches(kind, generator):
            log.append_as_leader(batch, 0, **more)
            if written > size_bytes + (1 << 14 if kind == "large" else 0):
                break
        log.flush(True)
    return directory


def _batches(kind: str, generator: random.Random) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """Yield batches without end: the bytes with this one, the batch, options of the append."""
    values = [_value(kind, generator) for _ in range(64)]
    codec = kind if kind in CODECS else "none"
    written, sequence, number = 0, 0, 0
    while True:
        at = START_MS + number * STEP_MS
        records = [
            Record(each, at + each % STEP_MS, None, generator.choice(values))
            for each in range(RECORDS)
        ]
        is_transactional = kind == "transactions"
        batch = write_batch(
            records, base_offset=0, compression=codec, producer_id=number % 3, producer_epoch=0,
            base_sequence=sequence // 3 * RECORDS, is_transactional=is_transactional,
        )  # fmt: skip
        written += len(batch)
        yield written, batch, {}
        number, sequence = number + 1, sequence + 1
        if is_transactional and number % 6 == 0:
            for producer_id in range(3):
                kind_of_end = "ABORT" if producer_id == number // 6 % 3 else "COMMIT"
                marker = write_end_transaction_marker(
                    kind_of_end, offset=0, timestamp=at + STEP_MS - 1, producer_id=producer_id,
                    producer_epoch=0, coordinator_epoch=0,
                )  # fmt: skip
                written += len(marker)
                yield written, marker, {"origin": "coordinator", "transaction_version": 1}


def _value(kind: str, generator: random.Random) -> bytes:
    """Return the value of a record, which compresses to about the half."""
    return generator.randbytes(RECORD_BYTES // 2) + bytes(RECORD_BYTES // 2)


def main() -> None:
    """Write a dump and print what is expected."""
    parser = argparse.ArgumentParser(description="Write a large data directory, damaged.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bytes", type=int, default=10**10, dest="size_bytes")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for law, path in write_dump(given.folder.absolute(), given.size_bytes, given.seed):
        print(f"{law}\t{path}")


if __name__ == "__main__":
    main()
