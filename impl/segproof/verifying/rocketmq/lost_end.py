# SPDX-License-Identifier: Apache-2.0
"""The end of a commit log that is gone: index and queues lead to messages after what is left.

The file may be missing, or contain zeros from some byte on. A few such offsets are wrong entries;
more of them are messages that the log had.

Laws: RMQDISK-23, RMQDISK-52.
"""

import posixpath
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from segproof.counts import plural, verb
from segproof.findings import Severity
from segproof.hints import writes
from segproof.reading.store_reach import FAR_OFFSETS_MAX, MISSING_OFFSETS_MIN, Reach
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog
from segproof.verifying.reporting import Reporter
from segproof.verifying.rules import declare

MISSING_END = writes(
    "look where else the broker keeps files of its log (several paths in storePathCommitLog), in"
    " lost+found and on a replica, and keep index and queues until then: they tell what is missing."
    " If the messages are gone for good, `segproof salvage STORE --out DIR2` makes a store of those"
    " that are here"
)
ZEROED_END = writes(
    "look for this file in lost+found and on a replica, and keep index and queues until then: they"
    " tell what is missing. If the messages are gone for good, `segproof salvage STORE --out DIR2`"
    " makes a store of those that are here"
)
declare("index-service", Severity.ERROR, ZEROED_END, "RMQDISK-52")


@dataclass(slots=True)
class LedBeyond:
    """The different offsets at or after the end of the log that a part of the store leads to."""

    offsets: set[int] = field(default_factory=set)
    """At most FAR_OFFSETS_MAX of them, and those of one more call of `add`."""
    furthest: int = -1

    def add(self, offsets: NDArray[np.int64]) -> None:
        """Add some of them."""
        if len(offsets):
            self.furthest = max(self.furthest, int(offsets.max()))
            if len(self.offsets) < FAR_OFFSETS_MAX:
                self.offsets.update(np.unique(offsets)[:FAR_OFFSETS_MAX].tolist())

    def joined(self, other: "LedBeyond") -> "LedBeyond":
        """Return those of both parts."""
        return LedBeyond(self.offsets | other.offsets, max(self.furthest, other.furthest))

    @property
    def reach(self) -> Reach | None:
        """How many there are; None for so few that they are wrong entries."""
        if len(self.offsets) < MISSING_OFFSETS_MIN:
            return None
        return Reach([min(len(self.offsets), FAR_OFFSETS_MAX)], self.furthest)


def report_missing_end(store: str, log: CommitLog, reach: Reach, reporter: Reporter) -> None:
    """Report that index or queues lead to messages beyond the last file of the log."""
    missing = (reach.furthest - log.max_offset) // log.mapped_file_size + 1
    reporter.at(posixpath.join(store, COMMIT_LOG)).add(
        "RMQDISK-23",
        f"the last file ends at offset {log.max_offset}, and index or queues lead to"
        f" {_counted(reach)} messages from there on, the last at {reach.furthest}:"
        f" {plural(missing, 'file')} of {log.mapped_file_size} bytes {verb(missing, 'is', 'are')}"
        " missing or elsewhere, or a recovery cut the log; nothing that leads there was judged",
        expected=f"files up to offset {reach.furthest}",
        actual=log.max_offset,
        hint=MISSING_END,
    )


def report_zeroed_end(log: CommitLog, end: int, reach: Reach, reporter: Reporter) -> None:
    """Report that index or queues lead to messages from `end` on, where the records end."""
    last = log.file_of(end) or log.log_files[-1]
    zeros = ", with zeros from there on," * (end < log.max_offset)
    reporter.at(last.path).add(
        "RMQDISK-52",
        f"the log ends in this file at offset {end}{zeros} and index or queues"
        f" lead to {_counted(reach)} messages from there on, the last at {reach.furthest}: zeros"
        " were written over them, or they never reached the disk, or a recovery cut the log",
        position=end - last.start,
        expected=f"messages up to offset {reach.furthest}",
        actual=end,
    )


def _counted(reach: Reach) -> str:
    at_least = "at least " * (reach.counts[0] >= FAR_OFFSETS_MAX)
    return f"{at_least}{reach.counts[0]}"
