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
_KEY_LENGTHS_AT = layouts.MESSAGE_1["key_length"].place, layouts.MESSAGE_0["key_length"].place
_LENGTH_BYTES = 4


class _Headers:
    """The headers that would begin at each of the first `count` bytes of some data.

    Older headers may have fewer bytes than those of magic 2, so zeros are added at the end.
    """

    def __init__(self, data: bytes, count: int) -> None:
        padded = data + bytes(max(0, layouts.BATCH_HEADER_BYTES - 1 + count - len(data)))
        self.batches: NDArray[Any] = np.ndarray((count,), layouts.BATCH.dtype, padded, 0, (1,))
        self.messages: NDArray[Any] = np.ndarray((count,), _MESSAGE, padded, 0, (1,))
        self._bytes, self._count = np.frombuffer(padded, np.uint8), count
        self._ints: NDArray[Any] = np.ndarray((len(padded) - 3,), ">i4", padded, 0, (1,))
        self._known_bytes = len(data)

    def byte(self, place: int) -> NDArray[np.uint8]:
        """Return one byte of each header, by its place in it."""
        return self._bytes[place : place + self._count]

    def counts_fit(self, rows: Int64Array) -> NDArray[np.bool_]:
        """Return which headers of magic 2 count at most one record for each of their offsets."""
        last_deltas = self.batches["last_offset_delta"][rows].astype(np.int64)
        counts = self.batches["record_count"][rows]
        fits: NDArray[np.bool_] = (counts >= 0) & (counts <= last_deltas + 1)
        return fits

    def lengths_fit(self, rows: Int64Array, sizes: Int64Array) -> NDArray[np.bool_]:
        """Return which messages of magic 0 or 1 end where the lengths of key and value lead.

        Also those whose value begins behind the data.
        """
        key_lengths = np.where(self.byte(_MAGIC_AT)[rows] == 1, *_KEY_LENGTHS_AT) + rows
        at = key_lengths + _LENGTH_BYTES + np.maximum(self._ints[key_lengths], 0, dtype=np.int64)
        is_known = at + _LENGTH_BYTES <= self._known_bytes
        lengths = self._ints[np.where(is_known, at, 0)]
        ends = at + _LENGTH_BYTES + np.maximum(lengths, 0, dtype=np.int64)
        fits: NDArray[np.bool_] = (ends == rows + sizes) | ~is_known
        return fits


def starts_by_size(data: bytes, count: int, room: int) -> list[int]:
    """Return the positions, among the first `count` bytes of `data`, at which a batch may begin.

    Sizes and lengths decide, and no offset does. The log has `room` bytes from the first byte of
    `data` on: no batch ends later.
    """
    headers = _Headers(data, count)
    magics = headers.byte(_MAGIC_AT)
    rows = np.flatnonzero(magics <= 2)
    sizes = headers.batches["size"][rows].astype(np.int64) + layouts.LOG_OVERHEAD_BYTES
    has_room = (sizes >= layouts.LEGACY_MIN_BYTES) & (rows + sizes <= room)
    rows, sizes = rows[has_room], sizes[has_room]
    attributes = headers.batches["attributes"][rows]
    is_new = headers.counts_fit(rows) & (attributes >= 0) & (attributes < 128)
    is_old = magics[rows] < 2
    is_new[is_old] = headers.lengths_fit(rows[is_old], sizes[is_old])
    starts: list[int] = rows[is_new].tolist()
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
    # Zeros are no header.
    is_new = is_new[rows] & (headers.batches["crc"][rows] != 0)
    is_old = is_old[rows] & (headers.messages["crc"][rows] != 0)
    new = rows[is_new]
    is_new[is_new] = headers.counts_fit(new) & (headers.batches["last_offset_delta"][new] >= 0)
    starts: Int64Array = rows[is_new | is_old]
    return starts
