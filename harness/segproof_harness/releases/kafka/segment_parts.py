# SPDX-License-Identifier: Apache-2.0
"""What the adapter of the segment works with: options, parts, time, and what a read found."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from jpype import JBoolean, JInt, JLong

from segproof_harness.files.codecs import CODECS
from segproof_harness.releases.jvm import Jvm
from segproof_harness.releases.kafka.classes import storage_class
from segproof_harness.releases.kafka.records import bytes_of, java_errors, record_class
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.segment_names import segment_file_name
from segproof_model.language.states import Refused
from segproof_model.releases import release_named

__all__ = ["Fetched", "Slice", "SubjectTime", "made_config", "opened_by_parts", "told_of_append"]

JAVA_CONFIG_SINCE = (3, 5)
INDEX_BYTES_MIN = 4
"""What the options ask of an index's size; the segment itself takes any."""


class Fetched(NamedTuple):
    """What a read found, with the implementation's names."""

    fetch_offset_metadata: tuple[int, int, int]
    records: "Slice | None"
    first_entry_incomplete: bool
    aborted_transactions: None = None


class Slice:
    """A slice of the log."""

    def __init__(self, jvm: Jvm, start: int, real: Any) -> None:
        self._jvm = jvm
        self.start = start
        self._real = real

    def size_in_bytes(self) -> int:
        """Call sizeInBytes."""
        return int(self._real.sizeInBytes())

    def read(self) -> bytes | None:
        """Read all of it by readInto."""
        with java_errors():
            buffer = self._jvm.java("java.nio.ByteBuffer").allocate(max(0, self.size_in_bytes()))
            self._real.readInto(buffer, JInt(0))
        return bytes_of(buffer)


class SubjectTime:
    """What the real class asks for the time."""

    def __init__(self) -> None:
        self.clock: Callable[[], int] = int

    def milliseconds(self) -> int:
        """Return the subject's time."""
        return self.clock()

    hiResClockMs = milliseconds  # noqa: N815 - Kafka's name

    def nanoseconds(self) -> int:
        """Return the subject's time in another unit."""
        return self.clock() * 10**6


def made_config(jvm: Jvm, interval: int, index_bytes: int) -> Any:
    """Return Kafka's options with these two."""
    options = jvm.java("java.util.HashMap")()
    options.put("index.interval.bytes", str(interval))
    options.put("segment.index.bytes", str(max(index_bytes, INDEX_BYTES_MIN)))
    kind = storage_class(jvm, "LogConfig")
    more = []
    if jvm.release.number < JAVA_CONFIG_SINCE:
        more = [getattr(jvm.java("scala.collection.immutable.Set$"), "MODULE$").empty()]
    config = kind(options, *more)
    if index_bytes < INDEX_BYTES_MIN:
        field = kind.class_.getDeclaredField("maxIndexSize")
        field.setAccessible(True)
        field.set(config, jvm.java("java.lang.Integer")(JInt(index_bytes)))
    return config


def opened_by_parts(jvm: Jvm, time: Any, arguments: Mapping[str, Any]) -> Any:
    """Open the files one by one: up to 0.11 a segment's own way knows no suffix.

    0.10 has no transaction index.
    """
    base, suffix = arguments["base_offset"], arguments["file_suffix"]
    log, offsets, times, transactions = (
        jvm.file(f"{arguments['directory']}/{segment_file_name(base, kind)}{suffix}")
        for kind in (".log", ".index", ".timeindex", ".txnindex")
    )
    records = record_class(jvm, "FileRecords").open(
        log,
        JBoolean(True),
        JBoolean(arguments["file_already_exists"]),
        JInt(arguments["init_file_size"]),
        JBoolean(arguments["preallocate"]),
    )
    has_transactions = jvm.release.number >= (0, 11)
    size = [JInt(arguments["segment_index_bytes"]), *([JBoolean(True)] if has_transactions else [])]
    parts = [
        storage_class(jvm, "OffsetIndex")(offsets, JLong(base), *size),
        storage_class(jvm, "TimeIndex")(times, JLong(base), *size),
    ]
    if has_transactions:
        parts.append(storage_class(jvm, "TransactionIndex")(JLong(base), transactions))
    return storage_class(jvm, "LogSegment")(
        records,
        *parts,
        JLong(base),
        JInt(arguments["index_interval_bytes"]),
        JLong(arguments["roll_jitter_ms"]),
        time,
    )


def told_of_append(
    jvm: Jvm,
    largest_offset: int,
    records: bytes,
    largest_timestamp: int | None,
    shallow_offset_of_max_timestamp: int | None,
) -> list[Any]:
    """Return what append is told beside the records by a caller who has read them.

    Up to 1.1 the first offset comes first. What is not given is that of the records.
    """
    kind = release_named(jvm.release.name).kind(MemoryRecords)
    batches: list[RecordBatch] = []
    with suppress(Refused):
        batches.extend(kind(records, codecs=CODECS).batches())
    timestamp, offset = _largest_of(batches)
    if largest_timestamp is not None:
        timestamp = largest_timestamp
    if shallow_offset_of_max_timestamp is not None:
        offset = shallow_offset_of_max_timestamp
    told = [JLong(largest_offset), JLong(timestamp), JLong(offset)]
    if jvm.release.number < (2, 0):
        first = largest_offset
        with suppress(Refused, IndexError):
            first = batches[0].base_offset
        told.insert(0, JLong(first))
    return told


def _largest_of(batches: list[RecordBatch]) -> tuple[int, int]:
    """Return the largest timestamp of the batches that can be read, with its batch's last offset.

    The first of several; (-1, -1) for none.
    """
    known: list[tuple[int, int]] = []
    for batch in batches:
        with suppress(Refused):
            known.append((batch.max_timestamp, batch.last_offset))
    return max(known, key=lambda pair: pair[0], default=(-1, -1))
