# SPDX-License-Identifier: Apache-2.0
"""Rows about lookups: many at once and one by one, beside OffsetIndex and TimeIndex in the JVM."""

from collections.abc import Callable
from pathlib import Path

from benchmarks import workloads
from benchmarks.contestants import Contestant, ours
from benchmarks.measuring import Bench, race, say, seconds_each
from benchmarks.table import Goal, Row, Section
from segproof.kafka import OffsetIndex, TimeIndex

TARGETS = 1_000_000
TARGETS_ONE_BY_ONE = 100_000
_NS, _US = 1e-9, 1e-6


def sections(bench: Bench) -> list[Section]:
    """Measure lookups in full indexes of 10 MiB."""
    offsets, times = bench.folder / "full.index", bench.folder / "full.timeindex"
    workloads.write_offset_index(offsets)
    workloads.write_time_index(times)
    many = Section(
        "lookup_many",
        f"{TARGETS} targets, uniform over the keys, on a full index of 10 MiB (1310720 offsets; "
        "873813 timestamps); the JVM calls `lookup` for each. Same file, same targets, same "
        "answers.",
        "Kafka 4.3.1",
    )
    single = Section(
        "One lookup from Python",
        f"A call of `lookup`, median of passes over {TARGETS_ONE_BY_ONE} random targets on the "
        "same index.",
        "",
    )
    for name, path, kind in (("offset", offsets, OffsetIndex), ("time", times, TimeIndex)):
        with kind(path, 0) as index:
            for order in ("sorted", "random"):
                targets = bench.folder / f"{name}-{order}.targets"
                workloads.write_targets(targets, index, TARGETS, order == "sorted")
                goal = Goal(10 if order == "sorted" else 5, is_ratio=True)
                many.rows.append(_many(bench, f"{name} index, {order}", path, targets, goal))
            few = bench.folder / f"{name}-few.targets"
            workloads.write_targets(few, index, TARGETS_ONE_BY_ONE, False)
        single.rows.append(_single(bench, name, path, few))
    return [many, single]


def _many(bench: Bench, what: str, path: Path, targets: Path, goal: Goal) -> Row:
    say(f"lookup_many, {what}")
    mode = f"{what.split()[0]}-lookup"
    results = race(
        {
            "theirs": lambda: bench.java.contestant(mode, 5, path, targets),
            "compiled": lambda: ours("compiled", mode, 3, path, targets),
            "interpreted": lambda: ours("interpreted", mode, 2, path, targets),
        },
        2 * bench.passes + 1,
    )
    cells = {name: seconds_each(result, TARGETS, _NS) for name, result in results.items()}
    return Row.of(what, "ns", cells, goal)


def _single(bench: Bench, name: str, path: Path, targets: Path) -> Row:
    say(f"lookup one by one, {name} index")

    def start(kernels: str) -> Callable[[], Contestant]:
        return lambda: ours(kernels, f"{name}-lookup-each", 1, path, targets)

    results = race({kernels: start(kernels) for kernels in ("compiled", "interpreted")}, 3)
    cells = {name: seconds_each(one, TARGETS_ONE_BY_ONE, _US) for name, one in results.items()}
    goal = Goal(2, is_ratio=False, at_least=False)
    return Row.of(f"{name} index", "us", cells, goal)


# --- opening included


def opening(bench: Bench) -> list[Section]:
    """Measure lookups with opening and closing: on a mapping, on a private copy, by reading."""
    section = Section(
        "Opening included",
        "Open the index, look up so many random offsets one by one, close. `mapping`: open for "
        "writing, as a broker's own process would. `private copy`: open for reading, which never "
        "maps a file that another process may cut. `seek and read`: a binary search that reads "
        "each entry it probes from the file.",
        "",
    )
    for size_bytes in (10_000, 100_000, 1_000_000, 10_000_000):
        path = bench.folder / f"{size_bytes}.index"
        workloads.write_offset_index(path, size_bytes)
        for count in (1, 1000):
            targets = bench.folder / "few.targets"
            with OffsetIndex(path, 0) as index:
                workloads.write_targets(targets, index, count, False)
            for way in ("mapping", "private-copy", "seek-and-read"):
                what = f"{size_bytes // 1000} KB, {count} lookups, {way.replace('-', ' ')}"
                section.rows.append(
                    _opening(what.replace(" 1 lookups", " 1 lookup"), way, path, targets)
                )
    return [section]


def _opening(what: str, way: str, path: Path, targets: Path) -> Row:
    say(f"opening included, {what}")

    def start(kernels: str) -> Callable[[], Contestant]:
        return lambda: ours(kernels, f"open-{way}", 2, path, targets)

    kernels = ("compiled", "interpreted")
    results = race({name: start(name) for name in kernels}, 9, wait=False)
    cells = {name: seconds_each(result, 1, _US) for name, result in results.items()}
    return Row.of(what, "us", cells)
