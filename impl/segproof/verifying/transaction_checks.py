# SPDX-License-Identifier: Apache-2.0
"""Transactions: the transaction index against the markers of its log, and what stays open.

A transaction may begin in one segment and end in a later one, so each segment hands on what it saw:
see `segment_carry.TransactionCarry`. Every running producer has an open transaction. A transaction
hangs if it is open for longer than the usual limit. Its age comes from the markers behind its
beginning: a broker's clock set their time.

Upstream: Kafka 4.3.1: TransactionIndex, ProducerStateManager, Cleaner, TransactionsCommand
  (find-hanging).
Laws: BATCH-19; DISK-11, DISK-12, DISK-32, DISK-33, DISK-34, DISK-74.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.counts import plural
from segproof.errors import InvalidRecordError, SegproofError
from segproof.findings import Severity
from segproof.hints import changes, reads
from segproof.integers import INT64_MAX
from segproof.inventory.segments import Segment
from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL
from segproof.kafka.record import control_record_type, end_transaction_marker
from segproof.kafka.record_batch import RecordBatch
from segproof.reading.index_entries import TRANSACTION_ENTRY
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.lost_markers import LOOKED_AT, LostMarkers
from segproof.verifying.segment_carry import (
    Coordinators,
    LogCarry,
    LoneMarkers,
    MarkerTimes,
    TransactionCarry,
)
from segproof.wording.reporting import PathReporter, Reporter
from segproof.wording.rules import REMAKE_TRANSACTIONS, RESTORE, declare
from segproof.wording.segment_files import report_of

declare("transaction-index", Severity.ERROR, REMAKE_TRANSACTIONS, "DISK-12")
declare("record-batch", Severity.WARNING,
    reads("compare with another replica: a marker of a replaced coordinator may have ended the"
    " wrong transaction"), "DISK-34")  # fmt: skip
declare("record-batch", Severity.ERROR, RESTORE, "BATCH-19")
declare("partition-log", Severity.NOTE,
    reads("nothing while its producer is at work: the transaction ends with its marker"),
    "DISK-32")  # fmt: skip
declare(
    "partition-log",
    Severity.NOTE,
    reads("nothing: a transaction may have no batch here"),
    "DISK-33",
)

PRODUCERS_MAX = 1 << 16
"""Open transactions that are followed; with more, absent entries are no longer looked for."""
CONTROL_BATCH_MAX_BYTES = 1 << 20
NAMED_MAX = 5
"""Aborted transactions that are named where one finding is about many."""
HANGS_MS = 20 * 60_000
"""The usual transaction.max.timeout.ms and the five minutes that Kafka's own tool adds."""
LOST_MARKER_HINT = reads(
    "compare the end of the log with another replica before a broker starts here. Without the"
    " marker the transaction stays open: if no replica has it, find the transaction with"
    " `kafka-transactions.sh find-hanging` once the broker runs"
)
ENDED = (
    "by the snapshot of the end of the log it has ended, and a broker that starts after a clean"
    " shutdown believes that one: consumers with read_committed get its records then"
)
ENDED_HINT = reads("nothing here: the finding of the snapshot says what to do (DISK-74)")
HANGING_HINT = changes(
    "end it with `kafka-transactions.sh abort`, naming this first offset",
    only_if="`kafka-transactions.sh find-hanging` lists it, since transaction.max.timeout.ms may be"
    " larger here, and its producer is gone",
    if_wrong="its records are aborted, and consumers with read_committed never get them",
    copy_step="read its records with read_uncommitted, and write those that are needed elsewhere",
)


