# SPDX-License-Identifier: Apache-2.0
"""The file `checkpoint` of a store: up to which moment each part of it is known to be durable.

Layout: CHECKPOINT of layouts/rocketmq.py, in a file of 4096 bytes. Nothing guards the values.
Upstream: RocketMQ 5.5.1: StoreCheckpoint.
Laws: RMQCKPT-1, RMQCKPT-3, RMQCKPT-4.
"""

import os
from typing import Final, NamedTuple, Self

from segproof.closing import Closing, told_state, undone_if_it_fails
from segproof.errors import IndexClosedError, ReadOnlyError
from segproof.files import REAL_FILES, File, Files, ReadOnlyFile
from segproof.integers import in_range
from segproof.layouts.rocketmq import CHECKPOINT

CHECKPOINT_BYTES: Final = 4096
SAFETY_MS: Final = 3000
"""So much older than what it says a store takes its log and queues to be."""
_FIELDS = CHECKPOINT.struct()


class StoredCheckpoint(NamedTuple):
    """The six numbers as the file has them; `StoreCheckpoint` says what they mean."""

    physic_msg_timestamp: int
    logics_msg_timestamp: int
    index_msg_timestamp: int
    master_flushed_offset: int
    confirm_phy_offset: int
    logics_physical_offset: int

    @classmethod
    def read_from(cls, file: ReadOnlyFile) -> Self:
        """Return what an open file begins with; what it is too short for is 0."""
        return cls(*_FIELDS.unpack(file.pread(_FIELDS.size, 0).ljust(_FIELDS.size, b"\0")))


class StoreCheckpoint(Closing):
    """Six numbers in memory; `flush` makes the file what they are, if it is open for writing.

    Times are milliseconds, those of messages; offsets are positions in the commit log.
    """

    physic_msg_timestamp: int
    """Store time of a message up to which the commit log is durable."""
    logics_msg_timestamp: int
    """The same for the consume queues."""
    index_msg_timestamp: int
    """End time of the newest index file that was full and flushed."""
    master_flushed_offset: int
    confirm_phy_offset: int
    logics_physical_offset: int
    """Offset in the commit log that the consume queues have reached; 5.5.1 has it, 5.4.0 not."""

    def __init__(self, path: str, file: File, *, writable: bool = False) -> None:
        self.path = path
        self.writable = writable
        """Whether the file may be changed."""
        self._file: File | None = file
        for name, value in StoredCheckpoint.read_from(file)._asdict().items():
            setattr(self, name, value)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
    ) -> Self:
        """Read the checkpoint at `path`, for reading, or with `writable=True` for writing.

        With `create=True` it is writable, and a missing one is made, all zero, with the directories
        above it. A shorter file that is writable grows to 4096 bytes; a longer one stays as it is.
        Raises: OSError.
        """
        name, is_writable = os.fspath(path), writable or create
        if create:
            files.make_directory(os.path.dirname(name) or ".")
        file = files.open(name, writable=is_writable, create=create)
        with undone_if_it_fails(file.close):
            if is_writable and file.size() < CHECKPOINT_BYTES:
                file.truncate(CHECKPOINT_BYTES)
            return cls(name, file, writable=is_writable)

    def __repr__(self) -> str:
        times = f"index time {self.index_msg_timestamp}"
        state = told_state(times, is_open=self._file is not None, writable=self.writable)
        return f"StoreCheckpoint({self.path!r}, {state})"

    @property
    def values(self) -> StoredCheckpoint:
        """The six numbers in memory, in the order of the file."""
        return StoredCheckpoint(*(getattr(self, name) for name in StoredCheckpoint._fields))

    def set_physic_msg_timestamp(self, value: int) -> None:
        """Set it in memory. Raises: InvalidArgumentError outside 64 bits."""
        self.physic_msg_timestamp = in_range(value, "physic_msg_timestamp")

    def set_logics_msg_timestamp(self, value: int) -> None:
        """Set it in memory. Raises: InvalidArgumentError outside 64 bits."""
        self.logics_msg_timestamp = in_range(value, "logics_msg_timestamp")

    def set_index_msg_timestamp(self, value: int) -> None:
        """Set it in memory. Raises: InvalidArgumentError outside 64 bits."""
        self.index_msg_timestamp = in_range(value, "index_msg_timestamp")

    def set_master_flushed_offset(self, value: int) -> None:
        """Set it in memory. Raises: InvalidArgumentError outside 64 bits."""
        self.master_flushed_offset = in_range(value, "master_flushed_offset")

    def set_confirm_phy_offset(self, value: int) -> None:
        """Set it in memory. Raises: InvalidArgumentError outside 64 bits."""
        self.confirm_phy_offset = in_range(value, "confirm_phy_offset")

    def set_logics_physical_offset(self, value: int) -> None:
        """Set it in memory. Raises: InvalidArgumentError outside 64 bits."""
        self.logics_physical_offset = in_range(value, "logics_physical_offset")

    def flush(self) -> None:
        """Write all six fields and wait until they are durable; other bytes stay.

        Laws: RMQCKPT-3. Raises: IndexClosedError after shutdown; ReadOnlyError; OSError.
        """
        if self._file is None:
            raise IndexClosedError("the checkpoint is closed", path=self.path)
        if not self.writable:
            raise ReadOnlyError(
                "the checkpoint was opened for reading",
                path=self.path,
                hint="open it with writable=True",
            )
        self._file.pwrite(_FIELDS.pack(*self.values), 0)
        self._file.sync()

    def shutdown(self) -> None:
        """Flush if it is writable, and close; a second time nothing happens. Laws: RMQCKPT-3.

        Raises: OSError, and then it is still open.
        """
        if self._file is not None:
            if self.writable:
                self.flush()
            self.abandon()

    close = shutdown

    def abandon(self) -> None:
        """Close without writing; what was not flushed is lost."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    @property
    def min_timestamp(self) -> int:
        """The time that log and queues have surely reached. Laws: RMQCKPT-4."""
        return max(0, min(self.physic_msg_timestamp, self.logics_msg_timestamp) - SAFETY_MS)

    @property
    def min_timestamp_index(self) -> int:
        """The same of log, queues and index. Laws: RMQCKPT-4."""
        return min(self.min_timestamp, self.index_msg_timestamp)
