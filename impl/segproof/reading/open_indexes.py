# SPDX-License-Identifier: Apache-2.0
"""Whether the indexes of a closed segment show that its log is a copy from before it was closed.

A broker preallocates the indexes of the segment that it appends to, and trims them when it closes
it. The log cleaner trims them too. So zeros at the end of an index, in a segment that a later one
follows, show that the log is neither the closed one nor a cleaned one: somebody put an older copy
in its place. A disk leaves zeros too, but in place of entries: then the log goes on for a while
after the last entry. Beside an empty log their number tells the two apart: an index has no more
entries than its segment has offsets, nor than the largest log has intervals.

Upstream: Kafka 4.3.1: LogSegment.onBecomeInactiveSegment, Cleaner.cleanSegments; the same since
0.11.0.
Laws: DISK-25.
"""

from contextlib import ExitStack

import numpy as np

from segproof.files import Files, ReadOnlyFile
from segproof.integers import INT32_MAX
from segproof.kafka.batch_table import BatchTable, read_batch_headers
from segproof.reading.index_entries import ENTRY_TYPES, EntryFile, entries_found
from segproof.stretches.kafka.header_rows import first_offsets, state_first_offset

INTERVAL_BYTES = 4096
"""The default of `index.interval.bytes`: about as far apart are entries."""


def is_older_copy(
    log: ReadOnlyFile,
    end_position: int,
    base_offset: int,
    following: int,
    offsets: EntryFile | None,
    times: EntryFile | None,
) -> bool:
    """Return whether the indexes of a closed segment show that it was never closed.

    `end_position` is the byte after the last batch, `following` the base offset of the next
    segment. The genuine entries of both indexes are known.
    A log that lacks offsets before its last batch was cleaned, or is damaged: it shows nothing.
    Raises: OSError.
    """
    index = next((one for one in (offsets, times) if one is not None and _has_tail(one)), None)
    if index is None:
        return False
    if not end_position:
        return _are_preallocated(following - base_offset, offsets, times)
    table = read_batch_headers(log, 0, end_position).table
    if not len(table) or not is_dense(table, base_offset):
        return False
    starts = table["position"]
    last, widest = _last_indexed(index, table, base_offset), INTERVAL_BYTES
    if last is None:
        return False
    before = 0
    for _, block in () if offsets is None else offsets.blocks():
        positions = block["position"].astype(np.int64)
        if len(positions):
            widest = max(widest, int(np.diff(positions, prepend=before).max()))
            before = int(positions[-1])
    return int(starts[-1]) - last <= 2 * widest


def is_older_copy_at(
    log: ReadOnlyFile, paths: tuple[str, str], base: int, following: int, files: Files
) -> bool:
    """Return as `is_older_copy` for a log that ends with its last batch.

    `paths` are those of its offset index and of its time index. One that can't be read tells
    nothing. Raises: OSError of the log.
    """
    found: list[EntryFile | None] = []
    with ExitStack() as stack:
        for path, suffix in zip(paths, ENTRY_TYPES, strict=True):
            try:
                file = files.open(path)
                stack.callback(file.close)
                found.append(entries_found(file, suffix))
            except OSError:
                found.append(None)
        return is_older_copy(log, log.size(), base, following, *found)


def _has_tail(index: EntryFile) -> bool:
    """Return whether zeros end an index. A single entry of zeros may be a genuine one."""
    return index.count < index.slots and index.slots > 1


def _are_preallocated(number: int, *indexes: EntryFile | None) -> bool:
    """Return whether an index is larger than that of a closed segment can be, and none has entries.

    `number` is how many offsets the segment has room for.
    """
    found = [one for one in indexes if one is not None and _has_tail(one)]
    most = min(number, INT32_MAX // INTERVAL_BYTES)
    return not any(one.count for one in found) and any(one.slots > most for one in found)


def is_dense(table: BatchTable, base_offset: int) -> bool:
    """Return whether batches have every offset from the base offset on."""
    firsts, lasts = first_offsets(table), table["last_offset"].astype(np.int64)
    before = np.concatenate([[base_offset - 1], lasts[:-1]])
    return bool((~state_first_offset(table) | (firsts == before + 1)).all())


def _last_indexed(index: EntryFile, table: BatchTable, base_offset: int) -> int | None:
    """Return the position of the batch of the last entry; 0 without an entry.

    None where a writer has trimmed the file meanwhile.
    """
    if not index.count:
        return 0
    entries = index.last()
    if not len(entries):
        return None
    (entry,) = entries
    if index.dtype == ENTRY_TYPES[".index"]:
        return int(entry["position"])
    row = int(np.searchsorted(table["last_offset"], base_offset + int(entry["offset"])))
    return int(table["position"][min(row, len(table) - 1)])
