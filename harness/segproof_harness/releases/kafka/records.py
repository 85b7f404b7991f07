# SPDX-License-Identifier: Apache-2.0
"""Kafka's batches as the harness reads them: what the adapters of batches and files share.

Upstream: org.apache.kafka.common.record.* up to 4.2, ....record.internal.* since.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from typing import Any

import jpype

from segproof_harness.files.codecs import CODECS
from segproof_harness.releases.jvm import Jvm, byte_array, invoked, kind_of, plain, reflected
from segproof_harness.releases.kafka.batches_before_0_11 import Entry, batches_of
from segproof_harness.structures.kafka.batch_drawing import whole_batches
from segproof_harness.structures.kafka.codec_differences import MUCH_BYTES
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record, RecordHeader
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused

PACKAGES = ("org.apache.kafka.common.record.internal.", "org.apache.kafka.common.record.")


class RefusedError(Exception):
    """An error of Kafka's with its kind, where the harness shows an error as part of an answer."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


CODEC_ERROR = "codec-error"
KINDS = {
    "org.xerial.snappy.SnappyError": CODEC_ERROR,
    "java.lang.NegativeArraySizeException": CODEC_ERROR,
    "java.lang.StringIndexOutOfBoundsException": "invalid-record",
}
"""What Kafka lets pass as it is: what a codec throws at some damaged blocks; and, up to 2.4, what
String says of a header's key that is longer than what is left, later an invalid record."""


@contextmanager
def java_errors() -> Iterator[None]:
    """Turn the exceptions of Java into `RefusedError`."""
    try:
        yield
    except jpype.JException as error:
        raise RefusedError(kind_of(error, KINDS), str(error)) from None


@cache
def record_class(jvm: Jvm, name: str) -> Any:
    """Return a class of records by its last name. Raises LookupError if the release has none."""
    return jvm.first(*(f"{package}{name}" for package in PACKAGES))


def wrapped(jvm: Jvm, data: bytes) -> Any:
    """Return bytes as a ByteBuffer."""
    return jvm.java("java.nio.ByteBuffer").wrap(data)


def bytes_of(buffer: Any) -> bytes | None:
    """Return what is left in a ByteBuffer, and leave its position alone; null is None."""
    if buffer is None:
        return None
    target = byte_array()(int(buffer.remaining()))
    buffer.duplicate().get(target)
    return bytes(target)


def _stored_attributes(real: Any) -> int:
    """Return the attributes as they are stored; the class shows of two bytes the low one only."""
    buffer = jpype.JClass("java.nio.ByteBuffer").allocate(real.sizeInBytes())
    real.writeTo(buffer)
    return int(buffer.get(17)) if real.magic() < 2 else int(buffer.getShort(21))


def _base_timestamp(real: Any) -> int | None:
    """Return it; before 3.1 it is called the first timestamp, and messages have none."""
    if real.magic() < 2:
        return None
    return int(real.baseTimestamp() if hasattr(real, "baseTimestamp") else real.firstTimestamp())


def _has_delete_horizon(real: Any) -> bool:
    """Return whether there is one, without reading it; before 3.1 there is none."""
    if real.magic() < 2 or not hasattr(real, "deleteHorizonMs"):
        return False
    kind: Any = type(real)
    return bool(invoked(reflected(kind, "hasDeleteHorizonMs"), real))


READERS: Mapping[str, Callable[[Any], Any]] = {
    "magic": lambda real: int(real.magic()),
    "size_bytes": lambda real: int(real.sizeInBytes()),
    "base_offset": lambda real: int(real.baseOffset()),
    "last_offset": lambda real: int(real.lastOffset()),
    "next_offset": lambda real: int(real.nextOffset()),
    "crc": lambda real: int(real.checksum()),
    "attributes": _stored_attributes,
    "compression": lambda real: str(real.compressionType().name).lower(),
    "timestamp_type": lambda real: str(real.timestampType().toString()),
    "base_timestamp": _base_timestamp,
    "max_timestamp": lambda real: int(real.maxTimestamp()),
    "partition_leader_epoch": lambda real: int(real.partitionLeaderEpoch()),
    "producer_id": lambda real: int(real.producerId()),
    "producer_epoch": lambda real: int(real.producerEpoch()),
    "base_sequence": lambda real: int(real.baseSequence()),
    "last_sequence": lambda real: int(real.lastSequence()),
    "record_count": lambda real: plain(real.countOrNull()),
    "is_transactional": lambda real: bool(real.isTransactional()),
    "is_control": lambda real: bool(real.isControlBatch()),
    "has_delete_horizon": _has_delete_horizon,
}
"""How each field of a batch is asked for."""


