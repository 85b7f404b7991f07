# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's formats: messages, units of queues, index files, the checkpoint, timers.

Upstream: RocketMQ 5.5.1: MessageExtEncoder, ConsumeQueue, BatchConsumeQueue, IndexHeader,
    IndexFile, StoreCheckpoint, TimerLog, Slot, TimerCheckpoint.
Laws: RMQLOG-1, RMQCQ-1, RMQIDX-2, RMQIDX-3, RMQCKPT-1, RMQDISK-45.
"""

from typing import Final

from segproof.layouts.table import Field, Layout

MESSAGE: Final = Layout(
    "message up to its body, with hosts of IPv4",
    Field("total_size", 0, "int32", "bytes of the record, this field included"),
    Field("magic", 4, "int32",
          "`daa320a7`: a record. `daa320ab`: a record whose topic may be long (5.1.0 on)."
          " `cbd43194`: the blank end of a file"),
    Field("body_crc", 8, "int32", "CRC-32 of the body without its highest bit", "RMQLOG-2"),
    Field("queue_id", 12, "int32", "number of its queue"),
    Field("flag", 16, "int32", "the producer's own"),
    Field("queue_offset", 20, "int64", "number of the message in its queue"),
    Field("physical_offset", 28, "int64", "offset of the record in the log"),
    Field("sys_flag", 36, "int32",
          "bits: 1 compressed, 4 and 8 transaction, 16 born host is IPv6, 32 store host is IPv6"),
    Field("born_timestamp", 40, "int64", "set by the producer, milliseconds"),
    Field("born_host", 48, "8 bytes", "address and port (int32); 20 bytes if it is IPv6"),
    Field("store_timestamp", 56, "int64", "set by the broker; at 68 if the born host is IPv6"),
    Field("store_host", 64, "8 bytes", "as the born host"),
    Field("reconsume_times", 72, "int32", "how often a consumer sent it back"),
    Field("prepared_transaction_offset", 76, "int64",
          "in the end of a transaction: the offset of its prepared message"),
    Field("body_length", 84, "int32", "then the body"),
)  # fmt: skip
IPV6_BYTES: Final = 12
"""The fields after a host of IPv6 are this much later."""
MESSAGE_BYTES_MIN: Final = MESSAGE.size + 3
"""Bytes of a message without body, topic and properties."""

QUEUE_UNIT: Final = Layout(
    "unit of a consume queue",
    Field("commit_log_offset", 0, "int64", "commit-log offset of the message"),
    Field("size", 8, "int32", "length of the message in bytes"),
    Field("tags_code", 12, "int64",
          "hash of the message's tags, 0 for none; for a scheduled message the delivery time"),
)  # fmt: skip
BATCH_UNIT: Final = Layout(
    "unit of a queue of batches",
    *QUEUE_UNIT.fields[:2],
    Field("tags_code", 12, "int64", "hash of the message's tags, 0 for none"),
    Field("store_timestamp", 20, "int64", "of the message, milliseconds"),
    Field("first_number", 28, "int64", "number in the queue of the batch's first message"),
    Field("count", 36, "int16", "messages of the batch"),
    Field("compacted_offset", 38, "int32", "offset of compaction"),
    size=46,
)

INDEX_HEADER: Final = Layout(
    "header of an index file",
    Field("begin_timestamp", 0, "int64",
          "store time of the first entry's message, milliseconds since 1970"),
    Field("end_timestamp", 8, "int64",
          "store time of the *last* entry's message; others may be later", "RMQIDX-25"),
    Field("begin_phy_offset", 16, "int64", "commit-log offset of the first entry's message"),
    Field("end_phy_offset", 24, "int64", "commit-log offset of the last entry's message"),
    Field("hash_slot_count", 32, "int32",
          "slots in use; up to 4.7.0 the number of entries", "RMQIDX-24"),
    Field("index_count", 36, "int32",
          "number of the *next* entry, that is the number of entries + 1; 0 in a new file stands"
          " for 1"),
)  # fmt: skip
INDEX_ENTRY: Final = Layout(
    "entry of an index file",
    Field("key_hash", 0, "int32", "hash of the key"),
    Field("phy_offset", 4, "int64", "commit-log offset of the message"),
    Field("time_diff", 12, "int32", "whole seconds from the begin timestamp to the store time"),
    Field("prev_index", 16, "int32", "number of the next older entry of the slot; 0 for none"),
)
CHECKPOINT: Final = Layout(
    "checkpoint",
    Field("physic_msg_timestamp", 0, "int64",
          "store time up to which the log is durable, milliseconds"),
    Field("logics_msg_timestamp", 8, "int64",
          "store time up to which the consume queues are durable, milliseconds"),
    Field("index_msg_timestamp", 16, "int64",
          "end timestamp of the newest full index file; 0 before the first full file"),
    Field("master_flushed_offset", 24, "int64",
          "since 5.0.0, of a replica: the offset up to which its master has flushed"),
    Field("confirm_phy_offset", 32, "int64", "since 5.1.1: the confirmed offset"),
    Field("logics_physical_offset", 40, "int64",
          "since 5.5.1: offset in the log that the queues have reached"),
)  # fmt: skip

TIMER_ENTRY: Final = Layout(
    "entry of a timer log",
    Field("size", 0, "int32", "52"),
    Field("previous", 4, "int64", "position of the previous entry of its slot; -1 for none"),
    Field("magic", 12, "int32", "0 to 15; `cbd43194`: the blank end of a file"),
    Field("written", 16, "int64", "time of writing, milliseconds"),
    Field("delay", 24, "int32", "milliseconds"),
    Field("phy_offset", 28, "int64", "commit-log offset of the message"),
    Field("message_size", 36, "int32", "length of the message in bytes"),
    Field("topic_hash", 40, "int32", "hash of its topic"),
    size=52,
)
TIMER_SLOT: Final = Layout(
    "slot of a timer wheel",
    Field("time", 0, "int64", "in units of timerPrecisionMs, by default a second"),
    Field("first", 8, "int64", "position in the timer log of its first entry"),
    Field("last", 16, "int64", "position in the timer log of its last entry"),
    Field("count", 24, "int32", "entries of the slot"),
    Field("magic", 28, "int32", "not looked at"),
)
TIMER_CHECK: Final = Layout(
    "file config/timercheck",
    Field("read_to", 0, "int64", "time up to which timers were delivered, milliseconds"),
    Field("flushed", 8, "int64", "end of the durable timer log"),
    Field("queue_offset", 16, "int64", "number of the next message in the queue of timers"),
)
