# SPDX-License-Identifier: Apache-2.0
"""Random damages of a log, and what must be found of it all the same."""

from pathlib import Path
from random import Random

from segproof.checksums import crc32, crc32c
from segproof.files import REAL_FILES
from segproof.kafka.batch_table import read_batch_headers
from segproof.reading.log_pieces import LogPieces
from segproof.reading.pieces import PieceKind


def batches_of(log: bytes) -> list[bytes]:
    """Return the bytes of each batch, up to the first that can't be read."""
    table = read_batch_headers(log).table
    rows = zip(table["position"].tolist(), table["size_bytes"].tolist(), strict=True)
    return [log[position : position + size] for position, size in rows]


def is_intact(batch: bytes) -> bool:
    """Return whether the checksum of a batch is right."""
    if batch[16] == 2:
        return crc32c(batch[21:]) == int.from_bytes(batch[17:21], "big")
    return crc32(batch[16:]) == int.from_bytes(batch[12:16], "big")


def damaged(log: bytes, random: Random) -> bytes:
    """Return a log with one to five damages of a disk, a file system or a hand."""
    data = bytearray(log)
    starts = [0]
    for batch in batches_of(log):
        starts.append(starts[-1] + len(batch))
    for _ in range(random.randint(1, 5)):
        at = random.randrange(len(data))
        size = random.randint(1, 9000)
        end = min(len(data), at + size)
        kind = random.randrange(8)
        if kind == 0:
            data[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            data[at:end] = bytes(end - at)
        elif kind == 2 and size < len(data) // 2:
            del data[at:end]
        elif kind == 3:
            data[at:at] = random.randbytes(size)
        elif kind == 4:
            data[at:end] = random.randbytes(end - at)
        elif kind < 7:  # a block that a disk wrote to a wrong place; with 6 the two change places
            block = random.choice((512, 4096))
            one, other = (random.randrange(0, len(data), block) for _ in range(2))
            size = min(block, len(data) - max(one, other))
            moved, over = data[one : one + size], data[other : other + size]
            data[other : other + size] = moved
            if kind == 6:
                data[one : one + size] = over
        else:  # what a checksum does not cover
            place = random.choice(starts) + random.choice((0, 3, 7, 8, 9, 10, 11, 16))
            if place < len(data):
                data[place] ^= 1 << random.randrange(8)
    return bytes(data)


def check_pieces(log: bytes, bad: bytes, path: Path) -> None:
    """Hold the pieces of a damaged log against what the sound one had.

    They touch. What is called a batch has a right checksum, and the offsets of the sound ones rise.
    Each batch of the sound log that is whole in the damaged one is in a piece of batches.
    """
    path.write_bytes(bad)
    file = REAL_FILES.open(str(path))
    try:
        pieces = list(LogPieces(file, 0, len(bad)))
    finally:
        file.close()
    assert [0, *(one.end for one in pieces)] == [*(one.start for one in pieces), len(bad)]
    found, reached = [], -1
    for piece in pieces:
        if piece.kind in (PieceKind.SOUND, PieceKind.MISPLACED):
            own = batches_of(bad[piece.start : piece.end])
            assert len(own) == piece.batches
            assert all(map(is_intact, own))
            found += own
        if piece.kind is PieceKind.SOUND:
            assert reached < piece.first_offset <= piece.last_offset
            reached = piece.last_offset
    assert [] == [one[:8].hex() for one in batches_of(log) if one in bad and one not in found]