BAD_BLOCK_KINDS = frozenset(
    ("kafka-error", "invalid-record", "corrupt-record", "index-error", "out-of-memory", CODEC_ERROR)
)
"""What Kafka raises in the middle of a block that can't be inflated to its end."""
NOT_OF_BLOCK = (
    "Unknown compression type",
    "Attempt to append to a full",
    "Expected string to end with",
    "Invalid max index size",
    "Invalid max size",
    "Invalid size: ",
)
"""What invalid arguments say that are none of a record: a codec, a full index, a name, a size of an
index, of what is to be read, of a slice of a file."""


def may_be_of_block(kind: str | None, text: str | None) -> bool:
    """Return whether Kafka raises this in the middle of a block that can't be inflated to its end.

    Up to 3.5 a bad length of a record is an invalid argument, as a codec is that it has not.
    """
    if kind == "invalid-argument":
        return not any(said in (text or "") for said in NOT_OF_BLOCK)
    return kind in BAD_BLOCK_KINDS


@lru_cache(maxsize=4096)
def is_refused_by_codecs(data: bytes) -> bool:
    """Return whether a batch has a compressed block that can't be inflated as a whole."""
    try:
        batch = MemoryRecords(data, codecs=CODECS).first_batch()
        if batch.compression != "none":
            for _ in batch.records():
                pass
    except Refused as error:
        return error.kind is ErrorKind.KAFKA_ERROR
    return False


def error_of_reading(jvm: Jvm, data: bytes) -> str | None:
    """Return what Kafka says, class and message, when it reads one batch in memory."""
    try:
        for _ in _records_in_memory(jvm, data):
            pass
    except jpype.JException as error:
        return str(error)
    return None


def is_of_block(jvm: Jvm, said: str, data: bytes) -> bool:
    """Return whether what Kafka said of these batches is about a block that can't be inflated.

    It is if Kafka says the very same when it reads one such batch alone. Where it had no memory,
    such a block may have asked for it, or a batch that says to be larger than any file here.
    """
    refused = [one.data for one in whole_batches(data) if is_refused_by_codecs(one.data)]
    if "OutOfMemoryError" in said:
        return bool(refused) or _claims_much(data)
    return any(said == error_of_reading(jvm, one) for one in refused)


def _claims_much(data: bytes) -> bool:
    """Return whether the bytes behind the whole batches are the head of a very large one."""
    end = sum(one.size_bytes for one in whole_batches(data))
    return int.from_bytes(data[end + 8 : end + 12], "big", signed=True) > MUCH_BYTES


def has_null_record(jvm: Jvm, data: bytes) -> bool:
    """Return whether Kafka hands out null for a record of one of these batches, or trips over it.

    Before 0.11 it trips over a wrapper without a value.
    """
    return any(_has_null_record(jvm, one.data) for one in whole_batches(data))


def trips_over_null_record(jvm: Jvm, segment: Any, data: bytes) -> bool:
    """Return whether a NullPointerException is that of a record of a segment, and not of an index.

    Up to 2.8 Kafka hands out null for a record that is too long. An index without a mapping is met
    before any record, so both must be mapped, and the log's bytes must have such a record.
    """
    if jvm.release.number >= (3, 0) or not has_null_record(jvm, data):
        return False  # no index is asked where it need not be: that can make its file
    offset_index = "offsetIndex" if hasattr(segment, "offsetIndex") else "index"
    with suppress(jpype.JException):
        names = (offset_index, "timeIndex")
        return all(getattr(segment, name)().mmap() is not None for name in names)
    return True


def _has_null_record(jvm: Jvm, data: bytes) -> bool:
    try:
        return any(record is None for record in _records_in_memory(jvm, data))
    except jpype.JException as error:
        return kind_of(error, KINDS) == "null"


