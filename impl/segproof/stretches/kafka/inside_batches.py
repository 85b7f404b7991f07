# SPDX-License-Identifier: Apache-2.0
"""What only the records of batches state: whether a broker loads them, and offsets of messages.

Laws: BATCH-9 to BATCH-12, BATCH-19.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from segproof.errors import TooLargeError
from segproof.files import ReadOnlyFile
from segproof.integers import INT64_MAX
from segproof.kafka.batch_table import BatchTable
from segproof.kafka.record_batch import read_batch
from segproof.stretches.kafka.facts import Reach, Rows
from segproof.stretches.kafka.header_rows import may_not_load, rows_of
from segproof.stretches.kafka.mending import is_loadable, proved_offsets
from segproof.stretches.kafka.single_batch import record_batch


class Inside(NamedTuple):
    """What only the records of a batch state."""

    row: int
    """Its row in the table."""
    is_loadable: bool
    """Whether a broker loads it."""
    offsets: tuple[int, int] | None
    """First and last offset of the messages in a compressed one of magic 0 or 1, if known."""
    proved: tuple[int, int] | None
    """The same, if the messages prove them, and it states another one."""


def inside_of(file: ReadOnlyFile, table: BatchTable, data: bytes | None = None) -> list[Inside]:
    """Look into the batches that a broker may not load.

    `data` is the one batch of the table, if its bytes in the file are not those.
    """
    found = list[Inside]()
    for row in np.flatnonzero(may_not_load(table)).tolist():
        batch = record_batch(file, table[row]) if data is None else read_batch(data)
        can_load, offsets = is_loadable(batch), None
        proved = proved_offsets(batch) if can_load else None
        if can_load and batch.is_legacy:
            with suppress(TooLargeError):  # then only the last offset is known
                offsets = batch.message_offsets
        is_other = proved is not None and proved[1] != table["last_offset"][row]
        found.append(Inside(row, can_load, offsets, proved if is_other else None))
    return found


def with_proved(table: BatchTable, inside: Sequence[Inside]) -> BatchTable:
    """Return the headers with the offsets that are proved."""
    wrong = [one for one in inside if one.proved is not None]
    table = table.copy() if wrong else table
    for row, _, _, proved in wrong:
        table["base_offset"][row] = table["last_offset"][row] = proved[1] if proved else 0
    return table


def rows_with(table: BatchTable, reach: Reach, inside: Sequence[Inside]) -> Rows:
    """Return a row for each batch of `with_proved`, with what only its records state."""
    rows = rows_of(table, reach)
    for row, can_load, offsets, proved in inside:
        rows["is_loadable"][row], rows["is_mended"][row] = can_load, proved is not None
        if offsets is not None:
            first, last = int(rows["last"][row]) - (offsets[1] - offsets[0]), int(rows["last"][row])
            rows["first"][row] = min(first, last)
            rows["offsets"][row] = min(last - int(rows["first"][row]) + 1, INT64_MAX)
    return rows
