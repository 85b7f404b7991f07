# SPDX-License-Identifier: Apache-2.0
"""Whether a log that was read to its end is short: what lies beside it shows that it went on.

A reader of rows asks this where a log ends, with a whole batch or before zeros. `verify` says the
same of the log with more words. What the reader asks of a sound log reads none of it, if the log
goes on to the name of the next one. Of the last log it asks the names in its folder, the last
entries of its indexes, its leader epochs and its line in the checkpoints; only where one of these
is beyond the end is more read. A closed log with a gap before the next one, as compaction leaves
many, costs more: its index is read whole, then the headers of its batches, and its last batch.

A broker writes a batch before anything that names its offset. So the end of the log counts as it
is after those files were read; where they were changed a moment ago, they are read again.

Laws: DISK-25, DISK-36, DISK-38, DISK-64, SEG-7, DISK-9.
Not covered: segments that lack offsets without a proof (DISK-63). What is wrong before the end of
    a log says `log_offsets`.
"""

import posixpath
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from segproof.counts import plural
from segproof.errors import CorruptRecordError, SegproofError
from segproof.files import Files, ReadOnlyFile, holds_zeros
from segproof.integers import parse_int
from segproof.inventory.named_ends import told_end
from segproof.inventory.partitions import Partition, partition_again
from segproof.inventory.segment_listing import parent_of
from segproof.inventory.small_files import known_epochs
from segproof.kafka.batch_table import read_batch_headers
from segproof.kafka.checkpoint_file import read_text_file
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import (
    CLEANER,
    EPOCHS,
    HIGH_WATERMARK,
    RECOVERY,
    SNAPSHOT_SUFFIX,
    partition_of,
)
from segproof.reading.folder_names import folder_of
from segproof.reading.index_entries import ENTRY_TYPES, entries_found
from segproof.reading.indexed_ends import KeptEnd, blocks_at, indexed_end, misleads
from segproof.reading.keyless_records import MAX_BATCH_BYTES, are_of_records, has_keyless
from segproof.reading.live_writer import wait_for_a_step
from segproof.reading.log_extents import logs_from, said_first_offset
from segproof.reading.open_indexes import is_older_copy_at

