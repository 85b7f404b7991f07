# SPDX-License-Identifier: Apache-2.0
"""Record batches as arguments: how they are drawn, damaged and shown."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import Any

from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.choices import MAGIC_NEWEST, Choose, within
from segproof_harness.structures.outcomes import kind_of, normalise
from segproof_model.kafka.format.batch_writing import (
    write_batch,
    write_empty_batch,
    write_end_transaction_marker,
)
from segproof_model.kafka.format.compression import COMPRESSIONS
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record, RecordHeader
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import Refused, outcome_of

BASE_OFFSETS = (0, 7, 100, 2**31 - 3, 2**31, 2**40)
TIMES = (1_000, 0, -1, 1_700_000_000_000, 2**40)
RECORDS_SHOWN_MAX = 10_000
"""A damaged count may claim 2^31 records that take no room; so many are compared."""
FIELDS = (
    "magic",
    "size_bytes",
    "base_offset",
    "last_offset",
    "next_offset",
    "crc",
    "attributes",
    "compression",
    "timestamp_type",
    "base_timestamp",
    "max_timestamp",
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "last_sequence",
    "record_count",
    "is_transactional",
    "is_control",
    "has_delete_horizon",
)


def draw_bytes(choose: Choose) -> bytes | None:
    """Draw a key or a value: null, empty, or a few bytes."""
    kind = choose.weighted((1, 1, 6))
    if kind == 0:
        return None
    return b"" if kind == 1 else choose.data(choose.integer(1, 12))


def draw_records(choose: Choose, base_offset: int, with_headers: bool) -> list[Record]:
    """Draw records in order of offset, not always of time."""
    offset, timestamp = base_offset, choose.one_of(TIMES)
    records = []
    for _ in range(choose.integer(1, 4)):
        headers: tuple[RecordHeader, ...] = ()
        if with_headers and choose.one_in(3):
            count = choose.integer(1, 2)
            headers = tuple(
                RecordHeader(f"h{number}", draw_bytes(choose)) for number in range(count)
            )
        records.append(Record(offset, timestamp, draw_bytes(choose), draw_bytes(choose), headers))
        offset += choose.one_of((1, 1, 1, 2, 5))
        timestamp = max(-1, timestamp + choose.integer(-3, 20))
    return records


def draw_batch(choose: Choose, base_offset: int) -> bytes:
    """Draw a batch that is right: any magic, codec, kind."""
    kind = choose.weighted((10, 4, 1, 1)) if choose.magic_max == MAGIC_NEWEST else 1
    if kind == 2:
        return write_empty_batch(base_offset, base_offset + choose.integer(0, 9), 1_000)
    if kind == 3:
        return write_end_transaction_marker(
            choose.one_of(("ABORT", "COMMIT")),
            offset=base_offset,
            timestamp=choose.one_of(TIMES),
            producer_id=choose.integer(0, 9),
            producer_epoch=choose.integer(0, 3),
            coordinator_epoch=choose.integer(0, 99),
        )
    return _draw_data_batch(choose, base_offset, 2 if kind == 0 else choose.integer(0, 1))


def _draw_data_batch(choose: Choose, base_offset: int, magic: int) -> bytes:
    codec = choose.one_of((0, 0, 0, 1, 2, 3, 4))
    timestamp_type = "CreateTime" if magic == 0 or not choose.one_in(4) else "LogAppendTime"
    more: dict[str, Any] = {}
    if magic == 2 and choose.one_in(3):
        more = {
            "producer_id": choose.integer(0, 9),
            "producer_epoch": choose.integer(0, 3),
            "base_sequence": choose.one_of((0, 5, 2**31 - 2)),
            "is_transactional": choose.boolean(),
        }
    if magic == 2 and choose.one_in(4):
        more["partition_leader_epoch"] = choose.integer(0, 9)
    return write_batch(
        draw_records(choose, base_offset, magic == 2),
        magic=magic,
        base_offset=base_offset,
        compression=COMPRESSIONS[0 if codec == 4 and magic < 2 else codec],
        timestamp_type=timestamp_type,
        log_append_time=5_000 if timestamp_type == "LogAppendTime" else None,
        codecs=CODECS,
        **more,
    )


def draw_damage(choose: Choose, batch: bytes) -> tuple[int, bytes]:
    """Draw (position, bytes) to write over a batch: a field at its borders, a byte, a checksum."""
    magic = batch[16]
    checksum = (17, 21) if magic == 2 else (12, 16)
    kind = choose.weighted((4, 4, 3))
    if kind == 0:
        position = choose.integer(0, len(batch) - 1)
        return position, bytes([batch[position] ^ 1 << choose.integer(0, 7)])
    if kind == 1:
        fields = ((57, 4), (21, 2), (23, 4), (16, 1), (8, 4), (35, 8), (27, 8), (53, 4), (61, 1))
        position, size = choose.one_of(fields)
        size = within(len(batch) - position, 0, size)
        position = min(position, len(batch))
        border = choose.one_of((0, 1, 2, -1, 2 ** (8 * max(size, 1) - 1) - 1))
        return position, border.to_bytes(max(size, 1), "big", signed=border < 0)[:size]
    model = MemoryRecords(batch).batch_of(batch, 0, len(batch), in_file=False)
    return checksum[0], model.crc_of(batch).to_bytes(4, "big")[: max(0, len(batch) - checksum[0])]


def draw_damaged(choose: Choose, batch: bytes) -> bytes:
    """Return a batch with damage drawn for it."""
    position, written = draw_damage(choose, batch)
    return batch[:position] + written + batch[position + len(written) :]


def attempt(read: Callable[[], Any]) -> Any:
    """Return what a read returns, or its kind of error, for the model and for others alike."""
    try:
        return normalise(read())
    except Exception as error:
        return "error", kind_of(error)


def number_of(batch: RecordBatch, name: str) -> int | None:
    """Return a number that a batch of the model tells of itself; None where it can't be read."""
    found = outcome_of(getattr, batch, name)
    return None if isinstance(found, Raised) else found


