# SPDX-License-Identifier: Apache-2.0
"""What the files beside the logs of a partition say of them: an end that is gone, and an index.

Laws: DISK-25.
"""

import posixpath
from contextlib import closing
from functools import partial

from segproof.files import Files, ReadOnlyFile
from segproof.inventory.named_ends import index_of
from segproof.inventory.partitions import Partition
from segproof.kafka.batch_table import read_batch_headers
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.asked_entries import asked_entries
from segproof.reading.index_entries import ENTRY_TYPES
from segproof.reading.index_origins import is_of_other_log
from segproof.reading.indexed_ends import KeptEnd, blocks_at, indexed_end
from segproof.reading.keyless_records import MAX_BATCH_BYTES, are_of_records, has_keyless
from segproof.reading.log_order import NamedLog
from segproof.reading.offset_entries import entries_in
from segproof.reading.open_indexes import is_older_copy_at
from segproof.stretches.kafka.facts import Entries
from segproof.stretches.unreadable_blocks import ReadableParts


def last_log_of(partition: Partition, files: Files) -> tuple[str, int]:
    """Return the last log and its length."""
    path = [one for one in partition.segments if ".log" in one.suffixes][-1].path(".log")
    status = files.status(path)
    return path, 0 if status is None else status.size_bytes


def is_cut(
    file: ReadOnlyFile,
    run: tuple[int, int],
    log: NamedLog,
    ends: tuple[int, int],
    files: Files,
    *,
    is_indexed: bool,
) -> bool:
    """Return whether a closed log has lost its end, though it ends with a whole batch.

    The next log begins at a later offset by its name, and the last records of this one are not all
    keyed, or it is an older copy, as its own indexes show: so it is not compaction that took the
    offsets between. `run` are the bytes of the last batches, which touch; empty in an empty log.
    `ends` are the offset after these, and the name of the next log. `is_indexed`: the indexes
    beside the log are its own.
    """
    if ends[0] >= ends[1]:
        return False
    if is_indexed and log.path.endswith(".log") and run[1] == file.size():
        indexes = index_of(log.path), index_of(log.path, ".timeindex")
        is_older = is_older_copy_at(file, indexes, log.base_offset, ends[1], files)
        if is_older and not has_other_index(log, files):
            return True
    table = read_batch_headers(file, *run).table
    table = table[are_of_records(table)]
    return bool(len(table)) and has_keyless(file, table[-1], MAX_BATCH_BYTES)


def indexed_end_of(
    log: NamedLog, end: KeptEnd, files: Files, *, is_indexed: bool = True
) -> int | None:
    """Return up to which offset the indexes of the last log say that it went; None: no further.

    Unless it `is_indexed`, its name is wrong: then they are those under its right name, if an entry
    leads to a batch of it. Raises: OSError.
    """
    named = log.path if is_indexed else _under_right_name(log)
    offsets, times = (
        partial(blocks_at, index_of(named, suffix), suffix, files) for suffix in ENTRY_TYPES
    )
    with closing(ReadableParts(files.open(log.path))) as file:
        if is_indexed:
            return indexed_end(file, end, offsets, times, lambda: has_other_index(log, files))
        entries = entries_in(index_of(named), log.base_offset, files)
        is_own = any(one.is_right for one in asked_entries(file, entries))
        return indexed_end(file, end, offsets, times) if is_own else None


def _under_right_name(log: NamedLog) -> str:
    return posixpath.join(posixpath.dirname(log.path), segment_file_name(log.base_offset, ".log"))


def entries_beside(log: NamedLog, files: Files) -> Entries:
    """Return the entries of the offset index beside a log, or none where it can't be read."""
    return entries_in(index_of(log.path), log.base_offset, files)


def has_other_index(log: NamedLog, files: Files) -> bool:
    """Return whether the offset index beside a log was made of another one. Raises: OSError."""
    if not log.path.endswith(".log"):
        return False  # it waits as `.swap`
    entries = entries_beside(log, files)
    times = blocks_at(index_of(log.path, ".timeindex"), ".timeindex", files)
    with closing(ReadableParts(files.open(log.path))) as file:
        return is_of_other_log(file, log, entries, times, files)
