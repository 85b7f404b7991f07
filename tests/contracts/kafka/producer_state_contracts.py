# SPDX-License-Identifier: Apache-2.0
"""Contracts of the producer state: sequences, epochs, snapshot entries, the last stable offset.

Where the model decides inside of an operation, the contract gives that operation the state in which
only this decision is left.

Mirrors: model/segproof_model/kafka/broker/producer_append_info.py, producer_snapshot.py and
    producer_state.py.
"""

import struct

from segproof.kafka import producer_snapshot as implementation
from segproof_model.kafka.broker import producer_snapshot as snapshot
from segproof_model.language.integers import wrap32, wrap64
from segproof_tests.contracts import Mutant, contract

SNAPSHOT = "segproof.kafka.producer_snapshot"

ENTRY = implementation._ENTRY.format
"""The layout by which an entry of a snapshot is read and written."""


@contract(
    f"{SNAPSHOT}:_entry_of",
    "PROD-1 PROD-5",
    "any 46 raw bytes with id, epoch and timestamp from 0 on",
    Mutant("first_offset >= 0", "first_offset > 0"),
    Mutant("last_offset >= 0", "last_offset > 0"),
    Mutant('">qhiqiqiq"', '">qhiqiiqq"', "*"),
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
    Mutant('">qhiqiqiq"', '"<qhiqiqiq"', "*"),
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
