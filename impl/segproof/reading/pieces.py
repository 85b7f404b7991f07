# SPDX-License-Identifier: Apache-2.0
"""One piece of a log: what kind of bytes it has, and what the headers of its batches say.

Laws: BATCH-2, BATCH-3.
"""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.kafka.batch_table import BatchTable
from segproof.stretches.kafka.header_rows import first_offsets, state_first_offset

Int64Array = NDArray[np.int64]


class PieceKind(StrEnum):
    """What a piece of a log holds."""

    SOUND = "sound"
    """Sound batches, one behind the other."""
    MISPLACED = "misplaced"
    """Batches with right checksums whose offsets do not fit where they lie."""
    UNLOADABLE = "unloadable"
    """One control batch that is no marker of a transaction: no broker loads a log with it."""
    RESTORABLE = "restorable"
    """One batch whose size or magic is wrong, and whose checksum proves it once they are right."""
    BROKEN = "broken"
    """Bytes in which there is no sound batch."""
    ZEROS = "zeros"
    """Zeros up to the end of the log: the tail of a preallocated file, or of one that lost data."""
    UNSEARCHED = "unsearched"
    """Bytes behind damage that were not searched: too much of them looks like batches."""


class Piece(NamedTuple):
    """Bytes [start, end) of a log, and what the headers of the batches in it say."""

    kind: PieceKind
    start: int
    end: int
    batches: int = 0
    records: int = 0
    """A compressed message of magic 0 or 1 counts as one record."""
    first_offset: int = -1
    """Of a compressed message of magic 0 or 1 only the last offset is known: it stands here too."""
    last_offset: int = -1
    min_timestamp: int = -1
    """In milliseconds, as `max_timestamp`; -1 where no batch has one."""
    max_timestamp: int = -1

    @property
    def size_bytes(self) -> int:
        """How many bytes it has."""
        return self.end - self.start

    def goes_on_in(self, other: "Piece") -> bool:
        """Return whether both are sound, and `other` follows at once, with later offsets."""
        is_sound = self.kind is other.kind is PieceKind.SOUND
        return is_sound and self.end == other.start and self.last_offset < other.first_offset

    def joined(self, other: "Piece") -> "Piece":
        """Return a piece of both, where `other` follows."""
        earliest = [one.min_timestamp for one in (self, other) if one.min_timestamp >= 0]
        return self._replace(
            end=other.end,
            batches=self.batches + other.batches,
            records=self.records + other.records,
            last_offset=other.last_offset,
            min_timestamp=min(earliest, default=-1),
            max_timestamp=max(self.max_timestamp, other.max_timestamp),
        )


def piece_of(kind: PieceKind, table: BatchTable) -> Piece:
    """Return the piece of some batches that follow each other."""
    times = table["base_timestamp"][table["base_timestamp"] >= 0]
    return Piece(
        kind,
        int(table["position"][0]),
        int(table["position"][-1] + table["size_bytes"][-1]),
        len(table),
        _records(table),
        int(first_offsets(table[:1])[0]),
        int(table["last_offset"][-1]),
        int(times.min()) if len(times) else -1,
        int(table["max_timestamp"].max()),
    )


def are_between(table: BatchTable) -> NDArray[np.bool_]:
    """Return which batches have wrong offsets between neighbours that lack exactly as many.

    The base offset of such a batch is wrong. It contradicts a neighbour, which would be called
    misplaced instead.
    """
    found = np.zeros(len(table), np.bool_)
    if len(table) < 3:
        return found
    firsts, lasts = first_offsets(table), table["last_offset"]
    is_known = state_first_offset(table)
    due, spans = lasts[:-2] + 1, (lasts - firsts)[1:-1]
    is_exact = (due + spans + 1 == firsts[2:]) & (due != firsts[1:-1]) & (spans >= 0)
    found[1:-1] = is_exact & is_known[1:-1] & is_known[2:]
    return found


def _records(table: BatchTable) -> int:
    """Return how many records the headers say, at most one for each offset."""
    offsets = np.maximum(table["last_offset_delta"].astype(np.int64), 0) + 1
    said = np.clip(table["record_count"], 0, offsets)
    return int(np.where(table["magic"] < 2, 1, said).sum())
