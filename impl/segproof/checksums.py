# SPDX-License-Identifier: Apache-2.0
"""The two checksums of record batches: CRC-32C (magic 2) and CRC-32 (magic 0 and 1).

Both take any buffer of bytes and continue from an earlier result, so a batch can be summed in
pieces. `awscrt` computes CRC-32C: unlike google-crc32c it reads a memoryview over a reused buffer
without a copy, which measured faster for batches of 1 KB (2.7 against 2.6 GB/s with reading),
16 KB (7.8 against 6.5) and 1 MB (9.4 against 6.7). It is imported at the first use. For many small
parts a call from Python costs more than the sum itself: there, with numba, crc32c_parts.py calls
the C library of google-crc32c from a compiled loop.

Upstream: Kafka 4.3.1: Crc32C, java.util.zip.CRC32.
Laws: BATCH-2, BATCH-3.
"""

import sys
import zlib
from collections.abc import Callable
from importlib import import_module
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from segproof.kernels.dispatch import kernel_mode, numba_available

Bytes = bytes | bytearray | memoryview
Int64Array = NDArray[np.int64]
_PartSums = Callable[[int, memoryview, memoryview, memoryview], None]

_COMPILE_AFTER_PARTS = 2_000_000
"""So many parts take as much longer, one by one, as importing numba takes."""
_COMPILE_AFTER_PARTS_WITH_NUMBA = 100_000
_LARGE_PART_BYTES = 6 << 10
"""From this mean on, the library's wider instructions gain more than a call costs."""

_loaded: Callable[[Bytes, int], int] | None = None
_compiled: _PartSums | None = None
_is_refused = False
_parts_seen = 0


def crc32c_function() -> Callable[[Bytes, int], int]:
    """Return the CRC-32C function of (data, previous), for loops that call it very often."""
    global _loaded
    if _loaded is None:
        from awscrt.checksums import crc32c as function  # 50 ms, so not at import

        # What that function calls; for small parts its own frame is a sixth of all time.
        _loaded = getattr(import_module("_awscrt"), "checksums_crc32c", function)
    return _loaded


def crc32c_of_parts(buffer: memoryview, starts: Int64Array, ends: Int64Array) -> Int64Array:
    """Return the CRC-32C of each part [start, end) of `buffer`, shape (parts,).

    Raises: IndexError for a part outside of the buffer.
    """
    if not len(starts):
        return np.empty(0, np.int64)
    if int(starts.min()) < 0 or int(ends.max()) > len(buffer) or bool((ends < starts).any()):
        raise IndexError("a part lies outside of the buffer")
    if int((ends - starts).sum()) < len(starts) * _LARGE_PART_BYTES:
        compiled = _part_sums(len(starts))
        if compiled is not None:
            sums = np.empty(len(starts), np.int64)
            address = np.frombuffer(buffer, np.uint8).ctypes.data
            starts, ends = np.ascontiguousarray(starts), np.ascontiguousarray(ends)
            compiled(address, starts.data, ends.data, sums.data)
            return sums
    # C loops only: slice, getitem and the checksum are all called by map.
    parts = map(buffer.__getitem__, map(slice, starts.tolist(), ends.tolist()))
    return np.fromiter(map(crc32c_function(), parts, repeat(0)), np.int64, len(starts))


def _part_sums(parts: int) -> _PartSums | None:
    """Return the compiled sums of parts, where that pays and the library allows it."""
    global _compiled, _is_refused, _parts_seen
    if _compiled is not None or _is_refused:
        return _compiled
    _parts_seen += parts
    mode = kernel_mode()
    enough = _COMPILE_AFTER_PARTS_WITH_NUMBA if "numba" in sys.modules else _COMPILE_AFTER_PARTS
    if mode == "auto" and _parts_seen <= enough:
        return None
    if mode == "interpreted" or not numba_available():
        _is_refused = True
        return None
    _compiled = import_module("segproof.crc32c_parts").load_sums_of_parts()
    _is_refused = _compiled is None
    return _compiled


def crc32c(data: Bytes, previous: int = 0) -> int:
    """Return the CRC-32C (Castagnoli) of `data`, continuing from `previous`; 0 to 2^32 - 1."""
    return crc32c_function()(data, previous)


def crc32(data: Bytes, previous: int = 0) -> int:
    """Return the CRC-32 (IEEE) of `data`, continuing from `previous`; 0 to 2^32 - 1."""
    return zlib.crc32(data, previous)
