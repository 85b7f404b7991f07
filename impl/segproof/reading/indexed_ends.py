# SPDX-License-Identifier: Apache-2.0
"""How far the last log of a partition went, as the entries of its indexes say.

A broker writes a batch before its entries. So entries for offsets after the last batch show that
the log held these, unless the log went on after a truncation: then its batches have timestamps at
or above those of the entries that the truncation left.

One wrong field proves nothing: an entry of the offset index counts if its position is beyond the
end too, and one of the time index if its timestamp is above those of all batches. Wild bytes in
place of an index prove nothing either: a log gets its next entry within NEAR_BYTES, and no clock
shows a time after TIME_MAX.

Laws: SEG-7, DISK-9.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files, ReadOnlyFile
from segproof.layouts.kafka import BATCH, BATCH_HEADER_BYTES
from segproof.reading.index_entries import EntryFile, genuine_entries

Block = NDArray[np.void]
NEAR_BYTES = 1 << 26
"""Bytes after the end of the log within which the first entry of lost batches points: more than
one append and the interval between entries."""
TIME_MAX = 253_402_300_800_000
"""Milliseconds: the begin of the year 10,000."""


def indexed_end(
    offsets: Iterable[Block],
    times: Iterable[Block],
    base_offset: int,
    end: tuple[int, int],
    max_timestamp: int,
    *,
    is_damaged: bool,
    torn_end: int | None = None,
) -> int | None:
    """Return the offset after the last one that an index says the log held; None without any.

    `offsets` and `times` are the genuine entries of the indexes, in blocks. `end` is the offset
    after the last batch, and the byte of the log after it. If the log `is_damaged`, it is the byte
    where the damage begins: the batch there may be torn, and its own entries prove no more than it.
    `torn_end` is what `torn_end_of` says of it: time entries count from there on. `max_timestamp`
    is the largest one of the batches.
    """
    next_offset, position = end
    position += is_damaged
    distance = next_offset - base_offset
    held: list[Block] = []
    for block in offsets:
        beyond = block[(block["position"] >= position) & (block["offset"] >= distance)]
        if not held and len(beyond) and int(beyond["position"].min()) > position + NEAR_BYTES:
            break
        held += [beyond["offset"]] if len(beyond) else []
    unproven = distance if torn_end is None else torn_end - base_offset
    later: list[Block] = []
    largest = -1
    for block in times:
        beyond = block[block["offset"] >= distance]
        largest = max(largest, int(beyond["timestamp"].max(initial=-1)))
        is_later = (beyond["timestamp"] > max_timestamp) & (beyond["timestamp"] < TIME_MAX)
        later.append(beyond["offset"][is_later & (beyond["offset"] >= unproven)])
    if 0 <= largest <= max_timestamp:
        return None  # the log went on after a truncation
    is_unknown = is_damaged and torn_end is None
    ends = [_last_of(found) for found in ((held,) if is_unknown else (held, later))]
    known = [one for one in ends if one is not None]
    return base_offset + max(known) + 1 if known else None


def torn_end_of(log: ReadOnlyFile, position: int, next_offset: int) -> int | None:
    """Return the offset after a batch that may be torn, as its header says; None if it does not.

    It is a batch of magic 2 that continues the log. Raises: OSError.
    """
    header = log.pread(BATCH_HEADER_BYTES, position)
    if len(header) < BATCH_HEADER_BYTES or BATCH["magic"].of(header) != 2:
        return None
    delta = BATCH["last_offset_delta"].of(header)
    is_next = BATCH["base_offset"].of(header) == next_offset and delta >= 0
    return next_offset + delta + 1 if is_next else None


def _last_of(found: list[Block]) -> int | None:
    """Return the last distance; the first one where they do not rise, as in a damaged index."""
    if not any(len(one) for one in found):
        return None
    distances = np.concatenate(found).astype(np.int64)
    return int(distances.max() if (np.diff(distances) >= 0).all() else distances.min())


def entry_blocks(index: EntryFile | None) -> Iterator[Block]:
    """Yield the entries of an index in blocks. Raises: OSError."""
    if index is not None:
        for _, block in index.blocks():
            yield block


def blocks_at(path: str, suffix: str, files: Files) -> Iterator[Block]:
    """Yield the entries of the index at a path, up to where it can't be read."""
    try:
        with closing(files.open(path)) as file:
            for _, block in genuine_entries(file, suffix):
                yield block
    except OSError:
        return
