# SPDX-License-Identifier: Apache-2.0
"""The leader epochs of a log: at which offset each began.

Mirrors: impl/segproof/kafka/leader_epoch_cache.py.
Upstream: Kafka, LeaderEpochFileCache (since 1.1.1).
Layout: the file is a checkpoint with the entries `epoch startOffset`, see checkpoint_file.
Laws: EPOCH-1 to EPOCH-11.
Not covered: a directory that is gone when the scheduled write runs. Up to 1.1 a negative epoch is
    an assertion there and the invalid-argument error here, and end_offset_for answers the offset
    alone, which here stands beside the requested epoch.
Used by: log_segment, partition_log, the harness.
"""

from dataclasses import dataclass
from typing import Self

from segproof_model.directory import Directory
from segproof_model.kafka.checkpoint_file import (
    CURRENT_VERSION,
    EPOCH_FORMATTER,
    EpochEntry,
    LeaderEpochCheckpointFile,
)
from segproof_model.language.integers import INT32_MAX, INT64_MAX
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
UNDEFINED = (-1, -1)
Entries = tuple[EpochEntry, ...]


@dataclass(frozen=True, slots=True)
class LeaderEpochFileCache:
    """The state of a leader epoch cache.

    >>> cache = LeaderEpochFileCache.open("leader-epoch-checkpoint").after
    >>> cache = cache.assign(1, 0).after.assign(4, 30).after
    >>> cache.end_offset_for(2, 50), cache.end_offset_for(4, 50), cache.epoch_for_offset(29)
    ((1, 30), (4, 50), 1)
    """

    profile: Profile
    name: str | None
    """The file; None where there is none."""
    directory: Directory
    entries: Entries = ()
    is_write_pending: bool = False
    """Whether a truncation has scheduled a write that has not run; no other write cancels it."""

    @classmethod
    def open(
        cls, file: str, *, directory: Directory = Directory(), profile: Profile = NEWEST_KAFKA
    ) -> "Step[LeaderEpochFileCache | Directory]":
        """Read the file; a missing one is made, empty (EPOCH-1).

        Where the entries can't be read or are refused, the state is the directory alone.
        """
        checkpoint = LeaderEpochCheckpointFile.open(
            file, CURRENT_VERSION, EPOCH_FORMATTER, directory=directory, profile=profile
        ).after
        entries = checkpoint.read()
        if isinstance(entries, Raised):
            return Step(checkpoint.directory, entries)
        cache = cls(profile, file, checkpoint.directory)
        if profile.epoch_rules != "2.7":
            return Step(replace(cache, entries=tuple(entries)))
        for entry in entries:
            if cache.is_refused(entry):
                return Step(checkpoint.directory, INVALID_ARGUMENT)
            cache = replace(cache, entries=cache.assigned(entry))
        return Step(cache)

    @classmethod
    def in_memory(cls, *, profile: Profile = NEWEST_KAFKA) -> "LeaderEpochFileCache":
        """Return an empty cache without a file."""
        return cls(profile, None, Directory())

    # --- what changes it -------------------------------------------------------------------

    def is_refused(self, entry: EpochEntry) -> bool:
        """Return whether the entry has a number that is none of an epoch or offset (EPOCH-2)."""
        if self.profile.epoch_rules != "2.7":
            return entry.epoch < 0
        return not (0 <= entry.epoch <= INT32_MAX and 0 <= entry.start_offset <= INT64_MAX)

    def is_needed(self, entry: EpochEntry) -> bool:
        """Return whether assigning the entry changes something (EPOCH-3)."""
        if not self.entries:
            return True
        latest = self.entries[-1]
        if self.profile.epoch_rules == "1.1":
            return entry.epoch > latest.epoch and entry.start_offset >= latest.start_offset
        return entry.epoch != latest.epoch or entry.start_offset < latest.start_offset

    def assigned(self, entry: EpochEntry) -> Entries:
        """Return the entries once this one is assigned (EPOCH-3, EPOCH-4)."""
        if not self.is_needed(entry):
            return self.entries
        if self.profile.epoch_rules == "1.1":
            return (*self.entries, entry)
        before = [
            known
            for known in self.entries
            if known.epoch < entry.epoch and known.start_offset < entry.start_offset
        ]
        return (*before, entry)

    def assign(self, leader_epoch: int, start_offset: int) -> Step[Self]:
        """Let the epoch begin at the offset (EPOCH-2 to EPOCH-4, EPOCH-11)."""
        entry = EpochEntry(leader_epoch, start_offset)
        if self.is_refused(entry):
            return Step(self, INVALID_ARGUMENT)
        if not self.is_needed(entry):
            return Step(self)
        return Step(replace(self, entries=self.assigned(entry)).written())

    def truncate_from_end(self, end_offset: int) -> Step[Self]:
        """Drop the entries that begin at the offset or behind it (EPOCH-8, EPOCH-11)."""
        if end_offset < 0 or not self.entries or self.entries[-1].start_offset < end_offset:
            return Step(self)
        return Step(self._truncated(without_end(self.entries, end_offset)))

    def truncate_from_start(self, start_offset: int) -> Step[Self]:
        """Let the first entry begin at the offset, the earlier ones dropped (EPOCH-9, EPOCH-11)."""
        before = [entry for entry in self.entries if entry.start_offset <= start_offset]
        is_old = self.profile.epoch_rules == "1.1"
        if is_old:
            before = [entry for entry in before if entry.start_offset < start_offset]
        # Old rules look at the first entry alone, be the others in order or not.
        if not before or (is_old and before[0] != self.entries[0]):
            return Step(self)
        kept = without_start(self.entries, start_offset)
        if is_old:
            kept = tuple(entry for entry in self.entries if entry.start_offset >= start_offset)
            if not kept or start_offset < kept[0].start_offset:
                kept = (EpochEntry(before[-1].epoch, start_offset), *kept)
        return Step(self._truncated(kept))

    def clear(self) -> Step[Self]:
        """Forget every entry; the file stays as it is."""
        return Step(replace(self, entries=()))

    def clear_and_flush(self) -> Step[Self]:
        """Forget every entry, in the file too."""
        return Step(replace(self, entries=()).written())

    def run_scheduled_write(self) -> Step[Self]:
        """Do what a truncation has scheduled, where releases schedule it (EPOCH-11)."""
        if not self.is_write_pending:
            return Step(self)
        return Step(replace(self, is_write_pending=False).written())

    def written(self) -> Self:
        """Return the state once the file holds the entries."""
        if self.name is None:
            return self
        file = LeaderEpochCheckpointFile(
            self.profile, self.name, CURRENT_VERSION, EPOCH_FORMATTER, self.directory
        )
        return replace(self, directory=file.write(self.entries).after.directory)

    def _truncated(self, entries: Entries) -> Self:
        changed = replace(self, entries=entries)
        if self.profile.epoch_truncation_is_deferred and self.name is not None:
            return replace(changed, is_write_pending=True)
        return changed.written()

    # --- what is asked of it ---------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the exact bytes of the file; none if there is no file."""
        return (self.directory.read(self.name) if self.name is not None else None) or b""

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
        if not self.entries and self.profile.epoch_rules == "1.1":
            return -1
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
        if self.profile.epoch_rules == "1.1":
            is_below = requested_epoch < self.entries[0].epoch
            return UNDEFINED if is_below else (requested_epoch, higher[0].start_offset)
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
    """Return those behind the offset, before them the last other one, moved to it (EPOCH-9)."""
    before = [entry for entry in entries if entry.start_offset <= start_offset]
    moved = [EpochEntry(before[-1].epoch, start_offset)] if before else []
    return (*moved, *(entry for entry in entries if entry.start_offset > start_offset))
