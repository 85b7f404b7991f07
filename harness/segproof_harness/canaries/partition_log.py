# SPDX-License-Identifier: Apache-2.0
"""Planted defects of a partition's log."""

from collections.abc import Sequence
from typing import Any, Self

from segproof.kafka.checkpoint_file import EpochEntry
from segproof.kafka.log_files import CLEANED_SUFFIX, SEGMENT_SUFFIXES, SWAP_SUFFIX, LogFiles
from segproof.kafka.log_loader import load_log
from segproof.kafka.log_validator import LogAppendInfo, analyze
from segproof.kafka.partition_log import PartitionLog
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.segment_names import segment_file_name
from segproof.kafka.write_format import NEWEST_FORMAT
from segproof_harness.canaries.register import canary

INT32_MAX = 2**31 - 1


@canary("K-03", "partition-log", "LOG-12")
class K03PartitionLog(PartitionLog):
    """The active, empty segment is in the way of one with its base."""

    def _check_roll(self, base: int) -> None:
        """Refuse it."""
        if base == self.log_segments.active_segment.base_offset:
            raise ValueError(f"there is a segment at {base} already")
        super()._check_roll(base)


@canary("K-15", "partition-log", "LOG-11")
class K15PartitionLog(PartitionLog):
    """The base of a new segment is guessed, though the first offset is known."""

    def _base_to_roll(self, size_bytes: int, info: LogAppendInfo) -> int | None:
        """Return the least base that the last offset fits."""
        base = super()._base_to_roll(size_bytes, info)
        return None if base is None else max(info.last_offset - INT32_MAX, self.log_end_offset)


@canary("K-17", "partition-log", "LOG-21")
class K17PartitionLog(PartitionLog):
    """Offsets that a follower is given are not compared with the log's end."""

    def append_as_follower(self, records: bytes, leader_epoch: int) -> LogAppendInfo:
        """Append wherever the records say."""
        self._check_open()
        info, batches = analyze(
            records,
            self.config,
            origin="replication",
            leader_epoch=leader_epoch,
            log_start_offset=self.log_start_offset,
        )
        if not batches:
            return info
        return self._append_valid(records[: info.valid_bytes], batches, info, "replication", -1)


@canary("K-32a", "partition-log", "LOAD-13")
class K32aPartitionLog(PartitionLog):
    """After loading, all of the log counts as durable."""

    @classmethod
    def open(cls, *arguments: Any, **options: Any) -> Self:
        """Load, and forget the checkpoint."""
        log = super().open(*arguments, **options)
        log._recovery_point = log.log_end_offset
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
            for suffix in SEGMENT_SUFFIXES:
                self._files.files.remove(self._files.path(segment_file_name(new_offset, suffix)))


@canary("K-39", "partition-log", "LOG-13")
class K39PartitionLog(PartitionLog):
    """A truncation at the end of the log, or behind it, leaves its epochs alone."""

    def _truncate_to(self, target: int) -> bool:
        """Return before the epochs are cut."""
        return target < self.log_end_offset and super()._truncate_to(target)


@canary("K-40a", "partition-log", "EPOCH-4")
class K40aPartitionLog(PartitionLog):
    """An epoch that conflicts with later ones is ignored, and these stay."""

    def _assign_epochs(self, batches: Sequence[RecordBatch]) -> None:
        """Assign only what goes on where the last epoch began."""
        for batch in batches:
            latest = self._epochs.latest_entry()
            found = EpochEntry(batch.partition_leader_epoch, batch.base_offset)
            if (
                batch.magic < 2
                or latest is None
                or (found.epoch > latest.epoch and found.start_offset > latest.start_offset)
            ):
                super()._assign_epochs([batch])


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


class _KeptSnapshotFiles(LogFiles):
    """The files of a log with such producers."""

    def new_producer_state(self) -> ProducerStateManager:
        """Return a producer state that knows nothing yet."""
        return _KeepsSnapshots.open(
            self.folder,
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
        log_files = _KeptSnapshotFiles(folder, config, write_format=NEWEST_FORMAT, **seams)
        log_files.files.make_directory(folder)
        return cls(log_files, load_log(log_files, **options))
