# SPDX-License-Identifier: Apache-2.0
"""How the laws of logs read a state: the batches of its files, decoded here.

Used by: the laws of logs.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from segproof_model.directory import Directory
from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.partition_log import PartitionLog
from segproof_model.kafka.record_file import RecordFile
from segproof_model.kafka.segment_names import offset_of_name, segment_file_name
from segproof_model.language.integers import INT32_MAX
from segproof_model.laws.judging import ABORTED_TXN, OFFSET_ENTRY, is_rising
from segproof_model.laws.registry import Transition
from segproof_model.laws.remembering import remembered, remembered_by
from segproof_model.laws.segment_judging import Batch, of_batch, what_a_scan_reads

STRUCTURE = "partition-log"
APPENDS = ("append_as_leader", "append_as_follower")


class Aborted(NamedTuple):
    """An aborted transaction."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def is_judged(transition: Transition, *operations: str) -> bool:
    """Return whether it is one of these operations of a log that is not closed, and has segments.

    What fails between removing the old ones and making a new one leaves none.
    """
    before = transition.before
    is_log = isinstance(before, PartitionLog) and not before.is_closed
    return is_log and transition.operation in operations and bool(before.log_segments.segments)


def batches_of_file(directory: Directory, name: str) -> list[Batch] | None:
    """Return the batches of a log's file; None if they end in an error or can't be read."""
    if name not in directory:
        return None
    opened = RecordFile.open(name, True, True, directory=directory).after
    assert isinstance(opened, RecordFile)
    scan = opened.batches()
    found = [one for batch in scan.batches if (one := of_batch(batch)) is not None]
    is_read = scan.error is None and len(found) == len(scan.batches)
    return found if is_read else None


def batches_of_segment(log: Any, base_offset: int) -> list[Batch]:
    """Return the batches of a segment, up to its logical end."""
    return _batches_in(log.log_segments.get(base_offset).log)


@remembered_by(what_a_scan_reads)
def _batches_in(file: RecordFile) -> list[Batch]:
    return [one for batch in file.batches().batches if (one := of_batch(batch)) is not None]


@remembered
def is_sound(log: Any) -> bool:
    """Return whether the offsets of the log rise, each segment's batches being its own."""
    bases = log.log_segments.base_offsets()
    last = -1
    for base, end in zip(bases, [*bases[1:], log.log_end_offset], strict=True):
        segment = log.log_segments.get(base)
        batches = batches_of_segment(log, base)
        offsets = [offset for one in batches for offset in (one.base_offset, one.last_offset + 1)]
        if offsets and not (base <= offsets[0] and last < offsets[0] and offsets[-1] <= end):
            return False
        if any(one > two for one, two in pairwise(offsets)):
            return False
        if sum(one.size_bytes for one in batches) != segment.size:
            return False
        last = offsets[-1] - 1 if offsets else last
    return is_rising(bases)


@remembered
def has_overlap(log: Any) -> bool:
    """Return whether a batch reaches into the next segment."""
    return any(
        batch.last_offset >= following
        for base, following in pairwise(log.log_segments.base_offsets())
        for batch in batches_of_segment(log, base)
    )


def log_images(log: Any) -> list[tuple[int, bytes]]:
    """Return base offset and bytes of each segment's log, up to the logical end."""
    return [(one.base_offset, one.log.image[: one.size]) for one in log.log_segments]


def bound_of(log: Any, isolation: str) -> LogOffsetMetadata:
    """Return the offset that a read of this isolation does not pass."""
    unstable, watermark = log.first_unstable, log.high_watermark_metadata
    if isolation == "log_end":
        bound = log.log_end
    elif isolation == "high_watermark" or unstable is None:
        bound = watermark
    else:
        bound = unstable if unstable.message_offset < watermark.message_offset else watermark
    assert isinstance(bound, LogOffsetMetadata)
    return bound


def aborted_of(log: Any, from_base: int) -> list[Aborted]:
    """Return the entries of the transaction indexes from a segment on."""
    found: list[Aborted] = []
    for segment in log.log_segments:
        image = log.directory.read(segment.txn_index.name) or b""
        whole = len(image) // ABORTED_TXN.size * ABORTED_TXN.size
        if segment.base_offset >= from_base:
            found += [Aborted(*one[1:5]) for one in ABORTED_TXN.iter_unpack(image[:whole])]
    return found


def index_entries(log: Any, base_offset: int) -> list[tuple[int, int]]:
    """Return offset and position of each entry of a segment's offset index."""
    segment = log.log_segments.get(base_offset)
    if segment.offset_index is None:
        return []
    image = log.directory.read(segment.names[1]) or b""
    used = image[: segment.offset_index.entries * OFFSET_ENTRY.size]
    return [(base_offset + delta, position) for delta, position in OFFSET_ENTRY.iter_unpack(used)]


def leads_astray(log: Any, base_offset: int, offset: int) -> bool:
    """Return whether an index of another segment lets a search begin inside or behind a batch."""
    batches = batches_of_segment(log, base_offset)
    known = {one.position for one in batches if one.base_offset <= offset}
    starts = [position for key, position in index_entries(log, base_offset) if key <= offset]
    wanted = [one.position for one in batches if one.last_offset >= offset]
    return not known.issuperset(starts) or (bool(wanted and starts) and max(starts) > wanted[0])


def bases_of(directory: Directory, prefix: str) -> list[int]:
    """Return the base offsets of the logs in a directory, as their names tell them."""
    short = [name.removeprefix(prefix) for name in directory if name.startswith(prefix)]
    offsets = [offset_of_name(name) for name in short if name.endswith(".log")]
    return [offset for offset in offsets if isinstance(offset, int)]


def is_far(batches: Sequence[Batch], base_offset: int) -> bool:
    """Return whether the last offset is too far from the base for an index."""
    return bool(batches) and batches[-1].last_offset - base_offset > INT32_MAX


def file_of(prefix: str, base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file."""
    return prefix + segment_file_name(base_offset, suffix)
