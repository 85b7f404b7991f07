# SPDX-License-Identifier: Apache-2.0
"""The entries of a log's offset index, all at once, for readers that look batches up by them.

Laws: LOG-4.
"""

from contextlib import closing

import numpy as np

from segproof.files import Files
from segproof.reading.index_entries import EntryFile, entries_found
from segproof.stretches.kafka.facts import NO_ENTRIES, Entries

ENTRIES_MAX = 1 << 21
"""An index with more entries is not used: it would be of 16 MiB, and Kafka's has 10 by default."""


def entries_of(index: EntryFile, base_offset: int) -> Entries:
    """Return the genuine entries of an offset index that hold no negative number.

    `index` has found its end. Raises: OSError.
    """
    if not 0 < index.count <= ENTRIES_MAX:
        return NO_ENTRIES
    whole = np.concatenate([block for _, block in index.blocks()])
    offsets, positions = whole["offset"].astype(np.int64), whole["position"].astype(np.int64)
    usable = (offsets >= 0) & (positions >= 0)
    return Entries(offsets[usable] + base_offset, positions[usable])


def entries_in(path: str, base_offset: int, files: Files) -> Entries:
    """Return the entries of the offset index at a path, or none where it can't be read."""
    try:
        with closing(files.open(path)) as file:
            return entries_of(entries_found(file, ".index"), base_offset)
    except OSError:
        return NO_ENTRIES  # they only save work
