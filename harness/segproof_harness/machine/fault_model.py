# SPDX-License-Identifier: Apache-2.0
"""What a crash, or a failing call, may do to files: one table, and the modes that it is cut into.

`crash_images` reads the modes, and the page of the crash model is made from the table.
"""

from typing import Literal, NamedTuple

__all__ = ["MODES", "NOT_COVERED", "SECTOR_BYTES", "TABLE", "Mode", "Row", "mode_named"]

SECTOR_BYTES = 512
"""The size of a sector: a device writes the bytes of one sector all together, or none of them."""

ModeName = Literal["killed", "ordered", "strict"]


class Mode(NamedTuple):
    """What a crash leaves of what was not made durable."""

    name: ModeName
    meaning: str
    loses_power: bool
    """If not, the system lives on, and all that was done stays."""
    keeps_order: bool = False
    """Whether changes of names, and cuts, become durable in the order in which they were made."""


MODES = (
    Mode("killed", "the process ends, and the system lives on", loses_power=False),
    Mode(
        "ordered",
        "power is lost, and the metadata was written in one order: ext4 (`ordered`), XFS",
        loses_power=True,
        keeps_order=True,
    ),
    Mode("strict", "power is lost, and no more is kept than POSIX promises", loses_power=True),
)


def mode_named(name: str) -> Mode:
    """Return a mode by its name. Raises: ValueError."""
    for mode in MODES:
        if mode.name == name:
            return mode
    raise ValueError(f"no mode {name}: one of {', '.join(mode.name for mode in MODES)}")


class Row(NamedTuple):
    """What each mode does to one kind of change, and what real systems do."""

    change: str
    killed: str
    ordered: str
    strict: str
    real: str


STAY = "stay"
TABLE = (
    Row(
        "bytes that a sync or a flush reached",
        STAY, STAY, STAY,
        "all promise it, if the device obeys; fsync(2)",
    ),
    Row(
        "bytes that were written by a call and not synced",
        STAY,
        "each sector has any of its versions since the last sync",
        "the same",
        "pages are written in any order; a device keeps sectors of 512 or 4096 bytes whole",
    ),
    Row(
        "bytes that were stored through a mapping and not flushed",
        STAY,
        "the same as bytes written by a call",
        "the same",
        "pages are written in any order, at any time after the store; msync(2)",
    ),
    Row(
        "a longer size",
        STAY,
        "any size since the last sync, before its bytes (they read as zeros) or after them",
        "the same",
        "ext4 `ordered` shows a new block only with its bytes, but a size may run ahead within the"
        " last block; XFS shows zeros where a block was not written yet",
    ),
    Row(
        "room that was reserved (a size set before there are bytes)",
        STAY,
        "a longer size: zeros until their bytes are written",
        "the same",
        "fallocate(2): unwritten extents read as zeros",
    ),
    Row(
        "a file that was cut",
        STAY,
        "done or not, in the order of all changes of names; a cut that is not durable leaves the"
        " old bytes, and newer ones in the pages up to its end",
        "done or not, and each sector has any of its versions",
        "a cut is metadata, and goes through the journal; a page that it leaves in part is written"
        " in place",
    ),
    Row(
        "a name that was made, renamed or removed",
        STAY,
        "the first changes of the journal, as many as reached the device; a sync of any file or"
        " folder writes all that are older",
        "any of those whose folder was not synced since; a rename is done whole, or not at all",
        "ext4 and XFS have one journal for all names; POSIX promises nothing before a sync of the"
        " folder",
    ),
    Row(
        "the name of a new file that was synced, in a folder that was not",
        STAY, STAY, "may be lost",
        "ext4, XFS and btrfs keep it; fsync(2) does not promise it",
    ),
    Row(
        "a folder that was made, with all that is in it",
        STAY,
        "as a name",
        "is lost as long as the folder above it was not synced",
        "as for names",
    ),
    Row(
        "a sync that failed",
        "the file holds what was written",
        "the pages that it was to write count as written and may be lost for good: a later sync"
        " does not write them, if nothing changes them again",
        "the same",
        "Linux marks the pages clean after an error of writing (ext4, XFS); btrfs drops them",
    ),
    Row(
        "a write that failed",
        "half of its bytes are written, or none", "the same, and not synced", "the same",
        "write(2) may write a part; a full device stops anywhere",
    ),
    Row(
        "any other call that failed",
        "it has done nothing", "the same", "the same",
        "POSIX: a name that could not be changed is as before",
    ),
)  # fmt: skip
NOT_COVERED = (
    "bit rot: a block that was durable changes by itself",
    "a device that reports a sync as done which it did not do",
    "a block that is written to another place",
    "`data=writeback` of ext4, which shows old bytes of other files in new blocks",
    "two stores through a mapping with no call between them: they are one effect",
    "a process that is killed within a call: the call is done whole, or not at all",
)
"""What no mode does."""
