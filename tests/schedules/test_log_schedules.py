# SPDX-License-Identifier: Apache-2.0
"""A log's readers beside its writer: each answer is that of a state before, amid or after a change.

Schedules with one switch are run: the whole change at each step of a read, and each whole read at
every second step of a change. A change is a list of operations; between two of them is a state as
well.
"""

from collections.abc import Callable
from importlib import import_module
from itertools import cycle
from typing import Any

import pytest

from segproof.errors import OffsetOutOfRangeError
from segproof.kafka import PartitionLog
from segproof_harness.laws.borders.log_files import marker
from segproof_tests.interleaving import schedules
from segproof_tests.memory_logs import START_MS, Place, batch


def modules(names: str) -> frozenset[str]:
    """Return the full names of modules."""
    return frozenset(import_module(f"segproof.kafka.{name}").__name__ for name in names.split())


BOTH = "broker.read_bounds segments.log_segment segments.segment_files record_file"
READING = modules(
    f"{BOTH} broker.partition_log broker.log_view broker.offset_by_time broker.log_segments"
    " segments.log_search offset_index time_index transaction_index"
)
WRITING = modules(f"{BOTH} broker.partition_log broker.local_log broker.log_append")
"""Without the indexes: an index that is being opened lets a reader wait."""
PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
DATA = [batch(6, timestamp_ms=START_MS + 10 * number) for number in range(9)]
OF_TRANSACTION = batch(3, base_sequence=0, is_transactional=True, **PRODUCER)
MARKER = marker(0, timestamp=START_MS)
OPTIONS: dict[str, Any] = {"segment_bytes": 800, "index_interval_bytes": 1}
"""With an entry for each batch: where a search begins at a wrong offset, it misses the batch."""
Step = Callable[[PartitionLog], Any]


def first_image() -> dict[str, bytes]:
    """Return the files of a log with segments at 0, 12 and 24; a transaction is open from 27."""
    place = Place()
    log = place.open(**OPTIONS)
    for pair in ((0, 2), (1, 3)):
        for number in pair:
            log.append_as_leader(DATA[number], 0)
        log.roll()
    log.append_as_leader(batch(3, timestamp_ms=START_MS + 40), 1)
    log.append_as_leader(OF_TRANSACTION, 1)
    log.close()
    return place.image()


IMAGE = first_image()


def loaded(change: str) -> PartitionLog:
    """Return the log before a change, with its indexes opened, and all of it replicated."""
    place = Place()
    for name, data in IMAGE.items():
        place.put(name, data)
    log = place.open(**OPTIONS)
    log.update_high_watermark(30)
    for segment in log.log_segments:
        assert segment.offset_index.length
        assert segment.time_index.length
    if change == "append again":  # else what it knows of the largest time is in the indexes alone
        append(4)(log)
    return log


def append(number: int, epoch: int = 1) -> Step:
    """Return the step that appends a batch."""
    return lambda log: log.append_as_leader(DATA[number], epoch)


def end_transaction(log: PartitionLog) -> None:
    """Abort the open transaction."""
    log.append_as_leader(MARKER, 1, origin="coordinator", transaction_version=1)


CHANGES: dict[str, tuple[Step, ...]] = {
    "append and roll": (append(5), append(6, 2), PartitionLog.roll, append(7, 2)),
    "append again": (append(5),),
    "abort": (end_transaction, lambda log: log.update_high_watermark(31)),
    "truncate": (
        lambda log: log.truncate_to(24),
        lambda log: log.truncate_to(18),
        append(1, 2),
    ),
    "begin anew": (lambda log: log.truncate_fully_and_start_at(20),),
    "remove the oldest": (
        lambda log: log.maybe_increment_log_start_offset(13),
        PartitionLog.delete_old_segments,
        lambda log: log._log.directory.delete_due_files(),
    ),
}


def records_of(log: PartitionLog, offset: int, size: int, isolation: str) -> Any:
    """Return place and bytes of a read, with the aborted transactions that meet them."""
    info = log.read(offset, size, isolation)
    if info.records is None or not (data := info.records.read()):
        return "no records"
    end = max(one.next_offset for one in info.records.batches())
    aborted = [txn for txn in info.aborted_transactions or () if txn.first_offset < end]
    return info.fetch_offset_metadata, data, aborted


READS: dict[str, Step] = {
    "old records": lambda log: records_of(log, 13, 300, "log_end"),
    "last records": lambda log: records_of(log, 25, 10_000, "log_end"),
    "replicated records": lambda log: records_of(log, 24, 10_000, "high_watermark"),
    "committed records": lambda log: records_of(log, 24, 10_000, "txn_committed"),
    "first record of a time": lambda log: log.fetch_offset_by_timestamp(START_MS + 41),
    "record of the largest time": lambda log: log.fetch_offset_by_timestamp(-3),
    "end": lambda log: log.fetch_offset_by_timestamp(-1),
    "start": lambda log: log.fetch_offset_by_timestamp(-2),
}


def answer(read: Step, log: PartitionLog) -> Any:
    """Return what a read answers."""
    try:
        return read(log)
    except OffsetOutOfRangeError:
        return "out of range"


def answers_amid(change: str, read: Step) -> list[Any]:
    """Return what a read answers before a change, after each of its operations, and at its end."""
    log = loaded(change)
    found = [answer(read, log)]
    for step in CHANGES[change]:
        step(log)
        found.append(answer(read, log))
    return found


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.checks("LOG-5", "LOG-6", "LOG-8", "LOG-15", "LOG-16")
def test_a_change_within_a_read(change: str) -> None:
    """A read that a change interrupts anywhere answers of one state, and leaves nothing behind.

    What was cut under it may refuse to be read. The same read once more knows of the whole change.
    """
    runs = 0
    for name, read in READS.items():
        known = answers_amid(change, read)
        found: list[Any] = []

        def prepare(read: Step = read, found: list[Any] = found) -> Any:
            log = loaded(change)
            found[:] = [log]
            return (
                lambda: found.append(answer(read, log)),
                lambda: [step(log) for step in CHANGES[change]],
            )

        for step in schedules(prepare, READING):
            log, seen = found
            is_cut = seen == "out of range" and change in ("truncate", "begin anew")
            assert seen in known or is_cut, (name, step)
            assert answer(read, log) == known[-1], (name, step)
            runs += 1
    assert runs > 200


@pytest.mark.parametrize("change", CHANGES)
def test_a_read_within_a_change(change: str) -> None:
    """A read anywhere in the middle of a change answers of one state as well.

    At each step one half of the reads is done, by turns.
    """
    known = {name: answers_amid(change, read) for name, read in READS.items()}
    turns = cycle((list(READS)[::2], list(READS)[1::2]))
    wrong: list[str] = []

    def prepare() -> Any:
        log = loaded(change)

        def look() -> None:
            wrong.extend(n for n in next(turns) if answer(READS[n], log) not in known[n])

        return lambda: [step(log) for step in CHANGES[change]], look

    for step in schedules(prepare, WRITING):
        assert wrong == [], step
