# SPDX-License-Identifier: Apache-2.0
"""Copies of the real files that the package carries, to be damaged."""

import shutil
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any


def copy_of(name: str, target: Path, copy: Callable[..., Any] = shutil.copy2) -> Path:
    """Copy a carried folder, such as `kafka/plain/plain-0`; return the copy."""
    with as_file(files("segproof_harness") / "data" / name) as carried:
        return Path(shutil.copytree(carried, target, copy_function=copy))


def copy_partitions(target: Path) -> Path:
    """Copy all partitions of Kafka into a folder, as SCENARIO-PARTITION; return the folder."""
    with as_file(files("segproof_harness") / "data" / "kafka") as carried:
        for scenario in sorted(carried.iterdir()):
            for partition in scenario.iterdir():
                if partition.is_dir() and partition.name != "logdir":
                    shutil.copytree(partition, target / f"{scenario.name}-{partition.name}")
    return target


def flip(path: Path, *places: int, bits: int = 0xFF) -> None:
    """Flip bits of some bytes of a file."""
    data = bytearray(path.read_bytes())
    for place in places:
        data[place] ^= bits
    path.write_bytes(data)
