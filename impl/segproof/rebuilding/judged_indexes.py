# SPDX-License-Identifier: Apache-2.0
"""Which index files of a partition are wrong, and why: what `verify` says of them.

An index that a release made with another density of entries, or that another append decided on, is
sound, and so it stays byte for byte. Each segment is judged as one that a broker has closed, since
a rebuild in place needs a broker that is stopped: zeros at the end of an index are wrong.

Laws: those that `verify` finds broken in an index; DISK-5 and DISK-24 for one that is missing or
empty.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from segproof.files import Files, SharedFiles, status_of
from segproof.findings import Finding, Severity
from segproof.inventory.partitions import Partition
from segproof.inventory.segments import Segment
from segproof.inventory.walk import partition_in, take_inventory
from segproof.processes import Meter
from segproof.rebuilding.partition_files import PartitionFiles
from segproof.rebuilding.safe_places import log_changed
from segproof.wording.segment_files import CUT_LOG, ClosedSegment

CheckClosed = Callable[
    [Partition, SharedFiles, Meter, int], tuple[list[ClosedSegment], list[Finding]]
]
"""Returns what is found in each segment, and in the partition as a whole; the number is of
processes."""
Verify = Callable[..., Iterable[Finding]]
"""Yields what breaks a law in a file: asked of the byte at which a log is broken."""
INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")
STOPPED = ", although the broker has stopped cleanly"
"""What findings say here of every last segment, whether or not the broker's marker is there."""
OF_OLD_INDEXES = frozenset({"DISK-69", "DISK-70"})
"""Laws of logs that an index contradicts: only its entries show what is gone."""
WRONG_NAMES = frozenset({"DISK-62", "DISK-65"})
"""The laws that a log breaks if its batches belong under another name."""
OF_ENTRIES = frozenset({"SEG-7", "DISK-9"})
"""Laws that entries for batches beyond the end of a log break."""
CUT_END = "DISK-25"
"""The law that a closed log breaks which has lost its end, as the entries of its index show."""
DENSE_LOG = "DISK-63"
"""The law that a segment breaks which lacks offsets: the lack of an index is a reason to doubt."""
KEPT = "it is sound and stays as it is"
ASKED = "all files were asked for"


class Judges(NamedTuple):
    """What the rebuild of a partition asks of `verify`. Travels to processes."""

    check_closed: CheckClosed
    verify: Verify


class Defect(NamedTuple):
    """Why an index file is made new."""

    law: str | None
    """The law that it breaks; None where none is needed."""
    why: str
    """In words."""
    kept_bytes: int | None = None
    """Where only zeros at its end are wrong: how many bytes before them stay."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Which index files are wrong. Small and plain: it travels to processes."""

    defects: Mapping[str, Defect]
    """By path. A file that is not here is sound."""
    doubted: frozenset[int]
    """Base offsets of segments with a finding in the log: the build says if an index can be made.
    """
    hidden: tuple[Finding, ...] = ()
    """Findings of losses that `verify` would no longer report beside new indexes; and of logs that
    are none of the partition's."""
    ends: tuple[Finding, ...] = ()
    """The same, where an index has entries beyond the end of its log."""

    def defects_of(self, segment: Segment) -> dict[str, Defect]:
        """Return why files of a segment are wrong, by suffix."""
        found = ((suffix, self.defects.get(segment.path(suffix))) for suffix in INDEX_SUFFIXES)
        return {suffix: defect for suffix, defect in found if defect is not None}

    def is_to_build(self, segment: Segment) -> bool:
        """Return whether a segment has a wrong index, or a log that is to be looked into."""
        return segment.base_offset in self.doubted or bool(self.defects_of(segment))

    def hidden_ends(self, *, is_tail_cut: bool) -> tuple[Finding, ...]:
        """Return `ends`; only those of closed logs if the caller gives up the end of the last."""
        return tuple(one for one in self.ends if one.law == CUT_END or not is_tail_cut)

    def needs_transactions(self, segment: Segment) -> bool:
        """Return whether a build of the segment needs the transactions of those before it."""
        is_wrong = segment.path(".txnindex") in self.defects
        return is_wrong or segment.base_offset in self.doubted


