# SPDX-License-Identifier: Apache-2.0
"""The offsets of consumers in `config` against the ends of their queues.

A consumer group has the offset of the next message that it reads, so at most the end of the queue.
A broker writes the offsets every five seconds, and flushes log and queues by themselves: after a
loss of power the offsets may count messages that never reached the disk.

Upstream: RocketMQ 4.9.8 and 5.5.1: ConsumerOffsetManager, ScheduleMessageService,
DefaultMessageStore.getMessage.
Cost: memory for each offset, and for the end of each queue that has one.
Laws: RMQDISK-54.
Not covered: queues without a folder and without a message in the log, as of a deleted topic; static
  topics, whose offsets are counted over several brokers; light queues (%LMQ%); queues of batches,
  which are in another folder; offsets that RocksDB keeps.
"""

from collections.abc import Sequence

import numpy as np

from segproof.files import Files
from segproof.findings import Severity
from segproof.reading.config_offsets import WRITE_OFFSET, StoredOffset, read_offsets
from segproof.rocketmq.message import INNER_BATCH, has_queue_place
from segproof.verifying.rocketmq.log_records import LogBlock
from segproof.verifying.rocketmq.queue_checks import QueueChecks
from segproof.wording.reporting import Described, Reporter
from segproof.wording.rules import declare

declare("index-service", Severity.WARNING,
    WRITE_OFFSET.after(
    "decide by the numbers before consumers start. If a replica's queue goes as far, this"
    " broker has lost the messages up to there, as after a loss of power those that were not"
    " flushed: keep that replica. If several groups are far beyond their queues, this"
    " file is of another store, or older files of the log were put in place. Nothing is lost if"
    " this broker is a slave, whose log comes after its offsets; if these files were copied beside"
    " a running broker, the log before `config`; if the topic was deleted and created again, or"
    " `mqadmin cleanExpiredCQ` took away a queue without messages; or if a tool or a client set"
    " the offset. A broker sends such a consumer back to the end of the queue, or in older releases"
    " to its begin if that is 0; one that comes later passes over the new messages that get these"
    " numbers. For each offset that is wrong then: "),
    "RMQDISK-54")  # fmt: skip


class OffsetChecks:
    """The offsets in `config`, read when this is made; takes the blocks of the log.

    Make it before queues and log are listed: both only grow beside a broker, so that each offset
    that was written before lies inside.
    """

    def __init__(self, store: str, files: Files, reporter: Reporter, queues: QueueChecks) -> None:
        self._reporter = reporter
        self._queues = queues
        self._stored = read_offsets(store, files)
        """By the path of each file, a backup after its file."""
        self._ends: dict[tuple[str, int], int] = {}
        """The end of each queue with an offset, by its messages in the log; 0 without one."""
        self._left_out: set[tuple[str, int]] = set()
        self._ends = {one.queue: 0 for each in self._stored.values() for one in each}

    def add(self, block: LogBlock) -> None:
        """Note the ends of queues by the messages of a block."""
        if not self._ends:
            return
        for request, queue_id in zip(block.requests, block.queue_ids, strict=True):
            key = request.topic or "", queue_id
            end = self._ends.get(key)
            if end is None or not has_queue_place(request.sys_flag):
                continue
            if request.sys_flag & INNER_BATCH:
                self._left_out.add(key)
            self._ends[key] = max(end, request.consume_queue_offset + 1)

    def finish(self) -> None:
        """Report the offsets beyond the end of their queue, each reader's once."""
        told: set[tuple[str, int, str]] = set()
        for path, stored in self._stored.items():
            beyond = [
                (one, end)
                for one in stored
                if one.reader not in told
                and (end := self._end_of(one.queue)) is not None
                and one.offset > end
            ]
            told |= {one.reader for one, _ in beyond}
            self._report(path, beyond)

    def _end_of(self, key: tuple[str, int]) -> int | None:
        """Return the end of a queue; None if it is not known."""
        queue = self._queues.queue(*key)
        end = self._ends[key]
        is_unknown = end == 0 if queue is None else not queue.is_whole
        if is_unknown or key in self._left_out:
            return None
        return end if queue is None else max(end, queue.stop)

    def _report(self, path: str, beyond: Sequence[tuple[StoredOffset, int]]) -> None:
        def describe(row: int) -> Described:
            one, end = beyond[row]
            words = f"ends at {end}: it had {one.offset - end} more, or this offset is of another"
            words += " queue"
            if not end:
                words = "is empty: its next message gets offset 0"
            return Described(
                f"{one.words} up to offset {one.offset}, and the queue {words}",
                f"at most {end}",
                one.offset,
            )

        positions = np.array([one.position for one, _ in beyond], np.int64)
        self._reporter.at(path).add_rows("RMQDISK-54", positions, describe)
