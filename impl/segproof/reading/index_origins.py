# SPDX-License-Identifier: Apache-2.0
"""Whether an offset index was made of another log than the one beside it.

Such an index says nothing of what the log beside it held: neither that it has lost its end, nor
that batches are gone from its middle. Two things show it, where almost none of its entries leads to
a batch of the log:

- The entries lead to the batches of another log of the partition. Logs whose entries are all one
  distance apart do not count: their indexes are alike.
- The log has every offset from its name on, and the time index fits it.

Laws: SEG-7, DISK-25, DISK-69, DISK-70.
"""

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import zip_longest

import numpy as np

from segproof.errors import SegproofError
from segproof.files import Files, ReadOnlyFile
from segproof.kafka.batch_table import BatchTable, read_batch_headers
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.asked_entries import Asked, asked_entries
from segproof.reading.file_names import NameKind
from segproof.reading.folder_names import folder_of
from segproof.reading.indexed_ends import Block, blocks_at
from segproof.reading.log_order import NamedLog
from segproof.reading.offset_entries import entries_in
from segproof.reading.open_indexes import is_dense
from segproof.stretches.kafka.facts import Entries
from segproof.stretches.unreadable_blocks import ReadableParts

SOME, MOST = 0.25, 0.75
"""Which part of the entries must lead to batches of a log that may be theirs; and of one that is
theirs."""
MISLED, RIGHT = (0.0, 0.0), (1.0, 1.0)
"""What `shares_of_entries` returns if no entry is right, and if all are."""
ENTRIES_MIN = 4
"""With fewer entries, each of them must lead to its batch in the other log."""
STEPS_MAX = 1 << 12
"""At most this many entries, the first ones, show whether entries are all one distance apart."""


def is_of_other_log(
    log: ReadOnlyFile, own: NamedLog, entries: Entries, times: Iterable[Block], files: Files
) -> bool:
    """Return whether an offset index is not of the log beside it.

    `log` is the open log, and `own` its path and base offset. `entries` are those of the offset
    index, and `times` the genuine entries of the time index. Raises: OSError.
    """
    inside = _inside(log, entries)
    if inside and _share(inside) >= SOME:
        return False
    if _leads_to_other_log(own, entries, files, are_inside=bool(inside)):
        return True
    return len(inside) >= ENTRIES_MIN and _are_of(log, own.base_offset, times)


def is_of_other_index(log: ReadOnlyFile, own: NamedLog, files: Files) -> bool:
    """Return whether the index of another segment here leads to the batches of a log.

    All entries that are asked do, and they are two at least. Raises: OSError.
    """
    directory = posixpath.dirname(own.path)
    others = (
        (posixpath.join(directory, name), known.base_offset)
        for name, known in folder_of(directory, files).kinds.items()
        if known.kind is NameKind.SEGMENT and known.suffix == ".index"
    )
    return any(
        _are_all_right(asked_entries(log, entries_in(path, base, files)))
        for path, base in others
        if base != own.base_offset
    )


def shares_of_entries(
    log: NamedLog, table: BatchTable, files: Files
) -> tuple[float | None, float | None]:
    """Return which part of the entries beside a log is right, of its offset and its time index.

    None for an index without entries. `table` has the batches of the log, with rising offsets. A
    single wrong bit leaves one of both as it was. Raises: OSError.
    """
    index = log.path.removesuffix(".log")
    with closing(ReadableParts(files.open(log.path))) as file:
        asked = [*asked_entries(file, entries_in(f"{index}.index", log.base_offset, files))]
    times = blocks_at(f"{index}.timeindex", ".timeindex", files)
    return _share(asked) if asked else None, _time_share(table, log.base_offset, times)


def leads_to(path: str, directory: str, base_offset: int, files: Files) -> bool:
    """Return whether the offset index of a base offset leads to the batches of the log at a path.

    All entries that are asked do, and they are two at least.
    """
    index = posixpath.join(directory, segment_file_name(base_offset, ".index"))
    entries = entries_in(index, base_offset, files)
    try:
        with closing(files.open(path)) as log:
            return _are_all_right(asked_entries(log, entries))
    except (OSError, SegproofError):
        return False


def _are_all_right(asked: Iterable[Asked]) -> bool:
    """Return whether there are two entries at least, and all are right; the first wrong one ends
    the asking."""
    count = 0
    for one in asked:
        if not one.is_right:
            return False
        count += 1
    return count > 1


