# SPDX-License-Identifier: Apache-2.0
"""The entries of a producer snapshot against what the log before its offset says.

The log may know less: producers expire, and retention and compaction remove batches. So only what
no such history explains is reported.

Upstream: Kafka since 0.11.0: ProducerStateManager, ProducerStateEntry.
Laws: PROD-14, DISK-74.
Not covered: timestamps and coordinator epochs; producers that a snapshot leaves out, which may have
    expired, unless they have a transaction open.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from segproof.findings import Severity
from segproof.hints import reads
from segproof.kafka.producer_snapshot import ProducerStateEntry
from segproof.layouts.kafka import SNAPSHOT, SNAPSHOT_ENTRY
from segproof.verifying.segment_carry import ProducerTable
from segproof.wording.reporting import PathReporter
from segproof.wording.rules import REMAKE_SNAPSHOT, declare

declare("partition-log", Severity.WARNING, REMAKE_SNAPSHOT, "PROD-14")

LOST_MARKER_HINT = reads(
    "compare with another replica, which may have the marker. The snapshot alone says that the"
    " transaction has ended: by the log it is open, and consumers with read_committed would get"
    " nothing from its first offset on"
)


@dataclass(frozen=True, slots=True)
class KnownProducers:
    """What the log says of its producers, up to one offset."""

    producers: ProducerTable
    open: dict[int, int]
    """Producer id to the first offset of its open transaction; none where a batch is unreadable."""
    start_offset: int
    """Where the log begins."""
    is_whole: bool
    """Whether no offset and no producer is missing."""

    def is_marker_lost(self, entry: ProducerStateEntry, last_offset: int) -> bool:
        """Return whether a marker is lost, where an entry contradicts a transaction of the log.

        `last_offset` is that of the producer's last batch in the log. An entry that knows it, and
        nothing open, was made where the marker was known: by a broker, or by a salvage.
        """
        first, told = self.open.get(entry.producer_id), entry.current_txn_first_offset
        if first is None or (told is not None and told < first):
            return False
        return not self.is_whole or (told is None and entry.last_offset == last_offset)


def check_snapshot(
    report: PathReporter, entries: Sequence[ProducerStateEntry] | None, known: KnownProducers
) -> dict[int, int]:
    """Judge the entries of a snapshot, unless they could not be read.

    Return where the transactions begin, by producer, that have ended by it and not by the log.
    """
    if not entries:
        # A broker that finds no snapshot writes empty ones.
        return {}
    ended = dict[int, int]()
    ids = np.array([entry.producer_id for entry in entries], np.int64)
    rows = known.producers
    at = np.searchsorted(rows["producer_id"], ids)
    columns = ("epoch", "data_epoch", "last_sequence", "last_offset")
    for number, (entry, place) in enumerate(zip(entries, at.tolist(), strict=True)):
        row = None
        if place < len(rows) and rows["producer_id"][place] == entry.producer_id:
            row = _Known(*(int(rows[name][place]) for name in columns))
        position = SNAPSHOT.size + number * SNAPSHOT_ENTRY.size
        words = _of_batches(entry, row, known)
        if words:
            _report(report, entry.producer_id, words, position)
        elif words := _of_transaction(entry, known):
            if known.is_marker_lost(entry, -1 if row is None else row.last_offset):
                first = known.open[entry.producer_id]
                _report_lost_marker(report, entry.producer_id, first, position)
                ended[entry.producer_id] = first
            else:
                _report(report, entry.producer_id, words, position)
    listed = set(ids.tolist())
    for producer_id, first in known.open.items():
        if producer_id not in listed:
            words = f"it has a transaction open from offset {first} on, and no entry here"
            _report(report, producer_id, words, None)
    return ended


def _report(
    report: PathReporter,
    producer_id: int,
    words: str,
    position: int | None,
) -> None:
    report.add(
        "PROD-14",
        f"producer {producer_id} is not as the log says: {words}",
        position=position,
        actual=producer_id,
    )


def _report_lost_marker(report: PathReporter, producer_id: int, first: int, position: int) -> None:
    """Report a transaction that had ended, by a snapshot, and that the log has open."""
    report.add(
        "DISK-74",
        f"the end of the transaction of producer {producer_id} that begins at offset {first} is"
        " lost: by this snapshot it had ended, and the log before it has no marker",
        position=position,
        expected=f"a marker after offset {first}",
        actual="none",
        hint=LOST_MARKER_HINT,
    )


def _of_batches(entry: ProducerStateEntry, row: "_Known | None", known: KnownProducers) -> str:
    """Return what is wrong about the last batch or the epoch of an entry; empty for nothing."""
    last = entry.last_offset
    reached = -1 if row is None else row.last_offset
    if last > reached and last >= known.start_offset and known.is_whole:
        return f"its last batch ends at offset {last}, where the log has none of it"
    if row is None:
        return ""
    if 0 <= last < reached:
        return f"its last batch ends at offset {last}, and the log has one that ends at {reached}"
    told = (entry.producer_epoch, entry.last_seq)
    if last == reached >= 0 and told != (row.data_epoch, row.last_sequence):
        return (
            f"its batch that ends at offset {last} is of epoch {told[0]} with last sequence"
            f" {told[1]}; in the log it is of epoch {row.data_epoch} with {row.last_sequence}"
        )
    if entry.producer_epoch < row.epoch:
        return f"it is of epoch {entry.producer_epoch}, and the log of it has epoch {row.epoch}"
    return ""


def _of_transaction(entry: ProducerStateEntry, known: KnownProducers) -> str:
    """Return what is wrong about the open transaction of an entry; empty for nothing."""
    told, first = entry.current_txn_first_offset, known.open.get(entry.producer_id)
    if told == first:
        return ""
    if told is None:
        return f"it has a transaction open from offset {first} on, and the entry has none"
    if first is not None and told > first:
        return f"its transaction begins at offset {told}, and in the log at offset {first}"
    if told >= known.start_offset and known.is_whole:
        return f"a transaction is open from offset {told} on, and in the log it is not"
    return ""


class _Known(NamedTuple):
    """What the log says of one producer."""

    epoch: int
    data_epoch: int
    last_sequence: int
    last_offset: int