def judge(
    partition: PartitionFiles, interval: int, check: CheckClosed, files: SharedFiles, meter: Meter,
    jobs: int = 1,
) -> Judged:  # fmt: skip
    """Return which index files of a partition are wrong, as `check` finds. Reads each log once.

    An offset index without a byte is wrong too where the log has more than `interval` bytes. The
    findings of losses that only the old indexes show, or that they are missing, are `hidden`.
    Raises: SegproofError where a process was ended from outside, or all logs were removed; OSError
    where the directory can't be read.
    """
    defects: dict[str, Defect] = {}
    for one in partition.segments:
        lacks = (suffix for suffix in INDEX_SUFFIXES[:2] if suffix not in one.suffixes)
        defects |= {one.path(suffix): Defect("DISK-5", "it is missing") for suffix in lacks}
    found = next(filter(None, map(partition_in, take_inventory(partition.directory, files))), None)
    if found is None:
        raise log_changed(partition.directory)
    checked, of_whole = check(found, files, meter, jobs)
    findings: list[Finding] = []
    doubted = set()
    ends: list[Finding] = []
    for segment, told, indexed_end in checked:
        findings += told
        if indexed_end is not None:
            beyond = (one for one in told if one.is_defect and one.law in OF_ENTRIES)
            ends += (replace(one, hint=CUT_LOG) for one in islice(beyond, 1))
        if any(_file_of(one) == segment.path(".log") for one in told):
            doubted.add(segment.base_offset)
    findings += of_whole
    segments = [one.segment for one in checked]
    lacking = {one.path(".log") for one in segments if not {*INDEX_SUFFIXES[:2]} <= one.suffixes}
    strangers = {one.path(".log") for one in segments if one.overlap}
    hidden = tuple(one for one in findings if one.path in strangers or _is_hidden(one, lacking))
    errors = (one for one in findings if one.severity is Severity.ERROR)
    ends += (one for one in errors if one.law == CUT_END)
    findings.sort(key=lambda one: list(Severity).index(one.severity))
    for finding in findings:
        path = _file_of(finding)
        if not path.endswith(INDEX_SUFFIXES):
            continue
        if path in defects:
            defects[path] = defects[path]._replace(kept_bytes=None)
            continue
        words = finding.message.replace(STOPPED, "")
        kept_bytes = finding.position if finding.law == "DISK-6" else None
        defects[path] = Defect(finding.law, words, kept_bytes or None)
    for one in partition.segments:
        if one.log_bytes > interval and _is_empty(one.path(".index"), files):
            defects.setdefault(one.path(".index"), Defect("DISK-24", "it is empty"))
    return Judged(defects, frozenset(doubted), hidden, tuple(ends))


def _is_hidden(finding: Finding, lacking: Container[str]) -> bool:
    """Return whether a loss is known only by an old index, or by the lack of one in `lacking`.

    Or whether a log has a wrong name: an index that is made for it is wrong under the right one.
    """
    if finding.law in WRONG_NAMES:
        return True
    if finding.law == DENSE_LOG:
        return finding.is_defect and finding.path in lacking
    return finding.severity is Severity.ERROR and finding.law in OF_OLD_INDEXES


def _file_of(finding: Finding) -> str:
    """Return the file that a finding is about: of the log may be told that it lacks an index."""
    is_lack = finding.law in ("DISK-5", "DISK-12") and finding.path.endswith(".log")
    return finding.expected if is_lack and finding.expected is not None else finding.path


def _is_empty(path: str, files: Files) -> bool:
    status = status_of(files, path)
    return status is not None and status.size_bytes == 0
