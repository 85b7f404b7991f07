# SPDX-License-Identifier: Apache-2.0
"""What a leader of releases before 0.11 asks of messages, and what it writes into them.

Upstream: Kafka 0.10.2, LogValidator, MemoryRecordsBuilder, ByteBufferLogInputStream.
Layout: see legacy_record.
Not covered: another message.format.version than that of magic 1; a log that wants a codec of its
    own, but for none.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from segproof_model.kafka.broker import log_validator
from segproof_model.kafka.broker.log_validator import ValidationResult, readable
from segproof_model.kafka.format.compression import COMPRESSIONS, crc32, deflate
from segproof_model.kafka.format.legacy_record import (
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    LegacyRecord,
    encode_message,
)
from segproof_model.kafka.format.legacy_record_batch import LegacyRecordBatch
from segproof_model.kafka.format.record_batch import RecordBatch, Time
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import int32_at, int64_bytes, wrap64
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse

FORMAT = 1
"""The magic of what a leader writes."""


class InnerMessage(NamedTuple):
    """A message that was wrapped, or is given among wrapped ones."""

    offset: int
    """As its wrapper shows it."""
    timestamp: int
    stored: LegacyRecord
    body: bytes
    """What is written of it behind its offset."""


class LeaderKeepsMessages(Behaviour):
    """A leader writes messages of magic 1, not batches: each gets its offset where it is, and all
    that is compressed becomes one wrapper, which is kept as it is where it can be.
    """

    laws = ("LOG-9", "LOG-10")
    releases = up_to("0.10.2.2")

    class LogValidator(log_validator.LogValidator):
        """The leader's validator.

        What is not compressed, and stays so, is kept, but messages of magic 0 are written anew.
        What is compressed keeps its first wrapper if its messages count from 0; otherwise all are
        written anew, in one wrapper or none.
        """

        @override
        def validate_messages_and_assign_offsets(self, first_offset: int) -> ValidationResult:
            magics = {batch.magic for batch in self.batches}
            if not magics <= {0, FORMAT}:
                refuse(ErrorKind.INVALID_ARGUMENT)
            if self.source_compression != "none" or self.target_compression != "none":
                return self.validate_messages_and_assign_offsets_compressed(first_offset)
            if magics == {FORMAT}:
                return self.assign_offsets_non_compressed(first_offset)
            return self.convert_and_assign_offsets_non_compressed(first_offset)

        # --- checks ----------------------------------------------------------------------------

        def check_key(self, message: LegacyRecord) -> None:
            """Refuse a message without a key in a compacted log; the key itself is not read."""
            if "compact" not in self.config.cleanup_policy:
                return
            if message.key_position + 4 > len(message.entry):
                refuse(ErrorKind.INDEX_ERROR)
            if int32_at(message.entry, message.key_position) < 0:
                refuse(ErrorKind.CORRUPT_RECORD)

        def check_timestamp(self, timestamp: int, timestamp_type: str) -> None:
            """Refuse a message for its timestamp."""
            error = self.validate_timestamp(timestamp, timestamp_type)
            if error is not None:
                refuse(error)

        @override
        def has_invalid_timestamp(self, timestamp: int) -> bool:
            distance_ms = wrap64(abs(wrap64(timestamp - self.now_ms)))
            return distance_ms > self.config.message_timestamp_before_max_ms

        # --- what is not compressed, and stays so ----------------------------------------------

        def valid_messages(self, first_offset: int) -> Iterator[tuple[int, LegacyRecord]]:
            """Yield each message with the offset that it gets; none is refused."""
            for offset, batch in enumerate(self.batches, first_offset):
                message = LegacyRecord(batch.data)
                self.check_key(message)
                self.check_timestamp(message.timestamp, batch.timestamp_type)
                yield offset, message

        def assign_offsets_non_compressed(self, first_offset: int) -> ValidationResult:
            """Write offsets into the messages, and timestamps where the log gives them."""
            written, times = b"", []
            for offset, message in self.valid_messages(first_offset):
                if self.is_log_append_time:
                    message = timed(message, self.now_ms, TIMESTAMP_TYPE_BIT)
                written += int64_bytes(offset) + message.entry[8:]
                times.append(Time(message.timestamp, offset))
            newest = newest_of(times, otherwise=-1)
            return ValidationResult(written, times[-1].offset, *newest, False)

        def convert_and_assign_offsets_non_compressed(self, first_offset: int) -> ValidationResult:
            """Write messages of magic 0 anew; the others get offsets, and keep their timestamps."""
            written, times = b"", []
            for offset, message in self.valid_messages(first_offset):
                timestamp = self.now_ms if self.is_log_append_time else message.timestamp
                body = in_format(message, timestamp, self.timestamp_type_bit)
                written += int64_bytes(offset) + body
                times.append(Time(timestamp, offset))
            return ValidationResult(written, times[-1].offset, *self.newest_written(times), True)

        @property
        def timestamp_type_bit(self) -> int:
            """What the attributes of a message say of its timestamp."""
            return TIMESTAMP_TYPE_BIT if self.is_log_append_time else 0

        def newest_written(self, times: Sequence[Time]) -> Time:
            """Return the newest time, and its offset, of messages that are written again."""
            end = times[-1].offset
            return Time(self.now_ms, end) if self.is_log_append_time else newest_of(times, end)

        # --- what is compressed, or shall be ---------------------------------------------------

        def validate_messages_and_assign_offsets_compressed(
            self, first_offset: int
        ) -> ValidationResult:
            """Keep the first wrapper, or write all messages anew."""
            messages = [one for batch in self.batches for one in self.valid_inner_messages(batch)]
            found = [(one.offset, one.stored.magic) for one in messages]
            is_counted = found == [(number, FORMAT) for number in range(len(messages))]
            if is_counted and self.source_compression == self.target_compression:
                return self.assign_offsets_in_wrapper(messages, first_offset)
            return self.build_messages_and_assign_offsets(messages, first_offset)

        def valid_inner_messages(self, batch: RecordBatch) -> Iterator[InnerMessage]:
            """Yield the messages of a wrapper, or the one that is not wrapped, none refused."""
            assert isinstance(batch, LegacyRecordBatch)
            if any(one.stored.magic != batch.magic for one in readable(batch.messages())):
                refuse(ErrorKind.INVALID_RECORD)
            is_empty = True
            for offset, timestamp, stored in batch.messages():
                self.check_key(stored)
                if stored.magic > 0:
                    self.check_timestamp(timestamp, batch.timestamp_type)
                yield InnerMessage(offset, timestamp, stored, in_format(stored, timestamp, 0))
                is_empty = False
            if is_empty:
                refuse(ErrorKind.INDEX_ERROR)

        def assign_offsets_in_wrapper(
            self, messages: Sequence[InnerMessage], first_offset: int
        ) -> ValidationResult:
            """Write the last offset and the largest timestamp into the first wrapper.

            What follows that stays as it was given.
            """
            if not all(one.stored.is_valid() for one in messages):
                refuse(ErrorKind.INVALID_RECORD)
            first, *rest = [batch.data for batch in self.batches]
            last_offset = first_offset + len(messages) - 1
            largest = max(NO_TIMESTAMP, *[one.timestamp for one in messages])
            timestamp = self.now_ms if self.is_log_append_time else largest
            wrapper = timed(LegacyRecord(first), timestamp, self.timestamp_type_bit)
            written = int64_bytes(last_offset) + wrapper.entry[8:] + b"".join(rest)
            return ValidationResult(written, last_offset, timestamp, last_offset, False)

        def build_messages_and_assign_offsets(
            self, messages: Sequence[InnerMessage], first_offset: int
        ) -> ValidationResult:
            """Write all messages anew, in one wrapper if the log has a codec."""
            codec = COMPRESSIONS.index(self.target_compression)
            begin = 0 if codec else first_offset
            written = b"".join(
                [int64_bytes(at) + one.body for at, one in enumerate(messages, begin)]
            )
            times = [Time(one.timestamp, at) for at, one in enumerate(messages, first_offset)]
            last_offset, newest = times[-1].offset, self.newest_written(times)
            if codec:
                newest = Time(newest.timestamp, last_offset)
                attributes = codec + self.timestamp_type_bit
                value = deflate(codec, written, FORMAT, self.codecs)
                written = encode_message(
                    FORMAT, last_offset, newest.timestamp, attributes, None, value
                )
            return ValidationResult(written, last_offset, *newest, True)


def timed(message: LegacyRecord, timestamp: int, timestamp_type_bit: int) -> LegacyRecord:
    """Return a message of magic 1 with this timestamp, its kind, and a new checksum."""
    entry = message.entry
    attributes = entry[17] & ~TIMESTAMP_TYPE_BIT | timestamp_type_bit
    checked = entry[16:17] + bytes([attributes]) + int64_bytes(timestamp) + entry[26:]
    return LegacyRecord(entry[:12] + crc32(checked).to_bytes(4, "big") + checked)


def in_format(message: LegacyRecord, timestamp: int, attributes: int) -> bytes:
    """Return a message without its offset; a message of magic 0 is written again."""
    if message.magic == FORMAT:
        return message.entry[8:]
    return encode_message(FORMAT, 0, timestamp, attributes, message.key, message.value)[8:]


def newest_of(times: Sequence[Time], otherwise: int) -> Time:
    """Return the first with the largest timestamp; without timestamps -1 and the other offset."""
    newest = max(times, key=lambda time: time.timestamp)
    return newest if newest.timestamp > NO_TIMESTAMP else Time(NO_TIMESTAMP, otherwise)


class MissingTimeIsCompared(Behaviour):
    """A message without a timestamp may be too old, as if it were of the time -1."""

    laws = ("LOG-10",)
    releases = up_to("0.10.2.2")

    class LogValidator(log_validator.LogValidator):
        """The leader's validator."""

        @override
        def validate_timestamp(self, timestamp: int, timestamp_type: str) -> ErrorKind | None:
            if not self.is_log_append_time and self.has_invalid_timestamp(timestamp):
                return ErrorKind.INVALID_TIMESTAMP
            return super().validate_timestamp(timestamp, timestamp_type)
