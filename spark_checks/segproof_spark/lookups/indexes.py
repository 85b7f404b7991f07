# SPDX-License-Identifier: Apache-2.0
"""Compare the lookups of one offset index or time index with the definition."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from segproof.files import Files
from segproof.kafka import OffsetIndex, TimeIndex
from segproof_harness.files.memory_files import MemoryFiles
from segproof_model.kafka.format.offset_index import OffsetIndex as ModelOffsetIndex
from segproof_model.kafka.format.time_index import TimeIndex as ModelTimeIndex
from segproof_model.language.files import Files as ModelFiles
from segproof_model.releases import SEGPROOF
from segproof_spark.lookups.comparing import Comparison
from segproof_spark.lookups.drawing import Draw
from segproof_spark.lookups.index_images import DTYPES, IndexImage, IndexKind
from segproof_spark.lookups.sweeps import INT64_MAX, INT64_MIN, Asked, Ranges, ranges_of_keys

__all__ = ["CLASSES", "LAWS", "check_index", "in_memory"]

CLASSES: dict[IndexKind, type[Any]] = {"offset-index": OffsetIndex, "time-index": TimeIndex}
MODELS: dict[IndexKind, type[Any]] = {
    "offset-index": ModelOffsetIndex,
    "time-index": ModelTimeIndex,
}
LAWS: dict[IndexKind, str] = {"offset-index": "OFFIDX-11", "time-index": "TIMEIDX-10"}
SAMPLES = 320
"""So many targets of an index are asked of the model, and of the single lookup."""
WHOLE_ENTRIES = 1024
"""An index with more entries is asked of the model in windows of so many: the model looks at every
entry for every target. Inside a window the greatest key not above a target is that of the whole."""
WHOLE_SAMPLES = 4
"""So many targets of a larger index are asked of a model of all of it."""
WHOLE_ENTRIES_MAX = 300_000
"""Of a larger one the model's lists would take hundreds of MiB."""
_INT32 = 1 << 31


def in_memory(image: IndexImage, path: str) -> Files:
    """Return files in memory that hold the image."""
    data = bytes(image.data)
    files = MemoryFiles(max(len(data), 1 << 16))
    file = files.open(path, writable=True, create=True)
    file.pwrite(data, 0)
    file.close()
    return files


def check_index(
    comparison: Comparison,
    image: IndexImage,
    draw: Draw,
    count: int,
    *,
    files: Files,
    path: str,
    writable: bool = False,
    kind: type[Any] | None = None,
) -> None:
    """Look up at least `count` targets, each key and its neighbours, and compare every answer.

    Where keys do not increase (a damaged file, or leftovers behind the end) only the order of the
    probes says what is found, so only a sample is compared, with the model.
    """
    comparison.entries = len(image.keys)
    law = LAWS[image.kind]
    opened = kind or CLASSES[image.kind]
    with opened(path, image.base_offset, -1, writable, files=files) as index:
        if not image.increases:
            comparison.notes.append("the keys do not increase: compared with the model alone")
            _check_probes(comparison, image, index, draw)
            return
        ranges = _ranges(image)
        is_shuffled = bool(draw.number(0, 1))
        samples: list[Asked] = []
        for asked in ranges.blocks(draw, _borders(image), count, is_shuffled):
            comparison.compare(
                law,
                "lookup_many",
                asked.targets,
                asked.expected,
                partial(index.lookup_many, asked.targets),
            )
            samples.append(asked.sample(SAMPLES))
        _check_samples(comparison, image, index, ranges, samples)


def _one(index: Any, target: int) -> tuple[int, ...]:
    """Return what an index, or its model, finds for one target."""
    return tuple(index.lookup(target))


def _ranges(image: IndexImage) -> Ranges:
    """Return which targets find which entry, and what it says, with absolute offsets."""
    base = image.base_offset
    if image.kind == "time-index":
        return ranges_of_keys(image.keys, (image.keys, image.values + base), (-1, base))
    # Relative targets beyond 32 bits are asked as far as 64 bits hold them.
    offsets = image.keys + base
    return ranges_of_keys(offsets, (offsets, image.values), (base, 0))


