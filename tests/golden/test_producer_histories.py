# SPDX-License-Identifier: Apache-2.0
"""What the classes of Kafka 4.3.1 made of histories of producers, once; the model says the same.

`producer_histories.json` is a list of histories, each a list of steps: operation, arguments, what
ProducerStateManager answered, its whole state after the step, and the CRC-32 of names and bytes of
its files. They were chosen from 800 random histories of 29902 steps for the answers in them; the
model agreed on all.
"""

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from segproof_model.kafka.broker.producer_append_info import TxnMetadata
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import outcome_of

HISTORIES = json.loads(
    (Path(__file__).parent / "producer_histories.json").read_text(encoding="ascii")
)
LATE_MS = 10_000_000


def text(value: object) -> str:
    """Return a value as the histories have it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value.kind) if isinstance(value, Raised) else str(value)


def batch_of(image: str) -> RecordBatch:
    """Return the batch in these bytes."""
    return MemoryRecords(bytes.fromhex(image)).first_batch()


def txns_of(txns: tuple[TxnMetadata, ...]) -> str:
    """Return the transactions as text."""
    return "".join(f"{one[0]}:{one[1]}:{text(one[2])}," for one in txns)


def state_of(manager: ProducerStateManager) -> str:
    """Return the whole state as text."""
    producers = ""
    for _, entry in sorted(manager.active_producers.items()):
        numbers = (entry.producer_id, entry.producer_epoch, entry.coordinator_epoch)
        stamp, first = entry.last_timestamp, text(entry.current_txn_first_offset)
        producers += "/".join(map(str, (*numbers, stamp, first)))
        for one in entry.batch_metadata:
            told = (one.last_seq, one.last_offset, one.offset_delta, one.timestamp)
            producers += f"[{' '.join(map(str, (*told, one.first_seq, one.first_offset)))}]"
        producers += ";"
    values = (
        manager.map_end_offset,
        manager.last_snapshot_offset,
        manager.latest_snapshot_offset(),
        manager.oldest_snapshot_offset(),
        manager.first_undecided_offset(),
        manager.first_unstable_offset(),
        manager.is_empty,
        manager.has_late_transaction(LATE_MS),
    )
    txns = (txns_of(manager.ongoing_txns), txns_of(manager.unreplicated_txns))
    return "|".join((producers, *txns, *map(text, values)))


def files_of(manager: ProducerStateManager) -> int:
    """Return the checksum of names and bytes."""
    files = "".join(f"{name}={manager.files.image(name).hex()}," for name in manager.files)
    return zlib.crc32(files.encode())


def append(manager: ProducerStateManager, *given: Any) -> str:
    """Append batches of one producer; let them count if none is refused, or in any case."""
    producer_id, origin, version, first_offset, images, is_kept = given
    metadata = None if first_offset is None else LogOffsetMetadata(first_offset)
    info = manager.prepare_update(producer_id, origin)
    told, is_refused = "", False
    for image in images:
        outcome = outcome_of(info.append, batch_of(image), metadata, version)
        is_refused = isinstance(outcome, Raised)
        if is_refused:
            told += text(outcome)
            break
        told += ":".join(map(text, outcome)) if isinstance(outcome, CompletedTxn) else "-"
        told += ";"
    if is_kept or not is_refused:
        manager.update(info)
    return told


def do(manager: ProducerStateManager, operation: str, given: Any) -> str:
    """Do an operation; return its answer as text."""
    if operation == "append":
        return append(manager, *given)
    if operation == "write":
        manager.files.write(given[0], bytes.fromhex(given[1]))
        return "-"
    if operation == "remove":
        manager.files.remove(given[0])
        return "-"
    if operation == "find_duplicate_batch":
        entry = manager.last_entry(given[0])
        found = None if entry is None else entry.find_duplicate_batch(batch_of(given[1]))
        return "none" if entry is None else text(found and found.last_offset)
    if operation == "complete_txn":
        completed = CompletedTxn(*given)
        stable = manager.last_stable_offset(completed)
        outcome = outcome_of(manager.complete_txn, completed)
        return f"{stable};{text(outcome) if isinstance(outcome, Raised) else ''}"
    outcome = outcome_of(getattr(manager, operation), *given)
    is_told = operation != "take_snapshot"  # the class returns nothing there
    return text(outcome) if is_told else "-"


@pytest.mark.checks(
    "PROD-3", "PROD-5", "PROD-6", "PROD-7", "PROD-8", "PROD-9", "PROD-10", "PROD-11", "PROD-12",
    "PROD-13",
)  # fmt: skip
@pytest.mark.parametrize("number", range(len(HISTORIES)))
def test_the_model_says_what_the_class_did(number: int) -> None:
    """Each answer, the whole state after each step, and every byte of every file."""
    manager = ProducerStateManager(Files(), producer_id_expiration_ms=3_600_000)
    for operation, given, outcome, state, files in HISTORIES[number]:
        told = "-"
        if operation != "open":
            told = do(manager, operation, given)
        assert (operation, outcome, state) == (operation, told, state_of(manager))
        assert files == files_of(manager), operation
