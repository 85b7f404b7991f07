# SPDX-License-Identifier: Apache-2.0
"""Contracts of the store checkpoint: what it is read as, and from where a store recovers.

Mirrors: model/segproof_model/rocketmq/broker/store_checkpoint.py,
    impl/segproof/rocketmq/store_checkpoint.py.
"""

import struct
from typing import Any

from segproof.rocketmq import store_checkpoint as implementation
from segproof_model.language.files import Files
from segproof_model.language.integers import int64_at
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.broker.store_checkpoint import FIELDS as FIELD_NAMES
from segproof_model.rocketmq.broker.store_checkpoint import StoreCheckpoint
from segproof_tests.contracts import Mutant, contract

CHECKPOINT = "segproof.rocketmq.store_checkpoint"

FIELDS = implementation._FIELDS.format
"""The layout by which the fields are read and written."""


@contract(
    f"{CHECKPOINT}:_FIELDS",
    "RMQCKPT-1",
    "any 48 raw bytes",
    Mutant("CHECKPOINT.struct()", '__import__("struct").Struct("<6q")', "*"),
)
def fields_decode(data: bytes) -> bool:
    """Read the fields: int64 after int64, in the model's order.

    pre: len(data) == 48
    post: _
    """
    expected = tuple(int64_at(data, 8 * number) for number in range(len(FIELD_NAMES)))
    return expected == struct.unpack(FIELDS, data)


@contract(
    f"{CHECKPOINT}:StoreCheckpoint.min_timestamp",
    "RMQCKPT-4",
    "any three int64 times",
    Mutant("max(0, ", "max(-1, "),
    Mutant("- SAFETY_MS", "+ SAFETY_MS"),
    Mutant(
        "min(self.min_timestamp, ",
        "max(self.min_timestamp, ",
        "StoreCheckpoint.min_timestamp_index",
    ),
)
def safe_times(physic: int, logics: int, index: int) -> bool:
    """Log and queues are taken to be 3 s older than they say, and the index as old as it says.

    pre: -(2**63) <= min(physic, logics, index) and max(physic, logics, index) < 2**63
    post: _
    """
    found: Any = implementation.StoreCheckpoint.__new__(implementation.StoreCheckpoint)
    expected = SEGPROOF.kind(StoreCheckpoint)(Files(), "")
    for checkpoint in (found, expected):
        checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp = physic, logics
        checkpoint.index_msg_timestamp = index
    if found.min_timestamp != expected.min_timestamp:
        return False
    return bool(found.min_timestamp_index == expected.min_timestamp_index)
