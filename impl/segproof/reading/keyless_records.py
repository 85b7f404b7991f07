# SPDX-License-Identifier: Apache-2.0
"""Finds records without a key, which exclude that the log cleaner took what follows them.

Laws: DISK-25, DISK-63, DISK-70, BATCH-3.
"""

from collections import deque
from collections.abc import Iterable
from contextlib import closing, suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.errors import SegproofError
from segproof.files import File, Files, ReadOnlyFile
from segproof.kafka.batch_table import CONTROL, BatchTable, check_batches
from segproof.kafka.record_batch import RecordBatch
from segproof.stretches.kafka.single_batch import KEYS_ASKED, lacks_key, record_batch

MAX_BATCH_BYTES = 16 << 20
"""Unless a run gives its own limit, a larger batch is summed in pieces and its records are not
read: a warning says so."""


class EndBatch(NamedTuple):
    """The first or the last sound batch of records of a log, whose records may tell of keys."""

    position: int
    size_bytes: int
    magic: int
    last_offset: int
    limit: int
    """Records of more bytes are not read."""


def are_of_records(table: BatchTable) -> NDArray[np.bool_]:
    """Return which batches hold records of clients, as their headers say."""
    is_bare = (table["attributes"] & CONTROL != 0) | (table["record_count"] <= 0)
    return np.asarray((table["magic"] != 2) | ~is_bare)


def first_keyless(logs: Iterable[str], files: Files) -> int | None:
    """Return the last offset of a sound batch that has a record without a key, or None.

    At most KEYS_ASKED batches of each log are read, the first to the last one.
    """
    for path in logs:
        try:
            with closing(files.open(path)) as file:
                found = keyless_in(file)
        except (OSError, SegproofError):
            continue  # what can't be read is told elsewhere
        if found is not None:
            return found
    return None


def keyless_in(file: File) -> int | None:
    """Return as `first_keyless` of one log."""
    asked: list[np.void] = []
    for table in check_batches(file).tables():
        rows = table[are_of_records(table)]
        if not asked and len(rows) and _is_sound_keyless(file, rows[0]):
            return int(rows["last_offset"][0])
        asked += [row.copy() for row in rows[:: max(1, len(rows) // KEYS_ASKED)]]
        while len(asked) > KEYS_ASKED:
            asked = [*asked[:-1:2], asked[-1]]
    found = (row for row in asked[1:] if _is_sound_keyless(file, row))
    return next((int(row["last_offset"]) for row in found), None)


def _is_sound_keyless(file: File, header: np.void) -> bool:
    """Return whether the batch of a row has a right checksum, and a record without a key."""
    position, size, magic = (int(header[name]) for name in ("position", "size_bytes", "magic"))
    batch = RecordBatch(file, position, size, magic, in_file=True)
    return batch.is_valid() and has_keyless(file, header, MAX_BATCH_BYTES)


def has_keyless(file: ReadOnlyFile, header: np.void, limit: int) -> bool:
    """Return as `lacks_key` for the batch of a row of a table of headers."""
    return lacks_key(record_batch(file, header), limit)


def end_batch(header: np.void, limit: int) -> EndBatch:
    """Return the batch of a row of a table, to be asked for keys later."""
    names = ("position", "size_bytes", "magic", "last_offset")
    position, size, magic, last = (int(header[name]) for name in names)
    return EndBatch(position, size, magic, last, limit)


def end_batches(table: BatchTable) -> list[EndBatch]:
    """Return the first and the last batch of records of a table, as `verify` asks them."""
    rows = table[are_of_records(table)]
    return [end_batch(row, MAX_BATCH_BYTES) for row in (*rows[:1], *rows[1:][-1:])]


def _is_keyless(file: ReadOnlyFile, end: EndBatch) -> bool:
    batch = RecordBatch(file, end.position, end.size_bytes, end.magic, in_file=True)
    return lacks_key(batch, end.limit)


class KeylessEnds:
    """The batches at the ends of the logs so far; their records are read only where one is asked.

    A sound partition lacks no offset, and nothing depends on its keys then.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._unread: deque[tuple[str, list[EndBatch]]] = deque()
        self._found: int | None = None

    def add(self, path: str, ends: list[EndBatch]) -> None:
        """Take the batches at the ends of the next log."""
        if self._found is None and ends:
            self._unread.append((path, ends))

    def first_keyless(self) -> int | None:
        """Return the last offset of the first of the batches that has a record without a key.

        None without any; a log that can't be read any more counts as one without.
        """
        while self._found is None and self._unread:
            path, ends = self._unread.popleft()
            with suppress(OSError), closing(self._files.open(path)) as file:
                found = (end.last_offset for end in ends if _is_keyless(file, end))
                self._found = next(found, None)
        return self._found
