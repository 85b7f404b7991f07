# SPDX-License-Identifier: Apache-2.0
"""How many offsets the batches in broken bytes claim, as their headers say.

Where they are as many as the offsets that are missing there, these are lost: damage took them, and
not the log cleaner.

Laws: BATCH-2, BATCH-3.
"""

from segproof.files import ReadOnlyFile
from segproof.layouts.kafka import BATCH, LOG_OVERHEAD_BYTES, MESSAGE_1

HEADER_BYTES = BATCH["last_offset_delta"].end
"""Bytes of a batch header up to its last offset delta (magic 2)."""
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
        magic, size = BATCH["magic"].of(header), BATCH["size"].of(header) + LOG_OVERHEAD_BYTES
        is_compressed = magic < 2 and MESSAGE_1["attributes"].of(header) & CODEC
        if size < HEADER_BYTES or not 0 <= magic <= 2 or is_compressed:
            return False
        claimed = BATCH["last_offset_delta"].of(header) + 1 if magic == 2 else 1
        if claimed < 1:
            return False
        start, offsets = start + size, offsets - claimed
    return start >= end and not offsets
