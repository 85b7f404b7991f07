# SPDX-License-Identifier: Apache-2.0
"""Planted defects that only a crash shows: each is a world of crashes with one class replaced."""

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import NamedTuple, TypeVar

from segproof.files import REAL_FILES, Files
from segproof.kafka import OffsetCheckpointFile, PartitionLog
from segproof.kafka.broker.local_log import LocalLog
from segproof.kafka.broker.log_directory import LogDirectory
from segproof.kafka.broker.log_loader import LoadedLog
from segproof.kafka.checkpoint_file import write_checkpoint
from segproof_harness.crashes.kafka.partition_log import PartitionLogWorld
from segproof_harness.crashes.worlds import World

__all__ = ["CRASH_CANARIES", "CrashCanary"]

Planted = TypeVar("Planted", bound=type[World])


class CrashCanary(NamedTuple):
    """One planted defect."""

    canary_id: str
    world: type[World]
    modes: tuple[str, ...]
    """The modes of crashes that show it."""

    @property
    def defect(self) -> str:
        """What was planted, in words."""
        return self.world.__doc__ or ""


CRASH_CANARIES: dict[str, CrashCanary] = {}
"""Every planted defect, by id."""


def crash_canary(canary_id: str, *modes: str) -> Callable[[Planted], Planted]:
    """Enter the decorated world into `CRASH_CANARIES`."""

    def enter(world: Planted) -> Planted:
        CRASH_CANARIES[canary_id] = CrashCanary(canary_id, world, modes)
        return world

    return enter


class _NeverFlushed(LocalLog):
    def flush(self, offset: int) -> None:
        """Flush nothing."""


class _ForgetfulLog(PartitionLog):
    def __init__(self, directory: LogDirectory, loaded: LoadedLog) -> None:
        self._log = _NeverFlushed(directory, loaded)
        self._bounds = self._log.bounds


@crash_canary("C-01", "ordered")
class C01RecoveryPoint(PartitionLogWorld):
    """The recovery point is raised, and the bytes below it are never made durable."""

    log_class = _ForgetfulLog


class _PlainCheckpoint(OffsetCheckpointFile):
    """A checkpoint that is written by `_put`."""

    def __init__(self, file: str, *, create: bool = False, files: Files = REAL_FILES) -> None:
        super().__init__(file, create=create, files=files)
        self._files = files

    def write(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Write offsets."""
        lines = [f"{topic} {partition} {n}" for (topic, partition), n in offsets.items()]
        self._put(write_checkpoint(lines))

    def _put(self, data: bytes) -> None:
        raise NotImplementedError


class _CheckpointInPlace(_PlainCheckpoint):
    def _put(self, data: bytes) -> None:
        with closing(self._files.open(self.file, writable=True)) as file:
            file.truncate(0)
            file.pwrite(data, 0)
            file.sync()


class _UnsyncedCheckpoint(_PlainCheckpoint):
    def _put(self, data: bytes) -> None:
        temporary = f"{self.file}.tmp"
        with closing(self._files.open(temporary, writable=True, create=True)) as file:
            file.truncate(0)
            file.pwrite(data, 0)
        self._files.rename(temporary, self.file)


@crash_canary("C-02", "ordered")
class C02Checkpoint(PartitionLogWorld):
    """A checkpoint is written in place: its size may be durable before its bytes."""

    checkpoint_class = _CheckpointInPlace


@crash_canary("C-03", "ordered")
class C03Rename(PartitionLogWorld):
    """A checkpoint is not synced before it gets its name."""

    checkpoint_class = _UnsyncedCheckpoint