class TransactionMarkers(LogCheck):
    """Follows the transactions of one log and judges the transaction index by them."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        segment, entries = log.segment, log.transactions
        self._file = log.file
        are_known = ".txnindex" not in segment.suffixes or (
            entries is not None and entries.is_complete
        )
        self._missed_below = log.known_bytes if are_known else 0
        """Below this byte of the log a marker must have its entry. Behind it a broker may have
        written the marker after the entries were read."""
        self._index_report = report_of(segment, ".txnindex", log.reporter)
        kept = np.empty(0, TRANSACTION_ENTRY) if entries is None else entries.kept
        self._kept = kept
        self._order = np.argsort(kept["last_offset"], kind="stable")
        self._lasts = kept["last_offset"].astype(np.int64)[self._order]
        self._is_matched = np.zeros(len(kept), np.bool_)
        self._unsure: list[tuple[int, int]] = []
        self._missing = MissingEntries(segment, log.reporter)
        self._lost = LostMarkers(log.file, log.report)
        self._last_markers: dict[int, int] = {}
        self._untimed: list[int] = []
        """Producers whose transaction began behind the last marker."""
        self._follows = True
        self.carry = TransactionCarry()

    def check(self, block: Block) -> None:
        """Follow the transactional batches of one block."""
        table = block.table
        attributes = table["attributes"]
        if not block.crc_valid.all():
            for row in np.flatnonzero(~block.crc_valid)[:1024].tolist():
                base = int(table["base_offset"][row])
                self._unsure.append((base, base + max(0, int(table["last_offset_delta"][row]))))
                self._lost.take_damaged(base)
        relevant = (table["magic"] == 2) & block.crc_valid
        relevant &= attributes & (TRANSACTIONAL | CONTROL) != 0
        rows = np.flatnonzero(relevant)
        if not len(rows):
            return
        opened, last_markers = self.carry.opened, self._last_markers
        columns = table[rows]
        for is_control, producer_id, base_offset, row in zip(
            (columns["attributes"] & CONTROL != 0).tolist(),
            columns["producer_id"].tolist(),
            columns["base_offset"].tolist(),
            rows.tolist(),
            strict=True,
        ):
            if is_control:
                self._control(table[row])
            elif producer_id not in opened:
                opened[producer_id] = base_offset
                self._untimed.append(producer_id)
        if len(opened) + len(last_markers) > PRODUCERS_MAX:
            self._follows = False
            for known in (opened, last_markers, self._untimed, self.carry.since):
                known.clear()
            self.carry.coordinators.clear()

    @property
    def closed(self) -> set[int]:
        """The producers with a marker so far."""
        return set(self._last_markers)

    def _control(self, row: np.void) -> None:
        """Read a control batch; follow it if it ends a transaction."""
        position, offset = int(row["position"]), int(row["base_offset"])
        try:
            control_type, coordinator_epoch = self._read_control(row)
        except (SegproofError, OSError) as error:
            self._report_unreadable(error, row)
            # Which transaction it ended, and how, is unknown: nothing follows from it.
            self._unsure.append((offset, offset))
            self.carry.opened.pop(int(row["producer_id"]), None)
            return
        if control_type not in ("ABORT", "COMMIT"):
            return
        producer_id = int(row["producer_id"])
        is_abort = control_type == "ABORT"
        first = self.carry.opened.pop(producer_id, None)
        self._follow_time(producer_id, int(row["max_timestamp"]))
        self._follow_coordinator(producer_id, coordinator_epoch, offset, position)
        has_entry = self._match(producer_id, offset, first) if is_abort else True
        is_missing = is_abort and not has_entry and position < self._missed_below
        if first is None:
            if producer_id not in self._last_markers:
                self.carry.ended.setdefault(producer_id, (offset, position, is_missing))
            else:
                self.carry.lone = self.carry.lone.plus(offset, position)
        elif is_missing and self._follows:
            self._missing.add(producer_id, first, offset, position)
        self._last_markers[producer_id] = offset

    def _follow_time(self, producer_id: int, timestamp: int) -> None:
        """Note the time of a marker, for the transactions that began before it."""
        carry = self.carry
        carry.since.pop(producer_id, None)
        for each in self._untimed:
            if each in carry.opened:
                carry.since[each] = timestamp
        self._untimed.clear()
        first = carry.times.first
        carry.times = MarkerTimes(timestamp if first is None else first, timestamp)

    def _follow_coordinator(self, producer_id: int, epoch: int, offset: int, position: int) -> None:
        known = self.carry.coordinators.get(producer_id)
        if known is None:
            found = Coordinators(epoch, epoch, offset, position)
        else:
            if epoch < known.last:
                report_coordinator(self._report, producer_id, known.last, epoch, position)
            found = known._replace(last=epoch)
        self.carry.coordinators[producer_id] = found

    def _report_unreadable(self, error: SegproofError | OSError, row: np.void) -> None:
        """Report a control batch that cannot be read: by the disk, by a cut, or by its bytes."""
        position, end = int(row["position"]), int(row["position"] + row["size_bytes"])
        if isinstance(error, OSError):
            self._report.unreadable(error)
        elif (size := self._file.size()) < end:
            self._report.shrunk(end, size)
        else:
            self._report.add(
                "BATCH-19", f"the control batch cannot be read: {error.message}", position=position
            )

    def _read_control(self, row: np.void) -> tuple[str, int]:
        """Return what a control batch is, and the coordinator epoch of an end; else -1."""
        size, position = int(row["size_bytes"]), int(row["position"])
        if row["record_count"] == 0:
            return "EMPTY", -1
        if size > CONTROL_BATCH_MAX_BYTES:
            raise InvalidRecordError(f"it has {size} bytes")
        batch = RecordBatch(self._file, position, size, 2, in_file=True)
        record = next(batch.records(limit=CONTROL_BATCH_MAX_BYTES))
        control_type, epoch = control_record_type(record.key), -1
        if control_type in ("ABORT", "COMMIT"):
            epoch = end_transaction_marker(record).coordinator_epoch
            if row["record_count"] != 1:
                raise InvalidRecordError(
                    f"it ends a transaction and has {plural(row['record_count'], 'record')}"
                )
        return control_type, epoch

    def _match(self, producer_id: int, offset: int, first: int | None) -> bool:
        """Find and judge the index entry of an abort marker."""
        at = int(np.searchsorted(self._lasts, offset))
        found = False
        while at < len(self._lasts) and self._lasts[at] == offset:
            number = int(self._order[at])
            at += 1
            entry = self._kept[number]
            if int(entry["producer_id"]) != producer_id:
                continue
            found = True
            self._is_matched[number] = True
            claimed = int(entry["first_offset"])
            before = self._last_markers.get(producer_id, -1)
            if before < 0:
                self.carry.begins[producer_id] = claimed
            if (
                first is not None
                and claimed > first
                and self._lost.is_end_lost(producer_id, first, claimed)
            ):
                self._lost.report_end(producer_id, first, claimed)
                self.carry.lost.add((producer_id, first))
            elif (first is not None and claimed > first) or claimed <= before:
                limits = f"{before + 1} to {'the marker' if first is None else first}"
                self._index_report.add(
                    "DISK-11",
                    f"the transaction of producer {producer_id} that was aborted at offset"
                    f" {offset} begins at offset {claimed} by this entry; by the log it begins"
                    f" within {limits}",
                    position=number * TRANSACTION_ENTRY.itemsize,
                    expected=limits,
                    actual=claimed,
                )
        return found

    def hand_on(self, carry: LogCarry) -> None:
        """Hand on what crosses the segment's borders."""
        carry.transactions = self.carry

    def finish(self) -> None:
        """Judge the entries without a marker."""
        is_complete = self._log.is_read
        last_offset = self._segment.base_offset + self._log.reach
        self.carry.is_complete = is_complete and self._follows
        self.carry.closed = self.closed
        self._missing.report()
        unmatched = ~self._is_matched
        if not is_complete:
            unmatched &= self._kept["last_offset"] <= last_offset
        numbers = self._without_lost(np.flatnonzero(unmatched))
        for low, high in self._unsure:
            lasts = self._kept["last_offset"][numbers]
            numbers = numbers[(lasts < low) | (lasts > high)]
        last = self._kept["last_offset"]
        self._index_report.add_where(
            "DISK-11",
            numbers,
            (0, TRANSACTION_ENTRY.itemsize),
            "the log has no marker at offset {last} that aborts a transaction of producer"
            " {producer_id}",
            "the offset of an ABORT marker of this producer",
            last,
            last=last,
            producer_id=self._kept["producer_id"],
        )

    def _without_lost(self, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
        """Report the entries whose marker is lost; return the others.

        A marker that would be in another segment is none of this log's: the index is of that one.
        """
        if not 0 < len(numbers) <= LOOKED_AT:
            return numbers
        others = []
        base, following = self._segment.base_offset, self._segment.next_base_offset
        end = INT64_MAX if following is None else following
        for number in numbers.tolist():
            entry = self._kept[number]
            told = int(entry["producer_id"]), int(entry["first_offset"]), int(entry["last_offset"])
            if base <= told[2] < end and self._lost.is_lost(*told):
                self._lost.report_marker(*told)
                self.carry.lost.add(told[:2])
            else:
                others.append(number)
        return np.array(others, np.intp)


class _Aborted(NamedTuple):
    """An aborted transaction, and where its marker is in the log."""

    producer_id: int
    first: int
    offset: int
    position: int


class MissingEntries:
    """The aborted transactions that a segment's transaction index, or the lack of one, leaves out.

    Without the file they are one finding, unless one byte is asked for: the bytes of their markers
    tell them apart. `directory` is given where it takes the whole partition to see them.
    """

    def __init__(self, segment: Segment, reporter: Reporter, directory: str | None = None) -> None:
        self._segment = segment
        self._reporter = reporter
        self._directory = directory
        self._named: list[_Aborted] = []
        self._count = 0

    def add(self, producer_id: int, first: int, offset: int, position: int) -> None:
        """Take the transaction from offset `first` whose marker is at `offset`."""
        aborted = _Aborted(producer_id, first, offset, position)
        if ".txnindex" in self._segment.suffixes or self._reporter.wanted.position is not None:
            self._report_one(aborted)
            return
        self._count += 1
        if len(self._named) < NAMED_MAX:
            self._named.append(aborted)

    def report(self) -> None:
        """Report, once, all that lack the file."""
        if not self._count:
            return
        named = ", ".join(f"{one.offset} (byte {one.position})" for one in self._named)
        more = ", ..." if self._count > len(self._named) else ""
        number = f"{self._count} transactions" if self._count > 1 else "one transaction"
        self._reporter.at(self._segment.path(".log"), shown_by=self._directory).add(
            "DISK-12",
            f"the segment has no transaction index, and its log has the end of {number} that"
            " a producer aborted: a read_committed consumer would get the records. The markers are"
            f" at the offsets {named}{more}; `--position` with a byte tells of one marker",
            expected=self._segment.path(".txnindex"),
            actual="no file",
        )

    def _report_one(self, aborted: _Aborted) -> None:
        has_index = ".txnindex" in self._segment.suffixes
        producer_id, first, offset, position = aborted
        self._reporter.at(
            self._segment.path(".txnindex" if has_index else ".log"), shown_by=self._directory
        ).add(
            "DISK-12",
            f"producer {producer_id} aborted at offset {offset} (byte {position} of the log) a"
            f" transaction that began at offset {first}, and the transaction index has no entry for"
            " it: a read_committed consumer would get its records",
            position=None if has_index else position,
            expected=offset,
        )


def report_coordinator(
    report: PathReporter, producer_id: int, before: int, epoch: int, position: int
) -> None:
    """Report a marker of a coordinator that another one had replaced."""
    report.add(
        "DISK-34",
        f"the marker of producer {producer_id} is of coordinator epoch {epoch}, and one before it"
        f" of {before}: a coordinator that was replaced has written it",
        position=position,
        expected=f"{before} or more",
        actual=epoch,
    )


class CarriedTransactions:
    """Follows transactions across the segments of one partition, in order."""

    def __init__(self, directory: str, reporter: Reporter, *, is_whole: bool = True) -> None:
        self._directory = directory
        self._reporter = reporter
        self.open: dict[int, int] = {}
        """Producer id to the first offset of its open transaction."""
        self._where: dict[int, str] = {}
        self._since: dict[int, int] = {}
        self._last_marker: int | None = None
        self._coordinators: dict[int, int] = {}
        self._doubtful: dict[int, tuple[int, str]] = {}
        """Producer id to the first offset, and the log, of each transaction that was open before
        the last segment, if that segment could not be read to its end."""
        self._is_sure = self._is_whole = is_whole
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
        self._doubtful.clear()
        if not carry.is_complete or len(self.open) > PRODUCERS_MAX:
            # What lies in the unread part is unknown: an absent entry can't be told from it.
            self._is_sure = False
            for producer_id in list(self.open):
                self._doubtful[producer_id] = self.open[producer_id], self._where[producer_id]
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

    def finish(self, *, is_end_lost: bool, ended: Collection[int]) -> None:
        """Report what is still open at the end of a whole log.

        `is_end_lost`: the log may have lost its end, and the markers there. `ended`: the producers
        that have nothing open by the snapshot of the end.
        """
        if not self._is_whole:
            return
        is_open = {each: (first, self._where[each]) for each, first in self.open.items()}
        if is_end_lost:
            is_open = {**self._doubtful, **is_open}
        stable = min((is_open[each][0] for each in is_open if each not in ended), default=0)
        for producer_id, (first, log) in sorted(is_open.items(), key=lambda one: one[1]):
            since = self._since.get(producer_id)
            age = 0 if since is None or self._last_marker is None else self._last_marker - since
            words = f"the transaction of producer {producer_id} that began at offset {first} is"
            blocked = f"consumers with read_committed get nothing from offset {stable} on, the last"
            blocked += " stable offset"
            hint = severity = None
            if producer_id in ended:
                words += " open by the log alone"
                blocked = ENDED
                hint, severity = ENDED_HINT, Severity.NOTE
            elif is_end_lost:
                words += " open, and the log has lost its end: the marker may have been there"
                hint = LOST_MARKER_HINT
            elif age < HANGS_MS:
                words += " open"
            else:
                words += f" open for more than {age // 60_000} minutes by the markers after it"
                hint = HANGING_HINT
            self._reporter.at(log, shown_by=self._directory).add(
                "DISK-32",
                f"{words}; {blocked}",
                expected="a marker that ends it",
                actual=first,
                severity=severity or (Severity.NOTE if hint is None else Severity.WARNING),
                hint=hint,
            )
