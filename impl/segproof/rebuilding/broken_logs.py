# SPDX-License-Identifier: Apache-2.0
"""What is said of a log that holds something else than valid batches, and so gets no new index.

Upstream: Kafka 4.3.1: LogSegment.recover, LogLoader.recoverLog.
Laws: SEG-20, SEG-27, and those that `verify` finds broken there.
"""

from collections.abc import Callable, Iterable

from segproof.commands import quoted_path
from segproof.counts import plural
from segproof.errors import (
    CorruptRecordError,
    InvalidRecordError,
    SegmentOffsetOverflowError,
    SegproofError,
)
from segproof.findings import Finding, Severity
from segproof.hints import writes
from segproof.inventory.segments import Segment
from segproof.wording.reporting import text_of
from segproof.wording.rules import with_paths

SAVE = writes("save what is sound with `segproof salvage DIR --out DIR2`")

SAVE_INSTEAD = writes(
    "save what is sound with `segproof salvage DIR --out DIR2`, which makes indexes too; no file of"
    " this partition was written, since an index of the part before this byte would hide that the"
    " rest can't be read"
)
CUT_TAIL = writes(
    "make a copy without it: `segproof rebuild DIR --out DIR2 --cut-tail` leaves out what a broker"
    " that was killed has left behind this byte, as its recovery does; compare the end of the log"
    " with another replica"
)


def finding_of(
    segment: Segment,
    valid_bytes: int,
    error: SegproofError | None,
    verify: Callable[..., Iterable[Finding]],
    *,
    may_cut: bool = False,
) -> Finding:
    """Return the finding for a log whose recovery ends at `valid_bytes`, or with an error.

    `verify` is asked by path and position what breaks a law there. `may_cut`: a copy may do without
    what follows; the hint says so if a broker that was killed leaves a log like that.
    """
    path = segment.path(".log")
    if error is not None:
        found = _worst_of(verify(path, position=error.position), path)
        if found is not None and found.severity is not Severity.ERROR:
            found = None
        return Finding(
            error.law or "SEG-27" if found is None else found.law,
            Severity.ERROR,
            "log-segment" if found is None else found.structure,
            path,
            error.position if found is None else found.position,
            text_of(error.expected),
            text_of(error.actual),
            f"{error.message}; {_what_kafka_does_with(segment, error)}",
            error.hint or with_paths(SAVE, path, path),
            f"segproof verify {quoted_path(path)} --deep" if found is None else found.reproduce,
        )
    found = _worst_of(verify(path, position=valid_bytes), path)
    is_torn = may_cut and found is not None and found.severity is not Severity.ERROR
    words = "what follows is no valid batch" if found is None else found.message
    return Finding(
        "SEG-20" if found is None else found.law,
        Severity.ERROR,
        "log-segment" if found is None else found.structure,
        path,
        valid_bytes,
        None if found is None else found.expected,
        None if found is None else found.actual,
        f"{words}; {_what_kafka_does(segment, valid_bytes)}",
        with_paths(CUT_TAIL if is_torn else SAVE_INSTEAD, path, path),
        f"segproof verify {quoted_path(path)}" if found is None else found.reproduce,
    )


def _what_kafka_does_with(segment: Segment, error: SegproofError) -> str:
    if isinstance(error, CorruptRecordError | InvalidRecordError):
        return "a broker that recovers this segment cuts the log behind this batch"
    if isinstance(error, SegmentOffsetOverflowError):
        if isinstance(error.actual, int) and error.actual < segment.base_offset:
            return "a broker that recovers this segment can neither index nor split it, and ends"
        return "a broker that recovers this segment splits it in two"
    return "no index can be made of this log, and Kafka's recovery of the segment fails here too"


def _worst_of(findings: Iterable[Finding], path: str) -> Finding | None:
    found = [one for one in findings if one.path == path]
    return min(found, key=lambda one: list(Severity).index(one.severity), default=None)


def _what_kafka_does(segment: Segment, valid_bytes: int) -> str:
    lost = segment.log_bytes - valid_bytes
    words = f"a broker that recovers this segment cuts the log here, by {plural(lost, 'byte')}"
    if segment.next_base_offset is None:
        return words
    return f"{words}, and after a crash it removes all later segments too"
