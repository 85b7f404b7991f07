# SPDX-License-Identifier: Apache-2.0
"""The leader epochs of a log's batches: in order, and as `leader-epoch-checkpoint` tells them.

Upstream: Kafka since 0.11.0: LeaderEpochFileCache, UnifiedLog.append.
Laws: DISK-28, DISK-37, DISK-64.
Not covered: epochs beyond the first RUNS_MAX of a segment or log.
"""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from segproof.findings import Severity
from segproof.hints import writes
from segproof.inventory.told_ends import AGREED, told_offset
from segproof.kafka.checkpoint_file import EpochEntry
from segproof.reading.rows import Int64Array, shifted
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.segment_carry import EpochRun, LogCarry
from segproof.wording.reporting import PathReporter, Reporter
from segproof.wording.rules import SALVAGE, declare

declare("record-batch", Severity.ERROR,
    writes("if one batch has another epoch than the batches on both sides, its header is damaged,"
    " since no checksum covers the epoch: `segproof salvage DIR --out DIR2` restores it. Else this"
    " log holds batches of two leaders that did not know of each other: compare the partition with"
    " another replica"), "DISK-28")  # fmt: skip
declare("partition-log", Severity.ERROR,
    SALVAGE.after("a salvage makes the file new from the batches: "), "DISK-37")  # fmt: skip
declare("partition-log", Severity.WARNING,
    writes("copy this file away before a broker's next start takes the entry out, and compare the"
    " end of the log with another replica"), "DISK-64")  # fmt: skip

RUNS_MAX = 1 << 14


class EpochCheck(LogCheck):
    """Follows the leader epochs of one segment."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._runs: list[EpochRun] = []

    def check(self, block: Block) -> None:
        """Judge the batches of one block."""
        table = block.table
        good = (table["partition_leader_epoch"] >= 0) & block.crc_valid
        rows = table if good.all() else table[good]
        if not len(rows):
            return
        epochs = rows["partition_leader_epoch"]
        if not self._runs and int(epochs[0]) == int(epochs[-1]) and (epochs == epochs[0]).all():
            starts = np.zeros(1, np.int64)
        else:
            before = self._runs[-1].epoch if self._runs else int(epochs[0])
            previous = shifted(epochs, before)
            _report_falls(self._report, rows["position"], epochs, previous)
            starts = np.flatnonzero(np.concatenate(([True], epochs[1:] != epochs[:-1])))
        ends = np.concatenate((starts[1:], [len(rows)])) - 1
        columns = ("partition_leader_epoch", "base_offset", "position")
        begin = (rows[name][starts].tolist() for name in columns)
        for epoch, first, position, last in zip(
            *begin, rows["last_offset"][ends].tolist(), strict=True
        ):
            self._add(EpochRun(epoch, first, last, position))

    def hand_on(self, carry: LogCarry) -> None:
        """Hand on the runs."""
        carry.runs = self._runs

    def _add(self, run: EpochRun) -> None:
        if self._runs and self._runs[-1].epoch == run.epoch:
            self._runs[-1] = self._runs[-1]._replace(last_offset=run.last_offset)
        elif len(self._runs) < RUNS_MAX:
            self._runs.append(run)


def _report_falls(
    report: PathReporter, positions: Int64Array, epochs: Int64Array, before: Int64Array
) -> None:
    """Report batches of an older epoch than the one before them."""
    report.add_where(
        "DISK-28",
        epochs < before,
        positions,
        "the batch is of leader epoch {epoch}, and the one before it of {before}: at recovery Kafka"
        " drops the epochs from {epoch} on that it knew before, and followers may truncate at"
        " another offset than this log does",
        "{before} or more",
        epochs,
        epoch=epochs,
        before=before,
    )


def compare_epochs(before: EpochRun | None, runs: Sequence[EpochRun], report: PathReporter) -> None:
    """Judge the first epoch of a segment's log by the last one of the segments before it."""
    if before is not None and runs:
        numbers = (runs[0].position, runs[0].epoch, before.epoch)
        _report_falls(report, *(np.array([number], np.int64) for number in numbers))


def check_against_checkpoint(
    entries: Sequence[EpochEntry],
    runs: Sequence[tuple[str, EpochRun]],
    checkpoint: str,
    reporter: Reporter,
    directory: str,
) -> None:
    """Judge runs, each with the path of its log, by the entries, which rise.

    What lies before the first entry has no epoch there: the log start may have moved behind it.
    """
    if not entries:
        if runs:
            reporter.at(checkpoint, shown_by=directory).add(
                "DISK-37",
                f"the file has no entry, and the log ends in leader epoch {runs[-1][1].epoch}: a"
                " follower that asks where an epoch ended is told that it is unknown",
                expected=runs[-1][1].epoch,
                severity=Severity.WARNING,
            )
        return
    starts = [entry.start_offset for entry in entries]
    for path, run in runs:
        if run.last_offset < starts[0]:
            continue
        low = bisect_right(starts, max(run.first_offset, starts[0])) - 1
        high = bisect_right(starts, run.last_offset) - 1
        for place in dict.fromkeys((low, high)):
            told = entries[place]
            if told.epoch == run.epoch:
                continue
            reporter.at(path, shown_by=directory).add(
                "DISK-37",
                f"the batches from offset {run.first_offset} to {run.last_offset} are of leader"
                f" epoch {run.epoch}, and {checkpoint.rpartition('/')[2]} says that epoch"
                f" {told.epoch} began at offset {told.start_offset}: a follower may truncate at a"
                " wrong offset",
                position=run.position,
                expected=told.epoch,
                actual=run.epoch,
            )
            break


def check_end_of_checkpoint(
    entries: Sequence[EpochEntry],
    last_run: EpochRun | None,
    end: int,
    ends: str,
    at: PathReporter,
    *,
    is_agreed: bool,
) -> None:
    """Report an epoch that begins beyond the end of the log.

    `end` is the offset after the last batch, and `ends` says so in words. An epoch may begin at the
    end: its leader has written nothing so far. `is_agreed`: the recovery point and the high
    watermark both say that the log ends there.
    """
    last = entries[-1] if entries else None
    if last is None or last.start_offset <= end:
        return
    is_foreign = last_run is not None and last_run.epoch >= last.epoch
    why = "the log has lost its end, or the file is of another log"
    if is_foreign and last_run is not None:
        why = (
            f"the log has batches of epoch {last_run.epoch} before that, so the file is of another"
            " log, or this log is not its own"
        )
    if is_agreed:
        why += f". {AGREED}"
    at.add(
        "DISK-64",
        f"the file says that leader epoch {last.epoch} began at offset {last.start_offset}, and"
        f" {ends}: {why}. Loading takes the entry out",
        expected=None if is_foreign else f"{end} or less",
        actual=told_offset(last.start_offset, is_agreed=is_agreed),
    )
