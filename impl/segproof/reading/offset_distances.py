# SPDX-License-Identifier: Apache-2.0
"""How far offsets lie from a base offset."""

import numpy as np

from segproof.reading.rows import Int64Array

FAR = 1 << 40
"""Stands for every distance from the base offset that 31 bits can't hold."""


def distances(offsets: Int64Array, base_offset: int) -> Int64Array:
    """Return offset - base, with FAR or -FAR for what lies outside of 31 bits."""
    offsets = np.ascontiguousarray(offsets)
    if len(offsets) and int(offsets.min()) >= base_offset >= 0:
        # Nothing wraps, and there are no passes for it: nearly every log.
        apart = offsets - base_offset
        return apart if int(apart.max()) <= FAR else np.minimum(apart, FAR)
    base = np.int64(base_offset)
    with np.errstate(over="ignore"):
        apart = offsets - base
    wrapped = (apart < 0) != (offsets < base)
    apart = np.where(wrapped, np.where(offsets < base, -FAR, FAR), apart)
    return np.asarray(np.clip(apart, -FAR, FAR), np.int64)
