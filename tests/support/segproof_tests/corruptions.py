# SPDX-License-Identifier: Apache-2.0
"""Corruptions of real files: each one is small, real, and names the law that it breaks."""

import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from segproof.checksums import crc32c
from segproof.kafka import Record, write_batch
from segproof_harness.laws.broken_files import EXAMPLES
from segproof_harness.laws.file_damages import later, remove, rename, sum_again, write
from segproof_tests import partition_files
from segproof_tests.partition_files import copied_partition, name_of

Damage = Callable[[Path], None]
Change = Callable[[bytearray], None]


@dataclass(frozen=True)
class Corruption:
    """One way in which a directory can be wrong."""

    name: str
    scenario: str
    """Folder of the real directories; its only partition is damaged."""
    law: str
    file: str
    """Name of the file that a finding must name."""
    damage: Damage
    needs_deep: bool = False

    def make(self, target: Path) -> Path:
        """Copy the scenario's partition below `target`, damage it, and return its path."""
        copy = copied_partition(self.scenario, target)
        self.damage(copy)
        return copy


# --- building blocks


@later
def edit(directory: Path, file: str, change: Change) -> None:
    """Return the damage that changes the bytes of one file."""
    path = directory / file
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


def put(position: int, form: str, *values: int) -> Change:
    """Return the change that writes big-endian numbers at a byte."""
    return lambda data: struct.pack_into(">" + form, data, position, *values)


@later
def flip(data: bytearray, position: int, bits: int = 1) -> None:
    """Return the change that flips bits of one byte."""
    data[position] ^= bits


@later
def swap(data: bytearray, entry_size: int, one: int, other: int) -> None:
    """Return the change that exchanges two entries."""
    a, b = (slice(entry_size * at, entry_size * (at + 1)) for at in (one, other))
    data[a], data[b] = data[b], data[a]


@later
def cut(data: bytearray, size: int) -> None:
    """Return the change that leaves the first bytes; a negative size cuts so many off."""
    del data[size:]


@later
def drop(data: bytearray, start: int, end: int) -> None:
    """Return the change that takes bytes out."""
    del data[start:end]


def append(extra: bytes) -> Change:
    """Return the change that adds bytes at the end."""
    return lambda data: data.extend(extra)


def positions(data: bytes | bytearray) -> list[int]:
    """Return where the batches of a sound log begin."""
    found, at = [], 0
    while at + 17 < len(data):
        found.append(at)
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    return found


@later
def batch(
    data: bytearray, number: int, change: Callable[[bytearray], None], *, is_sound: bool = True
) -> None:
    """Return the change of one batch of a log; `is_sound`: with its checksum made right."""
    starts = [*positions(data), len(data)]
    start, end = starts[number], starts[number + 1]
    own = data[start:end]
    change(own)
    if is_sound:
        sum_again(own)
    data[start:end] = own


@later
def add(data: bytearray, position: int, form: str, amount: int) -> None:
    """Return the change that adds to a big-endian number."""
    (value,) = struct.unpack_from(">" + form, data, position)
    struct.pack_into(">" + form, data, position, value + amount)


@later
def over(directory: Path, file: str, other: str) -> None:
    """Return the damage that puts a copy of one file in the place of another."""
    shutil.copyfile(directory / other, directory / file)


def rename_segment(old: int, new: int) -> Damage:
    """Return the damage that gives a segment another base offset."""

    return lambda directory: partition_files.rename_segment(
        directory, old, new, ".log", ".index", ".timeindex"
    )


@later
def remove_segment(directory: Path, base_offset: int) -> None:
    """Return the damage that removes the files of a segment."""
    for suffix in (".log", ".index", ".timeindex"):
        (directory / name_of(base_offset, suffix)).unlink()


def stop_cleanly(directory: Path) -> None:
    """Put the marker of a clean stop beside an untrimmed index."""
    (directory.parent / ".kafka_cleanshutdown").write_bytes(b"")


def add_bomb(data: bytearray) -> None:
    """Append a sound batch of 100 MiB of zeros that gzip makes 100 KiB of."""
    record = Record(10_000, 1, None, bytes(100 << 20))
    data += write_batch([record], base_offset=10_000, compression="gzip")


def move_first_record(data: bytearray) -> None:
    """Give the first record of a batch the offset delta 63."""
    at = 61
    while data[at] & 128:
        at += 1
    # behind the length: attributes, timestamp delta 0, offset delta 0, each of one byte
    assert bytes(3) == data[at + 1 : at + 4]
    data[at + 3] = 126


# --- the corruptions

PLAIN = 60  # a closed segment of `plain`, with 16 index entries and 17 time entries
PLAIN_NEXT = 162
PLAIN_LAST = 693
TXN = 1014
V1 = 1000

