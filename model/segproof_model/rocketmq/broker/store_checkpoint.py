# SPDX-License-Identifier: Apache-2.0
"""The store checkpoint: up to which time log, queues and index are known to be on disk.

Upstream: RocketMQ 5.5.1, StoreCheckpoint. Otherwise: index_service_releases,
    index_service_deviations.
Layout: 4096 bytes; big-endian int64: physic @0, logics @8, index @16, master flushed offset @24,
    confirmed offset @32, offset in the log that the queues have reached @40.
Laws: RMQCKPT-1 to RMQCKPT-4.
Not covered: use after shutdown, which upstream does not survive.
"""

from typing import ClassVar

from segproof_model.language.files import Files
from segproof_model.language.integers import int64_at, int64_bytes, wrap64
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refuse

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
"""The fields in the order of the file."""


class StoreCheckpoint(State):
    """A store checkpoint: what is in memory, and the file.

    >>> checkpoint = StoreCheckpoint(Files(), "checkpoint")
    >>> checkpoint.set_physic_msg_timestamp(43707)
    >>> checkpoint.set_logics_msg_timestamp(52445)
    >>> checkpoint.min_timestamp, checkpoint.min_timestamp_index
    (40707, 0)
    """

    field_count: ClassVar = len(FIELDS)
    """How many fields are known."""

    def __init__(self, files: Files, name: str) -> None:
        """Open or make the file; a shorter one grows with zeros (RMQCKPT-1, RMQCKPT-3)."""
        self.files, self.name = files, name
        self.is_mapped = True
        data = files.image(name).ljust(FILE_SIZE, b"\0")
        files.write(name, data)
        known = data[: 8 * self.field_count].ljust(FILE_SIZE, b"\0")
        self.physic_msg_timestamp = int64_at(known, 0)
        self.logics_msg_timestamp = int64_at(known, 8)
        self.index_msg_timestamp = int64_at(known, 16)
        self.master_flushed_offset = int64_at(known, 24)
        self.confirm_phy_offset = int64_at(known, 32)
        self.logics_physical_offset = int64_at(known, 40)

    @property
    def values(self) -> tuple[int, ...]:
        """The known fields in memory, in the order of the file."""
        return tuple(getattr(self, name) for name in FIELDS[: self.field_count])

    # --- setters change memory only (RMQCKPT-3) ------------------------------------------------

    def set_physic_msg_timestamp(self, value: int) -> None:
        """Keep the store time of the last message of the durable log."""
        self.physic_msg_timestamp = as_long(value)

    def set_logics_msg_timestamp(self, value: int) -> None:
        """Keep the store time of the last message of the queues."""
        self.logics_msg_timestamp = as_long(value)

    def set_index_msg_timestamp(self, value: int) -> None:
        """Keep the store time of the last message of a full index file."""
        self.index_msg_timestamp = as_long(value)

    def set_master_flushed_offset(self, value: int) -> None:
        """Keep how far the master's log is on disk."""
        self.master_flushed_offset = as_long(value)

    def set_confirm_phy_offset(self, value: int) -> None:
        """Keep up to where the log is confirmed."""
        self.confirm_phy_offset = as_long(value)

    def set_logics_physical_offset(self, value: int) -> None:
        """Keep how far in the log the queues are on disk."""
        self.logics_physical_offset = as_long(value)

    # --- the file ------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the known fields and force the file (RMQCKPT-2, RMQCKPT-3)."""
        if not self.is_mapped:
            refuse(ErrorKind.UNMAPPED)
        known = b"".join(map(int64_bytes, self.values))
        self.files.write(self.name, known + self.files.image(self.name)[len(known) :])

    def shutdown(self) -> None:
        """Flush and unmap (RMQCKPT-3); a second time nothing happens."""
        if self.is_mapped:
            self.flush()
            self.is_mapped = False

    # --- what is surely on disk ----------------------------------------------------------------

    @property
    def min_timestamp(self) -> int:
        """Up to where log and queues are surely on disk, with 3 s of safety (RMQCKPT-4)."""
        earliest = min(self.physic_msg_timestamp, self.logics_msg_timestamp)
        return max(0, wrap64(earliest - SAFETY_MS))

    @property
    def min_timestamp_index(self) -> int:
        """The same with the index (RMQCKPT-4)."""
        return min(self.min_timestamp, self.index_msg_timestamp)


def as_long(value: int) -> int:
    """Return the value; one that 64 bits don't hold is refused."""
    return value if wrap64(value) == value else refuse(ErrorKind.INVALID_ARGUMENT)
