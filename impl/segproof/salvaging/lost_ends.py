# SPDX-License-Identifier: Apache-2.0
"""What the files beside the logs of a partition say of them: an end that is gone, and an index.

Laws: DISK-25.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing

from segproof.files import Files, ReadOnlyFile
from segproof.inventory.named_ends import index_of
from segproof.inventory.partitions import Partition
from segproof.kafka.batch_table import read_batch_headers
from segproof.reading.index_origins import is_of_other_log
from segproof.reading.indexed_ends import Block, blocks_at, indexed_end, torn_end_of
from segproof.reading.keyless_records import MAX_BATCH_BYTES, are_of_records, has_keyless
from segproof.reading.log_order import NamedLog
from segproof.reading.log_pieces import Entries, entries_in
from segproof.reading.open_indexes import is_older_copy_at
from segproof.reading.pieces import Piece, PieceKind
from segproof.salvaging.moved_batches import KEPT
from segproof.stretches.unreadable_blocks import ReadableParts


def last_log_of(partition: Partition, files: Files) -> tuple[str, int]:
    """Return the last log and its length."""
    path = [one for one in partition.segments if ".log" in one.suffixes][-1].path(".log")
    status = files.status(path)
    return path, 0 if status is None else status.size_bytes


def is_cut(
    file: ReadOnlyFile,
    last: Piece | None,
    indexed: NamedLog | None,
    base_offset: int,
    reached: int,
    names: Sequence[int],
    files: Files,
) -> bool:
    """Return whether a closed log has lost its end, though it ends with a whole batch.

    The next log begins at a later offset by its name, and the last records of this one are not all
    keyed, or it is an older copy, as its own indexes show: so it is not compaction that took the
    offsets between. `last` is the last piece of the log, None if it is empty. `reached` is the last
    offset that was kept, and `names` are all base offsets. `indexed` is the log if the indexes
    beside it are its own.
    """
    if last is not None and (last.kind is not PieceKind.SOUND or last.last_offset != reached):
        return False
    following = next((name for name in names if name > base_offset), -1)
    if reached + 1 >= following:
        return False
    end = 0 if last is None else last.end
    if indexed is not None and indexed.path.endswith(".log") and end == file.size():
        indexes = index_of(indexed.path), index_of(indexed.path, ".timeindex")
        is_older = is_older_copy_at(file, indexes, base_offset, following, files)
        if is_older and not has_other_index(indexed, files):
            return True
    if last is None:
        return False
    table = read_batch_headers(file, last.start, last.end).table
    table = table[are_of_records(table)]
    return bool(len(table)) and has_keyless(file, table[-1], MAX_BATCH_BYTES)


def indexed_end_of(
    log: NamedLog, pieces: Sequence[Piece], end: tuple[int, int], files: Files
) -> int | None:
    """Return up to which offset the indexes of the last log say that it went; None: no further.

    `end` is the offset after what was kept of it, and the byte after its last batch. Of a damaged
    log, it is the byte where the damage begins.
    """
    odd = next((one for one in pieces if one.kind not in KEPT), None)
    if any(one.kind is PieceKind.UNSEARCHED for one in pieces):
        return None
    largest = max((one.max_timestamp for one in pieces if one.kind in KEPT), default=-1)
    next_offset, position = end
    told = next_offset, position if odd is None else odd.start
    is_damaged = odd is not None and odd.kind is not PieceKind.ZEROS
    torn_end = None
    if is_damaged:
        with closing(files.open(log.path)) as file:
            torn_end = torn_end_of(file, told[1], next_offset)

    def by(offsets: Iterable[Block]) -> int | None:
        times = blocks_at(index_of(log.path, ".timeindex"), ".timeindex", files)
        return indexed_end(
            offsets, times, log.base_offset, told, largest, is_damaged=is_damaged,
            torn_end=torn_end,
        )  # fmt: skip

    found = by(blocks_at(index_of(log.path), ".index", files))
    return by(()) if found is not None and has_other_index(log, files) else found


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