INDEX, TIME, LOG = name_of(PLAIN, ".index"), name_of(PLAIN, ".timeindex"), name_of(PLAIN, ".log")
TXN_INDEX, TXN_LOG = name_of(TXN, ".txnindex"), name_of(TXN, ".log")
SNAPSHOT = name_of(1732, ".snapshot")
EPOCHS = "leader-epoch-checkpoint"
LAST_LOG = name_of(PLAIN_LAST, ".log")
V1_LOG = name_of(V1, ".log")


def _in_plain(name: str, law: str, file: str, change: Change, deep: bool = False) -> Corruption:
    return Corruption(name, "plain", law, file, edit(file, change), deep)


def _in_txn(name: str, law: str, file: str, change: Change) -> Corruption:
    return Corruption(name, "txn-a", law, file, edit(file, change))


@later
def _control_batch(data: bytearray, change: Change) -> None:
    """Return the change of the first control batch of a log."""
    number = next(number for number, at in enumerate(positions(data)) if data[at + 22] & 32)
    batch(number, change)(data)


def _late_coordinator(data: bytearray) -> None:
    """Let a marker be of a later coordinator than those behind it."""
    # behind 61 bytes of header: 5 bytes, the key of 4, the length of the value, its version
    assert bytes(2) == data[71:73]
    struct.pack_into(">i", data, 73, 1_000_000)


def _skip_sequences(data: bytearray) -> None:
    """Let every later batch of a producer be five numbers further on."""
    starts = positions(data)
    (producer,) = struct.unpack_from(">q", data, starts[0] + 43)
    for number, at in enumerate(starts[1:], 1):
        if data[at + 22] & 32 == 0 and struct.unpack_from(">q", data, at + 43)[0] == producer:
            batch(number, add(53, "i", 5))(data)


@later
def _entry(data: bytearray, change: Change) -> None:
    """Return the change of a snapshot whose checksum is made right again."""
    change(data)
    struct.pack_into(">I", data, 2, crc32c(bytes(data[6:])))


def _with(content: bytes) -> Change:
    """Return the change that puts other bytes in the place of all."""
    return lambda data: data.__setitem__(slice(None), content)


def _beside(name: str, offset: int) -> Damage:
    """Return the damage that lets a checkpoint of the data directory say an offset."""
    content = f"0\n1\nplain 0 {offset}\n"

    def damage(directory: Path) -> None:
        (directory.parent / name).write_text(content)

    return damage


