# SPDX-License-Identifier: Apache-2.0
"""Looks up some entries of an offset index in a log, to know whether it is the log of the index.

Laws: DISK-69, LOG-4.
"""

from collections.abc import Iterator
from typing import NamedTuple

from segproof.files import ReadOnlyFile
from segproof.stretches.kafka.facts import Entries
from segproof.stretches.kafka.single_batch import OneBatch, batch_at

ASKED_MAX = 64
"""An index of more entries is asked for every second one, or third, and so on."""


class Asked(NamedTuple):
    """One entry, and the batch to which it leads."""

    offset: int
    position: int
    batch: OneBatch | None
    """None if no sound batch begins at the position."""

    @property
    def is_right(self) -> bool:
        """Whether the batch holds the offset."""
        return self.batch is not None and self.batch.has(self.offset)


def sample_of(entries: Entries) -> Entries:
    """Return the entries that are asked."""
    step = max(1, len(entries.positions) // ASKED_MAX)
    return Entries(entries.offsets[::step], entries.positions[::step])


def asked_entries(log: ReadOnlyFile, entries: Entries) -> Iterator[Asked]:
    """Yield some of the entries, from the first on. Raises: OSError."""
    size, sample = log.size(), sample_of(entries)
    for offset, position in zip(sample.offsets.tolist(), sample.positions.tolist(), strict=True):
        yield Asked(offset, position, batch_at(log, position, size))
