# SPDX-License-Identifier: Apache-2.0
"""Logs of a partition that have each other's name, or another wrong one.

Laws: DISK-62, DISK-65.
"""

import posixpath
from collections.abc import Collection, Sequence
from typing import NamedTuple

from segproof.files import Files
from segproof.findings import Severity
from segproof.inventory.partitions import Partition
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.index_origins import shows_name
from segproof.reading.log_order import NamedLog, in_order
from segproof.wording.reporting import Reporter
from segproof.wording.rules import SALVAGE, declare

declare("partition-log", Severity.ERROR,
    SALVAGE.after("a salvage gives each log the name that its batches say: "),
    "DISK-62", "DISK-65")  # fmt: skip


class NamedRange(NamedTuple):
    """The offsets of a log that is read whole and has a batch, and what its name says of them."""

    path: str
    base_offset: int
    first: int
    end: int
    """The offset after its last batch."""


def check_names(
    partition: Partition, ranges: Sequence[NamedRange | None], reporter: Reporter, files: Files
) -> bool:
    """Report each log with a wrong name; return whether there is one.

    `ranges` are those of the logs in the order of their names, None for a log that is damaged.
    """
    segments = [one for one in partition.segments if ".log" in one.suffixes and not one.overlap]
    logs = [NamedLog(one.path(".log"), one.base_offset) for one in segments]
    is_told = False
    for log, placed in zip(logs, in_order(logs, files.open), strict=True):
        if placed.path == log.path or placed in logs:
            continue
        is_told = True
        right = segment_file_name(placed.base_offset, ".log")
        if placed.base_offset in {one.base_offset for one in logs}:
            why = "logs of this partition have each other's name, and each batch of this one is"
        else:
            why = "its name is before that of a log with lower offsets, and each batch here is"
        reporter.at(placed.path, shown_by=partition.directory).add(
            "DISK-62",
            f"its batches belong under the name {right}: {why} whole in itself. A broker can read"
            " neither",
            expected=right,
            actual=posixpath.basename(placed.path),
        )
    held = {one.base_offset for one in partition.segments if one.held_by}
    return is_told or _check_own_names(ranges, held, reporter, partition.directory, files)


def _check_own_names(
    ranges: Sequence[NamedRange | None], held: Collection[int], reporter: Reporter, directory: str,
    files: Files,
) -> bool:  # fmt: skip
    """Report names that are above the first offset of a log, or within the log before.

    `held` are base offsets of indexes whose log has another name.
    """
    before: NamedRange | None = None
    is_told = False
    for one in ranges:
        if one is None:
            before = None
            continue
        end = -1 if before is None else before.end
        before = one
        if one.base_offset > one.first and one.first in {end, *held}:
            cost = (
                f"a broker may take the log to end before offset {one.base_offset} and give the"
                " offsets from there on twice, or cut it at byte 0 when it makes the index again"
            )
        elif is_name_low(NamedLog(one.path, one.base_offset), one.first, end, files):
            cost = (
                f"a broker looks for the offsets {one.base_offset} to {end - 1} in this log and"
                " passes over them, though the log before has them"
            )
        else:
            continue
        is_told = True
        right = segment_file_name(one.first, ".log")
        reporter.at(one.path, shown_by=directory).add(
            "DISK-65",
            f"its batches begin at offset {one.first}, so its name should be {right}. Only the name"
            f" is wrong, and no record is lost so far: {cost}",
            expected=right,
            actual=posixpath.basename(one.path),
        )
    return is_told


def is_name_low(log: NamedLog, first: int, end: int, files: Files) -> bool:
    """Return whether a log has a name within the log before it, which ends before offset `end`.

    `first` is the offset that it begins with. If offsets are missing between the two, the last
    batches of the log before may have wrong base offsets: the index of this log may show that its
    name is right.
    """
    if not log.base_offset < end <= first:
        return False
    return end == first or not shows_name(log, files)
