# SPDX-License-Identifier: Apache-2.0
"""What Kafka's LogSegment is told by its caller: its files, and what an append holds."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from jpype import JBoolean, JInt, JLong

from segproof_harness.files.codecs import CODECS
from segproof_harness.releases.jvm import Jvm
from segproof_harness.releases.kafka.classes import storage_class
from segproof_harness.releases.kafka.records import record_class
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.segment_names import segment_file_name
from segproof_model.language.states import Refused
from segproof_model.releases import release_named


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
    size = [
        JInt(arguments["config"].segment_index_bytes),
        *([JBoolean(True)] if has_transactions else []),
    ]
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
        JInt(arguments["config"].index_interval_bytes),
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
