# SPDX-License-Identifier: Apache-2.0
"""The tables of fields, held against what the model and its laws say of the same formats.

Both have a description of their own, so that an error of the one shows here.
"""

from array import array
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct
from typing import Any

import numpy as np
import pytest

from segproof.kernels import records, rocketmq_index
from segproof.layouts import kafka, rocketmq
from segproof.layouts.table import Layout
from segproof_model.kafka.broker import producer_snapshot
from segproof_model.kafka.format import memory_records, record_batch
from segproof_model.kafka.format.legacy_record import LOG_OVERHEAD, MIN_MESSAGE_BYTES, LegacyRecord
from segproof_model.kafka.format.offset_index import OffsetIndex
from segproof_model.kafka.format.time_index import TimeIndex
from segproof_model.language.files import Files
from segproof_model.laws.kafka.broker import producer_state
from segproof_model.laws.kafka.format import batch_bytes, index_slots, transaction_index
from segproof_model.laws.rocketmq.broker import store_config, store_timers, store_views
from segproof_model.laws.rocketmq.format import consume_queue, index_entries
from segproof_model.rocketmq.broker.store_checkpoint import StoreCheckpoint
from segproof_model.rocketmq.format.consume_queue import ConsumeQueueUnit
from segproof_model.rocketmq.format.index_header import POSITIONS, IndexHeader
from segproof_model.rocketmq.format.message import Message

LAYOUTS = {
    one.name: one for room in (kafka, rocketmq) for one in vars(room).values()
    if isinstance(one, Layout)
}  # fmt: skip
OF_SNAPSHOT = [
    "producer_id", "epoch", "last_sequence", "last_offset", "offset_delta", "timestamp",
    "coordinator_epoch", "current_transaction",
]  # fmt: skip
OF_TIMER = [
    "size", "previous", "magic", "written", "delay", "phy_offset", "message_size", "topic_hash",
]  # fmt: skip
LAWS = [
    (kafka.BATCH, batch_bytes.HEADER, batch_bytes.Header._fields),
    (kafka.OFFSET_ENTRY, index_slots.OFFSET_ENTRY, ["offset", "position"]),
    (kafka.OFFSET_ENTRY, OffsetIndex.layout, ["offset", "position"]),
    (kafka.TIME_ENTRY, index_slots.TIME_ENTRY, ["timestamp", "offset"]),
    (kafka.TIME_ENTRY, TimeIndex.layout, ["timestamp", "offset"]),
    (kafka.ABORTED_TXN, transaction_index.ABORTED_TXN, transaction_index.Slot._fields),
    (kafka.SNAPSHOT, producer_state.HEAD, ["version", "crc", "count"]),
    (kafka.SNAPSHOT_ENTRY, producer_state.ENTRY, OF_SNAPSHOT),
    (rocketmq.QUEUE_UNIT, consume_queue.UNIT, ConsumeQueueUnit._fields),
    (rocketmq.QUEUE_UNIT, store_views.UNIT, ConsumeQueueUnit._fields),
    (rocketmq.BATCH_UNIT, store_config.BATCH_UNIT, ["commit_log_offset", "size"]),
    (rocketmq.INDEX_HEADER, index_entries.HEADER, IndexHeader._fields),
    (rocketmq.INDEX_ENTRY, index_entries.ENTRY, index_entries.Entry._fields[1:]),
    (rocketmq.TIMER_ENTRY, store_timers.ENTRY, OF_TIMER),
    (rocketmq.TIMER_ENTRY, store_views.TIMER, OF_TIMER),
    (rocketmq.TIMER_SLOT, store_timers.SLOT, ["time", "first", "last", "count", "magic"]),
    (rocketmq.TIMER_CHECK, Struct(">qqq"), ["read_to", "flushed", "queue_offset"]),
]


def samples(layout: Layout) -> Iterator[bytes]:
    """Yield bytes in which each place has another number: small ones, then negative ones."""
    yield bytes(range(1, layout.size + 1))
    yield bytes(range(255, 255 - layout.size, -1))


def fields_of(layout: Layout, data: bytes | bytearray) -> dict[str, int]:
    """Return the number of each field but the hosts, which are bytes."""
    return {one.name: one.of(data) for one in layout.fields if "host" not in one.name[-4:]}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_fields_follow_each_other(layout: Layout) -> None:
    """No byte belongs to two fields, and none before the last field to no field."""
    assert layout.fields[0].place == 0
    assert all(one.end == after.place for one, after in pairwise(layout.fields))
    assert layout.fields[-1].end <= layout.size


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_all_that_is_made_of_a_table_reads_the_same(layout: Layout) -> None:
    """A field, numpy and struct read the same numbers, and each writes what it reads."""
    for data in samples(layout):
        known = fields_of(layout, data)
        row = np.frombuffer(data, layout.dtype)[0]
        assert known == {name: int(row[name]) for name in known}
        assert data[: layout.fields[-1].end] == layout.pack(*layout.struct().unpack_from(data))
        assert tuple(known.values()) == layout.struct(only=tuple(known)).unpack_from(data)
        changed = bytearray(layout.size)
        for name, number in known.items():
            layout[name].put(changed, number)
        assert known == fields_of(layout, bytes(changed))


