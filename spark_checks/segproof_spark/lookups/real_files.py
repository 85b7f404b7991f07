# SPDX-License-Identifier: Apache-2.0
"""The real indexes and logs below a path, as units of lookups. Files are only read."""

import os
import posixpath
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from segproof.files import Files
from segproof.lookup import segment_base_offsets
from segproof.rocketmq.geometry import find_geometry, index_file_names
from segproof_spark.arrow_files import files_of, is_url
from segproof_spark.lookups.comparison import Unit
from segproof_spark.lookups.structures import LOG, parts_of

KINDS = {".index": "offset-index", ".timeindex": "time-index"}
LOG_BYTES = 256 << 20
"""Segments of a log are asked together up to so many bytes."""
DEPTH_MAX = 16
COUNT_EACH = 1_000_000
"""Lookups of each file or log, where no number was given."""


def real_units(
    places: Sequence[str],
    structures: Collection[str],
    count: int | None,
    *,
    seed: int = 0,
    subject: str = "",
    index: int | None = None,
) -> list[Unit]:
    """Return units for every index and log in these places; `count` is shared out evenly.

    With `index` only the units of that number, each with `count` lookups.
    Raises: OSError for a place that cannot be read.
    """
    found: list[Unit] = []
    for place in places:
        files, path = files_of(place)
        query = place.partition("?")[2] if is_url(place) else ""
        found += (
            replace(unit, query=query, seed=seed, subject=subject)
            for unit in _below(files, path, DEPTH_MAX)
            if unit.structure in structures
        )
    if index is None:
        each = COUNT_EACH if count is None else -(-count // max(len(found), 1))
        return [part for unit in found for part in parts_of(unit, each)]
    # A log's units have their numbers, which say where they begin.
    numbered = [unit if unit.segments else replace(unit, index=index) for unit in found]
    return [replace(one, count=count or COUNT_EACH) for one in numbered if one.index == index]


def _below(files: Files, path: str, depth: int) -> Iterator[Unit]:
    status = files.status(path)
    if status is None or not status.is_directory:
        files.open(path).close()  # says why it can't be read
        yield from _file(files, path)
        return
    names = files.list_directory(path)
    yield from _logs(files, path)
    for name in names:
        inner = posixpath.join(path, name)
        status = files.status(inner)
        if status is None:
            continue
        if not status.is_directory:
            yield from _file(files, inner)
        elif depth:
            try:
                yield from _below(files, inner, depth - 1)
            except OSError:
                continue


def _file(files: Files, path: str) -> Iterator[Unit]:
    """Yield the unit of an index file, by its name."""
    name = os.path.basename(path)
    stem, suffix = os.path.splitext(name)
    if suffix in KINDS and len(stem) == 20 and stem.isascii() and stem.isdigit():
        yield Unit(KINDS[suffix], 0, 0, 0, path)
    elif index_file_names([name]):
        try:
            answer = find_geometry(path, files=files)
        except OSError:
            return
        if answer.geometry is not None and answer.origin != "ambiguous":
            geometry = (answer.geometry.hash_slot_num, answer.geometry.index_num)
            yield Unit("index-file", 0, 0, 0, path, geometry=geometry)


def _logs(files: Files, path: str) -> Iterator[Unit]:
    """Yield the log of a directory, in runs of segments that follow each other."""
    taken: list[int] = []
    held = number = 0
    for base in segment_base_offsets(path, files=files):
        stem = posixpath.join(path, f"{base:020d}")
        if any(files.status(stem + suffix) is None for suffix in KINDS):
            continue  # without an index there is nothing to look up in
        status = files.status(f"{stem}.log")
        size = 0 if status is None else status.size_bytes
        if taken and held + size > LOG_BYTES:
            yield Unit(LOG, 0, number, 0, path, segments=tuple(taken))
            taken, held, number = [], 0, number + 1
        taken.append(base)
        held += size
    if taken:
        yield Unit(LOG, 0, number, 0, path, segments=tuple(taken))