def _records_in_memory(jvm: Jvm, data: bytes) -> Iterator[Any]:
    memory = record_class(jvm, "MemoryRecords").readableRecords(wrapped(jvm, data))
    for batch in batches_of(memory):
        yield from batch


GZIP = 1
GZIP_RESERVED_FLAGS = 0xE0


def has_reserved_gzip_flags(data: bytes) -> bool:
    """Return whether the block of a batch is gzip with flags that the format wants to be 0.

    zlib, and so ours, refuses such a block; Java does not look at them. That is the library's
    choice, not Kafka's, and the one damage that Kafka reads through.
    """
    if not data:
        return False  # it says to have a negative size
    is_message = data[16] < 2
    if (data[17] if is_message else data[22]) & 7 != GZIP:
        return False
    place = 61
    if is_message:
        key = 18 + 8 * data[16]
        place = key + 8 + max(0, int.from_bytes(data[key : key + 4], "big", signed=True))
    return data[place : place + 2] == b"\x1f\x8b" and bool(
        data[place + 3 : place + 4] and data[place + 3] & GZIP_RESERVED_FLAGS
    )


class Batch:
    """One of Kafka's batches with the implementation's names."""

    def __init__(self, real: Any, position: int) -> None:
        self._real = real
        self.position = position

    def __getattr__(self, name: str) -> Any:
        """Return a field. Raises RefusedError where the class raises."""
        if name not in READERS:
            raise AttributeError(name)
        with self._errors():
            found = READERS[name](self._real)
        if name == "base_offset" and self._real.magic() < 2:
            self._refuse_as_zlib()
        return found

    def _refuse_as_zlib(self) -> None:
        """Raise what zlib makes ours raise, where Kafka itself finds nothing wrong."""
        if has_reserved_gzip_flags(self._data()):
            with self._errors():
                for _ in self._real:
                    pass
            raise RefusedError("kafka-error", "gzip with reserved flags")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the exceptions of Java into `RefusedError`, and name them as ours would.

        Kafka reads a compressed batch record by record while it inflates, and makes room for as
        many records as the batch says to have. Ours inflates first. So of a block that the codecs
        refuse ours says just that, where Kafka may have met a bad record before; and where Kafka's
        room is used up, ours has found too few records.
        """
        try:
            with java_errors():
                yield
        except RefusedError as error:
            if error.kind == "out-of-memory" and self._is_large_entry():
                raise
            if may_be_of_block(error.kind, str(error)) and is_refused_by_codecs(self._data()):
                raise RefusedError("kafka-error", str(error)) from None
            if error.kind == "out-of-memory":
                raise RefusedError("invalid-record", str(error)) from None
            raise

    def _is_large_entry(self) -> bool:
        """Return whether it needs much memory itself: before 0.11 each field is read with it."""
        size = int(self._real.sizeInBytes())
        return isinstance(self._real, Entry) and not 0 <= size <= MUCH_BYTES

    def _data(self) -> bytes:
        """Return its bytes; none where limits that wrap let its size be negative."""
        size = self._real.sizeInBytes()
        if size < 0:
            return b""
        buffer = jpype.JClass("java.nio.ByteBuffer").allocate(size)
        self._real.writeTo(buffer)
        buffer.flip()
        return bytes_of(buffer) or b""

    def is_valid(self) -> bool:
        """Call isValid."""
        return bool(self._real.isValid())

    def ensure_valid(self) -> None:
        """Call ensureValid."""
        self._real.ensureValid()

    def read_times(self) -> None:
        """Read all records but their keys and values. Raises RefusedError as `records`."""
        for _ in self._each(lambda real: None):
            pass

    def records(self) -> Iterator[Record]:
        """Iterate over the records. Raises RefusedError where the class raises."""
        return self._each(_record_of)

    def _each(self, shown: Callable[[Any], Any]) -> Iterator[Any]:
        self._refuse_as_zlib()
        with self._errors():
            for real in self._real:
                if real is None:
                    raise RefusedError("null", "the iterator handed out a null")
                yield shown(real)


def _record_of(real: Any) -> Record:
    headers = tuple(
        RecordHeader(str(one.key()), None if one.value() is None else bytes(one.value()))
        for one in real.headers()
    )
    data = bytes_of(real.key()), bytes_of(real.value())
    return Record(int(real.offset()), int(real.timestamp()), *data, headers, int(real.sequence()))
