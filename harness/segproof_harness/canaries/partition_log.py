# SPDX-License-Identifier: Apache-2.0
"""Planted defects of a partition's log.

Used by: canaries.
"""

from typing import Any, Self

from segproof.kafka.log_files import CLEANED_SUFFIX, SEGMENT_SUFFIXES, SWAP_SUFFIX
from segproof.kafka.log_validator import LogAppendInfo, analyze
from segproof.kafka.partition_log import PartitionLog
from segproof.kafka.segment_names import segment_file_name

INT32_MAX = 2**31 - 1


class K03PartitionLog(PartitionLog):
    """Planted: the active, empty segment is in the way of one with its base."""

    def _check_roll(self, base: int) -> None:
        """Refuse it."""
        if base == self.log_segments.active_segment.base_offset:
            raise ValueError(f"there is a segment at {base} already")
        super()._check_roll(base)


class K15PartitionLog(PartitionLog):
    """Planted: the base of a new segment is guessed, though the first offset is known."""

    def _base_to_roll(self, size_bytes: int, info: LogAppendInfo) -> int | None:
        """Return the least base that the last offset fits."""
        base = super()._base_to_roll(size_bytes, info)
        return None if base is None else max(info.last_offset - INT32_MAX, self.log_end_offset)


class K17PartitionLog(PartitionLog):
    """Planted: offsets that a follower is given are not compared with the log's end."""

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


class K32aPartitionLog(PartitionLog):
    """Planted: after loading, all of the log counts as durable."""

    @classmethod
    def open(cls, *arguments: Any, **options: Any) -> Self:
        """Load, and forget the checkpoint."""
        log = super().open(*arguments, **options)
        log._recovery_point = log.log_end_offset
        return log


class K33bPartitionLog(PartitionLog):
    """Planted: a log is recovered though it was closed in order."""

    @classmethod
    def open(cls, *arguments: Any, **options: Any) -> Self:
        """Load as after a crash."""
        return super().open(*arguments, **{**options, "last_shutdown_clean": False})


class K34PartitionLog(PartitionLog):
    """Planted: a swap gets its name while what it replaces remains."""

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


class K35PartitionLog(PartitionLog):
    """Planted: a full truncation makes the new segment first, then deletes files by their names."""

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """Delete the new segment with the old one of its name."""
        bases = self.log_segments.base_offsets()
        super().truncate_fully_and_start_at(new_offset, log_start_offset)
        if new_offset in bases:
            for suffix in SEGMENT_SUFFIXES:
                self._files.files.remove(self._files.path(segment_file_name(new_offset, suffix)))
