# SPDX-License-Identifier: Apache-2.0
"""Errors of the implementation, one class for each kind of upstream error.

Upstream: Kafka's exceptions; the docstring of each class names its counterpart.
"""

from typing import ClassVar


class SegproofError(Exception):
    """Base of all errors of segproof, and the counterpart of KafkaException itself."""

    kind: ClassVar[str] = "kafka-error"

    def __init__(
        self,
        message: str,
        *,
        law: str | None = None,
        path: str | None = None,
        position: int | None = None,
        expected: object = None,
        actual: object = None,
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.law = law
        self.path = path
        self.position = position
        self.expected = expected
        self.actual = actual
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        where = [part for part in (self.path, self._at()) if part]
        law = f" [{self.law}]" if self.law else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{': '.join([*where, self.message])}{law}{hint}"

    def _at(self) -> str | None:
        return None if self.position is None else f"byte {self.position}"


class ProcessLimitError(Exception):
    """A limit of this process or of the system ended the call: open files, or memory.

    It says nothing about the files that were to be read. So it is neither an OSError nor a
    SegproofError, which a check would tell as damage of a file.
    """


class TooLargeError(SegproofError):
    """Data beyond a limit for taking it into memory: it was not looked into and may be sound."""


class DamagedFileError(SegproofError):
    """A file cannot be read on, where rows of all of it were asked for."""


class RowsLeftOutWarning(UserWarning):
    """A read that was asked to go on at damage has left out rows of a file."""


class InvalidArgumentError(SegproofError, ValueError):
    """A number or range that is refused (IllegalArgumentException)."""

    kind = "invalid-argument"


class IndexFullError(InvalidArgumentError):
    """The index has no free slot (IllegalArgumentException)."""


class InvalidOffsetError(SegproofError, ValueError):
    """An offset that is not larger than the last one (InvalidOffsetException)."""

    kind = "invalid-offset"


class IndexOffsetOverflowError(SegproofError, ValueError):
    """An offset too far from the base offset for 31 bits (IndexOffsetOverflowException)."""

    kind = "index-offset-overflow"


class CorruptIndexError(SegproofError, ValueError):
    """An index file that breaks its laws (CorruptIndexException)."""

    kind = "corrupt-index"


class CorruptRecordError(SegproofError, ValueError):
    """A batch with a bad length or checksum (CorruptRecordException)."""

    kind = "corrupt-record"


class InvalidRecordError(SegproofError, ValueError):
    """A record that cannot be read inside an intact batch (InvalidRecordException)."""

    kind = "invalid-record"


class IndexStateError(SegproofError):
    """An operation that the present state forbids (IllegalStateException)."""

    kind = "illegal-state"


class IndexClosedError(SegproofError):
    """The index is closed (NullPointerException after unmapping)."""

    kind = "unmapped"


class IndexBufferOverflowError(SegproofError):
    """No physical room behind the position (BufferOverflowException)."""

    kind = "buffer-overflow"


class ReadOnlyError(SegproofError):
    """A change of what was opened for reading (ReadOnlyBufferException)."""

    kind = "read-only"


class ReadOnlyIndexError(ReadOnlyError):
    """A change of an index that was opened for reading (ReadOnlyBufferException)."""


class ReadOnlyFileError(ReadOnlyError, OSError):
    """A change of a file that was opened for reading (NonWritableChannelException)."""

    kind = "io-error"


class OutOfBoundsError(SegproofError, IndexError):
    """A field that lies behind the end of its message (IndexOutOfBoundsException)."""

    kind = "index-error"


class SegmentOffsetOverflowError(SegproofError, ValueError):
    """An offset too far from a segment's base for 31 bits (LogSegmentOffsetOverflowException)."""

    kind = "segment-overflow"


class CorruptSnapshotError(SegproofError, ValueError):
    """A producer snapshot that cannot be trusted (CorruptSnapshotException)."""

    kind = "corrupt-snapshot"


class OffsetOutOfRangeError(SegproofError, ValueError):
    """An offset that the log does not hold (OffsetOutOfRangeException)."""

    kind = "out-of-range"


class OffsetOrderError(SegproofError, ValueError):
    """Appended offsets that do not continue the log (OffsetsOutOfOrderException)."""

    kind = "offset-order"


class InvalidTransactionStateError(SegproofError, ValueError):
    """A batch that a producer's transaction forbids (InvalidTxnStateException)."""

    kind = "invalid-transaction-state"


class InvalidProducerEpochError(SegproofError, ValueError):
    """A batch of a producer that a newer one has fenced off (InvalidProducerEpochException)."""

    kind = "invalid-producer-epoch"


class OutOfOrderSequenceError(SegproofError, ValueError):
    """A batch that does not continue its producer's sequence (OutOfOrderSequenceException)."""

    kind = "out-of-order-sequence"


class RecordBatchTooLargeError(SegproofError, ValueError):
    """Records larger than a segment may be (RecordBatchTooLargeException)."""

    kind = "record-batch-too-large"


class RecordTooLargeError(SegproofError, ValueError):
    """A batch larger than the topic allows (RecordTooLargeException)."""

    kind = "record-too-large"


class InvalidTimestampError(SegproofError, ValueError):
    """A timestamp too far from the broker's clock (InvalidTimestampException)."""

    kind = "invalid-timestamp"


class CorruptCheckpointError(SegproofError, OSError):
    """A text checkpoint or partition.metadata that cannot be read (IOException)."""

    kind = "io-error"


class NumberFormatError(SegproofError, ValueError):
    """A field of a text checkpoint that is no number (NumberFormatException)."""

    kind = "number-format"


class WrongTypeError(SegproofError, TypeError):
    """An argument of another type than is meant, such as bytes for a text."""

    kind = "invalid-argument"


class NullError(SegproofError, TypeError):
    """A text that must be there and is not (NullPointerException)."""

    kind = "null"
