# SPDX-License-Identifier: Apache-2.0
"""The leader epochs of a log: at which offset each began.

Upstream: Kafka 4.4.0, LeaderEpochFileCache. Otherwise: epoch_releases.
Layout: the file is a checkpoint with the entries `epoch startOffset`, see checkpoint_file.
Laws: EPOCH-1 to EPOCH-11.
Not covered: a directory that is gone when the scheduled write runs.
"""

from segproof_model.kafka.broker.checkpoint_file import (
    CheckpointFile,
    EpochEntry,
    LeaderEpochCheckpointFile,
)
from segproof_model.language.files import Files
from segproof_model.language.integers import INT32_MAX, INT64_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refuse

UNDEFINED = (-1, -1)
Entries = tuple[EpochEntry, ...]


class LeaderEpochFileCache(State):
    """A leader epoch cache.

    >>> cache = LeaderEpochFileCache(Files(), "leader-epoch-checkpoint")
    >>> cache.assign(1, 0)
    >>> cache.assign(4, 30)
    >>> cache.end_offset_for(2, 50), cache.end_offset_for(4, 50), cache.epoch_for_offset(29)
    ((1, 30), (4, 50), 1)
    """

    def __init__(self, files: Files, name: str | None) -> None:
        """Read the file; a missing one is made, empty (EPOCH-1). Without a name there is none."""
        self.files = files
        self.entries: Entries = ()
        self.is_write_pending = False
        """Whether a truncation has scheduled a write that has not run; no other write cancels
        it."""
        self.checkpoint: LeaderEpochCheckpointFile | None = None
        if name is not None:
            self.checkpoint = self.kind(LeaderEpochCheckpointFile)(files, name)
            self.load(self.checkpoint)

    def load(self, checkpoint: CheckpointFile) -> None:
        """Enter what the file says."""
        for entry in checkpoint.read():
            self.enter(entry)

    # --- what changes it -----------------------------------------------------------------------

    def assign(self, leader_epoch: int, start_offset: int) -> None:
        """Let the epoch begin at the offset (EPOCH-2 to EPOCH-4, EPOCH-11)."""
        if self.enter(EpochEntry(leader_epoch, start_offset)):
            self.write()

    def enter(self, entry: EpochEntry) -> bool:
        """Add an entry, unless it is known, in place of those that are not before it."""
        self.check(entry)
        latest = self.latest_entry()
        if latest and entry.epoch == latest.epoch and entry.start_offset >= latest.start_offset:
            return False
        before = [
            known
            for known in self.entries
            if known.epoch < entry.epoch and known.start_offset < entry.start_offset
        ]
        self.entries = (*before, entry)
        return True

    def check(self, entry: EpochEntry) -> None:
        """Refuse what is no epoch, or no offset (EPOCH-2)."""
        if not (0 <= entry.epoch <= INT32_MAX and 0 <= entry.start_offset <= INT64_MAX):
            refuse(ErrorKind.INVALID_ARGUMENT)

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the entries that begin at the offset or behind it (EPOCH-8, EPOCH-11)."""
        latest = self.latest_entry()
        if latest and 0 <= end_offset <= latest.start_offset:
            self.truncate_to(without_end(self.entries, end_offset))

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the first entry begin at the offset, the earlier ones dropped (EPOCH-9, EPOCH-11)."""
        if self.epoch_for_offset(start_offset) is not None:
            self.truncate_to(without_start(self.entries, start_offset))

    def truncate_to(self, entries: Entries) -> None:
        """Keep these entries, and schedule the write of the file."""
        self.entries = entries
        self.is_write_pending = self.checkpoint is not None

    def run_scheduled_write(self) -> None:
        """Do what a truncation has scheduled (EPOCH-11)."""
        if self.is_write_pending:
            self.is_write_pending = False
            self.write()

    def clear(self) -> None:
        """Forget every entry; the file stays as it is."""
        self.entries = ()

    def clear_and_flush(self) -> None:
        """Forget every entry, in the file too."""
        self.clear()
        self.write()

    def write(self) -> None:
        """Let the file, if there is one, hold the entries."""
        if self.checkpoint is not None:
            self.checkpoint.write(self.entries)

    # --- what is asked of it -------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the exact bytes of the file; empty for a missing file."""
        return b"" if self.checkpoint is None else self.files.image(self.checkpoint.name)

    def epoch_entries(self) -> list[EpochEntry]:
        """Return every entry, the earliest first."""
        return list(self.entries)

    def latest_entry(self) -> EpochEntry | None:
        """Return the last entry."""
        return self.entries[-1] if self.entries else None

    def earliest_entry(self) -> EpochEntry | None:
        """Return the first entry."""
        return self.entries[0] if self.entries else None

    def latest_epoch(self) -> int | None:
        """Return the epoch of the last entry."""
        return self.entries[-1].epoch if self.entries else None

    def previous_epoch(self) -> int | None:
        """Return the epoch before the latest one."""
        return self.entries[-2].epoch if len(self.entries) > 1 else None

    def previous_epoch_before(self, epoch: int) -> int | None:
        """Return the greatest epoch below this one."""
        return max((entry.epoch for entry in self.entries if entry.epoch < epoch), default=None)

    def next_epoch(self, epoch: int) -> int | None:
        """Return the smallest epoch above this one."""
        return min((entry.epoch for entry in self.entries if entry.epoch > epoch), default=None)

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the greatest epoch up to the requested one, and where it ended, exclusive.

        (EPOCH-5 to EPOCH-7)
        """
        if requested_epoch == -1:
            return UNDEFINED
        if requested_epoch == self.latest_epoch():
            return requested_epoch, log_end_offset
        higher = [entry for entry in self.entries if entry.epoch > requested_epoch]
        others = [entry for entry in self.entries if entry.epoch <= requested_epoch]
        if not higher:
            return UNDEFINED
        epoch = others[-1].epoch if others else requested_epoch
        return epoch, higher[0].start_offset

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch in which the offset was written (EPOCH-10)."""
        before = [entry for entry in self.entries if entry.start_offset <= offset]
        return before[-1].epoch if before else None

    def epoch_entries_in_range(self, start_offset: int, end_offset: int) -> list[EpochEntry]:
        """Return the entries of the offsets from `start_offset` up to `end_offset`, exclusive.

        The first one begins at `start_offset`; a negative one, or end, cuts nothing.
        """
        kept = self.entries
        if start_offset >= 0:
            kept = without_start(kept, start_offset)
        return list(kept if end_offset < 0 else without_end(kept, end_offset))


def without_end(entries: Entries, end_offset: int) -> Entries:
    """Return the entries that begin before the offset (EPOCH-8)."""
    return tuple(entry for entry in entries if entry.start_offset < end_offset)


def without_start(entries: Entries, start_offset: int) -> Entries:
    """Return the entries behind the offset, after the last other one, moved to it (EPOCH-9)."""
    before = [entry for entry in entries if entry.start_offset <= start_offset]
    moved = [EpochEntry(before[-1].epoch, start_offset)] if before else []
    return (*moved, *(entry for entry in entries if entry.start_offset > start_offset))