PAUSES_SECONDS = (0.1, 0.4)
"""The pauses before a broker that may be truncating the log has ended its step."""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a log ends, read to its end without damage there."""

    file: ReadOnlyFile
    base_offset: int
    """The offset that its name says."""
    next_offset: int
    """The offset after its last batch; its base offset if it has none."""
    position: int
    """The byte after its last batch."""
    size_bytes: int
    """Its length; zeros fill what follows the last batch."""

    @property
    def directory(self) -> str:
        """The folder of the log."""
        return posixpath.dirname(self.file.path) or "."

    def path(self, suffix: str) -> str:
        """Return the path of a file of its segment."""
        return self.file.path.removesuffix(".log") + suffix

    def is_still_there(self) -> bool:
        """Return whether the log still ends so."""
        if self.file.size() != self.size_bytes:
            return False
        is_zeroed = self.position < self.size_bytes
        return not is_zeroed or holds_zeros(self.file, self.position, self.size_bytes)

    def short(self, words: str) -> SegproofError:
        """Return the error of a log that has lost its end."""
        rest = self.size_bytes - self.position
        zeros = f", and {plural(rest, 'zero byte')} follow" if rest else ""
        return CorruptRecordError(
            f"the log ends before offset {self.next_offset}{zeros}: {words}",
            law="DISK-25",
            path=self.file.path,
            position=self.position,
        )


def why_short(end: LogEnd, following: int | None, files: Files) -> SegproofError | None:
    """Return the error of a log that has lost its end; None if nothing beside it shows that.

    `following` is the base offset of the next log, None if it is not known. Only a log is asked
    that has the name of its base offset: what lies beside another one may not be of it.
    Raises: OSError of the log.
    """
    if posixpath.basename(end.file.path) != segment_file_name(end.base_offset, ".log"):
        return None
    if following is None:
        following = folder_of(end.directory, files).log_after(end.base_offset)
    for seconds in (*PAUSES_SECONDS, None):
        if following is None:
            found = _of_last(end, files)
        else:
            found = _of_closed(end, following, files)
        if found is None or not end.is_still_there():
            return None
        paths = (end.directory, end.file.path)
        if seconds is None or not wait_for_a_step(paths, files, seconds):
            break
    reached = _reached(end)
    if reached > end.next_offset:  # an older batch was written to the end of the log
        return why_short(replace(end, next_offset=reached), following, files)
    return found


def _reached(end: LogEnd) -> int:
    """Return the offset after the highest one that a batch of the log says."""
    lasts = read_batch_headers(end.file, 0, end.position).table["last_offset"]
    return int(lasts.max(initial=end.next_offset - 1)) + 1


# --- a log that another one follows


def _of_closed(end: LogEnd, following: int, files: Files) -> SegproofError | None:
    if end.position < end.size_bytes:
        return end.short("a later segment follows, and a closed log has no such zeros")
    if end.next_offset >= following:
        return None
    why = _proof_of_gap(end, following, files)
    if not why or _is_named_wrong(end, following, files):
        return None
    first = said_first_offset(_log_at(end.directory, following), files)
    if first is not None and end.next_offset <= first < following:
        following = first  # its name is above its contents
    missing = following - end.next_offset
    if missing == 0:
        return None
    are = plural(missing, "offset", "is", "are")
    return end.short(f"{are} in neither this log nor the next one, and {why}")


def _proof_of_gap(end: LogEnd, following: int, files: Files) -> str:
    """Return in words why no compaction took the offsets before the next log; empty for no proof.

    The cheapest proof is looked for first.
    """
    indexed = 0
    for block in blocks_at(end.path(".index"), ".index", files):
        offsets = block["offset"].astype(np.int64) + end.base_offset
        is_gone = (offsets >= end.next_offset) & (offsets < following)
        indexed += int(np.count_nonzero(is_gone & (block["position"] >= end.position)))
    if indexed:
        return f"the offset index has {plural(indexed, 'entry')} for them"
    if alone := _index_without_log(end, following, files):
        return f"the log of {alone} is not here"
    indexes = end.path(".index"), end.path(".timeindex")
    if is_older_copy_at(end.file, indexes, end.base_offset, following, files):
        return "its indexes show that the log is a copy from before it was closed"
    if end.position:
        table = read_batch_headers(end.file, 0, end.position).table
        table = table[are_of_records(table)]
        if len(table) and has_keyless(end.file, table[-1], MAX_BATCH_BYTES):
            return "its last records are not all keyed, so no compaction took them"
    return ""


def _index_without_log(end: LogEnd, following: int | None, files: Files) -> str:
    """Return the name of an index with entries, between two logs or after the last; "" for none.

    It shows that there was a log of its base offset.
    """
    for name in folder_of(end.directory, files).alone(end.next_offset, following):
        suffix = posixpath.splitext(name)[1]
        for _ in blocks_at(posixpath.join(end.directory, name), suffix, files):
            return name
    return ""


def _is_named_wrong(end: LogEnd, following: int | None, files: Files) -> bool:
    """Return whether the log has a wrong name, or the next batches are in a log of a wrong name.

    Then what lies beside it is of another log, or nothing is missing.
    """
    first = said_first_offset(end.file.path, files)
    if first is not None and not end.base_offset <= first < (following or first + 1):
        return True
    own, right = posixpath.basename(end.file.path), segment_file_name(following or -1, ".log")
    beginning = logs_from(end.next_offset, end.directory, files)
    return any(name not in (own, right) for name in beginning)


def _log_at(directory: str, base_offset: int) -> str:
    return posixpath.join(directory, segment_file_name(base_offset, ".log"))


# --- the last log


def _of_last(end: LogEnd, files: Files) -> SegproofError | None:
    is_indexed, is_named = _is_indexed_beyond(end, files), _is_named_beyond(end, files)
    alone = _index_without_log(end, None, files)
    if not (is_indexed or is_named or alone) or _is_named_wrong(end, None, files):
        return None
    if alone:
        return end.short(f"the log of {alone}, which followed, is not here")
    if is_indexed and (told := _indexed_end(end, files)) is not None:
        return end.short(f"its indexes have entries for offsets up to {told - 1}")
    if is_named:
        partition = partition_again(Partition(end.directory, ()), files)
        told = told_end(partition, end.next_offset, files, is_sound=True).named
        if told:
            return end.short(
                f"a snapshot, a leader epoch or a checkpoint names offset {told}: the log has lost"
                " its end, or that file is a stray"
            )
    return None


def _indexed_end(end: LogEnd, files: Files) -> int | None:
    """Return the offset after the last one that the indexes of the last log name, or None."""
    offsets, stamps = (partial(blocks_at, end.path(one), one, files) for one in ENTRY_TYPES)
    times = read_batch_headers(end.file, 0, end.position).table["max_timestamp"]
    kept = KeptEnd(
        end.base_offset, end.next_offset, end.position, False, False, int(times.max(initial=-1)),
        [(0, end.position)],
    )  # fmt: skip
    found = indexed_end(end.file, kept, offsets, stamps)
    if found is not None or end.position == end.size_bytes:
        return found
    if misleads(end.file, kept.whole, end.base_offset, offsets()):
        return None
    # A cut and a truncation leave no zeros: any entry that leads into them is of a batch.
    beyond = -1
    for block in offsets():
        is_there = (block["position"] >= end.position) & (block["position"] < end.size_bytes)
        is_there &= block["offset"] >= end.next_offset - end.base_offset
        beyond = max(beyond, int(block["offset"][is_there].max(initial=-1)))
    return None if beyond < 0 else end.base_offset + beyond + 1


def _is_indexed_beyond(end: LogEnd, files: Files) -> bool:
    """Return whether the last entry of an index is of an offset beyond the end of the log."""
    distance = end.next_offset - end.base_offset
    for suffix in ENTRY_TYPES:
        try:
            with closing(files.open(end.path(suffix))) as file:
                last = entries_found(file, suffix).last()
        except OSError:
            continue
        if len(last) and int(last["offset"][0]) >= distance:
            return True
    return False


def _is_named_beyond(end: LogEnd, files: Files) -> bool:
    """Return whether a file beside the log, or a checkpoint above it, names a later offset."""
    kinds = folder_of(end.directory, files).kinds
    snapshots = (one for one in kinds.values() if one.suffix == SNAPSHOT_SUFFIX)
    if any(one.base_offset > end.next_offset for one in snapshots):
        return True
    if EPOCHS in kinds:
        path = posixpath.join(end.directory, EPOCHS)
        if any(one.start_offset > end.next_offset for one in known_epochs(path, files)[-1:]):
            return True
    return any(
        _offset_in(name, end.directory, files) > end.next_offset
        for name in (RECOVERY, HIGH_WATERMARK, CLEANER)
    )


def _offset_in(name: str, directory: str, files: Files) -> int:
    """Return the offset of a partition in a checkpoint above it; 0 if it has none.

    The whole file is read as text once for each partition, and only its line is parsed. A file that
    is too large for `verify` says nothing here either.
    """
    own = partition_of(directory)
    if own is None or own.state:
        return 0
    try:
        text = read_text_file(files, posixpath.join(parent_of(directory), name))
        line = f"\n{own.topic} {own.partition} ".encode()
        at = text.find(line)
        digits = text[at + len(line) :].split(b"\n", 1)[0].strip() if at >= 0 else b"0"
        return parse_int(digits.decode("ascii", "replace"), 64)
    except (OSError, SegproofError):
        return 0
