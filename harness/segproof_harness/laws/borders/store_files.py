# SPDX-License-Identifier: Apache-2.0
"""A small sound store of RocketMQ for the tables of borders, made byte by byte."""

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from segproof.layouts.rocketmq import INDEX_ENTRY, INDEX_HEADER, QUEUE_UNIT
from segproof.rocketmq.message import MAGIC_V1, Message, encode_message
from segproof_harness.laws.borders.border import Border, Content, Due, Files

SLOTS, ROOM = 4, 8
"""Slots and entries of an index file; entry 0 is never used."""
LOG_BYTES = 4096
QUEUE_UNITS = 10
TOPIC = "T"
TIME = 1_700_000_000_000
"""The store time of the first message; each later one is a second later."""
INDEX = "index/20231114221320000"
LOG = f"commitlog/{0:020d}"
QUEUE = f"consumequeue/{TOPIC}/0/{0:020d}"
CHECKPOINT = "checkpoint"
MESSAGES = 3
KEYS = tuple(f"{TOPIC}#k{number}" for number in range(MESSAGES))


class Entry(NamedTuple):
    """What an index entry says; the entry before it in its slot is found by `index_file`."""

    key_hash: int
    offset: int
    seconds: int = 0
    previous: int | None = None
    """None: the right one."""


def hash_of(key: str) -> int:
    """Return Java's hash of an ASCII key, without its sign."""
    value = 0
    for unit in key.encode("ascii"):
        value = (31 * value + unit) % 2**32
    return 2**32 - value if value > 2**31 else value % 2**31


def record(number: int, offset: int, *, time: int | None = None, **changed: Any) -> bytes:
    """Return a record of the log: message `number` of the only queue, with one key."""
    fields: dict[str, Any] = {
        "magic": MAGIC_V1, "queue_id": 0, "flag": 0, "queue_offset": number,
        "physical_offset": offset, "sys_flag": 0, "born_timestamp": TIME, "born_host": bytes(8),
        "store_timestamp": TIME + 1000 * number if time is None else time,
        "store_host": bytes(8), "reconsume_times": 0, "prepared_transaction_offset": 0,
        "body": b"body", "topic": TOPIC, "properties": f"KEYS\x01k{number}\x02",
    }  # fmt: skip
    return encode_message(Message(total_size=0, body_crc=0, **(fields | changed)))


SIZE = len(record(0, 0))
"""Bytes of each record."""
OFFSETS = tuple(SIZE * number for number in range(MESSAGES))
END = SIZE * MESSAGES


def log_of(*records: bytes, size: int = LOG_BYTES) -> bytes:
    """Return a file of the log, filled with zeros."""
    return b"".join(records).ljust(size, b"\0")


RECORDS = tuple(record(number, offset) for number, offset in enumerate(OFFSETS))
ENTRIES = tuple(
    Entry(hash_of(key), offset, number)
    for number, (key, offset) in enumerate(zip(KEYS, OFFSETS, strict=True))
)


def index_file(
    entries: Sequence[Entry] = ENTRIES,
    *,
    begin: int = TIME,
    end: int | None = None,
    room: int = ROOM,
    **header: int,
) -> bytes:
    """Return an index file; `header` replaces begin_offset, end_offset, slots or count."""
    slots = [0] * SLOTS
    rows = []
    for number, entry in enumerate(entries, 1):
        slot = entry.key_hash % SLOTS
        previous = slots[slot] if entry.previous is None else entry.previous
        slots[slot] = number
        rows.append((entry.key_hash, entry.offset, entry.seconds, previous))
    offsets = [entry.offset for entry in entries] or [0]
    last = begin + 1000 * (entries[-1].seconds if entries else 0)
    stored = {
        "begin_offset": offsets[0],
        "end_offset": offsets[-1],
        "slots": sum(slot > 0 for slot in slots),
        "count": len(entries) + 1 if entries else 0,
    } | header
    data = INDEX_HEADER.pack(begin, last if end is None else end, *stored.values())
    data += struct.pack(f">{SLOTS}i", *slots) + bytes(20) + INDEX_ENTRY.pack_all(rows)
    return data.ljust(place_of(room), b"\0")


def place_of(number: int) -> int:
    """Return where an entry begins in an index file."""
    return INDEX_HEADER.size + 4 * SLOTS + INDEX_ENTRY.size * number


def unit(offset: int, size: int = SIZE, code: int = 0) -> bytes:
    """Return a unit of a consume queue; no message has tags, whose code is 0."""
    return QUEUE_UNIT.pack(offset, size, code)


def queue_of(*units: bytes, count: int = QUEUE_UNITS) -> bytes:
    """Return a file of a queue with room for that many units."""
    return b"".join(units).ljust(QUEUE_UNIT.size * count, b"\0")


UNITS = tuple(unit(offset) for offset in OFFSETS)


def checkpoint(*times: int) -> bytes:
    """Return a checkpoint with these times of the log, the queues and the index."""
    known = times or (TIME + 2000,) * 3
    return struct.pack(f">{len(known)}q", *known).ljust(4096, b"\0")


SOUND: Files = {
    LOG: log_of(*RECORDS),
    INDEX: index_file(),
    QUEUE: queue_of(*UNITS),
    CHECKPOINT: checkpoint(),
}


def store(**changed: Content | None) -> dict[str, Content]:
    """Return the store with another `index`, `log`, `queue` or `checkpoint`; None removes it."""
    names = {"index": INDEX, "log": LOG, "queue": QUEUE, "checkpoint": CHECKPOINT}
    files: dict[str, Content] = {**SOUND} | {
        names[one]: data for one, data in changed.items() if data is not None
    }
    gone = {names[one] for one, data in changed.items() if data is None}
    return {file: data for file, data in files.items() if file not in gone}


def put(data: bytes, position: int, part: bytes) -> bytes:
    """Return the bytes with a part of them replaced."""
    return data[:position] + part + data[position + len(part) :]


def border(
    law: str, bound: str, lawful: Files, unlawful: Files, due: Due | Sequence[Due],
    still: Due | Sequence[Due] = (), *, not_by_the_model: str = "", is_given: bool = True,
) -> Border:  # fmt: skip
    """Return a border of two stores; `is_given`: `verify` is told the number of slots."""
    return Border(
        law, bound, lawful, unlawful, due, still, folder="store",
        options={"hash_slots": SLOTS} if is_given else {}, not_by_the_model=not_by_the_model,
    )  # fmt: skip
