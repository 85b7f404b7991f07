# SPDX-License-Identifier: Apache-2.0
"""Segments in tiered storage: which files they have here.

A broker keeps indexes of remote segments in `remote-log-index-cache`, a directory beside its
partitions: an offset, a time and a transaction index of each. A storage that keeps the files of a
segment as they are has them side by side, with a producer snapshot and a checkpoint of leader
epochs. Such segments may overlap, so each is judged by itself.

Upstream: Kafka 4.3.1: RemoteIndexCache, RemoteLogManager; of its tests LocalTieredStorage.
"""

from collections.abc import Iterable, Iterator

from segproof.inventory.segments import Segment
from segproof.reading.file_names import (
    PACKED_SUFFIXES,
    REMOTE_EPOCH_SUFFIXES,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    RemoteName,
    is_index_cache,
    is_of_cache,
    read_remote_name,
)


def remote_segments(
    directory: str, names: Iterable[str], judged: frozenset[str]
) -> Iterator[Segment]:
    """Yield the segments that have files among the names, by base offset and id.

    A segment whose files a storage plugin has packed unreadably is left out.
    """
    by_stem = files_by_stem(directory, names)
    for stem, kept in sorted(by_stem.items(), key=lambda one: (one[1][0].base_offset, one[0])):
        suffixes = frozenset(one.suffix for one in kept)
        own = suffixes.intersection(SEGMENT_SUFFIXES)
        if own and suffixes.isdisjoint(PACKED_SUFFIXES):
            yield Segment(directory, kept[0].base_offset, own, None, False, judged, stem=stem)


def small_remote_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of producer snapshots and checkpoints of epochs of remote segments."""
    known = ((name, read_remote_name(name)) for name in names)
    wanted = (SNAPSHOT_SUFFIX, *REMOTE_EPOCH_SUFFIXES)
    return tuple(name for name, one in known if one and not one.passing and one.suffix in wanted)


def files_by_stem(directory: str, names: Iterable[str]) -> dict[str, list[RemoteName]]:
    """Return the files of each segment, but for those that are about to be removed or fetched."""
    found: dict[str, list[RemoteName]] = {}
    is_cache = is_index_cache(directory)
    for name in names:
        known = read_remote_name(name)
        if known is None or known.passing:
            continue
        if is_of_cache(known.stem) or not is_cache:
            found.setdefault(known.stem, []).append(known)
    return found
