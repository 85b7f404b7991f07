# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise with records and batches, newest first."""

from typing import NoReturn, Self

from segproof_model.kafka.format import (
    batch_writing,
    legacy_record_batch,
    memory_records,
    record,
    record_batch,
)
from segproof_model.kafka.format.batch_writing import TIMESTAMP_TYPES
from segproof_model.kafka.format.compression import COMPRESSIONS, GZIP
from segproof_model.kafka.format.legacy_record import (
    LOG_OVERHEAD,
    MIN_MESSAGE_BYTES,
    LegacyRecord,
)
from segproof_model.kafka.format.record import ControlRecordTypes as NewestTypes
from segproof_model.kafka.format.record import Record, RecordBase
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.varint import decode_varint
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import INT32_MAX, int32_at, wrap64
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class VotersAreUnknown(Behaviour):
    """Control records that tell KRaft's version or voters are of an unknown type."""

    laws = ("BATCH-19",)
    releases = up_to("3.7.2")

    class ControlRecordTypes(record.ControlRecordTypes):
        """The types of control records."""

        names = NewestTypes.names[:5]


class InflatedLengthIsInvalidArgument(Behaviour):
    """A record of a compressed batch whose length is negative or over-long is an invalid argument,
    not an invalid record.
    """

    laws = ("BATCH-16", "BATCH-18")
    releases = up_to("3.5.2")

    class RecordBatch(record_batch.RecordBatch):
        """A batch of magic 2."""

        @override
        def inflated_record(
            self, data: bytes, base: RecordBase, position: int, is_last: bool
        ) -> tuple[Record, int]:
            size, _ = decode_varint(data, position)
            if size < 0:
                refuse(ErrorKind.INVALID_ARGUMENT)
            return super().inflated_record(data, base, position, is_last)


class DeleteHorizonIsUnknown(Behaviour):
    """No bit of a batch's attributes says that it has a delete horizon."""

    laws = ("BATCH-15",)
    releases = up_to("2.8.2")

    class RecordBatch(record_batch.RecordBatch):
        """A batch of magic 2."""

        has_delete_horizon = False


class LongRecordIsNull(Behaviour):
    """A record that is longer than what is left of an uncompressed batch is a null to the caller,
    unless it is the last one and some of it is there.
    """

    laws = ("BATCH-16",)
    releases = up_to("2.8.2")

    class RecordBatch(record_batch.RecordBatch):
        """A batch of magic 2."""

        @override
        def stored_record(
            self, data: bytes, base: RecordBase, position: int, is_last: bool
        ) -> tuple[Record, int]:
            size, start = decode_varint(data, position)
            if size > len(data) - start and (not is_last or start == len(data)):
                refuse(ErrorKind.NULL)
            return super().stored_record(data, base, position, is_last)


class QuorumIsReassigned(Behaviour):
    """Control records of type 2 reassign a quorum, those of type 3 name a leader, and later types
    are unknown.
    """

    laws = ("BATCH-19",)
    releases = up_to("2.8.2")

    class ControlRecordTypes(record.ControlRecordTypes):
        """The types of control records."""

        names = (*NewestTypes.names[:2], "QUORUM_REASSIGNMENT", "LEADER_CHANGE")


class ControlRecordsEndTransactions(Behaviour):
    """No control records are known but those that end a transaction."""

    laws = ("BATCH-19",)
    releases = up_to("2.4.1")

    class ControlRecordTypes(record.ControlRecordTypes):
        """The types of control records."""

        names = NewestTypes.names[:2]


class InvalidBatchIsInvalidRecord(Behaviour):
    """A batch that is not valid is an invalid record, not a corrupt one."""

    laws = ("BATCH-14",)
    releases = up_to("2.2.2")

    class RecordBatch(record_batch.RecordBatch):
        """A batch of any format."""

        invalid_kind = ErrorKind.INVALID_RECORD


