# SPDX-License-Identifier: Apache-2.0
"""Kafka's record batches in memory, and what writes them, as the harness calls them.

What the real class writes is read here by the implementation too, and held against what the class
itself reads in it: so records go both ways.

Upstream: DefaultRecordBatch, AbstractLegacyRecordBatch, MemoryRecordsBuilder,
ByteBufferLogInputStream, ControlRecordType, ByteUtils.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from jpype import JArray, JBoolean, JByte, JInt, JLong, JObject, JShort

from segproof.kafka.record_file import scan_memory
from segproof_harness.releases.jvm import Adapter, Jvm, constructor, invoked, reflected
from segproof_harness.releases.kafka.batches_before_0_11 import next_batch
from segproof_harness.releases.kafka.records import (
    Batch,
    RefusedError,
    bytes_of,
    java_errors,
    record_class,
    wrapped,
)
from segproof_harness.structures.kafka.batch_drawing import show_record
from segproof_model.kafka.format.record import Record, RecordHeader
from segproof_model.language.integers import INT32_MAX, wrap32, wrap64

PRODUCERS_SINCE = (0, 11)
COMPRESSION_OBJECTS_SINCE = (3, 8)
ALONE = (
    ((2, 1), {"decrement_sequence"}),
    ((0, 11), {"decode_varint", "decode_varlong", "encode_varint", "encode_varlong"}),
    ((0, 11), {"increment_sequence", "control_record_type"}),
)
"""Since which version there are some functions."""
BUFFER_BYTES = 512
"""What a writer begins with; its buffer grows."""


class Functions:
    """The functions of the implementation's module, answered by Kafka's classes."""

    def __init__(self, jvm: Jvm) -> None:
        self.Record = Record
        self.RecordHeader = RecordHeader
        self._jvm = jvm

    @cached_property
    def _byte_utils(self) -> Any:
        package = "org.apache.kafka.common.utils."
        return self._jvm.first(f"{package}ByteUtils", f"{package}internals.ByteUtils")

    @cached_property
    def _batch_class(self) -> Any:
        return record_class(self._jvm, "DefaultRecordBatch")

    def scan(self, data: bytes, max_message_size_bytes: int) -> Iterator[Batch]:
        """Iterate over the batches of data. Raises RefusedError where the class raises."""
        kind = record_class(self._jvm, "ByteBufferLogInputStream")
        stream = constructor(kind, self._jvm.java("java.nio.ByteBuffer"), JInt)
        batches = stream.newInstance(wrapped(self._jvm, data), JInt(max_message_size_bytes))
        position = 0
        with java_errors():
            while (real := next_batch(batches)) is not None:
                yield Batch(real, position)
                position += int(real.sizeInBytes())

    def read_batch(self, data: bytes) -> Batch:
        """Return the first batch. Where the class finds none and says nothing, ours refuses."""
        for batch in self.scan(data, INT32_MAX):
            return batch
        raise RefusedError("corrupt-record", "no whole batch")

    def write_batch(
        self,
        records: Sequence[Record],
        *,
        magic: int,
        base_offset: int,
        compression: str,
        timestamp_type: str,
        log_append_time: int | None,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        is_transactional: bool,
        is_control: bool,
    ) -> bytes:
        """Write a batch with a builder. Raises RefusedError if ours reads otherwise than Kafka."""
        if timestamp_type == "LogAppendTime" and magic > 0 and log_append_time is None:
            raise RefusedError("invalid-argument", "Kafka takes a number only")
        of_producer: list[Any] = [
            JLong(producer_id),
            JShort(producer_epoch),
            JInt(base_sequence),
            JBoolean(is_transactional),
            JBoolean(is_control),
            JInt(-1),
        ]
        builder = record_class(self._jvm, "MemoryRecordsBuilder")(
            self._jvm.java("java.nio.ByteBuffer").allocate(BUFFER_BYTES),
            JByte(magic),
            self._compression(compression),
            record_class(self._jvm, "TimestampType").forName(timestamp_type),
            JLong(base_offset),
            JLong(-1 if log_append_time is None else log_append_time),
            *(of_producer if self._has_producers else []),
            JInt(0),
        )
        for record in records:
            if self._has_producers:
                self._append(builder, record, is_control)
            else:
                self._append_message(builder, record)
        written = bytes_of(builder.build().buffer())
        assert written is not None
        self._read_by_ours(written)
        return written

    @property
    def _has_producers(self) -> bool:
        """Whether batches have producers, and records headers."""
        return self._jvm.release.number >= PRODUCERS_SINCE

    def _append_message(self, builder: Any, record: Record) -> None:
        """Append one message with its offset."""
        no_bytes = JObject(None, JArray(JByte))
        data = [
            no_bytes if one is None else self._jvm.to_bytes(one)
            for one in (record.key, record.value)
        ]
        builder.appendWithOffset(JLong(record.offset), JLong(record.timestamp), *data)

    def _compression(self, name: str) -> Any:
        if self._jvm.release.number < COMPRESSION_OBJECTS_SINCE:
            return record_class(self._jvm, "CompressionType").forName(name)
        return self._jvm.java("org.apache.kafka.common.compress.Compression").of(name).build()

    def _append(self, builder: Any, record: Record, is_control: bool) -> None:
        """Append one record with its offset, as all public appends do in the end."""
        java, buffer = self._jvm.java, self._jvm.java("java.nio.ByteBuffer")
        header = java("org.apache.kafka.common.header.Header")
        types = (JLong, JBoolean, JLong, buffer, buffer, header[:])
        header_class = java("org.apache.kafka.common.header.internals.RecordHeader")
        no_bytes = JObject(None, JArray(JByte))  # a plain None fits a ByteBuffer too
        headers = [
            header_class(one.key, no_bytes if one.value is None else self._jvm.to_bytes(one.value))
            for one in record.headers
        ]
        invoked(
            reflected(record_class(self._jvm, "MemoryRecordsBuilder"), "appendWithOffset", *types),
            builder,
            JLong(record.offset),
            JBoolean(is_control),
            JLong(record.timestamp),
            None if record.key is None else wrapped(self._jvm, record.key),
            None if record.value is None else wrapped(self._jvm, record.value),
            header[:](headers),
        )

    def _read_by_ours(self, written: bytes) -> None:
        ours = [show_record(one) for batch in scan_memory(written) for one in batch.records()]
        batches = self.scan(written, INT32_MAX)
        theirs = [show_record(one) for batch in batches for one in batch.records()]
        if ours != theirs:
            raise RefusedError("unexpected:OtherRecords", f"ours reads {ours}, Kafka {theirs}")

    def _decoded(self, call: Any, data: bytes, position: int) -> tuple[int, int]:
        """Decode; data that ends early is what Kafka's records make of it, an invalid record."""
        buffer = wrapped(self._jvm, data[position:])
        try:
            value = int(call(buffer))
        except self._jvm.java("java.nio.BufferUnderflowException") as error:
            raise RefusedError("invalid-record", str(error)) from None
        return value, position + int(buffer.position())

    def decode_varint(self, data: bytes, position: int) -> tuple[int, int]:
        """Call readVarint."""
        return self._decoded(self._byte_utils.readVarint, data, position)

    def decode_varlong(self, data: bytes, position: int) -> tuple[int, int]:
        """Call readVarlong."""
        return self._decoded(self._byte_utils.readVarlong, data, position)

    def _encoded(self, call: Any, value: Any) -> bytes:
        buffer = self._jvm.java("java.nio.ByteBuffer").allocate(10)
        call(value, buffer)
        buffer.flip()
        return bytes_of(buffer) or b""

    def encode_varint(self, value: int) -> bytes:
        """Call writeVarint."""
        return self._encoded(self._byte_utils.writeVarint, JInt(wrap32(value)))

    def encode_varlong(self, value: int) -> bytes:
        """Call writeVarlong."""
        return self._encoded(self._byte_utils.writeVarlong, JLong(wrap64(value)))

    def _sequence(self, name: str, sequence: int, change: int) -> int:
        call = reflected(self._batch_class, name, JInt, JInt)
        return int(invoked(call, None, JInt(sequence), JInt(change)))

    def increment_sequence(self, sequence: int, increment: int) -> int:
        """Call incrementSequence."""
        return self._sequence("incrementSequence", sequence, increment)

    def decrement_sequence(self, sequence: int, decrement: int) -> int:
        """Call decrementSequence."""
        return self._sequence("decrementSequence", sequence, decrement)

    def control_record_type(self, key: bytes | None) -> str:
        """Call parse; a missing key is what ours makes of it, an invalid record."""
        if key is None:
            raise RefusedError("invalid-record", "Kafka takes a buffer only")
        kind = record_class(self._jvm, "ControlRecordType")
        return str(kind.parse(wrapped(self._jvm, key)).toString())


class RecordBatch(Adapter):
    """The functions that histories of batches use, answered by Kafka's classes."""

    left_out = frozenset({"record_columns"})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        absent = [names for since, names in ALONE if cls.jvm.release.number < since]
        cls.left_out = RecordBatch.left_out.union(*absent)

    @classmethod
    def functions(cls) -> Functions:
        """Return read_batch, write_batch, decode_varint and the others."""
        return Functions(cls.jvm)

    @classmethod
    def scan_memory(cls, data: bytes, max_message_size_bytes: int) -> Iterator[Batch]:
        """Scan records in memory."""
        return Functions(cls.jvm).scan(data, max_message_size_bytes)
