# SPDX-License-Identifier: Apache-2.0
"""Producers that only the old snapshots of a partition know.

The batches of a producer expire with segments, and its entry stays in the snapshots: there a broker
finds it after a start, and takes a retry of its last batch for what it is. So the new snapshots get
the entries of the old ones that the kept log does not contradict.

Upstream: Kafka 4.3.1: UnifiedLog.rebuildProducerState, ProducerStateManager.truncateAndReload.
Laws: PROD-3, PROD-14.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from segproof.files import Files
from segproof.integers import INT32_MAX
from segproof.inventory.partitions import Partition
from segproof.inventory.small_files import last_offset, parse_producers
from segproof.kafka.batch_table import CONTROL, check_batches
from segproof.kafka.producer_snapshot import (
    ProducerStateEntry,
    read_snapshot_file,
    write_snapshot_file,
)
from segproof.reading.file_names import SNAPSHOT_SUFFIX, read_file_name
from segproof.salvaging.salvaged_partition import SalvagedPartition

Entries = Mapping[int, ProducerStateEntry]
"""By producer id."""


class _Batch(NamedTuple):
    """A batch of a producer in the kept log."""

    last_offset: int
    last_seq: int
    is_marker: bool


Batches = dict[int, list[_Batch]]
"""By producer id, in the order of the log."""


def keep_producers(
    partition: Partition, told: SalvagedPartition, logs: Sequence[str], files: Files
) -> None:
    """Add to the new snapshots the entries of old ones that the kept log does not contradict.

    `logs` are the new logs in order. Each new snapshot gets those of the newest sound old one that
    is not of a later offset. Raises: OSError for the new directory.
    """
    old = dict(sound_snapshots(partition, told.last_offset + 1, files))
    made = dict(new_snapshots(told, files))
    asked = {
        offset: (source, {one: old[source][one] for one in old[source] if one not in made[offset]})
        for offset in made
        if (source := max((one for one in old if one <= offset), default=-1)) >= 0
    }
    ids = {one for _, absent in asked.values() for one in absent}
    batches = _batches_of(ids, logs, files) if ids else {}
    for offset, (source, absent) in asked.items():
        if source == offset and not _agree(old[source], made[offset]):
            continue
        kept = [_kept(one, batches, source, offset, told) for one in absent.values()]
        if _Contradiction in map(type, kept):
            continue
        added = {one.producer_id: one for one in kept if isinstance(one, ProducerStateEntry)}
        if added:
            path = f"{told.target}/{offset:020d}{SNAPSHOT_SUFFIX}"
            all_of_them = {**made[offset], **added}
            entries = (all_of_them[one] for one in sorted(all_of_them))
            write_snapshot_file(path, entries, files=files)


class _Contradiction:
    """An entry for a batch that is another one in the kept log."""


def _kept(
    entry: ProducerStateEntry, batches: Batches, source: int, offset: int, told: SalvagedPartition
) -> ProducerStateEntry | _Contradiction | None:
    """Return what of an entry of the old snapshot `source` belongs into the new one of `offset`.

    None if the log goes on with this producer, or has lost its last batch.
    """
    own = [one for one in batches.get(entry.producer_id, ()) if one.last_offset < offset]
    if any(one.last_offset >= source for one in own):
        return None  # what came later has expired, by its own time
    if entry.last_offset >= told.first_offset:
        data = [one for one in own if not one.is_marker]
        if not data or data[-1].last_offset != entry.last_offset:
            return None
        if data[-1].last_seq != entry.last_seq:
            return _Contradiction()
    is_whole = not (told.gap_count or told.lost_offsets or told.unproven_offsets)
    # The marker that ends the transaction may be among what is lost.
    return entry if is_whole else replace(entry, current_txn_first_offset=None)


def _agree(old: Entries, made: Entries) -> bool:
    """Return whether no entry of an old snapshot contradicts what the kept log says."""
    for one in made.values():
        before = old.get(one.producer_id)
        if before is None or before.last_offset > one.last_offset:
            continue  # it expired, or its last batch is lost
        if (before.last_offset, before.last_seq) != (one.last_offset, one.last_seq):
            return False
    return True


def sound_snapshots(
    partition: Partition, end_offset: int, files: Files
) -> Iterator[tuple[int, Entries]]:
    """Yield offset and entries of each old snapshot in which nothing is wrong."""
    for name in partition.others:
        known = read_file_name(name)
        if known.suffix != SNAPSHOT_SUFFIX or known.base_offset > end_offset:
            continue
        entries = parse_producers(partition.path(name), files).content
        if entries is not None and all(last_offset(one) < known.base_offset for one in entries):
            yield known.base_offset, {one.producer_id: one for one in entries}


def new_snapshots(told: SalvagedPartition, files: Files) -> Iterator[tuple[int, Entries]]:
    """Yield offset and entries of each snapshot that the salvage has made."""
    assert told.target is not None
    for name in sorted(files.list_directory(told.target)):
        known = read_file_name(name)
        if known.suffix == SNAPSHOT_SUFFIX:
            entries = read_snapshot_file(f"{told.target}/{name}", files=files)
            yield known.base_offset, {one.producer_id: one for one in entries}


def _batches_of(ids: Collection[int], logs: Sequence[str], files: Files) -> Batches:
    """Return the batches of these producers in the kept log."""
    wanted, found = np.array(sorted(ids), np.int64), Batches()
    for path in logs:
        with closing(files.open(path)) as file:
            for table in check_batches(file).tables():
                rows = table[(table["magic"] == 2) & np.isin(table["producer_id"], wanted)]
                deltas = rows["last_offset_delta"].astype(np.int64)
                last = (rows["base_sequence"].astype(np.int64) + deltas) & INT32_MAX
                columns = (
                    rows["producer_id"], rows["last_offset"], last,
                    rows["attributes"] & CONTROL != 0,
                )  # fmt: skip
                for producer_id, *told in zip(*(one.tolist() for one in columns), strict=True):
                    found.setdefault(producer_id, []).append(_Batch(*told))
    return found
