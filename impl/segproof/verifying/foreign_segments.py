# SPDX-License-Identifier: Apache-2.0
"""Asks of one segment by itself whether its indexes prove that records are gone, as `verify` does.

Its log may be of another segment, or lack batches. Headers and a few entries of the indexes tell
cheaply that it is right; else the whole log is read.

Laws: DISK-69, DISK-70.
"""

from collections.abc import Callable
from contextlib import closing
from itertools import islice

import numpy as np

from segproof.errors import SegproofError
from segproof.files import Files
from segproof.findings import Finding
from segproof.inventory.segments import Segment
from segproof.reading.asked_entries import asked_entries, sample_of
from segproof.reading.cut_outs import CutOutGap
from segproof.reading.offset_entries import entries_in
from segproof.verifying.cut_out_checks import may_be_cut
from segproof.verifying.segment_carry import LogCarry
from segproof.verifying.segment_checks import SegmentCheck
from segproof.wording.reporting import Reporter, Wanted

LAW = "DISK-69"
CUT_OUT = "DISK-70"


def foreign_end_of(segment: Segment, files: Files) -> int | None:
    """Return up to which offset the log of the indexes went; None: it is the one that is here."""
    return _checked(segment, LAW, files, _is_likely_foreign)[1].foreign_end


def cut_outs_of(segment: Segment, files: Files) -> tuple[list[CutOutGap], int]:
    """Return the gaps that held batches, and how many offsets the log lacks in other gaps."""
    carry = _checked(segment, CUT_OUT, files, may_be_cut)[1]
    return carry.cut_outs, carry.missing_offsets - sum(one.size for one in carry.cut_outs)


def cut_out_finding(segment: Segment, files: Files) -> Finding | None:
    """Return the finding that batches were cut out of the log of a segment, or None."""
    return _checked(segment, CUT_OUT, files, may_be_cut)[0]


def _checked(
    segment: Segment, law: str, files: Files, may_be_broken: Callable[[Segment, Files], bool]
) -> tuple[Finding | None, LogCarry]:
    """Return the finding of a law, if there is one, and what the check of the segment saw."""
    try:
        if not may_be_broken(segment, files):
            return None, LogCarry()
    except (OSError, SegproofError):
        return None, LogCarry()  # what can't be read is told elsewhere
    reporter = Reporter(Wanted(laws=frozenset({law})))
    check = SegmentCheck(segment, reporter, files)
    for _ in check.run():
        pass
    return next((one for one in reporter.finish() if one.law == law), None), check.carry


def _is_likely_foreign(segment: Segment, files: Files) -> bool:
    """Return whether fewer than a quarter of the entries that are looked up lead to a batch.

    Entries that point beyond the end of the log do not count. No more are looked up than it takes.
    """
    if not {".log", ".index", ".timeindex"} <= segment.suffixes:
        return False
    entries = entries_in(segment.path(".index"), segment.base_offset, files)
    with closing(files.open(segment.path(".log"))) as log:
        inside = int(np.count_nonzero(sample_of(entries).positions < log.size()))
        right = (one for one in asked_entries(log, entries) if one.batch is not None)
        needed = -(-inside // 4)
        return sum(1 for _ in islice(right, needed)) < needed