class ZstdIsUnknown(Behaviour):
    """Codec 4 is an unknown codec, not zstd."""

    laws = ("BATCH-11", "BATCH-18")
    releases = up_to("2.0.1")

    class RecordBatch(record_batch.RecordBatch):
        """A batch of any format."""

        codec_names = COMPRESSIONS[:4]

    class BatchWriter(batch_writing.BatchWriter):
        """The writer of batches."""

        codec_names = COMPRESSIONS[:4]


class SizeIsCheckedBeforeMagic(Behaviour):
    """The scanner of records in memory asks whether the batch is whole, or its size near 2^31,
    before it refuses a magic outside 0..2.
    """

    laws = ("SCAN-9",)
    releases = up_to("1.1.1")

    class MemoryRecords(memory_records.MemoryRecords):
        """Records in memory."""

        @override
        def next_batch(self, position: int) -> RecordBatch | None:
            remaining = len(self.data) - position
            size = int32_at(self.data, position + 8) if remaining >= LOG_OVERHEAD else 0
            is_taken = MIN_MESSAGE_BYTES <= size <= self.max_message_size_bytes
            if not is_taken or LOG_OVERHEAD + size <= remaining:
                return super().next_batch(position)
            if LOG_OVERHEAD + size <= INT32_MAX:
                return None
            has_head = remaining >= self.head_bytes
            return refuse(ErrorKind.INVALID_ARGUMENT if has_head else ErrorKind.INDEX_ERROR)


class ScannersAskForSizes(Behaviour):
    """A scanner asks for the 12 bytes up to the size, not for the 17 up to the magic."""

    laws = ("SCAN-1", "SCAN-3", "SCAN-7", "SCAN-9")
    releases = up_to("0.10.2.2")

    class AbstractRecords(memory_records.AbstractRecords):
        """Records in memory or in a file."""

        head_bytes = LOG_OVERHEAD


class WholeBatchIsRead(Behaviour):
    """The fields of a batch in a file are read from the whole batch, for which there must be
    memory, not from its header.
    """

    laws = ("SCAN-10",)
    releases = up_to("0.10.2.2")

    class RecordBatch(record_batch.RecordBatch):
        """A batch of any format."""

        @override
        def header(self) -> bytes:
            return self.loaded().data

        @override
        def loaded(self) -> Self:
            wraps = self.size_bytes < 0 or self.position + self.size_bytes > INT32_MAX
            if self.in_file and wraps:
                refuse(ErrorKind.OUT_OF_MEMORY)
            return super().loaded()


class WrapperIsNotChecked(Behaviour):
    """A wrapper is read without a check of its value, its messages and its offset."""

    laws = ("BATCH-9", "BATCH-10", "BATCH-11")
    releases = up_to("0.10.2.2")

    class LegacyRecordBatch(legacy_record_batch.LegacyRecordBatch):
        """A message as a batch."""

        @override
        def refuse_missing_value(self, outer: LegacyRecord) -> NoReturn:
            """The reader trips over a missing value."""
            refuse(ErrorKind.NULL if outer.codec == GZIP else ErrorKind.KAFKA_ERROR)

        @override
        def base_of(self, outer: LegacyRecord, inner: list[LegacyRecord]) -> int:
            """Without messages a wrapper is empty in magic 0, but the reader trips over magic 1.

            Where the wrapper's offset is below its last message's, messages keep their own offsets.
            """
            if outer.magic == 0:
                return 0
            if not inner:
                refuse(ErrorKind.INDEX_ERROR)
            return max(0, wrap64(outer.offset - inner[-1].offset))


class MessagesAloneAreWritten(Behaviour):
    """Messages of magic 0 and 1 are written, no batches of magic 2."""

    laws = ("BATCH-1",)
    releases = up_to("0.10.2.2")

    class BatchWriter(batch_writing.BatchWriter):
        """The writer of batches."""

        magics = (0, 1)


class MissingTypeIsLogAppendTime(Behaviour):
    """A message of magic 1 that is written without a type of its timestamp says that its log gave
    it.
    """

    laws = ("BATCH-6",)
    releases = up_to("0.10.2.2")

    class BatchWriter(batch_writing.BatchWriter):
        """The writer of batches."""

        magic_1_types = TIMESTAMP_TYPES