@pytest.mark.parametrize(("layout", "of_laws", "names"), LAWS)
def test_laws_read_the_same_fields(layout: Layout, of_laws: Struct, names: list[str]) -> None:
    """Each field that a law reads is at the same place, and as long."""
    assert layout.size == of_laws.size
    for data in samples(layout):
        read = dict(zip(names, of_laws.unpack(data), strict=False))
        assert read == {name: layout[name].of(data) for name in names}


def read_by_model(layout: Layout, data: bytes) -> Any:
    """Return what the model reads of a format: an object with its fields."""
    if layout is kafka.BATCH:
        return record_batch.RecordBatch(data, 0, len(data))
    if layout is rocketmq.CHECKPOINT:
        return StoreCheckpoint(Files({"checkpoint": data}), "checkpoint")
    return LegacyRecord(data)


@pytest.mark.parametrize(
    ("layout", "hidden"),
    [
        (kafka.BATCH, {"size"}),
        (kafka.MESSAGE_0, {"size", "attributes", "key_length"}),
        (kafka.MESSAGE_1, {"size", "attributes", "key_length"}),
        (rocketmq.CHECKPOINT, set()),
    ],
)  # fmt: skip
def test_model_reads_the_same_fields(layout: Layout, hidden: set[str]) -> None:
    """Each field that the model reads is at the same place, and as long."""
    for sample in samples(layout):
        data = bytearray(sample)
        if "key_length" in hidden:
            data[layout["magic"].place] = int(layout is kafka.MESSAGE_1)
        read = read_by_model(layout, bytes(data))
        known = {name: one for name, one in fields_of(layout, data).items() if name not in hidden}
        assert known == {name: getattr(read, name) for name in known}


def test_model_writes_the_fields_of_a_message() -> None:
    """Each number of a record is where the table says; IPv6 moves the later ones by 12 bytes."""
    for flags, shift in ((0, 0), (0x10, rocketmq.IPV6_BYTES)):
        message = Message(
            0, Message.magics[0], 1, 2, 3, 4 << 32, 5 << 32, flags, 6 << 32, bytes(8 + shift),
            7 << 32, bytes(8), 8, 9 << 32, b"body", "", "",
        )  # fmt: skip
        data, table = message.to_bytes(), rocketmq.MESSAGE
        stored = {"queue_id", "flag", "queue_offset", "physical_offset", "sys_flag"}
        stored |= {"magic", "born_timestamp"}
        assert all(table[name].of(data) == getattr(message, name) for name in stored)
        later = {"store_timestamp", "reconsume_times", "prepared_transaction_offset"}
        assert all(table[name].of(data, shift) == getattr(message, name) for name in later)
        assert (len(data), 4) == (
            table["total_size"].of(data),
            table["body_length"].of(data, shift),
        )
        assert len(data) == rocketmq.MESSAGE_BYTES_MIN + shift + len(message.body)


def test_kernel_reads_the_same_fields() -> None:
    """The compiled reader of headers has the numbers of the places in its code."""
    for sample in samples(kafka.BATCH):
        data = bytearray(sample)
        kafka.BATCH["magic"].put(data, 2)
        values = array("q", bytes(8 * records.HEADER_FIELDS))
        records.decode_batch_header(bytes(data), 0, memoryview(values))
        names = (
            "base_offset", "", "magic", "attributes", "crc", "base_timestamp", "max_timestamp",
            "producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch",
            "record_count", "last_offset_delta", "",
        )  # fmt: skip
        read = {name: one for name, one in zip(names, values, strict=True) if name}
        size = kafka.BATCH["size"].of(data) + kafka.LOG_OVERHEAD_BYTES
        assert read | {"size": size - kafka.LOG_OVERHEAD_BYTES} == fields_of(kafka.BATCH, data)
        assert size == values[-1]


def test_sizes_are_those_of_the_model_and_the_kernels() -> None:
    """The model's constants and those that compiled loops have."""
    assert record_batch.BATCH_HEADER_BYTES == kafka.BATCH_HEADER_BYTES
    assert LOG_OVERHEAD == kafka.LOG_OVERHEAD_BYTES
    assert LOG_OVERHEAD + MIN_MESSAGE_BYTES == kafka.LEGACY_MIN_BYTES
    assert memory_records.HEADER_UP_TO_MAGIC_BYTES == kafka.HEADER_UP_TO_MAGIC_BYTES
    sizes = kafka.SNAPSHOT.size, kafka.SNAPSHOT_ENTRY.size
    assert (producer_snapshot.HEADER_BYTES, producer_snapshot.ENTRY_BYTES) == sizes
    assert {one.name: one.place for one in rocketmq.INDEX_HEADER.fields} == POSITIONS
    assert rocketmq_index.HEADER_BYTES == rocketmq.INDEX_HEADER.size
