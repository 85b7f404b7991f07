# SPDX-License-Identifier: Apache-2.0
"""The tables of the index files: `index_entries`, `time_index_entries`, `aborted_transactions`.

Files are read in pieces; an entry costs no step of Python.

Upstream: Kafka, OffsetIndex, TimeIndex, TransactionIndex.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from segproof.counts import plural
from segproof.errors import CorruptIndexError, SegproofError
from segproof.files import File, Files
from segproof.kafka.transaction_index import read_aborted_txns
from segproof.reading.index_entries import (
    BLOCK_ENTRIES,
    ENTRY_BYTES,
    ENTRY_TYPES,
    count_entries,
    genuine_entries,
)
from segproof.tables.columns import batch_of
from segproof.tables.files_below import Unit
from segproof.tables.options import Request

ABORTED_BYTES: Final = ENTRY_BYTES[".txnindex"]


def index_entries(unit: Unit, request: Request, files: Files) -> Iterator[Any]:
    """Yield the entries of an offset or time index, but for the zeros at its end.

    Raises: OSError; CorruptIndexError for a partial entry, behind the whole ones.
    """
    (suffix,) = unit.suffixes
    with closing(files.open(unit.path)) as file:
        for first, block in genuine_entries(file, suffix):
            yield _block(request, unit, first, block)
        refuse_partial(file, suffix, unit.path)


def _block(request: Request, unit: Unit, first: int, block: NDArray[Any]) -> Any:
    base = np.int64(unit.base_offset or 0)
    makers = {
        "entry": lambda: np.arange(first, first + len(block), dtype=np.int64),
        "offset": lambda: block["offset"].astype(np.int64) + base,
    }
    return batch_of(request, unit, len(block), makers, block)


def whole_entries(file: File, suffix: str) -> int:
    """Return how many entries a file has: before the zeros at its end, or all of a `.txnindex`."""
    if suffix in ENTRY_TYPES:
        return count_entries(file, suffix)
    return file.size() // ABORTED_BYTES


def aborted_transactions(unit: Unit, request: Request, files: Files) -> Iterator[Any]:
    """Yield the entries of a transaction index.

    Raises: OSError; SegproofError at an entry of an unknown version; CorruptIndexError for a
    partial entry; both behind the entries before.
    """
    with closing(files.open(unit.path)) as file:
        number = 0
        while data := file.pread(BLOCK_ENTRIES * ABORTED_BYTES, number * ABORTED_BYTES):
            block = read_aborted_txns(data)
            unknown = np.flatnonzero(block["version"])
            known = block[: int(unknown[0])] if len(unknown) else block
            if len(known):
                yield _block(request, unit, number, known)
            if len(unknown):
                at = number + int(unknown[0])
                raise SegproofError(
                    f"entry {at} has version {block['version'][unknown[0]]}; only 0 is known",
                    law="TXNIDX-2",
                    path=unit.path,
                    position=at * ABORTED_BYTES,
                )
            if len(block) < BLOCK_ENTRIES:
                break
            number += len(block)
        refuse_partial(file, ".txnindex", unit.path)


def refuse_partial(file: File, suffix: str, path: str) -> None:
    """Raise CorruptIndexError if the last entry of an index file is not whole."""
    if partial := file.size() % ENTRY_BYTES[suffix]:
        raise CorruptIndexError(
            f"{plural(partial, 'byte')} behind the last whole entry",
            path=path,
            position=file.size() - partial,
        )
