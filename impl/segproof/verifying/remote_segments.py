# SPDX-License-Identifier: Apache-2.0
"""Segments in tiered storage: what is odd about the names of their files.

Upstream: Kafka 4.3.1: RemoteIndexCache, RemoteLogManager; of its tests LocalTieredStorage.
Laws: DISK-3, DISK-41, DISK-45, LOAD-1.
"""

import posixpath
from collections.abc import Collection

from segproof.findings import Severity
from segproof.hints import reads, writes
from segproof.inventory.remote_segments import files_by_stem
from segproof.reading.file_names import (
    PACKED_SUFFIXES,
    SEGMENT_SUFFIXES,
    is_index_cache,
    is_of_cache,
    read_remote_name,
)
from segproof.verifying.unread_files import not_looked_into
from segproof.wording.reporting import PathReporter, Reporter
from segproof.wording.rules import MOVE_OUT

CACHED_SUFFIXES = frozenset(SEGMENT_SUFFIXES[1:])
"""The three files of each segment in the cache."""
LEFT = "a start of Kafka deletes it since 4.1, and leaves it before"
LEFT_HINT = reads("nothing: a broker does not read it again")


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
    for stem, kept in sorted(files_by_stem(directory, names).items()):
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
