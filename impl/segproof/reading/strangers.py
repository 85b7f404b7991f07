# SPDX-License-Identifier: Apache-2.0
"""Whether batches can be of a log at all: what their headers say against those around them.

A block of another topic has batches with right checksums, and its offsets may fit by chance. The
checksum covers a batch's sequences and, of magic 0 and 1, the magic. An epoch and a magic 2 are not
covered: so a single batch that disagrees proves nothing.

Laws: BATCH-3, EPOCH-1, PROD-3.
"""

from collections.abc import Iterator, Sequence

from segproof.files import ReadOnlyFile
from segproof.kafka.batch_table import BatchTable, read_batch_headers
from segproof.reading.pieces import Piece, PieceKind

COMPARED_BATCHES = 64
"""So many batches before a row, and after it, are compared with those of the row."""


def without_strangers(file: ReadOnlyFile, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield the pieces of a log; sound batches between damage that can't be of it are misplaced.

    They are fewer bytes than the sound batches before them and after them. Raises: OSError.
    """
    sound = [number for number, one in enumerate(pieces) if one.kind is PieceKind.SOUND]
    strange = set[int]()
    for before, number, after in zip(sound, sound[1:], sound[2:], strict=False):
        one, other, piece = pieces[before], pieces[after], pieces[number]
        is_apart = one.end < piece.start and piece.end < other.start
        if is_apart and piece.size_bytes < min(one.size_bytes, other.size_bytes):
            row, earlier, later = (
                read_batch_headers(file, each.start, each.end).table for each in (piece, one, other)
            )
            earlier, later = earlier[-COMPARED_BATCHES:], later[:COMPARED_BATCHES]
            if contradicts(earlier, row, later) or sequences_agree(earlier, row, later) is False:
                strange.add(number)
    for number, piece in enumerate(pieces):
        yield piece._replace(kind=PieceKind.MISPLACED) if number in strange else piece


def contradicts(before: BatchTable, row: BatchTable, after: BatchTable) -> bool:
    """Return whether batches can't lie between others: another magic, or an epoch that falls."""
    around = [int(one[place]["magic"]) for one, place in ((before, -1), (after, 0)) if len(one)]
    magics = row["magic"]
    if around and not (min(around) <= int(magics.min()) and int(magics.max()) <= max(around)):
        return True
    new = row[magics == 2]["partition_leader_epoch"]
    if not len(new):
        return False
    earlier = before[before["magic"] == 2]["partition_leader_epoch"][-2:]
    later = after[after["magic"] == 2]["partition_leader_epoch"][:2]
    # Two that agree: one may have a wrong bit, which no checksum tells.
    is_below = len(earlier) == 2 and earlier[0] == earlier[1] > int(new.max())
    is_above = len(later) == 2 and later[0] == later[1] < int(new.min())
    return bool(is_below or is_above)


def sequences_agree(before: BatchTable, row: BatchTable, after: BatchTable) -> bool | None:
    """Return whether sequences say that a row lies between others; None if they say nothing.

    Each record of a producer takes one sequence and at least one offset: so from batch to batch its
    sequences rise, and no faster than the offsets. They agree where both rise alike.
    """
    agree: bool | None = None
    own = row[row["base_sequence"] >= 0]
    for place, one in ((0, before), (-1, after)):
        if not len(own):
            return None
        batch = own[place]
        is_same = (one["base_sequence"] >= 0) & (one["producer_id"] == batch["producer_id"])
        is_same &= one["producer_epoch"] == batch["producer_epoch"]
        if not is_same.any():
            continue
        near = one[is_same][-1 - place]
        earlier, later = (near, batch) if place == 0 else (batch, near)
        reached = int(earlier["base_sequence"]) + int(earlier["last_offset_delta"])
        by_sequence = int(later["base_sequence"]) - reached
        by_offset = int(later["base_offset"]) - int(earlier["last_offset"])
        if not 0 < by_sequence <= by_offset:
            return False
        agree = agree or by_sequence == by_offset or None
    return agree