def show_field(batch: Any, name: str) -> Any:
    """Return one field, or its kind of error."""
    try:
        return getattr(batch, name)
    except Exception as error:
        return "error", kind_of(error)


fields_of = attrgetter(*FIELDS)


def show_fields(batch: Any) -> tuple[Any, ...]:
    """Return all fields of a batch; one that can't be read by its kind of error."""
    try:
        return tuple(fields_of(batch))
    except Exception:
        return tuple([show_field(batch, name) for name in FIELDS])


def show_place(batch: Any) -> tuple[Any, ...]:
    """Return where a batch lies and what a search reads of it."""
    names = ("position", "size_bytes", "magic", "last_offset", "max_timestamp")
    return tuple([show_field(batch, name) for name in names])


def show_record(record: Any) -> tuple[Any, ...]:
    """Return one record as a plain tuple."""
    headers = tuple([(header.key, header.value) for header in record.headers])
    return (
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        headers,
        record.sequence,
    )


def show_records(batch: Any) -> tuple[Any, Any]:
    """Return the first records, and the kind of error that ends them."""
    return until_error(batch.records(), show_record)


def until_error(items: Iterable[Any], show: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return what an iterator hands out, shown, and the kind of error that ends it."""
    shown: list[Any] = []
    try:
        shown.extend(map(show, islice(items, RECORDS_SHOWN_MAX)))
    except Exception as error:
        return tuple(shown), kind_of(error)
    return tuple(shown), None


@lru_cache(maxsize=64)  # what is drawn for one step looks at the same batches again and again
def whole_batches(data: bytes) -> Sequence[RecordBatch]:
    """Return the batches from the beginning of data, as far as they are whole."""
    found: list[RecordBatch] = []
    with suppress(Refused):
        found.extend(MemoryRecords(data, codecs=CODECS).batches())
    return tuple(found)
