# SPDX-License-Identifier: Apache-2.0
"""Planted defects that only a crash shows: each is a world of crashes with one class replaced."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple, TypeVar, cast

from segproof.files import REAL_FILES, Files
from segproof.kafka import LogSegment, OffsetCheckpointFile, PartitionLog
from segproof.kafka.broker.local_log import LocalLog
from segproof.kafka.broker.log_directory import LogDirectory
from segproof.kafka.broker.log_loader import LoadedLog
from segproof.kafka.checkpoint_file import write_checkpoint
from segproof_harness.crashes.kafka.partition_log import PartitionLogWorld
from segproof_harness.crashes.worlds import World
from segproof_harness.files.memory_files import MemoryFiles

__all__ = ["CRASH_CANARIES", "CrashCanary"]

Planted = TypeVar("Planted", bound=type[World])


class CrashCanary(NamedTuple):
    """One planted defect."""

    canary_id: str
    world: type[World]
    modes: tuple[str, ...]
    """The modes of crashes that show it."""
    faults: bool = False
    """Whether a call has to fail before."""

    @property
    def defect(self) -> str:
        """What was planted, in words."""
        return self.world.__doc__ or ""


CRASH_CANARIES: dict[str, CrashCanary] = {}
"""Every planted defect, by id."""


def crash_canary(canary_id: str, *modes: str, faults: bool = False) -> Callable[[Planted], Planted]:
    """Enter the decorated world into `CRASH_CANARIES`."""

    def enter(world: Planted) -> Planted:
        CRASH_CANARIES[canary_id] = CrashCanary(canary_id, world, modes, faults)
        return world

    return enter


class _NeverFlushed(LocalLog):
    def flush(self, offset: int) -> None:
        """Flush nothing."""


class _PlantedLog(PartitionLog):
    local_log_class: type[LocalLog] = LocalLog

    def __init__(self, directory: LogDirectory, loaded: LoadedLog) -> None:
        self._log = self.local_log_class(directory, loaded)
        self._bounds = self._log.bounds


class _ForgetfulLog(_PlantedLog):
    local_log_class = _NeverFlushed


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


class _NothingFlushed(LocalLog):
    def flush_up_to(self, offset: int, including_offset: bool = False) -> None:
        """Flush nothing, and leave the recovery point where it is."""


class _IdleLog(_PlantedLog):
    local_log_class = _NothingFlushed


@crash_canary("C-04", "ordered")
class C04Flush(PartitionLogWorld):
    """A flush returns, and has done nothing: the log itself claims nothing either."""

    log_class = _IdleLog


class _NamesNotSynced:
    """Files whose names are durable by chance only."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def sync_directory(self, path: str) -> None:
        """Sync nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


@crash_canary("C-05", "strict")
class C05Names(PartitionLogWorld):
    """No folder is synced, so the name of a flushed segment may be lost."""

    def opened(self, files: Any, *, is_clean: bool) -> PartitionLog:
        """Open the log with files that sync no folder."""
        return super().opened(cast("MemoryFiles", _NamesNotSynced(files)), is_clean=is_clean)


class _OldestFirst(LocalLog):
    def remove_and_delete_segments(self, segments: Sequence[LogSegment]) -> None:
        """Remove one segment after the other."""
        for segment in segments:
            super().remove_and_delete_segments([segment])


class _HoleyLog(_PlantedLog):
    local_log_class = _OldestFirst


@crash_canary("C-06", "killed")
class C06Truncation(PartitionLogWorld):
    """A truncation removes the oldest of its segments first."""

    weights = {"append": 8, "truncate": 2}  # noqa: RUF012 -- nobody changes it
    log_class = _HoleyLog


class _IndexesFlushed(LocalLog):
    def flush(self, offset: int) -> None:
        """Flush all but the records."""
        for segment in self.segments.values(self.recovery_point, offset):
            segment.offset_index.flush()
            segment.time_index.flush()
        self.directory.sync()


class _TornLog(_PlantedLog):
    local_log_class = _IndexesFlushed


@crash_canary("C-07", "strict")
class C07Records(PartitionLogWorld):
    """A flush makes indexes and names durable, and not the records."""

    log_class = _TornLog


class _SyncedAgain(LocalLog):
    def flush(self, offset: int) -> None:
        """Flush, and once more where that fails."""
        try:
            super().flush(offset)
        except OSError:
            super().flush(offset)


class _HopefulLog(_PlantedLog):
    local_log_class = _SyncedAgain


@crash_canary("C-10", "ordered", faults=True)
class C10SyncAgain(PartitionLogWorld):
    """A sync that fails is done once more, and its success is told: the pages are lost."""

    weights = {"append": 4, "flush": 4}  # noqa: RUF012 -- nobody changes it
    log_class = _HopefulLog


class _AlwaysOnline(LocalLog):
    @contextmanager
    def offline_if_it_fails(self, error_type: type[BaseException] = OSError) -> Iterator[None]:
        """Let the log go on, whatever fails."""
        del error_type
        yield


class _CarelessLog(_PlantedLog):
    local_log_class = _AlwaysOnline


@crash_canary("C-11", "killed", faults=True)
class C11StaysOnline(PartitionLogWorld):
    """A log goes on after an I/O error, however far the change came."""

    log_class = _CarelessLog
