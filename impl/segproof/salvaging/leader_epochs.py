# SPDX-License-Identifier: Apache-2.0
"""Leader epochs that the batches around them prove wrong.

No checksum covers the leader epoch of a batch. In a log epochs never fall, so a batch between two
of one epoch is of that epoch. In 5 9 5 9 5 that is said of three batches side by side, and they
contradict each other: then none of them is proved wrong. The first batch and the last one have one
neighbour: there `leader-epoch-checkpoint` must agree with it too, or the epoch falls, and the file
states a right one. A new leader may have begun after the file was written, so a last epoch that is
a little higher stays. A file that a broker has made of these very batches proves nothing. Then an
epoch that falls by one bit is wrong if the two batches beside it have one epoch.

Laws: EPOCH-1.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from segproof.files import File, Files
from segproof.kafka.batch_table import check_batches
from segproof.kafka.checkpoint_file import EpochEntry, LeaderEpochCheckpointFile
from segproof.layouts.kafka import BATCH
from segproof.reading.leader_epochs import readable_epochs

_EPOCH = BATCH["partition_leader_epoch"]
END_BATCHES = 3
"""Batches at an end that are compared: the last one, and two that agree against it."""
STALE_EPOCHS_MAX = 1 << 16
"""Leaders that may have begun without a batch since the epoch checkpoint was written, at most."""


def keep_leader_epochs(old: str, new: str, end_offset: int, files: Files) -> None:
    """Let a new checkpoint of epochs hold the old entries, if the kept batches agree with them.

    The batches do not tell an epoch in which nothing was written, such as the one after the last
    batch, nor where an epoch began before compaction. `end_offset` is the offset after the last
    batch. Raises: OSError for the new file.
    """
    made = LeaderEpochCheckpointFile(new, writable=True, files=files)
    by_batches = made.read()
    before = _rising_entries(old, files)
    if before is None:
        return  # as the batches say
    starts = {entry.epoch: entry.start_offset for entry in before}
    first = by_batches[0] if by_batches else EpochEntry(-1, end_offset)
    agrees = all(starts.get(one.epoch) == one.start_offset for one in by_batches[1:])
    agrees &= not by_batches or starts.get(first.epoch, end_offset) <= first.start_offset
    known = {entry.epoch for entry in by_batches}
    others = (entry for entry in before if entry.epoch not in known)
    is_outside = all(
        entry.epoch < first.epoch or entry.start_offset >= end_offset for entry in others
    )
    if agrees and is_outside and before != by_batches:
        made.write(before)


def _rising_entries(path: str, files: Files) -> list[EpochEntry] | None:
    """Return the entries of a checkpoint; None if it can't be read, or they contradict themselves.

    They do where an epoch or its first offset falls.
    """
    entries = readable_epochs(path, files)
    if entries is None:
        return None
    rises = all(
        one.epoch < other.epoch and one.start_offset <= other.start_offset
        for one, other in pairwise(entries)
    )
    return entries if rises else None


def restore_leader_epochs(
    paths: Sequence[str], checkpoint: str, last_epoch: int, do_rise: bool, files: Files
) -> int:
    """Write the right leader epoch where batches and the checkpoint prove it; return how often.

    `paths` are the logs of a partition in their order, `checkpoint` is its old file of epochs,
    `last_epoch` that of the last batch; `do_rise` says that none is below the one before it.
    Raises: OSError.
    """
    count = 0 if do_rise else _restore_between(paths, files)
    entries = _rising_entries(checkpoint, files) or []
    is_known = {_first_epoch(paths[0], files), last_epoch} <= {one.epoch for one in entries}
    if not do_rise or (entries and not is_known):
        count += _restore_ends(paths, entries, files)
    return count


def _restore_between(paths: Sequence[str], files: Files) -> int:
    """Restore the epochs of batches that lie between two others of one epoch."""
    odd = [*_odd_epochs(paths, files)]
    rows = {one.row for one in odd}
    wrong = [one for one in odd if rows.isdisjoint((one.row - 1, one.row + 1))]
    for path, places in groupby(wrong, key=attrgetter("path")):
        with closing(files.open(path, writable=True)) as log:
            for one in places:
                _write_epoch(log, one.position, one.epoch_around)
            log.sync()
    return len(wrong)


def _write_epoch(log: File, position: int, epoch: int) -> None:
    log.pwrite(epoch.to_bytes(4, "big", signed=True), position + _EPOCH.place)


def _first_epoch(path: str, files: Files) -> int:
    with closing(files.open(path)) as log:
        return _EPOCH.read(log)


def _restore_ends(paths: Sequence[str], entries: Sequence[EpochEntry], files: Files) -> int:
    """Restore the epoch of the first batch and of the last one, where it is known."""
    ends = _end_batches(paths, files, from_end=False), _end_batches(paths, files)[::-1]
    if min(map(len, ends)) < 2:
        return 0
    known = entries if entries and not _are_made_of(paths, entries, files) else ()
    count = 0
    for one, *beside in ends:
        epoch = _stated_epoch(one, beside[0], known)
        epoch = _agreed_epoch(one, beside) if epoch is None else epoch
        if epoch not in (None, one.epoch):
            with closing(files.open(one.path, writable=True)) as log:
                _write_epoch(log, one.position, epoch)
                log.sync()
            count += 1
    return count


def _are_made_of(paths: Sequence[str], entries: Sequence[EpochEntry], files: Files) -> bool:
    """Return whether a broker that loads the logs makes these entries of their batches."""
    made, reached = list[tuple[int, int]](), -1
    for path in paths:
        with closing(files.open(path)) as log:
            for table in check_batches(log).tables():
                new = table[table["magic"] == 2]
                epochs = np.maximum.accumulate(np.append(reached, new["partition_leader_epoch"]))
                begins = np.flatnonzero(epochs[1:] > epochs[:-1])
                firsts = new["base_offset"][begins].tolist()
                made += zip(epochs[begins + 1].tolist(), firsts, strict=True)
                reached = int(epochs[-1])
    return made == [(one.epoch, one.start_offset) for one in entries]


class _Batch(NamedTuple):
    path: str
    position: int
    offset: int
    epoch: int


def _falls(one: _Batch, beside: _Batch) -> bool:
    """Return whether the epoch falls between a batch at an end and the one beside it."""
    before, after = sorted((one, beside), key=attrgetter("offset"))
    return before.epoch > after.epoch


def _stated_epoch(one: _Batch, beside: _Batch, entries: Sequence[EpochEntry]) -> int | None:
    """Return the epoch that the checkpoint proves for a batch at an end; None if it proves none."""
    begun = [entry for entry in entries if entry.start_offset <= one.offset]
    if not begun:
        return None
    epoch = begun[-1].epoch
    if epoch != beside.epoch:
        is_proved = _falls(one, beside) and not _falls(one._replace(epoch=epoch), beside)
        return epoch if is_proved else None
    is_latest = one.offset > beside.offset and len(begun) == len(entries)
    may_be_later = is_latest and epoch <= one.epoch <= epoch + STALE_EPOCHS_MAX
    return None if may_be_later else epoch


def _agreed_epoch(one: _Batch, beside: Sequence[_Batch]) -> int | None:
    """Return the epoch that the two batches beside a first or last batch share, where it is proved.

    It is, if the epoch falls there, and that batch has no epoch or one that differs in one bit.
    """
    epochs = {other.epoch for other in beside}
    if len(beside) < END_BATCHES - 1 or len(epochs) > 1 or not _falls(one, beside[0]):
        return None
    (epoch,) = epochs
    return epoch if one.epoch < 0 or (one.epoch ^ epoch).bit_count() == 1 else None


def _end_batches(paths: Sequence[str], files: Files, *, from_end: bool = True) -> list[_Batch]:
    """Return the first or the last END_BATCHES batches, in their order, without older magics."""
    found = list[_Batch]()
    for path in reversed(paths) if from_end else paths:
        with closing(files.open(path)) as log:
            new, is_old = list[_Batch](), False
            for table in check_batches(log).tables():
                rows = table[-END_BATCHES:] if from_end else table[:END_BATCHES]
                olds = np.flatnonzero(rows["magic"] != 2)
                is_old |= len(olds) > 0
                if len(olds):
                    new = new if not from_end else []
                    rows = rows[olds[-1] + 1 :] if from_end else rows[: olds[0]]
                new += [
                    _Batch(path, int(row["position"]), int(row["base_offset"]),
                           int(row["partition_leader_epoch"]))
                    for row in rows
                ]  # fmt: skip
                if from_end:
                    new = new[-END_BATCHES:]
                elif is_old or len(new) >= END_BATCHES:
                    break
        found = [*new, *found][-END_BATCHES:] if from_end else [*found, *new][:END_BATCHES]
        if is_old or len(found) == END_BATCHES:
            break
    return found


class _OddEpoch(NamedTuple):
    """A batch whose epoch is not the one that both batches around it have."""

    row: int
    """How many batches of magic 2 the partition has before it."""
    path: str
    position: int
    epoch_around: int


def _odd_epochs(paths: Sequence[str], files: Files) -> Iterator[_OddEpoch]:
    held = np.empty(0, np.int64), np.empty(0, np.int64)
    held_paths = list[str]()
    count = 0
    for path in paths:
        with closing(files.open(path)) as log:
            for table in check_batches(log).tables():
                new = table[table["magic"] == 2]
                positions = np.concatenate([held[0], new["position"]])
                epochs = np.concatenate([held[1], new["partition_leader_epoch"]])
                is_odd = (epochs[:-2] == epochs[2:]) & (epochs[1:-1] != epochs[2:])
                for row in (np.flatnonzero(is_odd) + 1).tolist():
                    own = held_paths[row] if row < len(held_paths) else path
                    number = count - len(held_paths) + row
                    yield _OddEpoch(number, own, int(positions[row]), int(epochs[row + 1]))
                count += len(new)
                held_paths = [*held_paths, *[path] * min(2, len(new))][-2:]
                held = positions[-2:], epochs[-2:]
