# SPDX-License-Identifier: Apache-2.0
"""What a folder that is set aside tells of the segments that its partition in use lacks.

Retention moves the start of a log, and then the first entry of `leader-epoch-checkpoint` too. A
topic in remote storage keeps the entries from the start of its whole log, while local retention
removes segments. So an entry from before the first segment proves no loss. Compaction takes a
segment as a whole if all of its keys are written again, and merges its neighbours.

Upstream: Kafka 4.4.0: UnifiedLog.maybeIncrementLogStartOffset, UnifiedLog.deleteOldSegments,
    LeaderEpochFileCache.truncateFromStartAsyncFlush, Cleaner.cleanSegments.
Laws: DISK-41, DISK-63.
"""

import posixpath
import re
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from segproof.counts import plural
from segproof.files import Files
from segproof.hints import writes
from segproof.inventory.folder_extents import Extent, extent_of, generations, lacking, outside
from segproof.inventory.segment_listing import kinds_of, parent_of
from segproof.inventory.small_files import KnownOffsets, topic_id_of
from segproof.reading.cleaner_traces import CleanerTraces, cleaner_was_here
from segproof.reading.file_names import CLEANER, METADATA, read_partition_name
from segproof.reading.folder_names import names_of
from segproof.reading.keyless_records import first_keyless

_BASE = re.compile(r"[0-9]{20}", re.ASCII)
FOLDERS_MAX = 8
"""At most this many folders beside a partition are read."""
HINT_OF_HELD = writes(
    "copy this partition, and the folder that is named, to another disk before a broker starts"
    " here. `segproof verify` of the data directory compares both (DISK-41), and says how one copy"
    " is made of the two"
)


def are_of_one_topic(one: str, two: str, files: Files) -> bool:
    """Return whether two folders have the same topic id."""
    found = [topic_id_of(posixpath.join(path, METADATA), files) for path in (one, two)]
    return found[0] is not None and found[0] == found[1]


def traces_in(
    directory: str, topic: str, partition: int, used: Extent, files: Files, offsets: KnownOffsets
) -> CleanerTraces:
    """Return what the files of a partition in use say of the log cleaner. Raises: never."""
    told = offsets.of(parent_of(directory), files).get((topic, partition), {})
    kinds = kinds_of(names_of(directory, files))
    was_here = cleaner_was_here(topic, kinds, told.get(CLEANER, 0))
    logs = [posixpath.join(directory, name) for name in used.by_log]
    return CleanerTraces(was_here, first_keyless(logs, files))


class HeldBeside:
    """The offsets that folders beside a partition have, and that it lacks.

    Each folder is read once, when the first range is asked for. Memory: 16 bytes for each batch
    that only a folder has, and the names of logs that were not read.
    """

    def __init__(self, directory: str, files: Files) -> None:
        self._directory = directory
        self._files = files
        self._unread: dict[str, list[str]] = {}
        """For each folder the names of logs that were not read, as far as they say an offset."""

    def words(self, first: int, end: int) -> str:
        """Return in words which folders have offsets from `first` up to before `end`, or have a log
        that was not read and begins there; empty if none has. Raises: never."""
        found: list[str] = []
        for folder, lacked in self._rows.items():
            rows = lacked[(lacked[:, 1] >= first) & (lacked[:, 0] < end)]
            if len(rows):
                which = f"the offsets {int(rows[:, 0].min())} to {int(rows[:, 1].max())}"
                found.append(f"{folder} has {which} of them, in {plural(len(rows), 'batch')}")
        for folder, names in self._unread.items():
            inside = [one for one in names if first <= int(one[:20]) < end]
            if inside:
                found.append(f"{folder} has {inside[0]}, which was not read and may have them")
        return "; ".join(found)

    @cached_property
    def _rows(self) -> dict[str, NDArray[np.int64]]:
        """The first and last offsets of the batches that only a folder has, for each folder."""
        directory, files = self._directory, self._files
        found: dict[str, NDArray[np.int64]] = {}
        used: Extent | None = None
        for folder in _folders_of(directory, files):
            is_deleted = folder.endswith("-delete") and not are_of_one_topic(
                folder, directory, files
            )
            if is_deleted or generations(folder, directory, files)[1]:
                continue
            used = used or extent_of(directory, files)
            extent = extent_of(folder, files)
            if extent.are_too_many or used.are_too_many:
                continue
            self._unread[folder] = [one for one in extent.unread if _BASE.match(one)]
            rows = outside(lacking(extent.batches, used.batches), used.ranges)
            if len(rows):
                found[folder] = rows[:, :2].copy()
        return found


def _folders_of(directory: str, files: Files) -> Iterator[str]:
    """Yield the folders of a partition that are set aside beside it."""
    own = read_partition_name(posixpath.basename(posixpath.normpath(directory)))
    parent = parent_of(directory)
    if own is None or own.state:
        return
    count = 0
    for name in sorted(names_of(parent, files)):
        known = read_partition_name(name)
        is_own = known is not None and (known.topic, known.partition) == (own.topic, own.partition)
        if is_own and known is not None and known.state and count < FOLDERS_MAX:
            count += 1
            yield posixpath.join(parent, name)
