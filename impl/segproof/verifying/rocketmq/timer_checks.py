# SPDX-License-Identifier: Apache-2.0
"""The timer log of a store against its commit log: messages that wait for their time.

A broker writes a delayed message to its commit log, then an entry with its offset to the timer log.
When the time has come it reads the message at that offset. So an entry that leads beyond the end of
the commit log waits for a message that is lost.

Upstream: RocketMQ 5.5.1: TimerMessageStore, MappedFileQueue.load.
Laws: RMQDISK-45.
Not covered: whether a message that waits has an entry; entries that lead before the first message,
  which has expired.
"""

import posixpath
from contextlib import closing

import numpy as np

from segproof.counts import plural, verb
from segproof.files import Files, status_of
from segproof.findings import Severity
from segproof.hints import writes
from segproof.layouts import rocketmq as layouts
from segproof.reading.config_file import CONFIG
from segproof.reading.timer_log import (
    ENTRY_BYTES,
    TIMER_LOG,
    first_byte_after,
    other_length,
    timer_entries,
    usual_length,
)
from segproof.reading.timer_state import read_timer_state, timer_faults
from segproof.rocketmq.commit_log import LogFile
from segproof.verifying.rocketmq.log_records import EMPTY_FILE
from segproof.verifying.rocketmq.store_checks import numbered_files
from segproof.wording.reporting import Reporter
from segproof.wording.rules import declare

TIMER_FILES = "timerlog, timerwheel, config/timercheck and config/timermetrics"
LOOK_FOR_THE_LOG = writes(
    "look for the rest of the commit log first: where else the broker keeps it (several"
    " paths in storePathCommitLog), in lost+found and on a replica. The timers of messages that are"
    " lost never deliver them; `segproof salvage STORE --out DIR2` saves the store without its"
    " timer files, and a broker then makes them again from the messages that are in the log"
)
declare("index-service", Severity.ERROR, LOOK_FOR_THE_LOG, "RMQDISK-45")

MAKE_AGAIN = writes(
    "save the store with `segproof salvage STORE --out DIR2`, without its timer files"
    f" ({TIMER_FILES}): a broker makes them again from the messages in the log, and may deliver"
    " past ones once more"
)
TIMER_CHECK = "timercheck"


class TimerChecks:
    """The files of one timer log."""

    def __init__(self, store: str, files: Files, reporter: Reporter) -> None:
        self._store = store
        self._files = files
        self._reporter = reporter
        self._log_files: list[LogFile] = []

    def check_files(self) -> None:
        """Judge the names and lengths of the files."""
        folder = posixpath.join(self._store, TIMER_LOG)
        self._log_files, _ = numbered_files(folder, self._files, self._reporter)
        usual = usual_length(self._log_files)
        for one in self._log_files:
            if words := other_length(one, usual):
                words += ": every release ends its start at such a file"
                self._reporter.at(one.path).add(
                    "RMQDISK-45", words if one.size_bytes else f"it has 0 bytes: {EMPTY_FILE}",
                    expected=usual or None, actual=one.size_bytes, severity=Severity.WARNING,
                    hint=MAKE_AGAIN,
                )  # fmt: skip

    def check_state(self) -> None:
        """Compare timer log, timer wheel and timercheck with each other."""
        try:
            state = read_timer_state(self._store, self._files)
        except OSError as error:
            self._reporter.at(error.filename or self._store).failed(error)
            return
        for one in timer_faults(state) if state is not None else ():
            self._reporter.at(posixpath.join(self._store, one.name), shown_by=self._store).add(
                "RMQDISK-45", one.words, expected=one.expected, actual=one.actual,
                severity=Severity.WARNING, hint=MAKE_AGAIN,
            )  # fmt: skip

    def compare(self, end: int) -> None:
        """Compare the entries with the end of the commit log, the offset after its last message."""
        read_to = self._read_to()
        for one in self._log_files:
            try:
                self._compare(one, end, read_to)
            except OSError as error:
                self._reporter.at(one.path).failed(error)

    def _compare(self, one: LogFile, end: int, read_to: int) -> None:
        beyond = pending = stop = 0
        first, furthest = -1, -1
        for index, table in timer_entries(one, self._files):
            stop = index + len(table)
            offsets = table["phy_offset"].astype(np.int64)
            lost = np.flatnonzero(offsets >= end)
            if not len(lost):
                continue
            first = first if beyond else index + int(lost[0])
            beyond += len(lost)
            times = table["written"].astype(np.int64) + table["delay"]
            pending += int(np.count_nonzero(times[lost] > read_to))
            furthest = max(furthest, int(offsets[lost].max()))
        if beyond:
            waiting = f", and {pending} of them {verb(pending, 'was', 'were')} not yet delivered"
            self._reporter.at(one.path, shown_by=self._store).add(
                "RMQDISK-45",
                f"{plural(beyond, 'timer')} {verb(beyond, 'leads', 'lead')} beyond the end of the"
                f" commit log, {end}, up to offset {furthest}{waiting if pending else ''}: the log"
                " has lost its end, or is another one",
                position=first * ENTRY_BYTES,
                expected=f"below {end}",
                actual=furthest,
            )

        self._check_end(one, stop * ENTRY_BYTES)

    def _check_end(self, one: LogFile, position: int) -> None:
        """Report what follows the entries, if that is no blank entry and not zeros."""
        found = first_byte_after(one, position, self._files)
        if found is not None:
            self._reporter.at(one.path, shown_by=self._store).add(
                "RMQDISK-45",
                "no entry begins here, and bytes that are not zero follow: a broker that recovers"
                " the timer log cuts it here, and the timers after this byte are lost",
                position=position,
                actual=found,
                severity=Severity.WARNING,
                hint=MAKE_AGAIN,
            )

    def _read_to(self) -> int:
        """Return the time up to which timers were delivered; 0 if no file tells."""
        path = posixpath.join(self._store, CONFIG, TIMER_CHECK)
        try:
            if status_of(self._files, path) is None:
                return 0
            with closing(self._files.open(path)) as file:
                return layouts.TIMER_CHECK["read_to"].read(file)
        except OSError:
            return 0
