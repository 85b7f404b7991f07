# SPDX-License-Identifier: Apache-2.0
"""Columns of rows that are judged together: of batches, entries or units."""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Int64Array = NDArray[np.int64]


def shifted(values: Int64Array, first: int) -> Int64Array:
    """Return what stands before each of the values: `first`, then all but the last of them."""
    before = np.empty(len(values), np.int64)
    before[:1], before[1:] = first, values[:-1]
    return before
