# SPDX-License-Identifier: Apache-2.0
"""Which partitions of Kafka lie at a path, their segments, sizes, offsets and times.

Cheap: of each log the first batch and those behind the last index entries are read. A log whose
indexes do not fit it is read by the headers of its batches.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

from segproof.counts import plural
from segproof.errors import SegproofError
from segproof.files import REAL_FILES, Files
from segproof.integers import INT64_MAX
from segproof.inventory.partitions import Partition
from segproof.inventory.segments import Segment
from segproof.inventory.walk import (
    DataDirectory,
    Layout,
    NotListed,
    partition_in,
    take_inventory,
    unread_words,
)
from segproof.reading.file_names import SEGMENT_SUFFIXES, read_partition_name
from segproof.reading.packed_segments import with_unpacked
from segproof.reading.segment_reader import SegmentReader
from segproof.reading.store_paths import regular_size
from segproof.wording.loose_files import stray_words
from segproof_harness.reading.log_file_rows import field_of
from segproof_harness.reports.text import reason_of

Row = dict[str, Any]


def partition_rows(
    path: str,
    tell: Callable[[str], None],
    *,
    with_segments: bool | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    files: Files = REAL_FILES,
) -> Iterator[Row]:
    """Yield a row for each partition at or below `path`, by data directory, topic and number.

    With `with_segments` a row for each of its segments follows; None: where `path` itself is the
    partition. What can't be read is null, and `reason` says why; `tell` is told of each directory
    that can't be listed, or is of another layout. `on_progress` is told how many partitions are
    read, and how many there are in all. Raises: OSError for `path`.
    """
    files, found = with_unpacked(files), list[Partition]()
    for item in take_inventory(path, files):
        partition = partition_in(item)
        if partition is not None and partition.segments:
            found.append(partition)
        elif isinstance(item, NotListed | Layout) and (why := unread_words(item)) is not None:
            tell(f"{item.path}: {why}")
        elif isinstance(item, DataDirectory):
            for stray, words, _ in stray_words(item, files):
                tell(f"{stray}: {words}")
    for done, partition in enumerate(sorted(found, key=_order)):
        if on_progress is not None:
            on_progress(done, len(found))
        segments = list(_segment_rows(partition, files))
        yield _whole(partition, segments, files)
        if with_segments or (with_segments is None and os.path.samefile(partition.directory, path)):
            yield from segments


def _order(partition: Partition) -> tuple[str, str, int]:
    known, parent = read_partition_name(_name(partition)), os.path.dirname(partition.directory)
    return (parent, _name(partition), 0) if known is None else (parent, *known[:2])


def _name(partition: Partition) -> str:
    return os.path.basename(os.path.abspath(partition.directory))


def _segment_rows(partition: Partition, files: Files) -> Iterator[Row]:
    last = partition.segments[-1].base_offset
    for segment in partition.segments:
        offset = segment.base_offset
        path = segment.path(min(segment.suffixes) if segment.is_cached else ".log")
        row: Row = {
            "kind": "segment",
            "path": path,
            "base_offset": offset,
            "size_bytes": sum(regular_size(segment.path(one), files) for one in SEGMENT_SUFFIXES),
            "first_offset": None,
            "end_offset": None,
            "first_timestamp": None,
            "max_timestamp": None,
            "reason": None,
        }
        try:
            if not segment.is_cached:
                row |= _measured(segment, offset == last, files)
        except FileNotFoundError:
            why = "there is no log"
            if segment.is_swap:
                why = "it waits for its place, and ls does not read it (`segproof verify` does)"
            row["reason"] = f"{path}: {why}"
        except (SegproofError, OSError) as error:
            row["reason"] = reason_of(error)
        yield row


def _measured(segment: Segment, is_last: bool, files: Files) -> Row:
    """Return the offsets and times of a log, and what keeps it from being read to its end.

    Raises: OSError; SegproofError if its files can't be opened.
    """
    with SegmentReader(
        segment.directory, segment.base_offset, files=files, is_last=is_last, stem=segment.stem
    ) as reader:
        position, largest, reason = 0, -1, None
        try:
            largest = reader.largest_timestamp()
            entry = reader.lookup_offset_index(INT64_MAX)
            reader.first_batch_reaching(entry.offset, entry)
            position = entry.position
        except SegproofError as error:
            reason = str(error)
        first = last = None
        try:
            first = next(reader.log.batches(0), None)
            for last in reader.log.batches(position):
                largest = max(largest, last.max_timestamp)
        except SegproofError as error:
            reason = str(error)
        return {
            "first_offset": None if first is None else field_of(first, "base_offset"),
            "end_offset": segment.base_offset if last is None else field_of(last, "next_offset"),
            "first_timestamp": None if first is None else _time_of(first),
            "max_timestamp": None if largest < 0 else largest,
            "reason": reason,
        }


def _time_of(batch: Any) -> int | None:
    """Return the time of a batch's first record as its header has it, of an old message its own."""
    time = batch.max_timestamp if batch.base_timestamp is None else batch.base_timestamp
    return time if time >= 0 and not batch.has_delete_horizon else None


def _whole(partition: Partition, segments: list[Row], files: Files) -> Row:
    """Return the row of a partition, from those of its segments."""
    known = read_partition_name(_name(partition))
    reasons = [row["reason"] for row in segments if row["reason"] is not None]
    firsts = [row["first_offset"] for row in segments if row["first_offset"] is not None]
    ends = [row["end_offset"] for row in segments if row["end_offset"] is not None]
    more = "" if len(reasons) < 2 else f" ({plural(len(reasons) - 1, 'more segment')})"
    return {
        "kind": "remote-folder" if partition.segments[0].stem else "partition",
        "path": partition.directory,
        "topic": None if known is None else known.topic,
        "partition": None if known is None else known.partition,
        "state": (known.state or None) if known is not None else None,
        "segments": len(segments),
        "size_bytes": sum(row["size_bytes"] for row in segments)
        + sum(regular_size(partition.path(name), files) for name in partition.others),
        "first_offset": min(firsts, default=None),
        "end_offset": max(ends, default=None),
        "first_timestamp": _least(segments, "first_timestamp"),
        "max_timestamp": max(
            (row["max_timestamp"] for row in segments if row["max_timestamp"] is not None),
            default=None,
        ),
        "reason": f"{reasons[0]}{more}" if reasons else None,
    }


def _least(rows: list[Row], name: str) -> int | None:
    return min((row[name] for row in rows if row[name] is not None), default=None)
