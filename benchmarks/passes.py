# SPDX-License-Identifier: Apache-2.0
"""Our side of a measurement, a process of its own: `python -m benchmarks.passes MODE WARMUPS ...`.

Speaks what KafkaBench.java speaks: says `ready` after the warm-up, then answers each line of
standard input with the nanoseconds of a pass and a checksum of its answers. It alone adds the
nanoseconds of the processor.
"""

import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    rocketmq_passes,  # noqa: F401 -- registers its modes
    rocketmq_rebuild_passes,  # noqa: F401 -- registers its modes
    salvage_passes,  # noqa: F401 -- registers its modes
    segment_passes,  # noqa: F401 -- registers its modes
    table_passes,  # noqa: F401 -- registers its modes
    workloads,
)
from benchmarks.modes import MODES, Pass, mode, next_pass
from segproof.layouts.kafka import OFFSET_ENTRY


@mode
def offset_lookup(file: str, targets: str) -> Pass:
    """Look all targets up at once; the sum of the positions."""
    from segproof.kafka import OffsetIndex

    index, asked = OffsetIndex(file, 0), workloads.read_targets(Path(targets))

    def one_pass() -> Callable[[], int]:
        found = index.lookup_many(asked)[1]
        return lambda: int(found.sum())

    return one_pass


@mode
def time_lookup(file: str, targets: str) -> Pass:
    """Look all targets up at once; the sum of the offsets."""
    from segproof.kafka import TimeIndex

    index, asked = TimeIndex(file, 0), workloads.read_targets(Path(targets))

    def one_pass() -> Callable[[], int]:
        found = index.lookup_many(asked)[1]
        return lambda: int(found.sum())

    return one_pass


@mode
def offset_lookup_each(file: str, targets: str) -> Pass:
    """Look each target up by a call from Python; the sum of the positions."""
    from segproof.kafka import OffsetIndex

    index = OffsetIndex(file, 0)
    asked = workloads.read_targets(Path(targets)).tolist()

    def one_pass() -> Callable[[], int]:
        lookup = index.lookup
        found = [lookup(target) for target in asked]
        return lambda: sum(entry.position for entry in found)

    return one_pass


@mode
def time_lookup_each(file: str, targets: str) -> Pass:
    """Look each target up by a call from Python; the sum of the offsets."""
    from segproof.kafka import TimeIndex

    index = TimeIndex(file, 0)
    asked = workloads.read_targets(Path(targets)).tolist()

    def one_pass() -> Callable[[], int]:
        lookup = index.lookup
        found = [lookup(target) for target in asked]
        return lambda: sum(entry.offset for entry in found)

    return one_pass


@mode
def open_mapping(file: str, targets: str) -> Pass:
    """Map the index, look each target up, unmap; the sum of the positions."""
    return _opened(file, targets, writable=True)


@mode
def open_private_copy(file: str, targets: str) -> Pass:
    """Read the index into memory, look each target up; the sum of the positions."""
    return _opened(file, targets, writable=False)


def _opened(file: str, targets: str, writable: bool) -> Pass:
    from segproof.kafka import OffsetIndex

    asked = workloads.read_targets(Path(targets)).tolist()

    def one_pass() -> Callable[[], int]:
        index = OffsetIndex(file, 0, writable=writable)
        found = [index.lookup(target) for target in asked]
        index.close_handler()
        return lambda: sum(entry.position for entry in found)

    return one_pass


@mode
def open_seek_and_read(file: str, targets: str) -> Pass:
    """Open the index, read each entry that a binary search probes; the sum of the positions."""
    asked = workloads.read_targets(Path(targets)).tolist()
    entry = OFFSET_ENTRY.struct()

    def lookup(descriptor: int, entries: int, target: int) -> int:
        low, high, position = -1, entries, 0
        while high - low > 1:
            middle = (low + high) // 2
            key, value = entry.unpack(os.pread(descriptor, 8, middle * 8))
            if key <= target:
                low, position = middle, value
            else:
                high = middle
        return position

    def one_pass() -> Callable[[], int]:
        descriptor = os.open(file, os.O_RDONLY)
        entries = os.fstat(descriptor).st_size // 8
        found = [lookup(descriptor, entries, target) for target in asked]
        os.close(descriptor)
        return lambda: sum(found)

    return one_pass


@mode
def verify(path: str, jobs: str = "1", deep: str = "") -> Pass:
    """Verify a directory; the number of findings."""
    from segproof.verification import verify as verify_path

    if int(jobs) > 1:
        # Processes inherit kernels that are compiled, as one process has them after its first pass.
        list(verify_path(path, deep=bool(deep)))

    def one_pass() -> Callable[[], int]:
        findings = list(verify_path(path, deep=bool(deep), jobs=int(jobs)))
        return lambda: len(findings)

    return one_pass


def peak_memory_bytes() -> int:
    """Return the most memory that this process had at once; 0 where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(lines[0].split()[1]) * 1024 if lines else 0


def main(words: list[str]) -> None:
    """Warm up, make a pass for each line of standard input; at its end say the peak of memory."""
    work = MODES[words[0]](*words[2:])
    for _ in range(int(words[1])):
        next_pass(work)()()
    print("ready", flush=True)
    # As `timeit` does: when garbage is looked for says nothing about what is measured.
    gc.collect()
    gc.disable()
    for _ in sys.stdin:
        one_pass = next_pass(work)
        begin, begin_of_processor = time.perf_counter_ns(), time.process_time_ns()
        checksum = one_pass()
        nanoseconds = time.perf_counter_ns() - begin
        processor = time.process_time_ns() - begin_of_processor
        print(nanoseconds, checksum(), processor, flush=True)
    print("peak", peak_memory_bytes())


if __name__ == "__main__":
    main(sys.argv[1:])
