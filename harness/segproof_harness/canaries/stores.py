# SPDX-License-Identifier: Apache-2.0
"""Planted defects of the parts of a RocketMQ store beside its index."""

from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.consume_queue import Boundary, ConsumeQueue
from segproof.rocketmq.message import CheckResult
from segproof.rocketmq.message_store import MessageStore
from segproof.rocketmq.store_checkpoint import SAFETY_MS, StoreCheckpoint


class R40StoreCheckpoint(StoreCheckpoint):
    """Planted: the safe time is that of the later one of log and queues."""

    @property
    def min_timestamp(self) -> int:
        """Take the later one."""
        return max(0, max(self.physic_msg_timestamp, self.logics_msg_timestamp) - SAFETY_MS)


class R41StoreCheckpoint(StoreCheckpoint):
    """Planted: a flush leaves the offset that the queues have reached, as up to 5.4.0."""

    def flush(self) -> None:
        """Write it back as it was."""
        kept = b"" if self._file is None else self._file.pread(8, 40)
        super().flush()
        assert self._file is not None
        self._file.pwrite(kept, 40)


class R42CommitLog(CommitLog):
    """Planted: a record whose parts do not add up to its size is told like other damage."""

    def check(self, phy_offset: int, check_crc: bool = True) -> CheckResult:
        """Forget the size."""
        found = super().check(phy_offset, check_crc)
        return found if found.success or found.size == -1 else CheckResult(False, -1, None)


class R43CommitLog(CommitLog):
    """Planted: the checksum of a body is checked whether it is wanted or not."""

    def check(self, phy_offset: int, check_crc: bool = True) -> CheckResult:
        """Check it."""
        return super().check(phy_offset, True)


class R44ConsumeQueue(ConsumeQueue):
    """Planted: of several units of the time that is asked for, one between is the answer."""

    def get_offset_in_queue_by_time(
        self, timestamp: int, commit_log: CommitLog, boundary_type: Boundary = "lower"
    ) -> int:
        """Take the middle of them."""
        lower = super().get_offset_in_queue_by_time(timestamp, commit_log, "lower")
        upper = super().get_offset_in_queue_by_time(timestamp, commit_log, "upper")
        if upper > lower:
            return (lower + upper) // 2
        return lower if boundary_type == "lower" else upper


class R45ConsumeQueue(ConsumeQueue):
    """Planted: a message that the queue has is added once more."""

    def put_message_position_info(
        self, offset: int, size: int, tags_code: int, cq_offset: int
    ) -> bool:
        """Forget how far the queue has come."""
        known = self.max_physic_offset
        self.max_physic_offset = -1
        added = super().put_message_position_info(offset, size, tags_code, cq_offset)
        self.max_physic_offset = max(known, self.max_physic_offset)
        return added


class R46MessageStore(MessageStore):
    """Planted: after a kill too, a recovery tells the index of what lies behind the queues only."""

    @property
    def last_exit_ok(self) -> bool:
        """Take every exit for a clean one."""
        return True
