# SPDX-License-Identifier: Apache-2.0
"""Kafka's formats: batches and messages of a log, entries of its indexes, producer snapshots.

Upstream: Kafka 4.3.1: DefaultRecordBatch, LegacyRecord, OffsetIndex, TimeIndex, AbortedTxn,
    ProducerStateManager.
Laws: BATCH-1, OFFIDX-1, TIMEIDX-1, TXNIDX-1, PROD-1.
"""

from typing import Final

from segproof.layouts.table import Field, Layout

BATCH: Final = Layout(
    "header of a batch of magic 2",
    Field("base_offset", 0, "int64", "offset of the first record"),
    Field("size", 8, "int32", "12 + size = bytes of the batch"),
    Field("partition_leader_epoch", 12, "int32", "-1: none"),
    Field("magic", 16, "int8", "2"),
    Field("crc", 17, "uint32", "CRC-32C of bytes 21 to the end"),
    Field("attributes", 21, "int16", "see below"),
    Field("last_offset_delta", 23, "int32", "last offset - base offset"),
    Field("base_timestamp", 27, "int64", "milliseconds; -1 in an empty batch"),
    Field("max_timestamp", 35, "int64", "milliseconds"),
    Field("producer_id", 43, "int64", "-1: none"),
    Field("producer_epoch", 51, "int16", "-1: none"),
    Field("base_sequence", 53, "int32", "-1: none"),
    Field("record_count", 57, "int32", "then the records, one block, compressed as a whole"),
)
_MESSAGE: Final = (
    Field("offset", 0, "int64", "of the message; of the last inner message of a wrapper"),
    Field("size", 8, "int32", "12 + size = bytes of the message"),
    Field("crc", 12, "uint32", "CRC-32 of bytes 16 to the end"),
    Field("magic", 16, "int8", "0 or 1"),
    Field("attributes", 17, "int8", "see below"),
)
_KEY: Final = "-1: null; then the key, the length of the value (int32) and the value"
MESSAGE_0: Final = Layout(
    "message of magic 0 up to its key", *_MESSAGE, Field("key_length", 18, "int32", _KEY)
)
MESSAGE_1: Final = Layout(
    "message of magic 1 up to its key",
    *_MESSAGE,
    Field("timestamp", 18, "int64", "milliseconds"),
    Field("key_length", 26, "int32", _KEY),
)
BATCH_HEADER_BYTES: Final = BATCH.size
"""Bytes of a batch of magic 2 before its records."""
LOG_OVERHEAD_BYTES: Final = BATCH["size"].end
"""Bytes of a batch or message that its size does not count."""
HEADER_UP_TO_MAGIC_BYTES: Final = BATCH["magic"].end
"""A scanner of files reads this many bytes to know a batch's size and format."""
LEGACY_MIN_BYTES: Final = MESSAGE_0.size + 4
"""Bytes of the smallest message: of magic 0, without key and value. The header fields of magic 1 up
to the timestamp fit too."""
CHECKED_FROM: Final = BATCH["crc"].end
"""The first byte of a batch of magic 2 that its checksum covers."""
MESSAGE_CHECKED_FROM: Final = MESSAGE_1["crc"].end
"""The first byte of a message that its checksum covers."""

OFFSET_ENTRY: Final = Layout(
    "entry of an offset index",
    Field("offset", 0, "int32", "relative: offset - base offset of the segment; 0 to 2147483647"),
    Field("position", 4, "int32", "first byte of the batch in the `.log`"),
)
TIME_ENTRY: Final = Layout(
    "entry of a time index",
    Field("timestamp", 0, "int64", "milliseconds; the largest timestamp so far"),
    Field("offset", 8, "int32", "relative: offset of that timestamp - base offset of the segment"),
)
ABORTED_TXN: Final = Layout(
    "entry of a transaction index",
    Field("version", 0, "int16", "0 in every release"),
    Field("producer_id", 2, "int64", "the producer of the transaction"),
    Field("first_offset", 10, "int64", "of the transaction's first record, absolute, inclusive"),
    Field("last_offset", 18, "int64", "of the abort marker, absolute, inclusive"),
    Field("last_stable_offset", 26, "int64", "first undecided offset when the marker was written"),
)
SNAPSHOT: Final = Layout(
    "header of a producer snapshot",
    Field("version", 0, "int16", "1 in every release"),
    Field("crc", 2, "uint32", "CRC-32C of all bytes from 6 to the end of the file"),
    Field("count", 6, "int32", "entries of the file"),
)
SNAPSHOT_ENTRY: Final = Layout(
    "entry of a producer snapshot",
    Field("producer_id", 0, "int64", "the producer that has this state"),
    Field("epoch", 8, "int16", "the producer's, -1 before its first batch"),
    Field("last_sequence", 10, "int32", "of its last record; -1 without a batch"),
    Field("last_offset", 14, "int64", "of its last record; -1 without a batch"),
    Field("offset_delta", 22, "int32",
          "last offset - first offset of its last batch; 0 without a batch"),
    Field("timestamp", 26, "int64", "of its last batch or marker, in milliseconds"),
    Field("coordinator_epoch", 34, "int32", "of its last marker, -1 before the first"),
    Field("current_transaction", 38, "int64",
          "offset of the first record of its open transaction, -1 without"),
)  # fmt: skip
INDEX_ENTRIES: Final = {
    ".index": OFFSET_ENTRY, ".timeindex": TIME_ENTRY, ".txnindex": ABORTED_TXN,
}  # fmt: skip
"""The entry of each kind of index file, by its suffix."""
