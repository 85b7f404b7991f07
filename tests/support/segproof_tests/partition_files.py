# SPDX-License-Identifier: Apache-2.0
"""The files of a partition as tests write them: on the disk, in memory, or copied."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from segproof.findings import Finding, Summary
from segproof.verification import verify
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.shipped_directories import KAFKA

__all__ = ["aged", "copied_partition", "in_memory", "looked_at", "name_of", "write_segment"]


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
    told: list[Summary] = []
    found = list(verify(aged(folder), on_summary=told.append))
    return told[-1], found
