# SPDX-License-Identifier: Apache-2.0
"""What an operation does: the next value and what the caller sees.

The model never raises for something a caller of the real structure would see as an error: upstream
sometimes changes its state *and* fails, so an error is a value beside the next state.

Used by: every structure of the model, and the harness, which compares outcomes by kind.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

State = TypeVar("State")


class ErrorKind(StrEnum):
    """The kinds of error, in the words of the specification; subjects are compared by kind."""

    INVALID_ARGUMENT = "invalid-argument"
    INVALID_OFFSET = "invalid-offset"
    INDEX_OFFSET_OVERFLOW = "index-offset-overflow"
    CORRUPT_INDEX = "corrupt-index"
    CORRUPT_RECORD = "corrupt-record"
    INVALID_RECORD = "invalid-record"
    ILLEGAL_STATE = "illegal-state"
    UNMAPPED = "unmapped"
    BUFFER_OVERFLOW = "buffer-overflow"
    READ_ONLY = "read-only"
    INDEX_ERROR = "index-error"
    KAFKA_ERROR = "kafka-error"
    SEGMENT_OVERFLOW = "segment-overflow"
    CORRUPT_SNAPSHOT = "corrupt-snapshot"
    OUT_OF_RANGE = "out-of-range"
    OFFSET_ORDER = "offset-order"
    INVALID_TRANSACTION_STATE = "invalid-transaction-state"
    INVALID_PRODUCER_EPOCH = "invalid-producer-epoch"
    OUT_OF_ORDER_SEQUENCE = "out-of-order-sequence"
    RECORD_BATCH_TOO_LARGE = "record-batch-too-large"
    RECORD_TOO_LARGE = "record-too-large"
    INVALID_TIMESTAMP = "invalid-timestamp"
    NUMBER_FORMAT = "number-format"
    IO_ERROR = "io-error"
    FILE_NOT_FOUND = "file-not-found"
    NULL = "null"
    ARITHMETIC = "arithmetic"
    LOCK_STATE = "lock-state"
    OUT_OF_MEMORY = "out-of-memory"
    ENDLESS = "endless"
    """No error at all: a walk or a loop that never ends."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The caller sees an error of this kind."""

    kind: ErrorKind


@dataclass(slots=True)
class Step(Generic[State]):
    """One operation that may change something: the state after it, and what the caller sees.

    Nobody changes one; it is not frozen, since that would triple the time to make one.
    """

    after: State
    """The state after the operation, also when it raised."""
    outcome: object = None
    """The returned value, or `Raised`."""
