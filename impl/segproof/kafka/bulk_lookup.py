# SPDX-License-Identifier: Apache-2.0
"""Many lookups at once: the slots of a whole array of targets, by merging instead of searching.

An index that answers many targets is decoded once into native columns. Targets that never fall
are merged with the keys; others are sorted first, each with its place packed into the low bits, so
that they merge as well, which measured three times as fast as searching for each.

Laws: ABSIDX-22 to ABSIDX-26: the slots are those of single lookups.
"""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.kernels.dispatch import Kernel
from segproof.kernels.slot_search import (
    lower_slots_of_random,
    lower_slots_of_rising,
    native_entries_at,
)

Int64Array = NDArray[np.int64]
_INT64_BITS = 63
_LANES = 32
_BLOCK = 1 << 16
_WORK_OF_NUMPY = 50
"""So many lookups by numpy take as long as one step of an interpreted kernel."""
_SPARSE = 32
"""So many keys for each target are stepped over as fast as a search finds it."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The entries of one moment as private native arrays, and what is added to answers."""

    keys: NDArray[np.signedinteger[Any]]
    """int32 or int64 as in the file, shape (entries + 1,): the last answers for slot -1."""
    values: NDArray[np.int32]
    """As `keys`."""
    bases: tuple[int, int]
    """What is added to each key and to each value that is answered."""
    increase: bool
    """Whether the keys strictly increase."""

    @classmethod
    def of(
        cls, records: NDArray[np.void], bases: tuple[int, int], missing: tuple[int, int]
    ) -> "Columns":
        """Decode entries whose two fields are the key and the value.

        `missing`, without the bases, is what a target below all keys finds.
        """
        columns = []
        for field, none in zip(records.dtype.names or (), missing, strict=True):
            column = np.empty(len(records) + 1, records.dtype[field].newbyteorder("="))
            column[:-1], column[-1] = records[field], none
            columns.append(column)
        keys, values = columns
        return cls(keys, values, bases, bool(np.all(keys[:-2] < keys[1:-1])))

    @property
    def searched(self) -> NDArray[np.signedinteger[Any]]:
        """The keys of all entries, shape (entries,)."""
        return self.keys[:-1]

    def distances(self) -> tuple[memoryview, int]:
        """Return the keys as distances from a number, and that number: 0 or the first key.

        Distances that fit into 32 bits are searched from Python twice as fast as timestamps.
        """
        keys = self.searched
        if keys.dtype.itemsize == 4 or not len(keys) or int(keys[-1]) - int(keys[0]) >= 2**31:
            return keys.data, 0
        return (keys - keys[0]).astype(np.int32).data, int(keys[0])

    def look_up(self, targets: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return (keys, values) of the lower slots of the targets; the keys must increase."""
        assert self.increase
        keys, values = np.empty(len(targets), np.int64), np.empty(len(targets), np.int64)
        searched = self.searched
        is_sparse = len(searched) > _SPARSE * len(targets)
        rest: Int64Array | None = None
        # In blocks, which stay in the cache from the first look at a target to its answer.
        for start in range(0, len(targets), _BLOCK):
            end = start + _BLOCK
            if rest is None and not not_falling(targets[max(start - 1, 0) : end]):
                rest, rest_from = _slots_of_random(searched, targets[start:]), start
            if rest is None:
                slots = _slots_of_rising(searched, targets[start:end], is_sparse)
            else:
                slots = rest[start - rest_from : end - rest_from]
            self._answer(slots, keys[start:end], values[start:end])
        return keys, values

    def _answer(self, slots: Int64Array, keys: Int64Array, values: Int64Array) -> None:
        if _compiles(native_entries_at, len(slots)):
            columns = (self.keys.data, self.values.data, len(self.keys) - 1)
            native_entries_at(*columns, slots.data, keys.data, values.data, *self.bases)
            return
        keys[:], values[:] = self.keys[slots], self.values[slots]
        keys += self.bases[0]
        values += self.bases[1]


def int64_difference(values: Int64Array, base: int, lowest: int, highest: int) -> Int64Array:
    """Return `values - base`, limited to lowest..highest (both inclusive) where it would wrap."""
    if base == 0 or not len(values):
        return values
    if int(values.min()) - base >= -(2**63) and int(values.max()) - base < 2**63:
        return values - base
    low, high = max(base + lowest, -(2**63)), min(base + highest, 2**63 - 1)
    return np.clip(values, low, high) - base


def not_falling(values: Int64Array) -> bool:
    """Return whether no value is below the one before it."""
    return bool(np.all(values[:-1] <= values[1:]))


def _slots_of_rising(
    keys: NDArray[np.signedinteger[Any]], targets: Int64Array, is_sparse: bool
) -> Int64Array:
    """Return the lower slots of targets that never fall; sparse: few among the keys they span."""
    if is_sparse or not _compiles(lower_slots_of_rising, len(targets)):
        # Only the keys that the targets span: numpy converts what it searches.
        first = bisect_right(keys.data, int(targets[0]))
        end = bisect_right(keys.data, int(targets[-1]), first)
        return np.searchsorted(keys[first:end], targets, side="right") + (first - 1)
    slots = np.empty(len(targets), np.int64)
    lower_slots_of_rising(keys.data, len(keys), targets.data, slots.data)
    return slots


def _slots_of_random(keys: NDArray[np.signedinteger[Any]], targets: Int64Array) -> Int64Array:
    """Return the lower slots of targets in any order."""
    packed = _packed(keys, targets) if len(keys) else None
    slots = np.empty(len(targets), np.int64)
    if packed is not None:
        least, bits, sorted_pairs = packed
        places = sorted_pairs & ((1 << bits) - 1)
        sorted_pairs >>= bits
        sorted_pairs += least
        is_sparse = len(keys) > _SPARSE * len(targets)
        slots[places] = _slots_of_rising(keys, sorted_pairs, is_sparse)
    elif _compiles(lower_slots_of_random, len(targets)):
        lower_slots_of_random(keys.data, len(keys), targets.data, slots.data, _LANES)
    else:
        slots[:] = np.searchsorted(keys, targets, side="right") - 1
    return slots


def _packed(
    keys: NDArray[np.signedinteger[Any]], targets: Int64Array
) -> tuple[int, int, Int64Array] | None:
    """Return (least target, bits of a place, sorted pairs of target - least and place).

    None where a pair does not fit into 63 bits.
    """
    bits = (len(targets) - 1).bit_length()
    least, greatest = int(targets.min()), int(targets.max())
    below, last = int(keys[0]) - 1, int(keys[-1])
    if (greatest - least) >> (_INT64_BITS - bits):
        # Targets outside of the keys find what the borders find.
        least, greatest = max(least, below), min(greatest, last)
        if least > greatest or least < -(2**63) or (greatest - least) >> (_INT64_BITS - bits):
            return None
        targets = np.clip(targets, least, greatest)
    pairs = targets - least
    pairs <<= bits
    pairs |= np.arange(len(targets))
    pairs.sort()
    return least, bits, pairs


def _compiles(kernel: Kernel[Any, Any], targets: int) -> bool:
    """Announce targets to a kernel; return whether it is compiled now."""
    kernel.announce(targets // _WORK_OF_NUMPY)
    return kernel.is_compiled
