# SPDX-License-Identifier: Apache-2.0
"""Lookups in real files: which there are below a path, and comparing one of them.

Files are only read. What cannot be read is a finding, and what has no defined answer is left out
with a note: `segproof verify` is for what is wrong with the files.
"""

import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from segproof.errors import SegproofError
from segproof.files import Files
from segproof.kafka import LogSegment
from segproof.lookup import segment_base_offsets
from segproof.rocketmq import IndexFile
from segproof.rocketmq.geometry import find_geometry, index_file_names
from segproof_spark.arrow_files import files_of, is_url
from segproof_spark.lookups.comparing import Comparison, named_class
from segproof_spark.lookups.drawing import Draw
from segproof_spark.lookups.index_images import IndexKind, read_image
from segproof_spark.lookups.indexes import CLASSES, check_index
from segproof_spark.lookups.key_indexes import check_keys
from segproof_spark.lookups.logs import check_log
from segproof_spark.lookups.read_only import ReadOnlyFiles
from segproof_spark.lookups.real_keys import is_asked, keys_asked, opened_keys, read_entries
from segproof_spark.lookups.real_logs import ask_model_of, opened_log, read_truth
from segproof_spark.lookups.units import LAWS, LOOKUPS, Unit

__all__ = ["real_units", "run_real"]

KINDS: dict[str, IndexKind] = {".index": "offset-index", ".timeindex": "time-index"}
INDEX_BYTES_MAX = 64 << 20
"""A longer file is no index of Kafka, whose limit is 10 MiB by default."""
LOG_BYTES = 256 << 20
"""Segments of a log are asked together up to so many bytes."""
DEPTH_MAX = 16
COUNT_EACH = 1_000_000
"""Lookups of each file or log, where no number was given."""


