# SPDX-License-Identifier: Apache-2.0
"""Rows about `segproof.scan`, beside the parser of a Python client."""

import shutil
from functools import partial
from importlib.util import find_spec

from benchmarks import workloads
from benchmarks.contestants import Contestant, NotRunError, Passes, ours
from benchmarks.measuring import MIB, Bench, race, say, seconds_each
from benchmarks.table import Goal, Row, Section

_BYTES, _QUICK_BYTES = 24 * MIB, 4 * MIB
_MILLION = 1e-6


def sections(bench: Bench) -> list[Section]:
    """Measure a scan of all columns of records."""
    size = _QUICK_BYTES if bench.quick else _BYTES
    section = Section(
        "scan of records",
        f"Processor time of `segproof.scan` of all columns, in microseconds a record; {size // MIB}"
        " MiB, page cache warm. The other side is the compiled parser of aiokafka, which makes a"
        " Python object of each record; both make all checksums.",
        "aiokafka",
    )
    for name in ("160 x 100 B", "64 x 250 B", "1 x 250 B"):
        say(f"scan, {name}")
        directory = bench.folder / "t-0"
        segment = workloads.write_segment(directory, workloads.SHAPES[name], size)
        results = race(
            {
                "theirs": partial(_theirs, segment.log),
                "compiled": partial(ours, "compiled", "scan-records", 2, segment.log),
                "interpreted": partial(ours, "interpreted", "scan-records", 1, segment.log),
            },
            bench.passes,
        )
        shutil.rmtree(directory)
        cells = {
            side: seconds_each(
                result.of_processor if isinstance(result, Passes) else result,
                segment.records,
                _MILLION,
            )
            for side, result in results.items()
        }
        section.rows.append(Row.of(f"{name} batches", "us", cells, Goal(1, is_ratio=True)))
    return [section]


def _theirs(log: object) -> Contestant:
    if find_spec("aiokafka") is None:
        raise NotRunError("aiokafka is not installed")
    return ours("interpreted", "aiokafka-records", 2, log)
