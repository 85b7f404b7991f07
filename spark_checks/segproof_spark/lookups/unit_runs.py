# SPDX-License-Identifier: Apache-2.0
"""Doing one unit of lookups, in whatever process has its name."""

import time
from typing import Any

from segproof.kafka import LogSegment
from segproof.rocketmq import IndexFile
from segproof_spark.lookups.comparing import Comparison, named_class
from segproof_spark.lookups.drawing import Draw
from segproof_spark.lookups.index_images import IndexKind, draw_image
from segproof_spark.lookups.indexes import CLASSES, check_index, in_memory
from segproof_spark.lookups.key_images import draw_key_image, put_image, read_times
from segproof_spark.lookups.key_indexes import Entries, check_keys
from segproof_spark.lookups.log_images import build_log, draw_log, truth_of
from segproof_spark.lookups.logs import check_log, check_log_samples
from segproof_spark.lookups.real_files import run_real
from segproof_spark.lookups.units import LAWS, Unit, UnitResult
from segproof_spark.memory import peak_bytes

__all__ = ["run_unit"]


def run_unit(unit: Unit) -> UnitResult:
    """Do the lookups of a unit and compare them. Never raises for what a file or class does."""
    started = time.perf_counter()
    comparison = Comparison(unit.structure, unit.path or unit.source, unit.command)
    if unit.path:
        run_real(comparison, unit)
    else:
        try:
            _RUNS[unit.structure](comparison, unit, _draw(unit))
        except Exception as error:  # of a class that cannot be opened or written: told, not lost
            comparison.tell(LAWS[unit.structure], "the unit ends", "answers", repr(error))
    seconds = time.perf_counter() - started
    return UnitResult(unit, comparison, seconds, peak_bytes())


def _draw(unit: Unit) -> Draw:
    return Draw("lookups", unit.structure, unit.seed, unit.index)


def _subject(unit: Unit, usual: Any) -> Any:
    return named_class(unit.subject) if unit.subject else usual


def _run_index(comparison: Comparison, unit: Unit, draw: Draw) -> None:
    kind: IndexKind = "offset-index" if unit.structure == "offset-index" else "time-index"
    path = "/00000000000000000000.index"
    image = draw_image(kind, draw, unit.index)
    check_index(
        comparison,
        image,
        draw,
        unit.count,
        files=in_memory(image, path),
        path=path,
        writable=bool(unit.index % 2),
        kind=_subject(unit, CLASSES[kind]),
    )


def _run_keys(comparison: Comparison, unit: Unit, draw: Draw) -> None:
    image = draw_key_image(draw, unit.index)
    index, files, path = put_image(image, _subject(unit, IndexFile))
    times = read_times(image.store_timestamps)
    entries = Entries(image.hashes[image.put], image.phy_offsets, times, image.hash_slot_num)

    def stored() -> bytes:
        index.flush()
        return files.images("/")[path[1:]]

    with index:
        check_keys(
            comparison, index, entries, image.keys, image.hashes, draw, unit.count, image=stored
        )


def _run_log(comparison: Comparison, unit: Unit, draw: Draw) -> None:
    image = draw_log(draw, unit.index)
    files, segments = build_log(image, _subject(unit, LogSegment))
    truth = truth_of([base for base, _ in image.segments], image.rows)
    samples = check_log(comparison, segments, truth, draw, unit.count, image.is_slow)
    segments.close()
    check_log_samples(comparison, image, files, samples)


_RUNS = {
    "offset-index": _run_index,
    "time-index": _run_index,
    "index-file": _run_keys,
    "partition-log": _run_log,
}
