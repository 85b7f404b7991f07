# SPDX-License-Identifier: Apache-2.0
"""What the classes of Kafka 4.3.1 made of histories of producers, once; the model says the same.

`producer_histories.json` is a list of histories, each a list of steps: operation, arguments, what
ProducerStateManager answered, its whole state after the step, and the CRC-32 of names and bytes of
its files. They were chosen from 800 random histories of 29902 steps for the answers in them; the
model agreed on all.
"""

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.producer_state import CompletedTxn, ProducerStateManager, TxnMetadata
from segproof_model.kafka.record_batch import RecordBatch, read_batch
from segproof_model.language.outcomes import Raised

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
    batch = read_batch(bytes.fromhex(image))
    assert isinstance(batch, RecordBatch)
    return batch


def txns_of(txns: tuple[TxnMetadata, ...]) -> str:
    """Return the transactions as text."""
    return "".join(f"{one[0]}:{one[1]}:{text(one[2])}," for one in txns)


def state_of(manager: ProducerStateManager) -> str:
    """Return the whole state as text."""
    producers = ""
    for entry in manager.producers:
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
    files = "".join(f"{name}={data.hex()}," for name, data in manager.directory.files)
    return zlib.crc32(files.encode())


def append(manager: ProducerStateManager, *given: Any) -> tuple[ProducerStateManager, str]:
    """Append batches of one producer; let them count if none is refused, or in any case."""
    producer_id, origin, version, first_offset, images, is_kept = given
    metadata = None if first_offset is None else LogOffsetMetadata(first_offset)
    info = manager.prepare_update(producer_id, origin)
    told = ""
    for image in images:
        step = info.append(batch_of(image), metadata, version)
        info, outcome = step.after, step.outcome
        if isinstance(outcome, Raised):
            told += text(outcome)
            return (manager.update(info).after if is_kept else manager), told
        told += ":".join(map(text, outcome)) if isinstance(outcome, CompletedTxn) else "-"
        told += ";"
    return manager.update(info).after, told


def after(manager: ProducerStateManager, operation: str, given: Any) -> Any:
    """Return the state after an operation, and its answer as text."""
    directory = manager.directory
    if operation == "append":
        return append(manager, *given)
    if operation == "write":
        written = directory.write(given[0], bytes.fromhex(given[1]))
        return replace(manager, directory=written), "-"
    if operation == "remove":
        return replace(manager, directory=directory.remove(given[0])), "-"
    if operation == "find_duplicate_batch":
        entry = manager.last_entry(given[0])
        found = None if entry is None else entry.find_duplicate_batch(batch_of(given[1]))
        told = "none" if entry is None else text(found and found.last_offset)
        return manager, told
    if operation == "complete_txn":
        completed = CompletedTxn(*given)
        step = manager.complete_txn(completed)
        refused = text(step.outcome) if isinstance(step.outcome, Raised) else ""
        return step.after, f"{manager.last_stable_offset(completed)};{refused}"
    step = getattr(manager, operation)(*given)
    is_told = operation != "take_snapshot"  # the class returns nothing there
    return step.after, text(step.outcome) if is_told else "-"


@pytest.mark.checks(
    "PROD-3", "PROD-5", "PROD-6", "PROD-7", "PROD-8", "PROD-9", "PROD-10", "PROD-11", "PROD-12",
    "PROD-13",
)  # fmt: skip
@pytest.mark.parametrize("number", range(len(HISTORIES)))
def test_the_model_says_what_the_class_did(number: int) -> None:
    """Each answer, the whole state after each step, and every byte of every file."""
    opened = ProducerStateManager.open("", producer_id_expiration_ms=3_600_000).after
    assert isinstance(opened, ProducerStateManager)
    manager = opened
    for operation, given, outcome, state, files in HISTORIES[number]:
        told = "-"
        if operation != "open":
            manager, told = after(manager, operation, given)
        assert (operation, outcome, state) == (operation, told, state_of(manager))
        assert files == files_of(manager), operation
