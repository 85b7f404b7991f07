# SPDX-License-Identifier: Apache-2.0
"""How many offsets the batches in broken bytes claim, as their headers say.

Where they are as many as the offsets that are missing there, these are lost: damage took them, and
not the log cleaner.

Laws: BATCH-2, BATCH-3.
"""

from segproof.files import ReadOnlyFile

HEADER_BYTES = 27
"""The part of a batch header that ends with its last offset delta (magic 2)."""
CODEC = 7


def claims(file: ReadOnlyFile, start: int, end: int, offsets: int) -> bool:
    """Return whether batches fill the bytes [start, end), and claim so many offsets.

    The last one may lack bytes. No header says how many offsets a compressed message of magic 0 or
    1 has. Raises: OSError.
    """
    while start < end and offsets > 0:
        header = file.pread(HEADER_BYTES, start) if end - start >= HEADER_BYTES else b""
        if len(header) < HEADER_BYTES:
            return False
        magic, size = header[16], int.from_bytes(header[8:12], "big", signed=True) + 12
        if size < HEADER_BYTES or magic > 2 or (magic < 2 and header[17] & CODEC):
            return False
        claimed = int.from_bytes(header[23:27], "big", signed=True) + 1 if magic == 2 else 1
        if claimed < 1:
            return False
        start, offsets = start + size, offsets - claimed
    return start >= end and not offsets
