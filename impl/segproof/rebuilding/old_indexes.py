# SPDX-License-Identifier: Apache-2.0
"""What the old index files of a segment say, as far as they are sound by themselves."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from segproof.errors import SegproofError
from segproof.files import Files, status_of
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.time_index import TimeIndex
from segproof.kafka.transaction_index import AbortedTxn, TransactionIndex


class Segment(Protocol):
    """What is asked of a segment: a segment of a rebuild has it, and one of a check."""

    @property
    def base_offset(self) -> int:
        """The offset that its name says."""

    @property
    def suffixes(self) -> frozenset[str]:
        """Which of its files exist."""

    def path(self, suffix: str) -> str:
        """Return the path of one of its files."""


LARGEST_BYTES = 1 << 28
"""A larger file is damaged, and not taken into memory: a full index has 10 MiB."""


def old_entries(segment: Segment, suffix: str, files: Files) -> int | None:
    """Return the number of entries of an old index; None where there is no sound one."""
    if suffix == ".txnindex":
        found = old_aborted_txns(segment, files)
        return None if found is None else len(found)
    columns = _columns(segment, suffix, files)
    return None if columns is None else len(columns[0])


def old_positions(segment: Segment, files: Files) -> NDArray[np.int32] | None:
    """Return the positions of an old offset index; None without a sound one that has entries."""
    columns = _columns(segment, ".index", files)
    return columns[1].astype(np.int32) if columns is not None and len(columns[1]) else None


def old_aborted_txns(segment: Segment, files: Files) -> list[AbortedTxn] | None:
    """Return the entries of the old transaction index; None where there is no sound one."""
    if not _is_readable(segment, ".txnindex", files):
        return None
    path = segment.path(".txnindex")
    try:
        with TransactionIndex(segment.base_offset, path, files=files) as index:
            index.sanity_check()
            return index.all_aborted_txns()
    except (SegproofError, OSError):
        return None


def old_offsets(segment: Segment, files: Files) -> NDArray[np.int64]:
    """Return the offsets in the old offset index and time index, as far as these are sound."""
    found = [np.empty(0, np.int64)]
    for suffix, column in ((".index", 0), (".timeindex", 1)):
        columns = _columns(segment, suffix, files)
        if columns is not None:
            found.append(columns[column].astype(np.int64))
    return np.concatenate(found)


def _columns(
    segment: Segment, suffix: str, files: Files
) -> tuple[NDArray[np.int64], NDArray[np.int64] | NDArray[np.int32]] | None:
    """Return keys and values of an old index that is sound by itself."""
    if not _is_readable(segment, suffix, files):
        return None
    kind = OffsetIndex if suffix == ".index" else TimeIndex
    try:
        with kind(segment.path(suffix), segment.base_offset, files=files) as index:
            index.sanity_check()
            return index.to_numpy()
    except (SegproofError, OSError):
        return None


def _is_readable(segment: Segment, suffix: str, files: Files) -> bool:
    if suffix not in segment.suffixes:
        return False
    status = status_of(files, segment.path(suffix))
    return status is not None and status.size_bytes <= LARGEST_BYTES
