# SPDX-License-Identifier: Apache-2.0
"""Segments in tiered storage: which files they have here, and what is odd about the names.

A broker keeps indexes of remote segments in `remote-log-index-cache`, a directory beside its
partitions: an offset, a time and a transaction index of each. A storage that keeps the files of a
segment as they are has them side by side, with a producer snapshot and a checkpoint of leader
epochs. Such segments may overlap, so each is judged by itself.

Upstream: Kafka 4.3.1: RemoteIndexCache, RemoteLogManager; of its tests LocalTieredStorage.
Laws: DISK-3, DISK-41, DISK-45, LOAD-1.
"""

import posixpath
from collections.abc import Collection, Iterable, Iterator

from segproof.findings import Severity
from segproof.hints import reads, writes
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
from segproof.verifying.reporting import PathReporter, Reporter
from segproof.verifying.rules import MOVE_OUT
from segproof.verifying.segment_files import Segment
from segproof.verifying.unread_files import not_looked_into

CACHED_SUFFIXES = frozenset(SEGMENT_SUFFIXES[1:])
"""The three files of each segment in the cache."""
LEFT = "a start of Kafka deletes it since 4.1, and leaves it before"
LEFT_HINT = reads("nothing: a broker does not read it again")


def remote_segments(
    directory: str, names: Iterable[str], judged: frozenset[str]
) -> Iterator[Segment]:
    """Yield the segments that have files among the names, by base offset and id.

    A segment whose files a storage plugin has packed unreadably is left out.
    """
    by_stem = _by_stem(directory, names)
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


def report_remote_names(directory: str, names: Collection[str], reporter: Reporter) -> None:
    """Report what is odd about the names in a directory of remote segments."""
    is_cache = is_index_cache(directory)
    for name in names:
        known = read_remote_name(name)
        report = reporter.at(posixpath.join(directory, name), shown_by=directory)
        if known is None or (is_cache and not is_of_cache(known.stem)):
            _report_foreign(name, is_cache, report)
        elif known.passing == ".deleted":
            report.add("LOAD-1", f"it was removed from the cache: {LEFT}", hint=LEFT_HINT)
            not_looked_into(report, "it was removed from the cache")
        elif known.passing:
            report.add("DISK-41", f"it was being fetched: {LEFT}", hint=LEFT_HINT)
            not_looked_into(report, "it was being fetched")
    for stem, kept in sorted(_by_stem(directory, names).items()):
        suffixes = frozenset(one.suffix for one in kept)
        packing = next((one for one in PACKED_SUFFIXES if one in suffixes), None)
        if packing is not None:
            report = reporter.at(posixpath.join(directory, stem + packing), shown_by=directory)
            report.add(
                "DISK-45",
                "it was not looked into: a storage plugin has packed this segment, and its files"
                " are compressed or encrypted, or .rsm-manifest and .indexes do not fit",
                severity=Severity.WARNING,
                hint=writes("let the plugin fetch the segment's files, and verify these"),
            )
        elif suffixes.isdisjoint(SEGMENT_SUFFIXES):
            for one in kept:
                path = posixpath.join(directory, stem + one.suffix)
                report = reporter.at(path, shown_by=directory)
                not_looked_into(report, "no log and no index of its segment is here")
        missing = sorted(CACHED_SUFFIXES - suffixes) if is_of_cache(stem) else []
        if missing:
            reporter.at(posixpath.join(directory, stem + min(suffixes)), shown_by=directory).add(
                "LOAD-1",
                f"the cache has no {' and no '.join(missing)} of this segment: at its next start"
                " Kafka deletes what is here of it, and fetches it again when it needs it",
            )


def _report_foreign(name: str, is_cache: bool, report: PathReporter) -> None:
    if not is_cache:
        report.add("DISK-3", "no file of a remote segment has this name")
        return
    report.add(
        "DISK-3",
        "no file in a broker's cache of indexes has this name: Kafka takes an offset and an id from"
        " each name here, and its start fails where it can't",
        severity=Severity.ERROR,
        expected="OFFSET_ID.index, .timeindex or .txnindex",
        actual=name[:80],
        hint=MOVE_OUT,
    )


def _by_stem(directory: str, names: Iterable[str]) -> dict[str, list[RemoteName]]:
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
