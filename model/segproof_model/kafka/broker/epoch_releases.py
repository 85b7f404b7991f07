# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise with leader epochs, newest first.

Not covered: up to 1.1 a negative epoch is an assertion there and the invalid-argument error here,
    and end_offset_for answers the offset alone, which here stands beside the requested epoch.
"""

from segproof_model.kafka.broker import leader_epoch_cache
from segproof_model.kafka.broker.checkpoint_file import CheckpointFile, EpochEntry
from segproof_model.kafka.broker.leader_epoch_cache import UNDEFINED
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class EpochTruncationIsWritten(Behaviour):
    """A truncation of the epochs writes their file at once, and schedules nothing."""

    laws = ("EPOCH-11",)
    releases = up_to("3.7.2")
    of_segproof = True

    class LeaderEpochFileCache(leader_epoch_cache.LeaderEpochFileCache):
        """The epochs."""

        @override
        def truncate_to(self, entries: tuple[EpochEntry, ...]) -> None:
            self.entries = entries
            self.write()


class LoadedEpochsAreNotChecked(Behaviour):
    """Epochs are taken from the file as they stand there, and of those assigned only a negative one
    is refused.
    """

    laws = ("EPOCH-1", "EPOCH-2")
    releases = up_to("2.4.1")

    class LeaderEpochFileCache(leader_epoch_cache.LeaderEpochFileCache):
        """The epochs."""

        @override
        def load(self, checkpoint: CheckpointFile) -> None:
            self.entries = tuple(checkpoint.read())

        @override
        def check(self, entry: EpochEntry) -> None:
            if entry.epoch < 0:
                refuse(ErrorKind.INVALID_ARGUMENT)


class EpochThatConflictsIsIgnored(Behaviour):
    """An epoch is entered only if it is greater than the latest one and begins at the same offset
    or behind it, and no entry goes for it.
    """

    laws = ("EPOCH-1", "EPOCH-3", "EPOCH-4")
    releases = up_to("1.1.1")

    class LeaderEpochFileCache(leader_epoch_cache.LeaderEpochFileCache):
        """The epochs."""

        @override
        def enter(self, entry: EpochEntry) -> bool:
            self.check(entry)
            for latest in self.entries[-1:]:
                if entry.epoch <= latest.epoch or entry.start_offset < latest.start_offset:
                    return False
            self.entries = (*self.entries, entry)
            return True


class FirstEpochDecidesOnTruncation(Behaviour):
    """A truncation from the start is made if the first entry begins before the offset, and keeps
    an entry that begins there.
    """

    laws = ("EPOCH-9", "LOAD-15")
    releases = up_to("1.1.1")

    class LeaderEpochFileCache(leader_epoch_cache.LeaderEpochFileCache):
        """The epochs."""

        @override
        def truncate_from_start(self, start_offset: int) -> None:
            before = [entry for entry in self.entries if entry.start_offset < start_offset]
            if not before or before[0] != self.entries[0]:
                return
            kept = tuple(entry for entry in self.entries if entry.start_offset >= start_offset)
            if not kept or start_offset < kept[0].start_offset:
                kept = (EpochEntry(before[-1].epoch, start_offset), *kept)
            self.truncate_to(kept)


class RequestedEpochIsAnswered(Behaviour):
    """The end of an epoch is told for the requested epoch, also if the log has an earlier one
    instead.
    """

    laws = ("EPOCH-7",)
    releases = up_to("1.1.1")

    class LeaderEpochFileCache(leader_epoch_cache.LeaderEpochFileCache):
        """The epochs."""

        @override
        def latest_epoch(self) -> int:
            """Without epochs it is -1."""
            return self.entries[-1].epoch if self.entries else -1

        @override
        def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
            """An epoch below the first has no end."""
            if requested_epoch in (-1, self.latest_epoch()):
                return super().end_offset_for(requested_epoch, log_end_offset)
            higher = [entry for entry in self.entries if entry.epoch > requested_epoch]
            if not higher or requested_epoch < self.entries[0].epoch:
                return UNDEFINED
            return requested_epoch, higher[0].start_offset
