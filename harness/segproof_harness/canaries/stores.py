# SPDX-License-Identifier: Apache-2.0
"""Planted defects of the parts of a RocketMQ store beside its index."""

from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.consume_queue import Boundary, ConsumeQueue
from segproof.rocketmq.message import CheckResult
from segproof.rocketmq.message_store import MessageStore
from segproof.rocketmq.store_checkpoint import SAFETY_MS, StoreCheckpoint
from segproof_harness.canaries.register import canary


@canary("R-40", "store-checkpoint", "RMQCKPT-4")
class R40StoreCheckpoint(StoreCheckpoint):
    """The safe time is that of the later one of log and queues."""

    @property
    def min_timestamp(self) -> int:
        """Take the later one."""
        return max(0, max(self.physic_msg_timestamp, self.logics_msg_timestamp) - SAFETY_MS)


@canary("R-41", "store-checkpoint", "RMQCKPT-3", "RMQCKPT-1")
class R41StoreCheckpoint(StoreCheckpoint):
    """A flush leaves the offset that the queues have reached as it was, as up to 5.4.0."""

    def flush(self) -> None:
        """Write it back as it was."""
        kept = b"" if self._file is None else self._file.pread(8, 40)
        super().flush()
        assert self._file is not None
        self._file.pwrite(kept, 40)


@canary("R-42", "commit-log", "RMQLOG-3")
class R42CommitLog(CommitLog):
    """A record whose parts do not add up to its size is told like other damage."""

    def check(self, phy_offset: int, check_crc: bool = True) -> CheckResult:
        """Forget the size."""
        found = super().check(phy_offset, check_crc)
        return found if found.success or found.size == -1 else CheckResult(False, -1, None)


@canary("R-43", "commit-log", "RMQLOG-2")
class R43CommitLog(CommitLog):
    """The checksum of a body is checked whether it is wanted or not."""

    def check(self, phy_offset: int, check_crc: bool = True) -> CheckResult:
        """Check it."""
        return super().check(phy_offset, True)


@canary("R-44", "consume-queue", "RMQCQ-3")
class R44ConsumeQueue(ConsumeQueue):
    """Of several units of the time that is asked for, one between them is the answer."""

    def get_offset_in_queue_by_time(
        self, timestamp: int, commit_log: CommitLog, boundary_type: Boundary = "lower"
    ) -> int:
        """Take the middle of them."""
        lower = super().get_offset_in_queue_by_time(timestamp, commit_log, "lower")
        upper = super().get_offset_in_queue_by_time(timestamp, commit_log, "upper")
        if upper > lower:
            return (lower + upper) // 2
        return lower if boundary_type == "lower" else upper


@canary("R-45", "consume-queue", "RMQCQ-2")
class R45ConsumeQueue(ConsumeQueue):
    """A message that the queue has is added once more."""

    def put_message_position_info(
        self, offset: int, size: int, tags_code: int, cq_offset: int
    ) -> bool:
        """Forget how far the queue has come."""
        known = self.max_physic_offset
        self.max_physic_offset = -1
        added = super().put_message_position_info(offset, size, tags_code, cq_offset)
        self.max_physic_offset = max(known, self.max_physic_offset)
        return added


@canary("R-46", "message-store", "RMQLOG-5")
class R46MessageStore(MessageStore):
    """After a kill too, a recovery tells the index of what lies behind the queues only."""

    @property
    def last_exit_ok(self) -> bool:
        """Take every exit for a clean one."""
        return True
