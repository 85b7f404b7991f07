# SPDX-License-Identifier: Apache-2.0
"""One partition: its segments and other files, and what the checkpoints above it say of it."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from segproof.files import Files
from segproof.inventory.remote_segments import remote_segments, small_remote_names
from segproof.inventory.segment_listing import ALL_FILES, kinds_of, parent_of, segments_of, sized
from segproof.inventory.segments import FileState, Segment, state_of
from segproof.inventory.small_files import KnownOffsets
from segproof.reading.cleaner_traces import Cleaning, cleaner_was_here, removed_logs
from segproof.reading.dense_logs import Extent, judged, misnamed_logs
from segproof.reading.file_names import (
    CLEANER,
    EPOCHS,
    SNAPSHOT_SUFFIX,
    FileName,
    NameKind,
    holds_remote_segments,
    partition_of,
)
from segproof.reading.keyless_records import first_keyless


@dataclass(frozen=True, slots=True)
class Partition:
    """One directory with the segments that are to be checked, in order of their offsets."""

    directory: str
    segments: tuple[Segment, ...]
    others: tuple[str, ...] = ()
    """Names of its own files that are no segment's, where the whole partition is to be checked."""
    offsets: tuple[tuple[str, int], ...] = ()
    """What the checkpoints of the data directory say of it: their names and an offset each."""
    others_seen: tuple[FileState, ...] = ()
    """What those files were when the directory was listed."""
    was_cleaned: bool = False
    """Whether a file, or its topic, shows that the log cleaner has been in its log."""
    removed: tuple[tuple[int, str], ...] = ()
    """Base offsets and names of logs that were removed from it, and are still there."""
    lacks_log: bool = False
    """Whether a broker loads it, and no file of a segment is there."""

    def path(self, name: str) -> str:
        """Return the path of one of its own files."""
        return posixpath.join(self.directory, name)

    def is_unchanged(self, files: Files) -> bool:
        """Return whether all of its files are still what was listed."""
        others = tuple(state_of(files, self.path(name)) for name in self.others)
        return others == self.others_seen and all(
            segment.is_unchanged(files) for segment in self.segments
        )

    @property
    def size_bytes(self) -> int:
        """Bytes that will be read, as far as known."""
        return sum(segment.size_bytes for segment in self.segments)


def whole_partition(
    path: str, kinds: Mapping[str, FileName], files: Files, known: KnownOffsets
) -> Partition:
    """Return a partition with all of its segments; `kinds` is what the names in it stand for.

    `known` is what the checkpoints above it say.
    """
    others = tuple(
        name
        for name, of in kinds.items()
        if of.kind is NameKind.KNOWN and (of.suffix == SNAPSHOT_SUFFIX or name == EPOCHS)
    )
    own, segments = partition_of(path), tuple(segments_of(path, kinds, files, ALL_FILES))
    offsets: Mapping[str, int] = {}
    if own is not None and not own.state:
        offsets = known.of(parent_of(path), files).get((own.topic, own.partition), {})
    return Partition(
        path,
        segments,
        others,
        tuple(sorted(offsets.items())),
        tuple(state_of(files, posixpath.join(path, name)) for name in others),
        cleaner_was_here(own.topic if own else None, kinds, offsets.get(CLEANER, 0)),
        tuple(sorted(removed_logs(kinds).items())),
        lacks_log=not segments and own is not None and not own.state,
    )


def remote_partition(path: str, names: Iterable[str], files: Files) -> Partition:
    """Return the remote segments of a directory, with what is to be checked beside them."""
    names = list(names)
    others = small_remote_names(names)
    seen = tuple(state_of(files, posixpath.join(path, name)) for name in others)
    segments = tuple(remote_segments(path, names, ALL_FILES))
    return Partition(path, segments, others, (), seen)


def partition_again(partition: Partition, files: Files) -> Partition:
    """Return a partition as its directories show it now.

    Raises: OSError.
    """
    path = partition.directory
    names = files.list_directory(path)
    if holds_remote_segments(path, names):
        again = remote_partition(path, names, files)
    else:
        again = whole_partition(path, kinds_of(names), files, KnownOffsets())
    return replace(again, segments=tuple(sized(each, files) for each in again.segments))


def segments_in_doubt(
    partition: Partition, extents: Sequence[Extent], logs: Sequence[str], files: Files
) -> Iterator[tuple[Extent, Cleaning]]:
    """Yield as `judged`, by what lies in the folder of a partition.

    `logs` are searched for a record without a key, if that decides. Raises: OSError.
    """
    is_asked = any(one.missing for one in extents)
    others = misnamed_logs(partition.directory, files) if is_asked else {}
    return judged(
        extents, others | dict(partition.removed), lambda: first_keyless(logs, files),
        was_here=partition.was_cleaned,
    )  # fmt: skip
