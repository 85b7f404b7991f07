# SPDX-License-Identifier: Apache-2.0
"""Records in memory: batches back to back.

Upstream: Kafka 4.4.0, AbstractRecords, MemoryRecords, ByteBufferLogInputStream. Otherwise:
    record_releases, record_deviations.
Layout: see record_batch.
Laws: SCAN-9.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from segproof_model.kafka.format.compression import NO_CODECS, Codecs
from segproof_model.kafka.format.legacy_record import LOG_OVERHEAD, MIN_MESSAGE_BYTES
from segproof_model.kafka.format.legacy_record_batch import LegacyRecordBatch
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.integers import INT32_MAX, int32_at
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Released, refuse

HEADER_UP_TO_MAGIC_BYTES = 17


class AbstractRecords(Released):
    """Batches back to back, in memory or in a file."""

    codecs: Codecs
    head_bytes: ClassVar = HEADER_UP_TO_MAGIC_BYTES
    """How many bytes of a batch a scanner asks for first."""

    def batches(self) -> Iterator[RecordBatch]:
        """Yield each batch, until one cannot be read."""
        raise NotImplementedError

    def batch_of(
        self, data: bytes, position: int, size_bytes: int, *, in_file: bool
    ) -> RecordBatch:
        """Return these bytes as the batch that their magic says."""
        is_legacy = len(data) < HEADER_UP_TO_MAGIC_BYTES or not 2 <= data[16] < 128
        kind = self.kind(LegacyRecordBatch if is_legacy else RecordBatch)
        return kind(data, position, size_bytes, in_file, self.codecs)


@dataclass
class MemoryRecords(AbstractRecords):
    """Records in memory: a value.

    >>> from segproof_model.kafka.format.batch_writing import write_batch
    >>> from segproof_model.kafka.format.record import Record
    >>> data = write_batch([Record(7, 1000, None, b"hello")], base_offset=5)
    >>> (batch,) = MemoryRecords(data + data[:70]).batches()
    >>> batch.base_offset, batch.last_offset, [record.value for record in batch.records()]
    (5, 7, [b'hello'])
    """

    data: bytes
    max_message_size_bytes: int = INT32_MAX
    """The largest size field; one beyond it is a corrupt record."""
    codecs: Codecs = field(default=NO_CODECS, compare=False, repr=False, kw_only=True)

    def batches(self) -> Iterator[RecordBatch]:
        """Yield each whole batch, until one cannot be read (SCAN-9)."""
        position = 0
        while (batch := self.next_batch(position)) is not None:
            yield batch
            position += batch.size_bytes

    def first_batch(self) -> RecordBatch:
        """Return the batch at the beginning; if none is whole that is a corrupt record.

        The harness asks.
        """
        batch = self.next_batch(0) if len(self.data) >= HEADER_UP_TO_MAGIC_BYTES else None
        return refuse(ErrorKind.CORRUPT_RECORD) if batch is None else batch

    def next_batch(self, position: int) -> RecordBatch | None:
        """Return the batch at `position`; None if it is not whole.

        12 is added to its size in 32 bits: a size near 2^31 is an invalid argument.
        """
        remaining = len(self.data) - position
        if remaining < LOG_OVERHEAD:
            return None
        size = int32_at(self.data, position + 8)
        if not MIN_MESSAGE_BYTES <= size <= self.max_message_size_bytes:
            refuse(ErrorKind.CORRUPT_RECORD)
        if remaining < HEADER_UP_TO_MAGIC_BYTES:
            return None
        if self.data[position + 16] > 2:
            refuse(ErrorKind.CORRUPT_RECORD)
        end = position + LOG_OVERHEAD + size
        if end - position > INT32_MAX:
            refuse(ErrorKind.INVALID_ARGUMENT)
        if end > len(self.data):
            return None
        return self.batch_of(self.data[position:end], position, end - position, in_file=False)
