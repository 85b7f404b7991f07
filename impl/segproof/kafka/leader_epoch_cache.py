# SPDX-License-Identifier: Apache-2.0
"""The leader epochs of a log: at which offset each began.

Upstream: Kafka, LeaderEpochFileCache (4.3.1).
Layout: the file is a checkpoint with the entries `epoch startOffset`, see checkpoint_file.
Laws: EPOCH-1 to EPOCH-11.
Not covered: writing later, as Kafka does after a truncation since 3.8; here each change is in the
    file when the call returns, `clear` apart.
"""

import os
from collections.abc import Iterable, Sequence
from operator import index as to_int
from typing import Self

from segproof.counts import plural
from segproof.files import REAL_FILES, Files
from segproof.integers import INT32_MAX, in_range
from segproof.kafka.checkpoint_file import EpochEntry, LeaderEpochCheckpointFile
from segproof.kernels.epochs import end_offset, kept_by_assign, kept_from_end, last_not_behind

Entries = tuple[EpochEntry, ...]


class LeaderEpochFileCache:
    """The leader epochs of one log, kept in `leader-epoch-checkpoint`.

    Made by `open` or `in_memory`. One thread may change it while others ask: the entries are one
    tuple, replaced as a whole once the file holds them.
    """

    def __init__(self, checkpoint: LeaderEpochCheckpointFile | None) -> None:
        self._checkpoint = checkpoint
        entries: list[EpochEntry] = []
        for entry in checkpoint.read() if checkpoint is not None else ():
            self._assign_to(entries, entry)
        self._entries: Entries = tuple(entries)

    @classmethod
    def open(
        cls,
        file: str | os.PathLike[str],
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
    ) -> Self:
        """Read the file.

        Without `writable` a change raises ReadOnlyFileError. With `writable=True` the file follows
        each change; with `create=True` it is writable, and a missing one is made, empty. What
        conflicts with a later entry is dropped, in memory only.
        Laws: EPOCH-1.
        Raises: OSError, CorruptCheckpointError and NumberFormatError where the file cannot be
        read; InvalidArgumentError for a negative number in it.
        """
        return cls(LeaderEpochCheckpointFile(file, writable=writable, create=create, files=files))

    @classmethod
    def in_memory(cls) -> Self:
        """Return an empty cache without a file."""
        return cls(None)

    @property
    def file(self) -> str | None:
        """The path, if there is a file."""
        return None if self._checkpoint is None else self._checkpoint.file

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"LeaderEpochFileCache({self.file!r}, {plural(len(self), 'entry')})"

    # --- what changes it -------------------------------------------------------------------

    def assign(self, leader_epoch: int, start_offset: int) -> None:
        """Let the epoch begin at the offset; entries that conflict with it are dropped.

        Nothing happens for the latest epoch at its start or behind it.
        Laws: EPOCH-2, EPOCH-3, EPOCH-4, EPOCH-11.
        Raises: InvalidArgumentError for a negative number or one of too many bits; OSError.
        """
        entry = EpochEntry(to_int(leader_epoch), to_int(start_offset))
        kept = self._kept_by_assign(self._entries, entry)
        if kept >= 0:
            self._replace((*self._entries[:kept], entry))

    def assign_all(self, begins: Iterable[tuple[int, int]]) -> None:
        """Assign epochs with their start offsets, one after the other; the file is written once.

        Raises: as `assign`; what stands before the refused one is assigned then.
        """
        entries, is_changed = list(self._entries), False
        try:
            for leader_epoch, start_offset in begins:
                entry = EpochEntry(to_int(leader_epoch), to_int(start_offset))
                is_changed |= self._assign_to(entries, entry)
        finally:
            if is_changed:
                self._replace(tuple(entries))

    def _assign_to(self, entries: list[EpochEntry], entry: EpochEntry) -> bool:
        """Assign one entry in a list; return whether that changes it."""
        kept = self._kept_by_assign(entries, entry)
        if kept >= 0:
            entries[kept:] = [entry]
        return kept >= 0

    def _kept_by_assign(self, entries: Sequence[EpochEntry], entry: EpochEntry) -> int:
        """Return how many entries stay before this one, or -1 where it changes nothing."""
        in_range(entry.epoch, "an epoch", 0, INT32_MAX, law="EPOCH-2", path=self.file)
        in_range(entry.start_offset, "a start offset", 0, law="EPOCH-2", path=self.file)
        return kept_by_assign(entries, *entry)

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the entries that begin at the offset or behind it; a negative one drops none.

        Laws: EPOCH-8, EPOCH-11.
        Raises: OSError.
        """
        kept = kept_from_end(self._entries, to_int(end_offset))
        if kept < len(self._entries):
            self._replace(self._entries[:kept])

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the first entry begin at the offset, those before it dropped.

        Nothing happens where no entry begins at the offset or before it.
        Laws: EPOCH-9, EPOCH-11.
        Raises: OSError.
        """
        start_offset = to_int(start_offset)
        if last_not_behind(self._entries, start_offset) >= 0:
            self._replace(_without_start(self._entries, start_offset))

    def clear(self) -> None:
        """Forget every entry; the file stays as it is."""
        self._entries = ()

    def clear_and_flush(self) -> None:
        """Forget every entry, in the file too. Raises: OSError."""
        self._replace(())

    def _replace(self, entries: Entries) -> None:
        if self._checkpoint is not None:
            self._checkpoint.write(entries)
        self._entries = entries

    # --- what is asked of it ---------------------------------------------------------------

    @property
    def entries(self) -> Entries:
        """Every entry, the earliest first; a later change makes another tuple."""
        return self._entries

    def epoch_entries(self) -> list[EpochEntry]:
        """Return every entry, the earliest first."""
        return list(self._entries)

    def latest_entry(self) -> EpochEntry | None:
        """Return the last entry, or None."""
        return next(reversed(self._entries), None)

    def earliest_entry(self) -> EpochEntry | None:
        """Return the first entry, or None."""
        return next(iter(self._entries), None)

    def latest_epoch(self) -> int | None:
        """Return the epoch of the last entry, or None."""
        latest = self.latest_entry()
        return None if latest is None else latest.epoch

    def previous_epoch(self) -> int | None:
        """Return the epoch before the latest one, or None."""
        entries = self._entries
        return entries[-2].epoch if len(entries) > 1 else None

    def previous_epoch_before(self, epoch: int) -> int | None:
        """Return the greatest epoch below this one, or None."""
        epoch = to_int(epoch)
        return next((entry.epoch for entry in reversed(self._entries) if entry.epoch < epoch), None)

    def next_epoch(self, epoch: int) -> int | None:
        """Return the smallest epoch above this one, or None."""
        epoch = to_int(epoch)
        return next((entry.epoch for entry in self._entries if entry.epoch > epoch), None)

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the greatest epoch up to the requested one, and where it ended, exclusive.

        The latest epoch ends at `log_end_offset`. Below the first epoch the requested one is said
        to end where the first begins. (-1, -1) for -1 and for what is above the latest.
        Laws: EPOCH-5, EPOCH-6, EPOCH-7.
        """
        return end_offset(self._entries, to_int(requested_epoch), to_int(log_end_offset))

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch in which the offset was written, or None below the first.

        Laws: EPOCH-10.
        """
        entries = self._entries
        place = last_not_behind(entries, to_int(offset))
        return None if place < 0 else entries[place].epoch

    def epoch_entries_in_range(self, start_offset: int, end_offset: int) -> list[EpochEntry]:
        """Return the entries of the offsets from `start_offset` up to `end_offset`, exclusive.

        The first one begins at `start_offset`; a negative one, or end, cuts nothing.
        """
        start_offset = to_int(start_offset)
        kept = self._entries if start_offset < 0 else _without_start(self._entries, start_offset)
        return list(kept[: kept_from_end(kept, to_int(end_offset))])


def _without_start(entries: Entries, start_offset: int) -> Entries:
    """Return those behind the offset, before them the last other one, moved to it (EPOCH-9)."""
    place = last_not_behind(entries, start_offset)
    if place < 0:
        return entries
    return (EpochEntry(entries[place].epoch, start_offset), *entries[place + 1 :])
