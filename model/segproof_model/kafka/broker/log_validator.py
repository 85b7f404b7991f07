# SPDX-License-Identifier: Apache-2.0
"""What a log asks of batches before it takes them, and what a leader writes into them.

Upstream: Kafka 4.4.0, LogValidator, UnifiedLog.analyzeAndValidateRecords, LogAppendInfo. Otherwise:
    log_validator_releases, log_validator_releases_before_0_11, log_validator_deviations.
Laws: LOG-10, LOG-21.
Not covered: writing another format than magic 2; which of two errors is told where messages are
    wrong in different ways; the delete horizon of a batch that is compressed anew, and a
    coordinator's batch without records, of which nothing would be left.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

from segproof_model.kafka.broker.producer_append_info import AppendOrigin
from segproof_model.kafka.format.batch_writing import write_batch
from segproof_model.kafka.format.compression import crc32c
from segproof_model.kafka.format.legacy_record import NO_TIMESTAMP
from segproof_model.kafka.format.legacy_record_batch import LegacyRecordBatch, Message
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.record_batch import LOG_APPEND_TIME_BIT, RecordBatch
from segproof_model.language.integers import INT32_MAX, int32_at, int32_bytes, int64_bytes
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, Released, refuse

UNKNOWN_OFFSET = -1
CURRENT_MAGIC = 2


class LogAppendInfo(NamedTuple):
    """The result of a call of append."""

    first_offset: int
    """-1 if unknown: the first batch that a follower was given is of magic 0 or 1."""
    last_offset: int
    """Inclusive."""
    max_timestamp: int
    log_append_time: int
    """The broker's time in ms that every record got; -1 if they keep their own."""
    log_start_offset: int
    valid_bytes: int
    """Bytes of the batches that were looked at, as they were given."""
    last_offset_of_first_batch: int
    """As it was given."""

    @property
    def first_or_last_offset(self) -> int:
        """The first offset; unknown, the last one of the first batch."""
        is_unknown = self.first_offset == UNKNOWN_OFFSET
        return self.last_offset_of_first_batch if is_unknown else self.first_offset


class AppendAnalysis(Released):
    """What is asked of the batches of one call of append, as they were given."""

    def __init__(
        self,
        records: MemoryRecords,
        origin: AppendOrigin,
        leader_epoch: int,
        max_message_bytes: int = INT32_MAX,
    ) -> None:
        self.records, self.origin, self.leader_epoch = records, origin, leader_epoch
        self.max_message_bytes = max_message_bytes
        """The largest batch that is taken."""

    def analyze_and_validate_records(self, log_start_offset: int) -> LogAppendInfo:
        """Check every batch on its own, and the order of the offsets that a follower is given.

        What a follower finds of an epoch later than its leader's, and all behind, is not looked
        at: of the records it takes `valid_bytes`.
        """
        info = LogAppendInfo(
            UNKNOWN_OFFSET, -1, NO_TIMESTAMP, NO_TIMESTAMP, log_start_offset, 0, UNKNOWN_OFFSET
        )
        is_skipping = False
        for batch in self.records.batches():
            if self.origin == "client" and not batch.is_legacy and batch.base_offset != 0:
                refuse(ErrorKind.INVALID_RECORD)
            is_skipping = is_skipping or self.has_later_epoch(batch)
            if not is_skipping:
                last_offset = info.last_offset
                info = self.with_batch(info, batch)
                self.check_order(last_offset, batch)
        return info

    def has_later_epoch(self, batch: RecordBatch) -> bool:
        """Return whether a follower's batch is of another leader, a later one."""
        return self.origin == "replication" and batch.partition_leader_epoch > self.leader_epoch

    def check_order(self, last_offset: int, batch: RecordBatch) -> None:
        """Refuse a follower's batch that ends where the one before it has ended, or earlier."""
        if self.origin == "replication" and batch.last_offset <= last_offset:
            self.refuse_order()

    def refuse_order(self, named: int = INT32_MAX) -> NoReturn:
        """Refuse offsets that a follower is given for their order.

        The error names those of the first records, up to `named`; what can't be read of these is
        refused instead.
        """
        for batch in self.records.batches():
            for _ in batch.records():
                named -= 1
                if named == 0:
                    refuse(ErrorKind.OFFSET_ORDER)
        refuse(ErrorKind.OFFSET_ORDER)

    def with_batch(self, info: LogAppendInfo, batch: RecordBatch) -> LogAppendInfo:
        """Check one batch, and add what it says."""
        last_offset = batch.last_offset
        if batch.size_bytes > self.max_message_bytes:
            refuse(ErrorKind.RECORD_TOO_LARGE)
        batch.ensure_valid()
        _ = batch.compression  # an unknown codec is refused
        if info.valid_bytes == 0:
            first_offset = UNKNOWN_OFFSET if batch.is_legacy else batch.base_offset
            info = info._replace(first_offset=first_offset, last_offset_of_first_batch=last_offset)
        return info._replace(
            last_offset=last_offset,
            max_timestamp=max(info.max_timestamp, batch.max_timestamp),
            valid_bytes=info.valid_bytes + batch.size_bytes,
        )


