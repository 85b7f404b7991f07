# SPDX-License-Identifier: Apache-2.0
"""Files of a commit log that nothing else in the store knows, and that contradict it.

Laws: RMQDISK-56.
"""

from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import writes
from segproof.reading.commit_log_damage import DamagedLog
from segproof.reading.unknown_files import (
    Numbered,
    NumbersGoOn,
    UnknownFile,
    unknown_files,
)
from segproof.rocketmq.commit_log import CommitLog
from segproof.verifying.rocketmq.log_records import LogBlock, LogRecords
from segproof.wording.reporting import Reporter
from segproof.wording.rules import declare

declare("index-service", Severity.WARNING, writes(
    "find out whether another store lacks this file, by its topics and queue numbers (`segproof"
    " dump` of the file). A salvage keeps its messages; if it is of another store, save a copy of"
    " this one without the file"
), "RMQDISK-56")  # fmt: skip


def report_unknown_files(
    log: CommitLog, damaged: DamagedLog, reached: int, files: Files, reporter: Reporter
) -> None:
    """Report files after `reached`, the furthest offset that queues and index lead to; -1: none.

    Raises: OSError.
    """
    if reached >= 0:
        for one in unknown_files(log, files, lambda: damaged.in_order.pieces(), reached):
            _report(one, reporter, has_queues=True)


class UnknownFiles:
    """Compares the files of a log with each other, where no queue and no index leads into it."""

    def __init__(self, records: LogRecords, reporter: Reporter) -> None:
        self._records = records
        self._reporter = reporter
        self._numbers = NumbersGoOn(records.log.min_offset)
        self._at = records.log.min_offset
        """Where the present file begins."""
        self._end = self._at
        """The offset after the last message."""

    def add(self, block: LogBlock) -> None:
        """Take the next block."""
        if block.start >= self._at + self._records.log.mapped_file_size:
            self._end_file()
            found = self._records.log.file_of(block.start)
            self._at = block.start if found is None else found.start
        self._numbers.lose(max(0, block.start - self._end))
        self._end = block.end
        for one, queue, host, at in zip(
            block.requests, block.queue_ids, block.hosts, block.offsets, strict=True
        ):
            if one.commit_log_offset != at:  # RMQDISK-25 tells it
                self._numbers.lose(one.msg_size)
                continue
            message = Numbered(one.topic or "", queue, one.consume_queue_offset, one.sys_flag, host)
            self._numbers.add(message, one.msg_size)

    def finish(self) -> None:
        """Judge the last file."""
        self._end_file()

    def _end_file(self) -> None:
        one = self._records.log.file_of(self._at)
        if one is not None and (found := self._numbers.end(one)).is_doubted:
            _report(found, self._reporter, has_queues=False)


def _report(one: UnknownFile, reporter: Reporter, *, has_queues: bool) -> None:
    unknown = "no queue and no index leads into this file; " * has_queues
    reporter.at(one.log_file.path).add(
        "RMQDISK-56",
        f"{unknown}{one.why()}: this file, or one before it, is of another store, or the log lacks"
        " messages before it",
        position=0,
        actual=one.wrong,
    )
