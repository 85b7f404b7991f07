# SPDX-License-Identifier: Apache-2.0
"""The files of a partition as tests write them: on the disk, in memory, or copied."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from segproof.checksums import crc32c
from segproof.findings import Finding, Summary
from segproof.kafka.batch_table import read_batch_headers
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.shipped_directories import KAFKA
from segproof_tests.reported_findings import verified

__all__ = [
    "aged", "batches_of", "copied_partition", "in_memory", "keyless_partition", "looked_at",
    "name_of", "rename_segment", "without_first_key", "write_segment",
]  # fmt: skip


def name_of(base_offset: int, suffix: str) -> str:
    """Return the name of a file of a segment."""
    return f"{base_offset:020d}{suffix}"


def write_segment(folder: Path, log: bytes, base_offset: int = 0, **others: bytes) -> Path:
    """Write one segment, the other files by their suffixes; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, data in {"log": log, **others}.items():
        (folder / name_of(base_offset, f".{suffix}")).write_bytes(data)
    return folder


def copied_partition(scenario: str, target: Path) -> Path:
    """Return a copy, in `target`, of the partition that a broker wrote in a scenario."""
    (partition,) = (path for path in (KAFKA / scenario).iterdir() if any(path.glob("*.log")))
    return shutil.copytree(partition, target / partition.name)


def rename_segment(folder: Path, old: int, new: int, *suffixes: str) -> None:
    """Give files of a segment another base offset."""
    for suffix in suffixes:
        (folder / name_of(old, suffix)).rename(folder / name_of(new, suffix))


def batches_of(log: bytes) -> list[bytes]:
    """Return the bytes of each batch, up to the first that can't be read."""
    table = read_batch_headers(log).table
    rows = zip(table["position"].tolist(), table["size_bytes"].tolist(), strict=True)
    return [log[position : position + size] for position, size in rows]


def keyless_partition(scenario: str, target: Path, base_offset: int = 0) -> Path:
    """Return as `copied_partition`; the first record of one log has no key.

    So the topic is not compacted, and what the log lacks is lost.
    """
    folder = copied_partition(scenario, target)
    log = folder / name_of(base_offset, ".log")
    log.write_bytes(without_first_key(log.read_bytes()))
    return folder


def without_first_key(log: bytes) -> bytes:
    """Return a log of magic 2, not compressed: the first key is a part of the value.

    No batch moves.
    """
    data = bytearray(log)
    at = 61
    while data[at] & 128:  # the length of the record
        at += 1
    at += 2  # its last byte, and the attributes
    for _ in range(2):  # the deltas of timestamp and offset
        while data[at] & 128:
            at += 1
        at += 1
    size = data[at] >> 1
    assert size < 64
    key = bytes(data[at + 1 : at + 1 + size])
    begin = end = at + 1 + size
    while data[end] & 128:
        end += 1
    number = sum((byte & 127) << 7 * place for place, byte in enumerate(data[begin : end + 1]))
    number += 2 * size
    length = bytearray()
    while number > 127:
        length.append(number & 127 | 128)
        number >>= 7
    length.append(number)
    assert len(length) == end + 1 - begin
    data[at : end + 1] = b"\x01" + length + key
    stop = 12 + int.from_bytes(data[8:12], "big")
    data[17:21] = crc32c(bytes(data[21:stop])).to_bytes(4, "big")
    return bytes(data)


def in_memory(images: Mapping[str, bytes], folder: str) -> MemoryFiles:
    """Return files in memory with these in a folder; a name that ends in a slash is a folder."""
    files = MemoryFiles()
    files.make_directory(folder)
    for name, image in images.items():
        path = f"{folder}/{name}"
        if name.endswith("/"):
            files.make_directory(path.rstrip("/"))
        else:
            write_file(files, path, image)
    return files


def aged(folder: Path) -> Path:
    """Give the folder and its files old times, so that `verify` waits for no writer."""
    for path in (folder, *folder.iterdir()):
        os.utime(path, (10**9, 10**9))
    return folder


def looked_at(folder: Path) -> tuple[Summary, list[Finding]]:
    """Return the summary of a partition whose files get old times, and its findings."""
    found, told = verified(aged(folder))
    return told[-1], found


def split_copies(one: Path, two: Path) -> None:
    """Leave one copy of a partition without the last log, and the other one with this log alone."""
    last = max(one.glob("*.log"))
    last.unlink()
    for path in two.glob("*.log"):
        if path.name != last.name:
            path.unlink()
