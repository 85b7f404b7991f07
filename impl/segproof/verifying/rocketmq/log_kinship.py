# SPDX-License-Identifier: Apache-2.0
"""Whether index and queues were made of the commit log beside them, or of another one.

Where a log was replaced, or begun again in an empty folder, almost every entry and unit is wrong.
One finding says so in the place of all those.

Laws: RMQDISK-44.
"""

import posixpath
from dataclasses import dataclass

from segproof.findings import Severity, time_text
from segproof.hints import writes
from segproof.reading.log_kinship import Kin, Kinship
from segproof.rocketmq.commit_log import COMMIT_LOG
from segproof.wording.reporting import Reporter
from segproof.wording.rules import REMAKE_STORE, declare

OF_WHICH_LOG = writes(
    "find out which log belongs to this store: look for the former one where else the broker"
    " kept its log (storePathCommitLog), in lost+found and on a replica, and keep index and queues"
    " until then. If the log that is here is the right one, `segproof salvage STORE --out DIR2`"
    " makes a store of it, with index and queues of its own"
)
REMAKE_OTHER_INDEX = writes(
    "make the index new from the commit log with `segproof rebuild STORE --out DIR2`, and add"
    " --hash-slots and --index-num: maxHashSlotNum and maxIndexNum of the broker, which files of"
    " another log do not tell. The old files stay as they are"
)
declare("index-service", Severity.ERROR, OF_WHICH_LOG, "RMQDISK-44")

INDEX, QUEUES = "index", "queues"
"""The parts of a store that are made of its log."""


@dataclass(frozen=True, slots=True)
class Ends:
    """What the newest message is by the log, and by what should have been made of it."""

    log_end: int
    """Offset after the last message of the log."""
    log_time: int
    """When it was stored; -1 without a message."""
    index: int
    """The furthest offset that the index leads to; -1 without an entry."""
    index_time: int
    """When the newest message of the index was stored; -1 if it is not known."""
    queues: int
    """The furthest offset that the queues lead to; -1 without a unit."""

    def words(self, *parts: str) -> str:
        """Return in words where the log ends, and where these parts lead to."""
        own = f"the log ends at offset {self.log_end}"
        if self.log_time >= 0:
            own += f" with a message stored {time_text(self.log_time)}"
        told = [own]
        if INDEX in parts and self.index >= 0:
            told.append(f"the index leads up to offset {self.index}")
            if self.index_time > 0:
                told[-1] += f", of messages stored up to {time_text(self.index_time)}"
        if QUEUES in parts and self.queues >= 0:
            told.append(f"the queues lead up to offset {self.queues}")
        return ", and ".join(told)


def report_kinship(
    store: str, index: Kinship, queues: Kinship, ends: Ends, reporter: Reporter
) -> None:
    """Report the parts that were made of another log."""
    kins = (index.kin, queues.kin)
    if Kin.OTHER not in kins:
        return
    if kins == (Kin.OTHER, Kin.OWN):
        reporter.at(posixpath.join(store, "index")).add(
            "RMQDISK-44",
            f"the index is of another commit log: {_counted(index)}, while the queues agree with"
            f" this log: it stayed when the log was replaced or begun again; {ends.words(INDEX)}",
            actual=index.wrong,
            severity=Severity.WARNING,
            hint=REMAKE_OTHER_INDEX,
        )
        return
    if kins == (Kin.OWN, Kin.OTHER):
        reporter.at(posixpath.join(store, "consumequeue")).add(
            "RMQDISK-44",
            f"the queues are of another commit log: {_counted(queues)}, while the index agrees with"
            f" this log: they stayed when the log was replaced or begun again;"
            f" {ends.words(QUEUES)}",
            actual=queues.wrong,
            severity=Severity.WARNING,
            hint=REMAKE_STORE,
        )
        return
    both = Kinship(index.right + queues.right, index.wrong + queues.wrong)  # all that count
    parts = [name for name, one in ((INDEX, index), (QUEUES, queues)) if one.kin is Kin.OTHER]
    if ends.log_time < 0:
        reporter.at(posixpath.join(store, COMMIT_LOG)).add(
            "RMQDISK-44",
            f"the log has no message, and {both.wrong} entries of {' and '.join(parts)} lead into"
            f" it; {ends.words(*parts)}: the log was emptied, or begun again in an empty folder",
            actual=both.wrong,
        )
        return
    made = "was made" if parts == [INDEX] else "were made"
    reporter.at(posixpath.join(store, COMMIT_LOG)).add(
        "RMQDISK-44",
        f"{' and '.join(parts)} {made} of another log than this one: {_counted(both)};"
        f" {ends.words(*parts)}: the log was replaced, or begun again in an empty folder",
        actual=both.wrong,
    )


def _counted(one: Kinship) -> str:
    whole = one.right + one.wrong
    return f"of {whole} entries that lead into it, {one.wrong} lead to no message of theirs"
