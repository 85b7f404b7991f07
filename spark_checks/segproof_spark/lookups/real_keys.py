# SPDX-License-Identifier: Apache-2.0
"""The entries of a real index file of RocketMQ, and keys that have their hashes.

The file keeps no key, only its hash; a text of seven letters can be made for every hash.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files
from segproof.rocketmq import IndexFile
from segproof_spark.lookups.comparing import Comparison
from segproof_spark.lookups.drawing import Draw, Int64Array
from segproof_spark.lookups.key_indexes import Entries
from segproof_spark.lookups.read_only import ReadOnlyFiles

__all__ = ["FILE_BYTES_MAX", "keys_of_hashes", "opened_keys", "read_entries"]

FILE_BYTES_MAX = 64 << 20
"""A larger file is not asked: it is held in memory, and so is what is known of it."""
LETTERS = 7
_HEADER = np.dtype(
    [(name, ">i8") for name in ("begin", "end", "begin_offset", "end_offset")]
    + [("slots", ">i4"), ("count", ">i4")]
)
_ENTRY = np.dtype(
    [("key_hash", ">i4"), ("phy_offset", ">i8"), ("time_diff", ">i4"), ("previous", ">i4")]
)


def keys_of_hashes(hashes: Int64Array) -> NDArray[np.bytes_]:
    """Return a text for each hash: digits of base 31, each a letter from @ on.

    Seven of them reach every number of 32 bits.
    """
    zeros = sum(64 * 31**place for place in range(LETTERS))
    left = (hashes - zeros) % (1 << 32)
    letters = np.empty((len(hashes), LETTERS), np.uint8)
    for place in range(LETTERS - 1, -1, -1):
        left, letters[:, place] = left // 31, 64 + left % 31
    return letters.view(f"S{LETTERS}").ravel()


def read_entries(data: bytes, hash_slot_num: int, index_num: int) -> Entries:
    """Return the entries of a file's bytes."""
    header = np.frombuffer(data, _HEADER, 1)[0]
    count = max(min(int(header["count"]), index_num) - 1, 0)
    begin_at = 40 + 4 * hash_slot_num + 20
    rows = np.frombuffer(data, _ENTRY, count, begin_at)
    times = int(header["begin"]) + 1000 * rows["time_diff"].astype(np.int64)
    return Entries(
        rows["key_hash"].astype(np.int64), rows["phy_offset"].astype(np.int64), times, hash_slot_num
    )


def keys_asked(entries: Entries, draw: Draw) -> tuple[NDArray[np.bytes_], Int64Array]:
    """Return keys with the hashes of the entries, and some without any, and their hashes."""
    known = np.unique(entries.hashes[entries.hashes >= 0])
    others = draw.below(1 << 31, len(known) // 4 + 8)
    hashes = np.unique(np.concatenate([known, others]))
    return keys_of_hashes(hashes), hashes


@contextmanager
def opened_keys(
    path: str, geometry: tuple[int, int], files: Files, opened: type[IndexFile] = IndexFile
) -> Iterator[IndexFile]:
    """Open a file, which is only read."""
    index = opened.open(path, *geometry, files=ReadOnlyFiles(files))
    try:
        yield index
    finally:
        index.shutdown()


def is_asked(comparison: Comparison, size_bytes: int) -> bool:
    """Return whether a file is small enough; note where it is not."""
    if size_bytes <= FILE_BYTES_MAX:
        return True
    comparison.notes.append(f"not asked: {size_bytes} bytes, more than {FILE_BYTES_MAX}")
    return False
