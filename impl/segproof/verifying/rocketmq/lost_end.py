# SPDX-License-Identifier: Apache-2.0
"""The end of a commit log that is gone: index and queues lead to messages after what is left.

The file may be missing, or contain zeros from some byte on. A few such offsets are wrong entries;
more of them are messages that the log had.

The checkpoint tells when the newest message was stored. A later time than that of each message of
the log says that the log had more, where nothing else tells of it.

Laws: RMQDISK-23, RMQDISK-52, RMQDISK-53.
"""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from segproof.counts import plural, verb
from segproof.findings import Severity, time_text
from segproof.hints import writes
from segproof.reading.store_reach import (
    FAR_OFFSETS_MAX,
    MISSING_OFFSETS_MIN,
    Reach,
)
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog
from segproof.rocketmq.store_checkpoint import StoredCheckpoint
from segproof.wording.reporting import Reporter
from segproof.wording.rules import declare

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
declare("index-service", Severity.WARNING,
    writes("look for later files of the log where else the broker keeps files of its log (several"
    " paths in storePathCommitLog), in lost+found and on a replica, and for the store that this"
    " checkpoint is of. After a loss of power these may be the last messages, which a broker with"
    " flushDiskType=ASYNC_FLUSH had not written yet: then a replica alone has them. If they are"
    " gone for good, `segproof salvage STORE --out DIR2` makes a store of those that are here"),
    "RMQDISK-53")  # fmt: skip


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


def report_missing_end(
    store: str, log: CommitLog, reach: Reach, reporter: Reporter,
    lies_elsewhere: Callable[[int, int], str] = lambda start, end: "",
) -> None:  # fmt: skip
    """Report that index or queues lead to messages beyond the last file of the log.

    `lies_elsewhere` returns in words which files of a part of the log are not in their place.
    """
    missing = (reach.furthest - log.max_offset) // log.mapped_file_size + 1
    reporter.at(posixpath.join(store, COMMIT_LOG)).add(
        "RMQDISK-23",
        f"the last file ends at offset {log.max_offset}, and index or queues lead to"
        f" {_counted(reach)} from there on, the last at {reach.furthest}:"
        f" {plural(missing, 'file')} of {log.mapped_file_size} bytes {verb(missing, 'is', 'are')}"
        " missing or elsewhere, or a recovery cut the log; nothing that leads there was judged"
        f"{lies_elsewhere(log.max_offset, reach.furthest + 1)}",
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
        f" lead to {_counted(reach)} from there on, the last at {reach.furthest}: zeros"
        " were written over them, or they never reached the disk, or a recovery cut the log",
        position=end - last.start,
        expected=f"messages up to offset {reach.furthest}",
        actual=end,
    )


def _counted(reach: Reach) -> str:
    at_least = "at least " * (reach.counts[0] >= FAR_OFFSETS_MAX)
    return f"{at_least}{plural(reach.counts[0], 'message')}"


def report_later_checkpoint(
    path: str, stored: StoredCheckpoint, newest: int, reporter: Reporter, *, has_queues: bool
) -> None:
    """Report times of the checkpoint that are later than each message of the log.

    `newest` is the largest store time of the log. `has_queues` says whether queues lead to
    messages, and so to none beyond the log: then the checkpoint alone is no proof of a loss.
    """
    words = "the log had later messages, or this checkpoint is of another store, or damaged"
    if has_queues:
        words = (
            "the queues end with the log all the same, so this checkpoint is damaged or of another"
            " store, the broker's clock was wrong, or both lost their last messages"
        )
    times = (stored.physic_msg_timestamp, stored.logics_msg_timestamp)
    for place, (time, where) in enumerate(zip(times, ("the log", "the queues"), strict=True)):
        if time > newest:
            reporter.at(path).add(
                "RMQDISK-53",
                f"it says that {where} had a message stored {time_text(time)}, and the newest one"
                f" of the log was stored {time_text(newest)}: {words}",
                position=8 * place,
                expected=f"at most {newest}",
                actual=time,
                severity=None if has_queues else Severity.ERROR,
            )
            return
