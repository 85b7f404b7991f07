# SPDX-License-Identifier: Apache-2.0
"""The files of a segment as `verify` reports them: structures, hints, and how they are opened."""

from typing import NamedTuple

from segproof.files import File, Files
from segproof.findings import Finding, Severity
from segproof.hints import Hint, changes, writes
from segproof.inventory.segments import Segment
from segproof.wording.reporting import PathReporter, Reporter
from segproof.wording.rules import REBUILD, SALVAGE, declare

declare("log-segment", Severity.ERROR,
    SALVAGE.after("this file was not closed: the broker did not stop as the marker or the later"
    " segment says. A salvage leaves the zeros out: "), "DISK-6", is_of_any_file=True)  # fmt: skip
declare("log-segment", Severity.ERROR,
    REBUILD.after("Kafka addresses files with 31 bits, so it is none of Kafka's: "), "DISK-7",
    is_of_any_file=True)  # fmt: skip

STRUCTURES = {
    ".log": "record-file",
    ".index": "offset-index",
    ".timeindex": "time-index",
    ".txnindex": "transaction-index",
}
"""The structure that findings name, by the suffix of the file."""
FETCH_AGAIN = changes(
    "move the three files of this segment out of the cache: the broker fetches them again from the"
    " remote storage when it needs them. Its start fails where an .index or .timeindex here has a"
    " wrong length, or ends below its base offset",
    only_if="the remote storage still has this segment",
    if_wrong="reads of this segment fail until the files are back",
    copy_step="stop the broker and copy these files to another directory",
)
COPY_AGAIN = writes(
    "copy the file from the remote storage into a new directory, and verify that; without a file of"
    " this name, it is a part of the segment's .indexes. If it is damaged there too, a broker may"
    " still have the segment; else what is damaged is lost"
)
SAVE_ALONE = writes(
    "no salvage of the partition reads this file. Copy it into an empty folder with this"
    " partition's name, as a log that is named by its first offset in 20 digits, and save that"
    " folder with `segproof salvage`"
)
LARGE_LOG = writes(
    "save what is sound with `segproof salvage DIR --out DIR2`, which gives it a log of its own:"
    " Kafka opens no log that 31 bits can't address"
)
FILE_SIZE_MAX_BYTES = (1 << 31) - 1
CUT_LOG = writes(
    "compare the segment with another replica; until then keep its .index file: a new one would no"
    " longer show that batches were here. `segproof salvage DIR --out DIR2` saves what is left"
)


class ClosedSegment(NamedTuple):
    """What a check of a segment found that was taken for closed."""

    segment: Segment
    findings: list[Finding]
    indexed_end: int | None
    """Up to which offset the indexes of a last log say that it went; None: not beyond it."""


def report_of(segment: Segment, suffix: str, reporter: Reporter) -> PathReporter:
    """Return what takes the findings of one of a segment's files."""
    return reporter.at(segment.path(suffix), STRUCTURES[suffix])


def hint_of(segment: Segment) -> Hint | None:
    """Return what to do about a defect, where the hints for a broker's own segments do not fit."""
    if segment.log_name:
        return SAVE_ALONE
    if not segment.stem:
        return None
    return FETCH_AGAIN if segment.is_cached else COPY_AGAIN


def tail_severity(segment: Segment) -> Severity:
    """Return how bad a file is that ends in preallocated zeros."""
    return Severity.ERROR if segment.is_closed else Severity.NOTE


def open_guarded(files: Files, report: PathReporter) -> File | None:
    """Open a file, or report why it can't be opened and return None."""
    try:
        return files.open(report.path)
    except OSError as error:
        report.failed(error)
    return None


def size_guarded(file: File, report: PathReporter, hint: Hint | None = None) -> int:
    """Return the size of a file; report one that no broker could address."""
    size = file.size()
    if size > FILE_SIZE_MAX_BYTES:
        report.add(
            "DISK-7",
            f"the file has {size} bytes, more than 31 bits can address; an index is looked at up to"
            f" byte {FILE_SIZE_MAX_BYTES}",
            position=FILE_SIZE_MAX_BYTES,
            expected=FILE_SIZE_MAX_BYTES,
            actual=size,
            hint=LARGE_LOG if report.path.endswith(".log") else hint,
        )
    return size
