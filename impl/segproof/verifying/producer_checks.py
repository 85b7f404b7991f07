# SPDX-License-Identifier: Apache-2.0
"""The producers of a log: their epochs, sequence numbers and transactions must follow each other.

The batches of one block are sorted by producer; a few passes over arrays then compare each batch
with the one before it. A table has one row for each producer. A block hands the table on to the
next block, and a segment to the next segment.

Upstream: Kafka since 0.11.0: ProducerAppendInfo, ProducerStateManager.
Laws: DISK-29, DISK-30, DISK-31, DISK-44.
Not covered: producers beyond PRODUCERS_MAX (a note says so); the sequence numbers of
    `__consumer_offsets`, whose coordinator writes 0 each time.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from segproof.findings import Severity
from segproof.hints import reads, writes
from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL
from segproof.reading.file_names import partition_of
from segproof.reading.rows import Bools, Int64Array
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.segment_carry import PRODUCER, LogCarry, ProducerTable, empty_table
from segproof.wording.reporting import PathReporter
from segproof.wording.rules import declare

declare("record-batch", Severity.ERROR,
    reads("compare with another replica; lawful only if the broker had forgotten the producer"
    " between (producer.id.expiration.ms)"), "DISK-29")  # fmt: skip
declare("record-batch", Severity.ERROR,
    reads("compare with another replica; lawful only if the broker had forgotten the producer"
    " between (producer.id.expiration.ms): then the records are in the log twice"),
    "DISK-30")  # fmt: skip
declare("record-batch", Severity.WARNING,
    reads("compare with another replica: batches may be missing; lawful if the broker had forgotten"
    " the producer between (producer.id.expiration.ms), or a client older than 2.5 began again"),
    "DISK-31")  # fmt: skip
declare("record-batch", Severity.ERROR,
    writes("compare with another replica: a marker is missing, or the broker did not write this"
    " batch. A broker that has to read the log from before it to know its producers can't load the"
    " partition. If no replica is whole, save it with `segproof salvage DIR --out DIR2`, which sets"
    " such batches aside; the old files stay as they are"),
    "DISK-44")  # fmt: skip

PRODUCERS_MAX = 1 << 17
"""Producers that are followed along a segment, and along a log; each takes about 150 bytes."""
EXPIRATION_MS = 86_400_000
"""The usual producer.id.expiration.ms: after such a silence a broker has forgotten a producer."""
SEQUENCE_MAX = (1 << 31) - 1
REFUSED = ": Kafka refuses such a batch, also when it reads the log at its start"
OFFSETS_TOPIC = "__consumer_offsets"

FIRST_DATA = (
    "first_data_epoch", "first_data_position", "first_base_sequence", "first_last_sequence",
    "first_timestamp", "first_missing",
)  # fmt: skip
LAST_DATA = ("data_epoch", "base_sequence", "last_sequence", "last_offset", "missing")


def has_numbers(directory: str) -> bool:
    """Return whether producers number their batches in this partition."""
    known = partition_of(directory)
    return known is None or known.topic != OFFSETS_TOPIC


class ProducerCheck(LogCheck):
    """Follows the producers of one segment; `table` is what is known of them, by producer id."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._has_numbers = has_numbers(log.segment.directory)
        self.table = empty_table()
        self._left_out = 0
        self.missing = 0
        """Offsets in no batch, and batches that can't be read, so far."""
        self.unread = 0
        """Batches that can't be read, so far."""

    def check(self, block: Block) -> None:
        """Judge the batches of one block."""
        table = block.table
        good = table["producer_id"] >= 0
        if not good.any():
            self._missing_before(block)
            return
        missing = self._missing_before(block)
        good &= block.crc_valid & (table["magic"] == 2)
        # A marker that compaction has emptied says nothing.
        good &= (table["attributes"] & CONTROL == 0) | (table["record_count"] > 0)
        rows = np.flatnonzero(good)
        if not len(rows):
            return
        ids = table["producer_id"][rows]
        if (ids[1:] < ids[:-1]).any():
            order = np.argsort(ids, kind="stable")
            rows, ids = rows[order], ids[order]
        own = self._compared(_Sorted(table, rows, ids, missing))
        compare_producers(self.table, own, self._has_numbers, self._report)
        self.table, left_out = join_producers(self.table, own)
        self._left_out += left_out

    def hand_on(self, carry: LogCarry) -> None:
        """Hand on the table, and what it leaves out."""
        carry.producers, carry.left_out = self.table, self._left_out
        carry.missing, carry.unread = self.missing, self.unread

    def _missing_before(self, block: Block) -> Int64Array:
        """Return for each row how many offsets are missing before it in the segment."""
        is_gap = block.is_gap()
        missing = np.full(len(block.table), self.missing, np.int64)
        if is_gap.any() or not block.crc_valid.all():
            gaps = np.where(is_gap, block.first - block.before - 1, 0) + ~block.crc_valid
            missing += np.cumsum(gaps)
            self.missing = int(missing[-1])
            self.unread += int(np.count_nonzero(~block.crc_valid))
        return missing

    def _compared(self, batches: "_Sorted") -> ProducerTable:
        """Compare the batches of each producer with each other; return one row for each."""
        rows, pair = batches.rows, batches.follows()
        epochs = batches.table["producer_epoch"][rows]
        falls = np.flatnonzero(pair & (epochs[1:] < epochs[:-1]))
        if len(falls):
            before, after = batches.each(rows[falls]), batches.each(rows[falls + 1])
            _judge_epochs(before, after, self._report)
        kinds = batches.table["attributes"][rows] & (TRANSACTIONAL | CONTROL)
        leaves = np.flatnonzero(pair & (kinds[:-1] == TRANSACTIONAL) & (kinds[1:] == 0))
        if len(leaves):
            before, after = batches.each(rows[leaves]), batches.each(rows[leaves + 1])
            _judge_transactions(before, after, self._report)
        own = batches.ends_of(pair)
        is_data = batches.table["attributes"][rows] & CONTROL == 0
        if not is_data.all():
            batches = batches.only(is_data)
            pair, epochs, rows = batches.follows(), epochs[is_data], batches.rows
            data = batches.ends_of(pair)
            at = np.searchsorted(own["producer_id"], data["producer_id"])
            for name in (*FIRST_DATA, *LAST_DATA):
                own[name][at] = data[name]
        if self._has_numbers and len(rows):
            base, last = batches.sequences()
            due = np.where(epochs[1:] == epochs[:-1], (last[:-1] + 1) & SEQUENCE_MAX, 0)
            broken = np.flatnonzero(pair & (base[1:] != due))
            if len(broken):
                before, after = batches.each(rows[broken]), batches.each(rows[broken + 1])
                _judge_sequences(before, after, self._report)
        return own


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Rows of a table of batches, by producer, and in the order of the log for each."""

    table: NDArray[np.void]
    rows: Int64Array
    ids: Int64Array
    missing: Int64Array
    """For each row of the table, how many offsets are missing before it."""

    def only(self, wanted: Bools) -> "_Sorted":
        """Return some of them."""
        return _Sorted(self.table, self.rows[wanted], self.ids[wanted], self.missing)

    def follows(self) -> Bools:
        """Return for each but the first whether the one before it is of the same producer."""
        return np.asarray(self.ids[1:] == self.ids[:-1], np.bool_)

    def sequences(self) -> tuple[Int64Array, Int64Array]:
        """Return the first and the last sequence number of each."""
        base = self.table["base_sequence"][self.rows].astype(np.int64)
        return base, (base + self.table["last_offset_delta"][self.rows]) & SEQUENCE_MAX

    def ends_of(self, follows: Bools) -> ProducerTable:
        """Return one row for each producer, of its first and its last batch."""
        if not len(self.rows):
            return empty_table()
        is_first = np.concatenate((np.ones(1, np.bool_), ~follows))
        starts = np.flatnonzero(is_first)
        ends = np.concatenate((starts[1:], [len(self.rows)])) - 1
        own, first = self.each(self.rows[ends]), self.each(self.rows[starts])
        for name in ("first_epoch", "first_position", "first_kind", *FIRST_DATA):
            own[name] = first[name]
        return own

    def each(self, rows: Int64Array) -> ProducerTable:
        """Return a row for each of some rows of the table."""
        table, each = self.table[rows], np.empty(len(rows), PRODUCER)
        is_marker = table["attributes"] & CONTROL != 0
        each["producer_id"] = table["producer_id"]
        each["first_epoch"] = each["epoch"] = each["data_epoch"] = table["producer_epoch"]
        each["first_position"] = each["first_data_position"] = table["position"]
        each["first_kind"] = each["kind"] = table["attributes"] & (TRANSACTIONAL | CONTROL)
        each["first_timestamp"] = each["timestamp"] = table["max_timestamp"]
        each["first_missing"] = each["missing"] = self.missing[rows]
        each["base_sequence"] = table["base_sequence"]
        last = table["base_sequence"].astype(np.int64) + table["last_offset_delta"]
        each["last_sequence"] = last & SEQUENCE_MAX
        each["last_offset"] = table["last_offset"]
        if is_marker.any():
            for name in ("data_epoch", "base_sequence", "last_sequence", "last_offset"):
                each[name][is_marker] = -1
        each["first_data_epoch"] = each["data_epoch"]
        each["first_base_sequence"] = each["base_sequence"]
        each["first_last_sequence"] = each["last_sequence"]
        return each


def join_producers(
    table: ProducerTable, later: ProducerTable, missing: int = 0
) -> tuple[ProducerTable, int]:
    """Return what two tables, each ordered by producer, say together, and how many were left out.

    `missing` is added to that of the later one. The rows of `table` are written over.
    """
    if missing:
        later = later.copy()
        later["first_missing"] += missing
        later["missing"] += missing
    at, known = _places(table, later)
    joined = table
    old, new = at[known], later[known]
    for name in ("epoch", "kind", "timestamp"):
        joined[name][old] = new[name]
    has_data = new["data_epoch"] >= 0
    begins = has_data & (joined["first_data_epoch"][old] < 0)
    for name in FIRST_DATA:
        joined[name][old[begins]] = new[name][begins]
    for name in LAST_DATA:
        joined[name][old[has_data]] = new[name][has_data]
    fresh = later[~known]
    room = max(0, PRODUCERS_MAX - len(joined))
    left_out = max(0, len(fresh) - room)
    if len(fresh) and room:
        joined = np.concatenate((joined, fresh[:room]))
        joined = joined[np.argsort(joined["producer_id"], kind="stable")]
    return joined, left_out


def _places(table: ProducerTable, later: ProducerTable) -> tuple[Int64Array, Bools]:
    """Return where the producers of `later` are in `table`, and whether they are."""
    at = np.searchsorted(table["producer_id"], later["producer_id"])
    known = at < len(table)
    known[known] = table["producer_id"][at[known]] == later["producer_id"][known]
    return at, known


def compare_producers(
    table: ProducerTable,
    later: ProducerTable,
    numbered: bool,
    report: PathReporter,
    missing: int = 0,
) -> None:
    """Judge the first batches in `later`, of one log, by the last ones in `table`.

    `missing` is how many offsets are missing before that log.
    """
    at, known = _places(table, later)
    if not known.any():
        return
    old, new = at[known], np.flatnonzero(known)
    falls = later["first_epoch"][new] < table["epoch"][old]
    if falls.any():
        _judge_epochs(table[old[falls]], later[new[falls]], report)
    leaves = (table["kind"][old] == TRANSACTIONAL) & (later["first_kind"][new] == 0)
    if leaves.any():
        before, after = table[old[leaves]], later[new[leaves]]
        _judge_transactions(before, after, report, missing)
    if not numbered:
        return
    epochs, sequences = table["data_epoch"][old], table["last_sequence"][old]
    later_epochs = later["first_data_epoch"][new]
    due = np.where(later_epochs == epochs, (sequences + 1) & SEQUENCE_MAX, 0)
    broken = later["first_base_sequence"][new] != due
    broken &= (epochs >= 0) & (later_epochs >= 0)
    if broken.any():
        _judge_sequences(table[old[broken]], later[new[broken]], report, missing)


def _judge_epochs(before: ProducerTable, after: ProducerTable, report: PathReporter) -> None:
    is_older = after["first_epoch"] < before["epoch"]
    # Of a marker the first timestamp is its own; of what follows it, at least that.
    forgotten = after["first_timestamp"] - before["timestamp"] >= EXPIRATION_MS
    for severity, where in (
        (Severity.ERROR, is_older & ~forgotten),
        (Severity.WARNING, is_older & forgotten),
    ):
        report.add_where(
            "DISK-29",
            where,
            after["first_position"],
            "producer {after[producer_id]} writes in epoch {after[first_epoch]} after it has"
            " written in epoch {before[epoch]}: Kafka fences off an older epoch at the append, and"
            " takes what lies in the log as it is",
            "{before[epoch]} or more",
            after["first_epoch"],
            severity=severity,
            before=before,
            after=after,
        )


def _judge_transactions(
    before: ProducerTable, after: ProducerTable, report: PathReporter, missing: int = 0
) -> None:
    """Report batches outside of a transaction that come next to those of an open one."""
    has_gap = after["first_missing"] + missing > before["missing"]
    for severity, where, what_follows in (
        (Severity.ERROR, ~has_gap,
         REFUSED),
        (Severity.WARNING, has_gap,
         "; offsets are missing between, and the marker may be among them" + REFUSED),
    ):  # fmt: skip
        report.add_where(
            "DISK-44",
            where,
            after["first_position"],
            "this batch of producer {after[producer_id]} is of no transaction, and the one before"
            " it, which ends at offset {before[last_offset]}, is of one that no marker has ended"
            + what_follows,
            "a batch of the transaction, or its marker",
            "neither",
            severity=severity,
            before=before,
            after=after,
        )


def _judge_sequences(
    before: ProducerTable, after: ProducerTable, report: PathReporter, missing: int = 0
) -> None:
    base, last = after["first_base_sequence"], before["last_sequence"]
    is_same = after["first_data_epoch"] == before["data_epoch"]
    due = np.where(is_same, (last + 1) & SEQUENCE_MAX, 0)
    broken = (base != due) & (after["first_data_epoch"] >= before["data_epoch"])
    is_back = (last - base) & SEQUENCE_MAX < 1 << 30
    is_repeated = (base == before["base_sequence"]) & (after["first_last_sequence"] == last)
    again = broken & is_same & is_back & ((base != 0) | is_repeated)
    gone = broken & ~again
    forgotten = after["first_timestamp"] - before["timestamp"] >= EXPIRATION_MS
    has_gap = after["first_missing"] + missing > before["missing"]
    twice = ": records that the log had already, and consumers get them twice"
    for law, severity, where, what_follows in (
        ("DISK-30", Severity.ERROR, again & ~forgotten, twice),
        ("DISK-30", Severity.WARNING, again & forgotten, twice),
        ("DISK-31", Severity.WARNING, gone & ~has_gap, ""),
        ("DISK-31", Severity.NOTE, gone & has_gap,
         "; offsets are missing between, as compaction leaves them"),
    ):  # fmt: skip
        report.add_where(
            law,
            where,
            after["first_data_position"],
            "this batch of producer {after[producer_id]}, epoch {after[first_data_epoch]}, has the"
            " sequence numbers {after[first_base_sequence]} to {after[first_last_sequence]}, and"
            " {due} should follow" + what_follows,
            due,
            base,
            severity=severity,
            after=after,
            due=due,
        )
