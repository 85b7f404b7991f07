# SPDX-License-Identifier: Apache-2.0
"""What a release's own classes write and read where ours and those of other clients may differ.

Two questions that no history asks: which checksum a frame of lz4 has, since histories compare what
a codec's block holds and not its bytes; and which batches of a transaction are written without a
producer id.

Upstream: Kafka, Lz4BlockOutputStream, Lz4BlockInputStream, MemoryRecordsBuilder,
    DefaultRecordBatch.writeEmptyHeader (since 0.11).
"""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any, Self

from segproof_harness.releases.jars import class_path, extra_folders
from segproof_harness.releases.pinned import Release
from segproof_model.kafka.format.record import Record

ASK_SECONDS = 120.0
NO_PRODUCER = (-1, -1, -1)


class WrittenBatches:
    """A child with the classes of one release. A context manager, which ends the child.

    Each question raises OSError without the jars.
    """

    def __init__(self, release: Release) -> None:
        self._release = release
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def lz4_message(self, magic: int, value: bytes) -> bytes:
        """Return the message with this magic that the release writes, compressed with lz4."""
        return bytes(self._asked(_lz4_message, magic, value))

    def counts_of_records(self, messages: Sequence[bytes]) -> list[int | None]:
        """Return how many records it reads in each of some messages; None if it raises."""
        return list(self._asked(_counts, messages))

    def transactional_without_producer(self) -> tuple[str, bytes]:
        """Return the error of writing a record in a transaction without a producer id, and the
        batch without records that is written so."""
        said, written = self._asked(_transactional)
        return str(said), bytes(written)

    def _asked(self, question: Callable[..., Any], *arguments: Any) -> Any:
        return self._pool.submit(question, self._release, *arguments).result(ASK_SECONDS)


@cache
def _jvm(release: Release) -> Any:
    """Return the JVM of this process, started at the first call."""
    from segproof_harness.releases.jvm import Jvm

    return Jvm(release, class_path(release), extra_folders(release))


def _functions(release: Release) -> Any:
    from segproof_harness.releases.kafka.record_batch import Functions

    return Functions(_jvm(release))


def _written(functions: Any, magic: int, compression: str, value: bytes, **fields: Any) -> bytes:
    timestamp, kind = (-1, "NoTimestampType") if magic == 0 else (5, "CreateTime")
    given = {"is_transactional": False, "is_control": False, **fields}
    producer_id, producer_epoch, base_sequence = NO_PRODUCER
    written: bytes = functions.write_batch(
        [Record(0, timestamp, None, value)], magic=magic, base_offset=0, compression=compression,
        timestamp_type=kind, log_append_time=None, producer_id=producer_id,
        producer_epoch=producer_epoch, base_sequence=base_sequence, **given,
    )  # fmt: skip
    return written


def _lz4_message(release: Release, magic: int, value: bytes) -> bytes:
    return _written(_functions(release), magic, "lz4", value)


def _counts(release: Release, messages: Sequence[bytes]) -> list[int | None]:
    functions = _functions(release)
    return [_count(functions, message) for message in messages]


def _count(functions: Any, message: bytes) -> int | None:
    from segproof_harness.releases.kafka.records import RefusedError
    from segproof_model.language.integers import INT32_MAX

    try:
        batches = list(functions.scan(message, INT32_MAX))
        return sum(1 for batch in batches for _ in batch.records())
    except RefusedError:
        return None


def _transactional(release: Release) -> tuple[str, bytes]:
    import jpype
    from jpype import JBoolean, JByte, JInt, JLong, JShort

    from segproof_harness.releases.kafka.records import bytes_of, record_class

    jvm = _jvm(release)
    said = ""
    try:
        _written(_functions(release), 2, "none", b"v", is_transactional=True)
    except jpype.JException as error:
        said = str(error)
    buffer = jvm.java("java.nio.ByteBuffer").allocate(61)
    producer_id, producer_epoch, base_sequence = NO_PRODUCER
    record_class(jvm, "DefaultRecordBatch").writeEmptyHeader(
        buffer, JByte(2), JLong(producer_id), JShort(producer_epoch), JInt(base_sequence),
        JLong(0), JLong(5), JInt(-1), record_class(jvm, "TimestampType").CREATE_TIME, JLong(7),
        JBoolean(True), JBoolean(False),
    )  # fmt: skip
    buffer.flip()
    return said, bytes_of(buffer) or b""
