# SPDX-License-Identifier: Apache-2.0
"""Asks of one segment by itself whether its log is of another one, as `verify` does.

A few entries of the offset index tell cheaply that a log is the right one; else it is read.

Laws: DISK-69.
"""

from contextlib import closing

from segproof.errors import SegproofError
from segproof.files import Files
from segproof.findings import Finding
from segproof.reading.log_pieces import LogPieces, entries_in
from segproof.verifying.reporting import Reporter, Wanted
from segproof.verifying.segment_checks import SegmentCheck
from segproof.verifying.segment_files import Segment

LAW = "DISK-69"
ASKED_MAX = 64
"""Entries of an index that are looked up before the whole log is read, at most."""


def foreign_log_of(segment: Segment, files: Files) -> Finding | None:
    """Return the finding that the log of a segment is of another one; None if it is its own."""
    if not {".log", ".index", ".timeindex"} <= segment.suffixes:
        return None
    try:
        if _is_likely_own(segment, files):
            return None
    except (OSError, SegproofError):
        return None  # what can't be read is told elsewhere
    reporter = Reporter(Wanted(laws=frozenset({LAW})))
    check = SegmentCheck(segment, reporter, files)
    for _ in check.run():
        pass
    return next((one for one in reporter.finish() if one.law == LAW), None)


def _is_likely_own(segment: Segment, files: Files) -> bool:
    """Return whether a quarter of the entries that are asked lead to a batch."""
    path = segment.path(".index")
    with closing(files.open(segment.path(".log"))) as log:
        entries = entries_in(path, segment.base_offset, files)
        size = log.size()
        asked = entries.positions[:: max(1, len(entries.positions) // ASKED_MAX)]
        inside = [int(position) for position in asked if position < size]
        pieces = LogPieces(log, 0, size)
        right = sum(pieces.batch_at(position) is not None for position in inside)
    return not inside or right * 4 >= len(inside)