class ValidationResult(NamedTuple):
    """The batches as a leader writes them."""

    validated_records: bytes
    last_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int
    """What goes with it into a time index: the last offset."""
    message_size_maybe_changed: bool
    """Whether the records were written anew."""


class LogValidator(Released):
    """What a leader does with the records of one call, which have passed the analysis."""

    def __init__(
        self,
        records: MemoryRecords,
        now_ms: int,
        config: LogConfig,
        leader_epoch: int,
        origin: AppendOrigin,
    ) -> None:
        self.batches = tuple(records.batches())
        self.codecs = records.codecs
        self.now_ms, self.config = now_ms, config
        self.leader_epoch, self.origin = leader_epoch, origin
        compressions = [batch.compression for batch in self.batches]
        self.source_compression = next(
            (one for one in reversed(compressions) if one != "none"), "none"
        )
        """The codec of the last batch that has any."""
        self.target_compression = {
            "producer": self.source_compression,
            "uncompressed": "none",
        }.get(config.compression_type, config.compression_type)
        """The codec that the log wants."""
        self.is_log_append_time = config.message_timestamp_type == "LogAppendTime"

    def validate_messages_and_assign_offsets(self, first_offset: int) -> ValidationResult:
        """Check the records, and give them offsets, the leader's epoch and timestamps (LOG-10).

        A batch of magic 2 keeps its records as they are, unless the log wants another codec;
        messages of magic 0 and 1 become one batch.
        """
        self.check_number_of_batches()
        records = []
        for batch in self.batches:
            self.validate_batch(batch)
            records += self.validate_records(batch)
        if self.is_assigned_in_place(records):
            return self.assign_offsets_in_place(self.batches[0], records, first_offset)
        return self.build_records_and_assign_offsets(records, first_offset)

    # --- checks --------------------------------------------------------------------------------

    def check_number_of_batches(self) -> None:
        """Refuse several batches, but for messages that are not compressed."""
        are_messages = self.batches[0].is_legacy and self.source_compression == "none"
        if len(self.batches) > 1 and not are_messages:
            refuse(ErrorKind.INVALID_RECORD)

    def validate_batch(self, batch: RecordBatch) -> None:
        """Refuse a batch of another magic than the first, or that a client may not write."""
        self.check_magic(batch)
        if self.origin != "client" or batch.is_legacy:
            return
        self.check_count(batch)
        is_numbered = batch.base_sequence >= 0 or batch.producer_id < 0
        if batch.is_control or not is_numbered:
            refuse(ErrorKind.INVALID_RECORD)

    def check_magic(self, batch: RecordBatch) -> None:
        """Refuse several magics in one call."""
        if batch.magic != self.batches[0].magic:
            refuse(ErrorKind.INVALID_RECORD)

    def check_count(self, batch: RecordBatch) -> None:
        """Refuse a batch without records, or whose offsets are not as many as its records."""
        count = batch.last_offset - batch.base_offset + 1
        if batch.record_count == 0 or batch.record_count != count:
            refuse(ErrorKind.INVALID_RECORD)

    def validate_records(self, batch: RecordBatch) -> list[Record]:
        """Return the records of a batch; an error of any record is raised."""
        foreign = self.foreign_messages(batch)
        records = list(batch.records())
        errors = self.record_errors(batch, records)
        for place in foreign:
            errors[place] = ErrorKind.INVALID_RECORD
        found = [error for error in errors if error is not None]
        if found:
            self.process_record_errors(found)
        return records

    def foreign_messages(self, batch: RecordBatch) -> list[int]:
        """Check the messages inside a wrapper; return the places of those of another magic.

        Those are not checked, nor what lies behind a message that can't be read.
        """
        foreign: list[int] = []
        if not isinstance(batch, LegacyRecordBatch) or batch.compression == "none":
            return foreign
        for place, message in enumerate(readable(batch.messages())):
            if message.stored.magic != batch.magic:
                foreign.append(place)
            elif not message.stored.is_valid():
                refuse(ErrorKind.CORRUPT_RECORD)
        return foreign

    def record_errors(
        self, batch: RecordBatch, records: Sequence[Record]
    ) -> list[ErrorKind | None]:
        """Return the error of each record of a batch; None for a record that is taken."""
        return [
            self.validate_key(record)
            or self.validate_timestamp(record.timestamp, batch.timestamp_type)
            for record in records
        ]

    def validate_key(self, record: Record) -> ErrorKind | None:
        """Return why the key of a record is refused: a compacted log needs one."""
        is_missing = "compact" in self.config.cleanup_policy and record.key is None
        return ErrorKind.INVALID_RECORD if is_missing else None

    def validate_timestamp(self, timestamp: int, timestamp_type: str) -> ErrorKind | None:
        """Return why the timestamp of a record is refused.

        It is too far from now; or it is not compared, and said to be given by a log.
        """
        if not self.is_log_append_time and timestamp != NO_TIMESTAMP:
            is_refused = self.has_invalid_timestamp(timestamp)
        else:
            is_refused = timestamp_type == "LogAppendTime"
        return ErrorKind.INVALID_TIMESTAMP if is_refused else None

    def has_invalid_timestamp(self, timestamp: int) -> bool:
        """Return whether a timestamp is too long before now, or after it."""
        before_ms = self.config.message_timestamp_before_max_ms
        after_ms = self.config.message_timestamp_after_max_ms
        return self.now_ms - timestamp > before_ms or timestamp - self.now_ms > after_ms

    def process_record_errors(self, errors: Sequence[ErrorKind]) -> NoReturn:
        """Refuse a batch for its records: that of a timestamp is told, else the first error."""
        is_of_time = ErrorKind.INVALID_TIMESTAMP in errors
        refuse(ErrorKind.INVALID_TIMESTAMP if is_of_time else errors[0])

    # --- writing -------------------------------------------------------------------------------

    def is_assigned_in_place(self, records: Sequence[Record]) -> bool:
        """Return whether the batch is kept, or its records are written anew.

        A batch of magic 2 is kept if it has the codec of the log, or is a control batch and has
        none; with a codec, if its records count from 0 as well.
        """
        source, target = self.source_compression, self.target_compression
        if any(batch.magic != CURRENT_MAGIC for batch in self.batches):
            return False
        if source == target == "none":
            return True
        is_plain_control = source == "none" and self.batches[0].is_control
        if source != target and not is_plain_control:
            return False
        is_counted = [record.offset for record in records] == list(range(len(records)))
        if not is_counted and source != "none":
            self.refuse_uncounted()
        return is_counted

    def refuse_uncounted(self) -> None:
        """Fail on compressed records that do not count from 0.

        They have to be written anew, and their keys and values were skipped by then: stands for
        upstream's UnsupportedOperationException.
        """
        refuse(ErrorKind.ILLEGAL_STATE)

    def assign_offsets_in_place(
        self, batch: RecordBatch, records: Sequence[Record], first_offset: int
    ) -> ValidationResult:
        """Write offset, epoch and timestamp into the header of a batch, which keeps its records."""
        last_offset = first_offset + len(records) - 1
        max_timestamp = self.max_timestamp(records)
        data, checked = batch.data, batch.data[21:]
        timestamp_type = self.config.message_timestamp_type
        if (batch.timestamp_type, batch.max_timestamp) != (timestamp_type, max_timestamp):
            attributes = batch.attributes % 128 & ~LOG_APPEND_TIME_BIT
            attributes += LOG_APPEND_TIME_BIT if self.is_log_append_time else 0
            checked = (
                bytes([0, attributes]) + checked[2:14] + int64_bytes(max_timestamp) + checked[22:]
            )
        base_offset = last_offset - int32_at(data, 23)
        framed = data[8:12] + int32_bytes(self.leader_epoch) + data[16:17]
        crc = crc32c(checked).to_bytes(4, "big")
        written = int64_bytes(base_offset) + framed + crc + checked
        return ValidationResult(written, last_offset, max_timestamp, last_offset, False)

    def build_records_and_assign_offsets(
        self, records: Sequence[Record], first_offset: int
    ) -> ValidationResult:
        """Write the records as one batch of magic 2 with the codec of the log."""
        first = self.batches[0]
        numbered = [
            record._replace(offset=offset) for offset, record in enumerate(records, first_offset)
        ]
        written = write_batch(
            numbered,
            base_offset=first_offset,
            compression=self.target_compression,
            timestamp_type=self.config.message_timestamp_type,
            log_append_time=self.now_ms if self.is_log_append_time else None,
            producer_id=first.producer_id,
            producer_epoch=first.producer_epoch,
            base_sequence=first.base_sequence,
            partition_leader_epoch=self.leader_epoch,
            is_transactional=first.is_transactional,
            codecs=self.codecs,
        )
        last_offset = numbered[-1].offset
        return ValidationResult(
            written, last_offset, self.max_timestamp(records), last_offset, True
        )

    def max_timestamp(self, records: Sequence[Record]) -> int:
        """Return the largest timestamp that records have as they are written."""
        if self.is_log_append_time:
            return self.now_ms
        return max([NO_TIMESTAMP, *[record.timestamp for record in records]])


def readable(messages: Iterator[Message]) -> Iterator[Message]:
    """Yield messages up to the first that can't be read."""
    try:
        yield from messages
    except Refused:
        return
