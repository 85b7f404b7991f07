# SPDX-License-Identifier: Apache-2.0
"""Up to which offset snapshots, leader epochs and checkpoints say that the log of a partition went.

Laws: DISK-36, DISK-38, DISK-64.
"""

from collections.abc import Sequence
from typing import NamedTuple

from segproof.files import Files
from segproof.inventory.partitions import Partition
from segproof.inventory.small_files import known_epochs
from segproof.inventory.told_ends import (
    AGREED,
    exchanged_with,
    is_end_agreed,
    words_of_exchanged,
)
from segproof.reading.file_names import (
    CLEANER,
    EPOCHS,
    HIGH_WATERMARK,
    RECOVERY,
    SNAPSHOT_SUFFIX,
    START,
    read_file_name,
)


def index_of(log: str, suffix: str = ".index") -> str:
    """Return the path of an index of a log, which may wait as `.swap` for its place."""
    if log.endswith(".swap"):
        return f"{log.removesuffix('.log.swap')}{suffix}.swap"
    return log.removesuffix(".log") + suffix


class ToldEnd(NamedTuple):
    """What the files beside a log say of its end."""

    named: int = 0
    """The latest offset that shows that the log went on; 0 for none."""
    at_least: int = 0
    """Up to this offset the log went at least. A leader epoch alone shows no number, since it may
    be of another log."""
    doubts: Sequence[str] = ()
    """Says in words if a file names a later offset, and that is no proof of a loss
    (`told_ends`)."""


def told_end(partition: Partition, next_offset: int, files: Files, *, is_sound: bool) -> ToldEnd:
    """Return what a snapshot, a leader epoch or a checkpoint shows of the end of a log.

    `next_offset` is the offset after what was kept of the partition. `is_sound`: nothing is wrong
    at the end of the log.
    """
    end = _named_end(partition, next_offset, files)
    certain = _named_end(partition, next_offset, files, with_epochs=False)
    told = dict(partition.offsets)
    if end and is_sound and _end_in_folder(partition, files) <= next_offset:
        other = exchanged_with(partition.directory, told, next_offset, files)
        if other:
            words = words_of_exchanged(other, end - next_offset)
            return ToldEnd(doubts=[f"{partition.directory}: {words}"])
    if not (end and is_sound and is_end_agreed(told, next_offset)):
        return ToldEnd(end, certain)
    words = (
        f"{partition.directory}: a {'snapshot or a checkpoint' if certain else 'leader epoch'}"
        f" names offset {end}, and the log ends before offset {next_offset}: up to"
        f" {end - next_offset} offsets are lost, or that file is"
        f" {'a stray' if certain else 'of another log'}. {AGREED}"
    )
    return ToldEnd(doubts=[words])


def _named_end(
    partition: Partition, next_offset: int, files: Files, *, with_epochs: bool = True
) -> int:
    told = dict(partition.offsets)
    known = [told.get(name, 0) for name in (RECOVERY, HIGH_WATERMARK, CLEANER)]
    known.append(_end_in_folder(partition, files, with_epochs=with_epochs))
    has_log = any(".log" in one.suffixes for one in partition.segments)
    is_beyond = has_log and max(known) > max(next_offset, told.get(START, 0))
    return max(known) if is_beyond else 0


def _end_in_folder(partition: Partition, files: Files, *, with_epochs: bool = True) -> int:
    """Return the latest offset that a snapshot or a leader epoch names: they move with the log."""
    names = map(read_file_name, partition.others)
    known = [0, *(one.base_offset for one in names if one.suffix == SNAPSHOT_SUFFIX)]
    if with_epochs and EPOCHS in partition.others:
        entries = known_epochs(partition.path(EPOCHS), files)
        known += [one.start_offset for one in entries[-1:]]
    return max(known)
