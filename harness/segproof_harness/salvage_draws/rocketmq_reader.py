# SPDX-License-Identifier: Apache-2.0
"""A reader of RocketMQ's stores of its own: it shares no code with segproof or with the model.

It knows the layout of messages, units of queues and entries of an index, and checks the checksum of
a body.
"""

import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

MAGIC, MAGIC_V2, BLANK = 0xDAA320A7, 0xDAA320AB, 0xCBD43194
_MAGIC = re.compile(rb"\xda\xa3\x20[\xa7\xab]")
UNIT = struct.Struct(">qiq")
FILLER_SIZE = 2**31 - 1
ROLLED_BACK = 12
"""The bits of a message's flags that say what it is to a transaction: all are set."""


class Stored(NamedTuple):
    """One message as it lies in a log."""

    raw: bytes
    topic: str
    queue: int
    number: int
    flags: int
    offset: int
    """The one that it says."""
    body: bytes
    keys: tuple[str, ...]
    tags: str

    @property
    def store_time(self) -> int:
        """When it was stored, in milliseconds."""
        at = 68 if self.flags & 16 else 56
        return int.from_bytes(self.raw[at : at + 8], "big", signed=True)

    @property
    def store_host(self) -> bytes:
        """The address of the broker that stored it, without the zeros at its end."""
        at = 76 if self.flags & 16 else 64
        return self.raw[at : at + (20 if self.flags & 32 else 8)].rstrip(b"\0")

    @property
    def is_queued(self) -> bool:
        """Whether a queue has a unit of it."""
        return self.flags & 12 in (0, 8)

    @property
    def is_filler(self) -> bool:
        """Whether a salvage has put it in place of lost ones."""
        return self.flags & 12 == 12 and "SEGPROOF_LOST".startswith(self.topic)


def java_hash(text: str) -> int:
    """Return Java's hash code of a text of the basic plane."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def parsed(data: bytes, at: int) -> Stored | None:
    """Return the message at a place of some bytes, if it is whole and its checksum right."""
    if at + 91 > len(data):
        return None
    size, magic, crc, queue, _, number, offset, flags = struct.unpack_from(">iIiiiqqi", data, at)
    end = at + size
    if magic not in (MAGIC, MAGIC_V2) or size < 91 or end > len(data):
        return None
    place = at + 48 + (20 if flags & 16 else 8) + 8 + (20 if flags & 32 else 8) + 12
    if place + 4 > end:
        return None
    (length,) = struct.unpack_from(">i", data, place)
    body = data[place + 4 : place + 4 + max(length, 0)]
    place += 4 + max(length, 0)
    if place + 2 > end or (length > 0 and zlib.crc32(body) & 0x7FFFFFFF != crc):
        return None
    layout = ">h" if magic == MAGIC_V2 else ">b"
    (length,) = struct.unpack_from(layout, data, place)
    place += struct.calcsize(layout)
    if length < 0 or place + length + 2 > end:
        return None
    topic = data[place : place + length].decode("utf-8", "replace")
    (count,) = struct.unpack_from(">h", data, place + length)
    place += length + 2
    if place + max(count, 0) != end:
        return None
    text = data[place:end].decode("utf-8", "replace")
    known = dict(part.split("\x01", 1) for part in text.split("\x02") if part.find("\x01") > 0)
    keys = [known["UNIQ_KEY"]] if known.get("UNIQ_KEY") else []
    keys += [key for key in known.get("KEYS", "").split(" ") if key]
    raw = bytes(data[at:end])
    return Stored(
        raw, topic, queue, number, flags, offset, body, tuple(keys), known.get("TAGS", "")
    )


def scanned(data: bytes) -> Iterator[tuple[int, Stored]]:
    """Yield position and content of each whole message in a file, wherever it begins."""
    for match in _MAGIC.finditer(data):
        one = parsed(data, match.start() - 4) if match.start() >= 4 else None
        if one is not None:
            yield match.start() - 4, one


def logged(store: Path) -> tuple[dict[int, Stored], bool]:
    """Return the messages of a log by offset, as a broker reads them in order.

    And whether each file ends lawfully: with a blank end of the right size, or with zeros.
    """
    found: dict[int, Stored] = {}
    is_lawful = True
    for path in sorted((store / "commitlog").glob("*")):
        data, at = path.read_bytes(), 0
        while (one := parsed(data, at)) is not None:
            found[int(path.name) + at] = one
            at += len(one.raw)
        head = struct.unpack_from(">iI", data.ljust(at + 8, b"\0"), at)
        is_lawful &= head == (len(data) - at, BLANK) or not any(data[at:])
    return found, is_lawful


def units_in(files: Mapping[str, bytes]) -> dict[tuple[str, int, int], tuple[int, int, int]]:
    """Return offset, size and tags code of the unit of each topic, queue and number.

    `files` are those of a store by their paths in it. Stand-ins have the size of a filler, or those
    of the next unit.
    """
    found = {}
    for path, data in files.items():
        folder, *parts = path.split("/")
        if folder == "consumequeue":
            topic, queue, start = parts
            for at in range(0, len(data) - 19, 20):
                unit = UNIT.unpack_from(data, at)
                if unit[0] >= 0 and unit[1] > 0:
                    found[topic, int(queue), (int(start) + at) // 20] = unit
    return found


def indexed(data: bytes, slots: int) -> Iterator[tuple[int, int]]:
    """Yield hash and offset of each entry that a chain of an index file leads to."""
    for slot in range(slots):
        (entry,) = struct.unpack_from(">i", data, 40 + 4 * slot)
        while entry > 0 and 40 + 4 * slots + 20 * entry + 20 <= len(data):
            at = 40 + 4 * slots + 20 * entry
            key_hash, offset, _, entry = struct.unpack_from(">iqii", data, at)
            if key_hash % slots == slot:
                yield key_hash, offset
