# SPDX-License-Identifier: Apache-2.0
"""Batches of a `.swap` log that are not made of the logs whose place it takes.

The cleaner and the splitting of a segment add no record. The cleaner copies a batch as it is, or
writes it again with fewer records: its offsets, producer and sequence stay, and each record that is
left keeps its offset, timestamp, key, value and headers. Codec, delete horizon and checksum may be
others. So a batch that the old logs lack, or have with other records, is of another log. One whose
records an old batch has at other offsets is not: no checksum covers a base offset, and one of the
two is damaged. A log that counts otherwise has more than one such batch, all as far away.

Upstream: Kafka 4.3.1: MemoryRecords.buildRetainedRecordsInto, DefaultRecordBatch.writeEmptyHeader.
Law: DISK-60.
Not covered: batches with offsets that no old log reaches before its first damage; those of a later
    magic than the old ones, which a release may write; records whose codec is not installed, or in
    batches of more than MAX_BATCH_BYTES.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from typing import NamedTuple

import numpy as np

from segproof.errors import SegproofError
from segproof.files import Files, ReadOnlyFile
from segproof.kafka.batch_table import MAX_BATCH_BYTES, BatchScan, BatchTable
from segproof.kafka.record import RecordColumns
from segproof.kafka.record_batch import RecordBatch

_KEPT_FIELDS = ("base_offset", "last_offset", "producer_id", "producer_epoch", "base_sequence")
"""What a batch of magic 2 keeps when it is written again."""


class ForeignBatch(NamedTuple):
    """A batch of a `.swap` log that is not made of a batch of an old log with its offsets."""

    first: int
    last: int
    shift: int = 0
    """How far its offsets are above those of the old batch that has its records; 0: none has."""


def foreign_batches(
    path: str, logs: Iterable[tuple[int, str]], files: Files
) -> dict[int, ForeignBatch]:
    """Return for each log the first batch of a `.swap` log that is not made of the log's batches.

    `logs` are the old logs: base offsets with paths. The answer has base offsets of logs. One with
    a shift is named only where no other is found. A log that can't be read has none.
    Cost: each log is read once, and the records of batches that were written again. Memory: the
    tables of some thousand batches, and two batches.
    """
    found: dict[int, ForeignBatch] = {}
    with ExitStack() as stack, suppress(OSError, SegproofError):
        swap = stack.enter_context(closing(files.open(path)))
        tables = _sound_tables(swap)
        table = next(tables, None)
        for base, old in sorted(logs):
            if table is None:
                break
            with suppress(OSError, SegproofError), closing(files.open(old)) as file:
                least = base
                for origins in _sound_tables(file):
                    greatest = int(origins["last_offset"][-1])
                    while table is not None:
                        lasts = table["last_offset"]
                        rows = table[(lasts >= least) & (lasts <= greatest)]
                        if len(rows) and (base not in found or found[base].shift):
                            one = _first_foreign(rows, swap, origins, file)
                            if one is not None and (base not in found or not one.shift):
                                found[base] = one
                        if lasts[-1] > greatest:
                            break
                        table = next(tables, None)
                    least = greatest + 1
    return found


def _sound_tables(file: ReadOnlyFile) -> Iterator[BatchTable]:
    """Yield the batches before the first with a wrong checksum, or whose last offset falls."""
    reached = -1
    for checked in BatchScan(file, 0, file.size(), deep=False):
        lasts = checked.table["last_offset"]
        is_good = checked.crc_valid & (lasts > np.concatenate(([reached], lasts[:-1])))
        bad = np.flatnonzero(~is_good)
        table = checked.table[: bad[0]] if len(bad) else checked.table
        if len(table):
            yield table
            reached = int(table["last_offset"][-1])
        if len(bad):
            return


def _first_foreign(
    rows: BatchTable, swap: ReadOnlyFile, origins: BatchTable, file: ReadOnlyFile
) -> ForeignBatch | None:
    """Return the first batch that is made of none of the `origins`, or None.

    These reach the last offset of each of `rows`. One with a shift is returned only without others.
    What leads into an old batch that has another place is not compared: it may lie behind that.
    """
    places = np.searchsorted(origins["last_offset"], rows["last_offset"])
    olds = origins[places]
    is_new = rows["magic"] == 2
    is_other = rows["magic"] < olds["magic"]
    is_converted = rows["magic"] > olds["magic"]
    for name in _KEPT_FIELDS:
        is_other |= is_new & ~is_converted & (rows[name] != olds[name])
    is_same = ~is_other
    for name in ("base_offset", "size_bytes", "crc"):
        is_same &= rows[name] == olds[name]
    shifted: dict[int, ForeignBatch] = {}
    shifts: set[int] = set()
    for at in np.flatnonzero(~is_same & ~is_converted):
        row, old, place = rows[at], olds[at], int(places[at])
        if place in shifted or not (
            is_other[at] or not _has_records_of(_records(swap, row), _records(file, old))
        ):
            continue
        last = int(row["last_offset"])
        one = ForeignBatch(min(int(row["base_offset"]), last), last)
        moved = [
            other
            for other in (place, place - 1)
            if other >= 0
            and origins["last_offset"][other] not in rows["last_offset"]
            and _is_moved(row, swap, origins[other], file)
        ]
        shift = last - int(origins["last_offset"][moved[0]]) if moved else 0
        if not shift or shift in shifts:
            return one
        shifted[moved[0]] = one._replace(shift=shift)
        shifts.add(shift)
    return next(iter(shifted.values()), None)


def _is_moved(row: np.void, swap: ReadOnlyFile, old: np.void, file: ReadOnlyFile) -> bool:
    """Return whether a batch is made of one whose offsets are all as far away from its own."""
    shift = int(row["last_offset"]) - int(old["last_offset"])
    names = ("magic", *_KEPT_FIELDS[2:])
    if any(row[name] != old[name] for name in names):
        return False
    if int(row["base_offset"]) - int(old["base_offset"]) != shift:
        return False
    if row["size_bytes"] == old["size_bytes"] and row["crc"] == old["crc"]:
        return True
    new, before = _records(swap, row), _records(file, old)
    if new is None or before is None or not len(new):
        return False
    return _has_records_of(new, before, shift)


def _records(file: ReadOnlyFile, row: np.void) -> RecordColumns | None:
    """Return the records of a batch; None if they can't be read."""
    position, size, magic = (int(row[name]) for name in ("position", "size_bytes", "magic"))
    if size > MAX_BATCH_BYTES:
        return None
    with suppress(SegproofError):
        batch = RecordBatch(file, position, size, magic, in_file=True)
        return batch.record_columns(limit=MAX_BATCH_BYTES)
    return None


