# SPDX-License-Identifier: Apache-2.0
"""What the files beside the logs of a partition say of them: an end that is gone, and an index.

Laws: DISK-25, DISK-36, DISK-38, DISK-64.
"""

from collections.abc import Sequence
from contextlib import closing

from segproof.files import Files, ReadOnlyFile
from segproof.kafka.batch_table import read_batch_headers
from segproof.reading.file_names import SNAPSHOT_SUFFIX, read_file_name
from segproof.reading.indexed_ends import blocks_at, indexed_end, torn_end_of
from segproof.reading.log_order import NamedLog
from segproof.reading.open_indexes import is_older_copy_at
from segproof.reading.pieces import Piece, PieceKind
from segproof.salvaging.moved_batches import KEPT
from segproof.verifying.directory_checks import Partition
from segproof.verifying.keyless_records import are_of_records, has_keyless
from segproof.verifying.log_blocks import MAX_BATCH_BYTES
from segproof.verifying.reporting import Reporter, Wanted
from segproof.verifying.small_files import (
    CLEANER,
    EPOCHS,
    HIGH_WATERMARK,
    RECOVERY,
    START,
    read_epochs,
)
from segproof.verifying.told_ends import (
    AGREED,
    exchanged_with,
    is_end_agreed,
    words_of_exchanged,
)


def index_of(log: str, suffix: str = ".index") -> str:
    """Return the path of an index of a log, which may wait as `.swap` for its place."""
    if log.endswith(".swap"):
        return f"{log.removesuffix('.log.swap')}{suffix}.swap"
    return log.removesuffix(".log") + suffix


def told_end(
    partition: Partition, next_offset: int, files: Files, *, is_sound: bool
) -> tuple[int, list[str]]:
    """Return up to which offset a snapshot or a checkpoint shows that the log went; 0: no further.

    The list says in words if such a file names a later offset than both checkpoints do, which is no
    proof of a loss (`told_ends`).
    `next_offset` is the offset after what was kept of the partition. `is_sound`: nothing is wrong
    at the end of the log.
    """
    end = _named_end(partition, next_offset, files)
    told = dict(partition.offsets)
    if end and is_sound and _end_in_folder(partition, files) <= next_offset:
        other = exchanged_with(partition.directory, told, next_offset, files)
        if other:
            words = words_of_exchanged(other, end - next_offset)
            return 0, [f"{partition.directory}: {words}"]
    if not (end and is_sound and is_end_agreed(told, next_offset)):
        return end, []
    words = (
        f"{partition.directory}: a snapshot or a checkpoint names offset {end}, and the log ends"
        f" before offset {next_offset}: up to {end - next_offset} offsets are lost, or that file is"
        f" a stray. {AGREED}"
    )
    return 0, [words]


def _named_end(partition: Partition, next_offset: int, files: Files) -> int:
    told = dict(partition.offsets)
    known = [told.get(name, 0) for name in (RECOVERY, HIGH_WATERMARK, CLEANER)]
    known.append(_end_in_folder(partition, files))
    has_log = any(".log" in one.suffixes for one in partition.segments)
    is_beyond = has_log and max(known) > max(next_offset, told.get(START, 0))
    return max(known) if is_beyond else 0


def _end_in_folder(partition: Partition, files: Files) -> int:
    """Return the latest offset that a snapshot or a leader epoch names: they move with the log."""
    names = map(read_file_name, partition.others)
    known = [0, *(one.base_offset for one in names if one.suffix == SNAPSHOT_SUFFIX)]
    if EPOCHS in partition.others:
        entries = read_epochs(Reporter(Wanted()).at(partition.path(EPOCHS)), files)
        known += [one.start_offset for one in (entries or ())[-1:]]
    return max(known)


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
        if is_older_copy_at(file, indexes, base_offset, following, files):
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
    indexes = (
        blocks_at(index_of(log.path), ".index", files),
        blocks_at(index_of(log.path, ".timeindex"), ".timeindex", files),
    )
    told = next_offset, position if odd is None else odd.start
    is_damaged = odd is not None and odd.kind is not PieceKind.ZEROS
    torn_end = None
    if is_damaged:
        with closing(files.open(log.path)) as file:
            torn_end = torn_end_of(file, told[1], next_offset)
    return indexed_end(
        *indexes, log.base_offset, told, largest, is_damaged=is_damaged, torn_end=torn_end
    )
