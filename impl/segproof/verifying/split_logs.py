# SPDX-License-Identifier: Apache-2.0
"""One log split into pieces that several machines read, and checked as a whole.

The entries of the offset index say where to cut. An entry may be wrong, so each cut is proved: a
piece counts only if the batches before it end exactly at its first byte. Otherwise the check of the
log reads on by itself, up to the next piece that fits. So the batches and all findings are those of
one scan of the whole log, even if the index is wrong. One bound differs: `Inflation`, the bytes
that compressed batches may inflate to together, counts for each piece by itself.

Laws: none of its own; see verifying/segment_checks.py.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.errors import SegproofError, TooLargeError
from segproof.files import File, Files, status_of
from segproof.inventory.segments import Segment
from segproof.kafka.batch_table import BATCH_DTYPE, SUMMARY_DTYPE, CheckedBatches
from segproof.layouts.kafka import OFFSET_ENTRY
from segproof.verifying.log_blocks import rows_of
from segproof.verifying.segment_checks import Scanning, scan_of
from segproof.wording.reporting import Wanted

PART_BYTES = 16 << 10
"""About as many bytes of batch headers travel together."""
PART_ROWS = PART_BYTES // BATCH_DTYPE.itemsize

Piece = tuple[int, Iterable[CheckedBatches]]
"""Where a piece begins, and its batches."""


class LogState(NamedTuple):
    """Which file a log is, and in which state; the same seen from every machine."""

    inode: int
    size_bytes: int
    modified_ns: int


def log_state(segment: Segment, files: Files) -> LogState | None:
    """Return which file the log of a segment is now, or None."""
    status = status_of(files, segment.path(".log"))
    if status is None:
        return None
    # The number of a device is another one on each machine that has the same folder.
    return LogState(status.identity[1], status.size_bytes, status.modified_ns)


# --- where to cut


def cuts_of(segment: Segment, log_bytes: int, piece_bytes: int, files: Files) -> list[int]:
    """Return rising positions in (0, log_bytes) that cut a log into pieces of about `piece_bytes`.

    They are positions of entries of the offset index; none where that can't be read.
    Cost: some twenty reads of 8 bytes for each.
    """
    if ".index" not in segment.suffixes:
        return []
    try:
        file = files.open(segment.path(".index"))
    except OSError:
        return []
    try:
        return _cuts(file, log_bytes, piece_bytes)
    except OSError:
        return []
    finally:
        file.close()


def _cuts(file: File, log_bytes: int, piece_bytes: int) -> list[int]:
    count = file.size() // OFFSET_ENTRY.size

    def position_of(entry: int) -> int:
        position = OFFSET_ENTRY["position"].read(file, entry * OFFSET_ENTRY.size)
        # A zero tail, an entry of nonsense or one that is gone lies behind all others.
        return position if 0 < position < log_bytes else log_bytes

    cuts: list[int] = []
    goal = piece_bytes
    while goal + piece_bytes // 2 < log_bytes:
        entry = bisect_left(range(count), goal, key=position_of)
        position = position_of(entry) if entry < count else log_bytes
        if log_bytes - position < max(1, piece_bytes // 2):
            break
        cuts.append(position)
        goal = position + piece_bytes
    return cuts


# --- reading a piece, and all pieces


def piece_of(
    segment: Segment, start: int, end: int, wanted: Wanted, files: Files
) -> Iterator[CheckedBatches]:
    """Yield the batches of a log that lie in [start, end), as far as there are any in a row.

    Raises: OSError.
    """
    with closing(files.open(segment.path(".log"))) as file:
        for checked in scan_of(file, start, end, segment, wanted):
            for row in range(0, len(checked.table), PART_ROWS):
                yield rows_of(checked, row, row + PART_ROWS)


def scan_in_pieces(pieces: Iterable[Piece]) -> Scanning:
    """Return what gives a scan of a log that takes the batches of `pieces`, rising by their starts.

    A piece is looked at once, when it is its turn, and only where it fits.
    """
    return lambda file, size, segment, wanted: _PiecedScan(pieces, file, size, segment, wanted)


class _PiecedScan:
    """A scan of a whole log, most of whose batches were read before."""

    def __init__(
        self, pieces: Iterable[Piece], file: File, size: int, segment: Segment, wanted: Wanted
    ) -> None:
        self._pieces = pieces
        self._file = file
        self._size = size
        self._segment = segment
        self._wanted = wanted
        self.end_position = 0
        self.error: SegproofError | None = None

    def __iter__(self) -> Iterator[CheckedBatches]:
        """Yield all batches of the log."""
        for start, parts in self._pieces:
            if self.end_position < start < self._size:
                yield from self._read(start)
            if self.end_position != start:
                continue
            for part in parts:
                yield part
                self.end_position = int(part.table["position"][-1] + part.table["size_bytes"][-1])
        yield from self._read(self._size)

    def _read(self, end: int) -> Iterator[CheckedBatches]:
        """Read on up to `end`, or to a batch that goes over it."""
        scan = scan_of(self._file, self.end_position, end, self._segment, self._wanted)
        yield from scan
        self.end_position, self.error = scan.end_position, scan.error


# --- batches as bytes


def batches_to_bytes(batches: CheckedBatches) -> bytes:
    """Return batches as plain bytes."""
    rows = len(batches.table)
    told = {row: _error_to_json(error) for row, error in batches.errors.items()}
    parts = [
        f"{rows} {int(batches.summaries is not None)} {json.dumps(told)}\n".encode(),
        batches.table.tobytes(),
        batches.crc_valid.tobytes(),
    ]
    if batches.summaries is not None:
        parts.append(batches.summaries.tobytes())
    return b"".join(parts)


def batches_from_bytes(data: bytes) -> CheckedBatches:
    """Return the batches of `batches_to_bytes`."""
    at = data.index(b"\n") + 1
    rows, has_summaries, told = data[: at - 1].decode().split(" ", 2)
    count = int(rows)

    def column(dtype: np.dtype[Any]) -> NDArray[Any]:
        nonlocal at
        array: NDArray[Any] = np.frombuffer(data, dtype, count, at)
        at += array.nbytes
        return array

    table, crc_valid = column(BATCH_DTYPE), column(np.dtype(np.bool_))
    summaries = column(SUMMARY_DTYPE) if has_summaries == "1" else None
    found = {int(row): _error_from_json(each) for row, each in json.loads(told).items()}
    return CheckedBatches(table, crc_valid, summaries, found)


def _error_to_json(error: SegproofError) -> list[int | str | bool | None]:
    plain = (
        part if isinstance(part, int | str | None) else str(part)
        for part in (error.position, error.expected, error.actual)
    )
    return [isinstance(error, TooLargeError), error.message, error.law, error.hint, *plain]


def _error_from_json(told: Sequence[Any]) -> SegproofError:
    """Return an error that gives the same finding as the one that was told."""
    is_too_large, message, law, hint, position, expected, actual = told
    kind = TooLargeError if is_too_large else SegproofError
    return kind(message, law=law, hint=hint, position=position, expected=expected, actual=actual)