def real_units(
    places: Sequence[str],
    structures: Sequence[str],
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
        for unit in _found(files, path, DEPTH_MAX):
            if unit.structure in structures:
                found.append(replace(unit, query=query, seed=seed, subject=subject))
    if index is not None:
        wanted = [_numbered(unit, index, count or COUNT_EACH) for unit in found]
        return [unit for unit in wanted if unit.index == index]
    each = COUNT_EACH if count is None else -(-count // max(len(found), 1))
    return [part for unit in found for part in _parts(unit, each)]


def _numbered(unit: Unit, index: int, count: int) -> Unit:
    """Return the part of a number of a file; the parts of a log have theirs already."""
    if unit.structure == "partition-log":
        return replace(unit, count=count)
    return replace(unit, index=index, count=count)


def _parts(unit: Unit, count: int) -> Iterator[Unit]:
    """Cut a unit with many lookups; the parts of a log keep their number, which says where."""
    most, number = LOOKUPS[unit.structure], unit.index
    if unit.structure == "partition-log" or count <= most:
        yield replace(unit, count=count)
        return
    for start in range(0, count, most):
        yield replace(unit, count=min(most, count - start), index=number)
        number += 1


def _found(files: Files, path: str, depth: int) -> Iterator[Unit]:
    status = files.status(path)
    if status is None or not status.is_directory:
        files.open(path).close()  # says why it can't be read
        yield from _file(files, path)
        return
    names = files.list_directory(path)
    yield from _logs(files, path)
    for name in names:
        inner = posixpath.join(path, name)
        inner_status = files.status(inner)
        if inner_status is None:
            continue
        if not inner_status.is_directory:
            yield from _file(files, inner)
        elif depth:
            try:
                yield from _found(files, inner, depth - 1)
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
    """Yield the log of a directory, in windows of segments that follow each other."""
    window: list[int] = []
    held = number = 0
    for base in segment_base_offsets(path, files=files):
        stem = posixpath.join(path, f"{base:020d}")
        if any(files.status(stem + suffix) is None for suffix in KINDS):
            continue  # without an index there is nothing to look up in
        status = files.status(f"{stem}.log")
        size = 0 if status is None else status.size_bytes
        if window and held + size > LOG_BYTES:
            yield Unit("partition-log", 0, number, 0, path, segments=tuple(window))
            window, held, number = [], 0, number + 1
        window.append(base)
        held += size
    if window:
        yield Unit("partition-log", 0, number, 0, path, segments=tuple(window))


# --- doing one

Ask = Callable[[], None]
"""Opens the subject, asks it and compares."""


def run_real(comparison: Comparison, unit: Unit) -> None:
    """Do the lookups of a unit in real files and compare them.

    Whatever fails is a finding of this unit. Only what keeps the expected answers from being told
    is a note: it says nothing of the subject.
    """
    try:
        ask = _prepared(comparison, unit)
        if ask is not None:
            ask()
    except OSError as error:
        comparison.tell("DISK-1", "the file cannot be read", "its bytes", str(error))
    except Exception as error:  # a file that changes meanwhile, a subject that cannot be opened
        comparison.tell(LAWS[unit.structure], "the unit ends", "answers", repr(error))


def _prepared(comparison: Comparison, unit: Unit) -> Ask | None:
    """Read the expected answers, or return None with a note why they cannot be told."""
    files, _ = files_of(unit.path + (f"?{unit.query}" if unit.query else ""))
    draw = Draw("lookups", unit.structure, unit.seed, unit.index, os.path.basename(unit.path))
    try:
        if unit.structure == "partition-log":
            return _log_asked(comparison, unit, draw, files)
        if unit.structure == "index-file":
            return _keys_asked(comparison, unit, draw, files)
        return _index_asked(comparison, unit, draw, files)
    except SegproofError as error:
        comparison.notes.append(f"not asked: {error}")
        return None


def _read(files: Files, path: str, limit: int) -> bytes | None:
    file = files.open(path)
    try:
        size = file.size()
        return file.pread(size, 0) if size <= limit else None
    finally:
        file.close()


def _index_asked(comparison: Comparison, unit: Unit, draw: Draw, files: Files) -> Ask | None:
    data = _read(files, unit.path, INDEX_BYTES_MAX)
    if data is None:
        comparison.notes.append(f"not asked: more than {INDEX_BYTES_MAX} bytes")
        return None
    kind: IndexKind = "offset-index" if unit.structure == "offset-index" else "time-index"
    base = int(os.path.basename(unit.path).partition(".")[0])
    image = read_image(kind, base, data)

    def ask() -> None:
        subject = named_class(unit.subject) if unit.subject else CLASSES[kind]
        check_index(comparison, image, draw, unit.count, files=files, path=unit.path, kind=subject)

    return ask


def _keys_asked(comparison: Comparison, unit: Unit, draw: Draw, files: Files) -> Ask | None:
    status = files.status(unit.path)
    if not is_asked(comparison, 0 if status is None else status.size_bytes):
        return None
    data = _read(files, unit.path, 1 << 31) or b""
    entries = read_entries(data, *unit.geometry)
    keys, hashes = keys_asked(entries, draw)

    def ask() -> None:
        subject = named_class(unit.subject) if unit.subject else IndexFile
        with opened_keys(unit.path, unit.geometry, files, subject) as index:
            check_keys(
                comparison, index, entries, keys, hashes, draw, unit.count, image=lambda: data
            )

    return ask


def _log_asked(comparison: Comparison, unit: Unit, draw: Draw, files: Files) -> Ask | None:
    truth = read_truth(comparison, unit.path, unit.segments, files)
    if truth is None:
        return None

    def ask() -> None:
        subject = named_class(unit.subject) if unit.subject else LogSegment
        with opened_log(unit.path, unit.segments, ReadOnlyFiles(files), subject) as segments:
            samples = check_log(comparison, segments, truth, draw, unit.count, is_slow=True)
        ask_model_of(comparison, unit.path, unit.segments, files, samples)

    return ask
