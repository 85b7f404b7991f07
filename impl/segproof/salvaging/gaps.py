# SPDX-License-Identifier: Apache-2.0
"""What a salvage did not keep of a log: a gap."""

from enum import StrEnum
from typing import NamedTuple


class LogGap(StrEnum):
    """What a gap of a log is."""

    BROKEN = "broken"
    """Bytes in which there is no batch with a right checksum."""
    MISPLACED = "misplaced"
    """Batches at a wrong place; those that were not moved are in a file of their own."""
    UNLOADABLE = "unloadable"
    """A marker of a transaction that no broker can read, or a batch of a producer outside of its
    open transaction: a broker would not load the log with it."""
    UNSEARCHED = "unsearched"
    """Bytes after damage that were not searched: too much of them looks like batches."""
    ZEROS = "zeros"
    """Zeros up to the end of the log."""
    MISSING = "missing"
    """From this byte on the log is not there, or can't be read; an index of the segment, the name
    of the log, the next log, a snapshot or a checkpoint says that it was."""


class Gap(NamedTuple):
    """Bytes of a log that were not kept in the log."""

    path: str
    kind: str
    """A value of `LogGap`."""
    position: int
    size_bytes: int
    first_lost_offset: int
    """Of the offsets in no batch that was kept, between those around the gap; above
    `last_lost_offset` where none is lost."""
    last_lost_offset: int | None
    """None at the end of the partition, where nothing tells how many were lost, unless it is one
    batch whose base offset has one bit too many; and where some of the offsets may have been
    compacted away."""