def shows_name(log: NamedLog, files: Files) -> bool:
    """Return whether the offset index beside a log was made under the name that the log has.

    Entries count from the name: under a lower one all are for offsets before their batches.
    """
    entries = entries_in(f"{log.path.removesuffix('.log')}.index", log.base_offset, files)
    try:
        with closing(files.open(log.path)) as file:
            asked = [*asked_entries(file, entries)]
    except (OSError, SegproofError):
        return False
    right = sum(one.batch is not None and one.batch.first <= one.offset for one in asked)
    return len(asked) > 1 and right >= MOST * len(asked)


def _leads_to_other_log(own: NamedLog, entries: Entries, files: Files, *, are_inside: bool) -> bool:
    """Return whether the entries of an offset index lead to batches of another log beside it.

    Its own index may have been copied here. Or it is the log of this index, under another name:
    that counts only if entries `are_inside` of the log here. A log that was cut before its first
    entry may have a copy under another name.
    """
    if len(entries.positions) < 2 or _are_alike(entries, own.base_offset):
        return False
    distances = entries.offsets - own.base_offset
    for other in _others(own, files):
        for base in (own.base_offset, other.base_offset)[not are_inside :]:
            try:
                with closing(files.open(other.path)) as file:
                    asked = [*asked_entries(file, Entries(distances + base, entries.positions))]
            except (OSError, SegproofError):
                break
            is_few = len(asked) < ENTRIES_MIN
            if all(one.is_right for one in asked) if is_few else _share(asked) >= MOST:
                return True
    return False


def _inside(log: ReadOnlyFile, entries: Entries) -> list[Asked]:
    """Return some entries that lead into a log."""
    size = log.size()
    is_inside = entries.positions < size
    within = Entries(entries.offsets[is_inside], entries.positions[is_inside])
    return [*asked_entries(log, within)]


def _share(asked: Sequence[Asked]) -> float:
    """Return which part of the entries leads to the batch of its offset, or to one before it.

    A follower writes several batches at once, with one entry for the last offset of all. The batch
    of the next entry has a later offset. A compressed message of magic 0 or 1 says its last offset
    only: so its own may be above that of the entry, but that of the entry before it is not.
    """
    fit, reached = 0, -1
    for one, following in zip_longest(asked, asked[1:]):
        batch, after = one.batch, None if following is None else following.batch
        if batch is None:
            continue
        is_after = batch.first <= one.offset or -1 < reached < one.offset
        fit += is_after and (after is None or one.offset < after.last)
        reached = batch.last
    return fit / max(1, len(asked))


def _are_alike(entries: Entries, base_offset: int) -> bool:
    """Return whether most entries are one and the same distance from the one before."""
    offsets = np.diff(entries.offsets[:STEPS_MAX], prepend=base_offset)
    positions = np.diff(entries.positions[:STEPS_MAX], prepend=0)
    steps = Counter(zip(offsets.tolist(), positions.tolist(), strict=True))
    return 2 * max(steps.values()) > len(offsets)


def _others(own: NamedLog, files: Files) -> Iterator[NamedLog]:
    """Yield the other logs in the directory of a log."""
    directory = posixpath.dirname(own.path)
    for name, known in folder_of(directory, files).kinds.items():
        path = posixpath.join(directory, name)
        if known.kind is NameKind.SEGMENT and known.suffix == ".log" and path != own.path:
            yield NamedLog(path, known.base_offset)


def _are_of(log: ReadOnlyFile, base_offset: int, times: Iterable[Block]) -> bool:
    """Return whether a log has every offset from its name on, and most time entries are of it."""
    table = read_batch_headers(log, 0, log.size()).table
    if not len(table) or not is_dense(table, base_offset):
        return False
    share = _time_share(table, base_offset, times)
    return share is not None and share >= MOST


def _time_share(table: BatchTable, base_offset: int, times: Iterable[Block]) -> float | None:
    """Return which part of the time entries a batch has; None without entries."""
    right = count = 0
    known, lasts = np.append(table["max_timestamp"], -1), table["last_offset"]
    for block in times:
        rows = np.searchsorted(lasts, block["offset"].astype(np.int64) + base_offset)
        count += len(block)
        right += int(np.count_nonzero(known[rows] == block["timestamp"]))
    return right / count if count else None
