# SPDX-License-Identifier: Apache-2.0
"""Contracts of the producer state: sequences, epochs, snapshot entries, the last stable offset.

Where the model decides inside of an operation, the contract gives that operation the state in which
only this decision is left.

Mirrors: model/segproof_model/kafka/broker/producer_append_info.py, producer_snapshot.py and
    producer_state.py.
"""

import struct
from typing import Literal

from segproof.kafka import producer_snapshot as implementation
from segproof.kernels import producer_rules as rules
from segproof_model.kafka.broker import producer_append_info as model
from segproof_model.kafka.broker import producer_snapshot as snapshot
from segproof_model.kafka.broker import producer_state as state
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language.files import Files
from segproof_model.language.integers import wrap32, wrap64
from segproof_model.language.states import refusal
from segproof_model.releases import SEGPROOF
from segproof_tests.contracts import Mutant, contract

PRODUCERS = "segproof.kernels.producer_rules"
SNAPSHOT = "segproof.kafka.producer_snapshot"

STATE = SEGPROOF.kind(state.ProducerStateManager)
INFO = SEGPROOF.kind(model.ProducerAppendInfo)
ENTRY = implementation._ENTRY.format
"""The layout by which an entry of a snapshot is read and written."""


@contract(
    f"{PRODUCERS}:is_in_sequence",
    "BATCH-5",
    "any two sequence numbers",
    Mutant("last_sequence + 1", "last_sequence + 2"),
    Mutant("== 2147483647", "== 2147483646"),
    Mutant("next_sequence == 0", "next_sequence == 1"),
)
def in_sequence(last_sequence: int, next_sequence: int) -> bool:
    """Decide whether a sequence number follows another, also around 2147483647.

    post: _
    """
    return rules.is_in_sequence(last_sequence, next_sequence) == model.is_in_sequence(
        last_sequence, next_sequence
    )


@contract(
    f"{PRODUCERS}:accepts_sequence",
    "BATCH-5 PROD-7",
    "any epochs and sequence numbers, with and without batches",
    Mutant("first_sequence == 0 or", "first_sequence <= 1 or"),
    Mutant("or updated_epoch == -1", "or current_epoch == -1"),
    Mutant("is_in_sequence(-1, first_sequence)", "True"),
    Mutant("if current_epoch == -1", "if updated_epoch == -1"),
)
def sequence_accepted(
    producer_epoch: int,
    first_sequence: int,
    current_epoch: int,
    current_last_sequence: int,
    updated_epoch: int,
    updated_last_sequence: int,
    current_has_batch: bool,
    updated_has_batch: bool,
) -> bool:
    """Decide whether a client may append a batch with this epoch and first sequence number.

    post: _
    """
    current = _entry(current_epoch, current_last_sequence, current_has_batch)
    updated = _entry(updated_epoch, updated_last_sequence, updated_has_batch)
    info = _info(current, updated, "client")
    accepted = rules.accepts_sequence(
        producer_epoch,
        first_sequence,
        current_epoch,
        current_last_sequence if current_has_batch else -1,
        updated_epoch,
        updated_last_sequence if updated_has_batch else -1,
        updated_has_batch,
    )
    refused = refusal(lambda: info.check_sequence(producer_epoch, first_sequence))
    return accepted == (refused is None)


@contract(
    f"{PRODUCERS}:accepts_epoch",
    "PROD-9",
    "any epochs, with and without an open transaction, any version of transactions",
    Mutant("producer_epoch < known_epoch", "producer_epoch <= known_epoch"),
    Mutant("transaction_version < 2", "transaction_version < 1"),
    Mutant("== 32767", "== 32766"),
)
def epoch_accepted(
    producer_epoch: int, known_epoch: int, has_open_transaction: bool, transaction_version: int
) -> bool:
    """Decide whether a batch of this epoch is fenced off by a newer one.

    post: _
    """
    first_offset = 0 if has_open_transaction else None
    entry = snapshot.ProducerStateEntry(1, known_epoch, -1, -1, first_offset)
    info = _info(entry, entry, "client")
    refused = refusal(lambda: info.check_producer_epoch(producer_epoch, transaction_version))
    accepted = rules.accepts_epoch(
        producer_epoch, known_epoch, has_open_transaction, transaction_version
    )
    return accepted == (refused is None)


@contract(
    f"{PRODUCERS}:stable_offset",
    "PROD-10",
    "any 3 open transactions with rising first offsets, any producer, any marker",
    Mutant("other_id != producer_id", "other_id == producer_id"),
    Mutant("last_offset + 1", "last_offset"),
)
def stable_offset(
    open_txns: tuple[tuple[int, int], tuple[int, int], tuple[int, int]],
    producer_id: int,
    last_offset: int,
) -> bool:
    """Choose the last stable offset at a marker from the open transactions, by first offset.

    pre: open_txns[0][1] < open_txns[1][1] < open_txns[2][1]
    post: _
    """
    manager = STATE(Files())
    manager.ongoing_txns = tuple([model.TxnMetadata(*txn) for txn in open_txns])
    completed = CompletedTxn(producer_id, 0, last_offset, False)
    return manager.last_stable_offset(completed) == rules.stable_offset(
        open_txns, producer_id, last_offset
    )


