# SPDX-License-Identifier: Apache-2.0
"""What an operation does: the next value and what the caller sees.

Upstream sometimes changes its state *and* fails, so to a driver an error is a value beside the next
state. Inside, `refuse` raises; `apply` turns it into `Raised`, so a driver sees no exception.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

S = TypeVar("S")


class ErrorKind(StrEnum):
    """The kinds of error, in the words of the specification; subjects are compared by kind.

    Beside each: the exceptions of Java that have it.
    """

    INVALID_ARGUMENT = "invalid-argument"  # IllegalArgumentException
    INVALID_OFFSET = "invalid-offset"  # InvalidOffsetException
    INDEX_OFFSET_OVERFLOW = "index-offset-overflow"  # IndexOffsetOverflowException
    CORRUPT_INDEX = "corrupt-index"  # CorruptIndexException
    CORRUPT_RECORD = "corrupt-record"  # CorruptRecordException
    INVALID_RECORD = "invalid-record"  # InvalidRecordException
    ILLEGAL_STATE = "illegal-state"  # IllegalStateException
    UNMAPPED = "unmapped"  # NullPointerException, of a closed index
    BUFFER_OVERFLOW = "buffer-overflow"  # BufferOverflowException
    READ_ONLY = "read-only"  # ReadOnlyBufferException
    INDEX_ERROR = "index-error"  # IndexOutOfBoundsException, BufferUnderflowException
    KAFKA_ERROR = "kafka-error"  # KafkaException
    SEGMENT_OVERFLOW = "segment-overflow"  # LogSegmentOffsetOverflowException
    CORRUPT_SNAPSHOT = "corrupt-snapshot"  # CorruptSnapshotException
    OUT_OF_RANGE = "out-of-range"  # OffsetOutOfRangeException
    OFFSET_ORDER = "offset-order"  # OffsetsOutOfOrderException, UnexpectedAppendOffsetException
    INVALID_TRANSACTION_STATE = "invalid-transaction-state"  # InvalidTxnStateException
    INVALID_PRODUCER_EPOCH = "invalid-producer-epoch"  # InvalidProducerEpochException
    OUT_OF_ORDER_SEQUENCE = "out-of-order-sequence"  # OutOfOrderSequenceException
    RECORD_BATCH_TOO_LARGE = "record-batch-too-large"  # RecordBatchTooLargeException
    RECORD_TOO_LARGE = "record-too-large"  # RecordTooLargeException
    INVALID_TIMESTAMP = "invalid-timestamp"  # InvalidTimestampException
    NUMBER_FORMAT = "number-format"  # NumberFormatException
    IO_ERROR = "io-error"  # IOException, UncheckedIOException
    FILE_NOT_FOUND = "file-not-found"  # FileNotFoundException, NoSuchFileException
    NULL = "null"  # NullPointerException
    ARITHMETIC = "arithmetic"  # ArithmeticException
    LOCK_STATE = "lock-state"  # IllegalMonitorStateException
    OUT_OF_MEMORY = "out-of-memory"  # OutOfMemoryError
    ENDLESS = "endless"
    """No error at all: a walk or a loop that never ends."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The caller sees an error of this kind."""

    kind: ErrorKind


@dataclass(slots=True)
class Step(Generic[S]):
    """One operation that may change something: the state after it, and what the caller sees.

    Nobody changes one; it is not frozen, since that would triple the time to make one.
    """

    after: S
    """The state after the operation, also when it raised."""
    outcome: object = None
    """The returned value, or `Raised`."""
