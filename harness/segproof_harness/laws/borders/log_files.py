# SPDX-License-Identifier: Apache-2.0
"""Small segments of Kafka for the tables of borders: batches, index entries and file names."""

import gzip
from collections.abc import Iterable
from typing import Any

from segproof.checksums import crc32
from segproof.kafka import Record, write_batch, write_end_transaction_marker
from segproof.kafka.record import encode_varint
from segproof.layouts import kafka as layouts
from segproof_harness.laws.borders.border import Content, Files
from segproof_harness.laws.file_damages import sum_again

BASE = 1000
"""The base offset of most segments here: not 0, so that distance and offset differ."""


def name(base_offset: int, suffix: str) -> str:
    """Return the name of a file of a segment."""
    return f"{base_offset:020d}{suffix}"


def batch(
    offset: int,
    *timestamps: int,
    key: bytes | None = b"key",
    value: bytes = b"value",
    **options: Any,
) -> bytes:
    """Return a batch of one record for each timestamp, by default of one record at 1 ms."""
    records = [
        Record(offset + number, timestamp, key, value)
        for number, timestamp in enumerate(timestamps or (1,))
    ]
    return write_batch(records, base_offset=offset, **options)


def marker(offset: int, control_type: str = "ABORT", **changed: int) -> bytes:
    """Return the marker that ends the transaction of producer 7."""
    fields = {"timestamp": 1, "producer_id": 7, "producer_epoch": 0, "coordinator_epoch": 0}
    return write_end_transaction_marker(control_type, offset=offset, **(fields | changed))


def patched(data: bytes, **fields: int) -> bytes:
    """Return a batch or message whose header has other values, with the right checksum."""
    changed, layout = (
        bytearray(data),
        layouts.BATCH if layouts.BATCH["magic"].of(data) == 2 else layouts.MESSAGE_1,
    )
    for field, value in fields.items():
        layout[field].put(changed, value)
    sum_again(changed)
    return bytes(changed)


def with_byte(data: bytes, position: int, value: int) -> bytes:
    """Return the bytes with one of them replaced."""
    return data[:position] + bytes([value]) + data[position + 1 :]


def offset_entries(*entries: tuple[int, int]) -> bytes:
    """Return the entries of an offset index: distances from the base offset, and positions."""
    return layouts.OFFSET_ENTRY.pack_all(entries)


def time_entries(*entries: tuple[int, int]) -> bytes:
    """Return the entries of a time index: timestamps, and distances from the base offset."""
    return layouts.TIME_ENTRY.pack_all(entries)


def aborted(first: int, last: int, stable: int | None = None, producer_id: int = 7) -> bytes:
    """Return an entry of a transaction index; its offsets are absolute."""
    return layouts.ABORTED_TXN.pack(
        0, producer_id, first, last, last + 1 if stable is None else stable
    )


def segment(
    log: bytes | Iterable[bytes],
    index: bytes | None = None,
    times: bytes | None = None,
    transactions: bytes | None = None,
    base: int = BASE,
) -> dict[str, Content]:
    """Return the files of one segment; an index that is None is missing."""
    images = {
        ".log": log if isinstance(log, bytes) else b"".join(log),
        ".index": index,
        ".timeindex": times,
        ".txnindex": transactions,
    }
    return {name(base, suffix): data for suffix, data in images.items() if data is not None}


def followed(files: Files, base: int) -> dict[str, Content]:
    """Return the files with an empty last segment beside them, so that the first is closed."""
    return {**files, name(base, ".log"): b""}


def batch_of(offset: int, body: bytes, **fields: int) -> bytes:
    """Return a batch of one record by its header, with these bytes in place of the record."""
    head = batch(offset)[: layouts.BATCH_HEADER_BYTES]
    return patched(head + body, size=len(head) - layouts.LOG_OVERHEAD_BYTES + len(body), **fields)


def record(offset_delta: int, timestamp_delta: int = 0, value: bytes | None = None) -> bytes:
    """Return a record without a key, both deltas from -64 to 63; without a value it has 7 bytes."""
    zigzag = [2 * one if one >= 0 else -2 * one - 1 for one in (timestamp_delta, offset_delta)]
    size = b"\1" if value is None else encode_varint(len(value)) + value
    data = bytes((0, *zigzag, 1)) + size + b"\0"
    return encode_varint(len(data)) + data


def message(
    offset: int, value: bytes | None, magic: int = 1, attributes: int = 0, timestamp_ms: int = 1
) -> bytes:
    """Return a message of magic 0 or 1 without a key, with the right checksum."""
    layout, time = (layouts.MESSAGE_1, (timestamp_ms,)) if magic else (layouts.MESSAGE_0, ())
    size = -1 if value is None else len(value)
    data = bytearray(layout.pack(offset, 0, 0, magic, attributes, *time, -1))
    data += size.to_bytes(4, "big", signed=True) + (value or b"")
    layout["size"].put(data, len(data) - layouts.LOG_OVERHEAD_BYTES)
    layout["crc"].put(data, crc32(data[layouts.MESSAGE_CHECKED_FROM :]))
    return bytes(data)


def wrapper(offset: int, *messages: bytes, magic: int = 1) -> bytes:
    """Return a message that wraps others with gzip."""
    return message(offset, gzip.compress(b"".join(messages), mtime=0), magic, attributes=1)
