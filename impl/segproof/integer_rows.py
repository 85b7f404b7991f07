# SPDX-License-Identifier: Apache-2.0
"""Rows of integers that callers give, as arrays of int64."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segproof.errors import InvalidArgumentError
from segproof.integers import INT64_MAX

__all__ = ["int64_array"]


def int64_array(values: ArrayLike, what: str) -> NDArray[np.int64]:
    """Return `values` as one row of native int64; raise InvalidArgumentError for anything else."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidArgumentError(f"{what} must be one row of integers, not {array.dtype}")
    if array.dtype == np.uint64 and array.size and int(array.max()) > INT64_MAX:
        raise InvalidArgumentError(f"{what} must be at most {INT64_MAX}")
    return np.ascontiguousarray(array, dtype=np.int64)
