# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's ConsumeQueue as the harness calls it, with a commit log of the same release.

Upstream: org.apache.rocketmq.store.ConsumeQueue and CommitLog, of a store that is never started.
What is not asked: the list of units, which the class has not; the bytes of its files are compared.
"""

import os
from typing import Any, ClassVar

from jpype import JInt, JLong

from segproof_harness.releases.jvm import Adapter, invoked, reflected
from segproof_harness.releases.rocketmq.idle_store import STORE, store_of
from segproof_harness.releases.rocketmq.java_objects import give_back_files, java_text

BOUNDARY_SINCE = (5, 1, 1)
"""From here on a lookup by time has a boundary."""


class ConsumeQueue(Adapter):
    """The consume queue."""

    left_out: ClassVar[frozenset[str]] = frozenset({"units"})

    def __init__(self, queue: Any, commit_log: Any) -> None:
        self._queue = queue
        self._log = commit_log

    @classmethod
    def open(
        cls, store_path: str, topic: str, queue_id: int, mapped_file_size: int, *, files: Any
    ) -> "ConsumeQueue":
        """Load the commit log; load the queue and recover it."""
        store = store_of(cls.jvm)
        log = store.with_log(store_path)
        kind = cls.jvm.java(f"{STORE}ConsumeQueue")
        folder = java_text(f"{store_path}/consumequeue")
        queue = kind(topic, JInt(queue_id), folder, JInt(mapped_file_size), store.java)
        opened = cls(queue, log)
        files.handles.append(opened)
        queue.load()
        queue.recover()
        return opened

    def close(self) -> None:
        """Give memory and files of queue and log back, as the end of the process would."""
        for owner in (self._queue, self._log):
            give_back_files(self.jvm, owner)

    def put_message_position_info(
        self, offset: int, size: int, tags_code: int, cq_offset: int
    ) -> bool:
        """Call putMessagePositionInfo."""
        kind, types = self.jvm.java(f"{STORE}ConsumeQueue"), (JLong, JInt, JLong, JLong)
        method = reflected(kind, "putMessagePositionInfo", *types)
        given = JLong(offset), JInt(size), JLong(tags_code), JLong(cq_offset)
        return bool(invoked(method, self._queue, *given))

    def set_modified(self, modified: tuple[int, ...]) -> None:
        """Set when each file was modified, in milliseconds; where nothing is said, at 0."""
        listed = self.jvm.field(self._queue, "mappedFileQueue").getMappedFiles()
        for number, file in enumerate(listed):
            at = modified[number] if number < len(modified) else 0
            os.utime(str(file.getFileName()), ns=(at * 10**6, at * 10**6))

    def get_offset_in_queue_by_time(
        self, timestamp: int, commit_log: Any, boundary_type: str
    ) -> int:
        """Call getOffsetInQueueByTime; up to 5.1.0 there is no boundary."""
        if self.jvm.release.number < BOUNDARY_SINCE:
            return int(self._queue.getOffsetInQueueByTime(JLong(timestamp)))
        kind = self.jvm.java("org.apache.rocketmq.common.BoundaryType")
        boundary = kind.valueOf(boundary_type.upper())
        return int(self._queue.getOffsetInQueueByTime(JLong(timestamp), boundary))

    min_offset_in_queue = property(lambda self: int(self._queue.getMinOffsetInQueue()))
    max_offset_in_queue = property(lambda self: int(self._queue.getMaxOffsetInQueue()))
    max_physic_offset = property(lambda self: int(self._queue.getMaxPhysicOffset()))
