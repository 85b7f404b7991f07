# SPDX-License-Identifier: Apache-2.0
"""At which bytes of damaged data a batch may begin, by the fields of its header.

Cost: a few passes over the bytes, in numpy. Laws: BATCH-2, BATCH-3.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.layouts import kafka as layouts

Int64Array = NDArray[np.int64]
_MESSAGE = layouts.MESSAGE_1.dtype_within(layouts.BATCH_HEADER_BYTES)
_MAGIC_AT = layouts.BATCH["magic"].place


class _Headers:
    """The headers that would begin at each of the first `count` bytes of some data.

    Older headers may have fewer bytes than those of magic 2, so zeros are added at the end.
    """

    def __init__(self, data: bytes, count: int) -> None:
        padded = data + bytes(max(0, layouts.BATCH_HEADER_BYTES - 1 + count - len(data)))
        self.batches: NDArray[Any] = np.ndarray((count,), layouts.BATCH.dtype, padded, 0, (1,))
        self.messages: NDArray[Any] = np.ndarray((count,), _MESSAGE, padded, 0, (1,))
        self._bytes, self._count = np.frombuffer(padded, np.uint8), count

    def byte(self, place: int) -> NDArray[np.uint8]:
        """Return one byte of each header, by its place in it."""
        return self._bytes[place : place + self._count]

    def counts_fit(self, rows: Int64Array) -> NDArray[np.bool_]:
        """Return which headers of magic 2 count at most one record for each of their offsets."""
        last_deltas = self.batches["last_offset_delta"][rows].astype(np.int64)
        counts = self.batches["record_count"][rows]
        fits: NDArray[np.bool_] = (counts >= 0) & (counts <= last_deltas + 1)
        return fits


def starts_by_size(data: bytes, count: int, room: int) -> list[int]:
    """Return the positions, among the first `count` bytes of `data`, at which a batch may begin.

    Sizes decide, and no offset does. The log has `room` bytes from the first byte of `data` on: no
    batch ends later.
    """
    headers = _Headers(data, count)
    magics = headers.byte(_MAGIC_AT)
    rows = np.flatnonzero(magics <= 2)
    sizes = headers.batches["size"][rows].astype(np.int64) + layouts.LOG_OVERHEAD_BYTES
    rows = rows[(sizes >= layouts.LEGACY_MIN_BYTES) & (rows + sizes <= room)]
    attributes = headers.batches["attributes"][rows]
    is_new = headers.counts_fit(rows) & (attributes >= 0) & (attributes < 128)
    starts: list[int] = rows[is_new | (magics[rows] < 2)].tolist()
    return starts


def starts_by_offset(data: bytes, count: int, above: int, below: int) -> Int64Array:
    """Return the positions, among the first `count` bytes of `data`, at which a batch may begin.

    Base offsets decide, and no size does: they lie between `above` and `below`, both excluded. The
    checksum of magic 2 does not cover the magic, so a batch of magic 2 may have any.
    """
    headers = _Headers(data, count)
    is_old = (headers.byte(_MAGIC_AT) < 2) & (
        headers.byte(layouts.MESSAGE_1["attributes"].place) < 16
    )
    attributes_at = layouts.BATCH["attributes"].place
    is_new = (headers.byte(attributes_at) == 0) & (headers.byte(attributes_at + 1) < 128)
    rows = np.flatnonzero(is_old | is_new)
    offsets = headers.batches["base_offset"][rows]
    rows = rows[(above < offsets) & (offsets < below)]
    headed = headers.batches[rows]
    is_counted = is_new[rows] & headers.counts_fit(rows) & (headed["last_offset_delta"] >= 0)
    is_counted &= headed["crc"] != 0  # zeros are no header
    is_old = is_old[rows] & (headers.messages["crc"][rows] != 0)
    starts: Int64Array = rows[is_counted | is_old]
    return starts
