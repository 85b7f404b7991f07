# SPDX-License-Identifier: Apache-2.0
"""Framing of single batches: what a log holds at one position. Nothing else of the log is read.

Laws: BATCH-2, BATCH-14, BATCH-19.
"""

from segproof.files import ReadOnlyFile
from segproof.kafka.batch_table import BatchTable, check_batches
from segproof.kafka.record_batch import RecordBatch
from segproof.reading.pieces import Piece, PieceKind, may_not_load, piece_of
from segproof.stretches.kafka.mending import end_at, is_loadable


def batch_at(file: ReadOnlyFile, position: int, limit: int, end: int | None = None) -> Piece | None:
    """Return the batch at a position, if its checksum is right and its offsets rise; else None.

    It ends at byte `limit` of the log at the latest. `end` is its end, where that is known. A batch
    that no broker loads is told as such. Raises: OSError.
    """
    if not 0 <= position < limit:
        return None
    end = end_at(file, position) if end is None else end
    if not position < end <= limit:
        return None
    for rows in check_batches(file, position, end):
        found = piece_of(PieceKind.SOUND, rows.table)
        is_sound = bool(rows.crc_valid.all()) and found.first_offset <= found.last_offset
        if not is_sound or found.end != end:
            return None
        is_loaded = is_loaded_at(file, rows.table)
        return found if is_loaded else found._replace(kind=PieceKind.UNLOADABLE)
    return None


def is_loaded_at(file: ReadOnlyFile, row: BatchTable) -> bool:
    """Return whether a broker loads the batch of a row, whose checksum is right."""
    if not may_not_load(row)[0]:
        return True
    position, size, magic = (int(row[name][0]) for name in ("position", "size_bytes", "magic"))
    return is_loadable(RecordBatch(file, position, size, magic, in_file=True))
