# SPDX-License-Identifier: Apache-2.0
"""The transactions of a log across its segments: what ends, what stays open, and for how long.

Every running producer has an open transaction. A transaction hangs if it is open for longer than
the usual limit. Its age comes from the markers behind its beginning: a broker's clock set their
time.

Upstream: Kafka 4.3.1: ProducerStateManager, TransactionsCommand (find-hanging).
Laws: DISK-12, DISK-32, DISK-33, DISK-34.
"""

from segproof.findings import Severity
from segproof.verifying.reporting import Reporter
from segproof.verifying.rules import declare
from segproof.verifying.segment_carry import Coordinators, LoneMarkers, TransactionCarry
from segproof.verifying.segment_files import Segment
from segproof.verifying.transaction_checks import PRODUCERS_MAX, MissingEntries, report_coordinator

declare("partition-log", Severity.NOTE,
    "nothing while its producer is at work: the transaction ends with its marker",
    "DISK-32")  # fmt: skip
declare("partition-log", Severity.NOTE, "nothing: a transaction may have no batch here", "DISK-33")

HANGS_MS = 20 * 60_000
"""The usual transaction.max.timeout.ms and the five minutes that Kafka's own tool adds."""


class CarriedTransactions:
    """Follows transactions across the segments of one partition, in order."""

    def __init__(self, directory: str, reporter: Reporter) -> None:
        self._directory = directory
        self._reporter = reporter
        self.open: dict[int, int] = {}
        """Producer id to the first offset of its open transaction."""
        self._where: dict[int, str] = {}
        self._since: dict[int, int] = {}
        self._last_marker: int | None = None
        self._coordinators: dict[int, int] = {}
        self._is_sure = True
        """Whether all batches so far were read, so that what has not begun is known."""

    def add(self, segment: Segment, carry: TransactionCarry) -> None:
        """Take the next segment; report what only the segments before it show."""
        lone, missing = carry.lone, MissingEntries(segment, self._reporter, self._directory)
        for producer_id, (offset, position, is_missing) in carry.ended.items():
            first = self.open.get(producer_id)
            if first is None and self._is_sure:
                if not lone.number or offset < lone.first_offset:
                    lone = LoneMarkers(lone.number, offset, position)
                lone = lone._replace(number=lone.number + 1)
            elif first is not None and is_missing:
                missing.add(producer_id, first, offset, position)
        missing.report()
        self._report_lone(segment, lone)
        for producer_id in carry.closed:
            self._forget(producer_id)
        if not carry.is_complete or len(self.open) > PRODUCERS_MAX:
            # What lies in the unread part is unknown: an absent entry can't be told from it.
            self._is_sure = False
            for producer_id in list(self.open):
                self._forget(producer_id)
        self._take_times(carry)
        for producer_id, first in carry.opened.items():
            if producer_id not in self.open:
                self.open[producer_id] = first
                self._where[producer_id] = segment.path(".log")
                if producer_id in carry.since:
                    self._since[producer_id] = carry.since[producer_id]
        self._take_coordinators(segment, carry.coordinators)

    def open_at(self, opened: dict[int, int], closed: set[int]) -> dict[int, int]:
        """Return what is open inside the next segment, where it has opened and closed these."""
        left = {each: first for each, first in self.open.items() if each not in closed}
        return {**opened, **left}

    def _forget(self, producer_id: int) -> None:
        for known in (self.open, self._where, self._since):
            known.pop(producer_id, None)

    def _take_times(self, carry: TransactionCarry) -> None:
        """Let the first marker of this segment be the first behind what is open without one."""
        if carry.times.first is None:
            return
        for producer_id in self.open:
            self._since.setdefault(producer_id, carry.times.first)
        self._last_marker = carry.times.last

    def _take_coordinators(self, segment: Segment, found: dict[int, Coordinators]) -> None:
        for producer_id, each in found.items():
            before = self._coordinators.get(producer_id)
            if before is not None and each.first < before:
                report_coordinator(
                    self._reporter.at(segment.path(".log"), shown_by=self._directory),
                    producer_id, before, each.first, each.position,
                )  # fmt: skip
            if before is not None or len(self._coordinators) < PRODUCERS_MAX:
                self._coordinators[producer_id] = each.last

    def _report_lone(self, segment: Segment, lone: LoneMarkers) -> None:
        if not lone.number:
            return
        count = "one marker ends" if lone.number == 1 else f"{lone.number} markers end"
        self._reporter.at(segment.path(".log"), shown_by=self._directory).add(
            "DISK-33",
            f"{count} no transaction with a batch in the log, the first at offset"
            f" {lone.first_offset}: it had none, or its batches were removed",
            position=lone.position,
            expected=0,
            actual=lone.number,
        )

    def finish(self) -> None:
        """Report what is still open at the end of the log."""
        if not self.open:
            return
        stable = min(self.open.values())
        for producer_id, first in sorted(self.open.items(), key=lambda one: one[1]):
            since = self._since.get(producer_id)
            age = 0 if since is None or self._last_marker is None else self._last_marker - since
            words = f"the transaction of producer {producer_id} that began at offset {first} is"
            if age < HANGS_MS:
                words += " open"
            else:
                words += f" open for more than {age // 60_000} minutes by the markers behind it"
            self._reporter.at(self._where[producer_id], shown_by=self._directory).add(
                "DISK-32",
                f"{words}; consumers with read_committed get nothing from offset {stable} on, the"
                " last stable offset",
                expected="a marker that ends it",
                actual=first,
                severity=Severity.NOTE if age < HANGS_MS else Severity.WARNING,
                hint=HANGING_HINT if age >= HANGS_MS else None,
            )


HANGING_HINT = (
    "find it with `kafka-transactions.sh find-hanging` and end it with `kafka-transactions.sh"
    " abort`, naming this first offset; until then compaction stops here too. Lawful only if"
    " transaction.max.timeout.ms was raised"
)