def _borders(image: IndexImage) -> list[int]:
    """Return the borders of the index and of the integers, each with its neighbours."""
    base = image.base_offset
    middles = [0, base, base + _INT32, base - _INT32, _INT32, 2 * _INT32, INT64_MIN, INT64_MAX]
    if len(image.keys):
        shift = base if image.kind == "offset-index" else 0
        middles += [int(image.keys[0]) + shift, int(image.keys[-1]) + shift]
    return [middle + step for middle in middles for step in (-1, 0, 1)]


# --- the sample


def _check_samples(
    comparison: Comparison, image: IndexImage, index: Any, ranges: Ranges, samples: list[Asked]
) -> None:
    """Ask the model and the single lookup for a sample of all that was asked."""
    sample = Asked.joined(samples).sample(SAMPLES)
    law = LAWS[image.kind]
    for target, expected in sample.rows():
        comparison.compare_one(law, f"lookup({target})", expected, partial(_one, index, target))
    comparison.by_single += len(sample.targets)
    if len(image.keys) <= WHOLE_ENTRIES:
        _ask_model(comparison, image, sample)
        return
    if len(image.keys) <= WHOLE_ENTRIES_MAX:
        _ask_model(comparison, image, sample.sample(WHOLE_SAMPLES))
    for window, part in _windows(image, ranges):
        _ask_model(comparison, window, part)


def _ask_model(comparison: Comparison, image: IndexImage, sample: Asked) -> None:
    model = _model(image)
    for target, expected in sample.rows():
        comparison.compare_one(
            LAWS[image.kind],
            f"the model's lookup({target})",
            expected,
            partial(_one, model, target),
        )
    comparison.by_model += len(sample.targets)


def _model(image: IndexImage) -> Any:
    files = ModelFiles({"x": bytes(image.data)})
    return SEGPROOF.kind(MODELS[image.kind])(files, "x", image.base_offset, writable=False)


def _windows(image: IndexImage, ranges: Ranges) -> Iterator[tuple[IndexImage, Asked]]:
    """Yield parts of the index as indexes of their own, with the ends of some of their ranges."""
    entries, size = len(image.keys), DTYPES[image.kind].itemsize
    shift = image.base_offset if image.kind == "offset-index" else 0
    for first in (0, entries // 2, entries - WHOLE_ENTRIES):
        end = first + WHOLE_ENTRIES
        part = slice(first, end)
        data = bytes(image.data[first * size : end * size])
        window = IndexImage(
            image.kind, image.base_offset, data, image.keys[part], image.values[part]
        )
        inside = ranges.lows <= window.keys[-1] + shift
        if first:  # below the first key of a window another entry is found than in the whole
            inside &= ranges.lows >= window.keys[0] + shift
        rows = np.flatnonzero(inside)
        rows = rows[:: max(len(rows) * 6 // SAMPLES, 1)]
        targets = np.concatenate([ranges.lows[rows], ranges.highs[rows]])
        both = np.concatenate([rows, rows])
        yield window, Asked(targets, tuple(part[both] for part in ranges.answers), both)


def _check_probes(comparison: Comparison, image: IndexImage, index: Any, draw: Draw) -> None:
    """Compare an index whose keys do not increase with the model, which probes as it does."""
    model, law = _model(image), LAWS[image.kind]
    shift = image.base_offset if image.kind == "offset-index" else 0
    count = max(SAMPLES * WHOLE_ENTRIES // max(len(image.keys), WHOLE_ENTRIES), WHOLE_SAMPLES)
    keys = image.keys[draw.below(len(image.keys), count)] + shift
    targets = np.concatenate([keys, keys + draw.below(3, count) - 1])
    answers = [tuple(model.lookup(target)) for target in targets.tolist()]
    expected = np.array(answers, np.int64).reshape(-1, 2)
    comparison.compare(
        law,
        "lookup_many",
        targets,
        (expected[:, 0], expected[:, 1]),
        partial(index.lookup_many, targets),
    )
    comparison.by_model += len(targets)
