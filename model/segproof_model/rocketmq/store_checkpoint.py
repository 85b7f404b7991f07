# SPDX-License-Identifier: Apache-2.0
"""The store checkpoint: up to which time log, queues and index are known to be on disk.

Mirrors: impl/segproof/rocketmq/store_checkpoint.py.
Upstream: RocketMQ StoreCheckpoint (4.7.0 to 5.5.1).
Layout: 4096 bytes; big-endian int64: physic @0, logics @8, index @16, master flushed offset @24
    (5.0.0 on), confirmed offset @32 (5.1.1 on), offset in the log that the queues have reached @40
    (5.5.1; not yet in 5.4.0).
Laws: RMQCKPT-1 to RMQCKPT-4.
Not covered: use after shutdown, which upstream does not survive.
Used by: index_service, message_store, the harness.
"""

from dataclasses import dataclass
from typing import Any, Self

from segproof_model.directory import Directory
from segproof_model.language.integers import int64_at, int64_bytes, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import ROCKETMQ_5_5_1, Profile
from segproof_model.values import replace

FILE_SIZE = 4096
SAFETY_MS = 3000
FIELDS = (
    "physic_msg_timestamp",
    "logics_msg_timestamp",
    "index_msg_timestamp",
    "master_flushed_offset",
    "confirm_phy_offset",
    "logics_physical_offset",
)
"""The fields in the order of the file; older releases know the first three, four or five."""
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
UNMAPPED = Raised(ErrorKind.UNMAPPED)


@dataclass(frozen=True, slots=True)
class StoreCheckpoint:
    """The state of a store checkpoint: what is in memory, and the file.

    >>> checkpoint = StoreCheckpoint.open("checkpoint").after
    >>> checkpoint = checkpoint.set_physic_msg_timestamp(43707).after
    >>> checkpoint = checkpoint.set_logics_msg_timestamp(52445).after
    >>> checkpoint.min_timestamp, checkpoint.min_timestamp_index
    (40707, 0)
    """

    profile: Profile
    name: str
    directory: Directory
    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0
    master_flushed_offset: int = 0
    confirm_phy_offset: int = 0
    logics_physical_offset: int = 0
    is_mapped: bool = True

    @classmethod
    def open(
        cls,
        path: str,
        *,
        directory: Directory = Directory(),
        profile: Profile = ROCKETMQ_5_5_1,
    ) -> "Step[StoreCheckpoint]":
        """Open or create the file; a shorter one grows with zeros (RMQCKPT-1, RMQCKPT-3)."""
        found = directory.read(path)
        data = (found or b"").ljust(FILE_SIZE, b"\0")
        known = profile.rmq_checkpoint_fields if found is not None else 0
        values = [int64_at(data, 8 * number) for number in range(known)]
        physic, logics, index, master, confirmed, reached = (*values, *[0] * (6 - known))
        grown = directory.write(path, data)
        return Step(cls(profile, path, grown, physic, logics, index, master, confirmed, reached))

    @property
    def values(self) -> tuple[int, ...]:
        """The known fields in memory, in the order of the file."""
        return tuple(getattr(self, name) for name in FIELDS[: self.profile.rmq_checkpoint_fields])

    def set_physic_msg_timestamp(self, value: int) -> Step[Self]:
        """Keep the store time of the last message of the durable log, in memory only."""
        return _set(self, replace(self, physic_msg_timestamp=wrap64(value)), value)

    def set_logics_msg_timestamp(self, value: int) -> Step[Self]:
        """Keep the store time of the last message of the queues, in memory only."""
        return _set(self, replace(self, logics_msg_timestamp=wrap64(value)), value)

    def set_index_msg_timestamp(self, value: int) -> Step[Self]:
        """Keep the store time of the last message of a full index file, in memory only."""
        return _set(self, replace(self, index_msg_timestamp=wrap64(value)), value)

    def set_master_flushed_offset(self, value: int) -> Step[Self]:
        """Keep how far the master's log is on disk, in memory only."""
        return _set(self, replace(self, master_flushed_offset=wrap64(value)), value)

    def set_confirm_phy_offset(self, value: int) -> Step[Self]:
        """Keep up to where the log is confirmed, in memory only."""
        return _set(self, replace(self, confirm_phy_offset=wrap64(value)), value)

    def set_logics_physical_offset(self, value: int) -> Step[Self]:
        """Keep how far in the log the queues are on disk, in memory only."""
        return _set(self, replace(self, logics_physical_offset=wrap64(value)), value)

    def flush(self) -> Step[Self]:
        """Write the known fields and force the file (RMQCKPT-2, RMQCKPT-3)."""
        if not self.is_mapped:
            return Step(self, UNMAPPED)
        known = b"".join(map(int64_bytes, self.values))
        data = self.directory.read(self.name) or b""
        written = self.directory.write(self.name, known + data[len(known) :])
        return Step(replace(self, directory=written))

    def shutdown(self) -> Step[Self]:
        """Flush and unmap (RMQCKPT-3); a second time nothing happens."""
        if not self.is_mapped:
            return Step(self)
        step = self.flush()
        return Step(replace(step.after, is_mapped=False), step.outcome)

    @property
    def min_timestamp(self) -> int:
        """Up to where log and queues are surely on disk, with 3 s of safety (RMQCKPT-4)."""
        earliest = min(self.physic_msg_timestamp, self.logics_msg_timestamp)
        safe = earliest - SAFETY_MS
        return max(0, wrap64(safe) if self.profile.rmq_checkpoint_wraps else safe)

    @property
    def min_timestamp_index(self) -> int:
        """The same with the index (RMQCKPT-4)."""
        return min(self.min_timestamp, self.index_msg_timestamp)


def _set(before: Any, after: Any, value: int) -> Step[Any]:
    """Return the step of a setter (RMQCKPT-3); a value that 64 bits don't hold is refused."""
    return Step(after) if wrap64(value) == value else Step(before, INVALID_ARGUMENT)
