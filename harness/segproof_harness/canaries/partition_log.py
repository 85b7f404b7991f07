# SPDX-License-Identifier: Apache-2.0
"""Planted defects of a partition's log."""

from typing import Any, Self

from segproof.kafka.broker.local_log import LocalLog
from segproof.kafka.broker.log_append import LogAppend
from segproof.kafka.broker.log_directory import LogDirectory
from segproof.kafka.broker.log_loader import LoadedLog, LogLoader
from segproof.kafka.broker.partition_log import PartitionLog
from segproof.kafka.checkpoint_file import EpochEntry
from segproof.kafka.log_validator import LogAppendInfo
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.segment_names import (
    CLEANED_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    segment_file_name,
)
from segproof.kafka.write_format import NEWEST_FORMAT
from segproof_harness.canaries.register import canary

INT32_MAX = 2**31 - 1


class _K03LocalLog(LocalLog):
    def check_roll(self, base_offset: int) -> None:
        """Refuse a base that the active segment has."""
        if base_offset == self.segments.active_segment.base_offset:
            raise ValueError(f"there is a segment at {base_offset} already")
        super().check_roll(base_offset)


@canary("K-03", "partition-log", "LOG-12")
class K03PartitionLog(PartitionLog):
    """The active, empty segment is in the way of one with its base."""

    def __init__(self, directory: LogDirectory, loaded: LoadedLog) -> None:
        self._log = _K03LocalLog(directory, loaded)
        self._bounds = self._log.bounds


class _AppendsOtherwise(PartitionLog):
    """A log whose appends are of another class."""

    append_class: type[LogAppend]

    def append_as_leader(
        self, records: bytes, leader_epoch: int, *, origin: Any = "client", **named: Any
    ) -> LogAppendInfo:
        """Append as the leader."""
        return self.append_class(self._log, records, leader_epoch, origin, **named).append()

    def append_as_follower(self, records: bytes, leader_epoch: int) -> LogAppendInfo:
        """Append as a follower."""
        return self.append_class(self._log, records, leader_epoch, "replication").append()


class _K15Append(LogAppend):
    def base_of_next(self) -> int:
        """Return the least base that the last offset fits."""
        return max(self.info.last_offset - INT32_MAX, self.log.log_end_offset)


@canary("K-15", "partition-log", "LOG-11")
class K15PartitionLog(_AppendsOtherwise):
    """The base of a new segment is guessed, though the first offset is known."""

    append_class = _K15Append


class _K17Append(LogAppend):
    def take_offsets(self) -> None:
        """Append wherever the records say."""
        self.records = self.records[: self.info.valid_bytes]


@canary("K-17", "partition-log", "LOG-21")
class K17PartitionLog(_AppendsOtherwise):
    """Offsets that a follower is given are not compared with the log's end."""

    append_class = _K17Append


@canary("K-32a", "partition-log", "LOAD-13")
class K32aPartitionLog(PartitionLog):
    """After loading, all of the log counts as durable."""

    @classmethod
    def open(cls, *arguments: Any, **options: Any) -> Self:
        """Load, and forget the checkpoint."""
        log = super().open(*arguments, **options)
        log._log.recovery_point = log.log_end_offset
        return log


@canary("K-33b", "partition-log", "LOAD-10")
class K33bPartitionLog(PartitionLog):
    """A log is recovered though it was closed in order."""

    @classmethod
    def open(cls, *arguments: Any, **options: Any) -> Self:
        """Load as after a crash."""
        return super().open(*arguments, **{**options, "last_shutdown_clean": False})


@canary("K-34", "partition-log", "LOAD-2", "LOG-4")
class K34PartitionLog(PartitionLog):
    """A swap gets its name while what it replaces remains."""

    @classmethod
    def open(cls, *arguments: Any, **options: Any) -> Self:
        """Rename, then load."""
        folder, files = arguments[0], options["files"]
        names = files.list_directory(folder)
        if not any(name.endswith(CLEANED_SUFFIX) for name in names):
            for name in names:
                if name.endswith(SWAP_SUFFIX):
                    files.rename(f"{folder}/{name}", f"{folder}/{name.removesuffix(SWAP_SUFFIX)}")
        return super().open(*arguments, **options)


@canary("K-35", "partition-log", "LOG-14")
class K35PartitionLog(PartitionLog):
    """A full truncation deletes the new segment with the old one of its name."""

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """Delete the new segment with the old one of its name."""
        bases = self.log_segments.base_offsets()
        super().truncate_fully_and_start_at(new_offset, log_start_offset)
        if new_offset in bases:
            directory = self._log.directory
            for suffix in SEGMENT_SUFFIXES:
                directory.files.remove(directory.path(segment_file_name(new_offset, suffix)))


@canary("K-39", "partition-log", "LOG-13")
class K39PartitionLog(PartitionLog):
    """A truncation at the end of the log, or behind it, leaves its epochs alone."""

    def _truncate_to(self, target: int) -> bool:
        """Return before the epochs are cut."""
        return target < self.log_end_offset and super()._truncate_to(target)


class _K40aAppend(LogAppend):
    def assign_epochs(self) -> None:
        """Assign only what goes on where the last epoch began."""
        batches = self.batches
        for batch in batches:
            latest = self.log.epochs.latest_entry()
            found = EpochEntry(batch.partition_leader_epoch, batch.base_offset)
            if (
                batch.magic < 2
                or latest is None
                or (found.epoch > latest.epoch and found.start_offset > latest.start_offset)
            ):
                self.batches = [batch]
                super().assign_epochs()
        self.batches = batches


@canary("K-40a", "partition-log", "EPOCH-4")
class K40aPartitionLog(_AppendsOtherwise):
    """An epoch that conflicts with later ones is ignored, and these stay."""

    append_class = _K40aAppend


class _KeepsSnapshots(ProducerStateManager):
    """Producers whose snapshots stay where their state ends at the end of the log already."""

    def truncate_and_reload(
        self, log_start_offset: int, log_end_offset: int, current_time_ms: int
    ) -> None:
        """Look at the snapshots only if the state must be read anew."""
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
        else:
            super().truncate_and_reload(log_start_offset, log_end_offset, current_time_ms)


class _KeptSnapshotFiles(LogDirectory):
    """The directory of a log with such producers."""

    def new_producer_state(self) -> ProducerStateManager:
        """Return a producer state that knows nothing yet."""
        return _KeepsSnapshots.open(
            self.dir,
            producer_id_expiration_ms=self.config.producer_id_expiration_ms,
            max_transaction_timeout_ms=self.config.max_transaction_timeout_ms,
            files=self.files,
        )


@canary("K-42b", "partition-log", "PROD-13")
class K42bPartitionLog(PartitionLog):
    """Snapshots beyond the log stay where the producer state ends at its end already."""

    @classmethod
    def open(cls, *arguments: Any, **options: Any) -> Self:
        """Load with such producers."""
        folder, config = arguments
        seams = {name: options.pop(name) for name in ("files", "time", "draw")}
        directory = _KeptSnapshotFiles(folder, config, write_format=NEWEST_FORMAT, **seams)
        directory.files.make_directory(folder)
        loader = LogLoader(directory, options["log_start_offset"])
        return cls(
            directory, loader.load(options["recovery_point"], options["last_shutdown_clean"])
        )
