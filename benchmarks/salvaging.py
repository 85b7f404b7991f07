# SPDX-License-Identifier: Apache-2.0
"""Rows about the salvage of partitions and the map of their damage.

They stand beside `verify` of the same bytes and beside a plain copy, all in one run. Processor time
is counted, since the clock of a salvage is mostly the disk's. All files are in the page cache.
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks import workloads
from benchmarks.contestants import Contestant, Passes, ours
from benchmarks.measuring import MIB, Bench, memory, race, rate, say, seconds_each
from benchmarks.table import Goal, NotRun, Row, Section

_SHAPES = ("1 KB", "16 KB", "1 MB")
_DAMAGED_SHAPES = ("1 KB", "16 KB")
_KERNELS = ("compiled", "interpreted")
_GB_A_SECOND = Goal(1, is_ratio=False)
_TIMES_VERIFY = Goal(1 / 20, is_ratio=True)
_MEMORY = Goal(256, is_ratio=False, at_least=False)
_BLOCK_BYTES = 4096

Damage = Callable[[Path], None]
Results = Mapping[str, Passes | NotRun]


def sections(bench: Bench) -> list[Section]:
    """Measure salvage and the damage map of sound and of damaged partitions, and their memory."""
    size = (32 if bench.quick else 512) * MIB
    sound = Section(
        "salvage and damage map of a sound partition",
        f"Bytes of its logs in a second of one processor; two segments, together {size // MIB} "
        "MiB, one process. `verify` checks them with their indexes. A salvage also writes the "
        "logs, loads them as a broker does, which checks them once more, and makes them durable. "
        "A plain copy writes the logs alone, durably.",
        "verify",
        ours="measured",
    )
    clock = Section(
        "salvage by the clock",
        "The same passes, with the time that the disk takes.",
        "plain copy",
    )
    damaged = Section(
        "salvage and damage map of a damaged partition",
        f"Processor time for one segment of {size // 2 // MIB} MiB, beside `verify` of the same "
        "segment before it was damaged. The goal, a twentieth of its speed, is at most 20 times "
        "its time.",
        "verify when sound",
        ours="measured",
    )
    memories = Section(
        "Memory of salvage and damage map",
        "The most that the process of a row above had at once (resident, MiB).",
        "",
        ours="measured",
    )
    for name in _SHAPES:
        _of_sound(bench, name, size, sound, clock, memories)
    for name in _DAMAGED_SHAPES:
        for what, damage in DAMAGES.items():
            _of_damaged(bench, name, size // 2, what, damage, damaged, memories)
    return [sound, clock, damaged, memories]


def _start(kernels: str, mode: str, *arguments: object) -> Callable[[], Contestant]:
    return lambda: ours(kernels, mode, 1, *arguments)


def _of_sound(
    bench: Bench, name: str, size: int, sound: Section, clock: Section, memories: Section
) -> None:
    say(f"salvage, {name} batches")
    directory, copy = bench.folder / "t-0", bench.folder / "copy"
    saved = {kernels: bench.folder / f"saved-{kernels}" for kernels in _KERNELS}
    segments = workloads.write_segments(directory, workloads.SHAPES[name], size // 2, 2)
    total = sum(segment.size_bytes for segment in segments)
    starts = {"plain copy": _start("auto", "plain-copy", directory, copy)}
    for kernels in _KERNELS:
        starts[f"verify, {kernels}"] = _start(kernels, "verify", directory)
        starts[f"damage map, {kernels}"] = _start(kernels, "damage-map", directory)
        starts[f"salvage, {kernels}"] = _start(kernels, "salvage", directory, saved[kernels])
    results = race(starts, bench.passes, same_answers=False)
    for side, result in results.items():
        expected = 0 if side.startswith("verify") else total
        if isinstance(result, Passes) and result.checksum != expected:
            raise RuntimeError(f"{side}: {result.checksum} on a sound partition, not {expected}")
    for kernels in _KERNELS:
        beside = rate(_of_processor(results[f"verify, {kernels}"]), total)
        for what in ("damage map", "salvage"):
            goal = _GB_A_SECOND if kernels == "compiled" else None
            row, result = f"{what}, {name} batches, {kernels}", results[f"{what}, {kernels}"]
            ours_ = rate(_of_processor(result), total)
            sound.rows.append(Row(row, "GB/s", beside, ours_, None, goal, True))
            if goal is not None:
                memories.rows.append(Row(row, "MiB", None, memory(result), None, _MEMORY))
    copied = rate(_of_processor(results["plain copy"]), total)
    beside = rate(_of_processor(results["verify, compiled"]), total)
    sound.rows.append(Row(f"plain copy, {name} batches", "GB/s", beside, copied, None, None, True))
    cells = {kernels: rate(results[f"salvage, {kernels}"], total) for kernels in _KERNELS}
    cells["theirs"] = rate(results["plain copy"], total)
    clock.rows.append(Row.of(f"{name} batches", "GB/s", cells, None, True))
    _remove(directory, copy, *saved.values())


def _of_damaged(
    bench: Bench, name: str, size: int, what: str, damage: Damage, rows: Section, memories: Section
) -> None:
    say(f"salvage, {name} batches, {what}")
    whole, directory = bench.folder / "whole" / "t-0", bench.folder / "t-0"
    segment = workloads.write_segment(whole, workloads.SHAPES[name], size)
    shutil.copytree(whole, directory)
    damage(directory / segment.log.name)
    out = bench.folder / "saved"
    results = race(
        {
            "sound": _start("compiled", "verify", whole),
            "verify": _start("compiled", "verify", directory),
            "damage map": _start("compiled", "damage-map", directory),
            "salvage": _start("compiled", "salvage", directory, out),
        },
        bench.passes,
        same_answers=False,
    )
    _expect_damage(results, segment.size_bytes)
    beside = seconds_each(_of_processor(results["sound"]), 1, 1.0)
    for side in ("verify", "damage map", "salvage"):
        row, result = f"{side}, {name} batches, {what}", results[side]
        cell = seconds_each(_of_processor(result), 1, 1.0)
        rows.rows.append(Row(row, "s", beside, cell, None, _TIMES_VERIFY))
        if side == "salvage":
            memories.rows.append(Row(row, "MiB", None, memory(result), None, _MEMORY))
    _remove(whole, directory, out)


def _of_processor(result: Passes | NotRun) -> Passes | NotRun:
    return result if isinstance(result, NotRun) else result.of_processor


def _expect_damage(results: Results, size_bytes: int) -> None:
    """Raise unless `verify` has findings, and less than all and no less than is sound was kept."""
    found = {
        side: result.checksum or 0 for side, result in results.items() if isinstance(result, Passes)
    }
    if not found:
        return
    is_right = found["sound"] == 0 < found["verify"]
    if not (is_right and 0 < found["damage map"] <= found["salvage"] <= size_bytes):
        raise RuntimeError(f"of a damaged log of {size_bytes} bytes: {found}")


def _remove(*directories: Path) -> None:
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


# --- damages


def flip_bits(log: Path) -> None:
    """Flip one bit in each MiB."""
    random = np.random.default_rng(1)
    with log.open("r+b") as file:
        for start in range(0, log.stat().st_size - MIB + 1, MIB):
            position = start + int(random.integers(MIB))
            file.seek(position)
            (byte,) = file.read(1)
            file.seek(position)
            file.write(bytes([byte ^ 1 << int(random.integers(8))]))


def clear_blocks(log: Path) -> None:
    """Write zeros over one block of 4 KiB in each MiB."""
    random = np.random.default_rng(2)
    with log.open("r+b") as file:
        for start in range(0, log.stat().st_size - MIB + 1, MIB):
            file.seek(start + int(random.integers(MIB // _BLOCK_BYTES)) * _BLOCK_BYTES)
            file.write(bytes(_BLOCK_BYTES))


def overwrite_half(log: Path) -> None:
    """Write random bytes over the middle half, and remove the indexes, which lead behind it."""
    random, size = np.random.default_rng(3), log.stat().st_size
    with log.open("r+b") as file:
        file.seek(size // 4)
        for start in range(size // 4, size * 3 // 4, MIB):
            file.write(random.bytes(min(MIB, size * 3 // 4 - start)))
    for suffix in (".index", ".timeindex"):
        log.with_suffix(suffix).unlink()


DAMAGES: dict[str, Damage] = {
    "a bit in each MiB": flip_bits,
    "4 KiB of zeros in each MiB": clear_blocks,
    "half of it random bytes, without indexes": overwrite_half,
}