def _has_records_of(new: RecordColumns | None, old: RecordColumns | None, shift: int = 0) -> bool:
    """Return whether each record of `new` is in `old`; also if one of the two can't be read.

    `shift` is how far the offsets of `new` are above those of `old`.
    """
    if new is None or old is None or not len(new):
        return True
    offsets = new.offsets - shift
    at = np.searchsorted(old.offsets, offsets)
    if at.max() >= len(old):
        return False
    pairs = (
        (offsets, old.offsets),
        (new.timestamps, old.timestamps),
        (new.key_lengths, old.key_lengths),
        (new.value_lengths, old.value_lengths),
        (new.header_counts, old.header_counts),
    )
    if any(bool(np.any(ours != theirs[at])) for ours, theirs in pairs):
        return False
    fields = (
        (new.key_positions, old.key_positions, new.key_lengths),
        (new.value_positions, old.value_positions, new.value_lengths),
    )
    for ours, theirs, lengths in fields:
        places = zip(ours.tolist(), theirs[at].tolist(), lengths.tolist(), strict=True)
        if any(
            length > 0 and new.data[one : one + length] != old.data[two : two + length]
            for one, two, length in places
        ):
            return False
    counts = np.flatnonzero(new.header_counts).tolist()
    return all(new.headers(row) == old.headers(int(at[row])) for row in counts)
