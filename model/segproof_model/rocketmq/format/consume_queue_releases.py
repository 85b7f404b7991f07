# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise with a consume queue, newest first."""

from collections.abc import Mapping

from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.rocketmq.format import consume_queue
from segproof_model.rocketmq.format.commit_log import CommitLog
from segproof_model.rocketmq.format.consume_queue import Boundary, ConsumeQueueUnit


class NearestUnitIsFound(Behaviour):
    """A lookup by time in a consume queue finds the nearest unit, the earlier one of two, in the
    first file that was modified at the time or later, else in the last one.
    """

    laws = ("RMQCQ-3",)
    releases = up_to("5.0.0")

    class ConsumeQueue(consume_queue.ConsumeQueue):
        """The queue."""

        @override
        def get_offset_in_queue_by_time(
            self,
            timestamp: int,
            commit_log: CommitLog,
            boundary_type: Boundary = "lower",
            modified_ms: Mapping[int, int] = {},
        ) -> int:
            # `modified_ms` is when each file was modified, by the position at which it begins.
            starts = self.starts()
            fitting = [start for start in starts if modified_ms.get(start, 0) >= timestamp]
            for start in [*fitting, *starts[-1:]][:1]:
                search = self.kind(consume_queue.TimeSearch)(self, start, timestamp, commit_log)
                return search.found(boundary_type)
            return 0

    class TimeSearch(consume_queue.TimeSearch):
        """The lookup in one file."""

        left_time: int | None = None
        right_time: int | None = None

        @override
        def time(self, position: int) -> int:
            time = super().time(position)
            if time > self.timestamp:
                self.right_time = time
            elif time >= 0:
                self.left_time = time
            return time

        @override
        def found(self, boundary_type: Boundary) -> int:
            if not self.units:
                return 0
            target = self.target()
            if target is not None:
                return 0 if target < 0 else self.number(target)
            if self.left_time is None or self.right_time is None:
                return self.number(self.right if self.left_time is None else self.left)
            is_after = self.timestamp - self.left_time > self.right_time - self.timestamp
            return self.number(self.right if is_after else self.left)


class QueueReachesBegin(Behaviour):
    """What a consume queue has reached of the log is the begin of its last message, not its end."""

    laws = ("RMQCQ-2",)
    releases = up_to("4.3.2")

    class ConsumeQueue(consume_queue.ConsumeQueue):
        """The queue."""

        @override
        def reached_by(self, unit: ConsumeQueueUnit) -> int:
            return unit.commit_log_offset