@contract(
    f"{PRODUCERS}:is_expired",
    "PROD-12",
    "any times",
    Mutant(">= expiration_ms", "> expiration_ms"),
    Mutant("not has_open_transaction and ", ""),
)
def expiry(
    has_open_transaction: bool, last_timestamp: int, now_ms: int, expiration_ms: int
) -> bool:
    """Decide whether a producer is silent for too long.

    post: _
    """
    first_offset = 0 if has_open_transaction else None
    entry = snapshot.ProducerStateEntry(1, 0, -1, last_timestamp, first_offset)
    manager = STATE(Files(), producer_id_expiration_ms=expiration_ms)
    return manager.is_expired(entry, now_ms) == rules.is_expired(
        has_open_transaction, last_timestamp, now_ms, expiration_ms
    )


@contract(
    f"{SNAPSHOT}:_entry_of",
    "PROD-1 PROD-5",
    "any 46 raw bytes with id, epoch and timestamp from 0 on",
    Mutant("first_offset >= 0", "first_offset > 0"),
    Mutant("last_offset >= 0", "last_offset > 0"),
    Mutant("SNAPSHOT_ENTRY.struct()", '__import__("struct").Struct(">qhiqiiqq")', "*"),
)
def entry_decode(data: bytes) -> bool:
    """Read an entry of a snapshot.

    pre: len(data) == 46 and data[0] < 128 and data[8] < 128 and data[26] < 128
    post: _
    """
    expected = snapshot.read_entry(data)
    found = implementation._entry_of(struct.unpack(ENTRY, data))
    return _fields(expected) == _fields(found)


@contract(
    f"{SNAPSHOT}:_numbers_of",
    "PROD-1",
    "every number that the fields hold, with id, epoch and timestamp from 0 on",
    Mutant("entry.last_offset_delta", "entry.last_offset"),
    Mutant("SNAPSHOT_ENTRY.struct()", '__import__("struct").Struct("<qhiqiqiq")', "*"),
)
def entry_encode(
    producer_id: int,
    producer_epoch: int,
    last_seq: int,
    last_offset: int,
    offset_delta: int,
    last_timestamp: int,
    coordinator_epoch: int,
    first_offset: int,
) -> bool:
    """Write an entry of a snapshot, byte for byte; the model's wraps leave its numbers as they are.

    pre: 0 <= producer_id < 2**63
    pre: 0 <= producer_epoch < 2**15
    pre: -(2**31) <= last_seq < 2**31
    pre: -(2**63) <= last_offset < 2**63
    pre: -(2**31) <= offset_delta < 2**31
    pre: 0 <= last_timestamp < 2**63
    pre: -(2**31) <= coordinator_epoch < 2**31
    pre: -(2**63) <= first_offset < 2**63
    post: _
    """
    batch = implementation.BatchMetadata(last_seq, last_offset, offset_delta, last_timestamp)
    ours = implementation.ProducerStateEntry(
        producer_id, producer_epoch, coordinator_epoch, last_timestamp, first_offset, (batch,)
    )
    written = b""
    for number, width in (
        (producer_id, 8),
        (producer_epoch, 2),
        (last_seq, 4),
        (last_offset, 8),
        (offset_delta, 4),
        (last_timestamp, 8),
        (coordinator_epoch, 4),
        (first_offset, 8),
    ):
        if width > 2 and (wrap32 if width == 4 else wrap64)(number) != number:
            return False
        # The model's int32_bytes and int64_bytes without their wrap, which would hide the bytes.
        written += number.to_bytes(width, "big", signed=True)
    return written == struct.pack(ENTRY, *implementation._numbers_of(ours))


def _fields(entry: implementation.ProducerStateEntry | snapshot.ProducerStateEntry) -> list[object]:
    """Return what an entry says; of its batches, how many there are and the last one."""
    return [
        entry.producer_id,
        entry.producer_epoch,
        entry.coordinator_epoch,
        entry.last_timestamp,
        entry.current_txn_first_offset,
        len(entry.batch_metadata),
        entry.last_seq,
        entry.last_offset,
        entry.last_offset_delta,
    ]


def _entry(epoch: int, last_seq: int, has_batch: bool) -> snapshot.ProducerStateEntry:
    """Return what is known of a producer, with or without a batch."""
    batch = snapshot.BatchMetadata(last_seq, 0, 0, 0)
    return snapshot.ProducerStateEntry(1, epoch, -1, -1, None, (batch,) if has_batch else ())


def _info(
    current: snapshot.ProducerStateEntry,
    updated: snapshot.ProducerStateEntry,
    origin: Literal["client", "coordinator"],
) -> model.ProducerAppendInfo:
    """Return an append that has come so far."""
    info = INFO(1, current, origin)
    info.updated_entry = updated
    return info
