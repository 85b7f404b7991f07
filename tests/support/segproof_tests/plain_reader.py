# SPDX-License-Identifier: Apache-2.0
"""What of Kafka's batches and RocketMQ's messages lies in the files of a directory.

It shares no code with the product or the model: it knows where a checksum lies, and what it covers.
So it can tell whether a message that was somewhere is still somewhere.
"""

import bz2
import gzip
import lzma
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

_POLYNOMIAL = 0x82F63B78
_MAGIC = re.compile(rb"\xda\xa3\x20[\xa7\xa8]")


def _table() -> list[int]:
    found = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        found.append(byte)
    return found


_CRC32C = _table()


@cache
def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC32C[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


@cache
def _batches_of(data: bytes) -> Counter[bytes]:
    """Return the batches in a log by what their checksums cover, also after damaged bytes."""
    found: Counter[bytes] = Counter()
    raw = np.frombuffer(data, np.uint8)
    starts = np.flatnonzero(raw[16:] <= 2) if len(raw) > 16 else np.empty(0, np.int64)
    end = 0
    for start in starts.tolist():
        if start < end or start + 26 > len(data):
            continue
        size = 12 + struct.unpack_from(">i", data, start + 8)[0]
        if not 26 <= size <= len(data) - start:
            continue
        is_new = data[start + 16] == 2
        at = start + (17 if is_new else 12)
        if is_new and size < 61:
            continue
        covered = data[at + 4 : start + size]
        (crc,) = struct.unpack_from(">I", data, at)
        if crc == (_crc32c(covered) if is_new else zlib.crc32(covered)):
            found[covered] += 1
            end = start + size
    return found


@cache
def _messages_of(data: bytes) -> Counter[bytes]:
    """Return the messages in a commit log by topic, body and properties, if the checksum holds."""
    found: Counter[bytes] = Counter()
    for match in _MAGIC.finditer(data):
        start = match.start() - 4
        if start < 0 or start + 91 > len(data):
            continue
        size, crc = struct.unpack_from(">i4xi", data, start)
        if not 91 <= size <= len(data) - start:
            continue
        (flags,) = struct.unpack_from(">i", data, start + 36)
        at = start + 48 + (20 if flags & 16 else 8) + 8 + (20 if flags & 32 else 8) + 12
        if at + 4 > start + size:
            continue
        (length,) = struct.unpack_from(">i", data, at)
        body = data[at + 4 : at + 4 + max(length, 0)]
        if length < 0 or at + 4 + length > start + size or crc != zlib.crc32(body) & 0x7FFFFFFF:
            continue
        found[data[at : start + size]] += 1
    return found


def messages_in(*folders: Path) -> Counter[bytes]:
    """Return all sound batches and messages in any file of the directories, each as often as the
    file with the most of it has it.
    """
    found: Counter[bytes] = Counter()
    for folder in folders:
        in_folder: Counter[bytes] = Counter()
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            if path.parent.name == "commitlog":
                in_folder += _messages_of(path.read_bytes())
            elif ".log" in path.name:
                in_folder += _batches_of(path.read_bytes())
        found |= in_folder
    return found


_ZEROS = 1 << 8
"""Of the zeros at the end of a file so many are kept: a batch or a message may end in some."""
_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress,
}  # fmt: skip


def readable_in(*folders: Path) -> set[bytes]:
    """Return all sound batches and messages in any file of the directories, whatever its name is.

    A path may be that of a file too. Packed files are unpacked, and links are followed.
    """
    found: set[bytes] = set()
    for path in (path for folder in folders for path in (folder, *sorted(folder.rglob("*")))):
        if path.is_file():
            data = path.read_bytes()
            data = _UNPACK[path.suffix](data) if path.suffix in _UNPACK else data
            data = data.rstrip(b"\0") + bytes(_ZEROS)
            found |= _messages_of(data).keys() | _batches_of(data).keys()
    return found


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the content of each file of a directory, by its path in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