CORRUPTIONS = (
    # the offset index
    _in_plain("index offset, one bit", "SEG-7", INDEX, flip(3 * 8 + 3)),
    _in_plain("index offset, sign bit", "OFFIDX-2", INDEX, flip(3 * 8, 128)),
    _in_plain("index position, one bit", "SEG-7", INDEX, flip(3 * 8 + 7, 4)),
    _in_plain("index position, sign bit", "SEG-7", INDEX, flip(3 * 8 + 4, 128)),
    _in_plain("index position inside a batch", "SEG-7", INDEX, add(3 * 8 + 4, "i", 61)),
    _in_plain("index positions exchanged", "DISK-8", INDEX, add(3 * 8 + 4, "i", 40_000)),
    _in_plain("index entries exchanged", "OFFIDX-2", INDEX, swap(8, 2, 3)),
    _in_plain("index entry repeated", "OFFIDX-2", INDEX,
              lambda data: data.__setitem__(slice(24, 32), data[16:24])),
    _in_plain("index entry of zeros in the middle", "OFFIDX-2", INDEX, put(24, "ii", 0, 0)),
    _in_plain("index cut inside an entry", "OFFIDX-1", INDEX, cut(-3)),
    _in_plain("index entry beyond the log's end", "SEG-7", INDEX,
              append(struct.pack(">ii", 101, 500_000))),
    _in_plain("index with a zero tail, segment closed", "DISK-6", INDEX, append(bytes(80))),
    Corruption("index of another segment", "plain", "SEG-7", INDEX,
               over(INDEX, name_of(PLAIN_NEXT, ".index"))),
    _in_plain("index emptied", "DISK-24", INDEX, cut(0)),
    _in_plain("index cut to its first entries", "DISK-24", INDEX, cut(3 * 8)),
    Corruption("index removed", "plain", "DISK-5", LOG, remove(INDEX)),
    Corruption("index untrimmed after a clean stop", "plain", "DISK-6",
               name_of(PLAIN_LAST, ".index"), stop_cleanly),
    Corruption("index of magic 1, offset between two batches", "v1-gzip", "SEG-7",
               name_of(V1, ".index"), edit(name_of(V1, ".index"), flip(40 * 8 + 6, 1))),
    # the time index
    _in_plain("timestamp too small", "DISK-9", TIME, add(3 * 12, "q", -1)),
    _in_plain("timestamp too large", "DISK-9", TIME, add(3 * 12, "q", 1)),
    _in_plain("timestamp negative", "DISK-22", TIME, put(0, "q", -5)),
    _in_plain("timestamps out of order", "TIMEIDX-7", TIME, swap(12, 3, 4)),
    _in_plain("time entry's offset out of order", "TIMEIDX-7", TIME, put(3 * 12 + 8, "i", 1)),
    _in_plain("time entry's offset negative", "DISK-22", TIME, put(3 * 12 + 8, "i", -1)),
    _in_plain("last time entry removed", "DISK-10", TIME, cut(-12)),
    _in_plain("time index emptied", "DISK-10", TIME, cut(0)),
    _in_plain("time index cut inside an entry", "TIMEIDX-1", TIME, cut(-5)),
    _in_plain("time index with a zero tail, segment closed", "DISK-6", TIME, append(bytes(120))),
    # the transaction index
    _in_txn("aborted transaction of version 256", "TXNIDX-1", TXN_INDEX, put(34, "h", 256)),
    _in_txn("aborted transaction of version 1", "TXNIDX-1", TXN_INDEX, put(34, "h", 1)),
    _in_txn("aborted transaction, last offset", "DISK-11", TXN_INDEX, add(34 + 18, "q", 1)),
    _in_txn("aborted transaction, first offset", "DISK-11", TXN_INDEX, add(34 + 10, "q", 1)),
    _in_txn("aborted transaction, producer", "DISK-11", TXN_INDEX, flip(34 + 9, 8)),
    _in_txn("aborted transaction, stable offset", "DISK-21", TXN_INDEX, add(34 + 26, "q", 10_000)),
    _in_txn("aborted transaction below the base", "DISK-21", TXN_INDEX, put(18, "q", 5)),
    _in_txn("aborted transactions exchanged", "DISK-21", TXN_INDEX, swap(34, 1, 2)),
    _in_txn("aborted transaction left out", "DISK-12", TXN_INDEX, drop(34, 68)),
    _in_txn("transaction index cut inside an entry", "TXNIDX-1", TXN_INDEX, cut(-1)),
    Corruption("transaction index removed", "txn-a", "DISK-12", TXN_LOG, remove(TXN_INDEX)),
    _in_txn("control record of a negative version", "BATCH-19", TXN_LOG,
            _control_batch(put(66, "h", -1))),
    # the log
    _in_plain("one bit of a record", "BATCH-3", LOG, batch(2, flip(200), is_sound=False)),
    _in_plain("one bit of a checksum", "BATCH-3", LOG, batch(2, flip(18), is_sound=False)),
    Corruption("one bit of a message of magic 1", "v1-gzip", "BATCH-2", V1_LOG,
               edit(V1_LOG, batch(2, flip(30), is_sound=False))),
    _in_plain("batch length one more", "BATCH-3", LOG, batch(2, add(8, "i", 1), is_sound=False)),
    _in_plain("batch length of 1 GiB", "DUMP-6", LOG, batch(2, put(8, "i", 1 << 30))),
    _in_plain("batch length below 14", "SCAN-2", LOG, batch(2, put(8, "i", 13))),
    _in_plain("batch length below the header", "BATCH-14", LOG, batch(2, put(8, "i", 40))),
    _in_plain("magic 3", "DISK-23", LOG, batch(2, put(16, "b", 3), is_sound=False)),
    _in_plain("magic 2 to 1", "BATCH-2", LOG, batch(2, put(16, "b", 1), is_sound=False)),
    _in_plain("base offset, one bit", "DISK-13", LOG, batch(2, flip(6, 8))),
    _in_plain("base offset, top bits", "DISK-13", LOG, batch(2, flip(2, 8))),
    _in_plain("last offset further on", "DISK-13", LOG, batch(2, add(23, "i", 30))),
    _in_plain("last offset before the first", "DISK-14", LOG, batch(2, put(23, "i", -2))),
    _in_plain("one record more", "DISK-14", LOG, batch(2, add(57, "i", 1))),
    _in_plain("one record less", "BATCH-16", LOG, batch(2, add(57, "i", -1)), True),
    _in_plain("2^31 - 1 records", "BATCH-16", LOG, batch(2, put(57, "i", 2**31 - 1))),
    _in_plain("no record in a full batch", "BATCH-15", LOG, batch(2, put(57, "i", 0))),
    _in_plain("an unused attribute bit", "DISK-15", LOG, batch(2, flip(21, 2))),
    _in_plain("codec 7", "BATCH-18", LOG, batch(2, flip(22, 7))),
    _in_plain("codec gzip on plain records", "DISK-18", LOG, batch(2, flip(22, 1)), True),
    _in_plain("largest timestamp of a batch", "DISK-17", LOG, batch(2, add(35, "q", -1)), True),
    _in_plain("offset of a record", "DISK-16", LOG, batch(2, move_first_record), True),
    _in_plain("zeros in the middle", "SCAN-2", LOG,
              lambda data: data.__setitem__(
                  slice(positions(data)[5], positions(data)[5] + 4096), bytes(4096))),
    _in_plain("a batch that decompresses to 100 MiB", "DISK-18", LAST_LOG, add_bomb, True),
    _in_plain("log cut inside a batch", "DUMP-6", LAST_LOG, cut(-137)),
    _in_plain("garbage behind the last batch", "SCAN-2", LAST_LOG, append(b"\xff" * 100)),
    _in_plain("zeros behind a closed log", "DISK-6", LOG, append(bytes(4096))),
    Corruption("log removed", "plain", "DISK-4", INDEX, remove(LOG)),
    # segments
    Corruption("segments that overlap", "plain", "LOG-4", name_of(252, ".log"),
               rename_segment(342, 300)),
    Corruption("segment named above its batches", "plain", "DISK-13", name_of(400, ".log"),
               rename_segment(342, 400)),
    Corruption("segment in the middle removed", "unclean-before", "DISK-25", name_of(0, ".log"),
               remove_segment(1080)),
    Corruption("last batches of a closed segment removed", "unclean-before", "DISK-25",
               name_of(0, ".log"),
               edit(name_of(0, ".log"), lambda data: cut(positions(data)[-2])(data))),
    # the whole log
    Corruption("two logs of one base offset", "plain", "DISK-27", "60.log",
               over("60.log", LOG)),
    _in_plain("leader epoch of a batch", "DISK-28", LOG, batch(2, put(12, "i", 9))),
    _in_plain("leader epoch of a segment's last batch", "DISK-37", LAST_LOG,
              batch(-2, put(12, "i", 9))),
    _in_txn("producer epoch of a batch", "DISK-29", TXN_LOG, batch(0, put(51, "h", 9))),
    _in_txn("sequence numbers that come again", "DISK-30", TXN_LOG, batch(0, add(53, "i", 1000))),
    _in_txn("a producer's batch left out", "DISK-31", TXN_LOG, _skip_sequences),
    _in_txn("coordinator epoch of a marker", "DISK-34", TXN_LOG, _control_batch(_late_coordinator)),
    # the small files
    _in_txn("snapshot, one bit", "PROD-3", SNAPSHOT, flip(30)),
    _in_txn("snapshot cut", "PROD-3", SNAPSHOT, cut(-1)),
    _in_txn("snapshot, last sequence", "PROD-14", SNAPSHOT, _entry(put(20, "i", 5))),
    _in_txn("snapshot, last offset lower", "PROD-14", SNAPSHOT, _entry(add(24, "q", -1))),
    _in_txn("snapshot, open transaction", "PROD-14", SNAPSHOT, _entry(put(48, "q", 17))),
    _in_txn("snapshot, offset behind it", "DISK-35", SNAPSHOT, _entry(put(24, "q", 5000))),
    Corruption("snapshot behind the log", "txn-a", "DISK-36", name_of(9999, ".snapshot"),
               rename(SNAPSHOT, name_of(9999, ".snapshot"))),
    _in_plain("checkpoint of epochs, version", "CKPT-3", EPOCHS, put(0, "b", 49)),
    _in_plain("checkpoint of epochs, no number", "CKPT-4", EPOCHS, put(4, "b", 120)),
    _in_plain("checkpoint of epochs, falling", "EPOCH-1", EPOCHS, _with(b"0\n2\n4 0\n3 60\n")),
    Corruption("checkpoint of epochs, another epoch", "plain", "DISK-37", name_of(0, ".log"),
               write(EPOCHS, b"0\n1\n7 0\n")),
    _in_plain("checkpoint of epochs, emptied", "DISK-37", EPOCHS, _with(b"0\n0\n")),
    _in_plain("topic id cut", "META-2", "partition.metadata", cut(-1)),
    Corruption("recovery point behind the log", "plain", "DISK-38", "plain-0",
               _beside("recovery-point-offset-checkpoint", 747)),
    Corruption("high watermark behind the log", "plain", "DISK-38", "plain-0",
               _beside("replication-offset-checkpoint", 747)),
    Corruption("log start behind the log", "plain", "DISK-43", "plain-0",
               _beside("log-start-offset-checkpoint", 747)),
    Corruption("swap that would be deleted", "plain", "DISK-42", name_of(0, ".log.swap"),
               EXAMPLES["DISK-42"].do),
    Corruption("name without its zeros", "plain", "FILE-1", "60.log", rename(LOG, "60.log")),
    Corruption("name without an offset", "plain", "FILE-2", "copy.index",
               rename(INDEX, "copy.index")),
)  # fmt: skip
"""All corruptions; their names are unique."""
