# SPDX-License-Identifier: Apache-2.0
"""At which bytes of damaged data a batch may begin, by the fields of its header.

Cost: a few passes over the bytes, in numpy. Laws: BATCH-2, BATCH-3.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.kafka.record_batch import BATCH_HEADER_BYTES, LEGACY_MIN_BYTES
from segproof.kafka.record_file import LOG_OVERHEAD_BYTES

Int64Array = NDArray[np.int64]
CRC = 17
"""Position of the checksum in a batch of magic 2."""


class _Headers:
    """The headers that would begin at each of the first `count` bytes of some data.

    Older headers may have fewer bytes than those of magic 2, so zeros are added at the end.
    """

    def __init__(self, data: bytes, count: int) -> None:
        self._data = data + bytes(max(0, BATCH_HEADER_BYTES - 1 + count - len(data)))
        self._count = count

    def field(self, place: int, kind: str, rows: Any = slice(None)) -> NDArray[Any]:
        """Return the field at a byte of each header, or of some of them."""
        found: NDArray[Any] = np.ndarray((self._count,), kind, self._data, place, (1,))[rows]
        return found

    def counts_fit(self, rows: Int64Array) -> NDArray[np.bool_]:
        """Return which headers of magic 2 count at most one record for each of their offsets."""
        last_deltas = self.field(23, ">i4", rows).astype(np.int64)
        counts = self.field(57, ">i4", rows)
        fits: NDArray[np.bool_] = (counts >= 0) & (counts <= last_deltas + 1)
        return fits


def starts_by_size(data: bytes, count: int, room: int) -> list[int]:
    """Return the positions, among the first `count` bytes of `data`, at which a batch may begin.

    Sizes decide, and no offset does. The log has `room` bytes from the first byte of `data` on: no
    batch ends later.
    """
    headers = _Headers(data, count)
    rows = np.flatnonzero(headers.field(16, "u1") <= 2)
    sizes = headers.field(8, ">i4", rows).astype(np.int64) + LOG_OVERHEAD_BYTES
    rows = rows[(sizes >= LEGACY_MIN_BYTES) & (rows + sizes <= room)]
    is_new = headers.counts_fit(rows) & (headers.field(21, ">u2", rows) < 128)
    starts: list[int] = rows[is_new | (headers.field(16, "u1", rows) < 2)].tolist()
    return starts


def starts_by_offset(data: bytes, count: int, above: int, below: int) -> Int64Array:
    """Return the positions, among the first `count` bytes of `data`, at which a batch may begin.

    Base offsets decide, and no size does: they lie between `above` and `below`, both excluded. The
    checksum of magic 2 does not cover the magic, so a batch of magic 2 may have any.
    """
    headers = _Headers(data, count)
    is_old = (headers.field(16, "u1") < 2) & (headers.field(17, "u1") < 16)
    is_new = (headers.field(21, "u1") == 0) & (headers.field(22, "u1") < 128)
    rows = np.flatnonzero(is_old | is_new)
    offsets = headers.field(0, ">i8", rows)
    rows = rows[(above < offsets) & (offsets < below)]
    is_counted = is_new[rows] & headers.counts_fit(rows) & (headers.field(23, ">i4", rows) >= 0)
    is_counted &= headers.field(CRC, ">u4", rows) != 0  # zeros are no header
    is_old = is_old[rows] & (headers.field(12, ">u4", rows) != 0)
    starts: Int64Array = rows[is_counted | is_old]
    return starts
