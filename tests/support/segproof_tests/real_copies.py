# SPDX-License-Identifier: Apache-2.0
"""Copies of the real files that the package carries, to be damaged."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from segproof_harness.files.shipped_directories import DATA, KAFKA


def copy_of(name: str, target: Path, copy: Callable[..., Any] = shutil.copy2) -> Path:
    """Copy a carried folder, such as `kafka/plain/plain-0`; return the copy."""
    return Path(shutil.copytree(DATA / name, target, copy_function=copy))


def copy_partitions(target: Path) -> Path:
    """Copy all partitions of Kafka into a folder, as SCENARIO-PARTITION; return the folder."""
    for partition in KAFKA.glob("*/*"):
        if partition.is_dir() and partition.name != "logdir":
            shutil.copytree(partition, target / f"{partition.parent.name}-{partition.name}")
    return target


def flip(path: Path, *places: int, bits: int = 0xFF) -> None:
    """Flip bits of some bytes of a file."""
    data = bytearray(path.read_bytes())
    for place in places:
        data[place] ^= bits
    path.write_bytes(data)
